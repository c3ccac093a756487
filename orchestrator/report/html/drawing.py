"""A chart as a matplotlib figure, drawn by object and without any screen; its colours are roles, not colours.

Every word in a figure is ours (numbers, labels of axes): names of runs stand in the legend beside it, as text of the
page. A role becomes a class in `svg.py`, so that the page's style decides how it looks in light, dark and print.
"""

import dataclasses
import io
import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.report.document.blocks import Chart, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROLES = {
    "ink": "#010101",
    "grid": "#020202",
    "guide": "#030303",
    **{f"t{number}": f"#0404{number:02x}" for number in range(1, 9)},
}
"""A colour nobody uses, for each role."""
MARKERS = "osD^vPX*"
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 2)), (0, (8, 2, 2, 2)))
SIZE_IN = (5.2, 3.0)
LARGEST = 1e30
FEW_TICKS = 6
FEW = 60
"""Points up to which each has a marker of full size."""
MOST_LARGER = 3
"""Steps by which the markers of a trace behind others grow."""


def drawn(chart: Chart) -> str:
    """The figure as SVG, the same for the same chart; points that no axis can hold are left out."""
    chart = dataclasses.replace(chart, traces=tuple(_drawable(trace) for trace in chart.traces))
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # where it keeps its font cache is nobody's business here
    import matplotlib as mpl  # noqa: PLC0415 - half a second, only where something is drawn
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    settings = {key: value for key, value in mpl.rcParamsDefault.items() if key not in _PROCESS}
    settings |= {"svg.fonttype": "none", "svg.hashsalt": chart.name, "text.parse_math": False, "font.size": 10}
    settings |= {"axes.unicode_minus": True, "path.simplify": False}
    with mpl.rc_context(settings):
        figure = Figure(figsize=SIZE_IN, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        _frame(axes, chart)
        if chart.kind == "bars":
            _bars(axes, chart)
        else:
            for number, trace in enumerate(chart.traces):
                _trace(axes, trace, number, behind=len(chart.traces) - 1 - number)
        _guides(axes, chart)
        _limits(axes, chart)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return out.getvalue()


_PROCESS = ("backend", "backend_fallback", "interactive", "toolbar", "timezone", "webagg.port")
"""Settings of a process, not of a figure."""


def _drawable(trace: Trace) -> Trace:
    """The points of ordinary size: axes and their ticks overflow far below what a float can hold."""
    low, high = (ends or (None,) * len(trace.x) for ends in (trace.low, trace.high))
    points = zip(trace.x, trace.y, low, high, strict=True)
    kept = [point for point in points if all(one is None or abs(one) < LARGEST for one in point)]
    x, y, below, above = zip(*kept, strict=True) if kept else ((), (), (), ())
    return dataclasses.replace(trace, x=x, y=y, low=below, high=above)


def role_of(number: int) -> str:
    """The role of the trace at that place."""
    return f"t{number % 8 + 1}"


def _frame(axes: "Axes", chart: Chart) -> None:
    ink = ROLES["ink"]
    axes.set_xlabel(chart.x_label, color=ink)
    axes.set_ylabel(chart.y_label, color=ink)
    axes.tick_params(colors=ink, length=3)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=ROLES["grid"], linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(ROLES["guide"])


def _trace(axes: "Axes", trace: Trace, number: int, *, behind: int) -> None:
    """`behind`: how many traces are drawn over this one; the larger markers of its line show it under equal points."""
    colour = ROLES[role_of(number)]
    if trace.style == "step":
        axes.plot(trace.x, trace.y, color=colour, linewidth=1.4, linestyle=DASHES[1], drawstyle="steps-post")
        return
    many = len(trace.x) > FEW
    marker, size = MARKERS[number % len(MARKERS)], 2.5 if many else 5.0
    if trace.style == "line" and not many:
        size += 1.2 * min(behind, MOST_LARGER)
    line = "none" if trace.style == "points" else DASHES[number % len(DASHES)]
    axes.plot(trace.x, trace.y, color=colour, linewidth=1.6, linestyle=line, marker=marker, markersize=size)
    known = [
        (x, low, high)
        for x, low, high in zip(trace.x, trace.low, trace.high, strict=False)
        if low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
    ]
    # One path for all, with gaps: a path each takes seconds where there are hundreds.
    at = [place for x, _, _ in known for place in (x, x, math.nan)]
    ends = [end for _, low, high in known for end in (low, high, math.nan)]
    axes.plot(at, ends, color=colour, linewidth=0.7 if many else 1.2, alpha=0.4 if many else 1)
    if not many:
        axes.plot(at, ends, color=colour, linestyle="none", marker="_", markersize=7)


def _bars(axes: "Axes", chart: Chart) -> None:
    width = 0.8 / len(chart.traces)
    for number, trace in enumerate(chart.traces):
        at = [x + (number - (len(chart.traces) - 1) / 2) * width for x in trace.x]
        axes.bar(at, trace.y, width=width * 0.92, color=ROLES[role_of(number)])


def _guides(axes: "Axes", chart: Chart) -> None:
    for guide in chart.guides:
        style = (0, (4, 3)) if guide.slope else "-"
        if guide.slope:
            axes.axline((0, guide.height), slope=guide.slope, color=ROLES["guide"], linewidth=1, linestyle=style)
        else:
            axes.axhline(guide.height, color=ROLES["ink"], linewidth=1.2)


def _limits(axes: "Axes", chart: Chart) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator  # noqa: PLC0415

    xs = [x for trace in chart.traces for x in trace.x]
    if not xs:
        return
    if chart.x_ticks:
        axes.set_xticks(range(len(chart.x_ticks)), chart.x_ticks)
    elif chart.log2_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(_thinned(sorted(set(xs)))))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    elif len(set(xs)) <= FEW_TICKS:
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(xs))))
        margin = 0.08 * (max(xs) - min(xs)) or 0.5
        axes.set_xlim(min(xs) - margin, max(xs) + margin)
    elif all(x == round(x) for x in xs):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlim(min(xs) - 0.5, max(xs) + 0.5)
    if chart.guides:  # break-even lines are read against both zeros
        axes.xaxis.set_major_locator(MaxNLocator())
        axes.set_xlim(0, max(xs) * 1.25)
    ends = [*(y for trace in chart.traces for y in trace.y), *(guide.height for guide in chart.guides if guide.height)]
    ends += [high for trace in chart.traces for high in trace.high if high is not None and math.isfinite(high)]
    if chart.y_from_zero and min(ends) >= 0:
        axes.set_ylim(0, (max(ends) or 1.0) * 1.12)


def _thinned(values: Sequence[float], most: int = 8) -> list[float]:
    """At most so many of them, the ends among them."""
    step = max(1, math.ceil(len(values) / most))
    return [*values[:-1:step], values[-1]]
