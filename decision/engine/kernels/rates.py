"""The rates that links and hosts let flows have.

They are those of SimGrid 3.32's model L07 with its solver "fair bottleneck", to the last bit, because the solver calls
a link full once it has less than 1e-5 bytes/s left: where several links fill up at once, rounding decides which ones
do. So what is left of a link is counted down by one flow after the other, the latest first, as in SimGrid.

In each round every flow rises by what the tightest of its links and hosts has for it, and each link loses what its
flows rose. The flows of a full link rise no more; but links lose their last rise again in every round that follows.
That is SimGrid's own rule, and without it run times differ by up to 12 %.

Links that a single flow uses, and hosts, all go the same way where they are equally wide and the flow needs as much of
each: they are one slot.
"""

from decision.compiling.jit import kernel
from decision.engine.constants import SHARE_PRECISION
from decision.model.errors import InternalError

LARGEST_RATE = 1.7976931348623157e308  # a rate without a limit
_MOST_IDLE = 1000  # rounds in a row in which no flow stops to rise
_LOOK_BACK = 32  # slots of a flow that are compared with a new one
_RISES, _STOPS, _FROZEN = range(3)


@kernel
def set_rates(network):
    """The rates of all flows, from links and hosts."""
    flows, slots = network.nb_flows, _fill_slots(network)
    for flow in range(flows):
        network.flow_rate[flow] = 0.0
        network.flow_frozen[flow] = _RISES
    rising, idle = flows, 0
    while rising > 0:
        _raise(network, slots)
        _use_up(network)
        frozen = _freeze(network)
        idle = 0 if frozen > 0 else idle + 1  # rounding can leave a little of a slot to the next round
        if idle > _MOST_IDLE:
            raise InternalError("flows rise for ever")
        rising -= frozen


@kernel
def _fill_slots(network):
    """One slot for each link of several flows, and for those of one flow that are equal; returns how many."""
    slots, entry = 0, 0
    for flow in range(network.nb_flows):
        network.flow_slot[flow] = entry
        own = slots
        for part in range(network.flow_first[flow], network.flow_end[flow]):
            link, width, amount = network.part_link[part], network.part_width[part], network.part_amount[part]
            shared = link >= 0 and network.users[link] > 1
            if shared:
                at = network.slot[link]
            else:
                at = _equal_slot(network, own, slots, width, amount)
            if at < 0:
                at = slots
                slots += 1
                network.slot_left[at] = width
                network.slot_users[at] = 0
                network.slot_share[at] = -1.0 if shared else amount  # until the first round
                if shared:
                    network.slot[link] = at
            elif not shared:
                continue
            network.slot_users[at] += 1
            network.slot_of[entry] = at
            network.slot_amount[entry] = amount
            entry += 1
    network.flow_slot[network.nb_flows] = entry
    for part in range(network.nb_parts):
        if network.part_link[part] >= 0:
            network.slot[network.part_link[part]] = -1
    return slots


@kernel
def _equal_slot(network, own, slots, width, amount):
    """The flow's own slot of this width and amount, -1 where there is none among the last ones."""
    for at in range(slots - 1, max(own, slots - _LOOK_BACK) - 1, -1):
        if network.slot_share[at] == amount and network.slot_left[at] == width:
            return at
    return -1


@kernel
def _raise(network, slots):
    """Each flow that may rise does, by what the tightest of its slots has for it."""
    share, left, users = network.slot_share, network.slot_left, network.slot_users
    for at in range(slots):
        if users[at] > 0:
            share[at] = left[at] / users[at]
    for flow in range(network.nb_flows):
        if network.flow_frozen[flow] == _RISES:
            rise = LARGEST_RATE
            for entry in range(network.flow_slot[flow], network.flow_slot[flow + 1]):
                rise = min(rise, share[network.slot_of[entry]] / network.slot_amount[entry])
            if network.flow_limit[flow] > 0.0:
                rise = min(rise, network.flow_limit[flow] - network.flow_rate[flow])
            network.flow_rise[flow] = rise
            network.flow_rate[flow] += rise
            if network.flow_rate[flow] == network.flow_limit[flow]:
                network.flow_frozen[flow] = _STOPS


@kernel
def _use_up(network):
    """Slots lose what flows rose, the latest flow first; those that are frozen lose them their last rise again."""
    left = network.slot_left
    for flow in range(network.nb_flows - 1, -1, -1):
        rise = network.flow_rise[flow]
        for entry in range(network.flow_slot[flow], network.flow_slot[flow + 1]):
            at = network.slot_of[entry]
            rest = left[at] - network.slot_amount[entry] * rise
            left[at] = rest if rest >= SHARE_PRECISION else 0.0


@kernel
def _freeze(network):
    """Flows of a full slot, or at their limit, rise no more; returns how many have just come to that."""
    left, frozen, count = network.slot_left, network.flow_frozen, 0
    for flow in range(network.nb_flows):
        if frozen[flow] == _RISES:
            for entry in range(network.flow_slot[flow], network.flow_slot[flow + 1]):
                if left[network.slot_of[entry]] <= 0.0:
                    frozen[flow] = _STOPS
                    break
    for flow in range(network.nb_flows):
        if frozen[flow] == _STOPS:
            frozen[flow] = _FROZEN
            count += 1
            for entry in range(network.flow_slot[flow], network.flow_slot[flow + 1]):
                network.slot_users[network.slot_of[entry]] -= 1
    return count
