"""Goal: a job has the same losses and weights, bit for bit, on every layout of host processes, and
when it is stopped half way and resumed, on the same layout or another.
Method: the real executable over TCP; 50 steps on 1x1 are the reference."""

import signal
import unittest

import job as e2e


class Bits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = e2e.temporary_folder()
        cls.reference = e2e.Job(cls.folder.name, 1, 1, run_folder="reference")
        result = cls.reference.run()
        assert result.returncode == 0, result.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def assert_same(self, other):
        self.assertEqual(other.losses(), self.reference.losses())
        mine, reference = other.tensors(), self.reference.tensors()
        self.assertEqual(set(mine), set(reference))
        for name in reference:
            self.assertEqual(mine[name], reference[name], name)

    def test_layouts(self):
        for stages, replicas in ((2, 2), (4, 1), (1, 4)):
            with self.subTest(stages=stages, replicas=replicas):
                other = e2e.Job(self.folder.name, stages, replicas,
                                run_folder=f"run-{stages}x{replicas}")
                result = other.run()
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(len(other.losses()), 50)
                self.assert_same(other)

    def test_generated_order_of_passes(self):
        other = e2e.Job(self.folder.name, 2, 1, run_folder="run-network-aware")
        result = other.run("--schedule", "network-aware")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_same(other)

    def test_stopped_and_resumed_on_other_layouts(self):
        stopped = e2e.Job(self.folder.name, 2, 2, run_folder="resumed")
        process = stopped.start()
        try:
            self.assertTrue(stopped.wait_for_steps(process, 20))
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        finally:
            e2e.end(process)
        self.assertEqual(process.returncode, 3, errors)
        self.assertLess(len(stopped.losses()), 50)
        for stages, replicas, steps in ((4, 1, 35), (1, 4, 45), (2, 2, 50)):
            other = e2e.Job(self.folder.name, stages, replicas, steps, run_folder="resumed")
            result = other.run("--resume")
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_same(other)


if __name__ == "__main__":
    unittest.main()
