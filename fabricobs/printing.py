"""All text that people read goes out here, so that nothing in it can act.

File names, log lines and texts of other programs may hold escape sequences, which move a cursor,
set a title or write the clipboard, and newlines, which forge lines of a journal. What Python calls
not printable (categories C and Z of Unicode, but for the blank) is shown as an escape: `\\x1b`,
`\\n`, `\\u202e`; a byte of a file name that is no UTF-8 as `\\xff`.
"""

import os
import re
import sys
from collections.abc import Callable
from typing import TextIO

_SURROGATES = range(0xDC80, 0xDD00)
# Python's notation, but for what the file system gives in place of a byte.
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MENTIONS = str.maketrans({"<": "‹", ">": "›", "@": "＠"})
_LINKS = re.compile(r"(://|\]\(|\bwww\.)", re.IGNORECASE)
_LINK_BREAKS = {"://": "[:]//", "](": "] (", "www.": "www[.]"}


def escaped(text: object) -> str:
    """Return a text as one line that does nothing but show."""
    told = str(text)
    return told if told.isprintable() else "".join(map(_shown, told))


def escaped_lines(text: str) -> str:
    """Return a text of several lines, each as `escaped` shows it."""
    return "\n".join(escaped(line) for line in text.split("\n"))


def chat_text(text: str) -> str:
    """Return one line in which a chat finds no mention, no link and no markup of either.

    Slack and Discord read `<!channel>` and `<@id>`, others `@name`; Markdown reads `[text](link)`;
    all of them make links of addresses. What replaces them looks alike.
    """
    return _LINKS.sub(lambda m: _LINK_BREAKS[m[0].lower()], escaped(text)).translate(_MENTIONS)


def show(
    text: str = "", *, file: TextIO | None = None, colour: Callable[[str], str] | None = None
) -> None:
    """Print lines that are an answer, to standard output; a terminal gets them in colour."""
    out = file or sys.stdout
    # A terminal whose character set lacks something gets an escape, not a traceback.
    encoding = out.encoding or "utf-8"
    told = escaped_lines(text).encode(encoding, "backslashreplace").decode(encoding)
    print(told if colour is None or not shows_colour(out) else colour(told), file=out)
    out.flush()


def shows_colour(out: TextIO) -> bool:
    """Say whether a stream is a terminal that shows colours (https://no-color.org)."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_data(text: str, *, end: str = "\n") -> None:
    """Print what a program may read: exactly, but escaped where a person sees it."""
    if sys.stdout.isatty():
        show(text.removesuffix("\n"))
    else:
        sys.stdout.write(text + end)


def note(text: str) -> None:
    """Print a note to standard error, in one line."""
    show(f"fabricobs: {escaped(text)}", file=sys.stderr)


def note_lines(text: str) -> None:
    """Print a note of several lines; those after the first are indented: none looks like a note."""
    first, *more = text.split("\n")
    show("\n".join([f"fabricobs: {first}", *(f"  {line}" for line in more)]), file=sys.stderr)


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code in _SURROGATES:
        code -= 0xDC00
    if character in _NAMED:
        return _NAMED[character]
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
