"""Write tests/tokenizer/goldens: small tokenizers of each family and what the `tokenizers` library makes of hard texts.

texts.json              the texts
base_NAME.json          a tokenizer.json: the family's pipeline with a few hundred merges trained on the text files given
cases/NAME.json         {"base", "patch" (sections to replace in the base; members of "model" one by one), "encode" (for each text its ids, or [count, crc] for a long
                        one, with special tokens), "plain" (the same without), "pages" (crc of the ids of each 256 code points),
                        "decode" ([{ids, text, skipped}])}
Needs (PyPI): tokenizers==0.23.*. Usage: make_tokenizer_goldens.py OUT TEXT...
"""
import json
import pathlib
import random
import struct
import sys
import zlib

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
UNICODE_SAMPLE = ("\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645 \u0928\u092e\u0938\u094d\u0924\u0947 "
                  "\u4f60\u597d\uff0c\u4e16\u754c \uc548\ub155\ud558\uc138\uc694 \u3053\u3093\u306b\u3061\u306f "
                  "\u041f\u0440\u0438\u0432\u0435\u0442 \u03ba\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 "
                  "na\u00efve caf\u00e9 \U0001f600\U0001f44d\U0001f3fd ")
PAGES = [range(start, start + 256) for start in [*range(0, 0x32400, 256), 0xE0000, 0xE0100, 0xF0000, 0x10FF00]]


def page_text(page):
    return "".join(f"{chr(c)}a{chr(c)}1 " for c in page if not 0xD800 <= c < 0xE000)


def added(index, content, special=True, **flags):
    token = {"id": index, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": not special, "special": special}
    return {**token, **flags}


def byte_level_base(corpus, pipeline, specials, merges=600):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pipeline
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=256 + merges, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                  show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    base = json.loads(tokenizer.to_str())
    base["added_tokens"] = [added(256 + merges + i, *([t] if isinstance(t, str) else t)) for i, t in enumerate(specials)]
    return base


def split(pattern, **more):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False, **more}


def bytes_stage(use_regex=False, add_prefix_space=False):
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True, "use_regex": use_regex}


