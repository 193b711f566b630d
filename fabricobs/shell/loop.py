"""The shell of `fabricobs sql` on a terminal: reads statements and commands, prints answers."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from fabricobs import stopping
from fabricobs.printing import escaped, note, show
from fabricobs.querying import OpenSession
from fabricobs.resources import state_folder
from fabricobs.shell.commands import COMMANDS, Shell, check_printed
from fabricobs.shell.completion import Names, SqlCompleter
from fabricobs.shell.text import is_whole
from fabricobs.store.inspection import one_line
from fabricobs.store.reading import reading
from fabricobs.store.sandbox import QueryError
from fabricobs.store.session import keywords

_PROMPT = "fabricobs> "
_WORTH_TELLING_S = 1.0


def run_shell(
    open_session: OpenSession, store: Path, output: str = "table", extra: Sequence[Path] = ()
) -> None:
    """Ask the store in a shell until the user leaves it; nothing is written but the history."""
    check_printed(output)
    stopping.leave_to_defaults()
    with reading(store):
        shell = Shell(open_session(None), extra, output)
    session: PromptSession[str] = PromptSession(
        history=open_history(state_folder() / "sql_history"),
        completer=SqlCompleter(names_of(shell)),
        complete_in_thread=True,
        auto_suggest=AutoSuggestFromHistory(),
        multiline=Condition(lambda: not is_whole(get_app().current_buffer.text)),
        prompt_continuation=lambda width, line, wrapped: "." * (width - 1) + " ",
    )
    told = "read-only. End statements with a semicolon; .help lists the commands."
    show(f"{escaped(store)}, {told}")
    while not shell.leaving:
        try:
            text = session.prompt(_PROMPT)
            # A shell left open must not keep the watch from merging batches.
            with reading(store):
                _answer(shell, text)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def names_of(shell: Shell) -> Names:
    """Return what the shell completes."""
    arguments = {name: tuple(command.choices(shell)) for name, command in COMMANDS.items()}
    return Names(shell.columns, tuple(keywords(shell.connection)), arguments)


def open_history(path: Path) -> History:
    """Open the history for this user alone; one that cannot be written lasts for this shell."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with path.open("a"):
            return FileHistory(path)
    except OSError as error:
        note(f"history not kept in {path}: {error.strerror}")
        return InMemoryHistory()


def _answer(shell: Shell, text: str) -> None:
    """Print the answer to what was typed; a mistake is one line."""
    begun = time.monotonic()
    try:
        shell.run(text)
    except KeyboardInterrupt:
        show("stopped", file=sys.stderr)
    except QueryError as error:
        show(one_line(error), file=sys.stderr)
    else:
        taken_s = time.monotonic() - begun
        if taken_s >= _WORTH_TELLING_S:
            show(f"{taken_s:.1f} s", file=sys.stderr)
