"""Goal: the Debian packages hold what users need, name the libraries that it takes, and what is in
them runs; manual pages and completion say what the executable says.
Method: cpack into a temporary folder; the packages are looked at and unpacked there, never
installed; each command's --help is compared with its page as man shows it."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

BUILD = os.environ["HOLMES_BUILD"]
DEADLINE_S = 100


def run(*command, **more):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=DEADLINE_S, **more)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def options_of(text):
    return set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))


class Debian(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="holmes-debian-")
        cls.addClassCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        run("cpack", "-G", "DEB", "--config", f"{BUILD}/CPackConfig.cmake", "-B", folder / "made",
            cwd=BUILD)
        cls.packages = {re.match(r"[a-z-]+", path.name).group(): path
                        for path in (folder / "made").glob("*.deb")}
        cls.root = folder / "root"
        for path in cls.packages.values():
            run("dpkg-deb", "-x", path, cls.root)
        cls.holmes = cls.root / "usr/bin/holmes"
        cls.commands = re.findall(r"^  ([a-z]+) ", run(cls.holmes, "--help").split(
            "Subcommands:")[1], re.M)

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.packages[package], name).strip()

    def test_names_and_dependencies(self):
        self.assertEqual(sorted(self.packages), ["holmes", "libholmes-dev"])
        version = run(self.holmes, "--version").split()[1]
        for package in self.packages:
            self.assertEqual(self.field(package, "Package"), package)
            self.assertEqual(self.field(package, "Version"), version)
            self.assertNotEqual(self.field(package, "Maintainer"), "")
        needs = self.field("holmes", "Depends")
        for library in ("libc6", "libstdc++6", "libcaf-core", "libdnnl", "libcapnp", "libpcre2-8",
                        "libutf8proc", "zlib1g", "libgomp1"):
            self.assertIn(library, needs)
        self.assertIn("libcaf-dev", self.field("libholmes-dev", "Depends"))

    def test_every_package_that_is_named_exists(self):
        names = {re.match(r"\S+", part.strip()).group()
                 for package in self.packages
                 for part in self.field(package, "Depends").split(",")}
        for name in names:
            self.assertIn("installed", run("dpkg-query", "-W", "-f", "${db:Status-Status}", name))

    def test_the_executable_runs_from_where_it_was_unpacked(self):
        self.assertEqual(run(self.holmes, "--version"), run(os.environ["HOLMES"], "--version"))
        self.assertIn("micro_batch", run(self.holmes, "train", "--keys"))

    def test_nothing_lies_outside_usr(self):
        self.assertEqual([path.name for path in self.root.iterdir()], ["usr"])
        for path in ("lib/libholmes_actors.a", "include/holmes/actors/session.hpp",
                     "lib/cmake/holmes/holmesConfig.cmake",
                     "share/bash-completion/completions/holmes"):
            self.assertTrue((self.root / "usr" / path).is_file(), path)

    def shown(self, page):
        path = self.root / "usr/share/man/man1" / f"{page}.1"
        text = run("man", "-l", path, env={**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8"})
        return re.sub(r".\x08", "", text).replace("\u2010", "-")

    def test_pages_have_every_option_of_every_command(self):
        self.assertGreater(len(self.commands), 5)
        names = {path.stem for path in (self.root / "usr/share/man/man1").iterdir()}
        self.assertEqual(names, {"holmes", *(f"holmes-{name}" for name in self.commands)})
        overview = self.shown("holmes")
        for command in self.commands:
            help_text = run(self.holmes, command, "--help")
            page = self.shown(f"holmes-{command}")
            self.assertIn(f"holmes-{command}", overview)
            self.assertIn(help_text.split("\n")[0], page)
            nested = help_text.split("Subcommands:")[1:]
            helps = [help_text] + [run(self.holmes, command, each, "--help") for part in nested
                                   for each in re.findall(r"^  ([a-z]+) ", part, re.M)]
            wanted = set().union(*map(options_of, helps))
            self.assertEqual(wanted - options_of(page), set(), command)

    def complete(self, *words):
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _holmes; '
                  'echo "${COMPREPLY[*]}"')
        completion = self.root / "usr/share/bash-completion/completions/holmes"
        return run("bash", "-c", script, "bash", completion, "holmes", *words).split()

    def test_completion(self):
        self.assertEqual(self.complete("tr"), ["train"])
        self.assertEqual(set(self.commands) - set(self.complete("")), set())
        self.assertEqual(self.complete("data", "ins"), ["inspect"])
        self.assertEqual(self.complete("bench", "all"), ["allreduce"])
        self.assertEqual(self.complete("train", "job.toml", "--log-level", "w"), ["warning"])
        self.assertEqual(self.complete("train", "--set", "tr"), [])
        for command in self.commands:
            help_text = run(self.holmes, command, "--help")
            if "Subcommands:" not in help_text:
                self.assertEqual(options_of(help_text.split("Options:")[1].split("\n\n")[0])
                                 - set(self.complete(command, "--")) - {"--via"}, set())


if __name__ == "__main__":
    unittest.main()
