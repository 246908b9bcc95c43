"""Order of examples, dropout, the decoder without an encoding, its loss and its training."""
import functools
import math

import numpy as np

from repeated.data_sets import Data
from repeated.initial_values import initial_values
from repeated.random_numbers import Walk


def batches(spec, data, epoch):
    """Indices of an epoch's batches."""
    size, model = spec["train"]["batch_size"], spec["model"]
    order = Walk(spec["seed"], "train/order", epoch).shuffle(list(range(data.train)))
    made = [order[at:at + size] for at in range(0, data.train, size)]
    if data.padded and model["key_padding"] == "masked" and model["readout"] != "mean":
        made = [sorted(batch, key=lambda i: data.lengths[i]) for batch in made]
    return made


@functools.lru_cache(64)
def mask(seed, step, index, shape, p):
    """One mask of a step, which finite differences ask for at every parameter."""
    key = Walk(seed, "dropout", step).bits_at(index)
    k0, k1 = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
    v = np.arange(int(np.prod(shape)), dtype=np.uint32) ^ k0
    for shift, factor in ((16, 0x7FEB352D), (15, None), (None, 0x846CA68B), (16, 0x9E3779B1),
                          (15, None)):
        if shift is not None:
            v ^= v >> np.uint32(shift)
        if factor == 0x846CA68B:
            v += k1
        if factor is not None:
            v *= np.uint32(factor)
    kept = np.float64(np.float32(1 / (1 - p)))
    return np.where(v < np.uint32(math.floor(p * 2 ** 32)), 0.0, kept).reshape(shape)


class Masks:
    """A step's masks; all ones where the model has no dropout at a site, or in evaluation (step
    None)."""
    SITES = ("attention", "output", "ffn_inner", "ffn")

    def __init__(self, spec, step):
        self.model, self.step, self.seed = spec["model"], step, spec["seed"]

    def at(self, layer, site, shape):
        p = self.model["dropout"]
        if self.step is None or p == 0 or site not in self.model["dropout_sites"]:
            return 1.0
        return mask(self.seed, self.step, 4 * layer + self.SITES.index(site), shape, p)


def normed(x, weights, name, eps):
    centered = x - x.mean(-1, keepdims=True)
    return (centered / np.sqrt((centered ** 2).mean(-1, keepdims=True) + eps)
            * weights[f"{name}.weight"] + weights[f"{name}.bias"])


def logits_of(spec, w, data, indices, step, heads_of=None, taken=None):
    """(B, classes) in float64; nope alone. `heads_of` collects each layer's heads (B, T, H, d);
    taken = (layer, head, values) puts others in the place of one's."""
    model, masks = spec["model"], Masks(spec, step)
    tokens, lengths = data.tokens[indices], data.lengths[indices]
    count, length = tokens.shape
    heads, d = model["heads"], model["d_model"]
    width, eps = d // heads, model["layer_norm_eps"]
    place = np.arange(length)
    x = first = w["embedding.weight"][tokens]
    for layer in range(model["layers"]):
        name = f"layers.{layer}."
        last_only = model["readout"] == "last" and not data.padded and layer == model["layers"] - 1

        def project(part, rows):
            out = rows @ w[f"{name}attention.{part}.weight"].T
            if model["attention_bias"]:
                out = out + w[f"{name}attention.{part}.bias"]
            return out.reshape(count, -1, heads, width)

        y = normed(x, w, name + "attention.norm", eps)
        source = y if model["kv_source"] == "self" else first
        q, k, v = (project("query", y[:, -1:] if last_only else y), project("key", source),
                   project("value", source))
        scores = np.einsum("bihc,bjhc->bhij", q, k) / math.sqrt(width)
        rows = place[-1:] if last_only else place
        unseen = np.zeros((count, 1, len(rows), length), bool)
        if model["mask"] == "causal":
            unseen = unseen | (place[None, :] > rows[:, None])
        if model["key_padding"] == "masked":
            unseen = unseen | (place >= lengths[:, None])[:, None, None, :]
        scores = np.where(unseen, -np.inf, scores)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares = shares / shares.sum(-1, keepdims=True)
        shares = shares * masks.at(layer, "attention", shares.shape)
        o = np.einsum("bhij,bjhc->bihc", shares, v)
        if heads_of is not None:
            heads_of.append(o)
        if taken is not None and taken[0] == layer:
            o = o.copy()
            o[:, :, taken[1]] = taken[2]
        out = o.reshape(count, -1, d) @ w[name + "attention.output.weight"].T
        if model["attention_bias"]:
            out = out + w[name + "attention.output.bias"]
        x = (x[:, -1:] if last_only else x) + out * masks.at(layer, "output", out.shape)
        z = (normed(x, w, name + "ffn.norm", eps) @ w[name + "ffn.in.weight"].T
             + w[name + "ffn.in.bias"])
        inner = np.maximum(z, 0)
        inner = inner * masks.at(layer, "ffn_inner", inner.shape)
        out = inner @ w[name + "ffn.out.weight"].T + w[name + "ffn.out.bias"]
        x = x + out * masks.at(layer, "ffn", out.shape)
    if model["final_norm"]:
        x = normed(x, w, "final_norm", eps)
    if model["readout"] == "last":
        pooled = x[np.arange(count),
                   (lengths if data.padded else np.ones_like(lengths) * x.shape[1]) - 1]
    elif model["readout"] == "mean":
        pooled = x.mean(1)
    else:
        pooled = (x * (place < lengths[:, None])[:, :, None]).sum(1) / lengths[:, None]
    return pooled @ w["head.weight"].T + w["head.bias"]


