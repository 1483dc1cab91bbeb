"""PyTorch's operations as operations of graphs.

Input: a graph of ATen operations, as ``torch.compile`` hands it to its backends.
Output: a ``Graph`` over NumPy arrays that share their memory with the tensors.
Why: one table says what each ATen operation means; what has no row stays a call of PyTorch's own kernel in the graph.

``tensors`` maps dtypes, layouts and memory; ``lowering`` is the table; ``elementwise``, ``reductions``, ``shapes``,
``indexing`` and ``composed`` are its rows; ``aten_calls`` runs the operations without a row; ``fx_graphs`` walks over a
graph.
PyTorch is imported by whoever imports a module of this package.
"""
