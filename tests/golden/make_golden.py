#!/usr/bin/env python3
"""Makes data/tiny_gpt2.safetensors: numbers of a tiny GPT-2 that the C++ engines must meet.

The model is written here from the architecture's description, in double precision, and its
gradients come from PyTorch's autograd, so that nothing is shared with the C++ code. The file holds
initial weights, tokens, loss and logits of the first micro-batch, every gradient of the first step
(two micro-batches, averaged, before clipping), and losses and weights of three AdamW steps with
clipping. Usage: tests/golden/make_golden.py   (needs Debian's python3-torch)
"""
import json
import math
import pathlib
import struct

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, HEADS, CHANNELS, SEQUENCE, VOCABULARY = 2, 2, 16, 8, 27
STEPS, MICRO_BATCHES, SAMPLES = 3, 2, 2
# Epsilon is larger than usual: the gradient of a key's bias is zero but for rounding, and AdamW
# would turn that noise into steps of full size.
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY, MAX_NORM = 1e-2, (0.9, 0.95), 1e-5, 0.1, 0.5


class Linear(nn.Module):
    """y = x W + b with W stored input x output, as GPT-2's checkpoints have it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.2)
        self.bias = nn.Parameter(torch.randn(outputs) * 0.1)

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = Linear(CHANNELS, 3 * CHANNELS)
        self.c_proj = Linear(CHANNELS, CHANNELS)

    def forward(self, x):
        samples, tokens, _ = x.shape
        q, k, v = (
            part.view(samples, tokens, HEADS, -1).transpose(1, 2)
            for part in self.c_attn(x).split(CHANNELS, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
        return self.c_proj((weights @ v).transpose(1, 2).reshape(x.shape))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = Linear(CHANNELS, 4 * CHANNELS)
        self.c_proj = Linear(4 * CHANNELS, CHANNELS)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(CHANNELS, eps=1e-5)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(CHANNELS, eps=1e-5)
        self.mlp = FeedForward()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    TABLES = ("wte.weight", "wpe.weight")
    NORM = "ln_"

    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, CHANNELS)
        self.wpe = nn.Embedding(SEQUENCE, CHANNELS)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(CHANNELS, eps=1e-5)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T


def loss_of(model, tokens, targets):
    return F.cross_entropy(model(tokens).view(-1, VOCABULARY), targets.reshape(-1))


def new_model(architecture):
    """With values of a size that gives every gradient one."""
    model = architecture()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name in architecture.TABLES:
                p.mul_(0.3)
            if architecture.NORM in name:
                p.add_(torch.randn_like(p) * 0.1)
            p.copy_(p.float())  # what the file can hold
    return model


def new_optimizer(model):
    named = list(model.named_parameters())
    return torch.optim.AdamW(
        [
            {"params": [p for _, p in named if p.dim() > 1], "weight_decay": WEIGHT_DECAY},
            {"params": [p for _, p in named if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=LEARNING_RATE, betas=BETAS, eps=EPSILON)


def write(path, tensors):
    kinds = {torch.float32: "F32", torch.int32: "I32"}
    header, blobs, offset = {}, [], 0
    for name, value in tensors.items():
        value = value.detach().contiguous()
        value = value.to(torch.float32 if value.is_floating_point() else torch.int32)
        blob = value.numpy().tobytes()
        header[name] = {"dtype": kinds[value.dtype], "shape": list(value.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def make(architecture, file_name):
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    model = new_model(architecture)
    rows = torch.randint(0, VOCABULARY, (STEPS, MICRO_BATCHES, SAMPLES, SEQUENCE + 1))
    tokens, targets = rows[..., :-1], rows[..., 1:]
    out = {"tokens": tokens, "targets": targets}
    out["logits"] = model(tokens[0, 0])
    for name, p in model.named_parameters():
        out["initial/" + name] = p.clone()

    optimizer = new_optimizer(model)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        micro = [loss_of(model, tokens[step, i], targets[step, i]) for i in range(MICRO_BATCHES)]
        (sum(micro) / MICRO_BATCHES).backward()
        losses.append(torch.stack(micro))
        if step == 0:
            for name, p in model.named_parameters():
                out["gradient/" + name] = p.grad.clone()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM))
        optimizer.step()
    out["losses"] = torch.stack(losses)
    out["norms"] = torch.stack(norms)
    for name, p in model.named_parameters():
        out["final/" + name] = p
    write(pathlib.Path(__file__).parent / "data" / file_name, out)


if __name__ == "__main__":
    make(Gpt2, "tiny_gpt2.safetensors")
