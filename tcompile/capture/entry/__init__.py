"""The entry program: guards, graph call and side effects of captured code as one function, and the driver of capture.

Input: a function, and the values of one call.
Output: guards and a program that loads inputs, runs the graph and rebuilds results.
Why: the compiler calls this part of capture only.
"""
