"""What the window costs: throughput of training beside it, frame times, idle work, long lists and long curves, start.

    python3 experiments/bench/window.py > figures.md                   # the whole table, five to eight minutes
    python3 experiments/bench/window.py --only idle list               # parts of it: see PARTS
    python3 experiments/bench/window.py --points 1000000               # a shorter curve

It starts the real window under Xvfb, moves the mouse with xdotool, and reads what the window says of its frames
(`--frame-times`) and what the store says of the steps. Without a graphics card the processor draws (llvmpipe), so the
times of frames and the shares of a core contain that; threads are told apart by their names. Ratios are of stretches
that alternate within one run. Needs Debian's xvfb and xdotool, and build/bin/comera and comera-studio (or COMERA_BIN and
COMERA_STUDIO).
"""
import argparse
import contextlib
import csv
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
import driver  # noqa: E402
import stores  # noqa: E402
# Counts in the late stage only, so dragging it changes no work of a step.
SLIDER = "method.comera.loss_target"
OPTIONS = argparse.Namespace()  # of the command line
STEADY = ["--set", "method.comera.late_after=0", "--set", "train.steps=10000000", "--set", "train.checkpoint_every=0", "--set",
          "train.max_steps_per_s=0"]


def say(text):
    print(text, file=sys.stderr, flush=True)


class Bench:
    """A display, and a home of its own for each program that is started."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        self.display = driver.Display(self.root, "1600x900")
        self.programs = []
        self.store = None

    def new_home(self, store, usual=None):
        """`usual`: the store of who names none."""
        self.folder = self.root / f"home-{len(self.programs)}"
        self.folder.mkdir()
        self.environment, self.store = driver.own_home(self.folder), store
        if usual:
            self.environment["COMERA_STORE"] = str(usual)
        return self

    def path(self, name):
        return self.root / name

    def mouse(self, *words):
        """A chain of xdotool's commands; each must work."""
        subprocess.run(["xdotool", *map(str, words)], env={**os.environ, "DISPLAY": self.display.name}, capture_output=True, check=True)

    def drag(self, low, high, y, seconds):
        """To and fro with the left button down, 50 movements a second."""
        moves = []
        for i in range(int(seconds * 50)):
            moves += ["mousemove", round(low + (high - low) * (1 - abs(1 - 2 * (i % 100) / 100))), y, "sleep", 0.02]
        self.mouse("mousemove", low, y, "sleep", 0.1, "mousedown", 1, "sleep", 0.1, *moves, "mouseup", 1)

    def places(self, store, names, *arguments, usual=None):
        """Name -> (left, right, middle of its height), in a window that is started like this: another one than is measured,
        since telling names takes time."""
        studio = driver.Studio(self.new_home(store, usual), "--size", "1600x900", "--scale", "1", *arguments)
        found = {}
        for name in names:
            studio.see(name)
            (left, y), (right, _) = studio.point(name, 0.05), studio.point(name, 0.95)
            found[name] = (left, right, y)
        studio.process.kill()
        studio.process.wait()
        return found


def middle(place):
    return (place[0] + place[1]) // 2, place[2]


class Studio(driver.Studio):
    """The real window and what it says of its frames."""

    def __init__(self, bench, store, *arguments, usual=None):
        bench.new_home(store, usual)
        self.times = bench.folder / "frames.csv"
        self.begin = time.monotonic()
        super().__init__(bench, "--size", "1600x900", "--scale", "1", "--frame-times", self.times, *arguments, named=False)

    def __enter__(self):
        self.wait(lambda rows: rows, "no frame was drawn")
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

    def click_until(self, bench, place, condition, why):
        """Seconds from a click there to the end of the first frame of which it is so."""
        time.sleep(0.5)  # what the window begins with is over
        bench.mouse("mousemove", *place, "sleep", 0.2, "mousedown", 1, "sleep", 0.1)
        begin = time.monotonic()
        bench.mouse("mouseup", 1)
        row = first(self.wait(lambda rows: first(rows, condition), why, 30), condition)
        return row["begin"] + row["ms"] / 1000 - begin

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


