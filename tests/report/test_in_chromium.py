"""The page in a real browser: plots drawn, console silent, no request, light and dark, wide and narrow, printed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from tests.report.small_report import small_inputs
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.slow
DRAWN = "Array.from(document.querySelectorAll('.plot'), place => place.querySelectorAll('.main-svg').length > 0)"
TICK = "document.querySelector('.plot .xtick text')"
COLOURS = f"[getComputedStyle(document.body).backgroundColor, getComputedStyle({TICK}).fill]"
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = small_inputs(tmp_path_factory.mktemp("paper"))
    assert exit_code_of(["report", str(folder), "--out", str(folder / "report.html")]) == 0
    return (folder / "report.html").as_uri()


def opened(browser, address: str, **how):
    """A page that has come to rest, with its complaints and requests."""
    page = browser.new_page(**how)
    page.set_default_timeout(1000 * GIVE_UP)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if _outside(request.url, address) else None)
    page.goto(address)
    page.wait_for_function(f"{DRAWN}.every(Boolean)")
    return page, complaints


def _outside(url: str, address: str) -> bool:
    return url != address and not url.startswith("data:")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_is_drawn_without_a_complaint(browser, address: str, scheme: str, width: int) -> None:
    page, complaints = opened(browser, address, color_scheme=scheme, viewport={"width": width, "height": 900})
    drawn = page.evaluate(DRAWN)
    assert len(drawn) >= 8
    assert all(drawn)
    needed, there = page.evaluate(WIDTHS)
    assert needed <= there, "the page must not scroll sideways"
    assert complaints == []
    page.close()


def test_what_is_wider_than_the_page_says_that_it_scrolls(browser, address: str) -> None:
    page, _ = opened(browser, address, viewport={"width": 390, "height": 900})
    shown = page.evaluate("""Array.from(document.querySelectorAll('.scroll')).filter(each => each.offsetParent)
      .map(each => [each.scrollWidth > each.clientWidth + 1, each.nextElementSibling.offsetHeight > 0])""")
    assert [True, True] in shown
    assert all(wider == said for wider, said in shown)
    page.close()


def test_every_case_and_every_tick_has_a_whole_label(browser, address: str) -> None:
    page, _ = opened(browser, address)
    labels = page.evaluate("""Array.from(document.querySelectorAll('.plot'), place => [
      place.layout.yaxis.type === 'category' ? new Set(place.data.flatMap(each => each.y).filter(Boolean)).size : 0,
      place.querySelectorAll('.ytick text').length])""")
    assert any(names for names, _ in labels)
    assert all(names in (0, shown) for names, shown in labels)
    ticks = page.evaluate("""Array.from(document.querySelectorAll('.plot')).flatMap(place =>
      ['xaxis', 'yaxis'].map(name => place.layout[name]).filter(axis => axis && axis.type === 'log')
      .map(axis => [axis.tickvals, axis.ticktext]))""")
    assert ticks
    for values, texts in ticks:
        assert [float(text.replace(",", "")) for text in texts] == pytest.approx(values)
    page.close()


def test_colours_follow_the_reader(browser, address: str) -> None:
    page, complaints = opened(browser, address, color_scheme="light")
    light = page.evaluate(COLOURS)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"light => {TICK} && {COLOURS}.every((colour, which) => colour !== light[which])", arg=light)
    assert complaints == []
    page.close()


def test_it_prints_in_ink_on_white_with_every_origin_open(browser, address: str, tmp_path: Path) -> None:
    page, complaints = opened(browser, address, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_function("Array.from(document.querySelectorAll('details.made')).every(each => each.open)")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.pdf(path=str(tmp_path / "report.pdf"), format="A4")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000
    assert complaints == []
    page.close()


@pytest.mark.parametrize(
    "broken",
    ["<script>console.error('x')</script>", "<script>throw 1</script>", "<img src='http://127.0.0.1:9/x.png'>"],
)
def test_the_check_itself_sees_errors_and_requests(browser, address: str, broken: str, tmp_path: Path) -> None:
    whole = Path(address.removeprefix("file://")).read_text()
    (tmp_path / "broken.html").write_text(whole.replace("</main>", f"</main>{broken}"))
    page, complaints = opened(browser, (tmp_path / "broken.html").as_uri())
    end = time.monotonic() + GIVE_UP
    while not complaints:
        assert time.monotonic() < end, "nothing was seen"
        page.wait_for_timeout(50)
    page.close()
