"""Messages that come with their objects: one request instead of one for each object.

Flower announces a message by one call, moves each of its objects by another, and confirms it by a third. Here the same
handlers of Flower's run one after the other for one request. Objects stand in fields that Flower's messages don't have
(``deploy/light/messages.py``); whoever doesn't know these fields calls as before.
"""

from __future__ import annotations

import hashlib
from typing import Any

from fedrecplus.deploy.flower import private
from fedrecplus.deploy.flower.respond import Unserved
from fedrecplus.deploy.light import ATTACHED, Malformed, Schema, decode, encode, split

_FLEET = "flwr.superlink.servicer.fleet.fleet_handlers."
_RUNTIME = "flwr.superlink.servicer.runtime.runtime_handlers."
_MESSAGES = "flwr.proto.message_pb2."
_MOST_AT_ONCE = 32 * 2**20
"""bytes of objects that one answer to the app brings; it fetches the others one by one"""
_DEEPEST, MOST_FIELDS = 3, 32
"""objects of a reply: message, records, record; and fields of what brings them, of which each takes a microsecond"""
APP_ASKS: Schema = ATTACHED["push-messages"][0]
APP_IS_TOLD: Schema = ATTACHED["pull-messages"][1]
"""the server's app attaches in the same fields as nodes do"""


def apart(schema: Schema, content: bytes, longest: int) -> tuple[bytes, bytes]:
    """A request without what is attached to it, and the latter. Two bytes can be a message, which takes fifty here."""
    try:
        along, request = split(schema, content, MOST_FIELDS)
    except Malformed:
        raise Unserved(400, "malformed") from None
    if len(request) > longest:
        raise Unserved(413, "too long, or of unknown length")
    return request, along


def objects_in(schema: Schema, content: bytes, **bound: int) -> dict[str, Any]:
    """What is attached to a request: objects by their names, and the flags. Each object is what its name says.

    ``bound`` is ``decode``'s.
    """
    try:
        facts = decode(schema, content, **bound)
    except Malformed:
        raise Unserved(400, "malformed") from None
    attached = {one["object_id"]: one["content"] for one in facts.get("attached", [])}
    if any(hashlib.sha256(content).hexdigest() != name for name, content in attached.items()):
        raise Unserved(400, "malformed")
    return {**facts, "attached": attached}


def pull_for_node(state: Any, request: Any) -> bytes:
    """A node's message, with the packet that it is asked with."""
    reply = private.get(_FLEET + "pull_messages")(request=request, state=state, store=state.object_store)
    attached = []
    for message, tree in zip(reply.messages_list, reply.message_object_trees, strict=True):
        for name in _leaves(tree):
            wanted = private.get(_MESSAGES + "PullObjectRequest")(
                node=request.node, run_id=message.metadata.run_id, object_id=name
            )
            try:
                found = private.get(_FLEET + "pull_object")(request=wanted, state=state)
            except private.get("flwr.supercore.error.FlowerError"):  # the run is over; the node will hear so
                continue
            if found.object_available:
                attached.append({"object_id": name, "content": found.object_content})
    return bytes(reply.SerializeToString() + encode(ATTACHED["pull-messages"][1], {"attached": attached}))


def check_reply(state: Any, request: Any) -> None:
    """Refuse what isn't one message with one record. Flower keeps whatever a tree names, and reads it as a tree again.

    Names that stand in a tree twice make it double with each level, and all of a server's time is gone.
    """
    if len(request.messages_list) != 1 or len(request.message_object_trees) != 1:
        raise Unserved(400, "malformed")
    name, tree, store = (
        request.messages_list[0].metadata.message_id,
        request.message_object_trees[0],
        state.object_store,
    )
    names = [tree.object_id]
    while len(tree.children) == 1 and len(names) < _DEEPEST:
        tree = tree.children[0]
        names.append(tree.object_id)
    is_chain = not tree.children and len(set(names)) == len(names) and names[0] == name
    if not is_chain or name in state.message_ins_store:
        raise Unserved(400, "malformed")
    for parent, children in zip(names, [*([child] for child in names[1:]), []], strict=True):
        if (known := store.store.get(parent)) is not None and known.child_object_ids != children:
            raise Unserved(400, "malformed")


