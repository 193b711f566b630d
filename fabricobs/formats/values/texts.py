"""Words and texts that stay what they are, and flags."""

from fabricobs.formats.values.kinds import NO_VALUE, ValueType


def parse_text(text: str) -> str | None:
    """Keep text as it is, without blanks around it."""
    stripped = text.strip()
    return None if stripped.lower() in NO_VALUE else stripped


def parse_flag(text: str) -> bool:
    """Read 0/1, true/false, enabled/disabled or on/off."""
    lowered = text.lower()
    if lowered in {"1", "true", "enabled", "on", "yes"}:
        return True
    if lowered in {"0", "false", "disabled", "off", "no"}:
        return False
    raise ValueError(f"{text!r} is neither 0 nor 1")


def parse_active(text: str) -> int | None:
    """Read `Active` as 1; `Not Active` is no value, so that another key may tell one."""
    return parse_active_or_not(text) or None


def parse_active_or_not(text: str) -> int:
    """Read `Active` as 1 and `Not Active` as 0."""
    known = _ACTIVE.get(text.strip().lower())
    if known is None:
        raise ValueError(f"{text!r} is neither Active nor Not Active")
    return known


def parse_throttled(text: str) -> int | None:
    """Read `THROTTLED` as 1 and `UNTHROTTLED` as 0; `N/A` is no value."""
    known = {"THROTTLED": 1, "UNTHROTTLED": 0, "N/A": None}
    word = text.strip().upper()
    if word not in known:
        raise ValueError(f"{text!r} is neither THROTTLED nor UNTHROTTLED")
    return known[word]


def parse_yes(text: str) -> int | None:
    """Read `Yes` as 1; `No` is no value, so that another key may tell one."""
    return 1 if text.strip().lower() == "yes" else None


def parse_action(text: str) -> int | None:
    """Read an action that is asked for (Reset) as 1; `None`, `[N/A]` and the like say nothing."""
    stripped = text.strip()
    return None if stripped.startswith("[") or stripped.lower() in NO_VALUE else 1


def parse_program(text: str) -> str | None:
    """Read the name of a program from how it was called; an option is none."""
    return None if text.startswith("-") else text.rpartition("/")[2] or None


_ACTIVE = {"active": 1, "not active": 0}

TYPES: dict[str, ValueType] = {
    "word": ValueType(r"\S+?", parse_text, ("VARCHAR",)),
    "text": ValueType(r".*?", parse_text, ("VARCHAR",)),
    "name": ValueType(r"[^/\s]+", parse_text, ("VARCHAR",)),
    "device": ValueType(r"[^:/\s\[\](){}<>=,;]+", parse_text, ("VARCHAR",)),
    "quoted": ValueType(r'[^"]*', parse_text, ("VARCHAR",)),
    "host": ValueType(r"[A-Za-z0-9][\w.-]*", parse_text, ("VARCHAR",)),
    "source": ValueType(r"[^\s:]+:\d+", parse_text, ("VARCHAR",)),
    "address": ValueType(r"[0-9a-fA-F:.]+", parse_text, ("VARCHAR",)),
    "suffix": ValueType(r"(?:[-_]\d[\d_T-]*)?(?:\.\w+)?", parse_text, ("VARCHAR",)),
    "exception": ValueType(
        r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Failure|Abort)",
        parse_text,
        ("VARCHAR",),
    ),
    "carets": ValueType(r"[~^ ]*\^[~^ ]*", parse_text, ("VARCHAR",)),  # below a line of Python
    "dots": ValueType(r"\.+", parse_text, ("VARCHAR",)),
    "is": ValueType(r" *(?:[:=] *)?", parse_text, ("VARCHAR",)),
    # What stands before a key that begins an item: `total time` and `data_time` are other keys.
    "item": ValueType(r"(?:^|[^A-Za-z_ /]) *", parse_text, ("VARCHAR",)),
    "bar": ValueType(r"[-━╸╺ ]+", parse_text, ("VARCHAR",)),  # of rich
    "rule": ValueType(r"-{7,}|={7,}", parse_text, ("VARCHAR",)),
    "flag": ValueType(r"[01]|Enabled|Disabled", parse_flag, ("BOOLEAN",)),
    "active": ValueType(r"(?:Not )?Active", parse_active, ("BIGINT",)),
    "active_or_not": ValueType(r"(?:Not )?Active", parse_active_or_not, ("BIGINT",)),
    "throttled": ValueType(r"(?:UN)?THROTTLED|N/A", parse_throttled, ("BIGINT",)),
    "yes": ValueType(r"Yes|No", parse_yes, ("BIGINT",)),
    "action": ValueType(r"\S.*", parse_action, ("BIGINT",)),
    "program": ValueType(r"\S+", parse_program, ("VARCHAR",)),
    "loop_step": ValueType(r"(?:[Ss]tep|STEP|[Ii]ter(?:ation)?)", parse_text, ("VARCHAR",)),
    "micro_step": ValueType(
        r"(?:[Mm]icro[ _-]?(?:step|batch)|[Aa]ccum(?:ulation)?(?:[ _-]step)?)",
        parse_text,
        ("VARCHAR",),
    ),
    "metric": ValueType(r"[A-Za-z_:][\w:]*", parse_text, ("VARCHAR",)),
}
