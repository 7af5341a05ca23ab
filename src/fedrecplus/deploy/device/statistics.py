"""A node's part in the statistics: each person's counts and residuals, for one secure sum before the first round."""

from __future__ import annotations

import logging

from fedrecplus.deploy.device.batching import Items, Values, rated_items
from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.device.uploads import uploads_packet
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import Request
from fedrecplus.deploy.wire.ring import deployed_budget
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import contribution
from fedrecplus.protocol import Upload

log = logging.getLogger("fedrecplus")


def check_statistics(store: Store, request: Request) -> None:
    """Refuse a sum that no noise would come to, and one after the model's first round: figures are never refreshed."""
    if not request.session or store.value("SELECT round FROM models WHERE model = ?", request.model) is not None:
        raise Refusal("policy", "statistics are summed before the first round, in a secure sum, and never again")
    try:
        deployed_budget(request.config)
    except UserError as error:
        raise Refusal("policy", error.for_shell) from None


def statistics_uploads(store: Store, request: Request, catalogue: ItemCatalogue) -> Packet:
    """Everybody's contributions, computed and kept; they leave in a secure sum alone."""
    items, uploads, cap = len(catalogue.ids), [], deployed_budget(request.config)[0].cap
    for person, ratings in store.ratings().items():
        rated, values = rated_items(ratings, catalogue)
        if len(rated):
            number = store.wire_number(request.model, person)
            uploads.append(statistics_upload(number, rated, values, items, cap))
    if not uploads:
        log.warning("none of the ratings here is of an item that the server knows: nothing to count")
    reply = uploads_packet(uploads, 2)
    with store.changing():
        store.put("answers", [(request.model, request.round, request.digest, reply.to_bytes())])
    return reply


def statistics_upload(client: int, items: Items, ratings: Values, item_count: int, cap: int) -> Upload:
    """One person's contribution: a row for each rated item, counts and residuals, and two numbers beside them."""
    vector = contribution(items, ratings, item_count, cap)
    rows = vector[:-2].reshape(2, item_count).T[items]
    return Upload(client, items, rows, 0.0, statistic=vector[-2:])
