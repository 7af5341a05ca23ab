"""Ratings that come later: no single upload names the newcomer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import Config
from fedrecplus.deploy.device import Store, answer, load_clients
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.parts.pseudo_items.grouped import groups
from fedrecplus.rounds import start_server
from tests.deploy.in_process import MODEL, allow_clear, small_config
from tests.small_data import small_ratings

RATINGS = small_ratings(items=200)
CATALOGUE = ItemCatalogue.of(RATINGS)
FIRST = {str(item): 4.0 for item in range(0, 24, 2)}


class Person:
    """One device, asked round after round. Its secret is given, so that every count below comes out the same again."""

    def __init__(self, folder: Path, config: Config, secret: int = 0) -> None:
        self.path, self.config, self.round = folder / "store.db", config, 0
        Store.create(self.path, RATINGS.scale, seed=secret, batch=5)
        allow_clear(self.path)
        self.rate(FIRST)

    def rate(self, ratings: dict[str, float]) -> None:
        with Store.open(self.path) as store:
            store.rate(ratings)

    def unrate(self, items: list[str]) -> None:
        with Store.open(self.path) as store:
            for item in items:
                store.unrate(item)

    def upload(self) -> set[int]:
        reply = answer(_request(self.config, self.round), self.path)
        assert "refusal" not in reply.facts, reply.facts
        self.round += 1
        return set(reply.arrays["items"].tolist())


@pytest.fixture(params=["fedrec+private", "fedrec+", "random, no padding"])
def person(request: pytest.FixtureRequest, tmp_path: Path) -> Person:
    name = "fedrec+private" if "random" in request.param else request.param
    settings = (
        {"pseudo_items__rule": "random", "pseudo_items__size_classes": False} if "random" in request.param else {}
    )
    return Person(tmp_path, small_config(name, rounds=50, **settings))


def test_a_few_new_ratings_change_no_row(person: Person) -> None:
    before = person.upload()
    person.rate({"101": 5.0, "103": 1.0, "105": 3.0, "107": 3.0})
    assert person.upload() == before


def test_a_batch_enters_with_at_least_its_share_of_pseudo_items(person: Person) -> None:
    before = person.upload()
    new = set(sorted(set(range(101, 160, 2)) - before)[:6])
    person.rate({str(item): 5.0 for item in new})
    after = person.upload()
    assert before <= after, "no row disappears"
    appeared = after - before
    assert new <= appeared
    assert len(appeared - new) >= person.config.pseudo_items.settings.ratio * len(new)
    assert person.upload() == after, "and then the rows stay"


def test_ratings_taken_back_stay_as_pseudo_items(person: Person) -> None:
    before = person.upload()
    person.unrate(["0", "2", "4", "6", "8"])
    after = person.upload()
    assert before <= after
    with Store.open(person.path) as store:
        participant = load_clients(store, MODEL)[0]
    assert not {0, 2, 4, 6, 8} & set(participant.items.tolist())
    assert participant.kept is not None
    assert {0, 2, 4, 6, 8} <= set(participant.kept.items.tolist())


def test_a_rated_pseudo_item_changes_sides_without_a_trace(person: Person) -> None:
    before = person.upload()
    pseudo = sorted(before - {int(item) for item in FIRST})[:5]
    person.rate({str(item): 2.0 for item in pseudo})
    assert before <= person.upload()
    with Store.open(person.path) as store:
        participant = load_clients(store, MODEL)[0]
    assert set(pseudo) <= set(participant.items.tolist())
    assert participant.kept is not None
    assert not set(pseudo) & set(participant.kept.items.tolist())


def test_changed_ratings_wait_for_their_batch(person: Person) -> None:
    person.upload()
    person.rate({"0": 1.0})
    person.upload()
    with Store.open(person.path) as store:
        assert load_clients(store, MODEL)[0].ratings[0] == 4.0
    person.rate(dict.fromkeys(FIRST, 1.0))
    person.upload()
    with Store.open(person.path) as store:
        assert (load_clients(store, MODEL)[0].ratings == 1.0).all()


def test_many_batches_keep_rows_apart_and_ascending(tmp_path: Path) -> None:
    person = Person(tmp_path, small_config("fedrec+private", rounds=50))
    dice, before = np.random.default_rng(3), set[int]()
    for _ in range(12):
        items = dice.choice(200, 6, replace=False)
        person.rate({str(item): float(dice.integers(1, 6)) for item in items})
        rows = person.upload()
        assert before <= rows
        before = rows
    with Store.open(person.path) as store:
        participant = load_clients(store, MODEL)[0]
    assert participant.kept is not None
    assert not set(participant.items.tolist()) & set(participant.kept.items.tolist())
    assert (np.diff(participant.kept.items) > 0).all()
    assert ((participant.kept.ratings >= 1) & (participant.kept.ratings <= 5)).all()


@pytest.mark.parametrize("name", ["fedrec+private", "fedrec+", "fedrec-hf", "fedmf"])
def test_batches_of_a_silo_are_the_same_through_every_engine(name: str, tmp_path: Path) -> None:
    replies = {}
    for engine in ("reference", "fast"):
        config, path = small_config(name, engine=engine, precision="float64"), tmp_path / engine / "store.db"
        Store.create(path, RATINGS.scale, seed=1, batch=5, persons={4: "ann", 7: "bob", 9: "cy"})
        with Store.open(path) as store:
            for person in (4, 7, 9):
                store.rate({str(item): 1.0 + item % 5 for item in range(person, 60, person)}, person)
        allow_clear(path, bare=True)
        replies[engine] = [answer(_request(config, 0), path)]
        with Store.open(path) as store:
            store.rate({str(item): 2.0 for item in range(100, 120, 3)}, 7)
            for item in range(9, 54, 9):
                store.unrate(str(item), 9)
        replies[engine] += [answer(_request(config, 1), path), answer(_request(config, 2), path)]
    for one, other in zip(*replies.values(), strict=True):
        assert one.arrays["clients"].tolist() == [4, 7, 9]
        for name in ("clients", "rows", "items"):
            np.testing.assert_array_equal(one.arrays[name], other.arrays[name])
        np.testing.assert_allclose(one.arrays["delta"], other.arrays["delta"], atol=1e-12)


def _request(config: Config, number: int) -> Packet:
    state = replace(start_server(config, CATALOGUE.public), round=number)
    return encode_request(MODEL, state, config, CATALOGUE, attach=True)


def test_a_question_asked_again_gets_the_very_same_answer(tmp_path: Path) -> None:
    person = Person(tmp_path, small_config(rounds=50))
    packet = _request(person.config, 0)
    first, second = answer(packet, person.path), answer(packet, person.path)
    assert first.digest == second.digest
    with Store.open(person.path) as store:
        assert [line["again"] for line in store.sent()] == [0, 1]


def test_a_model_keeps_the_settings_it_began_with(tmp_path: Path) -> None:
    person = Person(tmp_path, small_config(rounds=50))
    person.upload()
    reply = answer(_request(small_config(rounds=50, virtual_ratings__refresh=True), 0), person.path)
    assert reply.facts["refusal"] == "settings"


def test_a_refusal_is_one_word_and_quotes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = Person(tmp_path, small_config(rounds=50))

    def broken(*_: object) -> None:
        raise ValueError("the rating 4.0 of item 2")

    monkeypatch.setattr("fedrecplus.deploy.device.round.train_locally", broken)
    reply = answer(_request(person.config, 0), person.path)
    assert reply == Packet({"version": reply.facts["version"], "refusal": "fault"}, {})


def values(person: Person) -> dict[int, float]:
    """What stands behind each row of the next upload: more than any attack can compute from uploads."""
    with Store.open(person.path) as store:
        one = load_clients(store, MODEL)[0]
    assert one.kept is not None
    rows = np.concatenate([one.items, one.kept.items])
    return dict(zip(rows.tolist(), np.concatenate([one.ratings, one.kept.ratings]).tolist(), strict=True))


def rated(person: Person) -> set[int]:
    with Store.open(person.path) as store:
        return set(load_clients(store, MODEL)[0].items.tolist())


CHANGES = {
    "new ratings": lambda person: person.rate({str(item): 2.0 for item in range(121, 133, 2)}),
    "changed ratings": lambda person: person.rate({str(item): 5.0 - item % 5 for item in range(0, 12, 2)}),
    "ratings taken back": lambda person: person.unrate([str(item) for item in range(0, 10, 2)]),
    "rated pseudo items": lambda person: person.rate(
        {str(item): 1.0 for item in sorted(values(person).keys() - rated(person))[:5]}
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("rule", ["grouped", "random", "matched", "similar"])
def test_what_two_uploads_differ_in_names_nobodys_change(change: str, rule: str, tmp_path: Path) -> None:
    """An attacker who knows both uploads, and even each row's value, takes every row that came or moved for rated."""
    changed = 0
    for number in range(4):  # a virtual rating may happen to be what the real one was: one device alone proves little
        person = Person(tmp_path / str(number), small_config(rounds=50, pseudo_items__rule=rule), secret=number)
        person.rate({item: 1.0 + int(item) % 5 for item in FIRST})
        person.upload()
        before, rated_before = values(person), rated(person)
        CHANGES[change](person)
        person.upload()
        after, ever_rated = values(person), rated_before | rated(person)
        assert before.keys() <= after.keys()
        suspects = {item for item, value in after.items() if before.get(item) != value}
        guilty = suspects & ever_rated
        share = person.config.pseudo_items.settings.ratio
        assert len(suspects - ever_rated) >= share * len(guilty), "as many rows that nobody rated came or moved"
        changed += len(guilty)
    assert changed >= 4, "the changes are in there"


