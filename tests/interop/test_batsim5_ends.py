"""Our two ends for Batsim 5: the same jobs as in the embedded engine, for presets, and for a library."""

import json
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner
from helpers import green_worlds
from helpers.batsim5 import converse5
from helpers.golden import ROOT, SESSIONS_5
from msgspec.structs import replace

from decision.batsim.agent import make_agent
from decision.cli.app import app
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.batsim5 import Batsim5Engine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files import load_platform, load_workload
from decision.model.workload import Delay
from decision.protocol import messages as m
from decision.protocol.versions import V5
from decision.simulation import simulate_workloads

FOLDER = SESSIONS_5 / "walltime_reached"
PRESETS = ("fcfs", "easy", "conservative", "filler", "sjf+easy", "saf+easy", "first-fit")


def jobs_of(record):
    names = ("id", "start_time", "runtime", "final_state", "allocation")
    rows = zip(*(getattr(record.jobs, name) for name in names), strict=True)
    return sorted(f"{job} {start:.6f} {run:.6f} {state:d} {hosts}" for job, start, run, state, hosts in rows)


def three_ends(platform, work, policy, energy=False, suspends=False):
    """The jobs in the embedded engine, and of an agent that decides for our end for Batsim 4, and 5, through bytes."""
    ms = EngineOptions(energy=energy, calls="ms")
    four = EmbeddedEngine(platform, [work], [], replace(ms, dynamic_jobs=suspends))
    five = Batsim5Engine(platform, [work], [], replace(ms, rules=V5), lists={}, facts=m.BatsimFacts("v5.0.0-rc2"))
    yield jobs_of(simulate_workloads(platform, [work], policy, engine_options=ms))
    yield jobs_of(simulate_by_messages(four, make_agent(policy, {}, platform=platform)))
    yield jobs_of(converse5(five, make_agent(policy, {}, platform=platform)))


@pytest.mark.parametrize("policy", [*PRESETS, "dbf"])
def test_a_policy_decides_alike_in_the_embedded_engine_and_for_batsim_4_and_5(policy):
    if policy == "dbf":
        pytest.importorskip("torch", reason="a learned policy needs torch")
    platform, work = load_platform(FOLDER / "platform.xml"), load_workload(FOLDER / "workload0.json", keep_source=True)
    embedded, four, five = three_ends(platform, work, policy)
    assert len(embedded) == 60
    assert four == embedded
    assert five == embedded


def test_hosts_are_put_to_sleep_alike():
    folder = SESSIONS_5 / "energy_switch"
    platform = load_platform(folder / "platform.xml", energy=True, by_numbers=True)
    work = load_workload(folder / "workload0.json", keep_source=True)
    embedded, four, five = three_ends(platform, work, "easy,power=idle-timeout,idle_timeout=40.0005", energy=True)
    assert embedded != jobs_of(simulate_workloads(platform, [work], "easy", engine_options=EngineOptions(energy=True)))
    assert four == embedded
    assert five == embedded


def test_jobs_are_suspended_alike():
    work = green_worlds.workload(1)
    work = replace(work, profiles={name: Delay(profile.duration) for name, profile in work.profiles.items()})
    embedded, four, five = three_ends(green_worlds.platform(), work, "density+first-fit,suspend=density", suspends=True)
    assert any("#" in row for row in embedded)
    assert four == embedded
    assert five == embedded


def test_the_example_of_the_guide_decides(tmp_path):
    script, endpoint = ROOT / "examples" / "edc" / "first_come.py", f"ipc://{tmp_path}/edc"
    files = ["-p", str(FOLDER / "platform.xml"), "-w", str(FOLDER / "workload0.json"), "-e", f"{tmp_path}/out/"]
    with subprocess.Popen([sys.executable, script, endpoint]) as component:
        result = CliRunner().invoke(app, ["batsim5", *files, "-s", endpoint, "", "--timeout", "60"])
        component.wait(10)
    assert result.exit_code == 0
    assert (tmp_path / "out" / "jobs.csv").read_text() == (FOLDER / "out_jobs.csv").read_text()


REJECTER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char out[1 << 16];
uint8_t batsim_edc_init(const uint8_t *data, uint32_t size, uint32_t *flags, uint8_t **reply, uint32_t *reply_size) {
  *flags = 2;
  sprintf(out, "{\"now\":0.0,\"events\":[{\"timestamp\":0.0,\"event_type\":\"EDCHelloEvent\",\"event\":{"
    "\"batprotocol_version\":\"1\",\"decision_component_name\":\"r\",\"decision_component_version\":\"1\","
    "\"decision_component_commit\":\"\",\"requested_simulation_features\":{}}}]}");
  *reply = (uint8_t *)out; *reply_size = strlen(out);
  return atoi((const char *)data);
}
#ifndef LATE
#define LATE
#endif
uint8_t batsim_edc_deinit(void) { LATE; return 0; }
#ifndef LACKING
uint8_t batsim_edc_take_decisions(const uint8_t *data, uint32_t size, uint8_t **reply, uint32_t *reply_size) {
  const char *at = (const char *)data; double now = 0; char *to = out;
#ifdef CRASH
  abort();
#endif
#ifdef HANG
  for (;;) ;
#endif
  sscanf(at, "{\"now\":%lf", &now);
  to += sprintf(to, "{\"now\":%.9f,\"events\":[", now);
  for (int n = 0; (at = strstr(at, "\"JobSubmittedEvent\"")); n++) {
    char id[64];
    at = strstr(at, "\"job_id\":\"") + 10;
    sscanf(at, "%63[^\"]", id);
    to += sprintf(to, "%s{\"timestamp\":%.9f,\"event_type\":\"RejectJobEvent\",\"event\":{\"job_id\":\"%s\"}}",
      n ? "," : "", now, id);
  }
  sprintf(to, "]}"); *reply = (uint8_t *)out; *reply_size = strlen(out);
#ifdef GREAT
  *reply_size = -1;
#endif
  return 0;
}
#endif
"""


def built(tmp_path, *flags):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "edc.c", tmp_path / "libedc.so"
    source.write_text(REJECTER)
    subprocess.run([compiler, "-shared", "-fPIC", *flags, "-o", library, source], check=True)
    return library


def run(tmp_path, library, init="0", *more):
    files = ["-p", str(FOLDER / "platform.xml"), "-w", str(FOLDER / "workload0.json"), "-e", f"{tmp_path}/out/"]
    return CliRunner().invoke(app, ["batsim5", *files, "-l", str(library), init, *more], catch_exceptions=True)


def failed(result):
    return f"{result.exception}"


def test_a_library_decides(tmp_path):
    assert run(tmp_path, built(tmp_path)).exit_code == 0
    summary = json.loads((tmp_path / "out" / "schedule.json").read_text().replace("-nan", "null"))
    assert summary["nb_jobs_rejected"] == summary["nb_jobs"] == 60


@pytest.mark.parametrize(
    ("flags", "init", "more", "said"),
    [
        (["-DLACKING"], "0", (), "no function batsim_edc_take_decisions"),
        (["-DCRASH"], "0", (), "SIGABRT"),
        (["-DHANG"], "0", ("--timeout", "1"), "sent nothing more"),
        (["-DGREAT"], "0", (), "4,294,967,295 bytes"),
        (["-DLATE=abort()"], "0", (), "SIGABRT"),
        ([], "7", (), "batsim_edc_init returns 7"),
    ],
)
def test_a_library_that_fails_is_one_line(tmp_path, flags, init, more, said):
    result = run(tmp_path, built(tmp_path, *flags), init, *more)
    assert result.exit_code != 0
    assert said in failed(result) + result.output
