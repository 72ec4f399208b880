"""Everything a person can get wrong: exit code, the one-line error with a hint, the same as JSON, and stored runs intact."""
import contextlib
import gzip
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import unittest
from pathlib import Path

from support import (QUICK, SOURCE, CliTest, Safetensors, environment, idx_images, idx_labels, images, safetensors_bytes, sha256, tiny_encoder,
                     tsv_rows, write_idx, BIN)

USAGE, CONFIG, DEVICE, MEMORY, DIVERGED, STORAGE, NOT_FOUND = 2, 3, 4, 5, 6, 7, 8
NOBODY = 65534


class WithStoredRun(CliTest):
    """A finished run `keep` is there before each test and must be the same after it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = cls.comera("train", "demo", "--steps", 40, "--name", "keep", "--quiet", *QUICK)
        assert result.code == 0, result
        cls.before = cls.state_of(cls.store)
        assert [run["name"] for run in cls.before[0]] == ["keep"], cls.before

    @classmethod
    def state_of(cls, store):
        runs = json.loads(cls.comera("runs", "list", "--all", "--json", "--store", store).out)["runs"]
        show = json.loads(cls.comera("runs", "show", "keep", "--json", "--store", store).out)
        return runs, show, [sha256(row["path"]) for row in show["checkpoints"]]

    def tearDown(self):
        self.assertEqual(self.state_of(self.store), self.before, "stored runs have changed")
        self.assertEqual([path.name for path in self.folder.iterdir() if ".import" in path.name or ".fork-" in path.name], [], "an unfinished file was left")

    def checkpoint(self):
        return self.before[1]["checkpoints"][-1]["path"]

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


class CommandLine(WithStoredRun):
    def test_unknown_verb(self):
        self.fails(USAGE, "trian", "demo", match=["no verb 'trian'", "did you mean 'comera train'"])
        self.fails(USAGE, "xyzzy", match="comera --help")

    def test_unknown_verb_of_a_group(self):
        self.fails(USAGE, "runs", "lsit", match=["no verb 'runs lsit'", "did you mean 'comera runs list'"])
        self.fails(USAGE, "data", "xyzzyxyzzy", match="comera data --help")
        self.fails(USAGE, "runs")

    def test_unknown_option(self):
        self.fails(USAGE, "train", "demo", "--stepz", 3, match=["--stepz", "did you mean --steps"])
        self.fails(USAGE, "runs", "list", "--al", match="did you mean --all")
        self.fails(USAGE, "train", "demo", "--xyzzyxyzzy", match="comera help train")

    def test_missing_and_bad_arguments(self):
        self.fails(USAGE, "train")
        self.fails(USAGE, "train", "demo", "--steps", "-3")
        self.fails(USAGE, "train", "demo", "--steps", "many")
        self.fails(USAGE, "train", "demo", "--max-time", "soon", match="'soon' is not a time")
        self.fails(USAGE, "train", "demo", "--set", "train.batch", match="path=value")
        self.fails(USAGE, "export", "keep", "--to", "pdf")
        self.fails(USAGE, "export", "keep", "--to", "safetensors", match=["stdout", "-o"])
        self.fails(USAGE, "completion", "tcsh")

    def test_no_arguments_is_short_help(self):
        result = self.comera()
        self.assertEqual((result.code, result.out), (2, ""))
        self.assertIn("comera train demo", result.err)

    def test_unknown_run(self):
        for verb in (["runs", "show", "kepe"], ["resume", "kepe"], ["eval", "kepe"], ["reproduce", "kepe"], ["ranks", "kepe"], ["export", "kepe", "--to", "csv"]):
            self.fails(NOT_FOUND, *verb, match=["no run 'kepe'", "did you mean .*keep"])

    def test_unknown_metric_step_and_checkpoint(self):
        self.fails(NOT_FOUND, "get", "keep", "--metric", "trian_loss", match="did you mean 'train_loss'")
        self.fails(NOT_FOUND, "eval", "keep", "--step", 7, match="there are checkpoints at: 40")
        self.fails(NOT_FOUND, "fork", "keep", "--at-step", 999, match="no step 999")
        self.fails(NOT_FOUND, "eval", self.folder / "nothing.safetensors")
        self.fails(NOT_FOUND, "import", self.folder / "nothing.csv")

    def test_a_query_that_writes(self):
        for sql in ("DELETE FROM runs", "UPDATE runs SET name = 'x'", "PRAGMA user_version = 7", "ATTACH 'x.db' AS x", "DROP TABLE runs",
                    "SELECT 1; DELETE FROM runs", "WITH x AS (SELECT 1) DELETE FROM runs", "SELEKT 1", ""):
            self.fails(USAGE, "query", sql, match="cannot run this query")
        self.assertFalse((self.folder / "x.db").exists())

    def test_purge_wants_the_name(self):
        self.fails(USAGE, "runs", "purge", "keep")
        self.fails(USAGE, "runs", "purge", "keep", "--confirm", "Keep")
        self.fails(USAGE, "runs", "purge", "keep", "--confirm", "", "--yes")

    def test_resume_with_a_bad_setting_leaves_the_run(self):
        self.fails(USAGE, "resume", "keep", "--set", "train.batch=3", match=["it is fixed when a run starts", "fork"])
        self.fails(USAGE, "resume", "keep", "--set", "train.lr_coer=3", match="did you mean 'train.lr_core'")
        self.fails(USAGE, "resume", "keep", "--set", "train.lr_core=-1")
        self.fails(USAGE, "resume", "keep", "--set", "rank.cap.nothing.1=3", match="no such bond")
        self.fails(USAGE, "resume", "keep", "--set", "train.lr_core")

    def test_what_cannot_be_changed_at_a_step(self):
        for verb in (["train", "demo", "--steps", 60], ["resume", "keep", "--extend", 20], ["fork", "keep", "--steps", 60]):
            for how in (["--set", "rank.cap.fc9.1=3"], ["--edit", "50:rank.cap.fc9.1=3"]):
                self.fails(USAGE, *verb, *how, match=["cannot change rank.cap.fc9.1", "no such bond", "did you mean 'rank.cap.fc"])
            self.fails(USAGE, *verb, "--set", "rank.weight.fc7=0", match="no such tensorised layer", both=False)
            self.fails(USAGE, *verb, "--set", "stage=middle", match="stage=late or stage=early", both=False)
            self.fails(USAGE, *verb, "--set", "rank.cap.fc0.1=many", match="not a number", both=False)
            self.fails(USAGE, *verb, "--edit", "50:train.batch=3", match="fixed when a run starts", both=False)
            for text in ("train.lr_core=1", "0:train.lr_core=1", "-5:train.lr_core=1", "5", "5:", "5:train.lr_core"):
                self.fails(USAGE, *verb, f"--edit={text}", match=["path=value", "for example"], both=False)
        self.fails(USAGE, "resume", "keep", "--extend", 20, "--edit", "40:train.lr_core=1", match="the next step is 41")
        self.fails(USAGE, "train", "demo", "--steps", 3, "--set", "method.weights=dense", "--set", "stage=late", match="no tensor trains")
        self.fails(CONFIG, "plan", "demo", "--set", "rank.cap.fc0.1=3", match="rank")  # a config has no bonds

    def test_two_things_on_stdout(self):
        for verb in (["train", "demo", "--steps", 3], ["resume", "keep", "--extend", 3], ["fork", "keep"]):
            result = self.comera(*verb, "--events", "-", "--json", "--quiet")
            self.assertEqual((result.code, result.json()["error"]["code"]), (USAGE, USAGE), result)
            self.assertIn("--events FILE", result.json()["error"]["hint"])
        for args in (["predict", "keep"], ["export", "keep", "--to", "csv"], ["export", "keep", "--to", "svg"], ["export", "keep", "--to", "safetensors", "-o", "-"]):
            self.assertEqual(self.comera(*args, "--json").json()["error"]["code"], USAGE)

    def test_nothing_on_stdin(self):
        self.fails(CONFIG, "plan", "-", match="stdin")
        self.fails(CONFIG, "eval", "keep", "--data", "-", match="comera-stdin")
        self.fails(CONFIG, "import", "-", match="comera-stdin")

    def test_fork_with_a_bad_setting_makes_no_run(self):
        self.fails(CONFIG, "fork", "keep", "--at-step", 20, "--set", "train.batchh=3", match="did you mean 'train.batch'")
        self.fails(STORAGE, "fork", "keep", "--at-step", 20, "--set", "model.mlp.hidden=[64]", match="does not fit this model")
        self.assertEqual([p.name for p in self.folder.iterdir() if ".fork-" in p.name], [])

    def test_unknown_device(self):
        self.fails(DEVICE, "train", "demo", "--device", "cuda:99")
        self.fails(DEVICE, "eval", "keep", "--device", "abacus")

    def test_outputs_that_cannot_be_written(self):
        nowhere = self.folder / "no" / "folder"
        self.fails(STORAGE, "train", "demo", "--steps", 5, "--events", nowhere / "e")
        self.fails(STORAGE, "predict", "keep", "-o", nowhere / "p")
        self.fails(STORAGE, "export", "keep", "--to", "csv", "-o", nowhere / "c")
        self.fails(STORAGE, "export", "keep", "--to", "safetensors", "-o", nowhere / "s.safetensors")
        self.fails(STORAGE, "config", "init", "demo", "-o", nowhere / "c.json")

    def test_imports_that_are_none(self):
        self.fails(CONFIG, "import", self.write("garbage.csv", "no,step\n\"open"))
        self.fails(CONFIG, "import", self.write("text.csv", "run,step,metric,value\na,1,loss,high\n"), match="line 2")
        foreign = self.write("foreign.safetensors", safetensors_bytes({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)))
        self.fails(USAGE, "import", foreign, match="--config")
        self.fails(CONFIG, "import", self.checkpoint(), "--config", "demo", "--set", "model.mlp.hidden=[64,32]")
        left = [p.name for p in self.folder.iterdir() if "import.safetensors" in p.name]
        self.assertEqual(left, [])

    def test_a_line_break_in_a_name_stays_in_the_line(self):
        self.fails(NOT_FOUND, "train", "no\nsuch/file.json")


class Config(WithStoredRun):
    def test_missing(self):
        self.fails(NOT_FOUND, "train", self.folder / "none.json")
        self.fails(NOT_FOUND, "train", "dmeo", match="did you mean 'demo'")
        for verb in ("plan", "train"):
            self.fails(NOT_FOUND, verb, "demp")

    def test_unknown_key(self):
        path = self.write("key.json", '{"train": {"batchh": 3}}')
        for verb in (["train"], ["plan"], ["config", "validate"]):
            self.fails(CONFIG, *verb, path, match=["batchh", "did you mean 'train.batch'"])
        self.fails(CONFIG, "train", "demo", "--set", "train.btach=3", match="did you mean 'train.batch'")

    def test_two_problems_are_both_told_in_one_line(self):
        self.fails(CONFIG, "train", self.write("two.json", '{"train": {"batchh": 3, "seed": -1}}'), match=["batchh", "seed"])

    def test_malformed_json_names_line_and_column(self):
        self.fails(CONFIG, "train", self.write("malformed.json", '{"train": {\n  "batch": 3,,\n}}'), match=r"malformed\.json:2:14: not valid JSON")
        self.fails(CONFIG, "train", self.write("empty.json", ""), match=["empty.json:1:1", "empty"])
        self.fails(CONFIG, "train", self.write("list.json", "[1]"), match="object")
        self.fails(CONFIG, "train", self.write("binary.json", bytes(range(256))))

    def test_missing_values(self):
        self.fails(CONFIG, "train", self.write("bare.json", '{"model": {"kind": "mlp"}}'), match="data.set")

    def test_values_out_of_range_and_of_the_wrong_kind(self):
        for path, value in (("train.batch", 0), ("train.batch", 10**7), ("train.batch", 2.5), ("train.batch", "many"), ("train.lr_core", "1e6"), ("train.lr_core", "nan"),
                            ("train.seed", -1), ("train.threads", -2), ("method.comera.threshold", -1), ("method.weights", "tensor"), ("model.mlp.hidden", "[0]"),
                            ("model.mlp.hidden", '["a"]'), ("model.mlp.hidden", 5), ("method.comera.prune", "maybe"), ("model.mlp.dropout", 1), ("data.train_rows", -1)):
            with self.subTest(f"{path}={value}"):
                self.fails(CONFIG, "train", "demo", "--set", f"{path}={value}", match=path.replace(".", r"\."))

    def test_shapes_that_do_not_fit(self):
        for setting in ("model.tt.attention.in_modes=[8,8,5]", "model.tt.embedding.in_modes=[2,2,2,2]", "model.tt.attention.rank=0", "model.tt.attention.ranks=[1,0,1]",
                        "model.tt.attention.ranks=[2,4,4,4,4,4,2]", "model.tt.attention.cores=6", "model.encoder.heads=7", "model.encoder.heads=0", "model.length=4096"):
            with self.subTest(setting):
                self.fails(CONFIG, "plan", "encoder2-nli", "--set", setting, match=setting.split("=")[0].replace(".", r"\."))

    def test_model_and_data_that_do_not_fit(self):
        self.fails(CONFIG, "train", "demo", "--set", "model.classes=3", match="model.classes=10")
        self.fails(CONFIG, "train", "demo", "--set", "model.mlp.inputs=700", match="784")
        self.fails(CONFIG, "train", "demo", "--set", "model.kind=encoder", match="model.kind")
        self.fails(CONFIG, "train", "demo", "--set", "train.batch=5000", match="2800")


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
                self.fails(CONFIG, "train", config, "--set", f"data.set={folder}", match="no labels" if name == "columns" else f"tsv-{name}")
                if name != "columns":  # a test file, for the checker
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
            self.fails(CONFIG, verb, run, "--vocab", longer, *own, match=["the vocabulary does not fit the model", "it has 3052[34] tokens, the model has rows for 30522", "--vocab"])
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
        words = {"header of 200 MB claimed": "its header claims 209715200 bytes, 100,000,000 is the limit", "header is deep": "nests too deep", "shape overflows": "no whole number in range|shape that overflows",
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


class Database(WithStoredRun):
    def copy(self, name):
        path = self.folder / name / "runs.db"
        path.parent.mkdir()
        db = sqlite3.connect(self.store)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        shutil.copy(self.store, path)
        return path

    def all_verbs_fail(self, store, code=STORAGE, **options):
        before = store.read_bytes()
        for verb in (["runs", "list"], ["runs", "show", "keep"], ["query", "SELECT * FROM runs"], ["eval", "keep"], ["runs", "tag", "keep", "x"], ["train", "demo", "--steps", 3],
                     ["resume", "keep"], ["reproduce", "keep"]):
            with self.subTest(" ".join(map(str, verb))):
                self.fails(code, *verb, "--store", store, both=verb[0] in ("runs", "train"), **options)
        self.assertEqual(store.read_bytes(), before)

    def test_none(self):
        store = self.folder / "nothing" / "runs.db"
        self.fails(NOT_FOUND, "runs", "list", "--store", store)
        self.assertFalse(store.parent.exists())

    def test_garbage(self):
        store = self.folder / "garbage.db"
        store.write_bytes(os.urandom(8192))
        self.all_verbs_fail(store)

    def test_a_folder(self):
        self.fails(STORAGE, "runs", "list", "--store", self.folder, match="folder")
        self.fails(STORAGE, "train", "demo", "--steps", 3, "--store", self.folder, match="folder")

    def test_damaged_pages(self):
        store = self.copy("pages")
        data = bytearray(store.read_bytes())
        page = struct.unpack(">H", data[16:18])[0]
        for i in range(page, len(data)):  # all but the first page, which holds the schema
            data[i] = (i * 37) % 256
        store.write_bytes(data)
        self.all_verbs_fail(store)

    def test_another_programs_database(self):
        store = self.folder / "other.db"
        db = sqlite3.connect(store)
        db.execute("CREATE TABLE runs(x)")
        db.commit()
        db.close()
        self.fails(STORAGE, "runs", "list", "--store", store)
        self.fails(STORAGE, "train", "demo", "--steps", 3, "--store", store)

    def test_newer(self):
        store = self.copy("newer")
        db = sqlite3.connect(store)
        db.execute("PRAGMA user_version = 99")
        db.close()
        before = store.read_bytes()
        for verb in (["runs", "list"], ["runs", "show", "keep"], ["get", "keep"], ["ranks", "keep"], ["query", "SELECT name FROM runs"], ["eval", "keep"],
                     ["export", "keep", "--to", "csv"], ["reproduce", "keep"]):
            with self.subTest(" ".join(verb)):
                result = self.ok(*verb, "--store", store)
                self.assertRegex(result.err, r"newer version.*schema 99, this program knows \d+")
                self.assertEqual(result.out, self.ok(*verb).out)
        for verb in (["train", "demo", "--steps", 3], ["runs", "tag", "keep", "x"], ["resume", "keep"], ["import", self.store]):
            with self.subTest(" ".join(map(str, verb))):
                self.fails(STORAGE, *verb, "--store", store, match="newer version.*\n.*99")
        self.assertEqual(store.read_bytes(), before)

    def test_newer_without_what_is_read(self):
        store = self.copy("newer-less")
        db = sqlite3.connect(store)
        db.execute("ALTER TABLE events RENAME COLUMN body TO text")
        db.execute("PRAGMA user_version = 99")
        db.close()
        for verb in (["runs", "list"], ["eval", "keep"]):
            self.fails(STORAGE, *verb, "--store", store, match=r"events\.body")
        self.assertIn("keep", self.ok("query", "SELECT name FROM runs", "--store", store).out)

    def test_salvage(self):
        store = self.copy("salvage")
        whole = self.ok_json("runs", "salvage", store)
        self.assertEqual((whole["copy"], whole["gaps"]), (f"{store}.salvaged.db", []))
        self.assertEqual([run["name"] for run in self.ok_json("runs", "list", "--store", whole["copy"])["runs"]],
                         [run["name"] for run in self.ok_json("runs", "list")["runs"]])
        data = bytearray(store.read_bytes())
        page = struct.unpack(">H", data[16:18])[0]
        hurt = next(at for at in range(len(data) // page // 2 * page, len(data), page) if data[at] == 10)  # rows of a table in the order of its key
        data[hurt:hurt + page] = b"\xff" * page
        store.write_bytes(data)
        result = self.ok("runs", "salvage", store, "-o", self.folder / "saved.db")
        self.assertEqual(result.out.strip(), str(self.folder / "saved.db"))
        self.assertRegex(result.err, "rows could be read, others not")
        self.assertEqual(store.read_bytes(), bytes(data))
        self.fails(USAGE, "runs", "salvage", store, "-o", self.folder / "saved.db", match="there already")
        self.fails(NOT_FOUND, "runs", "salvage", self.folder / "none.db")
        garbage = self.folder / "no-store"
        garbage.write_bytes(os.urandom(8192))
        self.fails(STORAGE, "runs", "salvage", garbage)

    def test_locked(self):
        store = self.copy("locked")
        db = sqlite3.connect(store)
        try:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
            db.execute("UPDATE runs SET notes = 'x'")
            self.fails(STORAGE, "runs", "tag", "keep", "x", "--store", store, match=["locked", "close it, or try again"], both=False)  # waits five seconds first
            result = self.comera("train", "demo", "--steps", 3, "--store", store, "--quiet", "--json")  # and so does this one
            self.assertEqual((result.code, result.err), (STORAGE, ""), result)
            error = result.json()["error"]
            self.assertEqual((error["code"], "close it, or try again" in error["hint"]), (STORAGE, True), error)
            self.assertIn("locked", error["message"] + error["why"])
            db.rollback()
        finally:
            db.close()
        self.assertEqual([run["tags"] for run in self.ok_json("runs", "list", "--store", store)["runs"]], [[]])

    @unittest.skipUnless(os.geteuid() == 0, "mounting a file system needs root")
    def test_read_only(self):
        store = self.copy("readonly")
        with Mounted(self, store.parent, "1m") as mounted:
            store.write_bytes(self.store.read_bytes())
            mounted.remount("ro")
            for verb in (["train", "demo", "--steps", 3], ["runs", "tag", "keep", "x"], ["resume", "keep"], ["import", self.store]):
                self.fails(STORAGE, *verb, "--store", store, match=["read-?only", str(store)])
            self.assertEqual(store.read_bytes(), self.store.read_bytes())
            self.assertEqual(len(self.ok_json("runs", "list", "--store", store)["runs"]), 1)
            self.ok("eval", "keep", "--store", store)

    def test_a_store_in_a_folder_that_cannot_be_made(self):
        file = self.write("a-file", "x")
        self.fails(STORAGE, "train", "demo", "--steps", 3, "--store", file / "runs.db")


class Mounted:
    """A small file system in memory."""

    def __init__(self, test, place, size):
        self.test, self.place = test, place
        place.mkdir(parents=True, exist_ok=True)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "comera-test", place], capture_output=True, text=True)
        if made.returncode != 0:
            test.skipTest(f"cannot mount a tmpfs here: {made.stderr.strip()}")

    def remount(self, how):
        subprocess.run(["mount", "-o", f"remount,{how}", self.place], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.place], check=True)


class Running(WithStoredRun):
    @unittest.skipUnless(os.geteuid() == 0, "mounting a file system needs root")
    def test_disk_full(self):
        place = self.folder / "small"
        with Mounted(self, place, "3m"):
            store = place / "runs.db"
            self.ok("train", images(self.folder), "--steps", 20, "--name", "keep", "--store", store, "--quiet", *QUICK)
            before = self.state_of(store)
            reserve = place / "reserve"
            reserve.write_bytes(bytes(400 << 10))
            for as_json in (True, False):
                result = self.comera("train", images(self.folder), "--steps", 800, "--name", f"full-{as_json}", "--store", store, "--quiet", *(["--json"] if as_json else []),
                                     "--set", "train.checkpoint_every=100", "--set", "train.keep_checkpoints=1000", *QUICK)
                self.assertEqual(result.code, STORAGE, result)
                if as_json:
                    document = result.json()
                    self.assertEqual((document["status"], document["step"]), ("finished", 800))  # training went on
                    self.assertTrue(document["store_problem"])
                    self.assertEqual(document["error"]["code"], STORAGE)
                    self.assertIn("val_accuracy", document["metrics"])
                else:
                    self.assertIn("finished at step 800", result.out)
                    self.check_error_text(result.err, result)
                    self.assertIn("not saved", result.err)
                    self.assertRegex(result.err, "(?i)full|no space")
                for path in place.rglob("*"):
                    self.assertFalse(path.is_file() and ".tmp" in path.name, f"left behind: {path}")
                if as_json:  # the next one has room to begin
                    reserve.unlink()
            listed = {run["name"]: run for run in self.ok_json("runs", "list", "--store", store)["runs"]}
            self.assertEqual(listed["keep"], before[0][0])
            self.ok("eval", "keep", "--store", store)
            self.assertEqual(sha256(before[1]["checkpoints"][-1]["path"]), before[2][-1])
            self.assertEqual(self.query("PRAGMA integrity_check", store), [("ok",)])
            for row in self.query("SELECT path FROM checkpoints", store):
                Safetensors(row[0])  # every checkpoint that is listed is whole
                self.ok("eval", row[0], "--store", store)

    @unittest.skipUnless(os.geteuid() == 0, "mounting a file system needs root")
    def test_disk_full_for_what_is_written_out(self):
        place, table, model = self.folder / "tiny", self.folder / "keep.csv", self.folder / "keep.safetensors"
        self.ok("export", "keep", "--to", "csv", "-o", table)
        self.ok("export", "keep", "--to", "safetensors", "-o", model)
        with Mounted(self, place, "1m"):
            store = place / "runs.db"
            imported = self.ok_json("import", table, "--name", "first", "--store", store)["runs"]
            old = place / "old.csv"
            old.write_text("what was there\n")
            with contextlib.suppress(OSError), open(place / "reserve", "wb", buffering=0) as reserve:
                while reserve.write(bytes(4096)):
                    pass
            before = sorted(path.name for path in place.rglob("*"))
            for kind in ("csv", "jsonl", "trace", "svg", "safetensors"):
                self.fails(STORAGE, "export", "keep", "--to", kind, "-o", place / f"out.{kind}", match=["cannot write|cannot export", "No space|full"])
            self.fails(STORAGE, "export", "keep", "--to", "csv", "-o", old, match="No space|full", both=False)
            self.assertEqual(old.read_text(), "what was there\n")
            self.fails(STORAGE, "export", "keep", "--to", "tfevents", "-o", place / "tb", match="No space|full")
            self.fails(STORAGE, "predict", "keep", "-o", place / "out.jsonl", match=["cannot write .*out.jsonl", "No space|full"])
            self.fails(STORAGE, "config", "init", "demo", "-o", place / "demo.json", match="No space|full")
            self.fails(STORAGE, "import", table, "--store", store, match="full")
            self.fails(STORAGE, "import", model, "--config", "demo", "--store", store, match="No space|full")
            left = [path for path in place.rglob("*") if path.name not in before and path.is_file() and not path.name.startswith("runs.db-")]
            self.assertEqual(left, [])
            self.assertEqual([run["run"] for run in self.ok_json("runs", "list", "--store", store)["runs"]], imported)  # full as it is
            (place / "reserve").unlink()  # Python's SQLite cannot read there without room
            self.assertEqual(self.query("PRAGMA integrity_check", store), [("ok",)])
        self.fails(STORAGE, "predict", "keep", "-o", "/dev/full", match=["cannot write /dev/full", "No space|full"])

    def test_divergence(self):
        store = self.folder / "diverged" / "runs.db"
        wild = ["--set", "train.lr_core=10", "--set", "train.lr_rest=10", "--set", "train.lr_rank=0", "--set", "method.adam.weight_decay=0.3", "--set", "train.schedule=constant",
                "--set", "train.checkpoint_every=1", "--set", "train.keep_checkpoints=1000", *QUICK]
        text = self.fails(DIVERGED, "train", images(self.folder), "--steps", 400, "--name", "wild", "--store", store, *wild, match=["the loss is (NaN|infinite) at step", "smaller learning rates"])
        step = int(text.split("at step ")[1].split()[0])
        rows = self.ok_json("runs", "list", "--store", store)["runs"]
        self.assertEqual([row["status"] for row in rows], ["diverged", "diverged"])
        self.assertEqual({row["step"] for row in rows}, {step - 1})
        self.assertGreater(step, 1, "it must learn at least one step for what follows")
        shown = self.run_row(rows[0]["run"], store)
        self.assertIn("the loss is", shown["message"])
        alerts = [event for event in shown["events"] if event["kind"] == "alert"]
        self.assertEqual([(event["step"], event["body"]["kind"]) for event in alerts], [(step, "diverged")])
        steps = [row["step"] for row in shown["checkpoints"]]
        self.assertEqual(steps, list(range(1, step)))  # weights of every step before
        self.ok("eval", shown["checkpoints"][0]["path"], "--store", store)
        # Computed again it diverges at the same step, and from an early step with sane rates it does not.
        document = self.ok_json("reproduce", rows[0]["run"], "--store", store)
        self.assertTrue(document["identical"])
        forked = self.ok_json("fork", rows[0]["run"], "--at-step", 1, "--steps", 10, "--store", store, "--quiet", "--set", "train.lr_core=1e-4", "--set", "train.lr_rest=1e-4",
                              "--set", "method.adam.weight_decay=0")
        self.assertEqual((forked["status"], forked["step"]), ("finished", 10))

    def test_out_of_memory_of_every_verb_that_holds_a_model(self):
        """A model of sixteen layers of a million units: as a setting, as the config of a checkpoint, and as that of a run."""
        hidden, told = [1 << 20] * 16, ["the run needs [0-9]+ MiB, [0-9]+ MiB are free", "activations take", "smaller batch"]
        large = ["--set", f"model.mlp.hidden={json.dumps(hidden)}", "--set", "train.batch=2800"]
        plan = self.ok_json("plan", "demo", *large)["memory"]
        self.assertGreater(plan["peak_bytes"], 1 << 37)
        kept = self.folder / "too-large.db"
        shutil.copy(self.store, kept)
        for verb in (["train", "demo"], ["fork", "keep", "--at-step", 40], ["bench", "step", "demo"], ["bench", "layers", "demo"], ["bench", "gemm", "demo"],
                     ["import", self.checkpoint(), "--config", "demo"]):
            self.fails(MEMORY, *verb, *large, "--store", kept, match=told, both=verb[0] in ("import", "bench"))
        # What was to be trained is kept, with what it would have taken; where it cannot be kept the reason is the same.
        rows = self.ok_json("runs", "list", "--store", kept)["runs"]
        self.assertEqual([(row["name"], row["status"], row["step"]) for row in rows], [("keep-fork", "failed", 0), ("demo", "failed", 0), ("keep", "finished", 40)])
        self.assertEqual(rows[0]["parent"], rows[2]["run"])
        for row in rows[:2]:
            shown = self.run_row(row["run"], kept)
            self.assertRegex(shown["message"], "^out of memory: the run needs [0-9]+ MiB, [0-9]+ MiB are free$")
            self.assertEqual(shown["config"]["model"]["mlp"]["hidden"], hidden)
            self.assertEqual(shown["memory"], plan["by_purpose"])
            alert, = [event["body"] for event in shown["events"] if event["kind"] == "alert"]
            self.assertEqual((alert["kind"], alert["need"], alert["planned"]), ("memory", plan["peak_bytes"], plan["by_purpose"]))
            self.assertLess(alert["free"], alert["need"])
            self.assertEqual(shown["checkpoints"], [])
        no_store = self.write("no-folder", "a file") / "runs.db"
        self.fails(STORAGE, "train", "demo", "--steps", 3, "--store", no_store, both=False)
        self.fails(MEMORY, "train", "demo", *large, "--store", no_store, match=told)
        whole = Path(self.checkpoint()).read_bytes()
        size, = struct.unpack("<Q", whole[:8])
        header = json.loads(whole[8:8 + size])
        inside = json.loads(header["__metadata__"]["comera"])
        inside["config"]["model"]["mlp"]["hidden"], inside["config"]["train"]["batch"] = hidden, 2800
        header["__metadata__"]["comera"] = json.dumps(inside)
        path = self.write("large-model.safetensors", safetensors_bytes(header, whole[8 + size:]))
        for verb in (["eval", path], ["predict", path, "-o", self.folder / "never.jsonl"], ["export", path, "--to", "safetensors", "-o", self.folder / "never.safetensors"]):
            self.fails(MEMORY, *verb, match=told)
        self.assertEqual(list(self.folder.glob("never*")), [])
        store = self.folder / "large-run.db"
        shutil.copy(self.store, store)
        db = sqlite3.connect(store)
        with db:
            db.execute("UPDATE runs SET config = json_set(config, '$.model.mlp.hidden', json(?), '$.train.batch', 2800)", [json.dumps(hidden)])
            db.execute("UPDATE checkpoints SET path = ?", [str(path)])
        db.close()
        before = self.state_of(store)
        for verb in (["resume", "keep", "--extend", 5], ["reproduce", "keep"], ["eval", "keep"], ["fork", "keep"]):
            self.fails(MEMORY, *verb, "--store", store, match=told, both=verb[0] == "reproduce")
        self.assertEqual(self.state_of(store), before)

    def test_out_of_memory_is_told_before_anything_is_taken(self):
        data = self.folder / "large"
        data.mkdir()
        (data / "train.tsv").write_text(tsv_rows(70000))
        (data / "dev.tsv").write_text(tsv_rows(9))
        args = ["train", "encoder6-mnli", "--set", f"data.set={data}", "--set", "train.batch=65536", "--quiet", "--store", self.folder / "too-long.db"]
        self.fails(MEMORY, *args, match=["the run needs [0-9]+ MiB, [0-9]+ MiB are free", "activations take", "smaller batch"])
        process = subprocess.Popen([BIN, *map(str, args)], env=environment(self.folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, MEMORY)
        self.assertLess(usage.ru_maxrss, 300 * 1024)  # KiB; one activation of this batch alone is 25 GB
        plan = self.ok_json("plan", "encoder6-mnli", "--set", "train.batch=65536")
        self.assertGreater(plan["memory"]["peak_bytes"], 1 << 37)


if __name__ == "__main__":
    unittest.main()
