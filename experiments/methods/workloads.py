"""The newer workloads under several methods, three seeds each: validation score, size, peak memory planned and taken, step time.

    ./run.sh data get flights fashion-mnist code-python
    python3 experiments/methods/workloads.py run   --store workloads.db --set clicks [--methods NAME...] [--seeds 1 2 3]
    python3 experiments/methods/workloads.py table --store workloads.db --set clicks > table.md

`run` leaves out what is there already (results lie beside the store), so it may be stopped and started again. Settings are those of the
presets; a row is a method with settings of its own; --with PATH=VALUE ... are set for all rows (a store of its own for each choice).
"""
import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

COMERA = Path(__file__).resolve().parents[2] / "build" / "bin" / "comera"
ROWS = {  # preset, score, shown as; name: method and settings
    "clicks": ("dlrm-flights", "val_auc", "Validation AUC", {
        "dense AdamW, gradients of all rows": ("adamw", ["method.table_gradients=dense", "train.epochs=1", "train.lr=0.008"]),
        "dense AdamW, gradients of rows": ("adamw", ["train.epochs=1", "train.lr=0.008"]),
        "dense 8-bit Adam": ("adam8bit", ["train.epochs=1", "train.lr=0.004"]),
        "dense COAP": ("coap", ["train.epochs=1", "train.lr=0.008", "method.coap.rank=32"]),
        "dense Adagrad": ("adagrad", ["train.epochs=1", "train.lr=0.08", "method.adagrad.rowwise=false"]),
        "dense row-wise Adagrad": ("adagrad", ["train.epochs=1", "train.lr=0.08"]),
        "CoMERA": ("", []),
        "CoMERA, fixed ranks": ("", ["train.lr=0.008", "train.lr_core=0.01", "method.comera.train_ranks=false"]),
        "CoMERA, tables of 200 rows or more": ("", ["train.lr=0.008", "train.lr_core=0.01", "model.dlrm.min_tt_rows=200", "model.tt.embedding.cores=3",
                                                    "model.tt.embedding.rank=11"]),
        "CoMERA, tables dense": ("", ["train.lr=0.008", "train.lr_core=0.01", "model.tt.embedding.tensorise=false", "model.tt.ffn_in.tensorise=true", "train.epochs=1"]),
    }),
    "images": ("cnn-fashion", "val_accuracy", "Validation accuracy", {
        "dense AdamW": ("", []),
        "CoMERA": ("comera", []),
        "CoMERA, rank 16": ("comera", ["model.tt.convolution.rank=16"]),
        "CoMERA, rank 24": ("comera", ["model.tt.convolution.rank=24"]),
        "dense COAP": ("coap", []),
        "dense 8-bit Adam": ("adam8bit", []),
        "LoRA": ("lora", []),
    }),
    "code": ("codebert-python", "val_loss", "Validation loss of masked tokens", {
        "CoMERA": ("", []),
        "CoMERA, embedding and head apart": ("", ["model.encoder.tied=false", "model.tt.embedding.cores=2", "model.tt.embedding.rank=32",
                                                  "model.tt.head.tensorise=true", "model.tt.head.rank=128", "model.tt.head.cores=1"]),
        "dense AdamW": ("adamw", ["model.encoder.tied=false", "train.lr=0.0005"]),
        "dense AdamW, tied": ("adamw", ["train.lr=0.0005"]),
        "dense COAP": ("coap", ["model.encoder.tied=false", "train.lr=0.0005"]),
        "dense 8-bit Adam": ("adam8bit", ["model.encoder.tied=false", "train.lr=0.0005"]),
    }),
}


def comera(*args):
    done = subprocess.run([str(COMERA), *map(str, args), "--json", "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def note_of(args, name, seed):
    folder = args.store.parent / (args.store.stem + "-results")
    folder.mkdir(exist_ok=True)
    return folder / f"{args.set}-{name.replace(' ', '_').replace(',', '')}-{seed}.json"


def run(args):
    preset, score, _, rows = ROWS[args.set]
    for seed in args.seeds:
        for name, (method, sets) in rows.items():
            note = note_of(args, name, seed)
            if note.exists() or (args.methods and name not in args.methods):
                continue
            sets = ["train.eval_every=0", "train.checkpoint_every=0", f"train.seed={seed}", *sets, *args.also]
            options = ["--method", method] if method else []
            document = comera("train", preset, *options, "--store", args.store, "--name", note.stem, *[x for s in sets for x in ("--set", s)])
            size = comera("get", document["run"], "--metric", "entries", "--store", args.store)["values"]
            memory = document["memory"]
            note.write_text(json.dumps({"score": document["metrics"][score], "loss": document["metrics"]["val_loss"], "entries": size[-1] if size else None,
                                        "first": size[0] if size else None, "planned": memory["planned_peak_bytes"],
                                        "taken": memory["measured_peak_bytes"], "step_ms": document["step_ms"]["median"]}) + "\n")
            print(note.stem, document["metrics"][score], flush=True)


def table(args):
    _, _, title, rows = ROWS[args.set]
    print(f"| | {title} | Validation loss | Values, first to last step | Peak, planned = taken, MiB | Step, ms |\n|---|---|---|---|---|---|")
    for name in rows:
        results = [json.loads(note.read_text()) for seed in args.seeds if (note := note_of(args, name, seed)).exists()]
        if not results:
            continue
        if any(r["planned"] != r["taken"] for r in results):
            sys.exit(f"{name}: planned is not taken")
        mean = lambda key: statistics.mean(r[key] for r in results)
        spread = statistics.stdev(r["score"] for r in results) if len(results) > 1 else 0
        entries = f"{mean('first'):,.0f} to {mean('entries'):,.0f}" if results[0]["entries"] else "-"
        print(f"| {name} | {mean('score'):.4f} ± {spread:.4f} ({len(results)}) | {mean('loss'):.4f} | {entries} | {mean('taken') / 2**20:.1f} | {mean('step_ms'):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--set", choices=ROWS, required=True)
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--with", nargs="*", default=[], dest="also", metavar="PATH=VALUE")
    args = parser.parse_args()
    (run if args.what == "run" else table)(args)


if __name__ == "__main__":
    main()
