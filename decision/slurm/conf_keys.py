"""The keys of a slurm.conf: those that are used, those that may matter, and those without influence."""

import msgspec

from .conf import Conf
from .parameters import IN_SCHEDULER_PARAMETERS, MODEL, PARAMETERS

_USED_KEYS = {
    low for low, each in PARAMETERS.items() if each.name not in IN_SCHEDULER_PARAMETERS and each not in MODEL
} | {
    *("schedulerparameters", "defmempercpu", "defmempernode", "accountingstoragetype", "accountingstorageenforce"),
    *("enforcepartlimits", "licenses", "grestypes", "jobrequeue", "fastschedule"),
}
_MAY_MATTER_KEYS = {
    *("prolog", "prologslurmctld", "epilog", "epilogslurmctld", "prologflags", "overtimelimit"),
    *("jobsubmitplugins", "prioritysitefactorplugin", "prioritysitefactorparameters", "priorityusageresetperiod"),
    *("federationparameters", "powerparameters", "suspendprogram", "resumeprogram", "suspendtime", "resumetimeout"),
    *("suspendtimeout", "suspendexcnodes", "suspendexcparts", "suspendrate", "resumerate", "preemptparameters"),
    *("maxarraysize", "maxjobcount", "schedulertimeslice", "jobaccttype"),
    *("dependencyparameters", "bursttype", "burstbuffertype", "messagetimeout", "prioritytype_", "corespecplugin"),
    *("maxmempercpu", "maxmempernode", "requeueexit", "requeueexithold", "healthcheckprogram", "unkillablesteptimeout"),
    *("rebootprogram", "nodefeaturesplugins", "jobdefaults", "priorityparameters"),
}
_NO_INFLUENCE_KEYS = {
    *("clustername", "slurmctldhost", "controlmachine", "controladdr", "backupcontroller", "backupaddr"),
    *(
        "slurmctldport",
        "slurmdport",
        "slurmuser",
        "slurmduser",
        "statesavelocation",
        "slurmdspooldir",
        "slurmctldpidfile",
    ),
    *("slurmdpidfile", "slurmctldlogfile", "slurmdlogfile", "slurmctlddebug", "slurmddebug", "slurmschedlogfile"),
    *("slurmschedloglevel", "slurmctldsyslogdebug", "slurmdsyslogdebug", "logtimeformat", "debugflags", "authtype"),
    *("authinfo", "authalttypes", "authaltparameters", "cryptotype", "credtype", "mpidefault", "mpiparams"),
    *("proctracktype", "taskplugin", "taskpluginparam", "taskprolog", "taskepilog", "srunprolog", "srunepilog"),
    *("srunportrange", "switchtype", "switchparameters", "jobacctgathertype", "jobacctgatherfrequency"),
    *("jobacctgatherparams", "acctgatherenergytype", "acctgatherinterconnecttype", "acctgatherfilesystemtype"),
    *("acctgatherprofiletype", "acctgathernodefreq", "acctgatherprofiletype", "acctgatherinfinibandtype"),
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
    *("salocdefaultcommand", "sallocdefaultcommand", "schedulerport", "schedulerrootfilter", "slurmduser"),
    *(
        "killwait",
        "returntoservice",
        "stacksize",
        "switchplugin",
        "resumefailprogram",
        "bcastexclude",
        "bcastparameters",
        "serializerplugins",
    ),
}


class KeyCount(msgspec.Struct, frozen=True):
    """What becomes of the keys of a slurm.conf."""

    used: tuple[str, ...]
    may_matter: tuple[str, ...]  # not simulated
    no_influence: tuple[str, ...]

    def words(self) -> list[str]:
        """Lines for a reader."""
        lines = [
            f"{len(self.used)} keys of slurm.conf are used, {len(self.no_influence)} have no influence on the schedule"
        ]
        if self.may_matter:
            lines.append(f"{len(self.may_matter)} not simulated: may matter: {', '.join(self.may_matter)}")
        return lines


_QUIET_VALUES = {"", "0", "no", "none", "(null)", "n/a", "off", "-1"}
_QUIET_OPTIONS = {"max_script_size", "max_rpc_cnt", "enable_user_top", "kill_invalid_depend", "no_env_cache"}


def count_keys(conf: Conf, has_switches: bool) -> KeyCount:
    """Sort the keys and SchedulerParameters of a slurm.conf, of which a topology.conf is there or not."""
    used, matter, quiet = [], [], []
    for key, value in conf.keys.items():
        name = conf.places[key].text.partition("=")[0].strip() if key in conf.places else key
        tree = has_switches and value.lower() == "topology/tree"
        if key == "topologyplugin" and value.lower() != "topology/none" and not tree:
            matter.append(f"{name}={value}")
        elif key in _USED_KEYS:
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
