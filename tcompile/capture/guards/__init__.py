"""Guards: assumptions of a captured stretch, sources of its values, and graph breaks.

Input: the values of one call.
Output: sources, guards with their checks, the protocol of entries, and graph breaks.
Why: the rest of capture uses guards, and guards use nothing of it.
"""
