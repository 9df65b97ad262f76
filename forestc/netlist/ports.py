"""The ports of a netlist, and what each port carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PortKind: TypeAlias = Literal["word", "valid", "label", "score"]


@dataclass(frozen=True)
class Port:
    """A port of a netlist.

    name: unique among inputs and among outputs. kind: what the port carries:

    | kind  | an input                                | an output                            |
    |-------|-----------------------------------------|--------------------------------------|
    | word  | the word of feature `index`             | any word                             |
    | valid | whether the words of this cycle count   | whether the results of this cycle do |
    | label |                                         | the class index of target `index`    |
    | score |                                         | score `index`                        |

    title: the feature's name in the model. meaning: a sentence on how the port's words are computed.
    """

    name: str
    kind: PortKind = "word"
    index: int = 0
    title: str = ""
    meaning: str = ""


IN_VALID, OUT_VALID = Port("in_valid", "valid"), Port("out_valid", "valid")


def score_port(index: int) -> Port:
    return Port(f"score{index}", "score", index)


def label_port(index: int, targets: int) -> Port:
    """Returns the output port of a target's class index. Its name has a number if there are several targets."""
    return Port("label" if targets == 1 else f"label{index}", "label", index)
