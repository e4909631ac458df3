"""Rules of Slurm that recordings showed and its documentation says: limits, reservations, the table of backfill."""

from pathlib import Path

from decision.slurm.conf import Settings
from decision.slurm.priority import Factors
from decision.slurm.simulate import simulate_case
from tests.helpers.slurm_cases import CONF, line, starts, toy

ENFORCED = CONF + "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce=limits,qos\n"
ASSOC = "Account|User|Share|GrpTRES|Par Name\na||1||root\na|u|1|node=2|\n"
QOS = "Name|Priority|GrpTRES|MaxTRESPU|MaxJobsPU\nnormal|0|||\nwide|0|node=4||\nlow|0|||1\n"


def test_the_limit_of_a_qos_replaces_that_of_the_association(tmp_path: Path) -> None:
    jobs = [line(1, 0, 2, 60, 600), line(2, 10, 2, 60, 60), line(3, 20, 2, 60, 60, QOS="wide")]
    found = starts(toy(tmp_path, jobs, ENFORCED, assoc=ASSOC, qos=QOS))
    assert found["2"] >= 600  # 4 nodes are more than the user's 2
    assert found["3"] <= 60  # its QOS allows 4


def test_a_job_of_more_nodes_than_a_limit_allows_keeps_nobody_back(tmp_path: Path) -> None:
    jobs = [line(1, 0, 2, 60, 600, QOS="wide"), line(2, 10, 3, 60, 60), line(3, 20, 2, 90, 60, QOS="wide")]
    assert starts(toy(tmp_path, jobs, ENFORCED, assoc=ASSOC, qos=QOS))["3"] <= 25


def test_jobs_of_a_reservation_run_in_its_window_and_others_leave_it_free(tmp_path: Path) -> None:
    window = "ReservationName=r StartTime=2026-03-02T08:30:00 EndTime=2026-03-02T09:30:00\n   Nodes=n[1-2]\n"
    jobs = [
        line(1, 0, 4, 20, 60),  # ends before the window
        line(2, 100, 4, 60, 60),  # would reach into it
        line(3, 110, 2, 60, 60),  # fits beside it
        line(4, 120, 2, 10, 60, options="--reservation=r"),
    ]
    found = starts(toy(tmp_path, jobs, reservations=window))
    assert found["1"] <= 3
    assert found["2"] >= 5400
    assert 110 <= found["3"] <= 180
    assert 1800 <= found["4"] <= 1861


def test_a_cycle_ends_where_its_table_is_full(tmp_path: Path) -> None:
    jobs = [line(1, 0, 3, 60, 3000), *(line(k, 10 + k, 4, 10 * k, 60) for k in (2, 3, 4)), line(5, 30, 1, 5, 60)]
    case = toy(tmp_path, jobs)
    assert starts(case)["5"] <= 91  # backfilled
    assert starts(case, {"bf_node_space_size": "2"})["5"] >= 3000  # the plans of the others fill the table


def test_backfill_counts_a_job_for_its_user_only_if_it_is_tested(tmp_path: Path) -> None:
    conf = CONF + "PartitionName=q Nodes=ALL\n"
    jobs = [
        line(1, 0, 3, 60, 3000),
        line(2, 10, 4, 60, 60),
        line(3, 11, 4, 60, 60),
        line(4, 12, 1, 5, 60, Partition="q"),
    ]
    limits = {"bf_max_job_part": "1", "bf_max_job_user": "2"}
    assert starts(toy(tmp_path, jobs, conf), limits)["4"] <= 91  # job 3 is skipped for its partition, and not counted


def test_one_reservation_per_job_still_tests_the_other_partition_for_now(tmp_path: Path) -> None:
    conf = CONF.replace("Nodes=ALL", "Nodes=n[1-3]") + "PartitionName=q Nodes=n4\n"
    jobs = [line(1, 0, 3, 60, 3000), line(2, 10, 3, 60, 60), line(3, 20, 1, 60, 60, Partition="p,q")]
    assert starts(toy(tmp_path, jobs, conf), {"bf_one_resv_per_job": "yes"})["3"] <= 91


def test_nodes_named_by_a_job_that_waits_are_closed_and_no_others(tmp_path: Path) -> None:
    jobs = [line(1, 0, 2, 60, 600), line(2, 10, 1, 60, 60, options="-w n1"), line(3, 20, 1, 90, 60)]
    assert starts(toy(tmp_path, jobs))["3"] <= 25


def test_the_phase_of_the_full_main_loop_goes_on_while_nothing_waits(tmp_path: Path) -> None:
    jobs = [line(1, 0, 1, 60, 60), line(2, 3600, 1, 60, 60, Eligible="2026-03-02T09:10:30", options="--begin=x")]
    case = toy(tmp_path, jobs)
    for phase in (0, 20, 40):
        found = starts(case, {"main_phase": str(phase), "bf_interval": "10000"})["2"]
        assert (found + 100 - phase) % 60 == 0


def test_nothing_starts_while_a_job_completes_for_as_long_as_complete_wait_says(tmp_path: Path) -> None:
    case = toy(tmp_path, [line(1, 0, 1, 60, 60), line(2, 70, 1, 60, 60)])
    ended = starts(case)["1"] + 60
    found = [starts(case, {"completing": "30", "CompleteWait": wait})["2"] for wait in ("0", "20", "100")]
    assert found[0] < ended + 20 <= found[1] < ended + 30 <= found[2]


def test_a_job_that_failed_before_it_ran_is_not_run(tmp_path: Path) -> None:
    jobs = [
        line(1, 0, 4, 60, 60, State="FAILED", NodeList="None assigned", End="2026-03-02T08:00:00"),
        line(2, 5, 4, 60, 60),
    ]
    case = toy(tmp_path, jobs)
    run = simulate_case(case, Settings(case.conf))
    assert run.start[0] != run.start[0]
    assert run.start[1] - case.jobs[1].submit <= 5


