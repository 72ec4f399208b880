"""Large stores, made by SQL from one short run: thousands of runs, and a run of millions of steps."""
import contextlib
import sqlite3


def copy_run(db, changes):
    """The beginning of SQL that copies runs, with other expressions for some columns."""
    columns = [row[1] for row in db.execute("PRAGMA table_info(runs)") if row[1] != "run"]
    picked = [changes.get(column, column) for column in columns]
    return f"INSERT INTO runs({', '.join(columns)}) SELECT {', '.join(picked)} FROM runs"


def many_runs(store, count):
    """r-000002, r-000003, ...: copies of the first run of the store until there are so many, each older than the one before."""
    with contextlib.closing(sqlite3.connect(store)) as db, db:
        insert = copy_run(db, {"id": "printf('r-%06d', n)", "name": "printf('run %d of the long list', n)", "created": "created - n * 60", "status": "'finished'",
                               "val_accuracy": "(n * 7919 % 1000) / 1000.0", "step": "n * 13 % 6000", "tags": "'[\"t' || (n % 10) || '\"]'"})
        db.execute(f"WITH RECURSIVE count(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM count WHERE n < {count}) {insert}, count WHERE run = 1")


def long_run(store, points):
    """r-long01, a run of so many steps. Returns the keys of the run and of its loss."""
    with contextlib.closing(sqlite3.connect(store)) as db:
        db.execute("PRAGMA synchronous = OFF")
        insert = copy_run(db, {"id": "'r-long01'", "name": "'a long run'", "status": "'finished'", "step": str(points), "total_steps": str(points), "created": "created + 60"})
        run = db.execute(f"{insert} WHERE run = 1").lastrowid
        for table, columns in (("ranks", "layer, bond, step, rank"), ("memory", "purpose, step, bytes"), ("events", "seq, step, kind, time, body")):
            db.execute(f"INSERT INTO {table}(run, {columns}) SELECT {run}, {columns} FROM {table} WHERE run = 1")
        loss = db.execute("SELECT metric FROM metric_names WHERE name = 'train_loss'").fetchone()[0]
        count = f"WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < {points})"
        db.execute(f"{count} INSERT INTO metrics SELECT {run}, {loss}, n, 2.0 / (1 + n * 1e-6) + (n * 2654435761 % 4294967296) / 8e9 FROM count")
        db.execute(f"{count} INSERT INTO steps SELECT {run}, n, 1.7e9 + n * 0.01 FROM count")
        db.commit()
    return run, loss
