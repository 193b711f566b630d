"""docs/rules.md: how to write a diagnosis as data."""

from collections.abc import Iterator
from inspect import getdoc

from fabricobs.content import files, read_text, shipped
from fabricobs.diagnosis.model import Case, Rule, RuleDriver, Together, Whole, Wording
from fabricobs.report.markdown import code, page, table

_EXAMPLE = "full_receiver"
_QUERY = "full_receivers"


def rules_page() -> str:
    """Return docs/rules.md."""
    model = (shipped("models") / f"{_EXAMPLE}.toml").read_text(encoding="utf-8")
    query = (shipped("queries") / "evidence" / f"{_QUERY}.sql").read_text(encoding="utf-8")
    parts = (
        ("rule", Rule),
        ("rule.together", Together),
        ("rule.whole", Whole),
        ("rule.driver", RuleDriver),
    )
    return page(
        "# Rules",
        "A diagnosis is a rule: one SQL that gives the evidence, one TOML that says what is wrong "
        "with it. No Python is needed. Put them into a folder of yours, as "
        "`DIR/queries/evidence/NAME.sql` and `DIR/models/NAME.toml`, then:",
        "<!-- not run: DIR is yours -->\n"
        + code(
            "fabricobs check --content DIR       # runs the cases of the rule\n"
            "fabricobs diagnose --content DIR    # the rule is one of the diagnoses",
            "sh",
        ),
        "1. Write the query: `fabricobs sql` tries it, [tables](tables.md) lists the columns.\n"
        "2. Write the rule, each threshold with its source.\n"
        "3. Write a case that fires and one that stays silent: `check` refuses a rule without.\n"
        "4. Run it on logs of a healthy run. A rule that names what nobody would act on is `info`.",
        *(page(f"## [{name}]", getdoc(part) or "") for name, part in parts),
        "## [wording]",
        getdoc(Wording) or "",
        "`{who}` names the parts, GPUs by host, `{place}` what holds their hosts (a leaf, or a "
        "common name), `{ranks}` the ranks of GPUs, `{since}` and `{start}` the time it began, "
        "`{intervals}` the number of wrong rows, `{device}` the first NIC among them. `title`, "
        "`explanation` and `next_steps` may name facts and phrases. Commands in `next_steps` and "
        "`refuted_by` stand in backticks: pages give them a button to copy, tickets keep them as "
        "code.",
        "## [[case]]",
        getdoc(Case) or "",
        "## Evidence",
        "A query or a rule may read these as `evidence.NAME`, with times by the job's clock; what "
        "takes thresholds (`$name`) needs them in the model. Functions: `host_name(device)`, "
        "`counter_family(counter)`, `rise(before, after, info, seconds)`, and "
        "`events_at_least(events, expected)`, the chance of so many events by Poisson.",
        table(("evidence", "question"), _evidence()),
        "## What tells of a finding in the input",
        "The query of a model (`query`) may say in its header which of the rows that it reads tell "
        "of a finding; `explain` and the report show where they stand.",
        code(_HEADER, "sql"),
        "`counters` are columns of `port_samples` and `priority_samples`, the strongest first: of "
        "the culprits two readings next to each other are given as the finding begins, each with "
        "its file and line. A query with a column `counter` needs none. `lines` are tables and a "
        "condition: where the first of these rows stands is given. `peers` are tables and the "
        "column by which their rows are compared: beside the culprit's row stands that of its "
        "median peer at the same step or time, beside that of a whole job one of before it.",
        "## Commands in next steps",
        "Next steps name commands as words: `{command_optics}` is that of the system which the "
        "switch runs, `{nic_optics}` that of the NIC's driver. `models/switch_commands.csv` and "
        "`models/nic_commands.csv` hold them: a row an action, a column a system or driver. "
        "`models/command_outputs.csv` names the formats that read the output of a command, and the "
        "setting that tells it from others of the format: a step whose output the logs hold of "
        "that device, as new as the finding, names the file.",
        "## Example",
        code(query, "sql"),
        code(model, "toml"),
    )


_HEADER = """\
-- counters: pfc_tx_frames, pfc_rx_frames
-- lines:
--   events   kind IN ('link_down', 'port_down')
-- peers:
--   steps    compute_ms"""


def _evidence() -> Iterator[tuple[str, str]]:
    """Yield each evidence query, and the question in its first line."""
    for name, path in files("queries", ".sql").items():
        if name.startswith("evidence/"):
            question = read_text(path).splitlines()[0].removeprefix("-- question: ")
            yield f"`{name.removeprefix('evidence/')}`", question
