"""What the server's operator may ask of a running SuperLink: JSON from this machine, with the token of the home.

It takes the place of Flower's Control API, which asks nobody for a password and starts whatever it is sent. Here the
one bundle of this package is started, and nothing else can be.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from fedrecplus.deploy.flower import private
from fedrecplus.deploy.flower.respond import Unserved, body_of, respond
from fedrecplus.deploy.flower.roster import Roster
from fedrecplus.deploy.process import FLOWER_APP, make_secret, note_run
from fedrecplus.errors import UserError

PREFIX = "/v1/server/"
_LONGEST = 64 * 2**10
_HANDLERS = "flwr.superlink.servicer.control.control_handlers."


class Operations:
    """The ASGI endpoint of all paths below ``PREFIX``."""

    def __init__(self, home: Path, state: Any, roster: Roster, more: dict[str, Callable[..., dict[str, Any]]]) -> None:
        self._home, self._state, self._roster = home, state, roster
        self._token = make_secret(home / "control.token")
        self._calls: dict[str, Callable[..., dict[str, Any]]] = {
            "start": self._start, "stop": self._stop, "status": self._status, "nodes": self._nodes,
            "admit": self._admit, "expel": self._expel, **more,
        }  # fmt: skip

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request; a mistake of the operator's is an answer, too."""
        headers = dict(scope["headers"])
        given = headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            raise Unserved(401, "no token")
        call = self._calls.get(scope["path"].removeprefix(PREFIX))
        if call is None or scope["method"] != "POST":
            raise Unserved(404, "no such call")
        try:
            facts = json.loads(await body_of(headers, receive, _LONGEST) or b"{}")
            reply = await run_in_threadpool(call, **facts)
        except UserError as error:
            reply = {"problem": error.problem, "remedy": error.remedy}
        except (TypeError, ValueError) as error:
            raise Unserved(400, f"malformed: {type(error).__name__}") from None
        except private.get("flwr.supercore.error.FlowerError") as error:
            reply = {"problem": f"Flower: {error.message}", "remedy": "look into the server's log"}
        await respond(send, 200, json.dumps(reply).encode(), b"application/json")

    def _start(self, folder: str) -> dict[str, Any]:
        """Start the rounds of a run folder, with the bundle of this package."""
        note_run(self._home, Path(folder))
        bundle = private.get("flwr.cli.build.build_fab_from_disk")(FLOWER_APP)
        request = private.get("flwr.proto.control_pb2.StartRunRequest")(
            override_config=private.get("flwr.common.serde.user_config_to_proto")({"folder": folder})
        )
        request.fab.content = bundle
        start = private.get(_HANDLERS + "start_run")
        return {"run": str(start(request, _account(), self._state, None).run_id)}

    def _stop(self, run: str) -> dict[str, Any]:
        """End a run."""
        request = private.get("flwr.proto.control_pb2.StopRunRequest")(run_id=int(run))
        return {"stopped": private.get(_HANDLERS + "stop_run")(request, _account(), self._state).success}

    def _status(self, run: str) -> dict[str, Any]:
        """What Flower says of a run."""
        found = self._state.get_run_status({int(run)}).get(int(run))
        if found is None:
            raise UserError(f"there is no run {run}", "the server may have lost its database")
        return {"status": ":".join(filter(None, (found.status, found.sub_status)))}

    def _nodes(self) -> dict[str, Any]:
        """Everybody who was admitted, and who is here."""
        infos = {info.node_id: info for info in self._state.get_node_info()}
        rows = []
        for node in self._roster.all():
            info = infos.get(node.number)
            rows.append(
                {
                    "node-id": str(node.number),
                    "name": node.name,
                    "status": "expelled" if node.expelled else info.status if info else "registered",
                    "since": node.since,
                    "online-at": (info.last_activated_at or "") if info else "",
                    "offline-at": (info.last_deactivated_at or "") if info else "",
                }
            )
        return {"nodes": rows}

    def _admit(self, key: str, name: str = "", instead_of: str | None = None) -> dict[str, Any]:
        """Let a key in; in the SSH form that `node key` prints."""
        place = None if instead_of is None else int(instead_of)
        number, new = self._roster.admit(pem_of(key), name, place)
        return {"node-id": str(number), "new": new}

    def _expel(self, node: str) -> dict[str, Any]:
        """Let a node connect no more."""
        self._roster.expel(int(node))
        return {}


def pem_of(text: str) -> bytes:
    """A node's public key as Flower's headers have it, from the line that `node key` prints."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        key = load_ssh_public_key(text.encode())
        if not isinstance(key, EllipticCurvePublicKey):
            raise ValueError("another kind of key")
    except (ValueError, UnsupportedAlgorithm, UnicodeError):
        raise UserError("this is no node's public key", "give the node.pub that `node key` made") from None
    return bytes(private.get("flwr.supercore.primitives.asymmetric.public_key_to_bytes")(key))


def _account() -> Any:
    names = (private.get(f"flwr.common.constant.NOOP_{what}") for what in ("FLWR_AID", "ACCOUNT_NAME"))
    return private.get("flwr.supercore.auth.typing.AccountInfo")(*names)
