"""The disk cache: what is kept comes back, and nothing that is damaged, foreign or too much does harm."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tcompile
from tcompile.backends.disk import DiskCache, key_of
from tcompile.backends.llvm.native import target
from tcompile.errors import InvalidArgument, InvalidType
from tcompile.observe import bus
from tcompile.observe.events import CacheHit, CacheMiss

KEY, OTHER = key_of("one"), key_of("two")
posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions and symbolic links are POSIX's")


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path / "cache")


def only_file(cache):
    (path,) = cache.directory.glob("*.obj")
    return path


def test_what_is_kept_is_found(cache):
    assert cache.find(KEY) is None
    cache.keep(KEY, b"code")
    assert cache.find(KEY) == b"code"
    assert DiskCache(cache.directory).find(KEY) == b"code"
    info = cache.info()
    assert (info.files, info.hits, info.misses, info.off) == (1, 1, 1, "")
    assert "1 files" in repr(cache) and "1 files" in cache._repr_html_()
    assert cache.clear() == 1 and cache.find(KEY) is None


@pytest.mark.parametrize("harm", [
    lambda data: data[:-1], lambda data: data + b"x", lambda data: b"", lambda data: b"x" + data[1:],
    lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], lambda data: data[:-1] + bytes([data[-1] ^ 1]),
])  # fmt: skip
def test_damaged_files_are_removed(cache, harm):
    cache.keep(KEY, b"code" * 10)
    path = only_file(cache)
    path.write_bytes(harm(path.read_bytes()))
    assert cache.find(KEY) is None and not path.exists()
    cache.keep(KEY, b"code")
    assert cache.find(KEY) == b"code"


def test_a_file_under_another_name_is_refused(cache):
    cache.keep(KEY, b"code")
    only_file(cache).rename(cache.directory / f"{OTHER}.obj")
    assert cache.find(OTHER) is None


@posix
def test_links_are_not_followed(cache, tmp_path):
    cache.keep(KEY, b"code")
    path = only_file(cache)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.find(KEY) is None


@posix
def test_a_directory_that_others_may_write_to_is_not_used(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    cache = DiskCache(tmp_path / "open")
    cache.keep(KEY, b"code")
    assert cache.find(KEY) is None and "others may write" in cache.info().off
    assert list((tmp_path / "open").iterdir()) == []


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    cache = DiskCache(tmp_path / "file" / "below")
    cache.keep(KEY, b"code")
    assert cache.find(KEY) is None and cache.info().off


def test_a_full_disk_turns_it_off(cache, monkeypatch):
    cache.keep(KEY, b"code")

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache.keep(OTHER, b"code")
    assert "No space left" in cache.info().off
    assert [path.name for path in cache.directory.iterdir()] == [f"{KEY}.obj"]  # no draft is left


def test_a_file_that_cannot_be_replaced_serves_as_it_is(cache, monkeypatch):
    """Windows replaces no file that another process reads."""
    cache.keep("aa", b"code")

    def busy(draft, target):
        raise PermissionError(13, "The process cannot access the file")

    monkeypatch.setattr(os, "replace", busy)
    cache.keep("aa", b"code")
    assert cache.find("aa") == b"code" and not cache.info().off
    assert [file.name for file in cache.directory.iterdir()] == ["aa.obj"]
    cache.keep("bb", b"more")
    assert "cannot access" in cache.info().off


def test_the_oldest_go_when_there_is_too_much(cache):
    cache.limit = 10 << 20
    keys = [key_of(str(i)) for i in range(7)]
    for i, key in enumerate(keys):
        cache.keep(key, bytes(2 << 20))
        past = time.time() - 1000 + i
        os.utime(cache.directory / f"{key}.obj", (past, past))
    assert cache.info().bytes <= 12 << 20
    assert cache.find(keys[0]) is None and cache.find(keys[-1]) is not None


def test_saved_objects_are_loaded_elsewhere(cache, tmp_path):
    cache.keep(KEY, b"code")
    cache.keep(OTHER, b"more code")
    assert cache.save(tmp_path / "objects") == 2
    other = DiskCache(tmp_path / "other")
    assert other.load(tmp_path / "objects") == 2
    assert (other.find(KEY), other.find(OTHER)) == (b"code", b"more code")


@pytest.mark.parametrize("harm", [
    lambda data: data[:-1], lambda data: b"zip" + data, lambda data: data[:-3] + b"xxx", lambda data: data + b"\0",
])  # fmt: skip
def test_damaged_bundles_add_nothing(cache, tmp_path, harm):
    cache.keep(KEY, b"code")
    cache.save(tmp_path / "objects")
    (tmp_path / "objects").write_bytes(harm((tmp_path / "objects").read_bytes()))
    other = DiskCache(tmp_path / "other")
    with pytest.raises(InvalidArgument, match="path"):
        other.load(tmp_path / "objects")
    assert other.info().files == 0


def test_bad_settings_are_refused(cache):
    with pytest.raises(InvalidType, match=r"cache\.directory"):
        cache.directory = 3
    with pytest.raises(InvalidType, match=r"cache\.limit"):
        cache.limit = "large"
    with pytest.raises(InvalidArgument, match=r"cache\.limit"):
        cache.limit = -1
    assert cache.limit == 256 << 20


def test_threads_write_the_same_file(cache):
    errors = []

    def work():
        try:
            for _ in range(50):
                cache.keep(KEY, b"code" * 1000)
                assert cache.find(KEY) == b"code" * 1000
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and cache.info().files == 1


def test_code_comes_from_the_cache(cache, monkeypatch):
    monkeypatch.setattr(target, "cache", cache)
    ir = "define i32 @answer() { ret i32 43 }"
    seen = []
    with bus.listening(seen.append):
        first, second = (target.load(ir, ["answer"]) for _ in range(2))
    kinds = [type(event) for event in seen if isinstance(event, CacheHit | CacheMiss)]
    assert kinds == [CacheMiss, CacheHit]
    assert first.addresses != second.addresses
    assert "answer" in second.assembly()


PROGRAM = """
import numpy as np, tcompile
f = tcompile.compile(lambda x: np.maximum(x + 1, 0) * 2)
assert f(np.array([-2.0, 3.0])).tolist() == [0.0, 8.0]
info = tcompile.cache.info()
print(info.hits, info.misses, info.off)
"""


def run(directory):
    environment = {**os.environ, "TCOMPILE_CACHE_DIR": str(directory)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    hits, misses, *off = done.stdout.split(maxsplit=2)
    return int(hits), int(misses), "".join(off)


def test_the_next_process_compiles_nothing(tmp_path):
    hits, misses, _ = run(tmp_path / "cache")
    assert misses and not hits
    assert run(tmp_path / "cache") == (misses, 0, "")


def test_no_cache_is_no_error():
    hits, _, off = run("")
    assert not hits and off.strip() == "no directory"


def test_the_public_name():
    assert tcompile.cache is target.cache
    np.testing.assert_array_equal(tcompile.compile(lambda x: x + 1)(np.arange(3)), [1, 2, 3])
