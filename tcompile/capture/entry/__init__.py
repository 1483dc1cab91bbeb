"""The entry program: the code that one captured stretch becomes, and the driver that captures it.

Input: a function, and the values of one call. Output: guards and a program that loads, runs the graph and rebuilds.
Why: it is the only part of capture that the compiler calls.
"""
