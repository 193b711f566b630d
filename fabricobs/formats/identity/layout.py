"""Which part of the paths of a tree names the host: inferred from all paths together.

One path alone is ambiguous. Paths that differ only in times, ports, numbers and names have the same
skeleton; in it the host is the name that differs between siblings and looks most like one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fabricobs.formats.identity.names import NAME_MARK, PORT_MARK, Name, take_apart
from fabricobs.formats.identity.vocabulary import likeness

Skeleton = tuple[str, ...]

# A number at the end: of a rotated file, or of one of several sources.
_NUMBERED = re.compile(r"(?P<stem>.+)(?P<number>\.\d{1,3})(?:\.(?:gz|zst|xz|bz2))?")

# Below these folders stands what a host's own tree holds, never another host's name.
_OWN_TREES = frozenset({"sys", "proc", "sos_commands"})
_OWN_TREE = "(own tree)"
_LEAST_ALONE = 3  # likeness of a name that no sibling supports
_LEAST_WITHIN = 2  # of a folder's within one of hosts: a word
# Folders that say that each folder in them is of one host or switch.
_OF_DEVICES = frozenset({"hosts", "nodes", "servers", "switches"})
_STATED = 5


@dataclass(frozen=True, slots=True)
class Roles:
    """What the parts of one path are.

    `host_source` is `bundle` (a file of the tree says it), `path` or `guess`; both are None where
    nothing names the host. `depth` is the component that names it. `rest` is the path without
    times, ports and suffixes: it tells sources of unknown name apart.
    """

    host: str | None
    host_source: str | None
    depth: int | None
    port: str | None
    rank: int | None
    rest: str
    is_stated: bool


@dataclass(slots=True)
class _Slot:
    """The names at one place of one skeleton, and below which other names each stands."""

    above: dict[str, set[tuple[str | None, ...]]] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        return len(self.above) > 1

    def recurs(self, name: str) -> bool:
        return len(self.above.get(name, ())) > 1


class Layout:
    """The layout of a tree: made by `infer`, asked with `roles` for any path, seen or new."""

    def __init__(self, stated: Mapping[Skeleton, str]) -> None:
        self._stated = stated
        self._slots: dict[tuple[Skeleton, int], _Slot] = {}
        # Places down to a folder, and the names found there to be hosts.
        self._hosts: dict[tuple[Skeleton, int], set[str]] = {}
        self._places: dict[str, int] = {}  # of names found to be hosts: at how many places
        self._rotated: frozenset[str] = frozenset()  # of which numbered files lie beside

    def add(self, path: str) -> None:
        """Take a path into account."""
        names = _names_of(path)
        skeleton = tuple(name.skeleton for name in names)
        above: tuple[str | None, ...] = ()
        for place, name in enumerate(names):
            if name.name is not None:
                slot = self._slots.setdefault((skeleton, place), _Slot())
                slot.above.setdefault(name.name, set()).add(above)
                above = (*above, name.name)

    def note_rotated(self, paths: Sequence[str]) -> None:
        """Note which of all paths are those of files that were rotated: `x` beside `x.1`."""
        numbered = filter(None, map(_NUMBERED.fullmatch, paths))
        stems = {found["stem"] for found in numbered}
        self._rotated = frozenset(stems.intersection(paths)) if stems else frozenset()

    def settle(self) -> None:
        """Work out which places hold hosts: what one file shows holds for all in its folder."""
        for (skeleton, place), slot in self._slots.items():
            is_file = place == len(skeleton) - 1
            is_within = (
                slot.differs and _names_devices(skeleton, place)
                if is_file
                else _is_within(skeleton, place)
            )
            for name in slot.above:
                looks = likeness(name)
                if _supports(looks, slot, is_file=is_file) or (
                    is_within and looks >= _LEAST_WITHIN
                ):
                    self._hosts.setdefault((skeleton[: place + 1], place), set()).add(name)
        for names in self._hosts.values():
            for name in names:
                self._places[name] = self._places.get(name, 0) + 1

    def roles(self, path: str) -> Roles:
        """Say what the parts of a path are."""
        names = _names_of(path)
        stated = self._stated_for(path)
        best = self._host_of(names, stated[0] if stated else -1)
        ports = [name.port for name in names if name.port is not None]
        ranks = [name.rank for name in names if name.rank is not None]
        return Roles(
            host=stated[1] if best is None and stated else best[0] if best else None,
            host_source="bundle" if best is None and stated else best[1] if best else None,
            depth=best[2] if best else None,
            port=ports[-1] if ports else None,
            rank=ranks[-1] if ranks else None,
            rest="/".join(filter(None, (name.rest for name in names))) + self._number(path),
            is_stated=best is not None and self._is_stated(names, best[2]),
        )

    def _is_stated(self, names: Sequence[Name], place: int) -> bool:
        """Say whether a path itself says that its name at a place is a host's."""
        if names[place].is_stated:
            return True
        skeleton = tuple(name.skeleton for name in names)
        return place < len(names) - 1 and _is_within(skeleton, place)

    def _number(self, path: str) -> str:
        """Return the number that tells a file from others of its name, unless it was rotated."""
        found = _NUMBERED.fullmatch(path)
        return "" if found is None or found["stem"] in self._rotated else found["number"]

    def _stated_for(self, path: str) -> tuple[int, str] | None:
        """Return what a file of the tree says of the nearest folder above a path, and its depth."""
        folders = tuple(path.split("/"))[:-1]
        for depth in range(len(folders), -1, -1):
            said = self._stated.get(folders[:depth])
            if said is not None:
                return depth, said
        return None

    def _host_of(self, names: list[Name], least_depth: int) -> tuple[str, str, int] | None:
        """Return host, source and place; folders below `least_depth` alone overrule a file."""
        skeleton = tuple(name.skeleton for name in names)
        found: list[tuple[tuple[int, ...], tuple[str, str, int]]] = []
        for place, name in enumerate(names):
            is_file = place == len(names) - 1
            candidate = name.name or self._word_among_hosts(skeleton, place, is_file=is_file)
            if candidate is None or place < least_depth or (is_file and least_depth >= 0):
                continue
            looks = _STATED if name.is_stated else likeness(candidate)
            slot = self._slots.get((skeleton, place), _Slot())
            known = self._hosts.get((skeleton[: place + 1], place), set())
            # A word may say anything: one that is a host elsewhere in the tree is one here, too.
            elsewhere = looks == _LEAST_WITHIN and self._places.get(candidate, 0) > (
                candidate in known
            )
            sure = looks == _STATED or candidate in known or name.name is None or elsewhere
            if not sure and (looks < _LEAST_ALONE or least_depth >= 0):
                continue
            order = (
                int(sure),
                looks,
                int(elsewhere),
                -int(slot.recurs(candidate)),
                int(slot.differs),
                place,
            )
            found.append((order, (candidate, "path" if sure else "guess", place)))
        return max(found)[1] if found else None

    def _word_among_hosts(self, skeleton: Skeleton, place: int, *, is_file: bool) -> str | None:
        """Return a folder whose name is a word, where siblings that hold the same are hosts."""
        if is_file or "{" in skeleton[place]:
            return None
        sibling = (*skeleton[:place], NAME_MARK, *skeleton[place + 1 :])
        slot = self._slots.get((sibling, place))
        among = self._hosts.get((sibling[: place + 1], place), set())
        return skeleton[place] if slot and len(among & slot.above.keys()) > 1 else None


