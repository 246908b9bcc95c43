"""Data of one's own: induction. A word that was there before is followed by the word that followed
it then (Olsson et al. 2022, arXiv 2209.11895). Writes induction.safetensors:

    python3 own_task.py
    pelab check induction.safetensors
"""

import argparse

import numpy as np

import pelab

VOCABULARY = 40
LONGEST = 32


def sequence(rng, words, length):
    """A random text of a random Markov chain without choice: each word has one successor."""
    chain = rng.permutation(words)
    follower = dict(zip(chain, np.roll(chain, -1)))
    tokens = [int(rng.choice(chain))]
    while len(tokens) < length:
        jump = rng.random() < 0.2  # else a text would repeat its first words for ever
        tokens.append(int(rng.choice(chain)) if jump else int(follower[tokens[-1]]))
    return tokens


def targets(tokens):
    """At each position the next word, if it follows from the text so far; else -1."""
    seen = {}
    out = []
    for here, following in zip(tokens, tokens[1:] + [None]):
        known = seen.get(here)
        out.append(known if known == following and known is not None else -1)
        seen[here] = following
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="induction.safetensors")
    parser.add_argument("--train", type=int, default=4000, help="training examples")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    rows, labels, lengths, split = [], [], [], []
    for name, count, shortest, longest in (("train", arguments.train, 12, 20),
                                           ("test", arguments.train // 4, 12, 20),
                                           ("long", arguments.train // 4, 28, LONGEST)):
        for _ in range(count):
            words = rng.choice(np.arange(1, VOCABULARY), size=6, replace=False)
            length = int(rng.integers(shortest, longest + 1))
            tokens = sequence(rng, words, length)
            padding = LONGEST - length
            rows.append(tokens + [0] * padding)
            labels.append(targets(tokens) + [-1] * padding)
            lengths.append(length)
            split.append(name)
    # Word 0 is left to the padding, so that labels are 1 to VOCABULARY - 1.
    pelab.save_task(arguments.out, rows, labels, split, name="induction", lengths=lengths,
                    vocabulary=VOCABULARY, classes=VOCABULARY - 1, first_label=1)
    print(f"wrote {arguments.out}: {len(rows)} examples")


if __name__ == "__main__":
    main()
