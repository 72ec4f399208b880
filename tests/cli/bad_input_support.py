"""What the tests of bad input share: codes of exit, a stored run that must stay as it is, a disk that is full."""
import json
import subprocess

from support import CliTest, QUICK, sha256

USAGE, CONFIG, DEVICE, MEMORY, DIVERGED, STORAGE, NOT_FOUND = 2, 3, 4, 5, 6, 7, 8


class WithStoredRun(CliTest):
    """A finished run `keep` is there before each test and must be the same after it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = cls.comera("train", "demo", "--steps", 40, "--name", "keep", "--quiet", *QUICK)
        assert result.code == 0, result
        cls.before = cls.state_of(cls.store)
        assert [run["name"] for run in cls.before[0]] == ["keep"], cls.before

    @classmethod
    def state_of(cls, store):
        runs = json.loads(cls.comera("runs", "list", "--all", "--json", "--store", store).out)["runs"]
        show = json.loads(cls.comera("runs", "show", "keep", "--json", "--store", store).out)
        return runs, show, [sha256(row["path"]) for row in show["checkpoints"]]

    def tearDown(self):
        self.assertEqual(self.state_of(self.store), self.before, "stored runs have changed")
        self.assertEqual([path.name for path in self.folder.iterdir() if ".import" in path.name or ".fork-" in path.name], [], "an unfinished file was left")

    def checkpoint(self):
        return self.before[1]["checkpoints"][-1]["path"]

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


class Mounted:
    """A small file system in memory."""

    def __init__(self, test, place, size):
        self.test, self.place = test, place
        place.mkdir(parents=True, exist_ok=True)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "comera-test", place], capture_output=True, text=True)
        if made.returncode != 0:
            test.skipTest(f"cannot mount a tmpfs here: {made.stderr.strip()}")

    def remount(self, how):
        subprocess.run(["mount", "-o", f"remount,{how}", self.place], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.place], check=True)
