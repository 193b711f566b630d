"""Charts as SVG for a page: drawn by Vega before anyone opens it, complete without a script.

Each is drawn in two widths, for a screen and for a telephone; the page's style shows one. The SVG
has no style and no script of its own, so that a server that allows neither shows it whole. What a
mark says stands in its `<title>`; a script that shows it, or marks a range of time, finds the
scale of the x axis in `data-` attributes.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any
from xml.etree import ElementTree

import vl_convert
from markupsafe import Markup, escape

from fabricobs.report.charts.positions import position
from fabricobs.report.charts.theme import CONFIG

# CSS pixels: the text of a page at its widest, and that of a telephone of 390.
WIDTHS: Mapping[str, int] = {"wide": 1040, "narrow": 356}
_MOST_SHRUNK = 1.25  # times the width of a telephone: what is wider is scrolled
_TAG = re.compile(r"\{.*\}")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_FRAME = re.compile(r"M0,0h([\d.]+)v([\d.]+)")
_SHIFT = re.compile(r"translate\(([-\d.]+),([-\d.]+)\)")
_LINK = re.compile(r'(<a) href="part:([^"]*)"')
# Attributes that repeat what the style of the page says or what SVG takes for granted.
_NEEDLESS = {"font-family", "role", "aria-roledescription", "aria-hidden", "pointer-events"}
_OF_MANY_ROWS = {"line", "area", "trail"}
_DEFAULTS = {("opacity", "1"), ("stroke-width", "0"), ("stroke-miterlimit", "10")}

# Vega supposes letters as narrow as Arial's to find room for labels; those of Verdana and DejaVu,
# which many systems have, are a sixth wider. Labels are placed at a size above their own.
_PLACED_AS = {11: 13, 12: 14}
_WRITTEN_AS = {f"{placed}px": f"{size}px" for size, placed in _PLACED_AS.items()}

Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Drawing:
    """One chart for a page: SVG by the name of its width."""

    svg: Mapping[str, str]

    def linked(self, address_of: Callable[[str], str | None]) -> Markup:
        """Return the SVG with its parts linked to the addresses of a page; None is no link."""

        def link(found: re.Match[str]) -> str:
            address = address_of(unescape(found[2]))
            return found[1] if address is None else f'{found[1]} href="{escape(address)}"'

        return Markup(_LINK.sub(link, "".join(self.svg.values())))


def draw_svg(spec: Value, key: str) -> Drawing:
    """Draw a specification of Vega-Lite; `key` begins the names inside, one for each chart."""
    described = {**spec, **_layers_with_words(spec)}
    drawn = {}
    least = spec.get("usermeta", {}).get("least_width", 0)
    for name, width in WIDTHS.items():
        whole = {
            **described,
            "width": max(width, least),
            "autosize": {"type": "fit-x", "contains": "padding"},
            "config": {**_roomy(CONFIG), "aria": True},
        }
        drawn[name] = _cleaned(vl_convert.vegalite_to_svg(whole), f"{key}-{name}", name, spec)
    return Drawing(drawn)


def _roomy(config: Mapping[str, Any]) -> Value:
    """Return the configuration with labels as big as the widest font of a reader makes them."""
    return {
        key: _roomy(value)
        if isinstance(value, dict)
        else _PLACED_AS[value]
        if key.endswith("FontSize")
        else value
        for key, value in config.items()
    }


def x_encoding(spec: Value) -> Value | None:
    """Return the encoding of the x axis whose domain is stated; None where no axis has one."""
    for layer in marks(spec):
        x = layer.get("encoding", {}).get("x", {})
        if x.get("axis", True) is not None and "domain" in (x.get("scale") or {}):
            found: Value = x
            return found
    return None


def _bands(spec: Value) -> list[str]:
    """Return what stands along the y axis from the top, where that is names in an order."""
    ys = (layer.get("encoding", {}).get("y", {}) for layer in marks(spec))
    orders = (y.get("sort") for y in ys if y.get("type") == "nominal")
    return next((order for order in orders if isinstance(order, list)), [])


def marks(spec: Value) -> Iterator[Value]:
    """Yield every layer that draws marks, with the data it shares with others."""
    if "layer" in spec:
        shared = {"data": spec["data"]} if "data" in spec else {}
        for layer in spec["layer"]:
            yield from marks(shared | layer)
    else:
        yield spec


def _layers_with_words(spec: Value) -> Value:
    """Return the layers, the tooltip of each as the description that Vega writes into SVG.

    A line has one for all its points, which would be that of the first: its rows are in the table.
    """
    if "layer" in spec:
        layers = [{**layer, **_layers_with_words(layer)} for layer in spec["layer"]]
        return {"layer": layers}
    tips = spec.get("encoding", {}).get("tooltip")
    kind = spec["mark"]["type"] if isinstance(spec["mark"], dict) else spec["mark"]
    if kind in _OF_MANY_ROWS:
        tips = None
    words = " + '\\n' + ".join(map(_words, tips)) if tips else "''"
    encoding = {**spec.get("encoding", {}), "description": {"value": {"expr": words}}}
    return {"encoding": encoding}


def _words(tip: Value) -> str:
    """Return the expression of Vega for one line of a tooltip."""
    field = f"datum[{tip['field']!r}]"
    few_digits = f"format({field}, abs({field}) < 1000 ? '.4~g' : ',.0f')"
    value = f"(isNumber({field}) ? {few_digits} : {field})"
    if tip["type"] == "temporal":
        value = f"utcFormat(toDate({field}), {tip['format']!r})"
    elif "format" in tip:
        value = f"format({field}, {tip['format']!r})"
    return f"'{tip['title']}: ' + {value}"


def _cleaned(svg: str, key: str, name: str, spec: Value) -> str:
    """Return an SVG for a page: short, without styles, its words as titles of its marks."""
    root = ElementTree.fromstring(svg)
    frame = _frame(root)
    _clean(root, key, {})
    size = root.attrib["viewBox"].split()
    root.attrib.clear()
    shrinks = name == "narrow" and float(size[2]) <= _MOST_SHRUNK * WIDTHS[name]
    kind = f"{name} shrinks" if shrinks else name
    root.attrib |= {"class": kind, "viewBox": " ".join(size), "width": size[2], "height": size[3]}
    x = x_encoding(spec)
    if x is not None and frame is not None:
        kind = "time" if x["type"] == "temporal" else x.get("title") or "x"
        domain = [position(value) for value in x["scale"]["domain"]]
        root.attrib |= {
            "data-axis": str(kind).split(" (")[0],
            "data-domain": " ".join(map(str, domain)),
            "data-frame": " ".join(f"{number:g}" for number in frame),
        }
        if bands := _bands(spec):
            root.attrib["data-bands"] = json.dumps(bands)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, key: str, names: dict[str, int]) -> None:
    element.tag = _TAG.sub("", element.tag)
    words = element.attrib.pop("aria-label", "")
    for name, value in list(element.attrib.items()):
        if name in _NEEDLESS or (name, value) in _DEFAULTS:
            del element.attrib[name]
        elif name == "style":  # Vega writes the slant of a letter under this name
            element.attrib["font-style"] = element.attrib.pop(name)
        elif name == "id":
            element.attrib[name] = _named(value, key, names)
        elif value.startswith("url(#"):
            element.attrib[name] = f"url(#{_named(value[5:-1], key, names)})"
        elif name == "font-size":
            element.attrib[name] = _WRITTEN_AS.get(value, value)
        elif name != "class":
            element.attrib[name] = _LONG_NUMBER.sub(lambda n: f"{float(n[0]):.1f}", value)
    for place, child in enumerate(list(element)):
        told = _label(child)
        _clean(child, key, names)
        if told.startswith("part: "):
            element[place] = _part_link(child, told.partition("\n")[0].removeprefix("part: "))
    if words and len(element) == 0 and element.tag != "text":
        ElementTree.SubElement(element, "title").text = words


def _named(name: str, key: str, names: dict[str, int]) -> str:
    """Return a name that no other chart of a page has: Vega counts them up from chart to chart."""
    return f"{key}-{names.setdefault(name, len(names))}"


def _label(element: ElementTree.Element) -> str:
    return element.attrib.get("aria-label", "")


def _part_link(mark: ElementTree.Element, part: str) -> ElementTree.Element:
    link = ElementTree.Element("a", {"href": f"part:{part}", "aria-label": part})
    link.append(mark)
    return link


def _frame(root: ElementTree.Element) -> tuple[float, ...] | None:
    """Return left, top, width and height of the plot inside the SVG."""
    shifts = (_SHIFT.fullmatch(g.attrib.get("transform", "")) for g in root.iter())
    shift = next(filter(None, shifts), None)
    frames = (_FRAME.match(p.attrib.get("d", "")) for p in root.iter() if _is_background(p))
    size = next(filter(None, frames), None)
    if shift is None or size is None:
        return None
    return (*map(float, shift.groups()), *map(float, size.groups()))


def _is_background(element: ElementTree.Element) -> bool:
    return element.attrib.get("class") == "background"
