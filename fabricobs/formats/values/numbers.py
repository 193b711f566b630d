"""Numbers, shares, durations and sizes as logs and counters print them."""

import math
import re

from fabricobs.formats.values.kinds import LONGEST_NUMBER, NO_VALUE, Unfit, ValueType

_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_INT64 = 1 << 63
_SPAN = re.compile(r"(\d+(?:\.\d*)?) ?(ns|us|ms|s|sec|seconds)?")
_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3, None: 1.0}


def parse_whole(text: str) -> int | Unfit | None:
    """Read a whole number, thousands commas allowed."""
    if len(text) > LONGEST_NUMBER:
        return beyond_64_bits(text)
    try:
        number = int(text)
    except ValueError:
        if text.lower() in NO_VALUE:
            return None
        number = int(without_thousands(text))
    return in_64_bits(number, text)


def beyond_64_bits(text: str) -> Unfit:
    """Return what stands for a whole number that is too large."""
    return Unfit(text, "does not fit 64 bits")


def in_64_bits(number: int, text: str) -> int | Unfit:
    """Return the number; Unfit beyond 64 bits with a sign, and what a counter keeps of it.

    A counter of 2^63 to 2^64 - 1 is a negative number that was printed without its sign.
    """
    if -_INT64 <= number < _INT64:
        return number
    if _INT64 <= number < 2 * _INT64:
        return Unfit(text, "does not fit 64 bits with a sign", as_counter=number - 2 * _INT64)
    return beyond_64_bits(text)


def without_thousands(text: str) -> str:
    """Take thousands commas out; a comma elsewhere is none, and the number is refused."""
    return text.replace(",", "") if _THOUSANDS.fullmatch(text) else text


def parse_hex(text: str) -> int | Unfit:
    """Read a hexadecimal number, with or without 0x."""
    return in_64_bits(int(text, 16), text)


def parse_number(text: str) -> float | Unfit | None:
    """Read a decimal number, thousands commas allowed."""
    if text.lower() in NO_VALUE:
        return None
    number = float(without_thousands(text))
    if math.isinf(number) and text[-1:].isdigit():
        return Unfit(text, "does not fit a double")
    return number


def parse_changes(text: str) -> int | Unfit | None:
    """Read how often a link changed its state as how often it went down: it came up as often."""
    changes = parse_whole(text)
    return changes // 2 if isinstance(changes, int) else changes


def parse_thousands(text: str) -> float | Unfit | None:
    """Read a number of the next larger unit: seconds for a column of ms, ms for one of us."""
    value = parse_number(text)
    return value * 1000 if isinstance(value, float) else value


def parse_rounded(text: str) -> float:
    """Read a number cut to a few digits, with K, M, B, G or T behind it for thousands and so on."""
    unit = _ROUNDED_UNITS.get(text[-1:], 1.0)
    return float(text.rstrip("KMBGT")) * unit


def parse_epoch_step(text: str) -> int:
    """Read `2]  [  20/1251`, epoch and iteration counted from 0, as the step over all epochs."""
    epoch, *_, place, steps = (int(part) for part in _WHOLE.findall(text))
    return epoch * steps + place


def parse_epoch_step_from_1(text: str) -> int:
    """Read `2][  50/1509`, epoch and iteration counted from 1, as the step over all epochs.

    `2/  4], step:[   50/ 1509` is the same where the number of epochs and a key stand between.
    """
    epoch, *_, place, steps = (int(part) for part in _WHOLE.findall(text))
    return (epoch - 1) * steps + place


def parse_millionths(text: str) -> float | Unfit | None:
    """Read seconds for a column of microseconds."""
    value = parse_number(text)
    return value * 1e6 if isinstance(value, float) else value


def parse_rate(text: str) -> float | Unfit | None:
    """Read a rate per second as the ms one of them takes; a rate of 0 says nothing."""
    value = parse_number(text)
    if not isinstance(value, float):
        return value
    return 1000 / value if value else None


def parse_clock(text: str) -> float:
    """Read the minutes and seconds, or hours too, of a progress bar in ms."""
    seconds = 0
    for part in text.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds * 1000.0


