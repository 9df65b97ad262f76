"""Finds clauses (ANDs of literals) of high worth: weight of the covered rows / (literals + 1).

The integer program of Dash, Gunluk and Wei (2018, eqs. 6 to 10) gave weaker bounds than the branch and bound here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from forestc.algorithms.arrays import Bits, Floats, Int32s, Ints
from forestc.algorithms.covers.column_generation import stoppable
from forestc.system.compiled import compiled

LONG = 10**17  # steps without limit: no search takes as many
MOST_KEPT = 64  # clauses that `beam_search` and `best_clauses` return at most


class SpanLiterals(NamedTuple):
    """Literals as ranges of integer codes: a literal holds if its feature's code lies in its range."""

    codes: Int32s  # (rows, features); no two features share a code
    start: Ints  # (features + 1,) first code of each feature
    feature: Ints  # (literals,) index of each literal's feature
    low: Ints  # (literals,) first code of the range
    high: Ints  # (literals,) last code of the range, plus one
    inverted: Bits  # (literals,) True if the literal holds outside of the range

    def of(self, rows: Ints, chosen: Ints) -> SpanLiterals:
        """Returns the given literals on the given rows; the literals are renumbered from 0."""
        feature, low, high = self.feature[chosen], self.low[chosen], self.high[chosen]
        return SpanLiterals(self.codes[rows], self.start, feature, low, high, self.inverted[chosen])

    def covered(self, clause: tuple[int, ...]) -> Bits:
        """Returns for each row whether it satisfies the clause."""
        result = np.ones(len(self.codes), dtype=bool)
        for literal in clause:
            code = self.codes[:, self.feature[literal]]
            inside = (code >= self.low[literal]) & (code < self.high[literal])
            result &= inside != self.inverted[literal]
        return result


def grouped_rows(bits: Bits) -> tuple[Ints, Ints]:
    """Returns the first index of each distinct row, in ascending order of rows, and each row's place there."""
    packed = np.packbits(np.ascontiguousarray(bits), axis=1)
    # Sorting words is several times as fast as np.unique, which compares rows byte by byte.
    words = np.pad(packed, ((0, 0), (0, 8 - packed.shape[1] % 8))).view(">u8").astype(np.uint64)
    order = np.lexsort(words.T[::-1])
    new = np.append(np.ones(len(order[:1]), dtype=bool), (words[order[1:]] != words[order[:-1]]).any(axis=1))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return order[new], place


def literals_of(bits: Bits, groups: Ints | None = None) -> SpanLiterals:
    """Encodes literals as ranges of integer codes. bits: (rows, literals) True where a literal holds. groups:
    (literals,) feature of each literal; helps speed only."""
    many = bits.shape[1]
    groups = np.arange(many) if groups is None else np.asarray(groups)
    codes: list[Ints] = []
    start, feature = [0], np.zeros(many, dtype=np.int64)
    low, high, inverted = np.zeros(many, dtype=np.int64), np.zeros(many, dtype=np.int64), np.zeros(many, dtype=bool)
    pending = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    while pending:
        members = pending.pop(0)
        first, code = grouped_rows(bits[:, members])
        patterns = bits[first][:, members]
        order = _ordered(patterns)
        spans = [_span(column) for column in patterns[order].T]
        literal_spans = [
            (literal, span) for literal, span in zip(members.tolist(), spans, strict=True) if span is not None
        ]
        if len(literal_spans) < len(members):
            if len(members) == 1:
                raise AssertionError("one literal is always a span")
            pending = [np.array([literal]) for literal in members.tolist()] + pending
            continue
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        for literal, span in literal_spans:
            feature[literal] = len(codes)
            low[literal], high[literal], inverted[literal] = start[-1] + span[0], start[-1] + span[1], span[2]
        codes.append(start[-1] + rank[code])
        start.append(start[-1] + len(order))
    joined = np.stack(codes, axis=1) if codes else np.zeros((len(bits), 0))
    return SpanLiterals(np.ascontiguousarray(joined, np.int32), np.array(start), feature, low, high, inverted)


def _ordered(patterns: Bits) -> Ints:
    """Returns an order of the rows of `patterns` in which the True entries of each column are contiguous, if the
    columns are thresholds of one feature."""
    end = int(np.argmax((patterns != patterns[0]).sum(axis=1)))
    return np.argsort((patterns != patterns[end]).sum(axis=1), kind="stable")


