"""The server's rounds: ask, collect, aggregate, checkpoint; from the last checkpoint on, to the run folder's end."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
from sqlalchemy import Connection

from fedrecplus.deploy.server.bounds import learned_bound, median_size, odd_steps, scaled_down, step_sizes
from fedrecplus.deploy.server.cohort import AskedNodes, draw_cohort, dropout_seen
from fedrecplus.deploy.server.collect import Collector, Link, NodeRecords, collect
from fedrecplus.deploy.server.database import FAILED as DATABASE_FAILED
from fedrecplus.deploy.server.deployment import checkpoint_of
from fedrecplus.deploy.server.lease import LeaseLost
from fedrecplus.deploy.server.outcome import RoundOutcome
from fedrecplus.deploy.server.secure_sums import SecureRound, new_session
from fedrecplus.deploy.server.statistics import awaits_statistics, before_first_round, with_statistics
from fedrecplus.deploy.server.stored_run import FAILED, FINISHED, STOPPED, CoordinatedRun, Stopped
from fedrecplus.deploy.server.task_log import append, head_of, keep_sum
from fedrecplus.deploy.wire.log import round_leaf
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.questions import told_bytes
from fedrecplus.deploy.wire.reply import RoundTerms
from fedrecplus.deploy.wire.request import check_deployable, encode_request, told_tables
from fedrecplus.deploy.wire.stages import is_secure
from fedrecplus.deploy.wire.steps import as_told, first_state, next_state, sum_arrays, sum_digest
from fedrecplus.deploy.wire.task import Task
from fedrecplus.engines import Diverged, RoundReport, look_for_divergence
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import expected_in, joined
from fedrecplus.parts.privacy import check_delta, os_words
from fedrecplus.protocol import Sums
from fedrecplus.rounds import ServerState, add_up, broadcast, released
from fedrecplus.training import Ledger, Tally, step_size

log = logging.getLogger("fedrecplus")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.3, 5.0
"""seconds between looks for nodes, while too few are here"""
_REMEMBERED = 20
"""rounds of the journal that are at hand"""
_MANY = 0.3
"""share of persons, beyond which a bound that clips them is said to be too small"""
_MOST_DRAWS = 100
"""cohorts of nobody in a row, before a run says that its settings ask nobody"""


def serve(link: Link, run: CoordinatedRun) -> None:
    """All rounds that are left. What ends it is said in the database, where the follower looks."""
    try:
        run.begin()
        _ServedRun(link, run).finish()
    except Stopped:
        run.end(STOPPED)
    except (UserError, OSError) as error:
        problem = error.for_shell if isinstance(error, UserError) else str(error)
        log.error("run %s: %s", run.number, problem)
        run.end(FAILED, error=problem)
        raise
    except (LeaseLost, *DATABASE_FAILED):
        raise  # whoever coordinates next goes on from the last round
    except Exception as error:
        log.exception("run %s stopped here", run.number)
        run.end(FAILED, error=f"{type(error).__name__}; see the server's log")
        raise


class _ServedRun:
    """One run while it is served."""

    def __init__(self, link: Link, run: CoordinatedRun) -> None:
        self.link, self.run = link, run
        self.config, self.catalogue, self.deployment = check_deployable(run.config()), run.catalogue, run.deployment
        self.task = Task.parse(self.deployment.task)
        self.records, self.tally = NodeRecords(self.deployment.strikes, self.deployment.clients_per_node), Tally()
        self.ledger = Ledger.of_model(run.book, self.config, self.deployment.model)
        self.sums: list[Sums] | None = None
        """that the last step was made of, as devices are told them: one, or one of each group"""
        self.noise_on_devices = self.config.privacy.NOISE_ON_DEVICES
        self.lines: list[dict[str, Any]] = []
        """the journal so far"""
        self.collector = Collector(link, self.deployment, self.records, run)
        self.secure = SecureRound(self.collector, self.config, self.catalogue) if is_secure(self.config) else None

    def finish(self) -> None:
        """Run all rounds that are left, from the checkpoint on."""
        saved = self.run.checkpoint()
        if saved is None and awaits_statistics(self.config, self.catalogue):
            self._statistics()
        state = saved.state.server if saved else first_state(self.config, self.catalogue.public)
        self.sums = self.run.sums()
        self.lines = self.run.lines()
        self.records.restore(self.lines)
        self.tally = saved.tally if saved else Tally()
        while state.round < self.config.server.rounds:
            state = self._round(state)
        self.run.end(FINISHED, round=state.round)

    def _statistics(self) -> None:
        """One secure sum before the first round; its figures take the place of the catalogue's for this model."""
        assert self.secure is not None
        sums = self._outcome(before_first_round(self.catalogue))[0].sums
        assert sums is not None
        self.catalogue = self.secure.catalogue = with_statistics(self.config, self.catalogue, sums[0])
        self.run.set_catalogue(self.catalogue)

    def _round(self, state: ServerState) -> ServerState:
        """One round."""
        outcome, seconds = self._outcome(state)
        assert outcome.sums is not None
        after = self._step(state, outcome.sums)
        self._save(state, after, outcome, seconds)
        return after

    def _outcome(self, state: ServerState) -> tuple[RoundOutcome, float]:
        """Sums and their seconds; asked for again while nobody answers or no sum is made, until patience ends."""
        began, patience, pause = self._clock(), self.deployment.patience, _FIRST_PAUSE
        while True:
            started = time.monotonic()
            outcome = self._secure_sum(state, began) if is_secure(self.config) else self._uploads(state, began)
            self.tally = self.tally.after(RoundReport(outcome.uploads, outcome.bytes_up, outcome.bytes_down), 0.0)
            if outcome.sums is not None:
                return outcome, time.monotonic() - started
            if self._clock() - began > patience:
                remedy = "check the nodes' logs" if not outcome.why else f"{outcome.why}; go on with --resume"
                raise UserError(f"no upload came in {patience:g} s", remedy)
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_PAUSE)  # who all refuse are asked again, and not each second

    def _clock(self) -> float:
        """Seconds, without those in which the database was away: nobody could answer then."""
        return time.monotonic() - self.run.database.seconds_away

    def _uploads(self, state: ServerState, began: float) -> RoundOutcome:
        """A round of uploads in the clear, and their sums."""
        cohort = self._cohort(state, began)
        packets, ours = self._requests(state, cohort.asked), self.deployment
        limits = (ours.clients_per_node, ours.largest_change)
        terms = RoundTerms(ours.model, state.round, state.V.shape, self.config, *limits)
        uploads, outcome = collect(self.collector, packets, terms, cohort.target)
        outcome.bytes_down = sum(told_bytes(packet) for packet in packets.values())
        if uploads:
            outcome.median_size = median_size(uploads)
            bound = learned_bound(self.lines, ours.learned_bound)
            uploads, outcome.scaled = scaled_down(uploads, bound)
            if outcome.scaled:
                log.warning("round %s: %s updates beyond %.3g", state.round + 1, len(outcome.scaled), bound)
            message = broadcast(state, self.catalogue.public, np.zeros((0, 0)))  # no weight looks at encoded items
            outcome.sums = [add_up(uploads, message, self.config)[0]]
        return outcome

    def _secure_sum(self, state: ServerState, began: float) -> RoundOutcome:
        """A round's secure sum: the one that was about to be unmasked, or a new one among those who are there."""
        assert self.secure is not None
        shape = state.V.shape
        pending = self.secure.pending(state.round)
        if pending is not None:
            self._note_release(state.round, fresh=False)  # the same sum with the same noise
            summed = self.secure.finish(pending, shape)
        else:
            session, pinned = new_session(), bool(self.deployment.identities)
            cohort = self._cohort(state, began)
            packets = self._requests(state, cohort.asked, session=session, pinned=pinned)
            summed = self.secure.attempt(state.round, shape, packets, cohort.target, self._note_release)
        summed.uploads = sum(sums.clients for sums in summed.sums or ())
        return summed

    def _step(self, state: ServerState, groups: list[Sums]) -> ServerState:
        public, config = self.catalogue.public, self.config
        if self.ledger is not None:
            check_delta(
                self.ledger.delta, sum(sums.clients for sums in groups)
            )  # before the first round nobody knew how many people come
            if not self.noise_on_devices:  # this server adds it, and other noise where a crash repeats the round
                self.ledger.before_round(state.round, fresh=True)
        self.sums = [as_told(released(sums, state.round, public, config, os_words), config) for sums in groups]
        after = next_state(state, self.sums, public, config)
        try:
            look_for_divergence(checkpoint_of(after, self.tally).state)
        except Diverged as diverged:
            raise UserError(f"the training {diverged}", f"start again with a lower {step_size(config)[0]}") from None
        return after

    def _note_release(self, round_number: int, *, fresh: bool = True) -> None:
        """In the ledger: a sum with the devices' noise in it is about to be unmasked; a crash after it over-counts."""
        if self.ledger is not None and self.noise_on_devices and round_number >= 0:  # statistics were when it began
            self.ledger.before_round(round_number, fresh=fresh)

    def _cohort(self, state: ServerState, began: float) -> AskedNodes:
        """Nodes to ask: those connected and not set aside, or a sample of them."""
        wanted, patience, pause = self.deployment.nodes, self.deployment.patience, _FIRST_PAUSE
        while True:
            everybody = self.link.nodes()
            connected = [node for node in everybody if node not in self.records.set_aside]
            if len(everybody) >= wanted:  # those who are set aside have come, too
                break
            # those who are there are enough when the others have had a deadline to come back
            if connected and state.round > 0 and self._clock() - began > self.deployment.deadline:
                break
            if self._clock() - began > patience:
                problem = f"{len(connected)} of {wanted} nodes came in {patience:g} s"
                raise UserError(problem, "start more nodes, or ask for fewer with --nodes")
            self.run.set_progress(phase="waiting", round=state.round, nodes=len(connected), wanted=wanted)
            time.sleep(pause)
            pause = min(1.3 * pause, _LONGEST_PAUSE)  # who waits for hours doesn't ask each second
        if not connected:
            remedy = "read the refusals in the server's log, then use --resume --pardon"
            raise UserError("every node is set aside", remedy)
        if state.round < 0:  # everybody is asked for the statistics
            return AskedNodes(connected, len(connected))
        seen = dropout_seen(self.lines)
        for _ in range(_MOST_DRAWS):
            cohort = draw_cohort(self.config, state.round, connected, self.deployment.cohort, seen)
            if cohort.asked:  # else Poisson sampling drew nobody
                return cohort
        raise UserError(
            f"cohort.fraction={self.config.cohort.fraction:g} of {len(connected)} nodes: nobody was drawn in "
            f"{_MOST_DRAWS} draws",
            "set a greater cohort.fraction, or wait for more nodes with --nodes",
        )

    def _requests(self, state: ServerState, nodes: list[int], **sum_of: Any) -> dict[int, Packet]:
        """The round's request, the catalogue with it, to each node: who has that doesn't fetch it again."""
        told = {"task": self.task, "sums": self.sums if state.round > 0 else None, **self._logged(state), **sum_of}
        packet = encode_request(self.deployment.model, state, self.config, self.catalogue, attach=True, **told)
        return dict.fromkeys(nodes, packet)

    def _logged(self, state: ServerState) -> dict[str, Any]:
        """This round's entry in the task's log, written before anybody is asked, and the log with it."""
        task, sums = self.task, self.sums
        if not task.log:
            return {}
        before = "" if sums is None or state.round <= 0 else sum_digest(sums, self.config)
        people, spent = self.lines[-1]["uploads"] if self.lines else 0, self.ledger.spent() if self.ledger else 0.0
        tables = Packet({}, told_tables(state, self.config)).digest
        rounds = (not self.lines and self.deployment.earlier_rounds) or self.config.server.rounds
        leaf = round_leaf(state.round, tables, before, self.catalogue.digest, people, round(spent, 6), rounds)
        number = state.round - task.first + 1

        def write(connection: Connection) -> dict[str, Any]:
            written = append(connection, task.digest, number, leaf)
            if sums is not None and before:
                told = Packet({}, sum_arrays(sums, self.config)).to_bytes()
                keep_sum(connection, task.digest, number, told, task.kept)
            return {"leaf": written, "log": head_of(connection, task.digest)}

        return self.run.change(write)

    def _save(self, before: ServerState, state: ServerState, outcome: RoundOutcome, seconds: float) -> None:
        """Metrics, journal and checkpoint, at once."""
        self.tally = self.tally.after(RoundReport(0, 0, 0), seconds)
        line: dict[str, Any] = {"round": state.round, "measured_on": "train", "rmse": outcome.rmse}
        counts = {"uploads": outcome.uploads, "dropouts": len(outcome.lost) + len(outcome.silent)}
        metrics = {**line, **counts, **self.tally.figures()}
        line |= {"seconds": seconds, "refusals": self.records.to_dict(), **outcome.facts(), "at": time.time()}
        steps = step_sizes(before.V, state.V)
        if odd := odd_steps(self.lines, steps):
            names = ", ".join(str(self.catalogue.ids[item]) for item in odd)
            log.error("round %s: items moved much farther than in the rounds before: %s", state.round, names)
        line |= {"largest_step": float(steps.max(initial=0.0)), "odd_items": odd}
        assert self.sums is not None
        if is_secure(self.config):
            line |= self._clipped(self.sums, outcome.uploads) | self._odd_groups(outcome.groups)
        self.run.close_round(line, metrics, checkpoint_of(state, self.tally), sum_arrays(self.sums, self.config))
        self.lines = [*self.lines[-_REMEMBERED:], line]

    def _odd_groups(self, nodes: list[list[int]]) -> dict[str, list[int]]:
        """Which groups the step left out, being unlike the others: whoever spoils is in one of them."""
        odd = joined(self.sums or [], expected_in(1, self.catalogue.public))[1] if nodes else []
        if odd:
            log.warning("groups whose sums are odd are left out; they are of the nodes %s", [nodes[n] for n in odd])
        return {"odd_groups": odd} if nodes else {}

    def _clipped(self, groups: list[Sums], persons: int) -> dict[str, float]:
        """Of how many persons numbers were clipped, as it is told in the sum; a budget's clip is meant to be tight."""
        clipped = sum(sums.clipped for sums in groups)
        share = clipped / max(persons, 1)
        if share > _MANY and self.ledger is None:
            log.warning("%.0f %% of %s persons were clipped in a round: raise channel.bound", 100 * share, persons)
        return {"clipped": round(clipped, 1)}
