"""
Get files to try forestc on
===========================

This script writes model.json, train.csv and test.csv to the current folder::

    python examples/first_files.py

The model is the XGBoost model of scikit-learn's breast cancer data in examples/models; XGBoost
itself is not needed. The column ``target`` of the rows says whether the tumour was benign.
"""

# sphinx_gallery_thumbnail_path = "images/cards/first_files.svg"

import shutil
from pathlib import Path

from demo import MODELS, split_breast_cancer

train, test, train_labels, test_labels = split_breast_cancer()
shutil.copy(MODELS / "breast_cancer.json", "model.json")
train.assign(target=train_labels).to_csv("train.csv", index=False)
test.assign(target=test_labels).to_csv("test.csv", index=False)
rows = f"train.csv ({len(train)} rows) and test.csv ({len(test)} rows)"
print(f"model.json, {rows} are in {Path.cwd()}")
