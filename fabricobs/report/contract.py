"""The JSON of a diagnosis as types, from which its JSON Schema is made.

Within one `schema_version` fields are added, never removed or given another meaning.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from fabricobs.diagnosis.coverage import VALUES
from fabricobs.diagnosis.findings import SCHEMA_VERSION, Answer, Severity, State

Moment = Annotated[str, Field(description="ISO 8601 in UTC, milliseconds, with Z")]
Share = Annotated[float, Field(description="of 1")]


class EntityDocument(TypedDict):
    """A part of the cluster: `type` says which of the other fields name it."""

    type: str
    job: NotRequired[str]
    rank: NotRequired[int]
    host: NotRequired[str]
    gpu: NotRequired[int]
    nic: NotRequired[str]
    switch: NotRequired[str]
    port: NotRequired[str]
    priority: NotRequired[int]
    pid: NotRequired[int]


class DriverDocument(TypedDict):
    """One number behind a finding; null where there is none."""

    feature: str
    value: float | None
    peer: Annotated[float | None, Field(description="what is expected, or what peers have")]
    unit: str
    robust_z: float | None
    threshold: float | None
    source: Annotated[str, Field(description="where the threshold is from")]


class LongerStepsDocument(TypedDict):
    """The first longer steps of a job."""

    step: int
    time: Moment


class BurstDocument(TypedDict):
    """A stretch of steps in which a cause that comes and goes acts."""

    first_step: int
    last_step: int


class FindingDocument(TypedDict):
    """One cause: culprits, time, cost, evidence, what would disprove it, what to do."""

    id: Annotated[str, Field(description="the same for the same kind and culprits in every run")]
    kind: str
    severity: Severity
    confidence: Annotated[float | None, Field(description="0 to 1")]
    families: Annotated[list[str], Field(description="kinds of evidence that agree")]
    entities: Annotated[list[EntityDocument], Field(description="culprits")]
    related: Annotated[list[EntityDocument], Field(description="what is affected")]
    start: Moment | None
    end: Moment | None
    start_step: int | None
    end_step: int | None
    bursts: Annotated[
        list[BurstDocument], Field(description="of one that comes and goes; empty: it lasts")
    ]
    detected_at: Annotated[Moment | None, Field(description="when the data first showed it")]
    loss_share: Annotated[Share | None, Field(description="share of the throughput lost, of 1")]
    loss_shared_with: Annotated[
        list[str], Field(description="what else may have cost it: `loss_share` is then the most")
    ]
    run_share: Annotated[
        Share | None,
        Field(description="its part of what the whole run lost; what overlaps is counted once"),
    ]
    of_runs: Annotated[int, Field(description="runs that `run_share` is of")]
    gpu_hours_lost: Annotated[float | None, Field(description="its part of what the run lost")]
    cost: Annotated[float | None, Field(description="of those hours, by gpu_hour_price")]
    currency: Annotated[str, Field(description="of the cost, as the site names it")]
    state: Annotated[State, Field(description="at the end of the data; empty: not known")]
    slower_from: Annotated[
        LongerStepsDocument | None,
        Field(description="the cause began between `start` and these; null: it began at `start`"),
    ]
    begun_by: Annotated[
        Moment | None,
        Field(description="first read wrong, where it was read sound at `start`; null: not known"),
    ]
    to_its_end: Annotated[
        bool, Field(description="over only as its job ended; whether it lasts is not known")
    ]
    from_first_step: Annotated[
        bool, Field(description="`start_step` is the first step judged; it may have begun before")
    ]
    from_first_reading: Annotated[
        bool, Field(description="counters tell it from their first reading; it may be older")
    ]
    until_last_step: Annotated[
        bool, Field(description="ongoing at its job's last step; other data go on")
    ]
    traffic_ended: Annotated[
        bool, Field(description="over only as its traffic ended; whether it lasts is not known")
    ]
    unfelt: Annotated[bool, Field(description="its cost was measured, and is none")]
    after_step: Annotated[
        int | None, Field(description="last step of a job that stands still; null: it does not")
    ]
    title: str
    explanation: str
    drivers: list[DriverDocument]
    query: Annotated[str, Field(description="a prepared query, or SQL")]
    sql: Annotated[str, Field(description="the SQL of the query")]
    refuted_by: Annotated[list[str], Field(description="Markdown: commands stand in backticks")]
    next_steps: Annotated[list[str], Field(description="Markdown: commands stand in backticks")]


class PowerDocument(TypedDict):
    """The smallest effect that the data would have shown."""

    effect: Annotated[float, Field(description="a share, or a number of `unit`")]
    unit: str
    what: str
    seconds: float
    steps: int | None
    words: str


class QuestionDocument(TypedDict):
    """One of the questions, its answer and what it rests on."""

    question: str
    answer: Answer
    evidence: str
    settled_by: Annotated[str, Field(description="data that would answer it")]
    would_show: list[PowerDocument]


class VerdictDocument(TypedDict):
    """One sentence over the answers; `judged` is false where the data carry no judgement."""

    sentence: str
    judged: bool
    questions: list[QuestionDocument]


class SegmentDocument(TypedDict):
    """Steps that run at one pace."""

    first_step: int
    last_step: int
    start: Moment | None
    step_time_ms: float | None
    job: Annotated[str | None, Field(description="whose steps they are")]


class PartOfLossDocument(TypedDict):
    """What a finding costs at the last steps, where several act."""

    id: str
    loss_share: Share


class LossDocument(TypedDict):
    """What the whole run lost: the findings' `run_share` and `gpu_hours_lost`, and unexplained."""

    share: Annotated[Share | None, Field(description="of the run's time")]
    gpu_hours: float | None
    cost: float | None
    currency: str
    unexplained_share: Annotated[Share | None, Field(description="in no finding")]
    unexplained_gpu_hours: float | None
    unexplained_cost: float | None
    run_gpu_hours: Annotated[float | None, Field(description="all of the run, lost or not")]
    at_most: Annotated[
        bool, Field(description="causes share a part that was never measured, only expected")
    ]
    at_end_share: Annotated[
        Share | None, Field(description="of the throughput, at the last steps; null: not known")
    ]
    at_end_findings: Annotated[
        list[PartOfLossDocument], Field(description="what each costs by itself")
    ]