def is_asked(state: Any, node: int, question: str) -> bool:
    """Whether a message is a question to this node."""
    message = state.message_ins_store.get(question)
    return message is not None and message.metadata.dst_node_id == node


def push_from_node(state: Any, request: Any, facts: dict[str, Any]) -> bytes:
    """A node's reply and its objects; where it says so, the question that it answers is deleted."""
    request.DiscardUnknownFields()
    check_reply(state, request)
    reply = private.get(_FLEET + "push_messages")(request=request, state=state)
    its = request.messages_list[0].metadata
    push = private.get(_FLEET + "push_object")

    def store(name: str) -> bool:
        return bool(
            push(
                request=private.get(_MESSAGES + "PushObjectRequest")(
                    node=request.node,
                    run_id=its.run_id,
                    object_id=name,
                    object_content=facts["attached"][name],
                    session_id=reply.session_id,
                ),
                state=state,
            ).stored
        )

    _take(reply.objects_to_push, facts["attached"], store)
    if not reply.objects_to_push:  # nothing is awaited, or nothing was taken: Flower would keep the session
        state._cleanup_push_session(reply.session_id, cleanup_messages=False)
    question = its.reply_to_message_id
    is_own = is_asked(state, request.node.node_id, question)
    confirmed = bool(facts["confirms"] and is_own and state.object_store.get(question))  # its own object comes last
    if confirmed:
        state.object_store.delete(question)
    return bytes(reply.SerializeToString() + encode(ATTACHED["push-messages"][1], {"confirmed": confirmed}))


def push_from_app(state: Any, request: Any, task: Any, facts: dict[str, Any]) -> bytes:
    """The app's messages to nodes, with their objects."""
    request.DiscardUnknownFields()
    reply = private.get(_RUNTIME + "push_messages")(request, state, task)

    def store(name: str) -> bool:
        return bool(state.store_object(task.run_id, reply.session_id, name, facts["attached"][name]))

    _take(reply.objects_to_push, facts["attached"], store)
    return bytes(reply.SerializeToString())


def pull_for_app(state: Any, request: Any, task: Any) -> bytes:
    """Replies of nodes. Those that are complete come with all objects, and are deleted here."""
    names = _portion(state, list(request.message_ids))
    del request.message_ids[:]
    request.message_ids.extend(names)
    reply = private.get(_RUNTIME + "pull_messages")(request, state, task)
    attached, size = [], 0
    for tree in reply.message_object_trees:
        objects = {name: state.get_object(task.run_id, name) for name in names_in(tree)}
        size += sum(len(content or b"") for content in objects.values())
        if size > _MOST_AT_ONCE:
            break
        if all(objects.values()):
            attached += [{"object_id": name, "content": content} for name, content in objects.items()]
            state.object_store.delete(tree.object_id)
    return bytes(reply.SerializeToString() + encode(APP_IS_TOLD, {"attached": attached}))


def _portion(state: Any, questions: list[str]) -> list[str]:
    """Questions whose replies go in one answer; the others wait for the next look. What has no reply is asked for, too.

    Flower would announce all of them, and the app fetch each by a thread of its own.
    """
    store, portion, size = state.object_store.store, [], 0
    for question in questions:
        name, its = state.message_ins_id_to_message_res_id.get(question), 0
        while (known := store.get(name)) is not None:
            its += len(known.content)
            name = next(iter(known.child_object_ids), None)
        if not its or not size or size + its <= _MOST_AT_ONCE:
            portion.append(question)
            size += its
    return portion


def _take(wanted: Any, attached: dict[str, bytes], store: Any) -> None:
    """Store what is wanted and attached; what stays in ``wanted`` is still to be pushed."""
    left = [name for name in wanted if name not in attached or not store(name)]
    del wanted[:]
    wanted.extend(left)


def names_in(tree: Any) -> list[str]:
    """All objects of a tree, the message's own first."""
    return [tree.object_id, *(name for child in tree.children for name in names_in(child))]


def _leaves(tree: Any) -> list[str]:
    return [name for child in tree.children for name in _leaves(child)] if tree.children else [tree.object_id]
