"""Makes a small forest over columns of every kind, and rows with columns that depend on one another."""

import numpy as np

from forestc.forest.text import parse_forest

HEAD = """forest "{name}"
source "made" "1" "5eed"
columns 5
{features}aggregate sum float64 bias-first
bias 0.0
link identity
decision threshold 0.5 on scores
classes ["no", "yes"]
"""
FEATURES = """feature "size" float32 column 0 raw float32
feature "age" float64 column 2 raw float64
feature "kind" category<6> column 3 raw float64
feature "gap" float32 column 4 raw float32 missing
"""


def _nodes(random, depth):
    """Returns the lines of a complete tree of random conditions."""
    lines, inner = ["tree outputs 0"], 2**depth - 1
    for node in range(inner):
        feature = random.integers(0, 4)
        condition = [
            f"0 < {float(np.float32(random.random()))!r}",
            f"1 < {random.integers(1, 20)}.0",
            f"2 in {{{','.join(map(str, sorted(random.choice(6, 2, replace=False).tolist())))}}}",
            f"3 < {float(np.float32(random.normal()))!r}",
        ][feature]
        side = " missing left" if feature == 3 and random.random() < 0.5 else ""
        lines.append(f"{node}: {condition} ? {2 * node + 1} : {2 * node + 2}{side}")
    lines += [f"{node}: leaf {random.integers(-8, 9) / 8}" for node in range(inner, 2 * inner + 1)]
    return "".join(f"{line}\n" for line in lines)


def mixed_forest(trees, depth, seed):
    random = np.random.default_rng(seed)
    text = HEAD.format(name="mixed", features=FEATURES) + "".join(_nodes(random, depth) for _ in range(trees))
    return parse_forest(text)


def mixed_rows(count, seed):
    """Draws rows (count, 5): size and age rise together, gap is missing more often if they are small; column 1 is not
    read."""
    random = np.random.default_rng(seed)
    hidden = random.random(count)
    rows = np.zeros((count, 5))
    rows[:, 0] = np.clip(hidden + random.normal(0, 0.1, count), 0, 1).astype(np.float32)
    rows[:, 1] = random.random(count)
    rows[:, 2] = np.clip(np.floor(hidden * 20 + random.normal(0, 2, count)), 0, 19)
    rows[:, 3] = random.choice(6, count, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
    rows[:, 4] = random.normal(hidden, 1).astype(np.float32)
    rows[random.random(count) < 0.3 * (1 - hidden), 4] = np.nan
    return rows


MIXED = mixed_forest(6, 4, 0)
ONE_LEAF = "tree outputs 0\n0: leaf 1.0\n"
NUMBERS = parse_forest(HEAD.format(name="numbers", features=FEATURES.replace("category<6>", "float64")) + ONE_LEAF)
CONSTANT = parse_forest(HEAD.format(name="constant", features="") + ONE_LEAF)
