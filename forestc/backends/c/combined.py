"""Writes the C that combines the scores of member models (parts) and decides classes."""

from __future__ import annotations

from dataclasses import dataclass

from forestc.backends.c.types import constant, label_type, reach_of
from forestc.forest.ir import Forest, Part


@dataclass(frozen=True)
class CombinedScores:
    """Writer of the C that combines scores and decides classes."""

    forest: Forest
    prefix: str
    score: str  # C type of scores

    @property
    def kind(self) -> str:
        """ "vote", "average" or "median"; "" if the sums of trees are the scores."""
        kind = "" if self.forest.single else self.forest.combine.kind
        return kind if kind in ("vote", "average", "median") else ""

    def view(self) -> dict[str, object]:
        forest = self.forest
        return {
            "n_sums": forest.n_outputs if self.kind else 0,
            "largest": not forest.single and forest.combine.kind in ("each", "vote"),
            "curves": self.kind == "average",
            "shares": {part.link.kind for part in forest.parts if part.curves} & {"softmax", "shares"},
            "combined": self.kind,
            "combined_body": {"vote": self._votes, "average": self._averages}.get(self.kind, list)(),
            "weights": list(map(constant, self.forest.integer_weights)),
            "half_of_weights": constant(-(-sum(self.forest.integer_weights) // 2)),
            "argmax": forest.decides and len(forest.targets) == 1 and forest.targets[0].decision.kind == "argmax",
            "last_of_ties": forest.targets[0].decision.ties == "last",
            "predict_body": self._predict_each() if len(forest.targets) > 1 else self._predict(),
        }

    def _predict_each(self) -> list[str]:
        lines = [f"{self.score} scores[{self.forest.n_outputs}];", f"{self.prefix}_scores(x, scores);"]
        decided = [self._decided(part, "scores") for part in self.forest.targets]
        if not any("scores" in text for text in decided):
            lines.append("(void)scores;")
        return lines + [f"labels[{index}] = {text};" for index, text in enumerate(decided)]

    def _predict(self) -> list[str]:
        """Returns C statements that return the class index; an empty list for argmax and for regressions."""
        count, (part,) = self.forest.n_scores, self.forest.targets
        if not self.forest.decides or part.decision.kind == "argmax":
            return []
        text = self._decided(part, "scores")
        scored = [f"{self.score} scores[{count}];", f"{self.prefix}_scores(x, scores);"]
        return [*scored, f"return {text};"] if "scores" in text else ["(void)x;", f"return {text};"]

    def _decided(self, part: Part, scores: str) -> str:
        """Returns C for a part's class index. scores: name of the C array."""
        if part.decision.kind == "argmax":
            last = int(part.decision.ties == "last")
            return f"{self.prefix}_largest(&{scores}[{part.start}], {part.stop - part.start}u, {last})"
        lowest, highest = self._reach(part)
        threshold = int(part.decision.threshold)
        if threshold <= lowest or threshold > highest:
            return f"{int(threshold <= lowest)}u"
        return f"({label_type(self.forest)})(({scores}[{part.stop - 1}] >= {constant(threshold)}) ? 1u : 0u)"

    def _votes(self) -> list[str]:
        forest = self.forest
        lines = [f"{self.score} sums[{forest.n_outputs}];", f"{self.prefix}_sums(x, sums);"]
        lines += [f"scores[{k}] = 0;" for k in range(len(forest.classes))]
        for part, weight in zip(forest.parts, self.forest.integer_weights, strict=True):
            target = f"scores[{self._decided(part, 'sums')}]"
            lines.append(f"{target} = ({self.score})({target} + {constant(weight)});")
        return lines

    def _averages(self) -> list[str]:
        forest, steps = self.forest, self.forest.steps
        if forest.decision.kind == "argmax":
            return self._means()
        lines, sums = [], []
        for index, part in enumerate(forest.parts):
            if not forest.integer_weights[index]:
                continue
            cuts = ", ".join(map(constant, part.curves[0]))
            lines.append(f"static const {self.score} curve_{index}[{steps}] = {{{cuts}}};")
        for index, weight in enumerate(self.forest.integer_weights):
            level = f"{self.prefix}_level(sums[{forest.parts[index].start}], curve_{index}, {steps})"
            if weight:
                sums.append(f"scores[1] = ({self.score})(scores[1] + {_times(weight, level)});")
        lines += [f"{self.score} sums[{forest.n_outputs}];", f"{self.prefix}_sums(x, sums);", "scores[1] = 0;", *sums]
        total = steps * sum(self.forest.integer_weights)
        return [*lines, f"scores[0] = ({self.score})({constant(total)} - scores[1]);"]

    def _means(self) -> list[str]:
        """Returns C statements that set each class's score to the weighted sum of the values of all member models
        (parts)."""
        forest, steps, score, classes = self.forest, self.forest.steps, self.score, len(self.forest.classes)
        curves, body = [], []
        for index, (part, weight) in enumerate(zip(forest.parts, self.forest.integer_weights, strict=True)):
            if not weight:
                continue
            values = [f"sums[{part.start + k}]" for k in range(classes)]
            if part.curves and part.link.kind == "softmax":
                body.append(f"{self.prefix}_below_largest(&sums[{part.start}], {classes});")
            for number, curve in enumerate(part.curves):
                cuts = ", ".join(map(constant, curve))
                curves.append(f"static const {score} curve_{index}_{number}[{steps}] = {{{cuts}}};")
            for k in range(part.width if part.curves else 0):
                curve_name = f"curve_{index}_{k if len(part.curves) > 1 else 0}"
                body.append(f"levels[{k}] = {self.prefix}_level(sums[{part.start + k}], {curve_name}, {steps});")
                values[k] = f"levels[{k}]"
            if part.width == 1:
                values = [f"({steps} - levels[0])", "levels[0]"]
            elif part.curves and part.link.kind in ("softmax", "shares"):
                body.append(f"{self.prefix}_shares(levels, {classes}, {steps});")
            for k, value in enumerate(values):
                body.append(f"scores[{k}] = ({score})(scores[{k}] + {_times(weight, f'({score}){value}')});")
        return [
            *curves,
            f"{score} sums[{forest.n_outputs}];",
            f"int32_t levels[{classes}];",
            f"{self.prefix}_sums(x, sums);",
            *(f"scores[{k}] = 0;" for k in range(classes)),
            *body,
        ]

    def _reach(self, part: Part) -> tuple[int, int]:
        """Returns bounds (low, high) of the score that is compared with a part's threshold."""
        if self.forest.combined and part not in self.forest.parts:
            return 0, max(1, self.forest.steps) * sum(self.forest.integer_weights)
        return reach_of(self.forest, part.stop - 1)


def _times(weight: int, value: str) -> str:
    return value if weight == 1 else f"({constant(weight)} * {value})"
