"""User annotations of functions: marks, policies, and control flow that capture keeps as one node.

Input: functions and values from the user.
Output: the same, marked, or their result in plain Python.
Why: this is public API that works without capture; ``capture.semantics.special`` defines its meaning in captured code.
"""
