"""The two models in examples/models at each level: size in logic and in C, and accuracy on test rows.

LUTs are the estimate for an UltraScale+ before synthesis, latency 0. flash: bytes of the function that takes words to a
class, with its constants, by `arm-none-eabi-gcc -mcpu=cortex-m4 -Os`. The test rows choose nothing; -O3 sets a fifth of
the training rows aside. A minute or two.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from designs import estimated_luts, object_bytes
from tools import arguments, show

import forestc

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import MODELS, split_breast_cancer, split_digits

CASES = {"breast_cancer.json": split_breast_cancer, "digits.skops": split_digits}
CPU = "cortex-m4"
MEASURES = ("forestc/compilation", "forestc/passes", "forestc/algorithms", "forestc/costs", "forestc/layouts",
            "forestc/lowering", "forestc/backends/c")  # fmt: skip


def measured(name: str, level: int, split: Any, folder: Path) -> dict[str, Any]:
    train, test, train_labels, test_labels = split
    done = forestc.compile(MODELS / name, train, folder / "out", label=train_labels, level=level)
    header = done.design.path("c")
    return {
        "model": name, "level": f"-O{level}", "comparators": done.figures["distinct_conditions"],
        "comparator_bits": done.figures["comparator_bits"], "LUTs_estimated": estimated_luts(done.figures),
        "flash_bytes": object_bytes(header, f"unsigned f(const void *x) {{ return {header.stem}_predict(x); }}", CPU),
        "test_%": round(100 * done.design.score(test, test_labels), 2),
    }  # fmt: skip


def main() -> None:
    options = arguments(__doc__, MEASURES).parse_args()
    cases = [(name, level) for name in CASES for level in range(4)][: 1 if options.small else None]
    rows = []
    for name, level in cases:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(name, level, CASES[name](), Path(folder)))
    show("The shipped models at each level", rows, options)


if __name__ == "__main__":
    main()
