"""Goal: a program outside the project finds the library with find_package(holmes), installed or in
the build tree, links it and runs, with nothing of the source tree that is not public.
Method: an installation into a temporary prefix; the program in consumer/ is configured, built and
run against it, and against the build folder."""

import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = os.environ["HOLMES_BUILD"]
SOURCE = pathlib.Path(__file__).parent
ROOT = SOURCE.parent.parent
DEADLINE_S = 100


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=DEADLINE_S)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


class Consumer(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="holmes-package-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def build(self, source, *where):
        """Builds a project that has one executable of its folder's name; returns its path and the
        commands that it took."""
        folder = self.folder / pathlib.Path(source).name
        options = [f"-DCMAKE_CXX_COMPILER={os.environ['HOLMES_CXX']}",
                   f"-DCMAKE_CXX_COMPILER_LAUNCHER={os.environ['HOLMES_LAUNCHER']}"]
        run("cmake", "-S", source, "-B", folder, "-G", "Ninja", *options, *where)
        run("cmake", "--build", folder)
        commands = run("ninja", "-C", folder, "-t", "commands")
        return folder / pathlib.Path(source).name, commands

    def check(self, executable):
        output = run(executable)
        self.assertIn("stage 0", output)
        self.assertIn("b1", output)
        self.assertRegex(output, r"refused: .*data\.text")

    def test_installed(self):
        prefix = self.folder / "prefix"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        executable, commands = self.build(SOURCE / "consumer", f"-DCMAKE_PREFIX_PATH={prefix}")
        self.check(executable)
        self.assertIn(str(prefix / "include"), commands)
        self.assertNotIn(str(BUILD), commands)
        self.assertNotIn(str(ROOT / "actors"), commands)
        version = run(prefix / "bin/holmes", "--version").split()[1]
        self.assertIn(f'set(PACKAGE_VERSION "{version}")',
                      next(prefix.rglob("holmesConfigVersion.cmake")).read_text())
        for config in prefix.rglob("*.cmake"):  # the package can be moved and copied
            self.assertNotIn(str(prefix), config.read_text(), config)
            self.assertNotIn(str(BUILD), config.read_text(), config)

        self.check_example(prefix)

    def check_example(self, prefix):
        executable, _ = self.build(ROOT / "examples/embed", f"-DCMAKE_PREFIX_PATH={prefix}")
        text = self.folder / "text.txt"
        text.write_text("a text of one line\n" * 500)
        self.assertIn("fast finished, slow interrupted", run(executable, text, self.folder))

    def test_build_tree(self):
        executable, commands = self.build(SOURCE / "consumer", f"-Dholmes_DIR={BUILD}")
        self.check(executable)
        includes = {word for word in commands.split() if str(ROOT) in word
                    and ("-I" in word or word.endswith("/include"))}
        self.assertFalse([word for word in includes if not word.endswith("/include")])


if __name__ == "__main__":
    unittest.main()
