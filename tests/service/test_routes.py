"""The service as a client meets it: its routes, its errors, and what it does not keep."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from fedrecplus.cli import serve as serve_module
from fedrecplus.cli.main import exit_code_of
from fedrecplus.training import ListOptions, Recommender, Registry
from fedrecplus.web.page.build import read_model
from tests.service.running import Service, command

RATINGS = {"3": 5.0, "7": 1.0, "11": 4.0}


@pytest.fixture(scope="module")
def service(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("served")
    Registry(place / "registry").publish(run)
    with command(place / "registry", place / "errors", "--rate", "0") as running:
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    with service.client() as opened:
        yield opened


def test_health_names_the_model(client: httpx.Client, run: Path) -> None:
    answer = client.get("/health").json()
    assert answer["status"] == "ok"
    assert answer["model"] == 1
    assert len(answer["digest"]) == 64


@pytest.mark.parametrize("wish", [{}, {"n": 3, "why": True}, {"by": "rating", "include_seen": True}, {"explore": 0.5}])
def test_a_list_is_the_one_that_the_recommender_makes(client: httpx.Client, run: Path, wish: dict[str, Any]) -> None:
    answer = client.post("/recommend", json={"ratings": RATINGS, **wish}).json()
    person = Recommender.for_newcomers(read_model(run)[0]).fold_in(
        {int(item): rating for item, rating in RATINGS.items()}
    )
    expected = person.top_list(ListOptions(**wish)).items
    assert [row["item"] for row in answer["items"]] == [item.item for item in expected]
    assert [row["rating"] for row in answer["items"]] == [item.rating for item in expected]
    assert [[each["item"] for each in row["because"]] for row in answer["items"]] == [
        [each.item for each in item.because] for item in expected
    ]


def test_a_list_without_ratings_is_there_too(client: httpx.Client) -> None:
    assert len(client.post("/recommend", json={"ratings": {}}).json()["items"]) == 10


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"ratings": {"3": "good"}}, "ratings.3", "number"),
        ({"ratings": {"3": 5.5}}, "ratings", "scale 1:5:1"),
        ({"ratings": {"3": 5.0, "no such film": 4.0, "9999": 1.0}}, "ratings", "'no such film', '9999'"),
        ({"ratings": {}, "n": 0}, "n", "greater than or equal to 1"),
        ({"ratings": {}, "n": 10**6}, "n", "less than or equal"),
        ({"ratings": {}, "by": "magic"}, "by", "'list' or 'rating'"),
        ({"ratings": {}, "store": True}, "store", "Extra inputs"),
        ({"n": 3}, "ratings", "required"),
        ([1, 2], "", "dictionary"),
        ({"ratings": {"\ud800": 3}}, "ratings", "unknown items"),
        ({"ratings": {str(n): 1 for n in range(5001)}}, "ratings", "5000"),
    ],
)
def test_a_bad_body_is_answered_with_field_and_remedy(client: httpx.Client, body: Any, field: str, said: str) -> None:
    answer = client.post("/recommend", content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["field"] == field
    assert said in answer.json()["problem"]
    assert answer.json()["remedy"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"ratings": {"3": NaN}}', b'{"ratings": {"3": 1e999}}', b"[" * 20_000])
def test_what_is_no_json_is_refused_without_a_fault(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/recommend", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["problem"]
    assert answer.json()["field"] in ("body", "ratings.3", "")


def test_a_form_of_another_page_is_no_request(client: httpx.Client) -> None:
    """Browsers let every page post text and forms anywhere, without asking first."""
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        content = json.dumps({"ratings": RATINGS})
        answer = client.post("/recommend", content=content, headers={"content-type": kind})
        assert answer.status_code in (415, 422)
    answer = client.post("/recommend", content=content)
    assert "Content-Type: application/json" in answer.json()["remedy"]


def test_items_are_cached_compressed_and_searched(client: httpx.Client) -> None:
    whole = client.get("/items", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in whole.headers
    assert [row["item"] for row in whole.json()["items"]] == list(range(40))
    again = client.get("/items", headers={"if-none-match": whole.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    with client.stream("GET", "/items", headers={"accept-encoding": "gzip"}) as packed:
        assert gzip.decompress(b"".join(packed.iter_raw())) == whole.content
    found = client.get("/items", params={"search": "item 7"}).json()["items"]
    assert {row["title"] for row in found} == {"Item 7", "Item 17", "Item 27", "Item 37"}
    assert [row["ratings"] for row in found] == sorted((row["ratings"] for row in found), reverse=True)
    assert len(client.get("/items", params={"search": "item", "limit": 3}).json()["items"]) == 3


def test_the_table_has_digest_provenance_and_a_tag(client: httpx.Client, run: Path) -> None:
    answer = client.get("/model")
    facts = answer.json()
    result = json.loads((run / "result.json").read_text())
    assert facts["provenance"]["digest"] == client.get("/health").json()["digest"]
    assert facts["provenance"]["figures"]["rmse"] == round(result["rmse"], 3)
    assert facts["provenance"]["made"]["commit"] == result["made"]["commit"]
    table = client.get(facts["table"]["at"])
    assert hashlib.sha256(table.content).hexdigest() == facts["table"]["sha256"]
    again = client.get("/model", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    V = next(each for each in facts["arrays"] if each["name"] == "V")
    codes = np.frombuffer(table.content, V["type"], V["rows"] * V["columns"], V["offset"])
    values = np.array(V["low"]) + np.array(V["scale"]) * codes.reshape(V["rows"], V["columns"])
    np.testing.assert_allclose(values, read_model(run)[0].V, atol=max(V["scale"]) / 2 + 1e-9)


def test_the_page_is_there_with_all_its_files(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name in re.findall(r'(?:href|src)="([\w.]+)"', page.text):
        assert client.get(f"/{name}").status_code == 200, name
    assert client.get("/app.js").headers["content-type"] == "text/javascript; charset=utf-8"
    for name in ("sources.json", "clients.safetensors", "..%2fresult.json", "result.json"):
        assert client.get(f"/{name}").status_code == 404


def test_metrics_count_by_route_and_never_by_what_was_sent(client: httpx.Client) -> None:
    client.get("/unheard-of-path")
    client.get("/items", params={"search": "unheard-of-word"})
    text = client.get("/metrics").text
    assert re.search(r'^fedrecplus_requests_total\{route="/items",status="200"\} [1-9]', text, re.M)
    assert re.search(r'^fedrecplus_model_info\{algorithm="fedrec\+",digest="\w+",number="1"\} 1.0$', text, re.M)
    assert "unheard-of" not in text


def test_the_page_of_routes_needs_nobody_else(client: httpx.Client) -> None:
    page = client.get("/docs")
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert "<script" not in page.text
    assert "nothing of them is stored or logged" in page.text
    assert all(route in page.text for route in ("/recommend", "/items", "/health", "/metrics"))
    assert client.get("/docs.css").headers["content-type"].startswith("text/css")
    body = client.get("/openapi.json").json()["paths"]["/recommend"]["post"]
    assert "nothing of them is stored or logged" in body["description"]


def test_every_answer_tells_browsers_to_be_careful(client: httpx.Client) -> None:
    for answer in (client.get("/health"), client.get("/nowhere"), client.get("/health", headers={"host": "evil"})):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers
    assert client.post("/recommend", json={"ratings": RATINGS}).headers["cache-control"] == "no-store"


def test_nothing_that_a_person_sent_is_logged(run: Path, tmp_path: Path) -> None:
    """Neither bodies nor queries nor paths nor addresses, whether the request is good or bad."""
    with command(run, tmp_path / "errors") as service, service.client() as client:
        assert client.post("/recommend", json={"ratings": {"31": 5.0}}).status_code == 200
        assert client.post("/recommend", json={"ratings": {"31337": 5.0}}).status_code == 422
        assert client.post("/recommend", json={"ratings": {"31": 31337}}).status_code == 422
        client.get("/items", params={"search": "sesame 31337"})
        client.get("/sesame/31337")
        client.get("/health", headers={"host": "sesame.31337", "user-agent": "sesame 31337"})
        code, log = service.stop()
    assert code == 0
    assert "POST /recommend 200" in log
    assert "31337" not in log
    assert "sesame" not in log
    assert "127.0.0.1" not in log


def test_a_place_without_a_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["serve", str(tmp_path)]) == 2
    assert "neither a finished run nor a registry" in capsys.readouterr().err


def test_a_port_that_is_taken_is_an_error_with_a_remedy(
    run: Path, service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    port = service.address.rpartition(":")[2]
    assert exit_code_of(["serve", str(run), "--port", port]) == 2
    assert "another --port" in capsys.readouterr().err


def test_listening_everywhere_needs_a_name(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["serve", str(run), "--host", "0.0.0.0"]) == 2
    assert "--name" in capsys.readouterr().err


def test_a_missing_extra_is_named(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve_module.importlib.util, "find_spec", lambda name: None)
    assert exit_code_of(["serve", str(run)]) == 2
    assert "fedrecplus[serve]" in capsys.readouterr().err
