"""What a browser computes as a device, beside Python: settings, budgets, scales of noised sums, the noise itself."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedrecplus.config import Config, change, preset, presets
from fedrecplus.deploy.device.statistics import statistics_upload
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.log import LogHead, leaf_hash, round_leaf
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.questions import object_digest
from fedrecplus.deploy.wire.request import encode_request, told_tables
from fedrecplus.deploy.wire.ring import sum_terms
from fedrecplus.deploy.wire.settings import fixed_settings, told_text
from fedrecplus.deploy.wire.steps import as_told, first_state, grown_state, next_state, sum_arrays, sum_digest
from fedrecplus.deploy.wire.task import Task
from fedrecplus.parts.channel import Grouping, encode, expected_in, joined, never_summed
from fedrecplus.parts.privacy import Release, epsilon_of
from fedrecplus.protocol import Sums, Upload
from fedrecplus.rounds import ServerState, start_server
from fedrecplus.web.page.settings import known_settings
from tests.deploy.browsers import PUBLIC, demonstration
from tests.page.in_node import run_in_node

SETTINGS = Path(__file__).parents[2] / "page" / "src" / "wire" / "settings.json"
CATALOGUE = ItemCatalogue.published(PUBLIC)
TASK = "00c0ffee"
NOISED = {"privacy__rule": "distributed", "aggregation__rule": "uniform", "privacy__clip": 4.0}


def test_the_page_knows_the_settings_of_today() -> None:
    assert json.loads(SETTINGS.read_text()) == known_settings(), "python -m fedrecplus.web.page.settings > that file"


def test_settings_are_named_alike(tmp_path: Path) -> None:
    configs = [preset(name) for name in presets()]
    for path, value in {"seed": 2**60 + 1, "statistics.delta": 1.25e-7, "server.cooldown": 1 / 3}.items():
        configs.append(change(preset("fedmf"), path, value))
    texts = [told_text(config) for config in configs]
    script = "print(given.map((text) => device.fixedSettings(device.configOf(text))));"
    assert run_in_node(tmp_path, script, texts) == [fixed_settings(config) for config in configs]


def test_budgets_are_judged_alike(tmp_path: Path) -> None:
    cases = [([z], delta) for z in (0.4, 1.0, 7.5, 120.0) for delta in (1e-3, 1e-5, 1e-9)] + [([2.0, 3.0, 5.0], 1e-5)]
    script = "print(given.map(([multipliers, delta]) => device.epsilonOf(multipliers, delta)));"
    judged = [epsilon_of([Release(z) for z in multipliers], delta, "RDP") for multipliers, delta in cases]
    np.testing.assert_allclose(run_in_node(tmp_path, script, cases), judged, rtol=1e-9)


def text_of(packet: Packet) -> str:
    """A packet's bytes, for JSON."""
    return base64.b64encode(packet.to_bytes()).decode()


def request_of(state: ServerState, config: Config, catalogue: ItemCatalogue = CATALOGUE, **more: Any) -> str:
    """What a server asks, with all that is attached."""
    return text_of(encode_request(TASK, state, config, catalogue, attach=True, **more))


def packet_of(config: Config, round_number: int) -> str:
    packet = encode_request(TASK, start_server(config, CATALOGUE.public), config, CATALOGUE, attach=True)
    return text_of(Packet({**packet.facts, "round": round_number}, packet.arrays))


SCALES = """
print(given.map(([content, persons, nodes]) => {
  const request = asked(content);
  const terms = device.termsOf(request.config, request.attached, request.round, request.tables.V.shape[1]);
  const encoding = device.encodingOf(terms, persons, nodes);
  const vector = device.zeros(terms.layout);
  const stream = (size) => crypto.getRandomValues(new Uint8Array(size));
  device.addShare(terms, vector, encoding, nodes, device.uniformOf(stream));
  const signed = Array.from(new Int32Array(vector.moves.buffer));
  const beside = [encoding.weightScale, encoding.statisticScale];
  return { scales: Array.from(encoding.scales), beside, noise: signed };
}));
"""


