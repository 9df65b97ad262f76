"""The figures of `forestc compile --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forestc.backends.names import plain
from forestc.checks.agreement import Agreement
from forestc.compilation.request import Request
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist
from forestc.passes.pipeline import Step
from forestc.passes.word_formats import comparator_bits


@dataclass(frozen=True)
class Figures:
    """The figures of one compilation. `as_dict` gives them as JSON, whose keys do not change between versions.

    passes: the figures of each pass. conditions: inner nodes of the model. distinct_conditions: comparators.
    comparator_bits: input bits that comparators read. cells, latency_cycles: of the netlist; None where only C is
    written. accuracy, agreement: on the rows. level: the level and its
    passes; None if the user named the passes. measured: accuracies, and the rows they were measured on. estimate,
    synthesis: for a device; None without one. firmware: estimates of the C header by layout, and the one chosen; None
    without --cpu. seconds: by stage.
    """

    out: str
    name: str
    targets: Sequence[str]
    passes: Sequence[Mapping[str, Any]]
    trees: int
    nodes: int
    conditions: int
    distinct_conditions: int
    comparator_bits: int
    cells: int | None
    latency_cycles: int | None
    rows: int
    accuracy: Mapping[str, Any]
    agreement: float
    notes: Sequence[str]
    level: Mapping[str, Any] | None
    measured: Mapping[str, Any]
    estimate: Sequence[Mapping[str, Any]] | None = None
    seconds: Mapping[str, float] | None = None
    synthesis: Mapping[str, Any] | None = None
    firmware: Mapping[str, Any] | None = None

    @staticmethod
    def of(
        out: Path,
        wanted: Request,
        source: Forest,
        forest: Forest,
        netlist: Netlist | None,
        steps: Sequence[Step],
        agreed: Agreement,
        **more: Any,
    ) -> Figures:
        """source, forest: the model, and the forest after the passes."""
        table = forest.conditions
        return Figures(
            out=str(out),
            name=plain(forest.name),
            targets=sorted(set(wanted.targets)),
            passes=[step.figures() for step in steps],
            trees=len(forest.trees),
            nodes=forest.n_nodes,
            conditions=sum(len(tree.inner) for tree in source.trees),
            distinct_conditions=len(table.comparators),
            comparator_bits=sum(
                comparator_bits(feature.number, table.thresholds(index))
                for index, feature in enumerate(forest.features)
            ),
            cells=None if netlist is None else len(netlist.cells),
            latency_cycles=None if netlist is None else netlist.latency,
            rows=agreed.rows,
            accuracy={"model": agreed.model, "compiled": agreed.compiled},
            agreement=agreed.agreement,
            **more,
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, without the optional figures that were not computed."""
        optional = ("estimate", "seconds", "synthesis", "firmware")
        return {key: value for key, value in vars(self).items() if value is not None or key not in optional}


class CompileFigures(dict[str, Any]):
    """The figures of `forestc compile --json`, with a short repr."""

    def __repr__(self) -> str:
        head = f"{self['name']}: {self['distinct_conditions']:,} comparators, {self['comparator_bits']:,} bits"
        return f"<{head}, agreement {self['agreement']:.4f} on {self['rows']:,} rows; keys: {', '.join(self)}>"
