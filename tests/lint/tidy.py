"""clang-tidy over the project's C++ sources, several files of a target at a time.

Most of the time of clang-tidy goes into the headers of gRPC, Protobuf and LibTorch, so the sources
of a target are checked as one text, as the release build compiles them (docs/adr/0030). The
commands are those of a configured build folder. A text is checked again if it, its command, the
configuration, clang-tidy or any file that it includes has changed.
"""
import json
import pathlib
import re
import shlex
import subprocess
import time
from dataclasses import dataclass, field

from cache import Cache, digest

GROUP = 28  # sources at a time, as many as CMakePresets.json compiles at a time
OWN = re.compile(r"(core|server|client|worker)/.*\.cc$")
FINDING = re.compile(r"^(\S+?):(\d+):(\d+): (warning|error): (.*)$")


@dataclass
class Group:
    """Sources that are checked as one text, and the compiler's command for one of them."""
    command: list[str]
    folder: str
    sources: list[str]
    text: str = ""
    starts: list[tuple[int, str]] = field(default_factory=list)  # (first line, source)

    def build(self, root: pathlib.Path) -> None:
        line = 1
        parts = []
        for source in self.sources:
            code = (root / source).read_text()
            code += "" if code.endswith("\n") else "\n"
            self.starts.append((line, source))
            parts.append(code)
            line += code.count("\n")
        self.text = "".join(parts)

    def place(self, line: int) -> tuple[str, int]:
        """The source and its line for a line of the text."""
        first, source = max(start for start in self.starts if start[0] <= line)
        return source, line - first + 1


def _sources_of(entry: dict[str, str], root: pathlib.Path) -> list[str]:
    """The sources of the project that a command compiles, relative to the root."""
    file = pathlib.Path(entry["file"])
    files = [file]
    if "Unity" in file.parts and file.exists():
        files = [pathlib.Path(name) for name in re.findall(r'#include "(.*)"', file.read_text())]
    names = [name.relative_to(root).as_posix() for name in files if name.is_relative_to(root)]
    return [name for name in names if OWN.match(name)]


def _flags(entry: dict[str, str]) -> list[str]:
    """The command without its source, its output and NDEBUG (assertions are checked too)."""
    words = shlex.split(entry["command"])
    if "ccache" in words[0]:
        del words[0]
    kept = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-c", "-MF", "-MT", "-MQ"):
            skip = True
        elif word not in ("-DNDEBUG", "-MD", "-MMD", entry["file"]):
            kept.append(word)
    return kept


def groups(build: pathlib.Path, root: pathlib.Path, only: set[str] | None = None) -> list[Group]:
    """The groups of a configured build folder, small ones first; of the sources in `only` if it is
    given. Sources with the same flags in one target share a group."""
    found: dict[tuple[str, ...], Group] = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        target = re.search(r"-o (\S+\.dir)/", entry["command"])
        sources = [name for name in _sources_of(entry, root) if only is None or name in only]
        if sources and target:
            command = _flags(entry)
            group = found.setdefault((target[1], *command), Group(command, entry["directory"], []))
            group.sources += sources
    made: dict[tuple[str, ...], Group] = {}  # two programs may compile a source with the same flags
    for group in found.values():
        group.sources = sorted(set(group.sources))
        count = -(-len(group.sources) // GROUP)
        size = -(-len(group.sources) // count)
        for at in range(0, len(group.sources), size):
            part = group.sources[at:at + size]
            made[*group.command, *part] = Group(group.command, group.folder, part)
    for group in made.values():
        group.build(root)
    return sorted(made.values(), key=lambda group: len(group.text))


class Tidy:
    def __init__(self, cache: Cache, root: pathlib.Path, work: pathlib.Path) -> None:
        self.cache, self.root, self.work = cache, root, work
        version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True,
                                 check=True).stdout
        self.tool = digest(version, (root / ".clang-tidy").read_bytes(),
                           pathlib.Path(__file__).read_bytes())

    def key(self, group: Group) -> str:
        return digest("clang-tidy", self.tool, *group.command, *group.sources, group.text)

    def check(self, group: Group, until: float | None = None) -> list[str] | None:
        """What clang-tidy finds, as lines; None if the time (of time.monotonic) is over first."""
        key = self.key(group)
        source = self.work / f"{key[:16]}.cc"
        self.work.mkdir(parents=True, exist_ok=True)
        source.write_text(group.text)
        limit = None if until is None else until - time.monotonic()
        try:
            if limit is not None and limit <= 0:
                return None
            # Findings are errors (.clang-tidy), and so is what the compiler cannot read.
            done = subprocess.run(
                ["clang-tidy", "--quiet", source, "--", *group.command[1:]],
                cwd=group.folder, capture_output=True, text=True, timeout=limit)
            found, elsewhere = self._findings(group, source, done.stdout)
            if done.returncode and not found and not elsewhere:
                found = [f"clang-tidy ended with {done.returncode}: {done.stderr[-2000:]}"]
            includes = self._includes(group, source)
            if not found and includes:  # without them the result could not be told to be old
                self.cache.keep(key, includes)
            return found
        except subprocess.TimeoutExpired:
            return None
        finally:
            source.unlink()

    def _includes(self, group: Group, source: pathlib.Path) -> list[str]:
        """Every file that the text includes, system headers too, from the compiler; none if it
        cannot tell."""
        made = subprocess.run([*group.command, "-M", "-MT", "x", source], cwd=group.folder,
                              capture_output=True, text=True).stdout
        names = made.removeprefix("x:").replace("\\\n", " ").split()
        folder = pathlib.Path(group.folder)
        return sorted({str(folder / name) for name in names} - {str(source)})

    def _findings(self, group: Group, source: pathlib.Path,
                  output: str) -> tuple[list[str], bool]:
        """The findings in the project's files, and whether there were others. The headers of
        LibTorch 1.13 are no valid C++20 for clang 14, which goes on after their errors: only the
        checks of clang-analyzer are lost then."""
        found, elsewhere, shown = [], False, False
        for line in output.splitlines():
            match = FINDING.match(line)
            if match:
                path, number = match[1], int(match[2])
                if path == str(source):
                    path, number = group.place(number)
                own = path == match[1] and pathlib.Path(path).is_relative_to(self.root)
                shown = own or path != match[1]
                elsewhere |= not shown
                if own:
                    path = pathlib.Path(path).relative_to(self.root).as_posix()
                line = f"{path}:{number}:{match[3]}: {match[5]}"
            if shown:
                found.append(line)
        return found, elsewhere
