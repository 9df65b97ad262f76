"""Tables 2 and 3 of Nakamura and Sakurada (2022), the threshold sharing paper, for the data sets used here.

For each data set and learner: distinct conditions, and size ratio and accuracy ratio after sharing on all rows; for
forests also size and accuracy ratio after sharing on each tree's bootstrap rows.
"""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    conditions: float
    size: float
    accuracy: float
    size_per_tree: float | None = None
    accuracy_per_tree: float | None = None


LEARNERS = ("RF", "ERT", "AdaBoost", "GBoost")

PAPER: dict[str, tuple[Printed, Printed, Printed, Printed]] = {
    "iris": (
        Printed(103.8, 0.42004, 1.0211, 0.35838, 1.0141),
        Printed(1354.0, 0.074003, 1.0141, 0.071344, 1.0211),
        Printed(7.6, 0.94737, 1.0000),
        Printed(47.8, 0.61088, 1.0000),
    ),
    "parkinsons": (
        Printed(1012.6, 0.39897, 1.0000, 0.32510, 1.0115),
        Printed(2564.8, 0.25483, 0.98324, 0.20360, 0.97765),
        Printed(13.8, 1.0000, 1.0000),
        Printed(217.2, 0.60221, 1.0000),
    ),
    "breast cancer": (
        Printed(1415.4, 0.41953, 1.0018, 0.34647, 1.0000),
        Printed(3707.8, 0.28276, 0.99817, 0.22995, 0.99636),
        Printed(18.2, 0.98901, 1.0000),
        Printed(290.8, 0.65612, 1.0000),
    ),
    "blood": (
        Printed(321.6, 0.45025, 1.0000, 0.39988, 0.99646),
        Printed(15786.8, 0.010046, 0.99470, 0.0098943, 0.99823),
        Printed(267.0, 0.48839, 0.99819),
        Printed(137.4, 0.69869, 0.99827),
    ),
    "winequality red": (
        Printed(4115.4, 0.21869, 1.0027, 0.20994, 1.0090),
        Printed(44535.4, 0.021399, 0.99370, 0.019813, 0.98832),
        Printed(317.4, 0.57656, 1.0049),
        Printed(940.6, 0.61748, 1.0048),
    ),
    "winequality white": (
        Printed(7288.6, 0.19249, 0.99669, 0.18503, 1.0018),
        Printed(140137.8, 0.010184, 1.0000, 0.0094007, 1.0003),
        Printed(812.2, 0.45900, 0.99932),
        Printed(1186.6, 0.63509, 0.99965),
    ),
    "magic": (
        Printed(113713.4, 0.084643, 0.99928, 0.076688, 1.0000),
        Printed(289735.0, 0.028258, 0.99898, 0.022711, 0.99814),
        Printed(1731.8, 0.45791, 0.99929),
        Printed(501.4, 0.85880, 0.99982),
    ),
    "real estate": (
        Printed(5077.4, 0.12487, 1.0029, 0.11683, 1.0094),
        Printed(20708.8, 0.029002, 1.0028, 0.025709, 1.0043),
        Printed(5027.2, 0.12735, 0.99757),
        Printed(266.8, 0.66942, 0.99556),
    ),
    "airfoil": (
        Printed(1337.0, 0.11399, 1.0002, 0.11294, 0.99811),
        Printed(75599.6, 0.0019841, 0.99960, 0.0019656, 0.99455),
        Printed(1489.0, 0.10423, 1.0018),
        Printed(123.4, 0.79903, 0.99968),
    ),
}
