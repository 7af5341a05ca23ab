"""What is chosen soon after what: rounds of a table of that, where validation lets lists follow what was chosen last.

The table needs nothing of the others, so its rounds come after theirs, and only where an order says something. After
most of them clients rank their last choices with the table, as they did without it to find that lists should follow.
If that is better, the last rounds follow; if not, the model is the one without the table.

All tables have seen the choices that are ranked. The others gain more by that than this one does: on ML-100K .025 and
.02 of NDCG@10. So whether it is better is asked without a margin. Ours: no table is trained anew for the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fedrecplus.data import ShardedRatings
from fedrecplus.engines import Engine, Problem, RoundReport, SimulationState, rounds
from fedrecplus.parts import DECAYS, VALIDATED
from fedrecplus.parts.model.sequence import followed, rounds_before
from fedrecplus.training.evaluation import with_head
from fedrecplus.training.recency import Decay, best_of, ndcg_of_decays

_SHARE = 0.7
"""of the table's rounds, after which it is judged"""


@dataclass
class Following:
    """Rounds that a training may go on with."""

    plain: Problem
    """of the model without the table"""
    whole: Problem
    """of the model with it"""
    before: SimulationState
    """that the table's rounds come after"""
    decay: Decay
    """of a choice's weight in lists, by validation: first without the table, then with it"""
    taken: bool = False
    """whether the table was found to be of use"""

    @classmethod
    def of(cls, problem: Problem, state: SimulationState, decay: Decay) -> Following | None:
        """None where lists follow no order by validation, and on clusters."""
        config = problem.config
        spread = isinstance(problem.ratings, ShardedRatings) or config.engine == "ray"
        longer = followed(config)
        if decay.decay == 0.0 or config.model.recency != VALIDATED or longer is None or spread:
            return None
        return cls(problem, replace(problem, config=longer), state, decay)

    def rounds(self, engine: Engine) -> Iterator[tuple[SimulationState, RoundReport]]:
        """The table's, the last of them where it is of use.

        The table starts as any does; the server keeps what it has of the others.
        """
        total, before = self.whole.config.server.rounds, self.before.server
        first = rounds_before(total)
        until = first + int(_SHARE * (total - first))
        start = engine.start(self.whole).server.with_columns(slice(0, before.V.shape[1]), before)
        for now, report in rounds(engine, self.whole, replace(self.before, server=start)):
            yield now, report
            if now.server.round == until:
                best = self._best_with(now)
                self.taken = best.ndcg > self.decay.ndcg
                if not self.taken:
                    return
                self.decay = best

    def without_table(self, state: SimulationState) -> SimulationState:
        """Where the table was of no use: as before, after as many rounds."""
        return replace(self.before, server=replace(self.before.server, round=state.server.round))

    def _best_with(self, state: SimulationState) -> Decay:
        """The decay by which last choices are ranked best with the table."""
        ndcg = ndcg_of_decays(with_head(self.whole, state), state.server.V, DECAYS)
        best = best_of(ndcg)
        return Decay(best, float(ndcg[best].sum()))
