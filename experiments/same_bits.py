"""Trains the same courses with two builds of the program and compares every checkpoint byte for byte: the guard of a change
that must not alter results. Needs no download; half a minute on 2 cores.

    python3 experiments/same_bits.py OLD NEW [--only REGEX] [--steps-only] [--keep FOLDER]

Courses: models x weights x stashes x optimizers, with cuts, growth, edits, stage switches and packed batches. Of each,
  train      NEW trains it: same checkpoints as OLD, tensors and training state (NEW may add keys to the state; OLD may keep the
             state of CoMERA in runs without tensor trains, where it says nothing).
  reproduce  NEW computes OLD's stored run again from its event log: every stored value is equal.
  resume     NEW goes on from OLD's checkpoint in the middle: same last checkpoint.
--steps-only leaves out the last two. Exit code 1 if anything differs. OLD must know all settings that a course names.
"""
import argparse
import json
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "cli"))
from support import environment, TINY_ENCODER  # noqa: E402

STEPS, MIDDLE = 40, 20
ALL = ["train.warmup=3", "train.eval_every=16", f"train.checkpoint_every={MIDDLE}", "train.checkpoint_minutes=0", "train.keep_checkpoints=9", "train.max_steps_per_s=0",
       "data.validation_rows=64", "train.threads=2"]
FAST = ["train.lr=2e-3", "train.lr_core=4e-3", "train.lr_rank=1e-1", "train.lr_rank_late=0", "train.schedule=cosine"]
# Ranks fall within a few steps, are cut, and the late stage begins by step.
CUTS = ["method.comera.mode=reference", "method.comera.late_after=8", "method.comera.late_halving=0", "method.comera.target=0.3",
        "method.comera.prune_every=5", "method.comera.prune_dead_share=0.01"]
SELECTIVE = ["method.comera.mode=selective", "method.comera.floor_rank=true", "method.comera.late_canonical=true", "method.comera.late_after=6",
             "method.comera.late_halving=60", "method.comera.prune_every=7", "method.comera.prune_dead_share=0.05"]
PAPER = ["method.comera.mode=paper", "method.comera.gamma=1e-6", "method.comera.beta=1e-4", "method.comera.late_after=10"]
DENSE = ["method.weights=dense"]
GALORE = DENSE + ["method.optimizer=galore", "method.galore.rank=6", "method.galore.gap=9"]
GROWTH = ["12:method.comera.target=0.15", "25:method.comera.target=0.9"]
STAGES = ["7:stage=late", "15:stage=early", "27:stage=late"]
BONDS = ["9:rank.cap.{}=2", "23:rank.cap.{}=4", "13:rank.weight.{layer}=0"]
RATES = ["11:train.lr=5e-4", "22:train.lr_core=1e-3", "31:train.lr_rank=1e-3"]
PACK = ["data.pack=true", "data.token_dropout=0.1"]

# What the method of tensor trains keeps.
COMERA = ["late", "late_at", "late_entries", "pace", "late_requested", "early_requested", "left_late_at", "plateau", "caps", "weights", "last_target",
          "last_caps", "unknown", "live_ranks"]
# Settings that keep an older behaviour, for a build that has them.
AS_BEFORE = ["method.galore.refresh=together"]

