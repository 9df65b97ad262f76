"""Measures the two models in examples/models at each level: size in logic and in C, and accuracy on test rows.

LUTs are the estimate for an UltraScale+ before synthesis, at latency 0. `flash_bytes` counts the function from words to
a class with its constants, by `arm-none-eabi-gcc -mcpu=cortex-m4 -Os`. Half of the rows outside the model's training
are held out (`--held-out FILE`); the other half are the test rows of the accuracy, which chose nothing. What a design
loses, its interval and the word are what -O2 and -O3 say of it, on the rows that chose it. Without held-out rows, they
train the model again on parts of its training rows, which the file of trees breast_cancer.json does not allow. This
takes three minutes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from designs import estimated_luts, object_bytes
from ledger import Case, Ledger, Steps
from tools import arguments

import forestc

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import MODELS, split_breast_cancer, split_digits

CASES = {"breast_cancer.json": split_breast_cancer, "digits.skops": split_digits}
CPU = "cortex-m4"
LEVELS = ((0, False), (1, False), (2, True), (2, False), (3, True), (3, False))


def measured(level: int, held_out: bool, case: Case) -> Steps:
    name = case["model"]
    train, test, train_labels, test_labels = given = CASES[name]()
    held = (test[::2], test_labels[::2]) if held_out else None
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        done = forestc.compile(MODELS / name, train, out, label=train_labels, level=level, held_out=held)
        header = done.design.path("c")
        figures = {
            "comparators": done.figures["distinct_conditions"], "comparator_bits": done.figures["comparator_bits"],
            "LUTs_estimated": estimated_luts(done.figures),
        }  # fmt: skip
        if evidence := (done.figures["level"] or {}).get("evidence"):
            low, high = evidence["interval"]
            lost = f"{100 * evidence['lost']:.1f} ({100 * low:.1f} to {100 * high:.1f})"
            figures |= {"points_lost_(95_%)": lost, "word": evidence["word"] or "-O1's", "on_rows": evidence["rows"]}
        accuracy = round(100 * done.design.score(test[1::2], test_labels[1::2]), 2)
        yield [MODELS / name, *given], [header, figures, accuracy]
        entry = f"unsigned f(const void *x) {{ return {header.stem}_predict(x); }}"
        flash = object_bytes(header, entry, CPU)
    yield {**figures, "flash_bytes": flash, "test_%": accuracy}


def main() -> None:
    options = arguments(__doc__, "json").parse_args()
    ledger = Ledger("the shipped models at each level", options, ("arm-none-eabi-gcc",))
    for name in CASES:
        for level, held_out in LEVELS[: 1 if options.small else None]:
            if level < 2 or held_out or not name.endswith(".json"):
                case = {"model": name, "level": f"-O{level}" + " --held-out FILE" * held_out}
                ledger.fill([case], measured, level, held_out)
    ledger.show()


if __name__ == "__main__":
    main()