@pytest.mark.parametrize("source", ["public", "secure-sum"])
def test_noised_sums_are_scaled_alike_and_noise_is_as_wide_as_it_must_be(tmp_path: Path, source: str) -> None:
    config = demonstration(4, **NOISED, statistics__source=source, privacy__epsilon=6.0)
    rounds = [0, 3] if source == "public" else [-1, 2]
    cases = [(number, persons, nodes) for number in rounds for persons, nodes in ((12, 12), (300, 250))]
    found = run_in_node(tmp_path, SCALES, [[packet_of(config, n), persons, nodes] for n, persons, nodes in cases])
    for (number, persons, nodes), browser in zip(cases, found, strict=True):
        terms = sum_terms(config, CATALOGUE.public, (len(CATALOGUE.ids), 7), number)
        encoding = terms.encoding(persons, nodes)
        assert browser["scales"] == encoding.scales.tolist()
        assert browser["beside"] == [encoding.weight_scale, encoding.statistic_scale]
        kept, noise = encoding.scales > 0, np.array(browser["noise"]).reshape(len(CATALOGUE.ids), -1)
        assert not noise[~kept].any(), "rows that few rated are left out"
        noise = noise[kept] / encoding.scales[kept, None]
        share = terms.share(encoding, nodes)
        assert noise.std() == pytest.approx(share, rel=6 / np.sqrt(2 * noise.size))


STEPS = """
print(given.map(([content, told, round]) => {
  const array = ([shape, data]) => ({ rows: shape[0], columns: shape[1], data: Float64Array.from(data) });
  const request = asked(content);
  const { config, attached } = request;
  const [weights, statistic] = [told.weights, told.statistic].map((data) => Float64Array.from(data));
  const sums = { ...told, total: array(told.total), weights, statistic };
  const first = device.firstState(config, attached.known);
  const second = device.nextState(first, [sums], attached, config);
  const moments = device.momentsOf(second.lastStep, 0, config);
  const missed = { ...second, moments: moments.length < device.momentCount(config) ? second.moments : moments };
  const [third, other] = [second, missed].map((state) => device.nextState(state, [sums], attached, config));
  return [first, second, third, other].map(({ V }) => Array.from(V.data));
}));
"""


def test_the_server_s_step_is_python_s(tmp_path: Path) -> None:
    """The start of a seed, and two steps, by every model and optimizer; the rounds cool down."""
    dice, cases, expected = np.random.default_rng(1), [], []
    for model in ("joint", "ials", "reconstruction"):
        for optimizer in ("sgd", "momentum", "adam"):
            more = {"server__cooldown": 0.9, "seed": 2**60 + 1, "server_optimizer__learning_rate": 0.7}
            small = {} if model == "joint" else {"model__rule": model}
            config = demonstration(3, **{**more, **small}, server_optimizer__rule=optimizer)
            first = first_state(config, CATALOGUE.public)
            columns = first.V.shape[1]
            u = dice.normal(size=(30, columns))[:, -(config.model.values.get("interaction_factors") or 1) :]
            statistic = (u.T @ u)[np.triu_indices(u.shape[1])] if config.model.statistic_size else np.zeros(0)
            weights, noise = dice.uniform(0, 30, len(first.V)), 0.3 * (model != "ials")
            sums = Sums(dice.normal(size=first.V.shape), weights, 25.0, 30, statistic=statistic, noise=noise)
            second = next_state(first, [sums], CATALOGUE.public, config)
            third = next_state(second, [sums], CATALOGUE.public, config)
            expected.append([state.V.ravel().tolist() for state in (first, second, third, third)])
            told = {"total": [sums.total.shape, sums.total.ravel().tolist()], "weights": weights.tolist(),
                    "statistic": statistic.tolist(), "overall": 25.0, "clients": 30, "noise": noise}  # fmt: skip
            cases.append([packet_of(config, 0), told, 0])
    for found, wanted in zip(run_in_node(tmp_path, STEPS, cases), expected, strict=True):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


