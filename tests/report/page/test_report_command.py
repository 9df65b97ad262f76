"""Tests forestc report on the command line: its output, files, and refusals."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from made_studies import made_study

from forestc.cli import main
from forestc.commands.report import report
from forestc.compilation.synthesis import placement
from forestc.errors import ForestcError, MissingExtraError, OptionError, RowsError
from forestc.report.page import charts
from forestc.report.page.peers import read_peers


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["report", *map(str, arguments)])
    return ended.value.code


def test_json_tells_what_was_written(design, tmp_path, capsys):
    out = tmp_path / "a.html"
    assert run(design.folder, "-o", out, "--json") == 0
    output = json.loads(capsys.readouterr().out)
    assert output == {"out": str(out), "kind": "design", "bytes": out.stat().st_size, "pages": [], "notes": []}
    assert os.listdir(tmp_path) == ["a.html"]
    first = out.read_bytes()
    assert run(design.folder, "-o", out) == 0 and out.read_bytes() == first  # The page is the same each time.
    assert "design" in capsys.readouterr().out


def test_a_name_without_html_gets_it(design, tmp_path, capsys):
    for name, expected in (("a", "a.html"), ("b.study", "b.study.html"), ("c.HTML", "c.HTML"), ("d.htm", "d.htm")):
        assert run(design.folder, "-o", tmp_path / name, "--json") == 0
        assert (
            json.loads(capsys.readouterr().out)["out"] == str(tmp_path / expected) and (tmp_path / expected).is_file()
        )


def test_what_is_neither_a_design_nor_a_study_is_refused(design, tmp_path, capsys):
    assert run(tmp_path / "none", "-o", tmp_path / "a.html") == 1
    assert "is not a folder" in capsys.readouterr().err
    assert run(tmp_path, "-o", tmp_path / "a.html") == 1
    assert "holds neither manifest.json nor study.json" in capsys.readouterr().err
    assert run(design.folder, "-o", tmp_path / "no/a.html") == 1
    assert "there is no such folder" in capsys.readouterr().err
    assert run(design.folder, "-o", tmp_path) == 1
    assert "give a file, as in -o report.html" in capsys.readouterr().err
    assert run(design.folder, "-o", tmp_path / ("a" * 300)) == 1
    assert "can't be written (File name too long)" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert run(design.folder, "-o", tmp_path / "file/a.html") == 1
    assert "there is no such folder" in capsys.readouterr().err
    (tmp_path / "file").unlink()
    assert run(design.folder) == 2
    assert not list(tmp_path.iterdir())


def test_options_that_a_folder_has_no_use_for_are_refused(design, tmp_path):
    study = made_study(tmp_path / "study", trials=1).folder
    out = tmp_path / "a.html"
    for folder, asked, what in (
        (design.folder, {"peers": Path("x")}, "peers=: "),
        (design.folder, {"label": "y"}, "label=: labels need rows"),
        (design.folder, {"native": True}, "native=True: "),
        (study, {"rows": "x.csv"}, "rows=: "),
        (study, {"place": True}, "place=True: "),
    ):
        with pytest.raises(OptionError, match=what):
            report(folder, out, **asked)
    assert not out.exists()


def test_rows_that_do_not_fit_are_refused_and_leave_the_old_page(design, tmp_path):
    out = tmp_path / "a.html"
    out.write_text("old")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(RowsError):
        report(design.folder, out, rows=tmp_path / "rows.csv")
    with pytest.raises(RowsError, match="no column 'truth'"):
        report(design.folder, out, rows=design.folder.parent / "rows.csv", label="truth")
    assert out.read_text() == "old"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "holds no peers"),
        ("name,lut\n", "holds no peers"),
        ("name,speed\na,1\n", "unknown figure 'speed'"),
        ("lut\n1\n", "has no name"),
        ("name,lut\na,many\n", "lut is no number: 'many'"),
        ("name,lut\na,nan\n", "lut is no number"),
        ("name,accuracy\na,95.1\n", "accuracy is more than 1: 95.1; .*as in 0.951"),
        ("name,lut\na,1,2\n", "another number of columns"),
        ("name,lut\na\n", "another number of columns"),
        ("name,lut,lut\na,1,2\n", "two columns of one name"),
        ('[{"name": "a", "lut": 1, " lut": 2}]', "names one figure twice"),
        ("[1]", "is not a list of objects"),
        ('[{"name": "a", "lut": true}]', "lut is no number"),
        ('[{"name": 3}]', "has no name"),
        ("[{", "is no readable JSON"),
        ("[" * 100_000, "is no readable JSON"),
        ("\udcff", "not UTF-8"),
        ("name,lut\n" + "a,1\n" * 501, "at most 500"),
        ("x" * (1 << 21), "at most 1,048,576 are read"),
    ],
)
def test_damaged_peers_are_refused_by_name(tmp_path, text, what):
    path = tmp_path / "peers.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ForestcError, match=what) as refused:
        read_peers(path)
    assert "peers.csv" in str(refused.value)


def test_peers_may_lack_figures_and_goals_may_have_any_name(tmp_path):
    path = tmp_path / "peers.csv"
    path.write_text("name, lut ,own\n\u00e4,1e3,\nb,,2\n", encoding="utf-8-sig")
    assert [(peer.name, dict(peer.figures)) for peer in read_peers(path, ["own"])] == [
        ("\u00e4", {"lut": 1000.0}),
        ("b", {"own": 2.0}),
    ]
    with pytest.raises(ForestcError, match="there is no such file"):
        read_peers(tmp_path / "none.csv")


def test_a_page_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    study = made_study(tmp_path / "study", trials=20, compiled=1)
    out, beside = tmp_path / "a.html", tmp_path / "a_designs"
    output = report(study.folder, out)
    before = {path: path.read_bytes() for path in (out, *map(Path, output["pages"]))}
    assert len(output["pages"]) == 1 and beside.is_dir()
    replace = Path.replace

    def failing(self, target):
        if self.name == "new1":  # This is the page, written after the folder of pages.
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(ForestcError, match="No space left"):
        report(study.folder, out)
    assert before == {path: path.read_bytes() for path in before}
    assert sorted(os.listdir(tmp_path)) == ["a.html", "a_designs", "study"]
    monkeypatch.undo()
    (beside / "own.txt").write_text("mine")
    with pytest.raises(ForestcError, match="is in the way"):
        report(study.folder, out)
    assert (beside / "own.txt").read_text() == "mine"


def test_a_damaged_design_of_the_front_has_no_page_and_is_reported(tmp_path):
    study = made_study(tmp_path / "study", trials=20, compiled=1)
    folder = study.design(study.front[-1])
    (folder / "quantized.forest").write_text("broken")
    output = report(study.folder, tmp_path / "a.html")
    assert output["pages"] == [] and f"trial {study.front[-1].number} has no page" in output["notes"][0]
    assert not (tmp_path / "a_designs").exists()


def test_without_the_extra_the_error_names_it(design, tmp_path, monkeypatch):
    def missing():
        raise MissingExtraError("altair", "report")

    monkeypatch.setattr("forestc.commands.report.altair", missing)
    with pytest.raises(MissingExtraError, match=r'pip install "forestc\[report\]"'):
        report(design.folder, tmp_path / "a.html")
    monkeypatch.setattr(charts, "altair", missing)
    monkeypatch.setattr("forestc.report.page.design_charts.altair", missing)
    assert design._repr_html_().startswith("<table>")


def test_the_placed_design_is_drawn(design, tmp_path, visit, need_tool, monkeypatch):
    need_tool("yosys")
    need_tool("nextpnr-ice40")
    placed = placement(design, "ice40-hx8k", native=True)
    known = [net for _, net in placed.cells if net is not None]
    assert known and max(known) < len(design.netlist.cells) and placed.placed.used > 0
    with pytest.raises(OptionError, match="not placed for 'lut6'"):
        placement(design, "lut6")
    monkeypatch.setattr("forestc.commands.report.placement", lambda *_, **__: placed)
    out = tmp_path / "a.html"
    report(design.folder, out, place=True)
    with visit(out) as page:
        picture = page.locator("section#placed figure [role=img]").first
        assert "cells on ice40-hx8k" in picture.get_attribute("aria-label") and picture.locator("path").count() > 4
