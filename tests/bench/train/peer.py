#!/usr/bin/env python3
"""The other side of the training bench: the same decoder as people write it in PyTorch.

    peer.py FOLDER --steps 3 --threads 2         some steps; eager, float32, on the CPU
    peer.py FOLDER --evaluate 128 --ablate 16    also evaluates test examples and ablates each head
    peer.py FOLDER --job --threads 1             the whole job: every epoch and its evaluation
    peer.py FOLDER --device cuda:0 --how compile --precision bf16 --steps 20 --warm-up 5
    peer.py --ceilings --device cuda:0           the rates that the device reaches

FOLDER holds the output of `train_bench --dump`: starting weights with their spec, examples, and the
logits of the first batch without dropout. Writes one line of JSON.

With --steps it first computes those logits, and exits 1 if they differ by more than the precision
explains. The JSON holds the seconds of each step after the warm-up (with dropout and AdamW), the
number of trained parameters, the largest difference of the logits, the peak memory, and the FLOP/s
that its matrix products reach.

With --evaluate and --ablate it also measures, before the steps, the seconds of evaluating so many
test examples, and of ablating each head over so many: a whole pass with the head's output zeroed
before the output projection. It writes the same results as train_bench: the number of scored
examples, and the losses and numbers of correct examples, of the intact model and then without each
head, layer by layer. These passes are always eager. With --job it writes the test accuracy of each
epoch.

--how eager calls one operation after the other; compile is torch.compile(mode="max-autotune") of
model and loss; flex is the same with FlexAttention, which has no dropout of attention weights.
Eager float32 computes the scores explicitly. All other ways use scaled_dot_product_attention if the
encoding allows it (--attention overrides this). bf16 is autocast. On a GPU AdamW is fused, and
float32 products use TF32 only with --tf32. Needs PyTorch and numpy."""

import argparse
import contextlib
import json
import math
import pathlib
import sys

import torch
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "golden"))
import device as devices  # noqa: E402
import ways  # noqa: E402
from model import Decoder  # noqa: E402
from recount.stored import read_safetensors  # noqa: E402

EVALUATED = 256  # examples per batch
MOST_DIFFERENCE = {"float32": 1e-3, "tf32": 2e-2, "bf16": 1e-1}  # of logits from ours


def renamed(name):
    """Converts a name of the weights file to a name in the modules above."""
    name = name.replace(".attention.latent_kv.norm", ".attention.kv_norm.weight")
    name = name.replace(".attention.latent_query.norm", ".attention.query_norm.weight")
    name = name.replace(".ffn.in.", ".ffn.inner.").replace(".ffn.out.", ".ffn.outer.")
    name = {"pe.table": "table", "pe.bias": "bias.weight"}.get(name, name)
    parts = name.split(".")
    if parts[0] != "layers":
        return name
    layer, part, rest = parts[1], parts[2], ".".join(parts[3:])
    if part == "pe":
        ours = {"bias": "table", "key": "shaw_key", "value": "shaw_value"}
        return f"attention.{layer}.{ours[rest]}.weight"
    return f"{part}.{layer}.{rest}"


def load(folder, options):
    weights, metadata = read_safetensors(folder / "weights.safetensors")
    data, about = read_safetensors(folder / "data.safetensors")
    spec = json.loads(metadata["spec"])
    if options.no_attention_dropout:
        spec["model"]["dropout_sites"] = [site for site in spec["model"]["dropout_sites"]
                                          if site != "attention"]
    refusal = ways.refusal(options.how, spec["model"], spec["pe"])
    if refusal:
        sys.exit(refusal)
    tensors = {renamed(name): torch.from_numpy(array.copy()) for name, array in weights.items()}
    model = Decoder(spec, tensors["embedding.weight"].shape[0], tensors["head.weight"].shape[0],
                    attend_of(options))
    model.load_state_dict(tensors)
    data = {name: torch.from_numpy(array.copy()) for name, array in data.items()}
    return Job(model, spec, data, int(about["ignored_class"]), int(about["train_examples"]),
               options)


def attend_of(options):
    if options.how == "flex":
        return ways.flex
    wanted = (options.attention
              or ("plain" if options.how == "eager" and options.precision == "float32" else "sdpa"))
    return {"plain": ways.plain, "sdpa": ways.sdpa}[wanted]


