"""What the window costs: throughput of training beside it, frame times, idle work, long lists and long curves, start.

    python3 experiments/bench/window.py > figures.md                   # the whole table, five to eight minutes
    python3 experiments/bench/window.py --only idle list               # parts of it: see PARTS
    python3 experiments/bench/window.py --points 1000000               # a shorter curve

It starts the real window under Xvfb, moves the mouse with xdotool, and reads what the window says of its frames
(`--frame-times`) and what the store says of the steps. Without a graphics card the processor draws (llvmpipe), so the
times of frames and the shares of a core contain that; threads are told apart by their names. Ratios are of stretches
that alternate within one run. Needs Debian's xvfb and xdotool, and build/bin/comera and comera-studio.
"""
import argparse
import contextlib
import csv
import ctypes
import os
import pathlib
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/studio/window"))
import stores  # noqa: E402
WIDTH, HEIGHT = 1600, 900
# Where things are on a window of that size: seen on a picture of it. What is pressed there is checked by what follows.
DEMO_BUTTON = (333, 270)
SLIDER = (1290, 1480, 519)  # loss target: counts in the late stage only, so dragging it changes no work of a step
PLOT = (60, 400, 225)  # training loss
FILTER = (600, 369)
COLUMNS = ((420, 399), (930, 399), (1120, 399))  # name, step, size
OPTIONS = argparse.Namespace()  # of the command line
STEADY = ["--set", "method.comera.late_after=0", "--set", "train.steps=10000000", "--set", "train.checkpoint_every=0"]


def say(text):
    print(text, file=sys.stderr, flush=True)


