"""
Factorize a binary matrix
=========================

``BinaryMatrixFactorization`` writes a matrix of zeros and ones as a Boolean product: an
entry is 1 if a factor has both its row and its column. This example factorizes images of
handwritten digits and draws the matrix, the product and the difference.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from forestc.papers import BinaryMatrixFactorization

digits = load_digits()
order = np.argsort(digits.target[:100], kind="stable")
images = digits.data[:100][order] > 7

# %%
# Each image is a row of the matrix, each pixel a column. Rows stand in the order of the
# digits, from 0 to 9.

model = BinaryMatrixFactorization(8, max_iter=2, random_state=0)
product = model.inverse_transform(model.fit_transform(images)).astype(bool)
wrong = product != images
print(f"{model.reconstruction_error_} of {images.size} entries differ: {100 * wrong.mean():.1f} %")

# %%
# Orange entries are wrong.

figure, panels = plt.subplots(1, 4, figsize=(8, 4.4), width_ratios=(3, 3, 3, 1.3))
parts = ((images, "X", "Greys"), (product, "A o B", "Greys"), (wrong, "difference", "Oranges"))
for axes, (matrix, title, colors) in zip(panels, parts, strict=False):
    axes.imshow(matrix, cmap=colors, aspect="auto", interpolation="nearest", vmin=0, vmax=1.2)
    axes.set(title=title, xlabel="pixel", yticks=[])
    axes.grid(False)
panels[0].set_ylabel("image")
strokes = np.pad(model.components_.reshape(-1, 8, 8), ((0, 0), (0, 1), (0, 0))).reshape(-1, 8)
panels[3].imshow(strokes, cmap="Greys", vmin=0, vmax=1.2)
panels[3].set(title="B", xticks=[], yticks=[])
panels[3].grid(False)
plt.show()
