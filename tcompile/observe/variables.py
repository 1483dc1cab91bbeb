"""Environment variables that make a whole process write files about itself.

Input: the environment, when tcompile is imported.
Output: the readers that it asks for, subscribed.
Why: a program can be inspected without changes, and readers are loaded only on request.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping

from tcompile.errors import InvalidArgument


def follow(readers: Mapping[str, str]) -> None:
    """Starts those of ``readers``, modules by variable, that the environment asks for.

    A wrong value, or a folder that cannot be written, is reported once, and the program continues.
    """
    for variable, reader in readers.items():
        value = os.environ.get(variable, "")
        if value in ("", "0"):
            continue
        try:
            importlib.import_module(reader).follow(value)
        except (OSError, InvalidArgument) as error:
            print(f"tcompile: {variable}={value!r} is ignored: {error}", file=sys.stderr)


__all__ = ["follow"]
