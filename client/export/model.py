"""A decoder that pelab has trained, as plain PyTorch (1.13 or newer). Nothing else is needed.

    python3 model.py data.safetensors      prints how many test examples it gets right

    from model import load
    model = load()                         of the folder of this file, or load("FOLDER")
    logits = model(tokens, lengths)        (B, T) token ids, (B) tokens before the padding

It reads spec.json (every setting of the training), weights.safetensors and, if the encoding came
from a file, encoding.pt. The module is for evaluation, so it has no dropout.

B examples, T positions (from 0), D model.d_model, H model.heads, d = D/H, w channels of queries and
keys, C classes; i is the position of a query, j that of a key.
"""
import json
import math
import pathlib
import re
import struct
import sys
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

Spec = Dict[str, Any]
DTYPES = {"F32": torch.float32, "F64": torch.float64, "I32": torch.int32, "I64": torch.int64}
CLOSE = 1e-4  # logits that differ by less may come in the other order on another machine


def angles_of(length: int, width: int, base: float) -> Tensor:
    """(T, width/2), rounded up: i base^(-2t/width) for the channel pair t. Float64, like all
    tables of positions; table.to(x) gives them the type and device of x."""
    powers = torch.arange(0, width, 2, dtype=torch.float64) / -width
    return torch.arange(length)[:, None] * torch.pow(base, powers)


def sinusoid(length: int, width: int, in_turn: bool) -> Tensor:
    """(T, width): sines and cosines in turn, or all sines and then all cosines."""
    angles = angles_of(length, width, 10000.0)
    parts = torch.stack([angles.sin(), angles.cos()], -1 if in_turn else 1)
    return parts.flatten(1)[:, :width]


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotates the channel pairs (2t, 2t+1) of x (…, T, w) by angles with this cosine and sine."""
    even, odd, cosine, sine = x[..., 0::2], x[..., 1::2], cosine.to(x), sine.to(x)
    return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], -1).flatten(-2)


def distances(length: int) -> Tensor:
    """(T, T): j - i."""
    return torch.arange(length) - torch.arange(length)[:, None]


def by_pair(table: Tensor) -> Tensor:
    """A table (H, 2T-1), whose entry j - i + T - 1 is for query i and key j, as (H, T, T)."""
    length = (table.size(1) + 1) // 2
    return table[:, (distances(length) + length - 1).to(table.device)]


class Encoding(nn.Module):
    """A positional encoding: the places where it acts on the decoder. This class adds sines or a
    learned table to the embeddings if the job says so, and does nothing else."""

    def __init__(self, spec: Spec, folder: pathlib.Path) -> None:
        super().__init__()
        self.spec, self.options, model = spec, spec["pe"], spec["model"]
        self.name, self.form = self.options["name"], self.options.get("form")
        self.layers, self.heads = model["layers"], model["heads"]
        self.d_model, self.max_len = model["d_model"], model["max_len"]
        if self.name == "random" or self.form == "learned" or self.options.get("input_table"):
            self.table = nn.Parameter(torch.zeros(self.max_len, self.d_model))

    def tables(self, *shape: int) -> nn.ParameterList:
        """A parameter of this shape for each layer."""
        return nn.ParameterList([nn.Parameter(torch.zeros(shape)) for _ in range(self.layers)])

    def embed(self, x: Tensor) -> Tensor:
        """The token embeddings (B, T, D), with positions."""
        if hasattr(self, "table"):
            return x + self.table[:x.size(1)]
        if self.name not in ("absolute", "rope_abs") and not self.options.get("input_sinusoid"):
            return x
        return x + sinusoid(x.size(1), self.d_model, self.name != "rope").to(x)

    def turn(self, layer: int, side: int, x: Tensor) -> Tensor:
        """A layer's queries (side 0) or keys (side 1), (B, H, T, w), with positions."""
        return x

    def logits(self, layer: int, query: Tensor, key: Tensor, logits: Tensor) -> Tensor:
        """The logits (B, H, T, T), with positions."""
        return logits

    def mix(self, layer: int, weights: Tensor, value: Tensor) -> Tensor:
        """The heads' outputs (B, H, T, d), from weights (B, H, T, T) and values (B, H, T, d)."""
        return weights @ value


class Alibi(Encoding):
    """A head loses its slope times abs(i - j) (Press et al. 2022)."""

    def logits(self, layer: int, query: Tensor, key: Tensor, logits: Tensor) -> Tensor:
        power = 2 ** int(math.log2(self.heads))
        slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
        slopes += [2 ** (-4 * h / power) for h in range(1, 2 * power, 2)]  # if H > power
        if self.options["slopes"] == "exponential":  # the authors' code
            slopes = [math.exp(-h / self.heads) for h in range(self.heads)]
        slope = torch.tensor(slopes[:self.heads], dtype=torch.float64)[:, None, None]
        return logits - (slope * distances(logits.size(-1)).abs()).to(logits)


