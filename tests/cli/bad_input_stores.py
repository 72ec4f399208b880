"""Databases that are damaged, locked, newer or not ours: exit code, the one-line error with a hint, the same as JSON, and what is in
them intact."""
import json
import os
import shutil
import sqlite3
import struct
import tempfile
import unittest
from pathlib import Path

from bad_input_support import Mounted, NOT_FOUND, STORAGE, USAGE, WithStoredRun
from support import tiny_encoder


class Database(WithStoredRun):
    def copy(self, name):
        path = self.folder / name / "runs.db"
        path.parent.mkdir()
        db = sqlite3.connect(self.store)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        shutil.copy(self.store, path)
        return path

    def all_verbs_fail(self, store, code=STORAGE, **options):
        before = store.read_bytes()
        for verb in (["runs", "list"], ["runs", "show", "keep"], ["query", "SELECT * FROM runs"], ["eval", "keep"], ["runs", "tag", "keep", "x"], ["train", "demo", "--steps", 3],
                     ["resume", "keep"], ["reproduce", "keep"]):
            with self.subTest(" ".join(map(str, verb))):
                self.fails(code, *verb, "--store", store, both=verb[0] in ("runs", "train"), **options)
        self.assertEqual(store.read_bytes(), before)

    def test_none(self):
        store = self.folder / "nothing" / "runs.db"
        self.fails(NOT_FOUND, "runs", "list", "--store", store)
        self.assertFalse(store.parent.exists())

    def test_garbage(self):
        store = self.folder / "garbage.db"
        store.write_bytes(os.urandom(8192))
        self.all_verbs_fail(store)

    def test_a_folder(self):
        self.fails(STORAGE, "runs", "list", "--store", self.folder, match="folder")
        self.fails(STORAGE, "train", "demo", "--steps", 3, "--store", self.folder, match="folder")

    def test_damaged_pages(self):
        store = self.copy("pages")
        data = bytearray(store.read_bytes())
        page = struct.unpack(">H", data[16:18])[0]
        for i in range(page, len(data)):  # all but the first page, which holds the schema
            data[i] = (i * 37) % 256
        store.write_bytes(data)
        self.all_verbs_fail(store)

    def test_another_programs_database(self):
        store = self.folder / "other.db"
        db = sqlite3.connect(store)
        db.execute("CREATE TABLE runs(x)")
        db.commit()
        db.close()
        self.fails(STORAGE, "runs", "list", "--store", store)
        self.fails(STORAGE, "train", "demo", "--steps", 3, "--store", store)

    def test_newer(self):
        store = self.copy("newer")
        db = sqlite3.connect(store)
        db.execute("PRAGMA user_version = 99")
        db.close()
        before = store.read_bytes()
        for verb in (["runs", "list"], ["runs", "show", "keep"], ["get", "keep"], ["ranks", "keep"], ["query", "SELECT name FROM runs"], ["eval", "keep"],
                     ["export", "keep", "--to", "csv"], ["reproduce", "keep"]):
            with self.subTest(" ".join(verb)):
                result = self.ok(*verb, "--store", store)
                self.assertRegex(result.err, r"newer version.*schema 99, this program knows \d+")
                self.assertEqual(result.out, self.ok(*verb).out)
        for verb in (["train", "demo", "--steps", 3], ["runs", "tag", "keep", "x"], ["resume", "keep"], ["import", self.store]):
            with self.subTest(" ".join(map(str, verb))):
                self.fails(STORAGE, *verb, "--store", store, match="newer version.*\n.*99")
        self.assertEqual(store.read_bytes(), before)

    def test_newer_without_what_is_read(self):
        store = self.copy("newer-less")
        db = sqlite3.connect(store)
        db.execute("ALTER TABLE events RENAME COLUMN body TO text")
        db.execute("PRAGMA user_version = 99")
        db.close()
        for verb in (["runs", "list"], ["eval", "keep"]):
            self.fails(STORAGE, *verb, "--store", store, match=r"events\.body")
        self.assertIn("keep", self.ok("query", "SELECT name FROM runs", "--store", store).out)

    def test_salvage(self):
        store = self.copy("salvage")
        whole = self.ok_json("runs", "salvage", store)
        self.assertEqual((whole["copy"], whole["gaps"]), (f"{store}.salvaged.db", []))
        self.assertEqual([run["name"] for run in self.ok_json("runs", "list", "--store", whole["copy"])["runs"]],
                         [run["name"] for run in self.ok_json("runs", "list")["runs"]])
        data = bytearray(store.read_bytes())
        page = struct.unpack(">H", data[16:18])[0]
        hurt = next(at for at in range(len(data) // page // 2 * page, len(data), page) if data[at] == 10)  # rows of a table in the order of its key
        data[hurt:hurt + page] = b"\xff" * page
        store.write_bytes(data)
        result = self.ok("runs", "salvage", store, "-o", self.folder / "saved.db")
        self.assertEqual(result.out.strip(), str(self.folder / "saved.db"))
        self.assertRegex(result.err, "rows could be read, others not")
        self.assertEqual(store.read_bytes(), bytes(data))
        self.fails(USAGE, "runs", "salvage", store, "-o", self.folder / "saved.db", match="there already")
        self.fails(NOT_FOUND, "runs", "salvage", self.folder / "none.db")
        garbage = self.folder / "no-store"
        garbage.write_bytes(os.urandom(8192))
        self.fails(STORAGE, "runs", "salvage", garbage)

    def test_locked(self):
        store = self.copy("locked")
        db = sqlite3.connect(store)
        try:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
            db.execute("UPDATE runs SET notes = 'x'")
            self.fails(STORAGE, "runs", "tag", "keep", "x", "--store", store, match=["locked", "close it, or try again"], both=False)  # waits five seconds first
            result = self.comera("train", "demo", "--steps", 3, "--store", store, "--quiet", "--json")  # and so does this one
            self.assertEqual((result.code, result.err), (STORAGE, ""), result)
            error = result.json()["error"]
            self.assertEqual((error["code"], "close it, or try again" in error["hint"]), (STORAGE, True), error)
            self.assertIn("locked", error["message"] + error["why"])
            db.rollback()
        finally:
            db.close()
        self.assertEqual([run["tags"] for run in self.ok_json("runs", "list", "--store", store)["runs"]], [[]])

    @unittest.skipUnless(os.geteuid() == 0, "mounting a file system needs root")
    def test_read_only(self):
        store = self.copy("readonly")
        with Mounted(self, store.parent, "1m") as mounted:
            store.write_bytes(self.store.read_bytes())
            mounted.remount("ro")
            for verb in (["train", "demo", "--steps", 3], ["runs", "tag", "keep", "x"], ["resume", "keep"], ["import", self.store]):
                self.fails(STORAGE, *verb, "--store", store, match=["read-?only", str(store)])
            self.assertEqual(store.read_bytes(), self.store.read_bytes())
            self.assertEqual(len(self.ok_json("runs", "list", "--store", store)["runs"]), 1)
            self.ok("eval", "keep", "--store", store)

    @unittest.skipUnless(os.geteuid() == 0, "mounting a file system needs root")
    def test_a_run_in_a_read_only_folder_is_reproduced(self):
        place = self.folder / "published"
        with Mounted(self, place, "8m") as mounted:
            run = self.ok_json("train", tiny_encoder(self.folder, name="published-run"), "--quiet", "--store", place / "runs.db")["run"]
            mounted.remount("ro")
            before = set(Path(tempfile.gettempdir()).iterdir())
            self.assertTrue(self.ok_json("reproduce", run, "--store", place / "runs.db")["weights_compared"])
            self.assertFalse([path for path in set(Path(tempfile.gettempdir()).iterdir()) - before if ".again-" in path.name])

    def test_a_store_in_a_folder_that_cannot_be_made(self):
        file = self.write("a-file", "x")
        self.fails(STORAGE, "train", "demo", "--steps", 3, "--store", file / "runs.db")


if __name__ == "__main__":
    unittest.main()
