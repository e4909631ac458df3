"""Tables fit where they are printed: each row keeps its name, and no figure is cut."""

import pytest
from rich.console import Console

from decision.cli.tables import fitted_table
from decision.model.table import Table

POLICIES = {"easy": "603,661", "conservative": "1,203,661", "saf+easy,power=idle-timeout": "99"}
FIGURES = ("makespan\ns", "mean wait\ns", "max wait\ns", "bounded\nslowdown", "util.\n%")

RIGHT = [f">{name}" for name in FIGURES]


def printed(table, width, capsys):
    Console(width=width, emoji=False, markup=False).print(table)
    return capsys.readouterr().out.rstrip("\n").split("\n")


@pytest.mark.parametrize("width", [20, 24, 31, 40, 60, 80, 100, 10_000])
def test_each_row_says_its_policy_and_each_figure_is_whole(width, capsys):
    rows = [(policy, makespan, "1,234.5", "12,333,332", "1.01", "88.1") for policy, makespan in POLICIES.items()]
    table = fitted_table(Table("", ("policy", *RIGHT), rows), caption="makespan: from the first submission")
    lines = printed(table, width, capsys)
    text = "\n".join(lines)
    assert "…" not in text and max(map(len, lines)) <= width
    headed = [line for line in lines if "─" in line]
    assert (len(headed) == 1) == (width >= 80)
    for makespan in POLICIES.values():
        row = next(line.split() for line in lines if makespan in line.split())
        assert any(policy.startswith(row[0]) for policy in POLICIES), row
    for figure in ("1,234.5", "12,333,332", "1.01", "88.1"):  # one of each policy, beside its name
        rows = [line.split() for line in lines if figure in line.split()]
        names = [row[0] for row in rows]
        assert len(names) == 3 and all(p.startswith(n) for p, n in zip(POLICIES, names, strict=True)), rows


def test_a_name_that_is_broken_can_be_read_whole(capsys):
    row = ("saf+easy,power=idle-timeout", *["603,661"] * 5)
    table = fitted_table(Table("", ("policy", *RIGHT), [row]))
    lines = printed(table, 40, capsys)
    part = lines[: next(at for at, line in enumerate(lines) if at and not line.strip() and "─" in lines[at - 3])]
    begin = next(at for at, line in enumerate(part) if "603,661" in line)
    assert "".join(line.split()[0] for line in part[begin:] if line.strip()) == "saf+easy,power=idle-timeout"


def test_several_columns_can_be_names(capsys):
    columns = ("workload", "policy", ">walltimes", ">predictions")
    table = fitted_table(Table("", columns, [("kth_sp2", "conservative", "12,345.6", "23,456.7")]), names=2)
    rows = [line.split() for line in printed(table, 40, capsys) if "kth_sp2" in line]
    assert rows == [["kth_sp2", "conservative", "12,345.6"], ["kth_sp2", "conservative", "23,456.7"]]


def test_a_pipe_has_whole_rows_of_figures_and_breaks_long_texts(capsys):
    table = fitted_table(Table("", ("policy", "what it does"), [("conservative-backfilling", "words " * 60)]))
    lines = printed(table, 10_000, capsys)
    assert max(map(len, lines)) <= 80 and sum("words" in line for line in lines) > 5
    columns = ("policy", *(f">figure {n}" for n in range(30)))
    table = fitted_table(Table("", columns, [("easy", *["1,234,567"] * 30)]))
    assert any(line.count("1,234,567") == 30 for line in printed(table, 10_000, capsys))
