"""One set being made: its splits (pure functions of each example's content), its outputs, its manifest.

Splits are SHA-256 buckets 0..99 of the content: 0-9 unused, 10-19 test, 20-29 dev, 30-99 train. So every run on
every machine gives the same rows in the same order. With `rows` N the first N rows of a split are kept (they are in
hash order, so they are a uniform sample)."""
import hashlib
import html
import json
import os
import re
from collections import defaultdict

from .archives import sha256_of

SALT = "comera-studio/v1"
SPLITS = ("train", "dev", "test")


def h64(*key):
    return int(hashlib.sha256("\x1f".join((SALT,) + tuple(map(str, key))).encode()).hexdigest()[:16], 16)


def split_of(*key):
    b = h64("split", *key) % 100
    return "unused" if b < 10 else "test" if b < 20 else "dev" if b < 30 else "train"


def third(*key):
    """The split of a genre that training never sees."""
    return ("unused", "test", "dev")[h64("third", *key) % 3]


def tenth(*key):
    """The split of an example whose official test set is kept whole."""
    b = h64("split", *key) % 100
    return "unused" if b < 10 else "dev" if b < 20 else "train"


def clean(s):
    return re.sub(r"\s+", " ", html.unescape(s)).strip()


def counts(labels):
    c = defaultdict(int)
    for x in labels:
        c[str(x)] += 1
    return ",".join(f"{k}:{c[k]}" for k in sorted(c)[:60])


class Job:
    def __init__(self, name, out, archives, rows, say):
        self.name, self.folder, self.archives, self.rows, self.say = name, os.path.join(out, name), archives, rows, say
        self.files = []

    def select(self, rows, key, *name):
        """rows -> {split: rows}, in hash order inside each split"""
        out = defaultdict(list)
        for r in rows:
            out[split_of(*name, *key(r))].append(r)
        for v in out.values():
            v.sort(key=lambda r: h64("order", *name, json.dumps(r, sort_keys=True, default=str)))
            del v[self.rows or len(v):]
        return out

    def emit(self, file, data, rows, **info):
        """Writes one output under a temporary name and renames it."""
        if isinstance(data, str):
            data = data.encode("utf-8")
        path = os.path.join(self.folder, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        part = path + ".part"
        with open(part, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.replace(part, path)
        digest = hashlib.sha256(data).hexdigest()
        self.files.append({"file": file, "rows": rows, "bytes": len(data), "sha256": digest, **info})
        self.say(f"{self.name}/{file}: {rows} rows, {len(data)} bytes, sha256 {digest}")

    # ---- the manifest: written last, so a folder that has one is finished
    def manifest_path(self):
        return os.path.join(self.folder, "MANIFEST.json")

    def finish(self):
        body = {"set": self.name, "rows_limit": self.rows, "sources": self.archives.used, "files": self.files}
        with open(self.manifest_path() + ".part", "w", encoding="utf-8") as f:
            json.dump(body, f, indent=1)
            f.write("\n")
        os.replace(self.manifest_path() + ".part", self.manifest_path())

    def finished(self):
        """The manifest of a finished, unharmed set made with the same `rows`; None otherwise."""
        try:
            with open(self.manifest_path(), encoding="utf-8") as f:
                manifest = json.load(f)
            whole = manifest["rows_limit"] == self.rows and all(
                sha256_of(os.path.join(self.folder, f["file"])) == f["sha256"] for f in manifest["files"])
            return manifest if whole else None
        except (OSError, ValueError, KeyError, TypeError):
            return None
