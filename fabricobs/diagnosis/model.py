"""Models: what a file of `models/` says about one diagnosis, and loading it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fabricobs import content
from fabricobs.content import ContentError
from fabricobs.short_files import parsed
from fabricobs.validation import explain, nearest

# The questions of the verdict that a finding can answer with "problem".
Answers = Literal[
    "slow_rank", "sick_link", "routing", "choice", "gpudirect", "congested", "bandwidth"
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Threshold(_Part):
    """A number the method compares with, and where it is from."""

    value: float
    unit: str = ""
    meaning: str
    source: str


class RuleDriver(_Part):
    """A fact of a rule that the finding shows beside a threshold; left out where it is null.

    `feature` may have {facts}; `value` names a fact, `peer` a fact or is a number.
    """

    threshold: str
    feature: str
    value: str
    peer: str | float = ""
    unit: str = ""


class Together(_Part):
    """How many parts must be wrong at once for one finding of all of them.

    `share` is the threshold that says which share of the parts, whose number the evidence has in
    the column `of`; `fewest` the threshold of the least number. Where the SQL condition
    `unless` holds of the wrong rows, any number will do.
    """

    share: str
    of: str
    fewest: str = ""
    unless: str = ""


class Whole(_Part):
    """When so many parts are wrong that what holds them is named instead, as a host for its GPUs.

    `entity` is the type of what holds them, `by` the column that names it, `of` the column with the
    number of its parts, and `share` the threshold of the share that must be wrong. The parts are
    then related.
    """

    entity: str
    by: Literal["host", "switch"]
    of: str
    share: str


class Rule(_Part):
    """A diagnosis stated as data: which rows of the evidence are wrong, and what they name.

    The evidence has one row a part and interval (`ts_before` to `ts`). The columns job, rank, host,
    gpu, nic, switch and port name the part, `type` says which sort of entity it is where `entity`
    does not; or `entities` lists them all. `related` lists the entities it touches, `sure` is when
    it was clear where no `for` says so. Where `begun_by` says that it began between `ts_before`
    and then, it began with the slowdown of the job between them, if there is one; a part that was
    read sound at `sound_at` is not older. SQL here reads these columns, thresholds as `$name`, and
    other evidence as `evidence.name`.

    - `when`: a condition; rows of which it holds are wrong.
    - `for`: the threshold that says for how long: of the unit s so many seconds, else so many
      intervals in a row.
    - `part`: the columns that name what must be wrong so long; those of the entity if left out.
    - `having`: a condition over the wrong rows of a part, with aggregates.
    - `finding`: the columns whose equal rows are one finding; those of the part if left out.
    - `at_once`: an aggregate; findings that are wrong at the same times are one, whose parts it
      orders, the largest first.
    - `major`: the threshold of the share of the largest part of such a finding, by `at_once`, that
      a part must reach: those below it are affected, and related. `{minor}` names them.
    - `together`: how many parts must be wrong at once; one finding has all of them.
    - `whole`: when what holds the parts of a finding is named instead of them.
    - `facts`: what the wording names, as aggregates over the rows of a finding. Every
      column is a fact too: the median of numbers, else the first value.
    - `price`: how the loss is measured, the first that is felt: `rank` (all ranks of the finding
      against their peers), `outside` (steps in these intervals against those outside),
      `intervals` (the same, and as `run` where none are outside), `run` (the whole run against the
      groups without the rows' hosts, or what NICs can carry), or `none`.
    - `priced_where`: an aggregate over the rows of a finding; where it is false its loss is left to
      what names its cause, unless longer steps begin and end with it.
    - `dose`: the column that says how strongly it acts in an interval, such as errors a second.
      Steps that become longer while it acts are its own where it acts more strongly in them, and
      else of another cause.
    - `lasts`: the cause goes on after its last row, unless the column `ended` says when it was
      over.
    - `corroboration`: families of evidence, each with the condition under which it agrees; `timing`
      agrees where a loss is felt.
    - `severity`: SQL for the severity where no loss is felt, `medium` if left out; null for no
      finding: the answer is then unknown. `$priced` is 1 where the loss was measured, or would have
      shown, `$slower` where it was not and steps became longer when the cause began,
      `$as_expected` where collectives are as fast as the line rate lets expect, else 0; `facts`
      may ask them.
    - `most`: SQL for the highest severity, whatever is lost; `critical` if left out.
    - `settled_by`: what to provide where the severity is null.
    - `judged`: SQL over all rows that counts the parts of which the data tell, and `of` those that
      there are; the parts of the evidence if left out.
    """

    when: str = "true"
    for_: str = Field("", alias="for")
    part: tuple[str, ...] = ()
    having: str = ""
    finding: tuple[str, ...] = ()
    at_once: str = ""
    major: str = ""
    together: Together | None = None
    whole: Whole | None = None
    entity: str = ""
    facts: dict[str, str] = {}
    price: tuple[Literal["rank", "intervals", "outside", "run", "none"], ...] = ("intervals",)
    priced_where: str = ""
    dose: str = ""
    lasts: bool = False
    corroboration: dict[str, str]
    severity: str = "'medium'"
    most: str = "'critical'"
    settled_by: str = ""
    judged: str = ""
    of: str = ""
    driver: tuple[RuleDriver, ...] = ()


class Case(_Part):
    """A test of a rule: rows in, findings out. At least one fires, and one stays silent.

    `rows` are tables as text by the name of an evidence query, columns apart by two blanks, a dash
    for null, a time of day for a time. `logs` are files by their names, as the tools
    write them. `finds` are the labels of the entities of each finding expected, comma between.
    """

    says: str
    rows: dict[str, str] = {}
    logs: dict[str, str] = {}
    finds: tuple[str, ...]
    title: str = ""
    severity: str = ""


class Wording(_Part):
    """Texts with {placeholders} that the method fills.

    A phrase of a rule is a list of texts: the first of which all facts are known is used, or none.
    `past` are words of the title, and what they are of a fault that is over.
    """

    title: str
    past: dict[str, str] = {}
    explanation: str
    phrase: dict[str, tuple[str, ...]] = {}


class Model(_Part):
    """One diagnosis: question, method, thresholds with their sources, wording, what next.

    - `explains`: the kinds of finding that are its symptoms where they touch the same part.
    - `stops`: what it finds stops a job: the cause whose symptom it is was felt, and is as severe.
    - `answers`: the question of the verdict that its findings answer with "problem".
    - `evidence`: the query of `queries/evidence/` that the method `rule` starts from.
    - `rule`: what the method `rule` goes by, `case` its tests.
    - `query`: the question in `queries/` that shows the evidence to a person.
    - `whole`: it judges all runs of a store at once, as a sweep of benchmarks is many runs.
    - `live_steps`: how many of the first steps show something only while the fault lasts.
    - `lines`: tables and the SQL condition of those of their rows whose lines of the input prove
      findings of its kind, beside those of its query. A setting holds whenever it was read.
    - `charts`: what the report shows of its findings: the first that the store has data for.
    - `thresholds_of`: the models whose own thresholds it goes by, too; those of its own come first.
    """

    name: str
    kind: str
    question: str
    answers: Answers | None = None
    method: str
    query: str
    lines: dict[str, str] = {}
    charts: tuple[str, ...] = ()
    evidence: str = ""
    explains: tuple[str, ...] = ()
    stops: bool = False
    thresholds_of: tuple[str, ...] = ()
    threshold: dict[str, Threshold] = {}
    rule: Rule | None = None
    whole: bool = False
    case: tuple[Case, ...] = ()
    wording: Wording
    refuted_by: tuple[str, ...]
    next_steps: tuple[str, ...]
    live_steps: int = Field(0, ge=0)

    def limit(self, name: str) -> float:
        """Return a threshold's value."""
        return self.threshold[name].value

    @property
    def limits(self) -> dict[str, float]:
        """Return every threshold's value by its name."""
        return {name: threshold.value for name, threshold in self.threshold.items()}

    def with_limits(self, limits: Mapping[str, float], source: str) -> "Model":
        """Return the model with other values of some thresholds, and where they are from."""
        changed = {
            name: self.threshold[name].model_copy(update={"value": value, "source": source})
            for name, value in limits.items()
        }
        return self.model_copy(update={"threshold": {**self.threshold, **changed}})

    def with_thresholds_of(self, models: Mapping[str, "Model"]) -> "Model":
        """Return the model with the thresholds of others; ContentError if one is no model."""
        shared: dict[str, Threshold] = {}
        for name in self.thresholds_of:
            if name not in models:
                text = f"no model {name!r}{nearest(name, models)}"
                raise ContentError(f"models/{self.name}.toml: thresholds_of: {text}")
            shared |= models[name].threshold
        return self.model_copy(update={"threshold": shared | self.threshold})


def load_models(
    extra: Sequence[Path] = (), limits: Mapping[str, Mapping[str, float]] | None = None
) -> dict[str, Model]:
    """Load every model, the user's folders last, by name; ContentError names file and key.

    `limits` are values of thresholds by model that the site's configuration names.
    """
    site = "the site's configuration"
    given = limits or {}
    found = content.files("models", ".toml", extra)
    models = {name: load_model(path) for name, path in found.items()}
    own = {
        name: model.with_limits(_of(model.threshold, given.get(name, {})), site)
        for name, model in models.items()
    }
    return {
        name: model.with_thresholds_of(own).with_limits(given.get(name, {}), site)
        for name, model in models.items()
    }


def _of(own: Mapping[str, Threshold], limits: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in limits.items() if name in own}


def lines_of(kind: str, models: Iterable[Model]) -> dict[str, str]:
    """Return the tables, and the condition of their rows, that prove findings of a kind."""
    told: dict[str, dict[str, None]] = {}
    for model in models:
        for table, condition in model.lines.items() if model.kind == kind else ():
            told.setdefault(table, {})[f"({condition})"] = None
    return {table: " OR ".join(conditions) for table, conditions in told.items()}


def kinds_that_answer(answers: Answers | None, models: Mapping[str, Model]) -> set[str]:
    """Return the kinds of finding that answer a question of the verdict."""
    return {m.kind for m in models.values() if answers is not None and m.answers == answers}


def load_model(path: Path) -> Model:
    """Load one model."""
    return _read_model(path, content.read_text(path))


# As definitions: a watch loads them anew every round.
@lru_cache(maxsize=256)
def _read_model(path: Path, text: str) -> Model:
    document = parsed(path, text, ContentError)
    document.setdefault("name", path.stem)
    try:
        return Model.model_validate(document)
    except ValidationError as error:
        raise ContentError(explain(error, Model, lambda _: str(path))) from error
