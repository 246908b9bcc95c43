"""Every condition of a head ablation, example by example.

An entry (layer, h) is replaced by zeros, by its mean over training examples or by its value in
another example, before the output projection. With latent attention and the authors' target an
entry is a slice of the latents instead: columns h d to (h+1) d - 1 of what enters the
up-projections of all heads. Under the authors' hygiene the last entry of every earlier layer stays
replaced.
"""
import dataclasses

import numpy as np

from data import Random

from .decoder import Batch


@dataclasses.dataclass
class Scores:
    """One condition: an array each, over the scored examples."""
    right: np.ndarray
    nll: np.ndarray
    margin: np.ndarray  # the largest logit less the second largest

    def at(self, indices):
        return Scores(self.right[indices], self.nll[indices], self.margin[indices])

    def put(self, indices, scores):
        self.right[indices], self.nll[indices], self.margin[indices] = (scores.right, scores.nll,
                                                                        scores.margin)


@dataclasses.dataclass
class Data:
    """A job's data set; `classes` of each example, and which examples are scored."""
    tokens: np.ndarray
    lengths: np.ndarray
    classes: np.ndarray
    train_examples: int
    scored: np.ndarray
    triggers: tuple

    def batch(self, indices):
        return Batch(self.tokens[indices], self.lengths[indices])


class Intact:
    """A job's model with nothing replaced. It scores each example once, however many sets and
    ablations ask for it."""

    def __init__(self, decoder, data, chunk):
        self.decoder, self.data, self.chunk = decoder, data, chunk
        count = len(data.classes)
        self.known = np.zeros(count, bool)
        self.scores = Scores(np.zeros(count, bool), np.zeros(count), np.zeros(count))

    def logits(self, batch):
        x = self.decoder.begin(batch)
        for layer in range(self.decoder.layers):
            x = self.decoder.finish(layer, x, self.decoder.attend(layer, x, batch))
        return self.decoder.read_out(x, batch)

    def of(self, begin, end):
        """The Scores of the scored ones of the examples [begin, end)."""
        wanted = begin + np.flatnonzero(self.data.scored[begin:end])
        new = wanted[~self.known[wanted]]
        for first in range(0, len(new), self.chunk):
            some = new[first:first + self.chunk]
            self.scores.put(some, score(self.logits(self.data.batch(some)),
                                        self.data.classes[some]))
        self.known[new] = True
        return self.scores.at(wanted)


