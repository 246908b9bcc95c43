"""Whether the work of a layer is deposited in one head: the indices of a matrix of paired drops."""
import math

INDICES = ("max_drop", "top_share", "top_ratio", "gini", "effective_heads", "top_layer", "top_head")


def drop(lost, gained, total):
    """The paired drop of accuracy and its standard error."""
    mean = (lost - gained) / total
    return mean, math.sqrt(max(0.0, (lost + gained) / total - mean * mean) / total)


def stands_out(intact_correct, total, chance):
    accuracy = intact_correct / total
    return (accuracy > chance
            and accuracy - chance >= 5 * math.sqrt(accuracy * (1 - accuracy) / total))


def gini(values):
    """Half of the mean absolute difference over the mean."""
    return sum(abs(a - b) for a in values for b in values) / (2 * len(values) * sum(values))


def indices_of(entries, above_chance):
    """Of entries [(layer, head, drop, standard error)]; `above_chance` None where accuracy does not
    stand out."""
    empty = dict.fromkeys(INDICES)
    counted = [drop if drop > 3 * error else 0.0 for _, _, drop, error in entries]
    if above_chance is None or not any(counted):
        return empty
    total, top = sum(counted), max(counted)
    best = counted.index(top)
    second = max(counted[:best] + counted[best + 1:], default=0)
    return {"max_drop": top, "top_share": top / total,
            "top_ratio": top / second if second > 0 else None,
            "gini": gini(counted), "effective_heads": total**2 / sum(value**2 for value in counted),
            "top_layer": entries[best][0], "top_head": entries[best][1]}


def is_deposit(entries, above_chance):
    if above_chance is None or len(entries) < 2:
        return None
    order = sorted(entries,
                   key=lambda entry: (-entry[2] if entry[2] > 3 * entry[3] else 0, -entry[2]))
    _, _, top, error = order[0]
    if top <= 3 * error:
        return False
    _, _, second, second_error = order[1]
    second = second if second > 3 * second_error else 0
    large = top >= 0.40 or top / above_chance >= 0.5
    return large and top >= 3 * max(second, 3 * second_error)


def deposits(matrix, intact_correct, total, chance):
    """`matrix` [layer][head] of (lost, gained) or None: {layer, None for all: indices}."""
    above = intact_correct / total - chance if stands_out(intact_correct, total, chance) else None
    layers = [[(layer, head, *drop(*pair, total))
               for head, pair in enumerate(row) if pair is not None]
              for layer, row in enumerate(matrix)]
    out = {layer: {**indices_of(row, above), "deposit": is_deposit(row, above), "deposits": None}
           for layer, row in enumerate(layers)}
    decided = [out[layer]["deposit"] for layer in out if out[layer]["deposit"] is not None]
    out[None] = {**indices_of([entry for row in layers for entry in row], above), "deposit": None,
                 "deposits": sum(decided) if decided else None}
    return out
