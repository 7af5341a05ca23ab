"""The device's page: who is let in, that rating there is rating, the log of what left, and the switch."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

import fedrecplus
from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.device import Store, answer, is_paused, marks_of
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.server import journal_of
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.training.registry import Registry
from fedrecplus.web.device_page import DevicePages
from tests.deploy.in_process import InProcessLink, prepared, serve, small_config
from tests.device_page.took_part import ME, SECRET, OpenedPage, opened, took_part
from tests.small_data import small_ratings
from tests.waiting import GIVE_UP

PRIVATE = ("api/saved", "api/sent", "model.json", "model.bin", "items.json", "leaves.json", "leaves.bin")
CHANGES = {
    "api/rate": {"item": "39", "rating": 5},
    "api/unrate": {"item": "39"},
    "api/mark": {"item": "39", "mark": "seen"},
    "api/pause": {"paused": True},
    "api/forget": {"sure": True},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> NodeHome:
    return took_part(tmp_path_factory.mktemp("device"))[0]


@pytest.fixture(scope="module")
def page(home: NodeHome) -> Iterator[OpenedPage]:
    with opened(home) as started:
        yield started


def untouched(home: NodeHome) -> tuple[object, ...]:
    with Store.open(home.store) as store:
        return store.ratings(), marks_of(store), is_paused(store)


@pytest.mark.parametrize("token", [None, "", "wrong", SECRET[:-1], SECRET + "x", "\xe9"])
def test_nothing_of_the_device_is_told_or_changed_without_the_token(
    page: OpenedPage, home: NodeHome, token: str | None
) -> None:
    before = untouched(home)
    assert [page.ask(name, token=token).status_code for name in PRIVATE] == [401] * len(PRIVATE)
    assert {page.ask(name, body, token=token).status_code for name, body in CHANGES.items()} == {401}
    assert page.ask(f"api/saved?token={SECRET}", token=token).status_code == 401
    assert untouched(home) == before


def test_the_page_itself_says_nothing_of_the_device(page: OpenedPage) -> None:
    answer = page.ask("", token=None)
    assert answer.status_code == 200
    assert "<html data-device " in answer.text
    assert SECRET not in answer.text
    assert page.ask("app.js", token=None).headers["content-type"].startswith("text/javascript")
    assert page.ask("offline.js").status_code == 404, "a browser keeps no copy"
    for name in ("../store.db", "..%2fstore.db", "store.db", "sources.json", "api/", "api/nothing"):
        assert page.ask(name).status_code == 404
    assert page.ask("api/nothing", {}).status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", ""])
def test_another_name_for_this_machine_is_refused(page: OpenedPage, home: NodeHome, host: str) -> None:
    """DNS rebinding: the page of another name asks 127.0.0.1, and its requests have that name."""
    before = untouched(home)
    named = {"host": host.format(port=page.server.port)}
    assert {page.ask(name, **named).status_code for name in ("", *PRIVATE)} == {421}
    assert {page.ask(name, body, **named).status_code for name, body in CHANGES.items()} == {421}
    assert untouched(home) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://localhost:{port}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_other_pages_in_the_same_browser_are_refused(page: OpenedPage, home: NodeHome, headers: dict[str, str]) -> None:
    """Even with the token: pages of another port, of no origin, or elsewhere."""
    before = untouched(home)
    given = {name: value.format(port=page.server.port) for name, value in headers.items()}
    assert {page.ask(name, body, **given).status_code for name, body in CHANGES.items()} == {403}
    answers = [page.ask(name, **given) for name in PRIVATE]
    if "sec-fetch-mode" not in headers:
        assert {answer.status_code for answer in answers} == {403}
    assert not [answer for answer in answers if "access-control-allow-origin" in answer.headers]
    assert untouched(home) == before


def test_what_a_page_may_post_without_asking_is_no_change(page: OpenedPage, home: NodeHome) -> None:
    before = untouched(home)
    address = f"http://127.0.0.1:{page.server.port}/api/pause"
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {"content-type": kind, "x-device-token": SECRET}
        assert (
            httpx.post(address, content='{"paused": true}', headers=headers, trust_env=False, verify=False).status_code
            == 415
        )
    assert untouched(home) == before


def test_rating_on_the_page_is_rating_on_the_device(page: OpenedPage, home: NodeHome) -> None:
    rated = dict(page.ask("api/saved").json()["ratings"])
    free = next(str(item) for item in range(40) if str(item) not in rated)
    assert page.ask("api/rate", {"item": free, "rating": 4}).status_code == 200
    with Store.open(home.store) as store:
        assert store.ratings()[ME][free] == 4.0
    assert page.ask("api/saved").json()["ratings"][-1] == [free, 4.0], "the last one comes last"
    assert page.ask("api/unrate", {"item": free}).status_code == 200
    assert dict(page.ask("api/saved").json()["ratings"]) == rated
    with Store.open(home.store) as store:
        assert store.ratings()[ME] == rated


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("api/rate", {"item": "3", "rating": 6}),
        ("api/rate", {"item": "3", "rating": 2.5}),
        ("api/rate", {"item": "3", "rating": "5"}),
        ("api/rate", {"item": "3", "rating": True}),
        ("api/rate", {"item": 3, "rating": 5}),
        ("api/rate", {"item": "x" * 2000, "rating": 5}),
        ("api/unrate", {"item": "never rated"}),
        ("api/mark", {"item": "3", "mark": "loved"}),
        ("api/pause", {"paused": "yes"}),
    ],
)
def test_what_can_t_be_is_refused_in_words(page: OpenedPage, home: NodeHome, name: str, body: dict) -> None:
    before = untouched(home)
    answer = page.ask(name, body)
    assert answer.status_code == 422
    assert answer.json()["problem"]
    assert answer.json()["remedy"]
    assert untouched(home) == before


def test_marks_stay_on_the_device(page: OpenedPage, home: NodeHome) -> None:
    page.ask("api/mark", {"item": "5", "mark": "hidden"})
    page.ask("api/mark", {"item": "6", "mark": "seen"})
    page.ask("api/mark", {"item": "6", "mark": None})
    assert page.ask("api/saved").json()["marks"] == {"5": "hidden"}
    with Store.open(home.store) as store:
        assert marks_of(store) == {"5": "hidden"}


def test_what_was_sent_is_all_that_the_store_noted(page: OpenedPage, home: NodeHome) -> None:
    told = page.ask("api/sent").json()
    with Store.open(home.store) as store:
        sent = store.sent()
    assert len(sent) == 2, "one upload a round"
    assert (told["messages"], told["bytes"]) == (2, sum(line["bytes"] for line in sent))
    assert [line["at"] for line in told["sent"]] == [line["at"] for line in reversed(sent)]
    assert [line["bytes"] for line in told["sent"]] == [line["bytes"] for line in reversed(sent)]


def test_the_model_of_the_page_is_the_newest_that_the_device_has_seen(page: OpenedPage) -> None:
    facts, items = page.ask("model.json").json(), page.ask("items.json").json()
    assert facts["scale"] == {"low": 1.0, "high": 5.0, "step": 1.0}
    assert items["ids"] == [str(number) for number in range(40)]
    assert page.ask("model.bin").content


def test_the_switch_pauses_the_device_and_so_do_commands(tmp_path: Path) -> None:
    homes = prepared(tmp_path, small_ratings(), small_config(engine="reference", rounds=1), nodes=3)
    with opened(homes[0]) as page:
        for paused in (True, False):
            page.ask("api/pause", {"paused": paused})
            assert page.ask("api/sent").json()["paused"] is paused
    for command in ("pause", "resume"):
        assert exit_code_of(["device", command, "--home", str(homes[1].path)]) == 0
    serve(InProcessLink(homes), tmp_path / "run")
    assert [line["lost"] for line in journal_of(tmp_path / "run")] == [{}]


def test_deleting_everything_needs_to_be_sure_and_ends_the_page(tmp_path: Path) -> None:
    home = took_part(tmp_path)[0]
    with opened(home) as page:
        assert page.ask("api/forget", {}).status_code == 400
        assert home.store.exists()
        assert page.ask("api/forget", {"sure": True}).status_code == 200
        assert not home.store.exists()
        page.thread.join(GIVE_UP)
        assert not page.thread.is_alive()


def test_a_device_without_a_model_says_what_to_do(tmp_path: Path) -> None:
    assert exit_code_of(["device", "init", "--home", str(tmp_path / "device")]) == 0
    with opened(NodeHome(tmp_path / "device")) as page:
        answer = page.ask("model.json")
        assert answer.status_code == 422
        assert "node join" in answer.json()["remedy"]


def test_slow_and_many_connections_are_cut_off(home: NodeHome) -> None:
    with opened(home, seconds=0.5) as page:
        connections = [socket.create_connection(("127.0.0.1", page.server.port), GIVE_UP) for _ in range(20)]
        began = time.monotonic()
        for each in connections:
            with each:
                while time.monotonic() - began < GIVE_UP:
                    try:
                        each.sendall(b"G")  # a byte now and then
                    except OSError:
                        break
                    time.sleep(0.02)
        assert time.monotonic() - began < 60.0
        assert page.ask("api/sent").status_code == 200


def test_the_command_prints_a_link_that_ends_with_it(home: NodeHome) -> None:
    source = str(Path(fedrecplus.__file__).parents[1])
    words = [sys.executable, "-m", "fedrecplus", "device", "page", "--home", str(home.path), "--person", "0"]
    links = []
    for _ in range(2):
        environment = {**os.environ, "PYTHONPATH": source, "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            links.append(process.stdout.readline().split()[0])
            place, _, token = links[-1].partition("#token=")
            file = home.path / "page.html"
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert links[-1] in file.read_text()
            answer = httpx.get(f"{place}api/sent", headers={"x-device-token": token}, trust_env=False, timeout=GIVE_UP)
            assert answer.json()["messages"] == 2
            process.send_signal(signal.SIGTERM)
            assert process.wait(GIVE_UP) == 0
        assert not file.exists()
    assert links[0].partition("#token=")[2] != links[1].partition("#token=")[2]
    assert len(links[0].partition("#token=")[2]) >= 43, "256 bits"


def test_a_device_stays_light() -> None:
    heavy = "{'fastapi', 'uvicorn', 'sqlalchemy', 'numba', 'torch'}"
    code = f"import sys, fedrecplus.web.device_page as _; print({heavy} & set(sys.modules))"
    source = str(Path(fedrecplus.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "set()", done.stderr


def test_a_paused_device_says_one_word_to_whatever_comes(tmp_path: Path) -> None:
    """Before anything is read: also to later stages of a sum, to rounds that were answered before, and to nonsense."""
    home = took_part(tmp_path)[0]
    assert exit_code_of(["device", "pause", "--home", str(home.path)]) == 0
    for packet in (Packet({}, {}), Packet({"stage": "reveal"}, {}), Packet({"version": "other"}, {"V": np.zeros(3)})):
        reply = answer(packet, home.store)
        assert (reply.facts["refusal"], reply.arrays) == ("paused", {})
        assert set(reply.facts) == {"version", "refusal"}


def test_a_deployed_run_is_published_and_shown_on_a_device_without_rounds(tmp_path: Path) -> None:
    took_part(tmp_path)
    published = Registry(tmp_path / "registry").publish(tmp_path / "run")
    assert published.figures["algorithm"] == "fedrec+private"
    assert exit_code_of(["device", "init", "--home", str(tmp_path / "device")]) == 0
    pages = DevicePages(NodeHome(tmp_path / "device"), ME, published.folder)
    answer = pages.read("items.json")
    assert answer is not None
    assert json.loads(answer.content)["ids"] == [str(number) for number in range(40)]
