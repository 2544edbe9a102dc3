"""Goal: what users get wrong is said in one clear message with exit code 2, before anything starts:
no process is left and nothing that lies in the run folder is changed.
Method: the real executable with one mistake at a time; the whole run folder is compared."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import unittest

import job as e2e


def content(folder):
    """Every path below a folder with its bytes; the lock comes and holds nothing."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(pathlib.Path(folder).rglob("*")) if path.name != "lock"}


def processes_with(text):
    """Processes, this one aside, whose command line names `text`."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if text.encode() in line and int(path.parent.name) != os.getpid():
            found.append(line)
    return found


def run(command, **options):
    options = {"stdin": subprocess.DEVNULL, "timeout": 30, **options}
    return subprocess.run(command, capture_output=True, text=True, **options)


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = e2e.temporary_folder()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.good = e2e.Job(cls.folder.name, 2, 2, 4, run_folder="good")
        result = cls.good.run("--set", "run.checkpoint_every=2")
        assert result.returncode == 0, result.stderr

    def assert_refused(self, result, *parts):
        """One message, in which every one of `parts` occurs."""
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("holmes: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(processes_with(self.folder.name), [])

    def refused(self, *settings, says=(), options=(), job=None):
        job = job or self.good
        before = content(job.run_folder)
        sets = [word for setting in settings for word in ("--set", setting)]
        result = job.run(*(options or ("--overwrite",)), *sets)
        self.assert_refused(result, *says)
        self.assertEqual(content(job.run_folder), before)

    def copy(self, name):
        """The good run in a folder of its own."""
        copied = e2e.Job(self.folder.name, 2, 2, 6, run_folder=name)
        shutil.copytree(self.good.run_folder, copied.run_folder)
        return copied

    def plan(self, *options):
        return run([e2e.HOLMES, "plan", str(self.good.file), *options])

    def test_cluster_files(self):
        """One mistake of each kind, through `holmes plan` and `holmes train`."""
        fabric = '[[fabric]]\nname = "f"\nkind = "KIND"\ngbit_s = RATE\nlatency_us = 1\n'
        host = '[[host]]\nname = "h"\ncount = 2\n[[host.device]]\ncount = 2\n' \
               '[[host.nic]]\nname = "n"\nfabric = "f"\n'
        good = fabric.replace("KIND", "ethernet").replace("RATE", "1") + host
        for name, text, settings, says in (
                ("kind", good.replace("ethernet", "ethernot"), [],
                 [":3: ", "'ethernot'", "did you mean 'ethernet'"]),
                ("negative", good.replace("gbit_s = 1", "gbit_s = -1"), [], [":4: ", "-1 is out of"]),
                ("absurd", good.replace("gbit_s = 1", "gbit_s = 1e99"), [],
                 [":4: ", "1e+99 is out of"]),
                ("twice", good + host, [], [":15: ", "two hosts are named 'h0'"]),
                ("empty", good.split("[[host]]")[0], [], ["has no hosts"]),
                ("fabric", good.replace('fabric = "f"', 'fabric = "g"'), [],
                 [":13: ", "'g' is not declared"]),
                ("apart", good + good.replace('"f"', '"g"').replace('"h"', '"i"'),
                 ["parallel.pipeline=1", "train.reduction_leaves=8"],
                 ["hosts h0 and i0 share no fabric", "h0 has n on f", "i0 has n on g"]),
                ("divide", good, ["parallel.strategy=megatron", "parallel.pipeline=3"],
                 ["4 devices cannot be dealt equally to 3 stages"]),
                ("tensor", good, ["parallel.tensor=4"], ["no host has over 2 devices"]),
                ("memory", good.replace("]]\ncount = 2\n", "]]\ncount = 2\nmemory_gib = 1e-5\n"),
                 ["parallel.pipeline=1"], ["GiB"])):
            path = pathlib.Path(self.folder.name, name + ".toml")
            path.write_text(text)
            for command in (self.plan, self.good.run):
                with self.subTest(name=name, command=command.__name__):
                    sets = [word for value in [f"cluster.file={path}", *settings]
                            for word in ("--set", value)]
                    self.assert_refused(command(*sets), *says)

    def test_tensor_groups_are_planned_and_not_trained_with(self):
        path = pathlib.Path(self.folder.name, "pairs.toml")
        path.write_text('[[host]]\nname = "h"\n[[host.device]]\ncount = 2\n')
        sets = ["--set", f"cluster.file={path}", "--set", "parallel.tensor=2",
                "--set", "parallel.pipeline=1"]
        planned = self.plan(*sets)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertIn("tensor group", planned.stdout)
        before = content(self.good.run_folder)
        self.assert_refused(self.good.run("--overwrite", *sets),
                            "parallel.tensor = 2 can be planned", "set parallel.tensor = 1")
        self.assertEqual(content(self.good.run_folder), before)

    def test_devices_of_other_kinds_are_planned_and_not_trained_on(self):
        path = pathlib.Path(self.folder.name, "gpus.toml")
        path.write_text('[[host]]\nname = "h"\n[[host.device]]\nkind = "gpu"\ncount = 2\n')
        sets = ["--set", f"cluster.file={path}", "--set", "parallel.pipeline=1"]
        planned = self.plan(*sets)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        before = content(self.good.run_folder)
        self.assert_refused(self.good.run("--overwrite", *sets),
                            'host h has a device of kind "gpu"', 'only "cpu", "cuda" and "paced" can')
        self.assertEqual(content(self.good.run_folder), before)

    def test_a_gpu_that_is_not_there(self):
        path = pathlib.Path(self.folder.name, "cuda.toml")
        path.write_text('[[host]]\nname = "h"\n[[host.device]]\nkind = "cuda"\n')
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}  # where there is one, hides it
        result = run(self.good.command("--set", f"cluster.file={path}", "--set",
                                       "parallel.pipeline=1", "--set", "parallel.data=1", "--set",
                                       f"run.folder={self.folder.name}/no-gpu"), env=environment)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr,
                         "host h: (no GPU can be used|the CUDA plugin cannot be loaded): ")

    def test_keys_and_values(self):
        for settings, says in (
                (["train.stpes=5"], ["train.stpes", "did you mean 'steps'"]),
                (["trian.steps=5"], ["[trian]", "did you mean 'train'"]),
                (["model.heads=3"], ["model.heads = 3", "model.channels = 32"]),
                (["parallel.pipeline=5"], ["5 stages", "model.layers = 4"]),
                (["parallel.schedule=zero-bubble"], ["zero-bubble", "network-aware", "gpipe"]),
                (["train.batch=15"], ["train.batch = 15", "train.micro_batch = 2"]),
                (["train.batch=2"], ["train.reduction_leaves = 4"]),
                (["model.vocabulary=255"], ["model.vocabulary = 255", "256"]),
                (["train.lr=1e6"], ["train.lr", "100"]),
                (["train.steps="], ["train.steps", "integer"]),
                (["train.steps"], ["section.key=value"]),
                (["train.lr=nan"], ["train.lr"]),
                (["transport.port=70000"], ["transport.port", "65535"]),
                (["run.folder="], ["run.folder"])):
            with self.subTest(settings=settings):
                self.refused(*settings, says=says)

    def test_text(self):
        text = pathlib.Path(self.folder.name) / "other.txt"
        self.refused(f"data.text={text}", says=["data.text", str(text), "does not exist"])
        text.write_bytes(b"")
        self.refused(f"data.text={text}", says=["data.text", "is empty"])
        text.write_bytes(b"x" * 32)
        self.refused(f"data.text={text}", says=[str(text), "needs 33"])
        self.refused(f"data.text={self.folder.name}", says=["not a regular file"])

    def test_job_files(self):
        good = self.good.file.read_bytes()
        file = pathlib.Path(self.folder.name) / "bad.toml"
        for name, data, says in (
                ("binary", bytes(range(256)), "bad.toml:"),
                ("empty", b"", "data.text is not set"),
                ("cut", good[:good.index(b'"')] + b'"', "bad.toml:"),
                ("huge", b"#\n" * 1024 * 1024, "are read"),
                ("deep", b"a=" + b"[" * 10000, "bad.toml:")):
            with self.subTest(name=name):
                file.write_bytes(data)
                self.assert_refused(run([e2e.HOLMES, "train", str(file)]), says)
        self.assert_refused(run([e2e.HOLMES, "train", self.folder.name]), "not a regular file")
        self.assert_refused(run([e2e.HOLMES, "train", str(file) + "l"]), "no such file")
        # What some editors add is no mistake.
        file.write_bytes(b"\xef\xbb\xbf" + good.replace(b"\n", b"\r\n"))
        self.assertEqual(run([e2e.HOLMES, "plan", str(file)]).returncode, 0)

    def test_clusters(self):
        file = pathlib.Path(self.folder.name) / "bad-cluster.toml"
        good = e2e.cluster_toml(2, 2)
        ethernet = '[[host.nic]]\nname = "eth0"\nfabric = "ethernet"\n'
        for text, says in (
                (good.replace(ethernet, ""), "share no fabric"),
                (good.replace('"a1"', '"a0"'), "two hosts are named 'a0'"),
                (good.replace('fabric = "fast-a"', 'fabric = "fast-x"'), "did you mean 'fast-a'"),
                (e2e.cluster_toml(1, 9), "9 replicas"),
                ("", "no hosts")):
            with self.subTest(says=says):
                file.write_text(text)
                self.refused(f"cluster.file={file}", "parallel.pipeline=0", says=[says])

    def test_checkpoint_on_resume_and_generate(self):
        def damage(pattern, change):
            path = sorted(job.checkpoint().glob(pattern))[0]
            path.write_bytes(change(path.read_bytes()))
            return path.name

        def cut(data):
            return data[:-100]

        def flip(data):
            return data[:-10] + bytes([data[-10] ^ 1]) + data[-9:]

        for name, pattern, change, tensor in (
                ("model-cut", "model*.safetensors", cut, "tensor h.1.mlp.c_proj.bias"),
                ("optimizer-cut", "optimizer*.safetensors", cut, "tensor exp_avg_sq:h.1"),
                ("model-empty", "model*.safetensors", lambda _: b"", ""),
                ("model-foreign", "model*.safetensors", lambda _: b"\x7fELF" * 1000, ""),
                ("model-flipped", "model*.safetensors", flip, "content has changed"),
                ("manifest-cut", "manifest.json", cut, "")):
            with self.subTest(name=name):
                job = self.copy(name)
                file = damage(pattern, change)
                self.refused(options=("--resume",), says=[file, tensor], job=job)
                result = run([e2e.HOLMES, "generate", "--checkpoint", str(job.run_folder),
                              "--prompt", "line"])
                self.assert_refused(result, file, tensor)

    def test_files_of_a_checkpoint_that_are_none(self):
        def pipe(path):
            path.unlink()
            os.mkfifo(path)

        def folder(path):
            path.unlink()
            path.mkdir()

        def link(path):
            path.unlink()
            path.symlink_to(path.name)

        for change in (pipe, folder, link, pathlib.Path.unlink):
            for pattern in ("model-*", "optimizer*"):
                with self.subTest(change=change.__name__, pattern=pattern):
                    job = self.copy(f"{change.__name__}-{pattern[:3]}")
                    path = sorted(job.checkpoint().glob(pattern))[0]
                    change(path)
                    for command in (job.command("--resume"),
                                    [e2e.HOLMES, "generate", "--checkpoint", str(job.run_folder),
                                     "--prompt", "line"]):
                        self.assert_refused(run(command), path.name, "move its folder away")

    def test_manifests(self):
        def change(job, edit):
            path = job.checkpoint() / "manifest.json"
            path.write_bytes(edit(path.read_bytes()))

        for name, edit, says in (
                ("newer", lambda data: data.replace(b'"version": 1', b'"version": 3'), "newer one"),
                ("deep", lambda data: b"[" * 100000, "move its folder away"),
                ("nul", lambda data: b"\0" * 100, "move its folder away"),
                ("other", lambda data: b"{}", "no manifest"),
                ("outside", lambda data: data.replace(b'"model-0', b'"../model-0'), "no name of"),
                ("shape", lambda data: data.replace(b'"shape": [', b'"shape": [9,', 1), "tensor"),
                ("huge", lambda data: data + b" " * (65 << 20), "too many for a manifest")):
            with self.subTest(name=name):
                job = self.copy("manifest-" + name)
                change(job, edit)
                self.assert_refused(job.run("--resume"), "step-00000004", says)

    def test_a_checkpoint_without_a_manifest_is_passed_over_with_a_word(self):
        job = self.copy("no-manifest")
        (job.checkpoint() / "manifest.json").unlink()
        result = job.run("--resume")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("step-00000004 is passed over", result.stderr)

    def test_a_checkpoint_of_another_job(self):
        for setting, says in (("model.channels=64", "model.channels is 32"),
                              ("train.seed=4", "seed is 3"),
                              ("train.batch=32", "batch is 16"),
                              ("train.steps=3", "train.steps = 3")):
            with self.subTest(setting=setting):
                self.refused(setting, "train.warmup_steps=1", says=[says, "step-00000004"],
                             options=("--resume",))

    def test_resume_without_a_checkpoint(self):
        job = e2e.Job(self.folder.name, 2, 2, 4, run_folder="nothing")
        self.refused(options=("--resume",), says=["nothing", "without --resume"], job=job)
        self.assertFalse(job.run_folder.exists())

    def test_generate(self):
        def generate(*options):
            return run([e2e.HOLMES, "generate", *options])

        checkpoint = str(self.good.checkpoint())
        self.assert_refused(generate("--checkpoint", "/nowhere", "--prompt", "a"), "/nowhere")
        self.assert_refused(generate("--checkpoint", checkpoint, "--prompt", ""), "prompt is empty")
        self.assertEqual(generate("--checkpoint", checkpoint, "--prompt", "abc", "--tokens", "0")
                         .returncode, 0)
        long = subprocess.run([e2e.HOLMES, "generate", "--checkpoint", checkpoint, "--prompt",
                               "x" * 500, "--tokens", "3", "--temperature", "0"],
                              capture_output=True, timeout=30)
        self.assertEqual(long.returncode, 0, long.stderr)
        self.assertTrue(long.stdout.startswith(b"x" * 500))

    def test_port_in_use(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            self.refused(f"transport.port={port}", says=[f"transport.port = {port}", "in use"])

    def test_run_folders(self):
        file = self.good.file
        for folder in ("/proc/holmes", f"{file}/run", "/dev/null"):
            with self.subTest(folder=folder):
                self.refused(f"run.folder={folder}", says=[folder, "--set run.folder=DIR"])
        self.refused(says=["--resume", "--overwrite"], options=("--log-level", "info"))
        odd = e2e.Job(self.folder.name, 2, 2, 4, run_folder="odd")
        odd.run_folder.mkdir()
        (odd.run_folder / "checkpoints").write_text("not a folder")
        self.refused(says=["checkpoints is not a folder"], options=("--log-level", "info"), job=odd)
        (odd.run_folder / "checkpoints").unlink()
        for name in ("checkpoints", "logs", "metrics.jsonl", "plan.json", "processes.json"):
            with self.subTest(link=name):
                (odd.run_folder / name).symlink_to("/nowhere/at all")
                result = odd.run()  # a link to nowhere holds nothing that could be compared
                self.assert_refused(result, name, "move it away")
                (odd.run_folder / name).unlink()

    def test_pipes_in_a_run_folder_hold_up_nobody(self):
        odd = e2e.Job(self.folder.name, 2, 2, 1, run_folder="pipes")
        odd.run_folder.mkdir()
        os.mkfifo(odd.run_folder / "job.toml.new")
        self.assertEqual(odd.run().returncode, 0)
        (odd.run_folder / "logs" / "a0.log").unlink()
        os.mkfifo(odd.run_folder / "logs" / "a0.log")
        result = odd.run("--resume", "--set", "train.steps=2")  # which is said in a line before
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("a0.log is a pipe; move it away", result.stderr)

    def test_working_in_a_folder_with_an_odd_name(self):
        for name in ("a\nb", "\x1b[1m"):
            with self.subTest(name=name):
                folder = pathlib.Path(self.folder.name, name)
                folder.mkdir()
                result = run([*self.good.command(), "--set", "run.folder=here"], cwd=folder)
                self.assert_refused(result, "control characters", repr(name)[1:-1])
                self.assertEqual(list(folder.iterdir()), [])

    def test_a_run_folder_in_use(self):
        job = e2e.Job(self.folder.name, 1, 1, 100000, run_folder="busy")
        process = job.start()
        self.addCleanup(lambda: e2e.end(process, job.agents().values()))
        self.assertTrue(job.wait_for_steps(process, 2))
        for option in ("--overwrite", "--resume"):
            result = job.run(option)
            self.assertEqual(result.returncode, 2)
        self.assertIn("another holmes train", job.run("--overwrite").stderr)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3, errors)
        self.assertEqual(len(job.losses()), int(job.checkpoint().name.split("-")[1]))


if __name__ == "__main__":
    unittest.main()
