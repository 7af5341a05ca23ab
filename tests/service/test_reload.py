"""Another model takes the place of the one that is served, and no request notices."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from fedrecplus.training import MODEL, Recommender, Registry, finished_model
from tests.service.running import Service, command
from tests.training.published_runs import finished_run
from tests.waiting import GIVE_UP, wait_until

RATINGS = {"3": 5.0, "7": 1.0, "11": 4.0}


def served(service: Service) -> int:
    with service.client() as client:
        return client.get("/health").json()["model"]


def test_publish_and_rollback_while_requests_run(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    """Every answer is the list of the model that it names, and none is missing."""
    registry = Registry(tmp_path / "registry")
    registry.publish(runs[0])
    expected = {
        number: [
            (row.item, row.rating)
            for row in Recommender.for_newcomers(finished_model(run, ())[0]).fold_in(RATINGS).top_items(5)
        ]
        for number, run in enumerate(runs, 1)
    }
    assert expected[1] != expected[2]
    answers: list[tuple[int, list[tuple[int, float]]]] = []
    stop = threading.Event()
    with command(tmp_path / "registry", tmp_path / "errors", "--rate", "0") as service:

        def ask() -> None:
            with service.client() as client:
                while not stop.is_set():
                    answer = client.post("/recommend", json={"ratings": RATINGS, "n": 5})
                    assert answer.status_code == 200
                    content = answer.json()
                    answers.append((content["number"], [(row["item"], row["rating"]) for row in content["items"]]))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: len(answers) > 20)
            registry.publish(runs[1])
            wait_until(lambda: answers[-1][0] == 2)
            registry.rollback()
            wait_until(lambda: answers[-1][0] == 1)
        finally:
            stop.set()
            for thread in threads:
                thread.join(GIVE_UP)
        code, log = service.stop()
    assert code == 0
    assert {number for number, _ in answers} == {1, 2}
    assert all(rows == expected[number] for number, rows in answers)
    assert "Traceback" not in log


def test_a_model_that_can_t_be_read_is_not_taken(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    registry = Registry(tmp_path / "registry")
    first, second = (registry.publish(run) for run in runs)
    registry.rollback()
    (second.folder / MODEL).chmod(0o644)
    shutil.copy(first.folder / MODEL, second.folder / MODEL)
    with command(tmp_path / "registry", tmp_path / "errors") as service, service.client() as client:
        (registry.folder / "current").write_text("2\n")
        wait_until(lambda: 'fedrecplus_reloads_total{how="failed"} 1.0' in client.get("/metrics").text)
        time.sleep(0.3)
        assert 'fedrecplus_reloads_total{how="failed"} 1.0' in client.get("/metrics").text, "tried once"
        assert client.get("/health").json()["model"] == 1
        assert client.post("/recommend", json={"ratings": RATINGS}).json()["number"] == 1
        registry.publish(finished_run(tmp_path / "three", seed=2))
        wait_until(lambda: client.get("/health").json()["model"] == 3)
        _, log = service.stop()
    assert "not what was published" in log


def test_termination_lets_requests_finish(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    body = json.dumps({"ratings": RATINGS}).encode()
    head = ["POST /recommend HTTP/1.1", "Host: localhost", "Content-Type: application/json", "Connection: close"]
    head += ["Expect: 100-continue", f"Content-Length: {len(body)}", "", ""]
    with command(runs[0], tmp_path / "errors") as service:
        address = urlsplit(service.address)
        place = str(address.hostname), int(address.port or 0)
        with socket.create_connection(place, timeout=GIVE_UP) as opened:
            opened.sendall("\r\n".join(head).encode())
            assert opened.recv(10_000).startswith(b"HTTP/1.1 100"), "the request has begun"
            service.process.terminate()
            wait_until(lambda: takes_nobody_more(place))
            opened.sendall(body)
            answer = b"".join(iter(lambda: opened.recv(10_000), b""))
        assert service.process.wait(GIVE_UP) == 0
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"items"' in answer


def takes_nobody_more(place: tuple[str, int]) -> bool:
    """Whether the service has heard the signal."""
    try:
        socket.create_connection(place, timeout=GIVE_UP).close()
    except ConnectionRefusedError:
        return True
    return False
