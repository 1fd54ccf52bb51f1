"""How the committed plots are saved: as PNG that a page shows at its own size."""

from __future__ import annotations

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
    """Save a figure; the same results give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
