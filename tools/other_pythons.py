"""Runs a make target with versions of CPython that this system lacks, in a chroot of Debian's.

Input: a target of the Makefile, and interpreters, all of them where none is named. Output: the chroot, made at the
first use and kept; what the target prints; its exit status. Why: Debian's sid has the newest versions of CPython long
before they are where developers and continuous integration work.

    python tools/other_pythons.py test python3.14       # make test PYTHON=python3.14
    python tools/other_pythons.py smoke                 # with each of them
    python tools/other_pythons.py --remove

It takes root and debootstrap. The chroot sees this checkout where it is, and the host's /proc, /sys and /dev: they are
mounted in a namespace of the process that runs the target, so that nothing is mounted when that has ended. Virtual
environments are in the chroot, in /opt. There is no compiler: packages are installed as wheels alone. With
--if-possible one line says why there can be no chroot, and the status is 0.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import chroot
from chroot import ROOT, NotPossible

PYTHONS = ("python3.14", "python3.15")
FOLDER = Path("/var/cache/tcompile/sid")
SUITE = "sid"
PACKAGES = (
    *(package for python in PYTHONS for package in (python, f"{python}-venv")), "ca-certificates", "git", "make",
)  # fmt: skip


def main() -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", help="a target of the Makefile")
    parser.add_argument("pythons", nargs="*", metavar="python", help=f"of {', '.join(PYTHONS)}")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where the chroot is ({FOLDER})")
    parser.add_argument("--if-possible", action="store_true", help="succeed where there can be no chroot")
    parser.add_argument("--remove", action="store_true", help="remove the chroot")
    given = parser.parse_args()
    if bool(given.target) == given.remove:
        parser.error("name a target, or --remove")
    unknown = [python for python in given.pythons if python not in PYTHONS]
    if unknown:
        parser.error(f"Debian's {SUITE} is asked for {', '.join(PYTHONS)}, not for {', '.join(unknown)}")
    try:
        chroot.check()
        chroot.leave_mounts()
        if given.remove:
            chroot.remove(given.folder)
            return 0
        chroot.make(given.folder, SUITE, PACKAGES)
        chroot.mount(given.folder)
    except NotPossible as error:
        print(f"no chroot with {' and '.join(given.pythons or PYTHONS)}: {error}", flush=True)
        return 0 if given.if_possible else 1
    return max(run(given.folder, given.target, python) for python in given.pythons or PYTHONS)


def run(folder: Path, target: str, python: str) -> int:
    """Runs a target with an interpreter; returns its exit status."""
    print(f"make {target} PYTHON={python}, in {folder}", flush=True)
    command = ["make", "--no-print-directory", "-C", str(ROOT), target, f"PYTHON={python}", f"VENV=/opt/{python}"]
    return chroot.run(folder, command)


if __name__ == "__main__":
    sys.exit(main())
