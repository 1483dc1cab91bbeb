"""Derivatives of NumPy functions: ``grad``, ``value_and_grad``, ``vjp``, ``jvp``, ``linearize``, ``hvp``.

Input: a function as it stands in the notebook, and its arguments.
Output: functions that give its derivatives. Each is a compiled function of a few lines around ``reverse`` or
``forward``.
Why: gradients follow all rules of other compiled functions: stances, guards, caches, displays. Capture follows the
function where one of these two calls it, and adds its derivative to the same graph
(``capture.semantics.special.derivatives``). Where they run in plain Python, ``PLAIN`` captures and evaluates the
function all the same.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from tcompile.annotations.treatments import nested_compile_region
from tcompile.annotations.trees import leaves_of, mapped
from tcompile.errors import InvalidArgument, InvalidType

_Function = Callable[..., Any]
PLAIN: list[_Function] = []  # what ``tcompile.derivatives`` puts here: the same, by the reference evaluation
FUNCTIONS: list[type] = [FunctionType]  # and the class of compiled functions, which is put here likewise
COMPILE: list[_Function] = []  # likewise: ``tcompile.compile``


def grad(
    fun: _Function,
    argnums: int | Sequence[int] = 0,
    argnames: str | Iterable[str] = (),
    has_aux: bool = False,
    holomorphic: bool = False,
) -> _Function:
    """The gradient of a function with a scalar value.

    Parameters
    ----------
    fun : callable
        A function of floats and arrays of floats, as plain NumPy. Its value is a scalar: a Python float, a NumPy scalar
        or an array of rank 0.
    argnums : int or sequence of int
        The positions of the arguments to differentiate. Each is a float, an array, or a tuple, list or dict of them.
    argnames : str or iterable of str
        Further arguments, by the names under which they are passed.
    has_aux : bool
        Whether ``fun`` returns a pair of the value and anything else, which is returned beside the gradient.
    holomorphic : bool
        Whether ``fun`` is a holomorphic function of complex arguments with a complex value: then this is its complex
        derivative.

    Returns
    -------
    callable
        A function of the same arguments. It gives the gradient of one argument in that argument's structure, dtype and
        kind, and for a sequence ``argnums`` or with ``argnames`` a tuple of them; with ``has_aux`` a pair of that and
        what ``fun`` returned.

    Raises
    ------
    DerivativeError
        By the gradient, where ``fun`` cannot be differentiated: the text names the argument, or the operation.
    InvalidArgument, InvalidType
        Where ``fun`` is no callable, or an argument of ``grad`` is not one of those above.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> gradient = tcompile.grad(lambda x: np.sum(x ** 3))
    >>> gradient(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    numbers, several = numbers_of("grad", fun, argnums, argnames)
    seed = 1 + 0j if holomorphic else None

    def gradient(*args: Any, **kwargs: Any) -> Any:
        _, aux, gradients = reverse(fun, args, kwargs, numbers, has_aux, seed)
        found = gradients if several else gradients[0]
        return (found, aux) if has_aux else found

    return compiled(gradient, fun, "grad", (numbers, several, has_aux, seed), not argnames)


def value_and_grad(
    fun: _Function,
    argnums: int | Sequence[int] = 0,
    argnames: str | Iterable[str] = (),
    has_aux: bool = False,
    holomorphic: bool = False,
) -> _Function:
    """The value of a function, with the effects of the plain call, and its gradient.

    The parameters are those of ``grad``. The function that is returned gives ``(value, gradient)``, and with
    ``has_aux`` ``((value, aux), gradient)``.

    >>> import numpy as np, tcompile
    >>> tcompile.value_and_grad(lambda x: np.sum(x ** 2))(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    numbers, several = numbers_of("value_and_grad", fun, argnums, argnames)
    seed = 1 + 0j if holomorphic else None

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, aux, gradients = reverse(fun, args, kwargs, numbers, has_aux, seed)
        found = gradients if several else gradients[0]
        return ((value, aux), found) if has_aux else (value, found)

    return compiled(gradient, fun, "value_and_grad", (numbers, several, has_aux, seed), not argnames)


def vjp(fun: _Function, *primals: Any) -> tuple[Any, _Function]:
    """The value of a function, and the function that maps a cotangent of it to those of the arguments.

    The cotangent has the structure and the shapes of the value. The pullback computes the value again.

    >>> import numpy as np, tcompile
    >>> value, pull = tcompile.vjp(np.sin, np.array([0.0, 1.0]))
    >>> pull(np.array([2.0, 0.0]))
    (array([2., 0.]),)
    """
    numbers, _ = numbers_of("vjp", fun, range(len(primals)), ())

    kept = copied(primals)  # the function may write to its arguments, now and in each further call

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        return reverse(fun, copied(kept), {}, numbers, False, cotangent)[2]

    return fun(*primals), compiled(pullback, fun, "vjp")


def jvp(fun: _Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of a function, and its derivative along some tangents of its arguments.

    >>> import numpy as np, tcompile
    >>> tcompile.jvp(lambda x: x * x, (np.array([1.0, 2.0]),), (np.array([1.0, 0.5]),))
    (array([1., 4.]), array([2., 2.]))
    """
    _check_function("jvp", fun)
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise InvalidType(f"jvp: {name} must be a tuple or list, got {type(given).__name__}")
    if len(primals) != len(tangents):
        raise InvalidArgument(f"jvp: there are {len(primals)} primals and {len(tangents)} tangents")

    def make() -> _Function:
        def push(fun: _Function, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
            return forward(fun, primals, tangents)

        return compiled(push, fun, "jvp")

    answer: tuple[Any, Any] = kept_with(fun, "jvp", make)(fun, tuple(primals), tuple(tangents))
    return answer


def linearize(fun: _Function, *primals: Any) -> tuple[Any, _Function]:
    """The value of a function, and its derivative at these arguments, as a function of their tangents.

    >>> import numpy as np, tcompile
    >>> value, push = tcompile.linearize(lambda x: x * x, np.array([1.0, 2.0]))
    >>> push(np.array([1.0, 0.5]))
    array([2., 2.])
    """
    _check_function("linearize", fun)

    kept = copied(primals)

    def pushforward(*tangents: Any) -> Any:
        return forward(fun, copied(kept), tangents)[1]

    return fun(*primals), compiled(pushforward, fun, "linearize")


def hvp(fun: _Function) -> _Function:
    """The product of the Hessian of a scalar function with a vector: a function of the argument and the vector.

    >>> import numpy as np, tcompile
    >>> tcompile.hvp(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    numbers, _ = numbers_of("hvp", fun, 0, ())

    def gradient(x: Any) -> Any:
        return reverse(fun, (x,), {}, numbers, False)[2][0]

    def times(x: Any, v: Any) -> Any:
        return forward(gradient, (x,), (v,))[1]

    return compiled(times, fun, "hvp")


# -- the two that capture gives their meaning --------------------------------------------------------------------------
def reverse(
    function: _Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    numbers: tuple[int | str, ...],
    has_aux: bool,
    seed: Any = None,
) -> tuple[Any, Any, tuple[Any, ...]]:
    """``function(*args, **kwargs)``, what it returns besides, and the gradients of some arguments.

    ``numbers`` are positions and names of arguments. ``seed`` is the cotangent of the value; None asks for a scalar
    value, whose cotangent is 1.
    """
    answer: tuple[Any, Any, tuple[Any, ...]] = PLAIN[0](reverse, function, args, kwargs, numbers, has_aux, seed)
    return answer


def forward(fun: _Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """``fun(*primals)``, and the derivative of its value along ``tangents``."""
    answer: tuple[Any, Any] = PLAIN[0](forward, fun, primals, tangents)
    return answer


def stop_gradient(x: Any) -> Any:
    """``x``, of which derivatives see no dependence.

    >>> import numpy as np, tcompile
    >>> float(tcompile.grad(lambda x: x * tcompile.stop_gradient(x))(3.0))
    3.0
    """
    return x


def checkpoint(fun: _Function) -> _Function:
    """``fun``, whose intermediate values are not kept for the derivative but computed again: less memory, more time.

    A long loop needs no checkpoint: its derivative keeps to ``config.autodiff_memory``.

    Parameters
    ----------
    fun : callable
        A function of arrays. Its array results must be new arrays, and it may change nothing outside itself.

    Returns
    -------
    callable
        A function with the same arguments, values and derivatives.

    Raises
    ------
    InvalidType
        For something that is no function.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> layer = tcompile.checkpoint(lambda x: np.tanh(x) * 2)
    >>> tcompile.grad(lambda x: np.sum(layer(layer(x))))(np.zeros(2))
    array([4., 4.])
    """
    _check_function("checkpoint", fun)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    return nested_compile_region(call)


# -- how such functions are made ---------------------------------------------------------------------------------------
def compiled(
    function: _Function,
    fun: _Function,
    kind: str,
    options: Hashable = (),
    parameters: bool = False,
    defaults: bool = True,
) -> _Function:
    """The derivative of ``fun`` that ``function`` computes, compiled, under a name that tells of both.

    ``options`` are what it does otherwise for the same ``fun``: it has compiled entries of its own for each.
    ``parameters``: it takes its arguments by ``*args``, and may have the parameters of ``fun`` instead, with or
    without ``defaults``.
    """
    if parameters:
        function = _with_parameters(function, fun, defaults)
    function.__name__ = function.__qualname__ = named(kind, fun)
    function.__doc__ = getattr(fun, "__doc__", None)
    made: _Function = COMPILE[0](distinct(function, fun, kind, options))
    return made


_SPREAD = 0x0C  # code flags of *args and **kwargs


def _with_parameters(function: _Function, fun: Any, defaults: bool) -> _Function:
    """A function with the parameters of ``fun`` that calls ``function``: machine code answers calls of it.

    ``function`` itself where ``fun`` is no Python function, compiled or not, or has parameters that are not positional.
    """
    inner = getattr(fun, "__func__", fun)
    if type(inner) not in FUNCTIONS or inner.__code__.co_flags & _SPREAD or inner.__code__.co_kwonlyargcount:
        return function
    if inner.__defaults__ and not defaults:
        return function
    code = inner.__code__
    names = code.co_varnames[int(inner is not fun) : code.co_argcount]
    if "_inner" in names:
        return function
    made = _caller(names, code.co_posonlyargcount)(function)
    made.__defaults__ = inner.__defaults__
    answer: _Function = made
    return answer


@functools.lru_cache(maxsize=256)
def _caller(names: tuple[str, ...], positional: int) -> Any:
    """A function that makes functions with these parameters, each around another one."""
    listed = [*names[:positional], *(["/"] if 0 < positional <= len(names) else []), *names[positional:]]
    given = ", ".join(names)
    text = f"def make(_inner):\n def call({', '.join(listed)}):\n  return _inner({given})\n return call\n"
    space: dict[str, Any] = {}
    exec(text, globals(), space)
    return space["make"]


def named(kind: str, fun: _Function) -> str:
    """The name of a derivative: ``grad(loss)``."""
    return f"{kind}({getattr(fun, '__name__', type(fun).__name__)})"


def distinct(function: _Function, fun: _Function, kind: str = "", options: Hashable = ()) -> _Function:
    """``function`` with a code object that only derivatives of this kind of the code of ``fun`` have.

    Compiled entries and their limit belong to a code object, so different functions must not share one. A lambda that a
    loop makes anew has the same code each time, and shares its entries.
    """
    template = function.__code__

    def own() -> CodeType:
        body = _body(fun)
        return _at(template, body, named(kind, fun)) if kind and isinstance(body, CodeType) else template.replace()

    function.__code__ = kept_with(fun, (template, kind, options), own)
    return function


def kept_with(fun: _Function, key: Hashable, make: Callable[[], Any]) -> Any:
    """``make()``, once for each ``key`` and code of ``fun``, as long as that code is alive.

    What is made must not refer to ``fun``: a function may hold large arrays, and its code outlives it.
    """
    body = _body(fun)
    held = _kept.get(id(body))
    if held is None or held[0]() is not body:
        drop, place = _kept.pop, id(body)  # bound here: at exit the module's globals are cleared first
        alive = (lambda: body) if isinstance(body, np.ufunc) else weakref.ref(body, lambda _: drop(place, None))
        held = _kept[id(body)] = alive, {}
    made = held[1].get(key)
    if made is None:
        made = held[1][key] = make()
    return made


def _at(template: CodeType, body: CodeType, name: str) -> CodeType:
    """A copy of a code object that is called ``name``, with all instructions at the first line of another one.

    Graph breaks, displays and tracebacks then name the user's function, and not this file.
    """
    units = len(template.co_code) // 2
    runs = [min(8, units - start) for start in range(0, units, 8)]
    table = bytes(byte for run in runs for byte in (0xE8 | run - 1, 0))  # "no columns", and no step to another line
    return template.replace(
        co_filename=body.co_filename, co_firstlineno=body.co_firstlineno, co_linetable=table, co_name=name,
        co_qualname=name,
    )  # fmt: skip


_MOST_WRAPPERS = 16  # an object may answer each attribute with another such object
_kept: dict[int, tuple[_Function, dict[Hashable, Any]]] = {}  # by the code's identity: equal code may be another


def _body(fun: Any) -> Any:
    """The code of a callable; for one without code a ufunc, or the class."""
    for _ in range(_MOST_WRAPPERS):
        inner = fun.func if isinstance(fun, functools.partial) else getattr(fun, "__func__", None)
        inner = inner or getattr(fun, "__wrapped__", None)
        if not callable(inner):
            break
        fun = inner
    if isinstance(fun, np.ufunc):
        return fun
    code = getattr(fun, "__code__", None) or getattr(type(fun).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else type(fun)


def copied(tree: Any) -> Any:
    """A tree with copies of its arrays."""
    return mapped(_copy, tree)


def _copy(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _check_function(name: str, fun: Any) -> None:
    if not callable(fun):
        raise InvalidType(f"{name}: fun must be callable, got {type(fun).__name__} {fun!r}")


def numbers_of(
    name: str, fun: Any, argnums: int | Sequence[int], argnames: str | Iterable[str]
) -> tuple[tuple[int | str, ...], bool]:
    """The arguments to differentiate, and whether they are several."""
    _check_function(name, fun)
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if isinstance(argnums, bool) or not isinstance(argnums, int | tuple | list | range):
        raise InvalidType(f"{name}: argnums must be an int or a sequence of ints, got {argnums!r}")
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in numbers):
        raise InvalidArgument(f"{name}: argnums must be positions from 0, got {argnums!r}")
    if not all(isinstance(n, str) for n in names):
        raise InvalidType(f"{name}: argnames must be strings, got {argnames!r}")
    return (*numbers, *names), bool(names) or not isinstance(argnums, int)


def weighed(function: _Function, weights: Any) -> _Function:
    """The product of what a function returns with some weights, as a function."""

    def slope(*args: Any) -> Any:
        return product(function(*args), weights)

    return distinct(slope, function)


def product(a: Any, b: Any) -> Any:
    """The sum of the products of the numbers in two trees."""
    return sum(leaves_of(mapped(_product, a, b)))


def _product(a: Any, b: Any) -> Any:
    return np.sum(a * b)


__all__ = [
    "COMPILE",
    "PLAIN",
    "checkpoint",
    "compiled",
    "copied",
    "distinct",
    "forward",
    "grad",
    "hvp",
    "jvp",
    "kept_with",
    "linearize",
    "numbers_of",
    "product",
    "reverse",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "weighed",
]
