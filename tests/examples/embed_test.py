"""Goal: the embedding example trains two models in one process and stops cleanly.
Method: it runs on a small text; its lines and folders are looked at, and bad input is named."""

import os
import pathlib
import re
import subprocess
import unittest

import job as e2e


def embed(*arguments):
    return subprocess.run([os.environ["EXAMPLE"], *map(str, arguments)], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=e2e.DEADLINE_S)


class Embed(unittest.TestCase):
    def setUp(self):
        temporary = e2e.temporary_folder()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.text = self.folder / "text.txt"
        self.text.write_text("".join(f"line {i * i} of a text\n" for i in range(2000)))

    def test_trains_two_and_stops_one(self):
        result = embed(self.text, self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        losses = [float(loss) for loss in re.findall(r"^fast step .* loss (.*)$", result.stdout,
                                                     re.M)]
        self.assertEqual(len(losses), 30)
        self.assertLess(losses[-1], losses[0])
        self.assertRegex(result.stdout, r"(?m)^slow step")
        self.assertEqual(result.stdout.splitlines()[-1], "fast finished, slow interrupted")
        for name in ("fast", "slow"):
            self.assertEqual(len(list((self.folder / name / "checkpoints").iterdir())), 1)

    def test_a_text_that_is_not_there(self):
        result = embed(self.folder / "nothing.txt", self.folder)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"\Aembed: .*nothing\.txt.*\n\Z")
        self.assertEqual(embed().returncode, 2)


if __name__ == "__main__":
    unittest.main()
