"""``decision workload from-oar``: an export of OAR as Batsim's JSON."""

from .conversion import conversion

from_oar = conversion(
    "oar",
    """Turn an export of the scheduler OAR into Batsim's JSON.

    FILE is what oarstat --gantt "FROM, TO" -J printed (.json; OAR's other JSON
    serves where it has stop times and resources), or a table in CSV with the
    columns job_id, submission_time, start_time, stop_time (seconds since 1970),
    and resources (ids with spaces between) or resource_count; walltime
    (seconds), user and queue where they are known. A job's size is the number
    of its resources, and the first submission is 0 s.

    Examples:

      decision workload from-oar gantt.csv -o gantt.json

      decision workload from-oar jobs.json -o short.json --jobs 0:1000 \\
          --profile computation --speed 8.024Gf
    """,
)
