"""The operator's page, in a browser."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.processes import server_port
from fedrecplus.web.operator_page import page_server
from tests.deploy.in_process import InProcessLink, database_of, prepared, serve, small_config
from tests.small_data import small_ratings


def test_the_page_shows_a_run_to_who_has_its_token(browser: Any, tmp_path: Path) -> None:
    serve(InProcessLink(prepared(tmp_path, small_ratings(), small_config(rounds=2), nodes=2)), tmp_path / "run")
    home = ServerHome(tmp_path / "home", "127.0.0.1", server_port(), address=database_of(tmp_path / "run").address)
    home.prepare([])
    web, address = page_server(home)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        place, _, token = address.partition("#token=")
        with urllib.request.urlopen(place, timeout=30) as reply:
            assert token.encode() not in reply.read()
        known = {"X-Device-Token": token}
        for given, status in (
            ({}, 401),
            ({"X-Device-Token": "wrong"}, 401),
            ({"Host": "evil.example:80", **known}, 421),
        ):
            with pytest.raises(urllib.error.HTTPError, match=str(status)):
                urllib.request.urlopen(urllib.request.Request(f"{place}state", headers=given), timeout=30)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{place}state?token={token}", timeout=30)
        right = urllib.request.Request(f"{place}state", headers=known)
        with urllib.request.urlopen(right, timeout=30) as reply:
            state = json.loads(reply.read())
        assert (state["round"], state["phase"], len(state["rounds"])) == (2, "finished", 2)
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.wait_for_selector("#findings li")
        assert "finished, round 2" in page.inner_text("#headline")
        assert "the server doesn't answer" in page.inner_text("#findings")
        assert page.url == place, "the token is out of the address"
        page.reload()
        page.wait_for_selector("#findings li")
        assert not any(token in url for url in asked), "and in no request's"
        assert errors == []
        page.close()
    finally:
        web.shutdown()
        web.server_close()
