"""Tests shared libraries as programs use them: from Python, from C and by a design."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from models import trained

import forestc
from forestc.errors import MissingToolError

pytestmark = pytest.mark.each_case


def compiled(folder, name="m", kind="xgboost-binary", **options):
    model, X, _ = trained(kind)
    return forestc.compile(model, X[:100], folder / "out", targets="shared", name=name, **options).design, X


def module_of(design):
    path = design.path("shared_python")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["xgboost-binary", "forest-multi", "boosting-regression", "xgboost-missing"])
def test_a_module_takes_rows_of_any_type_and_stride_as_the_evaluator_does(kind, tmp_path):
    design, X = compiled(tmp_path, kind=kind)
    module, X = module_of(design), np.asarray(X, dtype=np.float64)
    for rows in (X, X.astype(np.float32), np.asfortranarray(X), X[::-1], np.repeat(X, 2, axis=1)[:, ::2]):
        expected = forestc.evaluate(design.forest, rows).scores
        assert np.array_equal(module.scores(rows).reshape(len(rows), -1), expected)
    if design.forest.decides:
        assert np.array_equal(module.labels(X), forestc.evaluate(design.forest, X).index)
    with pytest.raises(ValueError, match="rows have shape"):
        module.scores(X[:, :-1])


def test_a_design_predicts_with_its_library_and_refuses_as_without(tmp_path, monkeypatch):
    design, X = compiled(tmp_path)
    right = forestc.evaluate(design.forest, X)
    assert design._library is not None
    assert np.array_equal(design.predict(X), right.decision)
    assert np.array_equal(design.predict_proba(X)[:, 1], right.values[:, 0])
    with pytest.raises(forestc.ForestcError):
        design.predict(np.asarray(X)[:, :-1])


def test_a_library_that_this_user_did_not_build_is_not_run_by_a_design(tmp_path):
    design, X = compiled(tmp_path)
    (path,) = design.folder.glob("shared/lib*")
    path.write_bytes(path.read_bytes() + b"\0")
    opened = forestc.open_design(design.folder)
    assert opened._library is None
    assert np.array_equal(opened.predict(X), design.predict(X))


def test_without_a_compiler_the_target_is_refused_before_the_model_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("forestc.backends.shared.engine.c_compiler", lambda: None)
    monkeypatch.setattr("forestc.backends.shared.engine.package_folders", lambda name: [])
    for platform in ("here", "windows-x86_64"):
        with pytest.raises(MissingToolError, match=r"shared|windows"):
            forestc.compile(tmp_path / "no such model", None, tmp_path / "out", targets="shared", platform=platform)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("platform", "head"), [("windows-x86_64", b"MZ"), ("macos-arm64", b"\xcf\xfa\xed\xfe"), ("linux-arm64", b"\x7fELF")]
)
def test_a_library_for_another_platform(platform, head, tmp_path):
    pytest.importorskip("ziglang")
    design, _ = compiled(tmp_path, platform=platform)
    (path,) = (path for path in design.folder.glob("shared/*") if path.suffix in (".so", ".dll", ".dylib"))
    assert path.read_bytes().startswith(head)
