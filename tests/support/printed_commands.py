"""Finds the command lines of pelab's programs in documents, help texts and sources, and checks them
against the programs' --help."""

import re
import shlex
import subprocess

from forked_program import ForkedProgram

PROGRAMS = ("pelab", "pelab-server", "pelab-worker", "pelab-scale", "pelab-trainer")
_NAME = re.compile(
    r"(?<![\w/.-])(?:(?:\./)?(?:[\w.-]+/)*bin/)?(pelab(?:-server|-worker|-scale|-trainer)?)(?= |$)")
_ELLIPSIS = {"…", "...", "[options]"}


class Mistake(Exception):
    """A command line that the program would refuse."""


class Help:
    """The parsed output of `PROGRAM [COMMAND…] --help`."""

    def __init__(self, binaries, path):
        self.path = path
        program, words = binaries / path[0], [*path[1:], "--help"]
        if len(path) > 1:  # a program with many of them
            result = ForkedProgram.of(program).run(words)
        else:
            result = subprocess.run([program, *words], capture_output=True, text=True)
        result.check_returncode()
        self.text = result.stdout
        self.options = {}  # name -> whether it takes a value
        self.positionals = []
        self.subcommands = []
        section = ""
        for line in self.text.splitlines():
            if line and not line.startswith(" "):
                section = line.split(":")[0].split(" ")[0]
            if line.startswith("Usage: "):
                words = line.split()[1 + len(path):]
                self.positionals = [word for word in words
                                    if word.strip("[]") not in ("OPTIONS", "SUBCOMMAND")]
            if section == "Subcommands" and (found := re.match(r"  ([\w-]+)(?:  |$)", line)):
                self.subcommands.append(found.group(1))
            if section != "Examples" and (found := re.match(r"  (-[^ ].*?)(?:   *|$)", line)):
                self._add(found.group(1))
        if path == ["pelab-trainer"]:
            self.subcommands = re.findall(r"^  pelab-trainer (\w+)", self.text, re.MULTILINE)
            for name in re.findall(r"--[a-z][\w-]*", self.text):
                self.options.setdefault(name, True)

    def _add(self, column):
        names, _, value = re.sub(r" (Excludes|Needs): .*", "", column).partition(" ")
        while re.match(r"--?\w", value):  # "--device, --threads, --parent-fd as above"
            more, _, value = value.partition(" ")
            names += more
        for name in filter(None, names.split(",")):
            self.options.setdefault(name.split("=")[0].split(":")[0], bool(value) or "=" in column)

    def examples(self):
        """The lines below "Examples:" that begin with a program."""
        _, _, below = self.text.partition("\nExamples:\n")
        return [line.strip() for line in below.splitlines() if line.startswith("  pelab")]


class Commands:
    """The help of every program and command."""

    def __init__(self, binaries):
        self._binaries = binaries
        self._known = {}
        for program in PROGRAMS:
            self.below([program])

    def help(self, path):
        key = tuple(path)
        if key not in self._known:
            self._known[key] = Help(self._binaries, list(path))
        return self._known[key]

    def below(self, path):
        """The help of a program or command, and of all commands below it. Only pelab has
        commands with a help of their own."""
        top = self.help(path)
        names = top.subcommands if path[0] == "pelab" else []
        return [top, *(page for name in names for page in self.below([*path, name]))]

    def all(self):
        return list(self._known.values())

    def check(self, words, mentioned=False):
        """Raises Mistake if the words are not a valid command line. `mentioned`: the words are from
        prose, where required arguments may be left out."""
        at = self.help([words[0]])
        options = dict(at.options)
        given, rest, partial = [], list(words[1:]), mentioned
        while rest:
            word = rest.pop(0)
            if word in _ELLIPSIS:
                partial = True
            elif word == "--":
                given += rest
                break
            elif word.startswith("-") and len(word) > 1:
                name, equals, _ = word.partition("=")
                if name not in options:
                    raise Mistake(f"{' '.join(at.path)} has no option {name}")
                if options[name] and not equals:
                    if not rest and not mentioned:
                        raise Mistake(f"{name} needs a value")
                    rest = rest[1:]
            elif word in at.subcommands and not given:
                at = (self.help([*at.path, word]) if at.path == ["pelab"]
                      or at.path[0] == "pelab" else at)
                options.update(at.options)
                if at.path[0] == "pelab-trainer":
                    at.positionals = []
            else:
                given.append(word)
        self._check_positionals(at, given, partial)

    @staticmethod
    def _check_positionals(at, given, partial):
        least = sum(not word.startswith("[") for word in at.positionals)
        most = 10**6 if any("..." in word for word in at.positionals) else len(at.positionals)
        if len(given) > most:
            raise Mistake(f"{' '.join(at.path)} takes {most} arguments, not {given}")
        if (at.path[0] == "pelab" and not given and at.subcommands and len(at.path) == 1
            and not partial):
            raise Mistake("there is no command")
        if len(given) < least and not partial:
            raise Mistake(f"{' '.join(at.path)} needs {' '.join(at.positionals)}")


