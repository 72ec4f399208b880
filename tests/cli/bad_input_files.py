"""Data and models that are not what they should be: exit code, the one-line error with a hint, the same as JSON, and stored runs
intact."""
import gzip
import json
import os
import shutil
import struct
import unittest
from pathlib import Path

from bad_input_support import CONFIG, NOT_FOUND, STORAGE, WithStoredRun
from support import idx_images, idx_labels, images, QUICK, safetensors_bytes, sha256, SOURCE, tiny_encoder, tsv_rows, write_idx

NOBODY = 65534  # a user who owns nothing


class Data(WithStoredRun):
    def train(self, code, folder, **options):
        self.fails(code, "train", "demo", "--steps", 3, "--set", f"data.set={folder}", **options)

    def test_unknown_set(self):
        self.train(NOT_FOUND, "fashion-mnits", match="did you mean fashion-mnist")
        self.train(NOT_FOUND, "wordnet-nli", match="comera data get wordnet-nli")
        self.train(NOT_FOUND, self.folder / "nowhere")
        empty = self.folder / "empty-folder"
        empty.mkdir()
        self.train(CONFIG, empty, match="no data file")

    def test_images(self):
        images, labels = idx_images(100), idx_labels([i % 10 for i in range(100)])
        good = write_idx(self.folder / "idx-good", images, labels)
        write_idx(good, images, labels, "dev")
        cases = {
            "truncated": (images[:-500], labels),
            "header": (images[:9], labels),
            "empty": (b"", labels),
            "binary": (os.urandom(4000), labels),
            "labels-cut": (images, labels[:50]),
            "labels-empty": (images, b""),
            "labels-binary": (images, os.urandom(108)),
            "labels-fewer": (images, idx_labels([1] * 99)),
            "count": (struct.pack(">IIII", 0x803, 2**31, 28, 28) + images[16:], labels),
            "no-rows": (struct.pack(">IIII", 0x803, 0, 28, 28), struct.pack(">II", 0x801, 0)),
            "wide": (struct.pack(">IIII", 0x803, 100, 2**20, 2**20) + images[16:], labels),
            "gzip": (gzip.compress(images)[:-30], labels),
        }
        for name, (some_images, some_labels) in cases.items():
            with self.subTest(name):
                folder = write_idx(self.folder / f"idx-{name}", some_images, some_labels)
                write_idx(folder, images, labels, "dev")
                if name == "gzip":
                    (folder / "train-images-idx3-ubyte").rename(folder / "train-images-idx3-ubyte.gz")
                self.train(CONFIG, folder, match=str(folder))
                self.fails(CONFIG, "data", "check", folder)
        with self.subTest("label out of range"):
            for split in ("train", "dev"):
                folder = self.folder / f"idx-label-{split}"
                for one in ("train", "dev"):
                    write_idx(folder, images, idx_labels([12] + [1] * 99) if one == split else labels, one)
                self.train(CONFIG, folder, match=["model.classes is 10, the data set .* has 13", "a label would be out of range", "model.classes=13"] if split == "train"
                           else [f"{split}-labels-idx1-ubyte: bad label", "image 0 has label 12, outside 0..9"])
        self.fails(CONFIG, "eval", "keep", "--data", folder / "dev-images-idx3-ubyte", match=["bad label", "image 0 has label 12, outside 0..9", "correct the file"])
        missing = write_idx(self.folder / "idx-missing", images, labels)
        write_idx(missing, images, labels, "dev")
        (missing / "train-labels-idx1-ubyte").unlink()
        self.train(CONFIG, missing, match="label")
        self.ok("train", "demo", "--steps", 2, "--quiet", "--set", f"data.set={good}", "--store", self.folder / "other" / "runs.db")  # the form above is right

    def test_texts(self):
        config = tiny_encoder(self.folder, name="text")
        good = tsv_rows(60)
        cases = {"empty": b"", "header-only": good.splitlines()[0].encode() + b"\n", "binary": os.urandom(5000), "columns": good.replace("gold_label", "gold").encode(),
                 "cut": good.encode()[:-25] + b"\n", "label": good.replace("neutral", "perhaps", 1).encode()}
        for name, content in cases.items():
            with self.subTest(name):
                folder = self.folder / f"tsv-{name}"
                folder.mkdir()
                (folder / "train.tsv").write_bytes(content)
                (folder / "dev.tsv").write_text(tsv_rows(9))
                match = {"columns": "no labels", "label": "train.tsv has 4: contradiction, entailment, neutral, perhaps"}
                self.fails(CONFIG, "train", config, "--set", f"data.set={folder}", match=match.get(name, f"tsv-{name}"))
                if name not in match:  # a test file and one of four classes, for the checker
                    self.fails(CONFIG, "data", "check", folder)

    def test_vocabulary(self):
        config = tiny_encoder(self.folder, name="vocab")
        for name, content in {"none": None, "empty": b"", "binary": os.urandom(3000), "no-cls": b"[PAD]\nthe\na\n", "wrong": b"one\ntwo\n" * 20}.items():
            with self.subTest(name):
                path = self.folder / f"{name}.txt"
                if content is not None:
                    path.write_bytes(content)
                self.fails(NOT_FOUND if content is None else CONFIG, "train", config, "--set", f"data.vocab={path}", match=f"{name}.txt")
        self.fails(CONFIG, "train", config, "--set", "model.encoder.vocab=1000", "--set", "model.tt.embedding.in_modes=[]", match="30522")

    def test_another_vocabulary_than_the_runs(self):
        config, own = tiny_encoder(self.folder, name="spoken"), ["--store", self.folder / "spoken.db"]
        run = self.ok_json("train", config, "--quiet", *own)["run"]
        words = (SOURCE / "assets" / "vocab" / "bert-uncased.txt").read_text().split("\n")
        words[2000], words[2001] = words[2001], words[2000]  # as many tokens, two of them with each other's rows
        swapped, longer, same = self.write("swapped.txt", "\n".join(words)), self.write("longer.txt", "\n".join([*words, "##more", ""])), self.folder / "same.txt"
        shutil.copy(SOURCE / "assets" / "vocab" / "bert-uncased.txt", same)
        for verb, *file in (["eval"], ["predict", "-o", self.folder / "said.jsonl"]):
            own[2:] = file
            self.fails(CONFIG, verb, run, "--vocab", swapped, *own, match=["the vocabulary is not the one the model was trained with", "sha256 begins with", "leave out --vocab"])
            self.fails(CONFIG, verb, run, "--vocab", longer, *own, match=["the data do not fit the model", "model.encoder.vocab is 30522, the vocabulary has 3052[34] tokens", "--vocab"])
            self.ok(verb, run, "--vocab", same, *own)

    def test_data_that_changed_since_the_run(self):
        config, own = tiny_encoder(self.folder, name="changing"), ["--store", self.folder / "changing.db"]
        run = self.ok_json("train", config, "--quiet", *own)["run"]
        self.assertTrue(self.ok_json("reproduce", run, *own)["identical"])
        train = self.folder / "changing-data" / "train.tsv"
        before = train.read_text()
        train.write_text(before.replace("\n", " more\n", 5))
        self.fails(3, "resume", run, "--extend", 5, *own, match="data of run .* has changed")
        self.fails(3, "reproduce", run, *own, match="put the files back")
        train.write_text(before)
        self.ok("resume", run, "--extend", 5, "--quiet", *own)

    def test_get(self):
        self.fails(2, "data", "get", "no-such-set", match="no data set named no-such-set")
        # What the getter itself has to say comes out as any other error.
        scripts = self.folder / "scripts"
        scripts.mkdir()
        for name in ("apt-get", "pip", "pip3"):
            (scripts / name).write_text("#!/bin/sh\necho 'E: no network' >&2\nexit 100\n")
            (scripts / name).chmod(0o755)
        result = self.comera("data", "get", "fashion-mnist", "--json", env={"PATH": f"{scripts}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(self.folder / "no-cache")})
        self.assertNotEqual(result.code, 0, result)
        document = result.json()
        self.assertEqual((document["schema_version"], document["error"]["code"]), (1, result.code), result)
        self.assertEqual(document["error"]["why"], "E: no network")

    def test_unreadable(self):
        if os.geteuid() == 0 and not self.nobody_can_run():
            self.skipTest("root reads everything, and user nobody cannot start the program here")
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        places = self.folder / "of-nobody"
        places.mkdir()
        places.chmod(0o777)
        config = self.write("secret.json", "{}")
        folder = write_idx(self.folder / "idx-secret", idx_images(100), idx_labels([1] * 100))
        for path in (config, folder / "train-images-idx3-ubyte"):
            path.chmod(0)
        more = ["--store", places / "runs.db"]
        self.fails(NOT_FOUND, "train", config, *more, match="permission", **user)
        self.fails(STORAGE, "train", "demo", "--set", f"data.set={folder}", *more, match="ermission", **user)
        secret_store = self.folder / "secret.db"
        shutil.copy(self.store, secret_store)
        secret_store.chmod(0)
        self.fails(STORAGE, "runs", "list", "--store", secret_store, **user)
        self.fails(STORAGE, "train", "demo", "--steps", 3, "--store", secret_store, **user)

    def nobody_can_run(self):
        try:
            return self.comera("--version", user=NOBODY, group=NOBODY, extra_groups=[]).code == 0
        except OSError:
            return False


class Models(WithStoredRun):
    def test_hostile_safetensors(self):
        whole = Path(self.checkpoint()).read_bytes()
        size, = struct.unpack("<Q", whole[:8])
        header = json.loads(whole[8:8 + size])
        body = whole[8 + size:]
        name = next(n for n, e in header.items() if n != "__metadata__" and len(e["shape"]) > 1)

        def changed(change):
            copy = json.loads(json.dumps(header))
            change(copy)
            return safetensors_bytes(copy, body)

        def entry(**fields):
            return changed(lambda h: h[name].update(fields))

        begin, end = header[name]["data_offsets"]
        other = next(e for n, e in header.items() if n not in ("__metadata__", name))["data_offsets"]
        cases = {
            "empty": b"",
            "five bytes": b"\0\0\0\0\0",
            "text": b"this is no model at all, just a line of text\n",
            "cut in the header": whole[:100],
            "cut short": whole[:-1],
            "longer": whole + b"\0" * 16,
            "header of 200 MB claimed": safetensors_bytes(b"{}", claimed=200 << 20),
            "header of 2^63 claimed": safetensors_bytes(b"{}", claimed=1 << 63),
            "header of 2^64-1 claimed": safetensors_bytes(b"{}", claimed=(1 << 64) - 1),
            "header is no JSON": safetensors_bytes(b"{ not json }", body),
            "header is deep": safetensors_bytes(b"[" * 200000, body),
            "header is a list": safetensors_bytes(b"[]", body),
            "shape overflows": entry(shape=[2**32, 2**32]),
            "shape overflows to zero": entry(shape=[2**63, 2]),
            "shape negative": entry(shape=[-1, -(end - begin) // 4]),
            "shape of texts": entry(shape=["3"]),
            "offsets overlap": entry(data_offsets=[other[0], other[0] + end - begin]),
            "offsets behind the end": entry(data_offsets=[begin + (1 << 40), end + (1 << 40)]),
            "offsets backwards": entry(data_offsets=[end, begin]),
            "offsets negative": entry(data_offsets=[-8, end - begin - 8]),
            "offsets of floats": entry(data_offsets=[0.5, 8.5]),
            "unknown dtype": entry(dtype="F33"),
            "other dtype": entry(dtype="I32"),
            "no offsets": changed(lambda h: h[name].pop("data_offsets")),
            "not a checkpoint": changed(lambda h: h["__metadata__"].pop("comera")),
            "no metadata": changed(lambda h: h.pop("__metadata__")),
            "metadata is a list": changed(lambda h: h.update(__metadata__=[1])),
            "a tensor is missing": safetensors_bytes({"__metadata__": header["__metadata__"]}, b""),
        }
        words = {"header of 200 MB claimed": "its header claims 209715200 bytes, 100,000,000 is the limit", "header is deep": "nests too deep", "shape overflows": "not a whole number in range|shape that overflows",
                 "offsets overlap": "overlap|hole", "offsets behind the end": "outside the file", "offsets backwards": "outside the file", "not a checkpoint": "no 'comera' metadata",
                 "a tensor is missing": "has no tensor"}
        for what, content in cases.items():
            with self.subTest(what):
                path = self.write("hostile.safetensors", content)
                self.fails(STORAGE, "eval", path, match=["hostile.safetensors", words.get(what, "safetensors")])
                self.assertEqual(self.comera("export", path, "--to", "safetensors", "-o", self.folder / "out.safetensors").code, STORAGE)
                self.assertFalse((self.folder / "out.safetensors").exists())

    def test_headers_of_100_megabytes(self):
        """Ones that are there, not only claimed: a file with holes, so that it costs no disk."""
        path = self.folder / "large.safetensors"
        for size, match in ((100_000_001, "its header claims 100000001 bytes, 100,000,000 is the limit"), (100_000_000, "its header is not valid JSON")):
            with open(path, "wb") as file:
                file.write(struct.pack("<Q", size) + b"{")
                file.truncate(8 + size)
            self.fails(STORAGE, "eval", path, match=["large.safetensors is not a sound safetensors file", match])
            self.fails(STORAGE, "import", path, "--config", "demo", match=match)

    def test_hostile_metadata(self):
        whole = Path(self.checkpoint()).read_bytes()
        size, = struct.unpack("<Q", whole[:8])
        header, body = json.loads(whole[8:8 + size]), whole[8 + size:]
        for what, text in {"no JSON": "{", "no config": "{}", "list": "[]", "unknown key": '{"config": {"x": 1}}', "other model": '{"config": {"model": {"kind": "mlp", "mlp": {"hidden": [7]}}}}'}.items():
            with self.subTest(what):
                header["__metadata__"]["comera"] = text
                result = self.comera("eval", self.write("hostile.safetensors", safetensors_bytes(header, body)), "--quiet")
                self.assertIn(result.code, (CONFIG, STORAGE), result)
                self.check_error_text(result.err, result)

    def test_a_damaged_checkpoint_of_a_run(self):
        other = self.folder / "damaged"
        other.mkdir()
        store = other / "runs.db"
        self.ok("train", "demo", "--steps", 20, "--name", "hurt", "--store", store, "--quiet", *QUICK)
        path = self.run_row("hurt", store)["checkpoints"][-1]["path"]
        with open(path, "r+b") as file:
            file.truncate(1000)
        for verb in ("eval", "resume"):
            self.fails(STORAGE, verb, "hurt", "--store", store, match="step-000000020.safetensors")
        self.assertEqual(self.run_row("hurt", store)["status"], "finished")


if __name__ == "__main__":
    unittest.main()