GROUPS = """
const table = ([shape, data]) => ({ rows: shape[0], columns: shape[1], data: Float64Array.from(data) });
const floats = (data) => Float64Array.from(data.map((value) => value ?? NaN));
const request = asked(given.packet);
const { config, attached } = request;
const sums = given.groups.map((one) => {
  const [weights, statistic] = [floats(one.weights), floats(one.statistic)];
  return { ...one, total: table(one.total), weights, statistic };
});
const numbers = given.numbers.map(BigInt);
const name = new Uint8Array(Buffer.from(given.name, 'base64'));
const groups = numbers.map((one) => [...device.groupOf({ count: given.count, name }, one, numbers)].map(String).sort());
const first = device.firstState(config, attached.known);
print({ groups, V: Array.from(device.nextState(first, sums, attached, config).V.data) });
"""


@pytest.mark.parametrize("spoiled", ["nothing", "total", "statistic", "a row", "persons", "weight"])
def test_groups_are_drawn_and_joined_alike(tmp_path: Path, spoiled: str) -> None:
    dice, config, count = np.random.default_rng(4), demonstration(2), 5
    state, groups = first_state(config, CATALOGUE.public), []
    for _ in range(count):
        u = dice.normal(size=(12, 3))
        statistic, weights = (u.T @ u)[np.triu_indices(3)], dice.uniform(0, 12, len(state.V))
        groups.append(Sums(dice.normal(size=state.V.shape), weights, 12.0, 12, statistic=statistic))
    row = np.where(np.arange(len(state.V))[:, None] == 3, 2.5, groups[2].total)
    spoils = {
        "nothing": groups[2],
        "total": replace(groups[2], total=9 * groups[2].total),
        "statistic": replace(groups[2], statistic=9 * groups[2].statistic),
        "a row": replace(groups[2], total=row),
        "persons": replace(groups[2], clients=10**6),
        "weight": replace(groups[2], overall=-3.0),
    }
    groups[2] = spoils[spoiled]
    numbers = sorted(dice.integers(0, 2**62, 17).tolist())
    grouping = Grouping(count, b"a task and a round")
    told = [{"total": [one.total.shape, one.total.ravel().tolist()], "weights": one.weights.tolist(),
             "overall": one.overall, "clients": one.clients, "statistic": one.statistic.tolist(), "noise": 0.0}
            for one in groups]  # fmt: skip
    found = run_in_node(tmp_path, GROUPS, {
        "packet": packet_of(config, 0), "groups": told, "numbers": [str(one) for one in numbers], "count": count,
        "name": base64.b64encode(grouping.name).decode(),
    })  # fmt: skip
    expected = next_state(state, groups, CATALOGUE.public, config).V
    np.testing.assert_allclose(found["V"], expected.ravel(), rtol=1e-8, atol=1e-10)
    drawn = [sorted(str(one) for one in grouping.group_of(number, numbers)) for number in numbers]
    assert found["groups"] == drawn
    assert (joined(groups, expected_in(1, CATALOGUE.public))[1] == [2]) == (spoiled not in ("nothing", "a row"))


GROWN = """
print(given.map(([content, count, task]) => {
  const { attached, config, model } = asked(content);
  const first = device.firstItems(attached, count);
  const judge = () => { device.checkTask(device.taskOf(task), model, config, 0, attached); return true; };
  return [first.digest, first.ids.length, orRefusal(judge)];
}));
"""


