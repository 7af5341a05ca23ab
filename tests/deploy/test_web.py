"""The HTTP API: who is let in, what is answered once, what caches may keep; strangers, replays, bodies without end."""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import event, func, select
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.http.offer import Offers
from fedrecplus.deploy.http.senders import Senders
from fedrecplus.deploy.http.waiting import WaitingRoom
from fedrecplus.deploy.node import ServerConnection, trust
from fedrecplus.deploy.node.connection import NoAnswer, Rejected
from fedrecplus.deploy.operate.certificates import make_server_certificates
from fedrecplus.deploy.server import Lease, StoredRun
from fedrecplus.deploy.server.link import DatabaseLink
from fedrecplus.deploy.server.presence import present_nodes
from fedrecplus.deploy.server.roster import MOST_OPEN, Roster
from fedrecplus.deploy.server.schema import answers, metadata, work, workers
from fedrecplus.deploy.server.stored_run import CoordinatedRun
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.questions import WorkItem
from fedrecplus.deploy.wire.sealing import seal
from fedrecplus.errors import UserError
from fedrecplus.training.registry import finished_model
from tests.deploy.in_process import InProcessLink, database_of, prepared, serve, small_config
from tests.deploy.running import Running, signed
from tests.small_data import small_ratings
from tests.waiting import wait_until

_CATALOGUE = ("about", "content", "popularity", "average", "years")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("web")
    prepared(folder, small_ratings(), small_config(), nodes=1)
    with Running(folder / "home", database_of(folder / "run").address) as running:
        yield running


@pytest.fixture(scope="module")
def link(server: Running) -> DatabaseLink:
    """The coordinator's side of the same database."""
    lease = Lease(server.home.database, seconds=1e6)
    assert lease.take()
    run = StoredRun.newest(server.home.database)
    assert run is not None
    return DatabaseLink(CoordinatedRun(lease, run.number))


def asked(text: str = "hello") -> Packet:
    return Packet({"round": 0, "text": text}, {})


def test_an_offer_is_for_everybody_and_pages_from_elsewhere_may_ask(server: Running) -> None:
    elsewhere = {"origin": "https://pages.example.org"}
    status, content, headers = server.raw("GET", "/v1/offer", headers=elsewhere)
    packet = Packet.of_bytes(content)
    assert (status, headers["access-control-allow-origin"]) == (200, "*")
    assert "session" not in packet.facts
    assert {"V", "catalogue.about"} <= packet.arrays.keys() <= {"V", *(f"catalogue.{name}" for name in _CATALOGUE)}
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "signature"}
    status, _, headers = server.raw("OPTIONS", "/v1/join", headers={**elsewhere, **asks})
    assert (status, "signature" in headers["access-control-allow-headers"]) == (200, True)
    assert server.raw("GET", "/")[0] == 404, "no page is served that nobody put there"


def next_question(server: Running, key: Ed25519PrivateKey, after: int = 0) -> WorkItem | None:
    content = server.call(key, "GET", f"/v1/work?wait=5&after={after}")
    return msgspec.msgpack.decode(content, type=WorkItem) if content else None


def test_a_question_is_handed_out_until_it_is_answered_once(server: Running, link: DatabaseLink) -> None:
    node, key = server.admitted()
    (name,) = link.ask({node: asked()}, 60.0)
    for _ in range(2):  # a node that was killed asks again
        question = next_question(server, key)
        assert question is not None
        assert (question.id, Packet.of_bytes(question.packet).facts["text"]) == (name, "hello")
    assert next_question(server, key, after=question.id) is None, "one that it dealt with doesn't come again"
    sealed = seal(Packet({"answer": 1}, {}).to_bytes(), question.seal, question.context)
    target = f"/v1/work/{question.id}"
    server.call(key, "POST", target, sealed)
    with pytest.raises(Rejected, match="409"):
        server.call(key, "POST", target, sealed)
    assert [(number, packet.facts) for number, packet in link.replies([name]) if isinstance(packet, Packet)] == [
        (name, {"answer": 1})
    ]
    assert next_question(server, key) is None


