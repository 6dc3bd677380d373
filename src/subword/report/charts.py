"""Charts as SVG that stands in a page: no script, no font and no image from outside.

Text and lines take the colour of the text around them, so that a chart suits a light page and a dark one. What draws is
Vega-Altair with vl-convert, in the extra `report`.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Callable
from typing import Any

COLOUR = "#3f83c9"
"""Of what is shown: to be told from black and from white alike."""

MISSING = 'Charts take Vega-Altair and vl-convert: pip install "subword[report]"'

_numbers = itertools.count(1)


def draw(make: Callable[[Any], Any], title: str, description: str, height: int = 280) -> str | None:
    """The chart that `make(altair)` gives, as an `<svg>` element; None where the extra is not installed.

    Args:
        make: from the module `altair` to a chart.
        title, description: what the chart shows, for those who do not see it.
    """
    try:
        import altair
        import vl_convert
    except ImportError:
        return None
    axis = dict.fromkeys(("labelColor", "titleColor", "gridColor", "domainColor", "tickColor"), "currentColor")
    chart = (
        make(altair)
        .properties(width=480, height=height)
        .configure(background="transparent", font="system-ui, sans-serif")
        .configure_view(stroke=None)
        .configure_axis(
            **axis, gridOpacity=0.15, domainOpacity=0.5, tickOpacity=0.5, titleFontWeight="normal", titlePadding=10,
            labelFontSize=14, titleFontSize=14,
        )
    )  # fmt: skip
    svg: str = vl_convert.vegalite_to_svg(chart.to_dict())
    name = f"chart-{next(_numbers)}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{name}-title {name}-text"'
        f' viewBox="{_view_box(svg)}"><title id="{name}-title">{html.escape(title)}</title>'
        f'<desc id="{name}-text">{html.escape(description)}</desc>'
    )
    body = svg[svg.index(">") + 1 :]
    return head + re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", body)  # one picture, not a hundred marks


def _view_box(svg: str) -> str:
    found = re.search(r'viewBox="([^"]*)"', svg)
    return found.group(1) if found else "0 0 640 360"
