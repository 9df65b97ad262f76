"""Opens pages in a real browser, and makes the pages that tests open in it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest
from made_studies import made_study
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.commands.report import report


@pytest.fixture
def visit(chromium, need_tool):
    """Opens a page's file and yields it once its charts are drawn; fails on errors, warnings and requests."""
    need_tool("chromium")

    @contextmanager
    def opened(path, **options):
        page = chromium.new_page(**options)
        wrong = []
        page.on("console", lambda said: wrong.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: request.url.startswith("file:") or wrong.append(request.url))
        try:
            page.goto(Path(path).absolute().as_uri())
            if options.get("java_script_enabled", True):
                page.wait_for_selector("html[data-ready=yes]", state="attached")
            yield page
        finally:
            page.close()
        assert not wrong

    return opened


@pytest.fixture(scope="session")
def design(tmp_path_factory):
    folder = tmp_path_factory.mktemp("design")
    frame = load_breast_cancer(as_frame=True).frame
    frame[::2].to_csv(folder / "rows.csv", index=False)
    model = RandomForestClassifier(6, max_depth=4, random_state=0).fit(frame.drop(columns="target"), frame["target"])
    return forestc.compile(
        model, frame, folder / "out", label="target", latency=3, targets="verilog,c", cpu="cortex-m0plus", name="cancer"
    ).design


@pytest.fixture(scope="session")
def design_file(design):
    """The page of the design, with rows."""
    out = design.folder.parent / "report.html"
    report(design.folder, out, rows=design.folder.parent / "rows.csv", label="target")
    return out


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    return made_study(tmp_path_factory.mktemp("study") / "<b>study & co", compiled=2)


@pytest.fixture(scope="session")
def study_file(study):
    """The page of the study, with peers."""
    out = study.folder.parent / "the study.html"
    peers = study.folder.parent / "peers.csv"
    peers.write_text("name,lut,accuracy\nTreeLUT,900,0.95\n</script><img src=x onerror=alert(1)>,402,0.93\n")
    report(study.folder, out, peers=peers)
    return out
