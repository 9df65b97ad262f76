"""Builds conifer's own emulator (conifer.h, ap_fixed.h) with g++, and runs it.

It needs conifer (of pip, or the folder of its package in CONIFER), hls4ml (of pip) and Debian's nlohmann-json3-dev.
"""

from __future__ import annotations

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np

INPUT = r"""
#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>
#include "ap_fixed.h"
#include "conifer.h"
struct Types : conifer::ConiferConfiguration {
  typedef THRESHOLD threshold_t;
  typedef SCORE score_t;
  typedef WEIGHT weight_t;
  static constexpr bool useAddTree = TREE;
};
int main(int, char** argv) {
  conifer::BDT<Types> model(argv[1]);
  const int columns = std::atoi(argv[2]);
  std::vector<double> row(columns);
  while (std::fread(row.data(), sizeof(double), columns, stdin) == (size_t)columns) {
    std::vector<THRESHOLD> x;
    for (double v : row) x.push_back((THRESHOLD)(INPUT)v);
    for (SCORE s : model.decision_function(x)) {
      double score = (double)s;
      std::fwrite(&score, sizeof score, 1, stdout);
    }
  }
}
"""


def folder_of(package: str, inside: str) -> Path | None:
    """Returns a folder of an installed package; None without it."""
    spec = find_spec(package)
    home = (
        os.environ.get(package.upper()) or (spec.submodule_search_locations or [""])[0]
        if spec
        else os.environ.get(package.upper())
    )
    return Path(home) / inside if home and (Path(home) / inside).is_dir() else None


def includes() -> list[str] | str:
    """Returns the folders of headers, or the reason why there is no emulator."""
    needed = {"conifer": "backends/cpp/include", "hls4ml": "templates/vivado/ap_types"}
    folders = {package: folder_of(package, inside) for package, inside in needed.items()}
    absent = [package for package, folder in folders.items() if folder is None]
    absent += [] if which("g++") else ["g++"]
    absent += [] if Path("/usr/include/nlohmann/json.hpp").is_file() else ["nlohmann-json3-dev"]
    return f"not installed: {', '.join(absent)}" if absent else [str(folder) for folder in folders.values()]


def build(folder: Path, types: dict[str, str], order: str = "sequential") -> Path:
    """Builds the emulator for types by role (input, threshold, score)."""
    source, program = folder / "emulator.cpp", folder / "emulator"
    source.write_text(INPUT)
    weight = "ap_uint<1>" if types["threshold"].startswith("ap_") else "float"
    names = {role.upper(): name for role, name in types.items()} | {"WEIGHT": weight, "TREE": str(int(order == "tree"))}
    flags = [f"-D{name}={value}" for name, value in names.items()] + [f"-I{path}" for path in includes()]
    subprocess.run(["g++", "-O0", "-w", "-std=c++14", *flags, str(source), "-o", str(program)], check=True)
    return program


def scores(program: Path, model: dict, rows: np.ndarray) -> np.ndarray:
    """Returns the emulator's scores (rows, outputs). Weights that a file lacks are 1, as in CMSSW."""
    columns = model["n_features"]
    given = json.loads(json.dumps(model))
    for tree in (tree for classes in given["trees"] for tree in classes):
        tree["weight"] = [[int(k == feature) for k in range(columns)] for feature in tree["feature"]]
    path = program.with_suffix(".json")
    path.write_text(json.dumps(given))
    data = np.ascontiguousarray(rows, dtype=np.float64).tobytes()
    done = subprocess.run([str(program), str(path), str(columns)], input=data, capture_output=True, check=True)
    return np.frombuffer(done.stdout, dtype=np.float64).reshape(len(rows), -1)