def parse_span(text: str) -> float:
    """Read a duration that carries its unit in ms; a bare number is ms."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no duration")
    return float(match[1]) * _MS[match[2]]


def parse_size(text: str) -> int:
    """Read a size as programs of this field print it (678.86 MB), in bytes; K is 1024."""
    bare = text.rstrip("iB")
    scale: int = 1024 ** ("KMGT".find(bare[-1:]) + 1)
    return round(float(bare.rstrip("KMGT ")) * scale)


def parse_gbits(text: str) -> float | Unfit | None:
    """Read Gbit/s as GB/s."""
    value = parse_number(text)
    return value / 8 if isinstance(value, float) else value


def parse_mebibytes(text: str) -> float:
    """Read MB of 2^20 bytes as GB."""
    return float(text) * 2**20 / 1e9


def parse_bucket(text: str) -> int:
    """Read a range of sizes (4-5MB) as its lower bound in bytes; the units are of 1024."""
    unit = "KMGT".find(text.rstrip("B")[-1:]) + 1
    scale: int = 1024**unit
    return int(text.partition("-")[0]) * scale


def parse_percent(text: str) -> float:
    """Read a share in percent, its sign given or not."""
    return float(text.rstrip("%"))


def parse_measure(text: str) -> float | Unfit | None:
    """Read a number that its unit may follow (1980 MHz, 99 %); [N/A] and the like say nothing."""
    return None if text.startswith("[") else parse_number(text.partition(" ")[0])


def parse_reading(text: str) -> float | Unfit | None:
    """Read a number that its unit touches (79W, 16x); what is no number (ERR!) says nothing."""
    found = _READING.match(text)
    return None if found is None else parse_number(found[0])


def parse_bits(text: str) -> int | Unfit | None:
    """Read bits as hexadecimal (0x0000000000000020) or decimal; [N/A] and the like say nothing."""
    if text.startswith("[") or text.lower() in NO_VALUE:
        return None
    return in_64_bits(int(text, 0), text)


def parse_above_zero(text: str) -> int | None:
    """Read a number above zero as 1; zero and no value say nothing."""
    value = parse_number(text)
    return 1 if isinstance(value, float) and value > 0 else None


def parse_lowest(text: str) -> float | None:
    """Read the lowest of several numbers: `1.2,0.9 [-8..5]` are two lanes and their limits."""
    given = [part.strip() for part in text.partition("[")[0].split(",")]
    numbers = [float(part) for part in given if part.lower() not in NO_VALUE]
    return min(numbers, default=None)


_ROUNDED_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_READING = re.compile(r"-?\d+(?:\.\d+)?")
_WHOLE = re.compile(r"\d+")
_EPOCH_STEP = r"\d+(?:/ *\d+)?\]?(?:, step:)? *\[ *\d+/ *\d+"
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)"


TYPES: dict[str, ValueType] = {
    "int": ValueType(r"-?\d+", parse_whole, ("BIGINT", "DOUBLE")),
    "count": ValueType(r"-?\d[\d,]*", parse_whole, ("BIGINT", "DOUBLE")),
    "changes": ValueType(r"\d[\d,]*", parse_changes, ("BIGINT",)),
    "hex": ValueType(r"(?:0x)?[0-9a-fA-F]+", parse_hex, ("BIGINT",)),
    "number": ValueType(_NUMBER, parse_number, ("DOUBLE",)),
    "amount": ValueType(
        r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?", parse_number, ("DOUBLE",)
    ),
    "cell": ValueType(r"\S+", parse_number, ("DOUBLE",)),
    "lowest": ValueType(r"\S.*", parse_lowest, ("DOUBLE",)),
    "measure": ValueType(r"\S.*", parse_measure, ("DOUBLE",)),
    "reading": ValueType(r"N/A|Unknown Error|[^\s|/]+", parse_reading, ("DOUBLE", "BIGINT")),
    "bits": ValueType(r"\S+", parse_bits, ("BIGINT",)),
    "above_zero": ValueType(r"\S+", parse_above_zero, ("BIGINT",)),
    "percent": ValueType(r"\d+(?:\.\d*)?%?", parse_percent, ("DOUBLE",)),
    "rounded": ValueType(r"\d+(?:\.\d*)?[KMBGT]?", parse_rounded, ("DOUBLE",)),
    "epoch_step": ValueType(_EPOCH_STEP, parse_epoch_step, ("BIGINT",)),
    "epoch_step_from_1": ValueType(_EPOCH_STEP, parse_epoch_step_from_1, ("BIGINT",)),
    "seconds": ValueType(_NUMBER, parse_thousands, ("DOUBLE",)),
    "seconds_in_us": ValueType(_NUMBER, parse_millionths, ("DOUBLE",)),
    "millis": ValueType(_NUMBER, parse_thousands, ("DOUBLE",)),
    "rate": ValueType(_NUMBER, parse_rate, ("DOUBLE",)),
    "span": ValueType(r"\d+(?:\.\d*)? ?(?:ns|us|ms|s)?", parse_span, ("DOUBLE",)),
    "timed": ValueType(r"\d+(?:\.\d*)? ?(?:ns|us|ms|seconds|sec|s)\b", parse_span, ("DOUBLE",)),
    "clock": ValueType(r"\d+(?::\d\d){1,2}", parse_clock, ("DOUBLE",)),
    "size": ValueType(r"\d+(?:\.\d*)? ?[KMGT]?i?B", parse_size, ("BIGINT",)),
    "gbits": ValueType(_NUMBER, parse_gbits, ("DOUBLE",)),
    "mebibytes": ValueType(_NUMBER, parse_mebibytes, ("DOUBLE",)),
    "bucket": ValueType(r"\d+-\d+[KMGT]?B", parse_bucket, ("BIGINT",)),
}
