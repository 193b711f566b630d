"""The identity of every file of an input: what its path, its bundle and the user say together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path

from fabricobs.formats.identity.layout import Layout, Skeleton, counter_tree, infer
from fabricobs.formats.identity.model import UNKNOWN, Identity
from fabricobs.formats.identity.names import TIME_MARK, dated, take_apart
from fabricobs.formats.identity.pattern import said_of
from fabricobs.formats.identity.times import PathTime, time_of_path
from fabricobs.formats.identity.vocabulary import is_surely_a_device, likeness
from fabricobs.formats.values import parse_time

# Files of a bundle that say whose the files beside and below them are, and when they were taken.
_HOST_FILES, _DATE_FILES = frozenset({"hostname"}), frozenset({"date"})
BUNDLE_FILES = _HOST_FILES | _DATE_FILES
MOST_BUNDLE_BYTES = 256
# The files of one copied tree are written within less.
_ONE_COPY_US = 300_000_000


class Naming:
    """Gives each path of one tree its identity.

    `texts` are the contents of its bundle files by path, `aliases` the hosts that host maps give
    other names and addresses. `origin` is what the tree as a whole is
    known to be (an archive by its name), `modified` gives when files of copied trees of counters
    were changed, in microseconds: those of one copy are one sample. `where` is the absolute path
    that unknown devices go by, `named` the host that the directory given is named after.
    """

    def __init__(
        self,
        paths: Iterable[str],
        zone: tzinfo,
        *,
        patterns: Sequence[str] = (),
        aliases: Mapping[str, str] | None = None,
        texts: Mapping[str, str] | None = None,
        origin: Identity | None = None,
        modified: Mapping[str, int] | None = None,
        where: str = "",
        named: str | None = None,
    ) -> None:
        self._zone = zone
        self._patterns = tuple(patterns)
        self._aliases = aliases or {}
        self._origin = origin or Identity()
        self._where = where
        self._named = named
        self._dates: dict[Skeleton, int] = {}
        hosts: dict[Skeleton, str] = {}
        for path, text in (texts or {}).items():
            folder = tuple(path.split("/"))[:-1]
            if path.rpartition("/")[2] in _HOST_FILES:
                host = _host_in(text)
                if host is not None:
                    hosts[folder] = host
            else:
                ts = _date_in(text, zone)
                if ts is not None:
                    self._dates[folder] = ts
        self._layout: Layout = infer(paths, hosts)
        self._copied: dict[str, tuple[int, int]] = {}  # by tree: first and last change
        for path, ts in (modified or {}).items():
            tree = counter_tree(path)
            if tree is not None:
                first, last = self._copied.get(tree, (ts, ts))
                self._copied[tree] = min(first, ts), max(last, ts)

    def of(self, path: str) -> Identity:
        """Return the identity of a file by its path below the tree's root."""
        roles = self._layout.roles(path)
        said = said_of(self._patterns, path, self._zone) if self._patterns else None
        components = tuple(map(dated, path.split("/")))
        time = time_of_path(components, self._zone)
        identity = self._timed(path, components, time)
        device, source = roles.host, roles.host_source
        origin = self._origin
        # The name of an archive tells nothing of its members unless it surely names a host.
        if origin.device_source in {"map", "bundle", "path"} and source not in {"path", "bundle"}:
            device, source = origin.device, origin.device_source
        elif device is None and self._named is not None:
            device, source = self._named, "guess"
        port, doubt = roles.port or origin.port, None
        rank = origin.rank if roles.rank is None else roles.rank
        if said is not None:
            device, source = (said.host, "map") if said.host else (device, source)
            port = said.port or port
            rank = said.rank if said.rank is not None else rank
            if said.ts is not None:
                identity = Identity(ts=said.ts, ts_source="filename")
        if device is None:
            device, source = f"{UNKNOWN}{self._where}/{roles.rest}".rstrip("/"), "unknown"
        if device in self._aliases:
            device, source = self._aliases[device], "map"
        if identity.ts is None and time.ambiguous is not None:
            doubt = f"the day {time.ambiguous} may be two: its modification time is taken"
        return replace(
            identity,
            device=device,
            device_source=source,
            port=port,
            rank=rank,
            doubt=doubt,
            is_stated=roles.is_stated and device == roles.host,
        )

    def _timed(self, path: str, components: tuple[str, ...], time: PathTime) -> Identity:
        if time.ts is not None and not time.is_day:
            return Identity(ts=time.ts, ts_source="filename")
        for depth in range(len(components) - 1, -1, -1):
            said = self._dates.get(components[:depth])
            if said is not None:
                return Identity(ts=said, ts_source="bundle")
        if time.ts is not None:
            return Identity(ts=time.ts, ts_source="day")
        if self._origin.ts is not None:
            return Identity(ts=self._origin.ts, ts_source=self._origin.ts_source)
        tree = counter_tree(path) if self._copied else None
        first, last = self._copied.get(tree or "", (0, _ONE_COPY_US + 1))
        if last - first <= _ONE_COPY_US:
            return Identity(ts=first, ts_source="mtime")
        return Identity()


def named_after(folder: str) -> str | None:
    """Return the host that a directory is named after, if its looks leave no doubt.

    Of a directory that is named after a time, the one above tells.
    """
    for component in reversed(folder.split("/")):
        name = take_apart(component)
        if name.skeleton != TIME_MARK:
            return name.name if name.name is not None and is_surely_a_device(name.name) else None
    return None


def _host_in(text: str) -> str | None:
    words = text.split()
    return words[0] if len(words) == 1 and likeness(words[0]) > 1 else None


def _date_in(text: str, zone: tzinfo) -> int | None:
    lines = text.strip().splitlines()
    try:
        return parse_time(lines[0], zone) if len(lines) == 1 else None
    except (ValueError, IndexError):
        return None


def read_bundle_file(path: Path) -> str | None:
    """Return what a small text file holds; None for any other."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BUNDLE_BYTES + 1)
    except OSError:
        return None
    return data.decode("utf-8", "replace") if len(data) <= MOST_BUNDLE_BYTES else None


def identity_of(path: str, zone: tzinfo) -> Identity:
    """Return the identity of one path by itself, as of a sample."""
    return Naming([path], zone).of(path)
