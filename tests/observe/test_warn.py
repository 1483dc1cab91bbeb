"""Our own warnings name the user's line."""

import warnings

import numpy as np
import pytest

import tcompile


def whole(x):
    return x * x.ndim


def in_parts(x):
    print(end="")
    return x * x.ndim


def calls(g, x):
    return g(x)


@pytest.mark.at_recompile_limit
def test_the_limit_is_told_at_the_line_of_the_call():
    lines = {whole: calls.__code__.co_firstlineno + 1, in_parts: in_parts.__code__.co_firstlineno + 2}
    for function, line in lines.items():
        compiled = tcompile.compile(function)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for rank in range(20):
                calls(compiled, np.ones((2,) * rank))
        assert [(one.filename, one.lineno) for one in caught] == [(__file__, line)], function
        assert "recompile_limit" in str(caught[0].message)
