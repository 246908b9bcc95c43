"""Writing a positional encoding of one's own as a file that sweeps can name. Only
save_encoding needs PyTorch, so it is imported there."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from pelab import _catalog
from pelab._names import NAME, NAME_RULE, refuse, write_file

# The methods that the trainer calls, with the names of what each takes (docs/own-encodings.md).
METHODS = {
    "input_term": ("length",),
    "transform": ("layer", "side", "x", "length"),
    "angles": ("length",),
    "distance_bias": ("layer", "length"),
    "pair_bias": ("layer", "query", "key"),
    "logits": ("layer", "query", "key", "logits"),
    "distance_factor": ("layer", "length"),
}
# Called once before them, if the module has them.
INTEGERS = {"layer", "side", "length", "seed"}
PREPARING = {"configure": ("sizes", "options"), "reset": ("seed",)}
WIDEST = 1e15
MOST_DECLARED = 64 << 10  # bytes of a declaration
MOST_CHOICES = 32  # of one option
# Names that read as another kind of value, in a sweep or in the text of the options.
NO_CHOICES = {"true", "false", "null", "nan", "inf", "infinity"}


@dataclasses.dataclass(frozen=True)
class Option:
    """A number, a flag or a choice that sweeps may set. `configure` gets it as a float."""

    type: str
    default: bool | int | float | str
    low: float | None = None
    high: float | None = None
    help: str = ""
    choices: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Between:
    """The numbers from low to high."""

    low: float
    high: float


def real(default: float, low: float, high: float, help: str = "") -> Option:
    """An option that is any number from low to high."""
    return Option("real", float(default), float(low), float(high), help)


def integer(default: int, low: int, high: int, help: str = "") -> Option:
    """An option that is an integer from low to high."""
    for number in (default, low, high):
        if int(number) != number:
            raise refuse(f"an integer option has the number {number}")
    return Option("int", int(default), int(low), int(high), help)


def flag(default: bool, help: str = "") -> Option:
    """An option that is true or false; `configure` gets 1.0 or 0.0."""
    return Option("bool", bool(default), None, None, help)


def choice(default: str, choices: Sequence[str], help: str = "") -> Option:
    """An option that is one of these names; `configure` gets its place among them: 0.0, 1.0, …"""
    if isinstance(choices, (str, bytes)) or not isinstance(choices, Sequence):
        raise refuse(f"a choice option has the choices {choices!r}; write a list of names, such as "
                     "['linear', 'log']")
    return Option("choice", default, None, None, help, tuple(choices))


def between(low: float, high: float) -> Between:
    """For `needs`: a field that must be a number from low to high."""
    for number in (low, high):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise refuse(f"pelab.between has {number!r}; allowed: numbers")
    return Between(low, high)


def _check_choices(name: str, option: Option) -> None:
    if not 2 <= len(option.choices) <= MOST_CHOICES:
        raise refuse(f"option {name} has {len(option.choices)} choices; allowed: 2 to "
                     f"{MOST_CHOICES}")
    for one in option.choices:
        if not isinstance(one, str) or not NAME.fullmatch(one) or one in NO_CHOICES:
            raise refuse(f"option {name}: a choice is {one!r}; allowed: {NAME_RULE}, and none of "
                         f"{', '.join(sorted(NO_CHOICES))}")
    if len(set(option.choices)) != len(option.choices):
        raise refuse(f"option {name} has a choice twice: {', '.join(option.choices)}")
    if option.default not in option.choices:
        raise refuse(f"option {name}: its default {option.default!r} is not one of "
                     f"{', '.join(option.choices)}")


def _need_json(name: str, need: Any) -> Any:
    """What the declaration says of one field. Its values are checked when the file is read."""
    known = [one for one in _catalog.field_names() if one.startswith(("model.", "task.", "train."))]
    if name not in known:
        near = _catalog.hint(str(name), known)
        raise refuse(f"needs names {name!r}; " + (f"did you mean {near}? " if near else "")
                     + "allowed: a field of the model, the task or the training, such as "
                       "model.heads")
    if isinstance(need, Between):
        if not -WIDEST <= need.low <= need.high <= WIDEST:
            raise refuse(f"needs of {name}: from {need.low} to {need.high} leaves no value")
        return {"min": need.low, "max": need.high}
    if isinstance(need, (str, bytes)) or not isinstance(need, Sequence) or not need:
        raise refuse(f"needs of {name} is {need!r}; write a list of allowed values, such as "
                     "['causal'], or pelab.between(low, high)")
    choices = _catalog.choices(name)
    for one in need:
        if not isinstance(one, (bool, int, float, str)):
            raise refuse(f"needs of {name} names {one!r}; allowed: numbers, texts, True and False")
        if choices and one not in choices:
            near = _catalog.hint(str(one), choices)
            raise refuse(f"needs of {name} names {one!r}; allowed: {', '.join(choices)}"
                         + (f"; did you mean {near}?" if near else ""))
    return list(need)


def _option_json(name: str, option: Option) -> dict[str, Any]:
    if not isinstance(option, Option):
        raise refuse(f"option {name!r} is {option!r}; write pelab.real(default, low, high), "
                     "pelab.integer(default, low, high), pelab.flag(default) or "
                     "pelab.choice(default, choices)")
    if not NAME.fullmatch(name) or name in ("name", "file"):
        raise refuse(f"an option is named {name!r}; allowed: a lower-case letter, then letters, "
                     "digits or underscores, and neither name nor file")
    shown: dict[str, Any] = {"name": name, "type": option.type, "default": option.default}
    if option.type == "choice":
        _check_choices(name, option)
        shown["choices"] = list(option.choices)
    elif option.type != "bool":
        assert option.low is not None and option.high is not None
        if option.low > option.high:
            raise refuse(f"option {name}: its low {option.low} is above its high {option.high}")
        assert isinstance(option.default, (int, float))
        if not -WIDEST <= option.low <= option.default <= option.high <= WIDEST:
            raise refuse(f"option {name}: its default {option.default} is not from {option.low} "
                         f"to {option.high}")
        shown.update(min=option.low, max=option.high)
    if option.help:
        shown["help"] = option.help
    return shown


def _export(torch: Any, module: Any) -> list[str]:
    """Makes TorchScript compile the methods that the trainer calls. Returns the hooks' names."""
    import inspect

    for name, takes in {**METHODS, **PREPARING}.items():
        method = getattr(type(module), name, None)
        if method is None:
            continue
        parameters = list(inspect.signature(method).parameters.values())[1:]
        found = tuple(parameter.name for parameter in parameters)
        if len(found) != len(takes) or (found != takes and sorted(found) == sorted(takes)):
            raise refuse(f"{name} takes ({', '.join(found)}); it must take ({', '.join(takes)})")
        for parameter, meant in zip(parameters, takes):
            if meant in INTEGERS and parameter.annotation not in (int, "int"):
                raise refuse(f"{name}: annotate its argument {parameter.name}: int; TorchScript "
                             "takes what has no annotation for a tensor")
        torch.jit.export(method)
    hooks = [name for name in METHODS if getattr(type(module), name, None) is not None]
    if not hooks:
        raise refuse(f"the module has none of the methods that pelab calls: {', '.join(METHODS)}")
    return hooks


