"""Goal: a text that is changed while a job trains on it stops the job with a message that names it;
what does not change what is trained on (a new file in its place, a touch, an appended line) stops
nothing and changes no loss.
Method: a 2x2 job on a text of its own, which is changed after some steps."""

import os
import pathlib
import unittest

import job as e2e


class Text(unittest.TestCase):
    def setUp(self):
        self.folder = e2e.temporary_folder()
        self.addCleanup(self.folder.cleanup)
        self.text = pathlib.Path(self.folder.name, "changing.txt")
        self.old = b"".join(b"line %d of a text about %d\n" % (i * i, i) for i in range(2000))

    def train(self, name, change):
        self.text.write_bytes(self.old)
        job = e2e.Job(self.folder.name, 2, 2, 120, run_folder=name)
        process = job.start("--set", f"data.text={self.text}", "--set", "run.checkpoint_every=2")
        self.addCleanup(lambda: e2e.end(process, job.agents().values()))
        self.assertTrue(job.wait_for_steps(process, 5))
        change()
        output, errors = process.communicate(timeout=e2e.DEADLINE_S)
        agents = e2e.started(output)
        self.assertEqual(len(agents), 4)
        self.assertTrue(e2e.wait_until(lambda: not any(map(e2e.alive, agents)), 5))
        return job, process.returncode, errors

    def replace(self):
        other = self.text.with_suffix(".new")
        other.write_bytes(b"y" * len(self.old))
        other.rename(self.text)

    def test_changes_that_matter(self):
        def overwrite():
            with open(self.text, "r+b") as file:
                file.write(b"\0" * len(self.old))

        for name, change in (("cut to nothing", lambda: os.truncate(self.text, 0)),
                             ("cut", lambda: os.truncate(self.text, len(self.old) // 2)),
                             ("overwritten", overwrite)):
            with self.subTest(name=name):
                job, code, errors = self.train(name, change)
                self.assertEqual(code, 1, errors)
                self.assertIn(f"text file {self.text} was changed", errors)
                self.assertEqual(errors.count("\n"), 1, errors)
                self.text.write_bytes(self.old)
                result = job.run("--set", f"data.text={self.text}", "--resume")
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_changes_that_do_not(self):
        reference, code, errors = self.train("untouched", lambda: None)
        self.assertEqual(code, 0, errors)

        def append():
            with open(self.text, "ab") as file:
                file.write(b"more\n")

        for name, change in (("touched", lambda: os.utime(self.text)), ("appended", append),
                             ("replaced", self.replace), ("removed", self.text.unlink)):
            with self.subTest(name=name):
                job, code, errors = self.train(name, change)
                self.assertEqual(code, 0, errors)
                self.assertEqual(job.losses(), reference.losses())


if __name__ == "__main__":
    unittest.main()