class Job:
    def __init__(self, model, spec, data, ignored, train_examples, options):
        self.device = torch.device(options.device)
        devices.settle(self.device, options.tf32)
        self.model, self.spec, self.ignored, self.train_examples = (model.to(self.device), spec,
                                                                    ignored, train_examples)
        data = {name: tensor.to(self.device) for name, tensor in data.items()}
        self.tokens, self.classes, self.lengths = (data["tokens"].long(), data["classes"].long(),
                                                   data.get("lengths"))
        self.first_logits = data["logits"]
        self.options, self.mask = options, None
        self.compiled_loss = self.loss
        if options.how != "eager":
            self.compiled_loss = torch.compile(self.loss, mode="max-autotune", dynamic=False)
        train = spec["train"]
        self.optimizer = torch.optim.AdamW(
            [p for p in model.parameters() if p.requires_grad], lr=train["lr"],
            betas=(train["beta1"], train["beta2"]),
            eps=train["epsilon"], weight_decay=train["weight_decay"],
            **({"fused": True} if self.device.type == "cuda" else {}))

    def autocast(self):
        if self.options.precision == "bf16":
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def block_mask(self, tokens, lengths):
        if self.options.how != "flex":
            return None
        if self.mask is None or lengths is not None:
            self.mask = ways.block_mask(self.spec["model"], tokens, lengths)
        return self.mask

    def batch(self, chosen):
        tokens, lengths = (self.tokens[chosen],
                           None if self.lengths is None else self.lengths[chosen])
        return tokens, lengths, self.block_mask(tokens, lengths)

    def logits(self, chosen):
        with self.autocast():
            return self.model(*self.batch(chosen))

    def difference(self):
        self.model.eval()
        with torch.no_grad():
            return (self.logits(slice(0, len(self.first_logits)))
                    - self.first_logits).abs().max().item()

    def loss(self, tokens, lengths, mask, classes):
        with self.autocast():
            return functional.cross_entropy(self.model(tokens, lengths, mask), classes,
                                            ignore_index=self.ignored)

    def step(self, chosen):
        self.optimizer.zero_grad()
        if self.options.how != "eager":
            torch.compiler.cudagraph_mark_step_begin()
        loss = self.compiled_loss(*self.batch(chosen), self.classes[chosen])
        loss.backward()
        self.optimizer.step()
        # On a GPU the losses are read once per epoch: reading each one would stall it. A CPU does
        # not wait.
        return loss.detach() if self.device.type == "cuda" else loss.item()

    def time_steps(self, steps, warm_up):
        batch = self.spec["train"]["batch_size"]
        whole = max(1, self.train_examples // batch)
        self.model.train()

        def run(step):
            begin = step % whole * batch
            self.step(slice(begin, begin + batch))
        return devices.time_each(self.device, run, warm_up, steps)

    def score(self, begin, end):
        """(scored examples, mean loss, correct predictions) of examples [begin, end)."""
        self.model.eval()
        right = total = loss = 0
        with torch.no_grad():
            for at in range(begin, end, EVALUATED):
                chosen = slice(at, min(end, at + EVALUATED))
                classes, logits = self.classes[chosen], self.logits(chosen)
                scored = classes != self.ignored
                losses = functional.cross_entropy(logits.float(), classes,
                                                  ignore_index=self.ignored, reduction="sum")
                loss += losses.item()
                right += ((logits.argmax(1) == classes) & scored).sum().item()
                total += scored.sum().item()
        return total, loss / max(1, total), right

    def evaluate(self):
        total, _, right = self.score(self.train_examples, len(self.tokens))
        return right / total

    def score_test(self, examples):
        """score() of the first test examples."""
        return self.score(self.train_examples, self.train_examples + examples)

    def ablate(self, examples):
        """The scores of the intact model, then without each head in turn, layer by layer.

    A head is ablated by zeroing its output before the output projection.
    """
        scores = [self.score_test(examples)]
        for attention in self.model.attention:
            for head in range(attention.heads):
                hook = attention.output.register_forward_pre_hook(without_head(head,
                                                                               attention.width))
                scores.append(self.score_test(examples))
                hook.remove()
        return scores

    def time_once(self, run, examples):
        """([seconds], result) after a warm-up: on a few of the examples on a CPU, on all on a
        GPU."""
        run(examples if self.device.type == "cuda" else max(1, examples // 16))
        found = []
        return devices.time_each(self.device, lambda _: found.append(run(examples)), 0, 1), found[0]

    def train(self):
        """The test accuracy after each epoch."""
        train = self.spec["train"]
        batch, epochs = train["batch_size"], train["epochs"]
        steps = epochs * math.ceil(self.train_examples / batch)
        warmup = int(train["warmup_fraction"] * steps)

        def rate(step):
            if step < warmup:
                return step / warmup
            return (1 if train["schedule"] != "cosine"
                    else 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))))
        schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate)
        accuracies = []
        for _ in range(epochs):
            self.model.train()
            for chosen in torch.randperm(self.train_examples).to(self.device).split(batch):
                self.step(chosen)
                schedule.step()
            accuracies.append(self.evaluate())
        return accuracies


