"""Captured values: one file for each kind.

Input: Python objects.
Output: their captured forms.
Why: the interpreter has no special cases for kinds of objects.
"""
