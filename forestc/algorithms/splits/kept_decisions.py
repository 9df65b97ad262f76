"""Changes integer leaves so that rows keep their decisions, and removes needless splits. A row's slack is the number of
units of score by which its decision holds. Method: breakout local search (Morris, AAAI 1993)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forestc.algorithms.arrays import Int32s, Ints
from forestc.algorithms.splits.leaf_fitting import Sorted, fill_scores
from forestc.algorithms.splits.state import Shape, State, mean_leaf, merge, rows_of, tree_of
from forestc.system.compiled import compiled

VISITS = 30  # rows that `mend_leaves` examines per row and tree
MOST_VISITS = 1 << 28  # rows that `mend_leaves` examines in all at most
UNBOUNDED = 1 << 40  # units of score, more than any sum of leaves


class Decided(NamedTuple):
    """Rows with decisions to keep."""

    label: Ints  # (rows,) class to decide
    scores: Ints  # (rows, outputs); a single output decides 1 at 0 or more
    last: bool  # True if the last of equal scores wins


class MovableLeaves(NamedTuple):
    """Trees with leaves that may change; `leaf_fitting.Trees` describes the first fields."""

    leaf: Int32s
    value: Ints
    start: Ints
    outputs: Ints
    bias: Ints  # (outputs,)
    largest: int  # largest leaf value; the smallest is 0


@compiled()
def slack_against(scores: Ints, label: int, rival: int, last: bool) -> Any:
    """Returns by how many units of score class `label` wins against class `rival`, negative if `label` loses."""
    if len(scores) == 1:
        return scores[0] if label == 1 else -1 - scores[0]
    wins_ties = label > rival if last else label < rival
    return scores[label] - scores[rival] - (0 if wins_ties else 1)


@compiled()
def slack_of(scores: Ints, label: int, last: bool) -> Any:
    """Returns by how many units of score class `label` wins against all others, negative if it loses."""
    if len(scores) == 1:
        return scores[0] if label == 1 else -1 - scores[0]
    least = UNBOUNDED
    for rival in range(len(scores)):
        if rival != label:
            least = min(least, slack_against(scores, label, rival, last))
    return least


@compiled(lambda decided: decided.scores.size)
def slacks(decided: Decided) -> Any:
    """Returns for each row, (rows,), by how many units of score its decision holds, negative for a wrong decision."""
    slack = np.empty(len(decided.label), np.int64)
    for row in range(len(slack)):
        slack[row] = slack_of(decided.scores[row], decided.label[row], decided.last)
    return slack


@compiled()
def _moved_slack(scores: Ints, label: int, last: bool, slack: int, output: int, step: int) -> Any:
    """Returns a row's slack after one output's score grew by `step`."""
    if len(scores) == 1:
        return slack + step if label == 1 else slack - step
    if output == label:
        return slack + step
    against = slack_against(scores, label, output, last)
    if step > 0 or against > slack:
        return min(slack, against - step)
    scores[output] += step
    least = slack_of(scores, label, last)
    scores[output] -= step
    return least


@compiled()
def _change(decided: Decided, slack: Ints, weight: Ints, rows: Int32s, output: int, step: int) -> Any:
    """Returns the rise of the weighted sum of max(0, -slack) over `rows` if one output's scores grow by `step`."""
    change = 0
    for row in rows:
        before = slack[row]
        after = _moved_slack(decided.scores[row], decided.label[row], decided.last, before, output, step)
        change += weight[row] * (min(before, 0) - min(after, 0))
    return change


@compiled()
def _copy(values: Ints, target: Ints) -> None:
    for k in range(len(values)):
        target[k] = values[k]


