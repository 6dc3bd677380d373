"""Write docs/cli.md from the help of each command: `python docs/generate_cli.py`. A test says when it is due."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).with_name("cli.md")

HEAD = """# The command line

<!-- Written by docs/generate_cli.py from the help of each command; edit the help, not this page. -->

`subword COMMAND`, or `python -m subword COMMAND` where the command is not on the search path.

What takes long shows bars on a terminal. With `--progress json` it writes lines such as this one to standard error, at
most two a second and the last of each stage always; other lines there are messages.

```text
{"stage": "count", "unit": "bytes", "done": 5000000, "total": 20000000, "rate": 2500000.0, "left": 6.0, "seconds": 2.0}
```

Bytes are those on disk, compressed or not; `rate` is a second's, of late (in the last line of the whole stage), `left`
in seconds. `total`, `rate` and `left` are null where they are not known.
"""


def help_of(*command: str) -> str:
    """What `subword COMMAND --help` prints, 80 columns wide."""
    environment = os.environ | {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "subword", *command, "--help"],
        capture_output=True,
        encoding="utf-8",
        env=environment,
        check=True,
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def page() -> str:
    from subword.cli import COMMANDS, GROUPS

    parts = [HEAD, f"```text\n{help_of()}\n```"]
    for name in COMMANDS:
        parts += [f"## subword {name}", f"```text\n{help_of(name)}\n```"]
    for name, group in GROUPS.items():
        parts += [f"## subword {name}", f"```text\n{help_of(name)}\n```"]
        for command in group.registered_commands:
            called = str(command.name or getattr(command.callback, "__name__", ""))
            parts += [f"### subword {name} {called}", f"```text\n{help_of(name, called)}\n```"]
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
