"""The views that a question reaches: of drawn scripts, those it needs and no others."""

import random

import duckdb
import pytest

from fabricobs.store.views import reached_scripts, reached_statements, statements_of


@pytest.mark.parametrize("seed", range(30))
def test_what_a_question_reaches_is_made_and_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    below: dict[str, list[str]] = {}
    scripts: dict[str, str] = {}
    for number in range(chance.randint(2, 5)):
        text = []
        for view in range(chance.randint(1, 4)):
            sources = chance.sample(sorted(below), min(len(below), chance.randint(0, 2)))
            name = f"v{number}_{view}"
            selects = [f"SELECT n + {view} AS n FROM {source}" for source in sources]
            text.append(f"-- Made.\nCREATE OR REPLACE VIEW {name} AS "
                        f"{' UNION ALL '.join(['SELECT 1 AS n', *selects])};")  # fmt: skip
            below[name] = sources
        scripts[f"views/{number}"] = "\n".join(text)
    asked = chance.choice(sorted(below))
    sql = f"SELECT sum(n) FROM {asked}"

    def needs(name: str) -> set[str]:
        return {name}.union(*map(needs, below[name]))

    with duckdb.connect() as whole, duckdb.connect() as part:
        for text in scripts.values():
            whole.execute(text)
        parsed = {n: statements_of(part, n, t) for n, t in reached_scripts(sql, scripts).items()}
        reached, _ = reached_statements(sql, parsed, whole=())
        for statements in reached.values():
            for statement in statements:
                part.execute(statement)
        made = "SELECT view_name FROM duckdb_views() WHERE NOT internal"
        assert {name for (name,) in part.execute(made).fetchall()} == needs(asked)
        assert part.execute(sql).fetchall() == whole.execute(sql).fetchall()
