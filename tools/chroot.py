"""A chroot of Debian's: made once, with this checkout, the host's /proc, /sys and /dev, and its network, in it.

Input: a folder, and what debootstrap is given. Output: the chroot, mounted for this process alone; commands run in it.
Why: Debian has versions of CPython and processors, under emulation, that the system at hand lacks.

It takes root and debootstrap. What is shared with the host is mounted in a namespace of the process that runs commands
there, so that nothing is mounted when that has ended.
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
_MARK = "tcompile-packages"  # a file in the chroot, once that is complete: what it consists of
_DEBOOTSTRAP_SECONDS = 3600
# What reaches the network as the host does. Folders are copied whole.
_COPIED = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/xdg/pip", "/etc/ssl/certs/ca-certificates.crt")
_NEW_MOUNTS = 0x20000  # CLONE_NEWNS
_RECURSIVE, _BIND, _PRIVATE = 0x4000, 0x1000, 1 << 18  # MS_REC, MS_BIND, MS_PRIVATE


class NotPossible(Exception):
    """There can be no chroot here."""


def check() -> None:
    """Raises NotPossible where something is missing that a chroot takes."""
    if sys.platform != "linux":
        raise NotPossible("it takes Linux")
    if os.geteuid() != 0:
        raise NotPossible("it takes root")
    if shutil.which("debootstrap") is None:
        raise NotPossible("it takes debootstrap (apt-get install debootstrap)")


def leave_mounts() -> None:
    """Gives this process a mount namespace of its own, which ends with the process."""
    system("unshare", _NEW_MOUNTS)
    system("mount", None, b"/", None, _RECURSIVE | _PRIVATE, None)


def system(name: str, *arguments: object) -> None:
    """Calls a function of the C library; raises NotPossible where it fails."""
    library = ctypes.CDLL(None, use_errno=True)
    if library[name](*arguments) != 0:
        raise NotPossible(f"{name}: {os.strerror(ctypes.get_errno())}")


def make(folder: Path, suite: str, packages: Sequence[str], *options: str) -> bool:
    """Makes the chroot, unless it is there already with the same packages; says whether it was made."""
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
    """Runs a command in the chroot, as it is run from this checkout; returns its exit status."""
    return subprocess.run(["chroot", str(folder), *command], env=environment() | (more or {})).returncode


def environment() -> dict[str, str]:
    """The variables of a process in the chroot."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    kept["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    kept["LC_ALL"] = "C.UTF-8"
    kept["PIP_ONLY_BINARY"] = ":all:"
    kept.pop("PYTHONPATH", None)
    return kept


def remove(folder: Path) -> None:
    """Removes the chroot. What is mounted there is in another namespace, or is left alone."""
    if folder.exists():
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)
        if folder.exists():
            raise NotPossible(f"{folder} cannot be removed")
