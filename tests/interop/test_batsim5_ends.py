"""Our two ends for Batsim 5: the same jobs as in the embedded engine, for presets, and for a library."""

import json
import shutil
import subprocess
import sys

import pytest
from helpers.batsim5 import build_engine5, converse5
from helpers.golden import ROOT, SESSIONS_5
from typer.testing import CliRunner

from decision.batsim.agent import make_agent
from decision.cli.app import app
from decision.engine.options import EngineOptions
from decision.formats import load_platform, load_workload
from decision.simulation import simulate_workloads

FOLDER = SESSIONS_5 / "walltime_reached"
PRESETS = ["fcfs", "easy", "conservative", "easy,order=sjf", "filler"]


def jobs_of(record):
    rows = zip(record.jobs.id, record.jobs.start_time, record.jobs.runtime, record.jobs.final_state, strict=True)
    return sorted((job, round(start, 6), round(run, 6), int(state)) for job, start, run, state in rows)


@pytest.mark.parametrize("policy", PRESETS)
def test_a_preset_decides_alike_in_the_embedded_engine_and_for_batsim_5(policy):
    name, _, options = policy.partition(",")
    settings = dict(pair.split("=") for pair in options.split(",") if pair)
    agent = make_agent(name, settings)
    workload = load_workload(FOLDER / "workload0.json", keep_source=True)
    here = simulate_workloads(
        load_platform(FOLDER / "platform.xml"),
        [workload],
        name,
        settings,
        engine_options=EngineOptions(calls="ms"),
    )
    assert jobs_of(converse5(build_engine5(FOLDER), agent)) == jobs_of(here)


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
uint8_t batsim_edc_deinit(void) { return 0; }
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
        ([], "7", (), "batsim_edc_init returns 7"),
    ],
)
def test_a_library_that_fails_is_one_line(tmp_path, flags, init, more, said):
    result = run(tmp_path, built(tmp_path, *flags), init, *more)
    assert result.exit_code != 0
    assert said in failed(result) + result.output
