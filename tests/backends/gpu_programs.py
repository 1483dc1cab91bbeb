"""Small programs for tests on a GPU.

Input: nothing.
Output: functions and arguments.
Why: they run on a pretended GPU and on a real one (``tests/gpu``).
"""

import numpy as np


def arrays(dtype="f8"):
    """Two arguments, made anew."""
    return [np.linspace(*ends, 24, dtype=dtype).reshape(6, 4).copy() for ends in ((-1.0, 1.5), (0.5, 2.0))]


# -- on arrays of NumPy's, which are copied there and back -----------------------------------------------------------


def chain(x, y):
    return np.maximum(x + y, 0) * 2.5, (x * y).sum(axis=0)


def in_place(x, y):
    x[1:] += y[1:]
    x *= 2.0
    return x[::2], x.sum()


def calls_numpy(x, y):
    z = np.sort(x * y, axis=0)
    return z + 1.0, np.cumsum(z), (z - 1.0).T


def warns(x, y):
    return np.log(x - x[0]) + y


def writes_and_warns(x, y):
    x += 1.0
    x[:] = x / (y - y)
    return x


def loop(x, y):
    for _ in range(4):
        x = x * 0.5 + y
    return x


def gathers(x, y):
    return x[np.array([0, -1, 2])] * y[:3]


def raises(x, y):
    return x[np.array([0, 99])] + 1.0


ON_NUMPY = [chain, in_place, calls_numpy, warns, writes_and_warns, loop, gathers, raises]


# -- on CuPy's, each of them one graph -------------------------------------------------------------------------------


def pointwise(x, y):
    return np.maximum(x + y, 0) * 2.5, -abs(x), x > 0


def by_cupys_names(x, y):
    import cupy

    return cupy.where(x > 0, cupy.sin(x), y * 2), cupy.sum(x * y, axis=0, keepdims=True)


def without_scalars(x, y):
    total = x.sum()
    return total, total * 2 + 1, x[0, 0], (x - x.mean(axis=1, keepdims=True)).max(), np.argmax(y, 0)


def views(x, y):
    return x.T[1:], x.reshape(3, 8), y[:, ::2].T, np.expand_dims(y, 0) * 2, len(x), x.shape


def new_arrays_lie_in_c_order(x, y):
    return x.T + y.T, x.T.copy(), (x.T * 2).sum(0)


def writes_into_arguments(x, y):
    x[1:] += y[1:]
    x *= 2.0
    y[0, 0] = 7
    x[x > 3] = 0
    return x[::2], x.sum()


def made_inside(x, y):
    out = np.zeros_like(x)
    out[1:-1] = x[1:-1] * 2 + y[:-2]
    return out


def softmax(x, y):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def iterations(x, y):
    for _ in range(3):
        x = x * 0.5 + y
    return x


def iterations_in_place(x, y):
    i = 0
    while i < 20:
        x[1:-1] = (x[2:] + x[:-2]) * 0.5
        i += 1
    return x


def products(x, y):
    z = (x * 2) @ y.T + 1
    return z, np.dot(x.T, y).sum(axis=0), x[0] @ y[0] * 2, np.outer(x[0] + 1, y[1]), np.tensordot(x, y, axes=2) + 1


def scans(x, y):
    return np.cumsum(x * 2, axis=0) + 1, y.cumsum(axis=1), np.cumprod(y, axis=0) * x


def sorts(x, y):
    return np.sort(x * y, axis=0) + 1, np.argsort(x + y, axis=1) * 2, np.concatenate([x * 2, y]) - 1, np.stack([x, y])


def linear(x, y):
    return np.linalg.norm(x * 2) + 1, np.linalg.det(np.tanh(x[:4] * 9)) * 2, np.roll(x + 1, 1, 0) * 2


def index_arrays(x, y):
    at = np.argsort(y[:, 0] + 0)  # CuPy's indices go on at the other end
    return x[at] * 2, x[at + 7, 1:] + 1, np.take(y, at - 13, axis=0), x[at, at - 3] * 2


def writes_to_places(x, y):
    at = np.argsort(y[:, 0] + 0)
    x[at] = y * 2
    x[at - 5, 0] = 7
    return x * 2


def solves(x, y):
    a = np.tanh(x[:4] * 3) + np.linalg.inv(y[:4] * y[1:5] + y[0])
    return np.linalg.solve(a, x[0] + 1) * 2, a


def clips(x, y):
    return x.clip(-0.5, 0.5) * 2, np.clip(y, 1, None) - 1, (x > 0).sum(1).clip(1, 2)


def made_of_sizes(x, y):
    import cupy

    xp = cupy.get_array_module(x)
    rows = xp.arange(len(x)) * 2
    out = xp.zeros(x.shape, x.dtype)
    out[1:] = x[:-1] + xp.eye(4, dtype="f4")[1] + rows[1:, None]
    return out, rows, xp.full((2, 3), 1.5), xp.ones(3) * y[0, 0], xp.arange(6)[::2]


def under_masks(x, y):
    positive = x > 0
    squares = x[positive] ** 2.0
    x[positive] = squares * 2 + y[positive]
    y[y > 1] -= 1
    return x[positive].sum(), x[x < 0].mean(), np.max(y[positive]) * 2, (x[positive] > 1).any(), x * 2


def places_of_a_mask(x, y):
    import cupy

    at = cupy.where(x > 0)
    x[at] *= cupy.get_array_module(x[at]).full(1, 3, x.dtype)[0]
    rows = np.flatnonzero(y[:, 0] > 1)
    y[rows] = 0
    return x[at].sum(), y[x.argmin(1).nonzero()].sum(axis=0), x[:, y[0] > 9].sum(), x.dtype


ON_CUPY = [
    pointwise, by_cupys_names, without_scalars, views, new_arrays_lie_in_c_order, writes_into_arguments, made_inside,
    softmax, iterations, iterations_in_place, products, scans, sorts, linear, index_arrays, writes_to_places,
    under_masks, places_of_a_mask, solves, clips, made_of_sizes,
]  # fmt: skip
IN_C_ORDER = {made_inside, sorts}  # in what order other arrays lie afterwards, CuPy decides
