"""Trees: tuples, named tuples, lists and dicts of arrays and numbers.

Input: trees of one structure.
Output: a tree of that structure, or its leaves.
Why: derivatives and batches take and give such trees. Capture follows these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def mapped(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The tree of ``function(leaf, *other_leaves)``; the other trees have the structure of the first.

    >>> mapped(lambda x, y: x + y, {"a": (1, [2])}, {"a": (10, [20])})
    {'a': (11, [22])}
    """
    if isinstance(tree, tuple | list):
        return rebuilt(tree, [mapped(function, *items) for items in zip(tree, *others, strict=True)])
    if isinstance(tree, dict):
        return {key: mapped(function, item, *[other[key] for other in others]) for key, item in tree.items()}
    return function(tree, *others)


def leaves_of(tree: Any) -> list[Any]:
    """The leaves in order.

    >>> leaves_of({"a": (1, [2]), "b": 3})
    [1, 2, 3]
    """
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in leaves_of(item)]
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in leaves_of(item)]
    return [tree]


def mapped_with_axes(function: Callable[[Any, int], Any], tree: Any, axes: Any) -> Any:
    """The tree of ``function(leaf, axis)``. ``axes`` is one axis for all leaves, or a tree; None keeps what it is for.

    >>> mapped_with_axes(lambda x, axis: (x, axis), {"a": ("x", "y"), "b": "z"}, {"a": (0, None), "b": 1})
    {'a': (('x', 0), 'y'), 'b': ('z', 1)}
    """
    if axes is None:
        return tree
    if isinstance(tree, tuple | list):
        inner = axes if isinstance(axes, tuple | list) else (axes,) * len(tree)
        return rebuilt(tree, [mapped_with_axes(function, item, axis) for item, axis in zip(tree, inner, strict=True)])
    if isinstance(tree, dict):
        return {key: mapped_with_axes(function, item, axis_of(axes, key)) for key, item in tree.items()}
    return function(tree, axes)


def axis_of(axes: Any, key: Any) -> Any:
    """The axes of one item of a dict."""
    return axes[key] if isinstance(axes, dict) else axes


def rebuilt(tree: Any, items: list[Any]) -> Any:
    """A tuple, a named tuple or a list with other items.

    >>> rebuilt((1, 2), [3, 4])
    (3, 4)
    """
    if isinstance(tree, tuple):
        return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
    return items


__all__ = ["axis_of", "leaves_of", "mapped", "mapped_with_axes", "rebuilt"]
