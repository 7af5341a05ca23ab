"""Training again and again."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from fedrecplus.cli.deploy import _with_seed
from fedrecplus.config import change, dumps
from fedrecplus.deploy.operate.schedule import seconds_of, train_again
from fedrecplus.deploy.server import Deployment, StoredRun, deployment, has_run, run_of
from fedrecplus.deploy.server.schema import runs
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.errors import UserError
from fedrecplus.training.run_folder import RunFolder
from tests.deploy.in_process import InProcessLink, begin, database_of, deal_out, go_on, serve, small_config
from tests.deploy.summing import secure_config
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


def test_each_secure_model_has_a_seed_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    """A run that went on with another seed's settings was refused, whatever its operator said."""
    config = secure_config()
    first = _with_seed(config, None)
    assert first.seed not in (0, _with_seed(config, None).seed)
    (tmp_path / "config.toml").write_text(dumps(first))
    assert _with_seed(config, tmp_path) == first
    assert _with_seed(change(config, "seed", 7), tmp_path).seed == 7, "what the operator says"
    assert _with_seed(small_config(), None).seed == 0


@pytest.mark.parametrize("text", ["", "1", "d", "1s", "-1d", "1 day"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="no length of time"):
        seconds_of(text)
