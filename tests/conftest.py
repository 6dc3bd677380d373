"""What holds for all tests: hypothesis draws the same examples every time, so that what passes today passes tomorrow.

SUBWORD_FUZZ=1 lets it draw anew: for looking for what nobody has thought of. Nothing that is loaded
is kept for the next run, or was kept by an earlier one.
"""

from __future__ import annotations

import os

from hypothesis import settings

os.environ["SUBWORD_COMPILED"] = "off"

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
if not os.environ.get("SUBWORD_FUZZ"):
    settings.load_profile("repeatable")
