"""Goal: holmes launch --via slurm trains on the nodes of a Slurm job as holmes train does on one host,
goes on when Slurm starts the job again, and says what is wrong in one line.
Method: a real Slurm (slurm_site.py) on network namespaces."""

import os
import subprocess
import tempfile
import time
import unittest

import job as e2e
import namespaces
import slurm_site

CLUSTERS = {"a": ["a0", "a1"], "b": ["b0", "b1"]}


def setUpModule():
    reason = namespaces.why_not() or slurm_site.why_not()
    if reason:
        raise unittest.SkipTest("no hosts can be made here: " + reason)


class ViaSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.site = namespaces.Site(folder.name, CLUSTERS)
        cls.addClassCleanup(cls.site.close)
        cls.slurm = slurm_site.Slurm(cls.site)
        cls.addClassCleanup(cls.slurm.close)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def submit(self, job, nodes, *options):
        """A batch job that trains; returns its number."""
        script = job.folder / "job.sh"
        self.output = job.folder / "output.txt"
        script.write_text(
            "#!/bin/sh\n"
            f"#SBATCH --nodes={len(nodes)} --nodelist={','.join(nodes)} --ntasks-per-node=1\n"
            f"#SBATCH --cpus-per-task=2 --requeue --open-mode=append --output={self.output}\n"
            f"exec {e2e.HOLMES} launch {job.file} --via slurm {' '.join(options)}\n")
        done = self.slurm.run("sbatch", "--parsable", str(script))
        self.assertEqual(done.returncode, 0, done.stderr)
        number = done.stdout.strip()
        self.addCleanup(self.slurm.run, "scancel", "--full", number)
        return number

    def wait_for(self, condition, what):
        end = time.monotonic() + e2e.DEADLINE_S
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}\n{self.said()}")
            time.sleep(0.1)

    def said(self):
        return self.output.read_text() if self.output.exists() else ""

    def wait_for_end(self, number):
        """The state that it ended in; no agent is left then."""
        self.wait_for(lambda: self.slurm.state(number) not in
                      ("RUNNING", "PENDING", "COMPLETING", "CONFIGURING", ""), "no end")
        self.wait_for(lambda: not any(self.site.agents(host) for host in self.site.hosts),
                      "agents are left")
        return self.slurm.state(number)

    def reference(self, steps):
        job = e2e.Job(self.folder, stages=1, replicas=1, steps=steps, run_folder="reference")
        done = job.run()
        self.assertEqual(done.returncode, 0, done.stderr)
        return job

    def test_a_batch_job_trains_on_its_nodes_to_the_same_bits(self):
        job = e2e.Job(self.folder, steps=20)
        number = self.submit(job, self.site.hosts)
        self.assertEqual(self.wait_for_end(number), "COMPLETED", self.said())
        reference = self.reference(20)
        self.assertEqual(job.losses(), reference.losses())
        self.assertEqual(job.tensors(), reference.tensors())

    def test_a_job_that_was_put_back_goes_on_where_it_was(self):
        job = e2e.Job(self.folder, steps=4000)
        number = self.submit(job, self.site.hosts, "--set", "run.keep=2")
        self.wait_for(lambda: job.committed() >= 10, "no step was made")
        self.slurm.run("scontrol", "requeue", number)
        self.wait_for(lambda: "started this job again" in self.said(), "it was not started again")
        before = job.committed()
        self.wait_for(lambda: job.committed() >= before + 10, "it does not go on")
        self.slurm.run("scancel", "--full", number)
        self.wait_for_end(number)
        losses = job.losses()
        self.assertEqual([step for step, _ in losses], list(range(len(losses))))
        self.assertEqual(losses, self.reference(len(losses)).losses())

    def test_fewer_nodes_than_the_cluster_file_has(self):
        job = e2e.Job(self.folder, steps=10)
        number = self.submit(job, ["a1", "b0"])
        self.assertEqual(self.wait_for_end(number), "COMPLETED", self.said())
        self.assertEqual(job.losses(), self.reference(10).losses())

    def test_from_outside_of_the_nodes(self):
        """salloc gives the nodes and runs the command where it was called."""
        job = e2e.Job(self.folder, steps=10)
        done = self.slurm.run("salloc", "--nodes=4", "--ntasks-per-node=1", e2e.HOLMES, "launch",
                              str(job.file), "--via", "slurm", timeout=e2e.DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(job.losses(), self.reference(10).losses())

    def test_a_killed_agent_is_survived(self):
        job = e2e.Job(self.folder, steps=400)
        number = self.submit(job, self.site.hosts)
        self.wait_for(lambda: job.committed() >= 10, "no step was made")
        os.kill(self.site.agents("b1")[0], 9)
        self.assertEqual(self.wait_for_end(number), "COMPLETED", self.said())
        self.assertRegex(self.said(), "host b1")
        self.assertEqual(job.losses(), self.reference(400).losses())

    def test_nodes_that_the_cluster_file_does_not_name(self):
        job = e2e.Job(self.folder, stages=1, steps=10)  # a0 and a1 only
        number = self.submit(job, ["a0", "b0"])
        self.assertEqual(self.wait_for_end(number), "FAILED")
        self.assertRegex(self.said(), "has no host named b0")
        self.assertFalse(job.run_folder.exists())

    def test_no_job_of_slurm(self):
        job = e2e.Job(self.folder, steps=10)
        done = subprocess.run([e2e.HOLMES, "launch", str(job.file), "--via", "slurm"],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=e2e.DEADLINE_S)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, "this is no Slurm job")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
