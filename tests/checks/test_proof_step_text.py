"""Tests that the reader of the engine's Verilog is strict: it refuses text that tools read differently, wherever it
stands."""

from __future__ import annotations

import pytest

from forestc.backends.engine.image_reader import EngineShape
from forestc.checks.proof import ProofPart
from forestc.checks.proof.parts import UnprovedError
from forestc.checks.proof.step import prove_step
from forestc.checks.proof.verilog_text import OutsideError, read_step
from forestc.engine.capacity import Capacity
from forestc.engine.folder import described
from forestc.engine.verilog import emit

SMALL = Capacity(3, 64, 3, 5, word_bits=8, outputs=2, scores=True, name="walks")
CAPACITIES = (
    SMALL,
    Capacity(1, 4096, 2, 6, word_bits=2, banks=1),
    Capacity(9, 64, 2, 2, word_bits=16, outputs=7, load="axi-lite"),
)
BELOW = "    wire below = x < operand;\n"
OTHER = "    wire below = x <= operand;\n"


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_an_engine_is_read(capacity):
    step = read_step(emit(capacity).encode(), capacity)
    assert step.count("module ") == 1 and "//" not in step and BELOW.strip() in step
    older = emit(capacity).replace("forestc 0.1.", "forestc 12.34.", 1)
    assert read_step(older.encode(), capacity) == step


HIDDEN = {
    "a macro of yosys": (BELOW, f"`ifdef YOSYS\n{BELOW}`else\n{OTHER}`endif\n"),
    "a macro of synthesis": (BELOW, f"`ifndef SYNTHESIS\n{OTHER}`else\n{BELOW}`endif\n"),
    "a command in a comment": (BELOW, f"// synthesis translate_off\n{OTHER}// synthesis translate_on\n"),
    "another command": (BELOW, f"{BELOW[:-1]}  // synopsys translate_off\n"),
    "a command of Verilator": (BELOW, f"{BELOW[:-1]}  // verilator lint_off WIDTH\n"),
    "a comment of several lines": (BELOW, f"/* verilator lint_off WIDTH */{BELOW}"),
    "an attribute": (BELOW, f"(* keep *) {BELOW}"),
    "an attribute of a module": ("module walks_step", "(* blackbox *)\nmodule walks_step"),
    "a known attribute on the step": (BELOW, f"(* keep_hierarchy *) {BELOW}(* nowhere *)\n"),
    "a file": (BELOW, f'`include "below.v"\n{BELOW}'),
    "a macro": (BELOW, "`define LT <=\n    wire below = x `LT operand;\n"),
    "a timescale": ("`default_nettype none", "`timescale 1ns / 1ps\n`default_nettype none"),
    "a directive": (BELOW, f"`celldefine\n{BELOW}"),
    "an escaped name": (BELOW, "    wire \\below = x < operand;\n"),
    "a letter that is not ASCII": ("// One step", "// One st\u00e9p"),
    "a carriage return": (BELOW, BELOW.replace("\n", "\r\n")),
    "a system task": ("    initial", "    initial $finish;\n    initial"),
    "a system function": (BELOW, "    wire below = $signed(x) < $signed(operand);\n"),
    "a string": (BELOW, f'{BELOW}    wire [7:0] word = "a";\n'),
    "a delay": (BELOW, BELOW.replace("=", "= #1")),
    "an implicit width": (BELOW, BELOW.replace("x <", "x + 0 <")),
    "an unknown bit": (BELOW, BELOW.replace("x <", "x + 8'bx <")),
    "a literal that does not fit": ("2'd2", "2'd6"),
    "a part that is not there": ("node[1:0]", "node[99:98]"),
    "a bit that is not there": ("mask[x[2:0]]", "mask[x[3:0]]"),
    "a name in another module": ("    always @*", "    initial walks.step.below = 1;\n    always @*"),
    "a name into the step": ("endmodule\n\n", "endmodule\n\nmodule o; assign walks_step.left = 1'b0; endmodule\n", 1),
    "force": ("endmodule\n\n", "endmodule\n\nmodule o; initial force left = 1'b0; endmodule\n", 1),
    "parameters": ("endmodule\n\n", "endmodule\n\nmodule o; defparam a = 1'b0; endmodule\n", 1),
    "bind": ("endmodule\n\n", "endmodule\n\nbind walks_step other o ();\n", 1),
    "a second step": ("endmodule\n\n", "endmodule\n\nmodule walks_step (\nendmodule\n\n", 1),
    "a second wire": (BELOW, BELOW + BELOW),
    "a second driver": (BELOW, f"{BELOW}    assign below = 1'b0;\n"),
    "a process": (BELOW, "    reg below;\n    always @* below = x < operand;\n"),
    "a use before the declaration": (BELOW, f"    wire early = flag2;\n{BELOW}    wire flag2 = node[2];\n"),
    "code after the end": ("`default_nettype wire\n", "`default_nettype wire\nmodule other; endmodule\n"),
    "no end of the line": ("`default_nettype wire\n", "`default_nettype wire"),
}  # fmt: skip


@pytest.mark.parametrize("what", HIDDEN)
def test_what_tools_read_in_different_ways_is_refused(what):
    old, new, *once = HIDDEN[what]
    text = emit(SMALL)
    assert old in text
    with pytest.raises(OutsideError, match=r"line \d+ is outside the Verilog that the proof reads"):
        read_step(text.replace(old, new, *(once or [1])).encode(), SMALL)


def test_a_hidden_comparison_is_not_proved():
    part, shape = ProofPart("step", 2), EngineShape.of(described(SMALL))
    hidden = emit(SMALL).replace(BELOW, f"`ifdef YOSYS\n{BELOW}`else\n{OTHER}`endif\n")
    with pytest.raises(UnprovedError, match="`ifdef YOSYS is not expected"):
        prove_step(shape, hidden.encode(), SMALL, part)
    with pytest.raises(UnprovedError, match="gives another next than the definition") as error:
        prove_step(shape, emit(SMALL).replace(BELOW, OTHER).encode(), SMALL, part)
    assert error.value.wrong and part.proved == 0
