"""What becomes of the keys of a slurm.conf: used, may matter and not simulated, or without influence on the schedule.

Those that may matter say how many jobs of the log they touch, as far as a log shows that. The lists follow
slurm.conf(5) of 22.05, with older keys that public files still have.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from .accounts import Association, Quality
from .conf import IN_SCHEDULER_PARAMETERS, MODEL, NO_NORMAL, PARAMETERS, Conf, Settings
from .jobs import SlurmJob
from .nodes import Node, Partition

# parameters, and what readers of the configuration look at
USED_KEYS = {
    low for low, each in PARAMETERS.items() if each.name not in IN_SCHEDULER_PARAMETERS and each not in MODEL
} | {
    *("schedulerparameters", "defmempercpu", "defmempernode", "accountingstoragetype", "accountingstorageenforce"),
    *("enforcepartlimits", "preemptparameters", "licenses", "grestypes", "jobrequeue", "fastschedule"),
}
# they can change when or where jobs start, and nothing here does what they say
_MAY_MATTER_KEYS = {
    *("prolog", "prologslurmctld", "epilog", "epilogslurmctld", "prologflags", "overtimelimit"),
    *("jobsubmitplugins", "prioritysitefactorplugin", "prioritysitefactorparameters", "priorityusageresetperiod"),
    *("federationparameters", "powerparameters", "suspendprogram", "resumeprogram", "suspendtime", "resumetimeout"),
    *("suspendtimeout", "suspendexcnodes", "suspendexcparts", "suspendrate", "resumerate"),
    *("maxarraysize", "maxjobcount", "schedulertimeslice", "jobaccttype"),
    *("dependencyparameters", "bursttype", "burstbuffertype", "prioritytype_", "corespecplugin"),
    *("maxmempercpu", "maxmempernode", "requeueexit", "requeueexithold", "healthcheckprogram", "unkillablesteptimeout"),
    *("rebootprogram", "nodefeaturesplugins", "jobdefaults", "priorityparameters"),
}
# names of machines and files, security, logs, accounts of usage, limits of processes
_NO_INFLUENCE_KEYS = {
    *("clustername", "slurmctldhost", "controlmachine", "controladdr", "backupcontroller", "backupaddr"),
    *("slurmctldport", "slurmdport", "slurmuser", "slurmduser", "statesavelocation", "slurmdspooldir"),
    *("slurmctldpidfile", "returntoservice", "stacksize", "switchplugin", "resumefailprogram"),
    *("bcastexclude", "bcastparameters", "serializerplugins"),
    *("slurmdpidfile", "slurmctldlogfile", "slurmdlogfile", "slurmctlddebug", "slurmddebug", "slurmschedlogfile"),
    *("slurmschedloglevel", "slurmctldsyslogdebug", "slurmdsyslogdebug", "logtimeformat", "debugflags", "authtype"),
    *("authinfo", "authalttypes", "authaltparameters", "cryptotype", "credtype", "mpidefault", "mpiparams"),
    *("proctracktype", "taskplugin", "taskpluginparam", "taskprolog", "taskepilog", "srunprolog", "srunepilog"),
    *("srunportrange", "switchtype", "switchparameters", "jobacctgathertype", "jobacctgatherfrequency"),
    *("jobacctgatherparams", "acctgatherenergytype", "acctgatherinterconnecttype", "acctgatherfilesystemtype"),
    *("acctgatherprofiletype", "acctgathernodefreq", "acctgatherinfinibandtype"),
    *("accountingstoragehost", "accountingstorageport", "accountingstorageuser", "accountingstoragepass"),
    *("accountingstoragebackuphost", "accountingstorageexternalhost", "accountingstorageparameters"),
    *("accountingstoragetres", "accountingstoreflags", "accountingstorejobcomment", "jobcomptype", "jobcomploc"),
    *("jobcomphost", "jobcompport", "jobcompuser", "jobcomppass", "jobcompparams", "slurmctldtimeout"),
    *("slurmdtimeout", "inactivelimit", "minjobage", "waittime", "maxstepcount", "maxtaskspernode", "mailprog"),
    *("maildomain", "propagateresourcelimits", "propagateresourcelimitsexcept", "propagateprioprocess", "usepam"),
    *("vsizefactor", "killonbadexit", "tmpfs", "slurmctldparameters", "slurmdparameters", "healthcheckinterval"),
    *("healthchecknodestate", "batchstarttimeout", "tcptimeout", "eiotimeout", "epilogmsgtime", "firstjobid"),
    *("maxjobid", "getenvtimeout", "groupupdateforce", "groupupdatetime", "jobcontainertype", "jobfileappend"),
    *("jobcredentialprivatekey", "jobcredentialpubliccertificate", "keepalivetime", "launchparameters"),
    *("launchtype", "maxdbdmsgs", "disablerootjobs", "communicationparameters", "privatedata", "plugindir"),
    *("plugstackconf", "plugstackconfig", "prologepilogtimeout", "preplugins", "prepparameters", "routeplugin"),
    *("sbcastparameters", "scronparameters", "slurmctldaddr", "slurmctldprimaryoffprog", "slurmctldprimaryonprog"),
    *("trackwckey", "treewidth", "unkillablestepprogram", "useldap", "x11parameters", "allowspecresourcesusage"),
    *("clifilterplugins", "cpufreqdef", "cpufreqgovernors", "dynamicfeatures", "extsensorsfreq", "extsensorstype"),
    *("interactivestepoptions", "namespace", "parameters", "resvepilog", "resvprolog", "resvoverrun", "hashplugin"),
    *("gpufreqdef", "checkpointtype", "jobcheckpointdir", "cachegroups", "enablecontrollerbackup", "maxnodecount"),
    *(
        "metricstype",
        "maxbatchrequeue",
        "salocdefaultcommand",
        "sallocdefaultcommand",
        "schedulerport",
        "schedulerrootfilter",
    ),
}


class KeyCount(msgspec.Struct, frozen=True):
    """What becomes of the keys of a slurm.conf."""

    used: tuple[str, ...]
    may_matter: tuple[str, ...]  # not simulated
    no_influence: tuple[str, ...]

    def words(self) -> list[str]:
        """The counts as lines for a reader, with the names of keys that may matter."""
        lines = [
            f"{len(self.used)} keys of slurm.conf are used, {len(self.no_influence)} have no influence on the schedule"
        ]
        if self.may_matter:
            lines.append(f"{len(self.may_matter)} not simulated: may matter: {', '.join(self.may_matter)}")
        return lines


# with such a value a key says that it is off
_QUIET_VALUES = {"", "0", "no", "none", "(null)", "n/a", "off", "-1", "unlimited", "infinite"}
# of SchedulerParameters: they bound scripts and messages, not the schedule
_QUIET_OPTIONS = {
    *(
        "bf_yield_rpc_cnt",
        "extra_constraints",
        "max_script_size",
        "max_rpc_cnt",
        "enable_user_top",
        "kill_invalid_depend",
    ),
    *("no_env_cache",),
}


def count_keys(conf: Conf, has_switches: bool) -> KeyCount:
    """Sort the keys and SchedulerParameters of a slurm.conf, of which a topology.conf is there or not."""
    used, matter, quiet = [], [], []
    for key, value in conf.keys.items():
        name = conf.places[key].text.partition("=")[0].strip() if key in conf.places else key
        # topology/tree without a topology.conf cannot be simulated, so it may matter
        tree = has_switches and value.lower() == "topology/tree"
        flat = value.lower() in ("topology/none", "topology/flat", "topology/default")
        if key == "topologyplugin" and not flat and not tree:
            matter.append(f"{name}={value}")
        elif key in USED_KEYS:
            used.append(name)
        elif key in _NO_INFLUENCE_KEYS or (key in _MAY_MATTER_KEYS and value.lower() in _QUIET_VALUES):
            quiet.append(name)
        else:
            matter.append(name)
    for name in conf.options:
        if name in IN_SCHEDULER_PARAMETERS:
            used.append(name)
        else:
            (quiet if name in _QUIET_OPTIONS else matter).append(name)
    return KeyCount(tuple(used), tuple(matter), tuple(quiet))


# words of lists that are simulated, or make no difference here
_KNOWN_WORDS = {
    "PriorityFlags": {
        *NO_NORMAL,
        *("NO_NORMAL_ALL", "FAIR_TREE", "NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME", "INCR_ONLY", "ACCRUE_ALWAYS"),
    },
    "SelectTypeParameters": {
        *("CR_CORE", "CR_CORE_MEMORY", "CR_CPU", "CR_CPU_MEMORY", "CR_LLN", "CR_CORE_DEFAULT_DIST_BLOCK", "NONE"),
        *("CR_ONE_TASK_PER_CORE", "OTHER_CONS_TRES", "OTHER_CONS_RES"),
    },
    "TopologyParam": {"TOPOOPTIONAL", "NOINADDRANY", "NOCTLDINADDRANY", "NOINADDRANYCTLD", "ROUTEPART"},
    "SchedulerType": {"SCHED/BACKFILL", "SCHED/BUILTIN"},
    "SelectType": {"SELECT/LINEAR", "SELECT/CONS_TRES", "SELECT/CONS_RES"},
    "PreemptParameters": {"YOUNGEST_FIRST"},
    "PreemptType": {"PREEMPT/NONE", "PREEMPT/PARTITION_PRIO", "PREEMPT/QOS"},
    "PriorityType": {"PRIORITY/BASIC", "PRIORITY/MULTIFACTOR"},
}
_OF_PARTITIONS = {
    **{"maxcpuspernode": "MaxCPUsPerNode", "overtimelimit": "OverTimeLimit"},
    **{"selecttypeparameters": "SelectTypeParameters", "maxmempernode": "MaxMemPerNode", "reqresv": "ReqResv"},
    **{"maxmempercpu": "MaxMemPerCPU", "oversubscribe": "OverSubscribe", "shared": "Shared"},
    **{"tresbillingweights": "TRESBillingWeights", "exclusive": "Exclusive"},
}
# keys of their lines that are used, or of which a log shows nothing: who may submit, addresses
_KNOWN_OF_PARTITIONS = {
    *("nodes", "default", "priority", "prioritytier", "priorityjobfactor", "maxtime", "defaulttime", "maxnodes"),
    *("minnodes", "state", "preemptmode", "defmempercpu", "defmempernode", "qos", "lln", "gracetime", "hidden"),
    *("allowgroups", "allowaccounts", "allowqos", "denyaccounts", "denyqos", "rootonly", "allocnodes"),
    *("disablerootjobs", "cpubind", "alternate", "topology", "exclusiveuser"),
}
_KNOWN_OF_NODES = {
    *("cpus", "procs", "boards", "sockets", "socketsperboard", "corespersocket", "threadspercore", "realmemory"),
    *("gres", "feature", "features", "weight", "state", "nodeaddr", "nodehostname", "port", "reason", "tmpdisk"),
    *("bcastaddr", "cpubind"),
}
_OF_NODES = {"corespeccount": "CoreSpecCount", "memspeclimit": "MemSpecLimit", "cpuspeclist": "CpuSpecList"}
_QUIET = {"NODE", "USER", "YES", "", "NO", "NONE", "N/A", "(NULL)", "0", "UNLIMITED", "EXCLUSIVE", "INFINITE"}


class Facts(NamedTuple):
    """What is known of a cluster and its log."""

    conf: Conf
    nodes: Sequence[Node]
    partitions: Sequence[Partition]
    associations: Sequence[Association]
    qualities: Sequence[Quality]
    jobs: Sequence[SlurmJob]
    topologies: Mapping[str, str] = {}  # that are no trees: their kinds by name; the cluster's default is ""

    def count(self, partition: str) -> int:
        """The jobs of a partition."""
        return sum(partition in job.partition.split(",") for job in self.jobs)


def with_touched(keys: KeyCount, facts: Facts) -> KeyCount:
    """The keys, where those that may matter say how many jobs they touch, as far as a log shows that.

    Added is what is not a key of its own: single words of lists, what partitions, nodes, associations and QOS set, and
    options of jobs.
    """
    several = sum(job.nodes > 1 or job.nodes_max > 1 for job in facts.jobs)
    matter = [
        _counted(name, several if name.lower().startswith("topologyplugin=") else None) for name in keys.may_matter
    ]
    # words of a key's list that are not known
    for key, known in _KNOWN_WORDS.items():
        words = (word.strip() for word in facts.conf.get(key).split(","))
        matter += [f"{key}={word}" for word in words if word and word.upper() not in known]
    threads = any(node.threads > 1 for node in facts.nodes)
    if threads and "CR_CPU" in facts.conf.get("SelectTypeParameters").upper() and not Settings(facts.conf).linear:
        matter.append("SelectTypeParameters=CR_CPU on nodes with threads: cores are allocated whole")
    matter += _of_partitions(facts)
    for entry in facts.conf.nodes:
        matter += [
            f"{shown} of node {entry.name}" for key, shown in _OF_NODES.items() if entry.pairs.get(key, "0") != "0"
        ]
        for key in sorted(entry.pairs.keys() - _KNOWN_OF_NODES - _OF_NODES.keys()):
            if entry.pairs[key].lower() not in _QUIET_VALUES:
                matter.append(f"{key}={entry.pairs[key]} of node {entry.name}")
    tables = Counter(line.text.partition("=")[0].strip() for line in facts.conf.unused)
    matter += [f"{count:,} line{'' if count == 1 else 's'} {table}=" for table, count in tables.items()]
    for quality in facts.qualities:
        nb_jobs = sum(quality.name in job.qos.split(",") for job in facts.jobs)
        mode = quality.preempt_mode.upper()
        if any(word in mode for word in ("SUSPEND", "GANG", "WITHIN")):
            matter.append(_counted(f"PreemptMode={mode} of QOS {quality.name}", nb_jobs))
        matter += [_counted(f"{limit} of QOS {quality.name}", nb_jobs) for limit in quality.not_simulated]
    touched: Counter[str] = Counter()
    for association in facts.associations:
        if association.not_simulated:
            user = association.user
            mine = sum(job.account == association.account and user in ("", job.user) for job in facts.jobs)
            touched.update(dict.fromkeys(association.not_simulated, mine))
    matter += [_counted(f"{limit} of associations", nb_jobs) for limit, nb_jobs in touched.items()]
    options = Counter(option for job in facts.jobs for option in job.options)
    matter += [_counted(option, nb_jobs) for option, nb_jobs in sorted(options.items())]
    return replace(keys, may_matter=tuple(matter))


def _of_partitions(facts: Facts) -> Iterator[str]:
    billed = any(job.billing for job in facts.jobs)
    for entry in facts.conf.partitions:
        for key, shown in _OF_PARTITIONS.items():
            value = entry.pairs.get(key, "")
            known = value.upper() in _QUIET or (key == "tresbillingweights" and billed)
            if not known:
                yield _counted(f"{shown}={value} of partition {entry.name}", facts.count(entry.name))
        for key in sorted(entry.pairs.keys() - _KNOWN_OF_PARTITIONS - _OF_PARTITIONS.keys()):
            if entry.pairs[key].lower() not in _QUIET_VALUES:
                yield _counted(f"{key}={entry.pairs[key]} of partition {entry.name}", facts.count(entry.name))
    for partition in facts.partitions:
        if kind := facts.topologies.get(partition.topology):
            named = f"topology {partition.topology}".rstrip()
            yield _counted(f"{named} ({kind}) of partition {partition.name}", facts.count(partition.name))
    preempts = "none" not in facts.conf.get("PreemptType", "preempt/none").lower()
    for partition in facts.partitions:
        mode = (partition.preempt_mode or facts.conf.get("PreemptMode")).upper()
        if "SUSPEND" in mode or "GANG" in mode or ("WITHIN" in mode and preempts):
            yield _counted(f"PreemptMode={mode} of partition {partition.name}", facts.count(partition.name))


def _counted(name: str, nb_jobs: int | None) -> str:
    return name if nb_jobs is None else f"{name} ({nb_jobs:,} job{'' if nb_jobs == 1 else 's'})"
