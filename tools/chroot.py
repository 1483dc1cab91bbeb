"""A Debian chroot with this checkout, the host's /proc, /sys and /dev, and its network.

Input: a folder, and arguments of debootstrap.
Output: the chroot, mounted for this process alone; commands run in it.
Why: Debian has versions of CPython, and emulated processors, that the host lacks.

It needs root and debootstrap. Shared folders are mounted in a namespace of the process that runs commands there, so
nothing stays mounted when that process has ended.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIRROR = "http://deb.debian.org/debian"
_MARK = "tcompile-packages"  # a file in a complete chroot: the list of its contents
_DEBOOTSTRAP_SECONDS = 3600
# Files that configure the network. Folders are copied whole.
_COPIED = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/xdg/pip", "/etc/ssl/certs/ca-certificates.crt")
_NEW_MOUNTS = 0x20000  # CLONE_NEWNS
_RECURSIVE, _BIND, _PRIVATE = 0x4000, 0x1000, 1 << 18  # MS_REC, MS_BIND, MS_PRIVATE


class NotPossible(Exception):
    """A chroot is not possible here."""


def check() -> None:
    """Raises NotPossible if a prerequisite is missing."""
    if sys.platform != "linux":
        raise NotPossible("it takes Linux")
    if os.geteuid() != 0:
        raise NotPossible("it takes root")
    if shutil.which("debootstrap") is None:
        raise NotPossible("it takes debootstrap (apt-get install debootstrap)")


def leave_mounts() -> None:
    """Gives this process its own mount namespace, which ends with the process."""
    system("unshare", _NEW_MOUNTS)
    system("mount", None, b"/", None, _RECURSIVE | _PRIVATE, None)


def system(name: str, *arguments: object) -> None:
    """Calls a function of the C library; raises NotPossible if it fails."""
    library = ctypes.CDLL(None, use_errno=True)
    if library[name](*arguments) != 0:
        raise NotPossible(f"{name}: {os.strerror(ctypes.get_errno())}")


def make(folder: Path, suite: str, packages: Sequence[str], *options: str) -> bool:
    """Makes the chroot, unless it exists with the same packages; returns whether it was made."""
    mark = folder / _MARK
    wanted = " ".join((suite, *packages, *options))
    if mark.is_file() and mark.read_text() == wanted:
        return False
    remove(folder)
    folder.mkdir(parents=True)
    print(f"making a chroot of Debian's {suite} in {folder} (some minutes)", flush=True)
    command = [
        "debootstrap", "--variant=minbase", f"--include={','.join(packages)}", *options, suite, str(folder), mirror(),
    ]  # fmt: skip
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
    return True


def mirror() -> str:
    """Returns apt's Debian mirror; the usual one by default.

    >>> mirror().startswith("http")
    True
    """
    lists = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    texts = [path.read_text() for path in lists if path.is_file()]
    found = [uri for text in texts for uri in re.findall(r"^(?:deb\b.*?|URIs:.*?)(https?://\S+)", text, re.MULTILINE)]
    return next((uri for uri in found if uri.rstrip("/").endswith("/debian")), MIRROR)


def mount(folder: Path) -> None:
    """Mounts the folders shared with the host, and copies the network configuration."""
    for shared in ("/proc", "/sys", "/dev", str(ROOT)):
        inside = Path(f"{folder}{shared}")
        inside.mkdir(parents=True, exist_ok=True)
        system("mount", shared.encode(), str(inside).encode(), None, _BIND | _RECURSIVE, None)
    home = os.path.expanduser("~")
    for path in (*_COPIED, f"{home}/.config/pip", f"{home}/.pip"):
        there = Path(f"{folder}{path}")
        there.parent.mkdir(parents=True, exist_ok=True)
        if os.path.isdir(path):
            shutil.copytree(path, there, dirs_exist_ok=True)
        elif os.path.isfile(path):
            there.unlink(missing_ok=True)
            shutil.copy(path, there)


def run(folder: Path, command: Sequence[str], more: dict[str, str] | None = None) -> int:
    """Runs a command in the chroot, from this checkout; returns its exit status."""
    return subprocess.run(["chroot", str(folder), *command], env=environment() | (more or {})).returncode


def environment() -> dict[str, str]:
    """Returns the environment variables of a process in the chroot."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    kept["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    kept["LC_ALL"] = "C.UTF-8"
    kept["PIP_ONLY_BINARY"] = ":all:"
    kept.pop("PYTHONPATH", None)
    return kept


def remove(folder: Path) -> None:
    """Removes the chroot. Mounts are in another namespace, or are left alone."""
    if folder.exists():
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)
        if folder.exists():
            raise NotPossible(f"{folder} cannot be removed")
