"""A baseline for masked tokens of code: how often a token stood between the same neighbours in the training rows. Loss, perplexity and top-1 of 15
in 100 validation tokens, both neighbours in sight (a model sees some of them masked). Witten-Bell smoothing: pair of neighbours, mean of left and
right neighbour, frequency.

    ./run.sh data get code-python
    pip install tokenizers
    python3 experiments/methods/neighbour_counts.py FOLDER    # of the set: train.jsonl, dev.jsonl, tokenizer.json
"""
import json
import math
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

from tokenizers import Tokenizer

FOLDER = Path(sys.argv[1])
TOKENIZER = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


def joined(split):
    texts = [json.loads(line)["code"] for line in open(FOLDER / f"{split}.jsonl")]
    return [token for text in TOKENIZER.encode_batch(texts) for token in text.ids]


def smoothed(counts, token, lower):
    total = sum(counts.values())
    return (counts[token] + len(counts) * lower) / (total + len(counts)) if total else lower


def main():
    train, dev = joined("train"), joined("dev")
    often, left, right, both = Counter(train), defaultdict(Counter), defaultdict(Counter), defaultdict(Counter)
    for a, token, b in zip(train, train[1:], train[2:]):
        left[a][token] += 1
        right[b][token] += 1
        both[a, b][token] += 1
    size, most = TOKENIZER.get_vocab_size(), often.most_common(1)[0][0]
    draw, count = random.Random(1), 0
    loss, hits = Counter(), Counter()
    for a, token, b in zip(dev, dev[1:], dev[2:]):
        if draw.random() > 0.15:
            continue
        count += 1
        alone = (often[token] + 1) / (len(train) + size)
        of_left = smoothed(left[a], token, alone) if a in left else alone
        of_right = smoothed(right[b], token, alone) if b in right else alone
        one = (of_left + of_right) / 2
        guess = left[a].most_common(1)[0][0] if a in left else most
        pair = (a, b)
        for name, share, best in (("frequency", alone, most), ("left", of_left, guess),
                                  ("both", smoothed(both[pair], token, one) if pair in both else one,
                                   both[pair].most_common(1)[0][0] if pair in both else guess)):
            loss[name] -= math.log(share)
            hits[name] += best == token
    print(f"{len(train):,} tokens to train, {count:,} of {len(dev):,} to validate")
    for name in loss:
        print(f"{name}: loss {loss[name] / count:.3f}, perplexity {math.exp(loss[name] / count):.1f}, top-1 {hits[name] / count:.3f}")


if __name__ == "__main__":
    main()
