"""Losses that several causes share: what each of them took, no log tells.

The collectives of a run that was slow from its first step are short of what the line rate lets
expect, and every cause of the whole run is priced by that. Of several, each may have cost all of it
or nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fabricobs.diagnosis.cost import EXPECTATION
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import SEVERITIES, Finding, Severity
from fabricobs.diagnosis.model import Model
from fabricobs.notebook import share_words

_SLOW = "slow_collectives"
_BY_DESIGN = "oversubscription"
# As of a cause whose loss is not known: it may be none.
_MOST: Severity = "medium"


def with_shared_losses(
    findings: Sequence[Finding], models: Mapping[str, Model], evidence: Evidence
) -> list[Finding]:
    """Return the findings, those that share the loss of slow collectives with what they share it.

    A cause of slow collectives shares it whose own loss is not known, or is the same. So do leaves
    with less capacity up than down, though no finding is about them.
    """
    causes = {model.kind for model in models.values() if _SLOW in model.explains}
    sharing = [f for f in findings if f.kind in causes and _may_take_part(f)]
    design = _design(evidence)
    told = []
    for finding in findings:
        if finding.loss_against == EXPECTATION:
            others = [f for f in sharing if f is not finding and _meet(f, finding)]
            untold = "" if _BY_DESIGN in {f.kind for f in (finding, *others)} else design
            finding = _sharing(finding, _in_words(others, untold))
        told.append(finding)
    return told


def _may_take_part(finding: Finding) -> bool:
    is_cause = finding.severity != "info" and not finding.unfelt
    return is_cause and (finding.loss_share is None or finding.loss_against == EXPECTATION)


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


def _sharing(finding: Finding, others: Sequence[str]) -> Finding:
    if not others or finding.loss_share is None:
        return finding
    return replace(
        finding,
        loss_shared_with=tuple(others),
        severity=min(finding.severity, _MOST, key=SEVERITIES.index),
        explanation=f"{_at_most(finding)} It may be less, down to nothing: the same "
        f"collectives have other causes, and no log tells what each takes: {'; '.join(others)}.",
    )


def _at_most(finding: Finding) -> str:
    """Return the explanation with its cost as the most it can be."""
    share = share_words(finding.loss_share or 0.0)
    return re.sub(rf"(It costs?) {re.escape(share)}", rf"\1 up to {share}", finding.explanation)


def _design(evidence: Evidence) -> str:
    """Say how much narrower the job's leaves are than its NICs; empty where they are not."""
    ratios = evidence.frame("narrow_leaves")["ratio"]
    return (
        "" if ratios.is_empty() else f"leaves with {ratios[0]:.3g} times less capacity up than down"
    )
