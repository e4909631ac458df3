"""Run times before they are known: what users estimate, and what a predictor learns from ended jobs.

`walltimes` gives jobs the walltimes that users would have asked for. `predictors` guess run times as a scheduler could,
from ended jobs only; they replay a log and measure errors, or write what they say into jobs. `kernels` (the last two
jobs, the regression) and `quantiles` are the same predictors compiled, for policies
(`decision.policies.wrappers.prediction`), which learn in a table of each user's habits; the ones in Python are their
slow twins.

Design
------
Models and predictors are arrays and numbers in, numbers out; they know neither files nor the engine, so that
generators, converters and policies can all use them. A predictor learns a job's run time only at the job's end
(`predictors` see to that): an offline fit over the whole log would look better and could not be deployed. Predictions
never exceed the walltime, at which the job would be killed. A neural predictor was left out: Tsafrir's two lines and a
regression of nine weights are what the papers compare with, and they cost microseconds. Mean absolute errors in
seconds, held by a test: on NASA-iPSC, which has no walltimes, 898 for the last two jobs, 619 for the regression and 596
for the median of the quantiles; on Theta 4,040 for walltimes, 3,644, 3,094 and 2,502. Their intervals from quantile 0.1
to 0.9 hold 79.6 to 80.1 % of the jobs on Theta, Curie and NASA.
"""

from .predictors import PREDICTORS, LastTwo, Predictor, Regression
from .walltimes import ESTIMATES, apply_estimates, read_model

__all__ = ["ESTIMATES", "PREDICTORS", "LastTwo", "Predictor", "Regression", "apply_estimates", "read_model"]