def test_items_that_were_added_are_judged_alike(tmp_path: Path) -> None:
    """Which catalogue it was, and whether the task has room for the rest."""
    config, size = demonstration(3), len(CATALOGUE.ids) - 5
    titles = tuple(f'„{name}" \\ 🎬' for name in CATALOGUE.ids)
    bare = replace(CATALOGUE.public, average=np.zeros(0), years=np.zeros(0, np.int64))
    rare = replace(CATALOGUE.public, popularity=np.append(CATALOGUE.public.popularity[:-1], 10**6))
    swapped = CATALOGUE.public.of_items(np.roll(np.arange(size + 5), 1))
    odd = replace(
        CATALOGUE.public, content=np.vstack([CATALOGUE.public.content[:-1], 50.0 + CATALOGUE.public.content[-1]])
    )
    old = replace(CATALOGUE.public, years=np.append(CATALOGUE.public.years[:-1], 1066))
    undated = replace(CATALOGUE.public, years=np.append(CATALOGUE.public.years[:-1], 0))
    cases, expected = [], []
    for catalogue, growth in [
        (CATALOGUE, 0.5), (CATALOGUE, 0.0), (replace(CATALOGUE, titles=titles), 0.5),
        (replace(CATALOGUE, titles=()), 0.5),
        (replace(CATALOGUE, public=bare), 0.5), (replace(CATALOGUE, public=rare), 0.5),
        (replace(CATALOGUE, public=odd), 0.5), (replace(CATALOGUE, public=old), 0.5),
        (replace(CATALOGUE, public=undated), 0.5),
    ]:  # fmt: skip
        task = Task.of(TASK, config, catalogue.first(size), growth=growth)
        for told in (catalogue, replace(catalogue, public=swapped)):
            cases.append([request_of(start_server(config, told.public), config, told, task=task), size, task.text])
            expected.append([told.first(size).digest, size, judged(task, config, told)])
    assert {verdict for _, _, verdict in expected} == {True, "task"}
    assert run_in_node(tmp_path, GROWN, cases) == expected


OTHER_SUMS = """
print(await Promise.all(given.map(async (packets) => {
  const [first, second] = packets.map(asked);
  const kept = await device.checkedState(null, first, first.attached, null);
  const judged = device.checkedState(kept, second, second.attached, null);
  return judged.then(({ round }) => round, (refused) => refused.kind);
})));
"""


def test_a_sum_of_other_items_lets_no_table_through(tmp_path: Path) -> None:
    """A browser that can't step from a told sum would take any V: the server could tell one that is a row short."""
    config, size = demonstration(3), len(CATALOGUE.ids) - 5
    few, V = CATALOGUE.first(size), np.full((len(CATALOGUE.ids), 7), 0.5)
    task = Task.of(TASK, config, few, growth=0.5)
    begun = start_server(config, few.public)
    statistic = np.zeros(config.model.statistic_size)

    def told(state: ServerState, catalogue: ItemCatalogue, rows: int = 0) -> str:
        sums = [Sums(np.zeros((rows, 7)), np.zeros(rows), 12.0, 12, statistic=statistic)] if rows else None
        return request_of(state, config, catalogue, task=task, sums=sums)

    def made_up(rows: int, items: ItemCatalogue) -> str:
        return told(replace(begun, round=1, V=V[: len(items.ids)], last_step=0 * V[: len(items.ids)]), items, rows)

    honest = next_state(
        first_state(config, few.public),
        [Sums(np.zeros((size, 7)), np.zeros(size), 12.0, 12, statistic=statistic)], few.public, config,
    )  # fmt: skip
    start = told(begun, few)
    cases = [
        [start, told(honest, few, size)],
        [start, made_up(size, few)],
        [start, made_up(size - 1, few)],
        [start, made_up(size + 1, CATALOGUE)],
    ]
    assert run_in_node(tmp_path, OTHER_SUMS, cases) == [1, "task", "task", "task"]


def test_a_false_sum_moves_no_row_of_few_raters_in_a_browser(tmp_path: Path) -> None:
    """As in Python (tests/hostile/test_checked_tables.py): the table is the step of the sum, and the sum is false."""
    counts = CATALOGUE.public.popularity
    config = change(demonstration(3), "channel.fewest_contributors", int(np.median(counts)))
    often, rare = (np.zeros((len(counts), 7)) for _ in range(2))
    often[int(counts.argmax())] = 40.0
    rare[int(counts.argmin())] = 40.0
    task, begun = Task.of(TASK, config, CATALOGUE), first_state(config, CATALOGUE.public)

    def told(total: Any, statistic: float) -> list[str]:
        sums = [Sums(total, np.full(len(counts), 2.0), 12.0, 12, statistic=np.full(6, statistic))]
        moved = next_state(begun, sums, CATALOGUE.public, config)
        return [request_of(state, config, task=task, sums=one) for state, one in ((begun, None), (moved, sums))]

    cases = [told(often, 1.0), told(rare, 1.0), told(often, 1e6)]
    assert run_in_node(tmp_path, OTHER_SUMS, cases) == [1, "task", "task"]


