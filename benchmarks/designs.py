"""Changes and measures compiled designs for several benchmarks: other headers, sizes in LUTs and in flash."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from forestc.backends.c.header import emit
from forestc.backends.c.options import COptions
from forestc.costs.devices import FAMILIES
from forestc.manifest.design import Design
from forestc.toolchain.yosys import synthesize


def with_header(design: Design, options: COptions, folder: Path) -> Design:
    """Returns a design with the same forest and a header of other options, written to a folder."""
    for path, text in emit(design.forest, options).items():
        at = folder / design.manifest["files"]["c"]
        assert at.name == path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text, encoding="utf-8")
    manifest = {**design.manifest, "options": {**design.manifest["options"], "c": options.c_record()}}
    return replace(design, folder=folder, manifest=manifest)


def estimated_luts(figures: Mapping[str, Any]) -> int:
    """Returns the LUTs that `compile` estimates for an UltraScale+."""
    return next(int(estimate["lut"]) for estimate in figures["estimate"] if estimate["device"] == "xcup")


def yosys_luts(design: Design, family: str = "xcup") -> int:
    """Returns the LUTs that yosys counts, without registers on the ports."""
    return synthesize([design.path("verilog")], str(design.manifest["core"]), FAMILIES[family].synthesis).lut


def object_bytes(header: Path, body: str, cpu: str) -> int:
    """Returns the bytes of code and constants of a function that uses a header, by `arm-none-eabi-gcc -Os`. body: the C
    source of the function."""
    flags = [f"-mcpu={cpu}", "-mthumb", "-std=c99", "-Os", "-c", "f.c", "-o", "f.o"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "f.c").write_text(f'#include "{header}"\n{body}\n')
        subprocess.run(["arm-none-eabi-gcc", *flags], cwd=folder, check=True)
        size = ["arm-none-eabi-size", "f.o"]
        text = subprocess.run(size, cwd=folder, capture_output=True, text=True, check=True).stdout
    return int(text.splitlines()[1].split()[0])
