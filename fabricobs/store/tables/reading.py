"""Tables of the files that were read and of lines that were not."""

from fabricobs.store.tables.columns import FILE_ID, JOB, LINE, Column, Table, text, whole

READING = (
    Table(
        "files",
        "one input file and its accounting: lines = parsed + ignored + unparsed",
        "ingest",
        (
            FILE_ID,
            JOB,
            text("path", "Absolute path when it was read"),
            whole("size_bytes", "Size on disk", "bytes"),
            Column("modified", "TIMESTAMP", "UTC", "Modification time on disk"),
            Column("dated", "TIMESTAMP", "UTC", "Time that its path, or a file beside it, states"),
            text("dated_source", "What states it: filename, bundle or day, as `ts_source`"),
            text("content", "Digest of the bytes on disk"),
            text("settings", "Digest of the definitions and options it was read with"),
            text("formats", "Formats it showed, comma-separated; empty if unrecognised"),
            text("device", "Host or switch whose rows it holds where its lines name none"),
            text(
                "device_source",
                "What says so: map (--host-from), bundle (a file `hostname` beside it), path, "
                "guess (a path in which only the looks of the name speak for it), unknown",
            ),
            whole("rank", "Rank in the job that the path states"),
            whole("lines", "Lines (rows for binary formats)"),
            whole("parsed", "Lines that gave at least one row or context for one"),
            whole("ignored", "Lines a format knows and does not need"),
            text(
                "not_kept",
                "What is known and not kept, and how many of each: ignored lines by what they are "
                "about, values by their field (column, key or metric), sections",
            ),
            whole("unparsed", "Lines nobody read"),
            whole("unclaimed", "Of the unparsed, those that bear no format's mark"),
            whole("rows", "Rows written to the tables"),
            whole("untimed_steps", "Steps that tell neither how long they took nor when they were"),
            Column("ts_first", "TIMESTAMP", "UTC", "Earliest time of its rows"),
            Column("ts_last", "TIMESTAMP", "UTC", "Latest time of its rows"),
            text("problem", "Why the file could not be read to its end, else null"),
            text("replaces", "file_id of the shorter file this one has grown from"),
            text(
                "repeats", "Path of the file in which its lines were read: it is a copy; else null"
            ),
            Column("pruned", "TIMESTAMP", "UTC", "When its rows were taken out to save room"),
        ),
        ("path", "file_id"),
    ),
    Table(
        "unparsed",
        "a sampled line nobody read",
        "ingest",
        (
            FILE_ID,
            LINE,
            text("reason", "What was expected"),
            text("text", "The line, cut at 500 characters"),
        ),
        ("file_id", "line"),
    ),
)
