"""The symbolic interpreter: frames, the handlers of opcodes, and the context that all frames share.

Input: a function and its bound arguments. Output: its value; graph, guards and effects grow in the context. Why: a
program means what its bytecode does, so there is one handler for each opcode.
"""
