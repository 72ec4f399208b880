"""The real window on a display without a screen: a real mouse and real keys, what is on it by name, pictures of it, and
what the store says. `comera-studio --items FILE` tells where things are; what is true of a run is read from the store."""
import contextlib
import ctypes
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

SOURCE = pathlib.Path(__file__).resolve().parents[3]
STUDIO = os.environ.get("COMERA_STUDIO", str(SOURCE / "build" / "bin" / "comera-studio"))
COMERA = os.environ.get("COMERA_BIN", str(SOURCE / "build" / "bin" / "comera"))
PICTURES = pathlib.Path(os.environ.get("COMERA_PICTURES", SOURCE / "build" / "screenshots"))
NEEDED = {"Xvfb": "xvfb", "xdotool": "xdotool"}  # program, its Debian package
LIMIT = 120  # seconds for anything that is waited for: only against hanging
HELD = "0.1"  # seconds that a key or a button stays down, as a hand does it


def until(condition, what, seconds=LIMIT):
    """Waits until it is so, and returns it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.05)
    return found


def main():
    missing = [package for program, package in NEEDED.items() if not shutil.which(program)]
    if missing:
        print(f"skipped: not installed: {', '.join(missing)} (./test.sh installs what tests need)")
        sys.exit(77)
    unittest.main(verbosity=2)


def write_png(path, width, height, rgb):
    """`rgb`: bytes, three a pixel, row by row."""
    rows = b"".join(b"\0" + rgb[y * width * 3:(y + 1) * width * 3] for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 6)) + chunk(b"IEND", b""))


class Display:
    def __init__(self, folder, size="1600x900"):
        self.folder = folder
        read, write = os.pipe()
        self.process = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", f"{size}x24", "-nolisten", "tcp", "-noreset", "-fbdir", str(folder)],
                                        pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as pipe:  # the number of the display, once it is there
            number = pipe.readline().strip()
        assert number, "Xvfb did not start"
        self.name = f":{number}"

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def xdotool(self, *arguments):
        """A chain of its commands; returns what it printed, "" when it found nothing."""
        done = subprocess.run(["xdotool", *map(str, arguments)], env={**os.environ, "DISPLAY": self.name}, capture_output=True, text=True,
                              timeout=LIMIT, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    def picture(self, name):
        """What the screen shows, as build/screenshots/NAME.png. Xvfb keeps it in a file in the format of xwd."""
        data = (self.folder / "Xvfb_screen0").read_bytes()
        (header, _, _, _, width, height, _, _, _, _, _, bits, stride) = struct.unpack(">13I", data[:52])
        colors, = struct.unpack(">I", data[76:80])
        assert bits == 32, bits
        pixels = data[header + 12 * colors:]
        rgb = bytearray(width * height * 3)
        for channel in range(3):  # stored as blue, green, red, nothing
            plane = b"".join(pixels[y * stride:y * stride + width * 4][2 - channel::4] for y in range(height))
            rgb[channel::3] = plane
        PICTURES.mkdir(parents=True, exist_ok=True)
        write_png(PICTURES / f"{name}.png", width, height, bytes(rgb))
        return bytes(rgb)

    @contextlib.contextmanager
    def connection(self):
        """Xlib and a connection to this display, for what xdotool cannot do. What waits is sent at the end."""
        x = xlib()
        display = x.XOpenDisplay(self.name.encode())
        try:
            yield x, display
        finally:
            x.XCloseDisplay(display)

    def ask_to_close(self, window):
        """What the cross of a window does: the message WM_DELETE_WINDOW."""
        client_message, current_time = 33, 0
        with self.connection() as (x, display):
            message = Message(type=client_message, window=window, message_type=x.XInternAtom(display, b"WM_PROTOCOLS", 0), format=32)
            message.data[0], message.data[1] = x.XInternAtom(display, b"WM_DELETE_WINDOW", 0), current_time
            x.XSendEvent(display, window, 0, 0, ctypes.byref(message))

    def minimise(self, window):
        """What a window manager does; there is none here."""
        iconic, replace = 3, 0
        with self.connection() as (x, display):
            state = x.XInternAtom(display, b"WM_STATE", 0)
            x.XChangeProperty(display, window, state, state, 32, replace, (ctypes.c_ulong * 2)(iconic, 0), 2)
            x.XUnmapWindow(display, window)

    def unfocus(self):
        """No window has the keyboard any more."""
        none, revert_to_none, current_time = 0, 0, 0
        with self.connection() as (x, display):
            x.XSetInputFocus(display, none, revert_to_none, current_time)


class Message(ctypes.Structure):
    """An XClientMessageEvent, as large as an XEvent."""
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int), ("display", ctypes.c_void_p),
                ("window", ctypes.c_ulong), ("message_type", ctypes.c_ulong), ("format", ctypes.c_int), ("data", ctypes.c_long * 5),
                ("rest", ctypes.c_long * 12)]


@functools.cache
def xlib():
    x = ctypes.CDLL("libX11.so.6")
    display, window, atom = ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong
    x.XOpenDisplay.restype = display
    x.XInternAtom.restype = atom
    for name, arguments in {"XOpenDisplay": [ctypes.c_char_p], "XCloseDisplay": [display], "XInternAtom": [display, ctypes.c_char_p, ctypes.c_int],
                            "XSendEvent": [display, window, ctypes.c_int, ctypes.c_long, ctypes.POINTER(Message)],
                            "XChangeProperty": [display, window, atom, atom, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_ulong), ctypes.c_int],
                            "XUnmapWindow": [display, window], "XSetInputFocus": [display, window, ctypes.c_int, ctypes.c_ulong]}.items():
        getattr(x, name).argtypes = arguments
    return x


def own_home(folder):
    """An environment in which nothing outside of the folder is read or written."""
    keep = {name: value for name, value in os.environ.items()
            if not name.startswith(("COMERA_", "XDG_")) and name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    home = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("DATA", "STATE", "CONFIG", "CACHE")}
    return {**keep, **home, "HOME": str(folder), "COMERA_ASSETS": str(SOURCE / "assets")}


class Studio:
    """The program with its window open and focused. `test` has a display, a folder, an environment, a store, and keeps the
    programs that it started. `named`: it tells where things are, with every frame."""

    def __init__(self, test, *arguments, command=(), named=True):
        self.display, self.folder = test.display, test.folder
        self.items_file, self.log = test.folder / f"items-{len(test.programs)}", test.folder / f"log-{len(test.programs)}"
        with open(self.log, "wb") as log:
            names = ["--items", str(self.items_file)] if named else []
            self.process = subprocess.Popen([*command, STUDIO, *names, "--store", str(test.store), *map(str, arguments)],
                                            env={**test.environment, "DISPLAY": self.display.name}, stdout=log, stderr=log)
        test.programs.append(self)
        find = ("search", "--onlyvisible", "--name", "^CoMERA Studio$")
        self.window = int(until(lambda: self.alive() and self.display.xdotool(*find).split("\n")[0], lambda: f"a window: {self.said()}"))
        self.display.xdotool("windowfocus", "--sync", self.window)
        if named:
            until(lambda: self.items_file.exists(), lambda: f"a first frame: {self.said()}")

    def said(self):
        return self.log.read_text(errors="replace")

    def alive(self):
        assert self.process.poll() is None, f"the program ended with {self.process.returncode}: {self.said()}"
        return True

    # ---- what is on the screen -----------------------------------------------------------------------------------

    def items(self):
        """Name -> (x, y, width, height) of the newest frame; the first one of a name."""
        self.alive()
        found = {}
        for line in self.items_file.read_text().splitlines():
            fields = line.split(" ", 4)
            if len(fields) == 5:
                found.setdefault(fields[4], tuple(map(float, fields[:4])))
        return found

    def seen(self, pattern):
        """The first name that fits this regular expression as a whole, or None."""
        return next((name for name in self.items() if re.fullmatch(pattern, name)), None)

    def see(self, pattern):
        return until(lambda: self.seen(pattern), lambda: f"{pattern!r} on the screen, where there is {sorted(self.items())}")

    def miss(self, pattern):
        until(lambda: not self.seen(pattern), f"{pattern!r} is gone")

    # ---- hands ---------------------------------------------------------------------------------------------------

    def settled(self, look, what):
        """What `look` gives, as soon as it is the same several times."""
        before, same = None, 0

        def settled():
            nonlocal before, same
            now = look()
            same = same + 1 if now and now == before else 0
            before = now
            return now if same >= 5 else None
        return until(settled, lambda: f"{what} that stays the same: {before}, among {sorted(self.items())}")

    def steady(self, pattern):
        """The name that fits, once it does not change any more."""
        return self.settled(lambda: self.seen(pattern), pattern)

    def point(self, name, across=0.5):
        x, y, width, height = self.settled(lambda: self.items().get(name), f"a place of {name!r}")
        return round(x + width * across), round(y + height / 2)

    def click(self, name):
        self.display.xdotool("mousemove", "--window", self.window, *self.point(name), "sleep", HELD, "mousedown", 1, "sleep", HELD, "mouseup", 1)

    def drag(self, name, start, end):
        """From one share of its width to another."""
        (x, y), (to, _) = self.point(name, start), self.point(name, end)
        moves = []
        for part in range(1, 9):
            moves += ["mousemove", "--window", self.window, round(x + (to - x) * part / 8), y, "sleep", "0.06"]
        self.display.xdotool("mousemove", "--window", self.window, x, y, "sleep", HELD, "mousedown", 1, "sleep", HELD, *moves,
                             "sleep", 0.4, "mouseup", 1)  # a frame that sees the button down at the end, also of a busy machine

    def key(self, chord):
        """For example ctrl+s: pressed in this order, held, and let go."""
        keys = chord.split("+")
        down = [word for key in keys for word in ("keydown", key)]
        up = [word for key in reversed(keys) for word in ("keyup", key)]
        self.display.xdotool(*down, "sleep", HELD, *up)

    def type(self, text):
        self.steady(r"typing:\d+")  # keys pressed before a text box has the focus are lost
        self.display.xdotool("type", "--delay", 60, text)

    def picture(self, name):
        return self.display.picture(name)

    # ---- its end -------------------------------------------------------------------------------------------------

    def ask_to_close(self):
        self.display.ask_to_close(self.window)

    def signal(self, number):
        os.kill(self.process.pid, number)

    def end(self, seconds=LIMIT):
        """Waits for it; returns the exit code."""
        return self.process.wait(timeout=seconds)


class WindowTest(unittest.TestCase):
    """A display, a home and a store for each test; nothing outside of its folder is read or written."""

    SCREEN = "1600x900"

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="comera-window-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)
        self.store = self.folder / "runs.db"
        # Two threads for drawing and training: there may be no more cores.
        self.environment = {**own_home(self.folder), "LP_NUM_THREADS": "1"}
        self.programs = []
        self.display = Display(self.folder, self.SCREEN)
        self.addCleanup(self.display.stop)
        self.addCleanup(self.end_programs)

    def end_programs(self):
        result = self._outcome.result  # its `success` is that of this clean-up alone
        failed = any(test is self for test, _ in result.failures + result.errors)
        for program in self.programs:
            if failed and program.process.poll() is not None:
                print(f"the program ended with {program.process.returncode}: {program.said()}")
            if program.process.poll() is None:
                if failed:
                    self.display.picture(f"failed-{self.id().split('.')[-1]}")
                    print(f"{sorted(program.items())}\n{program.said()}")
                program.process.send_signal(signal.SIGKILL)
                program.process.wait()

    def open(self, *arguments, **options):
        return Studio(self, *arguments, **options)

    # ---- the store, through the command line ---------------------------------------------------------------------

    def try_comera(self, *arguments):
        return subprocess.run([COMERA, *map(str, arguments), "--store", str(self.store)], env=self.environment, capture_output=True, text=True,
                              timeout=LIMIT, check=False)

    def comera(self, *arguments):
        done = self.try_comera(*arguments)
        self.assertEqual(done.returncode, 0, f"comera {arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def query(self, sql):
        """Rows of a SELECT; none while there is no store."""
        done = self.try_comera("query", "--json", sql)
        if done.returncode == 8 or "it is empty" in done.stdout:  # not there yet, or being made
            return []
        self.assertEqual(done.returncode, 0, f"{sql}: {done.stdout}{done.stderr}")
        return [list(row.values()) for row in json.loads(done.stdout)["rows"]]

    def run_row(self, run):
        return json.loads(self.comera("runs", "show", "--json", run))

    def metric(self, run, name):
        """Step -> value."""
        found = json.loads(self.comera("get", "--json", run, "--metric", name))
        return dict(zip(found["steps"], found["values"]))

    def events(self, run, kind):
        return [event for event in self.run_row(run)["events"] if event["kind"] == kind]

    def only_run(self):
        """The id of the run, once the store has one."""
        def found():
            rows = self.query("SELECT id FROM runs ORDER BY run DESC")
            return rows and rows[0][0]
        return until(found, "a run in the store")

    def last_step(self, run):
        rows = self.query(f"SELECT coalesce(max(step), 0) FROM steps WHERE run = (SELECT run FROM runs WHERE id = '{run}')")
        return rows[0][0] if rows else 0

    def trains_past(self, run, step, seconds=LIMIT):
        return until(lambda: (now := self.last_step(run)) > step and now, lambda: f"step {step} of {run}, which is at {self.last_step(run)}", seconds)
