"""Turns names from model files into identifiers: one escaping function for each language, used in one place.

Any name of a feature or model becomes a plain identifier. The index before a feature's name makes it unique, and keeps
it from being a keyword or starting with a digit.
"""

from __future__ import annotations

import re
import unicodedata
from keyword import iskeyword

from forestc.netlist.ir import Cell, Const, Input, InSet, Less, Net, Register, SumCell
from forestc.netlist.ports import Port

MOST_CHARACTERS = 40

# Words that are not identifiers in one of the generated languages: C, C++, Verilog, SystemVerilog, VHDL (any case).
RESERVED = frozenset(
    """
    abs accept_on access after alias alignas alignof all always always_comb always_ff always_latch and
    and_eq architecture array asm assert assign assume assume_guarantee attribute auto automatic before
    begin bind bins binsof bit bitand bitor block body bool break buf buffer bufif0 bufif1 bus byte case
    casex casez catch cell chandle char checker class clocking cmos compl component config configuration
    const constant constexpr constraint context continue cover covergroup coverpoint cross deassign
    decltype default defparam delete design disable disconnect dist do double downto dynamic_cast edge
    else elsif end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup
    endinterface endmodule endpackage endprimitive endprogram endproperty endsequence endspecify
    endtable endtask entity enum event eventually exit expect explicit export extends extern fairness
    false file final first_match float for force foreach forever fork forkjoin friend function generate
    generic genvar global goto group guarded highz0 highz1 if iff ifnone ignore_bins illegal_bins
    implements implies import impure in incdir include inertial initial inline inout input inside
    instance int integer interconnect interface intersect is join join_any join_none label large let
    liblist library linkage literal local localparam logic long longint loop macromodule main map
    matches medium mod modport module mutable namespace nand negedge nettype new next nexttime nmos
    noexcept nor noshowcancelled not not_eq notif0 notif1 null nullptr of on open operator or or_eq
    others out output package packed parameter pmos port posedge postponed primitive priority private
    procedure process program property protected public pull0 pull1 pulldown pullup pulsestyle_onevent
    pure rand randc randcase randomize randsequence range rcmos real realtime record ref reg register
    reinterpret_cast reject reject_on release rem repeat report restrict restrict_guarantee return rnmos
    rol ror rpmos rtran s_always s_eventually s_nexttime s_until s_until_with scalared select sequence
    severity shared short shortint shortreal showcancelled signal signed sizeof sla sll small soft solve
    specify specparam sra srl static static_assert static_cast std string strong strong0 strong1 struct
    subtype super supply0 supply1 switch sync_accept_on sync_reject_on table tagged task template then
    this throughout throw time timeprecision timeunit to tran transport tri tri0 tri1 triand trior
    trireg true try type typedef typeid typename unaffected union unique unique0 units unsigned until
    until_with untyped use using uwire var variable vectored view virtual vmode void volatile vpkg vprop
    vunit wait wait_order wand wchar_t weak weak0 weak1 when while wildcard wire with within wor xnor
    xor xor_eq
    """.split()  # noqa: SIM905  a list of this length is read as words
)

# Names of ports, nets, tasks and instances in the Verilog files: some tools reject or confuse a module of such a name.
# Verilator uses `top`.
_OWN = frozenset(
    """
    accept aclk address address_held aresetn beat clear clear_wanted clk compare control core data_held dut expected
    finish fire flight forestc_registered idle in_valid inputs last_beat load meta none okay open out_valid path pop
    push read read_at registers result results row rows_in rows_in_count rows_out rows_out_count seen sent
    short_rows short_rows_count skipped_x skipped_y slverr stalls_in stalls_in_count stalls_out stalls_out_count
    stored taken taken_next top unused unused_lanes unused_padding unused_valid valid_held valid_core write write_at
    wrong x x_held x_next x_interface_info x_interface_parameter y y_held y_next y_core
    """.split()  # noqa: SIM905
)
# Names that VHDL's packages declare, which an entity of the same name would hide from its own architecture; libraries.
_DECLARED = frozenset(
    """
    bit bit_vector boolean character delay_length endfile endline falling_edge ieee integer line natural note now
    numeric_std output positive real resize rising_edge severity_level side std_logic std_logic_1164 std_logic_vector
    std_ulogic std_ulogic_vector string text textio time to_integer to_signed to_unsigned work
    """.split()  # noqa: SIM905
)
_OWN_FORMS = re.compile(r"x\d+(_\w*)?|[cnr]\d+|sum\d+|(s_axi|s_axis|m_axis)_\w+")

# Headers of C and POSIX: the header of a model of such a name would be included instead.
_HEADERS = frozenset(
    """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar unistd
    wchar wctype
    """.split()  # noqa: SIM905
)
_KEPT_OFF = RESERVED | _DECLARED | _OWN | _HEADERS


def plain(text: str) -> str:
    """Letters, digits and underscores only, at most 40 of them; may be empty."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9]+", "_", ascii_text).strip("_")[:MOST_CHARACTERS].strip("_")


def identifier(text: str) -> str:
    """A model's name as an identifier of C, C++, Verilog and VHDL that its files do not use otherwise; `forest` if no
    character of it can be kept."""
    name = plain(text) or "forest"
    taken = name[0].isdigit() or name.lower() in _KEPT_OFF or _OWN_FORMS.fullmatch(name.lower())
    return f"m_{name}" if taken else name


def class_name(text: str, used: frozenset[str]) -> str:
    """A model's name as a Python class, different from keywords and from the names that its module uses."""
    name = identifier(text)
    return f"m_{name}" if iskeyword(name) or name in used else name


def feature_name(index: int, text: str) -> str:
    """A feature's name as an identifier: unique by its index."""
    tail = plain(text)
    return f"x{index}_{tail}" if tail and tail != f"x{index}" else f"x{index}"


def port_name(port: Port) -> str:
    """A port's name as an identifier, followed by the feature's name."""
    return feature_name(port.index, port.title) if port.title else port.name


def net_name(net: Net, cell: Cell) -> str:
    """A net's name, the same in every hardware description: equality is proved net by net. Constants have none."""
    match cell:
        case Const():
            return ""
        case Input(port):
            return port_name(port)
        case Less() | InSet():
            return f"c{net}"
        case Register():
            return f"r{net}"
        case _:
            return f"sum{net}" if isinstance(cell, SumCell) else f"n{net}"


def c_string(text: str) -> str:
    """A C string literal of any text, in UTF-8; octal escapes end after three digits, whatever follows."""
    parts = []
    for byte in text.encode("utf-8", "replace"):
        character = chr(byte)
        fine = 32 <= byte < 127 and character not in '"\\?'
        parts.append(character if fine else f"\\{byte:03o}")
    return '"' + "".join(parts) + '"'
