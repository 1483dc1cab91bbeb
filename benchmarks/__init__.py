"""tcompile beside its peers: run by `python -m benchmarks.run`, explained in README.md.

kernels.py says what is computed, peers.py how each library is driven, harness.py measures, startup.py measures what
happens before the first call, report.py writes.
"""
