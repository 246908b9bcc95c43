"""Reads pelab-trainer's events and says how long the epochs took and what a whole job would
take."""
import json
import sys

WHOLE_JOB_EPOCHS = 100  # of the distance task under `clean`


def main():
    epochs, ablation, done = [], None, False
    for line in sys.stdin:
        event = json.loads(line)
        kind = event["event"]
        if kind == "hello":
            print(f"trainer {event['trainer']}, LibTorch {event['libtorch']}, "
                  f"{event['device_name']}, {event['parameters']:,} parameters, "
                  f"{event['train_examples']:,} + {event['test_examples']:,} examples")
        elif kind == "epoch":
            epochs.append(event["seconds"])
            print(f"epoch {event['epoch']}: {event['seconds']:.2f} s, training loss "
                  f"{event['train_loss']:.4f}, test accuracy "
                  f"{event['test_correct'] / event['test_total']:.4f}", flush=True)
        elif kind == "head_ablation":
            ablation = event["seconds"]
            print(f"head ablation of {event['total']:,} examples: {ablation:.2f} s")
        elif kind == "error":
            print(f"error ({event['kind']}): {event['message']}", file=sys.stderr)
        done = done or kind == "done"
    if not done or not epochs:
        return 1
    later = epochs[1:] or epochs  # the first one also warms up
    whole = WHOLE_JOB_EPOCHS * sum(later) / len(later) + (ablation or 0)
    print(f"a whole job of {WHOLE_JOB_EPOCHS} epochs with its ablation: about {whole:.0f} s "
          f"(extrapolated from {len(later)} epochs)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
