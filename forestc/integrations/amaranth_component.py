"""Turns a compiled design into a live component of Amaranth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forestc.backends.amaranth import core as amaranth
from forestc.manifest.design import Design, open_design


def hardware(design: Design | str | Path, *, stream: bool = True) -> Any:
    """Makes an Amaranth component of a compiled design.

    Parameters
    ----------
    design : str, path or Design
        A compiled design or its folder.
    stream : bool, default=True
        Give the component the streams `i` of features and `o` of results. Otherwise it is the core with the ports `x`
        and `y`, and with `in_valid` and `out_valid` if it has registers.

    Returns
    -------
    amaranth.lib.wiring.Component
        A new component, to be added as a submodule.

    Raises
    ------
    ForestcError
        If the folder can't be read, or holds no hardware.
    MissingExtraError
        If Amaranth is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y)
    >>> component = forestc.hardware("iris")
    >>> sorted(component.signature.members)
    ['i', 'o']
    """
    opened = design if isinstance(design, Design) else open_design(design)
    generated = amaranth.module(opened.netlist)
    return getattr(generated, amaranth.core_name(opened.netlist) + ("Stream" if stream else ""))()
