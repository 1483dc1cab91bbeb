"""The disk cache of machine code, shared by all processes.

Input: object code, under a key made of everything it depends on (the intermediate code, the processor, the compiler's
version).
Output: the same bytes, or nothing.
Why: code that was compiled once is loaded later, also in another process.

Users see it as ``tcompile.cache``: they can inspect it, empty it, and carry its contents to another machine.

No file is ever locked. A file begins with a digest of its key and contents, and is renamed into place. It is read only
from a directory that other users cannot write to. Damaged or foreign files count as missing. Where the disk is full or
read-only, compilation goes on without the cache.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tcompile import process
from tcompile.errors import InvalidArgument, InvalidType

try:
    from _blake2 import blake2b  # as in hashlib, which would also load OpenSSL and take milliseconds
except ImportError:
    from hashlib import blake2b
from tcompile.records import dataclass

_MAGIC = b"tcompile object 1\n"
_BUNDLE = b"tcompile objects 1\n"
_SUFFIX = ".obj"
_LARGEST = 64 << 20  # bytes: the cache writes no larger file
_LOOK_EVERY = 4 << 20  # bytes written between two checks of the total size
_FRESH = 24 * 3600.0  # seconds during which a file's time of use is not updated


@dataclass(frozen=True)
class CacheInfo:
    """The result of ``tcompile.cache.info()``.

    ``files`` and ``bytes`` count what is on disk, ``hits`` and ``misses`` the lookups of this process. ``off`` is the
    reason why nothing is read or written; it is empty where the cache works.
    """

    directory: str
    files: int
    bytes: int
    limit: int
    hits: int
    misses: int
    off: str = ""

    def __str__(self) -> str:
        held = f"{self.files} files, {self.bytes / 2**20:.1f} of {self.limit >> 20} MiB"
        state = f"off: {self.off}" if self.off else held
        return f"{self.directory or '(no directory)'}: {state}; {self.hits} found, {self.misses} not found"

    def _repr_html_(self) -> str:
        import html

        return f"<code>tcompile.cache</code> {html.escape(str(self))}"


class DiskCache:
    """The disk cache. ``directory`` and ``limit`` (bytes) can be assigned; a directory of None turns it off.

    The directory is ``TCOMPILE_CACHE_DIR`` (empty: off), else ``tcompile`` in the user's cache directory. Above
    ``limit``, the least recently used files are removed.

    >>> cache = DiskCache(None)
    >>> cache.keep("00", b"code"), cache.find("00"), cache.info().off
    (None, None, 'no directory')
    """

    def __init__(self, directory: str | os.PathLike[str] | None, limit: int = 256 << 20) -> None:
        self._lock = process.lock()
        self._numbers = itertools.count()
        self._used: set[str] = set()
        self._hits = self._misses = 0
        self.directory = directory
        self.limit = limit

    @property
    def directory(self) -> Path | None:
        """Where the files are; None where the cache is off."""
        return self._directory

    @directory.setter
    def directory(self, value: str | os.PathLike[str] | None) -> None:
        if value is not None and not isinstance(value, str | os.PathLike):
            raise InvalidType(f"cache.directory must be a path or None, got {type(value).__name__} {value!r}")
        self._directory = None if value is None else Path(value).expanduser()
        self._off = "" if self._directory else "no directory"
        self._looked = False  # whether the directory was checked to be the user's alone
        self._unseen = _LOOK_EVERY  # bytes written since the last check of the total size: the first write checks

    @property
    def limit(self) -> int:
        """How many bytes the files may have together."""
        return self._limit

    @limit.setter
    def limit(self, value: int) -> None:
        if type(value) is not int:
            raise InvalidType(f"cache.limit must be int, got {type(value).__name__} {value!r}")
        if value < 0:
            raise InvalidArgument(f"cache.limit must be at least 0, got {value}")
        self._limit = value

    # -- for code generators -------------------------------------------------------------------------------------------
    def find(self, key: str) -> bytes | None:
        """The contents kept under ``key`` (hexadecimal digits), or None."""
        contents = self._read(key) if self._ready() else None
        if contents is None:
            self._misses += 1
        else:
            self._hits += 1
            self._used.add(key)
        return contents

    def keep(self, key: str, contents: bytes) -> None:
        """Keeps ``contents`` under ``key``."""
        if not self._ready():
            return
        assert self._directory is not None
        target = self._path(key)
        draft = self._directory / f".{key}.{os.getpid()}.{next(self._numbers)}"
        try:
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(file, "wb") as out:
                out.write(_MAGIC + _digest(key, contents) + contents)
            os.replace(draft, target)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink()
            # Windows replaces no file that is being read: another process has put the same contents there.
            if not (isinstance(error, PermissionError) and target.exists()):
                self._off = f"{error.strerror or error} ({self._directory})"
            return
        self._used.add(key)
        self._unseen += len(contents)
        if self._unseen >= _LOOK_EVERY:
            self._trim()

    # -- for users -----------------------------------------------------------------------------------------------------
    def info(self) -> CacheInfo:
        """Counts files and bytes, hits and misses."""
        sizes = [size for _, size, _ in self._files()] if self._ready() else []
        return CacheInfo(
            str(self._directory or ""), len(sizes), sum(sizes), self._limit, self._hits, self._misses, self._off
        )

    def clear(self) -> int:
        """Removes all files; returns how many there were. Loaded code stays loaded."""
        removed = 0
        for path, _, _ in list(self._files()) if self._ready() else []:
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
        return removed

    def save(self, path: str | os.PathLike[str]) -> int:
        """Writes the objects that this process has used to one file, for ``load`` on a machine with the same processor.

        Returns the number of objects. Raises OSError where the file cannot be written.
        """
        parts = [_BUNDLE]
        count = 0
        for key in sorted(self._used) if self._ready() else []:
            contents = self._read(key)
            if contents is not None:
                parts += [struct.pack("<HQ", len(key), len(contents)), key.encode(), _digest(key, contents), contents]
                count += 1
        Path(path).write_bytes(b"".join(parts))
        return count

    def load(self, path: str | os.PathLike[str]) -> int:
        """Adds the objects of a file that ``save`` has written; returns their number.

        The file holds machine code that will be run: load only files from people you trust. Raises OSError where it
        cannot be read, InvalidArgument where it is damaged or no such file.
        """
        data = Path(path).read_bytes()
        found: list[tuple[str, bytes]] = []
        at = len(_BUNDLE)
        complete = data.startswith(_BUNDLE)
        while complete and at < len(data):
            head, at = data[at : at + 10], at + 10
            if len(head) < 10:
                complete = False
                break
            name, size = struct.unpack("<HQ", head)
            key, digest = data[at : at + name], data[at + name : at + name + 32]
            contents = data[at + name + 32 : at + name + 32 + size]
            at += name + 32 + size
            text = key.decode("ascii", "replace")
            complete = _is_key(text) and len(contents) == size and digest == _digest(text, contents)
            found.append((text, contents))
        if not complete:
            raise InvalidArgument(f"path: {os.fspath(path)!r} is no file of tcompile.cache.save(), or it is damaged")
        for key_text, contents in found:
            self.keep(key_text, contents)
        return len(found)

    def __repr__(self) -> str:
        return f"<tcompile.cache {self.info()}>"

    def _repr_html_(self) -> str:
        return self.info()._repr_html_()

    # -- files -----------------------------------------------------------------------------------------------------
    def _path(self, key: str) -> Path:
        assert self._directory is not None
        return self._directory / f"{key}{_SUFFIX}"

    def _ready(self) -> bool:
        """Whether the directory exists and no other user can write to it."""
        if self._off or self._looked:
            return not self._off
        assert self._directory is not None
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self._directory.stat()
        except OSError as error:
            self._off = f"{error.strerror or error} ({self._directory})"
            return False
        if not stat.S_ISDIR(found.st_mode):
            self._off = f"{self._directory} is no directory"
        elif sys.platform != "win32" and found.st_uid != os.geteuid():
            self._off = f"{self._directory} belongs to another user"
        elif sys.platform != "win32" and found.st_mode & 0o022:
            self._off = f"others may write to {self._directory}"
        self._looked = True
        return not self._off

    def _read(self, key: str) -> bytes | None:
        path = self._path(key)
        try:
            file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
        except OSError:
            return None
        try:
            with open(file, "rb") as source:
                found = os.fstat(file)
                regular = stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST
                data = source.read() if regular else b""
            start = len(_MAGIC) + 32
            contents = data[start:]
            if data[:start] == _MAGIC + _digest(key, contents):
                if abs(time.time() - found.st_mtime) > _FRESH:
                    os.utime(path)
                return contents
        except OSError:
            return None
        with contextlib.suppress(OSError):  # damaged: it will be written anew
            path.unlink()
        return None

    def _files(self) -> Iterator[tuple[Path, int, float]]:
        """Path, size and time of the last use of each file."""
        assert self._directory is not None
        with contextlib.suppress(OSError), os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX):
                    with contextlib.suppress(OSError):
                        found = entry.stat(follow_symlinks=False)
                        yield Path(entry.path), found.st_size, found.st_mtime

    def _trim(self) -> None:
        """Removes the least recently used files while the total is above the limit."""
        with self._lock:
            self._unseen = 0
            files = sorted(self._files(), key=lambda file: file[2])
            total = sum(size for _, size, _ in files)
            if total <= self._limit:
                return
            for path, size, _ in files:
                if total <= self._limit * 3 // 4:
                    break
                with contextlib.suppress(OSError):
                    path.unlink()
                    total -= size


def key_of(*parts: str) -> str:
    """The cache key of a list of texts.

    >>> key_of("a", "b") != key_of("ab", "")
    True
    """
    digest = blake2b(digest_size=20)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)
    return digest.hexdigest()


def _digest(key: str, contents: bytes) -> bytes:
    return blake2b(key.encode() + b"\0" + contents, digest_size=32).digest()


def _is_key(text: str) -> bool:
    return 0 < len(text) <= 128 and all(c in "0123456789abcdef" for c in text)


def _place() -> Path | None:
    """The directory of the user's choice, else the default; None where the cache is off, or there is no home."""
    chosen = os.environ.get("TCOMPILE_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "tcompile"
        if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
            return Path(os.environ["LOCALAPPDATA"]) / "tcompile" / "Cache"
        base = os.environ.get("XDG_CACHE_HOME")
        return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "tcompile"
    except RuntimeError:
        return None


cache = DiskCache(_place())

__all__ = ["CacheInfo", "DiskCache", "cache", "key_of"]
