"""What a person does with the window, done for real: a training demo under a mouse and a keyboard, windows that are closed
and killed, and a store that says afterwards what has happened. Pictures are kept in build/screenshots."""
import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import time

from driver import LIMIT, PICTURES, STUDIO, WindowTest, main, until

# The demo, so that what takes it a minute is there in seconds: the ranks move faster, and early.
PACE = ["--set", "train.threads=1", "--set", "train.steps=10000000", "--set", "train.eval_every=0", "--set",
        "train.checkpoint_every=0", "--set", "train.lr_rank=1e-2", "--set", "train.lr_rank_late=0", "--set", "train.max_steps_per_s=0", "--set",
        "method.comera.late_halving=0",
        "--set", "method.comera.late_after=200", "--set", "method.comera.loss_target=5", "--set", "method.comera.target=0.95"]
TARGET = "method.comera.target"
# Of a run that is made on the command line to have one.
SHORT = ["--set", "train.threads=1", "--set", "train.eval_every=20", "--set", "train.max_steps_per_s=0", "--quiet"]


class Scenarios(WindowTest):
    def target_edits(self, run):
        return [float(event["body"]["value"]) for event in self.events(run, "edit") if event["body"]["path"] == TARGET]

    def checkpoint_here(self, studio, run, step):
        """Ctrl+S in a paused run: it stores everything, so the last step is known."""
        before = len(self.events(run, "checkpoint"))
        studio.key("ctrl+s")
        until(lambda: len(self.events(run, "checkpoint")) > before, "a checkpoint")
        row = self.run_row(run)
        self.assertEqual(row["checkpoints"][-1]["step"], self.last_step(run))
        if step is not None:
            self.assertEqual(self.last_step(run), step)
        return self.last_step(run)

    def test_a_session_from_the_first_click_to_the_resumed_run(self):
        studio = self.open(*PACE)
        studio.see("Run the demo")
        studio.picture("session-1-start")
        studio.click("Run the demo")
        run = self.only_run()
        self.trains_past(run, 150)
        losses = [value for _, value in sorted(self.metric(run, "train_loss").items())]
        self.assertLess(statistics.mean(losses[-20:]), 0.7 * statistics.mean(losses[:20]), "the loss falls")

        # The slider, then the field beside it.
        stage = until(lambda: self.events(run, "stage"), "the late stage")[0]
        self.assertEqual(self.target_edits(run), [])
        studio.drag(TARGET, 0.9, 0.75)
        until(lambda: 0.65 < (self.target_edits(run) or [1])[-1] < 0.85, lambda: f"the target where it was dragged to: {self.target_edits(run)}")
        studio.click(TARGET + ":value")
        studio.type("0.5")
        studio.key("Return")
        until(lambda: 0.5 in self.target_edits(run), lambda: f"a target of 0.5 among {self.target_edits(run)}")
        goal = 0.5 * stage["body"]["entries"]
        until(lambda: min(self.metric(run, "entries").values()) <= goal, lambda: f"a size of {goal}: {self.metric(run, 'entries')}")

        studio.key("F5")
        studio.see("says:Paused")
        step = self.checkpoint_here(studio, run, None)
        studio.key("F10")
        until(lambda: self.last_step(run) == step + 1, "one more step")
        studio.see("says:Paused")
        step = self.checkpoint_here(studio, run, step + 1)
        studio.picture("session-2-paused")

        studio.ask_to_close()
        studio.see("Checkpoint and quit")
        studio.picture("session-3-closing")
        studio.click("Checkpoint and quit")
        self.assertEqual(studio.end(), 0, studio.said())
        row = self.run_row(run)
        self.assertEqual((row["status"], row["step"], row["checkpoints"][-1]["step"]), ("stopped", step, step))

        # As it was closed: the page of the run; the list of runs is a key away.
        studio = self.open(*PACE)
        studio.see("says:Stopped")
        studio.see("plot:loss:1")
        studio.key("ctrl+r")
        studio.click("resume-last")
        resumed = until(lambda: self.events(run, "resume"), "a resumed run")
        self.assertEqual(resumed[-1]["body"]["from_step"], step)
        self.trains_past(run, step + 20)
        steps = sorted(self.metric(run, "train_loss"))
        self.assertEqual(steps, list(range(1, steps[-1] + 1)), "every step once")
        self.assertEqual(len(self.query("SELECT id FROM runs")), 1)

        # Closing again: not after all, then without a checkpoint.
        studio.ask_to_close()
        studio.click("Cancel")
        studio.miss("Cancel")
        self.trains_past(run, self.last_step(run))
        studio.ask_to_close()
        studio.click("quit-drop")
        self.assertEqual(studio.end(), 0, studio.said())
        row = self.run_row(run)
        self.assertEqual((row["status"], row["checkpoints"][-1]["step"]), ("stopped", step))
        self.assertGreater(row["step"], step)

    def test_the_size_goes_down_and_up_again_by_the_slider(self):
        studio = self.open("--demo", *PACE, "--set", f"{TARGET}=1")
        run = self.only_run()
        base = until(lambda: self.events(run, "stage"), "the late stage")[0]["body"]["entries"]
        across = lambda target: 0.045 + 0.91 * (target - 0.05) / 0.95  # of the slider, whose handle stays inside

        def drag(start, end):
            studio.drag(TARGET, across(start), across(end))
            until(lambda: abs((self.target_edits(run) or [1])[-1] - end) < 0.05, lambda: f"a target of {end} among {self.target_edits(run)}")
            last = None
            while last != (last := self.target_edits(run)[-1]):  # one on the way may be near the end too
                time.sleep(1)
                self.trains_past(run, self.last_step(run))
            return last
        low = drag(1, 0.3)
        until(lambda: min(self.metric(run, "entries").values()) <= low * base, lambda: f"a size of {low * base}: {self.metric(run, 'entries')}")
        self.trains_past(run, self.last_step(run) + 100)
        small = min(self.metric(run, "entries").values())
        self.assertEqual(self.events(run, "regrowth"), [])

        high = drag(low, 0.7)
        until(lambda: self.events(run, "regrowth"), "ranks that grow")
        self.trains_past(run, self.last_step(run) + 200)
        sizes = self.metric(run, "entries")
        now = sizes[max(sizes)]
        self.assertLessEqual(now, high * base)
        self.assertGreater(now, 0.9 * high * base, f"from {small} to the new target: {sizes}")
        self.assertGreater(now, 1.5 * small)
        studio.picture("regrowth")
        studio.signal(signal.SIGTERM)
        studio.end()
        # The curve, by the window's own export.
        charts = self.folder / "charts"
        done = subprocess.run([STUDIO, "--screenshot", self.folder / "shot.png", "--export", charts, "--run", run, "--store", self.store],
                              env={**self.environment, "DISPLAY": self.display.name}, capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        curve = next(charts.glob("*-size.svg"))
        self.assertIn("</svg>", curve.read_text())
        shutil.copy(curve, PICTURES / "regrowth.svg")

    def test_a_killed_program_leaves_a_run_that_can_be_resumed(self):
        def killed(studio, run, step):
            self.trains_past(run, step)
            studio.signal(signal.SIGKILL)
            self.assertEqual(studio.end(), -signal.SIGKILL)
            self.assertEqual(self.run_row(run)["status"], "interrupted")

        often = [*PACE, "--set", "train.checkpoint_every=50"]
        studio = self.open("--demo", *often)
        run = self.only_run()
        killed(studio, run, 120)

        studio = self.open(*often)
        self.assertRegex(studio.see("says:1 run was interrupted.*"), r": demo, at step \d+ of 10,000,000\.")
        studio.picture("interrupted")
        studio.click("interrupted:Resume")
        resumed = until(lambda: self.events(run, "resume"), "a resumed run")[-1]
        self.assertEqual(resumed["body"]["from_step"] % 50, 0)
        self.assertGreaterEqual(resumed["body"]["from_step"], 100)
        studio.miss("says:1 run was interrupted.*")
        killed(studio, run, self.last_step(run) + 60)

        studio = self.open(*often)
        studio.click("interrupted:Show")
        studio.see("says:Interrupted")
        studio.miss("says:1 run was interrupted.*")
        studio.picture("interrupted-shown")
        studio.ask_to_close()
        self.assertEqual(studio.end(), 0, studio.said())
        # It was told, and is not told again.
        studio = self.open(*often)
        studio.see("says:Interrupted")
        studio.key("ctrl+r")
        studio.see("run:" + run)
        self.assertIsNone(studio.seen("says:1 run was interrupted.*"))
        studio.ask_to_close()
        self.assertEqual(studio.end(), 0, studio.said())

    def test_the_past_is_shown_while_the_run_goes_on(self):
        studio = self.open("--demo", *PACE)
        run = self.only_run()
        self.trains_past(run, 200)
        studio.drag("lanes", 0.9, 0.3)
        pattern = r"says:REPLAY  step ([\d,]+) of ([\d,]+)"

        def shown():  # the step of the past, and how far the run is meanwhile
            sign = studio.seen(pattern)
            return [int(text.replace(",", "")) for text in re.fullmatch(pattern, sign).groups()] if sign else [0, 0]
        at = studio.settled(lambda: shown()[0], pattern)
        of = shown()[1]
        self.assertLess(at, of)
        self.assertIn("follow", studio.items())
        before = self.last_step(run)
        self.trains_past(run, before + 30)
        self.assertTrue(studio.seen(f"says:REPLAY  step {at:,} of .*"), "the past stays while the run goes on")
        self.assertEqual(self.run_row(run)["status"], "running")
        studio.picture("replay")
        studio.key("l")
        studio.miss(r"says:REPLAY.*")
        self.assertNotIn("follow", studio.items())
        self.trains_past(run, self.last_step(run) + 10)
        studio.signal(signal.SIGKILL)

    def test_two_stored_runs_are_compared(self):
        for name, rate in (("slow", "2e-3"), ("quick", "4e-3")):
            self.comera("train", "demo", "--steps", 60, "--name", name, "--set", f"train.lr_core={rate}", *SHORT)
        runs = [row[0] for row in self.query("SELECT id FROM runs")]
        studio = self.open()
        for run in runs:
            studio.click("tick:" + run)
        studio.click("compare")
        for run in runs:
            studio.see("compared:" + run)
        studio.see("plot:train_loss:2")
        studio.picture("compare")
        studio.key("ctrl+r")
        studio.click("tick:" + runs[0])
        studio.key("ctrl+3")
        studio.miss("plot:train_loss:2")
        studio.ask_to_close()
        self.assertEqual(studio.end(), 0, studio.said())

    def test_a_sweep_of_the_form_is_that_of_the_command_line(self):
        quick = {"train.threads": 1, "train.steps": 4, "train.eval_every": 0, "train.max_steps_per_s": 0}
        studio = self.open("--layout", "new", *[word for path, value in quick.items() for word in ("--set", f"{path}={value}")])
        studio.click("sweep")
        studio.key("ctrl+f")
        studio.type("train.lr")
        studio.click("vary:train.lr")
        for box, values in (("values:train.lr", "1e-3, 3e-3"), ("values:seeds", "1, 2")):
            studio.click(box)
            studio.key("ctrl+a")
            studio.type(values)
        studio.see("says:4 runs of 2 points")
        studio.see("says:Largest planned peak .*")
        studio.picture("sweep-planned")
        studio.click("sweep-save")
        saved = until(lambda: next(self.folder.rglob("sweep.json"), None), "the file of the sweep")
        # One run by the command line; the window trains the others.
        self.comera("sweep", saved, "--task", 0, "--quiet")
        studio.see("says:4 runs of 2 points, 1 trained already")
        studio.click("sweep-start")
        status = lambda: [row[0] for row in self.query("SELECT status FROM runs")]
        until(lambda: status() == ["finished"] * 4, lambda: f"four finished runs: {status()}")
        swept = json.loads(self.comera("sweep", saved, "--json"))
        runs = [run for point in swept["points"] for run in point["runs"]]
        self.assertEqual([run["status"] for run in runs], ["finished"] * 4)
        self.assertEqual(len(status()), 4, "the command line trained nothing again")

    def test_the_window_opens_as_it_was_closed(self):
        for name in ("one", "two"):
            self.comera("train", "demo", "--steps", 20, "--name", name, *SHORT)
        runs = [row[0] for row in self.query("SELECT id FROM runs ORDER BY run")]
        geometry = lambda: self.display.xdotool("getwindowgeometry", "--shell", studio.window).split()
        stands = lambda *wanted: until(lambda: set(wanted) <= set(geometry()), lambda: f"{wanted}, it is {geometry()}")
        place = ("X=150", "Y=60", "WIDTH=1200", "HEIGHT=700")

        def close():
            studio.ask_to_close()
            self.assertEqual(studio.end(), 0, studio.said())
        studio = self.open()
        for run in runs:
            studio.click("tick:" + run)
        studio.key("ctrl+3")
        for run in runs:  # before the place changes: a button that is let go where it does not lie any more was not pressed
            studio.see("compared:" + run)
        self.display.xdotool("windowsize", studio.window, 1200, 700, "windowmove", studio.window, 150, 60)
        stands(*place)
        close()

        studio = self.open()
        stands(*place)
        for run in runs:
            studio.see("compared:" + run)
        close()

        # A size that is asked for is not kept, and a run that is gone is left out without a word.
        self.comera("runs", "purge", runs[0], "--confirm", "one")
        studio = self.open("--size", "1000x650")
        stands("WIDTH=1000", "HEIGHT=650")
        studio.see("compared:" + runs[1])
        studio.miss("compared:" + runs[0])
        close()
        studio = self.open()
        stands(*place)
        close()

    def test_a_store_that_may_only_be_read(self):
        self.comera("train", "demo", "--steps", 40, "--name", "kept", *SHORT)
        run = self.only_run()
        place = self.folder / "shelf"
        place.mkdir()
        self.store = self.store.rename(place / "runs.db")
        self.store.chmod(0o444)
        place.chmod(0o555)
        self.addCleanup(place.chmod, 0o755)
        # Root may write everything, so it gives that up.
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
        studio = self.open("--set", "train.threads=1", command=command)
        studio.see("run:" + run)
        studio.see("says:This database is read-only: the file may not be written.*")
        self.assertNotIn("Run the demo", studio.items(), "nothing can be trained into it")
        studio.picture("read-only")
        studio.click("run:" + run)
        studio.click("Open")
        studio.see("says:Finished")
        studio.ask_to_close()
        self.assertEqual(studio.end(), 0, studio.said())
        self.assertEqual(self.query("SELECT id, status FROM runs"), [[run, "finished"]])

    def test_quitting_waits_for_a_change_of_the_store(self):
        for theme in ("dark", "light"):
            with self.subTest(theme):
                self.comera("train", "demo", "--steps", 3, *SHORT)
                studio = self.open("--theme", theme, "--layout", "start")
                run = self.query("SELECT id FROM runs ORDER BY run DESC")[0][0]
                studio.click(f"run:{run}")
                with contextlib.closing(sqlite3.connect(self.store, isolation_level=None)) as other:
                    other.execute("BEGIN IMMEDIATE")
                    studio.key("s")
                    studio.ask_to_close()
                    studio.see("says:Tagging 1 run")
                    studio.picture(f"quit-waits-{theme}")
                    other.execute("ROLLBACK")
                self.assertEqual(studio.end(), 0, studio.said())
                self.assertIn("star", json.dumps(self.run_row(run)["tags"]))

    def test_a_signal_does_not_wait_for_ever(self):
        # A step of many seconds, during which the run cannot stop.
        studio = self.open("--demo", "--grace", 1, "--set", "train.threads=1", "--set", "train.batch=2800", "--set", "method.weights=dense",
                           "--set", "model.mlp.hidden=[4096,4096]", "--set", "train.eval_every=0")
        run = self.only_run()
        studio.see("says:Running")
        studio.signal(signal.SIGTERM)
        self.assertEqual(studio.end(), 128 + signal.SIGTERM, studio.said())
        self.assertIn("quitting without its last checkpoint", studio.said())
        row = self.run_row(run)
        self.assertEqual((row["status"], row["step"], row["checkpoints"]), ("interrupted", 0, []))


if __name__ == "__main__":
    main()