def test_a_browser_takes_no_second_table_of_a_round_that_was_passed(tmp_path: Path) -> None:
    config, begun = demonstration(4), start_server(demonstration(4), CATALOGUE.public)

    def told(number: int) -> str:
        state = replace(begun, round=number, V=begun.V + 0.5 * number, last_step=0 * begun.V)
        return request_of(state, config)

    assert run_in_node(tmp_path, OTHER_SUMS, [[told(2), told(2)], [told(2), told(1)]]) == [2, "task"]


MISSED = """
const requests = given.packets.map(asked);
const objects = new Map(given.sums.map(({ digest, content }) => [digest, bytesOf(content)]));
const object = async (digest) => objects.get(digest);
const past = (sums) => ({ log: async () => ({ entries: given.entries, sums }), object });
const names = ['', ...given.sums.map(({ digest }) => digest)];
names.splice(1, 0, '');
const swapped = names.map((name, place) => (place === 2 ? names[3] : name));
const state = (kept, request, sums) =>
  device.checkedState(kept, request, request.attached, past(sums)).catch((refused) => refused.kind);
const last = requests.at(-1);
const late = await state(null, last, names);
const lies = [await state(null, last, swapped), await state(null, last, names.map(() => ''))];
let kept = null;
for (const request of requests) kept = await state(kept, request, []);
const numbers = ({ data }) => Array.from(data);
print({ late: numbers(late.V), moments: late.moments.map(numbers), lies, there: numbers(kept.V) });
"""


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_missed_rounds_and_new_rows_are_made_as_by_python(tmp_path: Path, optimizer: str) -> None:
    """Three rounds, between the first two of which items come: one browser was there, another comes after them."""
    config = demonstration(4, precision="float32", server_optimizer__rule=optimizer)
    few, key, dice = CATALOGUE.first(len(CATALOGUE.ids) - 5), Ed25519PrivateKey.generate(), np.random.default_rng(6)
    task = Task.of(TASK, config, few, log=key.public_key().public_bytes_raw().hex(), growth=0.5, kept=4)
    state, groups, entries, packets, kept = first_state(config, few.public), None, [task.text], [], []
    for number in range(4):
        items = CATALOGUE if number > 1 else few
        state = grown_state(state, items.public, config)
        tables = told_tables(state, config)
        summed = "" if groups is None else sum_digest(groups, config)
        entries.append(round_leaf(number, Packet({}, tables).digest, summed, items.digest, 12, 0.0))
        if groups is not None:
            content = Packet({}, sum_arrays(groups, config)).to_bytes()
            kept.append({"digest": object_digest(content), "content": base64.b64encode(content).decode()})
        head = LogHead.signed(task.digest, [leaf_hash(entry) for entry in entries], key)
        packets.append(request_of(state, config, items, task=task, sums=groups, leaf=entries[-1], log=head))
        u = dice.normal(size=(12, 3))
        sums = Sums(
            dice.normal(size=state.V.shape) * ~never_summed(items.public, config.channel.settings)[:, None],
            12 * dice.uniform(size=len(state.V)), 12.0, 12,
            statistic=(u.T @ u)[np.triu_indices(3)],
        )  # fmt: skip
        groups = [as_told(sums, config)]
        before, state = state, next_state(state, groups, items.public, config)
    found = run_in_node(tmp_path, MISSED, {"packets": packets, "entries": entries, "sums": kept})
    for V in (found["late"], found["there"]):
        np.testing.assert_allclose(V, before.V.ravel(), rtol=1e-6, atol=1e-7)
    for one, other in zip(found["moments"], before.moments, strict=True):
        np.testing.assert_allclose(one, other.ravel(), rtol=1e-5, atol=1e-6)
    assert found["lies"] == ["task", "task"]


