"""A run that is stopped or killed anywhere and resumed ends with the bytes of one that was not."""
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import time
import unittest
from pathlib import Path

from support import CliTest, Safetensors, images

STEPS = 200
# Late stage after 60, cuts from about 100 on, a checkpoint now and then: not in step with anything else.
BASE = ["--set", "train.batch=350", "--set", "train.lr_rank=3e-2", "--set", "method.comera.prune_every=20", "--set", "method.comera.late_after=60", "--set", "method.comera.target=0.2",
        "--set", "train.warmup=10", "--set", "train.checkpoint_every=37", "--set", "train.eval_every=50", "--set", "method.comera.prune_dead_share=0.05", "--set", "data.validation_rows=300"]
NOT_REPEATED = ", ".join(f"'{name}'" for name in ("step_ms", "eval_ms", "process_bytes", "device_used_bytes", "device_total_bytes", "data_ms", "forward_ms", "backward_ms", "update_ms"))  # measured


class Resume(CliTest):
    random = random.Random(20240607)
    limits = {}  # seconds of --max-time, by verb: about what a whole run takes

    # ---- what a run left ----------------------------------------------------------------------------------------------

    def final(self, run, store=None):
        """Weights, optimizer state and training state at the end; all stored values; what happened."""
        row = self.run_row(run, store)
        self.assertEqual(row["status"], "finished")
        file = Safetensors(row["checkpoints"][-1]["path"])
        self.assertEqual(row["checkpoints"][-1]["step"], row["step"])
        config = file.comera["config"]
        config.pop("name")
        one = f"run = (SELECT run FROM runs WHERE id = '{row['run']}')"
        return {
            "tensors": file.tensors,
            "state": file.comera["state"],
            "config": config,
            "metrics": self.query(f"SELECT name, step, value FROM metrics JOIN metric_names USING(metric) WHERE {one} AND name NOT IN ({NOT_REPEATED}) ORDER BY name, step", store),
            "ranks": self.query(f"SELECT layer, bond, step, rank FROM ranks WHERE {one} ORDER BY layer, bond, step", store),
            "memory": self.query(f"SELECT purpose, step, bytes FROM memory WHERE {one} ORDER BY purpose, step", store),
            "events": sorted((event["step"], event["kind"], json.dumps({k: v for k, v in event["body"].items() if k in ("path", "value", "stage", "reason", "entries", "entries_before", "entries_after")},
                                                                       sort_keys=True)) for event in row["events"] if event["kind"] in ("edit", "stage", "truncation", "regrowth")),
        }

    def same(self, a, b, what):
        self.assertEqual(set(a["tensors"]), set(b["tensors"]), what)
        for name, tensor in a["tensors"].items():
            self.assertTrue(tensor == b["tensors"][name], f"{what}: {name} differs")
        for part in ("state", "config", "events", "ranks", "memory"):
            self.assertEqual(a[part], b[part], f"{what}: {part}")
        self.assertEqual(len(a["metrics"]), len(b["metrics"]), what)
        for x, y in zip(a["metrics"], b["metrics"]):
            self.assertEqual(x, y, what)

    # ---- interrupting ---------------------------------------------------------------------------------------------------

    def interrupted(self, how, share, step, *args):
        """Runs a command and interrupts it, by a signal when it reports this step or a later one, whatever the machine's speed; True
        when that came before its end. With --max-time after a share of the time that a run takes, as those before it show."""
        if how == "max-time":
            limit = self.limits.setdefault(args[0], 4.0)
            result = self.comera(*args, "--max-time", f"{limit * share:.6f}s", "--json", "--quiet")
            self.assertEqual(result.code, 0, result)
            stopped = result.json()["status"] == "stopped"
            self.assertIn(result.json()["status"], ("stopped", "finished"))
            self.limits[args[0]] *= 1.15 if stopped else 0.7
            return stopped
        process = self.command(*args, "--events", "-", "--quiet")
        sent, end = False, None
        for line in process.stdout:
            if sent and how == "sigkill":
                continue  # a kill may leave half a line
            event = json.loads(line)
            if event["event"] == "done":
                end = event["status"]
            if event["event"] == "step" and not sent and event["step"] >= step:
                process.send_signal(signal.SIGINT if how == "sigint" else signal.SIGKILL)
                sent = True
        err = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        code = process.wait(timeout=240)
        if code == -signal.SIGKILL:
            self.assertEqual((how, sent), ("sigkill", True), err)
            return True
        if end == "finished" or (how, sent) == ("sigkill", True):  # the signal may come after the last step
            self.assertIn(code, (0, 130) if sent else (0,), err)
            return False
        self.assertEqual((how, sent, code, end), ("sigint", True, 130, "stopped"), err)
        return True

    def pieces(self, name, how, begin, end, steps, seen):
        """Begins a run with `begin`, interrupts it and its resumes at random steps until `end` says it is over; each of them ends
        after a multiple of `steps`. `begin(name)` may be called again when nothing of it was stored. Notes the steps reached in
        `seen`."""
        args, done = begin(name), 0
        for attempt in range(100):
            share = self.random.uniform(0, 0.7) if attempt < 12 else 1 + attempt / 4
            cut = self.interrupted(how, share, done + max(1, share * (steps - done % steps)), *args)
            if not self.store.exists():
                continue
            row = self.comera("runs", "show", name, "--json")
            if row.code != 0:  # killed before it was stored
                continue
            row = row.json()
            if cut and row["status"] != "finished":  # a kill may come when it is all stored
                done = self.query(f"SELECT max(metrics.step) FROM metrics JOIN runs USING(run) WHERE id = '{row['run']}'")[0][0] or 0
                self.assertIn(row["status"], ("interrupted",) if how == "sigkill" else ("stopped",))
                seen.append((how, done))
            args = end(name, row)
            if args is None:
                return
        self.fail("no end in sight: is every piece killed before it gets further?")

    # ---- tests ----------------------------------------------------------------------------------------------------------

    def test_1_interruptions_across_stage_switch_truncation_and_edit(self):
        straight = ["train", images(self.folder), "--steps", STEPS, *BASE, "--name"]
        self.ok(*straight, "straight", "--quiet")
        straight_end = self.final("straight")
        kinds = [kind for _, kind, _ in straight_end["events"]]
        self.assertIn("stage", kinds)
        self.assertIn("truncation", kinds)
        self.assertEqual(straight_end["state"]["late_at"], 61)

        half = STEPS // 2
        first = ["train", images(self.folder), "--steps", half, *BASE, "--name"]
        changes = ["--extend", STEPS - half, "--set", "method.comera.threshold=0.03", "--set", "rank.cap.fc0.2=20",
                   "--set", "rank.cap.fc0.3=36"]  # more than the 32 at the start: it grows
        self.ok(*first, "edited", "--quiet")
        self.ok("resume", "edited", "--quiet", *changes)
        edited_end = self.final("edited")
        self.assertEqual([(step, json.loads(body)["path"]) for step, kind, body in edited_end["events"] if kind == "edit"],
                         [(half + 1, "method.comera.threshold"), (half + 1, "rank.cap.fc0.2"), (half + 1, "rank.cap.fc0.3"),
                          (half + 1, "train.steps")])
        self.assertIn("truncation", [kind for step, kind, _ in edited_end["events"] if step > half])
        self.assertIn((half + 1, "regrowth"), [(step, kind) for step, kind, _ in edited_end["events"]])
        self.assertNotEqual(straight_end["tensors"], edited_end["tensors"])
        self.assertLessEqual(max(rank for layer, bond, step, rank in edited_end["ranks"] if (layer, bond) == ("fc0", 2) and step >= half), 20)

        seen = []

        def until_finished(name, row):
            return None if row["status"] == "finished" else ["resume", name]

        def edited_next(name, row):
            """The first half, then the changes, each until it has come to its end."""
            changed = any(event["kind"] == "edit" and event["body"]["path"] == "rank.cap.fc0.2" for event in row["events"])
            if row["status"] == "finished":
                return None if row["step"] == STEPS else ["resume", name, *changes]
            if row["step"] >= half and row["total_steps"] == half and not changed and row["checkpoints"] and row["checkpoints"][-1]["step"] == half:
                return ["resume", name, *changes]  # killed before the changes were taken
            return ["resume", name]

        # Stopped between the changes and the first step under them: a time that is over when it is first looked at.
        self.ok(*first, "at once", "--quiet")
        stopped = self.ok_json("resume", "at once", "--quiet", *changes, "--max-time", "0.000000000001s")
        self.assertEqual((stopped["status"], stopped["step"]), ("stopped", half))
        self.ok("resume", "at once", "--quiet")
        self.same(self.final("at once"), edited_end, "at once")

        rounds = 0
        counts = lambda: {how: len({step for h, step in seen if h == how and 0 < step < STEPS}) for how in ("sigint", "sigkill", "max-time")}
        while rounds < 2 or sum(counts().values()) < 20 or min(counts().values()) < 4:
            rounds += 1
            self.assertLess(rounds, 20, f"too few interruptions: {seen}")
            for how in ("sigint", "sigkill", "max-time"):
                for kind, begin, following, steps, wanted in (("straight", lambda n: straight + [n], until_finished, STEPS, straight_end),
                                                               ("edited", lambda n: first + [n], edited_next, half, edited_end)):
                    name = f"{kind}-{how}-{rounds}"
                    self.pieces(name, how, begin, following, steps, seen)
                    self.same(self.final(name), wanted, name)
        print(f"{len(seen)} interruptions: {counts()}, at steps {sorted({step for _, step in seen})}")
        type(self).names = [f"{kind}-{how}-1" for kind in ("straight", "edited") for how in ("sigint", "sigkill")]

    def test_2_fork_goes_on_as_its_parent(self):
        parent = self.final("straight")
        for step in (0, 33, 60, 61, 120, 199):
            name = f"fork-{step}"
            document = self.ok_json("fork", "straight", "--at-step", step, "--name", name, "--quiet")
            self.assertEqual(document["step"], STEPS)
            child = self.final(name)
            for tensor in parent["tensors"]:
                self.assertTrue(parent["tensors"][tensor] == child["tensors"][tensor], f"{name}: {tensor}")
            self.assertEqual(child["metrics"], [row for row in parent["metrics"] if row[1] > step])
            row = self.run_row(name)
            self.assertEqual((row["parent"], row["fork_step"]), (self.run_row("straight")["run"], step))
        changed = self.ok_json("fork", "straight", "--at-step", 120, "--name", "fork-changed", "--quiet", "--set", "train.lr_core=1e-3")
        self.assertEqual(changed["status"], "finished")
        self.assertNotEqual(self.final("fork-changed")["tensors"], parent["tensors"])

    def test_3_reproduce(self):
        for name in ["straight", "edited", "fork-33", "fork-120", "fork-changed", *self.names]:
            document = self.ok_json("reproduce", name)
            self.assertEqual((document["identical"], document["weights_compared"], document["first_difference"]), (True, True, None), name)
            self.assertGreaterEqual(document["values"], 11 * document["steps"], name)
        self.assertIn("identical", self.ok("reproduce", "straight").out)

    @staticmethod
    def catches(pid, number):
        caught, = re.findall(r"^SigCgt:\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.M)
        return int(caught, 16) >> (number - 1) & 1 == 1

    def copied_store(self, path):
        path.parent.mkdir(exist_ok=True)
        for old in path.parent.glob(path.name + "*"):
            old.unlink()
        source, db = sqlite3.connect(self.store), sqlite3.connect(path)
        source.backup(db)
        source.close()
        return db

    def test_4_reproduce_finds_a_planted_difference(self):
        for metric, step in (("train_loss", 123), ("rho", 1), ("val_accuracy", 150)):
            copy = self.folder / "planted" / "runs.db"
            db = self.copied_store(copy)
            changed = db.execute("UPDATE metrics SET value = value * (1 + 3e-16) WHERE step = ? AND metric = (SELECT metric FROM metric_names WHERE name = ?) "
                                 "AND run = (SELECT run FROM runs WHERE name = 'straight')", (step, metric)).rowcount
            db.commit()
            db.close()
            self.assertEqual(changed, 1)
            result = self.comera("reproduce", "straight", "--json", "--store", copy)
            self.assertEqual(result.code, 1, result)
            document = result.json()
            self.assertFalse(document["identical"])
            self.assertEqual((document["first_difference"]["step"], document["first_difference"]["what"]), (step, metric))
        # A changed weight in the last checkpoint.
        path = self.folder / "planted" / "weights.safetensors"
        shutil.copy(self.run_row("straight")["checkpoints"][-1]["path"], path)
        whole = bytearray(path.read_bytes())
        whole[-5] ^= 1
        path.write_bytes(whole)
        db = self.copied_store(copy)
        db.execute("UPDATE checkpoints SET path = ? WHERE step = ? AND run = (SELECT run FROM runs WHERE name = 'straight')", (str(path), STEPS))
        db.commit()
        db.close()
        result = self.comera("reproduce", "straight", "--json", "--store", copy)
        self.assertEqual(result.code, 1, result)
        whole_tensors, hurt = Safetensors(self.run_row("straight")["checkpoints"][-1]["path"]).tensors, Safetensors(path).tensors
        changed = [name for name in hurt if hurt[name] != whole_tensors[name]]
        self.assertEqual([result.json()["first_difference"]["what"]], changed)

    def test_5_changes_of_several_resumes(self):
        """The last word counts, also when a kill comes between: each change is in the log once and is made again."""
        args = ["train", images(self.folder), "--steps", 60, *BASE, "--set", "train.checkpoint_every=20", "--set", "train.keep_checkpoints=100", "--name", "chain", "--quiet"]
        self.ok(*args)
        self.ok("resume", "chain", "--extend", 40, "--set", "train.lr_core=1e-3", "--quiet")
        # Back before that change, with another value for it and one for something else.
        self.ok("resume", "chain", "--from-step", 45, "--set", "method.comera.rank_weight=0.02", "--quiet")
        row = self.run_row("chain")
        edits = [(e["step"], e["body"]["path"], e["body"]["value"]) for e in row["events"] if e["kind"] == "edit"]
        self.assertEqual(sorted(edits), [(41, "method.comera.rank_weight", "0.02"), (61, "train.lr_core", "1e-3"), (61, "train.steps", "100")])
        self.assertEqual((row["status"], row["step"]), ("finished", 100))
        folder = Path(row["checkpoints"][0]["path"]).parent
        self.assertEqual({str(path) for path in folder.iterdir()}, {c["path"] for c in row["checkpoints"]}, "files of the course that was taken back")
        self.assertTrue(self.ok_json("reproduce", "chain")["identical"])
        self.ok("resume", "chain", "--from-step", 45, "--set", "train.lr_core=5e-4", "--quiet")
        rates = dict(row[1:] for row in self.final("chain")["metrics"] if row[0] == "lr_core")
        self.assertTrue(all(rates[step] <= 5e-4 for step in range(41, 101)), "the older change came back")
        self.assertTrue(self.ok_json("reproduce", "chain")["identical"])

    def test_6_other_methods(self):
        cases = {
            "adam8bit": ["--set", "method.optimizer=adam8bit", "--set", "method.adam8bit.min_size=256"],
            "galore": ["--set", "method.weights=dense", "--set", "method.optimizer=galore", "--set", "method.galore.rank=8", "--set", "method.galore.gap=15"],
            "int8 stash": ["--set", "method.stash=int8"],
            "paper, all of them": ["--set", "method.comera.mode=paper", "--set", "method.optimizer=adam8bit", "--set", "method.stash=int8", "--set", "method.comera.gamma=0.01"],
        }
        for case, more in cases.items():
            args = ["train", images(self.folder), "--steps", 90, *BASE, *more, "--name"]
            self.ok(*args, case, "--quiet")
            wanted = self.final(case)
            for how in ("sigint", "sigkill"):
                seen = []
                for attempt in range(10):
                    name = f"{case} {how} {attempt}"
                    self.pieces(name, how, lambda n: args + [n], lambda n, row: None if row["status"] == "finished" else ["resume", n], 90, seen)
                    self.same(self.final(name), wanted, name)
                    if len(seen) >= 3:
                        break
                self.assertGreaterEqual(len(seen), 3, name)
            self.assertTrue(self.ok_json("reproduce", case)["identical"])

    def test_7_a_fork_without_its_start_is_refused(self):
        self.ok("train", images(self.folder), "--steps", 30, *BASE, "--name", "root", "--quiet")
        self.ok("fork", "root", "--at-step", 10, "--name", "lost", "--quiet")
        for checkpoint in self.run_row("lost")["checkpoints"]:
            os.unlink(checkpoint["path"])
        for verb in ("resume", "reproduce"):
            self.fails(8, verb, "lost", match="forked from is gone")
        self.assertEqual(self.run_row("lost")["status"], "finished")

    def test_8_a_fork_that_is_stopped_while_it_computes_its_start(self):
        before = len(self.ok_json("runs", "list", "--all")["runs"])
        self.ok("train", images(self.folder), "--steps", 800, *BASE, "--set", "train.checkpoint_every=0", "--set", "train.batch=1000", "--set", "train.eval_every=0", "--name", "long", "--quiet")
        process = self.command("fork", "long", "--at-step", 799, "--name", "never", "--json", "--quiet")
        deadline = time.monotonic() + 60
        while not self.catches(process.pid, signal.SIGINT):  # from then on it stops in order, and the steps take longer than that
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertEqual(len(self.ok_json("runs", "list", "--all")["runs"]), before + 1)
        self.assertEqual([p.name for p in self.folder.iterdir() if ".fork-" in p.name], [])


if __name__ == "__main__":
    unittest.main()