class Ablation:
    def __init__(self, intact, parameters, data_seed):
        self.intact, self.parameters, self.data_seed = intact, parameters, data_seed
        self.decoder, self.data, self.chunk = intact.decoder, intact.data, intact.chunk
        self.slices = parameters["target"] == "authors" and self.decoder.pe["name"] == "mla"
        width = self.decoder.pe["latent"] if self.slices else self.decoder.model["d_model"]
        self.entries = min(self.decoder.heads, -(-width // self.decoder.head_size))
        self.last_stays = parameters["hygiene"] == "authors"
        self.means = self.position_means() if parameters["method"] == "mean" else None

    def range(self):
        """The examples that count: [begin, end) of the data set."""
        begin = 0 if self.parameters["data"] == "all" else self.data.train_examples
        most = self.parameters["max_examples"] or len(self.data.classes)
        return begin, min(begin + most, len(self.data.classes))

    def chunks(self, begin, end):
        for first in range(begin, end, self.chunk):
            yield np.arange(first, min(first + self.chunk, end))

    # What an entry can become. `parts` of a pass: per layer the arrays (B, T, entries' channels)
    # that entries are cut from.

    def parts(self, batch):
        decoder, found = self.decoder, []
        x = decoder.begin(batch)
        for layer in range(decoder.layers):
            heads = decoder.attend(layer, x, batch)
            found.append(decoder.latents(layer, x, batch) if self.slices
                         else [heads.reshape(x.shape)])
            x = decoder.finish(layer, x, heads)
        return found

    def position_means(self):
        """Over training examples, at each position over those with a token there, or over all where
        none has one."""
        examples = self.data.train_examples
        if self.parameters["max_examples"]:
            examples = min(examples, self.parameters["max_examples"])
        filled = np.zeros(self.data.tokens.shape[1])
        sums = None
        for indices in self.chunks(0, examples):
            batch = self.data.batch(indices)
            parts = self.parts(batch)
            mask = batch.filled[..., None]
            filled += batch.filled.sum(0)
            here = [[np.stack([(part * mask).sum(0), part.sum(0)]) for part in layer]
                    for layer in parts]
            sums = here if sums is None else [[a + b for a, b in zip(*pair)]
                                              for pair in zip(sums, here)]
        some = (filled > 0)[:, None]
        return [[np.where(some, part[0] / np.maximum(filled, 1)[:, None], part[1] / examples)[None]
                 for part in layer] for layer in sums]

    def donor(self, index):
        """Another example of the test set."""
        first, count = self.data.train_examples, len(self.data.classes) - self.data.train_examples
        is_test = index >= first
        rank = Random(self.data_seed, "ablation/donor", index).below(count - is_test)
        return first + rank + (is_test and rank >= index - first)

    def substitutes(self, indices):
        """Per layer, what the parts become: (B or 1, T, channels) each; None for zeros."""
        if self.parameters["method"] == "zero":
            return None
        if self.parameters["method"] == "mean":
            return self.means
        return self.parts(self.data.batch(np.array([self.donor(int(i)) for i in indices])))

    # The conditions.

    def replaced(self, parts, substitutes, layer, entry):
        size = self.decoder.head_size
        out = []
        for i, part in enumerate(parts):
            part = part.copy()
            columns = slice(entry * size, (entry + 1) * size)
            part[..., columns] = 0 if substitutes is None else substitutes[layer][i][..., columns]
            out.append(part)
        return out

    def without(self, layer, x, parts, substitutes, entry, batch):
        """The layer's output with one entry replaced."""
        parts = self.replaced(parts, substitutes, layer, entry)
        if self.slices:
            return self.decoder.finish(layer, x, self.decoder.attend(layer, x, batch, parts))
        return self.decoder.finish(layer, x, parts[0])

    def rest(self, first, x, batch):
        """The logits, from what enters layer `first`."""
        for layer in range(first, self.decoder.layers):
            x = self.decoder.finish(layer, x, self.decoder.attend(layer, x, batch))
        return self.decoder.read_out(x, batch)

    def matrix(self, indices):
        """(L, entries, B, C)."""
        decoder = self.decoder
        batch = self.data.batch(indices)
        substitutes = self.substitutes(indices)
        x = decoder.begin(batch)
        rows = []
        for layer in range(decoder.layers):
            heads = decoder.attend(layer, x, batch)
            parts = decoder.latents(layer, x, batch) if self.slices else [heads.reshape(x.shape)]
            changed = [self.without(layer, x, parts, substitutes, entry, batch)
                       for entry in range(self.entries)]
            rows.append([self.rest(layer + 1, one, batch) for one in changed])
            # The authors' last entry is head H-1: of slices there may be fewer, and then nothing
            # stays.
            if self.last_stays and self.entries == decoder.heads:
                x = changed[-1]
            else:
                x = decoder.finish(layer, x, heads)
        return np.array(rows)

    def run(self):
        """The intact condition's Scores and those of each entry, [layer][entry]."""
        entries = []
        for indices in self.chunks(*self.range()):
            scored = indices[self.data.scored[indices]]
            if len(scored) == 0:
                continue
            entries.append(score(self.matrix(scored), self.data.classes[scored]))
        matrix = joined(entries)
        return self.intact.of(*self.range()), [[matrix.at((i, h)) for h in range(self.entries)]
                                               for i in range(self.decoder.layers)]


def score(logits, classes):
    """Of logits (..., B, C). A prediction is the largest logit, the lowest class of equal ones."""
    two = (np.sort(logits, axis=-1)[..., -2:] if logits.shape[-1] > 1
           else np.stack([logits[..., 0] - np.inf, logits[..., 0]], -1))
    top = two[..., 1]
    own = np.take_along_axis(logits, np.broadcast_to(classes[:, None], (*logits.shape[:-1], 1)),
                             -1)[..., 0]
    nll = top + np.log(np.exp(logits - top[..., None]).sum(-1)) - own
    return Scores(logits.argmax(-1) == classes, nll, top - two[..., 0])


def joined(scores):
    return Scores(*(np.concatenate([getattr(one, field.name) for one in scores], axis=-1)
                    for field in dataclasses.fields(Scores)))
