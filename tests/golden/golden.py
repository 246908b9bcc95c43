"""What the scripts that compute golden values share: writing their JSON and holding a committed
file against a fresh run.

    SCRIPT --write FILE.json    compute and write
    SCRIPT --check FILE.json    compute and compare; exit 1 where something differs

Numbers agree within a relative 1e-11 (the C library's sine and exponential may differ in the last
digit), all else exactly.
"""
import json
import math
import sys


def differences(committed, fresh, path="$"):
    """Where the two differ, in words."""
    if isinstance(committed, (int, float)) and isinstance(fresh, (int, float)):
        if not math.isclose(committed, fresh, rel_tol=1e-11, abs_tol=1e-13):
            yield f"{path}: committed {committed!r}, computed {fresh!r}"
    elif type(committed) is not type(fresh):
        yield f"{path}: committed {type(committed).__name__}, computed {type(fresh).__name__}"
    elif isinstance(fresh, dict):
        if committed.keys() != fresh.keys():
            yield f"{path}: committed members {sorted(committed)}, computed {sorted(fresh)}"
            return
        for name in fresh:
            yield from differences(committed[name], fresh[name], f"{path}.{name}")
    elif isinstance(fresh, list):
        if len(committed) != len(fresh):
            yield f"{path}: committed {len(committed)} items, computed {len(fresh)}"
            return
        for i, pair in enumerate(zip(committed, fresh)):
            yield from differences(*pair, f"{path}[{i}]")
    elif committed != fresh:
        yield f"{path}: committed {committed!r}, computed {fresh!r}"


def dump(values):
    """One line a case, so that a change can be read."""
    def lines(value, depth):
        if depth == 0 or not isinstance(value, (dict, list)) or not value:
            return json.dumps(value)
        if isinstance(value, dict):
            items = [f"{json.dumps(name)}: {lines(item, depth - 1)}"
                     for name, item in value.items()]
            return "{\n" + ",\n".join(items) + "\n}"
        return "[\n" + ",\n".join(lines(item, depth - 1) for item in value) + "\n]"
    return lines(values, 2) + "\n"


def main(compute, documentation):
    if len(sys.argv) == 3 and sys.argv[1] == "--write":
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            file.write(dump(compute()))
        return 0
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        with open(sys.argv[2], encoding="utf-8") as file:
            committed = json.load(file)
        found = list(differences(committed, json.loads(json.dumps(compute()))))
        for line in found[:50]:
            print(line)
        print(f"{len(found)} differences")
        return 1 if found or not committed else 0
    print(documentation)
    return 2