def template(before, after=()):
    def piece(name):
        return {"SpecialToken": {"id": name, "type_id": 0}}
    single = [piece(n) for n, _ in before] + [{"Sequence": {"id": "A", "type_id": 0}}] + [piece(n) for n, _ in after]
    pair = single + [{"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": single, "pair": pair,
            "special_tokens": {n: {"id": n, "ids": [i], "tokens": [n]} for n, i in (*before, *after)}}


def sentencepiece_base(corpus):
    """Llama-2's layout: <unk> <s> </s>, the bytes, then learned tokens; a few letters left out so that bytes are needed."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=900, show_progress=False, limit_alphabet=300)
    tokenizer.train_from_iterator([UNICODE_SAMPLE * 30, *corpus], trainer)
    trained = json.loads(tokenizer.to_str())
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    tokens += [t for t, _ in sorted(trained["model"]["vocab"].items(), key=lambda e: e[1])]
    trained["model"].update(vocab={t: i for i, t in enumerate(tokens)}, byte_fallback=True, fuse_unk=True)
    trained["added_tokens"] = [added(i, t) for i, t in enumerate(["<unk>", "<s>", "</s>"])]
    trained["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    trained["pre_tokenizer"] = None
    trained["post_processor"] = template([("<s>", 1)])
    trained["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    return trained


def make_bases(corpus):
    sequence = pre_tokenizers.Sequence
    level = pre_tokenizers.ByteLevel
    bases = {
        "gpt2": byte_level_base(corpus, level(add_prefix_space=False), ["<|endoftext|>"]),
        "llama3": byte_level_base(
            corpus, sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), level(add_prefix_space=False, use_regex=False)]),
            ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]),
        "qwen2": byte_level_base(
            corpus, sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"), level(add_prefix_space=False, use_regex=False)]),
            ["<|endoftext|>", "<|im_start|>", "<|im_end|>", ("<tool_call>", False, ), ("</tool_call>", False)]),
        "smollm2": byte_level_base(
            corpus, sequence([pre_tokenizers.Digits(individual_digits=True), level(add_prefix_space=False)]),
            ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]),
        "llama2": sentencepiece_base(corpus),
    }
    bases["gpt2"]["post_processor"] = bytes_stage(True)
    bases["llama3"]["model"]["ignore_merges"] = True
    bases["llama3"]["post_processor"] = {"type": "Sequence", "processors": [
        bytes_stage(True), template([("<|begin_of_text|>", 856)])]}
    bases["qwen2"]["normalizer"] = {"type": "NFC"}
    for token in bases["qwen2"]["added_tokens"]:
        token["normalized"] = False
    bases["qwen2"]["post_processor"] = bytes_stage()
    # Older files write a merge as one string.
    bases["smollm2"]["model"]["merges"] = [" ".join(pair) for pair in bases["smollm2"]["model"]["merges"]]
    # As the real one: some bytes have no token.
    for missing in ("\u0100", "\u00f5", "\u00ff"):
        bases["smollm2"]["model"]["vocab"].pop(missing, None)
    renumber(bases["smollm2"])
    return bases


def renumber(base):
    tokens = sorted(base["model"]["vocab"], key=base["model"]["vocab"].get)
    base["model"]["vocab"] = {t: i for i, t in enumerate(tokens)}
    for i, token in enumerate(base["added_tokens"]):
        token["id"] = len(tokens) + i


def char_patches():
    """Variants of the character-level base: other normalisers, pre-tokenisers, unknown handling."""
    def with_normalizer(*steps):
        return {"normalizer": {"type": "Sequence", "normalizers": list(steps)}}
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    meta = {"type": "Metaspace", "replacement": "\u2581"}
    meta_decoder = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    no_bytes = {"model": {"byte_fallback": False}}
    out = {
        "llama2": {},
        "llama2_metaspace": {"normalizer": None, "pre_tokenizer": {**meta, "prepend_scheme": "first", "split": False}},
        "metaspace_always": {"normalizer": None, "pre_tokenizer": {**meta, "prepend_scheme": "always", "split": True},
                             "decoder": meta_decoder, **no_bytes},
        "metaspace_never": {"normalizer": None, "pre_tokenizer": {**meta, "prepend_scheme": "never"},
                            "decoder": {**meta_decoder, "prepend_scheme": "never"},
                            "model": {"byte_fallback": False, "fuse_unk": False}},
        "metaspace_old": {"normalizer": None, "pre_tokenizer": {**meta, "add_prefix_space": True}, "decoder": meta_decoder},
        "no_unknown": {"model": {"byte_fallback": False, "unk_token": None}},
        "ignore_merges_chars": {"model": {"ignore_merges": True}},
        "strip_first": {**with_normalizer({"type": "Strip", "strip_left": True, "strip_right": True}),
                        "pre_tokenizer": {**meta, "prepend_scheme": "first", "split": False}},
        "replace_regex": with_normalizer({"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": "\u2581"}),
        "lowercase": with_normalizer({"type": "Lowercase"}, space),
        "whitespace": {"normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "decoder": None},
        "whitespace_split": {"normalizer": None, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "MergedWithNext"}]}},
        "digits_runs": {"normalizer": None, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Punctuation"}, {"type": "Digits", "individual_digits": False}]}},
        "eos_template": {"post_processor": template([("<s>", 1)], [("</s>", 2)])},
    }
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        out[form.lower()] = with_normalizer({"type": form}, space)
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            out[f"split_{behavior.lower()}{'_invert' if invert else ''}"] = {
                "normalizer": None, "pre_tokenizer": split(r"[aeiou]|\s+|(?=x)", behavior=behavior, invert=invert)}
    out["split_string"] = {"normalizer": None, "pre_tokenizer": {
        "type": "Split", "pattern": {"String": ". "}, "behavior": "MergedWithPrevious", "invert": False}}
    return out


def byte_patches(bases):
    stage = bytes_stage
    flags = [("[W]", dict(single_word=True)), ("[L]", dict(lstrip=True)), ("[R]", dict(rstrip=True)),
             ("[LR]", dict(lstrip=True, rstrip=True)), ("the Lord", dict(special=False)), ("[WLR]", dict(
                 single_word=True, lstrip=True, rstrip=True)), ("caf\u00e9", dict(special=False, normalized=True)), ("\n\n", dict(
                     rstrip=True)), ("[", {}), ("[L", {})]

    def tokens(**more):
        """The flagged tokens with the ids the library gives them: known ones keep theirs."""
        vocabulary, out, next_id = bases["gpt2"]["model"]["vocab"], [], 856
        for text, token_flags in flags:
            known = vocabulary.get(text)
            out.append(added(next_id if known is None else known, text, **{"special": True, **token_flags, **more}))
            next_id += known is None
        return out

    return {
        "gpt2": ("gpt2", {}),
        "gpt2_prefix": ("gpt2", {"pre_tokenizer": stage(True, True)}),
        "gpt2_flags": ("gpt2", {"added_tokens": tokens()}),
        "gpt2_flags_lower": ("gpt2", {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]},
                                      "added_tokens": tokens(normalized=True)}),
        "llama3": ("llama3", {}),
        "qwen2": ("qwen2", {}),
        "smollm2": ("smollm2", {}),
        "o200k": ("llama3", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(O200K), stage()]}}),
        "removed_invert": ("llama3", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            split(LLAMA3, behavior="Removed", invert=True), stage()]}}),
        "whole_text": ("gpt2", {"pre_tokenizer": stage()}),
        "category_classes": ("gpt2", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            split(r"[\p{P}\p{S}]+|\d+|\D"), split(r"[\S]{2,3}|\P{L}"), stage()]}}),
    }


def patched(base, patch):
    """Sections of the base replaced by those of the patch; members of "model" one by one."""
    return {**base, **patch, "model": {**base["model"], **patch.get("model", {})}}


def make_texts(corpus):
    rng = random.Random(7)
    kjv, code = corpus[0], corpus[-1]
    texts = [
        "", " ", "  ", "a", "Hello world", " Hello  world ", "\n", "\r\n", "\t\t\n\n  x", "x\n", "x  \n  y", "\n\n\n\na", "a\n\n \n",
        "I'm you'LL it's 'S 'T we'Ve 'ſ d'Accord y'all's O'Neil 'm'm '' '",
        "don\u2019t it\u2019s", "CamelCaseXMLHttpRequest2Go HTTPServer's iPhone9", "x" * 5000, "ab" * 3000, " " * 10000,
        " " * 10000 + "x", "a" + " " * 300 + "b" + "\n" * 300 + "c", "\t" * 500, "0123456789" * 40, "3.14159e-10, 1,000,000 0x1F",
        "\u0661\u0662\u0663 \u0967\u0968 \u00b2\u00b3\u00bd \u2167 \u3007 \U0001d7d8\U0001d7d9 \u4e00\u4e8c",
        "line one\r\nline two\r\n\r\nline four\rold mac\r", "a\u00a0b\u2003c\u3000d\u180ee\u200bf\ufeffg\u0085h\u2028i",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 "
        "\U0001f44d\U0001f3ff \u2764\ufe0f \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "e\u0301 \u00e9 A\u030a \u212b \u1e9b\u0323 \ufb01 \u2460 \uff21 a\u0315\u0300\u05ae\u0327b \u0344 \u1100\u1161\u11a8 \uac01",
        "q\u0307\u0323 \u0958 \u2adc \U0001d15e \U00011935\U00011930 \U00011938 \u0b47\u0b3e \u0ddc \u1b06 \ua7f2 \u32ff",
        "a\u0307\u1ac1b\u0301\U00010efd\u0300 \u0897\u0301 \U00016129\U0001611e \u0cbf\u0cd5",
        "\u0627\u0644\u0633\u0651\u064e\u0644\u0627\u0645\u064f \u0639\u064e\u0644\u064e\u064a\u0652\u0643\u064f\u0645\u0652 \ufdfa \u0640\u0640",
        "\u0939\u093f\u0928\u094d\u0926\u0940 \u0915\u094d\u0937 \u0924\u094d\u0930\u200d \u0bb8\u0bcd\u0bb0\u0bc0 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
        "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3067\u3059\u3002\U00020000\U0002a6d6\U00030000\U00031350",
        "\uc548\ub155\ud558\uc138\uc694 \u1112\u1161\u11ab\u1100\u1173\u11af \uc138\uacc4",
        "\u0130stanbul I\u0307 \u03a3\u03a3 STRA\u00dfE \u1e9e \u01c5 \u13a0 \uab70 \u2c2f",
        "<|endoftext|>", "a<|endoftext|>b", " <|endoftext|> <|endoftext|><|endoftext|>", "<|endoftext", "<|im_start|>user\nHi<|im_end|>\n",
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>", "<s> <unk></s>x<s>", "<0x0A><0x41> \u2581\u2581a \u2581",
        "<tool_call>\n{\"a\": 1}\n</tool_call>", "a [W] b[W]c [W]. _[W] \u00e9[W] [W]\u0301 [W]",
        "x  [L]  y  [R]  z  [LR]  w  [LR][LR]  [L] [L]  [WLR] a[WLR] ", "the Lord the LORD The Lords [ [L [LL [L[L] cafe\u0301 caf\u00e9 CAF\u00c9",
        "a\n\n\n\n  b \n\n c", "\u0000\u0001\u007f\u0080\u009f\ufffd\ufffe\uffff\U0010ffff", "\u2581x \u2581 y", "x. y. . z. ", "aeiou xxaxx eexx",
        kjv[:3000], kjv[100000:104000], code[:4000], code[20000:24000], UNICODE_SAMPLE * 3,
    ]
    pools = ["abc xyz", "\n\r\t  ", "'stmdrevl ", "0123456789", "\u00e9\u0301\u0323e", "\u4e00\u3042\uac00\u1100\u1161\u11a8",
             "<|>[]endoftxLWR", "\u0627\u0644\u064e\u0915\u094d", ".,;:!?-_/\\\"", "\u2581\u00a0\u3000", "\U0001f600\u200d\U0001f3fb\ufe0f"]
    for _ in range(60):
        texts.append("".join(rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 60))))
    for _ in range(20):
        texts.append("".join(chr(rng.choice([rng.randrange(0x20, 0x3000), rng.randrange(0x3000, 0xD800),
                                             rng.randrange(0xE000, 0x20000)])) for _ in range(rng.randrange(1, 50))))
    return texts


def crc(ids):
    return zlib.crc32(struct.pack(f"<{len(ids)}i", *ids))


def pack(ids):
    return ids if len(ids) <= 40 else {"count": len(ids), "crc": crc(ids)}


def decode_cases(tokenizer, texts):
    rng = random.Random(11)
    size = tokenizer.get_vocab_size()
    cases = []
    for length in [0, 1, 1, 1, 2, 2, 3, 3, 5, 5, 8, 8, 13, 13, 21, 34]:
        cases.append([rng.randrange(size + 3) for _ in range(length)])
    cases += [[rng.randrange(min(size, 262)) for _ in range(24)] for _ in range(4)]
    cases += [tokenizer.encode(t).ids[:60] for t in rng.sample(texts, 12)]
    return [{"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=False),
             "skipped": tokenizer.decode(ids, skip_special_tokens=True)} for ids in cases]


def write_case(out, name, base_name, base, patch, texts, pages):
    tokenizer = Tokenizer.from_str(json.dumps(patched(base, patch)))
    case = {"base": base_name, "patch": patch,
            "encode": [pack(tokenizer.encode(t).ids) for t in texts],
            "plain": [pack(tokenizer.encode(t, add_special_tokens=False).ids) for t in texts[:20]],
            "pages": [crc(tokenizer.encode(page_text(p)).ids) for p in PAGES] if pages else [],
            "decode": decode_cases(tokenizer, texts)}
    (out / "cases" / f"{name}.json").write_text(json.dumps(case, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    out = pathlib.Path(sys.argv[1])
    (out / "cases").mkdir(parents=True, exist_ok=True)
    corpus = [pathlib.Path(p).read_text() for p in sys.argv[2:]]
    bases = make_bases([*corpus, UNICODE_SAMPLE * 30])
    for name, base in bases.items():
        (out / f"base_{name}.json").write_text(json.dumps(base, ensure_ascii=False, separators=(",", ":")) + "\n")
    texts = make_texts(corpus)
    (out / "texts.json").write_text(json.dumps(texts, ensure_ascii=True, separators=(",", ":")) + "\n")
    with_pages = {"gpt2", "llama3", "qwen2", "smollm2", "o200k", "category_classes", "llama2", "nfd", "nfkc", "nfkd", "lowercase",
                  "whitespace", "whitespace_split", "digits_runs"}
    for name, (base_name, patch) in byte_patches(bases).items():
        write_case(out, name, base_name, bases[base_name], patch, texts, name in with_pages)
    for name, patch in char_patches().items():
        write_case(out, name, "llama2", bases["llama2"], patch, texts, name in with_pages)


main()
