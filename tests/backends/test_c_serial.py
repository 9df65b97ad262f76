"""Tests the C server of rows over a serial line with an independent reader and writer of frames."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from models import trained

import forestc
from forestc.backends.c.serial import line_of
from forestc.backends.vectors import vectors
from forestc.forest.evaluate import evaluate_words
from forestc.rows.batches import ArrayRows
from forestc.system.calls import pseudo_terminal
from forestc.toolchain.compilers import STRICT, c_compiler

# On the host, standard input and output are the line.
HOST = """#include <stdio.h>
#include "m_serial.h"
static int read_byte(void *port) { (void)port; return getchar(); }
static void write_byte(void *port, uint8_t byte) { (void)port; (void)putchar(byte); }
int main(void)
{
    static m_serial line;
    m_serial_begin(&line, read_byte, write_byte, NULL);
    m_serial_poll(&line);
    return 0;
}
"""

# The UART of qemu's board mps2-an385.
ARM = """#include "m_serial.h"
#define UART ((volatile uint32_t *)0x40004000)
int main(void);
void stop(int status);
void stop(int status) { (void)status; for (;;) { } }
static int read_byte(void *port) { (void)port; return (UART[1] & 2u) != 0u ? (int)UART[0] : -1; }
static void write_byte(void *port, uint8_t byte)
{
    (void)port;
    while ((UART[1] & 1u) != 0u) { }
    UART[0] = byte;
}
int main(void)
{
    static m_serial line;
    UART[4] = 16u;
    UART[2] = 3u;
    m_serial_begin(&line, read_byte, write_byte, 0);
    for (;;) { m_serial_poll(&line); }
}
"""
QEMU_FILES = Path(__file__).parents[2] / "examples" / "firmware_qemu"


def frame(kind: int, sequence: int, payload: bytes) -> bytes:
    body = struct.pack("<BHH", kind, sequence, len(payload)) + payload
    body += zlib.crc32(body).to_bytes(4, "little")
    return b"~" + body.replace(b"}", b"}]").replace(b"~", b"}^") + b"~"


def frames(line: bytes) -> list[tuple[int, int, bytes]]:
    found = []
    for part in filter(None, line.split(b"~")):
        body = part.replace(b"}^", b"~").replace(b"}]", b"}")
        kind, sequence, length = struct.unpack("<BHH", body[:5])
        assert len(body) == length + 9 and zlib.crc32(body[:-4]) == int.from_bytes(body[-4:], "little")
        found.append((kind, sequence, body[5:-4]))
    return found


def compiled(kind: str, folder: Path, **options):
    model, X, y = trained(kind)
    made = forestc.compile(model, X, folder / "out", label=y, targets="c", name="m", c_project="serial", **options)
    return made.design, X


def requests_of(design, X, count: int):
    """Returns frames that ask for rows, the number of rows in each, the rows' words and the bytes of a result."""
    line, forest = line_of(design.forest, design.c_options), design.forest
    found = next(batch for batch in vectors(forest, ArrayRows(np.asarray(X, dtype=np.float64)), 256, 0, count))
    rows = found.raw if line.inputs.raw else found.words
    sent, words = line.sent(rows[:count]), found.words[:count]
    several = min(128 // line.row_bytes or 1, 128 // line.result_bytes or 1)
    parts = [sent[start : start + several] for start in range(0, len(sent), several)]
    return [frame(2, index, part.tobytes()) for index, part in enumerate(parts)], words, line


def assert_right(answers, design, words, line):
    payload = b"".join(payload for kind, _, payload in answers if kind == 0x82)
    types = [(kind, f"<{'i' if word.signed else 'u'}{word.width // 8}", (count,)) for kind, count, word in line.results]
    got = np.frombuffer(payload, dtype=types)
    expected = evaluate_words(design.forest, words)
    assert len(got) == len(words) and np.array_equal(got["score"], expected.scores)
    if design.forest.decides:
        assert np.array_equal(got["label"], expected.index.reshape(len(words), -1))


def on_host(folder: Path, sent: bytes) -> list[tuple[int, int, bytes]]:
    c = folder / "out" / "c"
    (c / "main.c").write_text(HOST)
    subprocess.run([c_compiler(), *STRICT, "main.c", "-o", "m"], cwd=c, check=True)
    return frames(subprocess.run([str(c / "m")], input=sent, capture_output=True, check=True).stdout)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("forest-text-labels", {}),
        ("xgboost-missing", {"c_inputs": "struct"}),
        ("tree-regression", {"c_inputs": "float"}),
        ("xgboost-multi", {"c_inputs": "raw", "c_types": "f1=double,*=float"}),
    ],
)
def test_rows_are_answered_as_the_evaluator_answers(kind, options, tmp_path):
    design, X = compiled(kind, tmp_path, **options)
    sent, words, line = requests_of(design, X, 100)
    answers = on_host(tmp_path, b"".join(sent))
    assert [sequence for _, sequence, _ in answers] == list(range(len(sent)))
    assert_right(answers, design, words, line)