def test_newcomers_bring_the_rest_of_their_groups(tmp_path: Path) -> None:
    person = Person(tmp_path, small_config(rounds=50))
    before = person.upload()
    group = groups(CATALOGUE.public, person.config.pseudo_items.settings)
    new = [item for item in range(60, 200, 9) if item not in before]
    person.rate({str(item): 3.0 for item in new})
    after = person.upload()
    touched = np.flatnonzero(np.isin(group, group[new]))
    assert set(touched.tolist()) <= after, "else a row without its group would be told from a row with it"


@pytest.mark.parametrize("rule", ["grouped", "matched"])
def test_newcomers_are_no_more_popular_than_their_company(rule: str, tmp_path: Path) -> None:
    popularity, dice = CATALOGUE.public.popularity, np.random.default_rng(1)
    wins = []
    for number in range(40):
        person = Person(tmp_path / str(number), small_config(rounds=50, pseudo_items__rule=rule), secret=number)
        before = person.upload()
        # as people do: popular items first
        new = [item for item in dice.choice(120, 14, replace=False) if item not in before][:6]
        person.rate({str(item): 3.0 for item in new})
        appeared = np.array(sorted(person.upload() - before))
        real = np.isin(appeared, new)
        more = popularity[appeared[real]][:, None] - popularity[appeared[~real]]
        wins.append(((more > 0) + 0.5 * (more == 0)).mean())
    assert abs(np.mean(wins) - 0.5) < 0.07, "of a newcomer and its company, popularity picks the newcomer by chance"


