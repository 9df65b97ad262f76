"""Tests the golden cases, by which stale figures in docs/benchmarks are found."""

from __future__ import annotations

import json
from pathlib import Path

import golden
import pytest

from forestc.papers.factorization import binary_matrix_factorization as factorization

ROOT = Path(__file__).parents[1]
RESULTS = sorted((ROOT / "docs" / "benchmarks").glob("*.json"))
PAGES = ("README.md", "docs/index.md", "docs/benchmarks/index.md", "docs/explanation/comparison.md")


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_result_records_digests_of_cases_that_stand_for_it(path):
    result = json.loads(path.read_text())
    assert result["golden"].keys() <= golden.cases_of(Path(result["command"].split()[0]).stem).keys()


@pytest.mark.parametrize("page", PAGES)
def test_a_case_stands_for_each_row_that_a_page_shows(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in {mark[2] for mark in golden.MARK.finditer(text)}:
        result = json.loads((ROOT / "docs" / "benchmarks" / f"{name}.json").read_text())
        cases = golden.cases_of(Path(result["command"].split()[0]).stem)
        for row in result["rows"]:
            texts = [text for own in cases.values() for text in own]
            assert "source" in row["origin"] or any(text in str(value) for text in texts for value in row.values())


def test_a_stale_result_names_the_case_and_the_pages_with_its_rows(tmp_path, monkeypatch):
    """Uses the engine's case, which is the quickest. Results of other cases are left alone."""
    rows = [{"design": "iris", "line": "clean", "origin": {}}]
    about = {"title": "", "command": "benchmarks/board_check.py", "rows": rows}
    cases = {"engine": golden.digest("engine"), "boards": golden.digest("models read")}
    monkeypatch.setattr(golden, "digest", cases.__getitem__)
    monkeypatch.setattr(golden, "RESULTS", tmp_path)
    for name, digest in [("kept", cases["engine"]), ("board_check", "000000000000")]:
        result = golden.sealed({**about, "golden": {"engine": digest, "boards": cases["boards"]}})
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    ((name, why),) = golden.stale()
    assert name == "board_check" and why.startswith("engine changed; ")
    assert "docs/howto/check.md, table: iris clean" in why


def test_a_figure_by_hand_is_found_in_a_result_and_in_the_figures_of_others(tmp_path, monkeypatch):
    known, source = golden.others("design")[0]
    row = {**known, "origin": {"source": source}}
    written = {"title": "", "command": "toy.py", "golden": {}, "rows": [row]}
    monkeypatch.setattr(golden, "RESULTS", tmp_path)
    for result, found in (
        (golden.sealed(written), []),
        ({**golden.sealed(written), "rows": [{**row, "FF": -1}]}, ["its seal is broken", "benchmarks/peers.json"]),
        (golden.sealed({**written, "rows": [{**row, "FF": -1}]}), ["benchmarks/peers.json"]),
    ):
        (tmp_path / "toy.json").write_text(json.dumps(result))
        told = [why for _, why in golden.stale()]
        assert len(told) == len(found) and all(why.startswith(text) for why, text in zip(told, found, strict=True))


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("engine", b"endmodule"),
        ("models read", b"tree"),
        ("C", b"#include"),
        ("other languages", b"end architecture"),
        ("estimates and devices", b"synth_gowin"),
        ("boards", b"nextpnr-ice40"),
    ],
)
def test_each_digest_is_of_what_forestc_makes(name, holds, tmp_path):
    made = list(golden.GOLDEN[name].made(tmp_path))
    assert sum(map(len, made)) > 10_000 and any(holds in part for part in made)


def test_a_digest_is_the_same_before_and_after_the_first_search_of_a_process():
    digest = golden.digest.__wrapped__
    after = digest("factors")
    for once in (factorization._compile, golden.warmed_up):
        once.cache_clear()
    assert digest("factors") == after


def test_a_level_yields_each_setting_that_it_tries(tmp_path):
    case = golden.compiled("forest 3", level=2, targets="verilog")
    assert sum(b"LevelTrial" in part for part in case(tmp_path)) > 5


@pytest.mark.parametrize("change", ["FEW = 7", "FEW = 6; x = 5"])
def test_constants_are_numbers_of_modules_and_parameters(change, tmp_path, monkeypatch):
    monkeypatch.setattr(golden, "ROOT", tmp_path)
    (tmp_path / "forestc").mkdir()
    module = tmp_path / "forestc" / "a.py"
    module.write_text('FEW = 6\ndef f(x=2):\n    return "text"\n')
    before = golden.constants("a.py")
    module.write_text('def f(x=2):\n    y = 4\n    return "other text"\nFEW = 6  # moved\n')
    assert golden.constants("a.py") == before
    module.write_text(f"def f(x=2):\n    return x\n{change}\n")
    assert golden.constants("a.py") != before
