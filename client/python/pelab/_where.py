"""Conditions on jobs, as text: `pe=rope and train.lr>=1e-4`, `seed in [0, 1] and not task=counting`.

    condition  FIELD = != < <= > >= VALUE, FIELD [not] in [VALUE, VALUE, …]
    joined by  and (or a comma), or, not, parentheses; `and` binds closer than `or`

FIELD is a column of the frame of jobs or a field of their specs. VALUE is a word, or text in quotation marks; with = and
!= a word may have * (any text) and ? (any character), and a list of choices or numbers is written `attention+ffn` or
`[0,3]`. What is missing is unequal to everything, and neither less nor greater than anything.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pelab import _columns
from pelab._jobs import JobRows
from pelab.errors import InvalidInput

Predicate = Callable[[JobRows, int], bool]
_OPERATORS = ("!=", "<=", ">=", "==", "=", "<", ">")


@dataclass(frozen=True)
class _Value:
    text: str
    quoted: bool = False


def _fail(text: str, at: int, wanted: str) -> InvalidInput:
    rest = text[at:at + 40] or "the end"
    return InvalidInput(f'condition "{text}": {wanted} was expected at "{rest}"')


def _number(text: object) -> float | None:
    if isinstance(text, bool) or text is None:
        return None
    if isinstance(text, (int, float)):
        return float(text)
    try:
        return float(str(text))
    except ValueError:
        return None


def _as_list(text: str) -> list[str]:
    return sorted(part for part in re.split(r"[\[\],+\s]+", text) if part)


def _equals(stored: object, wanted: _Value) -> bool:
    if stored is None:
        return False
    if isinstance(stored, bool):
        return wanted.text == ("true" if stored else "false")
    if isinstance(stored, (int, float)):
        if re.fullmatch(r"[+-]?\d+", wanted.text) and isinstance(stored, int):
            return stored == int(wanted.text)
        number = _number(wanted.text)
        return number is not None and stored == number
    if isinstance(stored, (list, tuple)):
        return sorted(str(member) for member in stored) == _as_list(wanted.text)
    if not wanted.quoted and ("*" in wanted.text or "?" in wanted.text):
        pattern = wanted.text.replace("[", "[[]")  # brackets are themselves
        return fnmatchcase(str(stored), pattern)
    return str(stored) == wanted.text


def _compare(field: str, operator: str, wanted: _Value) -> Predicate:
    if operator in ("=", "=="):
        return lambda jobs, index: _equals(jobs.value(index, field), wanted)
    if operator == "!=":
        return lambda jobs, index: not _equals(jobs.value(index, field), wanted)
    limit = _number(wanted.text)
    if limit is None:
        raise InvalidInput(f'condition on {field}: "{wanted.text}" is not a number, which {operator} needs')
    right = limit

    def holds(jobs: JobRows, index: int) -> bool:
        left = jobs.value(index, field)
        if left is None:
            return False
        if isinstance(left, bool) or not isinstance(left, (int, float)):
            raise InvalidInput(f"condition on {field}: {operator} needs a number; use = or !=")
        return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
    return holds


class _Parser:
    def __init__(self, text: str, known: set[str]) -> None:
        self.text = text
        self.at = 0
        self.known = known

    def parse(self) -> Predicate:
        predicate = self._either()
        self._skip()
        if self.at < len(self.text):
            raise _fail(self.text, self.at, "and, or, a comma or the end")
        return predicate

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _word(self, *words: str) -> bool:
        """Whether one of these comes next; it is taken."""
        self._skip()
        for word in words:
            end = self.at + len(word)
            if self.text[self.at:end].lower() != word:
                continue
            if word.isalpha() and end < len(self.text) and (self.text[end].isalnum() or self.text[end] in "_.=!<>"):
                continue
            self.at = end
            return True
        return False

    def _either(self) -> Predicate:
        terms = [self._both()]
        while self._word("or"):
            terms.append(self._both())
        return terms[0] if len(terms) == 1 else lambda jobs, index: any(term(jobs, index) for term in terms)

    def _both(self) -> Predicate:
        terms = [self._one()]
        while self._word("and", ","):
            terms.append(self._one())
        return terms[0] if len(terms) == 1 else lambda jobs, index: all(term(jobs, index) for term in terms)

    def _one(self) -> Predicate:
        if self._word("not"):
            inner = self._one()
            return lambda jobs, index: not inner(jobs, index)
        if self._word("("):
            grouped = self._either()
            if not self._word(")"):
                raise _fail(self.text, self.at, "a closing parenthesis")
            return grouped
        return self._condition()

    def _field(self) -> str:
        self._skip()
        match = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*").match(self.text, self.at)
        if match is None:
            raise _fail(self.text, self.at, "a field")
        name = match.group()
        if name not in self.known:
            near = difflib.get_close_matches(name, sorted(self.known), 1)
            hint = f"; did you mean {near[0]}" if near else ""
            raise InvalidInput(f'unknown field "{name}" in a condition{hint}; known: {", ".join(sorted(self.known))}')
        self.at = match.end()
        return name

    def _condition(self) -> Predicate:
        field = self._field()
        for operator in _OPERATORS:
            if self._word(operator):
                return _compare(field, operator, self._value(in_list=False))
        negated = self._word("not")
        if not self._word("in"):
            raise _fail(self.text, self.at, "one of = != < <= > >=, or in")
        values = self._list()
        return lambda jobs, index: any(_equals(jobs.value(index, field), value) for value in values) != negated

    def _list(self) -> list[_Value]:
        for opening, closing in (("[", "]"), ("(", ")")):
            if not self._word(opening):
                continue
            values = [self._value(in_list=True)]
            while self._word(","):
                values.append(self._value(in_list=True))
            if not self._word(closing):
                raise _fail(self.text, self.at, f"a comma or {closing}")
            return values
        raise _fail(self.text, self.at, "a list such as [0, 1]")

    def _value(self, in_list: bool) -> _Value:
        self._skip()
        if self.text[self.at:self.at + 1] in ("'", '"'):
            end = self.text.find(self.text[self.at], self.at + 1)
            if end < 0:
                raise _fail(self.text, self.at, "text with its closing quotation mark")
            value = self.text[self.at + 1:end]
            self.at = end + 1
            return _Value(value, quoted=True)
        start, depth = self.at, 0
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in "([":
                depth += 1
            elif character in ")]":
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and (character == "," or character.isspace()):
                break
            self.at += 1
        if self.at == start:
            raise _fail(self.text, start, "a value")
        return _Value(self.text[start:self.at])


def select(jobs: JobRows, where: str | None, equals: Mapping[str, object]) -> JobRows:
    """The jobs of which all of it holds. A keyword's `__` stands for a dot, and a list for any of its values."""
    if not (where and where.strip()) and not equals:
        return jobs
    if not jobs.rows:
        return jobs
    known = set(_columns.JOBS) | jobs.field_names()
    predicates: list[Predicate] = []
    if where and where.strip():
        predicates.append(_Parser(where, known).parse())
    for keyword, wanted in equals.items():
        name = keyword.replace("__", ".")
        if name not in known:
            raise InvalidInput(f'unknown field "{name}"; known: {", ".join(sorted(known))}')
        predicates.append(_any_of(name, wanted))
    return jobs.select([all(predicate(jobs, index) for predicate in predicates) for index in range(len(jobs.rows))])


def _any_of(name: str, wanted: object) -> Predicate:
    several: Sequence[object] = wanted if isinstance(wanted, (list, tuple, set, frozenset, range)) else [wanted]  # type: ignore[assignment]
    texts = [_Value(("true" if one else "false") if isinstance(one, bool) else str(one), quoted=True) for one in several]
    return lambda jobs, index: any(_equals(jobs.value(index, name), text) for text in texts)
