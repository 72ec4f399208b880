#!/usr/bin/env python3
"""Phrases that core/GLOSSARY.md, "Words to avoid", lists must not stand in string literals of app/, core/ and gpu/.

    words.py [--root DIR]     exit 0: none, 1: some, each printed with its line
    words.py --self-test      plants violations and checks that each is found"""
import pathlib
import re
import tempfile

import check

# Keys and values of --json and of saved files that scripts and older files rely on.
KEYS = {("app/cli/bench.cpp", "what"), ("app/cli/reproduce.cpp", "what"), ("app/studio/saved_layouts.cpp", "beside")}
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
# A raw string, a string, a character or a comment: whichever begins first.
TOKEN = re.compile(r'R"(?P<d>\w*)\((?P<raw>.*?)\)(?P=d)"|"(?P<text>(?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)\'|//[^\n]*|/\*.*?\*/|(?P<include>^[ \t]*#[ \t]*include[^\n]*)', re.S | re.M)


def forbidden(glossary):
    """The phrases of the table's first column."""
    section = glossary.split("## Words to avoid", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [phrase.strip() for row in rows for phrase in row.split("|")[1].split(",")]


def literals(source):
    """(line, text) of each string literal; neighbours that the compiler joins are joined."""
    out, end = [], None
    for match in TOKEN.finditer(source):
        text = match["text"] if match["text"] is not None else match["raw"]
        if text is None:
            continue
        line = source.count("\n", 0, match.start()) + 1
        if end is not None and not source[end:match.start()].strip():
            out[-1] = (out[-1][0], out[-1][1] + text)
        else:
            out.append((line, text))
        end = match.end()
    return out


def violations(root):
    phrases = forbidden((root / "core" / "GLOSSARY.md").read_text())
    if not phrases:
        return ["core/GLOSSARY.md lists no phrase"]
    pattern = re.compile(r"(?<![\w.-])(?<!there )(" + "|".join(sorted(map(re.escape, phrases), key=len, reverse=True)) + r")(?![\w-])", re.I)
    found = []
    for folder in ("app", "core", "gpu"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            for line, text in literals(path.read_text()):
                if (str(path.relative_to(root)), text) in KEYS:
                    continue
                text = re.sub(r"\\.", " ", text).split("##")[0]  # what follows ## is an id of ImGui
                for match in pattern.finditer(text):
                    found.append(f"{path.relative_to(root)}:{line}: '{match[1]}' in \"{text.strip()[:100]}\"")
    return found


PLANTS = [
    ('const char* a = "Held back: 3";', ["held back"]),
    ('// what it was held back for\nconst char* a = "validation";', []),
    ('auto a = "the last of "\n  "those";', ["of those"]),
    ('auto a = f("x", R"(What it tells)");', ["What", "tells"]),
    ("char q = '\"'; auto a = \"somewhat\"; // \"what\"", []),
    ('auto a = "Name###what";', []),
    ('#include "what.h"\n', []),
    ('auto a = "what-if", b = "is no checkpoint";', ["is no"]),
    ('auto a = "there is no checkpoint";', []),
]


def self_test():
    found = []
    for source, wanted in PLANTS:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("app", "core", "gpu"):
                (root / name).mkdir()
            (root / "core" / "GLOSSARY.md").write_text("## Words to avoid\n\n| Not | But |\n|---|---|\n| held back | a |\n| of those, what | b |\n| tells, is no | c |\n")
            (root / "app" / "a.cpp").write_text(source)
            got = [line.split("'")[1] for line in violations(root)]
            if [g.lower() for g in got] != [w.lower() for w in wanted]:
                found.append(f"{source!r}: found {got}, wanted {wanted}")
    return found


if __name__ == "__main__":
    check.main(__doc__, violations, self_test, "no forbidden words")
