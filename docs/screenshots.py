"""Takes the pictures in docs/images: a study's page and a design's page, light and dark.

    python docs/screenshots.py

It searches a study of breast cancer (some minutes), and needs the extras explore, synth and report, Playwright, and
Chromium on the PATH. The pages are the same each time, except for dates.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import forestc
from forestc.commands.report import report
from forestc.exploration.choice import choice
from forestc.forest.text import print_forest

IMAGES = Path(__file__).parent / "images"
SIZE = {"width": 1400, "height": 900}  # pixels
TRIALS = 40


def pages(folder: Path) -> dict[str, Path]:
    """Makes the page of a study, and the page of the design that the study recommends; returns their paths."""
    rows, other = train_test_split(load_breast_cancer(as_frame=True).frame, test_size=0.5, random_state=0)
    valid, test = train_test_split(other, test_size=0.5, random_state=0)
    for name, part in (("train", rows), ("valid", valid), ("test", test)):
        part.to_csv(folder / f"{name}.csv", index=False)
    model = RandomForestClassifier(12, max_depth=5, random_state=0).fit(rows.drop(columns="target"), rows["target"])
    (folder / "breast_cancer.forest").write_text(
        print_forest(replace(forestc.load(model), name="breast_cancer")), encoding="utf-8"
    )
    files = {"validation": folder / "valid.csv", "test": folder / "test.csv"}
    study = forestc.explore(
        folder / "breast_cancer.forest", rows=folder / "train.csv", label="target", out=folder / "study",
        device="ecp5-25k", trials=TRIALS, progress=lambda line: sys.stderr.write(f"{line}\n"), **files,
    )  # fmt: skip
    found = choice(study)
    assert found is not None
    design = study.design(found.taken)
    report(study.folder, folder / "study.html")
    report(design, folder / "design.html", rows=folder / "test.csv", label="target")
    return {"study": folder / "study.html", "design": folder / "design.html"}


def taken(browser: Browser, page: Path, picture: Path, scheme: str) -> None:
    view = browser.new_page(viewport=SIZE, color_scheme=scheme)  # type: ignore[arg-type]
    view.goto(page.absolute().as_uri())
    view.wait_for_selector("html[data-ready=yes]", state="attached")
    view.screenshot(path=picture)
    view.close()


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("chromium is not on the PATH: apt install chromium")
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        for what, page in pages(Path(name)).items():
            for scheme in ("light", "dark"):
                taken(browser, page, IMAGES / f"{what}-{scheme}.png", scheme)
        browser.close()


if __name__ == "__main__":
    main()
