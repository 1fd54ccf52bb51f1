"""Make terminal.svg, a recording of a search with its progress bar: what a terminal shows, as an animation.

Needs: pyte.
Run:   python docs/images/make_terminal.py
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from html import escape
from pathlib import Path

import pyte

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
FILES = "queries.fasta", "swissprot_sample.fasta.gz"

COMMANDS = [
    f"swsearch search {' '.join(FILES)} --iterations 3 -o hits.tsv",
    "cut -f 2,3,11,12 hits.tsv | head -n 6",
]

COLUMNS, ROWS = 116, 12
CHARACTER_WIDTH, LINE_HEIGHT, MARGIN = 7.8, 19, 16  # pixels
FRAME_SECONDS, LAST_SECONDS = 0.25, 5.0
COLOURS = {"default": "#d8dee9", "magenta": "#e0569b", "green": "#9ab82f", "cyan": "#4bb8ae"}

Frame = list[list[tuple[str, str]]]
"""Lines of a screen, each of parts: text and colour."""


def parts_of(line: dict[int, pyte.screens.Char]) -> list[tuple[str, str]]:
    """Return the text of a screen's line by colour."""
    parts: list[tuple[str, str]] = []
    for column in range(COLUMNS):
        char = line[column]
        if parts and parts[-1][1] == char.fg:
            parts[-1] = parts[-1][0] + char.data, char.fg
        else:
            parts.append((char.data, char.fg))
    return [*parts[:-1], (parts[-1][0].rstrip(), parts[-1][1])]


def record(folder: str) -> list[Frame]:
    """Run the commands in a terminal; return each screen that differs from the one before."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    frames: list[Frame] = []

    def keep() -> None:
        frame = [parts_of(screen.buffer[row]) for row in range(ROWS)]
        if not frames or frame != frames[-1]:
            frames.append(frame)

    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    for command in COMMANDS:
        stream.feed(f"$ {command}\r\n".encode())
        keep()
        line = command.replace("swsearch", f"'{sys.executable}' -m swsearch", 1)
        with subprocess.Popen(
            line,
            shell=True,
            cwd=folder,
            env=os.environ | {"TERM": "xterm-256color"},
            stdin=inner,
            stdout=inner,
            stderr=inner,
        ) as process:
            last = time.monotonic()
            while process.poll() is None or _is_readable(outer):
                if _is_readable(outer):
                    stream.feed(os.read(outer, 65536))
                if time.monotonic() - last > FRAME_SECONDS:
                    keep()
                    last = time.monotonic()
        keep()
    stream.feed(b"$ ")
    keep()
    return frames


def _is_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0.05)[0])


def svg(frames: list[Frame]) -> str:
    """Return the frames as an animation; who wants no motion sees the last one."""
    total = FRAME_SECONDS * (len(frames) - 1) + LAST_SECONDS
    width, height = round(COLUMNS * CHARACTER_WIDTH + 2 * MARGIN), ROWS * LINE_HEIGHT + 2 * MARGIN
    style, groups = [], []
    for number, frame in enumerate(frames):
        start = 100 * FRAME_SECONDS * number / total
        end = 100.0 if number == len(frames) - 1 else 100 * FRAME_SECONDS * (number + 1) / total
        shown = f"0%{{opacity:{int(not number)}}}{start:.3f}%{{opacity:1}}{end:.3f}%{{opacity:0}}100%{{opacity:0}}"
        style.append(
            f"@keyframes f{number}{{{shown}}}#f{number}{{animation:f{number} {total:.2f}s steps(1) infinite}}"
        )
        texts = [
            f'<text y="{MARGIN + LINE_HEIGHT * (row + 0.8):.1f}" x="{MARGIN}" xml:space="preserve">'
            + "".join(f'<tspan fill="{COLOURS.get(c, f"#{c}")}">{escape(text)}</tspan>' for text, c in line)
            + "</text>"
            for row, line in enumerate(frame)
            if "".join(text for text, _ in line).strip()
        ]
        groups.append(f'<g id="f{number}" class="frame">{"".join(texts)}</g>')
    still = f".frame{{animation:none!important}}#f{len(frames) - 1}{{opacity:1!important}}"
    last = f"@media (prefers-reduced-motion){{{still}}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
        f"<title>A search in a terminal: a progress bar, then a table of hits</title><style>.frame{{opacity:0;"
        f"font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}}{''.join(style)}{last}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="#1d1f21"/>{"".join(groups)}</svg>\n'
    )


def main() -> None:
    """Record, and write the picture."""
    target = Path(__file__).with_name("terminal.svg")
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            (Path(folder) / name).symlink_to(DATA / name)
        frames = record(folder)
    target.write_text(svg(frames), encoding="utf-8")
    print(f"{target.name}: {len(frames)} frames, {target.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
