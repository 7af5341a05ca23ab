"""The store: private, atomic, and a full disk loses nothing."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fedrecplus.data import Scale
from fedrecplus.deploy.device import StorageFull, Store
from fedrecplus.deploy.device.owner import import_many
from fedrecplus.deploy.device.round import client_secret
from fedrecplus.deploy.node import NodeHome
from fedrecplus.errors import UserError
from fedrecplus.randomness import purpose, subkey

STARS = Scale(1.0, 5.0, 1.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Store.create(tmp_path / "device" / "store.db", STARS)
    return tmp_path / "device" / "store.db"


def test_only_the_owner_may_read_it(path: Path) -> None:
    with Store.open(path) as store:
        store.rate({"a": 5.0})
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_secrets_come_from_the_operating_system(tmp_path: Path, path: Path) -> None:
    Store.create(tmp_path / "other" / "store.db", STARS)
    with Store.open(path) as one, Store.open(tmp_path / "other" / "store.db") as other:
        assert one.secret != other.secret
        assert one.wire_number("ab", 0) != one.wire_number("cd", 0), "models can't be joined by the number"
        assert 0 <= one.wire_number("ab", 0) < 2**62


def test_ratings_are_in_the_order_in_which_they_were_given(path: Path, tmp_path: Path) -> None:
    table = tmp_path / "silo.csv"
    table.write_text("user,item,rating,timestamp\nme,z,5,3\nme,a,4,9\nme,k,3,1\nyou,a,2,5\n")
    with Store.open(path) as store:
        import_many(store, table)
        store.rate({"m": 1.0})
        store.rate({"k": 2.0})
        assert list(store.ratings()[0]) == ["z", "a", "m", "k"]


def unmixed(key: int, index: int) -> int:
    """The key that ``randomness.mix`` made this one of."""
    word = 2**64

    def unshifted(z: int, by: int) -> int:
        found = z
        for _ in range(64 // by + 1):
            found = z ^ (found >> by)
        return found

    z = unshifted(key, 31) * pow(0x94D049BB133111EB, -1, word) % word
    z = unshifted(z, 27) * pow(0xBF58476D1CE4E5B9, -1, word) % word
    return (unshifted(z, 30) - (index + 1) * 0x9E3779B97F4A7C15) % word


def test_the_number_on_the_wire_does_not_lead_back_to_the_secret(path: Path) -> None:
    model, person = "9f3a0c17b2d4e611", 0

    def candidates(number: int) -> set[int]:
        found = set()
        for low in range(4):
            key = number << 2 | low
            for index in (person, int(model, 16), purpose("wire-number")):
                key = unmixed(key, index)
            found.add(key)
        return found

    with Store.open(path) as store:
        word = store.secret % 2**64
        inverted = subkey(word, "wire-number", int(model, 16), person) >> 2
        assert word in candidates(inverted), "the attack works on what SplitMix makes"
        assert word not in candidates(store.wire_number(model, person))
        own = client_secret(store, person)
        assert isinstance(own, bytes), "draws by a cryptographic hash, keyed with 256 bits"
        assert len(own) == 32
        assert store.secret > 2**200


def test_ratings_are_added_changed_and_taken_back(path: Path) -> None:
    with Store.open(path) as store:
        store.rate({"a": 5.0, "b": 1.0})
        store.rate({"a": 4.0})
        store.unrate("b")
        assert store.ratings() == {0: {"a": 4.0}}
        with pytest.raises(UserError, match="isn't rated"):
            store.unrate("b")


@pytest.mark.parametrize("rating", [0.0, 3.5, 6.0, float("nan"), float("inf")])
def test_a_rating_off_the_scale_keeps_its_whole_batch_out(path: Path, rating: float) -> None:
    with Store.open(path) as store:
        with pytest.raises(UserError, match="scale"):
            store.rate({"good": 3.0, "bad": rating})
        assert store.ratings() == {0: {}}


def test_a_full_disk_is_named_and_loses_nothing(path: Path) -> None:
    with Store.open(path) as store:
        store.rate({"before": 3.0})
        pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
        store.connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(sqlite3.OperationalError, match="full"):
            store.rate({f"item {number}": 3.0 for number in range(5000)})
        assert store.ratings() == {0: {"before": 3.0}}
    with pytest.raises(StorageFull, match="nothing that was stored is lost"):
        _fill_to_the_brim(path)


def _fill_to_the_brim(path: Path) -> None:
    with Store.open(path) as store:
        store.connection.execute("PRAGMA max_page_count = 1")
        store.rate({f"item {number}": 3.0 for number in range(5000)})


def test_a_kill_in_a_transaction_leaves_what_was_before(path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from fedrecplus.deploy.device import Store\n"
        "with Store.open(Path(sys.argv[1])) as store:\n"
        "    store.rate({'kept': 4.0})\n"
        "    store.connection.execute('BEGIN IMMEDIATE')\n"
        "    store.connection.execute(\"INSERT INTO ratings VALUES (0, 'half', 2.0, '')\")\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == -9
    with Store.open(path) as store:
        assert store.ratings() == {0: {"kept": 4.0}}


def test_damage_and_strangers_are_errors_in_words(tmp_path: Path, path: Path) -> None:
    with pytest.raises(UserError, match="is there already"):
        Store.create(path, STARS)
    with pytest.raises(UserError, match="no store of ratings"), Store.open(tmp_path / "nowhere.db"):
        pass
    path.write_bytes(b"no database at all, but long enough to be taken for one" * 100)
    with pytest.raises(UserError, match="damaged"), Store.open(path):
        pass


@pytest.mark.parametrize(
    ("layout", "said"),
    [(99, r"made by fedrecplus 9\.9(.|\n)*upgrade fedrecplus"), (1, "take the fedrecplus that made it"),
     (0, "no store of fedrecplus")],
)  # fmt: skip
def test_a_store_of_another_version_is_refused_and_left_alone(path: Path, layout: int, said: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE facts SET value = '9.9' WHERE name = 'made_by'")
        raw.execute(f"PRAGMA user_version = {layout}")
    before = path.read_bytes()
    with pytest.raises(UserError, match=said), Store.open(path):
        pass
    assert path.read_bytes() == before


def test_forgetting_clears_the_log_of_a_writer_that_was_killed(path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from fedrecplus.deploy.device import Store\n"
        "with Store.open(Path(sys.argv[1])) as store:\n"
        "    store.rate({'canary-item': 4.0})\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    log = path.with_name(path.name + "-wal")
    assert b"canary-item" in log.read_bytes()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    descriptors = [os.open(file, os.O_RDONLY) for file in (path, log)]
    NodeHome(path.parent).forget()
    assert not any(b"canary-item" in os.pread(descriptor, 10**7, 0) for descriptor in descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    assert not path.parent.exists()


def test_forgetting_leaves_no_byte_of_a_rating(tmp_path: Path) -> None:
    home = NodeHome(tmp_path / "device")
    Store.create(home.store, STARS)
    home.make_key()
    with Store.open(home.store) as store:
        store.rate({"canary-item": 5.0})
    (home.path / "other.txt").write_text("not ours")
    descriptor = os.open(home.store, os.O_RDONLY)  # the bytes on the disk, also after the name is gone
    home.forget()
    assert b"canary-item" not in os.pread(descriptor, 10**7, 0)
    os.close(descriptor)
    assert [file.name for file in home.path.iterdir()] == ["other.txt"]
    with pytest.raises(UserError, match="no device"):
        home.forget()
