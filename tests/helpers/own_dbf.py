"""DBF again, all of it in plain Python: what its kernels give is what this must give."""

import numpy as np

import decision as d

HEAD, LONGEST = 6, 36000.0


class Dbf(d.Environment):
    """Observation version 2 of DBF with a window of `HEAD` jobs, its mask, its actions and its reward."""

    base = None
    actions = HEAD + 1
    asks = "always"
    preset = {"learn": {"envs": 4, "rollout": 8, "minibatch": 16}, "env": {"jobs": 30}}

    def begin(self):
        self.most_queued = self.most_waiting = self.due = 0.0

    def _window(self, view):
        waiting = float(view.queue.waiting_time.sum())
        self.most_queued = max(self.most_queued, len(view.queue))
        self.most_waiting = max(self.most_waiting, waiting)
        return waiting

    def observe(self, view):
        self._window(view)
        left = np.clip((view.busy_until - view.now) / LONGEST, 0, 1)
        window, jobs = np.zeros((HEAD, 4)), view.queue[:HEAD]
        wait = jobs.waiting_time
        columns = jobs.size / view.nb_hosts, np.minimum(jobs.walltime / LONGEST, 1), wait / (wait + LONGEST)
        window[: len(jobs)] = np.stack([*columns, np.ones(len(jobs))], axis=1)
        return np.concatenate([left, window.ravel()])

    def mask(self, view):
        fits = np.zeros(HEAD, bool)
        fits[: len(view.queue)] = view.queue[:HEAD].size <= view.nb_free
        all_fit = view.nb_free == view.nb_hosts or view.queue.size.sum() <= view.nb_free
        return [*fits, not (fits.any() and all_fit)]

    def act(self, view, action, plan):
        if action < min(len(view.queue), HEAD) and view.queue[action].size <= view.nb_free:
            plan.start(view.queue[action])
            self.due = 0.0
            return True
        parts = view.nb_free / view.nb_hosts, len(view.queue) / max(self.most_queued, 1)
        waiting = self._window(view)
        self.due = -(sum(parts) + (waiting / self.most_waiting if self.most_waiting else 0.0)) / 3
        return False

    def reward(self, view):
        return self.due
