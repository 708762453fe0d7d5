"""Make sure the browser tests have a Chromium: Debian's package where we may install it, npm's build elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys


def main() -> int:
    if shutil.which("chromium") or shutil.which("chromium-browser"):
        return 0
    if not (hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get")):
        print("no Chromium on this machine: the browser tests will look for npm's build, or say why they are skipped")
        return 0
    print("installing Debian's chromium for the browser tests")
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], check=True, stdout=subprocess.DEVNULL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