CONTINUED = """
const [first, ...later] = given.map(asked);
const items = first.attached.ids.length;
const kept = { settings: device.fixedSettings(first.config), catalogue: first.catalogue, items, round: 0, state: null };
print(later.map((one) => orRefusal(() => { device.checkUnchanged(kept, one, one.attached); return true; })));
"""


def test_a_model_of_long_ago_goes_on_with_its_own_items_alone(tmp_path: Path) -> None:
    """Its table and catalogue are gone: it knows the items' digest, and how many they were."""
    config, size = demonstration(3), len(CATALOGUE.ids) - 5
    swapped = replace(CATALOGUE, public=CATALOGUE.public.of_items(np.roll(np.arange(size + 5), 1)))
    catalogues = (CATALOGUE.first(size), CATALOGUE, swapped)
    packets = [request_of(start_server(config, one.public), config, one) for one in catalogues]
    assert run_in_node(tmp_path, CONTINUED, packets) == [True, "settings"]


OFFERED = """
const policy = { ...device.POLICY, demonstration: true };
print(given.map(asked).map((offer) => orRefusal(() => {
  device.checkOffer(offer, offer.attached, policy);
  return true;
})));
"""


def test_what_a_person_reads_is_the_task_that_the_person_agrees_to(tmp_path: Path) -> None:
    """The page shows the offer's settings and keeps the task's digest: the one must be what the other says."""
    few = demonstration(3, **NOISED, privacy__epsilon=1.0, privacy__devices=9)
    bare, other = demonstration(3), replace(CATALOGUE, titles=tuple(f"film {number}" for number in range(40)))
    offers = (
        (few, Task.of(TASK, few, CATALOGUE, rounds=9)), (few, Task.of(TASK, bare, CATALOGUE)),
        (few, Task.of(TASK, few, other)), (few, Task.of("c0ffee00", few, CATALOGUE)),
        (change(few, "privacy.devices", 0), None),
    )  # fmt: skip
    packets = [request_of(start_server(own, CATALOGUE.public), own, task=task) for own, task in offers]
    assert run_in_node(tmp_path, OFFERED, packets) == [True, "task", "task", "task", "policy"]


TASKS = "print(given.map((text) => orRefusal(() => device.taskOf(text).text === text)));"


def test_a_task_of_less_than_nothing_is_none_in_a_browser(tmp_path: Path) -> None:
    task = Task.of(TASK, demonstration(3), CATALOGUE)
    lies = [{"kept": -1}, {"first": -2}, {"growth": -0.5}, {"rounds": 0}, {"size": 1.5}, {"kept": "none"}]
    texts = [task.text, *(json.dumps({**json.loads(task.text), **lie}) for lie in lies)]
    assert run_in_node(tmp_path, TASKS, texts) == [True, *["request"] * len(lies)]


def judged(task: Task, config: Config, catalogue: ItemCatalogue) -> bool | str:
    try:
        task.check(TASK, config, 0, catalogue)
    except Refusal as refused:
        return refused.kind
    return True


CLIPPED = """
print(given.map(([content, delta, statistic, clipped]) => {
  const request = asked(content);
  const terms = device.termsOf(request.config, request.attached, request.round, 7);
  const data = Float64Array.from(delta.map((value) => value ?? NaN));
  const table = { rows: 2, columns: 7, data };
  const beside = { weight: null, statistic: Float64Array.from(statistic), clipped };
  const upload = { items: Int32Array.of(3, 5), delta: table, ...beside };
  return Array.from(device.encode(upload, device.encodingOf(terms, 300, 250), 0n).weights);
}));
"""


