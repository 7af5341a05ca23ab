"""What a device's owner can rely on: answers in words, files that are theirs alone, and a way back from a bad model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.device import Store, answer
from fedrecplus.deploy.device.models import worth_keeping
from fedrecplus.deploy.node import NODE_KEY, NodeHome, join, prepare
from fedrecplus.deploy.operate.certificates import make_server_certificates
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.errors import UserError
from fedrecplus.files import locked
from fedrecplus.rounds import start_server
from tests.deploy.in_process import allow_clear, small_config
from tests.small_data import small_ratings
from tests.waiting import GIVE_UP

TITLES = {0: "Star Wars (1977)", 1: "Star Trek: First Contact (1996)", 2: "Alien\x1b[2J (1979)", 3: "Aliens (1986)"}


def catalogue() -> ItemCatalogue:
    ratings = small_ratings()
    titles = tuple(TITLES.get(number, f"Film {number:03d}") for number in range(len(ratings.item_ids)))
    return replace(ItemCatalogue.of(ratings), titles=titles)


def take_part(home: Path, model: str = "00c0ffee", number: int = 0, shift: float = 0.0) -> None:
    """One round, as a server asks for it."""
    items = catalogue()
    state = start_server(small_config(), items.public)
    state = replace(state, round=number, V=state.V + shift)
    reply = answer(encode_request(model, state, small_config(), items, attach=True), home / "store.db")
    assert "refusal" not in reply.facts, reply.facts


@pytest.fixture
def home(tmp_path: Path) -> list[str]:
    assert exit_code_of(["device", "init", "--home", str(tmp_path / "me")]) == 0
    allow_clear(tmp_path / "me" / "store.db")
    return ["--home", str(tmp_path / "me")]


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert exit_code_of(list(arguments)) == code
    out = capsys.readouterr()
    return out.out + out.err


def test_items_are_rated_by_id_or_title_and_what_fits_nothing_is_said(
    home: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nobody knows whether" in said(capsys, "device", "rate", "5", "4", *home), "no catalogue yet"
    take_part(Path(home[1]))
    ids = catalogue().ids
    assert f"rated {ids[0]}, Star Wars (1977): 5" in said(capsys, "device", "rate", "star wars", "5", *home)
    assert "no item here has the id or the title '99999'" in said(capsys, "device", "rate", "99999", "5", *home, code=2)
    both = said(capsys, "device", "rate", "star", "5", *home, code=2)
    assert "fits 2 items" in both
    assert "Star Trek: First Contact" in both
    assert f"rated {ids[3]}, Aliens" in said(capsys, "device", "rate", "Aliens", "3", *home)
    assert "took back" in said(capsys, "device", "rate", "Aliens", "--remove", *home)
    with Store.open(Path(home[1]) / "store.db") as store:
        assert store.ratings()[0] == {"5": 4.0, ids[0]: 5.0}


def test_titles_cannot_steer_the_terminal(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["device", "rate", "5", "4", *home]) == 0
    take_part(Path(home[1]))
    shown = said(capsys, "device", "recommend", "-n", "40", *home)
    assert "Alien[2J (1979)" in shown
    assert "\x1b" not in shown
    assert "\x1b" not in said(capsys, "device", "rate", "alien", "4", *home, code=2)


def test_a_silo_recommends_for_persons_who_are_there(
    tmp_path: Path, home: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    people = tmp_path / "people.csv"
    people.write_text("user,item,rating\n" + "\n".join(f"{who},{item},4" for who in "ab" for item in range(6)))
    assert exit_code_of(["device", "import", "--silo", str(people), *home]) == 0
    take_part(Path(home[1]))
    refused = said(capsys, "device", "recommend", *home, code=2)
    assert "this store has 2 persons" in refused
    assert "--person of a, b" in refused
    assert "no person 'c'" in said(capsys, "device", "recommend", "--person", "c", *home, code=2)
    assert "title" in said(capsys, "device", "recommend", "--person", "a", *home)


def test_a_bad_model_can_be_left_behind(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["device", "rate", "5", "4", *home]) == 0
    path = Path(home[1])
    take_part(path, number=0)
    good = said(capsys, "device", "recommend", *home)
    take_part(path, number=1, shift=3.0)
    bad = said(capsys, "device", "recommend", *home)
    assert bad != good
    assert "round 0" in said(capsys, "device", "rollback", *home)
    assert said(capsys, "device", "recommend", *home) == good
    take_part(path, number=2, shift=5.0)
    assert said(capsys, "device", "recommend", *home) == good, "whatever comes"
    listed = said(capsys, "device", "models", *home)
    assert listed.count("00c0ffee") == 3
    assert "chosen by you" in listed
    assert "newest" in said(capsys, "device", "rollback", "--newest", *home)
    assert said(capsys, "device", "recommend", *home) != good
    assert "no such table" in said(capsys, "device", "rollback", "beef", *home, code=2)


def test_old_models_leave_their_settings_and_nothing_else(home: list[str]) -> None:
    assert exit_code_of(["device", "rate", "5", "4", *home]) == 0
    path = Path(home[1])
    for number in range(6):
        take_part(path, model=f"{number:08x}", shift=0.1 * number)
    with Store.open(path / "store.db") as store:
        assert store.value("SELECT COUNT(DISTINCT model) FROM tables") == 3
        assert store.value("SELECT COUNT(*) FROM models") == 6, "a model that comes back must keep its settings"
        assert store.value("SELECT COUNT(*) FROM answers") == 3
    take_part(path, model="00000000", number=2)


def test_tables_of_earlier_days_and_weeks_are_kept() -> None:
    every_hour = [f"2026-{month:02d}-{day:02d}T{hour:02d}:00:00+00:00"
                  for month in (10, 11) for day in range(1, 29) for hour in range(0, 24, 6)]  # fmt: skip
    kept: list[str] = []
    for at in every_hour:
        kept = sorted(worth_keeping([at, *kept]), reverse=True)
        assert len(kept) <= 6
    assert kept[0] == every_hour[-1]
    assert kept[-1] < "2026-11-16", "some are old"


@pytest.mark.parametrize("name", ["store.db", NODE_KEY])
def test_files_that_others_may_read_are_refused(tmp_path: Path, home: list[str], name: str) -> None:
    make_server_certificates(tmp_path / "server", [])
    path, ca = Path(home[1]), tmp_path / "server" / "ca.crt"
    NodeHome(path).make_key()
    node = prepare(path, "127.0.0.1:9", ca, insecure=False)
    assert node.answered == 0
    (path / name).chmod(0o666)
    with pytest.raises(UserError, match=rf"{name} has mode 666(.|\n)*chmod 600"):
        prepare(path, "127.0.0.1:9", ca, insecure=False)
    if name == "store.db":
        assert exit_code_of(["device", "status", *home]) == 2


def test_forgetting_deletes_what_it_says_and_names_what_stays(
    home: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(home[1])
    NodeHome(path).make_key()
    for name in ("node.log", "node.lock", "my-own-notes.txt"):
        (path / name).write_text("something")
    (path / "model").mkdir()
    (path / "model" / "model.safetensors").write_bytes(b"of the server")
    told = said(capsys, "device", "forget", "--yes", *home)
    assert [entry.name for entry in path.iterdir()] == ["my-own-notes.txt"]
    assert "still there, since fedrecplus didn't make it: my-own-notes.txt" in told
    for name in ("store.db", "node.key", "node.pub", "node.log", "node.lock", "model"):
        assert name in told
    assert exit_code_of(["device", "init", *home]) == 0
    (path / "my-own-notes.txt").unlink()
    said(capsys, "device", "forget", "--yes", *home)
    assert not path.exists()


def test_a_second_node_on_one_home_is_refused(tmp_path: Path, home: list[str]) -> None:
    path = Path(home[1])
    NodeHome(path).make_key()
    node = prepare(path, "127.0.0.1:9", None, insecure=True)
    with locked(path / "node.lock", "the node", ""), pytest.raises(UserError, match="another process"):
        join(path, node)


def test_a_garbage_authority_is_an_error_in_words(tmp_path: Path, home: list[str]) -> None:
    (tmp_path / "ca.crt").write_text("garbage")
    NodeHome(Path(home[1])).make_key()
    with pytest.raises(UserError, match=r"ca\.crt is no certificate(.|\n)*--ca"):
        prepare(Path(home[1]), "127.0.0.1:9", tmp_path / "ca.crt", insecure=False)


def heavy_after(home: Path, heavy: set[str], *commands: list[str]) -> str:
    """Which of some modules are there after commands. Modules, not seconds: a busy machine is nobody's fault."""
    script = (
        "import json, sys; from fedrecplus.cli.main import exit_code_of\n"
        "home, heavy, commands = json.loads(sys.argv[1])\n"
        "for command in commands:\n"
        "    assert exit_code_of([*command, '--home', home]) == int('once' in command), command  # there is no server\n"
        "sys.exit(str(sorted(set(heavy) & set(sys.modules)) or ''))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps([str(home), sorted(heavy), commands])], capture_output=True,
        text=True, timeout=GIVE_UP, check=False, env={**os.environ},
    )  # fmt: skip
    return done.stderr.strip()


def test_rating_an_item_waits_for_no_model(tmp_path: Path) -> None:
    heavy = {"numba", "polars", "scipy", "cryptography", "sqlalchemy", "fedrecplus.config", "fedrecplus.engines"}
    assert heavy_after(tmp_path / "me", heavy, ["device", "init"], ["device", "rate", "5", "4"]) == ""


def test_a_node_starts_without_what_only_simulations_need(tmp_path: Path) -> None:
    look = ["node", "once", "127.0.0.1:9", "--insecure", "--wait", "0"]
    heavy = {"numba", "polars", "scipy", "pandas", "torch", "ray", "sqlalchemy", "fastapi", "uvicorn"}
    found = heavy_after(tmp_path / "me", heavy, ["device", "init"], ["node", "key"], look)
    assert [line for line in found.splitlines() if "doesn't answer" not in line] == []


def test_a_model_without_ratings_here_is_none(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "no model yet" in said(capsys, "device", "models", *home, code=2)
