"""The stills of the READMEs, made again: of the tensor trains and of the comparison. Its animation: experiments/demo/pictures.py.

    python3 experiments/pictures.py --store runs.db --run RUN --compare A,B,... [--step N]

RUN is replayed at step N. Needs xvfb-run and Pillow.
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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shot = pathlib.Path(folder) / "shot.png"
        one = ["--store", options.store, "--run", options.run]
        still("tensor-trains.png", picture(shot, *one, "--step", options.step, "--panel", "tt"))
        still("compare.png", picture(shot, "--store", options.store, "--compare", options.compare, "--action", "compare.group"))
    for name in ("tensor-trains.png", "compare.png"):
        print(f"{name}: {(TO / name).stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
