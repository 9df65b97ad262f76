"""Tests the SAIF file of switching activity against the clocked simulation of a design, cycle by cycle."""

import json
import re

import numpy as np
import pytest
from input_models import MIXED, mixed_rows

import forestc
from forestc.backends.names import net_name
from forestc.backends.ports import input_fields
from forestc.backends.running import netlist_words
from forestc.checks.activity import activity_on
from forestc.cli import main
from forestc.netlist.ir import Const, Register, reads
from forestc.passes.extract_rules.rules_text import literal_text
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode
from hw_sim import Clocked, activity

ENTRY = re.compile(r"\((\S+) \(T0 (\d+)\) \(T1 (\d+)\) \(TX 0\) \(TC (\d+)\) \(IG 0\)\)")


def clocked_bits(netlist, words):
    """Returns the bits of each net, (rows, width), in a clocked simulation of successive rows."""
    nets = [net for net, cell in enumerate(netlist.cells) if not isinstance(cell, Const)]
    stage = [0] * len(netlist.cells)
    for net, cell in enumerate(netlist.cells):
        stage[net] = max([stage[read] for read in reads(cell)], default=0) + isinstance(cell, Register)
    run, seen = Clocked(netlist, nets), []
    names = [cell.port.name for _, cell in netlist.inputs]
    for word in [*words.tolist(), *[words[-1].tolist()] * netlist.latency]:
        run.clock(dict(zip(names, word, strict=True)))
        values = run.values(nets)
        seen.append([values[net] for net in nets])
    table = np.array(seen, dtype=np.int64)
    found = {}
    for place, net in enumerate(nets):
        # Words of signed types are negative at times; a shift gives the bits of either kind.
        column = table[stage[net] : stage[net] + len(words), place]
        found[net] = column[:, None] >> np.arange(netlist.types[net].width) & 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("latency", [0, 2])
def test_saif_holds_the_counts_of_the_clocked_simulation(tmp_path, capfd, latency):
    np.save(tmp_path / "rows.npy", mixed_rows(60, 2))
    design = forestc.compile(MIXED, mixed_rows(300, 1), tmp_path / "out", latency=latency, targets="verilog").design
    file = tmp_path / "out.saif"
    with pytest.raises(SystemExit) as ended:
        rows = str(tmp_path / "rows.npy")
        main(["simulate", str(tmp_path / "out"), "--rows", rows, "--saif", str(file), "--json"])
    assert ended.value.code == 0
    output, text, netlist = json.loads(capfd.readouterr().out), file.read_text(), design.netlist
    assert text.count("(") == text.count(")") and "(DURATION 600)" in text
    entries = {match[1]: tuple(map(int, match.groups()[1:])) for match in ENTRY.finditer(text)}
    words = netlist_words(netlist, encode(design.forest, np.load(tmp_path / "rows.npy")))
    bits, changes = clocked_bits(netlist, words), 0
    for net, own in bits.items():
        for bit in range(own.shape[1]):
            name = net_name(net, netlist.cells[net]) + (f"\\[{bit}\\]" if own.shape[1] > 1 else "")
            ones, toggles = int(own[:, bit].sum()), int((own[1:, bit] != own[:-1, bit]).sum())
            assert entries[name] == (10 * (60 - ones), 10 * ones, toggles), name
            changes += toggles
    assert output["toggles_per_row"] == pytest.approx(changes / 59)
    field = input_fields(netlist)[0]
    net = next(net for net, cell in netlist.inputs if cell.port == field.port)
    assert entries[f"x\\[{field.offset}\\]"][1] == 10 * bits[net][:, 0].sum()
    verilog = (tmp_path / "out" / design.manifest["files"]["verilog"]).read_text()
    for name in entries:
        assert re.search(rf"\b{re.escape(name.split(chr(92))[0])}\b", verilog), name


def test_counts_do_not_depend_on_batches(tmp_path, monkeypatch):
    design = forestc.compile(MIXED, mixed_rows(300, 1), tmp_path / "out", targets="verilog").design
    words = netlist_words(design.netlist, encode(design.forest, mixed_rows(100, 5)))
    whole = activity(design.netlist, words)
    monkeypatch.setattr("hw_sim.counts.BATCH", 7)
    parts = activity(design.netlist, words)
    for name in ("ones", "toggles"):
        assert all(map(np.array_equal, getattr(whole, name), getattr(parts, name)))


def direct(forest, rows):
    """Returns counts made row by row and node by node: sides of comparators by their text, leaves and visits of each
    tree."""
    words = encode(forest, rows)
    sides = {}
    for condition in forest.conditions:
        absent = np.isnan(rows[:, forest.features[condition.feature].column])
        sides[condition] = condition.sends_left(words[:, condition.feature], absent)
    ends, visits = [], []
    for tree, places in zip(forest.trees, forest.conditions.node_conditions, strict=True):
        end, steps = np.zeros(len(rows), dtype=int), 0
        for row in range(len(rows)):
            while tree.left[end[row]] >= 0:
                here, steps = end[row], steps + 1
                left = sides[forest.conditions[places[here]]][row]
                end[row] = tree.left[here] if left else tree.right[here]
        ends.append(np.bincount(end, minlength=tree.size))
        visits.append(steps / len(rows))
    return {literal_text(forest, condition): left for condition, left in sides.items()}, ends, visits


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("activity") / "out"
    return forestc.compile(MIXED, mixed_rows(300, 1), folder, level=0, targets="c").design


def test_rows_against_direct_counting(compiled):
    rows = mixed_rows(400, 3)
    sides, ends, visits = direct(compiled.forest, rows)
    whole = forestc.activity(compiled, rows=rows)
    assert whole["rows"] == 400
    assert {each["comparator"] for each in whole["comparators"]} == set(sides)
    for each in whole["comparators"]:
        left = sides[each["comparator"]]
        assert each["probability"] == pytest.approx(left.mean())
        assert each["toggle_rate"] == pytest.approx((left[1:] != left[:-1]).sum() / 399)
    for tree, end, steps in zip(whole["trees"], ends, visits, strict=True):
        shares = end[compiled.forest.trees[tree["tree"]].left < 0] / 400
        assert tree["leaves"] == len(shares) and tree["never"] == (shares == 0).sum()
        assert tree["rarest"] == pytest.approx(shares[shares > 0].min())
        assert tree["comparisons"] == pytest.approx(steps)
    assert whole["comparisons_per_row"] == pytest.approx(sum(visits))
    decided = forestc.evaluate(compiled.forest, rows).decision
    for each in whole["labels"]:
        p = (decided == each["label"]).mean()
        assert each["probability"] == pytest.approx(p)
        assert each["standard_error"] == pytest.approx(np.sqrt(p * (1 - p) / 400))
    batches = activity_on(compiled.forest, ArrayRows(rows, size=7))
    assert batches.toggles.sum() == pytest.approx(whole["toggles_per_row"])
    one = forestc.activity(compiled, rows=rows[:1])
    assert one["toggles_per_row"] == 0 and {each["probability"] for each in one["comparators"]} <= {0, 1}
