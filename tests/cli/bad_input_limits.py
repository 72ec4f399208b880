"""A disk that is full, memory that does not do, a loss that is no number: exit code, the one-line error with a hint, and stored
runs intact."""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import unittest
from pathlib import Path

from bad_input_support import CONFIG, DIVERGED, MEMORY, Mounted, STORAGE, WithStoredRun
from support import BIN, environment, images, QUICK, Safetensors, safetensors_bytes, sha256, tsv_rows


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
    def test_nothing_is_lost_of_a_run_whose_disk_is_full(self):
        place, rescued = self.folder / "rescue", self.folder / "state" / "comera" / "rescued"
        with Mounted(self, place, "1m") as mounted:
            store = place / "runs.db"
            (place / "reserve").write_bytes(bytes(800 << 10))  # leaves less than a checkpoint's 322 KiB, whatever the store takes
            result = self.comera("train", images(self.folder), "--steps", 600, "--name", "rescued", "--store", store, *QUICK)
            self.assertEqual(result.code, STORAGE, result)
            self.assertIn(f"rows are kept in {rescued}/runs.db.spill-", result.err)
            self.assertIn(f"the checkpoint of step 600 is kept in {rescued}/checkpoints/", result.err)
            self.assertIn("merges the rows and checkpoints that are kept elsewhere", result.err)
            mounted.remount("size=64m")
            row = self.run_row("rescued", store)
            self.assertEqual((row["status"], row["step"]), ("finished", 600))
            self.assertEqual([path["step"] for path in row["checkpoints"]], [600])
            self.assertEqual(Path(row["checkpoints"][0]["path"]).parent.parent, place / "checkpoints")
            self.assertEqual(self.ok_json("get", "rescued", "--metric", "train_loss", "--store", store)["steps"], list(range(1, 601)))
            document = self.ok_json("reproduce", "rescued", "--store", store)
            self.assertEqual((document["identical"], document["weights_compared"]), (True, True))
            self.assertEqual([path for path in rescued.rglob("*") if row["run"] in str(path)], [])

    @unittest.skipUnless(os.geteuid() == 0, "mounting a file system needs root")
    def test_a_store_that_fails_is_reported_while_the_run_trains(self):
        place = self.folder / "warned"
        with Mounted(self, place, "1m") as mounted:
            process = self.command("train", images(self.folder), "--steps", 1000000, "--max-time", "120s", "--name", "warned", "--store", place / "runs.db", *QUICK)
            lines = []
            for line in process.stderr:  # the run ends by these lines, not by itself
                lines.append(line)
                if "training continues" in line:
                    self.assertIsNone(process.poll(), "at the end only")
                    mounted.remount("size=64m")
                if line == "the store works again\n":
                    process.send_signal(signal.SIGINT)
            process.stdout.read()
            self.assertEqual(process.wait(), 130, lines)
            process.stdout.close()
            process.stderr.close()
            warnings = [line for line in lines if line.startswith("warning: ")]
            for line in warnings:  # of the store, or of a checkpoint for which there was no room
                self.assertRegex(line, "(?i)full|no space|I/O")
            of_store = [line for line in warnings if "training continues, rows wait in memory" in line]
            self.assertIn(len(of_store), (1, 2), warnings)  # not with every step
            self.assertEqual(self.run_row("warned", place / "runs.db")["status"], "stopped")

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
        wild = ["--set", "train.lr_core=10", "--set", "train.lr=10", "--set", "train.lr_rank=0", "--set", "method.adam.weight_decay=0.3", "--set", "train.schedule=constant",
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
        forked = self.ok_json("fork", rows[0]["run"], "--at-step", 1, "--steps", 10, "--store", store, "--quiet", "--set", "train.lr_core=1e-4", "--set", "train.lr=1e-4",
                              "--set", "method.adam.weight_decay=0")
        self.assertEqual((forked["status"], forked["step"]), ("finished", 10))

    def test_out_of_memory_of_every_verb_that_holds_a_model(self):
        """A model of sixteen layers of a million units: as a setting, as the config of a checkpoint, and as that of a run."""
        hidden, told = [1 << 20] * 16, ["the run needs [0-9]+ MiB, [0-9]+ MiB are free", "activations take", "smaller batch"]
        large = ["--set", f"model.mlp.hidden={json.dumps(hidden)}", "--set", "train.batch=2800", "--set", "model.tt.ffn_in.in_modes=[]", "--set",
                 "model.tt.ffn_in.out_modes=[]"]
        plan = self.ok_json("plan", "demo", *large)["memory"]
        self.assertGreater(plan["peak_bytes"], 1 << 37)
        kept = self.folder / "too-large.db"
        shutil.copy(self.store, kept)
        for verb in (["train", "demo"], ["fork", "keep", "--at-step", 40, "--steps", 60], ["bench", "step", "demo"], ["bench", "layers", "demo"], ["bench", "gemm", "demo"]):
            self.fails(MEMORY, *verb, *large, "--store", kept, match=told, both=verb[0] == "bench")
        # What does not fit the file is said before any memory is taken.
        self.fails(CONFIG, "import", self.checkpoint(), "--config", "demo", *large, "--store", kept, match="at least the file's ranks")
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
        inside["config"]["model"]["tt"]["ffn_in"].update(in_modes=[], out_modes=[])
        header["__metadata__"]["comera"] = json.dumps(inside)
        path = self.write("large-model.safetensors", safetensors_bytes(header, whole[8 + size:]))
        for verb in (["eval", path], ["predict", path, "-o", self.folder / "never.jsonl"], ["export", path, "--to", "safetensors", "-o", self.folder / "never.safetensors"]):
            self.fails(MEMORY, *verb, match=told)
        self.assertEqual(list(self.folder.glob("never*")), [])
        store = self.folder / "large-run.db"
        shutil.copy(self.store, store)
        db = sqlite3.connect(store)
        with db:
            db.execute("UPDATE runs SET config = json_set(config, '$.model.mlp.hidden', json(?), '$.train.batch', 2800, "
                       "'$.model.tt.ffn_in.in_modes', json('[]'), '$.model.tt.ffn_in.out_modes', json('[]'))", [json.dumps(hidden)])
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
