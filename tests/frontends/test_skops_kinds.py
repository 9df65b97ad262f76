"""Every kind of scikit-learn model reads the same from a skops file and from a trusted pickle as live."""

from __future__ import annotations

import joblib
import pytest
import skops.io
from contract import kinds_meta, kinds_pipeline, kinds_sklearn
from thinned import thinned

from forestc import load
from forestc.forest.text import print_forest

KINDS = {**kinds_sklearn.KINDS, **kinds_pipeline.KINDS, **kinds_meta.KINDS}


@pytest.mark.parametrize("kind", thinned(sorted(KINDS), keep=18))
def test_a_file_is_the_live_model(kind, tmp_path):
    model = KINDS[kind]().source
    skops.io.dump(model, tmp_path / "forest.skops")
    joblib.dump(model, tmp_path / "forest.joblib")
    live = print_forest(load(model)).splitlines()
    for path in (tmp_path / "forest.skops", tmp_path / "forest.joblib"):
        read = print_forest(load(path, trust_pickle=True)).splitlines()
        differing = [line for line, other in zip(live, read, strict=True) if line != other]
        assert all(line.startswith(("source", "  source")) for line in differing)


def test_a_width_beyond_all_bounds_is_refused(tmp_path):
    model = kinds_pipeline.KINDS["pipeline-standard"]().source
    model.steps[0][1].n_features_in_ = 10**15
    skops.io.dump(model, tmp_path / "forest.skops")
    with pytest.raises(Exception, match="columns"):
        load(tmp_path / "forest.skops")
