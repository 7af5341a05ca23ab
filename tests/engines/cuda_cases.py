"""Run in a process of its own, with TRITON_INTERPRET=1: names of cases in, a line of JSON for each out.

Triton decides at its import whether kernels are compiled for a card or interpreted.
"""

from __future__ import annotations

import itertools
import json
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fedrecplus.config import Config, assign, preset, presets
from fedrecplus.engines import SimulationState, engine_of, prepare
from fedrecplus.errors import EngineWarning
from fedrecplus.protocol import Sums
from fedrecplus.rounds import server_round, start_server
from fedrecplus.testing import assert_engines_agree, example_config, small_ratings

STEPS = ("model.rule=mf", "model.factors=3", "model.learning_rate=0.1", "model.local_epochs=2")
DISTANCES = ("aggregation.rule=wasserstein", "aggregation.temperature=0.4")
RING = (
    "channel.rule=secure",
    "channel.least_cohort=3",
    "channel.fewest_contributors=1",
    "channel.bound=64",
    "channel.weights=sent",
)


def agree(config: Config, deterministic: bool, rounds: int = 2) -> None:
    """The CUDA engine gives what the reference gives."""
    config = replace(config, deterministic=deterministic)
    assert_engines_agree(config, small_ratings(clients=7, items=20), rounds=rounds, engine="cuda")


def of_preset(name: str) -> Callable[[], None]:
    """A preset as it is shipped, with sums in a fixed order."""

    def run() -> None:
        config = preset(name)
        if config.channel.rule == "secure":
            config = assign(config, ["channel.least_cohort=3", "channel.fewest_contributors=1"])
        if config.virtual_ratings.rule == "hybrid":  # predictions in the second round already
            config = assign(config, ["virtual_ratings.predict_after=1"])
        agree(config, deterministic=True)

    return run


def of_settings(*changes: str, deterministic: bool = False) -> Callable[[], None]:
    """The example with changes."""
    return lambda: agree(example_config(*changes), deterministic)


def long_clients() -> None:
    """Clients with more rows than registers hold."""
    from fedrecplus.engines.cuda import fused

    fused.LARGEST_IN_REGISTERS = 16
    agree(example_config(*STEPS, "pseudo_items.rule=random", "virtual_ratings.rule=user-average", *DISTANCES), False)


def on_processor() -> None:
    """A rule that looks at single uploads runs through the fast engine, and that is said once."""
    config = example_config(*STEPS, "aggregation.rule=coordinate-median", "pseudo_items.rule=none")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        agree(config, deterministic=False)
    notes = [str(each.message) for each in said if each.category is EngineWarning]
    assert notes == [
        "aggregation.rule = 'coordinate-median' looks at single uploads: its rounds run on the processor"
    ], notes


def same_bits() -> None:
    """In a fixed order two runs give the same bits, also from a state that was written and read."""
    config = replace(example_config(*STEPS, "pseudo_items.rule=random", *DISTANCES), deterministic=True)
    config = replace(assign(config, ["virtual_ratings.rule=user-average"]), engine="cuda", precision="float32")
    problem = prepare(small_ratings(clients=7, items=20), config)
    found = []
    for resumed in (False, True):
        engine = engine_of(config)
        state, _ = engine.round(problem, engine.start(problem))
        if resumed:
            written = {name: np.array(table) for name, table in state.arrays().items()}
            engine, state = engine_of(config), SimulationState.of_arrays(written)
        state, _ = engine.round(problem, state)
        found.append(state.arrays())
    for name, table in found[0].items():
        assert isinstance(table, np.ndarray), name
        np.testing.assert_array_equal(found[1][name], table, err_msg=name)


def lazy_state() -> None:
    """U stays with the engine until somebody looks at it, and then it is an array like any other."""
    config = replace(example_config(*STEPS, "pseudo_items.rule=none"), engine="cuda")
    problem = prepare(small_ratings(clients=7, items=20), config)
    engine = engine_of(config)
    state, _ = engine.round(problem, engine.start(problem))
    U = state.private.U
    assert not isinstance(U, np.ndarray)
    whole = np.asarray(U)
    assert whole.shape == U.shape
    assert whole.dtype == U.dtype
    assert len(U) == len(whole)
    np.testing.assert_array_equal(U[np.array([3, 1])], whole[[3, 1]])
    np.testing.assert_array_equal(U[2], whole[2])
    np.testing.assert_array_equal(np.add(U, 1.0), whole + 1.0)
    assert np.isfinite(U).all()
    whole[:] = np.nan  # a copy: the state is as it was
    assert np.isfinite(state.private.U).all()


