#!/usr/bin/env python3
"""Whether the project's getter gives the rows of another preparer: both make each set into a folder of their own, and the
sha256 of every file is compared.

    getter_rows.py PREPARE.py ARCHIVES SET...       exit 0: every file is the same

PREPARE.py is called as `PREPARE.py OUT SET... --cache ARCHIVES`; ARCHIVES keeps the packages (fetched when missing)."""
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

prepare, archives, *sets = sys.argv[1:]
getter = Path(__file__).resolve().parents[2] / "assets" / "data" / "get_data.py"


def files(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "MANIFEST.json" and not path.name.startswith(".")}


with tempfile.TemporaryDirectory() as place:
    ours, theirs = Path(place, "ours"), Path(place, "theirs")
    subprocess.run([sys.executable, getter, *sets, "--out", ours, "--cache", archives], check=True, stdout=sys.stderr)
    subprocess.run([sys.executable, prepare, theirs, *sets, "--cache", archives], check=True, stdout=sys.stderr)
    same = True
    for name in sets:
        a, b = files(ours / name), files(theirs / name)
        differing = [file for file in sorted({*a, *b}) if a.get(file) != b.get(file)]
        same = same and a and not differing
        print(f"{name}: {len(a)} files, " + (f"DIFFERENT: {', '.join(differing)}" if differing else "all the same sha256"))
        for file, digest in sorted(a.items()):
            print(f"  {digest}  {file}")
sys.exit(0 if same else 1)
