"""A silo's half of a round: its people's ratings stay here, and what leaves is a sum over them.

Where the channel is ``secure`` the sum goes under masks, by stages; the server then sees the sum of all silos alone.
State between messages is in Flower's context: it lasts as long as the node. A silo that was restarted begins with
fresh user factors, which is what a device does that lost its own.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp import ClientApp

import fedrecplus as fr
from fedrec_silos.ledger import LIFETIME, book
from fedrec_silos.records import Arrays, arrays_of, broadcast_of, content, facts_of, sums_arrays
from fedrecplus.config import Config, loads
from fedrecplus.data import FileOptions, Ratings, load
from fedrecplus.data.joining import join
from fedrecplus.data.shards.write import of_clients
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.engines import Engine, PrivateState, Problem, engine_of, item_columns, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import add_all, encode, encoding_for, from_bytes, layout_of, least_persons
from fedrecplus.parts.channel.secure.client import SecureClient
from fedrecplus.protocol import Broadcast
from fedrecplus.randomness import keys, new_secret
from fedrecplus.rounds import encode_items
from fedrecplus.training.evaluation import Fallback, Predictor, ScoredBy, Scores, score

app = ClientApp()
LEAST_PEOPLE = 100
"""what goes in the clear of fewer people is nearly theirs; ``node-config: least-people=N`` says otherwise"""
LEAST_SILOS = 3
"""of two, each knows the other's sum"""
Answer = tuple[Arrays, dict[str, Any]]


@app.train()
def train(message: Message, context: Context) -> Message:
    """One stage of a round."""
    stage = str(facts_of(message.content)["stage"])
    return _reply(message, context, _STAGES[stage])


@app.query()
def begin(message: Message, context: Context) -> Message:
    """How many people this silo speaks for. The task comes with the question, and stays for the run."""
    context.state["task"] = message.content.array_records["arrays"]
    context.state["terms"] = message.content.config_records["facts"]
    context.state.pop("private", None)
    return _reply(message, context, lambda silo, *_: ({}, {"people": len(silo.problem.able)}))


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Errors on the ratings that this silo holds back, added up over its people."""
    return _reply(message, context, _errors)


class Silo:
    """What a node knows while it answers: the task, its own ratings, and its people's private state."""

    def __init__(self, context: Context) -> None:
        if "task" not in context.state:
            raise UserError("this node has lost its state, and the task with it", "the server asks it to join again")
        self.context = context
        terms = dict(context.state.config_records["terms"])
        catalogue = ItemCatalogue.of_arrays({n: a.numpy() for n, a in context.state.array_records["task"].items()})
        self.people: int = int(terms.get("people", 0))
        config = replace(loads(str(terms["config"]), "the server's task", ()), engine="fast")
        self.config: Config = config
        if config.privacy.rule != "none" and (ratings := _text(context, "ratings")):
            lifetime = float(context.node_config.get("lifetime-epsilon", LIFETIME))
            book(Path(f"{ratings}.spent"), context.run_id, config.privacy.settings.epsilon, lifetime)
        dataset, fold = str(terms["dataset"]), int(terms["fold"])
        self.training, self.test = share_of(dataset, fold, context) if dataset else files_of(context, catalogue)
        secrets = keys(new_secret(), np.arange(self.training.clients))
        self.problem: Problem = prepare(self.training, config, catalogue.public, secrets)
        self.engine: Engine = engine_of(config)

    def broadcast(self, arrays: Arrays, round_number: int) -> Broadcast:
        """What the server says in a round, with the items encoded where some part looks at that."""
        told, public = broadcast_of(arrays, round_number, self.problem.public), self.problem.public
        return replace(told, features=encode_items(told.V, public, self.config))

    @property
    def private(self) -> PrivateState:
        """Its people's private state, as the last round left it."""
        kept = self.context.state.array_records.get("private")
        if kept is None:
            return self.engine.start(self.problem).private
        return PrivateState(**{name: array.numpy() for name, array in kept.items()})

    def keep(self, private: PrivateState) -> None:
        """Keep it for the next round."""
        tables = {name: np.asarray(table) for name, table in vars(private).items()}
        self.context.state["private"] = content(tables).array_records["arrays"]

    def check_people(self, people: int, what: str) -> None:
        """Refuse to send what is of few people, whatever settings or items made them few."""
        least = int(self.context.node_config.get("least-people", LEAST_PEOPLE))
        if people < least:
            raise UserError(
                f"{people} people are too few to send {what} in the clear, least-people = {least}",
                "take an algorithm under secure sums, such as fedrec+secure",
            )


def _sums(silo: Silo, arrays: Arrays, facts: dict[str, Any]) -> Answer:
    """A sum over this silo's people that the server reads."""
    if silo.config.channel.rule == "secure":
        raise UserError("sums of this task go under masks", "ask for the stages of a secure sum")
    told = silo.broadcast(arrays, int(facts["round"]))
    asked = silo.problem.asked(told.round)  # a share of its people where the settings draw cohorts
    silo.check_people(len(asked), "their sum")
    sums, private, _ = silo.engine.sums(silo.problem, silo.private, told, asked)
    silo.keep(private)
    return sums_arrays(sums), {}


