"""
Train the models of the demo
============================

The demo compiles two trained models, which are shipped. This script
made them; it saves them to examples/models.
"""

# sphinx_gallery_thumbnail_path = "images/cards/train_models.svg"

from pathlib import Path

import skops.io
import xgboost
from demo import split_breast_cancer, split_digits
from sklearn.ensemble import RandomForestClassifier

MODELS = Path(__file__).parent / "models"


def main() -> None:
    MODELS.mkdir(exist_ok=True)
    X, _, y, _ = split_breast_cancer()
    boosted = xgboost.XGBClassifier(n_estimators=20, max_depth=4, learning_rate=0.4, random_state=0)
    boosted.fit(X, y)
    boosted.get_booster().feature_names = list(X.columns)
    boosted.save_model(MODELS / "breast_cancer.json")
    X, _, y, _ = split_digits()
    forest = RandomForestClassifier(n_estimators=16, max_depth=8, random_state=0).fit(X, y)
    skops.io.dump(forest, MODELS / "digits.skops", compresslevel=9, compression=8)


if __name__ == "__main__":
    main()
