#!/usr/bin/env python3
"""Plants each kind of defect in a small tree and sees that structure.py finds it, and nothing in the clean tree."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "checks"))
sys.dont_write_bytecode = True

import cpp_text  # noqa: E402
import layer_table  # noqa: E402
import structure  # noqa: E402

HEADER = "// A contract.\n#pragma once\n"
CLEAN = {
    "include/lamina/base/error.hpp": HEADER,
    "include/lamina/mpi/communicator.hpp": HEADER + "#include <lamina/base/error.hpp>\n",
    "include/lamina/comm/fabric.hpp": HEADER + "#include <lamina/mpi/communicator.hpp>\n",
    "include/lamina/shard/flat_layout.hpp": HEADER,
    "include/lamina/shard/window.hpp": HEADER + "#include <lamina/comm/fabric.hpp>\n",
    "include/lamina/checkpoint/manifest.hpp": HEADER + "#include <lamina/shard/flat_layout.hpp>\n",
    "include/lamina/train/step.hpp": HEADER + "#include <lamina/shard/window.hpp>\n",
    "include/lamina/backends/backend.hpp": HEADER,
    "src/mpi/communicator.cpp": "#include <lamina/mpi/communicator.hpp>\n#include <mpi.h>\n",
    "src/backends/registry.cpp": '#include "cpu/cpu_device.hpp"\n#ifdef LAMINA_CUDA\n#endif\n',
    "src/backends/cpu/cpu_device.hpp": HEADER + "#include <lamina/backends/backend.hpp>\n#include <cblas.h>\n",
    "src/train/step.cpp": "#include <lamina/train/step.hpp>\n// cpu::Ops is only named in a comment\n",
    "tools/inspect/main.cpp": "#include <lamina/checkpoint/manifest.hpp>\n",
    "tests/base/error_test.cpp": "#include <lamina/base/error.hpp>\n",
}


def defects(changes):
    """Failing lines for the clean tree with `changes` (path -> text appended) applied."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in CLEAN.items():
            _write(folder, name, text + changes.get(name, ""))
        for name, text in changes.items():
            if name not in CLEAN:
                _write(folder, name, text)
        return [line for line in structure.defects(folder) if not line.startswith("warning:")]