# name, config, settings, edits, steps
COURSES = [
    ("mlp", "mlp", [], []),
    ("mlp-cuts", "mlp", CUTS, GROWTH),
    ("mlp-selective", "mlp", SELECTIVE, STAGES),
    ("mlp-paper-f64", "mlp", PAPER + ["train.precision=f64"], []),
    ("mlp-caps-adam8bit", "mlp", CUTS + ["method.optimizer=adam8bit", "method.adam8bit.min_size=64"], BONDS),
    ("mlp-dense", "mlp", DENSE, RATES),
    ("mlp-galore", "mlp", GALORE, []),
    ("mlp-galore8-int8", "mlp", GALORE + ["method.galore.rule=adam8bit", "method.stash=int8"], []),
    ("mlp-gelu-bf16", "mlp", ["model.mlp.activation=gelu", "method.stash=bf16"], RATES),
    ("mlp-some-dense", "mlp", ["model.tt.ffn_in.tensorise=false"], []),
    ("encoder", "encoder", [], RATES),
    ("encoder-f64", "encoder", ["train.precision=f64"], []),
    ("encoder-pack", "encoder", PACK, []),
    ("encoder-cuts", "encoder", CUTS, GROWTH),
    ("encoder-cuts-pack-int8", "encoder", CUTS + PACK + ["method.stash=int8", "method.mesa.groups=3"], GROWTH),
    ("encoder-cuts-adam8bit", "encoder", CUTS + ["method.optimizer=adam8bit", "method.adam8bit.min_size=64"], GROWTH),
    ("encoder-cuts-galore", "encoder", CUTS + ["method.optimizer=galore", "method.galore.rank=3", "method.galore.gap=9", "model.tt.ffn_in.tensorise=false"], GROWTH),
    ("encoder-selective-bf16", "encoder", SELECTIVE + ["method.stash=bf16"], STAGES),
    ("encoder-caps", "encoder", SELECTIVE + ["model.encoder.keep_probabilities=false"], BONDS),
    ("encoder-paper", "encoder", PAPER + ["method.comera.floor_rank=true"], STAGES),
    ("encoder-plateau", "encoder", ["method.comera.late_on_plateau=1", "train.lr=1e-5", "train.lr_core=1e-5"], [], 140),  # it is looked for after 100
    ("encoder-ranks-fixed", "encoder", ["method.comera.train_ranks=false"], []),
    ("encoder-dense", "encoder", DENSE + PACK, []),
    ("encoder-dense-adam8bit-int8", "encoder", DENSE + ["method.optimizer=adam8bit", "method.stash=int8"], []),
    ("encoder-galore", "encoder", GALORE + PACK, RATES),
    ("encoder-galore8-bf16-f64", "encoder", GALORE + ["method.galore.rule=adam8bit", "method.stash=bf16", "train.precision=f64"], []),
]
BOND = {"mlp": "fc0.2", "encoder": "enc1.ffn.in.3"}
MLP = {"model": {"kind": "mlp", "classes": 10, "mlp": {"inputs": 784, "hidden": [96, 48], "dropout": 0.1}, "tt": {"ffn_in": {"rank": 12}}},
       "data": {"set": "fashion-mnist-demo"}, "train": {"batch": 32}}


def sentences(count, seed):
    """MNLI lines of 3 to 18 words."""
    words = "a the man woman dog cat river house old new red is was plays sees walks near in under with and not never always big small tree".split()
    draw = random.Random(seed)
    lines = ["index\tsentence1\tsentence2\tgold_label"]
    for i in range(count):
        first, second = (" ".join(draw.choices(words, k=draw.randint(3, 9))) for _ in range(2))
        lines.append(f"{i}\t{first}\t{second}\t{('entailment', 'neutral', 'contradiction')[(len(first) + len(second)) % 3]}")
    return "\n".join(lines) + "\n"


def write_configs(folder):
    data = folder / "pairs"
    data.mkdir(parents=True)
    (data / "train.tsv").write_text(sentences(300, 1))
    (data / "dev.tsv").write_text(sentences(70, 2))
    encoder = json.loads(json.dumps(TINY_ENCODER))
    encoder["model"]["encoder"]["dropout"] = 0.1
    encoder["data"] = {"set": str(data)}
    for name, config in (("mlp", MLP), ("encoder", encoder)):
        (folder / f"{name}.json").write_text(json.dumps(config))


