"""The catalogues that servers have sent: each is looked at before it is taken, and kept as long as it is of use."""

from __future__ import annotations

import json
import logging

from fedrecplus.deploy.device.policy import load_policy
from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet, Refusal, one_line
from fedrecplus.deploy.wire.request import Request

log = logging.getLogger("fedrecplus")
_SHOWN = 5


def catalogue_of(store: Store, request: Request) -> ItemCatalogue:
    """The catalogue of a request: one that is known here, or the one that came along, which isn't kept yet."""
    catalogue, attached = load_catalogue(store, request.catalogue), request.attached
    if catalogue is None:
        if attached is None or attached.digest != request.catalogue:
            raise Refusal("catalogue", "the server's catalogue is not known here")
        catalogue = attached
        _check_republished(store, catalogue)
    if len(catalogue.ids) != len(request.V):
        raise Refusal("request", "V has another number of items than the catalogue")
    if catalogue.scale != store.scale:
        both = f"ratings here are on the scale {store.scale}, the server's on {catalogue.scale}"
        raise Refusal("scale", f"{both}; `fedrecplus device scale {catalogue.scale}` changes it")
    return catalogue


def keep_catalogue(store: Store, catalogue: ItemCatalogue) -> None:
    """Keep the catalogue of a request that is answered; that of a refused one is never shown to the owner."""
    if store.value("SELECT digest FROM catalogues WHERE digest = ?", catalogue.digest) is None:
        added = _added_items(store, catalogue)
        if added:
            log.info(
                "%s items were added to those of a model here: %s", len(added), one_line(", ".join(added[:_SHOWN]))
            )
        with store.changing():
            store.put("catalogues", [(catalogue.digest, Packet({}, catalogue.arrays()).to_bytes())])
            store.put("facts", [(f"added {catalogue.digest}", json.dumps(added))])


def added_items(store: Store, digest: str) -> list[str]:
    """Titles, or ids where there are none, of what was added to a catalogue when it came."""
    return list(json.loads(store.fact(f"added {digest}") or "[]"))


def _added_items(store: Store, catalogue: ItemCatalogue) -> list[str]:
    digests = [digest for (digest,) in store.connection.execute("SELECT digest FROM catalogues")]
    known = [one for one in (load_catalogue(store, digest) for digest in digests) if one is not None]
    sizes = [len(one.ids) for one in known if catalogue.continues(one)]
    return list((catalogue.titles or catalogue.ids)[max(sizes) :]) if sizes else []


def check_table(request: Request, catalogue: ItemCatalogue) -> None:
    """Refuse a V of another shape than the settings' model has for these items."""
    model, seed = request.config.model, request.config.seed
    due = model.start_items(seed, len(catalogue.ids), catalogue.public).shape
    if request.V.shape != due:
        raise Refusal("request", f"V has the shape {request.V.shape}, not {due}")


def load_catalogue(store: Store, digest: str) -> ItemCatalogue | None:
    """A catalogue that was kept."""
    content = store.value("SELECT content FROM catalogues WHERE digest = ?", digest)
    return ItemCatalogue.of_arrays(Packet.of_bytes(content).arrays) if content else None


def delete_unused_catalogues(store: Store) -> None:
    """Delete catalogues that nothing here refers to any more, within ``changing``.

    Kept are the newest, those of tables that are kept, of rows that uploads show, of sums that are open, the pinned
    one, and all with exact figures of the participants, by which a second publication is found out. One that is asked
    for again is sent along again.
    """
    query = (
        "SELECT catalogue FROM models WHERE model IN (SELECT model FROM tables) UNION SELECT catalogue FROM shown "
        "UNION SELECT catalogue FROM sums "
        "UNION SELECT digest FROM catalogues WHERE rowid = (SELECT MAX(rowid) FROM catalogues)"
    )
    used = {digest for (digest,) in store.connection.execute(query)} | {load_policy(store).catalogue}
    for (digest,) in store.connection.execute("SELECT digest FROM catalogues").fetchall():
        if digest in used:
            continue
        known = load_catalogue(store, digest)
        if known is None or not known.tells_participants:
            store.connection.execute("DELETE FROM catalogues WHERE digest = ?", (digest,))


def _check_republished(store: Store, catalogue: ItemCatalogue) -> None:
    """Refuse exact figures of the participants that were published again: the difference is who joined or left."""
    if not catalogue.tells_participants:
        return
    for (digest,) in store.connection.execute("SELECT digest FROM catalogues").fetchall():
        known = load_catalogue(store, digest)
        if known is None or not known.tells_participants or catalogue.continues(known):
            continue
        if not known.numbers.keys().isdisjoint(catalogue.ids):
            raise Refusal("policy", f"catalogue {digest} was published again with other exact figures of participants")
