"""Every page, panel and dialog of the window as a picture, to be looked at by a person before a release.

    xvfb-run -a python3 experiments/pages.py FOLDER [--sets dark light ...] [--pages PATTERN]

FOLDER/SET/PAGE.png. Each picture is of the real window, on a copy of a store with the recorded run and four short runs of the demo.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = ROOT / "build" / "bin"
LARGER = ["--action", "scale.larger"]  # 1.1 times
SETS = {
    "dark": ["--theme", "dark", "--size", "1600x900"],
    "light": ["--theme", "light", "--size", "1600x900", "--scale", "2"],
    "small": ["--theme", "dark", "--size", "960x600"],
    "large": ["--theme", "contrast", "--size", "1600x900", *LARGER * 12],  # text three times as large
}
QUICK = ["train.threads=1", "train.max_steps_per_s=0"]
DIALOGS = ("help.keys", "help.change_keys", "file.settings", "help.about", "help.palette", "file.export", "file.open_store", "layout.save",
           "view.find")
PANELS = ("metrics", "tt", "profile", "compare", "ranks", "memory", "log", "controls", "samples")
TABS = ("curves", "table", "config", "ranks", "memory", "phases", "pareto", "parallel")

RUNS = {"seed-1": [], "seed-2": ["train.seed=2"], "small": ["method.comera.target=0.1"], "dense": ["method.weights=dense"]}
FORMS = {
    "demo": [],
    "galore": ["method.name=GaLore", "method.weights=dense", "method.optimizer=galore"],
    "misfit": ["method.weights=dense", "model.mlp.hidden=[65536,65536]"],
    "invalid": ["train.batch=0"],
}
SWEEP = ["train.lr=3e-3", "train.batch=48", "train.schedule=cosine"]
DIVERGE = ["train.lr=10", "train.lr_core=10", "train.warmup=0", "method.comera.train_ranks=false",
           f"model.mlp.hidden={[784] * 8}"]
WHOLE = ["--size", "1600x4400"]  # nothing to scroll


def words(settings):
    return [word for setting in settings for word in ("--set", setting)]


def without(options, given):
    """Pairs of an option and its value, those left out that a page gives itself."""
    pairs = zip(options[::2], options[1::2])
    return [word for option, value in pairs if option == "--action" or option not in given for word in (option, value)]


def do(*actions):
    return [word for action in actions for word in ("--action", action)]


def pages(runs):
    """Name -> arguments. `runs`: name -> id."""
    live = ["--demo", "--step", 400]
    replay = ["--run", runs["six-encoders"], "--step", 1500]
    compare = ["--compare", ",".join(runs[name] for name in ("dense", "seed-1", "seed-2", "small"))]
    found = {
        "start": ["--layout", "start"],
        "start-first": ["--layout", "start", "--store", "new.db"],
        "start-selected": ["--layout", "start", *do("runs.select_all")],
        "runs-edit": ["--layout", "start", *do("runs.select_all", "runs.edit")],
        "runs-purge": ["--layout", "start", *do("runs.select_all", "runs.purge")],
        "train-empty": ["--layout", "train"],
        "compare-empty": ["--layout", "compare"],
        "live-early": ["--demo", "--step", 100],
        "live-to": [*live, *do("run.to")],
        "live-quit": [*live, *do("file.quit")],
        "live-stopped": [*live, *do("run.stop")],
        "live-memory-layers": [*live, "--panel", "memory", *do("memory.by_layer")],
        "live-memory-step": [*live, "--panel", "memory", *do("memory.in_step")],
        "live-ranks-steps": [*live, "--panel", "ranks", *do("ranks.over_steps")],
        "live-ranks-drops": [*live, "--panel", "ranks", *do("ranks.drops")],
        "live-finished": ["--demo", "--step", 600, *words(["train.steps=500"])],
        "diverged": ["--demo", "--step", 60, *words(DIVERGE)],
        "replay-find": [*replay, "--panel", "log", *do("view.find")],
        "replay-fork": [*replay, *do("run.fork_with")],
        "evaluate": ["--run", runs["seed-1"], "--layout", "analyse", *do("run.evaluate")],
        "replay-memory-layers": [*replay, "--panel", "memory", *do("memory.by_layer")],
        "replay-ranks-steps": [*replay, "--panel", "ranks", *do("ranks.over_steps")],
        "replay-time": [*replay, "--layout", "replay", *do("timeline.axis", "timeline.select_from")],
        "compare-by-run": [*compare, *do("compare.by_run")],
        "compare-seeds": [*compare, *do("compare.seeds")],
    }
    for dialog in DIALOGS:
        found[f"dialog-{dialog}"] = ["--layout", "start", *do(dialog)] if dialog != "file.export" else [*replay, *do(dialog)]
    for panel in PANELS:
        found[f"live-{panel}"] = [*live, "--panel", panel]
        found[f"replay-{panel}"] = [*replay, "--panel", panel]
    for layout in ("analyse", "compare", "replay"):
        found[f"live-layout-{layout}"] = [*live, "--layout", layout]
        found[f"replay-layout-{layout}"] = [*replay, "--layout", layout]
    for tab in TABS:
        found[f"compare-{tab}"] = [*compare, "--tab", tab]
    for name, settings in FORMS.items():
        found[f"new-{name}"] = ["--layout", "new", *words(settings)]
        found[f"new-{name}-whole"] = ["--layout", "new", *words(settings), *WHOLE]
    found["new-folder"] = ["--layout", "new", *words(["method.weights=tt", "train.batch=8"]), *do("run.fit_folder"),
                           "--open", f"hf:{ROOT / 'tests' / 'golden_models' / 'llama_bf16'}"]
    found["new-sweep"] = ["--layout", "new", *words(SWEEP), *do("form.sweep", "sweep.vary_changed")]
    for name in ("new-sweep", "replay-fork", "live-controls", "dialog-help.keys", "dialog-file.settings"):
        found[f"{name}-whole"] = [*found[name], *WHOLE]
    return found


def comera(store, *arguments):
    return subprocess.run([BIN / "comera", *map(str, arguments), "--store", store], check=True, stdout=subprocess.PIPE).stdout


def make_store(folder):
    store = folder / "runs.db"
    shutil.copy(ROOT / "assets" / "recorded" / "runs.db", store)
    for name, settings in RUNS.items():
        comera(store, "train", "demo", "--quiet", "--name", name, "--tag", "short-demo", *words([*QUICK, "train.steps=600", *settings]))
    listed = comera(store, "runs", "list", "--json")
    return store, {row["name"]: row["run"] for row in json.loads(listed)["runs"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--pages", default=".*", help="regular expression")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        home = pathlib.Path(temporary)
        environment = {**os.environ, "HOME": temporary, **{f"XDG_{name}_HOME": temporary for name in ("DATA", "STATE", "CONFIG", "CACHE")}}
        store, runs = make_store(home)
        for kind in options.sets:
            folder = options.folder.resolve() / kind
            folder.mkdir(parents=True, exist_ok=True)
            for name, arguments in pages(runs).items():
                if not re.fullmatch(options.pages, name) or (kind != "dark" and name.endswith("-whole")):
                    continue
                for old in home.glob("own.db*"):
                    old.unlink()
                own = shutil.copy(store, home / "own.db")  # a live run is stored in it
                usual = without(["--store", own, *SETS[kind]], arguments)
                command = [BIN / "comera-studio", "--screenshot", folder / f"{name}.png", *words(QUICK), *usual, *arguments]
                done = subprocess.run(list(map(str, command)), env=environment, cwd=temporary, capture_output=True, text=True, check=False)
                failed += done.returncode != 0
                print(f"{kind}/{name}: {done.stderr.strip() or 'done'}", flush=True)
    sys.exit(f"{failed} pictures were not taken" if failed else 0)


if __name__ == "__main__":
    main()
