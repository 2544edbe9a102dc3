"""Goal: hosts leave a job when their agent gets SIGTERM, and come back after they were lost, in real
processes; no step is lost, and losses and checkpoint have the bits of a run to which nothing
happened.
Method: SIGTERM and SIGKILL to agents of a 2x2 job at some of its steps; with resilience.restarts the
launcher starts them again."""

import os
import signal
import unittest

import job as e2e

STEPS = 200


class Members(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = e2e.temporary_folder()
        cls.undisturbed = e2e.Job(cls.folder.name, 2, 2, STEPS, "undisturbed")
        result = cls.undisturbed.run()
        assert result.returncode == 0, result.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def start(self, name, *options):
        job = e2e.Job(self.folder.name, 2, 2, STEPS, name)
        process = job.start(*options)
        self.addCleanup(lambda: e2e.end(process))
        return job, process

    def finish(self, process, code=0):
        output, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, code, errors)
        return output, errors

    def expect_same(self, job):
        self.assertEqual(job.losses(), self.undisturbed.losses())
        self.assertEqual(job.tensors(), self.undisturbed.tensors())

    def test_each_host_leaves_when_it_is_asked_to(self):
        for index, host in enumerate(("a0", "a1", "b0", "b1")):
            with self.subTest(host=host):
                job, process = self.start(f"leave-{host}", "--set", f"run.checkpoint_every={7 * index}")
                self.assertTrue(job.wait_for_steps(process, 5 + 7 * index))
                pid = job.agents()[host]
                os.kill(pid, signal.SIGTERM)
                self.assertTrue(e2e.wait_until(lambda: not e2e.alive(pid), 10))
                self.assertTrue(e2e.wait_until(lambda: host not in job.agents(), 10))
                output, errors = self.finish(process)
                self.expect_same(job)
                self.assertEqual(job.events("incident"), [])
                (row,) = job.events("regrouped")
                self.assertEqual((row["left"], row["lost"], row["joined"], row["steps_lost"]),
                                 ([host], [], [], 0))
                self.assertIn(f"on without host {host}, which left", errors)
                self.assertNotIn("hosts lost", output)
                print(row["message"])

    def test_a_killed_host_is_started_again_and_comes_back(self):
        for host in ("a1", "b0"):
            with self.subTest(host=host):
                job, process = self.start(f"back-{host}", "--set", "resilience.restarts=1")
                self.assertTrue(job.wait_for_steps(process, 5))
                before = job.agents()[host]
                os.kill(before, signal.SIGKILL)
                _, errors = self.finish(process)
                self.expect_same(job)
                lost, joined = job.events("regrouped")
                self.assertEqual((lost["lost"], joined["joined"]), ([host], [host]))
                self.assertEqual(joined["steps_lost"], 0)
                self.assertEqual(job.agents(), {})  # nobody runs any more
                self.assertIn(f"on with host {host} from step", errors)
                print(joined["message"])

    def test_restarts_are_counted(self):
        job, process = self.start("counted", "--set", "resilience.restarts=1")
        self.assertTrue(job.wait_for_steps(process, 3))
        before = job.agents()["a0"]
        os.kill(before, signal.SIGKILL)
        again = lambda: job.agents().get("a0", before)  # noqa: E731
        self.assertTrue(e2e.wait_until(lambda: again() != before, 20))
        os.kill(again(), signal.SIGKILL)
        output, _ = self.finish(process)
        self.expect_same(job)
        self.assertEqual(output.count("host a0 started"), 2)

    def test_the_last_host_that_leaves_stops_the_job_with_a_checkpoint(self):
        job, process = self.start("all")
        self.assertTrue(job.wait_for_steps(process, 3))
        for pid in job.agents().values():
            os.kill(pid, signal.SIGTERM)
        output, _ = self.finish(process, code=3)
        self.assertIn("interrupted", output)
        self.assertEqual(job.run("--resume").returncode, 0)
        self.expect_same(job)


if __name__ == "__main__":
    unittest.main()
