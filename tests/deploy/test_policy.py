"""What an owner demands of a server: requests that ask for less are refused, and nothing leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import Config, check
from fedrecplus.deploy.device import Store, answer
from fedrecplus.deploy.server import journal_of
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.catalogue import ITEMS
from fedrecplus.deploy.wire.request import check_deployable, encode_request
from fedrecplus.errors import UserError
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds import start_server
from tests.deploy.in_process import MODEL, InProcessLink, prepared, serve, small_config
from tests.small_data import small_ratings

RATINGS = small_ratings()
PUBLIC = ItemCatalogue.published(RATINGS)


@pytest.fixture
def home(tmp_path: Path) -> list[str]:
    arguments = ["--home", str(tmp_path / "me")]
    assert exit_code_of(["device", "init", *arguments]) == 0
    assert (
        exit_code_of(["device", "policy", "--channel", "clear", "--channel", "secure", "--allow-any-task", *arguments])
        == 0
    )
    for item in range(0, 24, 2):
        assert exit_code_of(["device", "rate", str(item), "4", *arguments]) == 0
    return arguments


def asked(
    home: list[str], config: Config, catalogue: ItemCatalogue = PUBLIC, model: str = MODEL, number: int = 0
) -> str:
    """The word that the node refuses with; nothing where it takes part."""
    path, state = Path(home[1]) / "store.db", replace(start_server(config, catalogue.public), round=number)
    with Store.open(path) as store:
        before = len(store.sent())
    reply = answer(encode_request(model, state, config, catalogue, attach=True), path)
    refused = str(reply.facts.get("refusal", ""))
    with Store.open(path) as store:
        assert (len(store.sent()) == before) == bool(refused)
    return refused


def with_public(**changes: Any) -> ItemCatalogue:
    public: PublicItems = replace(PUBLIC.public, **changes)
    return replace(PUBLIC, public=public)


WEAKER = {
    "no pseudo items": small_config("fedmf"),
    "hardly any": small_config(pseudo_items__ratio=0.01),
    "new ones in each round": small_config("fedrec-hf"),
}


@pytest.mark.parametrize("what", WEAKER)
def test_a_server_that_wants_to_see_the_rated_items_is_refused_unless_the_owner_lets_it(
    what: str, home: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(home, WEAKER[what]) == "policy"
    assert asked(home, small_config()) == ""
    assert exit_code_of(["device", "policy", "--allow-bare", *home]) == 0
    assert "may show which items are rated" in capsys.readouterr().out
    assert asked(home, WEAKER[what], model="aa") == ""
    assert exit_code_of(["device", "policy", "--refuse-bare", *home]) == 0
    assert asked(home, WEAKER[what], model="aa", number=1) == "policy"


def test_bareness_can_be_allowed_at_joining(home: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedrecplus.cli.node.run", lambda *_, **__: None)
    assert exit_code_of(["node", "join", "127.0.0.1:9092", "--insecure", *home]) == 0
    assert asked(home, small_config("fedmf")) == "policy"
    assert exit_code_of(["node", "join", "127.0.0.1:9092", "--insecure", "--allow-bare", *home]) == 0
    assert asked(home, small_config("fedmf")) == ""


def test_an_owner_can_ask_for_more(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["device", "policy", "--least-ratio", "3", *home]) == 0
    assert asked(home, small_config()) == "policy"
    assert asked(home, small_config(pseudo_items__ratio=3.0)) == ""
    assert exit_code_of(["device", "policy", "--channel", "secure", *home]) == 0
    assert asked(home, small_config(pseudo_items__ratio=3.0), model="aa") == "policy"
    assert exit_code_of(["device", "policy", "--channel", "pigeon", *home]) == 2
    assert "pigeon" in capsys.readouterr().err


def test_a_pinned_catalogue_is_the_first_that_came(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    other = with_public(popularity=PUBLIC.public.popularity + 1)
    assert exit_code_of(["device", "policy", "--pin", *home]) == 0
    assert "the first that comes" in capsys.readouterr().out
    assert asked(home, small_config()) == ""
    assert asked(home, small_config(), other, "aa") == "policy"
    assert asked(home, small_config(), PUBLIC, "bb") == ""
    assert exit_code_of(["device", "status", "--json", *home]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["policy"]["catalogue"] == PUBLIC.digest
    assert exit_code_of(["device", "policy", "--no-pin", *home]) == 0
    assert asked(home, small_config(), other, "cc") == ""


def test_a_model_keeps_the_catalogue_it_began_with(home: list[str]) -> None:
    assert asked(home, small_config()) == ""
    assert asked(home, small_config(), with_public(mean=2.0), number=1) == "settings"


def test_exact_figures_of_participants_are_taken_once(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    exact = with_public(source="participants")
    joined = with_public(source="participants", popularity=PUBLIC.public.popularity + 1)
    noised = with_public(source="participants", popularity=PUBLIC.public.popularity + 2, epsilon=1.0)
    assert asked(home, small_config(), exact) == ""
    assert asked(home, small_config(), joined, "aa") == "policy"
    assert asked(home, small_config(), noised, "bb") == ""
    assert exit_code_of(["device", "status", *home]) == 0
    shown = capsys.readouterr().out
    assert "figures of the participants, exact" in shown
    assert "figures of the participants, with noise, ε = 1" in shown


def test_the_operator_is_refused_a_second_exact_catalogue_of_the_participants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = "synthetic:clients={},items=40,ratings_per_client=10", ["--out", str(tmp_path / ITEMS)]
    assert exit_code_of(["deploy", "items", data.format(60), "--participants", *out]) == 0
    assert "never again" in capsys.readouterr().out
    before = ItemCatalogue.read(tmp_path / ITEMS)
    assert (before.public.source, before.public.epsilon) == ("participants", None)
    assert exit_code_of(["deploy", "items", data.format(61), "--participants", *out]) == 2
    assert "joined or left" in capsys.readouterr().err
    assert ItemCatalogue.read(tmp_path / ITEMS).digest == before.digest
    assert exit_code_of(["deploy", "items", data.format(61), *out]) == 0
    assert "a public data set" in capsys.readouterr().out
    assert ItemCatalogue.read(tmp_path / ITEMS).public.source == "public"


def test_the_server_learns_one_word_and_blames_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    homes = prepared(tmp_path, RATINGS, small_config("fedmf"), nodes=1, patience=0.3)
    assert exit_code_of(["device", "policy", "--refuse-bare", "--home", str(homes[0].path)]) == 0
    with pytest.raises(UserError, match="no upload came"):
        serve(InProcessLink(homes), tmp_path / "run")
    assert "node-policy" in caplog.text
    assert journal_of(tmp_path / "run") == []


def test_a_catalogue_with_an_unknown_source_is_refused_when_it_is_read() -> None:
    for spoil in ({"source": "hearsay"}, {"epsilon": -1.0}, {"epsilon": np.inf}):
        with pytest.raises(ValueError, match="source"):
            ItemCatalogue.of_arrays(with_public(**spoil).arrays())


def test_exact_figures_of_participants_are_refused_beside_secure_sums(home: list[str]) -> None:
    sums = {"channel__rule": "secure", "channel__cryptography": "computed"}
    config, path = small_config("fedmf", **sums), Path(home[1]) / "store.db"
    for source, epsilon, word in (
        ("participants", None, "policy"),
        ("secure-sum", None, "policy"),
        ("secure-sum", 2.0, None),
        ("public", None, None),
    ):
        catalogue = with_public(source=source, epsilon=epsilon)
        state = start_server(config, catalogue.public)
        model = f"{MODEL}{epsilon or 0:.0f}" if word is None else MODEL
        reply = answer(encode_request(model, state, config, catalogue, attach=True, session=b"s" * 16), path)
        assert reply.facts.get("refusal") == word


def test_no_round_is_taken_part_in_beyond_the_budget_of_the_first_settings(home: list[str]) -> None:
    budget = {"privacy__rule": "central", "privacy__epsilon": 10.0, "privacy__delta": 1e-3}
    noise = {"statistics__source": "public", **budget}
    config = small_config("fedmf", rounds=2, **noise)
    assert exit_code_of(["device", "policy", "--allow-bare", *home]) == 0
    assert asked(home, config) == ""
    assert asked(home, small_config("fedmf", rounds=9, **noise), number=1) == "settings", (
        "more rounds cost more than was said"
    )
    assert asked(home, config, number=1) == ""
    for number in (2, 0):
        other = replace(config, seed=number + 1)
        assert asked(home, other, number=number) == "settings"
    path = Path(home[1]) / "store.db"
    state = replace(start_server(config, PUBLIC.public), round=0)
    another_V = replace(state, V=state.V + 1.0)
    reply = answer(encode_request(MODEL, another_V, config, PUBLIC, attach=True), path)
    assert reply.facts["refusal"] == "policy", "a round that is done once more is one more release"


def test_amplification_by_sampling_is_not_claimed_of_a_deployment() -> None:
    sums = {"channel__rule": "secure", "channel__cryptography": "computed", "statistics__source": "public"}
    budget = {"privacy__rule": "central", "cohort__sampling": "poisson", "cohort__fraction": 0.1}
    check_deployable(check(small_config("fedmf", **sums, **budget)))
    with pytest.raises(UserError, match="amplification"):
        check_deployable(check(small_config("fedmf", **sums, **budget, privacy__amplification=True)))
