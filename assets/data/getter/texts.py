"""Running text, for language models: train.txt, dev.txt and test.txt."""
from collections import defaultdict

from .job import h64, split_of
from .pairs import wordnet


def wordnet_text(job):
    """A line for each noun and verb of WordNet: its words and what they mean."""
    lines = defaultdict(list)
    for i, s in sorted(wordnet(job).items(), key=lambda item: h64("wordnet-text", item[0])):
        lines[split_of("wordnet-text", i)].append(f"{', '.join(s['w'])}: {s['g']}.\n")
    for split in ("train", "dev", "test"):
        rows = lines[split][:job.rows or len(lines[split])]
        job.emit(f"{split}.txt", "".join(rows), len(rows))
