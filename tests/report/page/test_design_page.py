"""Tests the page of a design, as a browser shows it and as its text says it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.commands.report import report
from forestc.costs.devices import FAMILIES
from forestc.costs.shares import PARTS, shares
from forestc.forest.evaluate import encode_numbers
from forestc.lowering.timing import DELAYS, stages_of
from forestc.report.page.design_page import Given, design_page
from forestc.report.page.features import feature_table
from forestc.report.page.measured import Histogram, histograms, measured, rounded_outwards
from forestc.report.page.svg import shortened_condition, spark, tree_svg
from forestc.rows.batches import ArrayRows
from hdl_templates import page_file


def test_the_page_is_complete_in_a_browser(visit, design, design_file):
    with visit(design_file) as page:
        titles = page.locator("h2").all_text_contents()
        assert titles[:4] == ["Overview", "The model", "What the passes did", "Accuracy"]
        assert {"Checks and proof", "Where the logic goes", "Features", "Trees", "Firmware", "Files"} <= set(titles)
        assert page.locator(".live svg").count() == page.locator("[data-chart]").count() == 5
        assert page.locator(".still:visible").count() == 0
        named = page.locator("[role=img]").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
        assert len(named) >= 6 and all(len(name) > 20 for name in named)
        assert page.locator("h1").text_content() == "cancer" and page.title().startswith("cancer")
        link = page.get_by_role("link", name="verilog/cancer.v", exact=True)
        with page.expect_navigation():
            link.click()
        assert page.url.endswith("/out/verilog/cancer.v")


def test_charts_are_there_without_scripts_and_on_paper(visit, design_file):
    with visit(design_file, java_script_enabled=False) as page:
        assert page.locator(".still svg:visible").count() == 5
    with visit(design_file) as page:
        page.emulate_media(media="print")
        assert page.locator(".still svg:visible").count() == 5 and page.locator(".live:visible").count() == 0
        assert page.locator("nav:visible, .tools:visible").count() == 0


def test_colors_follow_the_reader_and_are_distinguished(visit, design_file):
    backgrounds = []
    for scheme in ("light", "dark"):
        with visit(design_file, color_scheme=scheme) as page:
            backgrounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            bar = page.locator(".live svg [fill='var(--c1)']").first
            backgrounds.append(bar.evaluate("one => getComputedStyle(one).fill"))
    assert len(set(backgrounds)) == 4
    light, dark, paper = re.findall(r":root \{(.*?)\}", page_file("colors.css"), re.DOTALL)
    for text in (light, dark, paper):
        colors = dict(re.findall(r"--(\w+): (#\w{6})", text))
        for name in ("ink", "soft", "link", "good", "bad"):
            assert min(contrast(colors[name], colors[under]) for under in ("paper", "panel")) >= 4.5, name
        for name in ("c1", "c2", "c3", "c4", "c5", "accent", "gray"):
            assert contrast(colors[name], colors["paper"]) >= 3, name


def contrast(one, other):
    """Returns the contrast of two colors, by WCAG 2."""

    def luminance(color):
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dull = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dull + 0.05)


def test_the_keyboard_reaches_what_can_be_used(visit, design_file):
    with visit(design_file) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        head = page.get_by_role("button", name="nodes")
        head.focus()
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        column = page.locator("th[aria-sort=ascending]")
        assert column.text_content().strip() == "nodes"
        place = column.evaluate("head => head.cellIndex")
        shown = page.locator("section#features tbody tr").evaluate_all(
            f"all => all.map(r => +r.cells[{place}].dataset.n)"
        )
        assert shown == sorted(shown)


def test_the_page_says_what_was_measured(design, design_file):
    rows = design.folder.parent / "rows.csv"
    found = measured(design, rows, "target", "rows.csv")
    assert found.confusion.sum() == found.agreed.rows == 285 and found.other == 0
    assert np.trace(found.confusion) / 285 == pytest.approx(found.agreed.compiled)
    text = design_file.read_text()
    assert f"{100 * found.agreed.compiled:.2f} %" in text and "On rows.csv" in text
    assert text.count("window.vegaEmbed=") == 1  # The page holds Vega once.


def test_nothing_of_the_rows_but_histograms_is_in_the_page(design, design_file):
    text = design_file.read_text()
    data = (design.folder.parent / "rows.csv").read_text().splitlines()[1:]
    values = {value for line in data for value in line.split(",") if len(value.replace(".", "").strip("0")) >= 5}
    thresholds = design.folder.joinpath("model.forest").read_text()
    assert not [value for value in values if value in text and value not in thresholds]


def test_histograms_have_round_ends_and_count_all():
    X = np.array([[1.03, np.nan], [4.9, 7.0], [2.0, np.inf]])
    found = histograms(ArrayRows(X, size=2))
    assert (found[0].low, found[0].high) == (1.0, 5.0) and found[0].counts.sum() == 3
    assert found[1].counts.sum() == 1 and found[1].missing == 1
    assert rounded_outwards(3.0, 3.0) == (2.5, 3.5)
    wide = [[1.7e18, 1.7e18, 1.0, -1e308, -1e308], [1.7e18, 1.7e18 + 512, 1.0 + 2e-16, 1e308, 1e308]]
    for one in histograms(ArrayRows(np.array(wide))).values():
        assert one.low < one.high and one.counts.sum() == 2
        assert "nan" not in spark(one, [-1.7e308, 1.7e308])
    assert isinstance(found[0], Histogram)


def test_luts_and_stages_are_those_of_the_netlist(design):
    found = shares(design.netlist, FAMILIES["lut6"])
    assert set(found) == set(PARTS) and sum(one.cells for one in found.values()) == len(design.netlist.cells) - 2
    assert found["comparators"].luts > 0 and found["inputs"].luts == 0
    stages = stages_of(design.netlist, DELAYS["lut6"])
    assert len(stages) == design.netlist.latency == 3
    assert all(stage.delay == pytest.approx(sum(delay for _, delay in stage.path)) for stage in stages)
    assert sum(stage.registers for stage in stages) >= sum(one.flip_flops for one in found.values())
    assert stages[-1].registers >= 2  # The label and out_valid are registers.


def test_thresholds_lie_where_the_conditions_change(design):
    table = feature_table(design.forest, None)
    assert len(table.rows) == len(design.forest.features)
    conditions = sum(int(row[table.head.index("comparators")].number) for row in table.rows)
    assert conditions == len(design.forest.conditions.comparators)


def test_long_names_in_trees_leave_the_threshold():
    name = "the mean of all the measured values of a very long name"
    for rest in (" < 3031 (94.7188)", " < -1e-05", " in [3, 5)", " is one of a, b"):
        text = shortened_condition(name + rest)
        assert (
            text.endswith(rest)
            and len(text) <= 38
            and text.startswith("the mean of")
            and "\N{HORIZONTAL ELLIPSIS}" in text
        )
    assert shortened_condition("a < b < 3") == "a < b < 3"
    assert len(shortened_condition("x" * 90)) == len(shortened_condition(f"a in [{'1' * 90})")) == 38
    root = {"condition": f"{name} < 12.5", "cover": None, "below": 12}
    drawn = tree_svg({"condition": f"{name} < 99", "cover": None, "yes": root, "no": {"leaf": "1", "cover": None}})
    assert "&lt; 99</text>" in drawn and "&lt; 12.5 \N{HORIZONTAL ELLIPSIS} 12 nodes</text>" in drawn
    assert f"<title>{name} &lt; 99</title>" in drawn


def test_a_page_without_rows_or_steps_says_what_is_missing(design):
    page = design_page(design, Given())
    texts = [block.text for section in page.sections for block in section.blocks if block.kind == "text"]
    assert any("--rows" in text for text in texts) and "not checked yet" in str(page)


X, Y = load_iris(return_X_y=True)
KINDS = {
    "regression": (RandomForestRegressor(3, max_depth=3), X, Y * 1.5, {"latency": 1}),
    "two regressions": (RandomForestRegressor(2, max_depth=3), X, np.stack([Y, Y * 2.5], axis=1), {}),
    "two targets": (RandomForestClassifier(2, max_depth=3), X, np.stack([Y, Y > 0], axis=1), {}),
    "C alone": (RandomForestClassifier(2, max_depth=3), X, Y, {"targets": "c"}),
    "a constant": (DecisionTreeClassifier(), X[:50], Y[:50], {}),
    "categories": (HistGradientBoostingClassifier(max_iter=2, categorical_features=[3]), np.floor(X), Y, {}),
    "rules": (RandomForestClassifier(2, max_depth=3), X, Y == 1, {
        "passes": "simplify,round-leaves,extract-rules{seconds=0.5},simplify", "held_out": 0.2, "targets": "verilog"}),
    "fifty classes": (DecisionTreeClassifier(max_depth=6), X, np.arange(150) // 3, {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_a_page(kind, tmp_path):
    model, rows, labels, options = KINDS[kind]
    forestc.compile(model.set_params(random_state=0).fit(rows, labels), rows, tmp_path / "out", label=labels, **options)
    report(tmp_path / "out", tmp_path / "a.html", rows=rows, label=labels)
    text = (tmp_path / "a.html").read_text()
    assert ("Confusion matrix" in text) == (kind in ("C alone", "a constant", "categories", "rules"))
    assert ("R squared of the design" in text) == ("regression" in kind)
    assert ("The forest is a set of rules" in text) == (kind == "rules")
    assert ('id="hardware"' in text) == (kind != "C alone")


def test_a_row_that_is_typed_gets_the_design_s_answer(visit, design, design_file):
    X = load_breast_cancer().data[3:9]
    words, answers = encode_numbers(design.forest, X), forestc.evaluate(design.forest, X)
    with visit(design_file) as page:
        field, answer = page.get_by_role("textbox", name="A row"), page.locator("#answer")
        for index, row in enumerate(X):
            field.fill(("," if index % 2 else "\t").join(map(repr, row.tolist())))
            said = dict(line.split(" ", 1) for line in answer.text_content().splitlines())
            assert said["class"] == str(answers.decision[index])
            assert said["scores"] == ", ".join(map(str, answers.scores[index]))
            assert said["words"] == ", ".join(map(str, words[index]))
            assert len(said["probabilities"].split(", ")) == 2
        field.fill("1, 2")
        assert answer.text_content() == "2 of 30 values"
