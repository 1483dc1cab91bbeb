"""Batches of graphs: what one example computes, for all examples at once.

Input: the part of a graph that computes with stand-ins of one example's arrays.
Output: nodes that compute with the arrays of all examples, whose first axis counts them.
Why: the batched operations are part of the same graph, so they fuse with others and have derivatives. ``walk`` goes
through the nodes, ``table`` has the rule of each operation. What has no rule runs in a loop over the examples.
"""

from tcompile.transforms.batching import arrays, calls, elements, loops
from tcompile.transforms.batching.table import EACH, RULES
from tcompile.transforms.batching.walk import batch

__all__ = ["EACH", "RULES", "arrays", "batch", "calls", "elements", "loops"]
