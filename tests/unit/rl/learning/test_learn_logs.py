"""Curves: CSV that can be gone on with, and event files as TensorBoard reads them."""

import struct

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from decision.rl.learning.training import CsvLog, EventLog, _masked_crc


def test_rows_have_the_columns_in_order_and_gaps_where_nothing_was_measured(tmp_path):
    log = CsvLog(tmp_path / "c.csv", ("iteration", "steps", "wait"))
    log.write({"steps": 64, "iteration": 1, "other": 5.0})
    log.write({"iteration": 2, "steps": 128, "wait": 0.1})
    log.close()
    assert (tmp_path / "c.csv").read_text() == "iteration,steps,wait\n1,64,\n2,128,0.1\n"


def test_a_log_that_goes_on_keeps_rows_up_to_where_it_goes_on_from(tmp_path):
    (tmp_path / "c.csv").write_text("iteration,x\n1,1.0\n2,2.0\n3,3.0\n4,4.")
    log = CsvLog(tmp_path / "c.csv", ("iteration", "x"), keep=2)
    log.write({"iteration": 3, "x": 3.5})
    log.close()
    assert (tmp_path / "c.csv").read_text() == "iteration,x\n1,1.0\n2,2.0\n3,3.5\n"


def test_rows_of_an_older_version_get_the_columns_of_now(tmp_path):
    (tmp_path / "c.csv").write_text("iteration,x,gone\n1,1.0,5\n2,,\n")
    CsvLog(tmp_path / "c.csv", ("iteration", "new", "x"), keep=2).close()
    assert (tmp_path / "c.csv").read_text() == "iteration,new,x\n1,,1.0\n2,,\n"


def test_checksums_are_castagnolis_masked():
    # RFC 3720, appendix B.4: 32 bytes of zeros have the CRC 8a9136aa
    crc = 0x8A9136AA
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert _masked_crc(bytes(32)) == struct.pack("<I", masked)


def test_tensorboard_reads_what_was_written_and_drops_what_is_made_again(tmp_path):
    first = EventLog(tmp_path, 0)
    for step in (100, 200, 300):
        first.write(step, {"reward": -0.5, "wait": step})
    first.close()
    (file,) = tmp_path.glob("events.out.tfevents.*")
    file.rename(tmp_path / "events.out.tfevents.1.1.decision")
    second = EventLog(tmp_path, 200)
    second.write(300, {"wait": 7})
    second.close()
    read = EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in read.Scalars("wait")] == [(100, 100.0), (200, 200.0), (300, 7.0)]
