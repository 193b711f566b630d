"""What a diagnosis says: findings, the answers, the verdict; `schema_version` 1."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import Any, ClassVar, Literal

from fabricobs.notebook import Listing, percent, share_words, table
from fabricobs.store.jobs import Run, name_in

SCHEMA_VERSION = 1

Severity = Literal["info", "low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "low", "medium", "high", "critical")

# Share of throughput lost at which a severity begins. The 10 % mark is that of Greyhound and of
# the "straggling job", S >= 1.1 (arXiv 2410.12588, 2505.05713); the others halve and double it.
LOSS_CLASSES: tuple[tuple[float, Severity], ...] = (
    (0.20, "critical"),
    (0.10, "high"),
    (0.05, "medium"),
    (0.02, "low"),
)

# Independence assumed: each family of evidence that agrees removes its share of the doubt.
FAMILY_WEIGHTS = {"timing": 0.5, "counters": 0.5, "topology": 0.3, "log": 0.7, "correlation": 0.2}

# The finding of a loss that no other finding names a cause of.
UNEXPLAINED = "throughput_drop"

Answer = Literal["ok", "problem", "unknown"]
_SHOWN = ("severity", "state", "finding", "since", "lost", "of the run", "id")
_COUNTED = " per run"  # of a number of events, in all the time they were counted
State = Literal["ongoing", "over", ""]  # at the end of the data; empty where no end is known
STEPS_WANTED = "The trainer's log, or per-rank step records."  # where no step times are known
_FIRST_CLAUSE = re.compile(r"[:;,] | since | from step \d")  # what ends that of a title
# What "ongoing" is to a reader: no log tells what follows.
_TO_THE_END = "until the end of the logs"
_TO_THE_LAST_STEP = "until the last step logged"


def severity_of_loss(loss_share: float | None) -> Severity:
    """Return the severity of a share of throughput lost (0 to 1); None is info."""
    if loss_share is None:
        return "info"
    return next((name for least, name in LOSS_CLASSES if loss_share >= least), "info")


def confidence_of(families: set[str]) -> float:
    """Return 1 - prod(1 - w) over the families of evidence that agree, 0 to 1."""
    doubt = 1.0
    for family in families:
        doubt *= 1 - FAMILY_WEIGHTS[family]
    return round(1 - doubt, 3)


@dataclass(frozen=True, slots=True)
class Entity:
    """A part of the cluster: `type` says which of the other fields name it.

    A rank whose number no log tells is named by its process, `pid`.
    """

    type: str
    job: str | None = None
    rank: int | None = None
    host: str | None = None
    gpu: int | None = None
    nic: str | None = None
    switch: str | None = None
    port: str | None = None
    priority: int | None = None
    pid: int | None = None

    @property
    def label(self) -> str:
        """Return the name a person would say."""
        if self.type == "rank":
            name = f"process {self.pid}" if self.rank is None else f"rank {self.rank}"
            return name + (f" on {self.host}" if self.host else "")
        if self.type == "gpu" and self.gpu is not None:
            return f"GPU {self.gpu} of {self.host}"
        parts = [self.switch, self.host, self.nic, self.port]
        return " ".join(part for part in parts if part) or self.job or self.type

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that are set."""
        names = "type", "job", "rank", "host", "gpu", "nic", "switch", "port", "priority", "pid"
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def as_part(self) -> dict[str, Any]:
        """Return the fields that name it in any run: a rank is its job's, a GPU its host's."""
        fields = self.as_dict()
        if self.type == "gpu" and self.gpu is not None:
            fields.pop("rank", None)
        job = fields.pop("job", None)
        if job is not None and self.type in {"rank", "job"}:
            fields["job"] = name_in(job) if self.type == "rank" else job
        return fields


