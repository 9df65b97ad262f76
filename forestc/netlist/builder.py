"""Builds netlists. Equal cells become one cell (hash consing).

The builder also simplifies cells: for example, a mux with equal arms is replaced by the arm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forestc.netlist import ir
from forestc.netlist.ir import BIT, FALSE, TRUE, Cell, Net, Netlist, Origin, WordType, reads, result_type
from forestc.netlist.ports import Port
from forestc.netlist.verify import latencies, verify

NOWHERE = Origin()


def width_for(low: int, high: int) -> WordType:
    """Returns the narrowest word type that holds every integer from low to high."""
    if low >= 0:
        return WordType(max(1, high.bit_length()), False)
    return WordType(max(1, (~low).bit_length(), max(high, 0).bit_length()) + 1, True)


class NetlistBuilder:
    """Builder of a netlist, cell by cell. Each method for a cell returns the net of its result."""

    def __init__(self, name: str, title: str = "") -> None:
        self.name, self.title = name, title
        self._cells: list[Cell] = []
        self._types: list[WordType] = []
        self._origins: list[Origin] = []
        self._net_of: dict[tuple[type[Cell], Cell], Net] = {}
        self._outputs: list[tuple[Port, Net]] = []
        self._add(ir.Const(0, 1, False))
        self._add(ir.Const(1, 1, False))

    def type_of(self, net: Net) -> WordType:
        return self._types[net]

    def cell_of(self, net: Net) -> Cell:
        return self._cells[net]

    def _add(self, cell: Cell, origin: Origin = NOWHERE) -> Net:
        key = (type(cell), cell)
        net = self._net_of.get(key)
        if net is None:
            net = len(self._cells)
            self._net_of[key] = net
            self._cells.append(cell)
            self._types.append(result_type(cell, self._types))
            self._origins.append(origin)
        return net

    def const(self, value: int, word: WordType) -> Net:
        return value if word == BIT else self._add(ir.Const(value, word.width, word.signed))

    def input(self, port: Port, word: WordType) -> Net:
        return self._add(ir.Input(port, word.width, word.signed))

    def less(self, a: Net, threshold: int, origin: Origin = NOWHERE) -> Net:
        word = self._types[a]
        if threshold <= word.low:
            return FALSE
        if threshold > word.high:
            return TRUE
        cell = self._cells[a]
        if isinstance(cell, ir.Const):
            return int(cell.value < threshold)
        if word == BIT:  # a < 1
            return self.not_(a, origin)
        return self._add(ir.Less(a, threshold), origin)

    def in_set(self, a: Net, members: Iterable[int], origin: Origin = NOWHERE) -> Net:
        word = self._types[a]
        inside = tuple(sorted({m for m in members if word.low <= m <= word.high}))
        if not inside:
            return FALSE
        cell = self._cells[a]
        if isinstance(cell, ir.Const):
            return TRUE if cell.value in inside else FALSE
        return self._add(ir.InSet(a, inside), origin)

    def not_(self, a: Net, origin: Origin = NOWHERE) -> Net:
        cell, word = self._cells[a], self._types[a]
        if isinstance(cell, ir.Const):
            return self.const(word.high - cell.value, word)
        if isinstance(cell, ir.Not):
            return cell.a
        return self._add(ir.Not(a, word.width), origin)

    def and_(self, a: Net, b: Net, origin: Origin = NOWHERE) -> Net:
        a, b = sorted((a, b))
        if a == FALSE:
            return FALSE
        if a in (TRUE, b):
            return b
        return self._add(ir.And(a, b), origin)

    def or_(self, a: Net, b: Net, origin: Origin = NOWHERE) -> Net:
        a, b = sorted((a, b))
        if a == TRUE:
            return TRUE
        if a in (FALSE, b):
            return b
        return self._add(ir.Or(a, b), origin)

    def mux(self, select: Net, a: Net, b: Net, origin: Origin = NOWHERE) -> Net:
        if a == b or select == TRUE:
            return a
        if select == FALSE:
            return b
        if self._types[a] == BIT:
            if a == TRUE:
                return self.or_(select, b, origin)
            if b == FALSE:
                return self.and_(select, a, origin)
            if a == FALSE:
                return self.and_(self.not_(select, origin), b, origin)
            if b == TRUE:
                return self.or_(self.not_(select, origin), a, origin)
        return self._add(ir.Mux(select, a, b), origin)

    def add(self, operands: Sequence[Net], word: WordType) -> Net:
        """Builds the sum of the operands as a word of type `word`. The type must hold every sum that can occur."""
        constants = [cell.value for a in operands if isinstance(cell := self._cells[a], ir.Const)]
        if len(constants) == len(operands):
            return self.const(sum(constants), word)
        if len(operands) == 2 and operands[0] == operands[1] and word == (self._types[operands[0]].width + 1, False):
            return self.shift(operands[0])
        return self._add(ir.Add(tuple(operands), word.width, word.signed))

    def table(self, words: Iterable[tuple[Net, int]], largest: int) -> Net:
        """Builds a weighted sum of unsigned words with a table. words: (net, factor) pairs. largest: the largest sum
        that occurs."""
        factors: dict[Net, int] = {}
        constant = 0
        for a, factor in words:
            if isinstance(cell := self._cells[a], ir.Const):
                constant += factor * cell.value
            else:
                factors[a] = factors.get(a, 0) + factor
        most = min(largest, constant + sum(factor * self._types[a].high for a, factor in factors.items()))
        word = width_for(0, most)
        if not factors:
            return self.const(constant, word)
        if not constant and list(factors.values()) == [1]:
            return next(iter(factors))
        return self._add(ir.Table(tuple(factors.items()), constant, word.width))

    def shift(self, a: Net) -> Net:
        cell, word = self._cells[a], self._types[a]
        if isinstance(cell, ir.Const):
            return self.const(2 * cell.value, WordType(word.width + 1, False))
        return self._add(ir.Shift(a))

    def extend(self, a: Net, word: WordType) -> Net:
        if self._types[a] == word:
            return a
        cell = self._cells[a]
        return self.const(cell.value, word) if isinstance(cell, ir.Const) else self._add(ir.Extend(a, word.width))

    def slice(self, a: Net, low: int, width: int) -> Net:
        """Builds bits of an unsigned word, or fewer if it ends before."""
        cell, word = self._cells[a], self._types[a]
        width = min(width, word.width - low)
        if width < 1 or word.width == width:
            return FALSE if width < 1 else a
        cut = ir.Slice(a, low, width)
        return (
            self.const(ir.evaluate(cut, (cell.value,)), WordType(width, False))
            if isinstance(cell, ir.Const)
            else self._add(cut)
        )

    def compare(self, a: Net, b: Net) -> Net:
        if a == b:
            return FALSE
        if self._types[a] == BIT:
            return self.and_(self.not_(a), b)
        x, y = self._cells[a], self._cells[b]
        if isinstance(x, ir.Const) and isinstance(y, ir.Const):
            return int(x.value < y.value)
        return self._add(ir.Compare(a, b))

    def register(self, a: Net, origin: Origin = NOWHERE) -> Net:
        """Delays a net by one clock cycle; a constant gets no register."""
        return a if isinstance(self._cells[a], ir.Const) else self._add(ir.Register(a), origin)

    def raw(self, cell: Cell, origin: Origin = NOWHERE) -> Net:
        """Adds a cell as it is, or reuses an equal cell, and returns its net."""
        return self._add(cell, origin)

    def output(self, port: Port, net: Net) -> None:
        self._outputs.append((port, net))

    def build(self) -> Netlist:
        """Returns the verified netlist, without cells that no output depends on; all inputs and nets 0 and 1 stay."""
        return self.build_renamed()[0]

    def build_renamed(self) -> tuple[Netlist, list[Net]]:
        """Returns the netlist as `build` does, and a list of each net's new number; -1 for a removed net."""
        live = [False] * len(self._cells)
        live[FALSE] = live[TRUE] = True
        for net, cell in enumerate(self._cells):
            live[net] = live[net] or isinstance(cell, ir.Input)
        for _, net in self._outputs:
            live[net] = True
        for net in range(len(self._cells) - 1, -1, -1):
            if live[net]:
                for read in reads(self._cells[net]):
                    live[read] = True
        live_nets = [net for net, alive in enumerate(live) if alive]
        renamed = [-1] * len(self._cells)
        for new, net in enumerate(live_nets):
            renamed[net] = new
        outputs = tuple((port, renamed[net]) for port, net in self._outputs)
        cells = tuple(ir.rename(self._cells[net], renamed) for net in live_nets)
        delays = latencies(cells)
        netlist = Netlist(
            name=self.name,
            cells=cells,
            types=tuple(self._types[net] for net in live_nets),
            origins=tuple(self._origins[net] for net in live_nets),
            outputs=outputs,
            latency=max([0, *(delays[net] for _, net in outputs)]),
            title=self.title,
        )
        verify(netlist)
        return netlist, renamed
