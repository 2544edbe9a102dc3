"""Goal: what README and docs show is what the program does: their commands run, the output and the
figures that they quote are those of today, and every example job can be used as they say.
Method: commands that plan and simulate are run as they are written, in a folder beside the sources;
quoted lines are looked for in what they print; the BPE example trains on a small text of our own."""

import os
import pathlib
import re
import shlex
import subprocess
import unittest

import job as e2e

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
QUICK = re.compile(r"holmes (plan|simulate|nics|train --keys)\b|tests/transport/machines/unpack\b")
PLACEHOLDER = re.compile(r"\b(JOB|FILE|CELLS|FOLDER|NAME)\b")
QUOTED = {  # page: command, lines that it prints
    "docs/planning.md": [
        ("plan examples/two-clusters.toml --strategy auto --explain",
         r"predicted by|auto simulated|runner-up with"),
        ("simulate examples/two-clusters.toml --steps 40 --change 'fabric ethernet at 3 s to 0.1'"
         " --change 'host a1 at 6 s dies'", r"steps? \d+ (to \d+ )? .* each|host a1 died|planned anew")],
    "docs/schedules.md": [
        ("plan examples/two-clusters.toml --schedule network-aware --explain",
         r"schedule network-aware: |stage \d: F|runner-up with")],
}


def blocks(text):
    """Lines of the code of a page: indented by four, or fenced."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()


def commands(page):
    joined = "\n".join(blocks(page.read_text())).replace("\\\n", " ")
    for line in joined.splitlines():
        if QUICK.match(line) and not PLACEHOLDER.search(line):
            yield line
    for line in re.findall(r"`(holmes plan examples/[^`]*)`", page.read_text()):
        yield line.replace("\n", " ")


class Docs(unittest.TestCase):
    def setUp(self):
        folder = e2e.temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("examples", "tests"):
            (self.folder / name).symlink_to(ROOT / name)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/holmes").symlink_to(e2e.HOLMES)

    def run_command(self, words, timeout=60):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(words, cwd=self.folder, env={**os.environ, "PATH": path}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout

    def test_commands_run_as_they_are_written(self):
        ran = 0
        for page in PAGES:
            for command in commands(page):
                with self.subTest(page=page.name, command=command):
                    self.run_command(shlex.split(command, comments=True))
                    ran += 1
        self.assertGreater(ran, 10)

    def test_quoted_output_is_what_is_printed(self):
        for name, quotes in QUOTED.items():
            lines = [line for line in blocks((ROOT / name).read_text())]
            for command, shape in quotes:
                printed = self.run_command(["holmes", *shlex.split(command)])
                quoted = [line for line in lines if re.match(shape, line)]
                self.assertGreater(len(quoted), 2, f"{name}: {shape}")
                for line in quoted:
                    with self.subTest(page=name, line=line):
                        self.assertIn(line, [each.strip() for each in printed.splitlines()])

    def test_simulated_tables(self):
        done = subprocess.run([str(ROOT / "scripts/paper"), "--check", "--holmes", e2e.HOLMES],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_bpe_example_trains_on_what_the_tour_makes(self):
        (self.folder / "data").mkdir()
        words = [f"{a}{b}{c}ing" for a in "bcdfg" for b in "aeiou" for c in "lmnprst"]
        text = " ".join(words[(i * i + 7 * i) % len(words)] for i in range(20000))
        (self.folder / "data/bible.txt").write_text(text)
        tour = "\n".join(blocks((ROOT / "README.md").read_text()))
        made = re.findall(r"^holmes data .*$", tour, re.M)
        self.assertEqual(len(made), 2)
        for command in made:
            self.run_command(shlex.split(command, comments=True))
        # Paths of a job file are relative to it, and that of the example lies in the sources.
        (self.folder / "examples").unlink()
        (self.folder / "examples").mkdir()
        (self.folder / "examples/bpe.toml").write_text((ROOT / "examples/bpe.toml").read_text())
        (self.folder / "examples/clusters").symlink_to(ROOT / "examples/clusters")
        self.assertIn("holmes train examples/bpe.toml", tour)
        self.run_command(["holmes", "train", "examples/bpe.toml", "--set", "train.steps=2",
                          "--set", "train.warmup_steps=0", "--set", "data.validation_batches=1"])
        written = self.run_command(["holmes", "generate", "--checkpoint", "runs/bpe", "--prompt",
                                    "balling", "--tokens", "5"])
        self.assertTrue(written.startswith("balling"), written)


if __name__ == "__main__":
    unittest.main()
