"""Tests amounts as people write them."""

from __future__ import annotations

import pytest

from forestc.backends.c.choice import check
from forestc.backends.c.options import COptions
from forestc.cli.program import main
from forestc.errors import OptionError
from forestc.exploration.goals import limits_of
from forestc.fields.amounts import amount, tolerance_of
from forestc.options.compile import CompileOptions


@pytest.mark.parametrize(
    "text, value",
    [
        ("4000", 4000), (" 4,000 ", 4000), ("4_000", 4000), ("2kB", 2000), ("4k", 4000), ("4K", 4000),
        ("16 KiB", 16384), ("16ki", 16384), ("1.5KiB", 1536), ("0.25MB", 250_000), ("1MiB", 1 << 20), ("12 B", 12),
    ],
)  # fmt: skip
def test_what_is_read(text, value):
    assert amount(text, "bytes") == value
    assert COptions(cpu="avr", flash=text).limits == CompileOptions(None, None, None, cpu="avr", flash=text).limits
    assert COptions(flash=text).c_record()["flash"] == value


@pytest.mark.parametrize(
    "text", ["", "k", "2 kg", "2 kilobytes", "1.5", "-4k", "4kBB", "1e3", "0x10", "٣k", "9" * 40, "nan"]
)
def test_what_is_refused(text):
    for options in (COptions, lambda **given: CompileOptions(None, None, None, **given)):
        with pytest.raises(OptionError, match=r"flash=: .* is no number of bytes; write it as 4000, 4kB \(4,000\)"):
            options(flash=text)


def test_instructions_are_no_bytes():
    assert COptions(cpu="avr", instructions="3k").limits == {"instructions": 3000}
    with pytest.raises(OptionError, match="instructions=: '3kB' is no number of instructions; write it as 4000 or 4k"):
        COptions(instructions="3kB")
    with pytest.raises(OptionError, match=r"ram=.*; give a number of bytes, at least 1"):
        check(COptions(cpu="avr", ram="0"))


def test_the_command_line_reads_them_alike(tmp_path, capsys):
    (tmp_path / "m.json").write_text("{}")
    call = [
        "compile",
        str(tmp_path / "m.json"),
        "-o",
        str(tmp_path / "out"),
        "--target",
        "c",
        "--cpu",
        "avr",
        "--flash",
    ]
    for text, shown in (("2 kg", True), ("2kB", False)):
        with pytest.raises(SystemExit):
            main([*call, text])
        assert ("--flash: '2 kg' is no number of bytes; write it as" in capsys.readouterr().err) is shown


def test_limits_of_a_search_are_read_alike():
    (limit,) = limits_of(["flash<=2KiB"], None, "avr")
    assert limit.value == 2048
    with pytest.raises(OptionError, match="can't read the limit 'flash<=2 kg'"):
        limits_of(["flash<=2 kg"], None, "avr")
    with pytest.raises(OptionError, match="can't read the limit 'accuracy>=1k'"):
        limits_of(["accuracy>=1k"], None, "avr")


def test_a_tolerance_is_a_share_or_a_percentage():
    assert [tolerance_of(given) for given in (None, 0, 0.01, "0.01", "1%", " 1 % ", "50%")] == [
        None,
        0,
        *[0.01] * 4,
        0.5,
    ]
    for given in (1, "1", 0.51, "51%", -0.1, "a", "nan", True, "inf"):
        with pytest.raises(OptionError, match="0.01, or 1%, is one point"):  # noqa: RUF043
            tolerance_of(given)
