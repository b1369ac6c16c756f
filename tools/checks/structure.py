#!/usr/bin/env python3
"""Checks that the tree keeps the layers of layer_table.py. Usage: structure.py ROOT. Prints one line a defect; exit 1 if any."""

import pathlib
import re
import sys

import cpp_text
import layer_table as table

SOURCES = {".hpp", ".cpp", ".cu", ".cuh", ".h", ".c"}
COUNTED = SOURCES | {".py", ".sh", ".cmake"}
FOLDERS = ("include", "src", "tools", "tests")


def module_of(path):
    """The module of a path relative to the root, or None for a folder that is no module."""
    name = path.as_posix()
    for prefix, module in table.FILE_MODULES.items():
        if name.startswith(prefix + "."):
            return module
    parts = path.parts
    if parts[0] == "tests":
        return "tests"
    if parts[0] == "tools":
        return "tools/bench" if parts[1] == "bench" else "tools"
    parts = parts[2:] if parts[:2] == ("include", "lamina") else parts[1:]
    if len(parts) < 2:
        return None
    two = "/".join(parts[:2])
    if two in table.SUBMODULES:
        return two
    return parts[0]


class Tree:
    """The sources below a root, with their text, modules and includes of each other."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = sorted(p.relative_to(self.root) for folder in FOLDERS for p in (self.root / folder).rglob("*")
                            if p.suffix in COUNTED and p.is_file() and "__pycache__" not in p.parts)
        self.text = {p: (self.root / p).read_text(encoding="utf-8") for p in self.files}
        self.cpp = [p for p in self.files if p.suffix in SOURCES]
        self.module = {p: module_of(p) for p in self.cpp}
        self.includes = {p: cpp_text.includes(self.text[p]) for p in self.cpp}
        self.edges = {p: [(line, name, self.resolve(p, name)) for line, _, name in self.includes[p]] for p in self.cpp}

    def resolve(self, source, name):
        """The file of ours that `name` means in `source`, or None."""
        folders = [source.parent, pathlib.Path("include"), pathlib.Path("tests")]
        if source.parts[0] in ("src", "tools", "tests"):
            folders += list(source.parents)[:-2]
        for folder in folders:
            candidate = pathlib.Path(*_normal((folder / name).parts))
            if candidate in self.text:
                return candidate
        return None


def _normal(parts):
    result = []
    for part in parts:
        if part == "..":
            if result:
                result.pop()
        elif part != ".":
            result.append(part)
    return result


def check_layers(tree):
    for path in tree.cpp:
        module = tree.module[path]
        if module not in table.LAYERS:
            yield f"{path}: module '{module}' is not in the layer table (tools/checks/layer_table.py)"
            continue
        for line, name, target in tree.edges[path]:
            if target is None:
                if name.startswith("lamina/"):
                    yield f"{path}:{line}: includes {name}, which does not exist"
                continue
            other = tree.module[target]
            if other in table.LAYERS and other not in table.allowed(module):
                yield _layer_defect(path, line, name, module, other)


def _layer_defect(path, line, name, module, other):
    mine, theirs = table.LAYERS[module][0], table.LAYERS[other][0]
    why = "above it" if theirs > mine else "beside it" if theirs == mine else "below it, but not for its use"
    return f"{path}:{line}: {module} (layer {mine}) includes {name} of {other} (layer {theirs}), {why}"


def find_cycle(graph):
    """One cycle of a {node: successors} graph as a list that starts and ends with the same node, or None. Iterative."""
    done, on_path = set(), {}
    for start in graph:
        if start in done:
            continue
        stack = [(start, iter(graph[start]))]
        on_path = {start: 0}
        while stack:
            node, successors = stack[-1]
            following = next(successors, None)
            if following is None:
                done.add(node)
                del on_path[node]
                stack.pop()
            elif following in on_path:
                return [entry for entry, _ in stack[on_path[following]:]] + [following]
            elif following not in done and following in graph:
                on_path[following] = len(stack)
                stack.append((following, iter(graph[following])))
    return None


def check_cycles(tree):
    files = {p: [target for _, _, target in tree.edges[p] if target] for p in tree.cpp}
    cycle = find_cycle(files)
    if cycle:
        yield "cyclic include: " + " -> ".join(str(p) for p in cycle)
    modules = {}
    for path, targets in files.items():
        for target in targets:
            modules.setdefault(tree.module[path], set())
            if tree.module[path] != tree.module[target]:
                modules[tree.module[path]].add(tree.module[target])
    cycle = find_cycle(modules)
    if cycle:
        yield "cyclic modules: " + " -> ".join(str(m) for m in cycle)


def check_confinement(tree):
    for path in tree.cpp:
        homes = {tree.module[path], "/".join(path.parts[:2])}
        for line, _, name in tree.includes[path]:
            for pattern, places in table.CONFINED_HEADERS:
                if re.fullmatch(pattern, name) and not homes & places:
                    yield f"{path}:{line}: includes {name}, which belongs to {', '.join(sorted(places))} only"


def check_login_tools(tree):
    """Nothing that a tool for a login node includes may reach MPI, CUDA or NCCL."""
    for path in (p for p in tree.cpp if tree.module[p] == "tools"):
        seen, queue = {path}, [path]
        while queue:
            current = queue.pop()
            for line, name, target in tree.edges[current]:
                if re.fullmatch(table.NOT_ON_LOGIN_NODES, name):
                    yield f"{path}: reaches {name} through {current}:{line}, but must run on a login node without it"
                if target and target not in seen:
                    seen.add(target)
                    queue.append(target)


def check_backend_words(tree):
    for path in tree.cpp:
        module, text = tree.module[path], cpp_text.without_comments(tree.text[path])
        for number, line in enumerate(text.split("\n"), 1):
            if (module not in table.GUARD_MODULES | {"backends/cuda", "comm/nccl", "tests"}
                    and re.match(r"\s*#\s*(el)?if", line) and re.search(table.GUARD_MACROS, line)):
                yield f"{path}:{number}: asks at compile time for a backend; that belongs in a registry or in app"
            if module in table.BACKEND_BLIND_MODULES and re.search(table.BACKEND_NAMES, line):
                yield f"{path}:{number}: {module} names a backend or fabric: {line.strip()}"


def check_headers(tree):
    for path in (p for p in tree.cpp if p.suffix == ".hpp"):
        text = tree.text[path]
        if "#pragma once" not in text:
            yield f"{path}: header without #pragma once"
        if path.parts[0] == "include" and not text.startswith("//"):
            yield f"{path}: public header does not begin with its contract (a comment)"


def check_sizes(tree):
    """Yields defects; lines that begin with 'warning:' do not fail the check."""
    for path in tree.files:
        lines = tree.text[path].count("\n")
        if lines > table.FILE_LINES_LIMIT:
            yield f"{path}: {lines} lines, limit {table.FILE_LINES_LIMIT}"
        elif lines > table.FILE_LINES_WARN:
            yield f"warning: {path}: {lines} lines, aim for {table.FILE_LINES_WARN}"
    for path in tree.cpp:
        for name, line, length in cpp_text.functions(tree.text[path]):
            if length > table.FUNCTION_LINES_LIMIT:
                yield f"{path}:{line}: function {name} has {length} lines, limit {table.FUNCTION_LINES_LIMIT}"
            elif length > table.FUNCTION_LINES_WARN:
                yield f"warning: {path}:{line}: function {name} has {length} lines, aim for {table.FUNCTION_LINES_WARN}"


CHECKS = (check_layers, check_cycles, check_confinement, check_login_tools, check_backend_words, check_headers, check_sizes)


def defects(root):
    found = [f"layer table: {d}" for d in table.table_defects()]
    tree = Tree(root)
    if not tree.cpp:
        found.append(f"{root}: no sources found; pass the root of the project")
    for check in CHECKS:
        found.extend(check(tree))
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: structure.py ROOT")
    found = defects(sys.argv[1])
    for line in found:
        print(line)
    failing = [line for line in found if not line.startswith("warning:")]
    print(f"structure: {len(failing)} defects, {len(found) - len(failing)} warnings")
    sys.exit(1 if failing else 0)


if __name__ == "__main__":
    main()
