#!/usr/bin/env python3
"""Style as a test: walks the tree and fails on what the house style forbids.

Usage: tidy.py ROOT [--build DIR]    --build: also check every CTest test of that build folder.

A line may be exempted by a comment on it or on the line before, a function by one on the line
before it or inside it, a file by one in its first 40 lines:  tidy-allow(RULE): the reason
"""

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FILE_LINES_MAX = 700
PUBLIC_HEADER_LINES_MAX = 300
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100

MODULES = ("base", "transport", "partition", "model", "actors", "launcher")
MAY_INCLUDE = {
    "base": {"base"},
    "transport": {"base", "transport"},
    "partition": {"base", "partition"},
    "model": {"base", "model"},
    "actors": {"base", "transport", "partition", "model", "actors"},
    "launcher": set(MODULES),
}
SKIPPED_ANYWHERE = {".git", "__pycache__"}
SKIPPED_AT_ROOT = {"build", ".cache", "runs", "data"}
CODE = {".cpp", ".hpp"}
TEXT = CODE | {".py", ".md", ".toml", ".txt", ".cmake", ".json", ".capnp", ".sh", ".svg", ""}

# Rule, what is banned, and the files (by prefix) that are the seam or may do it all the same.
BANNED = (
    ("clock", re.compile(r"_clock::now\s*\("), ("base/src/clock.cpp",)),
    ("random-device", re.compile(r"\brandom_device\b"), ()),
    ("sleep", re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\("),
     ("base/src/compute_queue.cpp",)),
    ("getenv", re.compile(r"\bgetenv\s*\("), ("launcher/src/",)),
    ("thread", re.compile(r"\bstd::(thread|jthread|async)\b(?!::)"),
     ("base/", "launcher/", "transport/src/tcp/", "transport/include/holmes/transport/tcp.hpp")),
    ("new-delete", re.compile(r"(?<!operator )\bnew\b(?!\s*\()|(?<!= )(?<!operator )\bdelete\b"),
     ("base/src/buffer.cpp",)),
)
THIRD_PARTY = re.compile(r'#include [<"](asio|capnp|kj|caf|spdlog|fmt|CLI|toml|nlohmann|dnnl|zlib)')


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    rule: str
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.text}"


def allowed(lines, index, rule):
    """Whether line `index` (0-based) or the one before exempts the rule."""
    mark = f"tidy-allow({rule}):"
    return any(mark in lines[i] for i in (index, index - 1) if 0 <= i < len(lines))


def allowed_in_file(lines, rule):
    return any(f"tidy-allow({rule}):" in line for line in lines[:40])


LEXEME = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)


def code_only(source):
    """The source with comments and literals blanked, every line kept in its place."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    return LEXEME.sub(blank, source)


SCOPE = re.compile(r"^\s*(template\s*<.*>\s*)?(inline\s+)?(typedef\s+)?"
                   r"(namespace|class|struct|enum|union|extern)\b", re.S)


def function_sizes(source):
    """(first line, last line) of every function body, 1-based; lambdas belong to their function."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group()),
                  code_only(source), flags=re.M)
    found = []
    head, line, depth, start = "", 1, 0, 0
    for i, letter in enumerate(code):
        if letter == "\n":
            line += 1
        if depth > 0:  # inside a function or an initialiser: only count braces
            depth += (letter == "{") - (letter == "}")
            if depth == 0:
                if start:
                    found.append((start, line))
                # a member initialiser in braces: the function's head goes on
                after = code[i + 1:].lstrip()[:1]
                head = head + "{}" if after in (",", "{") else ""
                if after in (",", "{") and start:
                    found.pop()
        elif letter == "{":
            if SCOPE.match(head) and not re.search(r"\)\s*(const)?\s*$", head):
                head = ""
            else:
                depth, start = 1, line if "(" in head else 0
        elif letter in ";}":
            head = ""
        else:
            head += letter
            if letter == ":" and re.search(r"\b(public|private|protected)\s*:$", head):
                head = ""
    return found


