#!/usr/bin/env python3
"""That what comments and documents point to is there:
    METHODS.md 1.4            in any file: a section of core/METHODS.md; also "1.1, 1.2", "1.1 to 1.4"
    FILE.md, "Heading"        in any file: a heading of that document
    ```cpp FILE               in a document: the lines of the block stand in FILE in this order; "..." leaves some out

    citations.py [--root DIR]     exit 0: all are there, 1: some are not, each printed with its line
    citations.py --self-test      plants violations and checks that each is found"""
import pathlib
import re
import tempfile

import check

TOPS = ("app", "assets", "cmake", "core", "experiments", "gpu", "tests")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", ".md", ".txt"}
METHODS = "core/METHODS.md"
NUMBER = r"\d+(?:\.\d+)?"
CITED = re.compile(rf"METHODS\.md(?!, \")(?P<numbers>\s+(?://\s+)?{NUMBER}(?:(?:, | and | to ){NUMBER})*)?")
HEADING_CITED = re.compile(r'(?P<file>[\w./-]+\.md), "(?P<heading>[^"\n]+)"')
SNIPPET = re.compile(r"^```cpp (?P<file>\S+)\n(?P<code>.*?)^```$", re.M | re.S)


def headings(text):
    return re.findall(r"^#+ (.+)$", text, re.M)


def sections(text):
    """Numbers at the beginning of headings."""
    return {found[1] for heading in headings(text) if (found := re.match(rf"({NUMBER}) ", heading))}


def missing_line(code, source):
    """The first line of the snippet that does not follow in the source; None = all do."""
    at, lines = 0, [line.strip() for line in source.splitlines()]
    for line in (line.strip() for line in code.splitlines()):
        if line in ("", "..."):
            continue
        if line not in lines[at:]:
            return line
        at = lines.index(line, at) + 1
    return None


def problems_of(root, path, methods):
    name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
    is_document = path.suffix == ".md"

    def where(position):
        return f"{name}:{text.count(chr(10), 0, position) + 1}"

    for match in CITED.finditer(text):
        numbers = re.findall(NUMBER, match["numbers"] or "")
        if not numbers and not is_document:
            yield f"{where(match.start())}: METHODS.md without the number of a section"
        for number in numbers:
            if number not in methods:
                yield f"{where(match.start())}: {METHODS} has no section {number}"
    for match in HEADING_CITED.finditer(text):
        document = root / match["file"]
        if not document.is_file():
            yield f"{where(match.start())}: no document {match['file']}"
        elif match["heading"] not in headings(document.read_text(encoding="utf-8")):
            yield f"{where(match.start())}: {match['file']} has no heading \"{match['heading']}\""
    if not is_document:
        return
    for match in SNIPPET.finditer(text):
        source = root / match["file"]
        line = missing_line(match["code"], source.read_text(encoding="utf-8")) if source.is_file() else "(the file)"
        if line:
            yield f"{where(match.start())}: not in {match['file']} any more: {line}"


def problems(root):
    methods = root / METHODS
    if not methods.is_file():
        return [f"there is no {METHODS}"]
    known = sections(methods.read_text(encoding="utf-8"))
    files = [path for path in root.glob("*") if path.is_file()]
    files += [path for top in TOPS for path in (root / top).rglob("*") if path.is_file()]
    own = pathlib.Path(__file__).resolve()  # its text has examples
    return [problem for path in sorted(files) if path.suffix in SUFFIXES and path.resolve() != own for problem in problems_of(root, path, known)]


# file, its text, and what the one problem found must say ("" = fine)
CASES = [
    ("core/a.h", "// The rule (METHODS.md 1.4), and METHODS.md 1, 2 and 1.4\n", ""),
    ("core/b.h", "// METHODS.md\n// 1.4\n", ""),
    ("core/c.h", "\n// METHODS.md 1.5\n", "core/c.h:2: core/METHODS.md has no section 1.5"),
    ("tests/d.py", "# METHODS.md 1 to 3\n", "no section 3"),
    ("gpu/e.cu", "// see METHODS.md\n", "without the number"),
    ("README.md", "The mathematics are in core/METHODS.md.\n", ""),
    ("core/f.h", '// core/METHODS.md, "1.4 Losses"\n', ""),
    ("core/g.h", '// METHODS.md 1; core/METHODS.md, "Losses"\n', 'has no heading "Losses"'),
    ("CMakeLists.txt", '# gpu/README.md, "Build"\n', "no document gpu/README.md"),
    ("core/h.md", "```cpp core/code.h\nint a;\n...\n  int c;\n```\n", ""),
    ("core/i.md", "\n```cpp core/code.h\nint c;\nint a;\n```\n", "core/i.md:2: not in core/code.h any more: int a;"),
    ("core/j.md", "```cpp core/gone.h\nint a;\n```\n", "not in core/gone.h any more"),
]


def self_test():
    wrong = []
    for name, text, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "core").mkdir()
            (root / "core" / "code.h").write_text("int a;\nint b;\nint c;\n", encoding="utf-8")
            (root / METHODS).write_text("## 1 One\n\n### 1.4 Losses\n\n## 2 Two\n\n## Free: 3\n", encoding="utf-8")
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
            found = problems(root)
        if len(found) != (1 if expected else 0) or (expected and expected not in found[0]):
            wrong.append(f"{name}: expected {expected or 'nothing'!r}, found {found}")
    with tempfile.TemporaryDirectory() as folder:
        if "there is no" not in str(problems(pathlib.Path(folder))):
            wrong.append("a tree without core/METHODS.md passes")
    return wrong


if __name__ == "__main__":
    check.main(__doc__, problems, self_test, "every citation is there")