SHARED = CONF.replace("select/linear", "select/cons_tres").replace("CPUs=1", "CPUs=4")


def test_of_a_range_of_nodes_a_job_gets_as_many_as_there_are(tmp_path: Path) -> None:
    jobs = [
        line(1, 0, 1, 60, 600, options="--exclusive"),
        line(2, 10, 2, 60, 600, options="-N 2-4 -n 4", ReqCPUS="4"),  # three nodes are left, with two it would do
        line(3, 20, 1, 60, 60, options="--exclusive"),
    ]
    found = starts(toy(tmp_path, jobs, SHARED))
    assert found["2"] <= 15 and found["3"] >= 600


def test_a_job_may_share_its_nodes_with_jobs_of_its_user_only(tmp_path: Path) -> None:
    one = SHARED.replace("n[1-4]", "n1")
    jobs = [
        line(1, 0, 1, 60, 600, options="--exclusive=user"),
        line(2, 10, 1, 60, 60, User="v"),
        line(3, 20, 1, 5, 60),
        line(4, 30, 1, 60, 60, options="--exclusive=user", User="w"),
    ]
    found = starts(toy(tmp_path, jobs, one))
    assert found["3"] <= 100  # beside its user's other job
    assert found["2"] >= 600
    assert found["4"] >= found["2"] + 60  # not beside that of v


def test_what_resources_weigh_is_their_share_of_the_partition(tmp_path: Path) -> None:
    multifactor = SHARED.replace("priority/basic", "priority/multifactor") + "PriorityWeightTRES=CPU=1000\n"
    half = multifactor + "PartitionName=half Nodes=n[1-2]\n"
    case = toy(tmp_path, [line(1, 0, 1, 5, 60), line(2, 0, 1, 5, 60, Partition="half")], half)
    factors = Factors(case, case.settings)
    found = [factors.of(job, part, job.qos) for job, part in zip(case.jobs, case.partitions, strict=True)]
    assert found == [1000 / 16, 1000 / 8]


def test_gpus_of_all_nodes_together_are_taken_from_as_many_nodes_as_it_takes(tmp_path: Path) -> None:
    gpus = SHARED.replace("CPUs=4", "CPUs=4 Gres=gpu:2") + "GresTypes=gpu\n"
    jobs = [
        line(1, 0, 1, 60, 600, SubmitLine="sbatch --gpus=4 job.sh", NodeList="n[1-2]"),
        line(2, 10, 1, 60, 60, SubmitLine="sbatch --gpus=6 job.sh", NodeList="n[1-3]"),
        line(3, 20, 1, 60, 60, SubmitLine="sbatch --gpus=3 job.sh", NodeList="n[1-3]"),  # one of each, as it had
    ]
    found = starts(toy(tmp_path, jobs, gpus))
    assert found["1"] <= 5 and 600 <= found["2"] <= 700 and found["3"] >= found["2"] + 60


def test_any_of_several_licences_will_do(tmp_path: Path) -> None:
    jobs = [
        line(1, 0, 1, 60, 600, options="--licenses=a:1"),
        line(2, 10, 1, 60, 900, options="--licenses=a:1|b:1"),  # gets b
        line(3, 20, 1, 60, 60, options="--licenses=b:1"),
        line(4, 30, 1, 60, 60, options="--licenses=b:1|a:1"),
    ]
    case = toy(tmp_path, jobs, CONF + "Licenses=a:1,b:1\n")
    for planned in ("no", "yes"):
        found = starts(case, {"bf_licenses": planned})
        assert found["2"] <= 100
        assert 900 <= found["3"] <= 1_100  # behind 2
        assert 600 <= found["4"] <= 800  # behind 1


def test_a_job_of_several_qos_runs_in_the_one_that_lets_it(tmp_path: Path) -> None:
    qos = "Name|Priority|MaxJobsPU\nnormal|0|\nhigh|100|1\n"
    jobs = [
        line(1, 0, 1, 60, 600, QOS="high"),
        line(2, 10, 1, 60, 60, QOS="normal", options="-q high,normal"),
        line(3, 20, 1, 60, 60, QOS="high"),
    ]
    found = starts(toy(tmp_path, jobs, ENFORCED, qos=qos))
    assert found["2"] <= 25 and found["3"] >= 600


PREEMPTING = ENFORCED + "PreemptType=preempt/qos\nPreemptMode=REQUEUE\n"
TWO = "Name|Priority|Preempt\nnormal|0|\nhigh|0|normal\n"


def test_jobs_whose_qos_preempts_others_stand_before_them(tmp_path: Path) -> None:
    jobs = [line(1, 0, 4, 60, 600, QOS="high"), line(2, 10, 3, 60, 60), line(3, 20, 3, 60, 60, QOS="high")]
    found = starts(toy(tmp_path, jobs, PREEMPTING, qos=TWO))
    assert 600 <= found["3"] < found["2"]


def test_a_job_that_preempted_others_waits_for_their_nodes_before_it_preempts_more(tmp_path: Path) -> None:
    jobs = [*(line(number, 0, 1, 60, 3_000) for number in (1, 2, 3, 4)), line(5, 600, 1, 60, 60, QOS="high")]
    case = toy(tmp_path, jobs, PREEMPTING, qos=TWO)
    for wait, victims in (("200", 1), ("0", 4)):
        settings = Settings(case.conf).changing({"completing": "150", "KillWait": wait, "MessageTimeout": "0"})
        run = simulate_case(case, settings.changing({"bf_interval": "60"}))
        assert run.requeues.sum() == victims