class Display:
    """An X server without a screen, and what a window manager would do in it."""

    def __init__(self):
        read, write = os.pipe()
        self.process = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-nolisten", "tcp"],
                                        pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as answer:
            self.name = ":" + answer.readline().strip()
        self.x11 = ctypes.CDLL("libX11.so.6")
        self.x11.XOpenDisplay.restype = ctypes.c_void_p
        self.x11.XInternAtom.restype = ctypes.c_ulong
        self.connection = ctypes.c_void_p(self.x11.XOpenDisplay(self.name.encode()))

    def close(self):
        self.process.terminate()
        self.process.wait()

    def tool(self, *arguments):
        done = subprocess.run(["xdotool", *map(str, arguments)], env={**os.environ, "DISPLAY": self.name}, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def minimise(self, window):
        atom = ctypes.c_ulong(self.x11.XInternAtom(self.connection, b"WM_STATE", 0))
        state = (ctypes.c_ulong * 2)(3, 0)  # IconicState
        self.x11.XChangeProperty(self.connection, ctypes.c_ulong(window), atom, atom, 32, 0, state, 2)
        self.x11.XUnmapWindow(self.connection, ctypes.c_ulong(window))
        self.x11.XSync(self.connection, 0)

    def unfocus(self):
        self.x11.XSetInputFocus(self.connection, ctypes.c_ulong(0), 0, ctypes.c_ulong(0))
        self.x11.XSync(self.connection, 0)

    def drag(self, low, high, y, seconds):
        """To and fro with the left button down, 50 movements a second."""
        moves, x = [], [low + (high - low) * (1 - abs(1 - 2 * (i % 100) / 100)) for i in range(int(seconds * 50))]
        for at in x:
            moves += ["mousemove", round(at), y, "sleep", 0.02]
        self.tool("mousemove", low, y, "sleep", 0.1, "mousedown", 1, "sleep", 0.1, *moves, "mouseup", 1)


class Studio:
    """The real window and what it says of its frames."""

    def __init__(self, display, folder, *arguments, environment=None):
        self.display, self.times = display, pathlib.Path(folder, f"frames-{time.monotonic_ns()}.csv")
        homes = {f"XDG_{name}_HOME": str(pathlib.Path(folder, name)) for name in ("DATA", "STATE", "CONFIG", "CACHE")}
        for home in homes.values():
            os.makedirs(home, exist_ok=True)
        settings = {"COMERA_ASSETS": str(ROOT / "assets"), **os.environ, **homes, **(environment or {}), "DISPLAY": display.name}
        settings.pop("WAYLAND_DISPLAY", None)
        self.begin = time.monotonic()
        self.process = subprocess.Popen([OPTIONS.studio, "--size", f"{WIDTH}x{HEIGHT}", "--scale", "1", "--frame-times", str(self.times), *map(str, arguments)], env=settings)

    def __enter__(self):
        self.wait(lambda rows: rows, "no frame was drawn")
        self.window = int(self.display.tool("search", "--name", "CoMERA Studio").split()[0])
        self.display.tool("windowfocus", "--sync", self.window)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def frames(self, since=0.0, until=float("inf")):
        """Those that were begun in between: begin, milliseconds of all, of their making, points of the loss, runs."""
        rows = []
        with contextlib.suppress(FileNotFoundError), open(self.times, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["runs"] is None or not since <= float(row["begin_s"]) < until:
                    continue
                make, draw, show = (float(row[name]) for name in ("make_ms", "draw_ms", "show_ms"))
                rows.append({"begin": float(row["begin_s"]), "ms": make + draw + show, "make": make, "points": int(row["points"]), "runs": int(row["runs"])})
        return rows

    def wait(self, condition, why, seconds=120):
        """The first frame for which it is so."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rows = self.frames()
            if condition(rows):
                return rows
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        sys.exit(f"error: {why}")

    def cpu(self):
        """Seconds of a core by thread name."""
        seconds = {}
        for task in pathlib.Path("/proc", str(self.process.pid), "task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                text = (task / "stat").read_text()
                name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
                kind = "draws" if name.startswith("llvmpipe") else "window" if task.name == str(self.process.pid) else "rest"
                seconds[kind] = seconds.get(kind, 0) + (int(rest[11]) + int(rest[12])) / os.sysconf("SC_CLK_TCK")
        return seconds

    def memory(self, field):
        for line in pathlib.Path("/proc", str(self.process.pid), "status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
        return 0.0


def share_of_core(studio, seconds):
    """What the window does when it is let alone for so long: percents of a core by kind, frames a second."""
    before, begin = studio.cpu(), time.monotonic()
    time.sleep(seconds)
    after, took = studio.cpu(), time.monotonic() - begin
    shares = {kind: 100 * (after[kind] - before.get(kind, 0)) / took for kind in after}
    return shares, len(studio.frames(begin, begin + took)) / took


def first(rows, condition):
    return next((row for row in rows if condition(row)), None)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def frame_times(rows, key="ms"):
    values = [row[key] for row in rows]
    return f"p50 {quantile(values, 0.5):.1f}, p99 {quantile(values, 0.99):.1f}, longest {max(values, default=float('nan')):.1f} ms ({len(values)} frames)"


def throughput(store, begin, end):
    """Steps a second between two moments of the wall clock, by the times that are stored with the steps."""
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM steps WHERE wall_time >= ? AND wall_time < ?", (begin, end)).fetchone()[0] / (end - begin)


ROWS = []


def result(what, figure, limit=""):
    ROWS.append((what, figure, limit))
    say(f"  {what}: {figure}" + (f"   (limit {limit})" if limit else ""))


def training(display, folder):
    """a, b: steps a second without a window, beside it, and while a slider is dragged; frame times meanwhile."""
    for threads in OPTIONS.threads:
        say(f"training with {threads} threads")
        alone = []

        def without_window():
            store = pathlib.Path(folder, f"cli-{threads}-{len(alone)}.db")
            process = subprocess.Popen([OPTIONS.comera, "train", "demo", "--store", store, *STEADY, "--set", f"train.threads={threads}"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(3)
            begin = time.time()
            time.sleep(OPTIONS.stretch)
            end = time.time()
            process.send_signal(signal.SIGINT)
            process.wait(60)
            alone.append(throughput(store, begin, end))

        without_window()
        store = pathlib.Path(folder, f"window-{threads}.db")
        rates = {"still": [], "dragged": []}
        frames, seconds = {"still": [], "dragged": []}, {"still": 0.0, "dragged": 0.0}
        with Studio(display, folder, "--store", store, "--demo", *STEADY, "--set", f"train.threads={threads}") as studio:
            studio.wait(lambda rows: rows and rows[-1]["points"] > 50, "the demo does not train")
            time.sleep(2)
            stretches = []
            for pair in range(OPTIONS.pairs):
                for kind in ("still", "dragged") if pair % 2 == 0 else ("dragged", "still"):
                    begin, wall = time.monotonic(), time.time()
                    if kind == "dragged":
                        display.drag(*SLIDER, OPTIONS.stretch)
                    else:
                        display.tool("mousemove", SLIDER[0], SLIDER[2] + 8)
                        time.sleep(OPTIONS.stretch)
                    stretches.append((kind, begin, time.monotonic(), wall, time.time()))
            time.sleep(1.5)  # what was trained is stored by then
            for kind, begin, end, wall_begin, wall_end in stretches:
                rates[kind].append(throughput(store, wall_begin, wall_end))
                frames[kind] += studio.frames(begin, end)
                seconds[kind] += end - begin
            display.unfocus()
            wall = time.time()
            time.sleep(OPTIONS.stretch)
            wall_end = time.time()
            time.sleep(1.5)
            unfocused = throughput(store, wall, wall_end)
            display.minimise(studio.window)
            time.sleep(1)
            begin, wall = time.monotonic(), time.time()
            time.sleep(OPTIONS.stretch)
            end, wall_end = time.monotonic(), time.time()
            time.sleep(1.5)
            minimised, minimised_frames = throughput(store, wall, wall_end), len(studio.frames(begin, end))
        with contextlib.closing(sqlite3.connect(store)) as db:
            edits = db.execute("SELECT count(*) FROM events WHERE kind = 'edit'").fetchone()[0]
        if edits < OPTIONS.pairs:
            sys.exit("error: the slider was not where it is expected: no setting was changed")
        without_window()
        cli, still = statistics.mean(alone), statistics.mean(rates["still"])
        ratios = [100 * (1 - b / a) for a, b in zip(rates["still"], rates["dragged"])]
        name = f"{threads} thread{'s' if threads > 1 else ''}"
        result(f"{name}: steps/s without a window; window focused; unfocused; minimised",
               f"{cli:.0f} (first {alone[0]:.0f}, last {alone[1]:.0f}); {still:.0f}; {unfocused:.0f}; {minimised:.0f} ({minimised_frames} frames)")
        result(f"{name}: loss of throughput by dragging a slider ({edits} edits)",
               f"{statistics.mean(ratios):.1f} ± {statistics.stdev(ratios) / len(ratios) ** 0.5:.1f} % (mean of {len(ratios)} pairs of stretches and its standard error)", "2 %")
        result(f"{name}: loss by the window, still", f"{100 * (1 - still / cli):.1f} %")
        result(f"{name}: frame time while training", frame_times(frames["still"]) + f", {len(frames['still']) / seconds['still']:.1f} a second")
        result(f"{name}: frame time while training and dragging", frame_times(frames["dragged"]) + f", {len(frames['dragged']) / seconds['dragged']:.1f} a second", "p99 100 ms")
        result(f"{name}: ... of that, to make the shapes", frame_times(frames["dragged"], "make"))


def idle(display, folder):
    """c: nothing runs: focused, unfocused, minimised."""
    say("idle")
    with Studio(display, folder, "--store", pathlib.Path(folder, "idle.db")) as studio:
        display.tool("mousemove", 800, 800)
        for state in ("focused", "unfocused", "minimised"):
            if state == "unfocused":
                display.unfocus()
            elif state == "minimised":
                display.minimise(studio.window)
            time.sleep(2)
            shares, rate = share_of_core(studio, OPTIONS.stretch * 1.5)
            result(f"idle, {state}: share of a core; frames a second",
                   f"{sum(shares.values()):.2f} % (window {shares.get('window', 0):.2f}, rasteriser {shares.get('draws', 0):.2f}, other threads {shares.get('rest', 0):.2f}); {rate:.2f}",
                   "1 % with a graphics card" if state != "minimised" else "0 frames")


def start(display, folder):
    """f: from the start of the process to the first frame, from one click to a moving curve."""
    say("start")
    firsts, clicks = [], []
    for i in range(3):
        with Studio(display, folder, "--store", pathlib.Path(folder, f"start-{i}.db")) as studio:
            row = studio.frames()[0]
            firsts.append(row["begin"] + row["ms"] / 1000 - studio.begin)
            time.sleep(0.5)
            display.tool("mousemove", *DEMO_BUTTON, "sleep", 0.2, "mousedown", 1, "sleep", 0.1)
            begin = time.monotonic()
            display.tool("mouseup", 1)
            rows = studio.wait(lambda rows: first(rows, lambda row: row["points"] >= 2), "the demo did not start", 30)
            row = first(rows, lambda row: row["points"] >= 2)
            clicks.append(row["begin"] + row["ms"] / 1000 - begin)
    result("start of the process to the first frame", ", ".join(f"{s:.2f}" for s in firsts) + " s")
    result("click on `Run the demo` to a curve of two points or more", ", ".join(f"{s:.2f}" for s in clicks) + " s", "5 s")


def seed_run(folder, name):
    """A store with one short run of the demo, to be copied by SQL."""
    store = pathlib.Path(folder, name)
    subprocess.run([OPTIONS.comera, "train", "demo", "--store", store, "--set", "train.threads=1", "--steps", "3"], check=True, capture_output=True)
    return store


def long_list(display, folder):
    """d: five thousand runs."""
    say("a list of 5,000 runs")
    store = seed_run(folder, "list.db")
    stores.many_runs(store, 5000)
    with contextlib.closing(sqlite3.connect(store)) as db:
        columns = ", ".join(row[1] for row in db.execute("PRAGMA table_info(runs)") if row[1] != "config")
        begin = time.monotonic()
        db.execute(f"SELECT {columns} FROM runs WHERE archived = 0 ORDER BY created DESC, run DESC").fetchall()
        query = 1000 * (time.monotonic() - begin)
    seconds = []
    for _ in range(3):
        with Studio(display, folder, "--store", store) as studio:
            rows = studio.wait(lambda rows: rows[-1]["runs"] >= 5000, "the list was not read")
            row = first(rows, lambda row: row["runs"] >= 5000)
            seconds.append(1000 * (row["begin"] - rows[0]["begin"]) + row["ms"])
            if len(seconds) < 3:
                continue
            time.sleep(3)  # a store that was written a moment ago is read twice
            shares, rate = share_of_core(studio, OPTIONS.stretch)
            begin = time.monotonic()
            for _ in range(4):  # over the rows, by the wheel
                display.tool("mousemove", 800, 600, *(["click", 5, "sleep", 0.03] * 20), *(["click", 4, "sleep", 0.03] * 20))
            scrolled = studio.frames(begin)
            display.tool("mousemove", *FILTER, "click", 1, "sleep", 0.3)
            begin = time.monotonic()
            for key in ("4", "9", "9", "BackSpace", "BackSpace", "BackSpace"):
                display.tool("keydown", key, "sleep", 0.1, "keyup", key, "sleep", 0.1)
            filtered = studio.frames(begin)
            display.tool("key", "Escape", "sleep", 1)
            begin = time.monotonic()
            for column in COLUMNS:
                display.tool("mousemove", *column, *(["click", 1, "sleep", 0.5] * 2))
            sorted_ = studio.frames(begin)
    result("5,000 runs: first frame of the program to the end of the one with the list; the query alone, in SQLite",
           ", ".join(f"{s:.0f}" for s in seconds) + f" ms; {query:.0f} ms", "100 ms")
    result("5,000 runs: frame time while scrolling", frame_times(scrolled))
    result("... of that, to make the shapes", frame_times(scrolled, "make"))
    result("5,000 runs: frame time while typing a filter", frame_times(filtered), "100 ms")
    result("... of that, to make the shapes", frame_times(filtered, "make"))
    result("5,000 runs: frame time while sorting by name, step and size, both ways", frame_times(sorted_), "100 ms")
    result("5,000 runs, idle: share of a core; frames a second", f"{sum(shares.values()):.2f} %; {rate:.2f}")


def long_run(folder, points):
    """A store with a run of so many steps, r-long01, and how long SQLite takes to read its loss."""
    store = seed_run(folder, "curve.db")
    begin = time.monotonic()
    run, loss = stores.long_run(store, points)
    say(f"  made in {time.monotonic() - begin:.0f} s, {store.stat().st_size / 2**20:.0f} MiB")
    with contextlib.closing(sqlite3.connect(store)) as db:
        begin = time.monotonic()
        db.execute("SELECT sum(step), sum(value) FROM (SELECT step, value FROM metrics WHERE run = ? AND metric = ?)", (run, loss)).fetchone()
        scan = time.monotonic() - begin
    return store, scan


def long_curve(display, folder):
    """e: one run of ten million steps."""
    points = OPTIONS.points
    say(f"a curve of {points:,} points")
    store, scan = long_run(folder, points)
    with Studio(display, folder, "--store", store, "--run", "r-long01") as studio:
        begin = studio.frames()[0]["begin"]
        before = studio.memory("VmRSS")
        rows = studio.wait(lambda rows: rows[-1]["points"] >= points, "the run was not read", 300)
        shown = first(rows, lambda row: row["points"] >= points)
        reading = [row for row in rows if row["begin"] < shown["begin"]]
        time.sleep(6)  # the smoothed curve is made in slices
        after = [row for row in studio.frames() if row["begin"] >= shown["begin"]]
        result(f"{points:,} points: first frame to the curve; SQLite alone sums them in", f"{shown['begin'] - begin + shown['ms'] / 1000:.1f} s; {scan:.1f} s")
        result("... frame time while it is read", frame_times(reading), "never blocked")
        result("... frame time when it is there, until it is smoothed", frame_times(after))
        result("... memory before; now; at most", f"{before:.0f}; {studio.memory('VmRSS'):.0f}; {studio.memory('VmHWM'):.0f} MiB")
        begin = time.monotonic()
        for _ in range(3):  # in, to and fro, out
            display.tool("mousemove", (PLOT[0] + PLOT[1]) // 2, PLOT[2], *(["click", 4, "sleep", 0.06] * 25))
            display.drag(*PLOT, 2)
            display.tool("mousemove", (PLOT[0] + PLOT[1]) // 2, PLOT[2], *(["click", 5, "sleep", 0.06] * 25))
        moved = studio.frames(begin)
        result(f"{points:,} points: frame time while zooming and panning", frame_times(moved), "p99 100 ms")
        result("... of that, to make the shapes", frame_times(moved, "make"))
        begin = time.monotonic()
        display.drag(420, 1570, 830, 4)
        result(f"{points:,} points: frame time while the timeline is dragged", frame_times(studio.frames(begin)), "p99 100 ms")
        display.tool("mousemove", 60, 131, "mousedown", 1, "sleep", 0.1)
        begin = time.monotonic()
        display.tool(*(["mousemove", 110, 131, "sleep", 0.1, "mousemove", 150, 131, "sleep", 0.1] * 10), "mouseup", 1)
        result(f"{points:,} points: frame time while the smoothing is dragged", frame_times(studio.frames(begin)), "p99 100 ms")


PARTS = {"start": start, "training": training, "idle": idle, "list": long_list, "curve": long_curve}


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), "?")
    return f"{os.cpu_count()} cores, {model}; load average at the start {os.getloadavg()[0]:.1f}, usable cores {len(os.sched_getaffinity(0))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studio", default=str(ROOT / "build/bin/comera-studio"))
    parser.add_argument("--comera", default=str(ROOT / "build/bin/comera"))
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--points", type=int, default=10_000_000, help="of the long curve")
    parser.add_argument("--stretch", type=float, default=4, help="seconds of each measurement")
    parser.add_argument("--pairs", type=int, default=16, help="stretches with and without dragging, in turns; 2 or more")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of the training")
    parser.parse_args(namespace=OPTIONS)
    for tool in ("Xvfb", "xdotool"):
        if not shutil.which(tool):
            sys.exit(f"error: {tool} is not installed")
    about, begin = machine(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="comera-window-") as folder:
        display = Display()
        try:
            for part in OPTIONS.only:
                PARTS[part](display, folder)
        finally:
            display.close()
    print(f"{about}; {time.monotonic() - begin:.0f} s in all\n\n| what | figure | limit |\n|---|---|---|")
    for row in ROWS:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
