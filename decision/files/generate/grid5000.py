"""Clusters of Grid'5000: what is known of each, and from where.

Nodes, processors, networks and years are those of Grid'5000's reference repository, a cluster at its largest. Until
July 2020 that repository held the speeds that its benchmark measured, of one core and of a whole node; since then it
holds the theoretical peak (cores x frequency x operations per cycle).
"""

import msgspec

from decision.model.errors import ConfigError

_REFERENCE = "Grid'5000's reference repository"


class Grid5000Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster: equal nodes on one Ethernet switch."""

    name: str
    site: str
    year: int  # of its opening
    nodes: int
    cpus: int  # per node
    cpu: str
    cores: int  # per node, without hyper-threads
    measured: float | None  # flop/s of one core, benchmarked
    measured_node: float | None = None  # flop/s of all cores together, benchmarked
    measured_in: str = ""  # when the benchmark's results were published
    theoretical: float  # flop/s of one core
    theoretical_from: str = _REFERENCE
    ethernet: float  # bit/s of the interface that nodes use by default
    network: str  # all that there is
    note: str = ""

    def core_speed(self, flops: str) -> float:
        """Flop/s of one core, "measured" or "theoretical".

        Raises:
            ConfigError: if it was not measured.
        """
        if flops == "theoretical":
            return self.theoretical
        if self.measured is None:
            raise ConfigError(
                f"{self.name}: no measured speed is known, only the theoretical {self.theoretical / 1e9:g} "
                "Gflop/s per core; choose that one",
                field="flops",
            )
        return self.measured

    def speed_source(self, flops: str) -> str:
        """Where that figure is from."""
        if flops == "theoretical":
            return f"theoretical, {self.theoretical_from}"
        node = f"; a whole node reached {self.measured_node / 1e9:g} Gflop/s" if self.measured_node else ""
        return f"measured, {_REFERENCE} of {self.measured_in}{node}"


_TABLE = (
    Grid5000Cluster(
        name="taurus",
        site="Lyon",
        year=2012,
        nodes=16,
        cpus=2,
        cpu="Intel Xeon E5-2630",
        cores=12,
        measured=11.77e9,
        measured_node=146.9e9,
        measured_in="2013-02",
        theoretical=18.4e9,
        ethernet=10e9,
        network="10 GbE",
    ),
    Grid5000Cluster(
        name="orion",
        site="Lyon",
        year=2012,
        nodes=4,
        cpus=2,
        cpu="Intel Xeon E5-2630",
        cores=12,
        measured=11.90e9,
        measured_node=147.2e9,
        measured_in="2013-02",
        theoretical=18.4e9,
        ethernet=10e9,
        network="10 GbE",
        note="each node also has a GPU, which is left out",
    ),
    Grid5000Cluster(
        name="graphite",
        site="Nancy",
        year=2013,
        nodes=4,
        cpus=2,
        cpu="Intel Xeon E5-2650",
        cores=16,
        measured=13.17e9,
        measured_node=187.9e9,
        measured_in="2013-12",
        theoretical=16.0e9,
        ethernet=10e9,
        network="10 GbE, InfiniBand 56 Gbit/s",
        note="each node also has a Xeon Phi, which is left out",
    ),
    Grid5000Cluster(
        name="econome",
        site="Nantes",
        year=2014,
        nodes=22,
        cpus=2,
        cpu="Intel Xeon E5-2660",
        cores=16,
        measured=14.04e9,
        measured_node=207.4e9,
        measured_in="2015-04",
        theoretical=17.6e9,
        ethernet=10e9,
        network="10 GbE",
        note="22 nodes until 2025, 24 since",
    ),
    Grid5000Cluster(
        name="gros",
        site="Nancy",
        year=2019,
        nodes=124,
        cpus=1,
        cpu="Intel Xeon Gold 5220",
        cores=18,
        measured=26.918e9,
        measured_node=301.83e9,
        measured_in="2019-10",
        theoretical=35.2e9,
        ethernet=25e9,
        network="2 x 25 GbE",
    ),
    Grid5000Cluster(
        name="dahu",
        site="Grenoble",
        year=2018,
        nodes=32,
        cpus=2,
        cpu="Intel Xeon Gold 6130",
        cores=32,
        measured=12.79e9,
        measured_node=428.9e9,
        measured_in="2018-07",
        theoretical=67.2e9,
        ethernet=10e9,
        network="10 GbE, Omni-Path 100 Gbit/s",
    ),
    Grid5000Cluster(
        name="paravance",
        site="Rennes",
        year=2015,
        nodes=72,
        cpus=2,
        cpu="Intel Xeon E5-2630 v3",
        cores=16,
        measured=14.60e9,
        measured_node=245.3e9,
        measured_in="2015-10",
        theoretical=38.4e9,
        ethernet=10e9,
        network="2 x 10 GbE",
    ),
    Grid5000Cluster(
        name="graphene",
        site="Nancy",
        year=2011,
        nodes=144,
        cpus=1,
        cpu="Intel Xeon X3440",
        cores=4,
        measured=8.024e9,
        measured_node=31.01e9,
        measured_in="2013-02",
        theoretical=16.673e9,
        theoretical_from="SimGrid's description of Grid'5000 (g5k.xml)",
        ethernet=1e9,
        network="1 GbE, InfiniBand 20 Gbit/s",
        note="its four Ethernet switches are seen as one",
    ),
    Grid5000Cluster(
        name="chetemi",
        site="Lille",
        year=2016,
        nodes=15,
        cpus=2,
        cpu="Intel Xeon E5-2630 v4",
        cores=20,
        measured=15.69e9,
        measured_node=331.4e9,
        measured_in="2017-02",
        theoretical=35.2e9,
        ethernet=10e9,
        network="2 x 10 GbE",
    ),
    Grid5000Cluster(
        name="parasilo",
        site="Rennes",
        year=2015,
        nodes=28,
        cpus=2,
        cpu="Intel Xeon E5-2630 v3",
        cores=16,
        measured=18.72e9,
        measured_node=252.8e9,
        measured_in="2015-10",
        theoretical=38.4e9,
        ethernet=10e9,
        network="2 x 10 GbE",
    ),
    Grid5000Cluster(
        name="nova",
        site="Lyon",
        year=2016,
        nodes=23,
        cpus=2,
        cpu="Intel Xeon E5-2620 v4",
        cores=16,
        measured=16.12e9,
        measured_node=277.8e9,
        measured_in="2017-04",
        theoretical=33.6e9,
        ethernet=10e9,
        network="10 GbE",
    ),
    Grid5000Cluster(
        name="paradoxe",
        site="Rennes",
        year=2024,
        nodes=64,
        cpus=2,
        cpu="Intel Xeon Gold 5320",
        cores=52,
        measured=None,
        theoretical=70.4e9,
        ethernet=25e9,
        network="25 GbE",
    ),
)

CLUSTERS = {cluster.name: cluster for cluster in _TABLE}

ETHERNET_LATENCY = 100 * 1e-6  # seconds from a node to its switch, as in SimGrid's description of Grid'5000


def find_cluster(name: str) -> Grid5000Cluster:
    """The cluster of that name.

    Raises:
        ConfigError: naming those that there are.
    """
    if name not in CLUSTERS:
        raise ConfigError(f"no facts about a cluster {name!r}; known are {', '.join(CLUSTERS)}")
    return CLUSTERS[name]
