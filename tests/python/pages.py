"""What tests ask of HTML pages."""

from __future__ import annotations

import re


def others_asked_for(page: str) -> list[str]:
    """Where a page asks for another file, or runs a script."""
    return re.findall(r"""(?:src|href)=["'](?!#)|url\((?!#)|@import|<script""", page)
