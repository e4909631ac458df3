"""``decision workload from-json``: a workload of Batsim cut, stretched, or given other profiles."""

from .conversion import conversion

from_json = conversion(
    "json",
    """Turn one of Batsim's workloads into another.

    Profiles stay as they are unless --profile asks for others; fields of jobs
    that Batsim does not know are kept. Run times of jobs that compute are
    those on hosts of --speed.

    Examples:

      decision workload from-json week.json -o busy.json --load 1.2

      decision workload from-json week.json -o flops.json \\
          --profile computation --speed 141.24Gf
    """,
)
