"""Rules of Slurm's scheduler on a few jobs: each parameter by a case in which it changes a start."""

from pathlib import Path

import pytest

from tests.helpers.slurm_cases import CONF, line, starts, toy

SHARED = CONF.replace("select/linear", "select/cons_tres").replace("CPUs=1", "CPUs=4 RealMemory=4000")
TIERS = CONF.replace("PartitionName=p Nodes=ALL", "PartitionName=p Nodes=n[1-4]")
AGES = CONF.replace("priority/basic", "priority/multifactor") + "AccountingStorageType=accounting_storage/slurmdbd\n"


def test_a_job_that_fits_before_the_plan_of_the_first_is_backfilled_at_the_next_cycle(tmp_path: Path) -> None:
    jobs = [line(1, 0, 3, 60, 600), line(2, 10, 4, 60, 600), line(3, 20, 1, 10, 300), line(4, 25, 1, 120, 300)]
    found = starts(toy(tmp_path, jobs))
    assert found["1"] <= 3
    assert 600 <= found["2"] <= 605  # when all nodes are back
    assert 20 < found["3"] <= 61  # by backfill: the main loop closed the partition
    assert found["4"] >= 1200  # its limit reaches into the plan of job 2


def test_without_backfill_nothing_overtakes(tmp_path: Path) -> None:
    conf = CONF.replace("sched/backfill", "sched/builtin")
    jobs = [line(1, 0, 3, 60, 600), line(2, 10, 4, 60, 600), line(3, 20, 1, 10, 300)]
    assert starts(toy(tmp_path, jobs, conf))["3"] >= 1200


@pytest.mark.parametrize(
    ("changes", "job", "earlier"),
    [
        ({"bf_interval": "600"}, "3", False),  # the next cycle is later
        ({"bf_max_job_test": "1"}, "3", False),  # only job 2 is tested
        ({"bf_max_job_user": "1"}, "3", False),
        ({"bf_max_job_part": "1"}, "3", False),
        ({"bf_window": "1"}, "4", True),  # job 2 is beyond the window: it keeps nobody back
        ({"bf_min_age_reserve": "100000"}, "4", True),
        ({"bf_min_prio_reserve": "1"}, "4", True),
        ({"bf_resolution": "1800"}, "3", False),  # the plan begins with the half hour
        ({"bf_job_part_count_reserve": "1"}, "4", False),  # the only reservation is that of job 2
    ],
)
def test_a_parameter_of_backfill_changes_a_start(
    tmp_path: Path, changes: dict[str, str], job: str, earlier: bool
) -> None:
    jobs = [line(1, 0, 3, 30, 600), line(2, 10, 4, 60, 600), line(3, 20, 1, 10, 300), line(4, 25, 1, 120, 300)]
    case = toy(tmp_path, jobs)
    before, after = starts(case)[job], starts(case, changes)[job]
    assert after < before if earlier else after >= before


def test_the_main_loop_looks_no_deeper_than_the_queue_depth(tmp_path: Path) -> None:
    conf = TIERS.replace("Nodes=n[1-4]", "Nodes=n[1-2]") + "PartitionName=q Nodes=n[3-4]\n"
    jobs = [line(1, 0, 2, 60, 900), *(line(k, 5, 2, 60, 60) for k in (2, 3, 4)), line(5, 62, 1, 60, 60, Partition="q")]
    case = toy(tmp_path, jobs, conf)
    assert starts(case)["5"] <= 66
    assert starts(case, {"default_queue_depth": "1", "bf_interval": "600"})["5"] >= 80


def test_a_job_that_does_not_fit_closes_its_nodes_to_other_partitions(tmp_path: Path) -> None:
    conf = TIERS.replace("Default=YES", "Default=YES PriorityTier=2") + "PartitionName=q Nodes=n[4]\n"
    jobs = [line(1, 0, 3, 60, 600), line(2, 10, 4, 60, 600), line(3, 20, 1, 300, 300, Partition="q")]
    assert starts(toy(tmp_path, jobs, conf))["3"] >= 1200


