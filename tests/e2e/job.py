"""Runs small jobs of the real executable in temporary folders: what the e2e tests share.

A job is a 4-layer model on text that it makes itself; layouts differ in their cluster file only.
"""

import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import tempfile
import time

HOLMES = os.environ["HOLMES"]
DEADLINE_S = 120

JOB = """
[run]
folder = "{folder}"
[model]
layers = 4
heads = 2
channels = 32
sequence = 32
[data]
text = "{text}"
validation = 0.1
validation_batches = 4
[train]
steps = {steps}
batch = 16
micro_batch = 2
reduction_leaves = 4
sequence = 32
lr = 3e-3
warmup_steps = 5
decay_steps = 50
seed = 3
[parallel]
pipeline = {pipeline}
[cluster]
file = "{cluster}"
"""

HOST = """
[[host]]
name = "{name}"
cluster = "{cluster}"
[[host.device]]
kind = "cpu"
[[host.nic]]
name = "fast0"
fabric = "fast-{cluster}"
[[host.nic]]
name = "eth0"
fabric = "ethernet"
"""

FABRIC = """
[[fabric]]
name = "{name}"
kind = "{kind}"
gbit_s = {gbit_s}
latency_us = {latency_us}
"""


def cluster_toml(stages, replicas):
    """`stages` clusters of `replicas` hosts: a0, a1, ..., b0, ..."""
    names = [chr(ord("a") + i) for i in range(stages)]
    text = FABRIC.format(name="ethernet", kind="ethernet", gbit_s=1, latency_us=100)
    for name in names:
        text += FABRIC.format(name="fast-" + name, kind="infiniband", gbit_s=4, latency_us=20)
    for name in names:
        text += f'[[cluster]]\nname = "{name}"\n'
    for name in names:
        for host in range(replicas):
            text += HOST.format(name=f"{name}{host}", cluster=name)
    return text


class Job:
    """One run folder and the job file that goes with it."""

    def __init__(self, folder, stages=2, replicas=2, steps=50, run_folder="run", name=None):
        self.folder = pathlib.Path(folder)
        self.run_folder = self.folder / run_folder
        text = self.folder / "text.txt"
        if not text.exists():
            text.write_text("".join(f"line {i * i} of a text about {i}\n" for i in range(2000)))
        layout = f"{stages}x{replicas}"
        cluster = self.folder / f"cluster-{layout}.toml"
        cluster.write_text(cluster_toml(stages, replicas))
        self.file = self.folder / f"job-{layout}-{name or run_folder}.toml"
        self.file.write_text(JOB.format(folder=self.run_folder, text=text, steps=steps,
                                        pipeline=stages, cluster=cluster))

    def command(self, *options):
        return [HOLMES, "train", str(self.file), *options]

    def run(self, *options):
        """Trains to the end; returns the finished process with its output as text."""
        return subprocess.run(self.command(*options), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=DEADLINE_S)

    def start(self, *options):
        return subprocess.Popen(self.command(*options), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

    def losses(self):
        """(step, loss as written) of every line of metrics.jsonl."""
        lines = (self.run_folder / "metrics.jsonl").read_text().splitlines()
        return [(row["step"], re.search(r'"loss":([^,}]+)', line).group(1))
                for line, row in ((line, json.loads(line)) for line in lines) if "loss" in row]

    def committed(self):
        path = self.run_folder / "metrics.jsonl"
        return path.read_text().count('"loss"') if path.exists() else 0

    def events(self, name):
        """The events of this name in metrics.jsonl."""
        rows = map(json.loads, (self.run_folder / "metrics.jsonl").read_text().splitlines())
        return [row for row in rows if row.get("event") == name]

    def wait_for_steps(self, process, count):
        """Waits until `count` steps have been committed; False if the job ended before."""
        end = time.monotonic() + DEADLINE_S
        while self.committed() < count:
            if process.poll() is not None or time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def agents(self):
        """Host name -> process id of those that run, as processes.json names them."""
        path = self.run_folder / "processes.json"
        rows = json.loads(path.read_text()) if path.exists() else []
        return {row["host"]: row["pid"] for row in rows}

    def checkpoint(self):
        folders = sorted(path for path in (self.run_folder / "checkpoints").glob("step-*")
                         if path.suffix != ".tmp")
        return folders[-1] if folders else None

    def tensors(self):
        """Name -> bytes of every tensor of the newest checkpoint; moments joined over owners."""
        found = {}
        for path in sorted(self.checkpoint().glob("*.safetensors")):
            raw = path.read_bytes()
            (size,) = struct.unpack("<Q", raw[:8])
            for name, about in json.loads(raw[8:8 + size]).items():
                if name == "__metadata__":
                    continue
                begin, end = about["data_offsets"]
                data = raw[8 + size + begin:8 + size + end]
                part = re.fullmatch(r"(exp_avg(?:_sq)?:.+):(\d+)\+(\d+)", name)
                if part:
                    found.setdefault(part.group(1), {})[int(part.group(2))] = data
                else:
                    found[name] = data
        return {name: b"".join(data[k] for k in sorted(data)) if isinstance(data, dict) else data
                for name, data in found.items()}


def started(output):
    """Ids of the agents that `holmes train` said on its standard output it has started."""
    return [int(pid) for pid in re.findall(r"started \(process (\d+)\)", output)]


def alive(pid):
    """A process that runs; zombies do not count."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def end(process, pids=()):
    """Ends what a test has started, also when the test failed."""
    if process.poll() is None:
        process.kill()
    process.communicate()
    for pid in pids:
        if alive(pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="holmes-e2e-")
