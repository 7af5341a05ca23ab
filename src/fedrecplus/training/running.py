"""A training that runs: round after round, evaluations, checkpoints, and another attempt where one diverged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data import Ratings
from fedrecplus.engines import (
    Diverged,
    Problem,
    RoundReport,
    SimulationState,
    compile_seconds,
    engine_of,
    item_columns,
    rounds,
)
from fedrecplus.errors import UserError
from fedrecplus.parts import recency_weights
from fedrecplus.parts.privacy import BudgetMechanism
from fedrecplus.randomness import uniform
from fedrecplus.training.callbacks import Callback, Progress, Step
from fedrecplus.training.evaluation import (
    Errors,
    Fallback,
    Predictor,
    Scores,
    errors_of,
    predictor_of,
    score_of_mean,
    with_head,
)
from fedrecplus.training.following import Following
from fedrecplus.training.groups import tail_items
from fedrecplus.training.heads import HeldBack
from fedrecplus.training.measures import Evaluation, evaluation_of
from fedrecplus.training.privacy import Ledger, Line
from fedrecplus.training.ranking import lists_of
from fedrecplus.training.recency import Decay, asks_what_is_next, chosen_decay
from fedrecplus.training.run_folder import Checkpoint, RunFolder, Tally
from fedrecplus.training.sampled import sampled_ranking
from fedrecplus.training.warm_start import Earlier

MOST_JUDGED = 200_000
"""training ratings that are looked at where there are no test ratings"""
_NO_ERRORS = dict.fromkeys(("mae", "rmse", "nmse"))


class Scored(NamedTuple):
    """How far a state's predictions are from the ratings that are looked at."""

    scores: Scores
    errors: Errors | None = None
    """by client; None, as the predictions, where clients are in shards, and nobody has all of it"""
    predictor: Predictor | None = None