def _span(column: Bits) -> tuple[int, int, bool] | None:
    """Returns (first, past, inverted) of the True or, if inverted, False entries; None if neither are contiguous."""
    for inverted in (False, True):
        indices = np.flatnonzero(column != inverted)
        if not len(indices):
            return 0, 0, inverted
        if len(indices) == indices[-1] - indices[0] + 1:
            return int(indices[0]), int(indices[-1]) + 1, inverted
    return None


@dataclass(frozen=True)
class Clauses:
    """Clauses that a search found, the largest gain above the price of their literals first."""

    clauses: list[tuple[int, ...]]
    worth: float = math.inf  # upper bound on weight of covered rows / (literals + 1) of any clause
    complete: bool = False  # True if the search was exhaustive


def beam_search(literals: SpanLiterals, weight: Floats, price: float, longest: int, width: int) -> Clauses:
    """Returns good clauses, found by adding every literal to the `width` best clauses of each length."""
    clauses, gain = _beam(literals, weight, price, longest, width, MOST_KEPT)
    return Clauses(_sorted(clauses, gain, price))


def best_clauses(
    literals: SpanLiterals, weight: Floats, price: float, longest: int, steps: int, deadline: float
) -> Clauses:
    """Returns clauses with at most `longest` literals and high worth: weight of covered rows / (literals + 1). The
    search stops after about `steps` additions."""
    clauses, gain, worth, complete = stoppable(
        _branched, literals, weight, price, longest, steps, MOST_KEPT, 0.0, deadline=deadline
    )
    return Clauses(_sorted(clauses, gain, price), float(worth), bool(complete))


def all_clauses(
    literals: SpanLiterals, weight: Floats, price: float, longest: int, slack: float, most: int, deadline: float,
    steps: int = LONG,
) -> Clauses:  # fmt: skip
    """Returns the undominated clauses with weight of covered rows > price * (literals + 1) - slack. The list is
    incomplete after `most` clauses, `steps` additions, or the deadline (of time.monotonic())."""
    clauses, gain, _, complete = stoppable(
        _branched, literals, weight, price, longest, steps, most, slack, deadline=deadline
    )
    return Clauses(_sorted(clauses, gain, price, -slack), price, bool(complete))


def _sorted(clauses: Ints, gain: Floats, price: float, least: float = 0.0) -> list[tuple[int, ...]]:
    keys = [tuple(sorted(row[row >= 0].tolist())) for row in clauses]
    reduced = [value - price * (len(clause) + 1) for clause, value in zip(keys, gain.tolist(), strict=True)]
    order = np.argsort(-np.array(reduced), kind="stable").tolist()
    return [keys[index] for index in order if reduced[index] > least]


@compiled()
def _masses(
    literals: SpanLiterals, weight: Floats, rows: Ints, chosen: Ints, plus: Floats, minus: Floats, p: Floats, q: Floats
) -> tuple[float, float]:
    """Returns the rows' positive and negative weight; writes both for each chosen literal to p, q."""
    codes, start, feature, low, high, inverted = literals
    plus[:] = 0.0
    minus[:] = 0.0
    many = codes.shape[1]
    total_p, total_q = 0.0, 0.0
    for i in rows:
        w = weight[i]
        if w > 0:
            total_p += w
            for g in range(many):
                plus[codes[i, g]] += w
        elif w < 0:
            total_q -= w
            for g in range(many):
                minus[codes[i, g]] -= w
    for g in range(many):
        for c in range(start[g] + 1, start[g + 1]):
            plus[c] += plus[c - 1]
            minus[c] += minus[c - 1]
    for at in range(len(chosen)):
        k = chosen[at]
        x, y, first = 0.0, 0.0, start[feature[k]]
        if high[k] > first:
            x, y = plus[high[k] - 1], minus[high[k] - 1]
        if low[k] > first:
            x -= plus[low[k] - 1]
            y -= minus[low[k] - 1]
        if inverted[k]:
            x, y = total_p - x, total_q - y
        p[at], q[at] = x, y
    return total_p, total_q


@compiled()
def _holds(literals: SpanLiterals, i: int, k: int) -> bool:
    code = literals.codes[i, literals.feature[k]]
    return bool((literals.low[k] <= code < literals.high[k]) != literals.inverted[k])


@compiled()
def _implies(literals: SpanLiterals, k: int, other: int) -> Any:
    """Returns True if literal k surely implies `other`; misses some implications."""
    _, _, feature, low, high, inverted = literals
    if feature[k] != feature[other]:
        return False
    if inverted[k]:
        return inverted[other] and low[k] <= low[other] and high[k] >= high[other]
    if inverted[other]:
        return high[k] <= low[other] or low[k] >= high[other]
    return low[k] >= low[other] and high[k] <= high[other]