@compiled(lambda leaves, rows, decided, visits, seed: visits)
def mend_leaves(leaves: MovableLeaves, rows: Sorted, decided: Decided, visits: int, seed: int) -> Any:
    """Changes leaves, biases and `decided.scores`, in place, to reduce the number of rows that are decided wrongly.
    Returns this number. visits: approximate number of rows to examine."""
    count = len(decided.label)
    slack, weight = slacks(decided), np.ones(count, np.int64)
    violated, position = np.empty(count, np.int64), np.full(count, -1)
    wrong = 0
    for row in range(count):
        if slack[row] < 0:
            violated[wrong], position[row] = row, wrong
            wrong += 1
    least, best_value, best_bias = wrong, leaves.value.copy(), leaves.bias.copy()
    all_rows = np.empty(count, np.int32)
    for row in range(count):
        all_rows[row] = row
    outputs = len(leaves.bias)
    state = np.uint64(seed * 2 + 1)
    while wrong and visits > 0:
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        row = violated[np.int64(state >> np.uint64(33)) % wrong]
        label = decided.label[row]
        best, chosen = 0, -2
        chosen_output: Any = np.int64(0)  # numba would compile `_moved_slack` again for plain constants
        chosen_step: Any = np.int64(0)
        for tree in range(-1, len(leaves.outputs)):  # -1: the biases
            first = 0 if tree < 0 else leaves.outputs[tree, 0]
            width = outputs if tree < 0 else leaves.outputs[tree, 1] - first
            slot = np.int64(0 if tree < 0 else leaves.leaf[tree, row])
            reached = all_rows if tree < 0 else rows_of(rows, tree, slot)
            for k in range(width):
                output = first + k
                if outputs == 1:
                    step = 1 if label == 1 else -1
                elif output == label:
                    step = 1
                elif slack_against(decided.scores[row], label, output, decided.last) < 0:
                    step = -1
                else:
                    continue
                if tree >= 0 and not 0 <= leaves.value[leaves.start[tree] + slot * width + k] + step <= leaves.largest:
                    continue
                change = _change(decided, slack, weight, reached, output, step)
                visits -= len(reached)
                if change < best:
                    best, chosen, chosen_output, chosen_step = change, tree, output, step
        if chosen == -2:
            for at in range(wrong):
                weight[violated[at]] += 1
            visits -= wrong
            continue
        reached = all_rows
        if chosen < 0:
            leaves.bias[chosen_output] += chosen_step
        else:
            first = leaves.outputs[chosen, 0]
            slot, width = np.int64(leaves.leaf[chosen, row]), leaves.outputs[chosen, 1] - first
            leaves.value[leaves.start[chosen] + slot * width + chosen_output - first] += chosen_step
            reached = rows_of(rows, chosen, slot)
        for moved in reached:
            scores = decided.scores[moved]
            slack[moved] = _moved_slack(
                scores, decided.label[moved], decided.last, slack[moved], chosen_output, chosen_step
            )
            scores[chosen_output] += chosen_step
            if slack[moved] < 0 and position[moved] < 0:
                violated[wrong], position[moved] = moved, wrong
                wrong += 1
            elif slack[moved] >= 0 and position[moved] >= 0:
                wrong -= 1
                final = violated[wrong]
                violated[position[moved]], position[final] = final, position[moved]
                position[moved] = -1
        if wrong < least:
            least = wrong
            _copy(leaves.value, best_value)
            _copy(leaves.bias, best_bias)
    if wrong > least:
        _copy(best_value, leaves.value)
        _copy(best_bias, leaves.bias)
        fill_scores(leaves.leaf, leaves.start, leaves.value, leaves.outputs, leaves.bias, decided.scores)
    return least


def visits_for(rows: int, trees: int) -> int:
    return min(MOST_VISITS, VISITS * rows * max(1, trees))


@compiled(lambda shape, state, leaves, *_: leaves.leaf.size)
def collapse(shape: Shape, state: State, leaves: MovableLeaves, rows: Sorted, decided: Decided, order: Ints) -> Any:
    """Turns subtrees into leaves, in place, if all decisions are kept. Returns how many splits were removed. All
    decisions must be right at first; `leaves.value` must be `state.value`."""
    removed = 0
    for split in order:
        if not state.alive[split]:
            continue
        tree, base, output, width = tree_of(shape, split)
        slots = range(shape.first[split], shape.last[split])
        chosen = mean_leaf(shape, state, rows, split)
        if width == 1:
            low, high = 0, leaves.largest
            for slot in slots:
                value = state.value[base + slot]
                for row in rows_of(rows, tree, slot):
                    scores, label = decided.scores[row], decided.label[row]
                    if len(scores) == 1 and label != 1:
                        high = min(high, value + slack_of(scores, label, decided.last))
                    elif len(scores) == 1 or label == output:
                        low = max(low, value - slack_of(scores, label, decided.last))
                    else:
                        high = min(high, value + slack_against(scores, label, output, decided.last))
                if low > high:
                    break
            if low > high:
                continue
            chosen[0] = min(max(chosen[0], low), high)
        elif not _all_keep(state, rows, decided, tree, base, output, slots, chosen):
            continue
        for slot in slots:
            for k in range(width):
                step = chosen[k] - state.value[base + slot * width + k]
                if step != 0:
                    for row in rows_of(rows, tree, slot):
                        decided.scores[row, output + k] += step
        removed += merge(shape, state, split, chosen)
    return removed


@compiled()
def _all_keep(
    state: State, rows: Sorted, decided: Decided, tree: int, base: int, output: int, slots: range, chosen: Ints
) -> Any:  # fmt: skip
    """Returns True if no row's decision turns wrong when the leaves take the values `chosen`."""
    width = len(chosen)
    outputs = decided.scores.shape[1]
    scores, steps = np.empty(outputs, np.int64), np.empty(width, np.int64)
    for slot in slots:
        moves = False
        for k in range(width):
            steps[k] = chosen[k] - state.value[base + slot * width + k]
            moves = moves or steps[k] != 0
        if not moves:
            continue
        for row in rows_of(rows, tree, slot):
            for k in range(outputs):
                scores[k] = decided.scores[row, k]
            for k in range(width):
                scores[output + k] += steps[k]
            if slack_of(scores, decided.label[row], decided.last) < 0:
                return False
    return True
