"""The results of a check and of its engines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from forestc.backends.table import RUNNERS, SIMULATOR
from forestc.checks.agreement import Agreement, quality
from forestc.checks.coverage import ALL, CoverageFigures
from forestc.checks.proof import Proof
from forestc.errors import CheckError, opt
from forestc.forest.summary import counted, html_table
from forestc.manifest.notebook import shown_as

HEADS = ("what", "result", "on")  # names what `CheckResult.answers` holds
VERDICTS = {"proved": "proved for every input", "refuted": "refuted", "undecided": "not proved, not refuted"}
# What can be done about a design that the proof can't decide.
UNDECIDED = f"check without {opt.prove}: vectors compare the design; docs/explanation/proofs.md says where proofs end"


@dataclass
class EngineResult:
    """The result of one engine."""

    tool: str = ""
    vectors: int = 0  # number of vectors that ran
    differences: int | None = None  # vectors with wrong results; None if the engine did not run
    seconds: float = 0.0
    why: str = ""  # reason why the engine did not run
    first: str = ""  # describes the first difference
    left_out: int = 0  # number of rows outside the C types of the inputs
    unfit: str = ""  # describes the first row left out


@dataclass(frozen=True)
class CheckResult:
    """Result of `check`. As text it is the tables of the command line.

    Attributes
    ----------
    engines : dict of str to EngineResult
        The result of each engine, by its name.
    vectors : dict of str to int
        Number of vectors by origin: rows, boundary, random.
    agreement : Agreement, optional
        Agreement of the quantized forest with the model on the rows; None without rows.
    coverage : dict
        Counts of the leaves, nodes and sides of comparators that the vectors of each origin reached.
    proof : Proof, optional
        The proofs, if they were requested.
    changed : tuple of str
        Files that changed after they were written.
    figures : dict
        The figures of `forestc check --json`.
    notes : tuple of str
        Notes for the user, such as that check.json could not be written.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y)
    >>> result = forestc.check("iris", X, label=y, engines=["netlist"])
    >>> result.ok, result.engines["netlist"].differences
    (True, 0)
    """

    engines: dict[str, EngineResult]
    vectors: dict[str, int]
    agreement: Agreement | None
    coverage: CoverageFigures
    proof: Proof | None = None
    changed: tuple[str, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return shown_as(self, "text") or repr(self)

    def __repr__(self) -> str:
        ran = [
            f"{name} {engine.differences}" for name, engine in self.engines.items() if engine.differences is not None
        ]
        proof = "" if self.proof is None else f", {self.proof.verdict}"
        return f"<CheckResult {'ok' if self.ok else 'failed'}: differences of {', '.join(ran) or 'no engine'}{proof}>"

    def _repr_html_(self) -> str:
        return html_table("check: ok" if self.ok else "check: failed", HEADS, self.answers())

    def answers(self) -> list[tuple[str, str, str]]:
        """Returns the results of the check.

        Returns
        -------
        list of tuple
            For each result texts: what was examined, the result, and on how much.
        """
        rows: list[tuple[str, str, str]] = []
        if (agreed := self.agreement) is not None:
            on = counted(agreed.rows, "row")
            (_, model), (_, compiled), *others = quality(agreed.measure, vars(agreed)).items()
            rows += [(agreed.measure, f"{compiled}, model {model}", on)] * (compiled != "-")
            rows += [(name, text, on) for name, text in others]
        ran = {name: engine for name, engine in self.engines.items() if engine.differences is not None}
        rows += [
            (name, counted(engine.differences or 0, "difference"), counted(engine.vectors, "vector"))
            if engine.vectors
            else (name, counted(engine.differences or 0, "finding"), "the text alone")
            for name, engine in ran.items()
        ]
        if (proof := self.proof) is not None:
            verdict = VERDICTS[proof.verdict]
            if proof.verdict == "undecided" and any(engine.differences for engine in ran.values()):
                verdict = "not proved, and refuted by a vector"
            questions = f"{sum(part.proved for part in proof.parts):,} of {sum(part.asked for part in proof.parts):,}"
            rows.append((f"proof: {proof.covered}", verdict, questions))
        reached = [figures["leaves"] for origin, figures in self.coverage.items() if origin == ALL]
        rows += [("leaves reached", f"{own['reached']:,} of {own['all']:,}", "all vectors") for own in reached]
        return rows

    @property
    def ok(self) -> bool:
        """True if at least one engine ran, none found a difference, no file changed and any proof succeeded."""
        ran = [result.differences for result in self.engines.values() if result.differences is not None]
        return bool(ran) and not any(ran) and not self.changed and (self.proof is None or self.proof.proved)

    def not_run(self, *, stand_ins: bool = True) -> list[str]:
        """Returns notes on engines that did not run.

        Parameters
        ----------
        stand_ins : bool, default=True
            Include engines that another engine, which ran the same file, made needless.

        Returns
        -------
        list of str
            A line for each engine that did not run. If there are any and no engine ran a generated file, one more
            line says so.
        """
        idle = [name for name, engine in self.engines.items() if engine.differences is None]
        if not stand_ins:
            idle = [name for name in idle if RUNNERS[name].stands_in_for not in self.engines.keys() - idle]
        lines = [f"not run: {name}: {self.engines[name].why}" for name in idle]
        if lines and not any(name != SIMULATOR and engine.vectors for name, engine in self.engines.items()):
            only = ", only the netlist from which the files were generated" if "netlist" in self.engines else ""
            lines.append(f"no generated file was run{only}")
        return lines

    def problem(self) -> CheckError | None:
        """Returns the check's first problem as an error.

        Returns
        -------
        CheckError or None
            An error to raise; None if `ok`.
        """
        wrong = {name: engine for name, engine in self.engines.items() if engine.differences}
        edited = f"{', '.join(self.changed)} changed after forestc wrote it" if self.changed else ""
        if wrong:
            what, first = f"{', '.join(wrong)} differs from the quantized forest", next(iter(wrong))
            where = "; ".join(part for part in (f"{first}: {wrong[first].first}", edited) if part)
        elif self.proof is not None and not self.proof.proved:
            part = next(part for part in self.proof.parts if part.proved < part.asked)
            where = "; ".join(text for text in (part.why, edited) if text)
            what = f"the design is {'refuted' if self.proof.refuted else 'not proved'}: {part.name}"
            if not self.proof.refuted and not edited:
                what = f"the design is neither proved nor refuted: {part.name}, which is a limit of the proof"
                return CheckError(what, where=where, do=UNDECIDED)
        elif edited:
            what, where = edited, ""
        elif not self.ok:
            what, where = "no engine could run", ""
        else:
            return None
        do = "compile again, or bring the file back" if edited else "compile again; if the error stays, report it"
        return CheckError(what, where=where, do=do)
