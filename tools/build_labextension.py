"""Builds the JupyterLab extension: labextension/src becomes labextension/prebuilt, which is packed into the wheel.

Input: the TypeScript sources.
Output: the bundle, and a checksum of its sources, by which ``tests/labextension`` checks that it is current.
Why: the bundle is part of the repository, so installing tcompile needs neither node nor the npm registry. After a
change of the extension, run

    make labextension

Needs node 22.18 or later, and ``jupyter-builder``; both come with the extra ``labextension``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "labextension"
BUILT = FOLDER / "prebuilt"
SUM = BUILT / "sources.json"


def sources() -> Iterator[Path]:
    """Returns the source files of the bundle."""
    yield from (FOLDER / name for name in ("package.json", "package-lock.json", "tsconfig.json"))
    for folder in ("src", "style", "schema"):
        yield from sorted(path for path in (FOLDER / folder).rglob("*") if path.is_file())


def checksum() -> str:
    """Returns a checksum of the sources. Of generated types only values count: types are erased from the bundle."""
    total = hashlib.sha256()
    for path in sources():
        text = path.read_text(encoding="utf-8")
        if path.parent.name == "generated":
            text = "".join(line for line in text.splitlines() if line.startswith("export const"))
        total.update(f"{path.relative_to(FOLDER).as_posix()}\0{text}\0".encode())
    return total.hexdigest()


def fresh() -> bool:
    """Whether the bundle is built from these sources."""
    return SUM.exists() and json.loads(SUM.read_text(encoding="utf-8"))["sha256"] == checksum()


def build() -> None:
    """Fetches the pinned packages if missing, checks types, and builds."""
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def npm(*arguments: str) -> None:
        subprocess.run([shutil.which("npm", path=here["PATH"]) or "npm", *arguments], cwd=FOLDER, env=here, check=True)

    lock, held = FOLDER / "package-lock.json", FOLDER / "node_modules" / ".package-lock.json"
    if not held.exists() or held.stat().st_mtime < lock.stat().st_mtime:
        npm("ci", "--no-progress", "--ignore-scripts")
    shutil.rmtree(FOLDER / "lib", ignore_errors=True)
    npm("run", "types")
    shutil.rmtree(BUILT, ignore_errors=True)
    npm("run", "bundle")
    for extra in BUILT.rglob("*.orig"):
        extra.unlink()
    SUM.write_text(json.dumps({"sha256": checksum()}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    build()
