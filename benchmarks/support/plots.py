"""How the committed plots are saved: as PNG that a page shows at its own size."""

from __future__ import annotations

import io
import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 110
"""So that a figure of 8 inches has the width of a page, and 10 points can be read there."""


def tidy(axes: Axes) -> None:
    """Draw a pale grid behind the curves, and no frame above and on the right."""
    axes.grid(True, color="0.9", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> None:
    """Save a figure; the same results give the same bytes. 256 colours do, and take half of the bytes."""
    from PIL import Image  # comes with matplotlib

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DPI, format="png")
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(drawn).convert("RGB").quantize(256).save(path, format="PNG", optimize=True, dpi=(DPI, DPI))


def draw(module: str, stored: Path) -> None:
    """Draw the plot of a module beside the numbers, if that can be done here."""
    try:
        figure = import_module(module).draw(json.loads(stored.read_text(encoding="utf-8")))
    except ImportError:
        print(f"no plot: matplotlib is not installed; the same script draws it from {stored}")
        return
    save(figure, stored.with_suffix(".png"))