def test_nobody_answers_for_another_and_nothing_that_is_over(server: Running, link: DatabaseLink) -> None:
    (node, key), (_, other) = server.admitted(), server.admitted()
    (name,) = link.ask({node: asked()}, 60.0)
    with pytest.raises(Rejected, match="404"):
        server.call(other, "POST", f"/v1/work/{name}", b"x")
    with pytest.raises(Rejected, match="404"):
        server.call(key, "POST", "/v1/work/17", b"x")
    server.call(key, "POST", f"/v1/work/{name}", b"sealed to nobody")
    ((_, reply),) = link.replies([name])
    assert isinstance(reply, Refusal)
    assert reply.blame
    (over,) = link.ask({node: asked("too late")}, 0.0)
    with pytest.raises(Rejected, match="410"):
        server.call(key, "POST", f"/v1/work/{over}", b"x")


def test_what_was_asked_before_is_gone_and_numbers_go_on_from_it(
    server: Running, link: DatabaseLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers to closed rounds were looked for in every later one; and devices ask for questions after their last."""
    (node, key), ids = server.admitted(), list[int]()
    for clock in (time.time(), time.time() - 3600.0):
        monkeypatch.setattr("fedrecplus.deploy.server.link.time.time", lambda clock=clock: clock)
        ids += link.ask({node: asked()}, 7200.0)
        server.call(key, "POST", f"/v1/work/{ids[-1]}", b"sealed to nobody")
        monkeypatch.undo()
        link.run.begin()  # as a coordinator does that takes over
        with server.home.database.reading() as connection:
            assert connection.execute(select(func.count()).select_from(answers)).scalar() == 0
            assert list(connection.execute(select(work.c.id)).scalars()) == [ids[-1]]
    assert ids[0] < ids[1]


def test_what_was_answered_lies_sealed_in_the_database(server: Running, link: DatabaseLink) -> None:
    node, key = server.admitted()
    (name,) = link.ask({node: asked()}, 60.0)
    question = next_question(server, key)
    assert question is not None
    content = Packet({"secret": "canary-7163"}, {}).to_bytes()
    server.call(key, "POST", f"/v1/work/{name}", seal(content, question.seal, question.context))
    with server.home.database.reading() as connection:
        kept = connection.execute(select(answers.c.content).where(answers.c.work == int(name))).scalar_one()
    assert b"canary-7163" not in kept
    moved = seal(content, question.seal, b"another question")
    with pytest.raises(Refusal):
        link.key.open(moved, question.context)
    other = DatabaseLink(link.run)  # a coordinator that takes over has another key
    assert isinstance(other.replies([name])[0][1], Refusal)


def test_a_request_counts_once_and_only_as_it_was_signed(server: Running) -> None:
    _, key = server.admitted()
    target = "/v1/status"
    headers = signed(key, "GET", target)
    assert server.raw("GET", target, headers=headers)[0] == 200
    assert server.raw("GET", target, headers=headers)[:2] == (401, b"a request that was sent before")
    for method, place, body, given in (
        ("GET", target, b"", {}),
        ("GET", target, b"", signed(Ed25519PrivateKey.generate(), "GET", target)),
        ("GET", target, b"", signed(key, "GET", "/v1/work")),
        ("GET", f"{target}?x=1", b"", signed(key, "GET", target)),
        ("POST", "/v1/work/5", b"", signed(key, "GET", "/v1/work/5")),
        ("POST", "/v1/work/5", b"other", signed(key, "POST", "/v1/work/5", b"signed")),
    ):
        assert server.raw(method, place, body, given)[0] == 401, (method, place)
    old = signed(key, "GET", target)
    old["signature-input"] = re.sub(r"created=\d+", f"created={int(time.time()) - 400}", old["signature-input"])
    assert server.raw("GET", target, headers=old)[0] == 401


def test_signatures_are_good_for_a_while_and_no_longer(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    import datetime

    from fedrecplus.deploy.wire import signatures

    _, key = server.admitted()
    sign = signatures.HTTPMessageSigner.sign
    for age, status in ((250, 200), (-250, 200), (700, 401), (-700, 401)):
        when = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=age)
        monkeypatch.setattr(signatures.HTTPMessageSigner, "sign", lambda *a, w=when, **k: sign(*a, created=w, **k))
        assert server.raw("GET", "/v1/status", headers=signed(key, "GET", "/v1/status"))[0] == status, age


def test_whoever_is_expelled_is_out_and_comes_back_by_no_old_link(server: Running, tmp_path: Path) -> None:
    link = server.home.invite("anna", 1.0)
    home = ["--home", str(tmp_path / "anna")]
    assert exit_code_of(["join", str(link), "--leave", *home]) == 0
    everybody = {node["name"]: node["number"] for node in server.home.roster.everybody()}
    assert exit_code_of(["join", str(link), "--leave", *home]) == 0, "the answer may have been lost on the way"
    assert exit_code_of(["join", str(link), "--leave", "--home", str(tmp_path / "ben")]) == 2, "one key for a link"
    assert exit_code_of(["server", "expel", str(everybody["anna"]), "--home", str(server.home.path)]) == 0
    assert exit_code_of(["join", str(link), "--leave", *home]) == 2
    assert exit_code_of(["server", "admit", str(tmp_path / "anna" / "node.pub"), "--home", str(server.home.path)]) == 0
    assert {node["name"]: node["status"] for node in server.home.roster.everybody()}["anna"] == "offline"


def test_expulsion_reaches_a_worker_that_knows_the_key(server: Running) -> None:
    node, key = server.admitted()
    assert server.call(key, "GET", "/v1/status")
    server.home.roster.expel(node)

    def is_out() -> bool:
        return server.raw("GET", "/v1/status", headers=signed(key, "GET", "/v1/status"))[0] == 401

    wait_until(is_out, 10.0)


def test_a_change_is_seen_whatever_the_clock_of_who_made_it(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two machines are one server; the one on which somebody is expelled may be behind."""
    roster = server.home.roster
    node, _ = server.admitted()
    before = roster.version()
    monkeypatch.setattr("fedrecplus.deploy.server.roster.time.time", lambda: 1e9)
    roster.expel(node)
    assert roster.version() != before


def test_who_is_expelled_while_a_worker_looks_for_the_key_is_out(server: Running) -> None:
    """The key was found before and would have been kept after all keys were forgotten."""
    node, key = server.admitted()
    expelled = list[int]()

    class LookedUp(Roster):
        def number_of(self, key: str) -> int | None:
            number = super().number_of(key)
            if not expelled:
                self.expel(node)
                expelled.append(node)
                senders._looked = 0.0
                asyncio.run_coroutine_threadsafe(senders._refresh(), loop).result()
            return number

    async def status() -> int:
        headers = [(name.encode(), text.encode()) for name, text in signed(key, "GET", "/v1/status").items()]
        scope = {"type": "http", "method": "GET", "raw_path": b"/v1/status", "query_string": b"", "headers": headers}
        try:
            return (await senders.sender(Request(scope))).number
        except HTTPException as refused:
            return refused.status_code

    async def visits() -> list[int]:
        nonlocal loop
        loop = asyncio.get_running_loop()
        return [await status(), await status()]

    loop: asyncio.AbstractEventLoop
    senders = Senders(LookedUp(server.home.database))
    assert asyncio.run(visits()) == [node, 401]


def test_a_node_has_one_body_at_a_time_in_a_worker_s_memory(server: Running) -> None:
    (_, key), (_, other) = server.admitted(), server.admitted()
    target, body = "/v1/work/5", bytes(1000)
    connection = http.client.HTTPSConnection("127.0.0.1", server.home.port, timeout=30, context=trust(server.ca))
    connection.putrequest("POST", target)
    for name, value in {**signed(key, "POST", target, body), "content-length": "1000"}.items():
        connection.putheader(name, value)
    connection.endheaders()

    def status(who: Ed25519PrivateKey) -> int:
        return server.raw("POST", target, body, signed(who, "POST", target, body))[0]

    wait_until(lambda: status(key) == 429)
    assert status(other) == 404, "others are not kept out"
    connection.send(body)
    assert connection.getresponse().status == 404, "the first one was read to its end"
    connection.close()
    assert status(key) == 404


def test_an_offer_is_made_once_for_each_round_and_reads_no_journal(tmp_path: Path) -> None:
    """Anybody may ask for it: it must not cost what a long journal does."""
    homes = prepared(tmp_path, small_ratings(), small_config(rounds=2), nodes=1)
    offers, asked_for = Offers(database_of(tmp_path / "run")), list[str]()
    first = offers.newest()
    serve(InProcessLink(homes), tmp_path / "run")
    event.listen(offers._database.engine, "before_cursor_execute", lambda *given: asked_for.append(given[2]))
    second = offers.newest()
    assert second != first
    assert offers.newest() is second
    assert not any("journal.line" in statement for statement in asked_for)


def test_a_body_is_bounded_and_read_from_nobody_who_is_unknown(server: Running) -> None:
    _, key = server.admitted()
    huge = {**signed(key, "POST", "/v1/work/5", b""), "content-length": str(10**9)}
    status, said, _ = _cut_off(server, "/v1/work/5", huge)
    assert (status, said[:2]) == (413, b"10")
    stranger = {**signed(Ed25519PrivateKey.generate(), "POST", "/v1/work/5"), "content-length": "1000000"}
    assert _cut_off(server, "/v1/work/5", stranger)[0] == 401, "before a byte of it was sent"


def _cut_off(server: Running, target: str, headers: dict[str, str]) -> tuple[int, bytes, float]:
    """Send headers alone, and read what is answered."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.home.port, timeout=30, context=trust(server.ca))
    began = time.monotonic()
    connection.putrequest("POST", target)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, content, time.monotonic() - began


def test_objects_never_change_and_caches_may_keep_them(server: Running, link: DatabaseLink) -> None:
    import numpy as np

    node, key = server.admitted()
    table = np.arange(5000.0).reshape(-1, 5)
    link.ask({node: Packet({"round": 0, "catalogue": "ab"}, {"V": table, "catalogue.content": table})}, 60.0)
    question = next_question(server, key)
    assert question is not None
    assert set(question.objects) == {"tables", "catalogue"}
    assert len(question.packet) < 200
    whole = question.whole(_fetch(server), set())
    np.testing.assert_array_equal(whole.arrays["V"], table)
    assert "catalogue.content" in whole.arrays
    assert "catalogue.content" not in question.whole(_fetch(server), {"catalogue"}).arrays
    digest = question.objects["tables"]
    status, _, headers = server.raw("GET", f"/v1/objects/{digest}")
    assert (status, headers["etag"]) == (200, f'"{digest}"')
    assert "immutable" in headers["cache-control"]
    assert server.raw("GET", f"/v1/objects/{digest}", headers={"if-none-match": f'"{digest}"'})[0] == 304
    assert server.raw("GET", "/v1/objects/" + "0" * 64)[0] == 404
    with pytest.raises(Refusal, match="digest"):
        question.whole(lambda _: b"another object", {"catalogue"})


def _fetch(server: Running):  # type: ignore[no-untyped-def]
    return lambda digest: server.raw("GET", f"/v1/objects/{digest}")[1]


def test_idle_polls_write_nothing_and_one_query_serves_all(server: Running) -> None:
    nodes = [server.admitted() for _ in range(20)]
    polls = [threading.Thread(target=lambda key=key: server.call(key, "GET", "/v1/work?wait=3")) for _, key in nodes]
    for poll in polls:
        poll.start()
    numbers = {number for number, _ in nodes}
    wait_until(lambda: numbers <= set(present_nodes(server.home.database)), 20.0)
    before = _counts(server)
    for poll in polls:
        poll.join()
    assert _counts(server) == before
    assert numbers <= set(present_nodes(server.home.database)), "who polls again soon is still here"
    gone, key = nodes[0]
    server.call(key, "DELETE", "/v1/work")
    wait_until(lambda: gone not in present_nodes(server.home.database), 5.0)


def _counts(server: Running) -> dict[str, int]:
    with server.home.database.reading() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
            if table is not workers
        }


def test_metrics_and_health_and_the_page_of_the_api(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    assert server.raw("GET", "/healthz")[:2] == (200, b"ok")
    assert server.raw("GET", "/metrics")[0] == 401
    token = (server.home.path / "metrics.token").read_text().strip()
    status, text, _ = server.raw("GET", "/metrics", headers={"authorization": f"Bearer {token}"})
    assert status == 200
    families = {family.name for family in text_string_to_metric_families(text.decode())}
    assert {"fedrecplus_nodes", "fedrecplus_certificate_days", "fedrecplus_answers", "fedrecplus_round"} <= families
    assert b"fedrecplus_run_failed 0.0" in text
    with monkeypatch.context() as later:
        later.setattr("fedrecplus.deploy.http.app.time", SimpleNamespace(time=lambda: time.time() + 100 * 86_400))
        _, text, _ = server.raw("GET", "/metrics", headers={"authorization": f"Bearer {token}"})
    assert re.search(rb"fedrecplus_certificate_days 72[45]\.", text), "days that are left now, not at the start"
    status, text, _ = server.raw("GET", "/v1/openapi.json")
    paths = msgspec.json.decode(text)["paths"]
    assert {"/v1/join", "/v1/work", "/v1/work/{number}", "/v1/objects/{digest}", "/v1/status"} <= set(paths)
    assert [one["name"] for one in paths["/v1/work"]["get"]["parameters"]] == ["wait", "after", "away"]


def test_a_poll_that_makes_no_sense_is_refused(server: Running) -> None:
    _, key = server.admitted()
    for asked in ("wait=-1", "wait=nan", "wait=4000", "after=-1", "after=soon", "away=-1"):
        target = f"/v1/work?{asked}"
        assert server.raw("GET", target, headers=signed(key, "GET", target))[0] == 422, asked


def test_a_worker_that_ends_holds_nobody_who_comes_yet(server: Running) -> None:
    """Its end broke such polls off, each with a traceback in the log."""

    async def polled() -> bytes | None:
        room = WaitingRoom(server.home.database, "ending")
        before = asyncio.create_task(room.next_question(1, 0, 600.0))
        await asyncio.sleep(0)
        room.end()
        return await before or await room.next_question(2, 0, 600.0)

    assert asyncio.run(asyncio.wait_for(polled(), 60.0)) is None


def test_without_its_authority_or_without_tls_nobody_is_spoken_to(server: Running, tmp_path: Path) -> None:
    make_server_certificates(tmp_path, ["localhost"])
    with pytest.raises(UserError, match="not signed by the authority"):
        ServerConnection("127.0.0.1", server.home.port, trust(tmp_path / "ca.crt")).call("GET", "/healthz")
    with pytest.raises(NoAnswer):
        ServerConnection("127.0.0.1", server.home.port, None).call("GET", "/healthz")
    with socket.create_connection(("127.0.0.1", server.home.port)) as plain, pytest.raises((ssl.SSLError, OSError)):
        ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")


def test_when_the_database_is_away_a_device_is_told_to_come_back(tmp_path: Path) -> None:
    with Running(tmp_path) as broken:
        with broken.home.database.changing() as connection:
            connection.exec_driver_sql("ALTER TABLE nodes RENAME TO gone")
        status, _, headers = broken.raw("GET", "/healthz")
        assert (status, headers["retry-after"]) == (503, "2")
        with broken.home.database.changing() as connection:
            connection.exec_driver_sql("ALTER TABLE gone RENAME TO nodes")
        assert broken.raw("GET", "/healthz")[0] == 200


def test_nodes_that_join_get_the_current_model_and_after_a_rollback_the_one_before(
    server: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, fetched = ["--server", "--home", str(server.home.path)], []
    assert exit_code_of(["models", *place]) == 0
    assert "has no models" in capsys.readouterr().out
    for rounds in (1, 2):
        folder = tmp_path / str(rounds)
        homes = prepared(folder, small_ratings(), small_config(rounds=rounds), nodes=1)
        serve(InProcessLink(homes), folder / "run")
        assert exit_code_of(["publish", str(folder / "run"), *place]) == 0
    capsys.readouterr()
    assert exit_code_of(["models", *place]) == 0
    assert capsys.readouterr().out.count("fedrec+private") == 2
    for name in ("now", "before"):
        invitation = server.home.invite(name, 1.0)
        assert exit_code_of(["join", str(invitation), "--leave", "--home", str(tmp_path / name)]) == 0
        fetched.append((tmp_path / name / "model" / "model.safetensors").read_bytes())
        assert exit_code_of(["rollback", *place]) == (0 if name == "now" else 2)
    for content, rounds in zip(fetched, (2, 1), strict=True):
        model, _ = finished_model(tmp_path / str(rounds) / "run", ())
        model.write(tmp_path / f"published-{rounds}")
        assert content == (tmp_path / f"published-{rounds}" / "model.safetensors").read_bytes()


def test_a_link_of_another_server_is_refused_before_the_code_is_sent(server: Running, tmp_path: Path) -> None:
    invitation = server.home.invite("x", 1.0)
    link, wrong = str(invitation), str(replace(invitation, fingerprint="00" * 32))
    assert exit_code_of(["join", wrong, "--leave", "--home", str(tmp_path)]) == 2
    assert not (tmp_path / "ca.crt").exists()
    assert exit_code_of(["join", link.replace("127.0.0.1", "127.0.0.2"), "--leave", "--home", str(tmp_path)]) == 2
    assert exit_code_of(["join", "https://evil.example/", "--leave", "--home", str(tmp_path)]) == 2
    assert Roster(server.home.database).everybody(), "nobody else was touched"


def test_a_home_that_joins_another_server_is_known_there_by_another_key(server: Running, tmp_path: Path) -> None:
    """With one key for two, the one could hand a request on to the other, and both could tell who is the same."""
    home = ["--home", str(tmp_path / "anna")]
    names = ("node.key", "node.pub", "ca.crt")

    def kept() -> list[bytes]:
        return [(tmp_path / "anna" / name).read_bytes() for name in names]

    def known_to(running: Running) -> set[str]:
        return {str(node["key"]) for node in running.home.roster.everybody()}

    assert exit_code_of(["join", str(server.home.invite("anna", 60.0)), "--leave", *home]) == 0
    first, before = kept(), known_to(server)
    with Running(tmp_path / "other") as other:
        unlike = replace(other.home.invite("anna", 60.0), task="00" * 32)
        assert exit_code_of(["join", str(unlike), "--leave", *home]) == 2, "it has no such task"
        assert kept() == first, "the server that was joined is still trusted, and knows the key"
        assert exit_code_of(["join", str(other.home.invite("anna", 60.0)), "--leave", *home]) == 0
        assert len(known_to(other)) == 1
        assert not known_to(other) & known_to(server)
    assert known_to(server) == before
    assert all(now != then for now, then in zip(kept(), first, strict=True))
    assert exit_code_of(["join", str(server.home.invite("anna", 60.0)), "--leave", *home]) == 0
    assert exit_code_of(["device", "forget", "--yes", *home]) == 0
    assert not (tmp_path / "anna").exists()


def test_codes_expire_are_counted_and_strangers_try_few(server: Running, tmp_path: Path) -> None:
    roster = server.home.roster
    key = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    assert roster.enrol(roster.invite("late", -1.0), key, "") is None
    assert roster.enrol("guess", key, "") is None
    codes = [roster.invite(f"{number}", 60.0) for number in range(3)]
    assert roster.enrol(codes[0], key, "")[1] == "0"  # type: ignore[index]
    with pytest.MonkeyPatch.context() as few:
        few.setattr("fedrecplus.deploy.server.roster.MOST_OPEN", 2)
        with pytest.raises(UserError, match="invitations are open"):
            roster.invite("too many", 60.0)
    assert MOST_OPEN > 100
    stranger = Ed25519PrivateKey.generate()
    body = msgspec.msgpack.encode({"code": "guess", "name": "x"})
    said = [server.raw("POST", "/v1/join", body, signed(stranger, "POST", "/v1/join", body))[0] for _ in range(60)]
    assert set(said) == {403, 429}, "and then they are told to wait"
