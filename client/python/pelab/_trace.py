"""The trace that calls belong to (W3C Trace Context, https://www.w3.org/TR/trace-context).

The rules are those of the command line (core/base/trace_context.h).
"""

from __future__ import annotations

import os
import re
import secrets

_VARIABLE = "TRACEPARENT"
_KEY = "traceparent"
_FORM = re.compile("([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?",
                   re.DOTALL)


def trace_of(traceparent: str) -> str | None:
    """The trace that such a text names, 32 digits; None if the text is not valid."""
    found = _FORM.fullmatch(traceparent)
    if found is None:
        return None
    version, trace_id, more = found.groups()
    # Only a later version may have more after the flags.
    return None if version == "ff" or (version == "00" and more is not None) else trace_id


class Trace:
    """One operation: the trace that TRACEPARENT names, otherwise a new one."""

    def __init__(self) -> None:
        self.trace_id = trace_of(os.environ.get(_VARIABLE, "")) or _digits(16)

    def metadata(self) -> list[tuple[str, str]]:
        """For one call: every call is a span of its own."""
        return [(_KEY, f"00-{self.trace_id}-{_digits(8)}-01")]


def _digits(size: int) -> str:
    """Hexadecimal digits of so many random bytes, not all 0."""
    return secrets.token_hex(size - 1) + f"{1 + secrets.randbelow(255):02x}"
