"""Completion in the shell: commands and their arguments, tables, views, columns, words of SQL."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from fabricobs.shell.text import (
    in_quotes,
    is_command,
    qualifier,
    sources,
    takes_table,
    word_before,
)


@dataclass(frozen=True, slots=True)
class Names:
    """What can be named: columns (name, type) by table, words of SQL, arguments by command."""

    columns: Mapping[str, list[tuple[str, str]]]
    keywords: tuple[str, ...]
    arguments: Mapping[str, tuple[str, ...]]


class SqlCompleter(Completer):
    """Completes the word before the cursor by what may stand there."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._tables = frozenset(names.columns)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield what the word may become, the likeliest first."""
        before = document.text_before_cursor
        if is_command(before):
            yield from self._of_command(before.lstrip())
        elif not in_quotes(before):
            word = word_before(before)
            yield from self._of_sql(before[: len(before) - len(word)], word, document.text)

    def _of_command(self, before: str) -> Iterator[Completion]:
        command, blank, typed = before.partition(" ")
        if not blank:
            yield from _fitting(command, ((name, "") for name in self._names.arguments))
        else:
            wanted = self._names.arguments.get(command, ())
            yield from _fitting(typed.lstrip(), ((name, "") for name in wanted))

    def _of_sql(self, before: str, word: str, text: str) -> Iterator[Completion]:
        tables = [(name, "table") for name in self._names.columns]
        if takes_table(before):
            yield from _fitting(word, tables)
            return
        read = sources(text, self._tables)
        owner = qualifier(before)
        if owner is not None:
            table = read.get(owner.lower(), owner.lower())
            yield from _fitting(word, self._names.columns.get(table, ()))
            return
        of_read = [column for table in read.values() for column in self._names.columns[table]]
        yield from _fitting(word, dict(of_read).items())
        if word:
            yield from _fitting(word, tables)
            yield from _fitting(word, ((self._cased(w, word), "") for w in self._names.keywords))

    @staticmethod
    def _cased(keyword: str, like: str) -> str:
        return keyword.upper() if like.isupper() else keyword


def _fitting(typed: str, candidates: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    for name, meta in candidates:
        if name.lower().startswith(typed.lower()) and name != typed:
            yield Completion(name, start_position=-len(typed), display_meta=meta)
