"""States questions about netlists and trees as bit-vector terms, and asks bitwuzla, an SMT solver.

The terms follow the definitions in `forestc.netlist.ir` and `forestc.forest.ir`, and share no code with the lowering.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, assert_never

from forestc.errors import PYTHON, MissingToolError
from forestc.forest.conditions import NO_SET
from forestc.forest.ir import LEAF, Decision, Forest, Tree
from forestc.forest.numbers import Category, word_range
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Net, Netlist, SumCell, WordType, linear, reads

Term: TypeAlias = Any
Counterexample: TypeAlias = dict[int, int]  # the word of each feature, by feature index
Model: TypeAlias = dict[str, int]  # the value of each free word, by its name


def no_bitwuzla() -> MissingToolError:
    """Returns the error for a missing bitwuzla. On a Mac before macOS 15 the extra leaves it out."""
    mac = " (on a Mac it needs macOS 15)" * (sys.platform == "darwin")
    return MissingToolError("bitwuzla is not installed", where=PYTHON, do=f'pip install "forestc[prove]"{mac}')


def bitwuzla_library() -> Any:
    """Returns the module bitwuzla. Raises MissingToolError if it is not installed."""
    try:
        import bitwuzla
    except ImportError:
        raise no_bitwuzla() from None
    return bitwuzla


class Terms:
    """Builds terms of bit vectors, and asks bitwuzla. seconds: time limit of a question."""

    def __init__(self, seconds: float = 600) -> None:
        self.lib: Any = bitwuzla_library()
        self.kind: Any = self.lib.Kind
        self.terms: Any = self.lib.TermManager()
        self.seconds = seconds

    def make(self, kind: object, terms: list[Term], numbers: list[int] | None = None) -> Term:
        return self.terms.mk_term(kind, terms, numbers or [])

    def constant(self, value: int, width: int) -> Term:
        return self.terms.mk_bv_value(self.terms.mk_bv_sort(width), value & ((1 << width) - 1))

    def model(self, conditions: Sequence[Term], shown: Mapping[str, Term]) -> Model | None:
        """Returns the values of the words `shown` in a case where all conditions hold; None if there is no such case.
        Raises TimeoutError."""
        options = self.lib.Options()
        options.set(self.lib.Option.PRODUCE_MODELS, True)
        options.set(self.lib.Option.TIME_LIMIT_PER, int(self.seconds * 1000))
        solver = self.lib.Bitwuzla(self.terms, options)
        for condition in conditions:
            solver.assert_formula(condition)
        answer = solver.check_sat()
        if answer == self.lib.Result.UNSAT:
            return None
        if answer != self.lib.Result.SAT:
            raise TimeoutError(f"no answer in {self.seconds:.0f} s")
        return {name: int(solver.get_value(term).value(10)) for name, term in shown.items()}


class Solver(Terms):
    """Builds terms over a forest and its netlist. Its questions are about words within the features' ranges."""

    def __init__(self, forest: Forest, netlist: Netlist, seconds: float = 600) -> None:
        super().__init__(seconds)
        self.forest, self.netlist = forest, netlist
        self.limits: list[Term] = []
        self.names: dict[str, tuple[Term, bool]] = {}
        self.net_terms: dict[Net, Term] = {}
        self.features: list[tuple[Term, WordType]] = []
        types = {cell.port.index: netlist.types[net] for net, cell in netlist.inputs if cell.port.kind == "word"}
        for index, feature in enumerate(forest.features):
            word = types[index]
            span = word_range(feature.number, feature.missing)
            self.features.append((self.word(f"x{index}", word, span.low, span.top), word))

    def word(self, name: str, word: WordType, low: int | None = None, high: int | None = None) -> Term:
        term = self.terms.mk_const(self.terms.mk_bv_sort(word.width), name)
        self.names[name] = term, word.signed
        if low is not None and low > word.low:
            self.limits.append(self.make(self.kind.NOT, [self.below(term, low, word)]))
        if high is not None and high < word.high:
            self.limits.append(self.below(term, high + 1, word))
        return term

    def below(self, term: Term, limit: int, word: WordType) -> Term:
        """Returns the condition term < limit. The limit may lie outside the word's range."""
        if limit <= word.low or limit > word.high:
            return self.terms.mk_true() if limit > word.high else self.terms.mk_false()
        return self.less(term, self.constant(limit, word.width), word.signed)

    def less(self, a: Term, b: Term, signed: bool) -> Term:
        return self.make(self.kind.BV_SLT if signed else self.kind.BV_ULT, [a, b])

    def equals(self, term: Term, value: int, word: WordType) -> Term:
        return self.make(self.kind.EQUAL, [term, self.constant(value, word.width)])

    def choose(self, condition: Term, a: int, b: int, word: WordType) -> Term:
        return self.make(self.kind.ITE, [condition, self.constant(a, word.width), self.constant(b, word.width)])

    def bit(self, condition: Term) -> Term:
        return self.make(self.kind.ITE, [condition, self.constant(1, 1), self.constant(0, 1)])

    def holds(self, bit: Term) -> Term:
        return self.make(self.kind.EQUAL, [bit, self.constant(1, 1)])

    def any(self, terms: list[Term]) -> Term:
        if not terms:
            return self.terms.mk_false()
        return terms[0] if len(terms) == 1 else self.make(self.kind.OR, terms)

    def inverted(self, term: Term) -> Term:
        return self.make(self.kind.BV_NOT, [term])

    def sign_extended(self, term: Term, width: int) -> Term:
        return self.extended(term, WordType(term.sort().bv_size(), True), width)

    def resized(self, term: Term, word: WordType, width: int) -> Term:
        """Returns a word extended or cut to `width` bits."""
        return self.low_bits(term, width) if width < word.width else self.extended(term, word, width)

    def extended(self, term: Term, word: WordType, width: int) -> Term:
        more = width - word.width
        if not more:
            return term
        kind = self.kind.BV_SIGN_EXTEND if word.signed else self.kind.BV_ZERO_EXTEND
        return self.make(kind, [term], [more])

    def plus(self, term: Term, value: int, width: int) -> Term:
        return self.make(self.kind.BV_ADD, [term, self.constant(value, width)]) if value else term

    def low_bits(self, term: Term, width: int) -> Term:
        return self.make(self.kind.BV_EXTRACT, [term], [width - 1, 0])

    def joined(self, terms: Sequence[Term]) -> Term:
        word = terms[0]
        for term in terms[1:]:
            word = self.make(self.kind.BV_CONCAT, [term, word])
        return word

    def tree(self, tree: Tree, values: Any, word: WordType) -> Term:
        """Returns a term for a tree's value over the features. values: the value of each leaf, by node."""
        terms: dict[int, Term] = {}
        for level in reversed(tree.levels):
            for node in level.tolist():
                if tree.left[node] == LEAF:
                    terms[node] = self.constant(int(values[node]), word.width)
                else:
                    below = terms.pop(int(tree.left[node])), terms.pop(int(tree.right[node]))
                    terms[node] = self.make(self.kind.ITE, [self.condition(tree, node), *below])
        return terms[0]

    def condition(self, tree: Tree, node: int) -> Term:
        """Returns, as a term, the condition under which a node sends the row left."""
        index = int(tree.feature[node])
        term, word = self.features[index]
        feature = self.forest.features[index]
        missing = word_range(feature.number, feature.missing).missing
        chosen = int(tree.set_index[node])
        if chosen == NO_SET:
            left = self.below(term, int(tree.threshold[node]), word)
        elif isinstance(feature.number, Category):
            inside = [int(member) for member in tree.sets[chosen]]
            left = self.any([self.equals(term, member, word) for member in inside if word.low <= member <= word.high])
        else:
            left = self.terms.mk_false()
            for cut in tree.sets[chosen]:  # a word is inside if an odd number of cuts is at or below it
                above = self.make(self.kind.NOT, [self.below(term, int(cut), word)])
                left = self.make(self.kind.XOR, [left, above])
        if missing is None:
            return left
        side = self.terms.mk_true() if tree.missing_left[node] else self.terms.mk_false()
        return self.make(self.kind.ITE, [self.equals(term, missing, word), side, left])

    def operand(self, operand: Net | ir.Const, cuts: Mapping[Net, Term]) -> Term:
        return self.constant(operand.value, operand.width) if isinstance(operand, ir.Const) else self.net(operand, cuts)

    def net(self, net: Net, cuts: Mapping[Net, Term]) -> Term:
        """Returns a net's value as a term over the features; a register has its input's value. cuts: terms that replace
        nets."""
        net_terms = self.net_terms if not cuts else dict(cuts)
        stack = [net]
        while stack:
            at = stack[-1]
            missing = [a for a in reads(self.netlist.cells[at]) if a not in net_terms] if at not in net_terms else []
            if missing:
                stack += missing
                continue
            if at not in net_terms:
                net_terms[at] = self.cell(at, self.netlist.cells[at], net_terms)
            stack.pop()
        return net_terms[net]

    def cell(self, net: Net, cell: Cell, net_terms: Mapping[Net, Term]) -> Term:
        types, kind = self.netlist.types, self.kind
        if isinstance(cell, SumCell):
            terms, constant = linear(cell)
            total = self.constant(constant, types[net].width)
            for a, factor in terms:
                addend = self.resized(net_terms[a], types[a], types[net].width)
                addend = self.make(kind.BV_MUL, [addend, self.constant(factor, types[net].width)])
                total = self.make(kind.BV_ADD, [total, addend])
            return total
        match cell:
            case ir.Const(value, width):
                return self.constant(value, width)
            case ir.Input(port):
                if port.kind != "word":
                    raise ValueError(f"{port.name} is no feature")
                return self.features[port.index][0]
            case ir.Less(a, threshold):
                return self.bit(self.below(net_terms[a], threshold, types[a]))
            case ir.InSet(a, members):
                return self.bit(self.any([self.equals(net_terms[a], member, types[a]) for member in members]))
            case ir.Not(a):
                return self.make(kind.BV_NOT, [net_terms[a]])
            case ir.Slice(a, low, width):
                return self.make(kind.BV_EXTRACT, [net_terms[a]], [low + width - 1, low])
            case ir.And(a, b) | ir.Or(a, b):
                return self.make(kind.BV_AND if isinstance(cell, ir.And) else kind.BV_OR, [net_terms[a], net_terms[b]])
            case ir.Mux(select, a, b):
                return self.make(kind.ITE, [self.holds(net_terms[select]), net_terms[a], net_terms[b]])
            case ir.Compare(a, b):
                return self.bit(self.less(net_terms[a], net_terms[b], types[a].signed))
            case ir.Register(a):
                return net_terms[a]
            case _:
                assert_never(cell)

    def differ(self, a: Term, b: Term) -> Model | None:
        """Returns values of the free words in a case where two terms differ; None if they never differ. Raises
        TimeoutError."""
        return self.ask(self.make(self.kind.DISTINCT, [a, b]))

    def wrong_class(
        self, label: Term, word: WordType, scores: list[Term], decision: Decision, shift: int
    ) -> Model | None:
        """Returns values of the free words for which `label` is not the class decided by `scores`; None if there are
        none. shift: constant added to all scores. Raises TimeoutError."""
        if decision.kind == "threshold":
            limit = self.constant(int(decision.threshold) + shift, scores[-1].sort().bv_size())
            above = self.make(self.kind.NOT, [self.less(scores[-1], limit, True)])
            return self.differ(label, self.extended(self.bit(above), WordType(1, False), word.width))
        last = decision.ties == "last"
        wrong = []
        for kind, score in enumerate(scores):
            beaten = []
            for other, rival in enumerate(scores):
                if other != kind:
                    wins_ties = other > kind if last else other < kind
                    beaten.append(
                        self.make(self.kind.NOT, [self.less(rival, score, True)])
                        if wins_ties
                        else self.less(score, rival, True)
                    )
            if beaten and kind <= word.high:
                wrong.append(self.make(self.kind.AND, [self.equals(label, kind, word), self.any(beaten)]))
        if word.high >= len(scores):  # nor may the label be a number that is no class
            wrong.append(self.make(self.kind.NOT, [self.below(label, len(scores), word)]))
        return self.ask(self.any(wrong))

    def runner_up(self, scores: list[Term], decision: Decision) -> tuple[Term, Term]:
        """Returns the second best class of signed scores, and the distance of the scores, as terms of their width."""
        make, kind, width = self.make, self.kind, scores[0].sort().bv_size()
        if decision.kind == "threshold":
            above = make(kind.BV_SUB, [scores[-1], self.constant(int(decision.threshold), width)])
            below = self.less(above, self.constant(0, width), True)
            second = self.choose(below, 1, 0, WordType(width, True))
            return second, make(kind.ITE, [below, make(kind.BV_NEG, [above]), above])
        order = [*enumerate(scores)][:: -1 if decision.ties == "last" else 1]
        terms = [(self.constant(index, width), score) for index, score in order]
        ahead = self.less(terms[0][1], terms[1][1], True)
        best, second = (
            tuple(make(kind.ITE, [ahead, a, b]) for a, b in zip(*pair, strict=True))
            for pair in (terms[1::-1], terms[:2])
        )
        for each in terms[2:]:  # in a tie, the earlier class stays
            first, after = (self.less(other[1], each[1], True) for other in (best, second))
            third = [make(kind.ITE, [after, a, b]) for a, b in zip(each, second, strict=True)]
            second = tuple(make(kind.ITE, [first, a, b]) for a, b in zip(best, third, strict=True))
            best = tuple(make(kind.ITE, [first, a, b]) for a, b in zip(each, best, strict=True))
        return second[0], make(kind.BV_SUB, [best[1], second[1]])

    def ask(self, wrong: Term) -> Model | None:
        """Returns values of the free words for which a condition holds; None if there are none. Raises TimeoutError."""
        model = self.model([*self.limits, wrong], {name: term for name, (term, _) in self.names.items()})
        if model is None:
            return None
        widths = {name: term.sort().bv_size() if signed else 0 for name, (term, signed) in self.names.items()}
        return {
            name: value - (value >> (width - 1) << width) if (width := widths[name]) else value
            for name, value in model.items()
        }

    def described(self, model: Model) -> str:
        return ", ".join(f"{name}={value}" for name, value in model.items())

    def feature_words(self, model: Model) -> Counterexample:
        return {index: model[f"x{index}"] for index in range(len(self.features))}
