"""What each kernel of a training step may ask of a GPU, counted on the GPU in software: sectors of global memory over the fewest that hold the
bytes, instructions of a thread for each 4 bytes of those, passes over shared memory an access, KiB of shared memory a block, launches a step.

Counts are exact, so a budget is what was measured and a little more, for another version of the compiler. A kernel above its budget got worse; one far below
it (under 0.6 of it) gets a smaller budget. A kernel that a step begins to use needs a line here.
"""
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = os.environ.get("COMERA_BIN", "build/bin/comera_in_software")
STEPS = 4  # of `bench step` with one measured step
SMALL = 20_000  # instructions of warps in all steps: a kernel below is not judged

# sectors / fewest, instructions / 4 bytes, passes / access, KiB, launches a step
BUDGETS = {
    "Adam<float>": (1.2, 15.2, 1.2, 0.2, 1),
    "Elements<FillMat<float>>": (1.2, 58, 0, 0, 2.25),
    "Elements<PermuteRuns<float>>": (1.5, 74, 0, 0, 4),
    "Elements<RowKeys<float>>": (1.2, 74, 0, 0, 4),
    "Elements<WaistFold<1>>": (1.2, 6.2, 0, 0, 6),
    "Elements<WaistFold<3>>": (1.7, 27, 0, 0, 6),
    "FirstTokensBackward<float>": (1.2, 60, 1.2, 0.1, 1),
    "FoldColumns<float,2>": (1.2, 330, 1.2, 1.1, 13),
    "FoldRuns<float>": (1.2, 62, 0, 0, 4),
    "GatherRows<float>": (1.2, 10, 0, 0, 2),
    "MaskGradientList<float>": (1.3, 16, 1.2, 1.1, 1),
    "MaskList<float>": (1.4, 25, 0, 0, 1),
    "NormBackward<float>": (1.2, 15.2, 1.2, 0.2, 1),
    "NormForward<float>": (1.2, 9.5, 0, 0.2, 8),
    "RankGradient<float>": (1.2, 25, 0, 0, 1),
    "RankObjective<float>": (4.9, 33, 1.3, 4.7, 2),
    "SmallCopies<float>": (1.4, 38, 0, 0, 3),
    "SmallProducts<float>": (1.9, 52, 1.7, 23.6, 7),
    "StripBackwardKV<32>": (1.5, 71, 1.4, 28.7, 6),
    "StripBackwardQ<32>": (1.4, 65, 1.3, 28.4, 6),
    "StripForward<32>": (1.2, 63, 1.4, 28.4, 6),
    "SumsOfRuns<float,RowsOfTokens<float>>": (1.2, 11.9, 0, 0, 2),
    "SumsOfRuns<float,TtmGradient<float>>": (1.2, 46, 2, 23.6, 2),
    "ThinNormBackward<32,32>": (1.2, 22.6, 1.9, 40.5, 6),
    "ThinNormBackward<96,32>": (1.2, 22.6, 1.6, 58.5, 6),
    "ThinNormForward<32>": (1.2, 27.3, 1.6, 40.5, 18),
    "TtmLookup<float>": (1.3, 13.3, 0, 0, 2),
    "WaistBackwardSides<32,false,Gelu>": (1.2, 27, 1.6, 28.4, 6),
    "WaistBackwardTokens<32,false,Gelu>": (1.2, 30, 1.5, 28.4, 6),
    "WaistForward<32,false,Gelu>": (1.2, 34, 1.7, 28.4, 6),
    "DeviceRadixSortSingleTileKernel": (4.7, 713, 1.2, 34.8, 4),
}


def counts(*sets):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts.tsv"
        subprocess.run([BIN, "bench", "step", "encoder6-mnli", "--steps", "1", "--warmup", "0", "--quiet", "--set", "train.device=cuda:0", "--set", "train.batch=1",
                        "--set", "train.matmul=tf32", *[x for s in sets for x in ("--set", s)]], check=True, stdout=subprocess.DEVNULL,
                       env=os.environ | {"COMERA_PTX_COUNTS": str(file)})
        names, *rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    out = {}
    for row in rows:
        kernel = re.sub(r"(void |comera::gpu::|comera::|run_body<|\(.*)", "", row[-1]).removesuffix(">").replace(" ", "")
        if kernel.startswith("cub::"):  # CUDA's own sort
            kernel = re.search(r"\w+Kernel", kernel).group()
        assert kernel not in out, f"two kernels are called {kernel}"
        out[kernel] = dict(zip(names[:-1], map(int, row[:-1])))
    return out


def asked(c):
    least = max(1, c["least"])
    return (c["sectors"] / least, 32 * c["instructions"] / (8 * least), c["passes"] / max(1, c["accesses"]), c["shared"] / 1024, c["launches"] / STEPS)


class KernelBudgets(unittest.TestCase):
    def test_of_six_encoders(self):
        found = {kernel: asked(c) for kernel, c in counts().items() if c["instructions"] >= SMALL}
        table = "".join(f'    "{k}": ({", ".join(f"{x:.3g}" for x in v)}),\n' for k, v in sorted(found.items()))
        for kernel, values in found.items():
            self.assertIn(kernel, BUDGETS, "a kernel without a budget; measured:\n" + table)
            for what, value, budget in zip(("sectors", "instructions", "passes", "shared memory", "launches"), values, BUDGETS[kernel]):
                with self.subTest(kernel=kernel, what=what):
                    self.assertLessEqual(value, budget)
                    if budget >= 1:
                        self.assertGreaterEqual(value, budget * 0.6, "a smaller budget would do")
        self.assertEqual(set(BUDGETS) - set(found), set(), "kernels that no step uses any more")


if __name__ == "__main__":
    unittest.main()
