"""Public names have docstrings in numpydoc's sections, which agree with their signatures; their examples run."""

import builtins
import doctest
import gc
import inspect
import re
import sys
import warnings
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path

import pytest
from needs import lacking

import forestc
from forestc import errors, papers
from forestc.backends.c.options import COptions

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))
from _sections import SECTIONS, own_members, parsed  # noqa: E402

PUBLIC = {name: getattr(home, name) for home in (forestc, papers) for name in home.__all__}
MEMBERS = {
    f"{name}.{own}": (thing, own, member)
    for name, thing in PUBLIC.items()
    if inspect.isclass(thing)
    for own, member in own_members(thing).items()
    if own not in parsed(inspect.getdoc(thing) or "").names("Attributes")
}
PROPERTIES = {name for name, (_, _, member) in MEMBERS.items() if isinstance(member, property | cached_property)}
# Methods of papers, as those of scikit-learn, may have a paragraph alone.
BRIEF = {
    name
    for name, (thing, _, member) in MEMBERS.items()
    if thing.__name__ in papers.__all__ and "\n\n" not in (inspect.getdoc(member) or "")
}
CALLED = {
    **{name: thing for name, thing in PUBLIC.items() if not inspect.isclass(thing)},
    **{name: getattr(thing, own) for name, (thing, own, _) in MEMBERS.items() if name not in PROPERTIES | BRIEF},
}
DOCUMENTED = {**PUBLIC, **{name: member for name, (_, _, member) in MEMBERS.items()}}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def sections_of(thing):
    return parsed(inspect.getdoc(thing) or "")


def parameters_of(thing):
    return [name for name in inspect.signature(thing).parameters if name != "self"]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_docstring_has_a_summary_of_a_line_and_sections_in_order(name):
    text = inspect.getdoc(DOCUMENTED[name])
    assert text and not text.startswith(" ")
    summary, _, rest = text.partition("\n")
    assert summary.endswith(".") and not rest.lstrip(" ").strip("\n").startswith("--")
    assert not rest or rest.startswith("\n"), "the summary has one line"
    heads = re.findall(r"^(\w[\w ]*)\n-+$", text, re.MULTILINE)
    assert heads == [section for section in SECTIONS if section in heads]
    doc = parsed(text)
    assert all(entry.meaning for entries in doc.entries.values() for entry in entries)
    assert all(entry.kind for section in ("Parameters", "Attributes") for entry in doc.entries.get(section, ()))
    assert not re.search(r"\bRaises\b", f"{doc.summary} {doc.more}")


@pytest.mark.parametrize("name", CALLED)
def test_parameters_are_those_of_the_signature_in_its_order(name):
    assert sections_of(CALLED[name]).names("Parameters") == parameters_of(CALLED[name])


CLASSES = [COptions, *(thing for thing in PUBLIC.values() if inspect.isclass(thing))]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_class_describes_its_parameters_or_fields_in_order(kind):
    doc, wanted = sections_of(kind), parameters_of(kind)
    if is_dataclass(kind):
        assert wanted == [field.name for field in fields(kind)]
    assert (doc.names("Parameters") or doc.names("Attributes")) == wanted


@pytest.mark.parametrize("name", CALLED)
def test_a_result_is_described_where_there_is_one(name):
    annotation = inspect.signature(CALLED[name]).return_annotation
    assert annotation is not inspect.Signature.empty
    assert bool(sections_of(CALLED[name]).entries.get("Returns")) == (annotation not in (None, "None"))


@pytest.mark.parametrize("name", DOCUMENTED)
def test_errors_are_errors(name):
    for entry in sections_of(DOCUMENTED[name]).entries.get("Raises", ()):
        kind = getattr(errors, entry.kind, None) or getattr(builtins, entry.kind)
        assert issubclass(kind, Exception)
        assert entry.meaning.startswith(("If ", "As for "))


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if not inspect.isclass(thing)])
def test_a_function_says_what_it_raises(name):
    assert sections_of(PUBLIC[name]).entries["Raises"]


def after(name):
    """The name after whose example that of a name runs, in the same folder; "" for one that stands alone."""
    found = re.match(r"After the example of `(\w+)`:", sections_of(PUBLIC[name]).texts["Examples"])
    return found[1] if found else ""


@pytest.mark.parametrize("first", [name for name in PUBLIC if not after(name)])
def test_examples_run(first, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (first, *(name for name in PUBLIC if after(name) == first)):
        example = doctest.DocTestParser().get_doctest(sections_of(PUBLIC[name]).texts["Examples"], {}, name, None, 0)
        assert example.examples
        output = []
        failed, _ = doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=output.append)
        if name := lacking("".join(output).rstrip()):
            pytest.skip(f"{name} is not installed")
        assert not failed, "".join(output)
    with warnings.catch_warnings():  # Amaranth warns of a component that goes before it is elaborated.
        warnings.simplefilter("ignore")
        del example
        gc.collect()


def test_each_example_runs():
    assert {after(name) for name in PUBLIC} - {""} <= {name for name in PUBLIC if not after(name)}
