"""The page of a study: what a browser shows, and what it computes of the trials."""

from __future__ import annotations

import json

import numpy as np
import pytest
from made_studies import GOALS, made_study
from playwright.sync_api import expect

from forestc.commands.report import report
from forestc.errors import ForestcError
from forestc.exploration.study import Goal, Score, Study, Trial, write_trial
from forestc.report.page.notebook import study_html
from forestc.report.page.peers import Peer
from forestc.report.page.study_figures import equals, history, hypervolume, importance, option_names
from forestc.report.page.study_page import study_page


def test_the_page_is_small_and_complete_in_a_browser(visit, study, study_file):
    assert len(study.trials) == 200 and study_file.stat().st_size < 3_000_000
    with visit(study_file) as page:
        assert page.locator(".live svg").count() == page.locator("[data-chart]").count() == 4
        assert page.locator("h1").text_content() == "<b>study & co"
        titles = ["Overview", "The front", "What the options did", "Progress", "What failed", "All trials"]
        assert page.locator("h2").all_text_contents() == titles
        assert page.locator("section#trials tbody tr").count() == 200
        front = page.locator("section#front table").first.locator("tbody tr")
        assert front.count() == len(study.front)
        assert "TreeLUT" in page.locator("section#front").inner_text()


def test_the_table_filters_and_sorts(visit, study, study_file):
    with visit(study_file) as page:
        rows = page.locator("section#trials tbody tr")
        field = page.locator("section#trials input[type=search]")
        field.fill("no trees failed")
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
        assert known == sorted(known, reverse=True) and cells[-1] is None  # the failed ones come last
        assert len(known) == len(study.complete)


def test_points_and_numbers_of_the_front_lead_to_their_designs(visit, study, study_file):
    first = study.front[0]
    with visit(study_file) as page:
        page.locator("section#front").get_by_role("link", name=f"{first.number}", exact=True).click()
        assert page.locator("h1").text_content() == f"trees_{first.options['trees']}"
        assert page.url.endswith(f"the%20study_designs/{first.number:04d}.html")
        page.locator("p.back a").click()
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        place = sorted(trial.number for trial in study.front).index(first.number)  # points are drawn in this order
        point = page.locator("section#front .live .mark-symbol").nth(1).locator("path").nth(place)
        with page.expect_navigation():
            point.click(force=True)
        assert "the%20study_designs/" in page.url


def test_lines_of_the_front_alone_can_be_shown(visit, study, study_file):
    with visit(study_file) as page:
        lines = page.locator("section#options .live").first.locator(".mark-line path")
        assert lines.count() == len(study.complete)
        page.get_by_role("radio", name="the front").check()
        expect(lines).to_have_count(len(study.front))


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
    told, explained = importance(study)
    best = {goal: max((value, option) for g, option, value, _ in told if g == goal)[1] for goal in explained}
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
    page = study_page(study, (), {})
    assert page.sections[0].blocks[0].items[0][1] == f"{len(study.complete)}"
    assert "<table>" in study_html(study)


def test_one_goal_three_goals_and_goals_without_figures(tmp_path):
    study = made_study(tmp_path / "three", trials=30, goals=3)
    titles = [
        block.title
        for section in study_page(study, (), {}).sections
        for block in section.blocks
        if block.kind == "chart"
    ]
    assert titles[:2] == ["Accuracy against LUTs", "Accuracy against Fmax, MHz"]
    for goals in ((Goal("accuracy", True),), (Goal("flash", False, "bytes"), Goal("accuracy", True))):
        other = Study(study.folder, goals, (), study.asked, study.trials)
        assert study_page(other, (Peer("x", {"flash": 1.0}),), {}).title == "three"


def test_warnings_of_the_search_are_on_the_page(study, tmp_path):
    """Test rows that a model has seen make its accuracy look better than it is: the page must not hide it."""
    asked = {**study.asked, "notes": ["7 of 9 test rows are <b>also</b> among the rows given"], "stopped": True}
    page = study_page(Study(study.folder, study.goals, study.limits, asked, study.trials), (), {})
    said = str(page)
    assert "Note: 7 of 9 test rows are <b>also</b>" in said and "was stopped before its end" in said
    odd = Study(study.folder, study.goals, study.limits, {**study.asked, "notes": 5, "stopped": []}, study.trials)
    assert "Note:" not in str(study_page(odd, (), {}))


def test_a_study_shows_its_charts_in_a_notebook(study):
    html = study._repr_html_()
    assert html.count("<svg") == 2 and "<script" not in html and "<b>study" not in html
    assert "prefers-color-scheme" in html and len(html) < 200_000


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
    with pytest.raises(ForestcError, match=r"trial.json is damaged; .*0000; remove the trial's folder"):
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
    with pytest.raises(ForestcError, match=r"has no readable study.json"):
        report(study.folder, tmp_path / "a.html")


def test_a_failed_trial_without_a_reason_breaks_no_limit(tmp_path):
    study = made_study(tmp_path / "study", trials=4)
    write_trial(study.folder, Trial(4, "failed"))
    report(study.folder, tmp_path / "a.html")
    assert "no reason was recorded" in (tmp_path / "a.html").read_text()
