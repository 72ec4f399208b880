#!/usr/bin/env python3
"""Makes fashion-mnist-10k, the data of the demo, out of get_data.py's fashion-mnist:

    make_demo.py FASHION_MNIST_FOLDER OUT_FOLDER

10,000 images of the train split and 2,000 of the dev split, the same number of each class, chosen and ordered by the SHA-256
of their pixels. Pixels are rounded to 8 grey levels: a compressed image then takes 145 bytes instead of 432, so three times as
many fit into 2 MB. NOTICE (the licence) is written by hand and stays as it is.

fashion-mnist-demo beside it was the demo's data before: stored runs of then are resumed and reproduced with it."""
import gzip
import hashlib
import io
import os
import struct
import sys

TRAIN_ROWS, DEV_ROWS, CLASSES = 10000, 2000, 10
LEVELS = 8  # grey levels that are left, of 256
ROUNDED = bytes(round(round(v * (LEVELS - 1) / 255) * 255 / (LEVELS - 1)) for v in range(256))


def load(folder, part):
    with open(os.path.join(folder, f"{part}-images-idx3-ubyte"), "rb") as f:
        images = f.read()
    with open(os.path.join(folder, f"{part}-labels-idx1-ubyte"), "rb") as f:
        labels = f.read()[8:]
    n, h, w = struct.unpack(">III", images[4:16])
    return [(images[16 + i * h * w:16 + (i + 1) * h * w], labels[i]) for i in range(n)], h, w


def by_hash(rows):
    return sorted(rows, key=lambda r: hashlib.sha256(r[0]).digest())


def choose(rows, count):
    """`count` rows, the same number of each class, in hash order, rounded"""
    rows = by_hash(rows)
    taken = [[r for r in rows if r[1] == c][:count // CLASSES] for c in range(CLASSES)]
    return [(pixels.translate(ROUNDED), label) for pixels, label in by_hash(r for t in taken for r in t)]


def packed(rows, h, w):
    """gzip of the images file and of the labels file; no time, no name: equal rows give equal bytes"""
    images = b"\0\0\x08\x03" + struct.pack(">III", len(rows), h, w) + b"".join(r[0] for r in rows)
    labels = b"\0\0\x08\x01" + struct.pack(">I", len(rows)) + bytes(r[1] for r in rows)
    out = []
    for data in (images, labels):
        b = io.BytesIO()
        with gzip.GzipFile(fileobj=b, mode="wb", mtime=0, filename="", compresslevel=9) as g:
            g.write(data)
        out.append(b.getvalue())
    return out


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    source, out = sys.argv[1:]
    train, h, w = load(source, "train")
    dev, _, _ = load(source, "dev")
    os.makedirs(out, exist_ok=True)
    for part, rows in (("train", choose(train, TRAIN_ROWS)), ("dev", choose(dev, DEV_ROWS))):
        for kind, data in zip(("images-idx3", "labels-idx1"), packed(rows, h, w)):
            path = os.path.join(out, f"{part}-{kind}-ubyte.gz")
            with open(path + ".part", "wb") as f:
                f.write(data)
            os.replace(path + ".part", path)
            print(f"{os.path.basename(path)}: {len(rows)} rows, {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
