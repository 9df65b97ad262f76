"""Defines the options of an AXI4-Stream wrapper."""

from __future__ import annotations

from dataclasses import dataclass

from forestc.errors import OptionError, opt
from forestc.fields.options import option

WIDEST = 1 << 16
SIZES = (8, 16, 32, 64)  # bits of the integer types of C
_FROM_0 = {"type": "integer", "minimum": 0}


@dataclass(frozen=True)
class StreamOptions:
    """Options of an AXI4-Stream wrapper.

    Parameters
    ----------
    tdata_bits : int, default=0
        Bits of the input's tdata, a multiple of 8; 0: a whole row in one beat.
    user_bits : int, default=1
        Bits of tuser.
    registers : bool, default=False
        Add a block of AXI4-Lite registers.
    align : {0, 8, 16, 32, 64}, default=0
        0 packs words without gaps. Otherwise each word and each result takes the smallest C integer of at least this
        many bits, with the layout of C and NumPy.

    Raises
    ------
    OptionError
        If a number is outside its range, or `align` is not 0 and `tdata_bits` is neither 0 nor a power of 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y, stream=forestc.StreamOptions(tdata_bits=32))
    >>> compiled.design.manifest["stream"]["beats"]
    1
    """

    tdata_bits: int = option(
        0,
        "--tdata",
        "bits of the port tdata; default: as many as a whole row, which then takes one beat",
        "N",
        schema=_FROM_0,
        key="tdata",
    )
    user_bits: int = option(1, "--tuser", "bits of tuser", "N", schema=_FROM_0, key="tuser")
    registers: bool = option(False, "--axi-lite", "add a block of AXI4-Lite registers", key="axi_lite")
    align: int = option(
        0,
        "--align",
        "align each word to a C integer of at least 8, 16, 32 or 64 bits; 0: words are packed without gaps",
        "N",
        schema={**_FROM_0, "enum": [0, *SIZES]},
    )

    def __post_init__(self) -> None:
        if not isinstance(self.tdata_bits, int) or not 0 <= self.tdata_bits <= WIDEST or self.tdata_bits % 8:
            raise OptionError(
                f"{self.tdata_bits} bits",
                where=opt.tdata,
                do=f"use a multiple of 8 up to {WIDEST}, or 0 for whole rows",
            )
        if self.align and self.tdata_bits & (self.tdata_bits - 1):
            raise OptionError(
                f"{self.tdata_bits} bits do not fit lanes with the layout of C",
                where=opt.tdata,
                do="use a power of 2, or packed rows",
            )
        if not isinstance(self.user_bits, int) or not 1 <= self.user_bits <= WIDEST:
            raise OptionError(f"{self.user_bits} bits", where=opt.tuser, do=f"use 1 to {WIDEST} bits")
        if self.align not in (0, *SIZES):
            raise OptionError(
                f"lanes of {self.align} bits",
                where=opt.align,
                do=f"use {', '.join(map(str, SIZES))}, or 0 for packed rows",
            )


@dataclass(frozen=True, kw_only=True)
class StreamKeyword:
    """The keyword of `forestc.compile` that asks for the wrapper."""

    stream: StreamOptions | None = option(
        None, "--stream", "also write an AXI4-Stream wrapper and its cocotb test bench", group=StreamOptions
    )