def test_eight_batches_end_near_what_one_draw_would_give(tmp_path: Path) -> None:
    """41 rows became 256 when each batch went on to the next size class."""
    for rule in ("grouped", "matched", "random"):
        config = small_config(rounds=50, pseudo_items__rule=rule)
        slow, at_once = (Person(tmp_path / rule / name, config) for name in ("slow", "at once"))
        items = [str(item) for item in np.random.default_rng(5).permutation(np.arange(24, 200))[:48]]
        slow.rate(dict.fromkeys(items[:8], 3.0))
        slow.upload()
        for start in range(8, 48, 5):
            slow.rate(dict.fromkeys(items[start : start + 5], 3.0))
            rows = len(slow.upload())
        at_once.rate(dict.fromkeys(items, 3.0))
        one_draw = len(at_once.upload())
        assert one_draw <= rows <= 1.27 * one_draw, f"{rule}: {rows} rows, {one_draw} by one draw: at most a class more"


def test_batches_bring_whole_groups_alone(tmp_path: Path) -> None:
    person, dice = Person(tmp_path, small_config(rounds=50)), np.random.default_rng(7)
    group = groups(CATALOGUE.public, person.config.pseudo_items.settings)
    sizes = np.bincount(group)
    for _ in range(6):
        rows = np.array(sorted(person.upload()))
        there = np.bincount(group[rows], minlength=len(sizes))
        assert np.isin(there, [0, *sizes]).all()
        assert (there[there > 0] == sizes[there > 0]).all(), "a group that came in part would be told for a decoy"
        person.rate({str(item): 3.0 for item in dice.choice(200, 7, replace=False)})
