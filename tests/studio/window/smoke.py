"""Starts the real window: the demo trains in front of it, pictures and charts are written, and it quits when it is told to."""
import csv
import pathlib
import re
import signal
import struct
import subprocess
import time
import zlib
from xml.etree import ElementTree

from driver import STUDIO, WindowTest, main, until


def png_size(path):
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    return struct.unpack(">II", data[16:24])


def png_pixels(path):
    """The bytes of the picture's rows: enough to tell whether something is on it."""
    data, packed, at = pathlib.Path(path).read_bytes(), b"", 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at:at + 4])
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    return zlib.decompress(packed)


class Smoke(WindowTest):
    def run_program(self, *arguments, display=True, timeout=200):
        environment = {**self.environment, "DISPLAY": self.display.name} if display else self.environment
        return subprocess.run([STUDIO, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=environment, check=False)

    def test_demo_trains(self):
        done = self.run_program("--demo", "--smoke-test", "--set", "train.threads=1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = re.search(r"smoke test: (\d+) points, the first one after ([\d.]+) s", done.stdout)
        self.assertTrue(found, done.stdout)
        self.assertGreaterEqual(int(found[1]), 50)
        self.assertFalse((self.folder / "data").exists(), "a test of itself stores nothing")

    def test_pictures(self):
        for arguments, size in ((["--layout", "start", "--size", "960x600"], (960, 600)),
                                (["--layout", "new", "--size", "960x600", "--action", "help.keys"], (960, 600)),
                                (["--demo", "--step", "20", "--size", "960x600", "--scale", "2", "--theme", "light"], (1920, 1200))):
            path = self.folder / "shot.png"
            done = self.run_program("--screenshot", path, "--set", "train.threads=1", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(png_size(path), size)
            self.assertGreater(path.stat().st_size, 5000, "an empty picture")
            path.unlink()

    def test_a_picture_from_inside(self):
        path = self.folder / "shot.png"
        done = self.run_program("--screenshot", path, "--layout", "start", "--size", "960x600", "--action", "view.screenshot")
        self.assertEqual(done.returncode, 0, done.stderr)
        taken = self.folder / "data" / "comera" / "exports" / "window.png"
        self.assertEqual(png_size(taken), (960, 600))
        self.assertGreater(taken.stat().st_size, 5000, "an empty picture")

    def test_picture_of_a_comparison(self):
        for _ in range(2):
            self.run_program("--demo", "--step", "20", "--screenshot", self.folder / "runs.png", "--store", self.store, "--set", "train.threads=1")
        runs = [row[0] for row in self.query("SELECT id FROM runs")]
        self.assertEqual(len(runs), 2)
        path = self.folder / "shot.png"
        done = self.run_program("--screenshot", path, "--store", self.store, "--compare", ",".join(runs), "--tab", "table")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(path.stat().st_size, 20000, "an empty picture")
        done = self.run_program("--screenshot", path, "--store", self.store, "--run", runs[0], "--run", "no-such-run")
        self.assertEqual(done.returncode, 8, done.stderr)
        self.assertIn("no-such-run", done.stderr)

    def test_charts_become_files(self):
        folder = self.folder / "charts"
        for panel, charts in (("tt", {"tensor-trains"}), ("metrics", {"loss", "size"}), ("profile", {"step-times"})):
            done = self.run_program("--screenshot", self.folder / "shot.png", "--demo", "--step", "20", "--panel", panel,
                                    "--set", "train.threads=1", "--export", folder / panel)
            self.assertEqual(done.returncode, 0, done.stderr)
            written = {path.name for path in (folder / panel).iterdir()}
            for chart in charts:
                for extension in ("csv", "svg", "png"):
                    self.assertIn(f"demo-{chart}.{extension}", written)
            for path in (folder / panel).glob("*.svg"):
                self.assertEqual(ElementTree.parse(path).getroot().tag, "{http://www.w3.org/2000/svg}svg")
            for path in (folder / panel).glob("*.png"):
                self.assertGreater(min(png_size(path)), 100)
                self.assertGreater(len(set(png_pixels(path))), 8, f"{path.name} is empty")
        with open(folder / "metrics" / "demo-loss.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0][:2], ["step", "loss"])
        self.assertEqual([int(float(row[0])) for row in rows[1:]], list(range(1, 21)))

    def test_signal_stops_with_a_checkpoint(self):
        studio = self.open("--demo", "--set", "train.threads=1")
        run = self.only_run()
        self.trains_past(run, 20)
        studio.signal(signal.SIGTERM)
        self.assertEqual(studio.end(), 128 + signal.SIGTERM, studio.said())
        row = self.run_row(run)
        self.assertEqual((row["status"], self.last_step(run)), ("stopped", row["step"]))
        self.assertEqual([checkpoint["step"] for checkpoint in row["checkpoints"]], [row["step"]])

    def test_without_a_display(self):
        for environment in ({}, {"DISPLAY": ":4095"}):  # none is named; none is there
            self.environment.update(environment)
            for arguments in (["--demo"], ["--probe"]):
                done = self.run_program(*arguments, display=False, timeout=30)
                self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)
                self.assertRegex(done.stderr, r"^error: cannot open a window\n  why: .+\n  try: .*comera.*\n$")
        self.assertFalse((self.folder / "data").exists(), "no run was begun")
        self.assertEqual(self.run_program("--probe").returncode, 0)

    def test_bad_arguments(self):
        for arguments in (["--layout", "nothing"], ["--size", "12"], ["--no-such-option"], ["--theme", "pink"], ["--tab", "nothing"],
                          ["--action", "help.keyz"]):
            done = self.run_program(*arguments, display=False, timeout=30)
            self.assertEqual(done.returncode, 2, f"{arguments}: {done.stderr}")

    def test_an_action_that_cannot_act_is_an_error(self):
        for arguments in ([], ["--screenshot", self.folder / "shot.png"]):
            done = self.run_program("--action", "run.step", "--store", self.store, *arguments, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertRegex(done.stderr, r"^error: cannot do 'run.step'\n  why: No run is training\n  try: .+\n$")

    def test_version(self):
        done = self.run_program("--version", display=False, timeout=30)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^comera-studio \d+\.\d+\.\d+ \(commit \w+, CUDA ")

    def rests(self, frames, seconds):
        """Waits for a while of so many seconds without a frame."""
        count, since = -1, 0

        def rests():
            nonlocal count, since
            now = frames.read_text().count("\n") if frames.exists() else 0
            if now != count or now < 2:
                count, since = now, time.monotonic()
            return time.monotonic() - since > seconds
        until(rests, f"{seconds} s without a frame")

    def test_an_idle_window_draws_nothing(self):
        frames = self.folder / "frames.csv"
        self.open("--frame-times", frames)
        self.rests(frames, 3)

    def test_a_minimised_window_draws_nothing_and_trains(self):
        frames = self.folder / "frames.csv"
        studio = self.open("--demo", "--set", "train.threads=1", "--set", "train.steps=1000000", "--frame-times", frames)
        run = self.only_run()
        self.trains_past(run, 1)
        self.display.minimise(studio.window)
        self.rests(frames, 3)
        self.trains_past(run, self.last_step(run))
        studio.signal(signal.SIGTERM)  # is obeyed though nothing is drawn
        self.assertEqual(studio.end(), 128 + signal.SIGTERM)


if __name__ == "__main__":
    main()