def test_small_jobs_come_first_where_the_weights_say_so(tmp_path: Path) -> None:
    jobs = [line(1, 0, 4, 60, 600), line(2, 10, 4, 60, 600), line(3, 20, 1, 60, 600)]
    case = toy(tmp_path, jobs, AGES)
    weighted = starts(case, {"PriorityWeightJobSize": "1000", "PriorityFavorSmall": "YES"})
    assert weighted["3"] < weighted["2"]
    assert starts(case, {"PriorityWeightJobSize": "1000"})["2"] < weighted["2"]


def test_the_user_who_used_less_comes_first(tmp_path: Path) -> None:
    jobs = [line(1, 0, 4, 60, 1200), line(2, 900, 4, 60, 600), line(3, 910, 4, 60, 600, User="v")]
    conf = AGES + "PriorityWeightFairshare=1000\nPriorityCalcPeriod=1\n"
    found = starts(toy(tmp_path, jobs, conf))
    assert found["3"] < found["2"]


def test_usage_when_the_log_begins_counts(tmp_path: Path) -> None:
    shares = "Account|User|RawShares|RawUsage\nroot||1|1000\n a||1|1000\n  a|u|1|0\n  a|v|1|1000000\n"
    jobs = [line(1, 0, 4, 60, 600, User="w"), line(2, 10, 4, 60, 600, User="v"), line(3, 20, 4, 60, 600)]
    conf = AGES + "PriorityWeightFairshare=1000\nPriorityCalcPeriod=1\n"
    found = starts(toy(tmp_path, jobs, conf, shares=shares))
    assert found["3"] < found["2"]


def test_a_limit_of_a_qos_skips_a_job_without_closing_the_partition(tmp_path: Path) -> None:
    qos = "Name|Priority|MaxJobsPU\nnormal|0|1\n"
    jobs = [line(1, 0, 1, 60, 600), line(2, 10, 1, 60, 600), line(3, 20, 1, 60, 600, User="v")]
    found = starts(toy(tmp_path, jobs, CONF + "AccountingStorageEnforce=limits,qos\n", qos=qos))
    assert found["2"] >= 600
    assert found["3"] <= 30


def test_tasks_of_an_array_run_no_more_than_its_limit_at_a_time(tmp_path: Path) -> None:
    jobs = [line(k, 0, 1, 60, 100, JobID=f"1_{k}", options="--array=1-4%2") for k in (1, 2, 3, 4)]
    found = sorted(starts(toy(tmp_path, jobs)).values())
    assert found[1] <= 5
    assert found[2] >= 100


def test_jobs_wait_for_those_that_they_depend_on(tmp_path: Path) -> None:
    jobs = [
        line(1, 0, 1, 60, 300),
        line(2, 10, 1, 60, 60, options="--dependency=afterok:1"),
        line(3, 10, 1, 60, 60, options="-d after:1"),
    ]
    found = starts(toy(tmp_path, jobs))
    assert 300 <= found["2"] <= 310
    assert found["3"] <= 15


def test_a_job_waits_for_single_tasks_of_an_array(tmp_path: Path) -> None:
    jobs = [line(k, 0, 1, 60, 300 * k, JobID=f"1_{k}", options="--array=1-2") for k in (1, 2)]
    jobs += [line(3, 10, 1, 60, 60, options="-d afterany:1_1")]
    jobs += [line(3 + k, 10, 1, 60, 60, JobID=f"4_{k}", options="--array=1-2 -d aftercorr:1") for k in (1, 2)]
    found = starts(toy(tmp_path, jobs))
    assert 300 <= min(found["3"], found["4"]) <= max(found["3"], found["4"]) <= 310
    assert 600 <= found["5"] <= 610


def test_the_flag_no_normal_all_leaves_factors_as_they_are(tmp_path: Path) -> None:
    qos = "Name|Priority\nnormal|0\nhigh|100\n"
    jobs = [line(1, 0, 4, 60, 600), line(2, 10, 4, 60, 600), line(3, 400, 4, 60, 600, QOS="high")]
    case = toy(tmp_path, jobs, AGES, qos=qos)
    weights = {"PriorityWeightQOS": "1", "PriorityWeightAge": "50", "PriorityMaxAge": "60", "PriorityCalcPeriod": "1"}
    assert starts(case, weights)["3"] > starts(case, weights)["2"]  # 1 point for the QOS, up to 50 for the age
    raw = starts(case, weights | {"PriorityFlags": "NO_NORMAL_ALL"})
    assert raw["3"] < raw["2"]


