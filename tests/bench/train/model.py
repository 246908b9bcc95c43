"""The decoder as people write it in PyTorch, for peer.py. ways.py computes the attention."""

import math

import torch
from torch import nn
from torch.nn import functional

import ways

# The encodings of this model. Any other encoding would be measured as nope.
KNOWN = ("nope", "absolute", "random", "relative", "shaw", "alibi", "rope", "partial_rope",
         "rope_abs", "xpos", "mla")


def sinusoid(length, width, half_split=False):
    angles = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(0, width, 2, dtype=torch.float64) / width)
    if half_split:
        return torch.cat([angles.sin(), angles.cos()], 1).float()
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1).float()


def rotary_table(length, width, base):
    """(cos, sin), each (length, width / 2)."""
    angles = torch.arange(length, dtype=torch.float64)[:, None] * base ** (
        -torch.arange(0, width, 2, dtype=torch.float64) / width)
    return angles.cos().float(), angles.sin().float()


def rotate(x, cos, sin):
    """Rotates adjacent pairs of (B, H, T, d) by the angles of their position."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def t5_buckets(length, buckets, max_distance, causal):
    relative = torch.arange(length)[None, :] - torch.arange(length)[:, None]  # key - query
    first = torch.zeros_like(relative)
    if causal:
        distance = (-relative).clamp_min(0)
    else:
        buckets //= 2
        first = (relative > 0).long() * buckets
        distance = relative.abs()
    exact = buckets // 2
    far = exact + (torch.log(distance.clamp_min(1).double() / exact)
                   / math.log(max_distance / exact) * (buckets - exact) + 1e-9).long()
    return first + torch.where(distance < exact, distance, far.clamp_max(buckets - 1))


def alibi_slopes(heads):
    def power_of_two(n):
        return [2 ** (-8 * h / n) for h in range(1, n + 1)]
    below = 2 ** int(math.log2(heads))
    return power_of_two(below) + power_of_two(2 * below)[0::2][:heads - below]


class RootMeanSquareNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    def __init__(self, model, pe, attend):
        super().__init__()
        self.model, self.pe, self.name, self.attend = model, pe, pe["name"], attend
        d, bias = model["d_model"], model["attention_bias"]
        self.heads, self.width = model["heads"], d // model["heads"]
        self.norm = nn.LayerNorm(d, eps=model["layer_norm_eps"])
        source = d
        if self.name == "mla":
            source, rotary = pe["latent"], pe["rotary"]
            self.latent_kv, self.latent_query = (nn.Linear(d, source, bias=False),
                                                 nn.Linear(d, source, bias=False))
            self.kv_norm = RootMeanSquareNorm(source) if pe["latent_norm"] else nn.Identity()
            self.query_norm = RootMeanSquareNorm(source) if pe["latent_norm"] else nn.Identity()
            self.rotary_key = nn.Linear(d, rotary, bias=False)
            self.rotary_query = nn.Linear(
                source, rotary * (1 if pe["rotary_query"] == "shared" else self.heads), bias=False)
        self.query, self.key, self.value = (nn.Linear(source, d, bias=bias) for _ in range(3))
        self.output = nn.Linear(d, d, bias=bias)
        dropout = model["dropout"]
        self.weight_dropout = nn.Dropout(dropout if "attention" in model["dropout_sites"] else 0)
        self.out_dropout = nn.Dropout(dropout if "output" in model["dropout_sites"] else 0)
        length = model["max_len"]
        if self.name in ("rope", "rope_abs", "partial_rope", "xpos"):
            cos, sin = rotary_table(length, self.width, pe["base"])
            if self.name == "partial_rope":
                chosen = torch.zeros(self.heads, 1, 1)
                chosen[pe["head_list"] if pe["select"] == "list" else list(range(pe["heads"]))] = 1
                cos, sin = chosen * cos + (1 - chosen), chosen * sin
            self.register_buffer("cos", cos, persistent=False)
            self.register_buffer("sin", sin, persistent=False)
        if self.name == "mla":
            cos, sin = rotary_table(length, pe["rotary"], pe["base"])
            if pe["rotation"] == "sliced":
                row = sinusoid(length, pe["rotary"], half_split=True)
                cos, sin = row[:, 1::2], row[:, 0::2]
            self.register_buffer("cos", cos, persistent=False)
            self.register_buffer("sin", sin, persistent=False)
        if self.name == "xpos":
            bases = (torch.arange(0, self.width, 2) / self.width + 0.4) / 1.4
            powers = (torch.arange(length) - length // 2)[:, None] / pe["scale_base"]
            self.register_buffer("scale", bases ** powers, persistent=False)
        if self.name == "alibi":
            distance = (torch.arange(length)[:, None] - torch.arange(length)[None, :]).abs()
            slopes = torch.tensor(alibi_slopes(self.heads)) if pe["slopes"] == "geometric" else \
                torch.exp(-torch.arange(self.heads) / self.heads)
            self.register_buffer("bias", -slopes[:, None, None] * distance, persistent=False)
        if self.name == "relative" and pe["form"] == "table":
            self.table = nn.Embedding(2 * length - 1, self.heads)
            self.register_buffer("rows", torch.arange(length)[None, :]
                                 - torch.arange(length)[:, None] + length - 1, persistent=False)
        if self.name == "shaw":
            most = pe["max_distance"]
            self.shaw_key = nn.Embedding(2 * most + 1, self.width)
            self.shaw_value = nn.Embedding(2 * most + 1, self.width) if pe["values"] else None
            rows = (torch.arange(length)[None, :]
                    - torch.arange(length)[:, None]).clamp(-most, most) + most
            self.register_buffer("rows", rows, persistent=False)

    def split(self, x):
        """(B, T, H w) as (B, H, T, w)."""
        return x.unflatten(-1, (-1, self.width if x.shape[-1] == self.heads * self.width
                                else x.shape[-1])).transpose(1, 2)

    def project(self, normed, source):
        if self.name != "mla":
            return (self.split(self.query(normed)), self.split(self.key(source)),
                    self.split(self.value(source)))
        rotary, length = self.pe["rotary"], normed.shape[1]
        query_latent, kv_latent = (self.query_norm(self.latent_query(normed)),
                                   self.kv_norm(self.latent_kv(source)))
        cos, sin = self.cos[:length], self.sin[:length]
        rotary_query = rotate(
            self.rotary_query(query_latent).unflatten(-1, (-1, rotary)).transpose(1, 2), cos, sin)
        rotary_key = rotate(self.rotary_key(source).unsqueeze(1), cos, sin)
        query, key = self.split(self.query(query_latent)), self.split(self.key(kv_latent))
        spread = (-1, self.heads, -1, -1)
        return (torch.cat([query, rotary_query.expand(spread)], -1),
                torch.cat([key, rotary_key.expand(spread)], -1), self.split(self.value(kv_latent)))

    def forward(self, x, inputs, masks, shared_bias):
        normed = self.norm(x)
        length = x.shape[1]
        query, key, value = self.project(normed,
                                         normed if self.model["kv_source"] == "self" else inputs)
        if self.name in ("rope", "rope_abs", "partial_rope", "xpos"):
            cos, sin = self.cos[..., :length, :], self.sin[..., :length, :]
            if self.name == "xpos":
                scale = self.scale[:length]
                query, key = (rotate(query, cos * scale, sin * scale),
                              rotate(key, cos / scale, sin / scale))
            else:
                query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        bias = self.bias[:, :length, :length] if self.name == "alibi" else shared_bias
        if self.name == "relative" and shared_bias is None:
            bias = self.table(self.rows[:length, :length]).permute(2, 0, 1)
        heads = self.attend(self, query, key, value, bias, masks)
        return x + self.out_dropout(self.output(heads.transpose(1, 2).flatten(2)))


class FeedForward(nn.Module):
    def __init__(self, model):
        super().__init__()
        sites, dropout = model["dropout_sites"], model["dropout"]
        self.norm = nn.LayerNorm(model["d_model"], eps=model["layer_norm_eps"])
        self.inner, self.outer = (nn.Linear(model["d_model"], model["d_ff"]),
                                  nn.Linear(model["d_ff"], model["d_model"]))
        self.activation = functional.relu if model["activation"] == "relu" else functional.gelu
        self.inner_dropout = nn.Dropout(dropout if "ffn_inner" in sites else 0)
        self.dropout = nn.Dropout(dropout if "ffn" in sites else 0)

    def forward(self, x):
        return x + self.dropout(
            self.outer(self.inner_dropout(self.activation(self.inner(self.norm(x))))))


class Decoder(nn.Module):
    def __init__(self, spec, vocabulary, classes, attend=ways.plain):
        super().__init__()
        self.model, self.pe = spec["model"], spec["pe"]
        model, pe, d, length = (self.model, self.pe, spec["model"]["d_model"],
                                spec["model"]["max_len"])
        self.embedding = nn.Embedding(vocabulary, d)
        name = pe["name"]
        if name not in KNOWN:
            raise SystemExit(
                f"tests/bench/train/model.py has no encoding {name}; known: {', '.join(KNOWN)}")
        self.table = None
        if (name == "random" or (name == "absolute" and pe["form"] == "learned")
            or (name == "mla" and pe["input_table"])):
            self.table = nn.Parameter(torch.empty(length, d),
                                      requires_grad=name != "random" or pe["trainable"])
        elif name in ("absolute", "rope_abs"):
            self.register_buffer("sines", sinusoid(length, d), persistent=False)
        elif name == "rope" and pe["input_sinusoid"]:
            self.register_buffer("sines", sinusoid(length, d, half_split=True), persistent=False)
        self.bias = None
        if name == "relative" and pe["form"] == "t5":
            self.bias = nn.Embedding(pe["buckets"], model["heads"])
            self.register_buffer("buckets", t5_buckets(length, pe["buckets"], pe["max_distance"],
                                                       model["mask"] == "causal"), persistent=False)
        self.attention = nn.ModuleList(Attention(model, pe, attend) for _ in range(model["layers"]))
        self.ffn = nn.ModuleList(FeedForward(model) for _ in range(model["layers"]))
        self.final_norm = (nn.LayerNorm(d, eps=model["layer_norm_eps"]) if model["final_norm"]
                           else nn.Identity())
        self.head = nn.Linear(d, classes)

    def forward(self, tokens, lengths, block_mask=None):
        length = tokens.shape[1]
        x = self.embedding(tokens)
        if self.table is not None:
            x = x + self.table[:length]
        elif hasattr(self, "sines"):
            x = x + self.sines[:length]
        present = (None if lengths is None
                   else torch.arange(length, device=x.device) < lengths[:, None])
        masks = ways.Masks(self.model["mask"] == "causal",
                           present if self.model["key_padding"] == "masked" else None, block_mask)
        bias = (None if self.bias is None
                else self.bias(self.buckets[:length, :length]).permute(2, 0, 1))
        inputs = x
        for attention, ffn in zip(self.attention, self.ffn):
            x = ffn(attention(x, inputs, masks, bias))
        x = self.final_norm(x)
        readout = self.model["readout"]
        if readout == "last":
            pooled = x[:, -1] if lengths is None else x[torch.arange(len(x)), lengths - 1]
        elif readout == "mean" or present is None:
            pooled = x.mean(1)
        else:
            pooled = (x * present[..., None]).sum(1) / lengths[:, None]
        return self.head(pooled)