@dataclass
class Training:
    """What was asked for, who looks on, and, once it runs, the state that it has come to."""

    config: Config
    """as it was asked for; ``problem.config`` has the step of this attempt"""
    problem: Problem
    test: Ratings | None
    folder: RunFolder | None
    progress: Progress
    stop: Callable[[], bool]
    checkpoint_seconds: float
    callbacks: tuple[Callback, ...] = ()
    ledger: Ledger | None = None
    """of releases, where the run has a privacy budget and a folder"""
    earlier: Earlier | None = None
    """the model that it begins with, where it does not begin anew"""
    retries: int = 0
    """attempts that diverged"""
    tally: Tally = field(default_factory=Tally)
    """what this attempt has cost"""
    scored: Scored | None = None
    """errors in the state that it has come to, where they were looked at"""
    following: Following | None = None
    """rounds that it went on with"""
    scored_before: Scored | None = None
    """errors before these, which change no prediction of a rating"""

    def run(self, saved: Checkpoint | None = None) -> None:
        """All rounds that are left, with ever smaller steps until none diverges; KeyboardInterrupt on ``stop()``."""
        if self.retries:
            self.problem = replace(self.problem, config=with_smaller_step(self.config, self.retries))
        held_back = HeldBack.of(self.problem)
        if self.earlier is not None and self.earlier.clients is not None:
            held_back = HeldBack.since(self.problem, self.earlier.came_since(self.problem.ratings))
        elif held_back is not None:  # exact counts and averages are taken once, of what is trained on first
            self.problem = replace(self.problem, public=held_back.problem.public)
        self.engine = engine_of(self.problem.config)
        state = self.engine.start(self.problem)
        self.state = state if self.earlier is None else self.earlier.begin(self.problem, state)
        if saved:
            self.state, self.tally = saved.state, saved.tally
        self._tell_start()
        left = rounds(self.engine, self.problem, self.state)
        if held_back is not None:
            left = held_back.rounds(self.engine, self.problem, self.state)
        if self.ledger is not None and self.ledger.plan.rounds:
            left = self.ledger.before_each(left, self.state.server.round, fresh=not self.config.seeded_noise)
        try:
            more: Iterator[tuple[SimulationState, RoundReport]] | None = left
            while more is not None:
                began = _stopwatch()
                for self.state, report in more:
                    self.tally = self.tally.after(report, _stopwatch() - began)
                    self.scored = (self._scored_before_table() or self.score(self.state)) if self._is_due() else None
                    self._after_round(report)
                    if any(callback.wants_stop() for callback in self.callbacks):
                        break
                    began = _stopwatch()
                more = self._more_rounds()
        except Diverged as diverged:
            self._start_again(diverged)
            self.run()

    def _more_rounds(self) -> Iterator[tuple[SimulationState, RoundReport]] | None:
        """Those of a table of what is chosen soon after what, where lists follow an order; None after the last."""
        following = self.following
        if following is not None:
            self.validated = following.decay
            if not following.taken:
                self.problem, self.state = following.plain, following.without_table(self.state)
                self.scored = self.scored_before
            return None
        if self.state.server.round < self.problem.config.server.rounds or not self.decay:
            return None
        self.following = Following.of(self.problem, self.state, self.validated)
        if self.following is None:
            return None
        self._save()
        self.scored_before = self.scored = self.scored or self.score(self.state)
        self.problem = self.following.whole
        return self.following.rounds(self.engine)

    @property
    def ended(self) -> Config:
        """The settings that the model has, which may have a table more than was asked for."""
        follows = self.problem.config.model.rule != self.config.model.rule
        now = self.problem.config
        return replace(self.config, model=now.model, server=now.server) if follows else self.config

    def _tell_start(self) -> None:
        done, self._saved_at = self.state.server.round, time.monotonic()
        for callback in self.callbacks:
            callback.start(self.problem.config, done, self.folder.metrics(done) if self.folder else [])

    def _is_due(self) -> bool:
        """Learning curves begin with the first round and end with the last."""
        number = self.state.server.round
        return number % self.config.evaluation.every == 0 or number in (1, self.problem.config.server.rounds)

    def _after_round(self, report: RoundReport) -> None:
        """Tell who looks on, and keep what was done."""
        number, last, rmse = self.state.server.round, self.problem.config.server.rounds, None
        if self.scored is not None:
            self._add_metrics(number, self.scored.scores)
            rmse = self.scored.scores.rmse if self.test is not None and not self.likes_alone else None
        self.progress(Step(number, last, rmse, seconds=report.seconds))
        for callback in self.callbacks:
            callback.round(number, last)
        self._keep_safe(stopping=number < last and self.stop())

    def _add_metrics(self, number: int, scores: Scores) -> None:
        """A line of metrics, or ``Diverged``."""
        if not self.state.private.finite():
            raise Diverged(number, "U is not finite any more")
        refuse_blown_up(scores, number, self.score_of_mean, self._untrained, likes_alone=self.judges_likes)
        figures = {**scores.figures(), **(_NO_ERRORS if self.likes_alone else {})}
        measured_on = "train" if self.test is None else "test"
        line = {"round": number, "measured_on": measured_on, **figures, **self.tally.figures()}
        if self.folder:
            self.folder.add_metrics(line)
        for callback in self.callbacks:
            callback.metrics(number, line)

    def _keep_safe(self, *, stopping: bool) -> None:
        """Write a checkpoint when it is time to, or when the user wants to stop.

        It comes after the round's metrics line, so that a run which goes on from it neither lacks a line nor has it
        twice. Where a round that comes again would be paid for again, every round has one.
        """
        paid = self.ledger is not None and not self.config.seeded_noise
        if stopping or paid or time.monotonic() - self._saved_at >= self.checkpoint_seconds:
            self._save()
        if stopping:
            raise KeyboardInterrupt

    def _save(self) -> None:
        """A checkpoint; a training that is stopped among the rounds that ``_follow`` adds repeats these."""
        if self.folder and self.ended is self.config:
            self.folder.save_checkpoint(Checkpoint.of(self.state, self.tally, self.retries, self.problem.public))
            self._saved_at = time.monotonic()

    def _start_again(self, diverged: Diverged) -> None:
        """Make ready for an attempt with a smaller step, or give up."""
        if isinstance(self.config.privacy, BudgetMechanism):
            raise UserError(
                f"training {diverged}; another attempt would spend the privacy budget again",
                "choose settings that suit the budget (--epsilon does), or a greater privacy.epsilon",
            ) from None
        self.retries, self.tally = self.retries + 1, Tally()
        name, rate = step_size(with_smaller_step(self.config, self.retries))
        if self.retries > MOST_RETRIES:
            if self.folder:
                self.folder.give_up()
            raise UserError(
                f"training {diverged}, after {MOST_RETRIES} attempts with greater steps that diverged too",
                f"set {name} to {rate:g} or less, or a lower server_optimizer.learning_rate",
            ) from None
        if self.folder:
            self.folder.forget_attempt()
        message = f"{diverged}; starting again with {name} = {rate:g}"
        self.progress(Step(0, self.config.server.rounds, message=message))

    @cached_property
    def judged(self) -> Ratings:
        """The test ratings or, without any, so many training ratings as make an evaluation cheap, by a fixed key."""
        ratings = self.problem.ratings
        if self.test is not None or len(ratings) <= MOST_JUDGED:
            return ratings if self.test is None else self.test
        return ratings.where(uniform(0, np.arange(len(ratings))) < MOST_JUDGED / len(ratings))

    @cached_property
    def fallback(self) -> Fallback:
        """What is predicted where a client or an item has no training rating."""
        return Fallback.of(self.problem.ratings, self.config, self.problem.public)

    @cached_property
    def judges_likes(self) -> bool:
        """Whether all ratings that are looked at are the same."""
        return self.judged.likes_alone

    @property
    def likes_alone(self) -> bool:
        """Whether all ratings are the same, so that errors mean nothing."""
        return self.problem.ratings.likes_alone and self.judges_likes

    def score(self, state: SimulationState) -> Scored:
        """Errors in a state."""
        predictor, tail = predictor_of(self.engine, self.problem, state), tail_items(self.problem.ratings.item_counts())
        errors = errors_of(self.judged, predictor.predict, self.fallback, tail)
        return Scored(errors.total, errors, predictor)

    def _scored_before_table(self) -> Scored | None:
        """In rounds of a table for lists alone: the errors before them, which it doesn't change."""
        if self.scored_before is None or self.scored_before.predictor is None:
            return None
        W, X = self.scored_before.predictor.W, item_columns(with_head(self.problem, self.state), self.state.server.V)
        wide = np.pad(W, ((0, 0), (0, X.shape[1] - W.shape[1])))
        return self.scored_before._replace(predictor=replace(self.scored_before.predictor, W=wide, X=X))

    def _untrained(self) -> Scores:
        state = self.engine.start(self.problem)
        return self.score(state if self.earlier is None else self.earlier.begin(self.problem, state)).scores

    @cached_property
    def score_of_mean(self) -> Scores:
        """The errors of who predicts everybody's mean rating."""
        return score_of_mean(self.judged, self.fallback)

    def final(self) -> tuple[Evaluation | None, Predictor | None]:
        """All measures in the last state, where there are test ratings, and what ranks everybody's lists."""
        self.scored = self.scored or self._scored_before_table() or self.score(self.state)
        _, errors, plain = self.scored
        assert errors is not None
        assert plain is not None
        predictor = replace(plain, Z=self.engine.list_weights(with_head(self.problem, self.state), plain.W, plain.X))
        if self.test is None:
            return None, predictor
        least, ratings, asked = self.config.evaluation.relevant_from, self.problem.ratings, predictor
        if self.decay and asks_what_is_next(ratings, self.test, self.decay):
            own, recency = with_head(self.problem, self.state), recency_weights(ratings.ages(), self.decay)
            asked = replace(plain, Z=self.engine.list_weights(own, plain.W, plain.X, recency))
        lists = lists_of(ratings, self.test, asked, self.fallback, relevant_from=least)
        evaluation, negatives = evaluation_of(ratings, errors, lists), self.config.evaluation.negatives
        if negatives:
            judged = (ratings, self.test, asked, self.fallback)
            evaluation.ranking.update(sampled_ranking(*judged, negatives, self.config.seed))
        return evaluation, predictor

    @property
    def decay(self) -> float:
        """Of a choice's weight in lists of what comes next; 0: they follow no order."""
        return self.validated.decay

    @cached_property
    def validated(self) -> Decay:
        """That decay, and what validation says of it."""
        return chosen_decay(with_head(self.problem, self.state), self.state.server.V)

    @property
    def spent(self) -> tuple[Line, ...]:
        """What was released for the model that it begins with."""
        return () if self.earlier is None else self.earlier.spent

    def largest_upload(self) -> int:
        """Rows in the largest upload of all clients."""
        rows = np.diff(self.problem.ratings.indptr) + np.diff(self.problem.pseudo_indptr)
        return int(rows.max(initial=0))


