"""The table of doors is true: a door without statements names a test that is there."""

from pathlib import Path

from tests.doors.test_sql_doors import DOORS


def test_every_door_is_tried() -> None:
    for door in DOORS:
        if "sql" not in door:
            name, _, function = door["test"].partition("::")
            text = Path(__file__).with_name(name).read_text(encoding="utf-8")
            assert f"def {function}(" in text, door["way"]
