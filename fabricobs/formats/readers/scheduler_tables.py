"""Tables that schedulers print, cut into cells: with separators, below a ruler, or of words.

`sacct`, `squeue` and `kubectl get pods -o wide` all print a header line, columns in any order.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# What the headers of sacct (-o), squeue (-o, -O) and kubectl call the columns that are needed.
_MEANINGS = {
    "jobid": "id",
    "jobname": "name",
    "name": "name",
    "nodelist": "nodes",
    "nodelist(reason)": "nodes",
    "state": "state",
    "st": "state",
    "start": "start",
    "start_time": "start",
    "end": "end",
    "end_time": "end",
    "elapsed": "elapsed",
    "time": "elapsed",
}
_POD_MEANINGS = {"name": "name", "status": "state", "age": "age", "node": "nodes"}
_SEPARATORS = "|\t;"
_RULER = re.compile(r"\s*-{2,}(?:\s+-{2,})*\s*")
_REASON = re.compile(r"\([^()]*\)$")
_POD_HEADER = re.compile(
    r"\s*(?:NAMESPACE\s+)?NAME\s+READY\s+STATUS\s+RESTARTS\s+AGE\s+IP\s+NODE\b"
)
_GAP = re.compile(r"\s{2,}")


@dataclass(frozen=True, slots=True)
class Table:
    """How the lines below a header are cut; `names` are the meanings, "" for other columns."""

    names: tuple[str, ...]
    separator: str | None = None
    spans: tuple[tuple[int, int], ...] = ()
    of_pods: bool = False

    def cells_of(self, line: str) -> dict[str, str] | None:
        """Return the cells of a row by what they mean; None for a line that is no row."""
        cells = self._cut(line)
        if cells is None or len(cells) != len(self.names):
            return None
        return {name: cell for name, cell in zip(self.names, cells, strict=True) if name}

    def _cut(self, line: str) -> Sequence[str] | None:
        if self.separator is not None:
            return [cell.strip() for cell in line.split(self.separator)]
        if self.spans:
            return [line[begin:end].strip() for begin, end in self.spans]
        if self.of_pods:
            return _GAP.split(line.strip())
        return self._words(line)

    def _words(self, line: str) -> list[str]:
        """Return the words of a line; a reason in brackets is one, and a list may be absent."""
        reason = _REASON.search(line.rstrip())
        words = line[: reason.start()].split() if reason else line.split()
        if reason:
            words.append(reason[0])
        if len(words) == len(self.names) - 1 and self.names[-1] == "nodes":
            words.append("")
        return words


def table_of(header: str) -> Table | None:
    """Return the table that a header line begins; None if it is no header."""
    if _POD_HEADER.match(header):
        titles = _GAP.split(header.strip())
        names = tuple(_POD_MEANINGS.get(title.lower(), "") for title in titles)
        return Table(names, of_pods=True)
    separator = next((each for each in _SEPARATORS if each in header), None)
    titles = header.split(separator) if separator else header.split()
    return _checked(Table(_meanings(titles), separator))


def ruled(header: str, ruler: str) -> Table | None:
    """Return the table whose columns are as wide as the dashes below its header."""
    if not _RULER.fullmatch(ruler):
        return None
    spans = tuple((dashes.start(), dashes.end()) for dashes in re.finditer("-+", ruler))
    return _checked(Table(_meanings([header[begin:end] for begin, end in spans]), spans=spans))


def _checked(table: Table) -> Table | None:
    """Return a table if it tells of jobs: their ids, and names or states."""
    return table if "id" in table.names and {"name", "state"} & set(table.names) else None


def _meanings(titles: Sequence[str]) -> tuple[str, ...]:
    """Return what columns mean: the first of those with one meaning counts."""
    found: list[str] = []
    for title in titles:
        meaning = _meaning(title, _MEANINGS)
        found.append("" if meaning in found else meaning)
    return tuple(found)


def _meaning(title: str, meanings: Mapping[str, str]) -> str:
    return meanings.get(title.strip().lower(), "")
