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
import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("python3.14", "python3.15")
FOLDER = Path("/var/cache/tcompile/sid")
SUITE = "sid"
PACKAGES = (
    *(package for python in PYTHONS for package in (python, f"{python}-venv")), "ca-certificates", "git", "make",
)  # fmt: skip
MIRROR = "http://deb.debian.org/debian"
_MARK = "tcompile-packages"  # a file in the chroot, once that is complete: what it consists of
_DEBOOTSTRAP_SECONDS = 1800
# What reaches the network as the host does. Folders are copied whole.
_COPIED = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/xdg/pip", "/etc/ssl/certs/ca-certificates.crt")
_NEW_MOUNTS = 0x20000  # CLONE_NEWNS
_RECURSIVE, _BIND, _PRIVATE = 0x4000, 0x1000, 1 << 18  # MS_REC, MS_BIND, MS_PRIVATE


class NotPossible(Exception):
    """There can be no chroot here."""


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
        check()
        leave_mounts()
        if given.remove:
            remove(given.folder)
            return 0
        make(given.folder)
        mount(given.folder)
    except NotPossible as error:
        print(f"no chroot with {' and '.join(given.pythons or PYTHONS)}: {error}", flush=True)
        return 0 if given.if_possible else 1
    return max(run(given.folder, given.target, python) for python in given.pythons or PYTHONS)


def check() -> None:
    """Raises NotPossible where something is missing that a chroot takes."""
    if sys.platform != "linux":
        raise NotPossible("it takes Linux")
    if os.geteuid() != 0:
        raise NotPossible("it takes root")
    if shutil.which("debootstrap") is None:
        raise NotPossible("it takes debootstrap (apt-get install debootstrap)")


def leave_mounts() -> None:
    """Gives this process mounts of its own: what it mounts is seen by nobody else, and goes when it ends."""
    _system("unshare", _NEW_MOUNTS)
    _system("mount", None, b"/", None, _RECURSIVE | _PRIVATE, None)


def _system(name: str, *arguments: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library[name](*arguments) != 0:
        raise NotPossible(f"{name}: {os.strerror(ctypes.get_errno())}")


def make(folder: Path) -> None:
    """Makes the chroot, unless it is there already with the same packages."""
    mark = folder / _MARK
    wanted = " ".join((SUITE, *PACKAGES))
    if mark.is_file() and mark.read_text() == wanted:
        return
    remove(folder)
    folder.mkdir(parents=True)
    print(f"making a chroot of Debian's {SUITE} in {folder} (a minute or two)", flush=True)
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(folder), mirror()]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_DEBOOTSTRAP_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise NotPossible(f"debootstrap has not ended within {_DEBOOTSTRAP_SECONDS} seconds") from error
    if done.returncode:
        last = "; ".join(done.stdout.strip().splitlines()[-3:]) or f"exit status {done.returncode}"
        raise NotPossible(f"debootstrap has failed ({last})")
    mark.write_text(wanted)


def mirror() -> str:
    """Debian's mirror that apt uses here; the usual one where it uses none.

    >>> mirror().startswith("http")
    True
    """
    lists = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    texts = [path.read_text() for path in lists if path.is_file()]
    found = [uri for text in texts for uri in re.findall(r"^(?:deb\b.*?|URIs:.*?)(https?://\S+)", text, re.MULTILINE)]
    return next((uri for uri in found if uri.rstrip("/").endswith("/debian")), MIRROR)


def mount(folder: Path) -> None:
    """Mounts what the chroot shares with the host, and copies what reaches the network as the host does."""
    for shared in ("/proc", "/sys", "/dev", str(ROOT)):
        inside = Path(f"{folder}{shared}")
        inside.mkdir(parents=True, exist_ok=True)
        _system("mount", shared.encode(), str(inside).encode(), None, _BIND | _RECURSIVE, None)
    home = os.path.expanduser("~")
    for path in (*_COPIED, f"{home}/.config/pip", f"{home}/.pip"):
        there = Path(f"{folder}{path}")
        there.parent.mkdir(parents=True, exist_ok=True)
        if os.path.isdir(path):
            shutil.copytree(path, there, dirs_exist_ok=True)
        elif os.path.isfile(path):
            there.unlink(missing_ok=True)
            shutil.copy(path, there)


def run(folder: Path, target: str, python: str) -> int:
    """Runs a target with an interpreter; returns its exit status."""
    print(f"make {target} PYTHON={python}, in {folder}", flush=True)
    command = ["make", "--no-print-directory", "-C", str(ROOT), target, f"PYTHON={python}", f"VENV=/opt/{python}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    environment["LC_ALL"] = "C.UTF-8"
    environment["PIP_ONLY_BINARY"] = ":all:"  # there is no compiler
    environment.pop("PYTHONPATH", None)
    return subprocess.run(["chroot", str(folder), *command], env=environment).returncode


def remove(folder: Path) -> None:
    """Removes the chroot. What is mounted there is in another namespace, or is left alone."""
    if folder.exists():
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)
        if folder.exists():
            raise NotPossible(f"{folder} cannot be removed")


if __name__ == "__main__":
    sys.exit(main())
