"""No server talks a device into a weaker channel: that takes the owner's word, and with pins not even that helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.device import Store, answer, own_key, pin_identities
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.rounds import start_server
from tests.deploy.in_process import MODEL, small_config
from tests.deploy.summing import secure_config
from tests.small_data import small_ratings

CATALOGUE = ItemCatalogue.published(small_ratings())


@pytest.fixture
def home(tmp_path: Path) -> list[str]:
    arguments = ["--home", str(tmp_path / "me")]
    assert exit_code_of(["device", "init", *arguments]) == 0
    assert exit_code_of(["device", "rate", "3", "4", *arguments]) == 0
    assert exit_code_of(["device", "policy", "--allow-demonstration", "--allow-any-task", *arguments]) == 0
    return arguments


def refused(home: list[str], channel: str, model: str = MODEL, pinned: bool = False) -> str:
    """The word that a device refuses with; nothing where it answers."""
    config = secure_config() if channel == "secure" else small_config()
    session = b"s" * 16 if channel == "secure" else b""
    state = start_server(config, CATALOGUE.public)
    packet = encode_request(model, state, config, CATALOGUE, attach=True, session=session, pinned=pinned)
    return str(answer(packet, Path(home[1]) / "store.db").facts.get("refusal", ""))


def pin(home: list[str]) -> None:
    with Store.open(Path(home[1]) / "store.db") as store:
        own = own_key(store).public_key().public_bytes_raw()
        pin_identities(store, [own, bytes(range(32)), bytes(range(1, 33))])


def test_uploads_in_the_clear_take_the_owner_s_word(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(home, "clear") == "policy"
    assert refused(home, "secure", "aa") == ""
    assert exit_code_of(["device", "policy", "--channel", "clear", *home]) == 0
    assert "uploads by clear;" in capsys.readouterr().out
    assert refused(home, "clear", "bb") == ""
    assert refused(home, "secure", "cc") == "policy", "what the owner says, and nothing else"


def test_the_word_can_be_given_when_joining(home: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedrecplus.cli.node.run", lambda *_, **__: None)
    join = ["node", "join", "127.0.0.1:9092", "--insecure"]
    assert exit_code_of([*join, *home]) == 0
    assert refused(home, "clear") == "policy"
    assert exit_code_of([*join, "--allow-clear", *home]) == 0
    assert refused(home, "clear") == ""


def test_pins_mean_signed_sums_alone_whatever_the_channels(home: list[str]) -> None:
    pin(home)
    for words in ([], ["device", "policy", "--channel", "clear", "--channel", "secure", *home]):
        assert not words or exit_code_of(words) == 0
        assert refused(home, "clear") == "policy"
        assert refused(home, "secure", "aa") == "sum", "not signed"
        assert refused(home, "secure", "bb", pinned=True) == ""


def test_a_refused_catalogue_is_not_kept_nor_shown(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A server could fill the disk, and put titles before its owner."""
    assert refused(home, "clear") == "policy"
    with Store.open(Path(home[1]) / "store.db") as store:
        assert store.value("SELECT COUNT(*) FROM catalogues") == 0
    assert refused(home, "secure") == ""
    with Store.open(Path(home[1]) / "store.db") as store:
        assert store.value("SELECT COUNT(*) FROM catalogues") == 1
