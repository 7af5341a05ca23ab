"""The commands of ``make frontier``: each has a place of its own, and waits for what it reads."""

from __future__ import annotations

from pathlib import Path

from benchmarks.frontier import Extent, Step, run_all, steps


def test_steps_have_names_and_places_of_their_own_and_read_what_there_is(tmp_path: Path) -> None:
    found = {step.name: step for step in steps(Extent(tmp_path / "frontier"))}
    assert len(found) == len(steps(Extent(tmp_path / "frontier")))
    written = [step.arguments[-1] for step in found.values()]
    assert len(set(written)) == len(written)
    assert all(Path(place).parent.name in ("frontier", "frontier-more") for place in written)
    for step in found.values():
        if step.after:
            assert found[step.after].arguments[-1] in step.arguments


def test_a_step_begins_after_the_one_it_reads_and_failures_are_told(tmp_path: Path) -> None:
    waits = Step("second", ("presets", "fedmf"), 9.0, after="first")
    done = run_all([waits, Step("first", ("presets", "fedrec"), 1.0), Step("bad", ("nothing",), 5.0)], 2, tmp_path)
    names = [one["name"] for one in done]
    assert names.index("first") < names.index("second")
    assert {one["name"]: one["code"] == 0 for one in done} == {"first": True, "second": True, "bad": False}
    assert "fedmf" in (tmp_path / "second.log").read_text(encoding="utf-8")
