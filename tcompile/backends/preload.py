"""LLVM's library, mapped in a background thread.

Input: nothing.
Output: the library in memory, where llvmlite finds it.
Why: mapping and relocating it takes ten milliseconds without Python; this thread imports tcompile's modules meanwhile.
"""

from __future__ import annotations

import ctypes
import os
from _thread import start_new_thread


def map_llvm() -> None:
    """Maps LLVM's library in another thread. Errors are ignored: llvmlite meets and reports them again."""
    try:
        import llvmlite
        from llvmlite.utils import get_library_name

        path = os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name())
        # Not ctypes.CDLL(path), which holds the GIL meanwhile.
        dlopen = ctypes.CDLL(None).dlopen
        dlopen.argtypes, dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
        start_new_thread(dlopen, (os.fsencode(path), os.RTLD_NOW))
    except Exception:
        return


__all__ = ["map_llvm"]
