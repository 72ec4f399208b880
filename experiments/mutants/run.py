#!/usr/bin/env python3
"""Whether the tests notice small faults: puts those of list.py into a copy of the repository, all of them behind one switch, builds
the tests there once, and runs for each fault the test that names what breaks.

    experiments/mutants/run.py [ID...] [--work FOLDER] [--jobs N] [--find] [--check]      a table in Markdown on stdout

ID       only these, for example session.12, or areas: session
--work   where the copy lies and is built (build/mutants); a second run builds what changed
--jobs   how many tests run at once (1)
--find   where the named test does not notice the fault, the whole test program runs, and the first test that fails is printed
--check  only whether each place is found exactly once; builds nothing

Mutant N is on where the environment has MUTANT=N. The named tests are run without it first: one that fails then says nothing.
A test that crashes with its mutant, or takes a minute more than five times as long as without it, has noticed it."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from list import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = """#pragma once
#include <cstdlib>
namespace comera {
inline const int chosen_mutant = [] { const char* text = std::getenv("MUTANT"); return text ? std::atoi(text) : 0; }();
inline bool mutant(int number) { return chosen_mutant == number; }
}  // namespace comera
"""
REVIEW_ROWS = range(1, 20)


def number(mutant):
    return MUTANTS.index(mutant) + 1


def mutated():
    """File -> its text with all mutants; and what is wrong with the list."""
    texts, problems, places = {}, [], {}
    for mutant in MUTANTS:
        text = texts.setdefault(mutant.file, (ROOT / mutant.file).read_text(encoding="utf-8"))
        count = text.count(mutant.before)
        if count != 1:
            problems.append(f"{mutant.id}: `{mutant.before}` is in {mutant.file} {count} times")
        elif not re.search(r"\bMUT\b", mutant.after):
            problems.append(f"{mutant.id}: no MUT in what replaces it")
        else:
            places.setdefault(mutant.file, []).append((text.index(mutant.before), mutant))
    ids = [mutant.id for mutant in MUTANTS]
    problems += [f"{name}: twice" for name in sorted({name for name in ids if ids.count(name) > 1})]
    problems += [f"row {row} of the first check has no mutant" for row in REVIEW_ROWS if row not in {mutant.row for mutant in MUTANTS}]
    for file, found in places.items():
        text, end = texts[file], len(texts[file])
        for begin, mutant in sorted(found, key=lambda place: -place[0]):
            if begin + len(mutant.before) > end:
                problems.append(f"{mutant.id}: lies over another mutant")
            text = text[:begin] + re.sub(r"\bMUT\b", f"::comera::mutant({number(mutant)})", mutant.after) + text[begin + len(mutant.before):]
            end = begin
        include = '#include "core/base/mutant.h"\n'
        texts[file] = text.replace("#pragma once\n", "#pragma once\n" + include, 1) if file.endswith(".h") else include + text
    return texts, problems


def write(path, data):
    """Unless it is there as it should be: an untouched file is not built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)
        return True
    return False


def copy(work, texts):
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    changed = 0
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            data = texts[name].encode() if name in texts else (ROOT / name).read_bytes()
            changed += write(work / name, data)
            shutil.copymode(ROOT / name, work / name)
    changed += write(work / "core/base/mutant.h", HEADER.encode())
    packages = work / "build" / "pypi"  # what ./run.sh downloaded
    if not packages.exists():
        packages.parent.mkdir(parents=True, exist_ok=True)
        packages.symlink_to(ROOT / "build" / "pypi")
    return changed


def build(work, mutants):
    programs = {mutant.killed_by.split()[0] for mutant in mutants if mutant.killed_by}
    targets = sorted({"comera" if program.startswith("cli/") else "test_" + program for program in programs})
    # Without CUDA: the switch is a host function, and some faults are in code that both devices compile.
    subprocess.run(["cmake/build.sh", "release", *targets], cwd=work, check=True, stdout=sys.stderr, env=os.environ | {"COMERA_CUDA": "off"})


