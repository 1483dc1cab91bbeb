"""Loop programs: the kernels of a loop's body run iteration after iteration without Python.

Input: the compiled parts of a loop's body.
Output: a program of words that ``native/loop_program.ll`` interprets.
Why: one iteration of small kernels takes less time than one call of Python.
"""
