"""What is learned, where, and how: `schedulers` (what a policy sees, does and is rewarded for), `envs`, `learning`.

Design
------
A scheduler is a record of all that is its own, and neither knows how it is learned nor needs torch: what was learned
runs without. Environments are loops over these records, and learning is a loop over environments. So `schedulers` knows
neither of the others, `envs` does not know `learning`, and torch is imported in `learning` alone. Rejected: a package
for each of the three beside `policies`, which hid that they are one subject, in three steps.
"""
