"""Tests the page of a study: its look in a browser, and its figures of the trials."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pytest
from made_studies import GOALS, made_study
from playwright.sync_api import expect

from forestc.commands.report import report
from forestc.errors import ForestcError
from forestc.exploration.choice import choice, unpruned
from forestc.exploration.study import Goal, Score, Study, Trial, open_study, write_trial
from forestc.report.answer import answer, as_text
from forestc.report.page.notebook import study_html
from forestc.report.page.peers import Peer
from forestc.report.page.study_figures import equals, history, hypervolume, importance, option_names
from forestc.report.page.study_page import study_page
from forestc.report.page.study_text import score_text


def test_the_page_is_small_and_complete_in_a_browser(visit, study, study_file):
    assert len(study.trials) == 200 and study_file.stat().st_size < 3_000_000
    with visit(study_file) as page:
        assert page.locator(".live svg").count() == page.locator("[data-chart]").count() == 3
        assert page.locator(".brush svg").count() == 1
        assert page.locator("h1").text_content() == "xgboost" and page.title() == "xgboost: Study"
        titles = ["Which design", "The front", "What the options did", "Progress", "What failed", "All trials"]
        titles += ["How it was searched"]
        assert page.locator("h2").all_text_contents() == titles
        assert page.locator("section#trials tbody tr").count() == 200
        front = page.locator("section#front table").first.locator("tbody tr")
        assert front.count() == len(study.front) + 1  # The unpruned model is listed, too.
        assert "TreeLUT" in page.locator("section#front").inner_text()


def test_the_table_filters_and_sorts(visit, study, study_file):
    with visit(study_file) as page:
        rows = page.locator("section#trials tbody tr")
        field = page.locator("section#trials input[type=search]")
        field.fill("booster failed")
        failed = [t for t in study.trials if "no trees" in t.reason]
        assert page.locator("section#trials tbody tr:visible").count() == len(failed) > 0
        assert page.locator("section#trials output").text_content() == f"{len(failed)} of 200 rows"
        field.fill("")
        assert page.locator("section#trials tbody tr:visible").count() == 200
        button = page.locator("section#trials").get_by_role("button", name="LUTs")
        button.click()
        button.click()
        head = page.locator("section#trials th[aria-sort=descending]")
        place = head.evaluate("head => head.cellIndex")
        cells = rows.evaluate_all(f"all => all.map(row => row.cells[{place}].dataset.n ?? null)")
        known = [float(cell) for cell in cells if cell is not None]
        assert known == sorted(known, reverse=True) and cells[-1] is None  # Failed trials come last.
        assert len(known) == len(study.complete)


def test_points_and_numbers_of_the_front_lead_to_their_designs(visit, study, study_file):
    first = study.front[-1]
    with visit(study_file) as page:
        page.locator("section#front").get_by_role("link", name=f"{first.number}", exact=True).click()
        assert page.locator("h1").text_content() == f"trees_{first.options['trees']}"
        assert page.url.endswith(f"the%20study_designs/{first.number:04d}.html")
        page.locator("p.back a").click()
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        points = page.evaluate("JSON.parse(document.getElementById('specs').textContent)[0].datasets.rows")
        below = next("outside" in point for point in points if point["trial"] == first.number)
        drawn = [p["trial"] for p in points if ("outside" in p) == below and (below or p["front"])]  # in this order
        group = page.locator("section#answer .live .mark-symbol").nth(1 if below else 2)
        point = group.locator("path").nth(drawn.index(first.number))
        with page.expect_navigation():
            point.click(force=True)
        assert "the%20study_designs/" in page.url


def test_lines_of_the_front_alone_can_be_shown(visit, study, study_file):
    with visit(study_file) as page:
        lines = page.locator(".brush .trial")
        assert lines.count() == len(study.complete)
        page.get_by_role("checkbox", name="the front alone").check()
        expect(page.locator(".brush .trial:not(.out)")).to_have_count(len(study.front))
        expect(page.locator("section#trials tbody tr:visible")).to_have_count(len(study.front))
        page.get_by_role("button", name="Clear").click()
        expect(page.locator("section#trials tbody tr:visible")).to_have_count(200)


def test_the_answer_and_its_chart_stand_above_the_fold(visit, study, study_file):
    found = answer(study)
    with visit(study_file, viewport={"width": 1400, "height": 900}) as page:
        said = page.locator("p.answer")
        assert said.text_content().strip() == " ".join(map(as_text, found.first))
        assert page.locator("p.beside").text_content().strip() == " ".join(map(as_text, found.beside))
        chart = page.locator("section#answer .live svg").first.bounding_box()
        assert said.bounding_box()["y"] < chart["y"] and chart["y"] + chart["height"] <= 900
        assert chart["width"] > 0.85 * 1400
        assert page.locator("dl.figures").count() == 0
        asked = page.locator("section#asked pre").bounding_box()
        assert asked["y"] > 900


def test_the_unpruned_model_is_a_point_and_a_row(visit, study, study_file):
    first = unpruned(study.trials)
    assert first not in study.front and first.test is not None
    with visit(study_file) as page:
        row = page.locator("section#front tbody tr").filter(has_text="the model as it is (-O1)")
        assert row.locator("th").text_content().strip() == f"{first.number}"
        assert f"{100 * first.test.value:.2f}" in row.text_content()
        labels = page.locator("section#answer .live").first.locator("text").all_text_contents()
        assert any(label.startswith("as it is, ") for label in labels)
        taken = choice(study).taken
        assert f"trial {taken.number}, {taken.figure('lut'):,.0f} LUTs" in labels


def test_one_bad_trial_does_not_flatten_the_front_and_accuracy_ends_at_all(visit, tmp_path):
    study = made_study(tmp_path / "study", trials=40)
    bad = replace(study.complete[5], validation=Score(0.05, 0.01, 900), number=40)
    good = replace(study.complete[5], validation=Score(0.997, 0.01, 900), number=41)
    wires = replace(good, validation=Score(0.1, 0.01, 900), figures={"estimate": {"lut": 0.0, "fmax_mhz": 99.0}})
    for trial in (bad, good, replace(wires, corrected={}, number=42)):
        write_trial(study.folder, trial)
    report(study.folder, tmp_path / "a.html")
    with visit(tmp_path / "a.html") as page:
        chart = page.locator("section#answer .live").first
        labels = chart.locator(".role-axis-label text").all_text_contents()
        shares = [float(label[:-1]) for label in labels if label.endswith("%")]
        assert max(shares) == 100 and min(shares) > 30
        below = re.search(r"trials that lie below it, (\d+)", page.locator("section#answer figure").inner_text())
        assert int(below[1]) >= 2
        boxes = [one.bounding_box() for one in chart.locator(".mark-symbol").nth(2).locator("path").all()]
        heights = [box["y"] for box in boxes]
        assert max(heights) - min(heights) > 360 / 3


def test_a_tooltip_is_small_and_says_what_the_table_says(visit, study, study_file):
    with visit(study_file) as page:
        point = page.locator("section#answer .live .mark-symbol").nth(2).locator("path").first
        point.hover(force=True)
        tooltip = page.locator("#vg-tooltip-element.visible")
        expect(tooltip).to_be_visible()
        box = tooltip.bounding_box()
        assert box["height"] < 160 and box["width"] < 320
        text = tooltip.inner_text()
        number = int(re.search(r"trial\s+(\d+)", text)[1])
        trial = next(trial for trial in study.front if trial.number == number)
        assert score_text(trial.validation) in text and score_text(trial.test) in text
        assert score_text(trial.validation) in page.locator("section#front tbody").first.inner_text()


def test_rows_are_filtered_by_number(visit, study, study_file):
    def small(trial):
        return trial.state == "complete" and trial.figure("lut") < 500

    def good(trial):
        return small(trial) and trial.validation.value >= 0.9

    with visit(study_file) as page:
        rows = page.locator("section#trials tbody tr:visible")
        field = page.locator("section#trials input[type=search]")
        for text, test in (
            ("lut < 500", small),
            ("lut<500 accuracy >= 90%", good),
            ("lut<500 accuracy >= 0.9", good),
            ("trees = 40", lambda t: t.options["trees"] == 40),
            ("nothing < 3", lambda t: False),
        ):
            field.fill(text)
            expect(rows).to_have_count(sum(map(test, study.trials)))


def test_a_part_of_an_axis_chooses_trials(visit, study, study_file):
    with visit(study_file, viewport={"width": 1400, "height": 1000}) as page:
        axis = page.locator(".brush .axis").filter(has_text="LUTs").locator(".handle")
        axis.scroll_into_view_if_needed()
        box = axis.bounding_box()
        x, y, high = box["x"] + box["width"] / 2, box["y"], box["height"]
        page.mouse.move(x, y + 0.7 * high)
        page.mouse.down()
        page.mouse.move(x, y + high, steps=4)
        page.mouse.up()
        chosen = page.locator(".brush .trial:not(.out)")
        numbers = sorted(int(n) for n in chosen.evaluate_all("all => all.map(one => one.dataset.trial)"))
        luts = [t.figure("lut") for t in study.complete if t.number in numbers]
        others = [t.figure("lut") for t in study.complete if t.number not in numbers]
        assert numbers and others and max(luts) < min(others)
        shown = page.locator("section#trials tbody tr:visible th").all_text_contents()
        assert sorted(map(int, shown)) == numbers
        said = page.locator("section#options output").first.text_content()
        assert said == f"{len(numbers)} of {len(study.complete)} trials chosen"


def test_commands_are_whole_and_copied(visit, study, study_file):
    trial = choice(study).taken
    with visit(study_file, permissions=["clipboard-read", "clipboard-write"]) as page:
        place = page.locator("section#front .command.block")
        assert place.locator("code").text_content() == trial.command
        place.get_by_role("button", name="Copy the command").click()
        assert page.evaluate("navigator.clipboard.readText()") == trial.command
        cells = page.locator("section#front td .command code").all_text_contents()
        assert {t.command for t in study.front} <= set(cells)


def test_designs_have_links_to_their_folders(visit, study, study_file):
    with visit(study_file) as page:
        links = page.locator("section#front tbody a").filter(has_text="folder")
        found = [study_file.parent / unquote(link.get_attribute("href")) for link in links.all()]
        assert len(found) == 2 and all((folder / "manifest.json").is_file() for folder in found)


def test_a_stopped_study_says_how_many_trials_are_unfinished(tmp_path):
    study = made_study(tmp_path / "study", trials=10)
    for number in (10, 11):
        write_trial(study.folder, Trial(number, "running", {"trees": 3}))
    opened = open_study(study.folder)
    said = str(study_page(replace(opened, asked={**opened.asked, "stopped": True}), ()))
    assert "stopped before its end: 2 trials unfinished" in said and "'running'" not in said
    assert "has not ended: 2 trials unfinished" in str(study_page(opened, ()))
    lacks = {"untried": 5, "begun": 2, "designs": 0}
    said = str(study_page(replace(opened, asked={**opened.asked, "unfinished": lacks}), ()))
    assert "stopped before its end: 5 trials not tried, 2 trials unfinished. --resume goes on." in said


def test_columns_are_those_of_the_device_and_the_processor(study):
    asked = {**study.asked, "cpu": "avr"}
    figures = {"estimate": {"lut": 3.0, "ff": 1.0, "fmax_mhz": 70.0, "latency_cycles": 2.0, "ram": 9.0, "flash": 50.0}}
    trials = (replace(study.complete[0], figures=figures, corrected={}),)
    front = study_page(Study(study.folder, study.goals, study.limits, asked, trials), ()).sections[1].blocks[-1]
    expected = ("LUTs", "Fmax, MHz", "flip-flops", "latency, cycles", "flash, bytes", "RAM, bytes")
    assert front.head[1:7] == expected and front.rows[0][3].text == "1"


def test_options_that_say_little_are_folded_and_words_are_explained(study):
    options = study_page(study, ()).sections[2].blocks
    tables = [block for block in options if block.kind == "table"]
    assert [table.folded for table in tables] == [False, True]
    assert all("-0.000" not in cell.text for table in tables for row in table.rows for cell in row)
    assert all(any(cell.number >= 0.01 for cell in row[1:]) for row in tables[0].rows)
    assert "The option shrink says" in options[0].text and "its rung (estimate" in str(study_page(study, ()))
    assert "Hypervolume: the share of the box" in str(study_page(study, ()))


def test_hypervolume_equals_what_random_points_find():
    rng = np.random.default_rng(0)
    for width in (1, 2, 3):
        points = [tuple(point) for point in rng.random((6, width))]
        drawn = rng.random((200_000, width))
        inside = np.any([np.all(drawn >= point, axis=1) for point in points], axis=0).mean()
        assert hypervolume(points) == pytest.approx(inside, abs=0.006)
    assert hypervolume([]) == 0 and hypervolume([(0.0, 0.0)]) == 1


def test_progress_never_falls_and_importance_finds_what_matters(study):
    found = history(study)
    volumes = [volume for _, volume in found]
    assert [number for number, _ in found] == list(range(200)) and volumes == sorted(volumes) and 0 < volumes[-1] <= 1
    output, explained = importance(study)
    best = {goal: max((value, option) for g, option, value, _ in output if g == goal)[1] for goal in explained}
    assert best["lut"] in ("trees", "depth") and best["accuracy"] in ("trees", "depth") and explained["lut"] > 0.6
    assert "seconds" not in option_names(study) and "trees" in option_names(study)


def test_points_within_a_standard_error_are_said_to_be_equal(tmp_path):
    def trial(number, lut, accuracy):
        return Trial(number, "complete", figures={"estimate": {"lut": lut}}, validation=Score(accuracy, 0.01, 100))

    trials = (trial(0, 10, 0.8), trial(1, 20, 0.805), trial(2, 30, 0.9))
    study = Study(tmp_path, GOALS[:2], (), {}, trials)
    assert equals(study) == {0: [1], 1: [0], 2: []}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_small_studies_have_pages_too(tmp_path, count):
    study = made_study(tmp_path / "small", trials=count)
    page = study_page(study, ())
    assert page.lead.startswith(f"{len(study.complete)} designs for ecp5-25k, searched for lowest LUTs, highest acc")
    assert (page.sections[0].blocks[0].text == "The front is empty: no trial is complete.") == (count == 0)
    assert "<table>" in study_html(study)


def test_one_goal_three_goals_and_goals_without_figures(tmp_path):
    study = made_study(tmp_path / "three", trials=30, goals=3)
    titles = [
        block.title for section in study_page(study, ()).sections for block in section.blocks if block.kind == "chart"
    ]
    assert titles[:2] == ["Accuracy against LUTs", "Accuracy against Fmax, MHz"]
    for goals in ((Goal("accuracy", True),), (Goal("flash", False, "bytes"), Goal("accuracy", True))):
        other = Study(study.folder, goals, (), study.asked, study.trials)
        assert study_page(other, (Peer("x", {"flash": 1.0}),)).title == "xgboost"


def test_warnings_of_the_search_are_on_the_page(study, tmp_path):
    """The page must not hide that test rows known to the model make its accuracy look better than it is."""
    asked = {**study.asked, "notes": ["7 of 9 test rows are <b>also</b> among the rows given"], "stopped": True}
    page = study_page(Study(study.folder, study.goals, study.limits, asked, study.trials), ())
    said = str(page)
    assert "Note: 7 of 9 test rows are <b>also</b>" in said and "was stopped before its end" in said
    odd = Study(study.folder, study.goals, study.limits, {**study.asked, "notes": 5, "stopped": []}, study.trials)
    assert "Note:" not in str(study_page(odd, ()))


def test_a_study_shows_its_charts_in_a_notebook(study):
    html = study._repr_html_()
    assert html.count("<svg") == 2 and "<script" not in html and "<b>study" not in html
    assert "prefers-color-scheme" in html and len(html) < 200_000
    assert "Smallest within a standard error of the best" in html


@pytest.mark.parametrize(
    "change",
    [
        {"options": 5}, {"options": {"a": [1]}}, {"figures": {"estimate": {"lut": "many"}}}, {"figures": {"guess": {}}},
        {"figures": {"estimate": {"lut": float("nan")}}}, {"number": -1}, {"state": "odd"}, {"reason": 3},
        {"validation": {"value": float("inf"), "standard_error": 0, "rows": 1}}, {"validation": {"value": 1}}, None,
        {"number": 1}, {"options": {"a": 10**400}}, {"figures": {"estimate": {"lut": 10**400}}},
    ],
)  # fmt: skip
def test_damaged_trials_are_refused_by_name(tmp_path, change):
    study = made_study(tmp_path / "study", trials=1)
    path = study.folder / "trials/0000/trial.json"
    text = json.dumps(json.loads(path.read_text()) | (change or {}))
    path.write_text(text if change is not None else text[:-5])
    with pytest.raises(ForestcError, match=r".*0000: trial.json is damaged \(.*\); remove the trial's folder"):
        report(study.folder, tmp_path / "a.html")


@pytest.mark.parametrize(
    "change",
    [
        {"goals": []}, {"goals": [{"figure": 3, "maximize": True}]},
        {"goals": [{"figure": "lut\x01", "maximize": False}]},
        {"goals": [{"figure": "lut", "maximize": False, "unit": 5}]}, {"goals": [{"figure": "lut", "maximize": "no"}]},
        {"limits": [{"figure": "lut", "at_least": False, "value": "x"}]},
        {"limits": [{"figure": "lut", "at_least": False, "value": float("inf")}]},
    ],
)  # fmt: skip
def test_damaged_goals_and_limits_are_refused(tmp_path, change):
    study = made_study(tmp_path / "study", trials=1)
    path = study.folder / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ForestcError, match=r"study.json is damaged"):
        report(study.folder, tmp_path / "a.html")
    path.write_text("[" * 100_000)
    with pytest.raises(ForestcError, match=r"study.json is damaged \(it is nested too deeply\)"):
        report(study.folder, tmp_path / "a.html")


def test_a_failed_trial_without_a_reason_breaks_no_limit(tmp_path):
    study = made_study(tmp_path / "study", trials=4)
    write_trial(study.folder, Trial(4, "failed"))
    report(study.folder, tmp_path / "a.html")
    assert "no reason was recorded" in (tmp_path / "a.html").read_text()


def test_a_study_prints_its_front_and_which_design_to_take(study, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    text = str(study)
    found = answer(study)
    assert " ".join(text.split()).count(as_text(found.first[0])) == 1 and "front of" in text
    assert all(f" {trial.number} " in text for trial in study.front) and max(map(len, text.splitlines())) <= 120
    assert print(study) is None


def test_trials_are_data_frames_where_pandas_is_there(study, monkeypatch):
    frame = study.front.to_pandas()
    assert frame["trial"].tolist() == [trial.number for trial in study.front]
    assert frame["lut"].tolist() == [trial.figure("lut") for trial in study.front]
    assert len(study.trials.to_pandas()) == 200 and "option:trees" in frame and "test_accuracy_se" in frame
    assert "<table" in study.trials._repr_html_() and isinstance(study.trials, tuple)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert study.front._repr_html_() is None
    with pytest.raises(ForestcError, match="pandas"):
        study.front.to_pandas()


def test_scores_of_a_regression_are_r_squared_and_no_percent(study):
    def regression(score):
        return None if score is None else replace(score, measure="R squared")

    trials = [replace(t, validation=regression(t.validation), test=regression(t.test)) for t in study.trials]
    fitted = replace(study, trials=tuple(trials), asked={**study.asked, "tolerance": 0.05})
    page = study_page(fitted, ())
    said = " ".join(as_text(words) for words in answer(fitted).first)
    assert fitted.measure == "R squared" and "0.05 of R squared" in said and "%" not in said and "point" not in said
    assert "R squared, validation" in str(page) and "accuracy, validation" not in str(page)
