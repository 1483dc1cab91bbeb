"""PyTorch: functions of tensors as graphs of its calls, and its operations as operations of graphs.

Input: tensors and calls, as capture meets them; graphs of ATen operations, as AOTAutograd hands them to its backends.
Output: graphs of ``tensor_call`` nodes; graphs over NumPy arrays that share their memory with the tensors.
Why: PyTorch says what its calls give. One table says what each ATen operation means; an operation without a row is a
call of PyTorch's own kernel.

``frontend`` is what capture asks, ``tracing`` runs calls on fake tensors, ``calls`` lists what may be called, and
``modules`` holds facts about modules. ``tensors`` maps dtypes, layouts and memory; ``lowering`` is the table;
``elementwise``, ``reductions``, ``shapes``, ``indexing`` and ``composed`` are its rows; ``aten_calls`` runs the
operations without a row; ``fx_graphs`` converts a graph. Importing this package imports PyTorch, and raises ImportError
where that is too old.
"""

import torch

from tcompile.versions import TORCH, dotted, numbers

if numbers(torch.__version__) < TORCH:
    raise ImportError(
        f"tcompile compiles for PyTorch {dotted(TORCH)} or later, and this is {torch.__version__}: "
        "pip install --upgrade torch"
    )