def _without_places(archive: io.BytesIO) -> bytes:
    """The archive without the places in the script that its code came from. With them, a comment
    above the class would make another encoding of it."""
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(out, "w") as target:
        for entry in source.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                target.writestr(zipfile.ZipInfo(entry.filename), source.read(entry))
    return out.getvalue()


def save_encoding(module: Any, path: str | os.PathLike[str], *, name: str,
                  options: Mapping[str, Option] | None = None, causal_only: bool = False,
                  needs: Mapping[str, Sequence[Any] | Between] | None = None,
                  extrapolates: bool | None = None, help: str = "") -> None:
    """Compiles a torch.nn.Module with torch.jit.script and writes it to `path`, with what sweeps
    need to know of it. The same code and values give the same bytes, whatever the path is and
    wherever the class stands in its script, so that the encoding's jobs are known again.

    `needs` has the values that fields of a job must have: {"model.mask": ["causal"], "model.heads":
    between(1, 16)}. `extrapolates` says whether the encoding is meant for longer sequences than it
    was trained on; None leaves it open.

    docs/own-encodings.md describes the methods. InvalidInput says what is wrong with the module.
    """
    import torch

    if not NAME.fullmatch(name):
        raise refuse(f"the encoding's name is {name!r}; allowed: {NAME_RULE}")
    if isinstance(module, torch.jit.ScriptModule):
        raise refuse("the encoding is scripted already; give the torch.nn.Module itself")
    if not isinstance(module, torch.nn.Module):
        raise refuse(f"the encoding is a {type(module).__name__}; it must be a torch.nn.Module")
    for what, value, known in (("causal_only", causal_only, (True, False)),
                               ("extrapolates", extrapolates, (True, False, None))):
        if not any(value is one for one in known):
            raise refuse(f"{what} is {value!r}; allowed: {', '.join(map(str, known))}")
    hooks = _export(torch, module)
    declaration = {"format": 1, "kind": "encoding", "name": name, "methods": hooks,
                   "causal_only": causal_only,
                   "options": [_option_json(key, value)
                               for key, value in sorted((options or {}).items())]}
    if needs:
        declaration["needs"] = {key: _need_json(key, needs[key]) for key in sorted(needs)}
    if extrapolates is not None:
        declaration["extrapolates"] = extrapolates
    if help:
        declaration["help"] = help
    try:
        scripted = torch.jit.script(module)
    except Exception as error:  # TorchScript raises several kinds, with long texts
        raise refuse(f"torch.jit.script cannot compile the module: {error}") from error
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer, _extra_files={"pelab.json": json.dumps(declaration)})
    write_file(path, _without_places(buffer))


def declared(data: bytes, path: str) -> dict[str, Any]:
    """What the file declares."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entry, = (entry for entry in archive.infolist()
                      if entry.filename.partition("/")[2] == "extra/pelab.json")
            if entry.file_size > MOST_DECLARED:
                raise refuse(f"{path}: its declaration has {entry.file_size} bytes; at most "
                             f"{MOST_DECLARED} are allowed")
            return dict(json.loads(archive.read(entry)))
    except (zipfile.BadZipFile, ValueError, TypeError) as error:
        raise refuse(f"{path} is no file of an encoding: pelab.save_encoding writes one "
                     f"({error})") from None
