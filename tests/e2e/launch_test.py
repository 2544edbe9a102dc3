"""Goal: holmes launch trains on other machines as holmes train does on one: the same bits, losses
survived, every host that cannot start named with the reason, and nothing left running.
Method: network namespaces as hosts, with a real sshd in each (namespaces.py)."""

import contextlib
import os
import pathlib
import re
import signal
import ssl
import subprocess
import tempfile
import time
import unittest

import job as e2e
import namespaces

CLUSTERS = {"a": ["a0", "a1"], "b": ["b0", "b1"]}
END_S = 30


def client_hello():
    """The first bytes of a TLS connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    sent = ssl.MemoryBIO()
    connection = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="anybody")
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return sent.read()



def setUpModule():
    reason = namespaces.why_not()
    if reason:
        raise unittest.SkipTest("no hosts can be made here: " + reason)


class OnOtherMachines(unittest.TestCase):
    """A site, and how a job is launched from its head."""

    @classmethod
    def setUpClass(cls):
        cls.site_folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.site_folder.cleanup)
        cls.site = namespaces.Site(cls.site_folder.name, CLUSTERS)
        cls.addClassCleanup(cls.site.close)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(self.nothing_runs)

    def command(self, job, *options):
        if "--ssh" not in options:
            options = ("--ssh", f"ssh -F {self.site.ssh_config}", *options)
        return self.site.inside("head", e2e.HOLMES, "launch", str(job.file), *options)

    def launch(self, job, *options):
        return subprocess.run(self.command(job, *options), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=e2e.DEADLINE_S)

    def start(self, job, *options):
        process = subprocess.Popen(self.command(job, *options), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def credentials(self, job):
        """A folder with one folder for each host, and for one that is not in the job."""
        folder = pathlib.Path(self.folder) / ("credentials-" + job)
        if not folder.exists():
            subprocess.run([e2e.HOLMES, "security", "issue", "--job", job, "--hosts",
                            ",".join([*self.site.hosts, "c7"]), str(folder)],
                           check=True, capture_output=True)
        return folder

    def agent(self, host, job, at, credentials=None):
        """What becomes of an agent that somebody starts on a0."""
        options = ["--credentials", str(credentials)] if credentials else []
        return subprocess.run(
            self.site.inside("a0", e2e.HOLMES, "agent", "--host", host, "--job", job,
                             "--coordinator", at, "--wait", "60", *options),
            capture_output=True, text=True, timeout=e2e.DEADLINE_S)

    def nothing_runs(self):
        """No host has a process of ours any more, within the deadline."""
        end = time.monotonic() + END_S
        left = ["?"]
        while left and time.monotonic() < end:
            left = [(host, pid) for host in self.site.hosts for pid in self.site.pids(host)]
            time.sleep(0.05)
        self.assertEqual(left, [])

    def reference(self, steps):
        """The same job on one host of this machine."""
        job = e2e.Job(self.folder, stages=1, replicas=1, steps=steps, run_folder="reference")
        done = job.run()
        self.assertEqual(done.returncode, 0, done.stderr)
        return job

    def assert_same_result(self, job, reference):
        self.assertEqual(job.losses(), reference.losses())
        self.assertEqual(job.tensors(), reference.tensors())


class Launch(OnOtherMachines):
    def test_trains_by_ssh_to_the_same_bits(self):
        job = e2e.Job(self.folder, steps=20)
        before = {host: self.site.bytes_sent(host, "fast0") for host in self.site.hosts}
        done = self.launch(job)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_result(job, self.reference(20))
        for host in self.site.hosts:  # gradients went over the fabric inside the cluster
            sent = self.site.bytes_sent(host, "fast0") - before[host]
            self.assertGreater(sent, 20 * 4 * 1000, host)

    def test_goes_on_when_an_agent_is_killed(self):
        job = e2e.Job(self.folder, steps=60)
        process = self.start(job)
        self.assertTrue(job.wait_for_steps(process, 10), "no step was made")
        os.kill(self.site.agents("b1")[0], signal.SIGKILL)
        _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors, "host b1")
        self.assert_same_result(job, self.reference(60))

    def test_starts_an_agent_that_was_killed_again(self):
        job = e2e.Job(self.folder, steps=100000)
        process = self.start(job, "--set", "resilience.restarts=1")
        self.assertTrue(job.wait_for_steps(process, 10), "no step was made")
        os.kill(self.site.agents("b1")[0], signal.SIGKILL)
        self.wait_for(lambda: len(job.events("regrouped")) > 1, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 3, errors)
        lost, back = job.events("regrouped")
        self.assertEqual((lost["lost"], back["joined"]), (["b1"], ["b1"]))
        self.assertEqual(job.losses(), self.reference(len(job.losses())).losses())

    def test_goes_on_when_a_host_is_cut_off(self):
        job = e2e.Job(self.folder, steps=400)
        process = self.start(job, "--set", "resilience.timeout_ms=1000")
        self.assertTrue(job.wait_for_steps(process, 10), "no step was made")
        self.site.ip("b1", "link", "set", "eth0", "down")
        try:
            _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        finally:
            self.site.ip("b1", "link", "set", "eth0", "up")
            for pid in self.site.pids("b1"):
                os.kill(pid, signal.SIGKILL)  # what is cut off cannot be told to end
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors, "host b1")
        self.assertEqual([loss for loss in job.losses()], self.reference(400).losses())

    def test_goes_on_over_another_nic_and_back(self):
        job = e2e.Job(self.folder, steps=100000)
        process = self.start(job, "--set", "resilience.timeout_ms=1000", "--set",
                             "resilience.nic_retry_ms=500")
        self.assertTrue(job.wait_for_steps(process, 10), "no step was made")
        # a0 dials a1: its dials hang, where its own NIC being down would end them at once.
        self.site.ip("a1", "link", "set", "fast0", "down")
        self.addCleanup(self.site.ip, "a1", "link", "set", "fast0", "up")
        self.wait_for(lambda: job.events("regrouped"), process)
        self.site.ip("a1", "link", "set", "fast0", "up")
        self.wait_for(lambda: len(job.events("regrouped")) > 1, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 3, errors)
        lost, back = job.events("regrouped")
        self.assertIn("a1/fast0", lost["nics_lost"])
        self.assertEqual(back["nics_back"], lost["nics_lost"])
        self.assertEqual(lost["lost"] + back["lost"], [])
        self.assertEqual(job.losses(), self.reference(len(job.losses())).losses())

    def wait_for(self, condition, process):
        end = time.monotonic() + END_S
        while not condition():
            self.assertIsNone(process.poll(), "the job ended before")
            self.assertLess(time.monotonic(), end, "it did not happen in time")
            time.sleep(0.01)

    def test_stops_on_a_signal_and_resumes(self):
        job = e2e.Job(self.folder, steps=200)
        process = self.start(job)
        self.assertTrue(job.wait_for_steps(process, 5), "no step was made")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 3, errors)
        self.nothing_runs()
        done = self.launch(job, "--resume")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_result(job, self.reference(200))

    def test_no_agent_outlives_a_launcher_that_is_killed(self):
        job = e2e.Job(self.folder, steps=100000)
        process = self.start(job)
        self.assertTrue(job.wait_for_steps(process, 5), "no step was made")
        process.kill()
        process.wait()
        self.nothing_runs()

    def test_trains_on_chosen_hosts(self):
        job = e2e.Job(self.folder, steps=10)
        hostfile = job.folder / "hosts"
        hostfile.write_text("# both clusters\na0 slots=1\na1 slots=1\nb0 slots=1 # the last\nb1\n")
        done = self.launch(job, "--hosts", str(hostfile), "--exclude", "a1,b1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(log.stem for log in (job.run_folder / "logs").iterdir()),
                         ["a0", "b0"])
        self.assert_same_result(job, self.reference(10))

    def test_agents_that_others_start(self):
        job = e2e.Job(self.folder, steps=10)
        at = self.site.address("head") + ":29500"

        def agent(host, *options):
            return subprocess.Popen(
                self.site.inside(host, e2e.HOLMES, "agent", "--host", host, "--rdzv-id", "by-hand",
                                 "--wait", "60", "--credentials",
                                 str(self.credentials("by-hand") / host), *options),
                env={**os.environ, "MASTER_ADDR": self.site.address("head"),
                     "MASTER_PORT": "29500"},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        agents = [agent(host) for host in self.site.hosts[1:]]
        process = self.start(job, "--via", "static", "--rdzv-id", "by-hand", "--rdzv-endpoint", at,
                             "--credentials", str(self.credentials("by-hand") / "coordinator"))
        stranger = self.agent("c7", "by-hand", at, self.credentials("by-hand") / "c7")
        self.assertEqual(stranger.returncode, 1)
        self.assertIn("host c7 was turned away: the job has no host of that name", stranger.stderr)
        posing = self.agent("a0", "by-hand", at, self.credentials("by-hand") / "a1")
        self.assertEqual(posing.returncode, 2)
        self.assertIn("the credentials are those of host a1 of job by-hand, not of host a0",
                      posing.stderr)
        agents.append(agent(self.site.hosts[0]))  # only now the job may begin
        _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors)
        for each in agents:
            output, _ = each.communicate(timeout=END_S)
            self.assertEqual(each.returncode, 0, output)
        self.assert_same_result(job, self.reference(10))


class Secrecy(OnOtherMachines):
    """What strangers on the network and other users of the hosts get to see."""

    def test_strangers_are_refused_and_disturb_nobody(self):
        job = e2e.Job(self.folder, steps=100000)
        process = self.start(job)
        self.assertTrue(job.wait_for_steps(process, 5), "no step was made")
        words = self.site.command(self.site.agents("a0")[0])
        name, at = (words[words.index(option) + 1] for option in ["--job", "--coordinator"])
        self.assertIn("--credentials\0-", "\0".join(words))
        plain = self.agent("a0", name, at)
        self.assertIn("this job's connections are encrypted", plain.stderr)
        other = self.agent("a0", name, at, self.credentials(name) / "a0")
        self.assertIn("not of this job's authority", other.stderr)
        self.assertEqual((plain.returncode, other.returncode), (1, 1))
        listening = [(host, place) for host in ["head", *self.site.hosts]
                     for place in self.site.listeners(host) if not place.endswith(":22")]
        self.assertGreater(len(listening), 8)  # the coordinator, and two NICs of each host
        for host, place in listening:
            self.assertIn(b"this job's connections are encrypted",
                          self.site.ask(host, place, b"hello, who is there and what do you train?"),
                          place)
            record = self.site.ask(host, place, client_hello())
            self.assertEqual(record[:3], b"\x16\x03\x03", f"{place} does not answer under TLS")
        before = len(job.losses())
        self.assertTrue(job.wait_for_steps(process, before + 5), "no further step was made")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 3, errors)
        self.assertEqual(job.events("regrouped"), [])
        self.assertEqual(job.losses(), self.reference(len(job.losses())).losses())

    def test_no_key_is_where_others_may_see_it(self):
        job = e2e.Job(self.folder, steps=100000)
        process = self.start(job, "--log-level", "debug")
        self.assertTrue(job.wait_for_steps(process, 5), "no step was made")
        for host in ["head", *self.site.hosts]:
            for pid in self.site.pids(host):
                for what in ["cmdline", "environ"]:
                    self.assertNotIn(b"PRIVATE KEY", pathlib.Path(f"/proc/{pid}/{what}").read_bytes())
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 3, errors)
        self.assertNotIn("PRIVATE KEY", output + errors)
        for file in job.run_folder.rglob("*"):
            if file.is_file():
                self.assertNotIn(b"PRIVATE KEY", file.read_bytes(), file)

    def test_plain_where_the_user_says_so(self):
        job = e2e.Job(self.folder, steps=10)
        done = self.launch(job, "--insecure")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_result(job, self.reference(10))

    def test_plain_on_trusted_fabrics_only(self):
        job = e2e.Job(self.folder, steps=100000)
        cluster = job.folder / "cluster-2x2.toml"
        text = cluster.read_text()
        cluster.write_text(text.replace('kind = "infiniband"', 'kind = "infiniband"\ntrusted = true'))
        self.assertNotEqual(cluster.read_text(), text)
        process = self.start(job, "--set", "transport.plain_on_trusted=true")
        self.assertTrue(job.wait_for_steps(process, 5), "no step was made")
        for host in ["head", *self.site.hosts]:
            for place in self.site.listeners(host):
                if not place.endswith(":22"):
                    answer = self.site.ask(host, place, b"hello, who is there and what is it?")
                    is_plain = place.startswith(("10.77.1.", "10.77.2."))
                    reason = b"no frame" if is_plain else b"connections are encrypted"
                    self.assertIn(reason, answer, place)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 3, errors)
        self.assertEqual(job.losses(), self.reference(len(job.losses())).losses())

    def test_tls_where_the_user_says_so(self):
        job = e2e.Job(self.folder, steps=10)
        done = self.launch(job, "--via", "local", "--set", "transport.security=tls")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_result(job, self.reference(10))

    def test_credentials_in_files_are_for_their_owner(self):
        folder = self.credentials("x")
        self.assertEqual(sorted(each.name for each in folder.iterdir()),
                         ["a0", "a1", "b0", "b1", "c7", "coordinator"])
        for file in folder.rglob("key.pem"):
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        (folder / "a0" / "key.pem").chmod(0o640)
        refused = self.agent("a0", "x", "10.77.0.100:1", folder / "a0")
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, "others may read .*a0/key.pem: chmod 600 it")
        again = subprocess.run([e2e.HOLMES, "security", "issue", "--job", "x", "--hosts", "a0",
                                str(folder)], capture_output=True, text=True)
        self.assertNotEqual(again.returncode, 0)
        self.assertRegex(again.stderr, "cannot make .*coordinator/key.pem: File exists")


class Refusals(OnOtherMachines):
    """Each host that cannot take part is named, with the reason, in one line."""

    def assert_fails(self, job, code, pattern, *options):
        begun = time.monotonic()
        done = self.launch(job, *options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, re.compile(pattern, re.MULTILINE))
        self.assertNotIn("Traceback", done.stderr)
        return time.monotonic() - begun

    def test_a_host_without_sshd(self):
        self.site.stop_sshd("b1")
        self.addCleanup(self.site.start_sshd, "b1")
        self.assert_fails(e2e.Job(self.folder), 1, "host b1.*Connection refused")

    def test_a_host_that_does_not_let_us_in(self):
        config = self.site.ssh_config.read_text().replace("user_key", "host_key")
        other = self.site.folder / "other_config"
        other.write_text(config)
        self.assert_fails(e2e.Job(self.folder), 1, "host [ab][01].*Permission denied", "--ssh",
                          f"ssh -F {other}")

    def test_a_host_without_holmes(self):
        self.assert_fails(e2e.Job(self.folder), 1, "host [ab][01].*/no/holmes.*No such file",
                          "--remote-executable", "/no/holmes")

    def test_a_host_that_nobody_knows(self):
        job = e2e.Job(self.folder)
        cluster = job.folder / "cluster-2x2.toml"
        cluster.write_text(cluster.read_text().replace('name = "b1"', 'name = "nowhere.invalid"'))
        self.assert_fails(job, 1, "host nowhere.invalid.*cannot be looked up")

    def test_hosts_that_nobody_starts(self):
        job = e2e.Job(self.folder)
        self.assert_fails(
            job, 1, r"host a0 failed during joining.*did not join within 1 s, nor did a1, b0, b1$",
            "--via", "static", "--rdzv-id", "x", "--rdzv-endpoint",
            self.site.address("head") + ":29501", "--wait", "1", "--insecure")

    def test_a_nic_that_is_not_there(self):
        job = e2e.Job(self.folder)
        cluster = job.folder / "cluster-2x2.toml"
        cluster.write_text(cluster.read_text().replace('"fast0"', '"ib7"', 1))
        self.assert_fails(job, 1, r"host a0.*NIC ib7 of host a0 has no address.*fast0 \(10\.77\.1\.")

    def test_static_agents_without_certificates(self):
        job = e2e.Job(self.folder)
        static = ["--via", "static", "--rdzv-id", "x", "--rdzv-endpoint", "10.77.0.100:29501"]
        self.assert_fails(job, 2, "need certificates: .*holmes security issue.*--insecure", *static)
        self.assert_fails(job, 2, "the credentials are those of the coordinator of job y, not of",
                          *static, "--credentials", str(self.credentials("y") / "coordinator"))
        self.assert_fails(job, 2, "only for --via static", "--credentials", "/anywhere")

    def test_lists_that_make_no_sense(self):
        job = e2e.Job(self.folder)
        for options, pattern in [
                (["--hosts", "a0,a9"], "no host named a9; did you mean"),
                (["--hosts", "a0,a0"], "host a0 is named twice"),
                (["--hosts", "a0:2,b0"], "slots=2, but the cluster file gives it 1 device"),
                (["--hosts", "a0,b0", "--include", "a0", "--exclude", "a0"], "leave no host"),
                (["--hosts", "/no/such/hostfile"], "there is no file /no/such/hostfile")]:
            with self.subTest(options):
                self.assert_fails(job, 2, pattern, *options)
        bad = job.folder / "bad"
        bad.write_text("a0 slots=1\nb0 slots=many\n")
        self.assert_fails(job, 2, re.escape(f"{bad}:2: slots must be a whole number"), "--hosts",
                          str(bad))


if __name__ == "__main__":
    unittest.main()
