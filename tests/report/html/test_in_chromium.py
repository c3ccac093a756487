"""The page in a real browser: nothing logged, nothing asked for, nothing run, readable in every form it takes."""

import base64
import dataclasses
import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.compare.asked import Asked
from orchestrator.compare.diff import compare_many
from orchestrator.compare.pooling import Operand
from orchestrator.records import RunHost
from orchestrator.records.measurement import MeasurementSet
from orchestrator.report.bench_content import report_bench
from orchestrator.report.content import RunReport
from orchestrator.report.document.outline import document
from orchestrator.report.document.subject import BaselineMove, Reported, Subject
from orchestrator.report.html.page import html_page
from remote_payload.schema import Setting
from remote_payload.schema.bench import ArgumentFact, LogLine, ServerPhase
from tests.support.chromium import Browser, running_browser
from tests.support.made_bench import made_paired, made_server
from tests.support.made_measurements import HOSTILE, hostile_set, made_history, made_set
from tests.support.made_runs import made_run

FOREIGN = "return [...document.querySelectorAll('script, img, iframe, object, embed, form, base, [onerror], [onload]')]"
FOREIGN += ".map(one => one.outerHTML)"
SCHEMES = "return [...document.querySelectorAll('a')].map(one => one.protocol)"
CUT = """
const out = one => { const box = one.getBoundingClientRect(); return box.width && box.right > innerWidth + 0.5; };
return [...document.querySelectorAll('td.mark, caption, figure svg[role=img]')].filter(out).map(one => one.textContent)
"""
WIDTHS = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
LEAST_CONTRAST = """
const light = css => {
  const parts = css.match(/[\\d.]+/g).slice(0, 3).map(one => one / 255);
  const [r, g, b] = parts.map(one => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = one => {
  for (; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!/, 0\\)$/.test(colour)) return colour;
  }
  return 'rgb(255, 255, 255)';
};
let least = [21, ''];
for (const one of document.querySelectorAll('h1, h2, h3, p, li, a, th, td, caption, summary, figcaption, pre, text')) {
  if (!one.textContent.trim() || one.closest('.skip')) continue;
  const style = getComputedStyle(one), ink = one.tagName === 'text' ? style.fill : style.color;
  const [a, b] = [light(ink), light(behind(one))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < least[0]) least = [ratio, one.tagName + ' ' + one.className + ' ' + ink];
}
return least;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


def compared(*sets: MeasurementSet) -> Reported:
    sides = [Operand(label=one.run_id, sets=(one,)) for one in sets]
    return Reported(subjects=tuple(Subject(measured=one) for one in sets), comparisons=compare_many(sides, Asked()))


def written(folder: Path, reported: Reported, name: str = "page") -> Path:
    path = folder / f"{name}.html"
    made = document(reported, made_unix_s=1767323045.0, tool="eagle3-remote 0.5.0")
    path.write_text(html_page(made), encoding="utf-8")
    return path


def hostile() -> Reported:
    sets = [hostile_set(number) for number in range(len(HOSTILE))]
    sides = [Operand(label=one.run_id, sets=(one,)) for one in (hostile_set(0), hostile_set(1))]
    moves = tuple(
        BaselineMove(name=word, since_unix_s=float(at), run_id=word, note=word) for at, word in enumerate(HOSTILE)
    )
    return Reported(
        subjects=tuple(Subject(measured=one, note=HOSTILE[1], tags=HOSTILE[:2]) for one in sets),
        comparisons=compare_many(sides, Asked(force=True)),
        moves=moves,
        left_out=HOSTILE,
    )


def require_quiet(browser: Browser, path: Path) -> None:
    """Nothing logged, nothing asked for but the page itself."""
    assert browser.console() == []
    assert browser.requested() == [path.as_uri()]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1100, 390])
def test_a_comparison_is_readable_in_every_form(browser: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    path = written(tmp_path, compared(made_set("drafter-1", seed=1), made_set("drafter-2", seed=3, gain=1.5)))
    browser.open(path, width=width, dark=dark)
    require_quiet(browser, path)
    page, window = browser.run(WIDTHS)
    assert page <= window  # nobody scrolls sideways but inside a table
    assert browser.run(CUT) == []  # no verdict, no figure is out of sight
    assert "Improved" in browser.run("return document.querySelector('.verdict').textContent")
    ratio, where = browser.run(LEAST_CONTRAST)
    assert ratio >= 4.5, where
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is not dark
    curve = browser.run("return getComputedStyle(document.querySelector('svg .stroke-t1')).stroke")
    assert curve == ("rgb(109, 179, 255)" if dark else "rgb(11, 98, 196)")


def test_what_anyone_wrote_stays_text(browser: Browser, tmp_path: Path) -> None:
    path = written(tmp_path, hostile())
    browser.open(path, width=360)
    require_quiet(browser, path)
    assert browser.run(FOREIGN) == []
    assert set(browser.run(SCHEMES)) == {"data:", "file:"}  # the download, and places within the page
    text = browser.run("return document.body.textContent")
    assert '<script>alert("x")</script>' in text
    assert "{{7*7}}" in text
    assert "49" not in text.replace("149", "")
    assert "\\x00 bell\\x07 esc\\x1b[31m" in text
    assert "\u202e" not in text
    assert "\u2068\u05e9\u05dc\u05d5\u05dd" in text  # kept to itself, its neighbours stay in order
    page, window = browser.run(WIDTHS)
    assert page <= window


def hostile_run(word: str) -> Reported:
    """An own run, judged in full, into which a server and its log wrote what they liked."""
    server = made_server(asked={word: word}, runs={word: word}, argv=(word,), draft_class=word, model_class=word)
    server = dataclasses.replace(
        server,
        lines=(LogLine(rule=word, line=word),),
        phases=(ServerPhase(name=word, seconds=1.0),),
        arguments=(*server.arguments, ArgumentFact(name=word, requested=word, effective=f"{word} otherwise")),
    )
    result, requests = made_paired(servers=(server, made_server("plain")), warnings=HOSTILE, gpus=HOSTILE)
    base = made_run("bench-20260102-0304-ab12cd")
    settings = tuple(Setting(key=f"{text[:50]}", value=text, source=text) for text in HOSTILE)
    spec = dataclasses.replace(base.spec, job_kind="bench", settings=settings, launched_by=word)
    host = RunHost(name=word, destination=word)
    record = dataclasses.replace(base, spec=spec, host=host)
    told = RunReport(record=record, bench=report_bench(result, requests))
    return Reported(subjects=(Subject(measured=made_set(users=(1,)), told=told),))


@pytest.mark.parametrize("word", [HOSTILE[0], HOSTILE[1], HOSTILE[4], "W" * 5000])
def test_what_a_server_wrote_stays_text(browser: Browser, tmp_path: Path, word: str) -> None:
    path = written(tmp_path, hostile_run(word))
    browser.open(path, width=360)
    require_quiet(browser, path)
    assert browser.run(FOREIGN) == []
    assert "DIFFERS" in browser.run("return document.body.textContent")
    page, window = browser.run(WIDTHS)
    assert page <= window


def test_a_page_that_does_ask_and_log_would_be_caught(browser: Browser, tmp_path: Path) -> None:
    path = written(tmp_path, compared(made_set("drafter-1", users=(1,))))
    spoilt = path.read_text(encoding="utf-8").replace(
        "<main", '<p style="color: red">x</p><img src="http://127.0.0.1:9/x.png" alt="x"><script>1</script><main'
    )
    path.write_text(spoilt, encoding="utf-8")
    browser.open(path)
    logged = "\n".join(browser.console())
    assert all(rule in logged for rule in ("style-src", "script-src", "img-src")), logged
    assert len(browser.run(FOREIGN)) == 2
    loose = spoilt.replace("default-src 'none'", "default-src *").replace("img-src data:", "img-src *")
    path.write_text(loose, encoding="utf-8")
    browser.open(path)
    assert "http://127.0.0.1:9/x.png" in browser.requested()


@pytest.mark.parametrize("users", [(1,), (1, 4, 16, 64)])
def test_the_data_comes_with_a_click(browser: Browser, tmp_path: Path, users: tuple[int, ...]) -> None:
    reported = compared(*(made_set(f"drafter-{number}-{len(users)}", users=users, seed=number) for number in range(3)))
    browser.open(written(tmp_path, reported))
    name = browser.run("return document.querySelector('a[download]').download")
    browser.click("a[download]")
    data = browser.downloaded(name)
    assert browser.console() == []
    value = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
    assert [run["run_id"] for run in value["runs"]] == [one.run_id for one in reported.subjects]
    assert len(value["runs"][0]["cases"][0]["series"][0]["y"]) == 5


def test_it_can_be_heard_and_found_by_its_headings(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, compared(made_set("drafter-1", seed=1), made_set("drafter-2", seed=3, gain=1.5))))
    ids = browser.run("return [...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    targets = browser.run("return [...document.querySelectorAll('[href^=\"#\"]')].map(one => one.getAttribute('href'))")
    assert {target[1:] for target in targets} <= set(ids)
    levels = browser.run("return [...document.querySelectorAll('h1, h2, h3')].map(one => +one.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    figures = browser.run(
        "return [...document.querySelectorAll('figure svg[role=img]')].map(one => "
        "[one.querySelector('title').textContent, one.querySelector('desc').textContent])"
    )
    assert len(figures) >= 5
    assert all(title and len(told) > 20 for title, told in figures)
    assert browser.run("return [...document.querySelectorAll('th:not([scope])')].length") == 0
    assert browser.run("return [...document.querySelectorAll('table:not(:has(caption))')].length") == 0


def test_it_prints_light_and_whole(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, compared(made_set("drafter-1", users=(1, 4)))), dark=True)
    paper = browser.pdf()
    assert paper.startswith(b"%PDF-")
    assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") >= 2
    unseen = "return [...document.querySelectorAll('details td')].filter(one => !one.checkVisibility()).length"
    assert browser.run(unseen) > 0  # folded on the screen
    browser.media("print", dark=True)
    assert browser.run(unseen) == 0
    assert browser.run("return getComputedStyle(document.documentElement).getPropertyValue('--page')") == "#ffffff"
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"


@pytest.mark.slow
def test_three_hundred_runs_stay_readable_and_quick(browser: Browser, tmp_path: Path) -> None:
    sets = made_history(300)
    moves = (
        BaselineMove(name="main", since_unix_s=1767323045.0, run_id="bench-0000", measured=sets[0]),
        BaselineMove(name="main", since_unix_s=1767323045.0 + 86400 * 199.5, run_id="bench-0199", measured=sets[199]),
    )
    path = written(tmp_path, Reported(subjects=tuple(Subject(measured=one) for one in sets), moves=moves))
    assert path.stat().st_size < 3_000_000
    browser.open(path)
    require_quiet(browser, path)
    took = browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert took < 5000
    assert browser.run("return document.querySelectorAll('figure').length") <= 12
    shown = browser.run("return [...document.querySelectorAll('tr')].filter(one => one.checkVisibility()).length")
    assert shown < 150  # the rest is folded
    assert browser.run("return document.querySelectorAll('tr').length") > 1000
    assert browser.run("return document.documentElement.scrollHeight") < 12_000
    assert "baseline main" in browser.run(
        "return document.querySelector('[aria-labelledby=trend] .legend').textContent"
    )
    href = browser.run("return document.querySelector('a[download]').href")
    value = json.loads(gzip.decompress(base64.b64decode(href.partition(",")[2])))
    assert len(value["runs"]) == 300
    browser.open(path, width=390)
    assert browser.run(CUT) == []
