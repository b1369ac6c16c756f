"""Reads C++ well enough for structure checks: includes, text without comments and strings, and where functions begin and end."""

import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
_TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^ ()\\\n]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)


def includes(text):
    """(line number, '<' or '"', name) for each #include that is not in a comment."""
    bare = without_comments(text)
    return [(bare.count("\n", 0, m.start()) + 1, m.group(1), m.group(2)) for m in INCLUDE.finditer(bare)]


def without_comments(text):
    """Comments become spaces; line numbers stay."""
    return _TOKENS.sub(lambda m: _blank(m.group()) if m.group().startswith(("//", "/*")) else m.group(), text)


def bare(text):
    """Comments, strings, characters and preprocessor lines become spaces; line numbers stay."""
    # A digit separator (1'000) is no character literal.
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "_", text)
    text = _TOKENS.sub(lambda m: _blank(m.group()), text)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: _blank(m.group()), text, flags=re.M)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


_CONTAINER = re.compile(r"\b(namespace|class|struct|union|extern)\b")
_NAME = re.compile(r"(operator\s*\(\s*\)|operator\s*[^\s(\w]+|[~\w:]+)\s*\($")


def functions(text):
    """(name, first line, lines from first to last brace) of each function body. A heuristic: a brace group at namespace or class
    scope whose head has parentheses."""
    source, found, stack = bare(text), [], []
    head_start, previous = 0, None
    for match in re.finditer(r"[{};]", source):
        at, char = match.start(), match.group()
        inside = bool(stack) and stack[-1][0] in ("body", "block")
        head = source[head_start:at].strip()
        if char == "{":
            kind, name = ("block", None) if inside or head.count("(") > head.count(")") else _classify(head)
            if kind != "block" and previous is not None and (head == "" or head.startswith(",")):
                kind, name = "body", found.pop()[0]  # that was not the body but braces in an initialiser list
            stack.append((kind, name, at))
            previous = previous if kind == "block" else None
        elif char == "}" and stack:
            kind, name, start = stack.pop()
            if kind == "body":
                found.append((name, source.count("\n", 0, start) + 1, source.count("\n", start, at) + 1))
                previous = name
            if kind == "block":
                continue  # braces in a body, or in a parameter list: the head goes on
        elif char == ";" and not inside:
            previous = None
        if not stack or stack[-1][0] not in ("body", "block"):
            head_start = at + 1
    return found


def _classify(head):
    if "(" not in head:
        return ("container" if _CONTAINER.search(head) else "value"), None
    if re.search(r"=\s*$", head) or re.search(r"\benum\b", head):
        return "value", None
    declaration = re.split(r"\)\s*:(?!:)", head)[0]
    if _CONTAINER.search(declaration.split("(")[0]) and not re.search(r"\)\s*(const|noexcept|override|->.*)?$", head):
        return "container", None
    name = _NAME.search(declaration[: _parameter_list(declaration) + 1])
    return "body", name.group(1) if name else declaration.split("(")[0].strip().split("\n")[-1][-40:]


def _parameter_list(declaration):
    """Where the parameter list opens: the first parenthesis outside <...> that follows a name."""
    for match in re.finditer(r"\(", declaration):
        before = declaration[: match.start()].rstrip()
        if before.endswith("operator"):
            continue
        if not re.search(r"\b(requires|decltype|noexcept|alignas|__attribute__)$", before):
            return match.start()
    return len(declaration) - 1
