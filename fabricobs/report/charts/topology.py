"""The fabric as its cables tell it: hosts, leaves, spines; culprits and victims marked."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report.charts.drawing import sentences, titled
from fabricobs.report.charts.graph import Edge, Mark, Node, draw_graph
from fabricobs.report.charts.source import Row, Source

_TIERS = ("host", "leaf", "spine", "core")
_PLURAL = {"host": "hosts", "leaf": "leaves", "spine": "spines", "core": "cores"}
_MOST_A_TIER = 16


@dataclass(frozen=True, slots=True)
class Marked:
    """A part a finding names: what it is to which finding, and what it is joined to."""

    name: str
    tier: str
    role: str
    neighbours: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """The drawing, and the same as rows of text."""

    chart: alt.LayerChart
    marked: tuple[Marked, ...]


@dataclass(frozen=True, slots=True)
class _Fabric:
    """Parts by tier and the cables between two of them: number, and the ports at both ends."""

    tiers: dict[str, int]
    cables: dict[tuple[str, str], Row]

    def neighbours(self, name: str) -> tuple[str, ...]:
        """Return what a part is joined to."""
        joined = {b if a == name else a for a, b in self.cables if name in {a, b}}
        return tuple(sorted(joined))


def draw_topology(source: Source, findings: Sequence[Finding]) -> Topology | None:
    """Draw the fabric, each part marked that a finding names; None where no cable is known."""
    fabric = _fabric(source.rows("report/cables"))
    if not fabric.cables or max(fabric.tiers.values()) == 0:
        return None
    blamed = [(n, f) for n, f in enumerate(findings, start=1) if f.severity != "info"]
    roles = _roles(blamed, fabric)
    ports = {mark: _ports(blamed, mark) for mark in ("culprit", "victim")}
    shown = _grouped(fabric, set(roles))
    nodes = [
        Node(
            name=name,
            column=tier,
            mark=_mark(roles.get(name, "")),
            label=_label(name, roles.get(name, "")),
            said=roles.get(name) or "no finding names it",
        )
        for name, tier in _in_order(set(shown.values()), fabric, shown)
    ]
    edges = _edges(fabric, shown, ports)
    counts = [sum(t == tier for t in fabric.tiers.values()) for tier in range(len(_TIERS))]
    columns = [_counted(count, _TIERS[tier]) for tier, count in enumerate(counts) if count]
    grouped = any(name != group for name, group in shown.items())
    caption = sentences(
        "Diamonds and dashed lines are culprits, triangles and heavy lines victims and the path to "
        "them."
        if roles
        else "No finding names a part.",
        "Parts that no finding names and that are cabled alike, or are too many, are drawn as one."
        if grouped
        else "",
        "Lines are cables; the wider, the more.",
    )
    chart = titled(draw_graph(nodes, edges, columns), "Cables of the fabric, by tier", caption)
    marked = tuple(
        Marked(name, _TIERS[fabric.tiers[name]], role, fabric.neighbours(name))
        for name, role in sorted(roles.items(), key=lambda item: (-fabric.tiers[item[0]], item))
    )
    return Topology(chart, marked)


def _fabric(cables: Sequence[Row]) -> _Fabric:
    """Return the parts by their distance from the hosts of the job, as far as tiers have names."""
    tiers = {row[end]: 0 for row in cables for end in ("a", "b") if row[f"{end}_trains"]}
    joined: dict[str, set[str]] = defaultdict(set)
    for row in cables:
        joined[row["a"]].add(row["b"])
        joined[row["b"]].add(row["a"])
    for tier in range(1, len(_TIERS)):
        below = [name for name, its in tiers.items() if its == tier - 1]
        # What hangs on one leaf alone is a host that does not train.
        reached = {
            far for name in below for far in joined[name] if tier == 1 or len(joined[far]) > 1
        }
        tiers |= dict.fromkeys(sorted(reached - tiers.keys()), tier)
    known = {(r["a"], r["b"]): r for r in cables if r["a"] in tiers and r["b"] in tiers}
    return _Fabric(tiers, known)


def _roles(blamed: Sequence[tuple[int, Finding]], fabric: _Fabric) -> dict[str, str]:
    """Return what each part is to the findings, culprits before victims.

    A host that suffers is a victim, a switch that is no culprit is on the path.
    """
    roles: dict[str, dict[int, str]] = defaultdict(dict)
    for number, finding in blamed:
        for name, port in _owners(finding.entities, fabric).items():
            word = "culprit port" if port else "culprit"
            roles[name].setdefault(number, f"{word} of finding {number}")
    for number, finding in blamed:
        for name in _owners(finding.related, fabric):
            word = "victim" if fabric.tiers[name] == 0 else "on the path"
            roles[name].setdefault(number, f"{word} of finding {number}")
    return {name: ", ".join(said.values()) for name, said in roles.items()}


def _owners(entities: Sequence[Entity], fabric: _Fabric) -> dict[str, bool]:
    """Return the hosts and switches named, and whether a switch is named for a port alone.

    Not a switch for a port whose host, at the other end of the cable, is named too.
    """
    owners = {e.host: False for e in entities if e.host is not None and e.host in fabric.tiers}
    hosts = bool(owners)
    for entity in entities:
        port = entity.port is not None
        if entity.switch is not None and entity.switch in fabric.tiers and not (port and hosts):
            owners[entity.switch] = port and owners.get(entity.switch, True)
    return owners


def _ports(blamed: Sequence[tuple[int, Finding]], mark: str) -> set[str]:
    return {
        f"{entity.host or entity.switch} {entity.nic or entity.port}"
        for _, finding in blamed
        for entity in (finding.entities if mark == "culprit" else finding.related)
        if entity.nic or entity.port
    }


def _mark(role: str) -> Mark:
    if not role:
        return "part"
    return "culprit" if role.startswith("culprit") else "victim"


def _label(name: str, role: str) -> str:
    """Return the name with its mark as a word; of a group only how many it joins."""
    return f"{name} ({role.partition(' of ')[0]})" if role else name.partition(",")[0]


def _grouped(fabric: _Fabric, marked: set[str]) -> dict[str, str]:
    """Return under which name each part is drawn: its own, or that of a group cabled alike."""
    shown: dict[str, str] = {}
    for tier, word in enumerate(_TIERS):
        names = sorted(name for name, its in fabric.tiers.items() if its == tier)
        if len(names) <= _MOST_A_TIER:
            shown |= {name: name for name in names}
            continue
        alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in names:
            key = (
                (name,)
                if name in marked
                else tuple(sorted({shown.get(far, far) for far in fabric.neighbours(name)}))
            )
            alike[key].append(name)
        groups = sorted(alike.values(), key=lambda group: (not marked & set(group), -len(group)))
        for group in groups[: _MOST_A_TIER - 1]:
            shown |= {name: _group_name(group, word) for name in group}
        rest = [name for group in groups[_MOST_A_TIER - 1 :] for name in group]
        shown |= {name: f"{len(rest):,} more {_PLURAL[word]}" for name in rest}
    return shown


def _group_name(group: Sequence[str], word: str) -> str:
    if len(group) == 1:
        return group[0]
    return f"{_counted(len(group), word)}, {group[0]} to {group[-1]}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word if count == 1 else _PLURAL[word]}"


def _in_order(
    names: Iterable[str], fabric: _Fabric, shown: Mapping[str, str]
) -> list[tuple[str, int]]:
    tiers = {group: fabric.tiers[name] for name, group in shown.items()}
    return sorted(
        ((name, tiers[name]) for name in names), key=lambda it: (it[1], " more " in it[0], it[0])
    )


def _edges(fabric: _Fabric, shown: Mapping[str, str], ports: Mapping[str, set[str]]) -> list[Edge]:
    joined: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for (a, b), row in fabric.cables.items():
        ends = sorted((a, b), key=lambda name: fabric.tiers[name])
        joined[shown[ends[0]], shown[ends[1]]].append(row)
    most = max(sum(row["links"] for row in rows) for rows in joined.values())
    edges = []
    for (a, b), rows in joined.items():
        parts = {part for row in rows for part in (*row["a_parts"], *row["b_parts"])}
        mark: Mark = "part"
        if parts & ports["culprit"]:
            mark = "culprit"
        elif parts & ports["victim"]:
            mark = "victim"
        links = sum(row["links"] for row in rows)
        named = sorted(parts & (ports["culprit"] | ports["victim"]))
        said = f"{links:,} {'cable' if links == 1 else 'cables'}"
        if named:
            said += f", of them {', '.join(named)}"
        edges.append(Edge(a, b, 0.0 if most == 1 else 0.4 * links / most, mark, "", said))
    return edges
