"""What one capture remembers from attempt to attempt, as plain data.

Input: nothing. Output: the plans of loops, and the functions that were followed. Why: values, loops and the interpreter
share these records.
"""