@dataclass(frozen=True, slots=True)
class Driver:
    """One number behind a finding: what it is, what peers have, and where the threshold is from."""

    feature: str
    value: float
    peer: float | None
    unit: str
    robust_z: float | None
    threshold: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause. `entities` are the culprits, `related` the victims and the path.

    `bursts` are first and last step of each stretch in which a cause that comes and goes acts.
    `slower_from` are the first longer steps where they begin in the interval of the counters that
    tell `start`: the cause began between both. `to_its_end` is one over only as its job ended.
    `begun_by` is when it was first read, of one that was still sound when read at `start`.
    `first_read` is when the interval of counters in which it begins was read.
    `from_first_step` is one whose `start_step` is the first that is judged: it may be older.
    `from_first_reading` is one of counters that begins with the data: it may be older, too.
    `until_last_step` is one ongoing when its job's last step ended, while other data go on.
    `traffic_ended` is one over only as the traffic by which it shows ended.
    `reached` is the share of the expected rate that transfers reach, where its loss is the rest.
    `loss_shared_with` names what else may have cost its loss, which then is the most it can be.
    `unfelt` is one whose cost was measured and is none: it slows no whole job.
    `computes` is one of parts whose recorded computation is longer: no network makes it so.
    `after_step` is the last step of a job that stands still: `start_step`, the next, never ran.
    `symptoms` are the ids of the findings that it explains and was told with.
    `grown_at` are the first steps of paces, after its first, that became slower as it grew.
    """

    kind: str
    entities: tuple[Entity, ...]
    severity: Severity
    confidence: float
    title: str
    explanation: str
    related: tuple[Entity, ...] = ()
    start: datetime | None = None
    end: datetime | None = None
    start_step: int | None = None
    end_step: int | None = None
    detected_at: datetime | None = None
    loss_share: float | None = None
    reached: float | None = None
    loss_shared_with: tuple[str, ...] = ()
    run_share: float | None = None  # of the whole run's time; what findings share is counted once
    of_runs: int = 1  # that `run_share` is of
    gpu_hours_lost: float | None = None  # its part of what the run lost
    cost: float | None = None  # of those hours, by the site's gpu_hour_price
    currency: str = ""
    state: State = ""
    drivers: tuple[Driver, ...] = ()
    query: str = ""
    refuted_by: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    bursts: tuple[tuple[int, int], ...] = ()
    slower_from: tuple[int, datetime] | None = None
    begun_by: datetime | None = None
    first_read: datetime | None = None
    to_its_end: bool = False
    from_first_step: bool = False
    from_first_reading: bool = False
    until_last_step: bool = False
    traffic_ended: bool = False
    unfelt: bool = False
    computes: bool = False
    after_step: int | None = None
    symptoms: tuple[str, ...] = ()
    grown_at: tuple[int, ...] = ()

    @property
    def is_moment(self) -> bool:
        """Say whether it happened at one time, as the end of a process."""
        return self.start is not None and (self.start, self.start_step) == (self.end, self.end_step)

    @property
    def id(self) -> str:
        """Return a name that a rerun on the same fault gives again: kind and culprits.

        A loss without a part is that of its run.
        """
        return finding_id(self.kind, self.entities)

    @property
    def lost(self) -> str:
        """Return the share of throughput lost in words; empty where it is not known."""
        most = "up to " if self.loss_shared_with else ""
        return "" if self.loss_share is None else f"{most}{share_words(self.loss_share)}"

    @property
    def ended_with(self) -> str:
        """Say what ended and took it along, its job or the traffic; empty where neither did."""
        if self.to_its_end:
            return "its job ended"
        return "its traffic ended" if self.traffic_ended else ""

    @property
    def lasts_until(self) -> str:
        """Say how far an ongoing one is known to last."""
        return _TO_THE_LAST_STEP if self.until_last_step else _TO_THE_END

    @property
    def first_clause(self) -> str:
        """Return how its title begins, up to since when, or what it says in detail."""
        return _FIRST_CLAUSE.split(self.title, maxsplit=1)[0]

    @property
    def role(self) -> str:
        """Return what its entities are to it: information accuses nobody."""
        return "in question" if self.severity == "info" else "culprit"

    COLUMNS: ClassVar[tuple[str, ...]] = _SHOWN

    def cells(self) -> tuple[object, ...]:
        """Return a row of a listing in a notebook."""
        lost = percent(self.loss_share), percent(self.run_share)
        return (self.severity, self.state or None, self.title, self.start, *lost, self.id)

    def _repr_html_(self) -> str:
        facts = [
            *zip(self.COLUMNS, self.cells(), strict=True),
            ("until", self.end),
            (self.role, ", ".join(entity.label for entity in self.entities) or None),
            ("explanation", self.explanation),
            *(("next step", step) for step in self.next_steps),
        ]
        return table((), facts)


def finding_id(kind: str, entities: Iterable[Entity]) -> str:
    """Return the name of the finding of a kind with these culprits, in any order."""
    parts = [kind, *sorted(str(sorted(entity.as_part().items())) for entity in entities)]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class Power:
    """The smallest effect that the data would have shown if it lasted `seconds`, or `steps`.

    With neither it must last the whole run.
    `effect` is a share, or with a `unit` "... per ..." a number of those. `what` is what would have
    shown, with {} where the effect stands.
    """

    effect: float
    unit: str
    what: str
    seconds: float = 0.0
    steps: int | None = None

    @property
    def words(self) -> str:
        """Return what would have shown, and how long it must last."""
        amount = f"{self.effect:,.2g}" if "per" in self.unit else f"{self.effect:.0%}"
        unit = self.unit.removesuffix(_COUNTED)
        lasts = "over the whole run"
        if self.steps is not None:
            lasts = f"for {self.steps} steps"
        elif self.seconds:
            lasts = f"{'for' if unit == self.unit else 'in'} {self.seconds:,.0f} s"
        return f"{self.what.format(f'{amount} {unit}')} {lasts}"


@dataclass(frozen=True, slots=True)
class NotJudged:
    """Why units of a method could not be judged, or what one is like, and what would settle it."""

    reason: str
    settled_by: str


@dataclass(frozen=True, slots=True)
class MethodResult:
    """What a method found, and of how many units it could tell: what was not judged is not ok.

    `open` says why the others were not.
    """

    findings: tuple[Finding, ...] = ()
    judged: int = 0
    not_checked: int = 0
    power: Power | None = None
    open: tuple[NotJudged, ...] = ()

    def joined(self, other: "MethodResult") -> "MethodResult":
        """Return both: of two models of one kind, or of nothing yet and one."""
        return MethodResult(
            (*self.findings, *other.findings),
            self.judged + other.judged,
            self.not_checked + other.not_checked,
            max(
                (each.power for each in (self, other) if each.power),
                key=lambda power: power.effect,
                default=None,
            ),
            (*self.open, *other.open),
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A part of a diagnosis that could not be done, and why; the other parts are."""

    part: str
    reason: str
    kinds: tuple[str, ...] = ()  # of the findings it would have made; questions it would answer
    shared: bool = False  # findings of every kind depend on it

    def __str__(self) -> str:
        return f"{self.part}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Question:
    """One of the questions an engineer asks: answer, evidence, and what would settle it.

    `would_show` is what the data would have shown: an ok holds for that, and for nothing smaller.
    """

    question: str
    answer: Answer
    evidence: str
    settled_by: str = ""
    would_show: tuple[Power, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence over the answers; `judged` is False where the data carry no judgement."""

    sentence: str
    questions: tuple[Question, ...]
    judged: bool

    def _repr_html_(self) -> str:
        answers = [(q.question, q.answer, q.evidence) for q in self.questions]
        told = f"<p><strong>{escape(self.sentence)}</strong></p>"
        return told + table(("question", "answer", "evidence"), answers)


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps `first_step` to `last_step` that run at one pace."""

    first_step: int
    last_step: int
    start: datetime | None
    step_time_ms: float
    job: str | None = None  # whose steps they are


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock: `seconds` ahead of the job's (of the median host, for hosts), give or take `error`.

    None if the data carry no answer; `corrected` if its times were shifted before they were judged.
    """

    of: Literal["device", "host"]
    name: str
    seconds: float | None
    error: float
    corrected: bool


@dataclass(frozen=True, slots=True)
class CounterBreak:
    """A counter of a device that fell, wrapped around, stopped at its maximum or told nonsense.

    `source` is the format it was read from, `port` the only one that shows it; `counted_by`, of one
    that stopped, another source that counts the same on: then nothing is lost.
    """

    device: str
    counter: str
    what: Literal["reset", "wrapped", "stopped", "nonsense"]
    ports: int
    times: int
    first: datetime
    source: str | None = None
    port: str | None = None
    counted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the store holds: counts by what they are of, what is missing, what is unreliable.

    `facts` are for people, `values` the same as numbers, with units in their names. `first_time`
    and `last_time` are those of the data, UTC; steps and counters begin at `measured_from`.
    """

    facts: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]
    clocks: tuple[Clock, ...] = ()
    breaks: tuple[CounterBreak, ...] = ()
    first_time: datetime | None = None
    last_time: datetime | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    measured_from: datetime | None = None

    @property
    def begin(self) -> datetime | None:
        """Return when what is judged begins: logs of before the run, as of a boot, are not it."""
        return self.measured_from or self.first_time

    def _repr_html_(self) -> str:
        return table((), [*self.facts, *(("missing", each) for each in self.missing)])


