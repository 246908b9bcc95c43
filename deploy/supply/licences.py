"""Licences as SPDX identifiers, from Debian's copyright files and from package.json."""
from __future__ import annotations

import pathlib
import re
from typing import Any

DOCS = pathlib.Path("/usr/share/doc")

# Debian's short names, in lower case, where they differ from SPDX by more than their case.
_DEBIAN = {
    "expat": "MIT", "apache-2": "Apache-2.0", "bsd-2": "BSD-2-Clause", "bsd-3": "BSD-3-Clause",
    "bsd3": "BSD-3-Clause", "cc0": "CC0-1.0", "openldap-2.8": "OLDAP-2.8",
    "gfdl-niv-1.3": "GFDL-1.3-no-invariants-only",
}
_SPDX = {name.lower(): name for name in (
    "0BSD", "Apache-2.0", "Artistic-2.0", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause",
    "BSD-3-Clause-Clear", "BSD-4-Clause", "BSD-4-Clause-UC", "BSL-1.0", "Beerware",
    "BlueOak-1.0.0", "CC-BY-3.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC0-1.0", "FSFAP", "FSFULLR", "FTL",
    "GFDL-1.3-no-invariants-only", "ICU", "IJG", "ISC", "Libpng", "MIT", "MPL-1.1", "MPL-2.0",
    "NTP", "OFL-1.1", "OLDAP-2.8", "OpenSSL", "Python-2.0", "TCL", "Unlicense", "W3C", "X11",
    "Zlib", "bzip2-1.0.6", "curl", "libtiff")}
_GNU = re.compile(r"([LA]?GPL)-?v?(\d)(?:\.(\d))?(?:\.0)?(\+)?", re.IGNORECASE)
_GNU_VERSIONS = {"GPL": ("1.0", "2.0", "3.0"), "LGPL": ("2.0", "2.1", "3.0"),
                 "AGPL": ("1.0", "3.0")}


def _identifier(name: str) -> str | None:
    gnu = _GNU.fullmatch(name)
    if gnu:
        family, version = gnu[1].upper(), f"{gnu[2]}.{gnu[3] or 0}"
        later = "or-later" if gnu[4] else "only"
        return f"{family}-{version}-{later}" if version in _GNU_VERSIONS[family] else None
    return _SPDX.get(_DEBIAN.get(name.lower(), name).lower())


def _in_brackets(expressions: list[str]) -> str:
    """All of the expressions, as one."""
    if len(expressions) == 1:
        return expressions[0]
    return " AND ".join(f"({text})" if " OR " in text else text for text in expressions)


def expression(text: str) -> str | None:
    """The SPDX expression of a licence as Debian writes it: "GPL-2+ or Expat"; None if it has a
    part without an identifier."""
    groups = []
    for group in re.split(r",\s+and\s+", text.strip(), flags=re.IGNORECASE):
        words = re.split(r"\s+(or|and)\s+", group, flags=re.IGNORECASE)
        found = [word.upper() if at % 2 else _identifier(word) for at, word in enumerate(words)]
        if None in found:
            return None
        groups.append(" ".join(word for word in found if word))
    return _in_brackets(groups)


def _stanzas(text: str) -> list[dict[str, str]]:
    """The stanzas of a file of fields: name in lower case -> value."""
    found = []
    for block in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, str] = {}
        name = ""
        for line in block.split("\n"):
            if line[:1] in (" ", "\t"):
                fields[name] = f"{fields.get(name, '')}\n{line.strip()}"
            else:
                name, _, value = line.partition(":")
                name = name.lower()
                fields[name] = value.strip()
        found.append(fields)
    return found


def _names(text: str) -> set[str] | None:
    """The licences of a program's own files in a copyright file; None if the file is not in the
    format DEP-5. Files of the packaging (debian/*) are not linked."""
    stanzas = _stanzas(text)
    if "format" not in stanzas[0]:
        return None
    return {stanza.get("license", "").split("\n")[0].strip() for stanza in stanzas
            if "files" in stanza and
            any(not name.startswith("debian/") for name in stanza["files"].split())}


def of_debian(package: str, docs: pathlib.Path = DOCS) -> list[dict[str, Any]]:
    """CycloneDX's `licenses` of an installed package: one expression if every licence has an
    identifier, else each by identifier or name, with the file that has its text."""
    path = docs / package / "copyright"
    where = f"file://{DOCS}/{package}/copyright"
    try:
        names = _names(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return [{"license": {"name": "unknown: the package has no copyright file"}}]
    if not names:
        return [{"license": {"name": "see the copyright file", "url": where}}]
    expressions = {name: expression(name) for name in sorted(names)}
    known = sorted({found for found in expressions.values() if found})
    if all(expressions.values()):
        return [{"expression": _in_brackets(known)} if len(known) > 1 or " " in known[0]
                else {"license": {"id": known[0]}}]
    identifiers = [name for name in known if " " not in name]
    others = [name for name, found in expressions.items() if found not in identifiers]
    return [*({"license": {"id": name}} for name in identifiers),
            *({"license": {"name": name or "see the copyright file", "url": where}}
              for name in others)]


def of_npm(package: str, licence: str) -> list[dict[str, Any]]:
    """CycloneDX's `licenses` for the field `license` of a package.json."""
    if licence in _SPDX.values():
        return [{"license": {"id": licence}}]
    if re.search(r" (OR|AND) ", licence):
        return [{"expression": licence}]
    return [{"license": {"name": licence or "not said",
                         "url": f"https://www.npmjs.com/package/{package}"}}]
