#!/usr/bin/env python3
"""What `cmake --install` makes of a build folder: programs that find presets and libraries wherever the folder is moved to.

    install.py BUILD_FOLDER"""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1])
VERBS = ["train", "runs", "data", "doctor"]
wrong = []


def expect(what, is_so, seen=""):
    if not is_so:
        wrong.append(f"{what}: {seen}")


def run(program, *arguments, home, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("COMERA_", "XDG_", "LD_"))}
    return subprocess.run([program, *arguments], env={**clean, "HOME": str(home), **environment}, cwd=home, capture_output=True, text=True, check=False)


def finds_presets(what, program, assets, **environment):
    done = run(program, "config", "show", "demo", home=program.parent, **environment)
    expect(f"{what}: config show demo", done.returncode == 0, done.stderr)
    done = run(program, "doctor", "--json", home=program.parent, **environment)
    expect(f"{what}: doctor", done.returncode == 0, done.stderr)
    if done.returncode == 0:
        found = json.loads(done.stdout)["assets"]
        expect(f"{what}: assets", pathlib.Path(found).resolve() == assets.resolve(), found)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", folder / "first"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout[-2000:], done.stderr[-2000:])
            return 1
        place = folder / "moved to"  # a space in its name
        (folder / "first").rename(place)
        programs = sorted((place / "bin").iterdir())
        finds_presets("installed and moved", place / "bin/comera", place / "share/comera/assets")
        mpi = json.loads(run(place / "bin/comera", "doctor", "--json", home=place).stdout)["mpi"]
        expect("MPI as in the build folder", mpi["here"] == (BUILD / "bin/libcomera_mpi.so").exists(), mpi)
        expect("oneDNN as in the build folder", (place / "lib/comera/libcomera_onednn.so").exists() == (BUILD / "bin/libcomera_onednn.so").exists(), list(place.rglob("*.so")))
        parquet = json.loads(run(place / "bin/comera", "doctor", "--json", home=place).stdout)["parquet"]
        expect("Parquet as in the build folder", parquet["here"] == (BUILD / "bin/libcomera_parquet.so").exists(), parquet)
        for program in programs:
            paths = [line for line in subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout.splitlines()
                     if "RPATH" in line or "RUNPATH" in line]
            expect(f"{program.name} looks for libraries beside itself only", all("[$ORIGIN/../lib/comera]" in line for line in paths), paths)
            page = gzip.decompress((place / f"share/man/man1/{program.name}.1.gz").read_bytes()).decode()
            expect(f"the man page of {program.name}", all(part in page for part in (".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS")), page[:200])
            if program.name == "comera":
                expect("its verbs", all(f".SS comera {verb}" in page for verb in VERBS), page[-500:])
        scripts = ["bash-completion/completions/comera", "zsh/site-functions/_comera", "fish/vendor_completions.d/comera.fish"]
        for script in scripts:
            text = (place / "share" / script).read_text(encoding="utf-8")
            expect(script, all(verb in text for verb in VERBS), text[:200])
        expect("licences", (place / "share/doc/comera/copyright").read_bytes() == (SOURCE / "LICENSE").read_bytes())
        if (place / "lib/comera/libscipy_openblas.so").exists():
            expect("the licence of OpenBLAS", (place / "share/doc/comera/licenses/OpenBLAS.txt").exists())
        if (place / "bin/comera-studio").exists():
            entry = (place / "share/applications/comera-studio.desktop").read_text(encoding="utf-8")
            expect("the desktop entry", "\nExec=comera-studio %F\n" in entry, entry)
            expect("its icon", (place / "share/icons/hicolor/scalable/apps/comera-studio.svg").exists())
            expect("the recorded run", (place / "share/comera/assets/recorded/runs.db").exists())

        # The program of the build folder, copied: alone, then with its assets beside it, then told where they are.
        copied = folder / "copy/comera"
        copied.parent.mkdir()
        shutil.copy(BUILD / "bin/comera", copied)
        finds_presets("copied alone", copied, SOURCE / "assets")
        finds_presets("told where", copied, place / "share/comera/assets", COMERA_ASSETS=str(place / "share/comera/assets"))
        shutil.copytree(place / "share/comera/assets", copied.parent / "assets")
        finds_presets("copied with its assets", copied, copied.parent / "assets")
        (folder / "empty").mkdir()
        done = run(copied, "config", "show", "demo", home=copied.parent, COMERA_ASSETS=str(folder / "empty"))
        expect("no presets: an error that says where they were looked for",
               done.returncode == 8 and str(folder / "empty") in done.stderr and "COMERA_ASSETS" in done.stderr, done.stderr)
    print("\n".join(wrong) if wrong else "all as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
