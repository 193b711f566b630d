"""docs/diagnoses.md: what is diagnosed, by which thresholds, and what would refute it."""

from collections.abc import Mapping

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
        "1 less the product of the doubts that each independent family of evidence leaves.",
        table(
            ("family of evidence", "takes away so much of the doubt"),
            ((name, f"{weight:.0%}") for name, weight in FAMILY_WEIGHTS.items()),
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
        "What would refute it:",
        bullets(model.refuted_by),
        "Next steps:",
        bullets(model.next_steps),
    )


def _thresholds(limits: Mapping[str, Threshold]) -> str:
    rows = [
        (f"`{name}`", f"{limit.value:g}", limit.unit, limit.meaning, limit.source)
        for name, limit in limits.items()
    ]
    return table(("threshold", "value", "unit", "meaning", "source"), rows) if rows else ""