@dataclass(frozen=True, slots=True)
class WhatIf:
    """With `entity` like its peers, `saved_share` (0 to 1) of the step time would go.

    `over` says of which steps: of all of them, or of those between which a finding lasts.
    """

    entity: Entity
    saved_share: float
    over: str
    against: str

    @property
    def speedup(self) -> float:
        """Throughput then over throughput now."""
        return 1 / (1 - self.saved_share)


@dataclass(frozen=True, slots=True)
class Price:
    """What a GPU hour costs a site, and in which currency; None and empty where it is not said."""

    gpu_hour: float | None = None
    currency: str = ""

    def of(self, gpu_hours: float | None) -> dict[str, Any]:
        """Return `cost` and `currency` of some GPU hours."""
        if self.gpu_hour is None or gpu_hours is None:
            return {"cost": None, "currency": ""}
        return {"cost": round(self.gpu_hour * gpu_hours, 2), "currency": self.currency}


@dataclass(frozen=True, slots=True)
class Loss:
    """What a run lost: the sum over the findings, and what none of them explains.

    Shares are of the time of the whole run, 0 to 1; None where no step times or no size are known,
    or where nothing but findings without a cost, or what `untold` says, can have lost anything.
    """

    share: float | None = None
    gpu_hours: float | None = None
    unexplained_share: float | None = None
    unexplained_gpu_hours: float | None = None
    run_gpu_hours: float | None = None
    price: Price = Price()

    cost: float | None = None  # of the lost GPU hours, None without a price
    unexplained_cost: float | None = None
    # Share of the throughput lost at the last steps, and what each finding costs by itself, by id.
    at_end: float | None = None
    at_end_of: tuple[tuple[str, float], ...] = ()
    at_most: bool = False  # causes share a part of it that was never measured, only expected
    untold: str = ""  # what may have lost more: longer steps of which no log tells the work


