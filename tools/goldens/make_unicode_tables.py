"""Write src/tokenizer/unicode_tables.cpp: what the `tokenizers` library thinks of each code point.

PCRE2 and utf8proc follow the Unicode version they were built with; `tokenizers` follows its own. The tables hold the difference
(property members beyond Unicode 14, normalisation frozen at Unicode 12) or, where that is shorter, the whole set.
Needs (PyPI): tokenizers==0.23.* unicodedata2. Usage: make_unicode_tables.py OUT.cpp
"""
import sys
import unicodedata as unicode14  # Python 3.11 ships Unicode 14.0
import unicodedata2 as newest
from tokenizers import Regex, normalizers, pre_tokenizers

assert unicode14.unidata_version == "14.0.0", "run with Python 3.11 (Unicode 14)"
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
PROPERTIES = "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So".split()


def matching(pattern):
    """Code points the library's regex engine matches."""
    splitter = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for start in range(0, 0x110000, 0x1000):
        chars = [c for c in range(start, start + 0x1000) if not 0xD800 <= c < 0xE000]
        if chars:
            rest = "".join(t for t, _ in splitter.pre_tokenize_str("".join(map(chr, chars))))
            found |= set(chars) - set(map(ord, rest))
    return found


def split_off(pre_tokenizer):
    """Code points that are separated from a preceding letter."""
    return {c for c in ALL if len(pre_tokenizer.pre_tokenize_str("a" + chr(c))) == 2}


def words():
    splitter = pre_tokenizers.Whitespace()
    return {c for c in ALL if [t for t, _ in splitter.pre_tokenize_str("a" + chr(c))] == ["a" + chr(c)]}


def ranges(members):
    out = []
    for c in sorted(members):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def table(name, members):
    body = ", ".join("{0x%X, 0x%X}" % tuple(r) for r in ranges(members))
    return f"constexpr CodeRange {name}[] = {{{body}}};\n"


def inert():
    """Code points with a combining class, decomposition or composition that the library's normaliser does not know."""
    nfd, nfkd, nfc = normalizers.NFD(), normalizers.NFKD(), normalizers.NFC()
    out = set()
    for c in ALL:
        s = chr(c)
        if newest.normalize("NFKD", s) != nfkd.normalize_str(s):
            assert nfkd.normalize_str(s) == s, hex(c)
            out.add(c)
            parts = [ord(p) for p in newest.normalize("NFD", s)]
            if len(parts) > 1 and nfc.normalize_str("".join(map(chr, parts))) != s:
                # Keep the newer half out of composition; a mark of old standing composes with others.
                out.add(parts[0] if newest.combining(chr(parts[-1])) else parts[-1])
        combining = newest.combining(s)
        if combining:
            low, high = "\u0334", "\u0345"  # classes 1 and 240
            test = s + low if combining > 1 else high + s
            if nfd.normalize_str(test) == test:
                out.add(c)
    return out


def lower_overrides():
    lower = normalizers.Lowercase()
    out = []
    for c in ALL:
        got = lower.normalize_str(chr(c))
        if unicode14.category(chr(c)) == "Cn" and got != chr(c):
            out.append((c, ord(got)))
    return out


def main():
    text = [
        "// Written by tools/goldens/make_unicode_tables.py; do not edit.\n",
        '#include "unicode_tables.hpp"\n',
        "\nnamespace lamina::unicode {\n\nnamespace {\n\n// clang-format off\n",
    ]
    names = []
    for prop in PROPERTIES:
        have = {c for c in ALL if unicode14.category(chr(c)).startswith(prop)}
        want = matching(r"\p{%s}" % prop)
        if have - want:  # a member moved elsewhere: an addition cannot say that, so patterns with it are refused
            continue
        if want - have:
            text.append(table(f"added_{prop}", want - have))
        names.append((prop, bool(want - have)))
    text.append("const PropertyAdditions additions[] = {\n")
    for prop, any_added in names:
        text.append(f'  {{"{prop}", {"added_" + prop if any_added else "{}"}}},\n')
    text.append("};\n")
    text.append(table("numeric", split_off(pre_tokenizers.Digits(individual_digits=True))))
    text.append(table("punctuation", split_off(pre_tokenizers.Punctuation("isolated"))))
    text.append(table("word", words()))
    text.append(table("inert", inert()))
    pairs = ", ".join("{0x%X, 0x%X}" % p for p in lower_overrides())
    text.append(f"constexpr CodeRange lower[] = {{{pairs}}};\n")
    text.append("// clang-format on\n\n}  // namespace\n\n")
    text.append("std::span<const PropertyAdditions> property_additions() { return additions; }\n")
    for name in ("numeric", "punctuation", "word", "inert", "lower"):
        text.append(f"std::span<const CodeRange> {name}_table() {{ return {name}; }}\n")
    text.append("\n}  // namespace lamina::unicode\n")
    open(sys.argv[1], "w").write("".join(text))


main()
