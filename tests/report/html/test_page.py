"""The page without a browser: figures as they stand in it, the policy, the data it carries."""

import base64
import dataclasses
import gzip
import hashlib
import json
import re

import pytest

from orchestrator.report.document.blocks import Chart, Guide, Trace
from orchestrator.report.document.outline import document
from orchestrator.report.document.subject import Reported, Subject
from orchestrator.report.html import page
from orchestrator.report.html.drawing import ROLES, drawn
from orchestrator.report.html.svg import inline
from tests.support.made_measurements import made_set

CHART = Chart(
    name="speed",
    title="Speed",
    told="slow, then fast",
    definition="tokens over seconds",
    x_label="users $x^{2",
    y_label="tok/s",
    traces=(
        Trace(name="a", x=(1.0, 2.0, 4.0), y=(90.0, 150.0, 220.0), low=(88.0, None, 210.0), high=(92.0, None, 230.0)),
        Trace(name="b", x=(1.0, 4.0), y=(50.0, 60.0), style="step"),
    ),
    guides=(Guide(name="even", height=100.0), Guide(name="slope", slope=20.0)),
)


def svg(chart: Chart) -> str:
    return inline(drawn(chart), name=chart.name, title=chart.title, told=chart.told)


def made(**more: object) -> str:
    reported = Reported(subjects=(Subject(measured=made_set(users=(1, 4))),))
    return page.html_page(document(reported, made_unix_s=1767323045.0, tool="eagle3-remote 0.5.0"))


def test_a_figure_obeys_the_strictest_policy() -> None:
    text = svg(CHART)
    assert "style" not in text
    assert "<metadata" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert not any(colour in text for colour in ROLES.values())
    for role in ("ink", "grid", "guide", "t1", "t2"):
        assert f"-{role}" in text


def test_a_figures_ids_are_its_own() -> None:
    text = svg(CHART)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert ids
    assert all(found.startswith("speed-") for found in ids)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)
    assert links
    assert {one or other for one, other in links} <= set(ids)


def test_a_figure_is_told_in_words() -> None:
    text = svg(CHART)
    assert 'role="img" ' in text
    assert 'aria-labelledby="speed-title speed-told"' in text
    assert ">Speed</title>" in text
    assert ">slow, then fast</desc>" in text


def test_the_same_chart_is_the_same_figure() -> None:
    assert svg(CHART) == svg(CHART)
    assert svg(dataclasses.replace(CHART, y_label="tok/min")) != svg(CHART)


def test_equal_points_show_the_marker_of_each_trace() -> None:
    points = dataclasses.replace(CHART.traces[0], low=(), high=())
    text = drawn(dataclasses.replace(CHART, guides=(), traces=(points, dataclasses.replace(points, name="same"))))
    behind, before = (
        max(abs(float(number)) for number in re.findall(r"-?[\d.]+", path))
        for path in re.findall(r'<path id="m\w+" d="([^"]+C [^"]+|[^"]+z)\s*" style="[^"]*#0404', text)
    )
    assert behind > before + 0.5


def test_words_are_text_and_no_formulas() -> None:
    assert "users $x^{2" in svg(CHART)


@pytest.mark.parametrize(
    "chart",
    [
        dataclasses.replace(CHART, traces=(Trace(name="one", x=(3.0,), y=(0.0,)),), guides=()),
        dataclasses.replace(CHART, traces=(Trace(name="none", x=(), y=()), CHART.traces[0]), guides=()),
        dataclasses.replace(CHART, traces=(Trace(name="none", x=(), y=()),)),
        dataclasses.replace(CHART, traces=(Trace(name="huge", x=(1.0, 1e308), y=(1e308, 2.0)), CHART.traces[0])),
        dataclasses.replace(CHART, traces=(Trace(name="inf", x=(1.0,), y=(float("inf"),), low=(None,), high=(None,)),)),
        dataclasses.replace(CHART, log2_x=True, guides=()),
        dataclasses.replace(CHART, traces=(Trace(name="low", x=(1.0, 2.0), y=(-1.0, 2.0)),), guides=()),
        dataclasses.replace(CHART, traces=(Trace(name="big", x=(1.0, 1e9), y=(1e-9, 1e18)),), guides=()),
        dataclasses.replace(
            CHART, kind="bars", guides=(), x_ticks=("1", "2"), traces=(Trace(name="bar", x=(0.0, 1.0), y=(0.0, 3.0)),)
        ),
    ],
)
def test_odd_figures_are_drawn(chart: Chart) -> None:
    assert svg(chart).startswith("<svg ")


def test_a_figure_leaves_the_process_as_it_was() -> None:
    import matplotlib as mpl  # noqa: PLC0415

    before = dict(mpl.rcParams)
    svg(CHART)
    assert dict(mpl.rcParams) == before


def test_the_policy_allows_this_style_and_nothing_else() -> None:
    text = made()
    style = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL).group(1)  # type: ignore[union-attr]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text).group(1)  # type: ignore[union-attr]
    assert policy.replace("&#39;", "'") == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert "<script" not in text
    assert not re.search(r'\bstyle="', text)
    assert re.findall(r"https?://[^\"' <]+", text.replace("http://www.w3.org/2000/svg", "")) == []


def test_data_beyond_the_limit_leaves_out_samples_then_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def packed(text: str) -> bytes:
        found = re.search(r'href="data:application/gzip;base64,([^"]+)"', text).group(1)  # type: ignore[union-attr]
        return base64.b64decode(found)

    def data(text: str) -> dict:  # type: ignore[type-arg]
        return json.loads(gzip.decompress(packed(text)))  # type: ignore[no-any-return]

    monkeypatch.setattr(page, "PACKED_FROM", 100)
    first = made()
    whole = data(first)
    assert whole["runs"][0]["cases"][0]["series"][0]["y"]
    monkeypatch.setattr(page, "MOST_DATA", len(packed(first)) - 1)
    text = made()
    assert "The raw samples are too large for a page" in text
    less = data(text)
    assert less["samples_left_out"] is True
    assert less["runs"][0]["cases"][0]["series"][0]["value"] == whole["runs"][0]["cases"][0]["series"][0]["value"]
    assert "y" not in less["runs"][0]["cases"][0]["series"][0]
    monkeypatch.setattr(page, "MOST_DATA", 10)
    assert "data:application" not in made()