def test_frames_that_are_not_whole_get_no_answer(tmp_path):
    design, X = compiled("forest-text-labels", tmp_path)
    (good, *_), _, line = requests_of(design, X, 100)
    flipped = bytearray(good)
    flipped[9] ^= 1
    wrong = [
        bytes(flipped),
        good[:-3] + b"~",  # cut
        good[:5] + good[6:],  # a byte is lost
        frame(2, 7, bytes(5000)),  # longer than the firmware's memory
        b"~~~~" + bytes(3) + b"~",
    ]
    answers = on_host(tmp_path, b"".join(wrong) + frame(1, 515, b"") + frame(2, 3, b"") + frame(9, 4, b"")
                      + frame(2, 5, bytes(line.row_bytes + 1)) + good)  # fmt: skip
    identity = struct.pack("<BBBBHHH", 1, 3, 1, 0, 128, line.row_bytes, line.result_bytes)
    identity += bytes.fromhex(design.manifest["hash"])[:8] + bytes(4)
    assert answers[:4] == [(0x81, 515, identity), (0x82, 3, b""), (0xFF, 4, b"\3"), (0xFF, 5, b"\1")]
    assert [kind for kind, *_ in answers[4:]] == [0x82]


def test_the_sketch_compiles_for_an_uno(tmp_path, need_tool):
    need_tool("avr-g++")
    compiled("forest-text-labels", tmp_path)
    c = tmp_path / "out" / "c"
    (c / "Arduino.h").write_text(
        "#include <stdint.h>\nstruct Port { void begin(long); int read(); void write(uint8_t); };\n"
        "extern Port Serial;\n"
    )
    sketch = ["-include", "Arduino.h", "-x", "c++", "examples/m_serial/m_serial.ino"]
    flags = [flag for flag in STRICT if not flag.startswith("-std")]
    compile_it = ["avr-g++", "-mmcu=atmega328p", "-Os", "-std=gnu++11", *flags, "-I.", *sketch, "-c", "-o", "s.o"]
    subprocess.run(compile_it, cwd=c, check=True)


