"""Writes the head of a forest's text form, so that a test shows its trees alone."""

from __future__ import annotations


def head(
    *features: str,
    name: str = "t",
    bias: str = "0",
    decision: str = "none on scores",
    classes: str = "[]",
    scale: str = "1.0",
) -> str:
    """Returns the lines above the trees. features: name, type and, perhaps, `missing`, in the order of their columns.
    scale: "" for a forest that is not quantized."""
    lines = [f'forest "{name}"', 'source "" "" ""', f"columns {len(features)}"]
    for column, feature in enumerate(features):
        label, number, *missing = feature.split()
        raw = "float64" if number == "float64" else "float32"
        lines.append(" ".join([f'feature "{label}" {number} column {column} raw {raw}', *missing]))
    lines += ["aggregate sum float64 bias-first", f"bias {bias}", "link identity", f"decision {decision}"]
    return "\n".join([*lines, f"classes {classes}", *([f"scale {scale}"] if scale else []), ""])
