"""The ports of a netlist, and what each port carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PortKind: TypeAlias = Literal["word", "valid", "label", "second", "distance", "score"]
Reset: TypeAlias = Literal["none", "sync", "async"]


@dataclass(frozen=True)
class Port:
    """A port of a netlist.

    name: unique among inputs and among outputs. kind: what the port carries:

    | kind     | an input                                | an output                                      |
    |----------|-----------------------------------------|------------------------------------------------|
    | word     | the word of feature `index`             | any word                                       |
    | valid    | whether the words of this cycle count   | whether the results of this cycle do           |
    | label    |                                         | the class index of target `index`              |
    | second   |                                         | the class index of its second best class       |
    | distance |                                         | the distance of the scores of its best classes |
    | score    |                                         | score `index`                                  |

    title: the feature's name in the model. meaning: a sentence on how the port's words are computed.
    """

    name: str
    kind: PortKind = "word"
    index: int = 0
    title: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Clocking:
    """How registers are clocked. Each starts at 0 and takes a word at the rising edge of the one clock.

    reset: sync and async bring a port `rst`. While it is 1, all registers become 0, whatever `en` is: at the clock's
    edge, or at once.
    enable: brings a port `en`. While it is 0, registers keep their words.
    """

    reset: Reset = "none"
    enable: bool = False

    @property
    def ports(self) -> dict[str, int]:
        """The ports beside the clock, in order, with the values that let registers take words."""
        return {**({} if self.reset == "none" else {"rst": 0}), **({"en": 1} if self.enable else {})}

    @property
    def words(self) -> list[str]:
        """What the ports are, as in `synchronous reset` and `clock enable`."""
        resets = {"none": [], "sync": ["synchronous reset"], "async": ["asynchronous reset"]}
        return [*resets[self.reset], *["clock enable"] * self.enable]


PLAIN = Clocking()  # neither reset nor enable
IN_VALID, OUT_VALID = Port("in_valid", "valid"), Port("out_valid", "valid")


def score_port(index: int) -> Port:
    return Port(f"score{index}", "score", index)


def label_port(index: int, targets: int) -> Port:
    """Returns the output port of a target's class index. Its name has a number if there are several targets."""
    return target_port("label", index, targets)


def target_port(kind: PortKind, index: int, targets: int) -> Port:
    """Returns an output port of a target, named by its kind and, if there are several targets, a number."""
    return Port(kind if targets == 1 else f"{kind}{index}", kind, index)
