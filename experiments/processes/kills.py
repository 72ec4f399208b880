#!/usr/bin/env python3
"""Any one of the processes of a run, killed with SIGKILL at 20 random steps; each run is resumed by another number of processes and compared with
one that was not killed: values, events, weights and states, byte for byte. Prints a table.

    experiments/processes/kills.py BINARY PLACE [SEED]     PLACE: a new folder"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import stored

STEPS = 160
RUN = ["demo", "--steps", STEPS, "--set", "train.threads=1", "--set", "train.micro_batches=4", "--set", "train.checkpoint_every=7", "--set", "train.eval_every=20", "--set",
       "data.validation_rows=64", "--set", "method.comera.late_after=40", "--set", "method.comera.prune_every=10", "--edit", "30:train.lr_core=1e-3", "--edit", "50:rank.cap.fc0.1=6",
       "--edit", "90:rank.cap.fc0.1=16", "--edit", "120:stage=early"]


def pids_of(mpirun):
    """By the number that mpirun gave each."""
    found = {}
    for child in pathlib.Path(f"/proc/{mpirun}/task/{mpirun}/children").read_text().split():
        try:
            environment = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        found |= {int(text.split(b"=")[1]): int(child) for text in environment if text.startswith(b"OMPI_COMM_WORLD_RANK=")}
    return found


def stored_step(store, name):
    if not store.exists():
        return -1
    return stored.query(store, "SELECT max(m.step) FROM metrics m JOIN runs r USING(run) WHERE r.name = ?", name)[0][0] or -1


def main():
    binary, place = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    place.mkdir(parents=True)
    store = place / "kills.db"
    if problem := stored.train(1, binary, store, "whole", *RUN, "--set", "train.max_steps_per_s=0"):
        sys.exit(problem)
    whole, equal = stored.content(store, "whole"), 0
    print("| processes | killed | at step | mpirun ended after, s | resumed by | equal |\n|---|---|---|---|---|---|", flush=True)
    for number in range(20):
        name, count = f"killed {number}", chance.choice([2, 3, 4])
        victim, at, then = chance.randrange(count), chance.randrange(8, STEPS - 10), chance.choice([1, 2, 3, 4])
        command = stored.command(count, binary, "train", *RUN, "--set", "train.max_steps_per_s=60", "--name", name, "--store", store, "--quiet")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while stored_step(store, name) < at:
            if process.poll() is not None:
                sys.exit(f"{name} has ended before step {at}")
            time.sleep(0.02)
        began = time.monotonic()
        os.kill(pids_of(process.pid)[victim], signal.SIGKILL)
        process.wait()
        took, last = time.monotonic() - began, stored_step(store, name)
        resume = stored.command(then, binary, "resume", name, "--set", "train.max_steps_per_s=0", "--store", store, "--quiet")
        subprocess.run(resume, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        same = stored.content(store, name) == whole
        equal += same
        print(f"| {count} | {victim} | {last} | {took:.1f} | {then} | {'yes' if same else 'NO'} |", flush=True)
    print(f"\n{equal} of 20 equal")


if __name__ == "__main__":
    main()
