"""Write tests/tokenizer/goldens/special_tokens.json: what transformers makes of tokens that files beside tokenizer.json name.

A list of cases: {"name", "base" (of base_NAME.json), "added_tokens" (in place of the base's), "files" (name: content), "texts", "ids" (for each text, with
special tokens), "eos" (id or null), "tokens" (the size with added tokens)}.
Needs (PyPI): transformers==5.*, tokenizers==0.23.*. Usage: make_special_token_goldens.py tests/tokenizer/goldens
"""
import json
import os
import pathlib
import random
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import PreTrainedTokenizerFast, logging  # noqa: E402

logging.set_verbosity_error()


def token(content, special=True, **flags):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": not special,
            "special": special, **flags}


def numbered(index, content, special=True, **flags):
    return {"id": index, **token(content, special, **flags)}


def cases(size):
    """`size`: the first id that the base's vocabulary leaves free."""
    chat = {str(size): token("<|endoftext|>"), str(size + 1): token("<|im_start|>"), str(size + 2): token("<|im_end|>")}
    yield "only_in_config", [], {"tokenizer_config.json": {"added_tokens_decoder": chat, "eos_token": "<|im_end|>"}}
    yield "more_in_config", [numbered(size, "<|endoftext|>")], {
        "tokenizer_config.json": {"added_tokens_decoder": chat, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}}
    yield "not_special", [], {"tokenizer_config.json": {"added_tokens_decoder": {
        str(size): token("<tool_call>", False), str(size + 1): token("<|im_end|>", lstrip=True, rstrip=True),
        str(size + 2): token("word", False, single_word=True)}}}
    yield "named_only", [], {"tokenizer_config.json": {
        "pad_token": "<pad>", "unk_token": token("<unk>", lstrip=True) | {"__type": "AddedToken"}, "eos_token": "e",
        "extra_special_tokens": ["<a>", "<b>"], "image_token": "<image>"}}
    yield "named_map", [], {"tokenizer_config.json": {"additional_special_tokens": ["<b>", "<a>"], "cls_token": "<cls>"}}
    yield "old_files", [numbered(size, "<|endoftext|>")], {
        "tokenizer_config.json": {}, "special_tokens_map.json": {"eos_token": token("<|im_end|>"), "pad_token": "<|endoftext|>"},
        "added_tokens.json": {"<|im_end|>": size + 2, "<|endoftext|>": size, "<tool>": size + 1}}
    yield "map_beside_decoder", [], {"tokenizer_config.json": {"added_tokens_decoder": chat, "eos_token": "<|im_end|>"},
                                     "special_tokens_map.json": {"pad_token": "<never>", "eos_token": "<|im_end|>"}}
    yield "old_list_hidden", [], {"tokenizer_config.json": {"extra_special_tokens": {"x_token": "<x>"}, "additional_special_tokens": ["<y>"]}}
    # Flags that differ between the files.
    random.seed(3)
    flags = ["single_word", "lstrip", "rstrip", "normalized"]
    for i in range(24):
        one = {flag: random.random() < 0.4 for flag in flags}
        two = {flag: random.random() < 0.4 for flag in flags}
        special = [random.random() < 0.5, random.random() < 0.5]
        yield f"flags_{i}", [numbered(size, "<Tag>", special[0], **one)], {
            "tokenizer_config.json": {"added_tokens_decoder": {str(size): token("<Tag>", special[1], **two)}}}


TEXTS = ["<|im_start|>user\nHello<|im_end|>\n<|endoftext|>", "a <tool_call> b<tool_call>c", "x <|im_end|> y", "words word wordy word.",
         "the end of the <pad><unk> <a><b><image><cls>", "<tool>no <|im_end|>", "<Tag>a<Tag> b <Tag>", "<tag> <TAG><x><y>", "pre<Tag>post <Tag> ",
         "<never>"]


def main():
    goldens = pathlib.Path(sys.argv[1])
    out = []
    for base_name in ["qwen2", "llama2", "lowercase"]:
        base = json.loads((goldens / f"base_{'qwen2' if base_name == 'lowercase' else base_name}.json").read_text())
        if base_name == "lowercase":
            base["normalizer"] = {"type": "Lowercase"}
        vocabulary = base["model"]["vocab"]
        for name, added, files in cases(len(vocabulary)):
            base["added_tokens"] = added
            if base_name == "llama2":
                base["post_processor"] = None
            with tempfile.TemporaryDirectory() as folder:
                for file, content in {"tokenizer.json": base, **files}.items():
                    (pathlib.Path(folder) / file).write_text(json.dumps(content))
                tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
                patch = {"added_tokens": added, "normalizer": base["normalizer"], "post_processor": base["post_processor"]}
                out.append({"name": f"{base_name}_{name}", "base": "qwen2" if base_name == "lowercase" else base_name, "patch": patch, "files": files,
                            "ids": [tokenizer(text)["input_ids"] for text in TEXTS], "eos": tokenizer.eos_token_id,
                            "skipped": [tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) for text in TEXTS],
                            "tokens": len(tokenizer)})
    (goldens / "special_tokens.json").write_text(json.dumps({"texts": TEXTS, "cases": out}, separators=(",", ":")) + "\n")


main()
