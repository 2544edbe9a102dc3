"""Goal: whoever asks a script what it does is told, on a machine where nothing is installed yet, and
a mistyped argument starts nothing.
Method: every script of scripts/ with --help and with an argument that nobody knows, in an environment
whose Python has no torch."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = sorted(path for path in (ROOT / "scripts").iterdir() if path.suffix == "")
PASSES_ON = {"demo"}  # what it does not know is for holmes train


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        Path(folder.name, "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
        self.environment = {"PATH": os.environ["PATH"], "PYTHONPATH": folder.name,
                            "PYTHONDONTWRITEBYTECODE": "1"}

    def run_script(self, script, *arguments):
        return subprocess.run([str(script), *arguments], env=self.environment, capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, timeout=30)

    def test_help(self):
        self.assertGreater(len(SCRIPTS), 5)
        for script in SCRIPTS:
            for option in ("--help", "-h"):
                with self.subTest(script=script.name, option=option):
                    result = self.run_script(script, option)
                    self.assertEqual((result.returncode, result.stderr), (0, ""))
                    self.assertIn(script.name, result.stdout)

    def test_what_they_do_not_know(self):
        for script in SCRIPTS:
            if script.name in PASSES_ON:
                continue
            with self.subTest(script=script.name):
                result = self.run_script(script, "--no-such-option")
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn("--no-such-option", result.stderr)

    def test_a_missing_torch_is_named_with_its_package(self):
        result = self.run_script(ROOT / "scripts/bench-torch")
        self.assertEqual(result.returncode, 1)
        self.assertIn("install python3-torch", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


if __name__ == "__main__":
    unittest.main()