class Relative(Encoding):
    """A learned bias by head and distance: for each layer a table with a row for each distance, or
    (t5) one table with a row for each bucket of distances (Raffel et al. 2020)."""

    def __init__(self, spec: Spec, folder: pathlib.Path) -> None:
        super().__init__(spec, folder)
        self.bias: Any = (
            self.tables(2 * self.max_len - 1, self.heads) if self.form == "table" else
            nn.Parameter(torch.zeros(self.options["buckets"], self.heads)))

    def bucket(self, offset: int) -> int:
        """Short distances have a bucket each. Without a causal mask, half of them are for j > i."""
        buckets, first, distance = self.options["buckets"], 0, max(-offset, 0)
        if self.spec["model"]["mask"] != "causal":
            buckets //= 2
            first, distance = (buckets if offset > 0 else 0), abs(offset)
        exact, longest = buckets // 2, self.options["max_distance"]
        if distance >= exact:  # wider buckets; 1e-9 for the logarithms of exact powers
            share = math.log(distance / exact) / math.log(longest / exact)
            distance = exact + math.floor(share * exact + 1e-9)
        return first + min(distance, buckets - 1)

    def logits(self, layer: int, query: Tensor, key: Tensor, logits: Tensor) -> Tensor:
        length = logits.size(-1)
        if self.form == "table":
            bias = self.bias[layer][self.max_len - length:self.max_len + length - 1]
        else:
            bias = self.bias[[self.bucket(offset) for offset in range(1 - length, length)]]
        return logits + by_pair(bias.T)


