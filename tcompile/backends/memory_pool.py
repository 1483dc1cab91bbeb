"""``tcompile.memory``: statistics and limits of the pool that results are allocated from.

Input: a user's queries and limits.
Output: figures.
Why: a query loads no code generator; the pool itself is ``backends.llvm.native.memory``.
"""

from __future__ import annotations

from tcompile.errors import InvalidArgument, InvalidType
from tcompile.records import dataclass


@dataclass(frozen=True)
class MemoryInfo:
    """The result of ``tcompile.memory.info()``.

    ``in_use`` and ``cached`` are the bytes of live arrays and of blocks kept for reuse, ``limit`` is the most that may
    be kept. ``hits`` and ``misses`` count the allocations that reused a block and those that did not.
    """

    in_use: int
    cached: int
    limit: int
    hits: int
    misses: int

    def __str__(self) -> str:
        kept = f"{_mebibytes(self.cached)} of {_mebibytes(self.limit)} kept for reuse"
        return f"{_mebibytes(self.in_use)} in use, {kept}; {self.hits} arrays reused memory, {self.misses} did not"

    def _repr_html_(self) -> str:
        import html

        return f"<code>tcompile.memory</code> {html.escape(str(self))}"


class MemoryPool:
    """The pool that large arrays are allocated from. ``limit`` (bytes kept for reuse) can be assigned.

    Small arrays are NumPy's own. An array of the pool is an ordinary one; its memory returns to the pool when it dies.
    Above the limit, the least recently freed blocks go back to the system. The default limit is an eighth of the memory
    that this process may have, and at most 2 GiB. The pool never keeps more than a quarter of what RLIMIT_AS and
    RLIMIT_DATA leave. It keeps nothing once an allocation of Python's or NumPy's fails.

    >>> MemoryPool().info().in_use >= 0
    True
    """

    @property
    def limit(self) -> int:
        """How many bytes may be kept for reuse; 0 keeps none."""
        return self.info().limit

    @limit.setter
    def limit(self, value: int) -> None:
        from tcompile.backends.llvm.native import memory

        memory.set_limit(_bytes("memory.limit", value))

    def info(self) -> MemoryInfo:
        """Returns the pool's statistics."""
        from tcompile.backends.llvm.native import memory

        return MemoryInfo(**{**memory.stats(), "limit": memory.limit()})

    def trim(self, keep: int = 0) -> int:
        """Gives blocks kept for reuse back to the system, all but ``keep`` bytes; returns how many bytes were freed.

        Raises InvalidType or InvalidArgument where ``keep`` is no number of bytes.
        """
        from tcompile.backends.llvm.native import memory

        kept = self.info().cached
        memory.trim(_bytes("keep", keep))
        return max(0, kept - self.info().cached)

    def __repr__(self) -> str:
        return f"<tcompile.memory {self.info()}>"

    def _repr_html_(self) -> str:
        return self.info()._repr_html_()


def _bytes(name: str, value: object) -> int:
    if type(value) is not int:
        raise InvalidType(f"{name} must be int, got {type(value).__name__} {value!r}")
    if not 0 <= value < 1 << 63:
        raise InvalidArgument(f"{name} must be at least 0 and less than 2**63, got {value}")
    return value


def _mebibytes(n: int) -> str:
    return f"{n / 2**20:.1f} MiB"


memory = MemoryPool()

__all__ = ["MemoryInfo", "MemoryPool", "memory"]
