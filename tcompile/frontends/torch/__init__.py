"""PyTorch's operations as operations of graphs.

Input: a graph of ATen operations, as ``torch.compile`` hands it to its backends.
Output: a ``Graph`` over NumPy arrays that share their memory with the tensors.
Why: one table says what each ATen operation means. An operation without a row is a call of PyTorch's own kernel.

``tensors`` maps dtypes, layouts and memory; ``lowering`` is the table; ``elementwise``, ``reductions``, ``shapes``,
``indexing`` and ``composed`` are its rows; ``aten_calls`` runs the operations without a row; ``fx_graphs`` converts a
graph. Importing this package imports PyTorch, and raises ImportError where that is too old.
"""

import torch

from tcompile.versions import TORCH, dotted, numbers

if numbers(torch.__version__) < TORCH:
    raise ImportError(
        f"tcompile compiles for PyTorch {dotted(TORCH)} or later, and this is {torch.__version__}: "
        "pip install --upgrade torch"
    )
