"""The symbolic interpreter: frames, the handlers of opcodes, and the context that all frames share.

Input: a function and its bound arguments.
Output: its value; graph, guards and side effects grow in the context.
Why: a program's meaning is its bytecode, so each opcode has one handler.
"""
