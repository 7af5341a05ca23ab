"""The owner's switch: while a device pauses, nothing leaves it but the word that it does."""

from __future__ import annotations

from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.wire import Refusal

_FACT = "paused"


def is_paused(store: Store) -> bool:
    """Whether the owner has stopped taking part."""
    return bool(store.fact(_FACT) == "yes")


def pause(store: Store, paused: bool) -> None:
    """Stop taking part from the next message on, or go on. Ratings and recommendations are not touched."""
    with store.changing():
        store.put("facts", [(_FACT, "yes" if paused else "no")])


def refuse_while_paused(store: Store) -> None:
    """Refuse any message, also one that was answered before, or a later stage of a sum that has begun."""
    if is_paused(store):
        raise Refusal("paused", "this device pauses; `fedrecplus device resume` ends that")
