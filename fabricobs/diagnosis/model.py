"""Models: what a file of `models/` says about one diagnosis, and loading it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from fabricobs import content
from fabricobs.content import ContentError
from fabricobs.short_files import parsed
from fabricobs.validation import explain


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Threshold(_Part):
    """A number the method compares with, and where it is from."""

    value: float
    unit: str = ""
    meaning: str
    source: str


class RuleDriver(_Part):
    """A number of a rule's evidence that the finding shows beside a threshold.

    `value` and `peer` name columns of the evidence.
    """

    threshold: str
    feature: str
    value: str
    peer: str = ""
    unit: str = ""


class Rule(_Part):
    """A diagnosis stated as data: which rows of the evidence are wrong, and what they name.

    `when` is SQL over one row, with {thresholds}; `intervals` the threshold that says how many in a
    row count; `entity` the type of the part that the columns job, rank, host, gpu, nic, switch and
    port name; `judged` a query of how many units tell, of how many. A cause that `lasts` is priced
    until the end of the run, another one in its intervals.
    """

    when: str
    entity: str
    intervals: str = ""
    families: tuple[str, ...]
    judged: str = ""
    lasts: bool = False
    driver: tuple[RuleDriver, ...] = ()


class Wording(_Part):
    """Texts with {placeholders} that the method fills."""

    title: str
    explanation: str


class Model(_Part):
    """One diagnosis: question, method, thresholds with their sources, wording, what next.

    `explains` names the kinds of finding that are its symptoms where they touch the same part,
    `evidence` the query of `queries/evidence/` that a method for several models starts from,
    `rule` what the method `rule` goes by,
    `charts` what the report shows of its findings: the first that the store has data for.
    """

    name: str
    kind: str
    question: str
    method: str
    query: str
    charts: tuple[str, ...] = ()
    evidence: str = ""
    explains: tuple[str, ...] = ()
    threshold: dict[str, Threshold] = {}
    rule: Rule | None = None
    wording: Wording
    refuted_by: tuple[str, ...]
    next_steps: tuple[str, ...]

    def limit(self, name: str) -> float:
        """Return a threshold's value."""
        return self.threshold[name].value

    def with_limits(self, limits: Mapping[str, float], source: str) -> "Model":
        """Return the model with other values of some thresholds, and where they are from."""
        changed = {
            name: self.threshold[name].model_copy(update={"value": value, "source": source})
            for name, value in limits.items()
        }
        return self.model_copy(update={"threshold": {**self.threshold, **changed}})


def load_models(extra: Sequence[Path] = ()) -> dict[str, Model]:
    """Load every model, the user's folders last, by name; ContentError names file and key."""
    found = content.files("models", ".toml", extra)
    return {name: load_model(path) for name, path in found.items()}


def load_model(path: Path) -> Model:
    """Load one model."""
    document = parsed(path, content.read_text(path), ContentError)
    document.setdefault("name", path.stem)
    try:
        return Model.model_validate(document)
    except ValidationError as error:
        raise ContentError(explain(error, Model, lambda _: str(path))) from error
