"""The command line that the checks of the repository share."""
import argparse
import pathlib
import sys


def main(doc, find, plant, clean):
    """`find(root)` and `plant()` return problems, one line each: of a tree, and of planted cases that were not found. Exits with 1 if any."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    found = plant() if args.self_test else find(args.root)
    print("\n".join(found) or ("each planted case is found" if args.self_test else clean))
    sys.exit(1 if found else 0)
