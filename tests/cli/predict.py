"""`comera predict`: one line for each row of the data, whatever their labels are; `comera eval` tells of rows that it leaves out."""
import json
import unittest

from support import CliTest, tiny_encoder


class Predict(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        config = tiny_encoder(cls.folder)
        trained = cls.comera("train", config, "--steps", 3, "--name", "tiny", "--quiet", "--set", "train.threads=1")
        assert trained.code == 0, trained

    def rows(self, data, **options):
        return [json.loads(line) for line in self.ok("predict", "tiny", "--data", data, **options).out.splitlines()]

    def test_a_row_without_a_text_has_a_line(self):
        data = self.folder / "gaps.csv"
        data.write_text('premise,hypothesis\na,b\n,b\na,\n"",""\nc,d\n')
        alone = self.folder / "alone.csv"
        alone.write_text("premise,hypothesis\nc,d\n")
        rows = self.rows(data)
        self.assertEqual([row["row"] for row in rows], [0, 1, 2, 3, 4])
        for here, there in zip(rows[4]["logits"], self.rows(alone)[0]["logits"]):
            self.assertAlmostEqual(here, there, delta=1e-5)

    def test_labels_are_not_read(self):
        for name, text in {"empty.csv": "premise,hypothesis,label\na,b,\nc,d,\n", "other.csv": "premise,hypothesis,label\na,b,good\nc,d,?\n",
                           "none.tsv": "premise\thypothesis\tgold_label\na\tb\t-\nc\td\tneutral\n",
                           "null.jsonl": '{"premise": "a", "hypothesis": "b", "label": null}\n{"premise": "c", "hypothesis": "d"}\n'}.items():
            data = self.folder / name
            data.write_text(text)
            self.assertEqual([row["row"] for row in self.rows(data)], [0, 1], name)

    def test_a_csv_comes_in_from_stdin(self):
        self.assertEqual(len(self.rows("-", given='premise,hypothesis\n"a, or b",c\n')), 1)
        self.assertEqual(len(self.rows("-", given="premise;hypothesis\na, or b;c\n")), 1)
        self.assertEqual(len(self.rows("-", given="premise\thypothesis\na, or b\tc\n")), 1)

    def test_eval_tells_of_rows_that_it_leaves_out(self):
        data = self.folder / "some.csv"
        data.write_text("premise,hypothesis,label\na,b,0\n,b,1\nc,d,1\n")
        document = self.ok_json("eval", "tiny", "--data", data)
        self.assertEqual((document["examples"], document["left_out"]), (2, 1))
        self.assertRegex(self.ok("eval", "tiny", "--data", data).out, r"rows left out, without a text or a label +1")


if __name__ == "__main__":
    unittest.main()
