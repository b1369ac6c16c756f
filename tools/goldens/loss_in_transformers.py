"""Mean loss of a Hugging Face folder on a text, as transformers computes it: what `lamina eval` is compared with.

loss_in_transformers.py MODEL TEXT SEQ_LEN [MAX_WINDOWS]
Fails when loading warns of missing or unexpected weights. Packages: requirements.txt beside this script.
"""
import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, text, seq_len = sys.argv[1], sys.argv[2], int(sys.argv[3])
windows = int(sys.argv[4]) if len(sys.argv) > 4 else None
model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
problems = {key: sorted(map(str, value)) for key, value in info.items() if value}
if problems:
    sys.exit(f"transformers complains: {problems}")
with open(text, encoding="utf-8") as file:
    ids = AutoTokenizer.from_pretrained(folder)(file.read(), return_tensors="pt", add_special_tokens=False)["input_ids"][0]
batches = [ids[i:i + seq_len] for i in range(0, len(ids) - seq_len + 1, seq_len)][:windows]
with torch.no_grad():
    losses = [model(input_ids=b[None], labels=b[None]).loss.item() for b in batches]
print(json.dumps({"loss": sum(losses) / len(losses), "windows": len(losses), "tokens": (seq_len - 1) * len(losses)}))
