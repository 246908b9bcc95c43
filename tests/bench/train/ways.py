"""The peer's attention: explicit scores, scaled_dot_product_attention, or FlexAttention.

Each function takes the layer (for its dropout and Shaw's tables), query, key and value (B, H, T,
w), a bias (H, T, T) or None, and the masks. Each returns (B, H, T, d)."""

import math

import torch
from torch.nn import functional


class Masks:
    """The keys that a query does not see."""

    def __init__(self, causal, present, block_mask=None):
        # present: (B, T), or None if all positions are.
        self.causal, self.present, self.block_mask = causal, present, block_mask

    def hidden(self, length, device):
        """True where a key is not seen; broadcasts to (B, H, T, T). None if all keys are seen."""
        mask = torch.ones(length, length, dtype=torch.bool,
                          device=device).triu(1) if self.causal else None
        if self.present is not None:
            padding = ~self.present[:, None, None, :]
            mask = padding if mask is None else mask | padding
        return mask


def plain(layer, query, key, value, bias, masks):
    scale = 1 / math.sqrt(query.shape[-1])
    length = query.shape[2]
    scores = query @ key.transpose(-2, -1) * scale
    if layer.name == "shaw":
        rows = layer.rows[:length, :length]
        scores = scores + torch.einsum("bhid,ijd->bhij", query, layer.shaw_key(rows)) * scale
    if bias is not None:
        scores = scores + bias
    mask = masks.hidden(length, query.device)
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)
    weights = layer.weight_dropout(functional.softmax(scores, -1))
    heads = weights @ value
    if layer.name == "shaw" and layer.shaw_value is not None:
        heads = heads + torch.einsum("bhij,ijd->bhid", weights,
                                     layer.shaw_value(layer.rows[:length, :length]))
    return heads


def sdpa(layer, query, key, value, bias, masks):
    if layer.name == "shaw":  # its term depends on the query and on the pair
        return plain(layer, query, key, value, bias, masks)
    # Under autocast a rotation yields float32.
    query, key = query.to(value.dtype), key.to(value.dtype)
    dropout = layer.weight_dropout.p if layer.training else 0.0
    if bias is None and masks.present is None:
        return functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout,
                                                       is_causal=masks.causal)
    mask = masks.hidden(query.shape[2], query.device)
    if bias is None:
        term = ~mask
    else:
        term = bias[None] if mask is None else bias.masked_fill(mask, -math.inf)
        term = term.to(query.dtype)
        term = term.reshape((-1,) + tuple(term.shape[-3:]))
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=term,
                                                   dropout_p=dropout)


def flex(layer, query, key, value, bias, masks):
    from torch.nn.attention.flex_attention import flex_attention

    query, key = query.to(value.dtype), key.to(value.dtype)
    modify = None
    if layer.name == "alibi":
        slopes = -layer.bias[:, 0, 1]

        def modify(score, _, head, i, j):
            return score - slopes[head] * (i - j).abs()
    elif bias is not None:
        def modify(score, _, head, i, j):
            return score + bias[head, i, j]
    elif layer.name == "shaw":
        most = layer.pe["max_distance"]
        pairs = (torch.einsum("bhid,rd->bhir", query,
                              layer.shaw_key.weight) / math.sqrt(query.shape[-1]))

        def modify(score, example, head, i, j):
            return score + pairs[example, head, i, (j - i).clamp(-most, most) + most]
    return flex_attention(query, key, value, score_mod=modify, block_mask=masks.block_mask)


def block_mask(model, tokens, lengths):
    """FlexAttention's mask of a batch; None if every key is seen.

    Call it outside the compiled code.
    """
    from torch.nn.attention.flex_attention import create_block_mask

    causal, length = model["mask"] == "causal", tokens.shape[1]
    if lengths is None or model["key_padding"] != "masked":
        if not causal:
            return None
        return create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length,
                                 device=tokens.device)

    def seen(example, _, i, j):
        present = j < lengths[example]
        return present & (i >= j) if causal else present
    return create_block_mask(seen, len(tokens), None, length, length, device=tokens.device)


def refusal(how, model, pe):
    """Why this model's attention cannot be computed in this way; None if it can."""
    if how != "flex":
        return None
    if "attention" in model["dropout_sites"] and model["dropout"] > 0:
        return "FlexAttention has no dropout of attention weights: --no-attention-dropout"
    if pe["name"] == "shaw" and pe["values"]:
        return "FlexAttention adds nothing to the values, as Shaw's encoding does here"
    return None
