"""The command that prints a cluster's records with Slurm's sacct."""

_ASKED = (  # what `decision workload sacct` asks for
    *("JobID", "JobIDRaw", "Submit", "Start", "End", "ElapsedRaw", "TimelimitRaw", "Suspended", "State", "NNodes"),
    *("NCPUS", "AllocTRES", "ReqTRES", "ReqMem", "User", "Account", "Group", "Partition", "QOS", "NodeList"),
)

_PRINTED = r"\x1f"  # between fields: the unit separator of ASCII


def sacct_script(hashed: bool, since: str, until: str) -> str:
    """The command to run on a cluster, for a shell.

    Args:
        hashed: whether users and accounts become hashes, with a salt that is drawn each time.
        since: first day.
        until: day after the last one, or ``now``.
    """
    command = (
        f"TZ=UTC SLURM_TIME_FORMAT=%Y-%m-%dT%H:%M:%S sacct --allusers --duplicates --allocations --noconvert "
        f"--parsable2 --delimiter=$'{_PRINTED}' --starttime={since} --endtime={until} \\\n  --format={','.join(_ASKED)}"
    )
    if not hashed:
        return f"{command} > sacct.txt"
    at = [_ASKED.index(name) + 1 for name in ("User", "Account", "Group")]
    fields = " ".join(f"${number} = hash(${number});" for number in at)
    return (
        f"salt=$(head -c 16 /dev/urandom | base64)\n{command} \\\n"
        f"  | awk -v salt=\"$salt\" -F $'{_PRINTED}' -v OFS=$'{_PRINTED}' '\n"
        "    function hash(text,  command, sum) {\n"
        '      if (text == "" || text in known) return known[text]\n'
        '      command = "printf %s \\047" salt text "\\047 | sha256sum"; command | getline sum; close(command)\n'
        "      return known[text] = substr(sum, 1, 12) }\n"
        f"    NR > 1 {{ {fields} }} {{ print }}' > sacct.txt"
    )
