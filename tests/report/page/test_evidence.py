"""Tests forestc evidence: its folder and page, and what --verify finds."""

from __future__ import annotations

import json
import random
import re
import shutil

import pytest
from damage import json_copies
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.checks.coverage import ALL
from forestc.cli import main
from forestc.commands import evidence as command
from forestc.commands.evidence import evidence
from forestc.errors import CheckError, ForestcError, MissingToolError, OptionError
from forestc.manifest.evidence import COPIES, PAGE, RECORD, schema, sealed, text_of
from forestc.system.records import hold


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["evidence", *map(str, arguments)])
    return ended.value.code or 0, capsys.readouterr()


def parts(folder):
    """Returns {name: section} of the evidence in a folder."""
    record = json.loads((folder / RECORD).read_text())
    hold(record, schema())
    return {part["name"]: part for part in record["sections"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Returns the folders of designs, by name, and of the evidence of each."""
    folder = tmp_path_factory.mktemp("evidence")
    frame = load_breast_cancer(as_frame=True).frame
    frame[::2].to_csv(folder / "train.csv", index=False)
    frame[1::2].to_csv(folder / "test.csv", index=False)
    model = RandomForestClassifier(4, max_depth=4, random_state=0).fit(
        frame[::2].drop(columns="target"), frame[::2]["target"]
    )
    kinds = {
        "branches": {"targets": "c", "c_layout": "branches"},
        "nodes": {"targets": "c", "c_layout": "nodes"},
        "verilog": {"targets": "verilog"},
        "small": {"targets": "c", "level": 2, "held_out": folder / "test.csv", "tolerance": 0.05},
    }
    for name, options in kinds.items():
        forestc.compile(model, folder / "train.csv", folder / name, label="target", name="cancer", **options)
        evidence(folder / name, out=folder / f"of_{name}", rows=folder / "test.csv", label="target")
    return folder


def verified(folder, design=None):
    """Returns what --verify finds."""
    try:
        return evidence(folder, verify=True, design=design)["changed"]
    except CheckError as error:
        return [f"{error.what} in {RECORD}"]


@pytest.mark.parametrize("name", ["branches", "nodes", "verilog", "small"])
def test_unchanged_evidence_is_verified_and_holds_the_design(made, name):
    folder = made / f"of_{name}"
    assert verified(folder, made / name) == [] and sorted(path.name for path in folder.iterdir()) == [
        COPIES, PAGE, RECORD,
    ]  # fmt: skip
    for path in json.loads((folder / RECORD).read_text())["files"]:
        assert (folder / COPIES / path).read_bytes() == (made / name / path).read_bytes()
    page = (folder / PAGE).read_text()
    assert json.loads((folder / RECORD).read_text())["sha256"] in page and "Signatures" in page


def test_its_figures_are_those_of_check(made):
    checked = forestc.check(made / "nodes", made / "test.csv", label="target", record=False)
    own = parts(made / "of_nodes")
    assert {row[0]: row[1] for row in own["coverage"]["rows"] if row[0] != ALL} == checked.vectors
    assert own["results"]["rows"] == [list(row) for row in checked.answers()]
    ran = {row[0]: row[3] for row in own["engines"]["rows"] if row[4] is not None}
    assert ran == {name: engine.vectors for name, engine in checked.engines.items() if engine.differences is not None}


def test_branches_are_counted_where_each_is_a_condition(made):
    own = {name: parts(made / f"of_{name}")["coverage"] for name in ("branches", "nodes", "verilog")}
    counted = {name: any("MC/DC" in head for head in part["head"]) for name, part in own.items()}
    assert counted == {"branches": True, "nodes": False, "verilog": False}
    row = next(row for row in own["branches"]["rows"] if row[0] == ALL)
    _, whole = map(int, row[-1].split(" of "))
    header = (made / "branches" / "c" / "cancer.h").read_text()
    bodies = re.findall(r"_tree_\d+\(const.*?\n}", header, re.DOTALL)
    assert whole == 2 * sum(body.count("if (") for body in bodies) > 0


def test_a_compound_condition_is_no_single_one(made, tmp_path):
    shutil.copytree(made / "branches", tmp_path / "out")
    header = tmp_path / "out" / "c" / "cancer.h"
    pattern = re.compile(r"(_tree_0\(.*?)if \((x\[\d+\] >= \d+u)\)", re.DOTALL)
    header.write_text(pattern.sub(r"\1if ((\2) && 1)", header.read_text(), count=1))
    design = forestc.open_design(tmp_path / "out")
    assert design.changed_files() and not command._one_condition(design)


def test_a_level_tells_its_interval(made):
    rows = {row[0]: row[1] for row in parts(made / "of_small")["level"]["rows"]}
    found = forestc.open_design(made / "small").manifest["made"]["level"]["evidence"]
    assert [rows["interval, low"], rows["interval, high"]] == found["interval"] and rows["word"]
    assert any("optimistic" in text for text in parts(made / "of_small")["sources"]["text"])
    assert not any("optimistic" in text for text in parts(made / "of_nodes")["sources"]["text"])


def test_missing_tools_are_named(made, tmp_path, monkeypatch):
    def missing(*_, **__):
        raise MissingToolError("the tool is away", do="install it")

    for name in ("need_provers", "measure", "opened"):
        monkeypatch.setattr(command, name, missing)
    evidence(made / "verilog", out=tmp_path / "a", rows=made / "test.csv", label="target")
    evidence(made / "nodes", out=tmp_path / "b", rows=made / "test.csv", label="target")
    told = "not run: the tool is away"
    assert any(text.startswith(told) for text in parts(tmp_path / "a")["proofs"]["text"])
    own = parts(tmp_path / "b")
    assert own["measure"]["text"][0].startswith("not run") and own["warnings"]["rows"][1][1].startswith(told)
    for folder in "ab":
        assert "the tool is away" in (tmp_path / folder / PAGE).read_text()


def test_a_wrong_design_is_not_filed(made, tmp_path):
    shutil.copytree(made / "nodes", tmp_path / "out")
    header = tmp_path / "out" / "c" / "cancer.h"
    header.write_text(header.read_text() + "\n")
    with pytest.raises(CheckError):
        evidence(tmp_path / "out", out=tmp_path / "a", rows=made / "test.csv", label="target")
    assert not (tmp_path / "a").exists()


def test_status_and_words_of_verify(made, tmp_path, capsys):
    shutil.copytree(made / "nodes", tmp_path / "out")
    edited = tmp_path / "out" / "quantized.forest"
    lines = edited.read_text().splitlines(keepends=True)
    number, line = next((k, line) for k, line in enumerate(lines, 1) if re.search(r"< \d+", line))
    new = re.sub(r"< (\d+)", lambda found: f"< {int(found[1]) + 1}", line, count=1)
    edited.write_text("".join([*lines[: number - 1], new, *lines[number:]]))
    status, said = run(capsys, "--verify", made / "of_nodes", "--design", tmp_path / "out")
    assert status == 3 and f"quantized.forest of the design changed, line {number}" in said.err
    assert re.search(r"< \d+", new)[0] in said.err
    status, said = run(capsys, "--verify", made / "of_nodes", "--json")
    assert status == 0 and json.loads(said.out)["changed"] == []


def test_versions_of_all_engines_are_compared(tmp_path):
    frame = load_breast_cancer(as_frame=True).frame
    frame.to_csv(tmp_path / "rows.csv", index=False)
    X, y = frame.drop(columns="target"), frame["target"]
    model = RandomForestClassifier(2, max_depth=3, random_state=0).fit(X, y)
    targets = "verilog,vhdl,c,python,javascript,rust,go,java,amaranth,wasm,hls"
    forestc.compile(model, X, tmp_path / "out", label=y, targets=targets)
    evidence(tmp_path / "out", out=tmp_path / "e", rows=tmp_path / "rows.csv", prove=False, cpu="pico")
    record = json.loads((tmp_path / "e" / RECORD).read_text())
    for name, _, tool, _, differences, _ in parts(tmp_path / "e")["engines"]["rows"]:
        compared = any(text.lower() in tool.lower() for text in record["tools"].values())
        assert differences is None or compared or tool == "hw_sim", name
    assert "cross compiler" in record["tools"] or "not run" in parts(tmp_path / "e")["measure"]["text"][0]
    assert verified(tmp_path / "e", tmp_path / "out") == []


def test_another_version_is_named(made, monkeypatch):
    monkeypatch.setattr(command, "version", lambda _: "cc 99")
    monkeypatch.setattr(command, "__version__", "9")
    found = verified(made / "of_nodes")
    assert any("version of C compiler is cc 99" in line for line in found)
    assert any("version of forestc is 9" in line for line in found)


def changed(draw, folder, design):
    """Changes a byte, a comparison or a version, in place. Returns what --verify must name."""
    record = json.loads((folder / RECORD).read_text())
    kind = draw.choice(["design", "copy", "record", "page", "comparison", "version"])
    if kind == "version":
        name = draw.choice(sorted(record["tools"]))
        record["tools"][name] += ".1"
        fields = {key: value for key, value in record.items() if key != "sha256"}
        (folder / RECORD).write_text(text_of(sealed(fields)))
        return f"version of {name}"
    path = draw.choice(sorted(record["files"]))
    files = {"design": design / path, "copy": folder / COPIES / path, "record": folder / RECORD, "page": folder / PAGE}
    if kind == "comparison":
        path, pattern = draw.choice([("c/cancer.h", rb">= (\d+)u"), ("quantized.forest", rb"< (\d+)")])
        data = (design / path).read_bytes()
        found = draw.choice([*re.finditer(pattern, data)])
        data = data[: found.start(1)] + str(int(found[1]) + 1).encode() + data[found.end(1) :]
        (design / path).write_bytes(data)
        line = data[: found.start(1)].count(b"\n") + 1
        return f"{path} of the design changed, line {line}"
    data = bytearray(files[kind].read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    files[kind].write_bytes(data)
    return {"design": f"{path} of the design", "copy": f"{COPIES}/{path}", "record": RECORD, "page": PAGE}[kind]


@pytest.mark.parametrize("count", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_every_change_is_found(made, tmp_path, count, monkeypatch):
    told = {name: say() for name, say in command._tools("cortex-m0plus", False).items()}
    monkeypatch.setattr(command, "_tools", lambda *_: {name: lambda text=text: text for name, text in told.items()})
    draw = random.Random(count)
    for number in range(count):
        folder, design = tmp_path / f"{number}e", tmp_path / f"{number}d"
        shutil.copytree(made / "of_branches", folder)
        shutil.copytree(made / "branches", design)
        named = changed(draw, folder, design)
        found = verified(folder, design)
        assert any(named in line for line in found), (number, named, found)
        shutil.rmtree(folder)
        shutil.rmtree(design)


@pytest.mark.parametrize("count", [30, pytest.param(400, marks=pytest.mark.slow)])
def test_hostile_records_are_refused_in_a_line(made, tmp_path, count):
    shutil.copytree(made / "of_nodes", tmp_path / "e")
    for copy in json_copies(json.loads((tmp_path / "e" / RECORD).read_text()), count, "evidence"):
        (tmp_path / "e" / RECORD).write_bytes(copy.data)
        with pytest.raises(CheckError) as error:
            evidence(tmp_path / "e", verify=True)
        assert "\n" not in str(error.value), copy.how


@pytest.mark.parametrize(
    ("key", "value"),
    [("files", {"../../x": "0" * 64}), ("files", {"/etc/passwd": "0" * 64}), ("tools", {"x" * 5000: "\x1b[31m"}),
     ("sections", [{"name": "a", "title": "<script>", "text": ["<b>"], "head": ["x"], "rows": [["y", "z"]]}]),
     ("name", "a" * (1 << 24)), ("processor", "<script>"), ("sections", [{}] * 100_000)],
)  # fmt: skip
def test_a_sealed_but_hostile_record_is_refused_or_differs(made, tmp_path, key, value):
    shutil.copytree(made / "of_nodes", tmp_path / "e")
    record = json.loads((tmp_path / "e" / RECORD).read_text()) | {key: value}
    (tmp_path / "e" / RECORD).write_text(text_of(sealed({k: v for k, v in record.items() if k != "sha256"})))
    assert verified(tmp_path / "e")


def test_a_sealed_script_is_text_on_its_page(made):
    record = json.loads((made / "of_nodes" / RECORD).read_text()) | {"name": "<script>alert(1)</script>"}
    assert "<script>alert" not in command.html(command.evidence_page(record))


def test_refusals(made, tmp_path, capsys):
    rows = ("--rows", made / "test.csv", "--label", "target")
    assert run(capsys, made / "nodes", *rows)[0] == 2
    assert run(capsys, made / "nodes", "-o", made / "nodes", *rows)[0] == 1
    assert run(capsys, made / "nodes", "-o", tmp_path / "no" / "a", *rows)[0] == 1
    assert run(capsys, "--verify", tmp_path / "none")[0] == 1
    assert run(capsys, "--verify", tmp_path)[0] == 3  # There is no evidence.json.
    with pytest.raises(OptionError):
        evidence(made / "nodes", out=tmp_path / "a", design=made / "nodes")
    with pytest.raises(OptionError):
        evidence(made / "nodes", out=tmp_path / "a", rows=[[0.0] * 30])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "signed.pdf").write_text("mine")
    with pytest.raises(ForestcError):
        evidence(made / "nodes", out=tmp_path / "mine", rows=made / "test.csv", label="target")
    assert (tmp_path / "mine" / "signed.pdf").read_text() == "mine"
