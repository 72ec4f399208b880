"""The pictures of the READMEs, made again: a still of the tensor trains and of the comparison, and ranks that fall.

    python3 experiments/pictures.py --store runs.db --run RUN --compare A,B,... [--step N] [--frames 500:8000:500]

RUN is replayed at step N (of its tensor trains), and over the frames (of its ranks). Needs xvfb-run, and Pillow for the animation.
The pictures are of the real window, taken off the screen, in 256 colours so that they stay small.
"""
import argparse
import pathlib
import subprocess
import tempfile

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[1]
STUDIO = ROOT / "build" / "bin" / "comera-studio"
TO = ROOT / "assets" / "pictures"


def picture(path, *arguments):
    subprocess.run(["xvfb-run", "-a", STUDIO, "--screenshot", path, *map(str, arguments)], check=True)
    return Image.open(path).convert("RGB")


def still(name, image):
    image.quantize(256, dither=Image.Dither.NONE).save(TO / name, optimize=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--store", required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--compare", required=True, help="ids, by commas")
    parser.add_argument("--step", type=int, default=5000)
    parser.add_argument("--frames", default="500:8000:500", help="first:last:by")
    options = parser.parse_args()
    first, last, by = map(int, options.frames.split(":"))
    with tempfile.TemporaryDirectory() as folder:
        shot = pathlib.Path(folder) / "shot.png"
        one = ["--store", options.store, "--run", options.run]
        still("tensor-trains.png", picture(shot, *one, "--step", options.step, "--panel", "tt"))
        still("compare.png", picture(shot, "--store", options.store, "--compare", options.compare, "--action", "compare.group"))
        frames = [picture(shot, *one, "--step", step, "--panel", "ranks", "--size", "1200x675") for step in range(first, last + 1, by)]
        colours = frames[-1].quantize(128, dither=Image.Dither.NONE)
        frames = [frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in frames]
        frames[0].save(TO / "ranks.gif", save_all=True, append_images=frames[1:], duration=[400] * (len(frames) - 1) + [2000], loop=0, optimize=True)
    for name in ("tensor-trains.png", "compare.png", "ranks.gif"):
        print(f"{name}: {(TO / name).stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
