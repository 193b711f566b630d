"""Reading big logs: the compiled matcher takes the lines it is sure of, whole columns at a time.

What it leaves is read line by line, in order, so that a big file gives the rows a small one would.
What lines keep for those below is put into their rows afterwards, a column at a time.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fabricobs.formats.compiled import matches as m
from fabricobs.formats.compiled.jit_cache import entry, words_of
from fabricobs.formats.compiled.programs import NUMBER, TIME
from fabricobs.formats.context import Context, column_names
from fabricobs.formats.logs.dispatch import Dispatcher
from fabricobs.formats.logs.known_prefixes import Prefix, Stamp, judge, moments
from fabricobs.formats.logs.layers import Layers, compact
from fabricobs.formats.logs.lines import LineFormat, LineReader, TextReader
from fabricobs.formats.logs.prefixes import NOTHING
from fabricobs.formats.logs.rulebook import TYPE_NAMES, Slot, rulebook
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.source import LONGEST_LINE, LineBlock
from fabricobs.formats.values import NO_VALUE, VALUE_TYPES, ZONED, Unfit, time_of
from fabricobs.formats.values.texts import parse_text

# Below this the line-by-line way is done before the matcher is loaded and its rules are compiled,
# which take 0.3 s of a process; 1 MB of lines takes 0.4 s.
LEAST_BYTES = 1 << 20

_NEWLINE = 10
_BEYOND_ASCII = 128
# Fewer texts are converted one by one sooner.
_MANY_TEXTS = 200
_ABSENT = m.ABSENT

SlowLine = Callable[[LineBlock], None]
Places = NDArray[np.int64]


def can_read(compiled: object, size_bytes: int) -> bool:
    """Say whether a file is worth the matcher, and its format fit for it."""
    return (
        size_bytes >= LEAST_BYTES
        and isinstance(compiled, LineFormat)
        and compiled.contains.isascii()
    )


def readable(readers: Sequence[TextReader], context: Context) -> tuple[list[LineReader], bool]:
    """Return which readers of a file the matcher can stand for, and whether those are all.

    If they are not, it takes no lines but those that bear the mark of one.
    """
    by_line = [reader for reader in readers if isinstance(reader, LineReader)]
    whole = len(by_line) == len(readers) and not context.placed and not context.blocks
    if whole:
        return by_line, True
    marked = [r for r in by_line if r.format.owns_lines and r.format.name not in context.placed]
    return marked, False


class BulkReader:
    """The `lines` formats of one big file.

    Rows are held until there is no more room for them; what `flush` writes then makes room again.
    """

    def __init__(
        self,
        readers: Sequence[TextReader],
        context: Context,
        rows: Rows,
        tally: Tally,
        slow_line: SlowLine,
        flush: Callable[[], None],
        dispatcher: Dispatcher,
    ) -> None:
        self._readers, whole = readable(readers, context)
        self._context, self._rows, self._tally = context, rows, tally
        self._slow_line, self._flush, self._dispatcher = slow_line, flush, dispatcher
        marks = {
            r.format.contains for r in readers if isinstance(r, LineReader) and r.format.contains
        }
        formats = tuple(reader.format for reader in self._readers)
        self._book = rulebook(formats, tuple(sorted(marks)), context.labels)
        self._match = entry("kernel", "match_lines")
        self._vocabulary = m.new_vocabulary(len(self._book.conditions))
        self._found = m.new_found(self._book.most_slots, len(self._book.entries))
        self._room = m.new_room(self._book.most_groups, len(self._book.registers))
        self._progress = m.new_progress()
        self._progress[m.WHOLE_FILE] = whole
        self._prefixes: dict[int, Prefix] = {}
        self._values: dict[int, Any] = {}
        self._first_row = 0  # of those not handed over
        self._keeping = np.array([bool(e.rule.context) for e in self._book.entries] or [False])
        self._groups = np.array(
            [self._book.group_of[e.format] for e in self._book.entries] or [-1], np.int64
        )
        self._advancing = np.array([bool(e.rule.increment) for e in self._book.entries] or [False])
        # Which entries give rows of a table, by format and table.
        self._members: dict[tuple[int, str], NDArray[np.bool_]] = {}
        for place, each in enumerate(self._book.entries):
            key = (each.format, each.rule.table or "")
            members = self._members.setdefault(key, np.zeros(len(self._book.entries), bool))
            members[place] = True
        self._begin_window()

    def read(self, data: NDArray[np.uint8], length: int, first: int) -> int:
        """Read the whole lines in the first `length` bytes; return the number of the next line.

        At least `source.MARGIN` bytes must follow; one of them may be written. `first` is the
        number of the first line.
        """
        # The last line of a file may lack its newline.
        if data[length - 1] != _NEWLINE:
            data[length] = _NEWLINE
            length += 1
        progress = self._progress
        progress[[m.AT, m.LINE, m.END]] = 0, first, length
        given = self._addresses(data)
        while True:
            if self._dispatcher.told_above:
                # What a heading says is on every line below it.
                return self._read_rest(data, length)
            progress[m.COUNTS_MISSED] = self._tally.has_samples
            progress[m.COUNTS_FOREIGN] = self._tally.has_shapes
            self._set_registers()
            reason = self._match(given)
            self._count()
            self._read_slow_lines(data)
            if reason == m.DONE:
                return int(progress[m.LINE])
            if reason == m.ASKS:
                self._judge(data)
            elif reason == m.FULL:
                self._make_room()
                given = self._addresses(data)

    def finish(self) -> None:
        """Hand over the rows that are still held."""
        self._hand_over(int(self._progress[m.ROWS]))

    def _addresses(self, data: NDArray[np.uint8]) -> NDArray[np.int64]:
        book = self._book
        return words_of(
            data, *book.programs, *book.expressions, *self._vocabulary, *self._found, *self._room,
            self._progress,
        )  # fmt: skip

    # ------------------------------------------------------------ lines

    def _count(self) -> None:
        """Account for the lines the matcher has read."""
        progress, tally = self._progress, self._tally
        tally.read(int(progress[m.PARSED]))
        tally.miss_more(int(progress[m.MISSED]))
        tally.leave_more(int(progress[m.FOREIGN]))
        tally.skip(int(progress[m.BLANK_LINES]))
        progress[[m.PARSED, m.MISSED, m.FOREIGN, m.BLANK_LINES]] = 0
        ignored = self._found.ignored
        for number in np.flatnonzero(ignored).tolist():
            tally.skip(int(ignored[number]), self._book.entries[number].about)
        ignored[:] = 0

    def _read_slow_lines(self, data: NDArray[np.uint8]) -> None:
        """Read the lines the matcher left, in order."""
        count = int(self._progress[m.LEFT_LINES])
        self._progress[m.LEFT_LINES] = 0
        for number, begin, end, outcome in self._found.left[:count].tolist():
            if outcome == m.NOBODYS:
                text = data[begin:end].tobytes().decode("utf-8", "replace")
                self._tally.leave(number, text.rstrip("\r\n"))
                continue
            self._keep_until(number)
            before = self._generations()
            self._read_slow_line(data, number, begin, end)
            if self._generations() != before:
                # What this line said holds for the lines below it, not for those above.
                rows = self._progress[m.ROWS]
                self._hand_over(int(np.searchsorted(self._found.lines[:rows], number)))

    def _read_slow_line(self, data: NDArray[np.uint8], number: int, begin: int, end: int) -> None:
        if end - begin > LONGEST_LINE + 1:
            self._slow_line(LineBlock(number, b"\n", (number,)))
        else:
            self._slow_line(LineBlock(number, data[begin:end].tobytes()))

    def _read_rest(self, data: NDArray[np.uint8], length: int) -> int:
        """Read what is left of a block line by line; return the number of the next line."""
        at, number = self._progress[[m.AT, m.LINE]].tolist()
        self._hand_over(int(self._progress[m.ROWS]))
        rest = data[at:length]
        for end in (np.flatnonzero(rest == _NEWLINE) + 1).tolist():
            self._read_slow_line(data, number, at, int(self._progress[m.AT]) + end)
            at, number = int(self._progress[m.AT]) + end, number + 1
        self._begin_window()
        return int(number)

    def _make_room(self) -> None:
        """Write all rows, and forget them and all texts."""
        self._hand_over(int(self._progress[m.ROWS]))
        self._flush()
        if self._rows.pending:
            # Somebody holds them instead: theirs is the room.
            self._found = m.new_found(self._book.most_slots, len(self._book.entries))
        self._first_row = 0
        self._prefixes.clear()
        self._values.clear()
        self._vocabulary.places.fill(-1)
        self._progress[[m.ROWS, m.KNOWN, m.LAST]] = 0, 0, -1

    # ------------------------------------------------------------ texts

    def _judge(self, data: NDArray[np.uint8]) -> None:
        """Say what is to be done with a new prefix, or a text its type may refuse."""
        number = int(self._progress[m.ASKED])
        if self._vocabulary.types[number] == m.PREFIX:
            accepted = self._judge_prefix(data, number)
        else:
            try:
                accepted = not isinstance(self._value(number), Unfit)
            except ValueError:
                accepted = False
        self._vocabulary.standing[number] = m.ACCEPTED if accepted else m.REFUSED

    def _judge_prefix(self, data: NDArray[np.uint8], number: int) -> bool:
        progress = self._progress
        at = int(progress[m.AT])
        end = at + int(progress[m.ASKED_END])
        longest = data[at : at + m.LONGEST + 2].tobytes()
        raw, line = longest[: end - at], longest[: longest.index(b"\n")].rstrip(b"\r")
        stamp = None
        if progress[m.STAMP] != _ABSENT:
            if not raw.isascii():
                return False
            begin, stamp_end, local_us = progress[[m.STAMP_BEGIN, m.STAMP_END, m.STAMP]].tolist()
            stamp = Stamp(begin, stamp_end, local_us)
        decoded = raw.decode("utf-8", "replace")
        prefix = judge(decoded, line.decode("utf-8", "replace"), stamp, self._readers)
        if prefix is None:
            return False
        self._prefixes[number] = prefix
        conditions = self._book.conditions
        allowed = self._vocabulary.allowed[number * len(conditions) :]
        for place, condition in enumerate(conditions):
            fields = prefix.anchored.get(condition.format, {})
            bears = self._readers[condition.format].format.anchor is None
            bears = bears or condition.format in prefix.anchored
            allowed[place] = bears and all(fields.get(k) == v for k, v in condition.told)
        return True

    def _value(self, number: int) -> Any:
        """Return what a text of the vocabulary means; ValueError if it means nothing."""
        if number not in self._values:
            name = TYPE_NAMES[self._vocabulary.types[number]]
            begin, end = self._vocabulary.begins[number : number + 2].tolist()
            text = self._vocabulary.arena[begin:end].tobytes().decode("utf-8", "replace")
            if name in ZONED:
                context = self._context
                self._values[number] = time_of(text, context.zone, context.modified_us)
            else:
                self._values[number] = VALUE_TYPES[name].parse(text)
        return self._values[number]

    def _texts(self, used: Sequence[int]) -> pa.StringArray | None:
        """Return what many plain texts mean, None if they are few or not all plain."""
        known = int(self._progress[m.KNOWN])
        if len(used) < _MANY_TEXTS:
            return None
        places = np.array(used)
        types = np.unique(self._vocabulary.types[places]).tolist()
        arena = self._vocabulary.arena[: self._vocabulary.begins[known]]
        if any(VALUE_TYPES[TYPE_NAMES[kind]].parse is not parse_text for kind in types):
            return None
        if arena.max() >= _BEYOND_ASCII:
            return None
        begins = self._vocabulary.begins[: known + 1].astype(np.int32)
        all_texts = pa.StringArray.from_buffers(known, pa.py_buffer(begins), pa.py_buffer(arena))
        texts = all_texts.take(pa.array(places))
        texts = pc.ascii_trim_whitespace(texts)
        none = pc.is_in(pc.ascii_lower(texts), pa.array(sorted(NO_VALUE)))
        return pc.if_else(none, pa.scalar(None, pa.string()), texts)

    # ------------------------------------------------------------ what lines keep

    def _contexts(self) -> dict[int, Context]:
        """Return the contexts in which formats keep fields, by group."""
        return {
            group: reader.context
            for group, reader in zip(self._book.group_of, self._readers, strict=True)
        }

    def _generations(self) -> tuple[int, ...]:
        return tuple(context.generation for context in self._contexts().values())

    def _begin_window(self) -> None:
        """Remember what is kept before the rows that are to come."""
        self._kept_to = self._first_row
        self._initial = {group: dict(c.kept) for group, c in self._contexts().items()}
        self._bases = {
            (number, table): self._readers[number].context.base(
                table, self._book.formats[number].name, snapshot=False
            )
            for number, table in self._members
            if table
        }

    def _set_registers(self) -> None:
        """Tell the matcher what is kept of what its conditions ask for."""
        if not self._book.registers:
            return
        self._keep_until(None)
        contexts = self._contexts()
        for place, (group, name) in enumerate(self._book.registers):
            value, values = contexts[group].kept.get(name), self._book.constants[group, name]
            self._room.registers[place] = values.index(value) if value in values else -1

    def _keep_until(self, line: int | None) -> None:
        """Keep what the rows above a line say."""
        rows = int(self._progress[m.ROWS])
        end = rows if line is None else int(np.searchsorted(self._found.lines[:rows], line))
        if end <= self._kept_to:
            return
        begin, self._kept_to = self._kept_to, end
        places = self._keepers(begin, end)
        for group, context in self._contexts().items():
            last: dict[str, Any] = {}
            since: dict[str, int] = {}
            own = places[self._groups[self._found.entries[places]] == group]
            for name in self._kept_names(own):
                said = np.flatnonzero(self._says(own, name))
                if len(said):
                    last[name] = self._kept_values(own[said[-1:]], name)[0]
                    since[name] = int(self._found.lines[own[said[-1]]])
            for name, lines in self._advances(group, begin, end).items():
                value = last.get(name, context.kept.get(name))
                if isinstance(value, int):
                    last[name] = value + int((lines >= since.get(name, 0)).sum())
            if last:
                context.keep(last)

    def _keepers(self, begin: int, end: int) -> Places:
        """Return the rows that keep something."""
        return np.flatnonzero(self._keeping[self._found.entries[begin:end]]) + begin

    def _advances(self, group: int, begin: int, end: int) -> dict[str, Places]:
        """Return, by field, the lines of some rows after which a kept number goes up by one."""
        if not self._advancing.any():
            return {}
        entries = self._found.entries[begin:end]
        lines: dict[str, list[Places]] = {}
        for number in np.unique(entries[self._advancing[entries]]).tolist():
            if self._groups[number] == group:
                own = self._found.lines[begin:end][entries == number]
                for name in self._book.entries[number].rule.increment:
                    lines.setdefault(name, []).append(own)
        return {name: np.unique(np.concatenate(parts)) for name, parts in lines.items()}

    def _kept_names(self, places: Places) -> list[str]:
        used = np.unique(self._found.entries[places]).tolist()
        return list(dict.fromkeys(n for e in used for n in self._book.entries[e].rule.context))

    def _slots(self, number: int, name: str) -> list[Slot]:
        """Return the slots of a field that an entry may capture: one for each type of the field."""
        entry_ = self._book.entries[number]
        slots = self._book.slots.get((entry_.format, entry_.rule.table or ""), ())
        return [slot for slot in slots if slot.column == name]

    def _says(self, places: Places, name: str) -> NDArray[np.bool_]:
        """Say which of some rows keep a value of a field."""
        said = np.zeros(len(places), bool)
        entries = self._found.entries[places]
        for number in np.unique(entries).tolist():
            rule, own = self._book.entries[number].rule, entries == number
            if name in rule.context:
                for slot in self._slots(number, name):
                    said[own] |= self._found.fields[slot.place, places[own]] != _ABSENT
            if name in rule.context and name in rule.set:
                said[own] = True
        return said

    def _kept_values(self, places: Places, name: str) -> list[Any]:
        """Return what rows say a field is, of which each says something."""
        values: list[Any] = [None] * len(places)
        entries = self._found.entries[places]
        for number in np.unique(entries).tolist():
            rule, own = self._book.entries[number].rule, np.flatnonzero(entries == number)
            for place in own.tolist():
                values[place] = rule.set.get(name)
            for slot in self._slots(number, name):
                given = self._cells(slot, self._found.fields[slot.place, places[own]])
                for place, value in zip(own.tolist(), given, strict=True):
                    if value != _ABSENT:
                        values[place] = value
        return values

    def _cells(self, slot: Slot, raw: Places) -> list[Any]:
        """Return the values of a field, _ABSENT where there is none."""
        if slot.kind == 0:
            return [_ABSENT if n == _ABSENT else self._value(n) for n in raw.tolist()]
        if slot.kind == NUMBER:
            numbers = (
                raw.view(np.float64) if slot.convert is None else slot.convert(raw.view(np.float64))
            )
            return [
                _ABSENT if n == _ABSENT else v
                for n, v in zip(raw.tolist(), numbers.tolist(), strict=True)
            ]
        if slot.kind == TIME:
            raw = np.where(raw == _ABSENT, raw, moments(raw, self._context.zone))
        return list(raw.tolist())

    # ------------------------------------------------------------ columns

    def _hand_over(self, end: int) -> None:
        """Add the rows up to row `end`, by format and table."""
        begin, self._first_row = self._first_row, end
        if begin < end:
            self._keep_until(int(self._found.lines[end - 1]) + 1)
            entries = self._found.entries[begin:end]
            for (number, table), members in self._members.items():
                chosen = np.flatnonzero(members[entries]) + begin
                if table and len(chosen):
                    self._rows.add_frame(table, self._frame(number, table, chosen, begin, end))
        self._begin_window()

    def _frame(self, number: int, table: str, chosen: Places, begin: int, end: int) -> pa.Table:
        """Return some rows of one format and table: what `LineReader` would give for each."""
        names = column_names(table)
        layers = Layers(len(chosen), self._bases[number, table])
        self._put_kept(layers, number, names, chosen, begin, end)
        self._put_prefixes(layers, number, table, chosen)
        self._put_constants(layers, names, chosen)
        for slot in self._book.slots.get((number, table), ()):
            if slot.column in names:
                self._put_field(layers, slot, self._found.fields[slot.place][chosen])
        layers.columns["line"] = pa.array(self._found.lines[chosen])
        return layers.table()

    def _put_kept(
        self,
        layers: Layers,
        number: int,
        names: frozenset[str],
        chosen: Places,
        begin: int,
        end: int,
    ) -> None:
        """Put what lines keep into the rows below them."""
        group = self._book.group_of[number]
        keepers = self._keepers(begin, end)
        keepers = keepers[self._groups[self._found.entries[keepers]] == group]
        advances = self._advances(group, begin, end)
        for name in dict.fromkeys((*self._kept_names(keepers), *advances)):
            if name not in names:
                continue
            saying = keepers[self._says(keepers, name)]
            last = np.searchsorted(saying, chosen, side="right") - 1
            values, said = self._kept_values(saying, name), last >= 0
            if name in advances:
                # What was kept before comes first; a number has gone up after each line since.
                lines, values = advances[name], [self._initial[group].get(name), *values]
                before = np.searchsorted(lines, self._found.lines[saying])
                counts = np.searchsorted(lines, self._found.lines[chosen])
                counts = counts - np.concatenate([[0], before])[last + 1]
                known = np.array([isinstance(value, int) for value in values])[last + 1]
                whole = np.array([v if isinstance(v, int) else 0 for v in values])[last + 1]
                layers.put(name, pa.array(whole + counts, mask=~known), said | known)
            elif len(saying):
                layers.put_coded(name, np.maximum(last, 0).astype(np.int32), values, said)

    def _put_prefixes(self, layers: Layers, number: int, table: str, chosen: Places) -> None:
        """Put what the prefixes tell: each distinct one is read once."""
        used, codes = compact(self._found.prefixes[chosen])
        told = [self._columns_of_prefix(each, number, table) for each in used]
        for name in dict.fromkeys(n for columns in told for n in columns):
            has = np.array([name in columns for columns in told])
            layers.put_coded(name, codes, [columns.get(name) for columns in told], has[codes])
        shifts = np.array([self._prefixes[each].shift or 0 for each in used])
        stamped = np.array(
            [
                self._prefixes[n].shift is not None and "ts" in c
                for n, c in zip(used, told, strict=True)
            ]
        )
        if not stamped.any():
            return
        stamps = self._found.stamps[chosen]
        times = stamps - shifts[codes]
        zoned = np.array([self._prefixes[each].in_zone for each in used])[codes]
        if zoned.any():
            times = np.where(zoned, moments(stamps, self._context.zone), times)
        layers.put_numbers("ts", times, stamped[codes])

    def _columns_of_prefix(self, number: int, format_: int, table: str) -> dict[str, Any]:
        prefix = self._prefixes[number]
        if (format_, table) not in prefix.columns:
            context, names = self._readers[format_].context, column_names(table)
            columns: dict[str, Any] = {}
            if prefix.around:
                context.of_line.told = prefix.around
                columns = context.of_line.columns(table, context)
                context.of_line.told = NOTHING
            told = prefix.anchored.get(format_, {})
            columns |= {name: value for name, value in told.items() if name in names}
            if told.get("ts") is not None and "ts_source" in names:
                columns["ts_source"] = "inline"
            prefix.columns[format_, table] = columns
        return prefix.columns[format_, table]

    def _put_constants(self, layers: Layers, names: frozenset[str], chosen: Places) -> None:
        """Put what the rules set."""
        used, codes = compact(self._found.entries[chosen])
        sets = [self._book.entries[number].rule.set for number in used]
        for name in dict.fromkeys(n for constants in sets for n in constants if n in names):
            has = np.array([name in constants for constants in sets])
            layers.put_coded(name, codes, [constants.get(name) for constants in sets], has[codes])

    def _put_field(self, layers: Layers, slot: Slot, raw: Places) -> None:
        said = raw != _ABSENT
        if not said.any():
            return
        if slot.kind == 0:
            used, codes = compact(raw[said])
            places = np.zeros(len(raw), np.int32)
            places[said] = codes
            texts = self._texts(used)
            if texts is not None:
                layers.put_texts(slot.column, places, texts, said)
            else:
                values = [self._value(number) for number in used]
                layers.put_coded(slot.column, places, values, said)
        elif slot.kind == NUMBER:
            values_ = raw.view(np.float64)
            if slot.convert is not None:
                values_ = slot.convert(values_)
            layers.put_numbers(slot.column, values_, said)
        elif slot.kind == TIME:
            layers.put_numbers(
                slot.column, moments(np.where(said, raw, 0), self._context.zone), said
            )
        else:
            layers.put_numbers(slot.column, raw, said)
        if slot.column == "ts":
            inline = np.zeros(len(raw), np.int32)
            layers.put_coded("ts_source", inline, ["inline"], said)
