"""Makes the table of a design's features: formats, thresholds and histograms."""

from __future__ import annotations

from markupsafe import Markup

from forestc.forest.ir import Forest
from forestc.forest.node_text import feature_figures
from forestc.forest.numbers import Category, word_range, word_value
from forestc.report.page.blocks import Cell, Table, table
from forestc.report.page.measured import Measured
from forestc.report.page.svg import shortened, spark


def feature_table(forest: Forest, measured: Measured | None) -> Table:
    rows = []
    for index, figures in sorted(enumerate(feature_figures(forest)), key=lambda pair: -pair[1]["uses"]):
        feature = forest.features[index]
        number, word = feature.number, word_range(feature.number, feature.missing)
        cuts = sorted({word_value(value, number) for value in forest.conditions.thresholds(index).tolist()})
        histogram = None if measured is None else measured.histograms.get(forest.row_columns[index])
        values = f"{word_value(word.low, number):.5g} to {word_value(word.high, number):.5g}"
        picture = spark(histogram, cuts) if cuts or histogram is not None else Markup("")
        rows.append(
            (
                Cell(shortened(feature.name, 60)),
                Cell("", drawing=picture),
                Cell(str(number)),
                Cell(f"{number.count} categories" if isinstance(number, Category) else values),
                figures["uses"],
                figures["conditions"],
                Cell(f"{cuts[0]:.5g} to {cuts[-1]:.5g}" if len(cuts) > 1 else "".join(f"{c:.5g}" for c in cuts),
                     cuts[0] if cuts else None),
                Cell("yes" if feature.missing else "no"),
                feature.column,
            )
        )  # fmt: skip
    drawn = "rows and thresholds" if measured is not None else "thresholds on the range"
    heads = ("feature", drawn, "words", "range", "nodes", "comparators", "thresholds", "may be missing", "column")
    foot = "Gray: rows by value. Red: thresholds. " if measured is not None else "Red: thresholds. "
    foot += "Values outside a range count as its end."
    return table("Features, the most used first", heads, rows, wide=True, foot=foot)
