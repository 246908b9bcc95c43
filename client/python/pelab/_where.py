"""The language of `--where` (docs/formats.md, "Conditions and metrics"), over rows that are here.

    pe = rope and (train.lr >= 1e-4 or not task in (distance, counting)) and seed in (0..4)

The coordinator compiles it to SQL (core/views/where.h); the same texts choose the same jobs, which a test holds.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from pelab import _columns
from pelab._jobs import DERIVED, INDICES, JobRows
from pelab.errors import InvalidInput

Predicate = Callable[[JobRows, int], bool]
_OPERATORS = ("!=", "!~", "<=", ">=", "=", "<", ">", "~")
_WORDS = ("and", "or", "not", "in")
_MAX_LENGTH = 10_000
_MAX_DEPTH = 50


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _as_list(text: str) -> list[str]:
    return sorted(part for part in re.split(r"[\[\],+\s]+", text) if part)


def _equals(stored: object, wanted: str) -> bool:
    if stored is None:
        return False
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
    """The condition on a value. What is missing satisfies != and !~ alone."""
    if operator in ("=", "!="):
        return lambda stored: _equals(stored, wanted) == (operator == "=")
    if operator in ("~", "!~"):
        pattern = wanted.replace("[^", "[!")  # as SQLite's GLOB negates a set

        def matches(stored: object) -> bool:
            if stored is not None and not isinstance(stored, str):
                raise InvalidInput(f"condition on {field}: {operator} needs a text; use = != < <= > or >=")
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
            raise InvalidInput(f"condition on {field}: {operator} needs a number; use = or !=, or ~ with a pattern")
        return {"<": stored < right, "<=": stored <= right, ">": stored > right, ">=": stored >= right}[operator]
    return compares


class _Parser:
    def __init__(self, text: str, known: set[str]) -> None:
        self.text = text
        self.at = 0
        self.known = known

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
        return terms[0] if len(terms) == 1 else lambda jobs, index: any(term(jobs, index) for term in terms)

    def _all(self, depth: int) -> Predicate:
        terms = [self._one(depth)]
        while self._take(",") or self._take_word("and"):
            terms.append(self._one(depth))
        return terms[0] if len(terms) == 1 else lambda jobs, index: all(term(jobs, index) for term in terms)

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
            near = difflib.get_close_matches(field, sorted(self.known), 1)
            hint = f"; did you mean {near[0]}" if near else ""
            raise self._error(begin, f'unknown field "{field}" in a condition{hint}; known: {", ".join(sorted(self.known))}')
        self._skip()
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.at):
                self.at += len(operator)
                return self._on(field, argument, begin, operator, self._value())
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
            raise self._error(begin, "condition on epochs_to: name the test accuracy, as in epochs_to(0.9) <= 20"
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
                members.append(self._between(field, argument, begin, bounds.group(1), bounds.group(2)))
            else:
                members.append(self._on(field, argument, begin, "=", value))
            if not self._take(","):
                break
        if not self._take(")"):
            raise self._expected('"," or ")"')
        return members

    def _between(self, field: str, argument: float | None, begin: int, first: str, last: str) -> Predicate:
        low = self._on(field, argument, begin, ">=", first)
        high = self._on(field, argument, begin, "<=", last)
        return lambda jobs, index: low(jobs, index) and high(jobs, index)

    def _on(self, field: str, argument: float | None, begin: int, operator: str, value: str) -> Predicate:
        try:
            holds = _holds(field, operator, value)
        except InvalidInput as error:
            raise self._error(begin, str(error)) from None
        if field in INDICES:  # of one of the job's head ablations
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
        found = re.compile(f"{quote}((?:[^{quote}]|{quote}{quote})*){quote}").match(self.text, self.at)
        if found is None:
            raise self._error(self.at, "the quote is not closed")
        self.at = found.end()
        return found.group(1).replace(quote * 2, quote)


def select(jobs: JobRows, where: str | None, equals: Mapping[str, object]) -> JobRows:
    """The jobs of which all of it holds. A keyword's `__` stands for a dot, and a list for any of its values."""
    if not jobs.rows or (not (where and where.strip()) and not equals):
        return jobs
    known = set(_columns.JOBS) | jobs.field_names()
    predicates: list[Predicate] = []
    if where and where.strip():
        if len(where) > _MAX_LENGTH:
            raise InvalidInput(f"a condition of {len(where)} characters; at most {_MAX_LENGTH} are allowed")
        predicates.append(_Parser(where, known | set(DERIVED)).parse())
    for keyword, wanted in equals.items():
        name = keyword.replace("__", ".")
        if name not in known:
            raise InvalidInput(f'unknown field "{name}"; known: {", ".join(sorted(known))}')
        predicates.append(_any_of(name, wanted))
    return jobs.select([all(predicate(jobs, index) for predicate in predicates) for index in range(len(jobs.rows))])


def _any_of(name: str, wanted: object) -> Predicate:
    several: Iterable[object] = wanted if isinstance(wanted, (list, tuple, set, frozenset, range)) else [wanted]
    texts = [("true" if one else "false") if isinstance(one, bool) else str(one) for one in several]
    return lambda jobs, index: any(_equals(jobs.value(index, name), text) for text in texts)
