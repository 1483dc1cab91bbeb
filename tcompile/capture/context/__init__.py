"""The records of one capture, as plain data: its options and its memory.

Input: guards.
Output: the options, the symbols of sizes and numbers, the plans of loops, and the functions that were followed.
Why: values, loops and the interpreter share these records.
"""
