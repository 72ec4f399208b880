"""What a verb prints has come out, or it ends with the storage error: a document that was cut off is no result."""
import unittest

from support import BIN, CliTest, QUICK, environment
import subprocess

STORAGE = 7


class FullStdout(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.train = ["train", "demo", "--steps", 12, "--quiet", *QUICK]
        result = cls.comera(*cls.train, "--name", "keep")
        assert result.code == 0, result

    def full(self, *args):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN, *map(str, args)], env=environment(self.folder), cwd=self.folder, text=True, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=300)
        return done.returncode, done.stderr

    def test_every_verb_that_prints(self):
        verbs = [["runs", "list"], ["runs", "show", "keep"], ["runs", "diff", "keep", "keep", "--all"], ["get", "keep"], ["get", "keep", "--metric", "train_loss"], ["ranks", "keep"],
                 ["query", "SELECT name FROM runs"], ["plan", "demo"], ["config", "show", "demo"], ["config", "validate", "demo"], ["data", "list"], ["doctor"],
                 ["eval", "keep"], ["reproduce", "keep"], ["export", "keep", "--to", "csv"], ["export", "keep", "--to", "svg", "-o", "-"], ["predict", "keep"], ["completion", "bash"],
                 ["duel", "demo", "--methods", "adamw", "--steps", 2, *QUICK], ["runs", "salvage", self.store], ["runs", "rename", "keep", "keep"]]
        for verb in verbs:
            for form in ([], ["--plain"], ["--json"]):
                with self.subTest(" ".join(map(str, verb + form))):
                    wanted = self.comera(*verb, *form)
                    if wanted.code != 0 or not wanted.out:
                        continue  # it has no such form, or says it on stderr
                    self.printed.add(verb[0])
                    code, err = self.full(*verb, *form)
                    self.assertEqual(code, STORAGE, err)
                    self.assertRegex(err, r"error: cannot write (to stdout|the export)\n  why: .*(No space left|full).*\n  try: free some .*, or choose another")
        self.assertEqual(self.printed, {verb[0] for verb in verbs}, "one of them prints nothing: the test shows too little")

    printed = set()

    def test_help_and_version(self):
        for verb in (["--help"], ["help", "train"], ["--version"]):
            self.assertEqual(self.full(*verb)[0], STORAGE, verb)

    def test_training(self):
        for form in ([], ["--json"], ["--events", "-"]):
            code, err = self.full(*self.train, "--name", f"full{len(form)}", *form)
            self.assertEqual(code, STORAGE, err)
            self.assertIn("cannot write", err)
        self.assertEqual({run["status"] for run in self.ok_json("runs", "list")["runs"]}, {"finished"}, "the run itself is whole")

    def test_events_that_do_not_come_out(self):
        result = self.comera(*self.train, "--name", "events", "--events", "/dev/full")
        self.assertEqual(result.code, STORAGE, result)
        self.assertIn("error: cannot write /dev/full", result.err)

    def test_an_error_that_stdout_does_not_take_is_on_stderr(self):
        code, err = self.full("runs", "show", "nobody", "--json")
        self.assertEqual(code, 8, err)
        self.check_error_text(err, err)

    def test_what_nobody_reads_on_stdout_is_no_matter_of_the_exit_code(self):
        self.assertEqual(self.comera("runs", "show", "nobody").code, 8)
        self.assertEqual(self.full("runs", "show", "nobody")[0], 8)


if __name__ == "__main__":
    unittest.main()