def _write(folder, name, text):
    path = pathlib.Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class PlantedDefects(unittest.TestCase):
    def assert_found(self, changes, *words):
        found = defects(changes)
        matching = [line for line in found if all(word in line for word in words)]
        self.assertTrue(matching, f"no defect with {words} in {found}")

    def test_clean_tree_has_none(self):
        self.assertEqual(defects({}), [])

    def test_upward_include(self):
        self.assert_found({"include/lamina/base/error.hpp": "#include <lamina/config/run_config.hpp>\n",
                           "include/lamina/config/run_config.hpp": HEADER}, "base/error.hpp:3", "above it")

    def test_upward_include_of_private_header(self):
        self.assert_found({"src/comm/gather.cpp": '#include "../train/plan.hpp"\n', "src/train/plan.hpp": HEADER},
                          "src/comm/gather.cpp:1", "above it")

    def test_sideways_include(self):
        self.assert_found({"src/device/device.cpp": "#include <lamina/mpi/communicator.hpp>\n"}, "beside it")

    def test_include_outside_the_list(self):
        self.assert_found({"include/lamina/checkpoint/manifest.hpp": "#include <lamina/comm/fabric.hpp>\n"},
                          "checkpoint/manifest.hpp:4", "not for its use")

    def test_layout_may_be_used_where_shard_may_not(self):
        self.assert_found({"src/checkpoint/writer.cpp": "#include <lamina/shard/window.hpp>\n"}, "checkpoint", "of shard")

    def test_missing_header(self):
        self.assert_found({"src/base/error.cpp": "#include <lamina/base/errors.hpp>\n"}, "does not exist")

    def test_unknown_module(self):
        self.assert_found({"src/helpers/all.cpp": "\n"}, "'helpers' is not in the layer table")

    def test_cyclic_files(self):
        self.assert_found({"include/lamina/base/a.hpp": HEADER + "#include <lamina/base/b.hpp>\n",
                           "include/lamina/base/b.hpp": HEADER + "#include <lamina/base/a.hpp>\n"}, "cyclic include")

    def test_cyclic_modules(self):
        self.assert_found({"include/lamina/mpi/x.hpp": HEADER + "#include <lamina/device/x.hpp>\n",
                           "include/lamina/device/x.hpp": HEADER,
                           "include/lamina/device/y.hpp": HEADER + "#include <lamina/mpi/communicator.hpp>\n"}, "cyclic modules")

    def test_confined_headers(self):
        for header, place in (("mpi.h", "src/train/a.cpp"), ("mpi.h", "src/comm/a.cpp"), ("nccl.h", "src/comm/mpi/a.cpp"),
                              ("cuda_runtime.h", "src/device/a.cpp"), ("cublas_v2.h", "src/ops/a.cpp"),
                              ("hdf5.h", "src/checkpoint/a.cpp"), ("boost/program_options.hpp", "src/app/a.cpp"),
                              ("cblas.h", "src/model/a.cpp"), ("pcre2.h", "src/data/a.cpp"), ("utf8proc.h", "src/app/a.cpp"),
                              ("xxhash.h", "src/checkpoint/a.cpp"), ("spdlog/spdlog.h", "src/app/a.cpp"),
                              ("mpi.h", "tests/train/a.cpp")):
            with self.subTest(header=header, place=place):
                self.assert_found({place: f"#include <{header}>\n"}, place, header, "belongs to")

    def test_confined_header_at_home(self):
        self.assertEqual(defects({"src/comm/mpi/a.cpp": "#include <mpi.h>\n", "tests/support/main.cpp": "#include <mpi.h>\n",
                                  "src/hdf5/a.cpp": "#include <hdf5.h>\n", "src/tokenizer/a.cpp": "#include <pcre2.h>\n"}), [])

    def test_tool_reaches_mpi(self):
        self.assert_found({"include/lamina/checkpoint/manifest.hpp": "#include <mpi.h>\n"},
                          "tools/inspect/main.cpp: reaches mpi.h", "manifest.hpp:4")

    def test_tool_includes_communication(self):
        self.assert_found({"tools/inspect/main.cpp": "#include <lamina/mpi/communicator.hpp>\n"}, "tools/inspect/main.cpp:2")

    def test_train_names_backend(self):
        for text in ("#include <lamina/backends/backend.hpp>\n", "auto ops = cpu::make_ops();\n", 'if (name == "cuda") {}\n',
                     "std::unique_ptr<NcclFabric> fabric;\n"):
            with self.subTest(text=text):
                self.assert_found({"src/train/step.cpp": text}, "src/train/step.cpp:3")

    def test_guard_outside_registry(self):
        for text in ("#ifdef LAMINA_CUDA\n#endif\n", "#if defined(LAMINA_NCCL) && 1\n#endif\n", "#  if LAMINA_WITH_CUDA\n#endif\n"):
            with self.subTest(text=text):
                self.assert_found({"src/mpi/communicator.cpp": text}, "communicator.cpp:3", "compile time")

    def test_header_form(self):
        self.assert_found({"include/lamina/base/bare.hpp": "// A contract.\nint f();\n"}, "without #pragma once")
        self.assert_found({"include/lamina/base/mute.hpp": "#pragma once\nint f();\n"}, "does not begin with its contract")

    def test_long_file(self):
        self.assert_found({"src/base/long.cpp": "int x;\n" * 401}, "src/base/long.cpp: 401 lines")

    def test_long_function(self):
        body = "  step();\n" * 80
        for head in ("void f() {\n", "int Class::method(int a,\n  int b = 3) const noexcept {\n",
                     "Class::Class(int a) : a_(a), b_{a} {\n", "namespace x {\nstruct S {\n  auto operator()(int i) -> int {\n",
                     "template <typename T = int>\nT g(const std::vector<T>& x = {}) {\n"):
            with self.subTest(head=head):
                self.assert_found({"src/base/long.cpp": head + body + "}\n" * head.count("{\n")}, "has 82 lines")

    def test_includes_in_comments_do_not_count(self):
        self.assertEqual(defects({"src/base/error.cpp": "// #include <mpi.h>\n/*\n#include <mpi.h>\n*/\n"}), [])

    def test_empty_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("no sources found", " ".join(structure.defects(folder)))

    def test_upward_table(self):
        original = layer_table.LAYERS["base"]
        layer_table.LAYERS["base"] = (0, "train nothing")
        try:
            found = layer_table.table_defects()
        finally:
            layer_table.LAYERS["base"] = original
        self.assertTrue(any("lies above" in line for line in found) and any("no module" in line for line in found), found)


class FunctionReader(unittest.TestCase):
    def test_names_and_lengths(self):
        text = '''namespace a {
int plain(int x) { return x; }
class C final : public B {
 public:
  C() : x_{1}, y_(2) {
    go("}", '{');
  }
  bool operator()(int i) const noexcept {
    if (i > 1'000) { return false; }
    auto f = [&](int j) { return j; };
    return f(i) == 1;
  }
};
constexpr int values[] = {f(1), f(2)};
enum class E { a, b };
template <typename T>
auto tail(T t) -> decltype(t) {
  return t;
}
int twice(int a) { return a; }
int twice(double b) { return 1; }
}  // namespace a
'''
        found = [(name, length) for name, _, length in cpp_text.functions(text)]
        self.assertEqual(found, [("plain", 1), ("C", 3), ("operator()", 5), ("tail", 3), ("twice", 1), ("twice", 1)])


if __name__ == "__main__":
    unittest.main()
