"""docs/diagnoses.md: what is diagnosed, by which thresholds, and what would disprove it."""

from collections.abc import Mapping

from fabricobs.diagnosis.calibration import load_calibration
from fabricobs.diagnosis.change import THRESHOLDS
from fabricobs.diagnosis.findings import FAMILY_WEIGHTS, LOSS_CLASSES
from fabricobs.diagnosis.model import Model, Threshold, load_models
from fabricobs.report.markdown import bullets, page, table


def diagnoses_page() -> str:
    """Return docs/diagnoses.md."""
    return page(
        "# Diagnoses",
        "Made from `models/`, where thresholds, wording and next steps are changed; "
        "`--content DIR` puts your own in their place. `fabricobs explain ID` shows the numbers of "
        "one finding beside these thresholds.",
        *map(_section, load_models().values()),
        "## Severity",
        "By the share of throughput lost; what costs nothing measurable is `info`. The 10 % mark "
        "is that of Greyhound (arXiv 2410.12588) and of the straggling job (arXiv 2505.05713); "
        "the others halve and double it.",
        table(
            ("share lost, from", "severity"),
            ((f"{least:.0%}", name) for least, name in LOSS_CLASSES),
        ),
        "## Confidence",
        "Evidence agrees by 1 less the product of the doubts that each independent family leaves.",
        table(
            ("family of evidence", "takes away so much of the doubt"),
            ((name, f"{weight:.0%}") for name, weight in FAMILY_WEIGHTS.items()),
        ),
        "What a finding says is how often findings of that agreement were right on simulated "
        "clusters, judged from all of their logs and from one kind of evidence alone, with tuning "
        "seeds (`models/confidence.csv`; one right and one wrong are added to each group, and the "
        "curve never falls: isotonic regression).",
        table(
            ("agreement", "confidence", "findings", "of them right"),
            (
                (f"{p.agreement:g}", f"{p.confidence:.2f}", f"{p.findings:,}", f"{p.right:,}")
                for p in load_calibration()
            ),
        ),
        "## Comparisons",
        "`fabricobs compare` says that a number changed, that it did not, or that nobody can tell.",
        _thresholds(THRESHOLDS),
    )


def _section(model: Model) -> str:
    return page(
        f"## {model.name}",
        model.question,
        f"Evidence: [`{model.query}`](queries.md#{model.query}). Method: `{model.method}`.",
        _thresholds(model.threshold),
        "What would disprove it:",
        bullets(model.refuted_by),
        "Next steps:",
        bullets([_worded(step, model) for step in model.next_steps]),
    )


def _worded(step: str, model: Model) -> str:
    """Return a step with the phrases it may begin with; facts stay in braces."""
    for name, texts in model.wording.phrase.items():
        step = step.replace(f"{{{name}}}", ", or: ".join(texts))
    return step


def _thresholds(limits: Mapping[str, Threshold]) -> str:
    rows = [
        (f"`{name}`", f"{limit.value:g}", limit.unit, limit.meaning, limit.source)
        for name, limit in limits.items()
    ]
    return table(("threshold", "value", "unit", "meaning", "source"), rows) if rows else ""