def test_a_job_begins_when_it_may(tmp_path: Path) -> None:
    jobs = [line(1, 0, 1, 60, 60, Eligible="2026-03-02T08:30:00", Reason="BeginTime")]
    assert 1800 <= starts(toy(tmp_path, jobs))["1"] <= 1860


def test_shared_nodes_are_shared_and_exclusive_ones_are_not(tmp_path: Path) -> None:
    jobs = [
        line(k, 0, 1, 60, 600, ReqCPUS="2", ReqTRES="cpu=2,node=1", options=more)
        for k, more in ((1, ""), (2, ""), (3, "--exclusive"))
    ]
    jobs += [line(4, 1, 4, 60, 600, ReqCPUS="8", ReqTRES="cpu=8,node=4", options="--exclusive")]
    found = starts(toy(tmp_path, jobs, SHARED))
    assert max(found[name] for name in "123") <= 5
    assert found["4"] >= 600


def test_memory_keeps_jobs_apart_where_it_is_allocated(tmp_path: Path) -> None:
    jobs = [line(k, 0, 1, 60, 600, ReqTRES="cpu=1,node=1", options="--mem=3000M") for k in range(1, 6)]
    assert max(starts(toy(tmp_path, jobs, SHARED + "SelectTypeParameters=CR_Core\n")).values()) <= 5
    assert max(starts(toy(tmp_path, jobs, SHARED + "SelectTypeParameters=CR_Core_Memory\n")).values()) >= 600


def test_nodes_of_low_weight_and_with_the_features_are_chosen(tmp_path: Path) -> None:
    conf = CONF.replace("NodeName=n[1-4] CPUs=1", "NodeName=n[1-3] CPUs=1\nNodeName=n4 CPUs=1 Feature=big")
    jobs = [line(1, 0, 1, 60, 600, options="-C big"), line(2, 5, 1, 60, 600, options="-C big")]
    assert starts(toy(tmp_path, jobs, conf))["2"] >= 600


def test_a_job_of_a_higher_tier_preempts_and_the_victim_is_requeued(tmp_path: Path) -> None:
    conf = CONF.replace("Default=YES", "Default=YES PriorityTier=1 PreemptMode=REQUEUE")
    conf += "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPartitionName=hi Nodes=ALL PriorityTier=9\n"
    jobs = [line(1, 0, 4, 60, 600), line(2, 100, 2, 60, 300, Partition="hi")]
    found = starts(toy(tmp_path, jobs, conf))
    assert 100 <= found["2"] <= 110
    assert found["1"] >= 300  # from its beginning again, when it fits


LOW = CONF.replace("Default=YES", "Default=YES PriorityTier=1 PreemptMode=REQUEUE")
PREEMPT = LOW + "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPartitionName=hi Nodes=ALL PriorityTier=9\n"


def test_a_preempted_job_runs_on_for_the_time_of_grace_of_its_partition(tmp_path: Path) -> None:
    jobs = [line(1, 0, 4, 60, 600), line(2, 100, 2, 60, 300, Partition="hi")]
    found = starts(toy(tmp_path, jobs, PREEMPT.replace("PriorityTier=1", "PriorityTier=1 GraceTime=120")))
    assert 220 <= found["2"] <= 260  # the ends of jobs are looked at twice a minute
    assert found["1"] >= 520


def test_a_job_that_ends_in_its_time_of_grace_is_not_requeued(tmp_path: Path) -> None:
    jobs = [line(1, 0, 4, 60, 150), line(2, 100, 2, 60, 300, Partition="hi")]
    found = starts(toy(tmp_path, jobs, PREEMPT.replace("PriorityTier=1", "PriorityTier=1 GraceTime=120")))
    assert found["1"] <= 3
    assert 150 <= found["2"] <= 160


def test_a_job_is_not_preempted_before_it_ran_for_the_exempt_time(tmp_path: Path) -> None:
    case = toy(tmp_path, [line(1, 0, 4, 60, 900), line(2, 100, 2, 60, 300, Partition="hi")], PREEMPT)
    assert 300 <= starts(case, {"PreemptExemptTime": "5:00"})["2"] <= 370


