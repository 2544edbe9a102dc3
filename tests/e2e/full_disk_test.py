"""Goal: a disk that runs full ends a job with one clear message and exit code 1; the checkpoint
before stays and loads; what cannot be written beside checkpoints is warned of and stops nothing.
Method: a limit on file sizes, which anybody can set, and a small tmpfs where the test may mount
one."""

import os
import pathlib
import resource
import subprocess
import unittest

import job as e2e

KIB = 1024


def limit_files(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class FullDisk(unittest.TestCase):
    def setUp(self):
        self.folder = e2e.temporary_folder()
        self.addCleanup(self.folder.cleanup)

    def run_limited(self, job, size, *options):
        return subprocess.run(job.command(*options), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=e2e.DEADLINE_S,
                              preexec_fn=limit_files(size))

    def assert_kept(self, job, checkpoint):
        """`checkpoint` is the newest, nothing unfinished is left, and both ways of loading work."""
        self.assertEqual(job.checkpoint().name, checkpoint)
        self.assertEqual(list(job.checkpoint().parent.glob("*.tmp")), [])
        result = subprocess.run([e2e.HOLMES, "generate", "--checkpoint", str(job.run_folder),
                                 "--prompt", "line", "--tokens", "2"], capture_output=True,
                                timeout=e2e.DEADLINE_S)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_saving_beyond_the_limit_on_files(self):
        before = e2e.Job(self.folder.name, 2, 2, 4)
        self.assertEqual(before.run().returncode, 0)
        job = e2e.Job(self.folder.name, 2, 2, 8)
        result = self.run_limited(job, 64 * KIB, "--resume")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("saving the checkpoint of step 8", result.stderr)
        self.assertRegex(result.stderr, r"(model|optimizer)-0000\d-of-0000\d\.safetensors")
        self.assertIn("ulimit -f", result.stderr)
        self.assert_kept(job, "step-00000004")
        self.assertEqual(job.run("--resume").returncode, 0)
        self.assertEqual([step for step, _ in job.losses()], list(range(8)))

    def test_saving_on_a_full_disk(self):
        disk = pathlib.Path(self.folder.name) / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1600k", "tmpfs", str(disk)],
                                 capture_output=True, check=False) if os.geteuid() == 0 else None
        if mounted is None or mounted.returncode != 0:
            self.skipTest("may not mount; the limit on file sizes is tested instead")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", str(disk)], check=True))
        job = e2e.Job(self.folder.name, 2, 2, 40, run_folder="disk/run", name="disk-run")
        result = job.run("--set", "run.checkpoint_every=5")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("the disk is full", result.stderr)
        self.assert_kept(job, "step-00000010")

    def test_metrics_that_cannot_be_written_stop_nothing(self):
        job = e2e.Job(self.folder.name, 2, 2, 80)
        result = self.run_limited(job, 32 * KIB, "--set", "model.channels=8")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("cannot write"), 1, result.stderr)
        self.assertIn("metrics.jsonl", result.stderr)
        self.assertEqual(job.checkpoint().name, "step-00000080")

    def test_no_room_from_the_start(self):
        job = e2e.Job(self.folder.name, 2, 2, 4)
        result = self.run_limited(job, 64)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("job.toml", result.stderr)
        self.assertIn("run.folder", result.stderr)
        self.assertEqual(job.agents(), {})


if __name__ == "__main__":
    unittest.main()
