"""The decoder's logits in float64, layer by layer, so that heads can be replaced on the way."""
import numpy as np

from .encodings import Encoding
from .special import erf

RMS_EPSILON = 1e-6


class Batch:
    """Token ids (B, T) with their lengths. Keys and values that do not depend on the layer's input
    are kept in `memo`."""

    def __init__(self, tokens, lengths):
        self.tokens, self.lengths, self.memo = tokens, lengths, {}
        self.input = None
        self.filled = np.arange(tokens.shape[1])[None, :] < lengths[:, None]  # (B, T)


def by_query(x, tables):
    """x (B, H, T, n), whose row of each query is multiplied with the query's table: tables
    (T, n, m)."""
    rows = x.transpose(2, 0, 1, 3).reshape(len(tables), -1, x.shape[3]) @ tables
    return rows.reshape(len(tables), *x.shape[:2], -1).transpose(1, 2, 0, 3)


class Decoder:
    def __init__(self, spec, tensors):
        self.model, self.pe = spec["model"], spec["pe"]
        self.weights = {name: values.astype(np.float64) for name, values in tensors.items()}
        self.encoding = Encoding(spec, self.weights)
        self.layers, self.heads = self.model["layers"], self.model["heads"]
        self.head_size = self.model["d_model"] // self.heads

    def linear(self, x, name):
        """x W^T + b; the bias where there is one."""
        out = x @ self.weights[name + ".weight"].T
        if name + ".bias" in self.weights:
            out += self.weights[name + ".bias"]
        return out

    def layer_norm(self, x, name):
        centered = x - x.mean(-1, keepdims=True)
        squares = np.einsum("...c,...c->...", centered, centered)[..., None]
        centered /= np.sqrt(squares / x.shape[-1] + self.model["layer_norm_eps"])
        centered *= self.weights[name + ".weight"]
        centered += self.weights[name + ".bias"]
        return centered

    def begin(self, batch):
        """(B, T, D): what enters layer 0."""
        batch.input = (self.weights["embedding.weight"][batch.tokens]
                       + self.encoding.input_term(batch.tokens.shape[1]))
        return batch.input

    def by_head(self, x, width):
        """(B, T, n width) as (B, n, T, width)."""
        return x.reshape(*x.shape[:2], -1, width).transpose(0, 2, 1, 3)

    def latents(self, layer, x, batch):
        """Latent attention's two latents, (B, T, latent) each: of the queries, of keys and
        values."""
        name = f"layers.{layer}.attention."
        normed = self.layer_norm(x, name + "norm")
        source = normed if self.model["kv_source"] == "self" else batch.input
        both = [self.linear(normed, name + "latent_query"), self.linear(source, name + "latent_kv")]
        if self.pe["latent_norm"]:
            both = [latent / np.sqrt((latent ** 2).mean(-1, keepdims=True) + RMS_EPSILON)
                    * self.weights[name + part + ".norm"]
                    for latent, part in zip(both, ("latent_query", "latent_kv"))]
        return both

    def latent_projections(self, layer, x, batch, altered):
        """Queries and keys (content channels, then rotary ones) and values, before any rotation.
        `altered`, where given, is what enters the three up-projections in the place of the latents;
        the rotary parts read the latents themselves."""
        name = f"layers.{layer}.attention."
        own = self.latents(layer, x, batch)
        latent_query, latent_kv = own if altered is None else altered
        source = (self.layer_norm(x, name + "norm") if self.model["kv_source"] == "self"
                  else batch.input)
        query, key, value = (self.by_head(self.linear(latent, name + part), self.head_size)
                             for latent, part in
                             ((latent_query, "query"), (latent_kv, "key"), (latent_kv, "value")))
        # H or 1 of them
        rotary_query = self.by_head(self.linear(own[0], name + "rotary_query"), self.pe["rotary"])
        # one for all heads
        rotary_key = self.by_head(self.linear(source, name + "rotary_key"), self.pe["rotary"])
        shape = (*query.shape[:3], self.pe["rotary"])
        return (np.concatenate([query, np.broadcast_to(rotary_query, shape)], -1),
                np.concatenate([key, np.broadcast_to(rotary_key, shape)], -1), value)

    def turned_projections(self, layer, x, batch, altered):
        """Queries and keys with their positions, and values: (B, H, T, w), (B, H, T, w), (B, H, T,
        d)."""
        if self.pe["name"] == "mla":
            query, key, value = self.latent_projections(layer, x, batch, altered)
            return self.encoding.turn(query, 1), self.encoding.turn(key, -1), value
        name = f"layers.{layer}.attention."
        normed = self.layer_norm(x, name + "norm")
        query = self.encoding.turn(self.by_head(self.linear(normed, name + "query"),
                                                self.head_size), 1)
        if self.model["kv_source"] == "input" and layer in batch.memo:
            return (query, *batch.memo[layer])
        source = normed if self.model["kv_source"] == "self" else batch.input
        key, value = (self.by_head(self.linear(source, name + part), self.head_size)
                      for part in ("key", "value"))
        key = self.encoding.turn(key, -1)
        if self.model["kv_source"] == "input":
            batch.memo[layer] = key, value
        return query, key, value

    def visible(self, batch):
        """(B or 1, 1, T, T): whether query i sees key j."""
        length = batch.tokens.shape[1]
        seen = (np.tril(np.ones((length, length), bool)) if self.model["mask"] == "causal"
                else np.ones((length, length), bool))
        seen = seen[None, None]
        return (seen & batch.filled[:, None, None, :] if self.model["key_padding"] == "masked"
                else seen)

    def attend(self, layer, x, batch, altered=None):
        """(B, T, H, d): the heads' outputs, before the output projection."""
        length = x.shape[1]
        query, key, value = self.turned_projections(layer, x, batch, altered)
        query = query / np.sqrt(query.shape[-1])
        logits = query @ np.ascontiguousarray(key.transpose(0, 1, 3, 2))
        on_keys = self.encoding.added("key", layer, length)
        if on_keys is not None:
            logits += by_query(query, on_keys.transpose(0, 2, 1))
        logits += self.encoding.bias(layer, length)
        np.copyto(logits, -np.inf, where=~self.visible(batch))
        logits -= logits.max(-1, keepdims=True)
        shares = np.exp(logits, out=logits)
        shares /= shares.sum(-1, keepdims=True)
        heads = shares @ value
        on_values = self.encoding.added("value", layer, length)
        if on_values is not None:
            heads = heads + by_query(shares, on_values)
        return heads.transpose(0, 2, 1, 3)

    def finish(self, layer, x, heads):
        """(B, T, D): the layer's output, from its input and its heads' outputs."""
        name = f"layers.{layer}."
        middle = x + self.linear(heads.reshape(x.shape), name + "attention.output")
        inner = self.linear(self.layer_norm(middle, name + "ffn.norm"), name + "ffn.in")
        if self.model["activation"] == "relu":
            inner = np.maximum(inner, 0)
        else:
            inner = 0.5 * inner * (1 + erf(inner / np.sqrt(2)))
        return middle + self.linear(inner, name + "ffn.out")

    def read_out(self, x, batch):
        """(B, C)."""
        if self.model["final_norm"]:
            x = self.layer_norm(x, "final_norm")
        if self.model["readout"] == "last":
            pooled = x[np.arange(len(x)), batch.lengths - 1]
        elif self.model["readout"] == "masked_mean":
            pooled = (x * batch.filled[..., None]).sum(1) / batch.lengths[:, None]
        else:
            pooled = x.mean(1)
        return self.linear(pooled, "head")
