"""Goal: a model goes from and to Hugging Face's layout unchanged, and means the same to others.
Method: small models are exported and imported; files are read, and written in the other ways that
transformers knows, by this test's own code; what the model computes is compared with a GPT-2 written
here in plain Python from its definition."""

import json
import math
import pathlib
import re
import shlex
import struct
import subprocess
import unittest

import job as e2e
from hugging_face_files import floats, holmes, in_bf16, read_safetensors, write_safetensors

PROMPT = "line 4 of a text"
MASKS = ("attn.bias", "attn.masked_bias")


class Gpt2:
    """The definition (Radford et al. 2019; the tanh form of GELU), one sequence, in doubles."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = {name: floats(entry) for name, entry in
                        read_safetensors(folder / "model.safetensors").items()}

    def affine(self, rows, name, columns):
        weight, bias = self.tensors[name + ".weight"], self.tensors[name + ".bias"]
        return [[bias[j] + sum(x * weight[i * columns + j] for i, x in enumerate(row))
                 for j in range(columns)] for row in rows]

    def norm(self, rows, name):
        weight, bias = self.tensors[name + ".weight"], self.tensors[name + ".bias"]
        result = []
        for row in rows:
            mean = sum(row) / len(row)
            scale = 1 / math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + 1e-5)
            result.append([(x - mean) * scale * w + b for x, w, b in zip(row, weight, bias)])
        return result

    def attention(self, rows, prefix):
        width = self.config["n_embd"]
        heads = self.config["n_head"]
        size = width // heads
        qkv = self.affine(rows, prefix + "attn.c_attn", 3 * width)
        out = [[] for _ in rows]
        for head in range(heads):
            begin = head * size
            for t, row in enumerate(qkv):
                query = row[begin:begin + size]
                scores = [sum(q * k for q, k in zip(query, qkv[s][width + begin:])) /
                          math.sqrt(size) for s in range(t + 1)]
                top = max(scores)
                weights = [math.exp(score - top) for score in scores]
                total = sum(weights)
                out[t] += [sum(weights[s] * qkv[s][2 * width + begin + i] for s in range(t + 1)) /
                           total for i in range(size)]
        return self.affine(out, prefix + "attn.c_proj", width)

    def mlp(self, rows, prefix):
        width = self.config["n_embd"]
        hidden = self.affine(rows, prefix + "mlp.c_fc", 4 * width)
        gelu = [[0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
                 for x in row] for row in hidden]
        return self.affine(gelu, prefix + "mlp.c_proj", width)

    def logits(self, tokens):
        """Of the token after `tokens`."""
        width = self.config["n_embd"]
        table, positions = self.tensors["wte.weight"], self.tensors["wpe.weight"]
        rows = [[table[token * width + i] + positions[t * width + i] for i in range(width)]
                for t, token in enumerate(tokens)]
        for block in range(self.config["n_layer"]):
            prefix = f"h.{block}."
            for part, norm in ((self.attention, "ln_1"), (self.mlp, "ln_2")):
                change = part(self.norm(rows, prefix + norm), prefix)
                rows = [[a + b for a, b in zip(row, plus)] for row, plus in zip(rows, change)]
        last = self.norm(rows[-1:], "ln_f")[0]
        return [sum(x * w for x, w in zip(last, table[v * width:]))
                for v in range(self.config["vocab_size"])]

    def greedy(self, prompt, count):
        tokens = list(prompt.encode())
        for _ in range(count):
            logits = self.logits(tokens[-self.config["n_positions"]:])
            tokens.append(max(range(len(logits)), key=logits.__getitem__))
        return bytes(tokens)


class HuggingFace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = e2e.temporary_folder()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        # A vocabulary that is no multiple of the padding: the table has rows that are no tokens.
        cls.job = e2e.Job(cls.folder, 2, 2, 60, run_folder="trained")
        result = cls.job.run("--set", "model.vocabulary=260")
        assert result.returncode == 0, result.stderr
        cls.exported = cls.folder / "exported"
        result = holmes("checkpoint", "export", cls.job.run_folder, cls.exported)
        assert result.returncode == 0, result.stderr

    def done(self, *arguments):
        result = holmes(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def copy(self, name, change_config=None, change_tensors=None):
        """The exported model in a new folder, changed."""
        folder = self.folder / name
        folder.mkdir()
        config = json.loads((self.exported / "config.json").read_text())
        tensors = read_safetensors(self.exported / "model.safetensors")
        if change_config:
            change_config(config)
        if change_tensors:
            tensors = change_tensors(tensors) or tensors
        (folder / "config.json").write_text(json.dumps(config))
        write_safetensors(folder / "model.safetensors", tensors)
        return folder

    def import_into(self, source, name, stages=1, replicas=1):
        job = e2e.Job(self.folder, stages, replicas, 3, run_folder=name)
        return job, holmes("checkpoint", "import", source, job.file, "--set",
                           "model.vocabulary=260")

    def test_export_holds_the_checkpoint(self):
        trained = self.job.tensors()
        exported = read_safetensors(self.exported / "model.safetensors")
        self.assertEqual(exported["wte.weight"][1], [260, 32])
        for name, (dtype, _, content) in exported.items():
            self.assertEqual(dtype, "F32")
            self.assertEqual(content, trained[name][:len(content)], name)
        config = json.loads((self.exported / "config.json").read_text())
        self.assertEqual(config["vocab_size"], 260)
        self.assertEqual(config["model_type"], "gpt2")

    def test_others_compute_the_same(self):
        count = 20
        ours = subprocess.run([e2e.HOLMES, "generate", "--checkpoint", self.job.run_folder,
                               "--prompt", PROMPT, "--temperature", "0", "--tokens", str(count)],
                              capture_output=True, timeout=e2e.DEADLINE_S, check=True).stdout
        theirs = Gpt2(self.exported).greedy(PROMPT, count)
        self.assertEqual(ours.rstrip(b"\n"), theirs.rstrip(b"\n"))

    def test_round_trip(self):
        job, result = self.import_into(self.exported, "imported")
        self.assertEqual(result.returncode, 0, result.stderr)
        back = self.folder / "back"
        self.done("checkpoint", "export", job.run_folder, back)
        for name in ("model.safetensors", "config.json"):
            self.assertEqual((back / name).read_bytes(), (self.exported / name).read_bytes(), name)

    def test_training_goes_on_from_it(self):
        losses = []
        for stages, replicas in ((1, 1), (2, 2)):
            job, result = self.import_into(self.exported, f"tuned-{stages}", stages, replicas)
            self.assertEqual(result.returncode, 0, result.stderr)
            said = re.search(r": holmes (train .* --resume) goes on from it", result.stdout)
            self.assertIn(" --set model.vocabulary=260 ", said.group(1))
            result = holmes(*shlex.split(said.group(1)))
            self.assertEqual(result.returncode, 0, result.stderr)
            losses.append(job.losses())
        self.assertEqual(losses[0], losses[1])
        self.assertEqual([step for step, _ in losses[0]], [0, 1, 2])
        untrained = float(self.job.losses()[0][1])
        self.assertLess(float(losses[0][0][1]), untrained - 1)

    def test_other_ways_to_write_it(self):
        """Prefixed names, the head and masks stored too, bf16, several files."""
        def other(tensors):
            changed = {"transformer." + name: in_bf16(entry) for name, entry in tensors.items()}
            changed["lm_head.weight"] = changed["transformer.wte.weight"]
            for mask in MASKS:
                changed[f"transformer.h.0.{mask}"] = ("F32", [1], struct.pack("<f", 1))
            return changed

        def newer(config):
            config["dtype"] = config.pop("torch_dtype")
            config["activation_function"] = "gelu_pytorch_tanh"
            config["n_inner"] = 128

        source = self.copy("other", newer, other)
        tensors = read_safetensors(source / "model.safetensors")
        (source / "model.safetensors").unlink()
        names = sorted(tensors)
        files = {"model-00001-of-00002.safetensors": names[:7],
                 "model-00002-of-00002.safetensors": names[7:]}
        for file, inside in files.items():
            write_safetensors(source / file, {name: tensors[name] for name in inside})
        weight_map = {name: file for file, inside in files.items() for name in inside}
        (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
        self.assertIn("BF16", self.done("checkpoint", "inspect", source))
        job, result = self.import_into(source, "from-other")
        self.assertEqual(result.returncode, 0, result.stderr)
        back = self.folder / "back-in-bf16"
        self.done("checkpoint", "export", job.run_folder, back, "--dtype", "bf16")
        for name, entry in read_safetensors(back / "model.safetensors").items():
            self.assertEqual(entry, tensors["transformer." + name], name)

    def refused(self, name, said, change_config=None, change_tensors=None):
        with self.subTest(name=name):
            source = self.copy(name.replace(" ", "-"), change_config, change_tensors)
            job, result = self.import_into(source, "refused")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertIn(said, result.stderr)
            self.assertFalse((job.run_folder / "checkpoints").exists())

    def test_what_cannot_be_computed_is_refused(self):
        def key(name, value):
            return lambda config: config.update({name: value})

        for name, value, said in (("model_type", "bloom", '"model_type" is "bloom"'),
                                  ("activation_function", "relu", '"activation_function" is "relu"'),
                                  ("tie_word_embeddings", False, '"tie_word_embeddings" is false'),
                                  ("n_inner", 64, '"n_inner" is 64'),
                                  ("layer_norm_epsilon", 1e-6, '"layer_norm_epsilon" is 1e-06'),
                                  ("rotary_dim", 8, '"rotary_dim" is not known'),
                                  ("n_head", -2, '"n_head" is -2'),
                                  ("n_layer", 5, "tensor h.4."),
                                  ("n_positions", 64, "is 32 x 32, config.json makes it 64 x 32")):
            self.refused("key " + name, said, key(name, value))

    def test_other_tensors_are_refused(self):
        def without(tensors):
            del tensors["h.2.mlp.c_fc.bias"]

        def integers(tensors):
            dtype, shape, content = tensors["ln_f.bias"]
            tensors["ln_f.bias"] = ("I32", shape, content)

        def more(tensors):
            tensors["h.0.adapter.weight"] = ("F32", [1], b"\0" * 4)

        def other_head(tensors):
            dtype, shape, content = tensors["wte.weight"]
            tensors["lm_head.weight"] = (dtype, shape, b"\0" * len(content))

        self.refused("missing", "tensor h.2.mlp.c_fc.bias: is in none", None, without)
        self.refused("integers", "tensor ln_f.bias: has dtype I32", None, integers)
        self.refused("more", "tensor h.0.adapter.weight: GPT-2 has no such", None, more)
        self.refused("another head", "tensor lm_head.weight: is another matrix", None, other_head)

    def test_damaged_folders_are_refused(self):
        for name, damage in (
                ("cut", lambda path: path.write_bytes(path.read_bytes()[:1000])),
                ("empty", lambda path: path.write_bytes(b"")),
                ("gone", lambda path: path.unlink())):
            with self.subTest(name=name):
                source = self.copy("damaged-" + name)
                damage(source / "model.safetensors")
                _, result = self.import_into(source, "damaged-job")
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(str(source), result.stderr)
        source = self.copy("escaping")
        (source / "model.safetensors").unlink()
        (source / "model.safetensors.index.json").write_text(
            json.dumps({"weight_map": {"wte.weight": "../exported/model.safetensors"}}))
        _, result = self.import_into(source, "damaged-job")
        self.assertIn("which is no name of a file beside it", result.stderr)

    def test_another_model_than_the_jobs(self):
        job = e2e.Job(self.folder, 1, 1, 3, run_folder="another")
        result = holmes("checkpoint", "import", self.exported, job.file, "--set",
                        "model.layers=6")
        self.assertEqual(result.returncode, 2)
        self.assertIn("set model.layers = 4 (the job has 6), model.vocabulary = 260", result.stderr)

    def test_nothing_is_overwritten(self):
        result = holmes("checkpoint", "export", self.job.run_folder, self.exported)
        self.assertEqual(result.returncode, 2)
        self.assertIn("is there already", result.stderr)
        result = holmes("checkpoint", "import", self.exported, self.job.file, "--set",
                        "model.vocabulary=260")
        self.assertEqual(result.returncode, 2)
        self.assertIn("has a checkpoint already", result.stderr)


if __name__ == "__main__":
    unittest.main()