class WhatIfDocument(TypedDict):
    """What the job would gain with a part like its peers."""

    entity: EntityDocument
    saved_share: Share | None
    speedup: Annotated[float | None, Field(description="throughput then over throughput now")]
    over: str
    against: str


class ClockDocument(TypedDict):
    """A clock: `seconds` ahead of the job's, give or take `error`."""

    of: Literal["device", "host"]
    name: str
    seconds: float | None
    error: float | None
    corrected: bool


class CounterBreakDocument(TypedDict):
    """A counter that fell, wrapped around, stopped at its maximum or told nonsense."""

    device: str
    counter: str
    what: Literal["reset", "wrapped", "stopped", "nonsense"]
    ports: int
    times: int
    first: Moment
    source: Annotated[str | None, Field(description="format it was read from")]
    port: Annotated[str | None, Field(description="the port, where only one shows it")]
    counted_by: Annotated[
        str | None, Field(description="of one that stopped: another source that counts it on")
    ]


# What the facts of the coverage say, as numbers; null where nothing tells.
CoverageValues = TypedDict(  # type: ignore[misc]
    "CoverageValues",
    {name: Annotated[float | None, Field(description=says)] for name, says in VALUES.items()},
    total=False,
)


class CoverageDocument(TypedDict):
    """What the store holds, what is missing and what is unreliable."""

    facts: Annotated[dict[str, str], Field(description="for people; `values` has the numbers")]
    values: CoverageValues
    first_time: Annotated[Moment | None, Field(description="of the data")]
    last_time: Annotated[Moment | None, Field(description="of the data")]
    missing: list[str]
    clocks: list[ClockDocument]
    counter_breaks: list[CounterBreakDocument]


class FailureDocument(TypedDict):
    """A part of the diagnosis that could not be done, and why."""

    part: str
    reason: str


class RunDocument(TypedDict):
    """One run of a job, as the logs tell of it."""

    job: str | None
    name: str
    run: int
    named_by: str
    hosts: list[str]
    ranks: int
    nranks: int | None
    processes: int
    first_step: int | None
    last_step: int | None
    planned_steps: Annotated[int | None, Field(description="by its trainer's log")]
    replayed_steps: int
    nccl_versions: list[str]
    start: Moment | None
    end: Moment | None
    files: list[str]
    candidates: Annotated[int, Field(description="other jobs it may be a part of")]


class JobDocument(RunDocument):
    """A run with its verdict and the ids of its findings."""

    verdict: VerdictDocument
    findings: list[str]
    loss: LossDocument


class DiagnosisDocument(TypedDict):
    """A whole diagnosis; `jobs` only if the store holds several runs."""

    schema_version: int
    tool: Literal["fabricobs"]
    tool_version: str
    cluster: Annotated[str, Field(description="as the site names it")]
    runs: Annotated[list[str], Field(description="the runs of jobs that were judged")]
    verdict: VerdictDocument
    findings: list[FindingDocument]
    segments: list[SegmentDocument]
    loss: LossDocument
    what_if: list[WhatIfDocument]
    coverage: CoverageDocument
    failures: list[FailureDocument]
    jobs: NotRequired[list[JobDocument]]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `diagnose --format json`."""
    schema = TypeAdapter(DiagnosisDocument).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:fabricobs:diagnosis:{SCHEMA_VERSION}",
        "title": f"fabricobs diagnosis, schema_version {SCHEMA_VERSION}",
    } | {name: value for name, value in schema.items() if name != "title"}