def training(bench):
    """a, b: steps a second without a window, beside it, and while a slider is dragged; frame times meanwhile."""
    slider = bench.places(bench.path("places.db"), [SLIDER], "--demo", *STEADY)[SLIDER]
    for threads in OPTIONS.threads:
        say(f"training with {threads} threads")
        alone = []

        def without_window():
            store = bench.path(f"cli-{threads}-{len(alone)}.db")
            process = subprocess.Popen([driver.COMERA, "train", "demo", "--store", store, *STEADY, "--set", f"train.threads={threads}"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(3)
            begin = time.time()
            time.sleep(OPTIONS.stretch)
            end = time.time()
            process.send_signal(signal.SIGINT)
            process.wait(60)
            alone.append(throughput(store, begin, end))

        without_window()
        store = bench.path(f"window-{threads}.db")
        rates = {"still": [], "dragged": []}
        frames, seconds = {"still": [], "dragged": []}, {"still": 0.0, "dragged": 0.0}
        with Studio(bench, store, "--demo", *STEADY, "--set", f"train.threads={threads}") as studio:
            studio.wait(lambda rows: rows and rows[-1]["points"] > 50, "the demo does not train")
            time.sleep(2)
            stretches = []
            for pair in range(OPTIONS.pairs):
                for kind in ("still", "dragged") if pair % 2 == 0 else ("dragged", "still"):
                    begin, wall = time.monotonic(), time.time()
                    if kind == "dragged":
                        bench.drag(*slider, OPTIONS.stretch)
                    else:
                        bench.mouse("mousemove", slider[0], slider[2] + 8)
                        time.sleep(OPTIONS.stretch)
                    stretches.append((kind, begin, time.monotonic(), wall, time.time()))
            time.sleep(1.5)  # what was trained is stored by then
            for kind, begin, end, wall_begin, wall_end in stretches:
                rates[kind].append(throughput(store, wall_begin, wall_end))
                frames[kind] += studio.frames(begin, end)
                seconds[kind] += end - begin
            bench.display.unfocus()
            wall = time.time()
            time.sleep(OPTIONS.stretch)
            wall_end = time.time()
            time.sleep(1.5)
            unfocused = throughput(store, wall, wall_end)
            bench.display.minimise(studio.window)
            time.sleep(1)
            begin, wall = time.monotonic(), time.time()
            time.sleep(OPTIONS.stretch)
            end, wall_end = time.monotonic(), time.time()
            time.sleep(1.5)
            minimised, minimised_frames = throughput(store, wall, wall_end), len(studio.frames(begin, end))
        with contextlib.closing(sqlite3.connect(store)) as db:
            edits = db.execute("SELECT count(*) FROM events WHERE kind = 'edit'").fetchone()[0]
        if edits < OPTIONS.pairs:
            sys.exit("error: the slider was not moved: no setting was changed")
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


def idle(bench):
    """c: nothing runs: focused, unfocused, minimised."""
    say("idle")
    with Studio(bench, bench.path("idle.db")) as studio:
        bench.mouse("mousemove", 800, 800)
        for state in ("focused", "unfocused", "minimised"):
            if state == "unfocused":
                bench.display.unfocus()
            elif state == "minimised":
                bench.display.minimise(studio.window)
            time.sleep(2)
            shares, rate = share_of_core(studio, OPTIONS.stretch * 1.5)
            result(f"idle, {state}: share of a core; frames a second",
                   f"{sum(shares.values()):.2f} % (window {shares.get('window', 0):.2f}, rasteriser {shares.get('draws', 0):.2f}, other threads {shares.get('rest', 0):.2f}); {rate:.2f}",
                   "1 % with a graphics card" if state != "minimised" else "0 frames")


def start(bench):
    """f: from the start of the process to the first frame, from one click to a moving curve."""
    say("start")
    firsts, clicks = [], []
    button = middle(bench.places(bench.path("places.db"), ["Run the demo"])["Run the demo"])
    for i in range(3):
        with Studio(bench, bench.path(f"start-{i}.db")) as studio:
            row = studio.frames()[0]
            firsts.append(row["begin"] + row["ms"] / 1000 - studio.begin)
            clicks.append(studio.click_until(bench, button, lambda row: row["points"] >= 2, "the demo did not start"))
    result("start of the process to the first frame", ", ".join(f"{s:.2f}" for s in firsts) + " s")
    result("click on `Run the demo` to a curve of two points or more", ", ".join(f"{s:.2f}" for s in clicks) + " s", "5 s")


def seed_run(bench, name):
    """A store with one short run of the demo, to be copied by SQL."""
    store = bench.path(name)
    subprocess.run([driver.COMERA, "train", "demo", "--store", store, "--set", "train.threads=1", "--steps", "3"], check=True, capture_output=True)
    return store


def long_list(bench):
    """d: five thousand runs."""
    say("a list of 5,000 runs")
    store = seed_run(bench, "list.db")
    stores.many_runs(store, 5000)
    headers = ["column:name", "column:step", "column:size"]
    at = bench.places(store, ["filter", *headers])
    no_store = bench.path("no-store.txt")
    no_store.write_text("a text\n")
    button = middle(bench.places(no_store, ["Default database"], usual=store)["Default database"])
    opened = []
    for _ in range(5):
        with Studio(bench, no_store, usual=store) as studio:
            opened.append(1000 * studio.click_until(bench, button, lambda row: row["runs"] >= 5000, "the list was not read"))
    with contextlib.closing(sqlite3.connect(store)) as db:
        columns = ", ".join(row[1] for row in db.execute("PRAGMA table_info(runs)") if row[1] != "config")
        begin = time.monotonic()
        db.execute(f"SELECT {columns} FROM runs WHERE archived = 0 ORDER BY created DESC, run DESC").fetchall()
        query = 1000 * (time.monotonic() - begin)
    seconds = {"none": [], "5,000": []}
    for i in range(3):
        with Studio(bench, bench.path(f"empty-{i}.db")) as studio:
            row = studio.frames()[0]
            seconds["none"].append(row["begin"] + row["ms"] / 1000 - studio.begin)
        with Studio(bench, store) as studio:
            row = first(studio.wait(lambda rows: rows[-1]["runs"] >= 5000, "the list was not read"), lambda row: row["runs"] >= 5000)
            seconds["5,000"].append(row["begin"] + row["ms"] / 1000 - studio.begin)
            if i < 2:
                continue
            time.sleep(3)  # a store that was written a moment ago is read twice
            shares, rate = share_of_core(studio, OPTIONS.stretch)
            begin = time.monotonic()
            for _ in range(4):  # over the rows, by the wheel
                bench.mouse("mousemove", 800, 600, *(["click", 5, "sleep", 0.03] * 20), *(["click", 4, "sleep", 0.03] * 20))
            scrolled = studio.frames(begin)
            bench.mouse("mousemove", *middle(at["filter"]), "click", 1, "sleep", 0.3)
            begin = time.monotonic()
            for key in ("4", "9", "9", "BackSpace", "BackSpace", "BackSpace"):
                bench.mouse("keydown", key, "sleep", 0.1, "keyup", key, "sleep", 0.1)
            filtered = studio.frames(begin)
            bench.mouse("key", "Escape", "sleep", 1)
            begin = time.monotonic()
            for header in headers:
                bench.mouse("mousemove", *middle(at[header]), *(["click", 1, "sleep", 0.5] * 2))
            sorted_ = studio.frames(begin)
    result("5,000 runs: click that opens their store to the end of the frame with the list; the query alone, in Python's SQLite",
           ", ".join(f"{ms:.0f}" for ms in opened) + f" ms; {query:.0f} ms", "100 ms")
    result("5,000 runs: start of the process to the end of the frame with the list; of that with none to the first frame",
           "; ".join(", ".join(f"{s:.2f}" for s in of) + " s" for of in (seconds["5,000"], seconds["none"])))
    result("5,000 runs: frame time while scrolling", frame_times(scrolled))
    result("... of that, to make the shapes", frame_times(scrolled, "make"))
    result("5,000 runs: frame time while typing a filter", frame_times(filtered), "100 ms")
    result("... of that, to make the shapes", frame_times(filtered, "make"))
    result("5,000 runs: frame time while sorting by name, step and size, both ways", frame_times(sorted_), "100 ms")
    result("5,000 runs, idle: share of a core; frames a second", f"{sum(shares.values()):.2f} %; {rate:.2f}")


def long_run(bench, points):
    """A store with a run of so many steps, r-long01, and how long SQLite takes to read its loss."""
    store = seed_run(bench, "curve.db")
    begin = time.monotonic()
    run, loss = stores.long_run(store, points)
    say(f"  made in {time.monotonic() - begin:.0f} s, {store.stat().st_size / 2**20:.0f} MiB")
    with contextlib.closing(sqlite3.connect(store)) as db:
        begin = time.monotonic()
        db.execute("SELECT sum(step), sum(value) FROM (SELECT step, value FROM metrics WHERE run = ? AND metric = ?)", (run, loss)).fetchone()
        scan = time.monotonic() - begin
    return store, scan


def few_steps(bench):
    """A store whose window looks the same and is there at once."""
    store = seed_run(bench, "few.db")
    stores.long_run(store, 1000)
    return store


def long_curve(bench):
    """e: one run of ten million steps."""
    points = OPTIONS.points
    say(f"a curve of {points:,} points")
    store, scan = long_run(bench, points)
    at = bench.places(few_steps(bench), ["chart:loss", "lanes", "smoothing"], "--run", "r-long01")
    plot = at["chart:loss"]
    with Studio(bench, store, "--run", "r-long01") as studio:
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
            bench.mouse("mousemove", *middle(plot), *(["click", 4, "sleep", 0.06] * 25))
            bench.drag(*plot, 2)
            bench.mouse("mousemove", *middle(plot), *(["click", 5, "sleep", 0.06] * 25))
        moved = studio.frames(begin)
        result(f"{points:,} points: frame time while zooming and panning", frame_times(moved), "p99 100 ms")
        result("... of that, to make the shapes", frame_times(moved, "make"))
        begin = time.monotonic()
        bench.drag(*at["lanes"], 4)
        result(f"{points:,} points: frame time while the timeline is dragged", frame_times(studio.frames(begin)), "p99 100 ms")
        left, right, y = at["smoothing"]
        bench.mouse("mousemove", left, y, "mousedown", 1, "sleep", 0.1)
        begin = time.monotonic()
        bench.mouse(*(["mousemove", (left + right) // 2, y, "sleep", 0.1, "mousemove", right, y, "sleep", 0.1] * 10), "mouseup", 1)
        result(f"{points:,} points: frame time while the smoothing is dragged", frame_times(studio.frames(begin)), "p99 100 ms")


PARTS = {"start": start, "training": training, "idle": idle, "list": long_list, "curve": long_curve}


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), "?")
    return f"{os.cpu_count()} cores, {model}; load average at the start {os.getloadavg()[0]:.1f}, usable cores {len(os.sched_getaffinity(0))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--points", type=int, default=10_000_000, help="of the long curve")
    parser.add_argument("--stretch", type=float, default=4, help="seconds of each measurement")
    parser.add_argument("--pairs", type=int, default=16, help="stretches with and without dragging, in turns; 2 or more")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of the training")
    parser.parse_args(namespace=OPTIONS)
    for tool, package in driver.NEEDED.items():
        if not shutil.which(tool):
            sys.exit(f"error: {tool} is not installed: apt-get install {package}")
    about, begin = machine(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="comera-window-") as folder:
        bench = Bench(folder)
        try:
            for part in OPTIONS.only:
                PARTS[part](bench)
        finally:
            bench.display.stop()
    print(f"{about}; {time.monotonic() - begin:.0f} s in all\n\n| what | figure | limit |\n|---|---|---|")
    for row in ROWS:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
