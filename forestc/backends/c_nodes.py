"""The layout `nodes` in C: tables of bytes and one loop. The smallest.

The tables are constant; on AVR they stay in the flash memory (PROGMEM) and are read with the functions for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forestc.backends.c_conditions import Conditions
from forestc.backends.c_inputs import Inputs
from forestc.backends.c_types import FLOATS, constant, int_type, size_of
from forestc.forest.ir import Forest
from forestc.forest.numbers import word_range
from forestc.layouts.nodes import Nodes, nodes_of
from forestc.layouts.slots import Slot

A_LINE = 100  # characters of a line of a table
RANKING = 130  # bytes of the code that ranks values, on Cortex-M


def smaller_nodes(inputs: Inputs) -> Nodes:
    """The tables of a forest, on ranks or on the values themselves, whichever takes fewer bytes with the cuts. Raw
    floats are always ranked."""
    ranked = nodes_of(inputs.forest, ranked=True)
    if inputs.raw and inputs.floats:
        return ranked
    plain = nodes_of(inputs.forest, ranked=False)
    own = [slot for slot in ranked.slots.slots if slot.condition is None]
    cuts = sum((size_of(inputs.kind(slot.feature)) - 4) * len(slot.cuts) for slot in own)  # `bytes` says 4 for a cut
    return ranked if ranked.bytes + cuts + RANKING + 3 * len(own) < plain.bytes else plain


@dataclass(frozen=True)
class Tables:
    """score, word: the C types of scores and words. in_place: whether x holds the slots. x: the parameter's text."""

    forest: Forest
    prefix: str
    score: str
    word: str
    conditions: Conditions
    nodes: Nodes
    in_place: bool
    x: str

    @property
    def slot_type(self) -> str:
        """The C type of slots' values."""
        slots = self.nodes.slots
        if slots.ranked:
            return int_type(0, max((len(slot.cuts) for slot in slots.slots), default=1))
        return self.word

    def lines(self) -> list[str]:
        """Declarations before the function of scores."""
        nodes, p = self.nodes, self.prefix
        slots, leaves = nodes.slots, nodes.leaves
        own = nodes.conditions
        made = [
            *_FLASH.replace("PREFIX", p.upper()).splitlines(),
            "",
            f"/* The trees in preorder: {nodes.code}; a split says how long its left side is. */",
            *self._table("nodes", nodes.stream.tolist(), f"uint{8 * nodes.unit}_t"),
            *self._table("starts", nodes.starts.tolist(), f"uint{8 * nodes.start_bytes}_t"),
        ]
        if nodes.code != "split":
            made += self._table("slots", slots.slot[own].tolist())
            made += self._table("thresholds", slots.threshold[own].tolist())
        if leaves.kind == "pairs":
            ends = np.cumsum([0, *(max(1, len(pairs)) for pairs in leaves.pairs)]).tolist()
            filled = [pairs or ((0, 0),) for pairs in leaves.pairs]
            last = 1 << (7 if self.forest.n_outputs <= 128 else 15)
            marked = [o + last * (k == len(pairs) - 1) for pairs in filled for k, (o, _) in enumerate(pairs)]
            made += self._table("leaves", ends[:-1])
            made += self._table("outputs", marked, f"uint{8 if last == 128 else 16}_t")
            made += self._table("leaf_values", [value for pairs in filled for _, value in pairs])
        elif len(leaves.table):
            made += self._table("leaf_values", leaves.table.ravel().tolist())
        if slots.ranked and (ranked := [slot for slot in slots.slots if slot.condition is None]):
            made += self._rank_tables(ranked)
        made += ["", *([] if self.in_place else self._fill()), *self._walk()]
        return [*made, ""]

    def sums(self, into: str) -> list[str]:
        """Statements of the function of scores."""
        p, leaves, trees = self.prefix, self.nodes.leaves, self.nodes.leaves.trees
        lines = [f"{into}[{output}] = {constant(value)};" for output, value in enumerate(leaves.starts.tolist())]
        if not trees:
            return ["(void)x;", *lines]
        index = int_type(0, len(trees))
        slots = "x"
        declared = [f"{index} tree;"]
        if not self.in_place:
            declared.append(f"{self.slot_type} slots[{max(1, len(self.nodes.slots.slots))}];")
            lines.append(f"{p}_fill(x, slots);")
            slots = "slots"
        leaf = f"{p}_leaf(tree, {slots})"
        if leaves.kind == "value":
            return [*declared, *lines, *self._added(into, leaf)]
        if leaves.kind == "bits":
            return [*declared, *lines, *self._bits(into, leaf)]
        at = {"rows": int_type(0, leaves.count * max(1, leaves.table.shape[1])), "pairs": self._kind_of("leaves")}[
            leaves.kind
        ]
        if leaves.kind == "rows":
            first, width = self.forest.trees[trees[0]].outputs[0], leaves.table.shape[1]
            target = f"{into}[k]" if first == 0 else f"{into}[{first} + k]"
            body = [
                f"    {at} at = ({at})({leaf} * {width}u);" if width > 1 else f"    {at} at = {leaf};",
                f"    for (k = 0; k < {width}; k++) {{",
                f"        {target} = ({self.score})({target} + {self._read('leaf_values', 'at + k')});",
                "    }",
            ]
            declared.append(f"{int_type(0, width)} k;")
        else:
            outputs, last = self._kind_of("outputs"), 128 if self._kind_of("outputs") == "uint8_t" else 1 << 15
            target = f"{into}[output & {last - 1}u]"
            body = [
                f"    {at} at = {self._read('leaves', leaf)};",
                f"    {outputs} output;",
                "    do {",
                f"        output = {self._read('outputs', 'at')};",
                f"        {target} = ({self.score})({target} + {self._read('leaf_values', 'at')});",
                "        at++;",
                f"    }} while (output < {last}u);",
            ]
        return [*declared, *lines, f"for (tree = 0; tree < {len(trees)}u; tree++) {{", *body, "}"]

    def _bits(self, into: str, leaf: str) -> list[str]:
        """The loop over trees whose leaves add 1 to some outputs."""
        trees = self.nodes.leaves.trees
        outputs = self.forest.trees[trees[0]].outputs
        kind = self._kind_of("leaf_values")
        target = f"{into}[k]" if outputs[0] == 0 else f"{into}[k + {outputs[0]}]"
        return [
            f"for (tree = 0; tree < {len(trees)}u; tree++) {{",
            f"    {kind} bits = {self._read('leaf_values', leaf)};",
            "    uint8_t k;",
            "    for (k = 0; bits != 0u; k++) {",
            f"        {target} = ({self.score})({target} + ({self.score})(bits & 1u));",
            "        bits >>= 1;",
            "    }",
            "}",
        ]

    def _added(self, into: str, leaf: str) -> list[str]:
        """The loop over trees of one output each, which are in the order of the outputs."""
        trees = self.nodes.leaves.trees
        value = self._read("leaf_values", leaf) if len(self.nodes.leaves.table) else leaf
        counts = np.bincount([self.forest.trees[index].outputs[0] for index in trees], minlength=self.forest.n_outputs)
        ends = np.cumsum(counts).tolist()
        if len(ends) > 1 and len(set(counts.tolist())) == 1:
            count, loop = int(counts[0]), f"for (tree = 0; tree < {len(trees)}u; tree++) {{"
            if count & (count - 1) == 0:
                place = f"{into}[tree / {count}u]"
                return [loop, f"    {place} = ({self.score})({place} + {value});", "}"]
            index = int_type(0, len(trees))
            return [  # counted, as a processor without division would call a library
                f"{index} output = 0;",
                f"{index} left = {count};",
                loop,
                f"    {into}[output] = ({self.score})({into}[output] + {value});",
                "    left--;",
                "    if (left == 0u) {",
                f"        left = {count};",
                "        output++;",
                "    }",
                "}",
            ]
        lines, begin = ["tree = 0;"], 0
        for output, end in enumerate(ends):
            if end > begin:
                target = f"{into}[{output}]"
                lines += [
                    f"for (; tree < {end}u; tree++) {{",
                    f"    {target} = ({self.score})({target} + {value});",
                    "}",
                ]
            begin = end
        return lines

    def _walk(self) -> list[str]:
        nodes, p, macro = self.nodes, self.prefix, self.prefix.upper()
        leaves, wide = nodes.leaves, nodes.code == "wide"
        unit = "uint16_t" if wide else "uint8_t"
        read = f"{macro}_READ16" if wide else f"{macro}_READ8"
        number = int_type(0, leaves.count + nodes.jumps)
        tree = int_type(0, max(1, len(nodes.starts)))
        if nodes.code == "split":
            given = f"{read}(node + 1)"
            if nodes.threshold_bytes == 2:
                given = f"({given} | {read}(node + 2) << 8)"
            if self.slot_type not in ("uint8_t", "int8_t", "uint16_t", "int16_t"):
                given = f"({self.slot_type}){given}"
            test = f"slots[symbol] < {given}"
        else:
            test = f"slots[{self._read('slots', 'symbol')}] < {self._read('thresholds', 'symbol')}"
        skip = f"{nodes.head}u + {read}(node + {nodes.head - 1})"
        body = [
            f"symbol = {read}(node);",
            f"while (symbol < {nodes.symbols}u) {{",
            f"    node += {test} ? {nodes.head}u : {skip};",
            f"    symbol = {read}(node);",
            "}",
            f"number = ({number})(symbol - {nodes.symbols}u);",
        ]
        if nodes.single < leaves.count + nodes.jumps:
            further = f"((unsigned)number - {nodes.single}u) << 8 | {read}(node + 1)"
            body += [
                f"if (number >= {nodes.single}u) {{",
                f"    number = ({number})({nodes.single}u + ({further}));",
                "}",
            ]
        if nodes.jumps:
            far = len(nodes.starts) - nodes.jumps
            at = self._read(
                "starts",
                f"number + {far - leaves.count}u" if far >= leaves.count else f"number - {leaves.count - far}u",
            )
            body = [
                "for (;;) {",
                *(f"    {line}" for line in body),
                f"    if (number < {leaves.count}u) {{",
                "        return number;",
                "    }",
                f"    node = {p}_nodes + {at};",
                "}",
            ]
        else:
            body.append("return number;")
        return [
            "/* The number of the leaf that a row reaches in a tree. */",
            f"static inline {number} {p}_leaf({tree} tree, const {self.slot_type} *slots)",
            "{",
            f"    const {unit} *node = {p}_nodes + {self._read('starts', 'tree')};",
            f"    {unit} symbol;",
            f"    {number} number;",
            *(f"    {line}" for line in body),
            "}",
        ]

    def _fill(self) -> list[str]:
        """The function that makes slots of a row."""
        slots, p, kind = self.nodes.slots, self.prefix, self.slot_type
        lines: list[str] = []
        before: list[str] = []
        ranked = [slot for slot in slots.slots if slot.condition is None] if slots.ranked else []
        for of_kind, own in self._by_kind(ranked).items():
            before += self._rank(of_kind)
            lines += self._ranks(of_kind, own)
        for place, slot in enumerate(slots.slots):
            absent = self.conditions.absent(slot.feature)
            if slot.condition is not None:
                lines.append(f"slots[{place}] = ({kind})!({self.conditions.of(slot.condition)});")
            elif slots.ranked:
                if absent is not None:
                    lines += [
                        f"if ({absent}) {{",
                        f"    slots[{place}] = {0 if slot.missing_low else len(slot.cuts)};",
                        "}",
                    ]
            else:
                value = f"({kind}){self.conditions.inputs.place(slot.feature)}"
                if slot.missing_low and absent is not None:
                    feature = self.forest.features[slot.feature]
                    lowest = constant(word_range(feature.number, feature.missing).low)
                    value = f"({kind})({absent} ? {lowest} : {self.conditions.inputs.place(slot.feature)})"
                lines.append(f"slots[{place}] = {value};")
        return [
            *before,
            "/* What the splits compare. */",
            f"static inline void {p}_fill({self.x}, {kind} *slots)",
            "{",
            *(f"    {line}" for line in (lines or ["(void)x;", "(void)slots;"])),
            "}",
            "",
        ]

    def _by_kind(self, ranked: Sequence[Slot]) -> dict[str, list[tuple[int, Slot]]]:
        """Ranked slots, with their places, by the C type of their features."""
        found: dict[str, list[tuple[int, Slot]]] = {}
        for place, slot in enumerate(ranked):
            found.setdefault(self.conditions.inputs.kind(slot.feature), []).append((place, slot))
        return found

    def _rank_tables(self, ranked: Sequence[Slot]) -> list[str]:
        """The cuts of each type; of an array also where those of each slot end, and the columns."""
        made = []
        for kind, own in self._by_kind(ranked).items():
            made += self._table(f"cuts_{kind}", [cut for _, slot in own for cut in slot.cuts])
        if not self.conditions.inputs.struct:
            made += self._table("cut_ends", np.cumsum([len(slot.cuts) for slot in ranked]).tolist())
            made += self._table("columns", [self.conditions.inputs.at(slot.feature) for slot in ranked])
        return made

    def _rank(self, kind: str) -> list[str]:
        """The function that ranks a value of a type among some cuts."""
        p, end, result, table = self.prefix, self._kind_of("cut_ends"), self.slot_type, f"cuts_{kind}"
        key, floats = self._kind_of(table), FLOATS.get(kind)
        turned = [] if floats is None else [
            "    if (key < 0) {",
            f"        key ^= INT{floats.bits}_C({(1 << (floats.bits - 1)) - 1});",
            "    }",
        ]  # fmt: skip
        what = "a value" if floats is None else "a float's bits, ordered as integers"
        return [
            f"/* How many of the cuts first .. last - 1 are not above {what}. */",
            f"static inline {result} {p}_rank_{kind}({key} key, {end} first, {end} last)",
            "{",
            f"    {end} low = first;",
            *turned,
            "    while (low < last) {",
            f"        {end} middle = ({end})(low + ({end})(last - low) / 2u);",
            f"        if ({self._read(table, 'middle')} <= key) {{",
            f"            low = ({end})(middle + 1u);",
            "        } else {",
            "            last = middle;",
            "        }",
            "    }",
            f"    return ({result})(low - first);",
            "}",
            "",
        ]

    def _ranks(self, kind: str, own: Sequence[tuple[int, Slot]]) -> list[str]:
        """Statements that rank the features of a type."""
        p, inputs, floats = self.prefix, self.conditions.inputs, FLOATS.get(kind)

        def key(place: str) -> str:
            return place if floats is None else f"{self.conditions.bits_of(floats)}({place})"

        if inputs.struct:
            ends = np.cumsum([0, *(len(slot.cuts) for _, slot in own)]).tolist()
            return [
                f"slots[{place}] = {p}_rank_{kind}({key(inputs.place(slot.feature))}, {first}u, {last}u);"
                for (place, slot), first, last in zip(own, ends, ends[1:], strict=False)
            ]
        end, x = self._kind_of("cut_ends"), f"x[{self._read('columns', 'k')}]"
        return [
            f"{int_type(0, len(own))} k;",
            f"{end} first = 0;",
            f"for (k = 0; k < {len(own)}u; k++) {{",
            f"    {end} last = {self._read('cut_ends', 'k')};",
            f"    slots[k] = {p}_rank_{kind}({key(x)}, first, last);",
            "    first = last;",
            "}",
        ]

    def _kind_of(self, name: str) -> str:
        return self._kinds[name]

    @property
    def _kinds(self) -> dict[str, str]:
        """The C types of the tables' entries."""
        nodes, leaves = self.nodes, self.nodes.leaves
        found = {
            "starts": f"uint{8 * nodes.start_bytes}_t",
            "outputs": f"uint{8 if self.forest.n_outputs <= 128 else 16}_t",
        }

        def fits(values: Sequence[int]) -> str:
            return int_type(min(values, default=0), max(values, default=0))

        found["slots"] = fits(nodes.slots.slot[nodes.conditions].tolist())
        thresholds = nodes.slots.threshold[nodes.conditions].tolist()
        found["thresholds"] = fits([*thresholds, -1] if self.slot_type.startswith("int") else thresholds)
        found["leaves"] = int_type(0, sum(max(1, len(pairs)) for pairs in leaves.pairs))
        values = [value for pairs in leaves.pairs for _, value in pairs] or leaves.table.ravel().tolist()
        found["leaf_values"] = fits([0, *values])
        ranked = [slot for slot in nodes.slots.slots if slot.condition is None]
        for kind in self._by_kind(ranked):
            bits = FLOATS[kind].bits if kind in FLOATS else None
            found[f"cuts_{kind}"] = kind if bits is None else f"int{bits}_t"
        found["cut_ends"] = int_type(0, sum(len(slot.cuts) for slot in ranked))
        found["columns"] = fits([self.conditions.inputs.at(slot.feature) for slot in ranked])
        return found

    def _table(self, name: str, values: Sequence[int], kind: str | None = None) -> list[str]:
        kind = kind or self._kind_of(name)
        lines, line = [], "   "
        for value in values:
            text = f" {constant(value)},"
            if len(line) + len(text) > A_LINE:
                lines.append(line)
                line = "   "
            line += text
        macro = self.prefix.upper()
        head = f"static const {kind} {self.prefix}_{name}[{len(values)}] {macro}_FLASH = {{"
        return [head, *lines, line.rstrip(","), "};"]

    def _read(self, name: str, index: str) -> str:
        """The C expression of an entry of a table."""
        kind = self._kind_of(name)
        bits = int(kind.strip("uint_"))
        text = f"{self.prefix.upper()}_READ{bits}({self.prefix}_{name} + {index})"
        return f"({kind}){text}" if not kind.startswith("u") else text


_FLASH = """/* On AVR, constants are read from flash memory by functions of their own. */
#if defined(__AVR__)
#include <avr/pgmspace.h>
#define PREFIX_FLASH PROGMEM
#define PREFIX_READ8(at) pgm_read_byte(at)
#define PREFIX_READ16(at) pgm_read_word(at)
#define PREFIX_READ32(at) pgm_read_dword(at)
#define PREFIX_READ64(at) ((uint64_t)pgm_read_dword(at) | (uint64_t)pgm_read_dword((const char *)(at) + 4) << 32)
#else
#define PREFIX_FLASH
#define PREFIX_READ8(at) (*(at))
#define PREFIX_READ16(at) (*(at))
#define PREFIX_READ32(at) (*(at))
#define PREFIX_READ64(at) (*(at))
#endif"""