def label_classes(task):
    """(the smallest label, the number of labels)."""
    if task["name"] == "counting":
        return 0, task["max_count"] + 1
    return (0, task["max_distance"]) if task["definition"] == "clean" else (2, task["max_gap"])


class Repeat:
    def __init__(self, spec):
        self.spec, self.data = spec, Data(spec["task"])
        smallest, count = label_classes(spec["task"])
        exact = spec["task"]["label_space"] == "exact"
        self.classes = count if exact else spec["task"]["vocabulary"]
        self.targets = self.data.labels - (smallest if exact else 0)
        self.weights = initial_values(spec, self.classes)
        self.wide = {name: value.astype(np.float64) for name, value in self.weights.items()}

    def scored(self, indices):
        return (self.targets[indices] != 0) | (self.spec["task"]["scored_classes"] == "all")

    def judged(self, logits, indices):
        """(losses, right) of the scored examples."""
        top = logits.max(-1, keepdims=True)
        nll = (top[:, 0] + np.log(np.exp(logits - top).sum(-1))
               - logits[np.arange(len(logits)), self.targets[indices]])
        scored = self.scored(indices)
        return nll[scored], (logits.argmax(-1) == self.targets[indices])[scored]

    def epoch(self, epoch):
        """train_loss, train_correct, train_total of an epoch in which no weight moves."""
        made = batches(self.spec, self.data, epoch)
        losses, correct, total = [], 0, 0
        for b, indices in enumerate(made):
            nll, right = self.judged(logits_of(self.spec, self.wide, self.data, indices,
                                               epoch * len(made) + b), indices)
            losses.append(nll.mean() if len(nll) else 0.0)
            correct, total = correct + int(right.sum()), total + len(right)
        return sum(losses) / len(losses), correct, total

    def test(self):
        indices = list(range(self.data.train, len(self.data.labels)))
        nll, right = self.judged(logits_of(self.spec, self.wide, self.data, indices, None), indices)
        return nll.mean(), int(right.sum()), len(right)

    def trained(self):
        """The weights after training, on gradients by central differences."""
        train, w = self.spec["train"], {name: value.copy() for name, value in self.wide.items()}
        m, v = ({name: np.zeros_like(value) for name, value in w.items()} for _ in range(2))
        steps = math.ceil(self.data.train / train["batch_size"])
        total, t = steps * train["epochs"], 0
        warmup = int(train["warmup_fraction"] * total)
        for epoch in range(train["epochs"]):
            for indices in batches(self.spec, self.data, epoch):
                def loss():
                    return self.judged(logits_of(self.spec, w, self.data, indices, t),
                                       indices)[0].mean()

                gradient = {name: differences(loss, value) for name, value in w.items()}
                rate = train["lr"] * t / warmup if t < warmup else \
                    train["lr"] / 2 * (1
                                       + math.cos(math.pi * (t - warmup) / max(1, total - warmup)))
                for name, g in gradient.items():
                    w[name] *= 1 - rate * train["weight_decay"]
                    m[name] = train["beta1"] * m[name] + (1 - train["beta1"]) * g
                    v[name] = train["beta2"] * v[name] + (1 - train["beta2"]) * g * g
                    root = (np.sqrt(v[name]) / math.sqrt(1 - train["beta2"] ** (t + 1))
                            + train["epsilon"])
                    w[name] -= rate / (1 - train["beta1"] ** (t + 1)) * m[name] / root
                t += 1
        return w

    def resampled(self):
        """{(layer, head): (correct, mean loss)} on the test set with a head's output from the
        donor's."""
        first, n = self.data.train, len(self.data.labels) - self.data.train
        indices = list(range(first, first + n))
        donors = []
        for i in indices:
            donor = first + Walk(self.data.seed, "ablation/donor", i).below(n - 1)
            donors.append(donor + (donor >= i))
        theirs = []
        logits_of(self.spec, self.wide, self.data, donors, None, heads_of=theirs)
        found = {}
        for layer in range(self.spec["model"]["layers"]):
            for head in range(self.spec["model"]["heads"]):
                nll, right = self.judged(logits_of(self.spec, self.wide, self.data, indices, None,
                                                   taken=(layer, head, theirs[layer][:, :, head])),
                                         indices)
                found[layer, head] = int(right.sum()), nll.mean()
        return found


def differences(loss, value, step=1e-5):
    gradient = np.zeros_like(value)
    for at in np.ndindex(value.shape):
        kept = value[at]
        value[at] = kept + step
        up = loss()
        value[at] = kept - step
        gradient[at] = (up - loss()) / (2 * step)
        value[at] = kept
    return gradient
