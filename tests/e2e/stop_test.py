"""Goal: a job stops when asked, at any moment of its life, and leaves no process; streams that are
closed disturb nobody; a job whose steps are done ends at once when it is resumed.
Method: signals at moments spread over the start and the first steps of a 2x2 job."""

import fcntl
import os
import signal
import subprocess
import time
import unittest

import job as e2e


class Stop(unittest.TestCase):
    def setUp(self):
        self.folder = e2e.temporary_folder()
        self.addCleanup(self.folder.cleanup)

    def start(self, name):
        job = e2e.Job(self.folder.name, 2, 2, 100000, run_folder=name)
        process = job.start()
        self.addCleanup(lambda: e2e.end(process, job.agents().values()))
        return job, process

    def finish(self, job, process):
        """Exit code and errors; no agent may outlive the launcher for long."""
        agents = list(job.agents().values())
        output, errors = process.communicate(timeout=30)
        agents += e2e.started(output or "")
        self.assertTrue(e2e.wait_until(lambda: not any(map(e2e.alive, agents)), 5))
        return process.returncode, errors

    def test_before_the_first_step(self):
        for agents in (1, 2, 4):
            for delay_s in (0, 0.03, 0.1):
                with self.subTest(agents=agents, delay_s=delay_s):
                    job, process = self.start(f"early-{agents}-{delay_s}")
                    self.assertTrue(e2e.wait_until(lambda: len(job.agents()) >= agents, 10))
                    time.sleep(delay_s)
                    process.send_signal(signal.SIGINT)
                    code, errors = self.finish(job, process)
                    self.assertEqual(code, 3, errors)
                    self.assertNotIn("turned away", errors)

    def test_each_signal_saves_what_is_done(self):
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            with self.subTest(signal=name):
                job, process = self.start(name)
                self.assertTrue(job.wait_for_steps(process, 2))
                process.send_signal(getattr(signal, name))
                code, errors = self.finish(job, process)
                self.assertEqual(code, 3, errors)
                self.assertEqual(job.checkpoint().name, f"step-{len(job.losses()):08}")

    def test_a_second_signal_stops_at_once(self):
        job, process = self.start("twice")
        self.assertTrue(job.wait_for_steps(process, 2))
        # Stopped hosts finish no step: only the second signal can end this.
        for pid in job.agents().values():
            os.kill(pid, signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        line = process.stderr.readline()
        self.assertIn("a second signal stops at once", line)
        time.sleep(0.5)  # two signals at once are one wish
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        code, _ = self.finish(job, process)
        self.assertEqual(code, 1)
        self.assertLess(time.monotonic() - begin, 2)

    # As timeout(1) does: it tells the process, and then its group.
    def test_two_signals_at_once_are_one_wish(self):
        job, process = self.start("group")
        self.assertTrue(job.wait_for_steps(process, 2))
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        code, errors = self.finish(job, process)
        self.assertEqual(code, 3, errors)
        self.assertEqual(job.checkpoint().name, f"step-{len(job.losses()):08}")

    def test_a_reader_that_does_not_read_holds_up_nobody(self):
        job = e2e.Job(self.folder.name, 2, 2, 100000, run_folder="unread")
        unread, written = os.pipe()
        self.addCleanup(os.close, unread)
        fcntl.fcntl(written, fcntl.F_SETPIPE_SZ, 4096)
        process = subprocess.Popen(job.command("--json"), stdout=written, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, text=True)
        os.close(written)
        self.addCleanup(lambda: e2e.end(process, job.agents().values()))
        self.assertTrue(job.wait_for_steps(process, 200))  # far more than fits into the pipe
        process.send_signal(signal.SIGTERM)
        code, errors = self.finish(job, process)
        self.assertEqual(code, 3, errors)
        self.assertEqual(job.checkpoint().name, f"step-{len(job.losses()):08}")

    def test_a_signal_that_the_parent_ignores_is_ignored(self):
        job = e2e.Job(self.folder.name, 2, 2, 100000, run_folder="nohup")
        process = subprocess.Popen(["nohup", *job.command()], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: e2e.end(process, job.agents().values()))
        self.assertTrue(job.wait_for_steps(process, 2))
        process.send_signal(signal.SIGHUP)
        self.assertTrue(job.wait_for_steps(process, job.committed() + 20))
        process.send_signal(signal.SIGTERM)
        code, errors = self.finish(job, process)
        self.assertEqual(code, 3, errors)

    def test_closed_streams(self):
        reference = e2e.Job(self.folder.name, 2, 2, 4, run_folder="open")
        self.assertEqual(reference.run().returncode, 0)
        for closed in (">&-", "<&-", ">&- 2>&- <&-", ">/dev/full 2>/dev/full"):
            with self.subTest(closed=closed):
                job = e2e.Job(self.folder.name, 2, 2, 4, run_folder="closed")
                shell = subprocess.run(["/bin/sh", "-c", f'"$@" {closed}', "sh",
                                        *job.command("--overwrite")],
                                       capture_output=True, timeout=e2e.DEADLINE_S, check=False)
                self.assertEqual(shell.returncode, 0, shell.stderr)
                self.assertEqual(job.losses(), reference.losses())
                self.assertEqual((job.run_folder / "lock").read_bytes(), b"")

    def test_a_reader_that_goes(self):
        job = e2e.Job(self.folder.name, 2, 2, 4)
        process = job.start()
        self.addCleanup(lambda: e2e.end(process, job.agents().values()))
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=e2e.DEADLINE_S), 0)
        self.assertEqual(len(job.losses()), 4)

    def test_bare_environment_and_odd_folder(self):
        job = e2e.Job(self.folder.name, 2, 2, 2, run_folder="a folder, ünï çødé")
        result = subprocess.run(job.command(), env={}, cwd="/proc", capture_output=True,
                                stdin=subprocess.DEVNULL, timeout=e2e.DEADLINE_S, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIsNotNone(job.checkpoint())

    def test_resumed_when_all_steps_are_done(self):
        job = e2e.Job(self.folder.name, 2, 2, 4)
        self.assertEqual(job.run().returncode, 0)
        losses = job.losses()
        result = job.run("--resume")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(job.losses(), losses)

    def test_a_loss_that_is_no_number(self):
        job = e2e.Job(self.folder.name, 2, 2, 100)
        result = job.run("--set", "train.lr=100", "--set", "train.warmup_steps=0")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"failed during step \d+ .*not a finite number.*train\.lr")
        self.assertGreater(len(job.losses()), 0)


if __name__ == "__main__":
    unittest.main()
