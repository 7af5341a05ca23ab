"""Statistics of the participants from one noised secure sum before the first round of a deployment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.deploy.device import Store, answer
from fedrecplus.deploy.server.statistics import before_first_round
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.catalogue import ITEMS
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.deploy.wire.ring import STATISTICS_ROUND, deployed_budget, sum_terms
from fedrecplus.engines import public_items
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import add_all, decode, encode
from fedrecplus.parts.privacy import contribution, seeded_words
from fedrecplus.protocol import PublicItems, Upload
from fedrecplus.training.privacy import LEDGER, budget_spent, privacy_lines
from tests.deploy.in_process import MODEL, InProcessLink, serve
from tests.deploy.summing import NODES, Killed, NoiseWords, dying, expected, model, secure_config
from tests.deploy.test_budget import RATINGS, begun, budget_config

ALL = range(1, NODES + 1)
KINDS = ["distributed", "central", "none"]


def statistics_config(rule: str, **settings: Any) -> Config:
    if rule == "none":
        own = {"statistics__source": "secure-sum", "statistics__epsilon": 2.0, "statistics__delta": 1e-3}
        return secure_config(**{**own, **settings})
    return budget_config("secure-sum", **{"privacy__rule": rule, **settings})


def figures_of(folder: Path) -> PublicItems:
    return ItemCatalogue.read(folder / "run" / ITEMS).public


def summed(config: Config, words: dict[tuple[int, int], Any]) -> tuple[Any, float]:
    """The sum of everybody's contributions and, where devices add it, the noise that they drew."""
    terms = sum_terms(config, public_items(RATINGS), (30, 0), STATISTICS_ROUND)
    encoding, cap, uploads = terms.encoding(RATINGS.clients, NODES), deployed_budget(config)[0].cap, []
    for client in range(RATINGS.clients):
        items, values = RATINGS.of(client)
        vector = contribution(items.astype(np.int64), values, 30, cap)
        counts, residuals = vector[:30], vector[30:60]
        rows = np.stack([counts, residuals], axis=1)[items]
        uploads.append(Upload(client, items.astype(np.int64), rows, 0.0, statistic=vector[-2:]))
    total = add_all((encode(upload, encoding) for upload in uploads), terms.layout)
    for node in ALL if terms.noise is not None else ():
        terms.add_share(total, encoding, NODES, words[STATISTICS_ROUND, node])
    sums = decode(total, encoding)
    return np.concatenate([sums.total.T.ravel(), sums.statistic]), terms.share(encoding, NODES) * NODES**0.5


@pytest.mark.parametrize("rule", ["distributed", "none"])
def test_figures_and_rounds_equal_simulated_ones_with_the_same_draws(rule: str, tmp_path: Path) -> None:
    config = statistics_config(rule)
    homes = begun(tmp_path, config)
    words = NoiseWords(homes)
    serve(InProcessLink(homes, words), tmp_path / "run")
    found, before = figures_of(tmp_path), ItemCatalogue.published(RATINGS).public
    due = deployed_budget(config)[0].public(before, *summed(config, words))
    for name in ("popularity", "average"):
        np.testing.assert_array_equal(getattr(found, name), getattr(due, name))
    assert (found.mean, found.people, found.source) == (due.mean, due.people, "secure-sum")
    assert not np.array_equal(found.popularity, before.popularity)
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, config, [ALL] * 2, [ALL] * 2, 4, words, found))


def test_under_central_noise_the_server_draws_it_from_its_operating_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = statistics_config("central")
    homes, drawn = begun(tmp_path, config), seeded_words(3)
    sizes = list[int]()

    def noting(size: int) -> Any:
        sizes.append(size)
        return drawn(size)

    monkeypatch.setattr("fedrecplus.deploy.server.statistics.os_words", noting)
    serve(InProcessLink(homes), tmp_path / "run")
    total, sd = summed(config, {})
    assert sd == 0.0, "devices add none"
    assert max(sizes) == 62, "a draw for every number"
    found = figures_of(tmp_path)
    assert found.epsilon == pytest.approx(deployed_budget(config)[0].epsilon)
    assert not np.array_equal(found.popularity, np.rint(total[:30] / 0.8))


