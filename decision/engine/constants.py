"""Numbers of Batsim and SimGrid that both engines keep to."""

TIME_PRECISION = 1e-9  # seconds: with less than this left, a sleep is over
WORK_PRECISION = 1e-14  # share: with less than this left, a parallel task is over
LAST_INSTANT = 1e15  # seconds: from then on numbers of 53 bits do not tell tenths of a second apart
SHARE_PRECISION = 1e-5  # bytes/s or flop/s: with less than this left, a link or host is full
TCP_WINDOW = 4194304.0  # bytes: what bounds a flow, with the latency of its way
TASK_STEPS = 3  # requests to SimGrid's kernel before a parallel task begins: flops, bytes, hosts

SHORTEST_CALL = 1e-5  # seconds: Batsim's waiter never sleeps for less
DECIMALS = 6  # of the numbers in Batsim's messages

WALLTIME_CODE, KILLED_CODE = -1, -2  # return codes of jobs that were stopped
SWITCHING_TO_COMPUTE, SWITCHING_TO_SLEEP = -1, -2  # what the pstate trace says while hosts switch
START_ROW, END_ROW, PSTATE_ROW = "s", "e", "p"  # kinds of row in the energy trace
