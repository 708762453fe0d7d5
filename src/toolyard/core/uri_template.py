"""RFC 6570 templates, read backwards: which URIs one makes, and of which values."""

from __future__ import annotations

import re
from functools import lru_cache

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_LONGEST_TEMPLATE = 2000


@lru_cache(maxsize=4096)
def template_pattern(template: str) -> re.Pattern[str] | None:
    """What the URIs of an RFC 6570 template look like, their variables as groups in the order of their names. None for
    one that is too long to be sensible, or repeats a name."""
    if len(template) > _LONGEST_TEMPLATE:
        return None
    parts: list[str] = []
    at = 0
    for found in _EXPRESSION.finditer(template):
        parts += [re.escape(template[at : found.start()]), _expression(found.group(1), found.group(2))]
        at = found.end()
    parts.append(re.escape(template[at:]))
    try:
        return re.compile("".join(parts))
    except re.error:
        return None


def _expression(operator: str, names: str) -> str:
    """Variables without an operator end at a slash, those of `+` and `#` do not, and queries may be left out."""
    variables = [re.sub(r"\W", "_", name.rstrip("*").partition(":")[0]) for name in names.split(",")]
    if operator in ("?", "&"):
        return r"(?:[?&][^#]*)?"
    character = "." if operator in ("+", "#") else "[^/?#]"
    repeat = "+"
    groups = ",".join(f"(?P<{name}>{character}{repeat})" for name in variables if name)
    return re.escape(operator if operator in "/.;#" else "") + groups
