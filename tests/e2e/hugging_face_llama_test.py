"""Goal: Llama models go from and to Hugging Face's layout unchanged, and mean the same to others.
Method: small models with shared keys and values, untied and tied, are trained, exported and
imported; files are read, and written in the other ways that transformers knows, by this test's own
code; what the model computes is compared with a Llama written here in plain Python from its
definition."""

import cmath
import json
import math
import pathlib
import subprocess
import unittest

import job as e2e
from hugging_face_files import floats, holmes, in_bf16, read_safetensors, write_safetensors

PROMPT = "line 4 of a text"
SETTINGS = ("model.family=llama", "model.kv_heads=1", "model.feed_forward=48",
            "model.vocabulary=260")
TIED = SETTINGS + ("model.head=tied", "model.head_channels=12", "model.rope_theta=1000",
                   "model.rope_factor=8", "model.rope_original_sequence=64")


def options(settings):
    return [word for setting in settings for word in ("--set", setting)]


class Llama:
    """The definition (Touvron et al. 2023), one sequence, in doubles."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = {name: floats(entry) for name, entry in
                        read_safetensors(folder / "model.safetensors").items()}
        width = self.config["head_dim"]
        self.frequencies = [self.scaled(self.config["rope_theta"] ** (-2 * i / width))
                            for i in range(width // 2)]

    def scaled(self, frequency):
        """As Llama 3.1 slows down slow turns."""
        how = self.config["rope_scaling"]
        if how is None:
            return frequency
        turns = how["original_max_position_embeddings"] * frequency / (2 * math.pi)
        low, high = how["low_freq_factor"], how["high_freq_factor"]
        share = min(1, max(0, (turns - low) / (high - low)))
        return share * frequency + (1 - share) * frequency / how["factor"]

    def linear(self, rows, name):
        weight = self.tensors[name + ".weight"]
        width = len(rows[0])
        return [[sum(x * w for x, w in zip(row, weight[o:o + width]))
                 for o in range(0, len(weight), width)] for row in rows]

    def norm(self, rows, name):
        weight = self.tensors[name + ".weight"]
        scales = [1 / math.sqrt(sum(x * x for x in row) / len(row) + self.config["rms_norm_eps"])
                  for row in rows]
        return [[x * scale * w for x, w in zip(row, weight)] for row, scale in zip(rows, scales)]

    def heads(self, rows, turn):
        """Of each row its heads; turned by their position, pairs being complex numbers."""
        size = self.config["head_dim"]
        half = size // 2
        result = []
        for t, row in enumerate(rows):
            heads = [row[i:i + size] for i in range(0, len(row), size)]
            if turn:
                numbers = [[complex(head[i], head[i + half]) * cmath.rect(1, t * f)
                            for i, f in enumerate(self.frequencies)] for head in heads]
                heads = [[z.real for z in head] + [z.imag for z in head] for head in numbers]
            result.append(heads)
        return result

    def attention(self, rows, prefix):
        prefix += "self_attn."
        queries = self.heads(self.linear(rows, prefix + "q_proj"), True)
        keys = self.heads(self.linear(rows, prefix + "k_proj"), True)
        values = self.heads(self.linear(rows, prefix + "v_proj"), False)
        shared_by = self.config["num_attention_heads"] // self.config["num_key_value_heads"]
        out = [[] for _ in rows]
        for t, heads in enumerate(queries):
            for number, query in enumerate(heads):
                shared = number // shared_by
                scores = [sum(q * k for q, k in zip(query, keys[s][shared])) /
                          math.sqrt(len(query)) for s in range(t + 1)]
                top = max(scores)
                weights = [math.exp(score - top) for score in scores]
                total = sum(weights)
                out[t] += [sum(weights[s] * values[s][shared][i] for s in range(t + 1)) / total
                           for i in range(len(query))]
        return self.linear(out, prefix + "o_proj")

    def mlp(self, rows, prefix):
        prefix += "mlp."
        gates = self.linear(rows, prefix + "gate_proj")
        rest = self.linear(rows, prefix + "up_proj")
        hidden = [[g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)]
                  for gate, up in zip(gates, rest)]
        return self.linear(hidden, prefix + "down_proj")

    def logits(self, tokens):
        """Of the token after `tokens`."""
        width = self.config["hidden_size"]
        table = self.tensors["model.embed_tokens.weight"]
        rows = [table[token * width:(token + 1) * width] for token in tokens]
        for layer in range(self.config["num_hidden_layers"]):
            prefix = f"model.layers.{layer}."
            for part, norm in ((self.attention, "input_layernorm"),
                               (self.mlp, "post_attention_layernorm")):
                change = part(self.norm(rows, prefix + norm), prefix)
                rows = [[a + b for a, b in zip(row, plus)] for row, plus in zip(rows, change)]
        tied = self.config["tie_word_embeddings"]
        return self.linear(self.norm(rows[-1:], "model.norm"),
                           "model.embed_tokens" if tied else "lm_head")[0]

    def greedy(self, prompt, count):
        tokens = list(prompt.encode())
        for _ in range(count):
            logits = self.logits(tokens[-self.config["max_position_embeddings"]:])
            tokens.append(max(range(len(logits)), key=logits.__getitem__))
        return bytes(tokens)


class HuggingFaceLlama(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = e2e.temporary_folder()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.jobs = {}
        for name, settings in (("untied", SETTINGS), ("tied", TIED)):
            cls.jobs[name] = e2e.Job(cls.folder, 2, 2, 40, run_folder=name)
            result = cls.jobs[name].run(*options(settings))
            assert result.returncode == 0, result.stderr
            result = holmes("checkpoint", "export", cls.jobs[name].run_folder,
                            cls.folder / f"exported-{name}")
            assert result.returncode == 0, result.stderr
        cls.exported = cls.folder / "exported-untied"
        cls.exported_tied = cls.folder / "exported-tied"

    def done(self, *arguments):
        result = holmes(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def copy(self, name, change_config=None, change_tensors=None, of=None):
        """An exported model in a new folder, changed."""
        of = of or self.exported
        folder = self.folder / name
        folder.mkdir()
        config = json.loads((of / "config.json").read_text())
        tensors = read_safetensors(of / "model.safetensors")
        if change_config:
            change_config(config)
        if change_tensors:
            tensors = change_tensors(tensors) or tensors
        (folder / "config.json").write_text(json.dumps(config))
        write_safetensors(folder / "model.safetensors", tensors)
        return folder

    def import_into(self, source, name, stages=1, replicas=1, settings=SETTINGS):
        job = e2e.Job(self.folder, stages, replicas, 3, run_folder=name)
        return job, holmes("checkpoint", "import", source, job.file, *options(settings))

    def test_export_holds_the_checkpoint(self):
        for name, source in (("untied", self.exported), ("tied", self.exported_tied)):
            trained = self.jobs[name].tensors()
            exported = read_safetensors(source / "model.safetensors")
            self.assertEqual(exported["model.embed_tokens.weight"][1], [260, 32])
            self.assertEqual("lm_head.weight" in exported, name == "untied")
            self.assertIn("model.layers.3.self_attn.q_proj.weight", exported)
            for tensor, (dtype, _, content) in exported.items():
                self.assertEqual(dtype, "F32")
                self.assertEqual(content, trained[tensor][:len(content)], tensor)
            config = json.loads((source / "config.json").read_text())
            self.assertEqual(config["vocab_size"], 260)
            self.assertEqual(config["model_type"], "llama")
            self.assertEqual(config["num_key_value_heads"], 1)
            self.assertEqual(config["intermediate_size"], 48)

    def test_others_compute_the_same(self):
        count = 20
        for name, source in (("untied", self.exported), ("tied", self.exported_tied)):
            with self.subTest(name):
                ours = subprocess.run([e2e.HOLMES, "generate", "--checkpoint",
                                       self.jobs[name].run_folder, "--prompt", PROMPT,
                                       "--temperature", "0", "--tokens", str(count)],
                                      capture_output=True, timeout=e2e.DEADLINE_S, check=True).stdout
                theirs = Llama(source).greedy(PROMPT, count)
                self.assertEqual(ours.rstrip(b"\n"), theirs.rstrip(b"\n"))

    def test_round_trip(self):
        for source, settings in ((self.exported, SETTINGS), (self.exported_tied, TIED)):
            with self.subTest(source.name):
                job, result = self.import_into(source, "in-" + source.name, settings=settings)
                self.assertEqual(result.returncode, 0, result.stderr)
                back = self.folder / ("back-" + source.name)
                self.done("checkpoint", "export", job.run_folder, back)
                for name in ("model.safetensors", "config.json"):
                    self.assertEqual((back / name).read_bytes(), (source / name).read_bytes(), name)

    def test_training_goes_on_from_it_at_any_layout(self):
        for source, settings in ((self.exported, SETTINGS), (self.exported_tied, TIED)):
            runs = []
            for stages, replicas in ((1, 1), (2, 2), (4, 1)):
                name = f"{source.name}-{stages}x{replicas}"
                job, result = self.import_into(source, name, stages, replicas, settings)
                self.assertEqual(result.returncode, 0, result.stderr)
                result = job.run(*options(settings), "--resume")
                self.assertEqual(result.returncode, 0, result.stderr)
                runs.append((job.losses(), job.tensors()))
            self.assertEqual(runs[0], runs[1])
            self.assertEqual(runs[0], runs[2])
            self.assertEqual([step for step, _ in runs[0][0]], [0, 1, 2])
            untrained = float(self.jobs["untied"].losses()[0][1])
            self.assertLess(float(runs[0][0][0][1]), untrained - 1)

    def test_other_ways_to_write_it(self):
        """Newer names of keys, frequencies stored too, bf16, several files."""
        def other(tensors):
            changed = {name: in_bf16(entry) for name, entry in tensors.items()}
            changed["model.layers.0.self_attn.rotary_emb.inv_freq"] = ("F32", [8], b"\0" * 32)
            return changed

        def newer(config):
            config["dtype"] = config.pop("torch_dtype")
            config["rope_parameters"] = {"rope_type": "default",
                                         "rope_theta": config.pop("rope_theta")}
            del config["rope_scaling"], config["head_dim"]

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
            self.assertEqual(entry, tensors[name], name)

    def test_scaled_rotations_by_the_newer_names_and_a_stored_tied_head(self):
        def newer(config):
            config["rope_parameters"] = dict(config.pop("rope_scaling"),
                                             rope_theta=config.pop("rope_theta"))

        def with_head(tensors):
            tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]

        source = self.copy("newer-tied", newer, with_head, self.exported_tied)
        job, result = self.import_into(source, "from-newer-tied", settings=TIED)
        self.assertEqual(result.returncode, 0, result.stderr)
        back = self.folder / "back-tied"
        self.done("checkpoint", "export", job.run_folder, back)
        for name in ("model.safetensors", "config.json"):
            self.assertEqual((back / name).read_bytes(), (self.exported_tied / name).read_bytes())

    def test_inspect_says_what_it_is(self):
        about = json.loads(self.done("checkpoint", "inspect", self.exported, "--json"))
        self.assertEqual(about["architecture"], "llama")
        self.assertEqual(about["kv_heads"], 1)
        block = 32 * (2 * 32 + 2 * 16) + 3 * 32 * 48 + 2 * 32
        self.assertEqual(about["parameters"], 4 * block + 2 * 260 * 32 + 32)
        about = json.loads(self.done("checkpoint", "inspect", self.exported_tied, "--json"))
        block = 32 * (2 * 24 + 2 * 12) + 3 * 32 * 48 + 2 * 32
        self.assertEqual(about["parameters"], 4 * block + 260 * 32 + 32)

    def refused(self, name, said, change_config=None, change_tensors=None, of=None):
        with self.subTest(name=name):
            source = self.copy(name.replace(" ", "-"), change_config, change_tensors, of)
            job, result = self.import_into(source, "refused")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertIn(said, result.stderr)
            self.assertFalse((job.run_folder / "checkpoints").exists())

    def test_what_cannot_be_computed_is_refused(self):
        def key(name, value):
            return lambda config: config.update({name: value})

        yarn = {"rope_type": "yarn", "factor": 4.0}
        more = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 64, "beta": 1}
        for name, value, said in (
                ("model_type", "mistral", '"model_type" is "mistral"'),
                ("hidden_act", "gelu", '"hidden_act" is "gelu"'),
                ("attention_bias", True, '"attention_bias" is true'),
                ("rope_scaling", yarn, '"rope_scaling" has rope_type "yarn"'),
                ("rope_scaling", {"factor": 2.0}, '"rope_scaling.factor" is not known'),
                ("rope_parameters", more, '"rope_parameters.beta" is not known'),
                ("rope_parameters", 3, '"rope_parameters" is 3'),
                ("sliding_window", 8, '"sliding_window" is not known'),
                ("num_key_value_heads", 3, "model.kv_heads = 3 does not divide"),
                ("num_key_value_heads", 0, '"num_key_value_heads" is 0'),
                ("rms_norm_eps", "small", '"rms_norm_eps" is "small", no number'),
                ("tie_word_embeddings", True, "tensor lm_head.weight: is another matrix"),
                ("num_hidden_layers", 5, "tensor model.layers.4."),
                ("intermediate_size", 64, "config.json makes it 64 x 32")):
            self.refused(f"key {name} {said[:30]}".replace("/", ""), said, key(name, value))

    def test_other_tensors_are_refused(self):
        def without(tensors):
            del tensors["model.layers.2.mlp.up_proj.weight"]

        def without_head(tensors):
            del tensors["lm_head.weight"]

        def with_bias(tensors):
            tensors["model.layers.0.self_attn.q_proj.bias"] = ("F32", [32], b"\0" * 128)

        self.refused("missing", "tensor model.layers.2.mlp.up_proj.weight: is in none", None,
                     without)
        self.refused("no head", "tensor lm_head.weight: is in none", None, without_head)
        self.refused("bias", "q_proj.bias: Llama has no such tensor", None, with_bias)

    def test_another_model_than_the_jobs(self):
        job = e2e.Job(self.folder, 1, 1, 3, run_folder="another")
        result = holmes("checkpoint", "import", self.exported, job.file)
        self.assertEqual(result.returncode, 2)
        self.assertIn('set model.family = "llama" (the job has "gpt2"), model.vocabulary = 260 '
                      '(the job has 256), model.head = "untied" (the job has "tied"), '
                      "model.kv_heads = 1 (the job has 2), model.feed_forward = 48", result.stderr)
        _, result = self.import_into(self.exported, "another-rope", settings=SETTINGS + (
            "model.rope_theta=500000", "model.norm_epsilon=1e-6"))
        self.assertIn("set model.norm_epsilon = 1e-05 (the job has 1e-06), "
                      "model.rope_theta = 10000 (the job has 5e+05)", result.stderr)


if __name__ == "__main__":
    unittest.main()
