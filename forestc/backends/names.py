"""Turns names of models and features into identifiers for generated files.

A feature's identifier begins with `x` and its index, so it is unique and no keyword.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Mapping
from keyword import iskeyword

from forestc.forest.ir import Feature
from forestc.netlist.ir import Cell, Const, Input, InSet, Less, Net, Register, SumCell
from forestc.netlist.ports import Port

MOST_CHARACTERS = 40

# Reserved words of C, C++, Verilog, SystemVerilog and VHDL, in lower case.
RESERVED = frozenset(
    """
    abs accept_on access after alias alignas alignof all always always_comb always_ff always_latch and and_eq
    architecture array asm assert assign assume assume_guarantee attribute auto automatic before begin bind bins
    binsof bit bitand bitor block body bool break buf buffer bufif0 bufif1 bus byte case casex casez catch cell
    chandle char checker class clocking cmos compl component config configuration const constant constexpr constraint
    context continue cover covergroup coverpoint cross deassign decltype default defparam delete design disable
    disconnect dist do double downto dynamic_cast edge else elsif end endcase endchecker endclass endclocking
    endconfig endfunction endgenerate endgroup endinterface endmodule endpackage endprimitive endprogram endproperty
    endsequence endspecify endtable endtask entity enum event eventually exit expect explicit export extends extern
    fairness false file final first_match float for force foreach forever fork forkjoin friend function generate
    generic genvar global goto group guarded highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies
    import impure in incdir include inertial initial inline inout input inside instance int integer interconnect
    interface intersect is join join_any join_none label large let liblist library linkage literal local localparam
    logic long longint loop macromodule main map matches medium mod modport module mutable namespace nand negedge
    nettype new next nexttime nmos noexcept nor noshowcancelled not not_eq notif0 notif1 null nullptr of on open
    operator or or_eq others out output package packed parameter pmos port posedge postponed primitive priority
    private procedure process program property protected public pull0 pull1 pulldown pullup pulsestyle_onevent pure
    rand randc randcase randomize randsequence range rcmos real realtime record ref reg register reinterpret_cast
    reject reject_on release rem repeat report restrict restrict_guarantee return rnmos rol ror rpmos rtran s_always
    s_eventually s_nexttime s_until s_until_with scalared select sequence severity shared short shortint shortreal
    showcancelled signal signed sizeof sla sll small soft solve specify specparam sra srl static static_assert
    static_cast std string strong strong0 strong1 struct subtype super supply0 supply1 switch sync_accept_on
    sync_reject_on table tagged task template then this throughout throw time timeprecision timeunit to tran transport
    tri tri0 tri1 triand trior trireg true try type typedef typeid typename unaffected union unique unique0 units
    unsigned until until_with untyped use using uwire var variable vectored view virtual vmode void volatile vpkg
    vprop vunit wait wait_order wand wchar_t weak weak0 weak1 when while wildcard wire with within wor xnor xor xor_eq
    """.split()  # noqa: SIM905  a list of this length is read as words
)

# No module may have these names, in upper or lower case. `identifier` puts `m_` before them.
TAKEN: Mapping[str, frozenset[str]] = {
    "words of the languages": RESERVED,
    # Some tools reject modules named like their ports, tasks or instances; Verilator uses `top`.
    "Verilog files": frozenset(
        """
        accept aclk address address_held aresetn beat clear clear_wanted clk compare control core data_held dut en
        en_held expected finish fire flight forestc_registered given idle in_valid inputs last_beat load meta none okay
        open out_valid path pop push read read_at registers result results row rows_in rows_in_count rows_out
        rows_out_count rst rst_held seen sent short_rows short_rows_count skipped_x skipped_y slverr stalls_in
        stalls_in_count stalls_out stalls_out_count step stored taken taken_next top unused unused_lanes unused_padding
        unused_read unused_valid unused_x unused_y valid_core valid_held vectors write write_at wrong x x_held
        x_interface_info x_interface_parameter x_next y y_core y_held y_next
        """.split()  # noqa: SIM905
    ),
    # The VHDL package of a design declares these functions.
    "VHDL's package of a design": frozenset({"pack", "unpack"}),
    # A component with such a name would hide a declaration of a standard VHDL package.
    "packages of VHDL": frozenset(
        """
        ack append_mode bel bit bit_vector boolean boolean_vector bread bs bwrite can character cr dc1 dc2 dc3 dc4
        deallocate del delay_length dle domain_type em endfile endline enq eot error esc etb etx failure falling_edge
        ff file_close file_open file_open_kind file_open_status find_leftmost find_rightmost flush foreign fs fsp gs
        hr hread ht hwrite ieee input integer integer_vector is_x justified justify lf line maximum min minimum
        mode_error ms nak name_error natural note now ns nul numeric_std open_ok oread output owrite positive ps read
        read_mode readline real real_vector resize resolved rising_edge rotate_left rotate_right rs sec severity_level
        shift_left shift_right si side so soh sread status_error std_logic std_logic_1164 std_logic_vector std_match
        std_ulogic std_ulogic_vector string stx swrite syn tee text textio time time_vector to_01 to_bit to_bitvector
        to_bstring to_bv to_hex_string to_hstring to_integer to_octal_string to_ostring to_sbv to_signed to_slv
        to_std_logic_vector to_std_ulogic_vector to_stdlogicvector to_stdulogic to_stdulogicvector to_string to_sulv
        to_suv to_unsigned to_ux01 to_x01 to_x01z u_signed u_unsigned unresolved_signed unresolved_unsigned us usp
        ux01 ux01z vt warning width work write write_mode writeline x01 x01z
        """.split()  # noqa: SIM905
    ),
    # A model's header with such a name would be included instead of the library's.
    "headers of C": frozenset(
        """
        alloca alltypes assert availability availabilitymacros byteswap cdefs complex corecrt crtdefs ctype endian
        errno features fenv float ieeefp inttypes iso646 limits locale malloc math memory newlib pthread sal sched
        search setjmp signal stdalign stdarg stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn
        string strings sys syslimits targetconditionals tgmath threads time types uchar unistd vadefs vcruntime wchar
        wctype xlocale yvals
        """.split()  # noqa: SIM905
    ),
    # <signal.h> defines macros such as si_value, which could be functions of a model named `si`.
    "macros of C": frozenset({"si", "sigev"}),
}
_TAKEN = frozenset[str]().union(*TAKEN.values())
_TAKEN_FORMS = re.compile(r"x\d+(_\w*)?|[cnr]\d+|sum\d+|(s_axi|s_axis|m_axis)_\w+")

# No class in the generated Amaranth module may have these names. Case matters.
TAKEN_IN_AMARANTH = frozenset(
    """
    Cat ClockDomain Const EnableInserter Fragment In LATENCY Module Mux Out Path Signal X Y backend clock convert core
    data done elaborate fragment held held_valid i m name o os packaged platform port ports reset_less run self shape
    shutil signed str stream sys unsigned value verilog wiring word
    """.split()  # noqa: SIM905
)


def plain(text: str) -> str:
    """Returns a text as at most 40 ASCII letters, digits and underscores. Accents are removed. Other letters outside
    ASCII are dropped."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9]+", "_", ascii_text).strip("_")[:MOST_CHARACTERS].strip("_")


