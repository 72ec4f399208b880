"""The demo in pictures: its ranks under a size target that moves, as assets/pictures/ranks.gif, and its course as figures.

    python3 experiments/demo/pictures.py FOLDER [--store runs.db]

Trains the preset `demo` with edits of the target (no step limit: that changes no number), replays the run in the real window and
takes a picture of it every 150 steps. Needs xvfb-run and Pillow. FOLDER gets the figures of `comera export`.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "bin"
NAME = "demo, moving target"
EDITS = ("2100:method.comera.target=0.6", "2850:method.comera.target=0.15")
STEPS, EVERY, COLOURS, SIZE = 4500, 150, 96, "1200x675"


def comera(*words):
    return subprocess.run([BIN / "comera", *map(str, words)], check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--store", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        store = options.store or folder / "runs.db"
        if not store.exists():
            comera("train", "demo", "--quiet", "--store", store, "--name", NAME, "--set", "train.max_steps_per_s=0",
                   *(word for edit in EDITS for word in ("--edit", edit)))
        run = json.loads(comera("runs", "list", "--store", store, "--json"))["runs"][0]["run"]
        frames = []
        for step in range(EVERY, STEPS + 1, EVERY):
            shot = folder / "shot.png"
            subprocess.run(["xvfb-run", "-a", BIN / "comera-studio", "--screenshot", shot, "--store", store, "--run", run, "--step", str(step), "--panel", "ranks",
                            "--size", SIZE, "--scale", "1"], check=True)
            frames.append(Image.open(shot).convert("RGB"))
        colours = frames[len(frames) // 2].quantize(COLOURS, dither=Image.Dither.NONE)
        frames = [frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in frames]
        to = ROOT / "assets" / "pictures" / "ranks.gif"
        frames[0].save(to, save_all=True, append_images=frames[1:], duration=[300] * (len(frames) - 1) + [2000], loop=0, optimize=True)
        print(f"{to.name}: {to.stat().st_size / 1024:.0f} KiB")
        for draw in ("curves", "ranks"):
            comera("export", run, "--store", store, "--to", "png", "--draw", draw, "-o", options.folder / f"2026-11-24-demo-{draw}.png")


if __name__ == "__main__":
    main()
