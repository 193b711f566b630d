"""Losses that several causes share: what each of them took, no log tells.

The collectives of a run that was slow from its first step are short of what the line rate lets
expect, and every cause of the whole run is priced by that. Of several, each may have cost all of it
or nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import SEVERITIES, Finding, Severity, severity_of_loss
from fabricobs.diagnosis.model import Model
from fabricobs.notebook import share_words

SLOW_COLLECTIVES = "slow_collectives"
_BY_DESIGN = "oversubscription"
# As of a cause whose loss is not known: it may be none.
_OF_UNKNOWN: Severity = "medium"
# A hash of few flows fills the busiest of parallel links twice (Raab and Steger, "Balls into bins",
# 1998): of narrow leaves no more than that is by design.
_BY_CHANCE = 2.0


def with_shared_losses(
    findings: Sequence[Finding], models: Mapping[str, Model], evidence: Evidence
) -> list[Finding]:
    """Return the findings, those that share the loss of slow collectives with what they share it.

    A cause of slow collectives shares it whose own loss is not known, or is the same. So do leaves
    with less capacity up than down, though no finding is about them.
    """
    causes = {model.kind for model in models.values() if SLOW_COLLECTIVES in model.explains}
    sharing = [f for f in findings if f.kind in causes and _may_take_part(f)]
    ratios = evidence.frame("narrow_leaves")["ratio"].drop_nulls()
    narrow = ratios.filter(ratios > models[_BY_DESIGN].limit("ratio"))
    ratio = None if narrow.is_empty() else float(narrow[0])
    return [_shared(finding, sharing, ratio) for finding in findings]


def _shared(finding: Finding, sharing: Sequence[Finding], ratio: float | None) -> Finding:
    """Return a finding with what shares its loss; `ratio` is NIC over uplink capacity of leaves."""
    if finding.reached is None or finding.loss_share is None:
        return finding
    others = [f for f in sharing if f is not finding and _meet(f, finding)]
    design = ""
    if ratio is not None and _BY_DESIGN not in {f.kind for f in (finding, *others)}:
        design = f"leaves with {ratio:.3g} times less capacity up than down"
    if not (others or design):
        own = severity_of_loss(finding.loss_share)
        return replace(finding, severity=max(finding.severity, own, key=SEVERITIES.index))
    least = 0.0 if others or ratio is None else _least(finding.loss_share, finding.reached, ratio)
    sure = severity_of_loss(least)
    most = max(_OF_UNKNOWN, sure, key=SEVERITIES.index)
    weight = max(finding.severity, sure, key=SEVERITIES.index)
    named = _in_words(others, design)
    down_to = "" if least else ", down to nothing"
    return replace(
        finding,
        loss_shared_with=tuple(named),
        severity=min(weight, most, key=SEVERITIES.index),
        explanation=f"{_at_most(finding)} It may be less{down_to}: the same collectives have other "
        f"causes, and no log tells what each takes: {'; '.join(named)}.",
    )


def _least(loss: float, reached: float, ratio: float) -> float:
    """Return what narrow leaves leave of a loss if all they can take is theirs."""
    transfers = loss / (1 - reached)
    return transfers * max(0.0, 1 - reached * ratio * _BY_CHANCE)


def _may_take_part(finding: Finding) -> bool:
    is_cause = finding.severity != "info" and not finding.unfelt
    return is_cause and (finding.loss_share is None or finding.reached is not None)


def _in_words(others: Sequence[Finding], design: str) -> list[str]:
    """Return how the titles of others begin, one of each kind; those without a cost come last."""
    first = {other.kind: other for other in reversed(others)}.values()
    costly = [other.first_clause for other in first if other.loss_share]
    rest = [other.first_clause for other in first if not other.loss_share]
    return [*costly, *filter(None, [design]), *rest]


def _meet(one: Finding, other: Finding) -> bool:
    """Say whether two act at one time, as far as is known."""
    return all(
        a.start is None or b.end is None or a.start <= b.end
        for a, b in ((one, other), (other, one))
    )


def _at_most(finding: Finding) -> str:
    """Return the explanation with its cost as the most it can be."""
    share = share_words(finding.loss_share or 0.0)
    return re.sub(rf"(It costs?) {re.escape(share)}", rf"\1 up to {share}", finding.explanation)
