"""The settings: names, types, defaults and meanings.

Input: assignments by the user (``tcompile.config.recompile_limit = 4``).
Output: values read by capture and by the runtime.
Why: a misspelt name or a wrong type is refused where it is assigned.
"""

from __future__ import annotations

import array
import contextlib
from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar, overload

from tcompile.errors import InvalidArgument, InvalidType, did_you_mean

T = TypeVar("T", bool, int, set[Any])


class Setting(Generic[T]):
    """One setting: a descriptor that keeps its value in the ``Config`` object and validates assignments."""

    def __init__(self, default: T, doc: str, *, minimum: int | None = None, alias_of: str | None = None) -> None:
        self.default: T = default
        self.type: type[T] = type(default)
        self.minimum = minimum
        self.alias_of = alias_of
        self.__doc__ = doc

    def __set_name__(self, owner: type[Config], name: str) -> None:
        self.name = name
        self.key = self.alias_of or name

    @overload
    def __get__(self, config: None, owner: type[Config]) -> Setting[T]: ...
    @overload
    def __get__(self, config: Config, owner: type[Config]) -> T: ...
    def __get__(self, config: Config | None, owner: type[Config]) -> Setting[T] | T:
        if config is None:
            return self
        value: T = config.__dict__.get(self.key, self.default)
        if isinstance(value, set) and value is self.default:  # additions by the user do not change the default
            value = config.__dict__[self.key] = set(value)
        return value

    def __set__(self, config: Config, value: T) -> None:
        self.check(value)
        config.__dict__[self.key] = value

    def __delete__(self, config: Config) -> None:
        config.__dict__.pop(self.key, None)

    def check(self, value: object) -> None:
        """Refuses a value of the wrong type or range. Raises InvalidType or InvalidArgument."""
        if type(value) is not self.type:
            raise InvalidType(f"config.{self.name} must be {self.type.__name__}, got {type(value).__name__} {value!r}")
        if self.minimum is not None and isinstance(value, int) and value < self.minimum:
            raise InvalidArgument(f"config.{self.name} must be at least {self.minimum}, got {value}")


class Switch(Setting[bool]):
    """A setting that machine code also reads: ``off[0]`` is 0 while it is True."""

    def __init__(self, default: bool, doc: str) -> None:
        super().__init__(default, doc)
        self.off = array.array("q", [not default])

    def __set__(self, config: Config, value: bool) -> None:
        super().__set__(config, value)
        self.off[0] = not value

    def __delete__(self, config: Config) -> None:
        super().__delete__(config)
        self.off[0] = not self.default


_forget: list[Callable[[], None]] = []


def on_new_premise(forget: Callable[[], None]) -> None:
    """Registers ``forget``, to be called when a setting changes that compiled code depends on."""
    _forget.append(forget)


class Premise(Setting[bool]):
    """A setting that compiled code depends on: a change discards that code."""

    def __set__(self, config: Config, value: bool) -> None:
        before = config.__dict__.get(self.key, self.default)
        super().__set__(config, value)
        self._compare(before, value)

    def __delete__(self, config: Config) -> None:
        before = config.__dict__.get(self.key, self.default)
        super().__delete__(config)
        self._compare(before, self.default)

    def _compare(self, before: bool, after: bool) -> None:
        if before != after:
            for forget in _forget:
                forget()


