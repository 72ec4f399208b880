#!/usr/bin/env python3
"""What ./run.sh starts: the window where there is one to be had, else the demo in the terminal, and any verb as it is
told. The script itself runs, among programs that only say how they were called."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAYS = '#!/usr/bin/env bash\nprintf "%s" "$(basename "$0")"; printf " [%s]" "$@"; echo\n'
PROGRAMS = {
    "cmake/setup.sh": "#!/usr/bin/env bash\n",
    "cmake/build.sh": '#!/usr/bin/env bash\n[[ $2 != "${BROKEN:-}" ]]\n',
    "build/bin/comera": SAYS,
    "build/bin/comera-studio": SAYS.replace("printf", '[[ $1 == --probe ]] && exit "${PROBE:-0}"\nprintf', 1),
}
DISPLAY, DEMO = {"DISPLAY": ":7"}, "comera [train] [demo]"
NO_WINDOW = "No window ("  # the one line about it
# arguments, environment, what is started, what is said besides; the window's sources are there unless "no sources"
CASES = [
    ([], DISPLAY, "comera-studio []", ""),
    ([], {"WAYLAND_DISPLAY": "wayland-0"}, "comera-studio []", ""),
    (["--theme", "light", "--size=960x600", "--demo"], DISPLAY, "comera-studio [--theme] [light] [--size=960x600] [--demo]", ""),
    ([], {}, DEMO, NO_WINDOW + "no display"),
    (["--demo"], {}, DEMO, NO_WINDOW + "no display"),
    ([], {**DISPLAY, "PROBE": "4"}, DEMO, NO_WINDOW + "it cannot be opened here"),
    ([], {**DISPLAY, "BROKEN": "comera-studio"}, DEMO, NO_WINDOW + "it could not be built"),
    ([], {**DISPLAY, "no sources": ""}, DEMO, NO_WINDOW + "its sources are missing"),
    (["--steps", "5"], DISPLAY, DEMO + " [--steps] [5]", ""),
    (["--theme"], DISPLAY, DEMO + " [--theme]", ""),
    (["--demo", "--steps", "5"], DISPLAY, DEMO + " [--demo] [--steps] [5]", ""),
    (["--version"], DISPLAY, "comera [--version]", ""),
    (["--help"], DISPLAY, "comera [--help]", ""),
    (["train", "mlp-fashion", "--name", "a b"], DISPLAY, "comera [train] [mlp-fashion] [--name] [a b]", ""),
    (["studio", "--run", "r-1"], DISPLAY, "comera-studio [--run] [r-1]", ""),
    (["studio"], {}, "comera-studio []", ""),
]


def started(folder, arguments, environment):
    """What ./run.sh printed: its result and what it said besides."""
    for name, text in PROGRAMS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    shutil.copy(ROOT / "run.sh", folder / "run.sh")
    environment = dict(environment)
    if environment.pop("no sources", None) is None:
        (folder / "build/pypi/imgui_bundle").mkdir(parents=True)
    clean = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "COMERA_PYPI_DIR")}
    done = subprocess.run([folder / "run.sh", *arguments], env={**clean, **environment}, capture_output=True, text=True, check=False, cwd="/")
    return done.stdout.strip(), done.stderr.strip()


def main():
    wrong = []
    for arguments, environment, program, says in CASES:
        with tempfile.TemporaryDirectory() as folder:
            out, err = started(pathlib.Path(folder, "with a space"), arguments, environment)
        if out != program or not err.startswith(says) or len(err.splitlines()) != (1 if says else 0):
            wrong.append(f"./run.sh {' '.join(arguments)} with {environment}: started {out!r}, said {err!r}, not {program!r} and {says!r}")
    print("\n".join(wrong) if wrong else f"{len(CASES)} cases: all as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
