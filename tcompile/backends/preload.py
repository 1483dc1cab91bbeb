"""LLVM's library, loaded while Python is busy with something else.

Input: nothing. Output: the library in memory, where llvmlite finds it. Why: mapping and relocating it takes
ten milliseconds in which no Python runs: another thread does it while this one imports our own modules.
"""

from __future__ import annotations

import ctypes
import os
from _thread import start_new_thread


def map_llvm() -> None:
    """Has another thread map LLVM's library. Whatever goes wrong, llvmlite meets it again, and says so."""
    try:
        import llvmlite
        from llvmlite.utils import get_library_name

        path = os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name())
        # Not ctypes.CDLL(path), which holds the interpreter's lock meanwhile.
        dlopen = ctypes.CDLL(None).dlopen
        dlopen.argtypes, dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
        start_new_thread(dlopen, (os.fsencode(path), os.RTLD_NOW))
    except Exception:
        return


__all__ = ["map_llvm"]
