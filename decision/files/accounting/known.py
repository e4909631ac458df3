"""Logs of the Parallel Workloads Archive by name: where they are, what their content must be, what is odd in them.

Checksums are of the unpacked files. Those that copies in two public repositories or more agree on are confirmed; the
others were seen once. Jobs are the lines of the file, and of these the ones that a simulation can use.
"""

from pathlib import Path
from typing import NamedTuple

from decision.files.text import file_facts

ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload"


class KnownLog(NamedTuple):
    """A log of the archive."""

    name: str
    folder: str  # in the archive
    sha256: str
    confirmed: bool  # whether independent copies agree
    lines: int
    jobs: int  # usable
    hosts: int
    months: float
    load: float  # offered, as a share of the hosts
    odd: str

    @property
    def url(self) -> str:
        """Where the archive has it."""
        return f"{ARCHIVE}/{self.folder}/{self.name}.swf.gz"


KNOWN_LOGS = {
    log.name: log
    for log in (
        KnownLog(
            "NASA-iPSC-1993-3.1-cln",
            "l_nasa_ipsc",
            "9d997a2c20a7f7b0b6d81638d756ce8b2c524c4f2e9ec78da36001743ca33d76",
            False,
            *(18_239, 18_066, 128, 3, 0.47),
            "no waits and no requested times",
        ),
        KnownLog(
            "CTC-SP2-1996-3.1-cln",
            "l_ctc_sp2",
            "8e33a9b597e1ddda2d2164347bac08c9444e1a2620a7947df52f0a1622ec4cde",
            False,
            *(77_222, 77_205, 338, 11, 0.84),
            "7,174 jobs ran over their request; several files of this name are about",
        ),
        KnownLog(
            "KTH-SP2-1996-2.1-cln",
            "l_kth_sp2",
            "fba36494c4e4257f72182e8b629ebb0bcb054b3b82851ef957445bd627adcc87",
            False,
            *(28_476, 28_476, 100, 11, 0.68),
            "a changed copy without the jobs that ran over their request is about",
        ),
        KnownLog(
            "SDSC-BLUE-2000-4.2-cln",
            "l_sdsc_blue",
            "13892839f430583231a14bb811fd50a31b5b529eb37faacdbbefb71e73390e3e",
            True,
            *(243_306, 232_536, 1_152, 32, 0.77),
            "10,744 jobs without a run time",
        ),
        KnownLog(
            "HPC2N-2002-2.2-cln",
            "l_hpc2n",
            "77b8993c73ae438385f6c0015708251f52dc316267b03ac19a406fbea2802afa",
            True,
            *(202_871, 202_871, 240, 42, 0.60),
            "waits up to 110 days; memory is requested",
        ),
        KnownLog(
            "LCG-2005-1",
            "l_lcg",
            "f8e60cbd08ca990bdd39effc3b3787d7e60539419e2345661c0d5c3b4fa60f4e",
            False,
            *(188_041, 187_520, 24_515, 0.4, 0.06),
            "170 partitions, no waits",
        ),
        KnownLog(
            "LLNL-Atlas-2006-2.1-cln",
            "l_llnl_atlas",
            "8b3aaab739fa0bda8abaccc37c207d0b19d9d147b19e7f47a1641133a56fd07f",
            True,
            *(43_778, 36_600, 9_216, 6, 0.70),
            "no waits; 5,352 jobs without a requested time",
        ),
        KnownLog(
            "LLNL-Thunder-2007-1.1-cln",
            "l_llnl_thunder",
            "aad5a3120a6adf0342d46fb4830e022121cdfbd3de9ecdd9cf10145b8864b6a5",
            True,
            *(121_039, 113_613, 4_008, 5, 0.86),
            "no waits; 80,197 jobs without a requested time; not sorted",
        ),
        KnownLog(
            "METACENTRUM-2009-2",
            "l_metacentrum2",
            "ea27bbff7260e450f06ffce0fa0401b591e878a16afa1d289d9d14d28a20e4da",
            False,
            *(103_656, 99_944, 806, 6, float("nan")),
            "no requested times; the file that was seen has no header, and its hosts are a guess",
        ),
        KnownLog(
            "RICC-2010-2",
            "l_ricc",
            "986a2a12df85adc3c2a2eb80a31b4ff9a056b92637526ee53fb70637b1bf0518",
            False,
            *(447_794, 447_784, 8_192, 5, 0.87),
            "recorded use is far above the machine",
        ),
        KnownLog(
            "CEA-Curie-2011-2.1-cln",
            "l_cea_curie",
            "b732a04aea71e2f154c8feee580be549d0bba1462bc91ec581944cb3dd6d442d",
            True,
            *(312_826, 295_540, 93_312, 8, 0.62),
            "18 partitions",
        ),
        KnownLog(
            "UniLu-Gaia-2014-1",
            "l_unilu_gaia",
            "e4587af1ae104f023b49b7f6adcd1c5c1d3be42551848f71962dd2c1d49a78c0",
            False,
            *(51_987, 51_859, 2_004, 3, 0.45),
            "one user has 41 % of the jobs",
        ),
    )
}


def identify(path: Path, jobs: int) -> str:
    """What is known of a file: that it is a log of the archive, or only has the name of one; "" of others.

    Args:
        path: the file, unpacked.
        jobs: that were read from it.
    """
    digest = file_facts(path).sha256
    same = next((log for log in KNOWN_LOGS.values() if log.sha256 == digest), None)
    if same is not None:
        return f"the known log {same.name} ({same.odd})"
    named = next((log for log in KNOWN_LOGS.values() if path.name.startswith(log.name)), None)
    if named is None:
        return ""
    known = f"{named.jobs:,} usable jobs, SHA-256 {named.sha256}"
    return f"warning: it has the name of {named.name}, but another content: {jobs:,} jobs here, where there are {known}"
