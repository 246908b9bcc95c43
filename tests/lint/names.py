"""Names of unnamed namespaces that another source of the same unit would take for its own.

Sources that are compiled as one share their unnamed namespaces. Two equal functions do not compile;
a function that hides another one does, and then the other source calls the wrong one."""
import json
import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}(?:  // namespace)?\s*\n", re.S | re.M)
FUNCTION = re.compile(r"^(?!return\b|else\b)[A-Za-z_][\w:<>,\s*&\[\]]*[\s*&](\w+)\([^;{}]*\)"
                      r"(?: const)?(?: noexcept)? \{", re.M)
METHOD = re.compile(r"(?:\w::|^ +[\w:<>,*& ]+[ *&])(\w+)\([^;{}]*\)(?: const)?(?: override)? \{",
                    re.M)
CALL = re.compile(r"(?<![\w:.>~])(\w+)\(")
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.M)


@dataclass
class Source:
    name: str
    namespace: str
    unnamed: set[str]  # functions of its unnamed namespaces
    functions: set[str]  # and methods, which a method finds first
    calls: set[str]


def _read(path: pathlib.Path, name: str) -> Source:
    text = re.sub(r"//[^\n]*", "", path.read_text())
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    text = re.sub(r"^[ \t]*\n", "", text, flags=re.M)
    inside = NAMESPACE.search(text)
    unnamed = {name for part in UNNAMED.findall(text) for name in FUNCTION.findall(part)}
    return Source(name, inside[1] if inside else "", unnamed,
                  {*FUNCTION.findall(text), *METHOD.findall(text)}, set(CALL.findall(text)))


def _units(build: pathlib.Path, root: pathlib.Path) -> Iterator[list[Source]]:
    for entry in json.loads((build / "compile_commands.json").read_text()):
        unit = pathlib.Path(entry["file"])
        if "Unity" in unit.parts and unit.exists():
            paths = map(pathlib.Path, re.findall(r'#include "(.*)"', unit.read_text()))
            yield [_read(path, path.relative_to(root).as_posix())
                   for path in paths if path.is_relative_to(root) and path.exists()]


def hidden(build: pathlib.Path, root: pathlib.Path) -> list[str]:
    """A line for each name of a source that one after it in its unit calls, and does not define."""
    found = []
    for unit in _units(build, root):
        for at, source in enumerate(unit):
            for other in unit[at + 1:]:
                if f"{other.namespace}::".startswith(f"{source.namespace}::"):
                    found += [f"{other.name}: a call of {name} takes the function in the unnamed "
                              f"namespace of {source.name}, which is before it in its unit"
                              for name in sorted(source.unnamed & other.calls - other.functions)]
    return found
