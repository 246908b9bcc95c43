"""Compares versions of Debian and of npm."""
import re

Part = list[tuple[tuple[int, ...], int]]  # a text, as pairs of letters and a number

_REPACKED = re.compile(r"[.+~](dfsg|ds)[\d.]*$")


def _letters(text: str) -> tuple[int, ...]:
    # A tilde sorts before the end of the text, letters before all other characters.
    return (*(-1 if c == "~" else ord(c) if c.isalpha() else ord(c) + 256 for c in text), 0)


def _part(text: str) -> Part:
    # The last pair is always the empty one, so the end of a text is compared, too.
    return [(_letters(letters), int(digits or 0))
            for letters, digits in re.findall(r"(\D*)(\d*)", text)]


def debian(version: str) -> tuple[int, Part, Part]:
    """Sorts as `dpkg --compare-versions` does (deb-version(7))."""
    epoch, _, rest = version.rpartition(":")
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "0")
    return int(epoch or 0), _part(upstream), _part(revision)


def authors(version: str) -> Part:
    """Sorts versions of authors, those of npm among them: 1.0.0-rc.1 is before 1.0.0."""
    return _part(version.partition("+")[0].replace("-", "~"))


def upstream(version: str) -> str:
    """The authors' version in one of Debian's: 1.2.13 in 1:1.2.13.dfsg-1+b1."""
    without_epoch = version.rpartition(":")[2]
    return _REPACKED.sub("", without_epoch.rpartition("-")[0] or without_epoch)
