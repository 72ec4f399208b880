#!/usr/bin/env python3
"""What every file of the repository must keep to. Looks at the files that git tracks or would add.

    hygiene.py [--root DIR]     exit 0: clean, 1: some file is not
    hygiene.py --self-test      plants a defect of each kind and checks that it is found"""
import pathlib
import re
import subprocess
import tempfile

import check

MAX_BYTES = 2_000_000
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", ".json", ".md"}
# Paths of one machine. Not after a letter, a dot or a variable: "core/work/" and "$root/home/" are others.
MACHINE_PATH = re.compile(r"(?<![\w.}~*])/(work|root|home)/")
# A front page is read in two minutes; what is longer belongs into the README of a folder.
MAX_WORDS_OF_README = 700
LINK = re.compile(r"\]\(([^()\s]+)[^()]*\)")
# A path in a document: two names or more with slashes between. Checked are those that begin with a folder of the repository, and
# sources. With *, { or < behind it, or in capitals (tests/FOLDER), it is a pattern.
FOLDERS = {"app", "core", "gpu", "tests", "experiments", "assets", "cmake"}
DOC_PATH = re.compile(r"(?<![\w./~$*{}<>:-])([\w-]+(?:/[\w.-]+)*/[\w.-]*\w)(?![\w/]*[*{}<>])")
DOC_SOURCE = re.compile(r"\.(h|cpp|cu|cuh|py|sh|cmake|md)$")
# Written in parts, so that this file passes its own check.
HOSTS = re.compile("|".join(name.replace(" ", r"\.") for name in (
    "pypi org", "pythonhosted org", "deb debian org", "security debian org", "snapshot debian org", "npmjs org", "crates io",
    "anaconda org", "proxy golang org", "nvcr io", "ghcr io", "docker io", "packages cloud google com")))


def files_of(root):
    # safe.directory: the checkout may belong to another user, as in a container.
    git = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         cwd=root, capture_output=True, text=True, check=False)
    if git.returncode == 0:
        names = [name for name in git.stdout.split("\0") if name]
    else:  # an unpacked archive
        names = [p.relative_to(root).as_posix() for p in root.rglob("*") if p.relative_to(root).parts[0] not in ("build", ".git")]
    return [name for name in sorted(set(names)) if (root / name).is_file()]


def is_source(path):
    return path.suffix in SOURCES or path.name == "CMakeLists.txt"


def problems_of(root, name):
    path = root / name
    size = path.stat().st_size
    if size > MAX_BYTES:
        yield f"{name}: {size:,} bytes, more than {MAX_BYTES:,}"
        return
    data = path.read_bytes()
    if b"\0" in data[:8192]:  # not text
        return
    text = data.decode("utf-8", errors="replace")
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{name}:{number}"
        if is_source(path) and "\t" in line:
            yield f"{where}: a tab"
        if is_source(path) and line != line.rstrip():
            yield f"{where}: white space at the end of the line"
        if MACHINE_PATH.search(line):
            yield f"{where}: a path of one machine: {line.strip()[:100]}"
        if HOSTS.search(line):
            yield f"{where}: the host of a package registry: {line.strip()[:100]}"
    if path.suffix == ".md":
        yield from missing_paths(root, name, text)
    if name == "README.md" and (words := len(text.split())) > MAX_WORDS_OF_README:
        yield f"{name}: {words} words, more than {MAX_WORDS_OF_README}"
    if path.suffix in (".h", ".cuh") and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield f"{name}: no #pragma once"
    if path.suffix == ".sh" or re.match(r"#!\S+[ /](ba)?sh\b", text):
        check = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True, check=False)
        if check.returncode:
            yield f"{name}: bash -n: {check.stderr.strip().splitlines()[0]}"


def missing_paths(root, name, text):
    """Relative links and paths of a document that lead nowhere: from its folder, or paths from the root."""
    path = root / name
    for number, line in enumerate(text.split("\n"), 1):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            target = target.split("#")[0]
            if target and "://" not in target and not target.startswith("mailto:") and not (path.parent / target).exists():
                yield f"{name}:{number}: a link to {target}, which does not exist"
        for target in DOC_PATH.findall(LINK.sub("", line)):
            parts = target.split("/")
            if any(part.isupper() and "." not in part for part in parts[1:]) or not (parts[0] in FOLDERS or DOC_SOURCE.search(target)):
                continue
            if not (root / target).exists() and not (path.parent / target).exists():
                yield f"{name}:{number}: {target} does not exist"


def problems(root):
    names = files_of(root)
    if not names:
        return [f"no file under {root}: nothing was checked"]
    return [problem for name in names for problem in problems_of(root, name)]


# file, its text, and what the one problem found must say ("" = fine)
CASES = [
    ("a.h", "#pragma once\nint a;  // core/work/x, ../home/x\n", ""),
    ("b.h", "// #pragma once\n", "b.h: no #pragma once"),
    ("a.cpp", "int a;\n\tint b;\n", "a.cpp:2: a tab"),
    ("CMakeLists.txt", "set(a) \n", "CMakeLists.txt:1: white space"),
    ("table.tsv", "a\tb \n", ""),
    ("c.cpp", 'open("/' + 'work/x");\n', "c.cpp:1: a path of one machine"),
    ("notes.txt", "see /" + "root/x\n", "a path of one machine"),
    ("d.py", "x = '/" + "home/me'\n", "a path of one machine"),
    ("e.md", "from https://" + "pypi" + ".org/x\n", "registry"),
    ("f.txt", "deb" + ".debian.org", "registry"),
    ("big.bin", "x" * (MAX_BYTES + 1), "more than 2,000,000"),
    ("broken.sh", "if true; then\n", "broken.sh: bash -n"),
    ("run", "#!/usr/bin/env bash\necho 'a\n", "run: bash -n"),
    ("good.sh", "set -euo pipefail\necho $((1 + 1))\n", ""),
    ("README.md", "word\n" * MAX_WORDS_OF_README, ""),
    ("README.md", "word\n" * (MAX_WORDS_OF_README + 1), "README.md: 701 words, more than 700"),
    ("other.md", "word\n" * 2000, ""),
    ("link.md", "[this](link.md#part), [that](https://example.com/core/x.h), [part](#part), `[&](gone)`\n", ""),
    ("link.md", "\n[gone](gone/page.md)\n", "link.md:2: a link to gone/page.md"),
    ("picture.md", "![text](gone.png)\n", "picture.md:1: a link to gone.png"),
    ("path.md", "`core/gone/file.h` is one\n", "path.md:1: core/gone/file.h does not exist"),
    ("path.md", "see tests/gone.\n", "path.md:1: tests/gone does not exist"),
    ("path.md", "`panels/gone.cpp`", "path.md:1: panels/gone.cpp does not exist"),
    ("path.md", "tests/FOLDER/*.cpp, gpu/*.cu, core/{a,b}, build/core/x, ~/x/core/y, and/or\n", ""),
    ("binary.bin", "\0\t /" + "work/ \n", ""),
]


def self_test():
    wrong = []
    for name, text, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")
            found = problems(pathlib.Path(folder))
        if len(found) != (1 if expected else 0) or (expected and expected not in found[0]):
            wrong.append(f"{name}: expected {expected or 'nothing'!r}, found {found}")
    return wrong


if __name__ == "__main__":
    check.main(__doc__, problems, self_test, "every file is clean")
