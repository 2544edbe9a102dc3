"""Goal: when the launcher is killed at any moment, or a host agent of a job that is to stop then,
everything ends within 5 seconds, the guilty host is named, and the last checkpoint loads.
Method: kill -9 of each host of a 2x2 job at moments spread over its life."""

import os
import pathlib
import signal
import time
import unittest

import job as e2e

STEPS = 100000


class Kill(unittest.TestCase):
    def setUp(self):
        self.folder = e2e.temporary_folder()
        self.addCleanup(self.folder.cleanup)

    def start(self, *options, run_folder="run"):
        job = e2e.Job(self.folder.name, 2, 2, STEPS, run_folder)
        process = job.start("--set", "run.checkpoint_every=3", "--set", "resilience.on_loss=stop",
                            *options)
        self.addCleanup(lambda: e2e.end(process))
        return job, process

    def kill_host(self, host, steps, delay_s):
        job, process = self.start(run_folder=f"run-{steps}")
        self.assertTrue(job.wait_for_steps(process, steps))
        agents = job.agents()
        self.addCleanup(lambda: e2e.end(process, agents.values()))
        time.sleep(delay_s)
        os.kill(agents[host], signal.SIGKILL)
        errors = self.everything_ends(process, agents)
        first = next(line for line in errors.splitlines() if "fail" in line or "lost" in line)
        self.assertIn(host, first)
        self.assertIn("step", first)
        return job

    def everything_ends(self, process, agents):
        """One deadline from the kill on, for the launcher and all agents together."""
        killed_at = time.monotonic()
        _, errors = process.communicate(timeout=30)
        left = killed_at + 5 - time.monotonic()
        self.assertGreater(left, 0, errors)
        self.assertTrue(e2e.wait_until(lambda: not any(map(e2e.alive, agents.values())), left))
        self.assertEqual(process.returncode, 1, errors)
        return errors

    def test_each_host_at_many_moments(self):
        for index in range(12):
            host = ("a0", "a1", "b0", "b1")[index % 4]
            with self.subTest(host=host, index=index):
                job = self.kill_host(host, 4 + index, 0.003 * index)
                self.assertIsNotNone(job.checkpoint())
                more = e2e.Job(self.folder.name, 2, 2, job.committed() + 3, job.run_folder.name)
                result = more.run("--resume")
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_agents_are_the_only_children(self):
        job, process = self.start()
        self.assertTrue(job.wait_for_steps(process, 2))
        agents = job.agents()
        self.addCleanup(lambda: e2e.end(process, agents.values()))
        children = set()
        for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
            children |= set(map(int, (task / "children").read_text().split()))
        self.assertEqual(children, set(agents.values()))
        self.assertEqual(sorted(agents), ["a0", "a1", "b0", "b1"])

    def test_before_the_first_step(self):
        job, process = self.start()
        self.assertTrue(e2e.wait_until(lambda: len(job.agents()) == 4, 10))
        agents = job.agents()
        self.addCleanup(lambda: e2e.end(process, agents.values()))
        os.kill(agents["b1"], signal.SIGKILL)
        errors = self.everything_ends(process, agents)
        self.assertIn("b1", errors)

    def test_a_host_that_only_stops_is_lost_by_its_silence(self):
        job, process = self.start("--set", "resilience.timeout_ms=1000")
        self.assertTrue(job.wait_for_steps(process, 3))
        agents = job.agents()
        self.addCleanup(lambda: e2e.end(process, agents.values()))
        os.kill(agents["a1"], signal.SIGSTOP)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("a1", errors)
        self.assertTrue(e2e.wait_until(lambda: not any(map(e2e.alive, agents.values())), 5))

    def test_the_launcher(self):
        job, process = self.start()
        self.assertTrue(job.wait_for_steps(process, 3))
        agents = job.agents()
        self.addCleanup(lambda: e2e.end(process, agents.values()))
        process.kill()
        self.assertTrue(e2e.wait_until(lambda: not any(map(e2e.alive, agents.values())), 5))


if __name__ == "__main__":
    unittest.main()