def server_on_card() -> None:
    """The server's half over tensors gives what it gives over arrays, and nothing leaves the card for it."""
    import torch

    from fedrecplus.engines.cuda.card import to_card
    from fedrecplus.engines.cuda.tables import ServerTables

    draws = np.random.default_rng(0)
    total, weights = draws.normal(size=(6, 3)).astype(np.float32), np.array([2.0, 0.0, 1.5, 3.0, 0.0, 0.25])
    for optimizer, normalise in itertools.product(("sgd", "momentum", "adam"), ("item", "cohort", "none")):
        config = example_config(*STEPS, f"server_optimizer.rule={optimizer}", f"aggregation.normalise={normalise}")
        problem = prepare(small_ratings(clients=7, items=6), config)
        expected = found = start_server(config, problem.public, np.float32)
        tables = ServerTables()
        for _ in range(3):
            expected = server_round(expected, Sums(total, weights, 6.75, 7), problem.public, config)
            on_card: Any = (to_card(total), to_card(weights))
            moved = server_round(tables.to_card(found), Sums(*on_card, 6.75, 7), problem.public, config)
            assert all(isinstance(table, torch.Tensor) for table in (moved.V, moved.last_step, *moved.moments))
            found = tables.from_card(moved)
        assert type(found.V) is np.ndarray
        np.testing.assert_allclose(found.V, expected.V, rtol=1e-6, err_msg=f"{optimizer}, {normalise}")
        np.testing.assert_allclose(found.last_step, expected.last_step, rtol=1e-6, atol=1e-7)


def state_of_others() -> None:
    """A state that somebody else made, or changed, is taken as it is."""
    config = replace(example_config(*STEPS, "pseudo_items.rule=none"), engine="cuda", precision="float64")
    problem, ends = prepare(small_ratings(clients=7, items=20), config), []
    for name in ("reference", "cuda"):
        engine = engine_of(replace(config, engine=name))
        state, _ = engine.round(problem, engine.start(problem))
        state = replace(state, server=replace(state.server, V=state.server.V * 0.5))
        ends.append(engine.round(problem, state)[0].server.V)
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-9)


def chosen_by_V() -> None:
    """Where the last bits of V decide what clients choose, tables have 64 bits, whatever the precision."""
    config, ends = replace(preset("fedrec+paper"), precision="float32"), []
    problem = prepare(small_ratings(clients=7, items=20), config)
    for name in ("reference", "cuda"):
        engine = engine_of(replace(config, engine=name))
        state = engine.start(problem)
        for _ in range(2):
            state, _ = engine.round(problem, state)
        ends.append(state.server.V)
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-9)
    others = prepare(small_ratings(clients=7, items=20), preset("fedrec"))
    assert engine_of(replace(others.config, engine="cuda")).start(others).server.V.dtype == np.float32


def chosen_by_itself() -> None:
    """Where there is a card, ``engine=auto`` takes it."""
    assert type(engine_of(replace(Config(), engine="auto"))).__name__ == "CudaEngine"


def told_the_order() -> None:
    """Devices on the card know what came after what: tables that take turns, and one of them is of the order."""
    ratings = small_ratings(clients=7, items=20)
    ratings = replace(ratings, timestamps=np.random.default_rng(4).integers(0, 60, len(ratings)))
    columns = [f"model.{name}=4" for name in ("factors", "interaction_factors")]
    config = assign(preset("fedrec+secure"), ["model.rule=sequence", "channel.rule=sums", "server.rounds=5", *columns])
    assert_engines_agree(replace(config, deterministic=True), ratings, rounds=5, engine="cuda")


CASES: dict[str, Callable[[], None]] = {
    **{name: of_preset(name) for name in presets() if preset(name).engine != "central"},
    "auto": chosen_by_itself,
    "any order": of_settings(*STEPS, "pseudo_items.rule=none"),
    "any order, distances": of_settings(*STEPS, "pseudo_items.rule=none", *DISTANCES, "aggregation.rows=table"),
    "biases": of_settings("model.rule=biased-mf", "pseudo_items.rule=random", "virtual_ratings.rule=predicted"),
    "weighted neighbours": of_settings(*STEPS, "virtual_ratings.rule=weighted", "pseudo_items.redraw=true"),
    "batches of rows": of_settings(*STEPS, "model.batch_size=3", "pseudo_items.rule=random", *DISTANCES),
    "large steps": of_settings(*STEPS, "model.learning_rate=0.25", "model.regularisation=4", "pseudo_items.rule=none"),
    "svdpp": of_settings(
        *("model.rule=svdpp", *STEPS[1:], "pseudo_items.rule=random", "virtual_ratings.rule=hybrid"),
        "virtual_ratings.predict_after=1",
    ),
    "ials": of_settings("model.rule=ials", "pseudo_items.rule=random", "virtual_ratings.rule=predicted", *DISTANCES),
    "ring": of_settings(*STEPS, *RING, "pseudo_items.rule=random", "virtual_ratings.rule=user-average"),
    "ring of 16 bits": of_settings("model.rule=joint", *RING, "channel.bits=16", "pseudo_items.rule=none"),
    "half a cohort": of_settings(*STEPS, "cohort.fraction=0.5", "virtual_ratings.refresh=false", *DISTANCES),
    "long clients": long_clients,
    "on the processor": on_processor,
    "same bits": same_bits,
    "lazy state": lazy_state,
    "server on the card": server_on_card,
    "state of others": state_of_others,
    "chosen by V": chosen_by_V,
    "told the order": told_the_order,
}


def main(names: list[str]) -> None:
    """Run the cases and say what became of each."""
    for name in names:
        error = None
        with warnings.catch_warnings(), np.errstate(all="ignore"):  # NumPy warns where the interpreter's hashes wrap
            warnings.simplefilter("ignore")
            try:
                CASES[name]()
            except Exception:
                error = traceback.format_exc()
        print(json.dumps({"case": name, "error": error}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
