"""From what a method measured to the finding it tells: the model's words, filled in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from string import Formatter
from types import MappingProxyType
from typing import Any

from fabricobs.diagnosis.cost import Cost, unless_in_both
from fabricobs.diagnosis.device_commands import (
    netdev_of,
    nic_commands_of,
    optics_of_ends,
    switch_commands_of,
)
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import (
    SEVERITIES,
    Driver,
    Entity,
    Finding,
    Severity,
    confidence_of,
    severity_of_loss,
)
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.usual_steps import WORTH_A_LOOK
from fabricobs.notebook import share_words

_NO_COMMANDS: Mapping[str, str] = MappingProxyType({})
# What a text may name beside what its method fills and the commands.
WORDS_OF_FINDINGS = ("device", "netdev", "optics_of_ends")
COST_UNKNOWN = "What it costs cannot be told from these files."
COST_UNSEEN = (
    f"What it costs is not known: the steps vary too much for a loss of {WORTH_A_LOOK:.0%} to show."
)
COST_WITHIN_SPREAD = (
    "What it costs is not known: collectives are as fast as on sound sites, which differ by more "
    f"than {WORTH_A_LOOK:.0%} of this job's steps."
)
COST_NOT_KNOWN = (COST_UNKNOWN, COST_UNSEEN, COST_WITHIN_SPREAD)
_COST = re.compile(r"\b(It costs?) (?:up to )?[\d.]+% of the throughput")
UNFELT = "The job did not measurably feel it"


def build_finding(
    model: Model,
    evidence: Evidence,
    words: Mapping[str, Any],
    *,
    entities: Sequence[Entity],
    families: set[str],
    drivers: Sequence[Driver],
    related: Sequence[Entity] = (),
    start: datetime | None = None,
    end: datetime | None = None,
    detected_at: datetime | None = None,
    cost: Cost | None = None,
    unmeasured: Severity = "medium",
    least: Severity = "info",
    most: Severity = "critical",
) -> Finding:
    """Return the finding of one cause.

    Its severity follows the loss. A cause whose loss is not felt or cannot be measured is
    `unmeasured`: at most medium, for redundancy may hide it. One that is information then is
    so if its loss is small, too. One that may end the job is `least`, whatever it cost so far,
    and one that may be no fault `most`.
    """
    device = next((entity.nic for entity in entities if entity.nic is not None), "DEVICE")
    named = {"device": device, "netdev": netdev_of(device)} | dict(words)
    commands = switch_commands_of(evidence, (*entities, *related), words.get("at_port"))
    commands |= nic_commands_of(device)
    commands["optics_of_ends"] = optics_of_ends(evidence, entities, commands)
    words = with_phrases(model, named | commands)
    cost = unless_in_both(cost, model.kind, entities)
    felt = cost is not None and cost.felt
    loss = cost.loss_share if cost is not None and felt else None
    severity = severity_of_loss(loss) if felt else unmeasured
    if felt:
        floor: Severity = "info" if unmeasured == "info" else "low"
        severity = max(severity, floor, least, key=SEVERITIES.index)
    severity = min(severity, most, key=SEVERITIES.index)
    return Finding(
        kind=model.kind,
        entities=tuple(entities),
        related=tuple(related),
        severity=severity,
        confidence=confidence_of(families),
        families=tuple(sorted(families)),
        title=model.wording.title.format(**words),
        explanation=" ".join([model.wording.explanation.format(**words), _cost_sentence(cost)]),
        start=start or (cost.start if cost else None),
        end=end or (cost.end if cost else None),
        start_step=cost.start_step if cost and felt else None,
        end_step=cost.end_step if cost and felt else None,
        detected_at=detected_at,
        loss_share=loss,
        reached=cost.reached if cost is not None and felt else None,
        unfelt=cost is not None and cost.would_show and not felt,
        drivers=tuple(drivers),
        bursts=cost.bursts if cost and felt else (),
        grown_at=cost.grown_at if cost and felt else (),
        query=model.query,
        refuted_by=refutations_of(model, words),
        next_steps=steps_of(model, words, commands),
    )


def with_phrases(model: Model, words: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words of a finding with the phrases of its model, filled in."""
    filled = dict(words)
    for name, texts in model.wording.phrase.items():
        filled[name] = _phrase(texts, filled)
    return filled


def steps_of(
    model: Model, words: Mapping[str, Any], commands: Mapping[str, str] = _NO_COMMANDS
) -> tuple[str, ...]:
    """Return the next steps of a model, filled in with words and with commands."""
    return _filled_in(model.next_steps, model, words, commands)


def refutations_of(model: Model, words: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what would disprove a finding of a model, filled in with words."""
    return _filled_in(model.refuted_by, model, words, _NO_COMMANDS)


def _filled_in(
    texts: Sequence[str], model: Model, words: Mapping[str, Any], commands: Mapping[str, str]
) -> tuple[str, ...]:
    """Fill words into texts of a model; a text of which a word is not known is left out.

    What stands in backticks is a command: a name of a log has none, else it could pass for one.
    """
    named = {
        name: word.replace("`", "'") if isinstance(word, str) else word
        for name, word in words.items()
    }
    # Phrases are the model's own: they have commands.
    filled = with_phrases(model, named | dict(commands))
    return tuple(text.format(**filled) for text in texts if _are_known(text, filled))


def _phrase(texts: Sequence[str], words: Mapping[str, Any]) -> str:
    """Return the first text of which every word is known, filled in; empty if there is none."""
    for text in texts:
        if _are_known(text, words):
            return text.format(**words)
    return ""


def _are_known(text: str, words: Mapping[str, Any]) -> bool:
    """Say whether every word that a text names has a value."""
    return all(words.get(name) is not None for name in names_in(text))


def names_in(text: str) -> list[str]:
    """Return the words that a text of a model names in braces."""
    return [name for _, name, _, _ in Formatter().parse(text) if name]


def driver(
    model: Model,
    threshold: str,
    feature: str,
    value: float,
    *,
    peer: float | None = None,
    unit: str = "",
    robust_z: float | None = None,
) -> Driver:
    """Return a number beside the threshold of the model that it is compared with.

    Of a threshold in another unit, such as times the peers' rate, only the source is told.
    """
    limit = model.threshold[threshold]
    bound = limit.value if limit.unit == unit else None
    return Driver(feature, value, peer, unit, robust_z, bound, limit.source)


def with_one_cost(finding: Finding) -> Finding:
    """Return a finding whose explanation tells the loss that its title and table tell.

    What weighs a loss anew, as symptoms and bursts do, leaves the sentence as it was.
    """
    told = _COST.sub(rf"\1 {finding.lost} of the throughput", finding.explanation, count=1)
    return finding if finding.loss_share is None else replace(finding, explanation=told)


def _cost_sentence(cost: Cost | None) -> str:
    if cost is None:
        return COST_UNKNOWN
    if not cost.would_show:
        return COST_UNSEEN if cost.reached is None else COST_WITHIN_SPREAD
    if not cost.felt:
        return f"{UNFELT}, against {cost.against}."
    return f"It cost {share_words(cost.loss_share)} of the throughput, against {cost.against}."
