"""Tests the HLS C++: clean under warnings, its bench and its fixed-point entry."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import numpy as np
import pytest
from forest_designs import design, differences, hard_vectors
from needs import ap_headers
from random_forests import random_forest

from forestc.backends.hdl import vector_lines
from forestc.backends.hls import core as hls
from forestc.backends.hls import engine as hls_engine
from forestc.backends.hls.core import HlsOptions
from forestc.backends.names import feature_name
from forestc.backends.ports import input_fields, output_fields, pack
from forestc.backends.table import opened
from forestc.backends.vectors import expected
from forestc.errors import OptionError, ToolError
from forestc.forest.numbers import Category, Fixed
from forestc.lowering.trees import lower
from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import BIT, Input, WordType, evaluate, reads
from forestc.netlist.ports import Port, score_port
from forestc.rows.encode import encode
from forestc.toolchain.compilers import cxx_compiler

WARNINGS = ["-std=c++14", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]


def compiled(folder, *sources, flags=()):
    command = [cxx_compiler(), *WARNINGS, *flags, "-isystem", ap_headers(), *sources, "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "program"


def test_a_wrong_comparator_is_found(tmp_path):
    forest = random_forest(12, True, "argmax", types=[Fixed(8)])
    made = design(forest, tmp_path, outputs="both", targets=("hls",))
    path = made.path("hls")
    text = path.read_text()
    line = next(line for line in text.splitlines() if " c" in line and "(~" in line)
    path.write_text(text.replace(line, line.replace("(~", "(", 1)))
    assert differences("hls", made, tmp_path, 12).count > 0


@pytest.mark.parametrize("block", [5, 1024])
def test_it_is_clean_under_warnings_and_its_bench_passes(tmp_path, monkeypatch, block):
    monkeypatch.setattr(hls, "BLOCK", block)
    forest = random_forest(21, True, "argmax")
    made = design(forest, tmp_path, outputs="both", targets=("hls",))
    netlist, top, folder = made.netlist, hls.top_name(made.netlist), tmp_path / "hls"
    words = hard_vectors(forest, 21).words[:500]
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    wanted = pack(outputs, expected(forest, netlist, words))
    program = compiled(folder, f"{top}.cpp", f"{top}_tb.cpp")
    (folder / "vectors.txt").write_text(vector_lines(inputs, outputs, pack(inputs, words), wanted))
    done = subprocess.run([program], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == f"PASS {len(words)} vectors\n"
    wanted[7] ^= 1
    (folder / "vectors.txt").write_text(vector_lines(inputs, outputs, pack(inputs, words), wanted))
    done = subprocess.run([program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"FAIL 1 of {len(words)} vectors" in done.stdout
    text = (folder / "vectors.txt").read_text()
    for content in ("", "g" + text[1:], text[:-2], text[: text.rindex(" ") + 1], text[: text.rindex(" ") - 1], None):
        if content is None:
            (folder / "vectors.txt").unlink()
        else:
            (folder / "vectors.txt").write_text(content)
        done = subprocess.run([program], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and done.stdout.splitlines()[-1].startswith("can't read vector "), content


def test_features_as_ap_fixed_are_rounded_and_saturated_as_the_words_are(tmp_path):
    types = [Fixed(7, 3), Fixed(5, -2), Fixed(9, 4, True), Fixed(12, 14, True), Fixed(8), Category(5)]
    forest = random_forest(30, True, "argmax", types=types)
    features = tuple(replace(f, missing=i % 2 == 0, number=types[i]) for i, f in enumerate(forest.features))
    forest = replace(forest, features=features)
    made = design(forest, tmp_path, outputs="both", targets=("hls",))
    top, folder = hls.top_name(made.netlist), tmp_path / "hls"
    random = np.random.default_rng(0)
    rows = np.zeros((400, len(features)))
    lines = []
    for i, feature in enumerate(features):
        name = feature_name(i, feature.name)
        if isinstance(feature.number, Category):
            rows[:, i] = random.integers(0, 5, 400)
            lines.append(f"v.{name} = in[{i}];")
            continue
        reach = 2.0 ** (feature.number.bits - feature.number.fraction)
        rows[:, i] = random.uniform(-1.5 * reach, 1.5 * reach, 400).astype(np.float32)
        if feature.missing:
            rows[::5, i] = np.nan
            lines.append(f"v.{name}_missing = in[{i}] != in[{i}]; v.{name} = v.{name}_missing ? 0.0 : in[{i}];")
        else:
            lines.append(f"v.{name} = in[{i}];")
    names = [field.name for field in output_fields(made.netlist)]
    results = " ".join(f"out[{k}] = y.{name};" for k, name in enumerate(names))
    (folder / "main.cpp").write_text(
        f'#include <cstdio>\n#include <cstdint>\n#include "{top}.h"\nint main() {{ double in[{len(features)}]; '
        f"int64_t out[{len(names)}]; while (std::fread(in, sizeof in, 1, stdin) == 1) {{ {top}_values v; {top}_y y; "
        f"{' '.join(lines)} {top}_fixed(v, y); {results} std::fwrite(out, sizeof out, 1, stdout); }} }}\n"
    )
    program = compiled(folder, f"{top}.cpp", "main.cpp")
    out = subprocess.run([program], input=rows.tobytes(), capture_output=True, check=True).stdout
    got = np.frombuffer(out, dtype=np.int64).reshape(-1, len(names))
    assert np.array_equal(got, expected(forest, made.netlist, encode(forest, rows)))


def test_the_scripts_name_the_files_that_are_there():
    forest = random_forest(1, True, "binary")
    netlist = lower(forest)
    files = hls.emit(forest, netlist, HlsOptions(part="xcvu9p-flga2104-2-i", clock=2.5))
    assert files == hls.emit(forest, netlist, HlsOptions(part="xcvu9p-flga2104-2-i", clock=2.5))
    tcl, config = files["run_hls.tcl"], files["hls_config.cfg"]
    for path in [p for p in files if p.endswith((".h", ".cpp"))]:
        assert path in tcl and f"file={path}\n" in config
    assert "set part xcvu9p-flga2104-2-i\nset clock 2.5\n" in tcl and "clock=2.5ns" in config
    with pytest.raises(OptionError, match="is no device"):
        HlsOptions(part="x; exec rm")
    with pytest.raises(OptionError, match=r"clock: .*; give 0\.1 to 1e6 nanoseconds"):
        HlsOptions(clock=0)


def test_without_the_headers_the_engine_names_the_extra(tmp_path, monkeypatch):
    made = design(random_forest(1, True, "binary"), tmp_path, targets=("hls",))
    monkeypatch.setattr(hls_engine, "ap_types", lambda: None)
    with pytest.raises(ToolError, match=r'pip install "forestc\[hls\]"'):
        opened("hls", made, tmp_path)


def test_cells_of_wide_words(tmp_path, monkeypatch):
    """Covers signed words, and sums past 62 bits, in one block and in many."""
    random = np.random.default_rng(3)
    builder = NetlistBuilder("cells")
    a, b, c = (
        builder.input(Port("x0"), WordType(9, True)),
        builder.input(Port("x1", index=1), WordType(60, False)),
        builder.input(Port("x2", index=2), BIT),
    )
    low = [builder.less(a, t) for t in (-200, -3, 0, 1, 77)]
    chosen = [builder.mux(bit, builder.const(5, WordType(60, False)), b) for bit in low]
    nets = [builder.add((a, c), WordType(11, True)), builder.add((a, b), WordType(62, True)), *chosen,
            builder.add(chosen[:2], WordType(61, False)), builder.compare(b, chosen[2]), builder.in_set(a, [-256, 3]),
            builder.and_(low[0], builder.or_(c, builder.not_(low[3]))), builder.shift(b), builder.shift(c),
            builder.table([(low[0], 1), (builder.shift(c), 3), (low[1], 2), (1, 1)], 10),
            builder.extend(b, WordType(62, False))]  # fmt: skip
    for place, net in enumerate(nets):
        builder.output(score_port(place), net)
    netlist = builder.build()
    assert len(netlist.outputs) == len(nets)
    words = np.stack([random.integers(-256, 256, 300), random.integers(0, 1 << 60, 300), random.integers(0, 2, 300)], 1)
    wanted = np.array([_values(netlist, row) for row in words.tolist()])
    for block in (3, 1024):
        monkeypatch.setattr(hls, "BLOCK", block)
        body = hls.cpp_body(
            netlist, "t", "const int64_t *in", "in", lambda x: f"in[{x.index}]", lambda y: f"out[{y.index}]"
        )
        parts = [f"{head} {{ {' '.join(lines)} }}" for head, lines in body.blocks]
        (tmp_path / "main.cpp").write_text(
            "#include <cstdint>\n#include <cstdio>\n#include <ap_int.h>\n"
            + (f"struct t_nets {{ {' '.join(body.nets)} }};\n" if body.nets else "")
            + "\n".join(parts)
            + f"int main() {{ int64_t in[3], out[{len(nets)}]; while (std::fread(in, sizeof in, 1, stdin) == 1) {{ "
            + f"{' '.join(body.statements)} std::fwrite(out, sizeof out, 1, stdout); }} }}\n"
        )
        out = subprocess.run([compiled(tmp_path, "main.cpp")], input=words.tobytes(), capture_output=True, check=True)
        assert np.array_equal(np.frombuffer(out.stdout, dtype=np.int64).reshape(wanted.shape), wanted)


def _values(netlist, words):
    values = []
    for cell in netlist.cells:
        known = tuple(values[a] for a in reads(cell))
        values.append(words[cell.port.index] if isinstance(cell, Input) else evaluate(cell, known))
    return [values[net] for _, net in netlist.outputs]
