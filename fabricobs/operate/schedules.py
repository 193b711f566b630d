"""Units that run the watch: a crontab line, a systemd timer, a CronJob, an epilog, a cluster.

Each is right for its scheduler: two rounds never run at once, a round that was missed is made up
for where the scheduler can, and findings are not taken for a failure of the unit. Beside them, what
looks at the textfile of the watch: rules of Prometheus, a dashboard of Grafana.
"""

import getpass
import hashlib
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from fabricobs.cluster import check_address
from fabricobs.config.schema import Config, duration_words
from fabricobs.exceptions import UserError
from fabricobs.operate.links import Links
from fabricobs.store.location import address_of, as_address, is_address

_UNITS = Path(__file__).parent / "units"
_LONGEST_ROUND = timedelta(hours=1)
_MISSED_ROUNDS = 3
# Slurm's names in paths of output files, and the variables its epilog has for them.
_SCHEDULER = "fabricobs-scheduler:8786"
_SLURM_NAMES = {"%j": "SLURM_JOB_ID", "%u": "SLURM_JOB_USER", "%x": "SLURM_JOB_NAME"}


class ScheduleError(UserError):
    """A schedule that cannot be made; the text says what to change."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A file to install."""

    path: Path
    text: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to run: the paths are absolute, a unit has no working directory of its own.

    Logs and store are paths or addresses of an object store. `workers` of a Dask cluster are
    started with the watch, `executor` is one that runs already.
    """

    logs: tuple[str, ...]
    store: str
    every: timedelta
    stale_after: timedelta
    program: str
    config: Path | None
    image: str | None
    user: str
    executor: str | None = None
    workers: int = 0
    base_url: str | None = None  # of the pages of incidents

    @classmethod
    def of(
        cls,
        logs: Sequence[Path],
        config: Config,
        file: Path | None,
        image: str | None,
        executor: str | None = None,
        workers: int = 0,
    ) -> "Plan":
        """Return the plan for a configuration, read from `file` where one was given."""
        if executor is not None:
            check_address(executor)
        if executor is not None and workers:
            raise ScheduleError("--executor names a cluster that runs; leave --workers out")
        return cls(
            logs=tuple(as_address(path) or str(path.absolute()) for path in logs),
            store=address_of(config.store) or str(config.store.absolute()),
            every=config.watch.every,
            stale_after=config.watch.stale_after,
            program=_program(),
            config=None if file is None else file.absolute(),
            image=image,
            user=getpass.getuser(),
            executor=executor,
            workers=workers,
            base_url=config.notify.base_url,
        )

    @property
    def lock(self) -> str:
        """Return the file at which rounds of this machine wait for each other."""
        if not is_address(self.store):
            return f"{self.store}.lock"
        return f"/tmp/fabricobs-{hashlib.sha256(self.store.encode()).hexdigest()[:12]}.lock"

    def words(self, program: str) -> list[str]:
        """Return the command of one round, without its logs."""
        return [program, "watch", "--once", *self.options()]

    def options(self) -> list[str]:
        """Return the options of a watch, of one round or of many."""
        words = ["--store", self.store, "--every", duration_words(self.every)]
        words += [] if self.config is None else ["--config", str(self.config)]
        return words if self.executor is None else [*words, "--executor", self.executor]


def units(scheduler: str, plan: Plan) -> list[Unit]:
    """Return the files of a scheduler; ScheduleError for one we do not know."""
    if scheduler not in _MADE_BY:
        raise ScheduleError(f"no scheduler {scheduler!r}; one of {', '.join(_MADE_BY)}")
    if not plan.logs and scheduler not in _OF_METRICS:
        raise ScheduleError(f"schedule {scheduler} needs the logs that a round reads")
    if plan.workers and scheduler not in _WITH_WORKERS:
        raise ScheduleError(f"schedule {scheduler} starts no workers; kubernetes and slurm do")
    return _MADE_BY[scheduler](plan)


def how_to_install(scheduler: str, plan: Plan) -> str:
    """Return in a sentence what to do with the files."""
    if scheduler == "slurm" and plan.workers:
        return f"in scrontab: {_cron_times(plan.every)} sbatch --wait /path/of/fabricobs-round.sh"
    return _INSTALLED_BY[scheduler]


def _cron(plan: Plan) -> list[Unit]:
    """Make a crontab line: no second round beside a first, notes and events to syslog."""
    words = ["flock", "--nonblock", "--conflict-exit-code", "0", plan.lock]
    words += [*plan.words(plan.program), "--fail-on", "never", *plan.logs]
    line = _filled("fabricobs.crontab", times=_cron_times(plan.every), command=shlex.join(words))
    # cron reads % as the end of the line.
    return [Unit(Path("fabricobs.crontab"), line.replace("%", "\\%"))]


def _systemd(plan: Plan) -> list[Unit]:
    """Make a service and its timer: a round missed while the host was off is run at its start."""
    words = [*plan.words(plan.program), *plan.logs]
    service = _filled(
        "fabricobs.service",
        user=plan.user,
        command=" ".join(map(_systemd_word, words)),
        deadline_s=_seconds(_deadline(plan)),
    )
    timer = _filled(
        "fabricobs.timer", every=duration_words(plan.every), calendar=_calendar(plan.every)
    )
    folder = Path("/etc/systemd/system")
    return [Unit(folder / "fabricobs.service", service), Unit(folder / "fabricobs.timer", timer)]


def _kubernetes(plan: Plan) -> list[Unit]:
    """Make a CronJob over paths every node has, or a Deployment over an object store.

    With workers, a Dask cluster beside it. What is inserted is JSON, which YAML reads.
    """
    if plan.image is None:
        raise ScheduleError("kubernetes needs --image: a container image with fabricobs")
    if plan.workers:
        plan = replace(plan, executor=f"dask://{_SCHEDULER}")
    mounts, volumes = _volumes(plan)
    common = {"image": json.dumps(plan.image), "mounts": mounts, "volumes": volumes}
    if is_address(plan.store):
        command = ["fabricobs", "watch", *plan.options(), *plan.logs]
        text = _filled("fabricobs-deployment.yaml", command=json.dumps(command), **common)
    else:
        command = [*plan.words("fabricobs"), "--fail-on", "never", *plan.logs]
        text = _filled(
            "fabricobs.yaml",
            times=_cron_times(plan.every),
            every_s=_seconds(plan.every),
            deadline_s=_seconds(_deadline(plan)),
            command=json.dumps(command),
            **common,
        )
    if plan.workers:
        text += _filled("fabricobs-dask.yaml", scheduler=_SCHEDULER, workers=plan.workers, **common)
    return [Unit(Path("fabricobs.yaml"), text)]


def _volumes(plan: Plan) -> tuple[str, str]:
    """Return what pods mount, and where it lies: paths of the nodes, and room for copies."""
    paths = [(f"logs-{n}", path, "", True) for n, path in enumerate(plan.logs)]
    paths.append(("store", plan.store, "DirectoryOrCreate", False))
    if plan.config is not None:
        paths.append(("config", str(plan.config), "File", True))
    found = [each for each in paths if not is_address(each[1])]
    mounts: list[dict[str, Any]] = [
        {"name": name, "mountPath": path, "readOnly": read_only}
        for name, path, _, read_only in found
    ]
    volumes: list[dict[str, Any]] = [
        {"name": name, "hostPath": {"path": path, "type": kind}} for name, path, kind, _ in found
    ]
    if plan.workers or len(found) < len(paths):
        mounts.append({"name": "cache", "mountPath": "/cache"})
        volumes.append({"name": "cache", "emptyDir": {}})
    return json.dumps(mounts), json.dumps(volumes)


def _slurm(plan: Plan) -> list[Unit]:
    """Make an EpilogSlurmctld, or with workers a job that is a round."""
    if plan.workers:
        return _slurm_round(plan)
    by_job = any("%j" in path for path in plan.logs)
    words = [*plan.words(plan.program), "--fail-on", "never"]
    text = _filled(
        "fabricobs-epilog.sh",
        logs=" ".join(map(_slurm_word, plan.logs)),
        lock=shlex.quote(plan.lock),
        command=shlex.join(words) + (' --job "$SLURM_JOB_ID"' if by_job else ""),
    )
    return [Unit(Path("fabricobs-epilog.sh"), text, executable=True)]


def _slurm_round(plan: Plan) -> list[Unit]:
    """Make a batch script: a scheduler and workers as tasks of a job, and one round."""
    for path in plan.logs:
        if any(name in path for name in _SLURM_NAMES):
            raise ScheduleError(f"{path}: with --workers a round reads the logs of all jobs")
    text = _filled(
        "fabricobs-round.sh",
        workers=plan.workers,
        deadline_minutes=_seconds(_deadline(plan)) // 60,
        dask=shlex.quote(str(Path(plan.program).with_name("dask"))),
        command=shlex.join(plan.words(plan.program)),
        logs=shlex.join(plan.logs),
    )
    return [Unit(Path("fabricobs-round.sh"), text, executable=True)]


def _prometheus(plan: Plan) -> list[Unit]:
    """Make alerting rules: incidents, and a watch that is silent, fails or reads old data."""
    page = Links(Path(plan.store), plan.base_url).page("{{ $labels.id }}")
    quoted = page.replace("'", "''")
    text = _filled(
        "fabricobs-rules.yaml",
        store=plan.store,
        runbook=f"\n          runbook_url: '{quoted}'" if page else "",
        missed_s=_MISSED_ROUNDS * _seconds(plan.every),
        stale_s=_seconds(plan.stale_after),
    )
    return [Unit(Path("/etc/prometheus/fabricobs-rules.yaml"), text)]


def _grafana(plan: Plan) -> list[Unit]:
    """Make a dashboard over the textfile, and the file that provisions it."""
    dashboards = Path("/var/lib/grafana/dashboards/fabricobs")
    return [
        Unit(
            Path("/etc/grafana/provisioning/dashboards/fabricobs-grafana.yaml"),
            _filled("fabricobs-grafana.yaml"),
        ),
        Unit(dashboards / "fabricobs-dashboard.json", _filled("fabricobs-dashboard.json")),
    ]


def _filled(name: str, **values: object) -> str:
    """Return a file of `units/` with `@name@` replaced by its value."""
    text = (_UNITS / name).read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda found: str(values[found[1]]), text)


def _program() -> str:
    """Return the path of the program that runs: units know no search path of ours."""
    found = shutil.which("fabricobs")
    if found is None and Path(sys.argv[0]).name == "fabricobs":
        found = sys.argv[0]
    return "fabricobs" if found is None else str(Path(found).absolute())


def _deadline(plan: Plan) -> timedelta:
    """Return after which time a round hangs: far longer than any takes."""
    return max(_LONGEST_ROUND, 6 * plan.every)


def _cron_times(every: timedelta) -> str:
    """Return the five fields of cron that stand for an interval."""
    minutes, rest = divmod(_seconds(every), 60)
    if not rest and minutes < 60 and 60 % minutes == 0:
        return "* * * * *" if minutes == 1 else f"*/{minutes} * * * *"
    hours, rest = divmod(_seconds(every), 3600)
    if not rest and hours < 24 and 24 % hours == 0:
        return "0 * * * *" if hours == 1 else f"0 */{hours} * * *"
    if every == timedelta(days=1):
        return "0 0 * * *"
    raise _uneven(every, "1m, 5m, 10m, 30m, 1h, 6h or 1d")


def _calendar(every: timedelta) -> str:
    """Return the calendar expression of systemd that stands for an interval."""
    seconds = _seconds(every)
    if seconds < 60 and 60 % seconds == 0:
        return f"*:*:0/{seconds}"
    minutes, rest = divmod(seconds, 60)
    if not rest and minutes < 60 and 60 % minutes == 0:
        return f"*:0/{minutes}"
    hours, rest = divmod(seconds, 3600)
    if not rest and hours < 24 and 24 % hours == 0:
        return f"0/{hours}:00"
    if every == timedelta(days=1):
        return "daily"
    raise _uneven(every, "30s, 1m, 5m, 10m, 30m, 1h, 6h or 1d")


def _uneven(every: timedelta, such_as: str) -> ScheduleError:
    return ScheduleError(
        f"--every {duration_words(every)}: the scheduler knows only what divides an hour or a day, "
        f"as {such_as}; `fabricobs watch` itself takes any"
    )


def _systemd_word(word: str) -> str:
    """Return a word of ExecStart: % and $ mean themselves, blanks do not end it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if any(c.isspace() or c in "'\";" for c in word) else escaped


