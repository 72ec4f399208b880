"""Runs that several processes train, and what of them is stored: values, events and the last checkpoint."""
import json
import os
import pathlib
import sqlite3
import struct
import subprocess

LAUNCH = os.environ.get("LAUNCH", "mpirun --allow-run-as-root --oversubscribe --bind-to none").split()
# Events that repeat; others have times, paths or the number of processes. Of what was asked for: only that, since it is stored before it is done,
# and what it was done to is added then.
REPEATED = ("edit", "stage", "truncation", "regrowth")
ASKED = {"edit": ("path", "value"), "stage": ("stage", "reason")}


def command(processes, binary, *args):
    return [*([] if processes == 1 else [*LAUNCH, "-n", str(processes)]), str(binary), *map(str, args)]


def query(store, sql, *values):
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        return db.execute(sql, values).fetchall()


def tensors(path):
    data = pathlib.Path(path).read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    return {name: (entry["dtype"], entry["shape"], data[8 + size:][slice(*entry["data_offsets"])]) for name, entry in header.items() if name != "__metadata__"}


def last_checkpoint(store, name):
    return query(store, "SELECT path FROM checkpoints JOIN runs USING(run) WHERE name = ? ORDER BY checkpoints.step DESC LIMIT 1", name)[0][0]


def content(store, name):
    """(values of every step, events, tensors of the last checkpoint: weights and states)"""
    values = query(store, "SELECT n.name, m.step, m.value FROM metrics m JOIN metric_names n USING(metric) JOIN runs r USING(run) WHERE r.name = ? ORDER BY 1, 2", name)
    events = query(store, f"SELECT e.step, e.kind, e.body FROM events e JOIN runs r USING(run) WHERE r.name = ? AND e.kind IN {REPEATED} ORDER BY 1, 2, 3", name)
    events = [(step, kind, [json.loads(body).get(key) for key in ASKED[kind]] if kind in ASKED else body) for step, kind, body in events
              if "max_steps_per_s" not in body]  # how fast it is does not change a result
    return [row for row in values if not row[0].endswith(("_ms", "_bytes"))], events, tensors(last_checkpoint(store, name))


def train(processes, binary, store, name, *args):
    """Ends with why it was refused, or "" """
    done = subprocess.run(command(processes, binary, "train", *args, "--name", name, "--store", store, "--quiet"), capture_output=True, text=True)
    return "" if done.returncode == 0 else next((line for line in done.stderr.splitlines() if line.startswith("error: ")), done.stderr[-300:])
