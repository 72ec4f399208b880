#!/usr/bin/env python3
"""Reads the event file of `comera export RUN --to tfevents` with the TensorBoard package itself and compares every value
with the store's (`comera export RUN --to csv`).

    tensorboard_reads.py COMERA RUN [--store FILE]      exit 0: every point is there, with its step and time

Needs the PyPI package tensorboard."""
import csv
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorboard
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

program, run, *store = sys.argv[1:]


def comera(*args):
    return subprocess.run([program, *args, *store], check=True, capture_output=True, text=True).stdout


stored = {}
for row in csv.DictReader(io.StringIO(comera("export", run, "--to", "csv"), newline="")):
    stored[row["metric"], int(row["step"])] = float(row["wall_time"]), float(row["value"])
with tempfile.TemporaryDirectory() as folder:
    comera("export", run, "--to", "tfevents", "-o", folder, "--quiet")
    found = next(Path(folder).iterdir())
    events = EventAccumulator(str(found), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    read = {(tag, point.step): (point.wall_time, point.value) for tag in tags["scalars"] for point in events.Scalars(tag)}
wrong = [key for key, (_, value) in stored.items() if key not in read or not np.array_equal(np.float32(value), np.float32(read[key][1]), equal_nan=True)]
late = max(abs(stored[key][0] - read[key][0]) for key in stored if key in read)
print(f"tensorboard {tensorboard.__version__}: {len(tags['scalars'])} tags, {len(read)} of {len(stored)} points, {len(wrong)} differ as float32; "
      f"times within {late:.1e} s; {len(set(read) - set(stored))} points that the store has not")
sys.exit(1 if wrong or set(read) - set(stored) else 0)
