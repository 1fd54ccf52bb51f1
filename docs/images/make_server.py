"""Make server.png, the picture of the page that `swsearch serve` has: an example in the form, in Chromium.

Needs: chromium, chromium-driver (Debian), selenium, pillow, and the extra ``server``.
Run:   python docs/images/make_server.py
"""

from __future__ import annotations

import base64
import contextlib
import io
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from make_report import ROOT, reduced
from PIL import Image

SIZE = {"width": 1280, "height": 850, "deviceScaleFactor": 1, "mobile": False}

PATIENCE = 60.0
"""Seconds that a server may take to begin."""


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """Serve the sample of Swiss-Prot, and give the address."""
    database = folder / "swissprot_sample.h5"
    program = [sys.executable, "-m", "swsearch"]
    fasta = ROOT / "examples/data/swissprot_sample.fasta.gz"
    subprocess.run([*program, "db", "build", str(fasta), "-o", str(database), "--quiet"], check=True, cwd=ROOT)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    where = ["--port", str(port), "--folder", str(folder / "jobs")]
    line = [*program, "serve", str(database), *where, "--engine", "cpu"]
    with subprocess.Popen(line, cwd=ROOT) as running:
        try:
            url, end = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE
            while True:
                try:
                    urlopen(f"{url}/api/v1/ready").close()
                    break
                except URLError:
                    if time.monotonic() > end or running.poll() is not None:
                        raise
                    time.sleep(0.1)
            yield url
        finally:
            running.terminate()


def main() -> None:
    """Serve, open the form with an example, and take its picture."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(each)
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as url:
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        with webdriver.Chrome(options=options, service=service) as driver:
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
            light = [{"name": "prefers-color-scheme", "value": "light"}]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": light})
            driver.get(f"{url}/?example=globins")
            driver.execute_script("return new Promise((done) => setTimeout(done, 500))")  # the counter is there then
            shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    target = Path(__file__).with_name("server.png")
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    reduced(picture).save(target, optimize=True)
    print(f"{target.name}: {target.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
