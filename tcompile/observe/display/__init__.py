"""What compiled functions, graphs, kernels, breaks and guards look like in a notebook.

Input: facts, gathered by whoever owns the object. Output: a ``View``, which is data, and shows itself as HTML, as text
and as JSON. Exists so that all displays look alike, need no script, and say the same to a person and to a front end.
Imports no Jupyter package: a notebook asks objects for ``_repr_mimebundle_``, which returns plain dictionaries.

``html`` has the stylesheet and the pieces of HTML, ``view`` what all views have in common; ``places`` (breaks and
guards), ``graphs``, ``kernels`` and ``functions`` are the views themselves; ``schema`` states their JSON.
"""
