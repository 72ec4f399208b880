#!/usr/bin/env python3
"""What cmake/build.sh shows and how it configures: the script itself runs, with a cmake that only prints what Ninja prints."""
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE = r"""#!/usr/bin/env bash
if [[ $1 == --preset ]]; then
  printf '%s\n' "$*" >>configured
  touch build/build.ninja
  value=OFF
  for option in "$@"; do [[ $option != -DCOMERA_WERROR=* ]] || value=${option#*=}; done
  printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\nCOMERA_WERROR:BOOL=%s\n' "$PWD" "$value" >build/CMakeCache.txt
  exit
fi
[[ $NINJA_STATUS == '[%f/%t %e] ' ]] || exit 9
printf '[0/1 0.01] Re-running CMake...\n[1/4 2.50] Building CXX object a.cpp.o\n[3/4 9.00] Building CXX object b.cpp.o\n'
if [[ ${BROKEN:-} ]]; then
  printf 'FAILED: c.cpp.o\n/usr/bin/c++ -c c.cpp\nc.cpp:1: error: no\n'
  exit 1
fi
printf '[4/4 12.00] Linking\n'
"""
# In this order the lines of a terminal: each is drawn over the one before.
SHOWN = ["Configuring the build", "Building: 0 of 1 files", "Building: 1 of 4 files, about 8 s left",
         "Building: 3 of 4 files, about 3 s left", "Building: 4 of 4 files, about 0 s left", ""]


def build(folder, terminal, **environment):
    """What build.sh printed to stderr, and how it ended."""
    environment = {**{name: value for name, value in os.environ.items() if not name.startswith("COMERA_")}, **environment,
                   "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    command = [folder / "cmake/build.sh", "release", "comera"]
    if not terminal:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stderr, done.returncode
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, env=environment, stderr=theirs, stdout=subprocess.DEVNULL) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
        os.close(ours)
    return said.decode(), process.returncode


def main():
    wrong = []

    def expect(what, is_so, seen):
        if not is_so:
            wrong.append(f"{what}: {seen!r}")

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cmake").mkdir()
        shutil.copy(ROOT / "cmake/build.sh", folder / "cmake/build.sh")
        (folder / "bin").mkdir()
        (folder / "bin/cmake").write_text(CMAKE, encoding="utf-8")
        (folder / "bin/cmake").chmod(0o755)
        configured = folder / "configured"

        said, code = build(folder, terminal=True)
        lines = [line.removesuffix("\x1b[K") for line in said.split("\r")[1:]]
        expect("the lines of a terminal", lines == SHOWN and code == 0, (lines, code))
        said, code = build(folder, terminal=False)
        expect("a quick build without a terminal says nothing", (said, code) == ("", 0), (said, code))
        expect("configured once", len(configured.read_text(encoding="utf-8").splitlines()) == 1, configured.read_text(encoding="utf-8"))

        said, code = build(folder, terminal=False, BROKEN="1")
        expect("an error of the compiler", code != 0 and "c.cpp:1: error: no" in said and "c++ -c" not in said and "build/release.log" in said,
               (said, code))

        for _ in range(2):
            build(folder, terminal=False, COMERA_WERROR="ON")
        build(folder, terminal=False)  # stays as it was
        calls = configured.read_text(encoding="utf-8").splitlines()
        expect("COMERA_WERROR=ON configures once more", len(calls) == 2 and "-DCOMERA_WERROR=ON" in calls[1], calls)
    print("\n".join(wrong) if wrong else "all as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