@compiled()
def _same(clause: Ints, other: Ints, length: int) -> Any:
    """Returns True if `clause` consists of the first `length` literals of `other`, in any order."""
    if length < len(clause) and clause[length] >= 0:
        return False
    for e in range(length):
        shared = False
        for f in range(length):
            shared = shared or (other[f] == clause[e])
        if not shared:
            return False
    return True


@compiled()
def _keep(clauses: Ints, gain: Floats, value: Floats, count: int, clause: Ints, length: int, g: float, v: float) -> Any:
    """Adds a clause to a bounded list of the best clauses. Returns the list's length."""
    worst, most = 0, len(gain)
    for e in range(count):
        if value[e] == v and _same(clauses[e], clause, length):
            return count
        if value[e] < value[worst]:
            worst = e
    if count < most:
        worst = count
        count += 1
    elif value[worst] >= v:
        return count
    clauses[worst] = -1
    clauses[worst, :length] = clause[:length]
    gain[worst], value[worst] = g, v
    return count


@compiled()
def _beam(
    literals: SpanLiterals, weight: Floats, price: float, longest: int, width: int, most: int
) -> tuple[Ints, Floats]:
    many, n, codes = len(literals.feature), len(literals.codes), literals.start[-1]
    plus, minus, p, q = np.zeros(codes), np.zeros(codes), np.zeros(many), np.zeros(many)
    clauses, gain, value, count = np.full((most, longest), -1), np.zeros(most), np.zeros(most), 0
    beam, chosen = np.full((1, longest), -1), np.arange(many)
    rows = np.empty(n, dtype=np.int64)
    for length in range(longest):
        grown, score, size = np.full((width, longest), -1), np.full(width, -np.inf), 0
        mass, loss = np.zeros(width), np.zeros(width)
        for b in range(len(beam)):
            inside = 0
            for i in range(n):
                ok = weight[i] != 0
                for e in range(length):
                    ok = ok and _holds(literals, i, beam[b, e])
                if ok:
                    rows[inside] = i
                    inside += 1
            _, total_q = _masses(literals, weight, rows[:inside], chosen, plus, minus, p, q)
            clause = beam[b].copy()
            for k in range(many):
                if (q[k] >= total_q - 1e-12 and length > 0) or p[k] <= price * (length + 2):
                    continue
                clause[length] = k
                v = p[k] - q[k] - price * (length + 2)
                if v > 1e-7:
                    count = _keep(clauses, gain, value, count, clause, length + 1, p[k] - q[k], v)
                worst, twin = 0, False
                for e in range(size):
                    if mass[e] == p[k] and loss[e] == q[k] and _same(grown[e], clause, length + 1):
                        twin = True
                    if score[e] < score[worst]:
                        worst = e
                if twin or (size == width and score[worst] >= v):
                    continue
                if size < width:
                    worst = size
                    size += 1
                grown[worst], score[worst], mass[worst], loss[worst] = clause, v, p[k], q[k]
        beam = grown[:size]
        if size == 0:
            break
    return clauses[:count], gain[:count]


@compiled()
def _followers(
    candidates: Ints, loss: Floats, removed: Floats, total_p: float, total_q: float, worth: float, depth: int,
    slack: float, tail: Ints, bound: Floats,
) -> int:  # fmt: skip
    """Writes literals that may extend the clause to `tail`, and upper bounds on the worth of such clauses to `bound`.
    Returns their number; 0 if no extension can pay."""
    count = len(candidates)
    order = np.argsort(loss[:count])
    base = total_p - total_q - worth * (depth + 1)
    freed, best, out = 0.0, -np.inf, 0
    for o in range(count):
        e = order[o]
        freed += max(0.0, removed[e] - worth)
        best = max(best, min(base + freed, total_p - worth * (depth + 3)) - loss[e])
    if best <= 1e-9 - slack:
        return 0
    for o in range(count - 1, -1, -1):
        e = order[o]
        upper = min(
            total_p - loss[e] - worth * (depth + 3),
            base - loss[e] + removed[e] - worth + freed - max(0.0, removed[e] - worth),
        )
        freed -= max(0.0, removed[e] - worth)
        # Bound -1: the literal cannot come next, but it may follow an earlier one.
        tail[out] = candidates[e]
        bound[out] = worth + max(0.0, upper) / (depth + 3) if upper > 1e-9 - slack else -1.0
        out += 1
    return out