def test_whoever_is_clipped_is_counted_alike(tmp_path: Path) -> None:
    dice, cases, expected = np.random.default_rng(2), [], []
    plain, noised = demonstration(4), demonstration(4, **NOISED, privacy__epsilon=6.0)
    for config, most, beside, clipped in [
        (plain, 1.0, 1.0, False),
        (plain, 30.0, 1.0, False),
        (plain, 1.0, 90.0, False),
        (plain, np.nan, 1.0, False),
        (noised, 0.1, 0.1, True),
        (noised, 0.1, 0.1, False),
    ]:
        delta = dice.uniform(-1, 1, (2, 7))
        delta[1, 3] = most
        upload = Upload(0, np.array([3, 5]), delta, statistic=beside * np.ones(6), clipped=clipped)
        encoding = sum_terms(config, CATALOGUE.public, (len(CATALOGUE.ids), 7), 1).encoding(300, 250)
        expected.append(encode(upload, encoding, 0).weights.tolist())
        told = [None if np.isnan(one) else one for one in delta.ravel().tolist()]
        cases.append([packet_of(config, 1), told, upload.statistic.tolist(), clipped])
    assert [bool(weights[-3]) for weights in expected] == [False, True, True, True, True, False]
    assert run_in_node(tmp_path, CLIPPED, cases) == expected


NOBODY = """
print(given.map((content) => {
  const request = asked(content);
  const terms = device.termsOf(request.config, request.attached, request.round, 7);
  const { moves, weights } = device.encode(device.nothing(terms), device.encodingOf(terms, 300, 250), 0n);
  return [moves.some(Boolean), ...weights];
}));
"""


def test_who_has_rated_nothing_is_counted_alike(tmp_path: Path) -> None:
    configs, expected = [demonstration(4), demonstration(4, **NOISED, privacy__epsilon=6.0)], []
    for config, weight in zip(configs, (None, 0.0), strict=True):
        upload = Upload(0, np.zeros(0, np.int64), np.zeros((0, 7)), weight)
        encoding = sum_terms(config, CATALOGUE.public, (len(CATALOGUE.ids), 7), 1).encoding(300, 250)
        expected.append([False, *encode(upload, encoding, 0).weights.tolist()])
    assert [weights[-1] for weights in expected] == [1, 1], "a person"
    assert run_in_node(tmp_path, NOBODY, [packet_of(config, 1) for config in configs]) == expected


def test_what_a_page_cannot_run_it_refuses_in_words(tmp_path: Path) -> None:
    others = [
        {"model__rule": "mf"},
        {"channel__rows": "rows"},
        {"aggregation__rule": "size"},
        {"model__interaction_start": "features"},
        {"encoder__rule": "public"},
    ]
    packets = [packet_of(demonstration(2, **other), 0) for other in others]
    script = "print(given.map((one) => { try { asked(one); return ''; } catch (error) { return error.message; } }));"
    refused = ("model.rule=mf", "channel.rows=rows", "aggregation.rule=size", "model.interaction_start=features")
    words = [f"rule: this page can't take part with {setting}; a node of fedrecplus can" for setting in refused]
    assert run_in_node(tmp_path, script, packets) == [*words, ""]


def test_statistics_of_a_person_are_counted_alike(tmp_path: Path) -> None:
    items, ratings = np.array([1, 4, 7, 30]), np.array([5.0, 3.0, 1.0, 4.0])
    script = """
    const [items, ratings] = [Int32Array.from(given.items), Float64Array.from(given.ratings)];
    const { delta, statistic } = device.statisticsOf(items, ratings, given.cap);
    print([Array.from(delta.data), Array.from(statistic)]);
    """
    for cap in (2, 50):
        given: dict[str, Any] = {"items": items.tolist(), "ratings": ratings.tolist(), "cap": cap}
        delta, statistic = run_in_node(tmp_path, script, given)
        by_python = statistics_upload(0, items, ratings, 40, cap)
        np.testing.assert_allclose(np.array(delta).reshape(-1, 2), by_python.delta, rtol=1e-12)
        np.testing.assert_allclose(statistic, by_python.statistic, rtol=1e-12)
