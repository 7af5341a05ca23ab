"""Training again and again, and any message whatever."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as arrays
from sqlalchemy import func, select

from fedrecplus.config import change
from fedrecplus.deploy.operate.schedule import seconds_of, train_again
from fedrecplus.deploy.server import Deployment, StoredRun, deployment, has_run, run_of
from fedrecplus.deploy.server.schema import runs
from fedrecplus.deploy.wire import VERSION, ItemCatalogue, Packet, Refusal, decode_reply, decode_request
from fedrecplus.errors import UserError
from fedrecplus.training.run_folder import RunFolder
from tests.deploy.in_process import MODEL, InProcessLink, begin, database_of, deal_out, go_on, serve, small_config
from tests.deploy.test_checks import EXPECTED, SELF_WEIGHED
from tests.small_data import small_ratings


def test_runs_go_on_from_each_other_and_a_failed_one_is_gone_on_with(tmp_path: Path) -> None:
    ratings, config = small_ratings(), small_config(rounds=1)
    homes, catalogue, said = deal_out(ratings, tmp_path / "nodes", 1, 0), ItemCatalogue.of(ratings), list[str]()
    away = {2}

    def start(folder: Path, before: Path | None) -> None:
        if before is None:
            begin(folder, config, Deployment(1), catalogue, {"dataset": "small"})
        else:
            go_on(before, folder, change(config, "server.rounds", 1), Deployment(1), catalogue, overwrite=False)

    def run(folder: Path) -> None:
        if int(folder.name) in away:
            away.discard(int(folder.name))
            raise UserError("nobody is here")
        serve(InProcessLink(homes), folder)

    def begun(folder: Path) -> bool:
        return has_run(database_of(folder), folder)

    train_again(tmp_path / "runs", 0.0, begun, start, run, said.append, times=4)
    assert [path.name for path in sorted((tmp_path / "runs").iterdir()) if path.is_dir()] == ["0001", "0002", "0003"]
    assert [RunFolder(tmp_path / "runs" / f"000{n}").result()["rounds"] for n in (1, 2, 3)] == [1, 2, 3]
    assert any("nobody is here" in line for line in said)


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_a_kill_while_a_run_begins_leaves_no_half_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    """Before or after the folder names its run, which isn't in the database yet: neither stops what comes next."""
    folder, write, kills = tmp_path / "runs" / "0001", deployment.write_json, [KeyboardInterrupt()]

    def killed(path: Path, content: Any) -> None:
        if path.name != deployment.DEPLOYMENT or not kills:
            write(path, content)
            return
        if written:
            write(path, content)
        raise kills.pop()

    def start(folder: Path, _: Path | None) -> None:
        catalogue = ItemCatalogue.of(small_ratings())
        begin(folder, small_config(rounds=1), Deployment(1), catalogue, {"dataset": "small"}, overwrite=True)

    monkeypatch.setattr(deployment, "write_json", killed)
    database = database_of(folder)
    for _ in range(2):
        with contextlib.suppress(KeyboardInterrupt):
            train_again(
                tmp_path / "runs", 0.0, lambda folder: has_run(database, folder), start, lambda _: None, print, times=1
            )
    assert not kills
    assert has_run(database, folder)
    newest = StoredRun.newest(database)
    assert newest is not None
    assert newest.number == run_of(database, folder).number
    with database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(runs)).scalar() == 1, "and nobody works on another"


@pytest.mark.parametrize("text", ["", "1", "d", "1s", "-1d", "1 day"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="no length of time"):
        seconds_of(text)


FACTS = st.dictionaries(
    st.sampled_from(["version", "model", "round", "refusal", "squared_error", "rated", "config", "session"]),
    st.one_of(st.just(VERSION), st.just(MODEL), st.just(3), st.integers(), st.floats(), st.text(max_size=8)),
    max_size=6,
)  # fmt: skip
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)
KINDS = st.sampled_from([np.int8, np.int32, np.int64, np.uint64, np.float32, np.float64, np.bool_])
TABLES = st.dictionaries(
    st.sampled_from(["clients", "rows", "items", "delta", "weights", "V", "ratings"]),
    KINDS.flatmap(lambda kind: arrays.arrays(kind, SHAPES)),
    max_size=6,
)


def fuzz(packet: Packet) -> None:
    """Decode as a server and as a node would: what comes out is what the schema allows, or a refusal."""
    for terms in (EXPECTED, SELF_WEIGHED):
        try:
            uploads, report = decode_reply(packet, terms)
        except Refusal:
            continue
        for upload in uploads:
            assert upload.delta.shape == (len(upload.items), 4)
            assert np.isfinite(upload.delta).all()
            assert (np.diff(upload.items) > 0).all()
            assert ((upload.items >= 0) & (upload.items < 40)).all()
            assert 0 <= upload.client < 2**62
        assert len({upload.client for upload in uploads}) == len(uploads) <= terms.clients_per_node
        assert report is None or (report.squared >= 0 and report.ratings > 0)
    with contextlib.suppress(Refusal):
        decode_request(packet)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(FACTS, TABLES)
def test_any_message_is_taken_by_the_schema_or_refused(facts: dict[str, Any], tables: dict[str, Any]) -> None:
    fuzz(Packet(facts, tables))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.data(), st.integers(0, 4), st.integers(0, 6), st.sampled_from([np.float32, np.float64]),
    st.sampled_from([np.int32, np.int64]),
)  # fmt: skip
def test_messages_that_are_nearly_right_are_taken_by_the_schema_or_refused(
    data: Any, persons: int, rows: int, kind: Any, whole: Any
) -> None:
    def table(dtype: Any, shape: Any, **more: Any) -> Any:
        return data.draw(arrays.arrays(dtype, shape, **more))

    counts = table(np.int32, persons, elements=st.integers(0, 3))
    total = int(counts.sum()) if data.draw(st.booleans()) else rows
    fuzz(
        Packet(
            {"version": VERSION, "model": MODEL, "round": 3},
            {
                "clients": table(np.int64, persons, elements=st.integers(-1, 2**62)),
                "rows": counts,
                "items": np.sort(table(whole, total, elements=st.integers(-1, 41))),
                "delta": table(kind, (total, 4)),
                **({"weights": table(np.float64, persons)} if data.draw(st.booleans()) else {}),
            },
        )
    )
