"""Ports as values: what a port carries, of what, and how its words are made.

A netlist's own backends, its simulator and its equality ask the port; none of them takes a name apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PortKind: TypeAlias = Literal["word", "valid", "label", "score"]


@dataclass(frozen=True)
class Port:
    """A port of a netlist.

    name: what designs call it; no two inputs, and no two outputs, have one. kind: what it carries:

    | kind  | an input                                | an output                          |
    |-------|-----------------------------------------|------------------------------------|
    | word  | the word of feature `index`             | any word                           |
    | valid | whether the words of this cycle count   | whether the results of this cycle do |
    | label |                                         | the class index of target `index`  |
    | score |                                         | score `index`                      |

    title: of a feature, its name in the model. meaning: how its words are made, in a sentence.
    """

    name: str
    kind: PortKind = "word"
    index: int = 0
    title: str = ""
    meaning: str = ""


IN_VALID, OUT_VALID = Port("in_valid", "valid"), Port("out_valid", "valid")


def score_port(index: int) -> Port:
    """The output of a score."""
    return Port(f"score{index}", "score", index)


def label_port(index: int, targets: int) -> Port:
    """The output of a target's class; a single target's has no number in its name."""
    return Port("label" if targets == 1 else f"label{index}", "label", index)
