"""The table of doors in docs/security.md, made of the cases the tests try."""

import tomllib
from pathlib import Path

_CASES = Path(__file__).parents[2] / "tests" / "doors" / "doors.toml"


def doors_table() -> str:
    """Return one row a door: what is tried, an example, what happens."""
    rows = ["| tried | for example | what happens |", "|---|---|---|"]
    for door in tomllib.loads(_CASES.read_text(encoding="utf-8"))["door"]:
        example = f"`{door['sql'][0].replace('|', chr(92) + '|')}`" if "sql" in door else ""
        rows.append(f"| {door['way']} | {example} | {door['happens']} |")
    return "\n".join(rows)
