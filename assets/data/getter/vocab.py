"""Vocabularies, each with its published tokenizer cases where there are some."""
import base64
import gzip
import json
import re
import struct


def gguf_kv(b):
    pos = 4
    def u(f):
        nonlocal pos
        v = struct.unpack_from("<" + f, b, pos)[0]
        pos += struct.calcsize("<" + f)
        return v
    def s():
        nonlocal pos
        n = u("Q")
        pos += n
        return b[pos - n:pos].decode("utf-8")
    F = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    def val(t):
        if t == 8:
            return s()
        if t == 9:
            e, n = u("I"), u("Q")
            return [val(e) for _ in range(n)]
        return u(F[t])
    assert b[:4] == b"GGUF"
    u("I"), u("Q")
    return {k: v for k, v in ((s(), val(u("I"))) for _ in range(u("Q")))}


def vocab_cases(job, stem):
    """llama.cpp's own tokenizer cases: text and the expected ids (no special tokens)"""
    inp = job.archives.source_file("llama-cpp-python", f"{stem}.gguf.inp").decode("utf-8").split("\n__ggml_vocab_test__\n")
    out = job.archives.source_file("llama-cpp-python", f"{stem}.gguf.out").decode().split("\n")
    rows = [{"text": t, "ids": [int(x) for x in o.split()]} for t, o in zip(inp, out)]
    job.emit("cases.jsonl", "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), len(rows))


def vocab_bert(job):
    """bert-base-uncased's WordPiece vocab.txt (30,522 lines), rebuilt out of llama.cpp's ggml-vocab-bert-bge.gguf"""
    toks = gguf_kv(job.archives.source_file("llama-cpp-python", "models/ggml-vocab-bert-bge.gguf"))["tokenizer.ggml.tokens"]
    v = [t if re.fullmatch(r"\[\w+\]", t) else t[1:] if t.startswith("\u2581") else "##" + t for t in toks]
    job.emit("vocab.txt", "\n".join(v) + "\n", len(v))
    vocab_cases(job, "ggml-vocab-bert-bge")


def bytes_to_unicode():
    bs = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    cs, n = bs[:], 0
    for b in range(256):
        if b not in bs:
            bs.append(b)
            cs.append(256 + n)
            n += 1
    return dict(zip(bs, map(chr, cs)))


def vocab_gpt2(job):
    """GPT-2's byte-level BPE (the merges RoBERTa and CodeBERT use): vocab.json + merges.txt, out of openai-whisper's
    gpt2.tiktoken (MIT, 0.8 MB); merges are recovered by replaying BPE below each token's rank"""
    ranks = {base64.b64decode(a): int(r) for a, r in (l.split() for l in job.archives.source_file("openai-whisper", "assets/gpt2.tiktoken").decode().splitlines())}
    B = bytes_to_unicode()
    show = lambda t: "".join(B[c] for c in t)
    merges = []
    for tok, r in sorted(ranks.items(), key=lambda kv: kv[1]):
        if len(tok) == 1:
            continue
        parts = [bytes([c]) for c in tok]
        while len(parts) > 2:
            best = min(((ranks.get(parts[i] + parts[i + 1], 1 << 30), i) for i in range(len(parts) - 1)))
            if best[0] >= r:
                break
            parts[best[1]:best[1] + 2] = [parts[best[1]] + parts[best[1] + 1]]
        assert len(parts) == 2, tok
        merges.append(show(parts[0]) + " " + show(parts[1]))
    vocab = {show(t): r for t, r in sorted(ranks.items(), key=lambda kv: kv[1])}
    vocab["<|endoftext|>"] = len(vocab)
    job.emit("vocab.json", json.dumps(vocab), len(vocab))
    job.emit("merges.txt", "#version: 0.2\n" + "\n".join(merges) + "\n", len(merges))
    vocab_cases(job, "ggml-vocab-gpt-2")


def vocab_clip(job):
    """CLIP's lower-cased BPE (49,152 merges used), as open_clip ships it"""
    b = job.archives.wheel_file("open-clip-torch", "open_clip/bpe_simple_vocab_16e6.txt.gz")
    job.emit("bpe_simple_vocab_16e6.txt.gz", b, gzip.decompress(b).count(b"\n"))
