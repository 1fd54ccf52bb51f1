"""Make report.png, the picture of the HTML report: a human protein against the sample of Swiss-Prot, in Chromium.

Needs: chromium, chromium-driver (Debian), selenium, pillow.
Run:   python docs/images/make_report.py
"""

from __future__ import annotations

import base64
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]

COLOURS = 256

SIZE = {"width": 1280, "height": 1130, "deviceScaleFactor": 1, "mobile": False}


def reduced(picture: Image.Image) -> Image.Image:
    """Return a picture in its most frequent colours, which looks the same and takes half the bytes."""
    by_count = sorted(picture.getcolors(picture.width * picture.height) or [], reverse=True)
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in by_count[:COLOURS] for part in colour])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


def main() -> None:
    """Search, open the report, and take its picture."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(each)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        data = "examples/data/queries.fasta", "examples/data/swissprot_sample.fasta.gz"
        line = [sys.executable, "-m", "swsearch", "search", *data, "--outfmt", "html", "-o", str(page), "--quiet"]
        subprocess.run(line, check=True, cwd=ROOT)
        with webdriver.Chrome(
            options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
        ) as driver:
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
            light = [{"name": "prefers-color-scheme", "value": "light"}]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": light})
            driver.get(page.as_uri() + "#query-1")
            driver.execute_script(
                "document.querySelectorAll('.open-hit')[2].click(); scrollTo(0, 0); document.activeElement.blur()"
            )
            shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    target = Path(__file__).with_name("report.png")
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    reduced(picture).save(target, optimize=True)
    print(f"{target.name}: {target.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
