"""The real window where things are not as they should be, or more than anybody has: a loss that is NaN, a full disk, five
thousand runs, millions of points. COMERA_POINTS: of the long curve (1,000,000; ten million take a minute more)."""
import os
import re
import signal
import subprocess
import unittest

import stores
from driver import WindowTest, main, until

POINTS = int(os.environ.get("COMERA_POINTS", "1000000"))
SHORT = ["--set", "train.threads=1", "--set", "train.eval_every=0", "--set", "train.max_steps_per_s=0", "--quiet"]
# Rates that no network survives, and a checkpoint after every step.
WILD = ["--set", "train.threads=1", "--set", "train.lr_core=10", "--set", "train.lr=10", "--set", "train.lr_rank=0", "--set", "method.adam.weight_decay=0.3", "--set",
        "train.schedule=constant", "--set", "train.checkpoint_every=1", "--set", "train.keep_checkpoints=1000", "--set", "train.eval_every=0"]


def number(text):
    return int(text.replace(",", ""))


class Limits(WindowTest):
    def test_a_loss_that_is_nan_and_the_ways_on(self):
        studio = self.open("--demo", *WILD)
        banner = studio.see(r"says:The loss is (NaN|infinite).*")
        run = self.only_run()
        step = number(re.search(r"at step ([\d,]+)", banner)[1])
        self.assertEqual(self.run_row(run)["status"], "diverged")
        studio.see("says:Diverged")
        for button in ("go-to-step", "roll-back", "fork-slower"):
            self.assertIn(button, studio.items())
        studio.picture("diverged")
        studio.click("go-to-step")
        studio.see(f"says:REPLAY  step {step - 1:,}.*|says:REPLAY  step {step - 2:,}.*")
        studio.picture("diverged-past")
        studio.key("l")
        studio.miss("says:REPLAY.*")
        # Back to the last checkpoint: the same rates end the same way, at the same step.
        studio.click("roll-back")
        resumed = until(lambda: self.events(run, "resume"), "a run that goes on")[-1]
        self.assertEqual(resumed["body"]["from_step"], step - 1)
        until(lambda: self.run_row(run)["status"] == "diverged", "the end of it")
        self.assertEqual(number(re.search(r"at step ([\d,]+)", studio.see(r"says:The loss is (NaN|infinite).*"))[1]), step)
        # Half the rates, in a run of its own.
        studio.click("fork-slower")
        forks = lambda: [row for row in self.query("SELECT id, parent, json_extract(config, '$.train.lr_core') FROM runs WHERE parent <> ''")]
        self.assertEqual(until(forks, "a fork")[0][1:], [run, 5])
        studio.signal(signal.SIGTERM)
        studio.end()

    @unittest.skipUnless(os.geteuid() == 0, "mounting a file system needs root")
    def test_a_full_disk_does_not_stop_the_training(self):
        place = self.folder / "small"
        place.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "comera-test", place], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            self.skipTest(f"cannot mount a tmpfs here: {made.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=False)
        self.store = place / "runs.db"
        studio = self.open("--demo", "--set", "train.threads=1", "--set", "train.steps=10000000", "--set", "train.eval_every=0", "--set", "train.checkpoint_every=0")
        run = self.only_run()
        self.trains_past(run, 20)
        with open(place / "reserve", "wb", buffering=0) as reserve:
            try:
                while reserve.write(bytes(4096)):
                    pass
            except OSError:
                pass
        studio.see(r"says:Not saved: .*(full|No space).*")
        studio.see("says:not saved")
        studio.picture("disk-full")
        at = lambda: number(re.match(r"says:([\d,]+) / ", studio.see(r"says:[\d,]+ / 10,000,000.*"))[1])
        step = at()
        until(lambda: at() > step + 50, "training that goes on")
        studio.key("F5")
        studio.see("says:Paused")
        last = at()
        (place / "reserve").unlink()
        studio.miss("says:Not saved.*")
        until(lambda: self.last_step(run) == last, lambda: f"all {last} steps in the store, which has {self.last_step(run)}")
        self.assertEqual(sorted(self.metric(run, "train_loss")), list(range(1, last + 1)), "every step once")
        studio.ask_to_close()
        studio.click("quit-drop")
        self.assertEqual(studio.end(), 0, studio.said())

    def test_five_thousand_runs(self):
        self.comera("train", "demo", "--steps", 3, *SHORT)
        stores.many_runs(self.store, 5000)
        studio = self.open()
        studio.see("run:r-000010")
        self.assertNotIn("run:r-004900", studio.items())
        studio.picture("many-runs")
        x, y = studio.point("run:r-000010")
        self.display.xdotool("mousemove", "--window", studio.window, x, y, *(["click", 5, "sleep", 0.02] * 60))
        studio.miss("run:r-000010")
        self.assertRegex(studio.see(r"run:r-00\d+"), r"run:r-000[1-9]\d\d|run:r-0000[3-9]\d")
        studio.key("ctrl+f")
        studio.see("tip:Words match.*")  # of the box, once it takes what is typed
        studio.type("499")
        studio.see("run:r-000499")
        studio.see("run:r-001499")
        studio.miss("run:r-000498")
        studio.picture("many-runs-filtered")
        studio.type("9")
        studio.see("run:r-004999")
        studio.miss("run:r-000499")
        studio.ask_to_close()
        self.assertEqual(studio.end(), 0, studio.said())

    def test_a_curve_of_millions_of_points_is_panned(self):
        self.comera("train", "demo", "--steps", 3, *SHORT)
        stores.long_run(self.store, POINTS)
        times = self.folder / "frames.csv"
        studio = self.open("--run", "r-long01", "--frame-times", times)
        rows = lambda: [line.split(",") for line in times.read_text().splitlines()[1:] if line.count(",") == 5]
        until(lambda: rows() and int(rows()[-1][4]) == POINTS, lambda: f"all points: {rows()[-1:]}")
        plot = studio.steady(r"plot:loss:\d+")
        studio.picture("long-curve")
        before = len(rows())
        x, y = studio.point(plot)
        self.display.xdotool("mousemove", "--window", studio.window, x, y, *(["click", 4, "sleep", 0.05] * 20))
        studio.drag(plot, 0.7, 0.3)
        studio.see("Follow")
        studio.picture("long-curve-panned")
        self.assertGreater(len(rows()), before, "frames were drawn meanwhile")
        studio.ask_to_close()
        self.assertEqual(studio.end(), 0, studio.said())


if __name__ == "__main__":
    main()
