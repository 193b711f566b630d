"""Facts about a launch in the path of its log: the scheduler's id, the pod, similar names."""

import os.path
import re
from collections.abc import Iterable
from functools import cache
from pathlib import PurePath

# Names schedulers give by default: slurm-%j.out, NAME-%j.out, NAME.o%j; and folders called so.
_SCHEDULED = re.compile(
    r"(?:^|[/_.-])(?:slurm|jobid|job_id|pbs|lsf)[-_.]?(\d{2,})(?![\d])|[-_.](\d{4,})(?:_\d+)?\.(?:out|err)$"
    r"|\.[oe](\d{3,})$",
    re.IGNORECASE,
)
# A folder below one of jobs: jobs/7701/train.out, jobs/mpt30b/rank0.txt.
_OF_JOBS = re.compile(r"(?:^|/)jobs/([^/]+)/", re.IGNORECASE)
_ID = re.compile(r"\d{3,8}")
# Names that tell what is in a folder, or a part of a job, and no job.
_OF_PARTS = re.compile(
    r"(?:logs?|std(?:out|err)|out(?:put)?s?|err(?:ors?)?|nccl|rccl|inspector|ras|stacks?|traces?|profiles?"
    r"|slurm|srun|launchers?|steps|metrics|tensorboard|wandb|prometheus|dcgm|checkpoints?|configs?"
    r"|train(?:ing|er)?|ranks?|nodes?|hosts?|pods?|workers?|masters?|gpus?|runs?|attempts?|archived?"
    r"|old|current|latest)?[-_.]?[\d_.:TZ-]*",
    re.IGNORECASE,
)
_DATE = re.compile(r"20\d\d[01]\d[0-3]\d$")
# What an operator of Kubernetes puts behind the name of a job to name its pods.
POD_ROLES = r"(?:master|worker|launcher|chief|leader|ps)"
_POD = re.compile(rf"[-_.]{POD_ROLES}(?:[-_.]\d+)*(?=[-_./]|$)")
_PID = re.compile(r"pid[-_.]?(\d{1,7})(?!\d)", re.IGNORECASE)
_NUMBER = re.compile(r"(?:^|[-_.])([1-9]\d{3,6})(?=[-_.]|$)")
_SUFFIXES = re.compile(r"(?:\.(?:log|txt|out|err|jsonl?|csv|parquet|gz|zst|xz|bz2))+$")


def scheduled(path: str) -> str | None:
    """Return the id of a scheduler's job that a path is named after, None without one."""
    for part in reversed(path.split("/")):
        for found in _SCHEDULED.finditer(part):
            number = next(group for group in found.groups() if group)
            if not _DATE.match(number):
                return number
    folder = job_folder(path)
    return folder if folder and _ID.fullmatch(folder) else None


def job_folder(path: str) -> str | None:
    """Return the folder below one of jobs that a path lies in, None where that names no job."""
    for name in reversed(_OF_JOBS.findall(path)):
        is_id = _ID.fullmatch(name) and not _DATE.match(name)
        if is_id or not names_no_job(name):
            return str(name)
    return None


def names_no_job(name: str) -> bool:
    """Say whether the name of a folder tells what it holds, a part of a job, or a time."""
    return _OF_PARTS.fullmatch(name) is not None


def family_of(path: str) -> str:
    """Return a path without its numbers and the roles of pods."""
    return re.sub(r"\d+", "#", _POD.sub("", path))


def pod_of(path: str) -> str | None:
    """Return the name of the job whose pod a file is named after, None without one."""
    name = _SUFFIXES.sub("", PurePath(path).name)
    stem = _POD.split(name)[0]
    return stem if stem and stem != name else None


def pids_in(path: str) -> set[int]:
    """Return the numbers in the name of a file that may be a process id, as by %p of NCCL or torch.

    Numbers below 1,000 without `pid` before them are rather ranks or parts of host names.
    """
    name = _SUFFIXES.sub("", PurePath(path).name)
    told = {int(number) for number in _PID.findall(name)}
    return told or {int(number) for number in _NUMBER.findall(name)}


def names_of(paths: Iterable[str]) -> list[str]:
    """Return the names of files without suffixes, in order."""
    return sorted({_SUFFIXES.sub("", PurePath(path).name) for path in paths})


def common_folder(paths: Iterable[str]) -> str:
    """Return the deepest folder that holds all files."""
    return os.path.commonpath([str(PurePath(path).parent) for path in paths])


def folders_above(folders: Iterable[str]) -> set[str]:
    """Return folders and all that hold them; "" holds every file, with a path or without."""
    return {"", *(above for folder in folders for above in _with_parents(folder))}


@cache
def _with_parents(folder: str) -> tuple[str, ...]:
    return (folder, *map(str, PurePath(folder).parents))
