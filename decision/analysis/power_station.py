"""What supply, grid and a battery together can give jobs, where a host-second has a price that depends on the step.

A battery buys where power is cheap and sells where it is dear, within its capacity and rates. What it earns at most for
each level that it may end a step with is a concave function, kept as segments by slope; a step adds what giving less
and what taking more cost, and cuts off levels below 0 and above the capacity. What is cut off below has been sold: so
the segments also tell when the battery gives and takes. All prices being known, that is exact.
"""

import numpy as np

from decision.compiling.jit import kernel


@kernel
def station(prices, power, grid, most, battery, given):
    """Write the host-seconds that are given in each step, for the most that they are worth.

    Args:
        prices: (S,) of a host-second, at least 0.
        power: (S,) host-seconds of the supply.
        grid: host-seconds that the grid has in each step.
        most: host-seconds that jobs can use in a step.
        battery: a `Battery`, whose charge and discharge are host-seconds in a step.
        given: (S,) receives them.
    """
    if battery.capacity <= 0.0:
        given[:] = np.minimum(power + grid, most)
        return
    slope, length, owner = np.zeros(2 * len(prices) + 1), np.zeros(2 * len(prices) + 1), np.zeros(2 * len(prices) + 1)
    cost = np.zeros(len(slope))  # host-seconds that a step gives less for each that the segment holds
    head, tail, efficiency = 0, 0, battery.efficiency
    held = 0.0
    for step in range(len(prices)):
        gives = min(battery.discharge, max(most - power[step] - grid, 0.0))
        takes = min(battery.charge, power[step]) * efficiency
        spare = min(takes, max(power[step] + grid - most, 0.0) * efficiency)
        given[step] = min(power[step] + grid + gives, most)
        held += spare  # costs nothing, and is before all else
        for amount, each in ((gives, 1.0), (takes - spare, 1.0 / efficiency)):
            if amount > 0.0:
                at = tail
                while at > head and slope[at - 1] > prices[step] * each:
                    slope[at], length[at], owner[at], cost[at] = (
                        slope[at - 1],
                        length[at - 1],
                        owner[at - 1],
                        cost[at - 1],
                    )
                    at -= 1
                slope[at], length[at], owner[at], cost[at] = prices[step] * each, amount, step, each
                tail += 1
        sold = min(held, gives)
        held, gives = held - sold, gives - sold
        while gives > 0.0:
            sold = min(length[head], gives)
            given[np.int64(owner[head])] -= sold * cost[head]
            gives, length[head] = gives - sold, length[head] - sold
            head += length[head] <= 0.0
        held = min(held, battery.capacity)
        over = held - battery.capacity
        for at in range(head, tail):
            over += length[at]
        while over > 0.0 and tail > head:
            dropped = min(length[tail - 1], over)
            over, length[tail - 1] = over - dropped, length[tail - 1] - dropped
            tail -= length[tail - 1] <= 0.0
