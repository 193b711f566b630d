"""The page of limits."""

from fabricobs.formats.limits import described

_HEAD = """# Limits

What reading one file may take. A file beyond a limit is refused or cut short by name, with the
limit in the note about it; all other files are read. The limits are fields of
`fabricobs/formats/limits.py`.

| limit | value | what it bounds | honest files |
|---|---|---|---|
"""


def limits_page() -> str:
    """Return the page: a row for each limit."""
    rows = (
        f"| `{name}` | {value} | {meaning} | {measured} |"
        for name, value, meaning, measured in described()
    )
    return _HEAD + "\n".join(rows) + "\n"
