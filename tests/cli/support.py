"""What the tests of the command line share: running `comera`, its error form, and readers of the files it writes that
share no code with the program."""
import hashlib
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BIN = os.environ.get("COMERA_BIN", str(SOURCE / "build" / "bin" / "comera"))
TIMEOUT = 300  # of one command: only against hanging

# The demo preset, quick and with everything happening early.
QUICK = ["--set", "train.warmup=0", "--set", "train.eval_every=0", "--set", "data.validation_rows=100", "--set", "train.max_steps_per_s=0"]


class Result:
    def __init__(self, args, code, out, err, max_rss_kib=0):
        self.args, self.code, self.out, self.err, self.max_rss_kib = args, code, out, err, max_rss_kib

    def json(self):
        return json.loads(self.out)  # exactly one document: anything behind it is an error

    def __str__(self):
        return f"comera {' '.join(map(str, self.args))}\n-> {self.code}\nstdout: {self.out[-3000:]}\nstderr: {self.err[-3000:]}"


def environment(folder, **more):
    keep = {name: value for name, value in os.environ.items()
            if not name.startswith(("COMERA_", "XDG_")) and name not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    places = {"HOME": folder, "XDG_DATA_HOME": folder / "data", "XDG_CONFIG_HOME": folder / "config", "XDG_STATE_HOME": folder / "state",
              "XDG_CACHE_HOME": folder / "cache", "COMERA_STORE": folder / "runs.db", "COMERA_ASSETS": SOURCE / "assets"}
    return {**keep, **{name: str(value) for name, value in places.items()}, "TERM": "xterm", **{k: str(v) for k, v in more.items()}}


class CliTest(unittest.TestCase):
    """A folder and a store for each class; nothing outside it is read or written."""
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="comera-cli-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)
        cls.store = cls.folder / "runs.db"

    @classmethod
    def command(cls, *args, env=None, **options):
        return subprocess.Popen([BIN, *map(str, args)], env=environment(cls.folder, **(env or {})), cwd=options.pop("cwd", cls.folder),
                                text=options.pop("text", True), stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    @classmethod
    def comera(cls, *args, env=None, given=None, **options):
        """`given`: what comes in from stdin."""
        if given is not None:
            options["stdin"] = subprocess.PIPE
        process = cls.command(*args, env=env, **options)
        try:
            out, err = process.communicate(given, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return Result(args, process.returncode, out, err)

    def ok(self, *args, **options):
        result = self.comera(*args, **options)
        self.assertEqual(result.code, 0, result)
        return result

    def ok_json(self, *args, **options):
        document = self.ok(*args, "--json", **options).json()
        self.assertEqual(document["schema_version"], 1)
        return document

    def query(self, sql, store=None):
        db = sqlite3.connect(f"file:{store or self.store}?mode=ro", uri=True, timeout=30)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def run_row(self, run, store=None):
        more = ["--store", store] if store else []
        return self.ok_json("runs", "show", run, *more)

    # ---- errors ------------------------------------------------------------------------------------------------------

    def check_error_text(self, text, result):
        lines = text.splitlines()
        self.assertTrue(lines, result)
        self.assertRegex(lines[0], r"^error: \S", result)
        kinds = []
        for line in lines[1:]:
            found = re.match(r"^  (why|try): \S", line)
            self.assertTrue(found, f"a line that is neither why nor try: {line!r}\n{result}")
            kinds.append(found.group(1))
        self.assertIn(kinds, ([], ["why"], ["try"], ["why", "try"]), result)
        self.assertNotIn("\x1b", text)

    def fails(self, code, *args, match=r"\S", both=True, **options):
        """The command ends with this code and the documented error, as text and as JSON; returns the text."""
        result = self.comera(*args, "--quiet", **options)
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.out, "", result)
        self.check_error_text(result.err, result)
        for pattern in [match] if isinstance(match, str) else match:
            self.assertRegex(result.err, pattern, result)
        self.assertNotIn("internal check failed", result.err)
        self.assertNotIn("json.exception", result.err)
        if both:
            as_json = self.comera(*args, "--quiet", "--json", **options)
            self.assertEqual(as_json.code, code, as_json)
            self.assertEqual(as_json.err, "", as_json)
            document = as_json.json()
            self.assertEqual(document["schema_version"], 1)
            error = document["error"]
            self.assertEqual(error["code"], code)
            self.assertIsInstance(error["message"], str)
            self.assertTrue(error["message"])
            self.assertIsInstance(error["hint"], str)
            self.assertNotIn("\n", error["message"] + error["hint"])
        return result.err


# ---- safetensors -----------------------------------------------------------------------------------------------------

class Safetensors:
    """A whole file: metadata, and name -> (dtype, shape, bytes)."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        size, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + size])
        body = data[8 + size:]
        self.metadata = header.pop("__metadata__", {})
        self.tensors = {name: (entry["dtype"], entry["shape"], body[entry["data_offsets"][0]:entry["data_offsets"][1]])
                        for name, entry in header.items()}

    @property
    def comera(self):
        return json.loads(self.metadata["comera"])


def safetensors_bytes(header, body=b"", claimed=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if claimed is None else claimed) + text + body


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


# ---- data files ------------------------------------------------------------------------------------------------------

def idx_images(count, rows=28, columns=28):
    return struct.pack(">IIII", 0x803, count, rows, columns) + bytes((i * 7) % 251 for i in range(count * rows * columns))


def idx_labels(labels):
    return struct.pack(">II", 0x801, len(labels)) + bytes(labels)


def write_idx(folder, images, labels, split="train"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{split}-images-idx3-ubyte").write_bytes(images)
    (folder / f"{split}-labels-idx1-ubyte").write_bytes(labels)
    return folder


NLI = ["entailment", "neutral", "contradiction"]


def tsv_rows(count):
    """MNLI-like lines: a header, then pairs of short sentences."""
    lines = ["index\tsentence1\tsentence2\tgold_label"]
    words = "a man is playing with the dog in old house near river".split()
    for i in range(count):
        first = " ".join(words[(i + k) % len(words)] for k in range(5))
        second = " ".join(words[(3 * i + k) % len(words)] for k in range(4))
        lines.append(f"{i}\t{first}\t{second}\t{NLI[i % 3]}")
    return "\n".join(lines) + "\n"


# The demo preset as it was when these tests were written: their figures must not move when the preset is tuned.
IMAGES = {
    "model": {"kind": "mlp", "classes": 10, "mlp": {"inputs": 784, "hidden": [512, 256], "dropout": 0.1}, "tt": {"ffn_in": {"rank": 24}}},
    "data": {"set": "fashion-mnist-demo"},
    "train": {"batch": 64, "lr_core": 2e-3, "lr_rank": 2e-3, "lr": 1e-3, "schedule": "linear", "warmup": 200, "eval_every": 100, "checkpoint_every": 2000, "steps": 3000},
}


def images(folder):
    """The config file; returns its path."""
    path = folder / "images.json"
    path.write_text(json.dumps(IMAGES))
    return path


# A text model that takes a millisecond a step; the whole BERT vocabulary.
TINY_ENCODER = {
    "model": {"kind": "encoder", "classes": 3, "length": 16,
              "encoder": {"layers": 2, "d_model": 24, "heads": 4, "d_ff": 48, "positions": 16, "vocab": 30522},
              "tt": {"attention": {"in_modes": [4, 3, 2], "out_modes": [2, 3, 4], "rank": 4},
                     "ffn_in": {"in_modes": [4, 3, 2], "out_modes": [3, 4, 4], "rank": 4},
                     "ffn_out": {"in_modes": [4, 4, 3], "out_modes": [2, 3, 4], "rank": 4},
                     "classifier": {"in_modes": [4, 3, 2], "out_modes": [2, 3, 4], "rank": 4},
                     "embedding": {"in_modes": [16, 20, 10, 10], "out_modes": [3, 2, 2, 2], "rank": 4}}},
    "method": {"name": "CoMERA"},
    "train": {"steps": 20, "batch": 8, "lr_core": 1e-3, "lr_rank": 1e-3, "lr": 1e-3, "eval_every": 10},
}


def tiny_encoder(folder, rows=60, name="tiny"):
    """A config file and a data folder; returns the path of the config."""
    data = folder / (name + "-data")
    data.mkdir(parents=True, exist_ok=True)
    (data / "train.tsv").write_text(tsv_rows(rows))
    (data / "dev.tsv").write_text(tsv_rows(30))
    config = json.loads(json.dumps(TINY_ENCODER))
    config["data"] = {"set": str(data)}
    path = folder / (name + ".json")
    path.write_text(json.dumps(config))
    return path
