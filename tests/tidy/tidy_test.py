"""Goal: every rule of tidy.py finds what it is for and nothing else.
Method: each case is a small file in a temporary tree; the rules reported are compared exactly."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import budgets  # noqa: E402
import tidy  # noqa: E402

HEADER = "#pragma once\n\n// What it is.\n\n"


def rules(name, text, others=()):
    with tempfile.TemporaryDirectory() as folder:
        for path, content in [*others, (name, text)]:
            file = Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        return [f.rule for f in tidy.Tidy(folder).run() if f.path == name]


def function(lines):
    return "void f() {\n" + "  g();\n" * (lines - 2) + "}\n"


class Sizes(unittest.TestCase):
    def test_function(self):
        self.assertEqual(rules("base/src/a.cpp", function(70)), [])
        self.assertEqual(rules("base/src/a.cpp", function(71)), ["function-size"])
        self.assertEqual(rules("base/src/a.cpp",
                               "// tidy-allow(function-size): a table\n" + function(71)), [])

    def test_functions_are_found_where_they_are(self):
        source = ("namespace a {\nclass B : public C {\n public:\n  B() : x_{1}, y_{2} {\n    z();\n"
                  "  }\n  int f() const {\n    return [](int i) { return i; }(3);\n  }\n"
                  "  int x_ = 3;\n  std::vector<int> v_{1, 2};\n};\n"
                  "#define M(x) do { x; } while (false)\n"
                  "TEST(A, B) {\n  const char* s = \"}\"; // }\n}\n}\n")
        self.assertEqual(tidy.function_sizes(source), [(4, 6), (7, 9), (14, 16)])

    def test_file(self):
        self.assertEqual(rules("base/src/a.cpp", "// x\n" * 699), [])
        self.assertEqual(rules("base/src/a.cpp", "// x\n" * 700), ["file-size"])
        self.assertEqual(rules("base/include/holmes/base/a.hpp", HEADER + "// x\n" * 300),
                         ["file-size"])

    def test_columns(self):
        self.assertEqual(rules("base/src/a.cpp", "// " + "x" * 97 + "\n"), [])
        self.assertEqual(rules("base/src/a.cpp", "// " + "x" * 98 + "\n"), ["columns"])


class Banned(unittest.TestCase):
    def test_calls_outside_their_seam(self):
        for rule, call in (("clock", "std::chrono::steady_clock::now();"),
                           ("random-device", "std::random_device r;"),
                           ("sleep", "std::this_thread::sleep_for(x);"),
                           ("getenv", "std::getenv(\"A\");"),
                           ("thread", "std::thread t;"),
                           ("new-delete", "auto* p = new T;"),
                           ("new-delete", "delete p;")):
            self.assertEqual(rules("model/src/a.cpp", call + "\n"), [rule], call)
            self.assertEqual(
                rules("model/src/a.cpp", f"// tidy-allow({rule}): why\n{call}\n"), [], call)
            self.assertEqual(rules("tests/model/a_test.cpp", call + "\n"), [], call)

    def test_seams_and_lookalikes(self):
        self.assertEqual(rules("base/src/clock.cpp", "x = std::chrono::steady_clock::now();\n"), [])
        self.assertEqual(rules("launcher/src/a.cpp", "std::getenv(\"A\");\nstd::thread t;\n"), [])
        self.assertEqual(rules("model/src/a.cpp", "// a new day\nA(const A&) = delete;\n"
                               "f(\"delete\"); std::thread::id i;\n"), [])

    def test_captures(self):
        self.assertEqual(rules("model/src/a.cpp", "auto f = [=] { };\n"), ["capture"])
        self.assertEqual(rules("model/src/a.cpp", "auto f = [=, this] { };\n"), ["capture"])
        self.assertEqual(rules("model/src/a.cpp", "auto f = [x = 1] { };\n"), [])


class Includes(unittest.TestCase):
    def test_folders_that_must_not_meet(self):
        self.assertEqual(rules("model/src/a.cpp", '#include "holmes/transport/x.hpp"\n'),
                         ["include"])
        self.assertEqual(rules("base/src/a.cpp", '#include "holmes/model/x.hpp"\n'), ["include"])
        self.assertEqual(rules("actors/src/a.cpp", '#include "holmes/model/x.hpp"\n'), [])

    def test_own_header_first(self):
        other = [("model/src/a.hpp", HEADER)]
        self.assertEqual(rules("model/src/a.cpp", '#include <vector>\n#include "a.hpp"\n', other),
                         ["own-header"])
        self.assertEqual(rules("model/src/a.cpp", '#include "a.hpp"\n#include <vector>\n', other),
                         [])

    def test_headers(self):
        name = "model/include/holmes/model/a.hpp"
        self.assertEqual(rules(name, HEADER), [])
        self.assertEqual(rules(name, HEADER.replace("once", "twice")), ["pragma-once"])
        self.assertEqual(rules(name, "#pragma once\n\n#include <vector>\n"), ["opening-comment"])
        self.assertEqual(rules(name, HEADER + "using namespace std;\n"), ["using-namespace"])
        self.assertEqual(rules(name, HEADER + "#include <dnnl.hpp>\n"), ["third-party"])
        self.assertEqual(rules("actors/include/holmes/actors/a.hpp",
                               HEADER + "#include <caf/all.hpp>\n"), [])


class Text(unittest.TestCase):
    def test_only_folders_at_the_root_are_passed_over(self):
        self.assertEqual(rules("build/a.cpp", "auto f = [=] { };\n"), [])
        self.assertEqual(rules("model/src/data/a.cpp", "auto f = [=] { };\n"), ["capture"])

    def test_todo(self):
        word = "TO" + "DO"
        self.assertEqual(rules("a.md", f"{word}: later\n"), ["todo"])
        self.assertEqual(rules("a.md", f"{word}(perf): later, #12\n"), [])

    def test_machine_paths(self):
        self.assertEqual(rules("a.md", "in /" + "root/x\n"), ["machine-path"])
        self.assertEqual(rules("a.md", "in ./" + "root/x and /usr/include\n"), [])

    def test_links(self):
        self.assertEqual(rules("docs/a.md", "[x](b.md) [y](../c.md#d) [z](https://e.f)\n",
                               [("docs/b.md", ""), ("c.md", "")]), [])
        self.assertEqual(rules("docs/a.md", "[x](nothing.md)\n"), ["link"])


class Tests(unittest.TestCase):
    @staticmethod
    def listing(**properties):
        return {"tests": [{"name": "t", "properties":
                           [{"name": k, "value": v} for k, v in properties.items()]}]}

    def check(self, listing):
        return [f.rule for f in tidy.check_ctest(listing)]

    def test_each_has_a_timeout_and_one_label(self):
        self.assertEqual(self.check(self.listing(TIMEOUT=60, LABELS=["unit"])), [])
        self.assertEqual(self.check(self.listing(LABELS=["unit"])), ["ctest-timeout"])
        self.assertEqual(self.check(self.listing(TIMEOUT=60)), ["ctest-label"])
        self.assertEqual(self.check(self.listing(TIMEOUT=60, LABELS=["unit", "odd"])),
                         ["ctest-label"])
        self.assertEqual(self.check({"tests": []}), ["ctest-empty"])

    def test_label_budgets(self):
        log = "Label Time Summary:\nunit    =  {} sec*proc (3 tests)\n"
        self.assertEqual(budgets.over_budget(log.format("19.9")), [])
        self.assertEqual(len(budgets.over_budget(log.format("20.1"))), 1)
        self.assertEqual(len(budgets.over_budget("odd    =  1.0 sec*proc (3 tests)\n")), 1)

    def test_counts(self):
        text = "100% tests passed, 0 tests failed out of 57\n"
        self.assertEqual(budgets.counts(text), (57, 0))
        skip = " 3/57 Test #46: Golden.Steps/gpt2_cuda ....***Skipped   0.21 sec\n"
        self.assertEqual(budgets.counts(skip + text), (56, 0))
        self.assertEqual(budgets.counts(text + "50% tests passed, 2 tests failed out of 4\n"),
                         (59, 2))


if __name__ == "__main__":
    unittest.main()
