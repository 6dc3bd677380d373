"""The chart: for each case, how many times as fast subword is as each other library, as a dot on a logarithmic axis."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from report import SUMMARY

COLOURS = {
    "gigatoken": "#d62728",
    "quicktok": "#ff7f0e",
    "splintr": "#2ca02c",
    "tokie": "#17becf",
    "bpe-openai": "#9467bd",
    "tiktoken": "#1f77b4",
    "tokenizers": "#e3b505",
    "kitoken": "#8c564b",
    "rustbpe": "#7f7f7f",
}
LABELS, WIDTH, ROW, TOP = 270, 900, 20, 60
LOW, HIGH = 0.05, 200.0  # the axis


def draw(results: dict[str, Any]) -> str:
    """An SVG that can be read on a light and on a dark page."""
    cases = {case["name"]: case for case in results["cases"]}
    rows = [(label, ratios(cases[name], measure)) for name, measure, label in SUMMARY if name in cases]
    rows = [(label, row) for label, row in rows if row]
    height = TOP + ROW * len(rows) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LABELS}" y="16" font-weight="bold">subword, {results["date"]}: how many times as fast as …</text>',
        *legend({name for _, row in rows for name in row}),
    ]
    for tick in (0.1, 0.3, 1, 3, 10, 30, 100):
        x = place(tick)
        shade = "#333333" if tick == 1 else "#dddddd"
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - 24}" stroke="{shade}"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{tick:g}</text>')
    for number, (label, row) in enumerate(rows):
        y = TOP + ROW * number + 8
        parts.append(f'<text x="{LABELS - 12}" y="{y + 4}" text-anchor="end">{escape(label.replace("`", ""))}</text>')
        for name, times in row.items():
            title = f"<title>{escape(name)}: {times:.2f}</title>"
            circle = f'cx="{place(times):.1f}" cy="{y}" r="5" fill="{COLOURS[name]}" fill-opacity="0.8"'
            parts.append(f"<circle {circle}>{title}</circle>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def ratios(case: dict[str, Any], measure: str) -> dict[str, float]:
    ours = case["libraries"].get("subword", {}).get(measure)
    rows = case["libraries"].items()
    return {name: row[measure] / ours for name, row in rows if ours and measure in row and name in COLOURS}


def legend(names: set[str]) -> list[str]:
    parts = []
    x = LABELS
    for name in COLOURS:
        if name in names:
            parts.append(f'<circle cx="{x + 5}" cy="32" r="5" fill="{COLOURS[name]}"/>')
            parts.append(f'<text x="{x + 14}" y="36">{escape(name)}</text>')
            x += 26 + 7 * len(name)
    return parts


def place(times: float) -> float:
    """Where a ratio is on the axis; what is beyond its ends stands at them."""
    share = math.log(min(max(times, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
    return LABELS + share * (WIDTH - LABELS - 20)
