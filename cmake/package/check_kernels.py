#!/usr/bin/env python3
"""Whether kernels that were joined to one object file (cmake/cpu_levels.cmake) stay by themselves: the rest of the program sees
one function of them, and none of their code runs unless it is called.

    check_kernels.py NM READELF FILE FUNCTION"""
import subprocess
import sys


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    nm, readelf, file, function = sys.argv[1:]
    seen = [line.split()[-1] for line in lines(nm, "--defined-only", "--extern-only", file)]
    runs_at_start = [line for line in lines(readelf, "--section-headers", "--wide", file) if ".init_array" in line or ".ctors" in line]
    if seen != [function]:
        print(f"{file}: others see {', '.join(seen[:5])} ({len(seen)} names), not {function} alone", file=sys.stderr)
    if runs_at_start:
        print(f"{file}: some of it runs when the program starts, on any processor: {runs_at_start[0].strip()}", file=sys.stderr)
    return 1 if seen != [function] or runs_at_start else 0


if __name__ == "__main__":
    sys.exit(main())
