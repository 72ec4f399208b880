"""Sweeps: killed ones end with the bytes of uninterrupted ones, tasks of an array merge into one store, halving, bad files."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time
import unittest
from pathlib import Path

from support import BIN, CliTest, Safetensors, environment, idx_images, idx_labels, write_idx

SIDE, ROWS = 8, 96
BASE = {
    "model": {"kind": "mlp", "classes": 4, "mlp": {"inputs": SIDE * SIDE, "hidden": [24, 16], "dropout": 0.1}, "tt": {"ffn_in": {"rank": 4}}},
    "train": {"batch": 8, "lr_core": 2e-3, "lr_rank": 2e-3, "lr": 1e-3, "eval_every": 6, "steps": 18, "checkpoint_every": 4},
}
GRID = {"train.lr_core": [1e-3, 3e-3], "model.tt.ffn_in.rank": [2, 4], "method": ["comera", "adamw"]}
MEASURED = ("time_s", "run")
PERIODIC = {f"step-{step:09}.safetensors" for step in (4, 8)}  # with most of a run still to come


class Sweep(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        data = cls.folder / "data"
        for split, rows in (("train", ROWS), ("dev", 40)):
            write_idx(data, idx_images(rows, SIDE, SIDE), idx_labels([(7 * i + i // 3) % 4 for i in range(rows)]), split)
        cls.base = cls.folder / "base.json"
        cls.base.write_text(json.dumps({**BASE, "data": {"set": str(data)}}))

    def file(self, name, **parts):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"base": str(self.base), **parts}))
        return path

    def values(self, document):
        """Everything of a result but ids and times."""
        return [{**point, "runs": [{key: value for key, value in run.items() if key not in MEASURED} for run in point["runs"]]} for point in document["points"]]

    def weights(self, run, store):
        path, = self.query(f"SELECT path FROM checkpoints JOIN runs USING(run) WHERE id = '{run}' ORDER BY checkpoints.step DESC LIMIT 1", store)[0]
        return Safetensors(path).tensors

    def metrics(self, run, store):
        rows = self.query(f"SELECT metric, step, value FROM run_metrics WHERE id = '{run}' ORDER BY 1, 2", store)
        return [row for row in rows if not row[0].endswith(("_ms", "_bytes"))]

    def compare_runs(self, document, store, other, other_store, weights_of=None):
        """Same metrics and weights, value for value, byte for byte."""
        ids = {run["name"]: run["run"] for point in other["points"] for run in point["runs"]}
        for point in document["points"]:
            for run in point["runs"]:
                with self.subTest(run["name"]):
                    self.assertEqual(self.metrics(run["run"], store), self.metrics(ids[run["name"]], other_store))
                    home = weights_of(ids[run["name"]]) if weights_of else other_store
                    self.assertEqual(self.weights(run["run"], store), self.weights(ids[run["name"]], home))

    def kill(self, process, number):
        """The whole program at once, as a machine that fails would; its children stop by themselves."""
        process.send_signal(number)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -number)

    def periodic_checkpoints(self):
        return {path for path in (self.folder / "checkpoints").glob("*/*") if path.name in PERIODIC}

    def parent_of(self, stat):
        try:
            return int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            return 0

    def test_a_killed_sweep_ends_with_the_same_bytes(self):
        # Slow enough to be met in the middle of a run; the limit changes no number.
        file = self.file("lr", grid=GRID, seeds=[1, 2, 3], set={"train.max_steps_per_s": 40})
        whole_store, store = self.folder / "whole.db", self.folder / "killed.db"
        whole = self.ok_json("sweep", file, "--jobs", 2, "--quiet", "--store", whole_store)
        runs = [run for point in whole["points"] for run in point["runs"]]
        self.assertEqual(len(runs), 24)
        self.assertEqual({run["status"] for run in runs}, {"finished"})
        self.assertEqual({run["step"] for run in runs}, {18})

        command = ("sweep", file, "--jobs", 2, "--store", store)
        for begun in (3, 9):  # lines of progress before the kill: another moment each time
            process = self.command(*command)
            for line in process.stderr:
                begun -= line.startswith("[") and ": finished, " in line
                if begun == 0:
                    break
            before, deadline = self.periodic_checkpoints(), time.monotonic() + 60
            while not self.periodic_checkpoints() - before and time.monotonic() < deadline:
                time.sleep(0.01)
            self.kill(process, signal.SIGKILL)
        # A child that is killed is reported; the others go on.
        process = self.command(*command, "--json")
        seen = False
        for line in process.stderr:
            seen = seen or "ended by signal 9" in line
            if not seen and re.fullmatch(r"\[\d+/24\] [^:]+(: continues run \S+)?", line.strip()):
                children = [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if self.parent_of(stat) == process.pid]
                with contextlib.suppress(ValueError, ProcessLookupError):
                    os.kill(max(children), signal.SIGKILL)  # the one that has just begun
        out, _ = process.communicate(timeout=60)
        document = json.loads(out)
        reasons = [failure["reason"] for failure in document["failures"]]
        self.assertTrue(reasons)
        self.assertEqual((process.returncode, set(reasons)), (1, {"ended by signal 9"}))
        self.assertEqual(sum(run["status"] == "finished" for point in document["points"] for run in point["runs"]), 24 - len(reasons))

        ended = self.ok_json(*command, "--quiet")
        self.assertEqual(self.query("SELECT count(*) FROM runs", store), [(24,)], "each run was continued, none begun again")
        resumed = self.query("SELECT DISTINCT step FROM events WHERE kind = 'resume' AND step BETWEEN 1 AND 17", store)
        self.assertTrue(resumed, "no run was met in its middle")
        self.assertEqual(self.values(ended), self.values(whole))
        self.compare_runs(whole, whole_store, ended, store)
        # Again: nothing is trained. One job or several, more threads or fewer: the same bytes.
        before = self.query("SELECT sum(active_s) FROM runs", store)
        again = self.comera(*command, "--json")
        self.assertEqual(again.code, 0, again)
        self.assertEqual(again.err.count("finished already"), 24)
        self.assertEqual(self.query("SELECT sum(active_s) FROM runs", store), before)
        self.assertEqual(again.json()["points"], ended["points"])
        some = self.file("lr", grid={**GRID, "train.lr_core": [3e-3], "method": ["comera"]}, seeds=[2], set={"train.max_steps_per_s": 40})
        alone = self.ok_json("sweep", some, "--quiet", "--store", self.folder / "alone.db")
        self.compare_runs(alone, self.folder / "alone.db", whole, whole_store)
        threads = {json.loads(config)["train"]["threads"] for name in ("alone.db", "whole.db") for config, in self.query("SELECT config FROM runs", self.folder / name)}
        self.assertEqual(threads, {0, max(1, len(os.sched_getaffinity(0)) // 2)})
        # The file changed: runs that are there are found, those of no point are named and stay.
        changed = self.comera("sweep", some, "--json", "--store", store)
        self.assertEqual(changed.code, 0, changed)
        self.assertRegex(changed.err, r"lr\.json has changed: 22 runs of sweep 'lr' in the store have other settings and are left as they are")
        self.assertEqual(self.query("SELECT count(*) FROM runs", store), [(24,)])

    def test_ctrl_c_stops_all_in_order(self):
        file = self.file("stopped", grid={"train.lr_core": [1e-3, 2e-3, 3e-3]}, set={"train.max_steps_per_s": 8})
        store = self.folder / "stopped.db"
        process = self.command("sweep", file, "--jobs", 2, "--json", "--store", store)
        for line in process.stderr:
            if line.startswith("[2/3]"):
                break
        deadline = time.monotonic() + 60
        running = lambda: json.loads(self.comera("runs", "list", "--json", "--store", store).out).get("runs", [])
        while len(running()) < 2:
            self.assertLess(time.monotonic(), deadline)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("the same command continues", err)
        points = json.loads(out)["points"]
        self.assertEqual(sorted(run["status"] for point in points for run in point["runs"]), ["not_begun", "stopped", "stopped"])
        ended = self.ok_json("sweep", file, "--jobs", 3, "--quiet", "--store", store)
        self.assertEqual([point["status"] for point in ended["points"]], ["finished"] * 3)
        self.assertEqual(self.query("SELECT count(*) FROM runs", store), [(3,)])

    def test_a_slurm_array_merges_into_the_direct_sweep(self):
        file = self.file("array", random={"runs": 3, "seed": 5, "ranges": {"train.lr_core": {"log": [1e-4, 1e-2]}}}, seeds=[1, 2])
        direct_store, place, merged = self.folder / "direct.db", self.folder / "it's a place", self.folder / "merged.db"
        direct = self.ok_json("sweep", file, "--jobs", 2, "--quiet", "--store", direct_store)
        written = self.ok_json("sweep", file, "--slurm", place, "--jobs", 4)
        self.assertEqual((written["tasks"], written["script"]), (6, str(place / "array.sbatch")))
        script = (place / "array.sbatch").read_text()
        self.assertRegex(script, r"(?m)^#SBATCH --array=0-5%4$")
        self.assertEqual((place / "array.json").read_text(), file.read_text())
        for task in range(6):
            done = subprocess.run(["bash", place / "array.sbatch"], env=environment(self.folder, SLURM_ARRAY_TASK_ID=task), cwd="/", capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        stores = sorted(place.glob("*.db"))
        self.assertEqual([path.name for path in stores], [f"sweep-{task}.db" for task in range(6)])
        imported = self.ok_json("import", *stores, "--store", merged)
        self.assertEqual(len(imported["runs"]), 6)
        again = self.ok_json("import", *stores, merged, "--store", merged)
        self.assertEqual(again["runs"], [])
        self.assertEqual(sum("is already here" in note for note in again["notes"]), 6)
        self.assertEqual(sum("is the store itself" in note for note in again["notes"]), 1)
        table = self.comera("sweep", file, "--json", "--store", merged)
        self.assertEqual(table.code, 0, table)
        self.assertEqual(table.err.count("finished already"), 6)
        self.assertEqual(self.values(table.json()), self.values(direct))
        home = {run: path for path in stores for run, in self.query("SELECT id FROM runs", path)}
        self.compare_runs(direct, direct_store, table.json(), merged, home.get)
        self.fails(2, "sweep", file, "--task", 6, match=["there is no task 6", "0 to 5"])

    def test_halving_keeps_the_best_of_each_rung(self):
        file = self.file("halves", grid={"train.lr_core": [1e-4, 1e-3, 3e-3, 1e-2], "train.lr": [1e-4, 1e-2]}, halving={"metric": "val_loss", "rungs": [4, 8, 16], "keep": 0.5}, seeds=[1, 2],
                         set={"train.max_steps_per_s": 100})
        store, killed_store = self.folder / "halves.db", self.folder / "halves-killed.db"
        plan = self.ok_json("sweep", file, "--plan")
        self.assertEqual(plan["rungs"], [{"steps": 4, "points": 8}, {"steps": 8, "points": 4}, {"steps": 16, "points": 2}])
        document = self.ok_json("sweep", file, "--jobs", 2, "--quiet", "--store", store)
        self.assertEqual([(point["rung"], point["status"]) for point in document["points"]], [(3, "finished")] * 2 + [(2, "not_kept")] * 2 + [(1, "not_kept")] * 4)
        self.assertEqual(self.query("SELECT step, count(*) FROM runs GROUP BY step ORDER BY step", store), [(4, 8), (8, 4), (16, 4)])
        # Those that were left had the higher losses at the rung.
        at = lambda run, step: self.query(f"SELECT value FROM run_metrics WHERE id = '{run}' AND metric = 'val_loss' AND step = {step}", store)[0][0]
        mean = lambda point, step: sum(at(run["run"], step) for run in point["runs"]) / 2
        for rung, step in ((1, 4), (2, 8)):
            left = [mean(point, step) for point in document["points"] if point["rung"] == rung]
            kept = [mean(point, step) for point in document["points"] if point["rung"] > rung]
            self.assertLessEqual(max(kept), min(left))
        # Within the first rung nothing is decided.
        process = self.command("sweep", file, "--jobs", 2, "--json", "--store", killed_store)
        for line in process.stderr:
            if line.startswith("[5/16] "):
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual({(point["rung"], point["status"]) for point in json.loads(out)["points"]}, {(1, "unfinished")})
        for mark in ("step 4: ", "[3/8] "):  # at the change of rungs, and within one
            process = self.command("sweep", file, "--jobs", 2, "--store", killed_store)
            for line in process.stderr:
                if line.startswith(mark):
                    break
            time.sleep(0.1)
            self.kill(process, signal.SIGKILL)
        ended = self.ok_json("sweep", file, "--jobs", 2, "--quiet", "--store", killed_store)
        self.assertEqual(self.values(ended), self.values(document))
        self.compare_runs(document, store, ended, killed_store)
        self.assertEqual(self.query("SELECT count(*) FROM runs", killed_store), [(16,)])
        self.fails(2, "sweep", file, "--slurm", self.folder / "no", match="halving cannot be divided into tasks")

    def test_the_plan_and_the_table(self):
        file = self.file("plan", grid={"train.batch": [8, 9], "train.micro_batches": [1, 2]}, set={"train.steps": 3}, seeds=[3, 4])
        store = self.folder / "plan.db"
        plan = self.ok_json("sweep", file, "--plan", "--store", store)
        self.assertFalse(store.exists())
        self.assertEqual((plan["sweep"], plan["metric"], plan["runs"], plan["rungs"]), ("plan", "val_accuracy", 6, []))
        peak = self.ok_json("plan", self.base, "--set", "train.micro_batches=2")["memory"]["peak_bytes"]
        self.assertEqual((plan["points"][1]["settings"], plan["points"][1]["steps"], plan["points"][1]["memory"]["planned_peak_bytes"]),
                         ({"train.batch": 8, "train.micro_batches": 2}, 3, peak))
        self.assertEqual([run["task"] for point in plan["points"] for run in point["runs"]], list(range(6)))
        self.assertEqual([(point["point"], point["settings"]) for point in plan["left_out"]], [(4, {"train.batch": 9, "train.micro_batches": 2})])
        text = self.ok("sweep", file, "--plan")
        self.assertRegex(text.out.splitlines()[0], r"^point +batch +micro_batches +task +steps +peak$")
        self.assertIn("point 4 (batch=9 micro_batches=2) is left out: train.", text.err)
        self.assertIn("6 runs of 3 points", text.err)
        table = self.ok("sweep", file, "--jobs", 3, "--store", store)
        self.assertRegex(table.out.splitlines()[0], r"^point +batch +micro_batches +val_accuracy +deviation +runs")
        self.assertEqual(len(table.out.splitlines()), 4)
        self.assertIn("comera-studio --compare r-", table.err)
        document = self.ok_json("sweep", file, "--quiet", "--store", store)
        means = [point["value"]["mean"] for point in document["points"]]
        self.assertEqual(means, sorted(means, reverse=True))
        for point in document["points"]:
            a, b = (run["value"] for run in point["runs"])
            self.assertAlmostEqual(point["value"]["mean"], (a + b) / 2)
            self.assertAlmostEqual(point["value"]["deviation"], abs(a - b) / 2 ** 0.5)
        self.assertEqual({tags for tags, in self.query("SELECT tags FROM runs", store)}, {'["sweep","sweep:plan"]'})
        names = {name for name, in self.query("SELECT name FROM runs", store)}
        self.assertIn("plan batch=8 micro_batches=2 seed 3", names)
        by_loss = self.ok_json("sweep", file, "--quiet", "--store", store, "--metric", "val_loss")
        means = [point["value"]["mean"] for point in by_loss["points"]]
        self.assertEqual((by_loss["better"], means), ("lower", sorted(means)))

    def test_a_run_that_fails_is_reported_and_the_others_continue(self):
        file = self.file("fails", grid={"model.classes": [4, 2]}, set={"train.steps": 2})
        store = self.folder / "fails.db"
        result = self.comera("sweep", file, "--jobs", 2, "--json", "--quiet", "--store", store)
        self.assertEqual(result.code, 3, result)
        document = result.json()
        failure, = document["failures"]
        self.assertEqual((failure["name"], failure["code"]), ("fails classes=2 seed 1", 3))
        self.assertIn("class", failure["reason"])
        self.assertEqual({point["settings"]["model.classes"]: point["status"] for point in document["points"]}, {4: "finished", 2: "unfinished"})
        diverged = self.file("diverged", grid={"train.lr": [1e-3, 10]}, set={"method": "came", "method.adam.weight_decay": 1, "train.steps": 40})
        document = self.ok_json("sweep", diverged, "--quiet", "--store", store)
        self.assertEqual([(point["settings"]["train.lr"], point["status"], point["value"]["runs"]) for point in document["points"]], [(1e-3, "finished", 1), (10, "diverged", 0)])

    def test_bad_files(self):
        bad = self.folder / "bad.json"
        for text, code, match in (
            ('{"base": "demo", }', 3, [r"bad\.json:1:\d+: not valid JSON", "comera help sweep"]),
            ('{"base": "demo", "gird": {}}', 3, [r"'gird' is not a key of a sweep", "did you mean 'grid'"]),
            ('{"base": "demo", "grid": {"train.lrr": [1]}}', 3, ["train.lrr is not a known setting", "did you mean 'train.lr'"]),
            ('{"base": "demmo", "grid": {"train.lr": [1]}}', 8, ["no config 'demmo'", "did you mean 'demo'"]),
            ('{"base": "demo", "grid": {"train.batch": [0]}}', 3, ["no point of the sweep can be trained", "point 1: train.batch must be"]),
        ):
            bad.write_text(text)
            self.fails(code, "sweep", bad, match=match)
        self.fails(8, "sweep", self.folder / "none.json", match="cannot read")
        good = self.file("good", seeds=[1])
        self.fails(2, "sweep", good, "--metric", "epoch", match="neither high nor low")
        self.fails(2, "sweep", good, "--jobs", 0)
        stdin = self.ok_json("sweep", "-", "--plan", given=good.read_text())
        self.assertEqual((stdin["sweep"], stdin["runs"]), ("sweep", 1))


if __name__ == "__main__":
    unittest.main()
