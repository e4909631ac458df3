"""Where numbers of the joint policy stand in its arrays: what its functions see, and the weights of each function."""

# JointMemory.seen: numbers that functions see, all about 1; times are logarithms of minutes
CALM = 0  # since the last job came
CALM_8 = 1  # since the last eight came
WANTED = 2  # servers that would hold all that waits without hosts, logarithm
SHARE_ASLEEP = 3  # share of hosts
SHARE_BUSY = 4  # share of hosts
NB_IDLE = 5  # servers that are idle, logarithm
TRADE = 6  # the weights of energy, wait and switches: 0 where each has a third
RANK = 9  # LINGER: idle servers before this one, logarithm
WALLTIME_OF_JOB = 10  # from here on of a job
EXPECTED_RUNTIME = 11  # walltime times confidence in its user
SERVERS_OF_JOB = 12  # servers that would hold it, logarithm
WAITED_SO_FAR = 13
MISSING_HOSTS = 14  # share of its hosts that are not awake
WOKEN = 15  # servers that would have to be woken for it, logarithm
SOON = 16  # until enough hosts are awake and free, if jobs run for as long as expected
SOON_BY_WALLTIMES = 17  # and if they run for their walltimes
N_SEEN = 18
# JointMemory.fit: how a job fits a server; PLACE sees this alone
FREE_CORES, EMPTY, OUTLASTS, OUTLASTED, HOLDS = range(5)
N_FIT = 5

# Where the weights of each function begin: those with a constant have it first
ORDER_WEIGHTS = 0  # of WALLTIME_OF_JOB, EXPECTED_RUNTIME, SERVERS_OF_JOB, WAITED_SO_FAR: the lowest first
PATIENCE = 4  # a constant, and all but RANK
LINGER = PATIENCE + N_SEEN  # a constant, and CALM to RANK
PLACE = LINGER + 1 + WALLTIME_OF_JOB  # of `fit`: the highest first
N_WEIGHTS = PLACE + N_FIT
