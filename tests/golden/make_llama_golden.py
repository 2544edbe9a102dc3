#!/usr/bin/env python3
"""Makes data/tiny_llama.safetensors and data/tiny_llama_tied.safetensors: the same numbers as
make_golden.py makes of GPT-2, of tiny Llamas that the C++ engines must meet.

The model is written here from the architecture's description, in double precision. The first has
four heads on two heads of keys and values, which are wider than channels / heads, and a head of its
own; the second has one on one, a tied head, and angles scaled as Llama 3.1 scales them. Tensors
have the names of Hugging Face's Llama. Usage: tests/golden/make_llama_golden.py   (needs Debian's
python3-torch)
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

from make_golden import CHANNELS, LAYERS, VOCABULARY, make

FEED_FORWARD, EPSILON = 24, 1e-5


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(CHANNELS))

    def forward(self, x):
        return self.weight * x / (x.square().mean(-1, keepdim=True) + EPSILON).sqrt()


def linear(inputs, outputs):
    layer = nn.Linear(inputs, outputs, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(outputs, inputs) * 0.2)
    return layer


def turned(x, frequencies):
    """Each pair (i, i + half) of a head's channels as a complex number, turned by its position."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * frequencies
    numbers = torch.complex(x[..., :half], x[..., half:])
    numbers = numbers * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((numbers.real, numbers.imag), dim=-1)


class Attention(nn.Module):
    def __init__(self, heads, kv_heads, width, frequencies):
        super().__init__()
        self.heads, self.kv_heads, self.frequencies = heads, kv_heads, frequencies
        self.q_proj = linear(CHANNELS, heads * width)
        self.k_proj = linear(CHANNELS, kv_heads * width)
        self.v_proj = linear(CHANNELS, kv_heads * width)
        self.o_proj = linear(heads * width, CHANNELS)

    def forward(self, x):
        samples, tokens, _ = x.shape

        def parts(projection, count):
            return projection(x).view(samples, tokens, count, -1).transpose(1, 2)

        q = turned(parts(self.q_proj, self.heads), self.frequencies)
        k = turned(parts(self.k_proj, self.kv_heads), self.frequencies)
        v = parts(self.v_proj, self.kv_heads)
        shared_by = self.heads // self.kv_heads
        k, v = (part.repeat_interleave(shared_by, dim=1) for part in (k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
        return self.o_proj((weights @ v).transpose(1, 2).reshape(samples, tokens, -1))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = linear(CHANNELS, FEED_FORWARD)
        self.up_proj = linear(CHANNELS, FEED_FORWARD)
        self.down_proj = linear(FEED_FORWARD, CHANNELS)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, *attention):
        super().__init__()
        self.input_layernorm = RmsNorm()
        self.self_attn = Attention(*attention)
        self.post_attention_layernorm = RmsNorm()
        self.mlp = FeedForward()

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, *attention):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, CHANNELS)
        self.layers = nn.ModuleList(Block(*attention) for _ in range(LAYERS))
        self.norm = RmsNorm()

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    TABLES = ("model.embed_tokens.weight",)
    NORM = "norm."

    def __init__(self):
        super().__init__()
        width = 6
        pairs = torch.arange(width // 2, dtype=torch.float64)
        self.model = Body(4, 2, width, 10000.0 ** (-2 * pairs / width))
        self.lm_head = linear(CHANNELS, VOCABULARY)

    def forward(self, tokens):
        return self.lm_head(self.model(tokens))


def scaled(frequency, factor=8.0, low=1.0, high=4.0, original=32):
    """Slow turns are slowed down by `factor`, those between the bounds by a part of it."""
    wavelength = 2 * math.pi / frequency
    if wavelength < original / high:
        return frequency
    if wavelength > original / low:
        return frequency / factor
    smooth = (original / wavelength - low) / (high - low)
    return (1 - smooth) * frequency / factor + smooth * frequency


class TiedLlama(nn.Module):
    TABLES = Llama.TABLES
    NORM = Llama.NORM

    def __init__(self):
        super().__init__()
        width = CHANNELS // 2
        frequencies = [scaled(100.0 ** (-2 * pair / width)) for pair in range(width // 2)]
        self.model = Body(2, 2, width, torch.tensor(frequencies))

    def forward(self, tokens):
        return self.model(tokens) @ self.model.embed_tokens.weight.T


if __name__ == "__main__":
    make(Llama, "tiny_llama.safetensors")
    make(TiedLlama, "tiny_llama_tied.safetensors")
