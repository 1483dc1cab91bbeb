"""Guards: what a captured stretch relies on, where it is loaded from, and why capture stopped.

Input: the values of one call. Output: sources, guards with their checks, the protocol of entries, and graph breaks.
Why: everything else in capture asks for guards, and guards ask for nothing.
"""
