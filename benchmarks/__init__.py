"""Benchmarks: tcompile beside its peers, run by `python -m benchmarks.run`, explained in README.md.

Input: the command line.
Output: tables, JSON files and pictures.
Why: each claim about speed is measured, and can be repeated.

kernels.py has the computations, peers.py the libraries, harness.py the measurement, startup.py the time before the
first call, report.py the output.
"""
