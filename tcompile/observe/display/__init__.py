"""Notebook displays of compiled functions, graphs, kernels, breaks and guards.

Input: facts, gathered by the owner of the object.
Output: a ``View``: data that displays itself as HTML, text and JSON.
Why: all displays look alike, need no scripts, and say the same to a person and to a front end.

No Jupyter package is imported: a notebook calls ``_repr_mimebundle_``, which returns plain dictionaries.

``html`` has the stylesheet and HTML fragments, ``view`` the base class of all views. ``places`` (breaks and guards),
``graphs``, ``kernels`` and ``functions`` are the views; ``schema`` states their JSON.
"""
