"""Time, memory and ceilings of the peer's device: a CPU, or a GPU timed by its own events."""

import math
import resource
import time

import torch

CEILING_SECONDS = 0.5  # per product; in a shorter time a GPU's clock does not settle
COPIED_BYTES = 1 << 30


def settle(device, tf32):
    """Sets the type of float32 products explicitly, since the default depends on PyTorch's
    version."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32


def time_each(device, run, warm_up, count):
    """Seconds of run(warm_up) … run(warm_up + count - 1), each; run(0) … before them warm up."""
    for step in range(warm_up):
        run(step)
    if device.type != "cuda":
        seconds = []
        for step in range(warm_up, warm_up + count):
            began = time.perf_counter()
            run(step)
            seconds.append(time.perf_counter() - began)
        return seconds
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    events[0].record()
    for step in range(count):
        run(warm_up + step)
        events[step + 1].record()
    torch.cuda.synchronize(device)
    return [begin.elapsed_time(end) / 1000 for begin, end in zip(events, events[1:])]


def peak_bytes(device):
    """Peak memory: of tensors since the steps began (GPU), or of the whole process (CPU)."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def name(device):
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def best_seconds(device, run):
    """Seconds of the quickest of several consecutive runs."""
    if device.type != "cuda":
        return min(time_each(device, lambda _: run(), 0, 8))
    took = max(time_each(device, lambda _: run(), 3, 3))
    return min(time_each(device, lambda _: run(), 0, max(8, math.ceil(CEILING_SECONDS / took))))


def matmul_ceiling(device, rows, inner, columns, dtype=torch.float32):
    """FLOP/s of the fastest of several products of these sizes."""
    a = torch.randn(rows, inner, device=device, dtype=dtype)
    b = torch.randn(inner, columns, device=device, dtype=dtype)
    return 2 * rows * inner * columns / best_seconds(device, lambda: a @ b)


def ceilings(device):
    """The rates that the device reaches.

    FLOP/s of large square products by type, and bytes/s read and written by a copy.
    """
    size = 8192 if device.type == "cuda" else 512
    source = torch.empty(COPIED_BYTES if device.type == "cuda" else 1 << 24, dtype=torch.uint8,
                         device=device).random_()
    target = torch.empty_like(source)
    found = {"copy_bytes_per_s": 2 * source.numel() / best_seconds(device,
                                                                   lambda: target.copy_(source))}
    ways = {"float32": (torch.float32, False), "tf32": (torch.float32, True),
            "bf16": (torch.bfloat16, False)}
    for way, (dtype, tf32) in ways.items():
        settle(device, tf32)
        found[f"{way}_flops"] = matmul_ceiling(device, size, size, size, dtype)
    return {**found, "device": name(device), "torch": torch.__version__}
