"""Kernels: one file for each form of loop nest, from elementwise maps to scans and sorts.

Input: a ``Kernel`` of the schedule.
Output: its functions as IR text.
Why: ``codegen`` picks the form, and each form implements one order of memory accesses.
"""