def run_test(work, program, test, mutant, seconds, whole=False):
    """The first test that fails; "" when all that ran passed; None when none ran."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COMERA_")}
    env["MUTANT"] = str(mutant)
    if program.startswith("cli/"):
        env["COMERA_BIN"] = str(work / "build/bin/comera")
        command = [sys.executable, "-B", "tests/" + program] + ([] if whole else [test]) + ["--failfast"]
        failed, ran = r"^(?:FAIL|ERROR): (\S+)", r"^Ran [1-9]"
    else:
        command = [f"build/bin/test_{program}", "--gtest_filter=" + ("*" if whole else test), "--gtest_fail_fast", "--gtest_color=no"]
        failed, ran = r"^\[  FAILED  \] ([\w./]+)", r"^\[ RUN "
    process = subprocess.Popen(command, cwd=work, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True, errors="replace")
    try:
        output = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output = process.communicate()[0]
        return last_begun(output, test) + " (does not end)"
    if process.returncode == 0:
        return "" if re.search(ran, output, re.MULTILINE) and "SKIPPED" not in output and "skipped=" not in output else None
    found = re.search(failed, output, re.MULTILINE)
    return found.group(1).rstrip(",") if found else last_begun(output, test) + " (ends the program)"


def last_begun(output, test):
    begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    return begun[-1] if begun else test


def well(work, test):
    """How long the test takes without a mutant, and why that says nothing: "" when it passes."""
    begin = time.time()
    found = run_test(work, *test.split(), 0, 900)
    problem = "" if found == "" else "did not run, or was skipped" if found is None else "fails without a mutant: " + found
    return time.time() - begin, problem


def look(work, mutant, find, usual):
    begin = time.time()
    found, program = "", mutant.killed_by.split()[0] if mutant.killed_by else ""
    if program:
        program, test = mutant.killed_by.split()
        found = run_test(work, program, test, number(mutant), 60 + 5 * usual)
        if not found and find:
            found = run_test(work, program, test, number(mutant), 900, whole=True)
            print(f"{mutant.id}: not by {test}, but by {found or 'none'}", file=sys.stderr)
    print(f"{mutant.id}\t{found or 'SURVIVED'}\t{time.time() - begin:.1f} s", file=sys.stderr, flush=True)
    return f"{program.replace('cli/', 'tests/cli/')} {found}" if found else ""


def tables(mutants, killers):
    print("| mutant | file | fault | first check | killed by |\n|---|---|---|---|---|")
    for mutant in mutants:
        killer = killers[mutant.id] or "**none**" + (f": {mutant.why}" if mutant.why else "")
        print(f"| {mutant.id} | {mutant.file} | {mutant.words} | {f'row {mutant.row}' if mutant.row in REVIEW_ROWS else 'remark' if mutant.row else ''} | {killer} |")
    print("\n| area | mutants | killed | equivalent | survived |\n|---|---|---|---|---|")
    areas = list(dict.fromkeys(mutant.id.split(".")[0] for mutant in mutants))
    groups = [(area, [mutant for mutant in mutants if mutant.id.split(".")[0] == area]) for area in areas]
    groups += [("of the first check", [mutant for mutant in mutants if mutant.row]), ("others", [mutant for mutant in mutants if not mutant.row])]
    for name, group in groups + [("all", mutants)]:
        left = [mutant for mutant in group if not killers[mutant.id]]
        equivalent = [mutant.id for mutant in left if mutant.why.startswith("equivalent")]
        survived = [mutant.id for mutant in left if mutant.id not in equivalent]
        print(f"| {name} | {len(group)} | {len(group) - len(left)} | {len(equivalent)} | {', '.join(survived) or 'none'} |")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("ids", nargs="*", metavar="ID")
    options.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "mutants")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--find", action="store_true")
    options.add_argument("--check", action="store_true")
    given = options.parse_args()
    mutants = [mutant for mutant in MUTANTS if not given.ids or mutant.id in given.ids or mutant.id.split(".")[0] in given.ids]
    texts, problems = mutated()
    if problems:
        sys.exit("\n".join(problems))
    if given.check:
        print(f"{len(MUTANTS)} mutants, each place is there once")
        return 0
    work = given.work.resolve()
    print(f"{copy(work, texts)} files copied anew", file=sys.stderr)
    build(work, mutants)
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        tests = sorted({mutant.killed_by for mutant in mutants if mutant.killed_by})
        usual = dict(zip(tests, pool.map(lambda test: well(work, test), tests)))
        if bad := [f"{test}: {problem}" for test, (_, problem) in usual.items() if problem]:
            sys.exit("\n".join(bad))
        found = pool.map(lambda mutant: look(work, mutant, given.find, usual.get(mutant.killed_by, (0, ""))[0]), mutants)
        killers = dict(zip([mutant.id for mutant in mutants], found))
    tables(mutants, killers)
    return 0 if all(killers[mutant.id] or mutant.why for mutant in mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
