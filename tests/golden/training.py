#!/usr/bin/env python3
"""AdamW steps and learning-rate schedules on small inputs (Python's standard library only).

    training.py --check training.json    recompute and compare; exit 1 where something differs
    training.py --write training.json    recompute and write

AdamW is written from Loshchilov & Hutter 2019, algorithm 2, with bias-corrected moments (Kingma &
Ba 2015, algorithm 1); the schedule from its definition: linear from 0 over the first int(f * S) of
S steps, then a half cosine to 0, or constant.
"""
import math
import sys

import golden


def gradient(step, i):
    """Some gradient that changes sign and size."""
    return math.sin(1.7 * step + 0.9 * i) * (1 + 0.5 * i) - 0.1


def adamw(beta1, beta2, epsilon, decay, rates):
    values = [0.5, -1.25, 2.0, 0.0]
    first, second = [0.0] * 4, [0.0] * 4
    history = []
    for step, rate in enumerate(rates):
        for i in range(4):
            g = gradient(step, i)
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g * g
            unbiased_first = first[i] / (1 - beta1 ** (step + 1))
            unbiased_second = second[i] / (1 - beta2 ** (step + 1))
            values[i] -= (rate * decay * values[i]
                          + rate * unbiased_first / (math.sqrt(unbiased_second) + epsilon))
        history.append(list(values))
    return history


def adamw_cases():
    rates = [0.0, 1e-3, 2e-3, 0.1, 1e-4, 1e-4]
    for beta1, beta2, epsilon, decay in ((0.98, 0.9, 1e-8, 1e-5), (0.9, 0.98, 1e-8, 0.0),
                                         (0.9, 0.999, 1e-3, 0.1), (0.0, 0.0, 1e-8, 0.5)):
        yield {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "weight_decay": decay,
               "rates": rates, "start": [0.5, -1.25, 2.0, 0.0],
               "gradients": [[gradient(step, i) for i in range(4)] for step in range(len(rates))],
               "values": adamw(beta1, beta2, epsilon, decay, rates)}


def rate(schedule, lr, fraction, steps, step):
    warmup = int(fraction * steps)
    if step < warmup:
        return lr * (step / warmup)
    if schedule == "constant":
        return lr
    return lr * 0.5 * (1 + math.cos(math.pi * ((step - warmup) / max(1, steps - warmup))))


def schedule_cases():
    for schedule, lr, fraction, steps in (("cosine", 1e-4, 0.06, 50), ("cosine", 3e-4, 0.0, 7),
                                          ("constant", 1e-3, 0.5, 9), ("cosine", 1.0, 1.0, 5),
                                          ("constant", 2.0, 0.0, 3), ("cosine", 1e-4, 0.06, 13700)):
        at = sorted({*range(min(steps, 60)), steps // 2, steps - 1, int(fraction * steps) - 1,
                     int(fraction * steps)})
        at = [step for step in at if 0 <= step < steps]
        yield {"schedule": schedule, "lr": lr, "warmup_fraction": fraction, "steps": steps,
               "at": at, "rates": [rate(schedule, lr, fraction, steps, step) for step in at]}


def compute():
    return {"adamw": list(adamw_cases()), "schedule": list(schedule_cases())}


if __name__ == "__main__":
    sys.exit(golden.main(compute, __doc__))
