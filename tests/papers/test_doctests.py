"""Runs the examples of the estimators' docstrings."""

import doctest
import inspect

import pytest

from forestc import papers


@pytest.mark.parametrize("name", papers.__all__)
def test_examples_run(name):
    kind = getattr(papers, name)
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(kind), {}, name, None, 0)
    assert example.examples
    output = []
    failed, _ = doctest.DocTestRunner().run(example, out=output.append)
    assert not failed, "".join(output)