def split(line):
    """The words of the first pelab command in a shell line, and its environment; None if there is
    no such command."""
    line = re.sub(r"^\s*(?:\w+)?\$\s+", "", line)  # a prompt
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        words = list(lexer)
    except ValueError as error:
        raise Mistake(f"not a command line: {error}") from None
    environment = {}
    for start, word in enumerate(words):
        program = word.rsplit("/", 1)[-1]
        if program in PROGRAMS and (start == 0 or re.fullmatch(r"[|&;(<]+", words[start - 1])
                                    or all("=" in one for one in words[:start])):
            environment = dict(one.split("=", 1) for one in words[:start] if "=" in one)
            end = next((place for place in range(start, len(words))
                        if re.fullmatch(r"[|&;()<>]+", words[place])), len(words))
            return [program, *words[start + 1:end]], environment
    return None


def of_markdown(text):
    """Returns (line number, command line, whether prose only mentions it) for fenced blocks and
    inline code. A command that a backslash continues has the number of its first line."""
    found, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced and "──" not in line:  # these lines are drawings
            if found and not found[-1][2] and found[-1][1].endswith("\\"):
                begun, before, _ = found.pop()
                number, line = begun, before[:-1] + line
            found.append((number, line, False))
        elif not fenced:
            found += [(number, span, True) for span in re.findall(r"`([^`\n]+)`", line)]
    return [(number, line, mentioned) for number, line, mentioned in found if _NAME.search(line)]


_LITERAL = r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|`((?:[^`\\]|\\.)*)`'


def of_source(text):
    """Returns (line number, text) of each string that names a program. The text includes the
    strings appended to it, with X for every value."""
    text = re.sub(r"^\s*(?://|#include).*$", "", text, flags=re.MULTILINE)
    found = []
    for literal in re.finditer(_LITERAL, text):
        inside = next(group for group in literal.groups() if group is not None)
        for name in re.finditer(_NAME.pattern.replace("(?= |$)", "(?= )"), inside):
            found.append((text.count("\n", 0, literal.start()) + 1,
                          inside[name.start():] + _behind(text, literal.end())))
    return found


def _behind(text, at):
    """The remaining strings of the statement. Anything between two of them, except spaces, counts
    as a value."""
    end = min((place for place in (text.find(";", at), text.find("}", at)) if place >= 0),
              default=len(text))
    joined, last = "", at
    for literal in re.finditer(_LITERAL, text[at:end]):
        between = text[last:at + literal.start()]
        if re.match(r"\s*[)\]?:]", between):  # the call or the conditional expression has ended
            break
        joined += ("" if not between.strip() else "X" if re.search(r"\w", between) else "")
        joined += next(group for group in literal.groups() if group is not None)
        last = at + literal.end()
    return joined


def of_prose(text):
    """Parses a command in a message, up to where the sentence goes on: (program, command, its
    options)."""
    text = re.sub(r"\$\{[^}]*\}", "X", text)
    text = re.split(r"\\n|\n|[;`]|\. |, |\)| \(| –", text)[0]
    words = text.replace("\\u2026", "…").split()
    command = re.match(r"[\w-]*", words[1]).group() if len(words) > 1 else ""
    return (words[0].rsplit("/", 1)[-1], command,
            [word.strip(":.'\"").split("=")[0] for word in words if re.match(r"--?[a-z]", word)])
