"""The page in a browser: charts are drawn, follow each other, obey; hostile names do nothing."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deeplfm.report import write_report
from deeplfm.report.names import short
from report.pages import HOSTILE, held_out, series

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WATCH = "window.called = []; window.alert = (...a) => window.called.push(a);"
RANGES = """() => [...document.querySelectorAll('.plot.drawn')]
    .filter(p => p.id.match('output|force'))
    .map(p => p._fullLayout.xaxis.range.map(v => +(+v).toPrecision(6)))"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield found
        found.close()


class Opened:
    """A page with what it said and asked for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        window = {"viewport": {"width": 1100, "height": 900}}
        context = browser.new_context(**(window | options))
        self.page = context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.add_init_script(WATCH)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-ready]", timeout=60_000)

    def quiet(self) -> None:
        """Nothing was reported, asked for or called."""
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(("file:", "data:", "blob:"))] == []
        assert self.page.evaluate("window.called") == []

    def visible(self, kind: str) -> list[Any]:
        script = """kind => [...document.querySelectorAll('figure.output .plot')].flatMap(
            p => p.data.filter(t => t.meta === kind).map(t => t.visible ?? true))"""
        return list(self.page.evaluate(script, kind))


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    model = series(HOSTILE[:2])
    path = tmp_path_factory.mktemp("run") / "report.html"
    write_report(model, path, held_out=held_out(model))
    return Opened(browser, path)


def test_every_chart_is_drawn_and_nothing_is_reported(opened: Opened) -> None:
    script = "[...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('svg').length)"
    drawn = opened.page.evaluate(script)
    assert len(drawn) == 9
    assert all(drawn)
    opened.quiet()


def test_a_zoom_moves_all_charts_over_the_input(opened: Opened) -> None:
    before = opened.page.evaluate(RANGES)
    assert len(before) == 4
    assert all(one == before[0] for one in before)
    area = opened.page.locator("#output-0 .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    height = box["y"] + box["height"] / 2
    mouse = opened.page.mouse
    mouse.move(box["x"] + 0.25 * box["width"], height)
    mouse.down()
    mouse.move(box["x"] + 0.5 * box["width"], height, steps=5)
    mouse.up()
    wait = f"() => JSON.stringify(({RANGES})()) !== {json_of(before)!r}"
    opened.page.wait_for_function(wait)
    opened.page.wait_for_timeout(200)
    after = opened.page.evaluate(RANGES)
    assert all(one == after[0] for one in after)
    assert after[0][1] - after[0][0] == pytest.approx((before[0][1] - before[0][0]) / 4, rel=0.1)
    opened.page.evaluate(
        "Plotly.relayout(document.getElementById('output-1'), {'xaxis.range': [1, 2]})"
    )
    opened.page.wait_for_function(f"() => ({RANGES})().every(r => r[0] === 1 && r[1] === 2)")
    mouse.dblclick(box["x"] + 0.5 * box["width"], height)  # and back
    opened.page.wait_for_function(f"() => JSON.stringify(({RANGES})()) === {json_of(before)!r}")
    opened.quiet()


def json_of(ranges: list[list[float]]) -> str:
    """As JavaScript writes it."""
    return "[" + ",".join(f"[{low:.15g},{high:.15g}]" for low, high in ranges) + "]"


@pytest.mark.parametrize("kind", ["mean", "interval", "draws", "observed", "held out"])
def test_check_boxes_hide_and_show(opened: Opened, kind: str) -> None:
    assert all(opened.visible(kind))
    box = opened.page.locator(f'input[data-kind="{kind}"]')
    box.uncheck()
    assert opened.visible(kind)
    assert not any(opened.visible(kind))
    box.check()
    assert all(opened.visible(kind))


def test_outputs_hide_and_show(opened: Opened) -> None:
    box = opened.page.locator('input[data-output="output-1"]')
    box.uncheck()
    assert not opened.page.locator("#output-1").is_visible()
    assert opened.page.locator("#output-0").is_visible()
    box.check()
    assert opened.page.locator("#output-1 svg").first.is_visible()
    opened.quiet()


def test_hovering_over_hostile_names_runs_nothing(opened: Opened) -> None:
    for chart in ("output-0", "greens-1", "coverage"):
        area = opened.page.locator(f"#{chart} .nsewdrag").first
        area.scroll_into_view_if_needed()
        area.hover()
        opened.page.wait_for_timeout(150)
    legend = opened.page.locator("#greens-1 .legendtext").all_text_contents()
    assert legend[0] == "<script>alert(1)</script>"
    assert opened.page.locator("img[src='x']").count() == 0
    opened.quiet()


def test_on_a_dark_phone(browser: Any, tmp_path: Path) -> None:
    write_report(series(HOSTILE), tmp_path / "report.html")
    wide, narrow = {"width": 800, "height": 380}, {"width": 380, "height": 800}
    options = {"color_scheme": "dark", "has_touch": True, "is_mobile": True, "viewport": wide}
    phone = Opened(browser, tmp_path / "report.html", **options)
    phone.page.set_viewport_size(narrow)  # turned
    fits = "() => document.getElementById('output-0')._fullLayout.width <= 380"
    phone.page.wait_for_function(fits)
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 380
    color = phone.page.evaluate("document.getElementById('output-0')._fullLayout.font.color")
    assert color == "#e6e9ed"
    names = phone.page.locator("#greens-1 .legendtext").all_text_contents()
    assert names[5] == short(HOSTILE[5], 30)
    phone.page.emulate_media(color_scheme="light")
    ink = "() => document.getElementById('output-0')._fullLayout.font.color === '#1b1f24'"
    phone.page.wait_for_function(ink)
    phone.quiet()