def test_a_cortex_m3_answers_over_its_uart(tmp_path, need_tool):
    need_tool("qemu-system-arm")
    need_tool("arm-none-eabi-gcc")
    design, X = compiled("forest-text-labels", tmp_path)
    quiet = ["-display", "none", "-monitor", "none", "-serial", "pty"]
    board = subprocess.Popen(
        ["qemu-system-arm", "-M", "mps2-an385", "-kernel", str(cortex_m3(tmp_path)), *quiet],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        (port,) = re.findall(r"redirected to (/dev/\S+)", board.stdout.readline())
        found = forestc.check(design, X, random_rows=2000, engines=["board"], port=port)
    finally:
        board.kill()
        board.communicate()
    assert found.ok and found.engines["board"].differences == 0


def cortex_m3(folder: Path) -> Path:
    """Builds an image of the compiled folder for qemu's board mps2-an385."""
    c = folder / "out" / "c"
    (c / "main.c").write_text(ARM)
    for name in ("start.c", "link.ld"):
        shutil.copy(QEMU_FILES / name, c)
    build = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-Os", "-std=c99", "-nostdlib", "-T", "link.ld"]
    subprocess.run([*build, "start.c", "main.c", "-lc", "-lgcc", "-o", "m.elf"], cwd=c, check=True)
    return c / "m.elf"


# The UART of an ATmega328P, at 1,000,000 baud.
AVR = """#include <avr/io.h>
#include "m_serial.h"
static int read_byte(void *port) { (void)port; return (UCSR0A & (1 << RXC0)) != 0 ? UDR0 : -1; }
static void write_byte(void *port, uint8_t byte)
{
    (void)port;
    while ((UCSR0A & (1 << UDRE0)) == 0) { }
    UDR0 = byte;
}
int main(void)
{
    static m_serial line;
    UBRR0L = 0;
    UCSR0B = (1 << RXEN0) | (1 << TXEN0);
    m_serial_begin(&line, read_byte, write_byte, 0);
    for (;;) { m_serial_poll(&line); }
}
"""

# Runs an image in libsimavr; standard input and output are its UART.
UNO = """#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <simavr/avr_uart.h>
static int room = 1;
static void sent(avr_irq_t *irq, uint32_t value, void *port)
{
    const uint8_t byte = (uint8_t)value;
    (void)irq; (void)port;
    (void)!write(1, &byte, 1);
}
static void more(avr_irq_t *irq, uint32_t value, void *port) { (void)irq; (void)value; (void)port; room = 1; }
static void full(avr_irq_t *irq, uint32_t value, void *port) { (void)irq; (void)value; (void)port; room = 0; }
int main(int argc, char **argv)
{
    elf_firmware_t image;
    avr_t *avr = avr_make_mcu_by_name("atmega328p");
    uint32_t flags = 0;
    long step = 0;
    (void)argc;
    memset(&image, 0, sizeof image);
    if (elf_read_firmware(argv[1], &image) != 0) return 2;
    avr_init(avr);
    image.frequency = 16000000;
    avr_load_firmware(avr, &image);
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), sent, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XON), more, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XOFF), full, NULL);
    for (;;) {
        const int state = avr_run(avr);
        if (state == cpu_Done || state == cpu_Crashed) return 3;
        if (++step % 200 == 0 && step > 100000 && room) {  /* the program has started */
            struct pollfd wait = {0, POLLIN, 0};
            uint8_t byte;
            if (poll(&wait, 1, 0) > 0) {
                if (read(0, &byte, 1) != 1) return 0;
                avr_raise_irq(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT), byte);
            }
        }
    }
}
"""


@pytest.mark.long
def test_an_uno_answers_over_its_uart(tmp_path, need_tool):
    need_tool("avr-gcc")
    design, X = compiled("forest-text-labels", tmp_path)
    c = tmp_path / "out" / "c"
    (c / "main.c").write_text(AVR)
    (c / "uno.c").write_text(UNO)
    avr = ["avr-gcc", "-mmcu=atmega328p", "-DF_CPU=16000000UL", "-Os", "-std=gnu99"]
    subprocess.run([*avr, "main.c", "-o", "m.elf"], cwd=c, check=True)
    subprocess.run([c_compiler(), "-O2", "uno.c", "-lsimavr", "-o", "uno"], cwd=c, check=True)
    ours, theirs, port = pseudo_terminal()
    board = subprocess.Popen(["./uno", "m.elf"], cwd=c, stdin=ours, stdout=ours)
    try:
        found = forestc.check(design, X, random_rows=2000, engines=["board"], port=port)
    finally:
        board.kill()
        board.wait()
        os.close(ours)
        os.close(theirs)
    assert found.ok and found.engines["board"].differences == 0
