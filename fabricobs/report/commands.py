"""Commands in the sentences of findings: what stands in backticks, as Markdown has it."""

import re
from collections.abc import Iterator

from markupsafe import Markup, escape

_COMMAND = re.compile(r"`([^`]+)`")


def parts_of(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, and whether each is a command."""
    for number, part in enumerate(_COMMAND.split(text)):
        if part:
            yield part, number % 2 == 1


def with_commands(text: str) -> Markup:
    """Return a text as HTML: commands are code, those of several words have a button to copy."""
    return Markup("").join(
        Markup("<code{}>{}</code>").format(Markup(' class="copy"') if " " in part else "", part)
        if is_command
        else escape(part)
        for part, is_command in parts_of(text)
    )