def without_head(head, width):
    """A hook that zeroes one head in the input of the output projection."""
    def zero(_, inputs):
        heads = inputs[0].clone()
        heads[..., head * width:(head + 1) * width] = 0
        return heads
    return zero


def gathered(scores):
    return {"scored": scores[0][0], "loss": [loss for _, loss, _ in scores],
            "correct": [right for _, _, right in scores]}


def time_passes(job, options):
    """The results of --evaluate and --ablate, with the starting weights."""
    found = {}
    if options.evaluate:
        found["evaluation_seconds"], score = job.time_once(job.score_test, options.evaluate)
        found["evaluation"] = gathered([score])
    if options.ablate:
        found["ablation_seconds"], scores = job.time_once(job.ablate, options.ablate)
        found["ablation"] = gathered(scores)
    return found


def measure(job, options):
    """The results of --steps; None if the logits show that this is not the same model."""
    differs = job.difference()
    if not differs <= MOST_DIFFERENCE["tf32" if options.tf32 else options.precision]:
        print(f"the logits differ by {differs:.2g}: this is not the same model", file=sys.stderr)
        return None
    length, sizes = job.tokens.shape[1], job.spec["model"]
    most = len(job.tokens) - job.train_examples
    if max(options.evaluate, options.ablate) > most:
        print(
            f"there are only {most} test examples: --dump must be given --evaluate and --ablate "
            "too",
            file=sys.stderr)
        return None
    passes = time_passes(job, options)  # before the steps, which change the weights
    return {**passes,
            "parameters": sum(p.numel() for p in job.model.parameters() if p.requires_grad),
            "difference": differs, "spec": job.spec, "length": length, "torch": torch.__version__,
            "device": devices.name(job.device), "how": options.how, "precision": options.precision,
            "tf32": options.tf32, "attention": attend_of(options).__name__,
            "attention_dropout": "attention" in job.spec["model"]["dropout_sites"],
            "seconds": job.time_steps(options.steps, options.warm_up),
            "peak_bytes": devices.peak_bytes(job.device),
            "matmul_flops": devices.matmul_ceiling(job.device,
                                                   length * job.spec["train"]["batch_size"],
                                                   sizes["d_model"], sizes["d_ff"])}


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=1,
                        help="steps before those that are timed [default: 1]")
    parser.add_argument("--evaluate", type=int, default=0, help="so many test examples")
    parser.add_argument("--ablate", type=int, default=0,
                        help="each head, over so many test examples")
    parser.add_argument("--job", action="store_true")
    parser.add_argument("--ceilings", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N [default: cpu]")
    parser.add_argument("--how", choices=("eager", "compile", "flex"), default="eager")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32")
    parser.add_argument("--attention", choices=("plain", "sdpa"),
                        help="[default: plain for eager float32, else sdpa]")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--no-attention-dropout", action="store_true")
    options = parser.parse_args()
    if options.folder is None and not options.ceilings:
        parser.error("FOLDER is missing")
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} sees no CUDA device")
    return options


def main():
    options = parse()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.ceilings:
        answer = devices.ceilings(torch.device(options.device))
    elif options.job:
        answer = {"test_accuracy": load(options.folder, options).train()}
    else:
        answer = measure(load(options.folder, options), options)
    if answer is None:
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