def for_comments(feature: Feature) -> str:
    """Returns a feature's name for comments, with its column if ASCII can't spell it."""
    name = plain(feature.name)
    return name if feature.name.isascii() else f"{name} (column {feature.column} of a row, from 0)".strip()


def identifier(text: str) -> str:
    """Returns a model's name as an identifier of C, C++, Verilog and VHDL that is not taken by other names in its
    files."""
    name = plain(text) or "forest"
    taken = name[0].isdigit() or name.lower() in _TAKEN or _TAKEN_FORMS.fullmatch(name.lower())
    return f"m_{name}" if taken else name


def is_identifier(name: str) -> bool:
    """Returns True if a name has the form that `identifier` returns, at any length."""
    head = name[:MOST_CHARACTERS].rstrip("_")
    return name.isascii() and name.isidentifier() and identifier(head) == head


def class_name(text: str) -> str:
    """Returns a model's name as the name of a class in the generated Amaranth module."""
    name = identifier(text)
    return f"m_{name}" if iskeyword(name) or name in TAKEN_IN_AMARANTH else name


def python_module(text: str) -> str:
    """Returns a model's name as the name of a Python module that hides no module of Python, nor NumPy."""
    name = identifier(text)
    return f"m_{name}" if iskeyword(name) or name in sys.stdlib_module_names or name == "numpy" else name


def feature_name(index: int, text: str) -> str:
    """Returns a feature's name as an identifier, unique by the feature's index: x3_width, or x3 for an empty name."""
    tail = plain(text)
    return f"x{index}_{tail}" if tail and tail != f"x{index}" else f"x{index}"


def port_name(port: Port) -> str:
    """Returns a port's name as an identifier, with the feature's name for an input port."""
    return feature_name(port.index, port.title) if port.title else port.name


def net_name(net: Net, cell: Cell) -> str:
    """Returns a net's name, the same in every language, so that cores can be compared net by net; "" for a constant."""
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
    parts = []
    for byte in text.encode("utf-8", "replace"):
        character = chr(byte)
        fine = 32 <= byte < 127 and character not in '"\\?'
        parts.append(character if fine else f"\\{byte:03o}")
    return '"' + "".join(parts) + '"'