def test_a_job_that_must_not_be_requeued_is_cancelled(tmp_path: Path) -> None:
    jobs = [line(1, 0, 4, 60, 600, options="--no-requeue"), line(2, 100, 2, 60, 300, Partition="hi")]
    assert starts(toy(tmp_path, jobs, PREEMPT))["1"] <= 3  # its only start


@pytest.mark.parametrize(
    ("mode", "grace", "again"), [("cluster", 0, True), ("cancel", 0, False), ("requeue", 50, True)]
)
def test_each_qos_has_a_way_of_giving_way_and_a_time_of_grace(
    tmp_path: Path, mode: str, grace: int, again: bool
) -> None:
    qos = f"Name|Priority|Preempt|PreemptMode|GraceTime\nnormal|0||{mode}|00:00:{grace}\nhigh|9|normal|cluster|0\n"
    conf = AGES + "PreemptType=preempt/qos\nPreemptMode=REQUEUE\nAccountingStorageEnforce=qos\n"
    jobs = [line(1, 0, 4, 60, 600), line(2, 100, 2, 60, 300, QOS="high")]
    found = starts(toy(tmp_path, jobs, conf, qos=qos))
    assert 100 + grace <= found["2"] <= 140 + grace
    assert (found["1"] > 100) == again


def test_licences_are_planned_where_bf_licenses_says_so(tmp_path: Path) -> None:
    jobs = [
        line(1, 0, 1, 10, 600, options="-L x"),
        line(2, 10, 4, 10, 60, options="-L x"),
        line(3, 20, 3, 60, 3000),
        line(4, 30, 1, 5, 60),
    ]
    case = toy(tmp_path, jobs, CONF + "Licenses=x:1\n")
    assert starts(case)["3"] <= 25  # nothing is planned for job 2, for it has no licence
    found = starts(case, {"bf_licenses": "yes"})
    assert 600 <= found["2"] <= 605
    assert found["3"] >= found["2"]
    assert found["4"] <= 91


def test_a_node_that_is_down_runs_nothing(tmp_path: Path) -> None:
    events = "NodeName|TimeStart|TimeEnd|State\nn4|2026-03-02T07:00:00|2026-03-02T09:00:00|DOWN\n"
    assert starts(toy(tmp_path, [line(1, 0, 4, 60, 60)], events=events))["1"] >= 3600


def test_jobs_that_were_cancelled_while_they_waited_leave_the_queue(tmp_path: Path) -> None:
    gone = {"Start": "None", "State": "CANCELLED by 0", "NodeList": "None assigned", "End": "2026-03-02T08:05:00"}
    jobs = [line(1, 0, 3, 60, 900), line(2, 10, 4, 60, 0, **gone), line(3, 20, 1, 60, 300)]
    assert 300 <= starts(toy(tmp_path, jobs))["3"] <= 335


def test_the_cost_of_a_test_delays_the_next_cycle_and_ends_a_long_one(tmp_path: Path) -> None:
    jobs = [line(1, 0, 3, 30, 600), line(2, 10, 4, 60, 600), line(3, 20, 1, 10, 300)]
    case = toy(tmp_path, jobs)
    assert starts(case, {"test_cost": "40"})["3"] >= starts(case)["3"]
    assert starts(case, {"test_cost": "40", "bf_max_time": "30"})["3"] >= 600  # job 2 takes all of each cycle


def test_plans_on_busy_nodes_leave_idle_ones_to_others(tmp_path: Path) -> None:
    conf = SHARED.replace("n[1-4]", "n[1-3]")
    whole = {"ReqCPUS": "4", "ReqTRES": "cpu=4,node=1"}
    jobs = [line(k, 0, 1, 60, 600, options=f"-w n{k}", **whole) for k in (2, 3)]
    jobs += [line(4, 10, 2, 60, 600, ReqCPUS="8", ReqTRES="cpu=8,node=2"), line(5, 20, 1, 300, 60, **whole)]
    case = toy(tmp_path, jobs, conf)
    assert starts(case)["5"] >= 600  # job 4 is planned on the first two nodes, of which one is idle
    assert starts(case, {"bf_busy_nodes": "yes"})["5"] <= 61
