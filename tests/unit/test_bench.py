import sys

from bench import __main__ as table
from bench.peak import peak_megabytes


def test_memory_is_that_of_the_program_alone():
    bytearray(300 << 20)  # what this process had is no program's that it starts
    assert 50 < peak_megabytes([sys.executable, "-c", "bytearray(50 << 20)"]) < 150


def test_a_table_in_a_file_cuts_nothing(monkeypatch, capsys):
    name, peers = "decide-deepscheduling-gru", "another program 12,345, " * 6
    monkeypatch.setattr(table, "BENCHMARKS", {name: table.Benchmark(lambda swf: [1.5], "ms", "at most 3", peers)})
    table.main()
    (row,) = (line for line in capsys.readouterr().out.splitlines() if name in line)
    assert [cell.strip() for cell in row.strip("│").split("│")][-3:] == ["ms", "at most 3", peers.strip()]
