"""Frontends: what a library's calls mean in the graph. ``base`` is the contract, ``numpy`` the reference."""
