"""Scalar loops: a loop's bytecode becomes one ``scalar_loop`` node.

Input: a loop's instructions and the kinds of its values.
Output: the program of the node.
Why: scalar code is translated once, whereas the interpreter would follow every iteration.
"""
