"""The semantics of Python's values: operators, attributes, built-in functions, the standard library.

Input: an operation and captured values.
Output: a captured value, with nodes and guards.
Why: the interpreter knows instructions, and this package their meaning for values.
"""
