"""Goal: strangers on a running job's ports disturb nobody: the job ends with the same losses.
Method: a 2x2 job; garbage, half a hello, silence, many connections and the well-formed hello of
another job are sent to the coordinator's and to every NIC's port while it trains."""

import os
import re
import socket
import subprocess
import unittest

import job as e2e

STEPS = 50
GARBAGE = os.urandom(4096)


def sockets_of(pid):
    """Inodes of a process's sockets."""
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}"))
        except FileNotFoundError:
            continue
        if match:
            found.add(match.group(1))
    return found


def listening(pid):
    """(address, port) of every TCP socket on which a process listens."""
    inodes, listen = sockets_of(pid), "0A"
    found = []
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in list(table)[1:]:
            fields = line.split()
            if fields[3] == listen and fields[9] in inodes:
                address, port = fields[1].split(":")
                packed = bytes.fromhex(address)[::-1]
                found.append((socket.inet_ntoa(packed), int(port, 16)))
    return found


def hello_of_another_job(folder):
    """What an agent of another job says first, caught by listening in the coordinator's place."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(e2e.DEADLINE_S)
        agent = subprocess.Popen(
            [e2e.HOLMES, "agent", "--coordinator", "127.0.0.1:%d" % listener.getsockname()[1],
             "--job", "another-job-1", "--host", "0"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        try:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(e2e.DEADLINE_S)
                return peer.recv(65536)
        finally:
            e2e.end(agent)


class HostilePeer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = e2e.temporary_folder()
        cls.addClassCleanup(cls.folder.cleanup)
        quiet = e2e.Job(cls.folder.name, 2, 2, STEPS, run_folder="quiet")
        result = quiet.run()
        assert result.returncode == 0, result.stderr
        cls.losses = quiet.losses()
        cls.hello = hello_of_another_job(cls.folder.name)
        assert b"another-job-1" in cls.hello

    def start(self, name):
        """A running job, with the ports of its coordinator and its NICs."""
        job = e2e.Job(self.folder.name, 2, 2, STEPS, run_folder=name)
        process = job.start()
        self.addCleanup(lambda: e2e.end(process, job.agents().values()))
        self.assertTrue(job.wait_for_steps(process, 1))
        ports = [port for pid in (process.pid, *job.agents().values()) for port in listening(pid)]
        self.assertEqual(len(ports), 1 + 4 * 2, "the coordinator and two NICs of each host")
        return job, process, ports

    def dial(self, port):
        peer = socket.create_connection(port, timeout=10)
        self.addCleanup(peer.close)
        return peer

    def finish(self, job, process):
        _, errors = process.communicate(timeout=e2e.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(job.losses(), self.losses)
        return errors

    def say(self, port, data):
        peer = self.dial(port)
        try:
            peer.sendall(data)
        except ConnectionError:
            pass  # refused before all was said
        return peer

    def test_garbage_half_a_hello_and_silence(self):
        job, process, ports = self.start("garbage")
        for port in ports:
            self.say(port, GARBAGE)
            self.say(port, b"\0" * 4096)
            self.say(port, b"\xff" * 4096)
            self.say(port, b"GET / HTTP/1.1\r\n\r\n")
            self.say(port, self.hello[:len(self.hello) // 2])
            self.say(port, self.hello[:-1]).close()
            self.dial(port)  # says nothing, as long as the job lasts
        self.finish(job, process)

    def test_many_connections(self):
        job, process, ports = self.start("many")
        for index in range(200):
            self.dial(ports[index % len(ports)])
        self.finish(job, process)

    def test_another_job_is_refused_with_a_reason(self):
        job, process, ports = self.start("another")
        peers = [self.say(port, self.hello) for port in ports]
        for peer in peers:
            answer = b""
            while data := peer.recv(4096):
                answer += data
            self.assertIn(b"another-job-1", answer)
        errors = self.finish(job, process)
        self.assertIn("another-job-1", errors)

    def test_a_flood_of_one_port_of_each_kind(self):
        job, process, ports = self.start("flood")
        for port in (ports[0], ports[1]):
            for _ in range(100):
                self.say(port, GARBAGE).close()
                self.say(port, self.hello).close()
        self.finish(job, process)


if __name__ == "__main__":
    unittest.main()
