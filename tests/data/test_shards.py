"""Shards: the same ratings in several files, streamed where they are made up, and refused where they are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fedrecplus as fr
from fedrecplus import data
from fedrecplus.cli.data import data_app
from fedrecplus.data import Ratings, split
from fedrecplus.data.shards.manifest import MANIFEST, ShardFolder
from fedrecplus.data.shards.read import read_all, read_shard, sharded_ratings
from fedrecplus.data.shards.write import shard_ratings, shard_synthetic
from fedrecplus.data.synthetic.truth import SyntheticOptions
from fedrecplus.engines import public_items
from fedrecplus.errors import UserError
from tests.small_data import small_ratings

SYNTHETIC = "clients=101,items=40,ratings_per_client=9"


def assert_same(one: Ratings, other: Ratings) -> None:
    for name in ("indptr", "items", "codes", "client_ids", "item_ids"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.scale == other.scale
    assert one.items.dtype == other.items.dtype
    assert one.catalogue is not None
    assert other.catalogue is not None
    assert one.catalogue.titles == other.catalogue.titles
    np.testing.assert_array_equal(one.catalogue.genres, other.catalogue.genres)


def test_shards_together_are_the_ratings_they_were_made_of(tmp_path: Path) -> None:
    ratings = small_ratings()
    folder = shard_ratings(ratings, tmp_path / "shards", 4)
    assert_same(read_all(folder), ratings)
    assert_same(data.load(str(tmp_path / "shards")), ratings)
    assert sum(len(read_shard(folder, shard)) for shard in folder.shards) == len(ratings)
    training, test = split(ratings, 1)
    column_training, column_test = split(read_all(folder), 1, how="column")
    np.testing.assert_array_equal(training.items, column_training.items)
    np.testing.assert_array_equal(test.codes, column_test.codes)


@pytest.mark.parametrize("shards", [1, 3, 101])
def test_a_synthetic_set_made_shard_by_shard_is_the_one_made_at_once(tmp_path: Path, shards: int) -> None:
    folder = shard_synthetic(SyntheticOptions.parse(SYNTHETIC), tmp_path, shards)
    assert_same(read_all(folder), data.load(f"synthetic:{SYNTHETIC}"))
    folds = read_all(folder).folds
    assert folds is not None
    assert set(folds.tolist()) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("fold", [None, 2])
def test_what_is_public_is_the_same_without_the_ratings(tmp_path: Path, fold: int | None) -> None:
    ratings = small_ratings()
    sharded = sharded_ratings(shard_ratings(ratings, tmp_path, 3), fold)
    training = ratings if fold is None else split(ratings, fold)[0]
    np.testing.assert_array_equal(sharded.indptr, training.indptr)
    assert len(sharded.items) == 0
    assert len(sharded) == len(training)
    public, expected = public_items(sharded), public_items(training)
    for name in ("content", "popularity", "average", "years", "mean", "noise", "people"):
        np.testing.assert_allclose(getattr(public, name), getattr(expected, name), rtol=1e-13)
    with pytest.raises(UserError, match="in one place"):
        sharded.of(0)


def test_a_folder_is_replaced_only_if_asked(tmp_path: Path) -> None:
    shard_ratings(small_ratings(), tmp_path, 2)
    with pytest.raises(UserError, match="holds shards already"):
        shard_ratings(small_ratings(), tmp_path, 3)
    assert len(shard_ratings(small_ratings(), tmp_path, 3, overwrite=True).shards) == 3
    with pytest.raises(UserError, match="can't be put into 1,000 shards"):
        shard_ratings(small_ratings(), tmp_path / "more", 1000)


def test_damage_is_named_by_file_with_a_remedy(tmp_path: Path) -> None:
    folder = shard_ratings(small_ratings(), tmp_path, 2)
    file = tmp_path / folder.shards[1].ratings_file
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match=r"ratings-00001\.parquet is not the file") as error:
        read_shard(folder, folder.shards[1])
    assert "data shard" in error.value.remedy
    file.unlink()
    with pytest.raises(UserError, match=r"ratings-00001\.parquet: no such file"):
        read_all(ShardFolder.read(tmp_path))
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(UserError, match=r"manifest\.json can't be read"):
        ShardFolder.read(tmp_path)
    with pytest.raises(UserError, match="there is no folder"):
        ShardFolder.read(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no fold 7"):
        sharded_ratings(folder, 7)


def test_a_path_without_shards_is_refused_with_what_is_there_and_how_to_write_them(tmp_path: Path) -> None:
    def refused(path: Path) -> UserError:
        with pytest.raises(UserError) as error:
            fr.open_shards(path)
        return error.value

    nothing = refused(tmp_path / "nope")
    assert "no folder" in nothing.problem
    assert nothing.remedy == f"write shards there: fedrecplus data shard DATASET --out {tmp_path / 'nope'} --shards 8"
    there = shard_ratings(small_ratings(), tmp_path / "there", 2).path
    assert refused(tmp_path / "nope").remedy.startswith(f"there are shards in {there}; or write")
    assert refused(tmp_path).problem == f"{tmp_path} holds no shards: it has no manifest.json"
    (tmp_path / "ratings.csv").write_text("user,item,rating\n1,1,5\n")
    assert f"fedrecplus data shard {tmp_path / 'ratings.csv'}" in refused(tmp_path / "ratings.csv").remedy
    (there / MANIFEST).unlink()
    assert "--overwrite" in refused(there).remedy


def test_the_command_writes_a_manifest_with_counts_and_digests(tmp_path: Path) -> None:
    arguments = ["shard", f"synthetic:{SYNTHETIC}", "--out", str(tmp_path), "--shards", "3"]
    result = CliRunner().invoke(data_app, arguments, catch_exceptions=False)
    assert "101 clients in 3 shards" in result.output
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert [one["clients"] for one in manifest["shards"]] == [33, 34, 34]
    assert all(len(one["ratings_digest"]) == 64 for one in manifest["shards"])
