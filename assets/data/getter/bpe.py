"""Trains a byte-level BPE tokenizer (GPT-2's words and alphabet) and writes it as the tokenizers library does."""
import heapq
import json
import re
from collections import Counter, defaultdict

from .vocab import bytes_to_unicode

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
# GPT-2's pattern in Python's terms: letters and digits of any script. Where both differ (a few marks) only counts of the training do.
WORDS = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def merges_of(texts, count):
    """The `count` most frequent merges, one after another; of equally frequent ones the first in the order of their bytes."""
    shown = bytes_to_unicode()
    frequency = Counter(word for text in texts for word in WORDS.findall(text))
    words = [[shown[b] for b in word.encode()] for word in frequency]
    counts = list(frequency.values())
    pairs, places = Counter(), defaultdict(set)
    for at, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pairs[pair] += counts[at]
            places[pair].add(at)
    queue = [(-n, pair) for pair, n in pairs.items()]
    heapq.heapify(queue)
    merges = []
    while queue and len(merges) < count:
        n, pair = heapq.heappop(queue)
        if pairs[pair] != -n:  # counted again since
            if pairs[pair] > 0:
                heapq.heappush(queue, (-pairs[pair], pair))
            continue
        merges.append(pair)
        changed = set()
        for at in places.pop(pair):
            changed |= merge(words, counts[at], at, pair, pairs, places)
        del pairs[pair]
        for other in changed:
            if pairs[other] > 0:
                heapq.heappush(queue, (-pairs[other], other))
    return merges


def merge(words, n, at, pair, pairs, places):
    """Merges `pair` in word `at`, which occurs n times; returns the pairs that were counted again."""
    old, new, i = words[at], [], 0
    while i < len(old):
        if i + 1 < len(old) and (old[i], old[i + 1]) == pair:
            new.append(old[i] + old[i + 1])
            i += 2
        else:
            new.append(old[i])
            i += 1
    before, after = Counter(zip(old, old[1:])), Counter(zip(new, new[1:]))
    for other in before:
        pairs[other] -= before[other] * n
        if other not in after and other != pair:
            places[other].discard(at)
    for other in after:
        pairs[other] += after[other] * n
        places[other].add(at)
    words[at] = new
    return (before.keys() | after.keys()) - {pair}


def tokenizer_json(texts, size):
    """tokenizer.json of `size` tokens: special ones first, the 256 bytes, then merges; texts are put between <s> and </s>."""
    merges = merges_of(texts, size - 256 - len(SPECIALS))
    alphabet = sorted(bytes_to_unicode().values())
    vocab = {token: i for i, token in enumerate(SPECIALS + alphabet + [a + b for a, b in merges])}
    special = lambda token: {"id": vocab[token], "content": token, "single_word": False, "lstrip": token == "<mask>", "rstrip": False, "normalized": False,
                             "special": True}
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [special(token) for token in SPECIALS], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", vocab["</s>"]], "cls": ["<s>", vocab["<s>"]], "trim_offsets": True,
                           "add_prefix_space": False},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False,
                  "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": [f"{a} {b}" for a, b in merges]}}, ensure_ascii=False, indent=1) + "\n"
