"""Goal: when a host is killed at any moment, training goes on with the others, ends well, and its
losses and checkpoint have the bits of a run to which nothing happened.
Method: kill -9 of each host of a 2x2 job at moments spread over its life, one or two hosts a run.
How long detection and recovery took is printed."""

import os
import signal
import time
import unittest

import job as e2e

STEPS = 30


class Recovery(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = e2e.temporary_folder()
        cls.undisturbed = e2e.Job(cls.folder.name, 2, 2, STEPS, "undisturbed")
        result = cls.undisturbed.run()
        assert result.returncode == 0, result.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def train(self, name, kills):
        """Runs a job in which hosts are killed: (host, committed steps before, seconds later)."""
        job = e2e.Job(self.folder.name, 2, 2, STEPS, name)
        process = job.start("--set", "run.checkpoint_every=7")
        self.addCleanup(lambda: e2e.end(process))
        for host, steps, delay_s in kills:
            self.assertTrue(job.wait_for_steps(process, steps))
            agents = job.agents()
            time.sleep(delay_s)
            os.kill(agents[host], signal.SIGKILL)
        output, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors)
        return job, output, errors

    def expect_same(self, job):
        self.assertEqual(job.losses(), self.undisturbed.losses())
        self.assertEqual(job.tensors(), self.undisturbed.tensors())

    def test_each_host_at_many_moments(self):
        for index in range(8):
            host = ("a0", "a1", "b0", "b1")[index % 4]
            with self.subTest(host=host, index=index):
                job, output, errors = self.train(f"run-{index}",
                                                 [(host, 1 + 3 * index, 0.004 * index)])
                self.expect_same(job)
                incidents = job.events("incident")
                self.assertEqual([row["host"] for row in incidents], [host])
                self.assertIn(f"host {host} is lost during", errors)
                self.assertIn("hosts lost      1: " + host, output)
                for row in job.events("regrouped"):
                    self.assertEqual((row["lost"], row["steps_lost"]), ([host], 0))
                    print(row["message"])

    def test_two_hosts_one_after_the_other(self):
        for index, (first, second) in enumerate([("a0", "b1"), ("b0", "a1"), ("a1", "b0")]):
            with self.subTest(first=first, second=second):
                job, output, _ = self.train(f"two-{index}", [(first, 5, 0.0), (second, 12, 0.01)])
                self.expect_same(job)
                self.assertIn(f"hosts lost      2: {first}, {second}", output)

    def test_before_the_first_step(self):
        job = e2e.Job(self.folder.name, 2, 2, STEPS, "early")
        process = job.start()
        self.addCleanup(lambda: e2e.end(process))
        metrics = job.run_folder / "metrics.jsonl"  # made when the first plan is in force
        self.assertTrue(e2e.wait_until(metrics.exists, 10))
        os.kill(job.agents()["b1"], signal.SIGKILL)
        _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors)
        self.expect_same(job)


if __name__ == "__main__":
    unittest.main()
