"""Learns an input model from rows, over the comparators of a forest.

A network of bounded treewidth is learnt over the first variables of the columns. The binary variables of a span's cuts
form a chain behind the first variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError, OptionError, opt
from forestc.forest.conditions import NO_SET, InSpans, OneOf
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Category, FloatArray, round_to, to_words, word_value
from forestc.inputs.columns import InputColumn
from forestc.inputs.model import InputModel
from forestc.papers.networks.bayesian_network import BayesianNetwork, counted
from forestc.papers.networks.bounded_treewidth import NetworkSearch, learn
from forestc.rows.batches import Rows

TREEWIDTH, SECONDS = 4, 20.0  # the network's default treewidth, and default seconds of its search
MOST_COMPARATORS = 2000  # thresholds and cuts in an input model, at most
MOST_SPANS = 8  # states of a column's first variable, without one for missing, at most
MOST_CLIQUE_CELLS = 2**20  # bounds the entries of all cliques together, unless two spans exceed it
MOST_BYTES = 2**28  # bytes of all rows' states; beyond, only every n-th row is counted


@dataclass
class _Seen:
    """Facts about a column over all rows."""

    least: float
    largest: float
    whole: bool
    missing: int
    below: NDArray[np.int64]
    codes: NDArray[np.int64]


def learned(
    forest: Forest,
    rows: Rows,
    *,
    treewidth: int = TREEWIDTH,
    seconds: float = SECONDS,
    samples: int | None = None,
    seed: int = 0,
    least_count: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> InputModel:
    """Learns an input model from rows, over the forest's comparators.

    least_count: as in `InputModel.with_least_count`.

    Raises ModelError if the rows or the forest do not suffice, OptionError for a negative `least_count`.
    """
    if least_count < 0:
        raise OptionError(f"{least_count} is negative", where=opt.least_count, do="use 0 to keep all counts")
    comparators = len(forest.conditions.comparators)
    if not comparators:
        raise ModelError(
            "the model compares nothing", where="the model", do="an input model needs a model that reads its rows"
        )
    cuts = _most_used_cuts(forest)
    progress("reading rows")
    seen, count = _observed(forest, rows, cuts)
    spans = _spans(len(forest.features), treewidth)
    inputs = tuple(
        _column(forest, index, cuts[index], seen[index], spans, count) for index in range(len(forest.features))
    )
    tests = map(forest.conditions.test, forest.conditions.comparators.tolist())
    selected = sum(len(column.cuts) for column in inputs) + sum(isinstance(test, OneOf) for test in tests)
    if not any(column.states for column in inputs):
        raise ModelError("no column is known by more than one state", where="the rows", do="give rows of several kinds")
    states = _states(inputs, forest.row_columns, rows, count)
    search = NetworkSearch(treewidth=treewidth, time_limit=seconds, samples=samples, seed=seed)
    network = _network(inputs, states, search, progress)
    result = InputModel(
        forest.columns, inputs, network, count, comparators, min(selected, comparators), forest.provenance.model_hash
    )
    return result.with_least_count(least_count) if least_count else result


def _most_used_cuts(forest: Forest) -> list[tuple[float, ...]]:
    """Returns for each feature an ascending tuple of raw cuts. Only the MOST_COMPARATORS most used cuts of all features
    are included."""
    table, weights = forest.conditions, np.zeros(len(forest.conditions))
    for tree, node_conditions in zip(forest.trees, table.node_conditions, strict=True):
        inner = tree.inner
        used = np.ones(len(inner)) if tree.cover is None else tree.cover[inner] / max(1.0, float(tree.cover[0]))
        np.add.at(weights, node_conditions[inner], used)
    uses: dict[tuple[int, Any], float] = {}
    for condition in range(len(table)):
        if table.set_number[condition] == NO_SET:
            members: Sequence[Any] = [table.threshold[condition].item()]
        else:
            test = table.test(condition)
            members = test.cuts if isinstance(test, InSpans) else ()
        for cut in members:
            if np.isfinite(cut):
                key = (int(table.feature[condition]), cut)
                uses[key] = uses.get(key, 0.0) + float(weights[condition])
    most = sorted(uses, key=lambda key: (-uses[key], key))[:MOST_COMPARATORS]
    cuts: list[set[float]] = [set() for _ in forest.features]
    for feature, cut in most:
        number = forest.features[feature].number
        cuts[feature].add(word_value(int(cut), number) if forest.quantized else float(cut))
    return [tuple(sorted(raw)) for raw in cuts]


def _observed(forest: Forest, rows: Rows, cuts: Sequence[tuple[float, ...]]) -> tuple[list[_Seen], int]:
    seen = [
        _Seen(inf, -inf, True, 0, np.zeros(len(feature_cuts), np.int64), np.zeros(_codes(feature), np.int64))
        for feature, feature_cuts in zip(forest.features, cuts, strict=True)
    ]
    count = 0
    for batch in rows.batches():
        count += len(batch.X)
        for feature, column_index, feature_cuts, column in zip(
            forest.features, forest.row_columns, cuts, seen, strict=True
        ):
            values = round_to(batch.X[:, column_index], feature.raw)
            present = values[~np.isnan(values)]
            column.missing += len(values) - len(present)
            if isinstance(feature.number, Category):
                column.codes += np.bincount(to_words(present, feature.number, False), minlength=len(column.codes))
                continue
            column.below += np.searchsorted(np.sort(present), np.array(feature_cuts), side="left")
            finite = present[np.isfinite(present)]
            if len(finite):
                column.least, column.largest = min(column.least, finite.min()), max(column.largest, finite.max())
                column.whole &= bool((finite == np.floor(finite)).all())
    if not count:
        raise ModelError("there are no rows", where="the rows", do="give at least one")
    return seen, count


def _codes(feature: Feature) -> int:
    return feature.number.count + 1 if isinstance(feature.number, Category) else 0


def _spans(features: int, treewidth: int) -> int:
    """Returns how many states the first variable of a column may have, so that the network's tables stay small; at
    least 2."""
    spans = 2
    while spans < MOST_SPANS and (spans + 2) ** (treewidth + 1) * features <= MOST_CLIQUE_CELLS:
        spans += 1
    return spans


def _column(forest: Forest, index: int, cuts: tuple[float, ...], seen: _Seen, spans: int, count: int) -> InputColumn:
    feature = forest.features[index]
    missing = seen.missing or None
    plain = InputColumn(feature.name, feature.column, feature.named, feature.raw, missing=missing)
    if isinstance(feature.number, Category):
        groups = _groups(forest, index, seen.codes, spans)
        codes = tuple(seen.codes.tolist())
        return replace(plain, category=feature.number, codes=codes, groups=groups, labels=feature.labels)
    finite = seen.least <= seen.largest
    return replace(
        plain,
        cuts=cuts,
        anchors=_anchors(seen.below, count - seen.missing, spans),
        least=float(seen.least) if finite else 0.0,
        largest=float(seen.largest) if finite else 0.0,
        whole=finite and seen.whole,
    )


def _anchors(below: NDArray[np.int64], present: int, spans: int) -> tuple[int, ...]:
    if len(below) < spans:
        return tuple(range(len(below)))
    targets = np.arange(1, spans) * present / spans
    return tuple(sorted({int(np.argmin(np.abs(below - share))) for share in targets}))


def _groups(forest: Forest, index: int, codes: NDArray[np.int64], spans: int) -> tuple[tuple[int, ...], ...]:
    """Returns, for each state, a tuple of its category codes. Codes that no condition distinguishes share a state."""
    sets = [
        frozenset(test.codes)
        for test in map(forest.conditions.test, forest.conditions.of(index).tolist())
        if isinstance(test, OneOf)
    ]
    classes: dict[tuple[int, ...], list[int]] = {}
    members: list[list[int]] = [[] for _ in codes]
    for number, code_set in enumerate(dict.fromkeys(sets)):
        for code in code_set:
            members[code].append(number)
    for code, in_sets in enumerate(members):
        classes.setdefault(tuple(in_sets), []).append(code)
    ordered = sorted(classes.values(), key=lambda group: (-int(codes[group].sum()), group))
    rest = sorted(code for group in ordered[spans - 1 :] for code in group)
    return tuple(tuple(group) for group in [*ordered[: spans - 1], *([rest] if rest else [])])


def _states(inputs: Sequence[InputColumn], positions: Sequence[int], rows: Rows, count: int) -> NDArray[np.uint8]:
    width = sum(len(column.states) for column in inputs)
    every, first, parts = max(1, -(-count * width // MOST_BYTES)), 0, []
    for batch in rows.batches():
        chosen = batch.X[-first % every :: every]
        first += len(batch.X)
        parts.append(
            np.concatenate(
                [column.encoded(chosen[:, position]) for position, column in zip(positions, inputs, strict=True)],
                axis=1,
            )
        )
    return np.concatenate(parts)


def _network(
    inputs: Sequence[InputColumn], states: NDArray[np.uint8], search: NetworkSearch, progress: Callable[[str], None]
) -> BayesianNetwork:
    columns = [column for column in inputs if column.states]
    starts = np.cumsum([0, *(len(column.states) for column in columns)]).tolist()
    firsts = starts[:-1]
    sizes = [column.states[0] for column in columns]
    coarse = learn(states[:, firsts], search, states=sizes, progress=lambda state: progress(state.text))
    parents: list[tuple[int, ...]] = []
    chains: list[int] = []
    for column, start, above in zip(columns, firsts, coarse.parents, strict=True):
        chain = column.parents
        parents += [
            tuple(firsts[variable] for variable in above),
            *(tuple(start + variable for variable in variables) for variables in chain),
        ]
        chains += [start + 1 + position for position in reversed(range(len(chain)))]
    sizes = [size for column in columns for size in column.states]
    order = [*chains, *(firsts[variable] for variable in coarse.order)]
    network = counted(states, parents, sizes, coarse.ess, order)
    return replace(network, score=sum(_score(table, network.ess) for table in network.tables))


def _score(table: NDArray[np.int64], ess: float) -> float:
    """Returns the BDeu score of one variable's counts (Heckerman et al. 1995, equation 28)."""
    q, r = table.shape
    seen, total = table[table > 0].tolist(), table.sum(axis=1)
    configurations = sum(lgamma(ess / q) - lgamma(n + ess / q) for n in total[total > 0].tolist())
    return configurations + sum(lgamma(n + ess / (q * r)) - lgamma(ess / (q * r)) for n in seen)


