"""Reading while a run trains, a killed run, and what may not be done to a running one."""
import json
import os
import shutil
import signal
import time
import unittest

from support import QUICK, CliTest

# 4 to 8 ms a step: runs for ever for the purpose of a test, which ends it.
LONG = ["train", "demo", "--steps", 1000000, "--quiet", "--json", "--set", "train.batch=1000", "--set", "train.checkpoint_every=20", *QUICK]


class Concurrency(CliTest):
    def start(self, name, *more):
        process = self.command(*LONG, "--name", name, *more)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def until(self, what, process):
        """Waits for a state, not for a time; a hang ends the test."""
        deadline = time.monotonic() + 240
        while True:
            found = what()
            if found:
                return found
            self.assertIsNone(process.poll(), "the run ended early")
            self.assertLess(time.monotonic(), deadline, "nothing happened")
            time.sleep(0.05)

    def steps_of(self, name):
        if not self.store.exists():
            return 0
        rows = self.comera("query", f"SELECT max(m.step) AS last FROM metrics m JOIN runs r USING(run) WHERE r.name = '{name}'", "--json")
        return rows.code == 0 and rows.json()["rows"][0]["last"] or 0

    def test_reading_while_a_run_trains_and_after_a_kill(self):
        process = self.start("busy")
        first = self.until(lambda: self.steps_of("busy"), process)
        self.until(lambda: self.steps_of("busy") > first, process)  # new steps are seen
        for _ in range(20):
            row = self.ok_json("runs", "list")["runs"][0]
            self.assertEqual((row["name"], row["status"]), ("busy", "running"))
        self.assertEqual(self.run_row("busy")["status"], "running")
        steps = self.ok_json("get", "busy", "--metric", "train_loss")["steps"]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.ok("export", "busy", "--to", "csv")
        self.until(lambda: self.run_row("busy")["checkpoints"], process)
        self.ok("eval", "busy")
        self.ok("runs", "tag", "busy", "seen")  # a second writer, for a moment

        # Refused while it runs.
        self.fails(2, "resume", "busy", match=["still running", str(process.pid)])
        self.fails(2, "reproduce", "busy", match="still running")
        self.fails(2, "runs", "purge", "busy", "--confirm", "busy", match=["was not purged", "is training it"])
        # A fork is not: its parent may go on. The store is named as one does in its own folder.
        forked = self.ok_json("fork", "busy", "--at-step", 10, "--steps", 12, "--quiet", "--name", "branch", "--store", "runs.db")
        self.assertEqual((forked["status"], forked["step"]), ("finished", 12))
        self.assertIsNone(process.poll())
        self.assertEqual(self.run_row("busy")["status"], "running")

        process.send_signal(signal.SIGKILL)
        process.communicate()
        row = self.run_row("busy")
        self.assertEqual(row["status"], "interrupted")
        self.assertEqual(row["tags"], ["seen"])
        self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])
        # Resumed from its last checkpoint, to an end set now.
        last = row["checkpoints"][-1]["step"]
        done = self.ok_json("resume", "busy", "--quiet", "--set", f"train.steps={last + 3}")
        self.assertEqual((done["status"], done["step"]), ("finished", last + 3))
        self.assertEqual(self.run_row("busy")["status"], "finished")
        self.assertEqual(self.ok_json("get", "busy", "--metric", "train_loss")["steps"], list(range(1, last + 4)))

    def test_two_runs_into_one_store(self):
        a, b = self.start("a"), self.start("b")
        for process, name in ((a, "a"), (b, "b")):
            self.until(lambda: self.steps_of(name) > 20, process)
        for process, sign, code in ((a, signal.SIGINT, 130), (b, signal.SIGTERM, 143)):
            process.send_signal(sign)
            out, err = process.communicate(timeout=240)
            self.assertEqual(process.returncode, code, out + err)
        for name in ("a", "b"):
            row = self.run_row(name)
            self.assertEqual(row["status"], "stopped")
            self.assertEqual(row["checkpoints"][-1]["step"], row["step"])  # it stopped with a checkpoint
            steps = self.ok_json("get", name, "--metric", "train_loss")["steps"]
            self.assertEqual(steps, list(range(1, row["step"] + 1)))

    def test_a_checkpoint_that_hangs_does_not_keep_the_program(self):
        for as_json in (True, False):
            name = f"hangs-{as_json}"
            args = [a for a in LONG if a != "--json"]
            process = self.command(*args, "--set", "train.checkpoint_every=0", "--set", "train.max_steps_per_s=50", "--grace", 3, "--name", name, *(["--json"] if as_json else []))
            self.addCleanup(lambda process=process: process.poll() is None and process.kill())
            first = self.until(lambda: self.steps_of(name), process)
            folder = self.store.parent / "checkpoints" / self.run_row(name)["run"]
            folder.mkdir(parents=True)
            for step in range(first, first + 1000):  # a disk that takes no byte for 20 s of steps: pipes that nobody reads
                os.mkfifo(folder / f"step-{step:09}.safetensors.part-{process.pid}")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=240)
            self.assertEqual(process.returncode, 130, out + err)
            error = json.loads(out)["error"] if as_json else None
            for text in ("did not end within 3 s of the signal", "is still being written", "comera resume"):
                self.assertIn(text, json.dumps(error) if as_json else err)
            self.assertEqual(error and error["code"], 130 if as_json else None)
            shutil.rmtree(folder)
            self.assertEqual(self.run_row(name)["status"], "interrupted")
            self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])

    def test_a_signal_says_what_it_does(self):
        process = self.command(*[a for a in LONG if a not in ("--quiet", "--json")], "--name", "told")
        self.until(lambda: self.steps_of("told") > 5, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 130)
        self.assertIn("Stopping after this step and writing a checkpoint", err)
        self.assertIn("stopped at step", out)


if __name__ == "__main__":
    unittest.main()
