"""Tests that an option is written once: the command line, the keywords of Python and the manifest's record read its
field."""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import signature
from pathlib import Path

import pytest
import typer

import forestc
from forestc.backends.stream.options import StreamOptions
from forestc.cli.parameters import add_command
from forestc.errors import OptionError
from forestc.fields.options import flag, option, options_of, recorded, schema_of, takes
from forestc.options.compile import CompileOptions

PACKAGE = Path(forestc.__file__).parent


@dataclass(frozen=True)
class Options:
    size: int = option(3, "-s --size", "how many", "N", least=1)
    names: tuple[str, ...] = option((), "--names", "which ones", listed=True)
    quick: bool = option(True, "--no-quick", "take the time")
    stream: StreamOptions | None = option(None, "--stream", "a wrapper", group=StreamOptions)


@pytest.fixture
def run():
    """Returns a function that runs a command of these options and gives the arguments of its call."""
    app, calls = typer.Typer(), []

    def one(call):
        """Records the call as a command would."""
        calls.append(call.given)

    add_command(app, Options, one)

    def called(*arguments):
        app(list(arguments), standalone_mode=False)
        return calls[-1]

    return called


def test_the_command_line_gives_what_is_on_it_alone(run):
    assert run() == {}
    assert run("-s", "3", "--names", "a, b", "--no-quick") == {"size": 3, "names": ["a", "b"], "quick": False}
    assert run("--stream", "--align", "16") == {"stream": StreamOptions(align=16)}
    assert run("--stream", "axi-lite,align=16") == {"stream": StreamOptions(align=16, registers=True)}
    with pytest.raises(OptionError, match="add --stream"):
        run("--tuser", "2")


def test_a_function_takes_the_fields_and_names_the_nearest_one():
    @takes(Options)
    def sized(options):
        return options.size

    assert list(signature(sized).parameters) == ["size", "names", "quick", "stream"]
    assert sized() == 3 and sized(4) == 4 and sized(size=5) == 5
    with pytest.raises(TypeError, match=r"sized\(\) got an unexpected keyword argument 'sise'; did you mean 'size'\?"):
        sized(sise=5)
    with pytest.raises(TypeError, match=r"'latncy'; did you mean 'latency'\?"):
        forestc.compile("m.json", None, "out", latncy=2)


def test_records_and_schemas_hold_the_same_keys():
    options = CompileOptions("m.json", "rows.csv", "out", ranges=None, held_out=Path("a/b.csv"), label=[1, 2])
    found = {each.key: each.value for each in recorded(options)}
    assert list(found) == list(schema_of(CompileOptions))
    assert found["held_out"] == "b.csv" and found["label"] == "given in Python" and found["stream"] is False
    assert schema_of(Options)["size"] == {"type": "integer", "minimum": 1, "description": "-s: how many"}


def test_every_option_says_what_it_does():
    for _, output in options_of(CompileOptions):
        assert output.help and (output.flags or output.metavar)
    assert flag("-a --all", "everything")["option"].flags == ("-a", "--all")


def test_no_module_is_imported_by_its_name():
    """The lint of layers sees import statements only; public names are imported when first used."""
    for path in PACKAGE.rglob("*.py"):
        if path != PACKAGE / "__init__.py":
            assert not re.search(r"import_module\(\s*f?[\"']forestc", path.read_text(encoding="utf-8")), path