def _stopwatch() -> float:
    """A clock that stands still while kernels are compiled."""
    return time.perf_counter() - compile_seconds()


MOST_RETRIES = 4
_TIMES_WORSE = 3.0


def refuse_blown_up(
    scores: Scores, round_number: int, of_mean: Scores, untrained: Callable[[], Scores], *, likes_alone: bool = False
) -> None:
    """Raise if predictions, before they are clipped to the scale, have left it for good.

    That is where their error is three times that of the global mean and three times that of the untrained model, which
    is far off if it starts at zero. The latter is asked for only where the former is not enough.
    """
    least = 1.0 if likes_alone else 1e-3  # of ratings that are all the same, the mean has no error at all
    limit = _TIMES_WORSE * max(of_mean.unclipped, least)
    if not scores.unclipped <= limit:
        limit = max(limit, _TIMES_WORSE * untrained().unclipped)
    if not scores.unclipped <= limit:
        raise Diverged(round_number, f"RMSE before clipping is {scores.unclipped:.3g}, more than {limit:.3g}")


def step_size(config: Config) -> tuple[str, float]:
    """The setting that decides how far a round goes, and its value: the local step or, without one, the server's."""
    for section in (config.model, config.server_optimizer):
        if "learning_rate" in section.values:
            return f"{section.kind}.learning_rate", float(section.settings.learning_rate)
    return "", 0.0


def with_smaller_step(config: Config, retries: int) -> Config:
    """The config for a repeated attempt: the step halved each time.

    >>> step_size(with_smaller_step(Config(), 2))
    ('model.learning_rate', 0.125)
    """
    name, size = step_size(config)
    if retries == 0 or not name:
        return config
    kind = name.partition(".")[0]
    return replace(config, **{kind: getattr(config, kind).with_settings(learning_rate=size * 0.5**retries)})
