"""Public names have docstrings in numpydoc's sections, which agree with their signatures; their examples run."""

import builtins
import doctest
import gc
import inspect
import re
import warnings
from dataclasses import fields, is_dataclass
from functools import cached_property

import pytest
from needs import lacking

import forestc
from forestc import errors, papers
from forestc.backends.c.options import COptions

PUBLIC = {name: getattr(home, name) for home in (forestc, papers) for name in home.__all__}


def sections_of(thing):
    """Returns the texts of numpydoc's sections, by name."""
    _, *parts = re.split(r"^(\w+)\n-+$", inspect.getdoc(thing) or "", flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def entries_of(thing, section):
    """Returns the lines that start the entries of a section: names and type, or a type alone."""
    return re.findall(r"^\S.*", sections_of(thing).get(section, ""), re.MULTILINE)


def names_of(thing, section):
    entries = [entry.partition(" : ")[0].split(", ") for entry in entries_of(thing, section)]
    return [name.lstrip("*") for names in entries for name in names]


def own_members(thing):
    """Returns the public methods and properties that forestc itself defines for a class, by name."""
    own = [vars(kind) for kind in reversed(thing.__mro__) if kind.__module__.startswith("forestc.")]
    made_by_sklearn = re.compile(r"_|set_\w+_request$")
    members = {name: member for kind in own for name, member in kind.items() if hasattr(member, "__get__")}
    return {name: member for name, member in members.items() if not made_by_sklearn.match(name)}


MEMBERS = {
    f"{name}.{own}": (thing, own, member)
    for name, thing in PUBLIC.items()
    if inspect.isclass(thing)
    for own, member in own_members(thing).items()
    if own not in names_of(thing, "Attributes")
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


def parameters_of(thing):
    return [name for name in inspect.signature(thing).parameters if name != "self"]


@pytest.mark.parametrize("name", CALLED)
def test_parameters_are_those_of_the_signature_in_its_order(name):
    assert names_of(CALLED[name], "Parameters") == parameters_of(CALLED[name])


CLASSES = [COptions, *(thing for thing in PUBLIC.values() if inspect.isclass(thing))]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_class_describes_its_parameters_or_fields_in_order(kind):
    wanted = parameters_of(kind)
    if is_dataclass(kind):
        assert wanted == [field.name for field in fields(kind)]
    assert (names_of(kind, "Parameters") or names_of(kind, "Attributes")) == wanted


@pytest.mark.parametrize("name", CALLED)
def test_a_result_is_described_where_there_is_one(name):
    annotation = inspect.signature(CALLED[name]).return_annotation
    assert annotation is not inspect.Signature.empty
    assert bool(entries_of(CALLED[name], "Returns")) == (annotation not in (None, "None"))


@pytest.mark.parametrize("name", DOCUMENTED)
def test_errors_are_errors(name):
    for kind in entries_of(DOCUMENTED[name], "Raises"):
        assert issubclass(getattr(errors, kind, None) or getattr(builtins, kind), Exception)


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if not inspect.isclass(thing)])
def test_a_function_says_what_it_raises(name):
    assert entries_of(PUBLIC[name], "Raises")


def after(name):
    """The name after whose example that of a name runs, in the same folder; "" for one that stands alone."""
    found = re.match(r"\s*After the example of `(\w+)`:", sections_of(PUBLIC[name])["Examples"])
    return found[1] if found else ""


@pytest.mark.parametrize("first", [name for name in PUBLIC if not after(name)])
def test_examples_run(first, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (first, *(name for name in PUBLIC if after(name) == first)):
        example = doctest.DocTestParser().get_doctest(sections_of(PUBLIC[name])["Examples"], {}, name, None, 0)
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
