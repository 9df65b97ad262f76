"""Converts a quantized Forest to a Netlist: trees, sums, combined member models, decisions, then registers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from forestc.errors import ModelError, OptionError, known_names, opt
from forestc.forest.ir import Forest
from forestc.forest.outputs import LABEL, OUTPUTS, SCORES, Words
from forestc.lowering.decision import label, label_of, runner_up
from forestc.lowering.draft import Draft, Witness
from forestc.lowering.extremes import extreme_of, prioritized, refuse_extremes_of_parts
from forestc.lowering.sums import TABLE_BITS, plus, sums_of
from forestc.lowering.timing import DEFAULT_FAMILY, DELAYS, pipelined
from forestc.lowering.typed_sums import typed_sum
from forestc.lowering.votes import COMBINED
from forestc.netlist.ir import BIT, Netlist
from forestc.netlist.ports import IN_VALID, OUT_VALID, PLAIN, Clocking, label_port, score_port, target_port

Outputs: TypeAlias = Literal["auto", "label", "scores", "both", "margins", "leaves", "top2"]


@dataclass(frozen=True)
class LoweringOptions:
    """Options for the conversion of a forest to a netlist."""

    latency: int = 0  # clock cycles from input to output; 0 is combinational
    outputs: Outputs = "auto"  # a key of `OUTPUTS`; auto: label for classification, scores for regression
    family: str = DEFAULT_FAMILY  # key of DELAYS; its delays decide where registers go
    clocking: Clocking = PLAIN  # of the registers, of which there are some only with latency

    def __post_init__(self) -> None:
        if not isinstance(self.latency, int) or not 0 <= self.latency <= 1000:
            raise OptionError(f"latency {self.latency}", where=opt.latency, do="use 0 (combinational) to 1000 cycles")
        if self.outputs not in get_args(Outputs):
            do = known_names(self.outputs, get_args(Outputs))
            raise OptionError(f"{self.outputs!r} are no outputs", where=opt.outputs, do=do)
        if self.family not in DELAYS:
            raise OptionError(
                f"unknown delay family {self.family!r}", where="delay family", do=known_names(self.family, DELAYS)
            )


def lower(forest: Forest, options: LoweringOptions | None = None) -> Netlist:
    """Converts a quantized forest to a netlist with the same results for all words in range. Ports: `x0`, ..., `label`
    (or `label0`, ...), `score0`, ...; with latency also `in_valid` and `out_valid`."""
    return lower_with_witness(forest, options)[0]


def lower_with_witness(forest: Forest, options: LoweringOptions | None = None) -> tuple[Netlist, Witness]:
    """Returns the netlist of `lower`, and its witness: the nets or constants that hold the forest's intermediate
    values."""
    options = options or LoweringOptions()
    netlist, witness = unregistered(forest, options)
    if not options.latency:
        return netlist, witness
    netlist, renamed = pipelined(netlist, options.latency, DELAYS[options.family])
    netlist = replace(netlist, clocking=options.clocking)
    # A removed net has the number -1; this indexes the last entry, so -1 is added there.
    return netlist, witness.renamed([*renamed, -1])


def unregistered(forest: Forest, options: LoweringOptions) -> tuple[Netlist, Witness]:
    """Returns the netlist without registers, and its witness. If options.latency > 0, it has the ports in_valid and
    out_valid."""
    kinds = _words(forest, options).kinds
    refuse_extremes_of_parts(forest)
    draft = Draft(forest, DELAYS[options.family].inputs >= TABLE_BITS)
    typed = forest.aggregate.kind == "typed"
    extremes = [] if forest.adds or typed else [extreme_of(draft, output) for output in range(forest.n_outputs)]
    combined = forest.combine.kind
    # If member models vote, the scores are votes, so only decisions read the sums.
    sums = [extreme.score for extreme in extremes]
    if typed:
        sums = [typed_sum(draft, output) for output in range(forest.n_outputs)]
    elif forest.adds:
        sums = sums_of(draft, alone=combined == "vote" or "score" not in kinds)
    if combined != "each":
        sums = COMBINED[combined](draft, sums)
    if "label" in kinds:
        targets = forest.targets
        for index, part in enumerate(targets):
            here = sums[part.start : part.stop]
            net = prioritized(draft.builder, part.decision, extremes) if extremes else None
            if net is None and forest.adds and combined == "each":
                net = label_of(draft, part, here)
            elif net is None:
                net = label(draft, part.decision, here)
            draft.builder.output(label_port(index, len(targets)), net)
            if "second" in kinds:
                second, distance = runner_up(draft, part.decision, here, net)
                draft.builder.output(target_port("second", index, len(targets)), second)
                draft.builder.output(target_port("distance", index, len(targets)), distance)
    if "score" in kinds:
        for output, total in enumerate(sums):
            draft.builder.output(score_port(output), plus(draft, total, total.offset).net)
    if options.latency:
        draft.builder.output(OUT_VALID, draft.builder.input(IN_VALID, BIT))
    netlist, renamed = draft.builder.build_renamed()
    return netlist, draft.witness().renamed(renamed)


def _words(forest: Forest, options: LoweringOptions) -> Words:
    if not forest.quantized:
        raise ModelError(
            "only a quantized forest becomes logic", where="lowering", do="run quantize-inputs and round-leaves first"
        )
    if options.outputs == "auto":
        return LABEL if forest.decides else SCORES
    words = OUTPUTS[options.outputs]
    if not forest.decides and "label" in words.kinds:
        what = f"{options.outputs} of a regression model"
        raise OptionError(what, where=opt.outputs, do=f"use {opt.outputs:scores}")
    return words
