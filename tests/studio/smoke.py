"""Starts the real window under Xvfb: the demo trains in front of it, pictures are taken, and it quits when it is told to."""
import contextlib
import csv
import ctypes
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from xml.etree import ElementTree

PROGRAM = os.environ.get("COMERA_STUDIO", "build/bin/comera-studio")
# One thread for drawing and one for training: the machine has other work.
ENVIRONMENT = {"COMERA_ASSETS": str(pathlib.Path(__file__).resolve().parents[2] / "assets"), **os.environ, "LP_NUM_THREADS": "1"}
XVFB = ["xvfb-run", "-a", "-s", "-screen 0 1920x1200x24"]


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


def steps(store):
    """How many steps are stored."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM steps").fetchone()[0]
    except sqlite3.Error:  # not there yet, or half made
        return 0


def trains(store):
    return steps(store) > 0


def minimise(pid):
    """What a window manager does: there is none under Xvfb."""
    environment = dict(item.split("=", 1) for item in pathlib.Path("/proc", str(pid), "environ").read_text().split("\0") if "=" in item)
    os.environ["XAUTHORITY"] = environment.get("XAUTHORITY", "")
    x11 = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = x11.XDefaultRootWindow.restype = ctypes.c_ulong
    display = ctypes.c_void_p(x11.XOpenDisplay(environment["DISPLAY"].encode()))
    root, parent, children, count = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.POINTER(ctypes.c_ulong)(), ctypes.c_uint()
    x11.XQueryTree(display, ctypes.c_ulong(x11.XDefaultRootWindow(display)), ctypes.byref(root), ctypes.byref(parent), ctypes.byref(children),
                   ctypes.byref(count))
    atom = ctypes.c_ulong(x11.XInternAtom(display, b"WM_STATE", 0))
    for i in range(count.value):
        window = ctypes.c_ulong(children[i])
        x11.XChangeProperty(display, window, atom, atom, 32, 0, (ctypes.c_ulong * 2)(3, 0), 2)  # IconicState
        x11.XUnmapWindow(display, window)
    x11.XSync(display, 0)
    x11.XCloseDisplay(display)


class Smoke(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        home = {f"XDG_{name}_HOME": str(pathlib.Path(self.folder.name, name)) for name in ("DATA", "STATE", "CONFIG", "CACHE")}
        self.environment = {**ENVIRONMENT, **home}
        self.environment.pop("COMERA_STORE", None)

    def run_program(self, *arguments, display=True, timeout=200):
        command = (XVFB if display else []) + [PROGRAM, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=self.environment, check=False)

    def test_demo_trains(self):
        done = self.run_program("--demo", "--smoke-test", "--set", "train.threads=1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = re.search(r"smoke test: (\d+) points, the first one after ([\d.]+) s", done.stdout)
        self.assertTrue(found, done.stdout)
        self.assertGreaterEqual(int(found[1]), 50)
        self.assertFalse(pathlib.Path(self.folder.name, "DATA").exists(), "a test of itself stores nothing")

    def test_pictures(self):
        for arguments, size in ((["--layout", "start", "--size", "960x600"], (960, 600)),
                                (["--layout", "new", "--size", "960x600", "--action", "help.keys"], (960, 600)),
                                (["--demo", "--step", "20", "--size", "960x600", "--scale", "2", "--theme", "light"], (1920, 1200))):
            path = pathlib.Path(self.folder.name, "shot.png")
            done = self.run_program("--screenshot", str(path), "--set", "train.threads=1", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(png_size(path), size)
            self.assertGreater(path.stat().st_size, 5000, "an empty picture")
            path.unlink()

    def test_picture_of_a_comparison(self):
        store = pathlib.Path(self.folder.name, "runs.db")
        for _ in range(2):
            self.run_program("--demo", "--step", "20", "--screenshot", str(store.with_suffix(".png")), "--store", str(store),
                             "--set", "train.threads=1")
        with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
            runs = [row[0] for row in db.execute("SELECT id FROM runs")]
        self.assertEqual(len(runs), 2)
        path = pathlib.Path(self.folder.name, "shot.png")
        done = self.run_program("--screenshot", str(path), "--store", str(store), "--compare", ",".join(runs), "--tab", "table")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(path.stat().st_size, 20000, "an empty picture")
        done = self.run_program("--screenshot", str(path), "--store", str(store), "--run", runs[0], "--run", "no-such-run")
        self.assertEqual(done.returncode, 8, done.stderr)
        self.assertIn("no-such-run", done.stderr)

    def test_charts_become_files(self):
        folder = pathlib.Path(self.folder.name, "charts")
        for panel, charts in (("tt", {"tensor-trains"}), ("metrics", {"loss", "size"}), ("profile", {"step-times"})):
            done = self.run_program("--screenshot", str(pathlib.Path(self.folder.name, "shot.png")), "--demo", "--step", "20", "--panel", panel,
                                    "--set", "train.threads=1", "--export", str(folder / panel))
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
        store = pathlib.Path(self.folder.name, "runs.db")
        process = subprocess.Popen([*XVFB, PROGRAM, "--demo", "--store", str(store), "--set", "train.threads=1"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment, start_new_session=True)
        try:
            deadline = time.time() + 120
            while not trains(store) and time.time() < deadline:
                time.sleep(0.2)
            # Only the program itself is told; xvfb-run ends after it with its exit code.
            children = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
            pids = [int(line.split()[0]) for line in children.splitlines() if str(store) in line and "xvfb-run" not in line]
            self.assertEqual(len(pids), 1, children)
            os.kill(pids[0], signal.SIGTERM)
            output, _ = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, output)
        checkpoints = list(pathlib.Path(self.folder.name, "checkpoints").glob("*/*.safetensors"))
        self.assertTrue(checkpoints, "no checkpoint was written")

    @contextlib.contextmanager
    def running(self, *arguments):
        """The program under Xvfb; gives its process id, as xvfb-run is between."""
        process = subprocess.Popen([*XVFB, PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment,
                                   start_new_session=True)
        try:
            pids, deadline = [], time.time() + 60
            while not pids and time.time() < deadline:
                time.sleep(0.1)
                lines = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
                pids = [int(line.split()[0]) for line in lines if str(arguments[-1]) in line and "xvfb-run" not in line]
            self.assertEqual(len(pids), 1)
            yield pids[0]
            os.kill(pids[0], signal.SIGTERM)  # xvfb-run ends after it
            process.wait(60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def rests(self, frames, seconds):
        """Whether there comes a while of so many seconds without a frame."""
        count, since, deadline = -1, 0, time.time() + 60
        while time.time() < deadline:
            now = frames.read_text().count("\n") if frames.exists() else 0
            if now != count or now < 2:
                count, since = now, time.time()
            elif time.time() - since > seconds:
                return True
            time.sleep(0.05)
        return False

    def test_an_idle_window_draws_nothing(self):
        frames = pathlib.Path(self.folder.name, "frames.csv")
        with self.running("--store", str(pathlib.Path(self.folder.name, "runs.db")), "--frame-times", str(frames)):
            self.assertTrue(self.rests(frames, 3), "frames are drawn though nothing happens")

    def test_a_minimised_window_draws_nothing_and_trains(self):
        frames, store = pathlib.Path(self.folder.name, "frames.csv"), pathlib.Path(self.folder.name, "runs.db")
        with self.running("--demo", "--set", "train.threads=1", "--set", "train.steps=1000000", "--store", str(store), "--frame-times",
                          str(frames)) as pid:
            deadline = time.time() + 60
            while not trains(store) and time.time() < deadline:
                time.sleep(0.1)
            minimise(pid)
            self.assertTrue(self.rests(frames, 3), "frames are drawn though nobody can see them")
            stored = steps(store)
            while steps(store) <= stored and time.time() < deadline:
                time.sleep(0.1)
            self.assertGreater(steps(store), stored, "it does not train any more")

    def test_without_a_display(self):
        self.environment.pop("DISPLAY", None)
        self.environment.pop("WAYLAND_DISPLAY", None)
        done = self.run_program("--demo", display=False, timeout=30)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("cannot open a window", done.stderr)
        self.assertIn("comera", done.stderr)

    def test_bad_arguments(self):
        for arguments in (["--layout", "nothing"], ["--size", "12"], ["--no-such-option"], ["--theme", "pink"], ["--tab", "nothing"],
                          ["--action", "help.keyz"]):
            done = self.run_program(*arguments, display=False, timeout=30)
            self.assertEqual(done.returncode, 2, f"{arguments}: {done.stderr}")

    def test_version(self):
        done = self.run_program("--version", display=False, timeout=30)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^comera-studio \d+\.\d+\.\d+ \(CUDA ")


if __name__ == "__main__":
    if not shutil.which("xvfb-run"):
        print("skipped: xvfb-run is not installed (Debian: xvfb and xauth)")
        sys.exit(77)
    unittest.main(verbosity=2)
