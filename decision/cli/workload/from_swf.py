"""``decision workload from-swf``: a log as Batsim's JSON."""

from .conversion import conversion

from_swf = conversion(
    "swf",
    """Turn a log in the Standard Workload Format into Batsim's JSON.

    Lines that no simulation can use, and jobs that options leave out, are
    counted by reason, here and in the file's description, beside the log's
    name and SHA-256, the options and this program's version.

    Examples:

      decision workload from-swf log.swf -o log.json

      decision workload from-swf log.swf -o week.json --from 1993-10-04 \\
          --to 1993-10-11 --shift --load 0.9

      decision workload from-swf log.swf -o days.json --daily \\
          --profile parallel --speed 11.77Gf --comm-ratio 0.2
    """,
)