@dataclass(frozen=True, slots=True)
class JobVerdict:
    """One run of one job of several: what is known of it, its verdict, the ids of its findings."""

    run: Run
    verdict: Verdict
    findings: tuple[str, ...]
    loss: Loss = Loss()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A whole diagnosis: findings in order of loss; `what_if` with what saves most first.

    Of a store that holds several runs, `jobs` has the verdict of each; empty else. `runs` are those
    it is about, `cluster` is what the site calls it.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    segments: tuple[Segment, ...] = ()
    coverage: Coverage = field(default_factory=lambda: Coverage((), ()))
    what_if: tuple[WhatIf, ...] = ()
    failures: tuple[Failure, ...] = ()
    jobs: tuple[JobVerdict, ...] = ()
    loss: Loss = Loss()
    runs: tuple[Run, ...] = ()
    cluster: str = ""

    def _repr_html_(self) -> str:
        return self.verdict._repr_html_() + Listing(self.findings)._repr_html_()

    def may_miss(self, kind: str) -> bool:
        """Say whether a failure may be why there is no finding of this kind."""
        return any(failure.shared or kind in failure.kinds for failure in self.failures)

    @property
    def worst_severity(self) -> Severity | None:
        """Return the highest severity among the findings above info, None if there is none."""
        ranked = [SEVERITIES.index(f.severity) for f in self.findings if f.severity != "info"]
        return SEVERITIES[max(ranked)] if ranked else None
