"""Vector code: IR as text, arithmetic on lanes, and mathematical functions.

Input: register names and dtypes.
Output: instructions.
Why: every form of kernel is written in this vocabulary.
"""
