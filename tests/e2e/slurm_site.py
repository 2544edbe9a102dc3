"""A real Slurm on the hosts of namespaces.Site: slurmctld at the head, a slurmd on each host.

Nothing is left of it: daemons run in the namespaces, and the site takes down what lives there.
"""

import os
import pathlib
import subprocess
import time

CONTROLLER = "/usr/sbin/slurmctld"
DAEMON = "/usr/sbin/slurmd"
DEADLINE_S = 20

CONFIGURATION = """
ClusterName=holmes
SlurmctldHost=head({head})
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
ReturnToService=2
KillWait=10
JobRequeue=1
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def why_not():
    """Why no Slurm can run here; None where it can."""
    for program in [CONTROLLER, DAEMON]:
        if not os.path.exists(program):
            return f"there is no {program}: scripts/setup installs Slurm"
    return None


class Slurm:
    """Call close() before the site's."""

    def __init__(self, site):
        self.site = site
        self.folder = pathlib.Path(site.folder) / "slurm"
        self.configuration = self.folder / "slurm.conf"
        self._daemons = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def command(self, *words, host="head"):
        """For subprocess: a command of Slurm's, on a host."""
        return self.site.inside(host, "env", f"SLURM_CONF={self.configuration}", *words)

    def run(self, *words, timeout=DEADLINE_S):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)

    def state(self, job):
        """RUNNING, PENDING, COMPLETED, ...; of the newest start."""
        return self.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").stdout.strip()

    def close(self):
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait()
        self._daemons = []

    def _start(self):
        (self.folder / "state").mkdir(parents=True)
        nodes = "\n".join(f"NodeName={host} NodeAddr={self.site.address(host)} CPUs=4 "
                          "RealMemory=1000 State=UNKNOWN" for host in self.site.hosts)
        self.configuration.write_text(CONFIGURATION.format(
            head=self.site.address("head"), folder=self.folder, nodes=nodes,
            names=",".join(self.site.hosts)))
        # Inside a namespace there is no /sys/fs/cgroup, and slurmd ends where it cannot tell which.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self._daemon("head", CONTROLLER, "-D", "-c", "-f", str(self.configuration))
        for host in self.site.hosts:
            (self.folder / f"spool.{host}").mkdir()
            self._daemon(host, DAEMON, "-D", "-f", str(self.configuration))
        self._wait_for_nodes()

    def _daemon(self, host, *words):
        """Namespaces of networks share a host name, by which Slurm's daemons know who they are."""
        with open(self.folder / f"{pathlib.Path(words[0]).name}-{host}.log", "wb") as log:
            self._daemons.append(subprocess.Popen(
                self.site.inside(host, "unshare", "--uts", "sh", "-c",
                                 'hostname "$1"; shift; exec "$@"', "sh", host, *words),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def _wait_for_nodes(self):
        end = time.monotonic() + DEADLINE_S
        while True:
            idle = self.run("timeout", "5", "sinfo", "-h", "-N", "-t", "idle", "-o", "%n")
            if len(idle.stdout.split()) == len(self.site.hosts):
                return
            if time.monotonic() > end:
                raise RuntimeError(f"Slurm's nodes are not idle: {idle.stdout}{idle.stderr}")
            time.sleep(0.05)