@compiled()
def _branched(
    flag: Ints, literals: SpanLiterals, weight: Floats, price: float, longest: int, steps: int, most: int, slack: float
) -> tuple[Ints, Floats, float, bool]:
    """Searches clauses depth-first: the best ones, or all if `slack` is not 0."""
    many, n, codes = len(literals.feature), len(literals.codes), literals.start[-1]
    plus, minus, p, q = np.zeros(codes), np.zeros(codes), np.zeros(many), np.zeros(many)
    clauses, gain, value, count = np.full((most, longest), -1), np.zeros(most), np.zeros(most), 0
    clause = np.full(longest, -1)
    worth = price
    open_worth = 0.0  # upper bound on the worth of all branches not searched
    rows = np.empty((longest + 1) * n, dtype=np.int64)  # rows of the clause at each depth, concatenated
    first, past = np.zeros(longest + 2, dtype=np.int64), np.zeros(longest + 2, dtype=np.int64)
    for i in range(n):
        if weight[i] != 0:
            rows[past[0]] = i
            past[0] += 1
    tail, bound = np.zeros((longest + 1, many), dtype=np.int64), np.zeros((longest + 1, many))
    size, at = np.zeros(longest + 1, dtype=np.int64), np.zeros(longest + 1, dtype=np.int64)
    tail[0] = np.arange(many)
    size[0] = many
    depth, fresh, complete, nodes = 0, True, True, 0
    loss, removed = np.zeros(many), np.zeros(many)
    while depth >= 0:
        if fresh:  # prices all literals that may follow, and retains the useful ones
            fresh = False
            nodes += (past[depth] - first[depth]) * literals.codes.shape[1] + codes + size[depth]
            candidates = tail[depth, : size[depth]].copy()
            inside = rows[first[depth] : past[depth]]
            total_p, total_q = _masses(literals, weight, inside, candidates, plus, minus, p, q)
            for e in range(len(candidates)):
                v = p[e] - q[e] - price * (depth + 2)
                if v > 1e-7 - slack:
                    clause[depth] = candidates[e]
                    g = p[e] - q[e]
                    if slack == 0.0:
                        count = _keep(clauses, gain, value, count, clause, depth + 1, g, v)
                        worth = max(worth, g / (depth + 2))
                    elif count == most:
                        flag[0] = 1
                    elif q[e] < total_q - 1e-12 or depth == 0:
                        clauses[count, : depth + 1] = clause[: depth + 1]
                        gain[count] = g
                        count += 1
            survivors = 0
            at[depth], size[depth] = 0, 0
            if depth + 1 < longest:
                for e in range(len(candidates)):
                    if q[e] < total_q - 1e-12 and q[e] > 1e-12 and p[e] > worth * (depth + 3) + 1e-9 - slack:
                        candidates[survivors] = candidates[e]
                        loss[survivors], removed[survivors] = total_p - p[e], total_q - q[e]
                        survivors += 1
                size[depth] = _followers(
                    candidates[:survivors],
                    loss,
                    removed,
                    total_p,
                    total_q,
                    worth,
                    depth,
                    slack,
                    tail[depth],
                    bound[depth],
                )
        stop = flag[0] != 0 or nodes > steps
        if stop or at[depth] >= size[depth]:
            if stop:
                complete = False
                while at[depth] < size[depth]:
                    open_worth = max(open_worth, bound[depth, at[depth]])
                    at[depth] += 1
            depth -= 1
            continue
        index = at[depth]
        at[depth] += 1
        if bound[depth, index] < 0 or (slack == 0.0 and bound[depth, index] <= worth + 1e-12):
            continue
        literal = tail[depth, index]
        clause[depth] = literal
        begin = past[depth]
        end = begin
        for r in range(first[depth], past[depth]):
            if _holds(literals, rows[r], literal):
                rows[end] = rows[r]
                end += 1
        first[depth + 1], past[depth + 1] = begin, end
        out = 0
        for e in range(index + 1, size[depth]):
            other = tail[depth, e]
            if not _implies(literals, other, literal) and not _implies(literals, literal, other):
                tail[depth + 1, out] = other
                out += 1
        size[depth + 1] = out
        if out > 0:
            depth += 1
            fresh = True
    return clauses[:count], gain[:count], max(worth, open_worth), complete
