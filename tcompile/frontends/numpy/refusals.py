"""Refusals: names of NumPy that run in plain Python, with reasons.

Input: nothing.
Output: for each function, method and attribute the reason of the break catalogue and its detail.
Why: every public name of NumPy is either supported or refused.
"""

from __future__ import annotations

from typing import Any

from tcompile.frontends.numpy.registry import lookup

Refusal = tuple[str, str]

FUNCTIONS: dict[Any, Refusal] = {}
METHODS: dict[str, Refusal] = {}
ATTRIBUTES: dict[str, Refusal] = {}


def _functions(reason: str, detail: str, names: str, prefix: str = "") -> None:
    for name in names.split():
        found = lookup(prefix + name)
        if found is not None:
            FUNCTIONS.setdefault(found, (reason, detail))


def _methods(reason: str, detail: str, names: str) -> None:
    METHODS.update(dict.fromkeys(names.split(), (reason, detail)))


_functions(
    "data-dependent-shape",
    "the result's size depends on the values",
    "argwhere unique unique_all unique_counts unique_inverse unique_values compress extract "
    "union1d intersect1d setdiff1d setxor1d trim_zeros bincount polydiv polymul roots mask_indices",
)
_functions(
    "data-dependent-value",
    "the result's kind depends on the values",
    "real_if_close may_share_memory shares_memory asarray_chkfinite linalg.lstsq",
)
_functions(
    "unsupported-object",
    "a function of Python is called for the elements",
    "frompyfunc fromiter",
)
_functions("unsupported-object", "the object is made in plain Python, and calls of it are fused", "vectorize")
_functions(
    "input-output",
    "it reads, writes or prints",
    "load save savez savez_compressed loadtxt savetxt genfromtxt fromfile memmap fromregex array2string array_repr "
    "array_str set_printoptions get_printoptions format_float_positional format_float_scientific "
    "base_repr binary_repr info show_config show_runtime get_include test linalg.test fft.test "
    "fromstring typename mintypecode einsum_path",
)
_functions(
    "unsupported-object",
    "it gives an object that is no array",
    "nditer nested_iters ndenumerate ndindex broadcast flatiter poly1d matrix asmatrix bmat recarray record "
    "ufunc frombuffer from_dlpack require lib.NumpyVersion histogramdd",
)
_functions(
    "side-effect",
    "NumPy's own settings are read or changed",
    "seterr geterr seterrcall geterrcall setbufsize getbufsize",
)
_functions(
    "unsupported-dtype",
    "dates, times, text and structures stay in NumPy",
    "busday_count busday_offset busdaycalendar is_busday datetime_as_string datetime_data bytes_ str_ void object_ "
    "datetime64 timedelta64 character flexible longdouble clongdouble generic number inexact floating integer "
    "signedinteger unsignedinteger complexfloating",
)
_functions("unsupported-dtype", "C's other integer types of 64 bits stay in NumPy", "longlong ulonglong")
_functions("unsupported-argument", "the arrays it gives warn when they are written to", "broadcast_arrays")
_functions("unsupported-object", "it is an exception", "linalg.LinAlgError")
_functions("with-statement", "NumPy's error state is changed", "errstate")
_functions("with-statement", "NumPy's printing is changed", "printoptions")
_functions("side-effect", "it warns that it is deprecated", "row_stack in1d trapz")
_functions("unsupported-argument", "it asks for memory, not for values", "isfortran")

_methods(
    "array-conversion",
    "values of an array become Python objects",
    "item tolist tobytes __int__ __float__ __bool__ __complex__ __index__ __array__ is_integer as_integer_ratio hex "
    "__iter__ __contains__ to_device",
)
_methods(
    "writes-to-array",
    "it writes to its array",
    "resize setflags setfield byteswap __setstate__",
)
_methods("input-output", "the array is written to a file", "tofile dump dumps")
_methods("data-dependent-shape", "the result's size depends on the values", "compress")
_methods("unsupported-argument", "the same bytes seen as another dtype", "getfield")
_methods("side-effect", "it warns that it is deprecated", "tostring")
_methods("operation-raises", "it is there to say what to use instead", "itemset newbyteorder ptp")

for _name in ("flags", "strides", "base", "data", "ctypes", "__array_interface__", "__array_struct__"):
    ATTRIBUTES[_name] = ("memory-order", "flags, strides and addresses are not part of a graph")
ATTRIBUTES["flat"] = ("data-dependent-value", "an iterator over elements")
