"""Goal: a job that may not have what it needs says so in one line and exits 1, and one that can do
with little does.
Method: the real executable under limits on descriptors, memory and stacks."""

import resource
import subprocess
import unittest

import job as e2e


class Limits(unittest.TestCase):
    def setUp(self):
        self.folder = e2e.temporary_folder()
        self.addCleanup(self.folder.cleanup)
        self.job = e2e.Job(self.folder.name, 2, 2, 2)

    def run_under(self, kind, soft, hard=None):
        limits = (soft, soft if hard is None else hard)
        result = subprocess.run(self.job.command("--overwrite"), capture_output=True, text=True,
                                timeout=60, preexec_fn=lambda: resource.setrlimit(kind, limits))
        self.assertTrue(e2e.wait_until(
            lambda: not any(map(e2e.alive, e2e.started(result.stdout))), 5))
        return result

    def assert_said(self, result, *parts):
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("holmes: "), result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def test_too_few_descriptors(self):
        for count in (4, 8, 12, 20):
            with self.subTest(count=count):
                result = self.run_under(resource.RLIMIT_NOFILE, count)
                self.assert_said(result, f"may open {count} files", "ulimit -n")
        self.assertFalse(self.job.run_folder.exists())

    def test_a_low_limit_that_may_be_raised_is_raised(self):
        result = self.run_under(resource.RLIMIT_NOFILE, 12, 1024)
        self.assertEqual(result.returncode, 0, result.stderr)

    @unittest.skipIf("asan" in e2e.HOLMES, "sanitizers need more address space than there is")
    def test_too_little_memory_for_threads(self):
        for size in (10 << 20, 50 << 20):
            with self.subTest(size=size):
                result = self.run_under(resource.RLIMIT_DATA, size)
                self.assert_said(result, "the system has no more", "ulimit")

    def test_small_stacks(self):
        for soft, hard in ((64 << 10, resource.RLIM_INFINITY), (256 << 10, 256 << 10)):
            with self.subTest(soft=soft):
                result = self.run_under(resource.RLIMIT_STACK, soft, hard)
                self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
