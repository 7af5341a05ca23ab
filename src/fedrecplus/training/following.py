"""What is chosen soon after what: rounds of a table of that, where validation lets lists follow what was chosen last.

The table needs nothing of the others, so its rounds come after theirs, and only where an order says something. In the
first of them every device keeps its last choices back. Then these are ranked with the table and without it, as they
were to find that lists should follow. It stays if it is surely better, and the last rounds are of all choices.

Ours: no table is trained anew for the choice, and where order says nothing it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fedrecplus.data.shards import ShardedRatings
from fedrecplus.engines import Engine, Problem, RoundReport, SimulationState, prepare, rounds
from fedrecplus.parts import DECAYS, VALIDATED
from fedrecplus.parts.model.sequence import followed, rounds_before
from fedrecplus.training.evaluation import with_head
from fedrecplus.training.recency import KEPT_BACK, best_of, ndcg_of_decays, surely_better

_SHARE = 0.7
"""of the table's rounds, in which last choices are kept back"""


@dataclass
class Following:
    """Rounds that a training may go on with."""

    plain: Problem
    """of the model without the table"""
    whole: Problem
    """of the model with it"""
    known: Problem
    """without the choices that are kept back"""
    decay: float
    """of a choice's weight in lists, by validation: first without the table, then with it"""
    taken: bool = False
    """whether the table was found to be of use"""

    @classmethod
    def of(cls, problem: Problem, decay: float) -> Following | None:
        """None where lists follow no order by validation, where too few people would be left, and on clusters."""
        config, ratings = problem.config, problem.ratings
        spread = isinstance(ratings, ShardedRatings) or config.engine == "ray"
        longer = followed(config)
        if decay == 0.0 or config.model.recency != VALIDATED or longer is None or spread:
            return None
        ages = ratings.ages()
        assert ages is not None
        before = ratings.where(ages >= KEPT_BACK)
        if config.cohort.fraction * np.count_nonzero(np.diff(before.indptr)) < config.channel.least_cohort:
            return None
        known = prepare(before, longer, problem.public, problem.secrets)
        return cls(problem, replace(problem, config=longer), known, decay)

    def begin(self, engine: Engine, state: SimulationState) -> SimulationState:
        """The state with the table as it starts; the server keeps what it has of the others."""
        server = engine.start(self.whole).server
        columns = slice(0, state.server.V.shape[1])
        return replace(state, server=server.with_columns(columns, state.server))

    def rounds(self, engine: Engine, state: SimulationState) -> Iterator[tuple[SimulationState, RoundReport]]:
        """Those on what is not kept back and, where the table is of use, those on everything."""
        total = self.whole.config.server.rounds
        first = rounds_before(total)
        until = first + int(_SHARE * (total - first))
        for now, report in rounds(engine, self.known, state):
            yield now, report
            if now.server.round == until:
                break
        self.taken, self.decay = self._judged(now)
        if self.taken:
            yield from rounds(engine, self.whole, now)

    def _judged(self, state: SimulationState) -> tuple[bool, float]:
        """Whether last choices are ranked better with the table, and the decay that is best so."""
        V, plain = state.server.V, with_head(self.plain, state)
        without = ndcg_of_decays(plain, V[:, : plain.config.model.columns], (self.decay,))[self.decay]
        ndcg = ndcg_of_decays(with_head(self.whole, state), V, DECAYS)
        best = best_of(ndcg)
        return (True, best) if surely_better(ndcg[best], without) else (False, self.decay)
