"""Of a run slow from its first step each of several causes is short of the same expectation."""

from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from fabricobs.diagnosis.findings import SEVERITIES, Entity, Finding, Loss, severity_of_loss
from fabricobs.diagnosis.loss import with_findings
from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.shared_losses import with_shared_losses
from fabricobs.diagnosis.standing import headline
from fabricobs.diagnosis.what_if import what_if
from fabricobs.report.wording import amount_words, cost_words

START = datetime(2026, 3, 2, 9)
MODELS = load_models()
# Of which a run may have several from its first step.
CAUSES = (
    "gdr_disabled", "nic_affinity", "degraded_link", "ecn_misconfigured", "pfc_storm",
    "oversubscription", "packet_loss", "ecmp_skew",
)  # fmt: skip


def cause(kind: str, loss: float | None, **told: Any) -> Finding:
    """Return a finding of the whole run, priced by what the line rate lets expect."""
    reached = 0.5 if loss is not None else None
    found = Finding(
        kind, (Entity("host", host=f"{kind}-host"),), severity_of_loss(loss) if loss else "medium",
        0.9, f"A fault of {kind}: details", "Why.", start=START, end=START + timedelta(hours=1),
        loss_share=loss, reached=reached,
    )  # fmt: skip
    return replace(found, **told)


def shared(findings: list[Finding], ratio: float | None = None) -> list[Finding]:
    narrow = pl.DataFrame({"ratio": [] if ratio is None else [ratio]}, schema={"ratio": pl.Float64})
    evidence: Any = SimpleNamespace(frame={"narrow_leaves": narrow}.__getitem__)
    return with_shared_losses(findings, MODELS, evidence)


@pytest.mark.parametrize("seed", range(30))
def test_each_of_several_costs_at_most_what_all_do(seed: int) -> None:
    """GPUDirect off beside full uplinks "cost 25.8%", critical: it had cost nothing."""
    chance = np.random.default_rng(seed)
    kinds = chance.choice(CAUSES, int(chance.integers(2, 5)), replace=False)
    losses: list[float | None] = [float(chance.uniform(0.03, 0.5)) for _ in kinds]
    losses[1:] = [None if chance.random() < 0.3 else loss for loss in losses[1:]]
    told = shared([cause(str(k), loss) for k, loss in zip(kinds, losses, strict=True)])
    for finding, loss in zip(told, losses, strict=True):
        others = {f.first_clause for f in told if f is not finding}
        assert finding.loss_share == loss
        if loss is None:
            assert not finding.loss_shared_with and "may be less" not in finding.explanation
            continue
        assert {*finding.loss_shared_with} == others
        assert SEVERITIES.index(finding.severity) <= SEVERITIES.index("medium")
        assert f"This costs up to {loss:.1%}" in headline(finding)
        assert finding.loss_shared_with[0] in headline(finding)
        assert cost_words(finding).startswith(f"up to {loss:.1%} of the throughput, shared with")


@pytest.mark.parametrize("seed", range(20))
def test_what_is_measured_or_alone_is_not_shared(seed: int) -> None:
    chance = np.random.default_rng(seed)
    kind, other = (str(each) for each in chance.choice(CAUSES, 2, replace=False))
    alone = cause(kind, 0.25)
    beside = [
        # No cause of slow collectives; its loss is measured; nobody felt it; it is information;
        # it was over before the other began.
        cause("straggler", 0.2, reached=None),
        cause(other, 0.1, reached=None),
        cause(other, None, unfelt=True),
        cause(other, None, severity="info"),
        cause(other, None, start=START - timedelta(hours=2), end=START - timedelta(hours=1)),
    ]
    told = shared([alone, *(each for each in beside if chance.random() < 0.7)])
    assert told[0] == alone and told[0].severity == "critical"


@pytest.mark.parametrize("kind", CAUSES)
def test_narrow_leaves_take_a_part_without_a_finding(kind: str) -> None:
    """2:1 leaves took six times what the polarised hash did, which was billed for all."""
    (told,) = shared([cause(kind, 0.22)], 2.0)
    if kind == "oversubscription":
        assert not told.loss_shared_with  # that is the same fact
    else:
        assert told.loss_shared_with == ("leaves with 2 times less capacity up than down",)


@pytest.mark.parametrize("seed", range(20))
def test_what_narrow_leaves_cannot_take_weighs(seed: int) -> None:
    """A host on sockets costs most of the throughput wherever leaves are 2:1."""
    chance = np.random.default_rng(seed)
    transfers, reached = float(chance.uniform(0.2, 0.9)), float(chance.uniform(0.02, 0.6))
    ratio = float(chance.choice([1.5, 2.0, 4.0]))
    loss = transfers * (1 - reached)
    (told,) = shared([cause("socket_fallback", loss, reached=reached)], ratio)
    rest = transfers * (1 - 2 * ratio * reached)  # of links that a hash of few flows fills twice
    wanted = severity_of_loss(rest) if rest >= 0.05 else "medium"
    assert told.severity == min(wanted, severity_of_loss(loss), key=SEVERITIES.index)
    assert ("down to nothing" in told.explanation) is (rest <= 0)


@pytest.mark.parametrize("seed", range(20))
def test_chance_that_shares_a_loss_stays_what_it_is(seed: int) -> None:
    """Flows that collide by chance led the verdict before a host whose NICs were misconfigured."""
    chance = np.random.default_rng(seed)
    loss = float(chance.uniform(0.05, 0.5))
    collisions = cause("hash_collisions", loss, severity="low")
    (alone,) = shared([collisions])
    assert alone.severity == severity_of_loss(loss) and not alone.loss_shared_with
    (beside, fault) = shared([collisions, cause("nic_affinity", loss)])
    assert (beside.severity, fault.severity) == ("low", "medium")


def test_a_shared_loss_is_at_most_that_wherever_it_is_told() -> None:
    """ "What if" called it measured, and the whole run had "lost 22.8%"."""
    told = shared([cause("gdr_disabled", 0.25), cause("nic_affinity", 0.25)])
    assert what_if([], told) == ()
    assert len(what_if([], [cause("gdr_disabled", 0.25)])) == 1
    parts = [replace(each, run_share=share) for each, share in zip(told, (0.25, 0.0), strict=True)]
    loss = with_findings(Loss(unexplained_share=0.0), parts)
    assert loss.at_most and amount_words(loss).startswith("up to 25.0% of the throughput")
    assert not with_findings(Loss(unexplained_share=0.1), []).at_most
