"""share-terms: ANDs and ORs that several clauses have in common are computed once.

The matrix of clauses and literals is covered by bicliques, shared ANDs, by column generation
(`forestc.algorithms.term_sharing`, after R. Kovacs, O. Gunluk and R. Hauser, "Binary Matrix Factorisation via Column
Generation", AAAI 2021); what clauses of one OR have in common is taken out of it (`term_factoring`). The trees stay as
they are: the result is an annotation that lowering builds gates by, and that the forest's verifier multiplies out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from forestc.algorithms.term_factoring import factor
from forestc.algorithms.term_sharing import share_terms
from forestc.errors import ModelError, OptionError
from forestc.forest.builder import changed
from forestc.forest.ir import Forest
from forestc.parameters import Choice, Parameter
from forestc.passes.base import PassResult
from forestc.passes.judge import Judge
from forestc.passes.option_rules import FLAG, Rule, check_options, is_number
from forestc.passes.promises import Exact
from forestc.passes.share_terms.rule_matrix import RuleMatrix, of_circuit, of_sharing, rule_matrix
from forestc.rows.batches import Rows

SHARING = 0.8  # share of the time for shared ANDs
TRIES = 60  # random restarts of factoring
SEED = 0

_RULES = {
    "factor": FLAG,
    "seconds": Rule(lambda value: is_number(value) and 0 < value < 1e6, "use a number of seconds above 0"),
}


@dataclass(frozen=True)
class ShareTerms:
    """Computes ANDs and ORs that several clauses of rules have in common once. After extract-rules, as the last pass.

    Promises: exact: the same scores and decisions for every input.

    factor: whether what clauses of one OR have in common is also taken out of it, as in a(b + c) instead of ab + ac;
    false: shared ANDs alone, each clause by itself.
    seconds: time limit; only results that reach it depend on the machine's speed.
    """

    factor: bool = True
    seconds: float = 20
    name: ClassVar[str] = "share-terms"
    space: ClassVar[tuple[Parameter, ...]] = (Choice("factor", (True, False)),)

    def __post_init__(self) -> None:
        check_options(self, _RULES)

    def run(self, forest: Forest, rows: Rows | None, judge: Judge | None = None) -> PassResult:
        """Exact. Raises ModelError for a forest that is not quantised, OptionError for one of trees none of which is an
        AND of conditions. A forest of constants alone, as of rules that never hold, is left as it is."""
        if not forest.quantised:
            raise ModelError("share-terms works on integer forests", do="put quantize before it")
        matrix = rule_matrix(forest)
        if matrix is None and forest.depth:
            raise OptionError(
                "share-terms: no tree is an AND of conditions, so no terms can be shared",
                do="put extract-rules before it, or remove it from the passes",
            )
        if matrix is None or not matrix.trees:
            return PassResult(forest, (Exact(),), {"clauses": 0, "gates": [0, 0]})
        return self._shared(forest, matrix)

    def _shared(self, forest: Forest, matrix: RuleMatrix) -> PassResult:
        until = time.monotonic() + self.seconds
        found = share_terms(matrix.matrix, time_limit=SHARING * self.seconds, seed=SEED)
        if found.interrupted:
            raise KeyboardInterrupt
        flat, gates = matrix.flat + matrix.ors, found.gates + matrix.ors
        shared = of_sharing(matrix, found)
        if self.factor:
            starts = [matrix.flat_start, matrix.shared_start(found)]
            circuit = factor(starts, len(matrix.literals), tries=TRIES, seed=SEED, until=until)
            if circuit.gates < gates:
                shared, gates = of_circuit(matrix, circuit), circuit.gates
        report: dict[str, Any] = {
            "clauses": len(matrix.trees),
            "literals": len(matrix.literals),
            "gates": [flat, gates],
            "and_gates": [matrix.flat, found.gates],
            "and_gates_greedy": found.greedy,
            "and_gates_bound": found.bound,
            "and_gates_optimal": found.optimal,
            "cover_gates": found.cover_gates,
            "cover_gates_bound": found.cover_bound,
            "terms": len(shared.terms),
            "time_limit_reached": found.late or time.monotonic() > until,
        }
        return PassResult(changed(forest, shared=shared) if gates < flat else forest, (Exact(),), report)
