"""Reports in a real browser, headless and without a network: no errors, nothing cut off, legible day and night."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from texts import TEXTS

import subword
from subword.cli import main
from subword.report import page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
BROWSER = os.environ.get("SUBWORD_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no browser: install chromium, or name one in SUBWORD_BROWSER")

PROBE = """<script>
const root = document.documentElement, wide = root.clientWidth;
const found = {overflow: root.scrollWidth - wide, out: [], empty: [], pale: []};
const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
  .map(x => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2] };
const back = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (c !== 'rgba(0, 0, 0, 0)') return c } return 'rgb(255, 255, 255)' };
for (const e of document.querySelectorAll('h1, h2, p, dt, dd, th, td, code, caption, figcaption, svg text')) {
  const style = getComputedStyle(e), own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  if (!own || (e instanceof SVGElement && style.fill === 'none')) continue;
  const a = light(e instanceof SVGElement ? style.fill : style.color), b = light(back(e));
  if ((Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5)
    found.pale.push(e.tagName + ': ' + e.textContent.slice(0, 40));
  const box = e.getBoundingClientRect();
  if (box.right > wide + 1 && !e.closest('.wide')) found.out.push(e.textContent.slice(0, 40));
}
for (const e of document.querySelectorAll('svg, table, .tokens, .coloured')) {
  const box = e.getBoundingClientRect();
  if (box.width < 50 || box.height < 10) found.empty.push(e.outerHTML.slice(0, 80));
}
for (const e of document.querySelectorAll('td, th, dt'))
  if (e.clientWidth < 40 && e.textContent.length > 5) found.out.push('narrow: ' + e.textContent.slice(0, 40));
for (const e of document.querySelectorAll('.wide'))
  if (e.scrollWidth > e.clientWidth + 1 && wide >= 1000) found.out.push(e.textContent.slice(0, 60));
found.paper = getComputedStyle(document.body).backgroundColor;
found.svg = document.querySelectorAll('svg').length; found.tables = document.querySelectorAll('table').length;
document.title = 'probe ' + JSON.stringify(found);
</script>"""
"""Put into a copy of a page, it measures what is laid out; the page itself has no script."""


def browse(path: Path, *options: str) -> tuple[str, str]:
    """What a browser prints of a page, and what it says of it."""
    done = subprocess.run(
        [
            str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={path.parent / 'browser'}",
            *options, path.as_uri(),
        ],
        capture_output=True, encoding="utf-8", timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of every kind, of a small tokenizer and of texts meant to hurt."""
    for package in ("altair", "vl_convert"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("reports")
    text = "\n".join(TEXTS.values()).encode("utf-8", "replace")
    (folder / "a.txt").write_bytes(text * 3)
    (folder / "b.py").write_text("def f(x):\n        return 'a long_name and another_one' + x\n" * 20)
    (folder / "prices.csv").write_text("model,input,output\nbig,3,15\nsmall,0.5,2\n")
    tok = subword.train([text.decode()] * 3, vocab_size=600, special_tokens=["<|end|>"])
    tok.save(folder / "one.json")
    subword.train([text.decode()] * 3, vocab_size=400).save(folder / "other.json")
    one, other, a, b = (str(folder / name) for name in ("one.json", "other.json", "a.txt", "b.py"))
    commands = {
        "audit": ["audit", one, a, "--beside", b, "--parameters", "1b"],
        "compare": ["compare", one, other, a, "--audits"],
        "budget": ["budget", a, b, "-t", one, "--prices", str(folder / "prices.csv"), "--window", "64k"],
        "training": ["train", a, "-v", "400", "-o", str(folder / "t.json")],
    }
    for name, args in commands.items():
        option = "--report" if name == "training" else "--html"
        assert main([*args, option, str(folder / f"{name}.html")]) == 0
    return {name: folder / f"{name}.html" for name in commands}


@pytest.mark.parametrize("name", ["audit", "compare", "budget", "training"])
def test_a_report_opens_without_errors(name: str, reports: dict[str, Path]) -> None:
    shown, said = browse(reports[name], "--dump-dom")
    assert not re.findall(r".*(?:CONSOLE|Uncaught|ERR_NAME_NOT_RESOLVED).*", said)
    assert "</footer>" in shown and "<script" not in shown
    assert reports[name].stat().st_size < 400_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 500])
@pytest.mark.parametrize("name", ["audit", "compare", "budget", "training"])
def test_a_report_is_legible(name: str, width: int, scheme: str, reports: dict[str, Path]) -> None:
    """Nothing is cut off or empty, and text stands out from what is behind it as WCAG asks (4.5 to 1)."""
    found = measured(reports[name], scheme, width)
    assert (found["overflow"], found["out"], found["empty"], found["pale"]) == (0, [], [], [])
    assert found["tables"] and (found["svg"] or name == "compare")
    assert found["paper"] == PAPER[scheme]


def measured(path: Path, scheme: str, width: int) -> dict[str, Any]:
    """What the probe finds in a page, for a reader who prefers light or dark."""
    copy = path.with_name(f"{path.stem}-probed.html")
    copy.write_text(path.read_text("utf-8").replace("</body>", PROBE + "</body>"), "utf-8")
    preferred = f"--blink-settings=preferredColorScheme={1 if scheme == 'light' else 0}"
    shown, said = browse(copy, "--dump-dom", preferred, f"--window-size={width},900")
    assert not re.findall(r".*(?:CONSOLE|Uncaught).*", said)
    title = re.search(r"<title>probe (.*?)</title>", shown, re.DOTALL)
    assert title is not None
    found: dict[str, Any] = json.loads(html.unescape(title[1]))
    return found


def test_the_probe_finds_what_is_wrong(tmp_path: Path) -> None:
    narrow = '<table style="width:5px"><td class="number"><div style="width:5px">a long word</div></td></table>'
    pale, out = '<p style="color:#bbb">pale</p>', '<p style="width:2000px;white-space:nowrap">out</p>'
    bad = page.page("x", "y", pale, out, "<svg width='3' height='3'></svg>", narrow)
    (tmp_path / "bad.html").write_text(bad, "utf-8")
    found = measured(tmp_path / "bad.html", "light", 1000)
    assert (
        found["pale"] == ["P: pale"]
        and found["overflow"] > 0
        and found["out"] == ["out", "narrow: a long word"]
        and len(found["empty"]) == 2
    )


def test_a_report_prints(reports: dict[str, Path]) -> None:
    made = reports["audit"].with_name("audit.pdf")
    browse(reports["audit"], f"--print-to-pdf={made}", "--no-pdf-header-footer")
    data = made.read_bytes()
    assert data.startswith(b"%PDF") and data.rstrip().endswith(b"%%EOF")
    assert 3 < len(re.findall(rb"/Type\s*/Page\b", data)) < 60
