"""The language of `--where` (docs/formats.md, "Conditions and metrics"), applied to fetched rows.

    pe = rope and (train.lr >= 1e-4 or not task in (distance, counting)) and seed in (0..4)

The coordinator compiles conditions to SQL (core/db/read/where.h). A test checks that the same text
chooses the same jobs in both.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from pelab import _catalog, _columns
from pelab._jobs import DERIVED, INDICES, STATES, JobRows
from pelab.errors import InvalidInput

Predicate = Callable[[JobRows, int], bool]
_OPERATORS = ("==", "!=", "!~", "<=", ">=", "=", "<", ">", "~")
_WORDS = ("and", "or", "not", "in")
_MAX_LENGTH = 10_000
OWN = "own"  # the name of encodings and tasks from files
_MAX_DEPTH = 50
_MOST_SHOWN = 10  # values of a field in a warning


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _as_list(text: str) -> list[str]:
    return sorted(part for part in re.split(r"[\[\],+\s]+", text) if part)


def _equals(name: str, stored: object, wanted: str) -> bool:
    if stored is None:
        return False
    if name == "task" and wanted == OWN:  # stands for every own:NAME
        return str(stored).startswith(f"{OWN}:")
    if isinstance(stored, bool):
        return wanted == ("true" if stored else "false")
    if isinstance(stored, int) and re.fullmatch(r"[+-]?\d+", wanted):
        return stored == int(wanted)
    if isinstance(stored, (int, float)):
        return stored == _number(wanted)
    if isinstance(stored, (list, tuple)):
        return sorted(str(member) for member in stored) == _as_list(wanted)
    return str(stored) == wanted


def _holds(field: str, operator: str, wanted: str) -> Callable[[object], bool]:
    """The condition on a value. A missing value satisfies only != and !~."""
    if operator in ("=", "!="):
        return lambda stored: _equals(field, stored, wanted) == (operator == "=")
    if operator in ("~", "!~"):
        pattern = wanted.replace("[^", "[!")  # the form in which fnmatch negates a set

        def matches(stored: object) -> bool:
            if stored is not None and not isinstance(stored, str):
                raise InvalidInput(
                    f"condition on {field}: {operator} needs a text; use = != < <= > or >=")
            return (stored is not None and fnmatchcase(stored, pattern)) == (operator == "~")
        return matches
    limit = _number(wanted)
    if limit is None:
        raise InvalidInput(f'condition on {field}: "{wanted}" is not a number')
    right = limit

    def compares(stored: object) -> bool:
        if stored is None:
            return False
        if not isinstance(stored, (int, float)) or isinstance(stored, bool):
            raise InvalidInput(
                f"condition on {field}: {operator} needs a number; use = or !=, or ~ with a "
                "pattern")
        return {"<": stored < right, "<=": stored <= right, ">": stored > right,
                ">=": stored >= right}[operator]
    return compares


def _values_of(jobs: JobRows, name: str) -> set[str]:
    """The text values that the jobs have in this field."""
    return {value for value in (jobs.value(index, name) for index in range(len(jobs.rows)))
            if isinstance(value, str)}


def _known_values(name: str) -> list[str]:
    """The values that the field may have; empty if it takes any text, or no text."""
    if name in ("pe", "pe.name"):
        return [*_catalog.pes(), OWN]
    if name in ("task", "task.name"):
        return [*_catalog.tasks(), OWN]
    if name in ("protocol", "state"):
        return _catalog.protocols() if name == "protocol" else list(STATES)
    known = _catalog.field(name)
    return list(_catalog.choices(name)) if known and known.type == "choice" else []


def check_value(jobs: JobRows, name: str, text: str) -> None:
    """InvalidInput for a value that no job can have in this field: nothing could match."""
    known = _known_values(name)
    if known and text not in known and text not in (there := _values_of(jobs, name)):
        raise _catalog.unknown(name, text, [*known, *sorted(there - set(known))])
    wrong = _wrong_for(name, text)
    if wrong:
        raise InvalidInput(f'condition on {name}: "{text}" is not {wrong}')


def _wrong_for(name: str, text: str) -> str:
    """Names the values that the field allows if this text is not one; else an empty text."""
    known = _catalog.field(name)
    kind = (known.type if known
            else {"int": "int", "Int": "int", "float": "real", "bool": "bool"}.get(
                _columns.JOBS.get(name, ""), "real" if name in DERIVED else ""))
    if kind == "bool" and text not in ("true", "false"):
        return "true or false"
    if kind in ("int", "real") and _number(text) is None:
        return "a number"
    if kind == "set" and not set(_as_list(text)) <= set(_catalog.choices(name)):
        return f"a list out of {'+'.join(_catalog.choices(name))}"
    if kind == "int set" and not all(re.fullmatch(r"[+-]?\d+", one) for one in _as_list(text)):
        return "a list of different integers, such as 0+5"
    return ""


class _Parser:
    def __init__(self, text: str, known: set[str], jobs: JobRows) -> None:
        self.text = text
        self.at = 0
        self.known = known
        self.jobs = jobs
        self.fields: list[str] = []  # named by the conditions, each once, in order

    def parse(self) -> Predicate:
        predicate = self._any(0)
        if not self._at_end():
            raise self._expected('"and", "or" or the end')
        return predicate

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _at_end(self) -> bool:
        self._skip()
        return self.at == len(self.text)

    def _take(self, character: str) -> bool:
        self._skip()
        if self.text[self.at:self.at + 1] != character:
            return False
        self.at += 1
        return True

    def _name(self) -> str:
        self._skip()
        found = re.compile(r"[A-Za-z0-9_.]*").match(self.text, self.at)
        return found.group() if found else ""

    def _take_word(self, word: str) -> bool:
        if self._name().lower() != word:
            return False
        self.at += len(word)
        return True

    def _error(self, at: int, what: str) -> InvalidInput:
        return InvalidInput(f"condition, column {at + 1}: {what}")

    def _expected(self, what: str) -> InvalidInput:
        self._skip()
        rest = self.text[self.at:self.at + 40].split()
        there = f'"{rest[0]}"' if rest else "the end"
        return self._error(self.at, f"expected {what}, not {there}")

    def _any(self, depth: int) -> Predicate:
        terms = [self._all(depth)]
        while self._take_word("or"):
            terms.append(self._all(depth))
        return (terms[0] if len(terms) == 1 else lambda jobs, index: any(term(jobs, index)
                                                                         for term in terms))

    def _all(self, depth: int) -> Predicate:
        terms = [self._one(depth)]
        while self._take(",") or self._take_word("and") or self._another():
            terms.append(self._one(depth))
        return (terms[0] if len(terms) == 1 else lambda jobs, index: all(term(jobs, index)
                                                                         for term in terms))

    def _another(self) -> bool:
        """Whether another condition follows at once: "and" may be left out between two."""
        name = self._name().lower()
        return bool(name) and name not in ("and", "or", "in")

    def _one(self, depth: int) -> Predicate:
        if depth == _MAX_DEPTH:
            raise self._error(self.at, f"more than {_MAX_DEPTH} levels")
        if self._take_word("not"):
            negated = self._one(depth + 1)
            return lambda jobs, index: not negated(jobs, index)
        if self._take("("):
            inner = self._any(depth + 1)
            if not self._take(")"):
                raise self._expected('"and", "or" or ")"')
            return inner
        return self._condition()

    def _condition(self) -> Predicate:
        field, begin = self._name(), self.at
        if not field or field.lower() in _WORDS:
            raise self._expected('FIELD=VALUE, FIELD in (VALUE, ...), "not" or "("')
        self.at += len(field)
        argument = self._argument(field, begin)
        if field not in self.known:
            near = _catalog.hint(field, self.known)
            hint = f"did you mean {near}?" if near else f"known: {', '.join(sorted(self.known))}"
            raise self._error(begin, f'unknown field "{field}" in a condition; {hint}')
        if field not in self.fields:
            self.fields.append(field)
        self._skip()
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.at):
                self.at += len(operator)
                return self._on(field, argument, begin, "=" if operator == "==" else operator,
                                self._value())
        negated = self._take_word("not")
        if self._take_word("in"):
            members = self._members(field, argument, begin)
            return lambda jobs, index: any(member(jobs, index) for member in members) != negated
        raise self._expected(f'after "{field}" one of = != < <= > >= ~ !~ or "in"')

    def _argument(self, field: str, begin: int) -> float | None:
        argument: float | None = None
        if self.text[self.at:self.at + 1] == "(":
            end = self.text.find(")", self.at)
            argument = None if end < 0 else _number(self.text[self.at + 1:end])
            if argument is None:
                self.at += 1
                raise self._expected('a number and ")"')
            self.at = end + 1
        if (field == "epochs_to") != (argument is not None):
            raise self._error(
                begin, "condition on epochs_to: name the test accuracy, as in epochs_to(0.9) <= 20"
                if field == "epochs_to" else f'"{field}" takes no number in brackets')
        return argument

    def _members(self, field: str, argument: float | None, begin: int) -> list[Predicate]:
        if not self._take("("):
            raise self._expected('"(" and a list of values')
        members: list[Predicate] = []
        while True:
            value = self._value()
            bounds = re.fullmatch(r"([+-]?\d+)\.\.([+-]?\d+)", value)
            if bounds:
                members.append(self._between(field, argument, begin, bounds.group(1),
                                             bounds.group(2)))
            else:
                members.append(self._on(field, argument, begin, "=", value))
            if not self._take(","):
                break
        if not self._take(")"):
            raise self._expected('"," or ")"')
        return members

    def _between(self, field: str, argument: float | None, begin: int, first: str,
                 last: str) -> Predicate:
        low = self._on(field, argument, begin, ">=", first)
        high = self._on(field, argument, begin, "<=", last)
        return lambda jobs, index: low(jobs, index) and high(jobs, index)

    def _on(self, field: str, argument: float | None, begin: int, operator: str,
            value: str) -> Predicate:
        try:
            if operator in ("=", "!="):
                check_value(self.jobs, field, value)
            holds = _holds(field, operator, value)
        except InvalidInput as error:
            raise self._error(begin, str(error)) from None
        if field in INDICES:  # true if it holds for one of the job's head ablations
            return lambda jobs, index: any(holds(one) for one in jobs.indices(index, field))
        return lambda jobs, index: holds(jobs.value(index, field, argument))

    def _value(self) -> str:
        self._skip()
        if self.text[self.at:self.at + 1] in ("'", '"'):
            return self._quoted()
        end, depth = self.at, 0
        while end < len(self.text):
            character = self.text[end]
            depth += (character in "([") - (character in ")]")
            if depth < 0 or (depth == 0 and (character.isspace() or character == ",")):
                break
            end += 1
        if end == self.at:
            raise self._expected("a value (in quotes where it is empty or has spaces)")
        value, self.at = self.text[self.at:end], end
        return value

    def _quoted(self) -> str:
        quote = self.text[self.at]
        found = re.compile(f"{quote}((?:[^{quote}]|{quote}{quote})*){quote}").match(self.text,
                                                                                    self.at)
        if found is None:
            raise self._error(self.at, "the quote is not closed")
        self.at = found.end()
        return found.group(1).replace(quote * 2, quote)


def _parse(jobs: JobRows, where: str) -> tuple[Predicate, list[str]]:
    if len(where) > _MAX_LENGTH:
        raise InvalidInput(
            f"a condition of {len(where)} characters; at most {_MAX_LENGTH} are allowed")
    parser = _Parser(where, known_fields(jobs) | set(DERIVED), jobs)
    return parser.parse(), parser.fields


def known_fields(jobs: JobRows) -> set[str]:
    """The columns of jobs, and the fields of their specs."""
    return (set(_columns.JOBS) | {"pe.name", "task.name"} | _catalog.field_names()
            | jobs.field_names())


def fields_of(jobs: JobRows, where: str) -> list[str]:
    """The fields that the condition names, each once, in order."""
    return _parse(jobs, where)[1]


def select(jobs: JobRows, where: str | None, equals: Mapping[str, object]) -> JobRows:
    """The jobs that meet all conditions.

    `__` in a keyword stands for a dot; a list matches any of its values.
    """
    predicates: list[Predicate] = []
    fields: list[str] = []
    if where is not None and not isinstance(where, str):
        raise InvalidInput(f'where is {where!r}; it must be a condition as text, such as '
                           '"pe = rope and seed < 5"')
    if where and where.strip():
        predicate, fields = _parse(jobs, where)
        predicates.append(predicate)
    for keyword, wanted in equals.items():
        name = keyword.replace("__", ".")
        known = known_fields(jobs)
        if name not in known:
            raise _catalog.unknown("field", name, sorted(known))
        predicates.append(_any_of(jobs, name, wanted))
        fields = [*fields, name]
    if not predicates:
        return jobs
    chosen = [all(predicate(jobs, index) for predicate in predicates)
              for index in range(len(jobs.rows))]
    if chosen and not any(chosen):
        _warn_none_meets(jobs, where, equals, fields)
    return jobs.select(chosen)


def _warn_none_meets(jobs: JobRows, where: str | None, equals: Mapping[str, object],
                     fields: list[str]) -> None:
    asked = [where.strip()] if where and where.strip() else []
    asked += [f"{name}={wanted!r}" for name, wanted in equals.items()]
    text = f"no job meets {' and '.join(asked)}"
    for name in dict.fromkeys(fields):
        there = sorted({_shown(jobs.value(index, name)) for index in range(len(jobs.rows))})
        more = f" and {len(there) - _MOST_SHOWN} more" if len(there) > _MOST_SHOWN else ""
        text += f"; {name} there: {', '.join(there[:_MOST_SHOWN])}{more}"
    warnings.warn(text, stacklevel=_callers_level())


def _shown(value: object) -> str:
    return "none" if value is None else _text(value)


def _callers_level() -> int:
    """The stacklevel of the first frame outside this package, as seen by who calls warnings.warn
    in the function that calls this one."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    return level


def _any_of(jobs: JobRows, name: str, wanted: object) -> Predicate:
    texts = _texts(name, wanted)
    for text in texts:
        check_value(jobs, name, text)
    return lambda jobs, index: any(_equals(name, jobs.value(index, name), text)
                                   for text in texts)


def _texts(name: str, wanted: object) -> list[str]:
    """The wanted values as texts.

    For a field whose values are lists, a tuple is a single value, since frames hold tuples.
    """
    known = _catalog.field(name)
    if (known is not None and known.type in ("set", "int set")
        and isinstance(wanted, (tuple, set, frozenset))):
        return [_text(wanted)]
    if isinstance(wanted, (list, tuple, set, frozenset, range)):
        return [_text(one) for one in wanted]
    return [_text(wanted)]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ("+".join(map(str, value)) if isinstance(value, (list, tuple, set, frozenset))
            else str(value))
