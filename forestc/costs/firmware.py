"""The rough costs of generated C, by processor. They rank forests in searches; the C that is written is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_CPU = "cortex-m4f"  # names the processor if the user names none


@dataclass(frozen=True)
class CpuCosts:
    """The costs of one processor, as means over builds by GCC and clang with -Os."""

    table: float  # bytes of flash for each byte of tables
    split: float  # instructions (cycles on AVR) of a split of nested ifs
    tree: float  # instructions of a tree, without its splits


_M4 = CpuCosts(1.0034, 4.927, 1.4172)
CPU_COSTS: Mapping[str, CpuCosts] = {
    "cortex-m0plus": CpuCosts(1.0057, 6.6078, 1.506),
    **dict.fromkeys(("cortex-m4", "cortex-m4f", "cortex-m7"), _M4),  # integer C compiles to the same code
    "rv32imc": CpuCosts(1.0176, 4.6844, 2.8038),
    "avr": CpuCosts(1.0203, 10.2563, 10.4176),
}