def _slurm_word(path: str) -> str:
    """Return a path as a word of the shell, with Slurm's names as its variables."""
    for name, variable in _SLURM_NAMES.items():
        path = path.replace(name, f"\0{variable}\0")
    parts = path.split("\0")
    return "".join(
        f'"${{{part}}}"' if position % 2 else (shlex.quote(part) if part else "")
        for position, part in enumerate(parts)
    )


def _seconds(duration: timedelta) -> int:
    return round(duration.total_seconds())


_MADE_BY: dict[str, Callable[[Plan], list[Unit]]] = {
    "cron": _cron,
    "systemd": _systemd,
    "kubernetes": _kubernetes,
    "slurm": _slurm,
    "prometheus": _prometheus,
    "grafana": _grafana,
}
_WITH_WORKERS = frozenset({"kubernetes", "slurm"})
_OF_METRICS = frozenset({"prometheus", "grafana"})
_INSTALLED_BY = {
    "cron": "install it with: (crontab -l; fabricobs schedule cron ...) | crontab -",
    "systemd": "install both files in /etc/systemd/system, then: "
    "systemctl daemon-reload && systemctl enable --now fabricobs.timer",
    "kubernetes": "install it with: fabricobs schedule kubernetes ... | kubectl apply -f -",
    "slurm": "install it as /etc/slurm/fabricobs-epilog.sh; in slurm.conf: "
    "EpilogSlurmctld=/etc/slurm/fabricobs-epilog.sh",
    "prometheus": "set notify.textfile, name the file in rule_files of prometheus.yml, reload",
    "grafana": "set notify.textfile, write both files with --out, restart Grafana",
}
