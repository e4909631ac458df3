"""Published or recorded results, and what this package gives for them: a folder for each paper or source.

Design
------
Each folder has a README (the paper, what holds, what does not, the command), in its own module what is run, by what the
authors' program does where that differs from their text, and, where there is something of the kind, ``claims`` (what
the paper says) and ``figures`` (which alone need matplotlib). ``commands`` has what a person runs: a function for each
entry point of the group ``decision.papers``, by which installed packages add papers of their own. Nothing else imports
this package, and so a paper may use the options of the command line.

A reproduction is a function that takes its inputs and returns `campaign.Findings`: tables and what they say. It prints
nothing, so that a test checks the numbers that the command shows. One of many parts takes `campaign.Parts`, too: parts
are done in several processes, finished ones are never repeated, and an interrupted one is resumed. Where there are
budgets, a `campaign.Campaign` does what all such papers do alike. How intervals are drawn stays with the paper: over
days, pairs, rollouts or windows; what they say of a claim is one rule (`campaign.verdicts`). The inputs are other
people's data and are not shipped.

Rejected: scripts next to the package, which no test would check against the numbers in their comments; options of the
engine that exist only for somebody's mistake; a list of the papers in the command line, which others could not join.
"""