class Config:
    """The settings as attributes. Assign to change one, ``del`` for its default, ``patch`` for a block.

    They hold for the whole process. An unknown name raises UnknownSetting, which lists the valid ones.

    >>> config = Config()
    >>> config.recompile_limit
    8
    >>> with config.patch(recompile_limit=1):
    ...     config.recompile_limit
    1
    >>> config.recompile_limt = 3  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    tcompile.config.UnknownSetting: there is no setting 'recompile_limt'. Did you mean 'recompile_limit'? ...
    """

    recompile_limit = Setting(
        8,
        "Compiled entries that one stretch of code may have, those from before another size became symbolic not "
        "counted; further kinds of call then run in plain Python.",
        minimum=1,
    )
    cache_size_limit = Setting(8, "An older name of recompile_limit.", minimum=1, alias_of="recompile_limit")
    max_instructions = Setting(
        10_000,
        "Bytecode instructions that one capture may follow, unrolled loops and called functions included;"
        " beyond them the graph ends, and a long loop is left to Python, its body compiled.",
        minimum=1,
    )
    max_unrolled = Setting(
        500,
        "Operations that a loop may become when it is unrolled; beyond them it is left to Python, its body compiled."
        " Under fullgraph=True only max_instructions counts.",
        minimum=0,
    )
    autodiff_memory = Setting(
        64 << 20,
        "Bytes that the derivative of a loop may store of its iterations; beyond them it stores some, and computes the"
        " others again. A loop that a test may end stores 16 iterations at least. It holds for derivatives that are"
        " compiled afterwards, by the sizes of the call that compiles.",
        minimum=0,
    )
    suppress_errors = Setting(
        False,
        "Where tcompile itself would raise an error, warn and run the function in plain Python instead.",
    )
    reorderable_functions: Setting[set[Any]] = Setting(
        set(),
        "Functions that only report something (print, warnings.warn, logging methods): a call of them does not break"
        " the graph, but is made when the graph has run, in the order of the program.",
    )
    native_calls = Switch(
        True,
        "Answer calls of compiled functions in machine code, where they fit what was compiled; otherwise each call runs"
        " a Python function that does the same.",
    )
    rest_when_slower = Switch(
        True,
        "Time some calls of functions that Python and compiled stretches run in turn, of loops of numbers, and of loops"
        " of which Python runs the iterations; where plain Python takes less time, leave further calls to it.",
    )
    trace_numpy = Premise(
        True,
        "Capture what is done with NumPy. With False it is left to plain Python, to see whether tcompile is the cause"
        " of what goes wrong. A change forgets everything compiled.",
    )
    triton_interpret = Setting(
        False,
        "Run the kernels of backend='triton' in Triton's interpreter, on the CPU and without a GPU: very slow, to see"
        " and to test what they compute.",
    )
    verify = Setting(False, "Check types and dominance of graphs after capture and after each transform.")
    stress_capture = Setting(
        False,
        "For tests of tcompile itself: what capture made of a call runs even where it holds no array work,"
        " which otherwise is plain Python's.",
    )

    stress_breaks = Setting(
        0,
        "For tests of tcompile itself: break the graph after this many instructions, wherever that is, and follow no"
        " called function that is longer; 0 does not.",
        minimum=0,
    )

    def patch(self, **values: bool | int | set[Any]) -> Patch:
        """Changes settings for the length of a ``with`` block, or of a decorated function's calls.

        Names and values are checked at once. The former values come back however the block ends.
        """
        for name, value in values.items():
            _setting(name).check(value)
        return Patch(self, values)

    def __setattr__(self, name: str, value: Any) -> None:
        _setting(name).__set__(self, value)

    def __delattr__(self, name: str) -> None:
        _setting(name).__delete__(self)

    def __getattr__(self, name: str) -> NoReturn:
        # Called for unknown names only. copy, pickle and notebooks expect a bare AttributeError.
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnknownSetting(_unknown(name))

    def __dir__(self) -> list[str]:
        return sorted([*SETTINGS, "patch"])

    def __repr__(self) -> str:
        rows = [f"    {name}={getattr(self, name)!r}," for name, setting in SETTINGS.items() if not setting.alias_of]
        return "\n".join(["tcompile.config(", *rows, ")"])

    def _repr_html_(self) -> str:
        from tcompile.observe.display import html

        rows = [
            [*(f"<code>{html.text(cell)}</code>" for cell in (name, repr(getattr(self, name)), repr(setting.default))),
             html.text(setting.__doc__ or "")]
            for name, setting in SETTINGS.items()
            if not setting.alias_of
        ]  # fmt: skip
        return html.page(html.table(("setting", "value", "default", "meaning"), rows, left=range(4)), "settings")


class Patch(contextlib.ContextDecorator):
    """The result of ``config.patch``: a context manager, also usable as a decorator and more than once."""

    def __init__(self, config: Config, values: dict[str, bool | int | set[Any]]) -> None:
        self._config = config
        self._values = values
        self._saved: list[dict[str, Any]] = []

    def __enter__(self) -> Config:
        self._saved.append({name: getattr(self._config, name) for name in self._values})
        for name, value in self._values.items():
            setattr(self._config, name, value)
        return self._config

    def __exit__(self, *error: object) -> None:
        for name, value in self._saved.pop().items():
            setattr(self._config, name, value)


class UnknownSetting(InvalidArgument, AttributeError):
    """A setting of this name does not exist."""


SETTINGS: dict[str, Setting[Any]] = {name: value for name, value in vars(Config).items() if isinstance(value, Setting)}


def _setting(name: str) -> Setting[Any]:
    setting = SETTINGS.get(name)
    if setting is None:
        raise UnknownSetting(_unknown(name))
    return setting


def _unknown(name: str) -> str:
    return f"there is no setting {name!r}.{did_you_mean(name, SETTINGS)} Settings: {', '.join(SETTINGS)}"


config = Config()

__all__ = ["SETTINGS", "Config", "Setting", "config", "on_new_premise"]
