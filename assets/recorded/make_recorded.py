#!/usr/bin/env python3
"""Makes runs.db, the recorded run that the window offers to replay: the six encoders of the preset encoder6-mnli on sst2-vader, early
and late stage, a locked layer, and a size target that goes down, up (ranks grow again) and down.

    ./run.sh data get sst2-vader
    make_recorded.py train STORE            # 8 minutes on two cores; not repeated where STORE is there
    make_recorded.py pack STORE runs.db     # without checkpoints and without what says where it was made

Compute it again with `comera reproduce`: the config and the edits are all in it.
"""
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

COMERA = Path(os.environ.get("COMERA_BIN", Path(__file__).resolve().parents[2] / "build" / "bin" / "comera"))
SETTINGS = """model.classes=2 model.length=48 data.set=sst2-vader data.pack=true data.token_budget=512 train.batch=16
    model.encoder.dropout=0.02 model.encoder.attention_dropout=0.02 train.steps=3400 train.warmup=400 train.schedule=linear
    train.lr_core=1.2e-4 train.lr=1.2e-4 train.lr_rank=1.2e-4 train.lr_rank_late=4e-3 train.lr_final_fraction=0.5
    train.eval_every=100 train.checkpoint_every=0 train.checkpoint_minutes=0
    method.comera.mode=selective method.comera.late_canonical=true method.comera.floor_rank=true method.comera.rank_weight=0
    method.comera.late_loss_weight=1 method.comera.late_weight=2 method.comera.loss_target=0.4
    method.comera.late_after=1400 method.comera.late_halving=300 method.comera.target=0.3""".split()
EDITS = ["2050:rank.weight.enc1.ffn.in=0", "2150:method.comera.target=0.6", "2600:method.comera.target=0.25"]
RUN, LIMIT = "r-recorded", 2_000_000  # its id in app/studio/newcomer.h; bytes


def train(store):
    if os.path.exists(store):
        return
    command = [COMERA, "train", "encoder6-mnli", "--store", store, "--name", "six-encoders", "--tag", "recorded", "--quiet"]
    command += [word for setting in SETTINGS for word in ("--set", setting)] + [word for edit in EDITS for word in ("--edit", edit)]
    subprocess.run(command, check=True)


def pack(store, out):
    if os.path.exists(out):
        os.remove(out)
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        if [status for status, in db.execute("SELECT status FROM runs")] != ["finished"]:
            sys.exit(f"{store} is not of one finished run")
        db.execute("VACUUM INTO ?", (out,))
    db = sqlite3.connect(out, isolation_level=None)
    db.execute("PRAGMA journal_mode = DELETE")  # it is read where no file can be made beside it
    db.execute("UPDATE runs SET id = ?, pid = 0, boot_id = '', owner = ''", (RUN,))
    db.execute("DELETE FROM checkpoints")
    db.execute("DELETE FROM events WHERE kind = 'checkpoint'")
    db.execute("DELETE FROM metrics WHERE metric IN (SELECT metric FROM metric_names WHERE name IN ('device_used_bytes', 'device_total_bytes'))")
    db.execute("VACUUM")
    config, = db.execute("SELECT config FROM runs").fetchone()
    db.close()
    data = Path(out).read_bytes()
    for trace in (str(Path.home()), os.path.abspath(store), os.uname().nodename):
        if len(trace) > 3 and trace.encode() in data:
            sys.exit(f"{out} still says '{trace}'")
    if any(isinstance(value, str) and value.startswith("/") for group in json.loads(config).values() if isinstance(group, dict) for value in group.values()):
        sys.exit("the config names a path")
    if len(data) > LIMIT:
        sys.exit(f"{out} has {len(data)} bytes, {LIMIT} is the limit")
    print(f"{out}: {len(data)} bytes")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "train":
        return train(sys.argv[2])
    if len(sys.argv) == 4 and sys.argv[1] == "pack":
        return pack(*sys.argv[2:])
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
