"""Pages of HTML from templates: everything from a log is escaped, nothing foreign is loaded.

As a second wall the content security policy of a page allows its own style and script and no
request. A page of its own has both inside, named by their digests; the pages of a site share two
files, and have no style and no script of their own: a server that forbids both shows them whole.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fabricobs import __version__
from fabricobs.diagnosis.findings import Finding
from fabricobs.report import wording
from fabricobs.report.charts.theme import properties
from fabricobs.report.commands import with_commands
from fabricobs.report.evidence_rows import cell_text
from fabricobs.report.jobs import facts_of, named_words, restarts

STYLE, SCRIPT = "report.css", "report.js"
_SCRIPTS = ("tables.js", "copy.js", "charts.js")
_FINDING = re.compile(r"\bfinding (\d+|[0-9a-f]{12})\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?(?: UTC)?|\d\d:\d\d:\d\d UTC")
_MOST_LINKED = 12  # in one text
_NOTHING_ELSE = "base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a page finds what it links to.

    `finding` and `part` (a host, a switch or a job) return an address, None where there is none;
    `site` is the way to the root of its site, None of a page that is alone.
    """

    finding: Callable[[str], str | None]
    part: Callable[[str], str | None]
    site: str | None = None


def style() -> str:
    """Return the style of all pages."""
    template = environment().get_template(STYLE)
    return template.render(light=properties("light"), dark=properties("dark"))


def script() -> str:
    """Return the script of all pages: tables, copying, tooltips and the range of time."""
    parts = (environment().get_template(name).render() for name in _SCRIPTS)
    return "\n".join(f"{{\n{part}\n}}" for part in parts)


def page(template: str, addresses: Addresses, **context: Any) -> str:
    """Return a page: alone with style and script inside, of a site with links to both."""
    alone = addresses.site is None
    inside = (style(), script()) if alone else ("", "")
    return (
        environment()
        .get_template(template)
        .render(
            addresses=addresses,
            style=Markup(inside[0]),
            script=Markup(inside[1]),
            policy=_policy(*inside) if alone else _policy_of_files(),
            version=__version__,
            **context,
        )
    )


def _policy(style: str, script: str) -> str:
    """Return the policy of a page that is alone: this style and this script, no request."""
    return (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; "
        f"{_NOTHING_ELSE}"
    )


def _policy_of_files() -> str:
    """Return the policy of a page of a site: the files beside it, nothing inside, no request."""
    return f"default-src 'none'; script-src 'self'; style-src 'self'; {_NOTHING_ELSE}"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _far_end(address: str | None, port: str | None) -> str | None:
    """Return the address of a port at the other end of a cable: on the page of its owner."""
    return address if address is None or port is None else f"{address}#port-{port}"


def linked_findings(
    text: str, numbered: Sequence[tuple[int, Finding]], address_of: Callable[[str], str | None]
) -> Markup:
    """Return a text whose first findings, by number or id, are linked to where they are told."""
    ids = {str(number): finding.id for number, finding in numbered}

    def link(found: re.Match[str]) -> str:
        address = address_of(ids.get(found[1], found[1]))
        return found[0] if address is None else f'<a href="{escape(address)}">{found[0]}</a>'

    return Markup(_FINDING.sub(link, str(escape(text)), _MOST_LINKED))


def whole_times(text: str) -> Markup:
    """Return a text in which no line ends within a date or a time."""
    return Markup(_TIME.sub(r'<span class="name">\g<0></span>', str(escape(text))))


def breakable(name: str) -> Markup:
    """Return a name that may go on in the next line behind each underscore, and nowhere else."""
    return Markup("_<wbr>").join(escape(part) for part in name.split("_"))


@cache
def environment() -> Environment:
    """Return what renders templates, with the words that all renderings share."""
    made = Environment(
        loader=PackageLoader("fabricobs.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    for function in (
        wording.number,
        wording.percent,
        wording.threshold_words,
        wording.utc,
        wording.bursts_words,
        wording.cost_words,
        wording.detected_words,
        wording.confidence_words,
        wording.loss_words,
        wording.since_words,
        wording.end_moment_words,
        wording.standing_words,
        wording.state_words,
        wording.until_words,
        wording.culprits_word,
        wording.counted,
        wording.broken_note,
        cell_text,
        breakable,
        linked_findings,
        whole_times,
        with_commands,
    ):
        made.filters[function.__name__] = function
    made.globals["money"] = wording.money
    made.globals["far_end"] = _far_end
    made.globals |= {"facts_of": facts_of, "named_words": named_words, "restarts": restarts}
    return made