def infer(paths: Iterable[str], stated: Mapping[Skeleton, str] | None = None) -> Layout:
    """Infer the layout of a tree from all its paths, relative and with slashes.

    `stated` are hosts that files of the tree name (a file `hostname`), by the components of the
    folder these files lie in. The order of paths does not matter, nor how often one comes. The
    result answers for paths that were not among them too: a new file of a known layout.
    """
    layout = Layout(stated or {})
    paths = list(paths)
    for path in paths:
        layout.add(path)
    layout.settle()
    layout.note_rotated(paths)
    return layout


def _supports(looks: int, slot: _Slot, *, is_file: bool) -> bool:
    """Say whether the siblings of a name, or its looks alone, show that it is a host."""
    if looks >= 4:
        return True
    if looks == 3:
        return slot.differs
    return looks == 2 and slot.differs and not is_file


def _is_within(skeleton: Skeleton, place: int) -> bool:
    """Say whether a component stands directly in a folder of hosts."""
    return place > 0 and skeleton[place - 1].lower() in _OF_DEVICES


def _names_devices(skeleton: Skeleton, place: int) -> bool:
    """Say whether files of a folder are named after devices: below one of devices, by date or by
    kind at most, and with a word for what they hold."""
    above = skeleton[:place]
    of_devices = [at for at, part in enumerate(above) if part.lower() in _OF_DEVICES]
    if not of_devices or skeleton[place] == NAME_MARK:
        return False
    return not any(NAME_MARK in part for part in above[of_devices[-1] + 1 :])


def _names_of(path: str) -> list[Name]:
    """Take the components of a path apart, down to where a host's own tree begins."""
    components = path.split("/")
    last = len(components) - 1
    names: list[Name] = []
    for place, component in enumerate(components):
        name = take_apart(component, place == last)
        is_port = name.skeleton == PORT_MARK and place < last
        if component in _OWN_TREES or (component == "infiniband" and place < last - 1):
            return [*names, _own_tree(components[place:])]
        if is_port and components[place + 1] in {"ports", "counters", "hw_counters"}:
            return [*names, _own_tree(components[place:])]
        names.append(name)
    return names


def counter_tree(path: str) -> str | None:
    """Return the folder whose copied tree of counters a path lies in; None if it lies in none."""
    names = _names_of(path)
    if names[-1].skeleton != _OWN_TREE or names[-1].port is None:
        return None
    return "/".join(path.split("/")[: len(names) - 1])


def _own_tree(components: list[str]) -> Name:
    """Return the tree of a host as one name, which holds no host; the last port in it counts."""
    last = len(components) - 1
    parts = [take_apart(part, place == last) for place, part in enumerate(components)]
    ports = [part.port for part in parts if part.port is not None]
    return Name(_OWN_TREE, "", port=ports[-1] if ports else None)
