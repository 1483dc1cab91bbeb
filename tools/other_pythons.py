"""Runs a make target with versions of CPython that this system lacks, in a Debian chroot.

Input: a target of the Makefile, and interpreters, by default all.
Output: the chroot, made on first use and kept; the target's output; its exit status.
Why: Debian's sid has new versions of CPython long before developers' systems and continuous integration.

    python tools/other_pythons.py test python3.14       # make test PYTHON=python3.14
    python tools/other_pythons.py smoke                 # with each of them
    python tools/other_pythons.py refused python3.14t   # with a free-threaded build, which is made first
    python tools/other_pythons.py --remove

It needs root and debootstrap. The chroot contains this checkout at its path, and the host's /proc, /sys and /dev. They
are mounted in a namespace of the process that runs the target, so nothing stays mounted when that process has ended.
Virtual environments are in the chroot, in /opt. Packages are installed as wheels only, since there is no compiler.
Debian has no free-threaded builds: they are built from its sources, with a compiler installed for them. With
--if-possible one line says why there can be no chroot, and the status is 0.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import chroot
from chroot import ROOT, NotPossible

PYTHONS = ("python3.14", "python3.15")
FREE_THREADED = ("python3.13t", "python3.14t", "python3.15t")
FOLDER = Path("/var/cache/tcompile/sid")
SUITE = "sid"
PACKAGES = (
    *(package for python in PYTHONS for package in (python, f"{python}-venv")), "ca-certificates", "git", "make",
)  # fmt: skip
_SOURCES = (SUITE, "testing", "stable")  # a mirror may lack the sources of a package
# The commands for a free-threaded build: {python} without its t, {lines} for apt. A mirror's own date is not checked,
# as in debootstrap. /usr/local is in the chroot's PATH; several versions coexist there.
_BUILD = """
printf '%b' "{lines}" > /etc/apt/sources.list.d/sources.list
apt-get -qq -o Acquire::Check-Valid-Until=false update
apt-get -qq -y --no-install-recommends install build-essential dpkg-dev pkg-config xz-utils \\
    libbz2-dev libffi-dev liblzma-dev libsqlite3-dev libssl-dev zlib1g-dev
rm -rf /usr/src/{python} && mkdir -p /usr/src/{python} && cd /usr/src/{python}
for version in $(apt-cache showsrc --only-source {python} | sed -n 's/^Version: //p' | sort -rVu); do
    apt-get -qq --download-only source "{python}=$version" && dpkg-source --no-check -x ./*.dsc source && break
    rm -rf ./*
done
cd source
./configure -q --disable-gil --disable-test-modules --with-ensurepip=no
make -s -j"$(nproc)"
make -s altinstall
"""


def main() -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", help="a target of the Makefile")
    parser.add_argument("pythons", nargs="*", metavar="python", help=f"of {', '.join(PYTHONS + FREE_THREADED)}")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where the chroot is ({FOLDER})")
    parser.add_argument("--if-possible", action="store_true", help="succeed where there can be no chroot")
    parser.add_argument("--remove", action="store_true", help="remove the chroot")
    given = parser.parse_args()
    if bool(given.target) == given.remove:
        parser.error("name a target, or --remove")
    unknown = [python for python in given.pythons if python not in PYTHONS + FREE_THREADED]
    if unknown:
        parser.error(f"there are {', '.join(PYTHONS + FREE_THREADED)}, and no {', '.join(unknown)}")
    try:
        chroot.check()
        chroot.leave_mounts()
        if given.remove:
            chroot.remove(given.folder)
            return 0
        chroot.make(given.folder, SUITE, PACKAGES)
        chroot.mount(given.folder)
        for python in given.pythons:
            build(given.folder, python)
    except NotPossible as error:
        print(f"no chroot with {' and '.join(given.pythons or PYTHONS)}: {error}", flush=True)
        return 0 if given.if_possible else 1
    return max(run(given.folder, given.target, python) for python in given.pythons or PYTHONS)


def build(folder: Path, python: str) -> None:
    """Builds a free-threaded interpreter from Debian's source in the chroot, if it is one and is missing."""
    if python not in FREE_THREADED or (folder / "usr/local/bin" / python).exists():
        return
    print(f"building {python} in {folder} (some minutes)", flush=True)
    lines = "".join(f"deb-src {chroot.mirror()} {suite} main\\n" for suite in _SOURCES)
    script = _BUILD.format(python=python.removesuffix("t"), lines=lines)
    done = subprocess.run(
        ["chroot", str(folder), "sh", "-ec", script], env=chroot.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode:
        raise NotPossible(f"{python} cannot be built ({'; '.join(done.stdout.strip().splitlines()[-3:])})")


def run(folder: Path, target: str, python: str) -> int:
    """Runs a target with an interpreter; returns its exit status."""
    print(f"make {target} PYTHON={python}, in {folder}", flush=True)
    command = ["make", "--no-print-directory", "-C", str(ROOT), target, f"PYTHON={python}", f"VENV=/opt/{python}"]
    return chroot.run(folder, command)


if __name__ == "__main__":
    sys.exit(main())
