"""Who pauses whom: the tree of pauses from the device that is paused by nobody."""

from collections import defaultdict
from collections.abc import Sequence

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.drawing import sentences, titled
from fabricobs.report.charts.graph import Edge, Mark, Node, draw_graph
from fabricobs.report.charts.source import Row, Source
from fabricobs.report.wording import number

_LEAST_FRAMES = 100.0  # a second: 0.8 % of the time at 400 Gb/s
_MOST_HOPS = 4
_MOST_A_HOP = 12
_MOST_TEXTS = 18


def pause_tree(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw who pauses whom while the finding lasts, hop by hop from its root.

    Without a finding the root is what pauses most beyond what it is paused itself.
    """
    told = source.rows("report/pauses_between", begin=finding.start, end=finding.end)
    loud = [row for row in told if row["frames_per_second"] >= _LEAST_FRAMES]
    if not loud:
        return None
    pausers = {row["pauser"] for row in loud}
    accused = [entity.host for entity in finding.entities if entity.nic and entity.host in pausers]
    root = accused[0] or "" if accused else _loudest(loud)
    hops, tree = _hops(loud, root)
    names = {name for level in hops for name in level}
    hosts = {row["paused"] for row in loud if row["paused_trains"]}
    shown = _shown(hops, loud)
    nodes: dict[str, Node] = {}
    for hop, level in enumerate(hops):
        for name in level:
            group = shown[name]
            mark = _mark(name, root, hosts)
            mark = mark if group == name else "part"
            nodes.setdefault(group, Node(group, hop, mark, _label(group, mark), ""))
    edges = _edges(tree, shown)
    left_out = len({row["pauser"] for row in loud} - names)
    caption = sentences(
        "From left to right: who sends pauses to whom. The diamond is the root: it pauses, and is "
        "hardly paused itself. Lines say pause frames a second, over all cables between two parts.",
        f"Pauses of fewer than {_LEAST_FRAMES:.0f} frames a second are left out.",
        f"{left_out:,} more devices pause that the root does not reach." if left_out else "",
    )
    heads = ["root", *(f"{hop} hop{'s' if hop > 1 else ''}" for hop in range(1, len(hops)))]
    chart = draw_graph(list(nodes.values()), edges, heads)
    return titled(chart, f"Who pauses whom from {root} on (pause frames per second)", caption)


def _loudest(rows: Sequence[Row]) -> str:
    surplus: dict[str, float] = defaultdict(float)
    for row in rows:
        surplus[row["pauser"]] += row["frames_per_second"]
        surplus[row["paused"]] -= row["frames_per_second"]
    return max(surplus, key=lambda name: (surplus[name], name))


def _hops(rows: Sequence[Row], root: str) -> tuple[list[list[str]], list[Row]]:
    """Return the devices by their distance from the root, and the pauses that lead away from it."""
    place = {root: 0}
    hops = [[root]]
    while len(hops) <= _MOST_HOPS:
        reached = sorted(
            {r["paused"] for r in rows if place.get(r["pauser"]) == len(hops) - 1} - place.keys()
        )
        if not reached:
            break
        place |= dict.fromkeys(reached, len(hops))
        hops.append(reached)
    tree = [
        row
        for row in rows
        if row["pauser"] in place
        and row["paused"] in place
        and place[row["paused"]] == place[row["pauser"]] + 1
    ]
    return hops, tree


def _shown(hops: Sequence[Sequence[str]], rows: Sequence[Row]) -> dict[str, str]:
    """Return under which name each device is drawn: of many the most paused by their own."""
    suffered: dict[str, float] = defaultdict(float)
    for row in rows:
        suffered[row["paused"]] += row["frames_per_second"]
    shown: dict[str, str] = {}
    for level in hops:
        ordered = sorted(level, key=lambda name: (-suffered[name], name))
        most = _MOST_A_HOP if len(level) <= _MOST_A_HOP else _MOST_A_HOP - 1
        shown |= {name: name for name in ordered[:most]}
        shown |= {name: f"{len(level) - most:,} more" for name in ordered[most:]}
    return shown


def _mark(name: str, root: str, hosts: set[str]) -> Mark:
    if name == root:
        return "culprit"
    return "victim" if name in hosts else "part"


def _label(name: str, mark: Mark) -> str:
    return name if mark == "part" else f"{name} ({'root' if mark == 'culprit' else 'victim'})"


def _edges(tree: Sequence[Row], shown: dict[str, str]) -> list[Edge]:
    joined: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in tree:
        joined[shown[row["pauser"]], shown[row["paused"]]].append(row)
    frames = {ends: sum(r["frames_per_second"] for r in rows) for ends, rows in joined.items()}
    most = max(frames.values(), default=1.0)
    few = len(joined) <= _MOST_TEXTS
    return [
        Edge(
            a,
            b,
            weight=(frames[a, b] / most) ** 0.5,
            mark="culprit" if frames[a, b] == most else "part",
            text=f"{number(round(frames[a, b]))}/s" if few else "",
            said=_said(a, b, rows, frames[a, b]),
        )
        for (a, b), rows in joined.items()
    ]


def _said(a: str, b: str, rows: Sequence[Row], frames: float) -> str:
    cables = sum(row["cables"] for row in rows)
    shares = [row["share"] for row in rows if row["share"] is not None]
    longest = f", up to {max(shares):.0%} of the time" if shares else ""
    return f"{a} pauses {b}: {number(round(frames))} frames/s over {cables:,} cables{longest}"
