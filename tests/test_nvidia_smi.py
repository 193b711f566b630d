"""Outputs of nvidia-smi in the layouts of its options and versions: the rows are those drawn."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fabricobs.formats.context import Context
from fabricobs.formats.identity import Identity
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows, Tally

CATALOGUE = load_catalogue()
START = datetime(2026, 3, 3, 23, 59, 50, tzinfo=UTC)
# `nvidia-smi dmon -h` of driver 580: the columns and units of each group.
GROUPS = {
    "p": ["pwr W", "gtemp C", "mtemp C"],
    "u": ["sm %", "mem %", "enc %", "dec %", "jpg %", "ofa %"],
    "c": ["mclk MHz", "pclk MHz"],
    "v": ["pviol %", "tviol bool"],
    "m": ["fb MB", "bar1 MB", "ccpm MB"],
    "e": ["sbecc errs", "dbecc errs", "pci errs"],
    "t": ["rxpci MB/s", "txpci MB/s"],
}
OLD = {"jpg", "ofa", "ccpm"}  # that drivers before 525 do not print
KEPT = {
    "pwr": "power_watts",
    "gtemp": "temperature_celsius",
    "sm": "utilization_percent",
    "mclk": "memory_clock_mhz",
    "pclk": "sm_clock_mhz",
}


def read(
    folder: Path, text: str, modified: datetime | None = None
) -> tuple[dict[str, list[dict[str, Any]]], Tally]:
    """Read a text as an output that lies in a folder of host gpu-a07."""
    path = folder / "output.txt"
    path.write_text(text)
    recognised = CATALOGUE.recognise(text.encode(), "/logs/gpu-a07/output.txt")
    modified_us = None if modified is None else int(modified.timestamp() * 1e6)
    told = Identity("gpu-a07", "path", ts=modified_us, ts_source="mtime")
    context = Context("f", identity=told, modified_us=modified_us)
    rows = Rows()
    result = read_file(path, recognised, context, rows, lambda: None)
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, part in rows.drain():
        tables.setdefault(table, []).extend(part.to_pylist())
    for some in tables.values():
        some.sort(key=lambda row: row["line"])
    assert result.problem is None
    return tables, result.tally


@st.composite
def monitored(draw: st.DrawFn) -> tuple[str, str, list[dict[str, Any]]]:
    """Return what dmon prints with some options, the times it prints, and the rows it tells."""
    groups = draw(st.sets(st.sampled_from(sorted(GROUPS)), min_size=1))
    times = draw(st.sampled_from(["", "T", "DT"]))
    as_csv, is_old, units = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    named = [each.split() for group in GROUPS if group in groups for each in GROUPS[group]]
    named = [(name, unit) for name, unit in named if not (is_old and name in OLD)]
    titles = [*(["Date"] if "D" in times else []), *(["Time"] if times else []), "gpu"]
    marked = [*(["YYYYMMDD"] if "D" in times else []), *(["HH:MM:SS"] if times else []), "Idx"]
    head = [_line([*titles, *(name for name, _ in named)], "#" if times else "# ", as_csv)]
    if units or not as_csv:
        mark = "#" if times else "# "
        head.append(_line([*marked, *(unit for _, unit in named)], mark, as_csv))
    again = draw(st.integers(1, 5))
    lines: list[str] = []
    rows: list[dict[str, Any]] = []
    gpus = draw(st.integers(1, 4))
    for sample in range(draw(st.integers(1, 12))):
        if sample % again == 0:
            lines += head
        moment = START + timedelta(seconds=2 * sample)
        for gpu in range(gpus):
            cells = {name: draw(st.sampled_from(["-", "0", "1", "690"])) for name, _ in named}
            if "tviol" in cells:
                cells["tviol"] = draw(st.sampled_from(["-", "0", "1"]))
            clock = [f"{moment:%Y%m%d}"] if "D" in times else []
            clock += [f"{moment:%H:%M:%S}"] if times else []
            lines.append(_line([*clock, str(gpu), *cells.values()], " ", as_csv))
            row = {
                column: None if (text := cells.get(name, "-")) == "-" else float(text)
                for name, column in KEPT.items()
            }
            hot, limited = (cells.get(name, "-") not in {"-", "0"} for name in ("tviol", "pviol"))
            reasons = 32 if hot else 4 if limited else None
            told = moment.replace(tzinfo=None) if times else None
            rows.append({"gpu": gpu, "ts": told, **row, "throttle_reasons": reasons})
    return "\n".join(lines) + "\n", times, rows


def _line(cells: list[str], mark: str, as_csv: bool) -> str:
    if as_csv:
        return mark + ", ".join(cells)
    return mark + " ".join([cells[0].ljust(10), *(cell.rjust(6) for cell in cells[1:])]) + " "


@settings(max_examples=120)
@given(monitored())
def test_dmon_is_read_by_its_header(
    tmp_path_factory: Any, drawn: tuple[str, str, list[dict[str, Any]]]
) -> None:
    text, times, expected = drawn
    written = START + timedelta(minutes=1)
    tables, tally = read(tmp_path_factory.getbasetemp(), text, written)
    assert tally.unparsed == 0
    rows = tables["gpu_samples"]
    assert [
        {name: row[name] for name in want} for row, want in zip(rows, expected, strict=True)
    ] == [{**want, "ts": want["ts"] or written.replace(tzinfo=None)} for want in expected]
    assert {row["host"] for row in rows} == {"gpu-a07"}
    source = {"": "mtime", "T": "derived", "DT": "inline"}[times]
    assert {row["ts_source"] for row in rows} == {source}


def test_dmon_without_a_header_is_not_recognised() -> None:
    text = " 0, 79, 34, 35, 0, 0, 0, 0, 0, 0, 3201, 345, 34, 42\n" * 5
    assert not CATALOGUE.recognise(text.encode(), "/logs/gpu-a07/dmon.csv").formats


def test_a_line_of_dmon_that_breaks_off_is_unread(tmp_path: Path) -> None:
    head = "#Time        gpu     sm    mem\n#HH:MM:SS    Idx      %      %\n"
    text = f"{head} 22:13:47      0     99     23\n 22:13:49      0"
    tables, tally = read(tmp_path, text, START)
    assert (len(tables["gpu_samples"]), tally.unparsed) == (1, 1)


# A section of `nvidia-smi -q`: the title, the element of its XML (-x), and key, element and unit
# of what stands in it. Drivers before 535 have the names behind the stroke.
Section = tuple[str, str, list[tuple[str, str, str]]]
REASONS = ["Idle", "SW Power Cap", "HW Slowdown", "HW Thermal Slowdown", "SW Thermal Slowdown"]
NEW: list[Section] = [
    ("Utilization", "utilization", [("GPU", "gpu_util", " %"), ("Memory", "memory_util", " %")]),
    ("Temperature", "temperature", [("GPU Current Temp", "gpu_temp", " C")]),
    (
        "GPU Power Readings",
        "gpu_power_readings",
        [
            ("Average Power Draw", "average_power_draw", " W"),
            ("Current Power Limit", "current_power_limit", " W"),
            ("Max Power Limit", "max_power_limit", " W"),
        ],
    ),
    (
        "GPU Memory Power Readings",
        "gpu_memory_power_readings",
        [("Average Power Draw", "average_power_draw", " W")],
    ),
    ("Clocks", "clocks", [("SM", "sm_clock", " MHz"), ("Memory", "mem_clock", " MHz")]),
    ("Applications Clocks", "applications_clocks", [("Memory", "mem_clock", " MHz")]),
    ("Max Clocks", "max_clocks", [("SM", "sm_clock", " MHz"), ("Memory", "mem_clock", " MHz")]),
]
OLD_POWER: Section = (
    "Power Readings",
    "power_readings",
    [("Power Draw", "power_draw", " W"), ("Enforced Power Limit", "enforced_power_limit", " W")],
)


@st.composite
def one_state(draw: st.DrawFn) -> tuple[str, str]:
    """Return what -q and -q -x print of the same state of some GPUs."""
    is_old = draw(st.booleans())
    moment = f"{START:%a %b %d %H:%M:%S %Y}"
    plain = ["", "==============NVSMI LOG==============", "", f"Timestamp  : {moment}"]
    xml = ["<nvidia_smi_log>", f"\t<timestamp>{moment}</timestamp>"]
    word = "throttle" if is_old else "event"
    sections = [s for s in NEW if "Power" not in s[0]] + [OLD_POWER] if is_old else NEW
    for gpu in range(draw(st.integers(1, 4))):
        bus = f"00000000:{0x18 + gpu:02X}:00.0"
        plain += [f"GPU {bus}", "    Product Name      : NVIDIA H200"]
        xml += [f'\t<gpu id="{bus}">', "\t\t<product_name>NVIDIA H200</product_name>"]
        plain.append(f"    Clocks {word.title()} Reasons")
        xml.append(f"\t\t<clocks_{word}_reasons>")
        for reason in REASONS:
            told = draw(st.sampled_from(["Active", "Not Active", "N/A"]))
            name = reason.lower().replace("idle", "gpu_idle").replace(" ", "_")
            element = f"clocks_{word}_reason_{name}"
            plain.append(f"        {reason:30}: {told}")
            xml.append(f"\t\t\t<{element}>{told}</{element}>")
        xml.append(f"\t\t</clocks_{word}_reasons>")
        for title, element, keys in draw(st.permutations(sections)):
            plain.append(f"    {title}")
            xml.append(f"\t\t<{element}>")
            for key, name, unit in keys:
                told = draw(st.sampled_from(["N/A", f"31{unit}", f"1980{unit}", f"700.5{unit}"]))
                plain.append(f"        {key:30}: {told}")
                xml.append(f"\t\t\t<{name}>{told}</{name}>")
            xml.append(f"\t\t</{element}>")
        xml.append("\t</gpu>")
    return "\n".join([*plain, ""]), "\n".join([*xml, "</nvidia_smi_log>", ""])


@settings(max_examples=60)
@given(one_state())
def test_the_xml_of_a_state_gives_the_rows_of_its_text(
    tmp_path_factory: Any, drawn: tuple[str, str]
) -> None:
    given_rows = []
    for text in drawn:
        tables, tally = read(tmp_path_factory.getbasetemp(), text)
        assert tally.unparsed == 0
        rows = [{**row, "line": None} for row in tables["gpu_samples"]]
        assert {row["ts"] for row in rows} == {START.replace(tzinfo=None)}
        assert {row["host"] for row in rows} == {"gpu-a07"}
        given_rows.append(rows)
    assert given_rows[0] == given_rows[1]


def test_a_message_between_lines_of_dmon_costs_no_line(tmp_path: Path) -> None:
    lines = ["#Time  gpu  sm", "#HH:MM:SS  Idx  %", " 23:59:50  0  99", "some other message", ", 0"]
    tables, tally = read(tmp_path, "\n".join([*lines, " 23:59:52  0  98", ""]), START)
    assert ([r["utilization_percent"] for r in tables["gpu_samples"]], tally.unparsed) == (
        [99, 98],
        2,
    )


RULES = {
    is_new: f"+{'-' * (41 if is_new else 31)}+{'-' * (24 if is_new else 22)}+{'-' * 22}+"
    for is_new in (True, False)
}
PROCESSES = """
+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|    0   N/A  N/A      4711      C   /opt/conda/bin/python3.10       30126MiB |
+-----------------------------------------------------------------------------+
""".strip("\n").split("\n")


@st.composite
def pasted(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """Return what nvidia-smi prints of some GPUs, perhaps with -l, and what it tells."""
    is_new, dated = draw(st.booleans()), draw(st.booleans())
    wide = 39 if is_new else 29
    rule = RULES[is_new]
    model, shown = draw(
        st.sampled_from(
            [("NVIDIA H200", "NVIDIA H200"), (None, "NVIDIA H100 80G..."), ("A100", "A100")]
        )
    )
    lines: list[str] = []
    told: list[dict[str, Any]] = []
    for sample in range(draw(st.integers(1, 3))):
        moment = START + timedelta(seconds=2 * sample)
        if dated:
            lines.append(f"{moment:%a %b %d %H:%M:%S %Y}       ")
        lines += [
            "+" + "-" * (len(rule) - 2) + "+",
            "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4".ljust(
                len(rule) - 1
            )
            + "|",
            rule if is_new else rule.replace("+", "|", 1),
            "| GPU  Name".ljust(wide) + " | Bus-Id        Disp.A | Volatile Uncorr. ECC |",
            "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |",
            "|" + " " * (wide) + " |" + " " * 22 + "|               MIG M. |",
            "|=====" + "=" * wide + "+========+====|",
        ]
        for gpu in range(draw(st.integers(1, 16))):
            fan = draw(st.sampled_from(["N/A", "30%", "ERR!"]))
            celsius = draw(st.sampled_from(["N/A", "56C", "ERR!", "101C"]))
            watts = draw(st.sampled_from(["N/A", "690W", "ERR!", "Unknown Error", "7W"]))
            limit = draw(st.sampled_from(["N/A", "700W", "ERR!"]))
            busy = draw(st.sampled_from(["N/A", "100%", "0%", "ERR!"]))
            errors = draw(st.sampled_from(["0", "12", "N/A", "Off", "ERR!", "Unknown Error"]))
            bus = f"00000000:{0x18 + gpu:02X}:00.0"
            lines += [
                f"| {gpu:3}  {shown}  On ".ljust(wide) + f"| {bus} Off | {errors:>20} |",
                ("|" if fan == "ERR!" else "| ")
                + f"{fan:4} {celsius:>4}   P0 {watts:>14} / {limit:>5} |      0MiB / 32510MiB | "
                + f"{busy:>7}      Default |",
                "|" + " " * wide + " |" + " " * 22 + "|                  N/A |",
                rule,
            ]
            cells = [fan, celsius, watts, limit, busy, errors]
            told.append(
                {
                    "gpu": gpu,
                    "bus_id": bus,
                    "model": model,
                    "ts": moment.replace(tzinfo=None) if dated else None,
                    "temperature_celsius": _number(celsius),
                    "power_watts": _number(watts),
                    "power_limit_watts": _number(limit),
                    "utilization_percent": _number(busy),
                    "ecc_uncorrected": _number(errors),
                    "faults": 1 if {"ERR!", "Unknown Error"} & set(cells) else None,
                }
            )
        lines += ["", *PROCESSES]
    return "\n".join(lines) + "\n", told


def _number(cell: str) -> float | None:
    digits = cell.rstrip("CW%")
    return float(digits) if digits.isdecimal() else None


@settings(max_examples=60)
@given(pasted())
def test_the_table_that_everybody_pastes(
    tmp_path_factory: Any, drawn: tuple[str, list[dict[str, Any]]]
) -> None:
    text, expected = drawn
    tables, tally = read(tmp_path_factory.getbasetemp(), text)
    assert tally.unparsed == 0
    # The lines of a GPU stand one below the other, and no line of another one between them.
    gathered: list[dict[str, Any]] = []
    line = 0
    for row in tables["gpu_samples"]:
        if not gathered or (row["line"] > line + 1):
            gathered.append({})
        line = row["line"]
        gathered[-1].update({name: value for name, value in row.items() if value is not None})
    assert [
        {name: row.get(name) for name in want} for row, want in zip(gathered, expected, strict=True)
    ] == expected


def test_a_table_in_a_log_of_a_trainer_dates_no_steps(tmp_path: Path) -> None:
    """The date above the table is that of the table alone, and the path names no host."""
    sample = CATALOGUE.formats["nvidia_smi"].definition.sample[0].text
    steps = CATALOGUE.formats["nanogpt"].definition.sample[0].text
    tables, _ = read(tmp_path, f"{sample}\n{steps}")
    assert {row["ts"] for row in tables["gpu_samples"]} == {datetime(2026, 11, 26, 22, 13, 52)}
    assert tables["steps"]
    assert {row["ts"] for row in tables["steps"]} == {None}
