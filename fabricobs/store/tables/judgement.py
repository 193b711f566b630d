"""Tables of findings, kept for `explain` and for later rounds of a watch."""

from fabricobs.store.tables.columns import Column, Table, number, text

JUDGEMENT = (
    Table(
        "findings",
        "a finding of one diagnosis, kept as history",
        "diagnose",
        (
            text("run", "Digest of what was found, or name of the event of an incident"),
            text("news", "Of an incident: new, worse or resolved; null: found by `diagnose`"),
            Column(
                "told",
                "TIMESTAMP",
                "UTC",
                "When it was judged, by our clock; of an incident: when the watch noticed",
            ),
            text("id", "Stable over reruns"),
            text("kind", "Diagnosis"),
            text("severity", "info, low, medium, high or critical"),
            number("confidence", "0 to 1"),
            Column("start", "TIMESTAMP", "UTC", "Begin"),
            Column("end", "TIMESTAMP", "UTC", "End"),
            number("loss_share", "Share of throughput lost, 0 to 1"),
            text("title", "One sentence"),
            text("document", "The whole finding as JSON, schema_version 1"),
        ),
        ("run", "id"),
    ),
)
