"""Modules whose doctests need a package that may be missing are left out where it is."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = []
if importlib.util.find_spec("torch") is None:
    collect_ignore_glob += ["tcompile/frontends/torch/*", "tcompile/torch_backend.py", "tcompile/torch_modules.py"]
    collect_ignore_glob += ["tcompile/tensor_programs.py", "tcompile/torch_optimizers.py"]