def _advertise(silo: Silo, arrays: Arrays, facts: dict[str, Any]) -> Answer:
    """Train, add the people's vectors up in the ring, and offer fresh keys for the masks."""
    told, config = silo.broadcast(arrays, int(facts["round"])), silo.config
    people, least = int(facts["people"]), least_persons(told.V.shape[1])
    if people * config.cohort.fraction < least and not config.channel.demonstration:
        raise UserError(
            f"sums of {told.V.shape[1]} columns over fewer than {least} people can be taken apart",
            "ask more silos, or set channel.demonstration=true where nothing is at stake",
        )
    uploads, private = silo.engine.uploads(silo.problem, silo.private, told, silo.problem.asked(told.round))
    silo.keep(private)
    settings = config.channel.settings
    layout = layout_of(told.V.shape, config.model.statistic_size, settings)
    encoding = encoding_for(layout, told.public, people, settings)
    vector = add_all((encode(upload, encoding) for upload in uploads), layout)
    silos = max(int(facts["silos"]), LEAST_SILOS)
    client = SecureClient(int(facts["number"]), bytes(facts["session"]), layout, least_cohort=silos)
    return _answered(silo, client, client.advertise(), vector.to_bytes())


def _share(silo: Silo, arrays: Arrays, facts: dict[str, Any]) -> Answer:
    client, vector = _begun(silo)
    return _answered(silo, client, client.share(bytes(facts["message"])), vector)


def _mask(silo: Silo, arrays: Arrays, facts: dict[str, Any]) -> Answer:
    client, vector = _begun(silo)
    answer = client.mask(bytes(facts["message"]), from_bytes(vector, client.layout))
    return _answered(silo, client, answer, vector)


def _reveal(silo: Silo, arrays: Arrays, facts: dict[str, Any]) -> Answer:
    client, _ = _begun(silo)
    answer = client.reveal(bytes(facts["message"]))
    silo.context.state.pop("secure")  # a sum is unmasked once
    return {}, {"message": answer}


_STAGES = {"sums": _sums, "advertise": _advertise, "share": _share, "mask": _mask, "reveal": _reveal}


def _errors(silo: Silo, arrays: Arrays, facts: dict[str, Any]) -> Answer:
    """What the errors on held-back ratings add up to; predictions are made here."""
    if silo.test is None or len(silo.test) == 0:
        return {}, asdict(Scores())
    silo.check_people(np.count_nonzero(np.diff(silo.test.indptr)), "what errors on their ratings add up to")
    problem, V = silo.problem, arrays["V"]
    X, scored_by = item_columns(problem, V), ScoredBy.of(silo.config.model, arrays["dense"])
    predictor = Predictor(silo.engine.user_weights(problem, silo.private, X), X, scored_by=scored_by)
    fallback = Fallback.of(silo.training, silo.config, problem.public)
    return {}, asdict(score(silo.test, predictor.predict, fallback))


def _reply(message: Message, context: Context, answer: Any) -> Message:
    """The answer, or why there is none, in words."""
    try:
        arrays, facts = answer(Silo(context), arrays_of(message.content), facts_of(message.content))
    except UserError as error:
        arrays, facts = {}, {"error": str(error)}
    return Message(content(arrays, **facts), reply_to=message)


def _begun(silo: Silo) -> tuple[SecureClient, bytes]:
    """The secure sum that this node is in, and its vector."""
    if "secure" not in silo.context.state:
        raise UserError("this node is in no secure sum", "it was restarted; the next round begins anew")
    kept = silo.context.state.config_records["secure"]
    return SecureClient.of_bytes(bytes(kept["state"])), bytes(kept["vector"])


def _answered(silo: Silo, client: SecureClient, answer: bytes, vector: bytes) -> Answer:
    silo.context.state["secure"] = ConfigRecord({"state": client.to_bytes(), "vector": vector})
    return {}, {"message": answer}


def _text(context: Context, name: str) -> str:
    return str(context.node_config.get(name, ""))


def share_of(dataset: str, fold: int, context: Context) -> tuple[Ratings, Ratings | None]:
    """In a simulation: this silo's share of a data set's people, their ratings of a fold held back."""
    part, parts = int(context.node_config["partition-id"]), int(context.node_config["num-partitions"])
    training, test = fr.folds(load(dataset))[fold]
    first, end = np.linspace(0, training.clients, parts + 1).astype(int)[part : part + 2]
    return of_clients(training, first, end), of_clients(test, first, end)


def files_of(context: Context, catalogue: ItemCatalogue) -> tuple[Ratings, Ratings | None]:
    """This silo's own files, over the task's items and on its scale."""
    file, test = _text(context, "ratings"), _text(context, "test")
    if not file:
        raise UserError("this node has no ratings", "start it with --node-config 'ratings=\"/path/to/ratings.csv\"'")
    training = over_items(load(file, options=FileOptions(scale=catalogue.scale)), catalogue)
    return join(training, load(test, like=training)) if test else (training, None)


def over_items(ratings: Ratings, catalogue: ItemCatalogue) -> Ratings:
    """The ratings of items that the catalogue lists, by its numbers."""
    number = np.array([catalogue.numbers.get(str(item), -1) for item in ratings.item_ids.tolist()])
    ratings = ratings.where(number[ratings.items] >= 0)
    items = number[ratings.items]
    order = np.lexsort((items, ratings.client_of_rating))
    ids = np.array(catalogue.ids, dtype=str)
    return replace(
        ratings, items=items[order].astype(np.int32), codes=ratings.codes[order], item_ids=ids, catalogue=None,
        timestamps=None, order=None, folds=None, listed=True,
    )  # fmt: skip
