"""A whole firmware image around a compiled forest, run in qemu: its answers beside those of the Python model.

    python examples/firmware_qemu/demo.py [FOLDER]

Trains a small random forest on breast cancer, compiles it to C, builds an image for a Cortex-M3 (the board mps2-an385)
with its own start-up code and linker script, and runs it on rows that the model was not trained on. Needs
arm-none-eabi-gcc and qemu-system-arm.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import forestc
from forestc.backends.c.types import score_type
from forestc.forest.evaluate import evaluate_words

HERE = Path(__file__).parent
ROWS = 20
PACKAGES = {
    "arm-none-eabi-gcc": "gcc-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
}  # lists the Debian package of each tool
FLAGS = [
    "-mcpu=cortex-m3", "-mthumb", "-Os", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow",
    "-Werror", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections",
    "-ffreestanding", "-nostdlib", "-fno-tree-loop-distribute-patterns",  # there is no memcpy
]  # fmt: skip


def need_tools() -> None:
    """Ends the program in words if a tool is missing."""
    if missing := [name for name in PACKAGES if shutil.which(name) is None]:
        sys.exit(
            f"this example needs {' and '.join(missing)}, which are not on the PATH; "
            f"on Debian: apt install {' '.join(PACKAGES[name] for name in missing)}"
        )


def rows_header(design: forestc.Design, X: Any) -> str:
    """Returns rows.h: the rows as floats, and the type of scores."""
    lines = ",\n".join("    {" + ", ".join(f"{float(value).hex()}f" for value in row) + "}" for row in X.tolist())
    return (
        f"typedef {score_type(design.forest)} score;\n"
        f"#define ROWS {len(X)}\nstatic const float rows[ROWS][CANCER_COLUMNS] = {{\n{lines}\n}};\n"
    )


def build(design: forestc.Design, X: Any, folder: Path) -> Path:
    """Builds the linked image."""
    (folder / "rows.h").write_text(rows_header(design, X))
    image = folder / "firmware.elf"
    sources = [str(HERE / name) for name in ("start.c", "main.c")]
    include = [f"-I{folder}", f"-I{design.path('c').parent}"]
    link = ["-T", str(HERE / "link.ld"), "-lgcc", "-o", str(image)]
    subprocess.run(["arm-none-eabi-gcc", *FLAGS, *include, *sources, *link], check=True)
    return image


def run(image: Path) -> str:
    """Runs the image in qemu; returns the output of the firmware."""
    command = "qemu-system-arm -M mps2-an385 -display none -monitor none -serial none -semihosting-config"
    done = subprocess.run(
        [*command.split(), "enable=on,target=native", "-kernel", str(image)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"the firmware stopped with status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/firmware")
    need_tools()
    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32)
    train, test, train_labels, test_labels = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    model = RandomForestClassifier(20, max_depth=5, random_state=0).fit(train, train_labels)
    design = forestc.compile(
        model, train, folder / "design", label=train_labels, targets="c", name="cancer", c_project="selftest"
    ).design
    rows, truth = test[:ROWS], test_labels[:ROWS]
    out = run(build(design, rows, folder))
    found = [tuple(map(int, row)) for row in re.findall(r"^row (\d+) class (\d+) score (-?\d+)$", out, re.MULTILINE)]
    if "selftest -1\n" not in out or [row for row, _, _ in found] != list(range(ROWS)):
        sys.exit(f"the firmware printed something else: {out}")
    said, exact = model.predict(rows), evaluate_words(design.forest, design.quantize(rows))
    classes = [int(design.classes_[index]) for _, index, _ in found]
    table = Table(title="breast cancer, 0: malignant, 1: benign", title_justify="left")
    for title in ("row", "label", "model in Python", "firmware in qemu", "score of benign"):
        table.add_column(title, justify="right")
    for (row, _, score), label, own, answer in zip(found, truth, said, classes, strict=True):
        table.add_row(*map(str, (row, label, own, answer, score)))
    console = Console()
    console.print(table)
    command = ["arm-none-eabi-size", str(folder / "firmware.elf")]
    size = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    text, data, bss = map(int, size.splitlines()[1].split()[:3])
    answers = zip(exact.index.tolist(), exact.scores[:, -1].tolist(), strict=True)
    equal = sum(pair == (index, score) for pair, (_, index, score) in zip(answers, found, strict=True))
    same = int((np.array(classes) == said).sum())
    for line in (
        "self-test: all rows right",
        f"classes and scores as the compiled forest's: {equal} of {ROWS}; classes as the model's: {same} of {ROWS}",
        f"{folder / 'firmware.elf'}: {text:,} bytes of code and constants, {data + bss} of variables",
    ):
        console.print(line, soft_wrap=True)
    if equal != ROWS:
        sys.exit(3)


if __name__ == "__main__":
    main()