class Program:
    """One build with a store of its own."""

    def __init__(self, path, folder, place):
        self.path, self.folder, self.place = path, folder, place
        place.mkdir()

    def __call__(self, *words):
        command = [str(self.path), *map(str, words), "--json", "--quiet"]
        done = subprocess.run(command, env=environment(self.place), cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} -> {done.returncode}\n{done.stderr[-2000:]}{done.stdout[-500:]}")
        return json.loads(done.stdout)

    def train(self, name, config, sets, edits, steps):
        known = [each for each in AS_BEFORE if self.knows(each)]
        options = [word for each in ALL + FAST + known + sets for word in ("--set", each)] + [word for each in edits for word in ("--edit", each)]
        return self("train", f"{config}.json", "--steps", steps, "--seed", 5, "--device", "cpu", "--name", name, *options)["run"]

    def knows(self, setting):
        command = [str(self.path), "config", "show", "mlp.json", "--set", setting]
        return subprocess.run(command, env=environment(self.place), cwd=self.folder, capture_output=True).returncode == 0

    def checkpoints(self, run):
        row = self("runs", "show", run)
        return {each["step"]: Path(each["path"]) for each in row["checkpoints"]}


def contents(path):
    """Tensors (dtype, shape, bytes) by name, and the training state."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], raw[8 + size + begin:8 + size + end])
    metadata = json.loads(metadata["comera"])
    if metadata["config"]["method"]["weights"] != "tt":
        for key in COMERA:
            metadata["state"].pop(key, None)
    return tensors, metadata["state"]


def lacks(old, new, path=""):
    """The first place where `new` has not what `old` has; additions are allowed."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key not in new:
                return f"{path}{key} is missing"
            if found := lacks(value, new[key], f"{path}{key}."):
                return found
        return ""
    return "" if old == new else f"{path[:-1]} is {new}, was {old}"


def difference(old, new):
    (tensors, state), (other, other_state) = contents(old), contents(new)
    if tensors.keys() != other.keys():
        return f"other tensors: {sorted(tensors.keys() ^ other.keys())[:5]}"
    wrong = [name for name in tensors if tensors[name] != other[name]]
    if wrong:
        return f"{len(wrong)} of {len(tensors)} tensors differ, first {wrong[0]}"
    return lacks(state, other_state)


def course(old, new, row, steps_only):
    name, config, sets, edits, steps = (*row, STEPS)[:5]
    bond = BOND[config]
    edits = [each.replace("{layer}", bond.rsplit(".", 1)[0]).replace("{}", bond) for each in edits]
    run, other = old.train(name, config, sets, edits, steps), new.train(name, config, sets, edits, steps)
    before, after = old.checkpoints(run), new.checkpoints(other)
    if not {MIDDLE, steps} <= before.keys() or before.keys() != after.keys():
        return [f"checkpoints at {sorted(before)} and {sorted(after)}"]
    faults = [f"step {step}: {what}" for step in sorted(before) if (what := difference(before[step], after[step]))]
    if steps_only:
        return faults
    try:
        # Paths of checkpoints in a store are absolute; NEW works on OLD's own store.
        taken = Program.__new__(Program)
        taken.path, taken.folder, taken.place = new.path, new.folder, old.place
        taken("reproduce", run)
        last = difference_after_resume(taken, run, before[steps].read_bytes(), [each for each in edits if int(each.split(":")[0]) > MIDDLE])
        faults += [f"resume: {last}"] if last else []
    except RuntimeError as error:
        faults.append(str(error))
    return faults


def difference_after_resume(program, run, expected, edits):
    resumed = program("resume", run, "--from-step", MIDDLE, *[word for each in edits for word in ("--edit", each)])["run"]
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        file.write(expected)
        file.flush()
        checkpoints = program.checkpoints(resumed)
        return difference(Path(file.name), checkpoints[max(checkpoints)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", default="", help="courses whose name matches")
    parser.add_argument("--steps-only", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder for the stores")
    args = parser.parse_args()
    folder = Path(args.keep or tempfile.mkdtemp(prefix="same-bits-")).resolve()
    write_configs(folder)
    rows = [row for row in COURSES if re.search(args.only, row[0])]
    wrong = 0
    try:
        for row in rows:
            old, new = (Program(path.resolve(), folder, folder / f"{row[0]}-{which}") for which, path in (("old", args.old), ("new", args.new)))
            faults = course(old, new, row, args.steps_only)
            wrong += bool(faults)
            print(f"{row[0]:30} {'; '.join(faults) if faults else 'same'}", flush=True)
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(rows) - wrong} of {len(rows)} courses are the same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
