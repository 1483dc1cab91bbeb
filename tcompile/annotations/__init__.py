"""What a user says about a function: marks, policies, and control flow that capture keeps as one node.

Input: functions and values of the user's. Output: the same, marked, or their result in plain Python. Why: this is
public API that works without capture; what each means inside captured code is in ``capture.semantics.special``.
"""
