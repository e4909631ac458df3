"""The catalogue's lines besides composed policies: other classes, and the options that any policy has."""

from .catalogue import TSAFRIR, OptionLine, PolicyLine

CLASS_LINES = [
    PolicyLine("kamelot", "fcfs, conservative over hosts instead of their number, as OAR does it", "OAR 3"),
    PolicyLine("window", "jobs are collected for a period and placed together on a fat-tree", "Lan et al., 2023"),
]
CLASS_OPTIONS = {
    "kamelot": [
        OptionLine("security_time", "60", "s", "each walltime counts as so much longer", "SCHEDULER_JOB_SECURITY_TIME"),
        OptionLine("reaction", "0", "s", "from an event to the decision; what happens meanwhile shares the decision"),
    ],
    "window": [
        OptionLine("period", "60", "s", "from one window to the next", "Lan et al."),
        OptionLine("jobs", "5", "", "on more than one host, at most in a window; 0 for all", "Lan et al.'s program"),
        OptionLine(
            "strategy", "dcas", "", "which hosts a job may get: scas, dcas or free; with exact scas", "Lan et al."
        ),
        OptionLine("solver", "sa", "", "sequential, sa, nsa or exact", "Lan et al."),
        OptionLine("steps", "500", "", "moves of the search, also with solver=exact and strategy=free", "Lan et al."),
        OptionLine("limit", "1", "s", "with solver=exact, strategy=scas: for a window, about; the best found counts"),
        OptionLine("undo", "true", "", "with solver=sa and nsa: undo rejected moves; false as Lan et al.'s program"),
        OptionLine(
            "repair",
            "best",
            "",
            "with solver=nsa: FILE.ckpt chooses where jobs go back; best needs no network",
            "Lan et al.",
        ),
        OptionLine(
            "prices", "none", "", "with solver=sequential,strategy=free: FILE.ckpt says what free hosts are worth"
        ),
    ],
}


OUTLOOK_LINES = (
    OptionLine(
        "estimate",
        "walltime",
        "",
        "run time that a job is expected to have: walltime, last2, regression, given, quantiles",
    ),
    OptionLine(
        "correction",
        "walltime",
        "",
        "with estimate=...: what is expected of a job that outlives it: walltime, increments, doubling",
        TSAFRIR,
    ),
    OptionLine("shadow", "0.5", "", "with estimate=quantiles: chance that a running job ends by when it should"),
    OptionLine("fill", "0.8", "", "with estimate=quantiles: chance that a waiting job takes no more than expected"),
)
GUARD_LINE = OptionLine(
    "guard", "never", "s", "a job that has waited for so long gets a reservation that nothing delays; or auto, or 1.5x"
)
SUPPLY_LINES = (
    OptionLine("late", "reject", "", "jobs that cannot end before their deadline any more: reject or keep"),
    OptionLine("beyond", "suspend", "", "jobs that run beyond the supply of power: suspend, grid or battery to run on"),
    OptionLine("battery", "none", "host-h", "with beyond=battery: what it can hold; it is empty at first"),
    OptionLine("battery_charge", "inf", "hosts", "power that it takes at most, of what the supply has to spare"),
    OptionLine("battery_discharge", "inf", "hosts", "power that it gives at most, to jobs beyond the supply"),
    OptionLine("battery_efficiency", "1", "", "share of what it takes that it gives back"),
    OptionLine("failed", "run", "", "jobs whose hosts become unavailable: run on, kill, or resubmit to begin again"),
    OptionLine("checkpoint_every", "0", "s", "with failed=resubmit: how often jobs are saved, and begin there again"),
    OptionLine("checkpoint", "0", "s", "to save a job that is cut; what is left takes so much longer"),
    OptionLine("restart", "0", "s", "for what is left of a job to go on; it takes so much longer"),
    OptionLine("cap", "none", "W", "power that is never passed, or a file of it by time"),
)