@pytest.mark.parametrize("rule", KINDS)
def test_its_budget_is_in_the_ledger_and_in_the_result(rule: str, tmp_path: Path) -> None:
    homes = begun(tmp_path, statistics_config(rule))
    serve(InProcessLink(homes), tmp_path / "run")
    result, lines = json.loads((tmp_path / "run" / "result.json").read_text()), privacy_lines(tmp_path / "run" / LEDGER)
    rounds = [] if rule == "none" else ["round 1", "round 2"]
    assert [line["release"] for line in lines] == ["statistics", *rounds]
    assert result["statistics"]["source"] == "secure-sum"
    cost = result["statistics"]["epsilon"]
    assert cost == pytest.approx(budget_spent(lines[:1], 1e-3))
    assert 0 < cost <= (2.0 if rule == "none" else 8.0)
    assert (result["privacy"] is None) == (rule == "none"), "without a rule the rounds are not private"


def test_the_sum_is_taken_once_and_never_again(tmp_path: Path) -> None:
    config = statistics_config("distributed")
    homes = begun(tmp_path, config)
    link = InProcessLink(homes)
    serve(link, tmp_path / "run")
    rounds = [packet.facts["round"] for _, packet in link.asked]
    assert rounds.count(STATISTICS_ROUND) == 4 * NODES
    assert sorted(rounds) == rounds, "before the first round"
    catalogue = ItemCatalogue.published(RATINGS)
    again = encode_request(MODEL, before_first_round(catalogue), config, catalogue, attach=True, session=b"s" * 16)
    assert answer(again, homes[0].store).facts["refusal"] in ("settings", "policy"), "figures are never refreshed"


@pytest.mark.parametrize("stage", ["mask", "reveal"])
def test_a_server_that_died_during_it_goes_on_and_the_model_is_the_same(stage: str, tmp_path: Path) -> None:
    config = statistics_config("distributed")
    homes = begun(tmp_path, config)

    words = NoiseWords(homes, dying(stage, 3, STATISTICS_ROUND))
    with pytest.raises(Killed):
        serve(InProcessLink(homes, words), tmp_path / "run")
    words.tamper = lambda _, packet: packet
    link = InProcessLink(homes, words)
    serve(link, tmp_path / "run")
    if stage == "reveal":
        of_statistics = {p.facts["stage"] for _, p in link.asked if p.facts["round"] == STATISTICS_ROUND}
        assert of_statistics == {"reveal"}, "the same sum is finished"
    due = deployed_budget(config)[0].public(ItemCatalogue.published(RATINGS).public, *summed(config, words))
    np.testing.assert_array_equal(figures_of(tmp_path).popularity, due.popularity)


def test_exact_figures_are_not_summed(tmp_path: Path) -> None:
    config = secure_config(statistics__source="secure-sum")
    with pytest.raises(UserError, match="exact figures of the participants"):
        deployed_budget(config)
    homes = begun(tmp_path, config)
    catalogue = ItemCatalogue.published(RATINGS)
    asked = encode_request(MODEL, before_first_round(catalogue), config, catalogue, attach=True, session=b"s" * 16)
    assert answer(asked, homes[0].store).facts["refusal"] == "policy"
    link = InProcessLink(homes)
    serve(link, tmp_path / "run")
    assert STATISTICS_ROUND not in {packet.facts["round"] for _, packet in link.asked}, "the catalogue's figures stay"
    with Store.open(homes[0].store) as store:
        assert "statistics" not in {line["stage"] for line in store.sent()}
    assert assign(config, ["statistics.epsilon=1"]).statistics.epsilon == 1.0