def independent_log_likelihood(model: InputModel, fitted: FloatArray, rows: FloatArray) -> float:
    """Returns the mean log-likelihood of the raw rows' comparator bits under independence, as a baseline. Each bit has
    its frequency in the raw rows `fitted`."""
    total = 0.0
    both = model.values_of(fitted), model.values_of(rows)
    for index, column in enumerate(model.inputs):
        if not column.states:
            continue
        tables = [_bits(column, values[:, index]) for values in both]
        share = (tables[0].sum(axis=0) + 0.5) / (len(fitted) + 1)
        logs = np.where(tables[1], np.log(share), np.log1p(-share))
        total += float(logs.sum()) / max(1, len(rows))
    return total


def _bits(column: InputColumn, values: FloatArray) -> NDArray[np.bool_]:
    """Returns booleans (rows, bits): missing (if possible), then below each cut or, for categories, in each state but
    the last."""
    first = column.encoded(values)[:, 0]
    absent = np.isnan(values)
    parts = [absent[:, None]] if column.missing is not None else []
    if column.category:
        parts += [(first == state)[:, None] for state in range(column.spans - 1)]
    else:
        cell = column.cell(np.where(absent, np.inf, values))
        parts.append(cell[:, None] <= np.arange(len(column.cuts))[None, :])
    return np.concatenate(parts, axis=1)
