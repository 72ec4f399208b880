"""The linear baseline of the demo's data: logistic regression on the pixels, best of five penalties on the validation images.

    python3 experiments/demo/linear.py [FOLDER]     # needs scikit-learn
"""
import gzip
import struct
import sys
from pathlib import Path

import numpy
from sklearn.linear_model import LogisticRegression

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / "assets" / "data" / "fashion-mnist-10k"
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0)


def load(part):
    images = gzip.open(FOLDER / f"{part}-images-idx3-ubyte.gz").read()
    labels = gzip.open(FOLDER / f"{part}-labels-idx1-ubyte.gz").read()
    rows, = struct.unpack(">I", images[4:8])
    return numpy.frombuffer(images, numpy.uint8, offset=16).reshape(rows, -1) / 255.0, numpy.frombuffer(labels, numpy.uint8, offset=8)


(train, train_labels), (dev, dev_labels) = load("train"), load("dev")
scores = {c: LogisticRegression(C=c, max_iter=1000).fit(train, train_labels).score(dev, dev_labels) for c in PENALTIES}
best = max(scores, key=scores.get)
print(", ".join(f"C = {c:g}: {100 * score:.2f} %" for c, score in scores.items()))
print(f"best: {100 * scores[best]:.2f} % with C = {best:g}, {len(train):,} images to train on, {len(dev):,} of validation")
