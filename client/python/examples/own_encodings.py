#!/usr/bin/env python3
"""Positional encodings as files for sweeps: one of one's own, then ALiBi, RoPE, T5's biases and
the sinusoid of the first transformer.

    python3 own_encodings.py [FOLDER]

writes decay.pt, alibi.pt, rope.pt, t5.pt and sinusoid.pt. Needs PyTorch. docs/own-encodings.md
explains how such a module is written.
"""
import pathlib
import sys
from typing import Dict  # TorchScript of PyTorch 1.13 needs it

import torch

import pelab


class Decay(torch.nn.Module):
    """What a query gets from a key is multiplied by exp(-e^rate strength distance / length). Each
    head of each layer learns its rate."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = torch.nn.Parameter(torch.zeros(1, 1))
        self.strength = 1.0

    def configure(self, sizes: Dict[str, int], options: Dict[str, float]) -> None:
        self.rate = torch.zeros(sizes["layers"], sizes["heads"])
        self.strength = options["strength"]

    def reset(self, seed: int) -> None:
        self.rate = 0.1 * torch.randn(self.rate.size(0), self.rate.size(1))

    def distance_factor(self, layer: int, length: int) -> torch.Tensor:
        distance = torch.arange(1 - length, length, device=self.rate.device).abs()
        return torch.exp(-torch.exp(self.rate[layer]).unsqueeze(1) * self.strength
                         * distance / length)


class Alibi(torch.nn.Module):
    """Press et al. 2022: head h of H loses 2^(-8 (h + 1) / H) a token of distance."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("slopes", torch.zeros(1))

    def configure(self, sizes: Dict[str, int], options: Dict[str, float]) -> None:
        heads = torch.arange(1, sizes["heads"] + 1)
        self.slopes = torch.exp2(-8.0 * heads / sizes["heads"])

    def distance_bias(self, layer: int, length: int) -> torch.Tensor:
        distance = torch.arange(1 - length, length, device=self.slopes.device).abs()
        return -self.slopes.unsqueeze(1) * distance


class Rope(torch.nn.Module):
    """Su et al. 2021: pair t of a head's channels rotates by base^(-2t / head size) a token."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.zeros(1))

    def configure(self, sizes: Dict[str, int], options: Dict[str, float]) -> None:
        size = sizes["head_size"]
        exponents = torch.arange(0, size, 2, dtype=torch.float64) / size
        self.frequencies = torch.pow(options["base"], -exponents)

    def angles(self, length: int) -> torch.Tensor:
        places = torch.arange(length, device=self.frequencies.device)
        return (places.unsqueeze(1) * self.frequencies).unsqueeze(1)


class T5(torch.nn.Module):
    """Raffel et al. 2020: each head learns a bias for each bucket of distances. Half of the buckets
    have one distance each, the others grow with it. Where later keys are seen, each side has half
    of all buckets."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(1, 1))
        self.register_buffer("bucket", torch.zeros(1, dtype=torch.long))
        self.max_len = 1

    def configure(self, sizes: Dict[str, int], options: Dict[str, float]) -> None:
        buckets = int(options["buckets"])
        self.bias = torch.zeros(buckets, sizes["heads"])
        self.max_len = sizes["max_len"]
        relative = torch.arange(1 - self.max_len, self.max_len)  # key's position - query's
        distance = (-relative).clamp(0)
        first = torch.zeros_like(relative)
        if sizes["causal"] == 0:
            buckets = buckets // 2
            distance = relative.abs()
            first = torch.where(relative > 0, first + buckets, first)
        exact = buckets // 2
        far = distance.clamp(exact).to(torch.float64)
        share = torch.log(far / exact) / torch.log(torch.tensor(options["longest"] / exact,
                                                                dtype=torch.float64))
        wide = exact + (share * (buckets - exact) + 1e-9).floor().to(torch.long)
        self.bucket = first + torch.where(distance < exact, distance, wide.clamp(0, buckets - 1))

    def distance_bias(self, layer: int, length: int) -> torch.Tensor:
        buckets = self.bucket[self.max_len - length:self.max_len + length - 1]
        return self.bias[buckets].transpose(0, 1)


class Sinusoid(torch.nn.Module):
    """Vaswani et al. 2017: sines and cosines of the position in turn, added to the embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(1, 1))

    def configure(self, sizes: Dict[str, int], options: Dict[str, float]) -> None:
        width = sizes["d_model"]
        exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
        angles = torch.arange(sizes["max_len"]).unsqueeze(1) * torch.pow(10000.0, -exponents)
        self.table = torch.stack([angles.sin(), angles.cos()], 2).flatten(1)

    def input_term(self, length: int) -> torch.Tensor:
        return self.table[:length]


def main() -> None:
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    pelab.save_encoding(
        Decay(), folder / "decay.pt", name="decay",
        options={"strength": pelab.real(1, 0, 100, "how fast the factor falls with the distance")},
        help="a learned factor of distance after the softmax")
    pelab.save_encoding(Alibi(), folder / "alibi.pt", name="alibi")
    pelab.save_encoding(Rope(), folder / "rope.pt", name="rope",
                        options={"base": pelab.real(10000, 1, 1e12)})
    pelab.save_encoding(T5(), folder / "t5.pt", name="t5",
                        options={"buckets": pelab.integer(32, 2, 1024),
                                 "longest": pelab.integer(128, 2, 65536)})
    pelab.save_encoding(Sinusoid(), folder / "sinusoid.pt", name="sinusoid")


if __name__ == "__main__":
    main()
