#!/usr/bin/env python3
"""Computes a job's key without any of pelab's code (Python's standard library only).

    canonical_key.py --check canonical_keys.json    recompute every committed key; exit 1 where one
                                                    differs
    canonical_key.py --write canonical_keys.json --pelab build/release/bin/pelab
                                                    add the default jobs that the catalog has and
                                                    the file lacks: every protocol, encoding and
                                                    task. What stands in the file is never changed:
                                                    where the program gives another spec for it,
                                                    exit 1
    canonical_key.py SPEC.json                      print the key of a spec, however it is laid out

The key is the lower-case hexadecimal SHA-256 of the spec in RFC 8785 form: members sorted by name,
no white space, numbers as ECMAScript writes them.
"""
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile


def number(value):
    """ECMA-262, Number::toString, from the shortest digits that Python's repr gives."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} has no JSON form")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)  # where the decimal point stands in digits
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def canonical(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be"))
    return ("{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{canonical(value[name])}"
                           for name in names) + "}")


def key(spec):
    return hashlib.sha256(canonical(spec).encode("utf-8")).hexdigest()


# Spellings that a careless formatter gets wrong (RFC 8785, appendix B, and this project's own
# defaults).
NUMBERS = {
    1e-8: "1e-8", 1e-5: "0.00001", 1e-6: "0.000001", 9.999999999999997e-7: "9.999999999999997e-7",
    10000.0: "10000", 1e21: "1e+21", 999999999999999900000.0: "999999999999999900000",
    5e-324: "5e-324", 0.1: "0.1", 333333333.33333325: "333333333.33333325",
    1.7976931348623157e308: "1.7976931348623157e+308", -2.5: "-2.5",
}


def check(path):
    wrong = [f"number {value!r} -> {number(value)}, not {text}" for value, text in NUMBERS.items()
             if number(value) != text]
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    for case in cases:
        found = key(case["spec"])
        if found != case["key"]:
            wrong.append(f"{case['name']}: key {found}, committed {case['key']}")
    for line in wrong:
        print(line)
    print(f"{len(cases)} keys, {len(NUMBERS)} numbers, {len(wrong)} wrong")
    return 1 if wrong or not cases else 0


def asked(pelab, *arguments):
    """The JSON value that a pelab command prints; None where it refuses."""
    found = subprocess.run([pelab, *arguments, "--output", "json"], capture_output=True, text=True)
    return json.loads(found.stdout) if found.returncode == 0 else None


def resolved(pelab, document):
    """The spec of a document's only job; None where the document is refused (xpos without a causal
    mask)."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "golden.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(document)
        answer = asked(pelab, "submit", path, "--dry-run", "--db", os.path.join(folder, "none.db"))
    return answer and answer["jobs"][0]["spec"]


def default_documents(pelab):
    names = {kind: [entry["name"] for entry in asked(pelab, "catalog", kind)["entries"]]
             for kind in ("protocol", "pe", "task")}
    for protocol in names["protocol"]:
        for pe in names["pe"]:
            for task in names["task"]:
                yield (f"{protocol} {pe} {task}",
                       f"{{name: golden, protocol: {protocol}, pe: {pe}, task: {task}, seed: 0}}")


def dump(cases):
    return ("[\n" + ",\n".join(
        "{" + ",\n ".join(f"{json.dumps(name)}: {json.dumps(case[name])}" for name in
                          ("name", "document", "key", "spec")) + "}" for case in cases) + "\n]\n")


def write(path, pelab):
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    changed = [case["name"] for case in cases if resolved(pelab, case["document"]) != case["spec"]]
    for name in changed:
        print(f"{name}: the program gives another spec than the committed one; stored jobs would "
              "lose their keys")
    if changed:
        return 1
    known = {case["name"] for case in cases}
    for name, document in default_documents(pelab):
        spec = None if name in known else resolved(pelab, document)
        if spec is not None:
            cases.append({"name": name, "document": document, "key": key(spec), "spec": spec})
    with open(path, "w", encoding="utf-8") as file:
        file.write(dump(cases))
    print(f"{len(cases) - len(known)} keys added to {len(known)}")
    return 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        return check(sys.argv[2])
    if len(sys.argv) == 5 and sys.argv[1] == "--write" and sys.argv[3] == "--pelab":
        return write(sys.argv[2], sys.argv[4])
    if len(sys.argv) == 2 and not sys.argv[1].startswith("-"):
        with open(sys.argv[1], encoding="utf-8") as file:
            print(key(json.load(file)))
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
