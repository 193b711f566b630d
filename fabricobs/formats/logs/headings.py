"""Headings above the lines of one host, as tools print that run a command on many.

`gpu01 | CHANGED | rc=0 >>` of ansible, `[1] 10:00:00 [SUCCESS] gpu01` of parallel-ssh, the rules of
`clush -b` and dshbak, `==> gpu01/train.log <==` of tail. What a heading says holds until the next.
"""

import re

from fabricobs.formats.logs.prefixes import NOTHING, Told

_NAME = r"[A-Za-z0-9][\w.-]*"
HEADINGS = (
    rf"(?P<host>{_NAME}) \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE!)(?: \| rc=\d+)? (?:>>|=>.*)",
    rf"\[\d+\] \d\d:\d\d:\d\d \[(?:SUCCESS|FAILURE)\] (?P<host>{_NAME})(?: Exited.*)?",
    r"==> \S.* <==",
)
_HEADINGS = tuple(re.compile(expression) for expression in HEADINGS)
_RULE = re.compile(r"-{8,}")
_ONE_HOST = re.compile(_NAME)
# A block of clush: a rule, a host or several, a rule.
_BLOCK = re.compile(rf"^-{{8,}}\r?\n{_NAME}(?:[\[,].*)?(?: \(\d+\))?\r?\n-{{8,}}\r?$", re.MULTILINE)


def has_blocks(text: str) -> bool:
    """Say whether a text has blocks of clush or dshbak."""
    return _BLOCK.search(text) is not None


class Headings:
    """The headings of one file; `by_rules` says that hosts stand between rules of dashes."""

    def __init__(self, *, by_rules: bool) -> None:
        self._by_rules = by_rules
        self._rules = 0  # of the heading that is being read
        self.told: Told = NOTHING

    def takes(self, line: str) -> bool:
        """Say whether the line is part of a heading."""
        text = line.strip()
        if self._by_rules and self._takes_block(text):
            return True
        found = next(filter(None, (heading.fullmatch(text) for heading in _HEADINGS)), None)
        if found is None:
            return False
        self.told = {name: text for name, text in found.groupdict().items() if text is not None}
        return True

    def _takes_block(self, text: str) -> bool:
        if _RULE.fullmatch(text):
            self._rules = (self._rules + 1) % 2
            return True
        if self._rules:
            # Hosts that said the same share a block: nobody's lines.
            self.told = {"host": text} if _ONE_HOST.fullmatch(text) else NOTHING
            return True
        return False