class Tidy:
    def __init__(self, root):
        self.root = Path(root)
        self.findings = []

    def report(self, path, line, rule, text):
        self.findings.append(Finding(path, line, rule, text))

    def files(self):
        for folder, folders, names in os.walk(self.root):
            skipped = SKIPPED_ANYWHERE | (SKIPPED_AT_ROOT if Path(folder) == self.root else set())
            folders[:] = sorted(f for f in folders if f not in skipped)
            for name in sorted(names):
                path = Path(folder) / name
                text = path.suffix in TEXT and name != ".git"
                if text and path.is_file() and not path.is_symlink():
                    yield path

    def run(self):
        for path in self.files():
            name = path.relative_to(self.root).as_posix()
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            self.check(name, text)
        return self.findings

    def check(self, name, text):
        lines = text.split("\n")
        self.check_text(name, lines)
        if name.endswith((".cpp", ".hpp")):
            self.check_code(name, text, lines)
        if name.endswith(".md"):
            self.check_links(name, lines)

    def check_text(self, name, lines):
        machine_paths = re.compile("(?<![\\w.])/(" + "|".join(("work", "tmp/wt", "root", "home")) +
                                   ")/\\w")
        for i, line in enumerate(lines):
            if machine_paths.search(line) and not allowed(lines, i, "machine-path"):
                self.report(name, i + 1, "machine-path", "names a path of one machine")
            # tidy-allow(todo): this is the rule itself
            if re.search(r"\bTODO\b", line) and not allowed(lines, i, "todo"):
                # tidy-allow(todo): this is the rule itself
                if not re.search(r"\bTODO\((perf|port|test|cleanup)\): .*#\d+", line):
                    self.report(name, i + 1, "todo",
                                # tidy-allow(todo): this is the rule itself
                                "write TODO(perf|port|test|cleanup): what, and #issue")

    def check_code(self, name, text, lines):
        public = "/include/holmes/" in name
        bound = PUBLIC_HEADER_LINES_MAX if public else FILE_LINES_MAX
        if len(lines) > bound and not allowed_in_file(lines, "file-size"):
            self.report(name, len(lines), "file-size", f"{len(lines)} lines, at most {bound}")
        for i, line in enumerate(lines):
            if len(line) > COLUMNS_MAX and "http" not in line:
                self.report(name, i + 1, "columns", f"{len(line)} columns, at most {COLUMNS_MAX}")
        self.check_functions(name, text, lines)
        code = code_only(text).split("\n")
        if name.split("/")[0] in MODULES:
            self.check_banned(name, lines, code)
            self.check_includes(name, lines)
        for i, line in enumerate(code):
            if re.search(r"\[\s*=\s*[\],]", line):
                self.report(name, i + 1, "capture", "[=] captures what nobody sees; name them")
        if name.endswith(".hpp"):
            self.check_header(name, lines, code, public)

    def check_functions(self, name, text, lines):
        for first, last in function_sizes(text):
            size = last - first + 1
            if size <= FUNCTION_LINES_MAX:
                continue
            if any("tidy-allow(function-size):" in l for l in lines[max(0, first - 3):last]):
                continue
            self.report(name, first, "function-size",
                        f"a function of {size} lines, at most {FUNCTION_LINES_MAX}")

    def check_banned(self, name, lines, code):
        for rule, pattern, seams in BANNED:
            if seams and name.startswith(seams):
                continue
            for i, line in enumerate(code):
                if pattern.search(line) and not line.lstrip().startswith("#") \
                        and not allowed(lines, i, rule):
                    self.report(name, i + 1, rule, f"banned outside its seam: {line.strip()}")

    def check_includes(self, name, lines):
        module = name.split("/")[0]
        own = self.own_header(name)
        first = True
        for i, line in enumerate(lines):
            if not line.startswith("#include"):
                continue
            target = re.match(r'#include "holmes/(\w+)/', line)
            # holmes/wire/ is code generated from transport's schema
            known = MAY_INCLUDE[module]
            known = known | {"wire"} if "transport" in known else known
            if target and target.group(1) not in known:
                self.report(name, i + 1, "include", f"{module} may not know {target.group(1)}")
            if first and own and f'"{own}"' not in line:
                self.report(name, i + 1, "own-header", f'the first include must be "{own}"')
            first = False

    def own_header(self, name):
        """How a source file includes the header that it implements, if there is one."""
        match = re.match(r"(\w+)/src/(.+)\.cpp$", name)
        if not match:
            return None
        module, stem = match.groups()
        if (self.root / module / "src" / f"{stem}.hpp").is_file():
            return f"{stem}.hpp"
        if (self.root / module / "include/holmes" / module / f"{stem}.hpp").is_file():
            return f"holmes/{module}/{stem}.hpp"
        return None

    def check_header(self, name, lines, code, public):
        if not lines or lines[0].strip() != "#pragma once":
            self.report(name, 1, "pragma-once", "a header starts with #pragma once")
        opening = next((line for line in lines[1:] if line.strip()), "")
        if not opening.startswith("//"):
            self.report(name, 2, "opening-comment",
                        "a header opens with what it is, what it is not, and who owns it")
        for i, line in enumerate(code):
            if re.search(r"\busing\s+namespace\b", line):
                self.report(name, i + 1, "using-namespace", "no using namespace in a header")
            if public and THIRD_PARTY.match(lines[i]):
                if not (name.startswith("actors/") and "<caf/" in lines[i]):
                    self.report(name, i + 1, "third-party", "no library's type in a public header")

    def check_links(self, name, lines):
        folder = (self.root / name).parent
        for i, line in enumerate(lines):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target) or target.startswith("#"):
                    continue
                if not (folder / target.split("#")[0]).exists():
                    self.report(name, i + 1, "link", f"{target} does not exist")


LABELS = {"unit", "conformance", "golden", "sim", "fuzz", "e2e", "gpu", "rdma", "bench", "package"}


def check_ctest(listing):
    """Findings for a `ctest --show-only=json-v1` listing: a TIMEOUT and one known label each."""
    findings = []
    for test in listing["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        labels = set(properties.get("LABELS", []))
        if "TIMEOUT" not in properties:
            findings.append(Finding(test["name"], 0, "ctest-timeout", "has no TIMEOUT"))
        if len(labels & LABELS) != 1 or labels - LABELS:
            findings.append(Finding(test["name"], 0, "ctest-label",
                                    f"has labels {sorted(labels)}; one of {sorted(LABELS)} it needs"))
    if not listing["tests"]:
        findings.append(Finding("ctest", 0, "ctest-empty", "no test is registered"))
    return findings


def main():
    parser = argparse.ArgumentParser(description="Checks the house style.")
    parser.add_argument("root")
    parser.add_argument("--build", help="build folder whose CTest tests are checked")
    arguments = parser.parse_args()
    findings = Tidy(arguments.root).run()
    if arguments.build:
        listing = subprocess.run(["ctest", "--test-dir", arguments.build, "--show-only=json-v1"],
                                 check=True, capture_output=True, text=True, timeout=60)
        findings += check_ctest(json.loads(listing.stdout))
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
