"""Scalar loops in machine code: the programs of ``scalar_loop`` nodes.

Input: a program of blocks.
Output: one function.
Why: scalar code needs Python's arithmetic and its errors, unlike kernels.
"""
