"""The page in a real browser: rate, reload, delete, offline, keyboard, filters, and no request after loading."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.page.browser import Opened, served

pytestmark = pytest.mark.slow
FIVE = {"Item 3": 5, "Item 10": 1, "Item 21": 4, "Item 40": 2, "Item 77": 3}
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Opened]:
    one = Opened(browser, address, viewport={"width": 1280, "height": 900})
    yield one
    one.close()


def rate_five(opened: Opened) -> None:
    for title, stars in FIVE.items():
        opened.rate(title, stars)


def test_rate_five_reload_recommend_delete(opened: Opened) -> None:
    everybody = opened.listed()
    rate_five(opened)
    assert opened.rated() == FIVE
    mine = opened.listed()
    assert mine != everybody, "the list changes with what was rated"
    assert not set(mine) & set(FIVE)
    opened.until(lambda: opened.page.locator(".entry .reason").count(), "reasons")
    assert set(opened.page.locator(".entry .reason").all_inner_texts()) <= set(FIVE)
    opened.saved()
    opened.page.reload()
    opened.ready()
    assert opened.rated() == FIVE, "ratings are still there"
    assert opened.listed() == mine
    opened.delete_everything()
    assert opened.listed() == everybody
    assert opened.page.evaluate("indexedDB.databases().then((all) => all.length)") == 0
    opened.page.reload()
    opened.ready()
    assert opened.rated() == {}
    assert opened.complaints == []


def test_after_loading_nothing_is_asked_for(opened: Opened, address: str) -> None:
    opened.installed()
    assert all(url.startswith(address) for url in opened.requests)
    opened.requests.clear()
    rate_five(opened)
    opened.page.get_by_label("Genre").select_option(label="a")
    opened.page.locator(".entry").first.get_by_role("button", name="Hide").click()
    with opened.page.expect_download():
        opened.page.click("#export")
    opened.page.get_by_role("link", name="What leaves").click()
    for tab in opened.page.get_by_role("tab").all():
        tab.click()
    opened.page.wait_for_timeout(500)
    assert [url for url in opened.requests if not url.startswith("blob:")] == []
    assert opened.complaints == []


def test_the_watch_itself_sees_a_request(opened: Opened, address: str) -> None:
    opened.requests.clear()
    opened.page.evaluate("fetch('no-such-file').catch(() => null)")
    opened.until(lambda: opened.requests, "a request")


def test_it_opens_and_works_without_a_network(browser: Any, site_of: Callable[[str], Path]) -> None:
    with served(site_of("fedmf")) as where:
        one = Opened(browser, where)
        one.installed()
        one.rate("Item 3", 5)
        one.saved()
    one.page.reload()  # the server is gone
    one.ready()
    assert one.rated() == {"Item 3": 5}
    before = one.listed()
    one.rate("Item 5", 1)
    assert one.listed() != before
    one.close()


def test_where_the_browser_keeps_nothing_the_page_works_and_says_so(browser: Any, address: str) -> None:
    refusing = """Object.defineProperty(window, 'indexedDB', { value: { open() {
      const request = {}; setTimeout(() => request.onerror()); return request; } } });"""
    one = Opened(browser, address, refusing)
    one.rate("Item 3", 5)
    assert one.rated() == {"Item 3": 5}
    assert one.page.get_by_text("keeps nothing for this page").count() == 1
    one.delete_everything()
    assert one.complaints == []
    one.close()


def test_rating_by_touch(browser: Any, address: str) -> None:
    one = Opened(browser, f"{address}#list", has_touch=True, is_mobile=True, viewport={"width": 390, "height": 800})
    first = one.listed()[0]
    one.page.locator(".entry").first.get_by_role("button", name=f"Rate {first} 4 of 5").tap()
    assert one.rated() == {first: 4}
    assert first not in one.listed()
    one.close()


def test_everything_can_be_done_by_keyboard(opened: Opened) -> None:
    page = opened.page
    keys = page.keyboard
    page.focus("body")
    for _ in range(6):  # past the links to the search box
        keys.press("Tab")
        if page.evaluate("document.activeElement.id") == "search":
            break
    keys.type("Item 21")
    keys.press("ArrowDown")
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    keys.press("Enter")
    assert opened.rated() == {"Item 21": 3}
    keys.press("5")
    assert opened.rated() == {"Item 21": 5}, "digits rate at once"
    page.locator(".entry .star").first.focus()
    first = opened.listed()[0]
    keys.press("4")
    assert opened.rated()[first] == 4
    assert page.evaluate("document.activeElement.closest('.entry') !== null"), "the next title has the focus"
    keys.press("Control+z")
    assert first not in opened.rated()
    page.get_by_role("link", name="What leaves").focus()
    keys.press("Enter")
    page.wait_for_selector("body[data-view=leaves]")
    page.get_by_role("tab", selected=True).focus()
    chosen = page.get_by_role("tab", selected=True).inner_text()
    keys.press("ArrowLeft")
    assert page.get_by_role("tab", selected=True).inner_text() != chosen
    page.get_by_role("link", name="Your list").focus()
    keys.press("Enter")
    page.wait_for_selector("body[data-view=list]")  # what is hidden takes no focus
    page.focus("#delete")
    keys.press("Enter")
    page.wait_for_selector("dialog[open]")
    keys.press("Tab")
    assert page.evaluate("document.activeElement.id") == "delete-sure"
    keys.press("Enter")
    opened.until(lambda: not opened.rated(), "deleted by keyboard")
    assert opened.complaints == []


def test_hide_seen_bring_back_and_undo(opened: Opened) -> None:
    first, second = opened.listed()[:2]
    page = opened.page
    page.get_by_role("button", name=f"Hide {first} for good").click()
    assert first not in opened.listed()
    page.get_by_role("button", name=f"Seen: take {second} off the list").click()
    assert second not in opened.listed()
    page.get_by_role("button", name="Undo").click()
    assert second in opened.listed()
    page.locator(".away summary").click()
    page.get_by_role("button", name=f"Bring back {first}").click()
    assert opened.listed()[:2] == [first, second]


def test_filters_by_genre_and_year(opened: Opened, site_of: Callable[[str], Path]) -> None:
    items = json.loads((site_of("fedrec+secure") / "items.json").read_text())
    of_b = {title for title, genres in zip(items["titles"], items["genres"], strict=True) if 1 in genres}
    opened.page.get_by_label("Genre").select_option(label="b")
    assert set(opened.listed()) <= of_b
    opened.page.get_by_label("From year").fill("1980")
    opened.page.get_by_label("To year").fill("1985")
    opened.page.get_by_label("To year").blur()
    years = [int(text) for text in opened.page.locator(".list .year").all_inner_texts()]
    assert years
    assert all(1980 <= year <= 1985 for year in years)


def test_an_export_can_be_imported_again(opened: Opened, tmp_path: Path) -> None:
    rate_five(opened)
    with opened.page.expect_download() as download:
        opened.page.click("#export")
    download.value.save_as(tmp_path / "mine.json")
    content = json.loads((tmp_path / "mine.json").read_text())
    assert {each["title"]: each["rating"] for each in content["ratings"]} == FIVE
    opened.delete_everything()
    opened.page.set_input_files("#import", tmp_path / "mine.json")
    opened.until(lambda: opened.rated() == FIVE, "imported")
    (tmp_path / "other.json").write_text('{"kind": "something"}')
    opened.page.set_input_files("#import", tmp_path / "other.json")
    opened.until(lambda: opened.page.get_by_text("no export of this page").count(), "a refusal")
    assert opened.rated() == FIVE


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("item,rating\n1,5\n\nonly one\n", "line 4 of this file"),
        ("", "no export of this page"),
        ("item,rating\n1,9\nnowhere,3\n2,\n", "no entry is of a title here"),
    ],
)
def test_a_file_with_faults_is_answered_in_words(opened: Opened, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "mine.csv").write_text(content)
    opened.page.set_input_files("#import", tmp_path / "mine.csv")
    opened.until(lambda: opened.page.get_by_text(said).count(), said)
    assert opened.rated() == {}


def test_titles_are_text_whatever_they_hold(browser: Any, site_of: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(site_of("fedmf"), tmp_path / "site")
    path = tmp_path / "site" / "items.json"
    items = json.loads(path.read_text())
    evil = "<img src=x onerror=alert(1)>"
    items["titles"] = [f"{evil} {number}" for number in range(len(items["titles"]))]
    path.write_text(json.dumps(items))
    with served(tmp_path / "site") as where:
        one = Opened(browser, where)
        assert one.listed()[0].startswith(evil)
        assert one.page.locator("main img").count() == 0
        assert one.complaints == []
        one.close()


def test_what_leaves_has_every_preset_and_says_what_it_can_t_show(opened: Opened) -> None:
    rate_five(opened)
    page = opened.page
    page.get_by_role("link", name="What leaves").click()
    opened.until(lambda: "…" not in page.locator(".verdict").all_inner_texts(), "all presets computed")
    kinds = {
        tab.locator(".preset-name").inner_text(): tab.get_attribute("data-kind")
        for tab in page.get_by_role("tab").all()
    }
    assert kinds == {
        "fedmf": "uploads", "fedrec": "no-model", "fedrec++": "no-model", "fedrec+paper": "no-model",
        "fedrec+": "uploads", "fedrec+private": "uploads", "fedrec+secure": "sums",
    }  # fmt: skip
    assert page.locator(".masked .noise").count() == 1, "the run's own preset is shown first"
    page.get_by_role("tab", name="fedmf").click()
    assert page.locator(".upload tbody tr").count() == len(FIVE)
    assert set(page.locator(".upload .title").all_inner_texts()) == set(FIVE)
    page.get_by_role("tab", name="fedrec+private").click()
    rows = page.locator(".upload tbody tr")
    assert rows.count() == 16, "five rated titles and decoys fill a size class"
    assert page.locator(".upload tr.decoy").count() == 11
    page.get_by_role("tab", name="fedrec++").click()
    assert "no model" in page.locator(".verdict-line").inner_text()
    assert opened.complaints == []


@pytest.mark.parametrize("name", ["half-stars", "fcf", "biased-mf", "ials"])
def test_other_scales_and_models_open_too(browser: Any, site_of: Callable[[str], Path], name: str) -> None:
    with served(site_of(name)) as where:
        one = Opened(browser, where + "#rate", viewport={"width": 390, "height": 800})
        one.rate("Item 3", 2)
        assert one.rated() == {"Item 3": 2}
        one.page.get_by_role("link", name="What leaves").click()
        one.until(lambda: "…" not in one.page.locator(".verdict").all_inner_texts(), "all presets computed")
        assert one.complaints == []
        one.close()


def test_a_search_that_finds_nothing_says_so(opened: Opened) -> None:
    opened.search("no such title")
    opened.until(lambda: "No title" in opened.page.locator("main").inner_text(), "said")


def test_where_people_dislike_too_the_page_lets_them(browser: Any, site_of: Callable[[str], Path]) -> None:
    with served(site_of("thumbs")) as where:
        one = Opened(browser, where)
        one.search("Item 3")
        group = one.page.locator("#results").get_by_role("group", name="Rate Item 3", exact=True)
        before = one.listed()
        group.get_by_role("button", name="Rate Item 3 dislike").click()
        one.until(lambda: one.page.locator(".mine .star[aria-pressed=true]").count() == 1, "rated")
        mine = one.page.locator(".mine .star")
        assert [button.get_attribute("aria-pressed") for button in mine.all()] == ["false", "true"]
        assert one.page.locator(".mine .star.lit").count() == 1
        assert one.listed() != before
        one.saved()
        one.page.reload()
        one.until(lambda: one.page.locator(".mine .star.lit").count() == 1, "kept")
        assert one.complaints == []
        one.close()


def test_likes_are_one_star_and_long_scales_a_slider(browser: Any, site_of: Callable[[str], Path]) -> None:
    with served(site_of("likes")) as where:
        one = Opened(browser, where)
        one.rate("Item 3", 1)
        assert one.rated() == {"Item 3": 1}
        assert one.page.locator(".mine .star").count() == 1
        one.page.locator(".mine .star").click()
        assert one.rated() == {}, "a second click takes it back"
        one.close()
    with served(site_of("hundred")) as where:
        one = Opened(browser, where)
        before = one.listed()
        one.search("Item 3")
        one.page.get_by_role("slider", name="Rate Item 3", exact=True).first.fill("90")
        one.until(lambda: one.page.locator(".mine .slider-value").all_inner_texts() == ["90"], "rated by slider")
        assert one.listed() != before
        assert one.complaints == []
        one.close()
