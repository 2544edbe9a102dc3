"""Hosts as network namespaces of this machine, each with an sshd: what tests of other machines share.

    fast-a: 10.77.1.0/24        fast-b: 10.77.2.0/24          one bridge for each fabric
     a0   a1                     b0   b1
    ethernet: 10.77.0.0/24, all of them and "head", where holmes launch runs

Everything is made by root, has the process id in its name, and is taken down by close(), or by the
next run where a run was killed. The file system is shared, as a cluster's home folders are.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

SSHD = "/usr/sbin/sshd"
DEADLINE_S = 20

# Sends its input to ADDRESS:PORT and prints what comes first.
ASK = """
import socket, sys
address, port = sys.argv[1].rsplit(":", 1)
with socket.create_connection((address, int(port)), timeout=20) as connection:
    connection.sendall(sys.stdin.buffer.read())
    sys.stdout.buffer.write(connection.recv(4096))
"""


def why_not():
    """Why this machine cannot make such hosts; None where it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.path.exists(SSHD):
        return "there is no sshd: scripts/setup installs openssh-server"
    probe = f"hlm{os.getpid()}probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    if made.returncode != 0:
        return "cannot make a network namespace: " + made.stderr.strip()
    subprocess.run(["ip", "netns", "del", probe], check=True)
    return None


def take_down(namespace):
    out = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True)
    for pid in out.stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["ip", "netns", "del", namespace])


def take_down_left_ones():
    """What runs have left that were killed: their process is gone."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    for line in listed.splitlines():
        name = re.match(r"hlm(\d+)[a-z]", line)
        if name and not os.path.exists(f"/proc/{name.group(1)}"):
            take_down(line.split()[0])


class Site:
    """A network of hosts; `clusters` maps a cluster's name to the names of its hosts. `mbit_s` maps
    "ethernet" or a cluster's name to the rate at which every host sends and receives there; what is
    not named is as fast as it gets."""

    def __init__(self, folder, clusters, mbit_s=None):
        self.folder = pathlib.Path(folder)
        self.clusters = clusters
        self.mbit_s = mbit_s or {}
        self.hosts = [host for hosts in clusters.values() for host in hosts]
        self.ssh_config = self.folder / "ssh_config"
        self._made = []
        self._sshd = {}
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def namespace(self, host):
        return f"hlm{os.getpid()}{host}"

    def address(self, host, fabric="ethernet"):
        if host == "head":
            return "10.77.0.100"
        net = 0 if fabric == "ethernet" else 1 + [host in h for h in self.clusters.values()].index(True)
        return f"10.77.{net}.{1 + self.hosts.index(host)}"

    def inside(self, host, *words):
        return ["ip", "netns", "exec", self.namespace(host), *words]

    def ip(self, host, *words):
        subprocess.run(["ip", "-n", self.namespace(host), *words], check=True)

    def pids(self, host):
        """Processes of a host, its sshd's left out."""
        out = subprocess.run(["ip", "netns", "pids", self.namespace(host)], check=True,
                             capture_output=True, text=True).stdout
        return [int(pid) for pid in out.split() if self._command(int(pid)).find("sshd") < 0]

    def agents(self, host):
        return [pid for pid in self.pids(host) if "holmes\0agent" in self._command(pid)]

    def command(self, pid):
        """The words that a process was started with."""
        return self._command(pid).split("\0")

    def listeners(self, host):
        """Where processes of a host accept TCP connections: ADDRESS:PORT."""
        out = subprocess.run(self.inside(host, "ss", "-Htln"), check=True, capture_output=True,
                             text=True).stdout
        return [line.split()[3] for line in out.splitlines()]

    def ask(self, host, place, question):
        """What a listener of a host first answers to these bytes."""
        return subprocess.run(self.inside(host, sys.executable, "-c", ASK, place), input=question,
                              check=True, capture_output=True).stdout

    def bytes_sent(self, host, interface):
        path = f"/sys/class/net/{interface}/statistics/tx_bytes"
        return int(subprocess.run(self.inside(host, "cat", path), check=True, capture_output=True,
                                  text=True).stdout)

    def start_sshd(self, host):
        log = open(self.folder / f"sshd-{host}.log", "ab")
        with log:
            self._sshd[host] = subprocess.Popen(
                self.inside(host, SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait_for_sshd(host)

    def stop_sshd(self, host):
        sshd = self._sshd.pop(host)
        sshd.terminate()
        sshd.wait()

    def close(self):
        for host in list(self._sshd):
            self.stop_sshd(host)
        for namespace in self._made:
            take_down(namespace)
        self._made = []

    # --- how it is made ---

    def _make(self):
        take_down_left_ones()
        self._make_keys()
        for name in ["net", "head", *self.hosts]:
            subprocess.run(["ip", "netns", "add", self.namespace(name)], check=True)
            self._made.append(self.namespace(name))
            self.ip(name, "link", "set", "lo", "up")
        for fabric in ["ethernet", *self.clusters]:
            self.ip("net", "link", "add", self._bridge(fabric), "type", "bridge")
            self.ip("net", "link", "set", self._bridge(fabric), "up")
        self._join("head", "eth0", "ethernet")
        for cluster, hosts in self.clusters.items():
            for host in hosts:
                self._join(host, "eth0", "ethernet")
                self._join(host, "fast0", cluster)
        for host in self.hosts:
            self.start_sshd(host)

    def _bridge(self, fabric):
        return "br-" + fabric[:10]

    def _join(self, host, interface, fabric):
        port = f"{host}-{interface}"
        self.ip("net", "link", "add", port, "type", "veth", "peer", "name", interface, "netns",
                self.namespace(host))
        self.ip("net", "link", "set", port, "master", self._bridge(fabric), "up")
        self.ip(host, "addr", "add", self.address(host, fabric) + "/24", "dev", interface)
        self.ip(host, "link", "set", interface, "up")
        if fabric in self.mbit_s and host != "head":
            self._shape(host, interface, self.mbit_s[fabric])
            self._shape("net", port, self.mbit_s[fabric])

    def _shape(self, host, interface, mbit_s):
        subprocess.run(["tc", "-n", self.namespace(host), "qdisc", "add", "dev", interface, "root",
                        "tbf", "rate", f"{mbit_s:.3f}mbit", "burst", "64kb", "latency", "100ms"],
                       check=True)

    def _make_keys(self):
        for name in ["host_key", "user_key"]:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            str(self.folder / name)], check=True)
        os.makedirs("/run/sshd", exist_ok=True)  # where sshd locks its unprivileged half in
        (self.folder / "sshd_config").write_text(
            f"HostKey {self.folder}/host_key\nAuthorizedKeysFile {self.folder}/user_key.pub\n"
            "PermitRootLogin yes\nPasswordAuthentication no\nUsePAM no\nStrictModes no\n"
            "PidFile none\n")
        aliases = "".join(f"Host {host}\n  HostName {self.address(host)}\n" for host in self.hosts)
        self.ssh_config.write_text(
            aliases + f"Host *\n  IdentityFile {self.folder}/user_key\n  IdentitiesOnly yes\n"
            "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n")

    def _wait_for_sshd(self, host):
        end = time.monotonic() + DEADLINE_S
        while True:
            tried = subprocess.run(self.inside("head", "ssh", "-F", str(self.ssh_config), host,
                                               "true"), capture_output=True, text=True)
            if tried.returncode == 0:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"sshd of {host}: {tried.stderr}")
            time.sleep(0.05)

    def _command(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            return ""
