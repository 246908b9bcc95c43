"""The best guesses about a task without doing it, for sheet_recount.py: from the length alone, from
one place alone, or without looking."""

import itertools
import math


def best_of_joint(joint):
    """`joint`: {what is seen: {label: weight}}."""
    return (sum(max(labels.values()) for labels in joint.values())
            / sum(sum(labels.values()) for labels in joint.values()))


def add(joint, seen, label, weight=1.0):
    labels = joint.setdefault(seen, {})
    labels[label] = labels.get(label, 0.0) + weight


def distance_shortcut(task):
    place, length = {}, {}
    if task["definition"] == "clean":
        starts, classes = task["length"] - task["max_distance"], task["max_distance"]
        for start, distance in itertools.product(range(starts), range(1, classes + 1)):
            add(place, start + distance, distance)
        places = starts
    else:
        segments, classes = range(1, task["max_segment"] + 1), task["max_gap"]
        for left, gap, right in itertools.product(segments, range(1, classes + 1), segments):
            add(place, left + gap, gap)
            add(length, min(left + gap + right + 2, task["truncate"]), gap)
        places = task["max_segment"]
    factor = 1.0
    if task.get("split", "").startswith("held_out"):
        held = min(max(math.floor(task["held_out_fraction"] * places + 0.5), 1), max(1, places - 1))
        factor = places / held
    return max(min(1.0, factor * best_of_joint(joint)) for joint in (place, length) if joint)


def counting_shortcut(task):
    most = task["max_count"]
    least = 1 if task.get("scored_classes") == "nonzero" else 0
    size = task["length"] if task["definition"] == "clean" else task["content_length"]
    joint = {}
    for count in range(least, most + 1):  # whether one place has a trigger
        add(joint, True, count, count / size)
        add(joint, False, count, 1 - count / size)
    return best_of_joint(joint)


def shortcut(spec, classes):
    task = spec["task"]
    best = distance_shortcut(task) if task["name"] == "distance" else counting_shortcut(task)
    return max(best, 1 / classes)