class Shaw(Encoding):
    """A learned vector by j - i is added to the key, and to the value (Shaw et al. 2018)."""

    def __init__(self, spec: Spec, folder: pathlib.Path) -> None:
        super().__init__(spec, folder)
        self.most = self.options["max_distance"]
        self.key = self.tables(2 * self.most + 1, self.d_model // self.heads)
        if self.options["values"]:
            self.value = self.tables(2 * self.most + 1, self.d_model // self.heads)

    def pairs(self, table: Tensor, length: int) -> Tensor:
        """(T, T, d): the vector for each query and key."""
        return table[(distances(length).clamp(-self.most, self.most) + self.most).to(table.device)]

    def logits(self, layer: int, query: Tensor, key: Tensor, logits: Tensor) -> Tensor:
        pairs = self.pairs(self.key[layer], logits.size(-1))
        return logits + torch.einsum("bhid,ijd->bhij", query, pairs) / math.sqrt(query.size(-1))

    def mix(self, layer: int, weights: Tensor, value: Tensor) -> Tensor:
        if not self.options["values"]:
            return weights @ value
        pairs = self.pairs(self.value[layer], value.size(2))
        return weights @ value + torch.einsum("bhij,ijd->bhid", weights, pairs)


class Rope(Encoding):
    """Rotates queries and keys by their positions (Su et al. 2021). partial_rope rotates some heads
    only."""

    def turn(self, layer: int, side: int, x: Tensor) -> Tensor:
        angles = angles_of(x.size(2), x.size(3), self.options["base"]).repeat(self.heads, 1, 1)
        if self.name == "partial_rope":
            chosen = (self.options["head_list"] if self.options["select"] == "list"
                      else range(self.options["heads"]))
            angles[[head for head in range(self.heads) if head not in chosen]] = 0
        return rotate(x, angles.cos(), angles.sin())


class Xpos(Rope):
    """Rope; and the product of pair t fades by zeta_t^((i-j)/scale_base) (Sun et al. 2023)."""

    def turn(self, layer: int, side: int, x: Tensor) -> Tensor:
        length, width = x.shape[2:]
        zeta = (torch.arange(0, width, 2, dtype=torch.float64) / width + 0.4) / 1.4
        # Counting from the middle changes no product and keeps the factors near 1.
        powers = (torch.arange(length) - length // 2)[:, None] / self.options["scale_base"]
        fade = torch.pow(zeta, -powers if side else powers).repeat_interleave(2, -1)
        return super().turn(layer, side, x) * fade.to(x)


class Own(Encoding):
    """The methods of the TorchScript module in encoding.pt (docs/own-encodings.md of pelab)."""

    def __init__(self, spec: Spec, folder: pathlib.Path) -> None:
        super().__init__(spec, folder)
        declared = {"pelab.json": ""}
        self.script = torch.jit.load(str(folder / "encoding.pt"), map_location="cpu",
                                     _extra_files=declared).eval()
        self.has = set(self.options["methods"]).__contains__
        sizes = {name: spec["model"][name] for name in ("layers", "heads", "d_model", "max_len")}
        sizes.update(head_size=self.d_model // self.heads,
                     causal=int(spec["model"]["mask"] == "causal"))
        options = self.numbers(json.loads(declared["pelab.json"])["options"])
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            for seed, method, arguments in ((0, "configure", (sizes, options)),
                                            (spec["seed"], "reset", (spec["seed"],))):
                torch.manual_seed(seed)
                if hasattr(self.script, method):
                    self.call(method, *arguments)

    def numbers(self, declared: List[Dict[str, Any]]) -> Dict[str, float]:
        """The options for `configure`: 1 and 0 for true and false, the place of a choice."""
        words = {"true": 1, "false": 0}
        pairs = [pair.split("=") for pair in self.options["options"].split(",") if pair]
        choices = {option["name"]: option.get("choices", []) for option in declared}
        return {name: float(choices[name].index(text) if choices[name] else words.get(text, text))
                for name, text in pairs}

    def call(self, method: str, *arguments: Any) -> Any:
        # Otherwise PyTorch replaces operations by fused ones after the first calls.
        with torch.jit.optimized_execution(False):
            return getattr(self.script, method)(*arguments)

    def embed(self, x: Tensor) -> Tensor:
        return x + self.call("input_term", x.size(1)) if self.has("input_term") else x

    def turn(self, layer: int, side: int, x: Tensor) -> Tensor:
        length = x.size(2)
        if self.has("transform"):  # takes (B, T, H, d)
            x = x.transpose(1, 2).contiguous()
            x = self.call("transform", layer, side, x, length).transpose(1, 2)
        if self.has("angles"):
            angles = self.call("angles", self.max_len)[:length].transpose(0, 1)
            x = rotate(x, angles.cos(), angles.sin())
        return x

    def logits(self, layer: int, query: Tensor, key: Tensor, logits: Tensor) -> Tensor:
        if self.has("distance_bias"):
            logits = logits + by_pair(self.call("distance_bias", layer, logits.size(-1)))
        if self.has("pair_bias"):
            logits = logits + self.call("pair_bias", layer, query, key)
        return self.call("logits", layer, query, key, logits) if self.has("logits") else logits

    def mix(self, layer: int, weights: Tensor, value: Tensor) -> Tensor:
        if self.has("distance_factor"):
            weights = weights * by_pair(self.call("distance_factor", layer, weights.size(-1)))
        return weights @ value


ENCODINGS = {"nope": Encoding, "absolute": Encoding, "random": Encoding, "alibi": Alibi,
             "relative": Relative, "shaw": Shaw, "rope": Rope, "rope_abs": Rope,
             "partial_rope": Rope, "xpos": Xpos, "mla": Encoding, "own": Own}


def by_head(x: Tensor, heads: int) -> Tensor:
    """(B, T, n m) as (B, n, T, m)."""
    return x.unflatten(-1, (heads, x.size(-1) // heads)).transpose(1, 2)


class Attention(nn.Module):
    """One layer's attention."""

    def __init__(self, spec: Spec, layer: int) -> None:
        super().__init__()
        model, pe = spec["model"], spec["pe"]
        self.layer, self.heads, width = layer, model["heads"], model["d_model"]
        self.from_input = model["kv_source"] == "input"
        self.norm = nn.LayerNorm(width, eps=model["layer_norm_eps"])
        entering, bias = pe.get("latent", width), model["attention_bias"]
        self.query, self.key, self.value = (nn.Linear(entering, width, bias=bias) for _ in range(3))
        self.output = nn.Linear(width, width, bias=bias)

    def project(self, y: Tensor, source: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        """Queries from y, keys and values from source: (B, H, T, w), (B, H, T, w), (B, H, T, d)."""
        return (by_head(self.query(y), self.heads), by_head(self.key(source), self.heads),
                by_head(self.value(source), self.heads))

    def forward(self, x: Tensor, x0: Tensor, hidden: Tensor, pe: Encoding) -> Tensor:
        """What is added to the layer's input x; x0 is the first layer's input."""
        y = self.norm(x)
        query, key, value = self.project(y, x0 if self.from_input else y)
        query, key = pe.turn(self.layer, 0, query), pe.turn(self.layer, 1, key)
        logits = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
        logits = pe.logits(self.layer, query, key, logits).masked_fill(hidden, -math.inf)
        heads = pe.mix(self.layer, logits.softmax(-1), value)
        return self.output(heads.transpose(1, 2).flatten(2))


class Latent(nn.Linear):
    """A linear map to a latent, which is divided by its root mean square if the job says so."""

    def __init__(self, entering: int, width: int, normed: bool) -> None:
        super().__init__(entering, width, bias=False)
        self.norm = nn.Parameter(torch.ones(width)) if normed else None

    def forward(self, x: Tensor) -> Tensor:
        x = super().forward(x)
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return x if self.norm is None else x * scale * self.norm


class LatentAttention(Attention):
    """mla: queries, keys and values come from latents (DeepSeek-AI 2024). Rotary channels, which
    have the positions, come from the latent of the queries and from the source of the keys."""

    def __init__(self, spec: Spec, layer: int) -> None:
        super().__init__(spec, layer)
        pe, width = spec["pe"], spec["model"]["d_model"]
        self.latent_query = Latent(width, pe["latent"], pe["latent_norm"])
        self.latent_kv = Latent(width, pe["latent"], pe["latent_norm"])
        rotary_heads = 1 if pe["rotary_query"] == "shared" else self.heads
        self.rotary_query = nn.Linear(pe["latent"], rotary_heads * pe["rotary"], bias=False)
        self.rotary_key = nn.Linear(width, pe["rotary"], bias=False)
        self.options = pe

    def project(self, y: Tensor, source: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        of_query, of_kv = self.latent_query(y), self.latent_kv(source)
        return (self.joined(self.query(of_query), self.rotary_query(of_query)),
                self.joined(self.key(of_kv), self.rotary_key(source)),
                by_head(self.value(of_kv), self.heads))

    def joined(self, content: Tensor, rotary: Tensor) -> Tensor:
        """Content channels (B, T, D) by head, then rotary ones (of each head or the same for all)
        with their positions."""
        width = self.options["rotary"]
        angles = angles_of(rotary.size(1), width, self.options["base"])
        cosine, sine = angles.cos(), angles.sin()
        if self.options["rotation"] == "sliced":
            row = torch.cat([sine, cosine], -1)  # the authors' code reads it as if they took turns
            sine, cosine = row[:, 0::2], row[:, 1::2]
        turned = rotate(by_head(rotary, rotary.size(-1) // width), cosine, sine)
        return torch.cat([by_head(content, self.heads), turned.expand(-1, self.heads, -1, -1)], -1)


class Layer(nn.Module):
    def __init__(self, spec: Spec, layer: int) -> None:
        super().__init__()
        model, width = spec["model"], spec["model"]["d_model"]
        kind = LatentAttention if spec["pe"]["name"] == "mla" else Attention
        self.attention = kind(spec, layer)
        self.activation = nn.ReLU() if model["activation"] == "relu" else nn.GELU()
        self.ffn = nn.ModuleDict({"norm": nn.LayerNorm(width, eps=model["layer_norm_eps"]),
                                  "in": nn.Linear(width, model["d_ff"]),
                                  "out": nn.Linear(model["d_ff"], width)})

    def forward(self, x: Tensor, x0: Tensor, hidden: Tensor, pe: Encoding) -> Tensor:
        x = x + self.attention(x, x0, hidden, pe)
        return x + self.ffn["out"](self.activation(self.ffn["in"](self.ffn["norm"](x))))


class Decoder(nn.Module):
    """The whole model, from token ids to the logits of the classes."""

    def __init__(self, spec: Spec, classes: int, pe: Encoding) -> None:
        super().__init__()
        self.spec, self.pe, model, width = spec, pe, spec["model"], spec["model"]["d_model"]
        self.embedding = nn.Embedding(spec["task"]["vocabulary"], width)
        self.layers = nn.ModuleList([Layer(spec, layer) for layer in range(model["layers"])])
        self.final_norm = (nn.LayerNorm(width, eps=model["layer_norm_eps"])
                           if model["final_norm"] else nn.Identity())
        self.head = nn.Linear(width, classes)

    def hidden(self, filled: Tensor) -> Tensor:
        """(B, 1, T, T): true where a query does not see a key."""
        padding = ~filled[:, None, None, :] & (self.spec["model"]["key_padding"] == "masked")
        later = distances(filled.size(1)).to(filled.device) > 0
        return padding | (later & (self.spec["model"]["mask"] == "causal"))

    def read_out(self, x: Tensor, filled: Tensor) -> Tensor:
        """(B, D), from the last layer's (B, T, D)."""
        readout = self.spec["model"].get("readout")
        if readout is None:
            return x  # a target for each position
        if readout == "mean":
            return x.mean(1)
        if readout == "last":
            return x[torch.arange(len(x), device=x.device), filled.sum(1) - 1]
        return (x * filled[:, :, None]).sum(1) / filled.sum(1)[:, None]

    def forward(self, tokens: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """The logits (B, C), or (B, T, C) if each position has a target. Without lengths, no
        position is padding."""
        most = tokens.new_full((len(tokens),), tokens.size(1)) if lengths is None else lengths
        filled = torch.arange(tokens.size(1), device=tokens.device) < most[:, None]
        hidden = self.hidden(filled)
        x = x0 = self.pe.embed(self.embedding(tokens))
        for layer in self.layers:
            x = layer(x, x0, hidden, self.pe)
        return self.head(self.read_out(self.final_norm(x), filled))


def read_safetensors(path: pathlib.Path) -> Tuple[Dict[str, Tensor], Dict[str, str]]:
    """The tensors by name, and the metadata. Eight bytes say how long the JSON header is."""
    content = path.read_bytes()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:start])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        values = torch.frombuffer(bytearray(content[begin:end]), dtype=DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors, metadata


def load(folder: Any = pathlib.Path(__file__).parent) -> Decoder:
    """The module of a folder that `pelab export-model` wrote, with its weights, on the CPU."""
    folder = pathlib.Path(folder)
    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    tensors, _ = read_safetensors(folder / "weights.safetensors")
    name = spec["pe"]["name"]
    if name not in ENCODINGS:
        raise ValueError(f"this model.py has no encoding {name}")
    model = Decoder(spec, len(tensors["head.bias"]), ENCODINGS[name](spec, folder))
    # The module pe has all parameters of the encoding; those of a layer are numbered.
    place = "pe.script." if model.pe.name == "own" else "pe."
    weights = {re.sub(r"^layers\.(\d+)\.pe\.(\w+)$", r"pe.\2.\1", re.sub(r"^pe\.", place, tensor)):
               values for tensor, values in tensors.items()}
    missing, unknown = model.load_state_dict(weights, strict=False)
    # The file lacks an own encoding's buffers, and has a parameter that is used twice only once.
    missing = [tensor for tensor in missing if not tensor.startswith("pe.script.")]
    if missing or unknown:
        raise ValueError(f"weights.safetensors lacks {missing} and has {unknown}; not of this spec")
    return model.eval()


def classes_of(data: Dict[str, Tensor], task: Dict[str, Any]) -> Tuple[Tensor, Tensor]:
    """The class of every target, and which targets are scored."""
    targets = data["targets"].long()
    smallest = 2 if task.get("definition") == "published" and task["name"] == "distance" else 0
    smallest = task.get("first_label", smallest)  # of own data
    classes = targets - smallest if task["label_space"] == "exact" else targets
    scored = targets >= 0 if targets.dim() == 2 else torch.ones_like(targets, dtype=torch.bool)
    if task["scored_classes"] == "nonzero":
        scored &= classes != 0
    return classes, scored


def score(model: Decoder, file: Any, batch: int = 256) -> Tuple[int, int, int]:
    """Of a data set's test targets: how many are right, how many are scored, and for how many of
    these the two largest logits differ by less than CLOSE."""
    data, metadata = read_safetensors(pathlib.Path(file))
    task = model.spec["task"]
    if json.loads(metadata.get("spec", "{}")).get("task") != task:
        raise ValueError(f"{file} is not this job's data set; pelab export-model --data writes it")
    classes, scored = classes_of(data, task)
    scored &= (data["split"] == 1).view(-1, *[1] * (classes.dim() - 1))
    correct = close = 0
    for rows in (data["split"] == 1).nonzero().flatten().split(batch):
        with torch.no_grad():
            logits = model(data["tokens"][rows].long(), data["lengths"][rows].long())
        here = scored[rows]
        largest = logits.topk(2).values
        correct += int((logits.argmax(-1) == classes[rows])[here].sum())
        close += int((largest[..., 0] - largest[..., 1] < CLOSE)[here].sum())
    return correct, int(scored.sum()), close


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python3 model.py data.safetensors")
    try:
        correct, total, close = score(load(), sys.argv[1])
    except (OSError, ValueError, KeyError, RuntimeError, struct.error) as error:
        sys.exit(f"model.py: {error}")
    print(f"{correct}/{total} = {correct / max(1, total):.6f}")
    print(f"{close} of {total} have two largest logits that differ by less than {CLOSE}")


if __name__ == "__main__":
    main()
