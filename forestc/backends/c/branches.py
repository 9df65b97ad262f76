"""The C layout `branches`: each tree is a function of nested ifs. It is usually the fastest layout, and the largest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from forestc.backends.c.trees import TreeContext, TreeText
from forestc.backends.c.types import constant, leaves_of
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import word_range
from forestc.forest.typed_sums import added, integer_type

HOT = 0.75  # share of a split's rows from which its larger side comes last
HOT_DEPTH = 8  # limits the depth of nested ifs at which hot sides come last


@dataclass(frozen=True)
class BranchesInC:
    """The C code of trees as functions of nested ifs."""

    context: TreeContext
    indices: list[int]
    starts: list[int]  # initial scores; empty if other code sets them

    def declarations(self) -> list[str]:
        return []

    def functions(self) -> list[TreeText]:
        texts = [self._tree(index) for index in self.indices]
        aggregate = self.context.forest.aggregate
        texts += [self._typed_addition()] if aggregate.score else []
        return texts if aggregate.norm == 1 else [*texts, self._typed_product()]

    def sums(self, into: str) -> list[str]:
        if self.context.forest.aggregate.score:
            return self._typed(into)
        if not self.context.forest.adds:
            return self._extremes(into)
        lines = [] if self.indices else ["(void)x;"]
        lines += [f"{into}[{output}] = {constant(value)};" for output, value in enumerate(self.starts)]
        for index in self.indices:
            outputs = self.context.forest.trees[index].outputs
            if len(outputs) == 1:
                target = f"{into}[{outputs[0]}]"
                lines.append(f"{target} = ({self.context.score})({target} + {self._name(index)}(x));")
            else:
                lines.append(f"{self._name(index)}(x, {into});")
        return lines

    def _typed(self, into: str) -> list[str]:
        """Returns C statements that add the trees in the order of a typed sum."""
        forest, add = self.context.forest, f"{self.context.prefix}_add"
        lines = []
        for output, bias in enumerate(forest.bias.tolist()):
            own = [self._name(i) + "(x)" for i, tree in enumerate(forest.trees) if output in tree.outputs]
            if forest.aggregate.order == "sequential":
                lines.append(f"{into}[{output}] = {constant(bias)};")
                lines += [f"{into}[{output}] = {add}({into}[{output}], {term});" for term in own]
            else:
                total = added(constant(bias), own, "tree", lambda a, b: f"{add}({a}, {b})")
                lines.append(f"{into}[{output}] = {total};")
            if forest.aggregate.norm != 1:
                lines.append(f"{into}[{output}] = {self.context.prefix}_times({into}[{output}]);")
        return lines

    def _typed_addition(self) -> TreeText:
        """Returns the C function that adds two scores, and saturates or wraps."""
        score, number = self.context.score, integer_type(self.context.forest.aggregate)
        span, turn = word_range(number, False), 1 << number.bits
        low, high = constant(span.low), constant(span.high)
        if number.overflow == "AP_SAT":
            below, above = low, high
        else:
            below, above = (f"({score})(sum {sign} {constant(turn)})" for sign in "+-")
        lines = [f"const {score} sum = ({score})(a + b);"]
        lines.append(f"return (sum < {low}) ? {below} : ((sum > {high}) ? {above} : sum);")
        return TreeText(f"{self.context.prefix}_add", score, f"{score} a, {score} b", lines)

    def _typed_product(self) -> TreeText:
        """Returns the C function that multiplies a score by the norm, and rounds, saturates or wraps."""
        score, number = self.context.score, integer_type(self.context.forest.aggregate)
        span, (factor, divisor) = word_range(number, False), self.context.forest.aggregate.norm.as_integer_ratio()
        places, raised = divisor.bit_length() - 1, 60  # 2^60 makes products positive, so that they can be shifted
        start = (1 << raised) + (divisor // 2 if number.rounding != "AP_TRN" else 0)
        lines = [f"uint64_t product = (uint64_t)(((int64_t)sum * {constant(factor)}) + INT64_C({start}));"]
        if number.rounding == "AP_RND_CONV" and places:
            exact = f"(product & UINT64_C({divisor - 1})) == UINT64_C(0)"
            odd = f"((product >> {places}u) & UINT64_C(1)) == UINT64_C(1)"
            lines += [f"if (({exact}) && ({odd})) {{", "    product -= UINT64_C(1);", "}"]
        least, most = (1 << raised - places) + span.low, span.high - span.low
        lines.append(f"const int64_t above = (int64_t)(product >> {places}u) - INT64_C({least});")
        low, high = constant(span.low), constant(span.high)
        if number.overflow == "AP_WRAP":
            lines.append(f"return ({score})((int64_t)((uint64_t)above & UINT64_C({most})) + {low});")
        else:
            lines += ["if (above < 0) {", f"    return {low};", "}"]
            lines.append(f"return above > {constant(most)} ? {high} : ({score})(above + {low});")
        return TreeText(f"{self.context.prefix}_times", score, f"{score} sum", lines)

    def _extremes(self, into: str) -> list[str]:
        """Returns C statements that set each score to its bias plus the largest (for min, smallest) value of a tree."""
        forest, largest = self.context.forest, self.context.forest.aggregate.kind == "max"
        starts, lines, called = [], [], set()
        for output, bias in enumerate(forest.bias.tolist()):
            used = {i: leaves_of(tree, output) for i, tree in enumerate(forest.trees) if output in tree.outputs}
            start = max(map(min, used.values())) if largest else min(map(max, used.values()))
            ends = {value for held in used.values() for value in held if (value > start if largest else value < start)}
            asked = [index for index, held in used.items() if held & ends]
            target = f"{into}[{output}]"
            starts.append(f"{target} = {constant(bias + start)};")
            if len(ends) == 1 and all(len(forest.trees[index].outputs) == 1 for index in asked):
                (end,) = ends
                calls = [f"{self._name(index)}(x) == {constant(end)}" for index in asked]
                calls = [f"({call})" for call in calls] if len(calls) > 1 else calls
                lines += [f"if ({calls[0]}", *(f"    || {call}" for call in calls[1:])]
                lines[-1] += ") {"
                lines += [f"    {target} = {constant(bias + end)};", "}"]
                continue
            for index in asked:
                if len(forest.trees[index].outputs) > 1:
                    called.add(index)
                    continue
                lines.append(f"value = ({self.context.score})({self._name(index)}(x) + {constant(bias)});")
                lines += self._taken(target, "value")
        lines += [f"{self._name(index)}(x, {into});" for index in sorted(called)]
        declared = [f"{self.context.score} value;"] if any("value = " in line for line in lines) else []
        return [*declared, *([] if lines else ["(void)x;"]), *starts, *lines]

    def _taken(self, target: str, value: str) -> list[str]:
        """Returns C statements that replace the score by the value if the value is larger (for min, smaller)."""
        sign = ">" if self.context.forest.aggregate.kind == "max" else "<"
        return [f"if ({value} {sign} {target}) {{", f"    {target} = {value};", "}"]

    def _name(self, index: int) -> str:
        return f"{self.context.prefix}_tree_{index}"

    def _tree(self, index: int) -> TreeText:
        forest, score = self.context.forest, self.context.score
        tree, single = forest.trees[index], len(forest.trees[index].outputs) == 1
        body = nested(forest, index, self.context.conditions.of, lambda node: self._leaf(tree, node, single))
        body = [f"{score} leaf;", *body, "return leaf;"] if single else body
        # An unused argument gets a `(void)` statement, which silences compilers.
        for argument in ("x",) if single else ("x", "scores"):
            if not any(f"{argument}[" in line or f"{argument}->" in line for line in body):
                body.insert(0, f"(void){argument};")
        x = f"const {self.context.inputs.type} *x"
        result, takes = (score, x) if single else ("void", f"{x}, {score} *scores")
        return TreeText(self._name(index), result, takes, body)

    def _leaf(self, tree: Tree, node: int, single: bool) -> list[str]:
        values = tree.values[tree.leaf[node]].tolist()
        if single:
            return [f"leaf = {constant(values[0])};"]
        forest, lines = self.context.forest, list[str]()
        for output, value in zip(tree.outputs, values, strict=True):
            if not forest.adds:
                lines += self._taken(f"scores[{output}]", constant(value + int(forest.bias[output])))
            elif value:
                lines.append(f"scores[{output}] = ({self.context.score})(scores[{output}] + {constant(value)});")
        return lines or ["/* This leaf adds nothing. */"]


def branches(context: TreeContext) -> BranchesInC:
    """Returns the trees as C in the layout `branches`. Trees without splits become part of the initial scores."""
    starts = [int(bias) for bias in context.forest.bias]
    varying = []
    for index, tree in enumerate(context.forest.trees):
        if len(tree.inner) or context.forest.aggregate.score:
            varying.append(index)
        else:
            for column, output in enumerate(tree.outputs):
                starts[output] += int(tree.values[tree.leaf[0], column])
    return BranchesInC(context, varying, starts)


def nested(
    forest: Forest, index: int, condition_of: Callable[[int], str], leaf: Callable[[int], list[str]]
) -> list[str]:
    """Returns a tree as nested if statements in C.
    condition_of: returns a condition as C, given its index.
    leaf: returns the statements of a leaf, given its node."""
    tree, conditions = forest.trees[index], forest.conditions.node_conditions[index].tolist()
    sizes = _subtree_sizes(tree)
    cover = [0.0] * tree.size if tree.cover is None else tree.cover.tolist()
    body: list[str] = []
    stack = [("", 0, 0)]  # (C before the node, node, depth)
    while stack:
        before, node, depth = stack.pop()
        indent = "    " * depth
        if tree.left[node] == LEAF:
            inner = indent + "    " * bool(before)
            lines = [inner + line for line in leaf(node)]
            body += [f"{indent}{before}{{", *lines, f"{indent}}}"] if before else lines
            continue
        left, right = int(tree.left[node]), int(tree.right[node])
        condition = condition_of(conditions[node])
        hot = max(cover[left], cover[right]) >= HOT * cover[node] > 0 and depth < HOT_DEPTH
        if cover[left] < cover[right] if hot else sizes[left] > sizes[right]:
            left, right = right, left
            condition = _negated(condition)
        body.append(f"{indent}{before}if ({condition}) {{")
        stack += [("} else ", right, depth), ("", left, depth + 1)]
    return body


def _negated(condition: str) -> str:
    plain_comparison = "||" not in condition and "&&" not in condition and condition.count(" < ") == 1
    return condition.replace(" < ", " >= ") if plain_comparison else f"!({condition})"


def _subtree_sizes(tree: Tree) -> list[int]:
    sizes = [1] * tree.size
    for level in reversed(tree.levels):
        for node in level.tolist():
            if tree.left[node] != LEAF:
                sizes[node] += sizes[int(tree.left[node])] + sizes[int(tree.right[node])]
    return sizes
