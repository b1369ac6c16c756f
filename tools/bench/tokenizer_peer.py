"""Race lamina-bench-tokenizer against the `tokenizers` library, each on one core, same documents, same ids.

Needs (PyPI): tokenizers xxhash. Usage: tokenizer_peer.py PROGRAM TOKENIZER_JSON TEXT [SECONDS]
Prints one JSON line; "ratio" is Lamina's speed over the library's (encode_batch_fast, which computes no offsets). Exits 1 when the ids
differ.
"""
import json
import os
import struct
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import xxhash
from tokenizers import Tokenizer


def cut_documents(text, size=4096):
    documents = []
    while text:
        end = text.find(b"\n", size - 1) if len(text) > size else -1
        end = len(text) if end < 0 else end + 1
        documents.append(text[:end].decode(errors="replace"))
        text = text[end:]
    return documents


def time_library(path, documents, seconds):
    tokenizer = Tokenizer.from_file(path)
    best, start = float("inf"), time.perf_counter()
    while best == float("inf") or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        encodings = tokenizer.encode_batch_fast(documents, add_special_tokens=False)
        best = min(best, time.perf_counter() - begin)
    ids = [i for e in encodings for i in e.ids]
    return best, xxhash.xxh3_64_hexdigest(struct.pack(f"<{len(ids)}i", *ids)), len(ids)


def main():
    program, tokenizer, text = sys.argv[1:4]
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 2.0
    data = open(text, "rb").read()
    ours = json.loads(subprocess.run([program, tokenizer, text, str(seconds)], check=True, capture_output=True).stdout)
    best, digest, tokens = time_library(tokenizer, cut_documents(data), seconds)
    library = len(data) / best / 1e6
    same = digest == ours["xxh3"]
    print(json.dumps({"tokenizer": tokenizer, "lamina_mb_s": ours["mb_s"], "tokenizers_mb_s": round(library, 2),
                      "ratio": round(ours["mb_s"] / library, 2), "tokens": [ours["tokens"], tokens], "same_ids": same}))
    sys.exit(0 if same else 1)


main()
