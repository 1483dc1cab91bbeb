"""Reports about dtypes: promotion, overflow, casts, division and powers of integers, scalars."""

from __future__ import annotations

import numpy as np
import pytest

from reports.programs import Table

TABLE = Table()
SIGNED = (np.int8, np.int16, np.int32, np.int64)


@TABLE.calls(
    "numba-9986",
    lambda: (np.uint8(255), 1),
    lambda: (np.full(9, 255, np.uint8), 1),
    lambda: (np.int8(127), 2),
)
def shifted_left(x, k):
    """A uint8 scalar is shifted left by a Python int and stays a uint8."""
    return np.left_shift(x, k)


@TABLE.calls("numba-9990", lambda: (np.uint64(2**64 - 1),), lambda: (np.array([2**64 - 1, 5], np.uint64),))
def one_more(x):
    """One is added to the largest uint64."""
    return np.add(x, 1)


@TABLE.calls("numba-10009", lambda: (np.array([True, False]),), lambda: (np.ones(100, bool),))
def sine_of_bools(x):
    """The sine of bools has the dtype float16."""
    return np.sin(x)


@TABLE.calls("numba-10010", lambda: (np.array([33, 34], np.uint8),), lambda: (np.arange(200, dtype=np.uint8),))
def cosine_of_bytes(x):
    """The cosine of uint8 has the dtype float16."""
    return np.cos(x)


@TABLE.calls("numba-10042", lambda: (3, 5.0), lambda: ((2, 4), 0.0), lambda: (5, np.nan))
def filled_bools(shape, value):
    """An array of bools is filled with a float."""
    return np.full(shape, value, dtype=bool)


@TABLE.calls(
    "numba-9147",
    lambda: (np.array([1, 2], "f4"),),
    lambda: (np.arange(50, dtype="f4"),),
    lambda: (np.ones(3),),
)
def centred(x):
    """The mean of float32 is subtracted, and the result is float32."""
    return x - np.mean(x), np.mean(x)


@TABLE.calls(
    "numba-8478", lambda: (1, 2), lambda: (np.arange(4), np.arange(4)[::-1]), lambda: (np.array([True]), np.int8(-3))
)
def extremes(x, y):
    """fmin and fmax of integers are integers."""
    return np.fmin(x, y), np.fmax(x, y)


@TABLE.calls("numba-9929", lambda: (np.array([[9, 200], [3, 7]], np.uint8), np.array([[200, 9], [7, 3]], np.uint8)))
def summed_differences(x, y):
    """Elements of uint8 become ints before they are subtracted."""
    total = np.zeros((x.shape[0] + 1, x.shape[1] + 1), np.int64)
    for r in range(x.shape[0]):
        line = 0
        for c in range(x.shape[1]):
            line += abs(int(x[r, c]) - int(y[r, c]))
            total[r + 1, c + 1] = total[r, c + 1] + line
    return total


@TABLE.calls("numba-7012", lambda: (-2,), lambda: (3,), lambda: (0,), lambda: (-1,))
def power_of_two(x):
    """A Python int to a negative power is a float, to others an int."""
    return pow(2, x), np.ones(2) * 2**x


@TABLE.calls(
    "numba-8169",
    lambda: (2,),
    lambda: (2.0,),
    lambda: (0,),
    lambda: (np.int64(2),),
    lambda: (np.arange(1, 4),),
)
def inverse(x):
    """The power -1 of ints, floats and integer arrays."""
    return x ** (-1)


@TABLE.calls("numba-2306", lambda: (np.arange(3.0), 7), lambda: (np.arange(3.0), 11))
def scaled_units(x, m):
    """Ten to a negative power is a factor of a float array."""
    return x * 10**-3 / m * 10 ** (-3)


def lowest(dtype):
    return np.array([np.iinfo(dtype).min, 7, -7], dtype), np.array([-1, -1, 2], dtype)


@TABLE.calls("numba-10845", *[lambda d=d: lowest(d) for d in SIGNED])
def lowest_by_minus_one(a, b):
    """The lowest integer is divided by minus one."""
    with np.errstate(all="ignore"):
        return np.remainder(a, b), np.floor_divide(a, b), np.divmod(a, b), np.fmod(a, b)


@TABLE.calls("numba-713", lambda: (1 + 1j, 1 + 1j), lambda: (np.ones(2, complex), np.ones(2, complex)))
def complex_floor(a, b):
    """Complex numbers have no floor division: an error."""
    return np.floor_divide(a, b)


@TABLE.calls("numba-151", lambda: (-3584, -512), lambda: (np.int16(-3584), np.int16(-512)), lambda: (7, -3))
def modulo(a, b):
    """The remainder of negative integers, scalars and Python ints."""
    return a % b, np.array([a, -a]) % b


def signs():
    dividends = np.array([-2.0, 3, -4, 6, -0.0, 2, 0, np.inf, -np.inf, np.nan])
    return dividends, np.array([-0.0, 0, 3, -7, 1, 0, -0.0, 2, 0, 1])


@TABLE.calls(
    "numba-5985",
    signs,
    lambda: tuple(a.astype("f4") for a in signs()),
    lambda: tuple(a[::-1] for a in signs()),
)
def floors_with_zeros(a, b):
    """Floor division of floats where zeros of both signs are divisors."""
    return np.floor_divide(a, b)


@TABLE.calls("numba-7888", lambda: (np.uint64(2**63 + 6), 1), lambda: (np.array([6, 7], np.uint64), 2))
def clear_bit(b, t):
    """A bit of a uint64 is cleared with an expression of Python ints."""
    while t:
        b = b & np.uint64(~(1 << t) & (2**64 - 1))
        t -= 1
    return b


@TABLE.calls("numba-2194", lambda: (np.uint32(1),), lambda: (np.uint32(3),), lambda: (3,))
def unsigned_range(s):
    """A uint32 is a bound of two ranges whose variable is an index."""
    v = np.zeros(4)
    for i in range(s):
        v[i] = 1
    for i in range(s, 4):
        v[i] += i
    return v


def pick(a, i, col, flex_i, flex_col):
    if flex_i == -1:
        flex_i = i
    if flex_col == -1:
        flex_col = col
    return a[flex_i, flex_col]


@TABLE.calls("numba-7382", lambda: (np.arange(12).reshape(3, 4), -1), lambda: (np.ones((3, 4), np.uint64), 2))
def flexible_index(a, flex_col):
    """An index is either an unsigned counter or a signed argument."""
    out = np.zeros(a.shape[1])
    for col in range(a.shape[1]):
        out[col] = pick(a, np.uint64(1), np.uint64(col), -1, flex_col)
    return out


@TABLE.calls("numba-3925", lambda: (np.uint64(10),), lambda: (np.uint64(3),), lambda: (4,))
def rebound_counter(b):
    """A variable is an int before it becomes the variable of a loop over an unsigned range."""
    a = np.zeros(10, np.uint8)
    j = 0
    j += 1
    for j in range(b):
        a[j] += j
    return a, j


@TABLE.calls("numba-1394", lambda: (1,), lambda: (3,), lambda: (0,))
def counter_then_float(a):
    """The variable of a loop is a float after the loop, or unbound."""
    if a:
        for i in range(a):
            a += i
        i = 1.2
    return a, i


@TABLE.calls("jax-6045", lambda: (2**63 - 1,), lambda: (2**63,), lambda: (2**64,), lambda: (-(2**63) - 1,))
def array_of_big(x):
    """An array is made of an int of 63, 64 and more bits."""
    return np.array(x), np.array([x, 1])


@TABLE.calls("jax-4809", lambda: (2**64 - 1,), lambda: (5,), lambda: (2**64,), lambda: (-1,))
def to_uint64(x):
    """A large Python int is converted to uint64."""
    return np.uint64(x), np.ones(2, np.uint64) * np.uint64(x)


@TABLE.calls(
    "jax-10692", lambda: (np.array([2], "i1"), np.array([64], "i1")), lambda: (np.array(2, "i1"), np.array(64, "i1")),
    lambda: (np.arange(-4, 4, dtype="i2"), np.arange(8, 16, dtype="i2")),
)  # fmt: skip
def wrapping_power(x, y):
    """A power of int8 overflows, in one dimension and in none."""
    return np.power(x, y)


@TABLE.calls("jax-3840", lambda: (1 << 32,), lambda: (1 << 63,), lambda: (1 << 64,), lambda: (-(1 << 63),))
def negated_big(x):
    """A large Python int is negated by a ufunc."""
    return np.negative(x)


@TABLE.calls("jax-4187", lambda: (np.uint32(2**32 - 1), np.int8(1)), lambda: (np.full(3, 2**32 - 1, "u4"), np.int8(-1)))
def unsigned_and_signed(a, b):
    """A uint32 and an int8 are added as int64."""
    return a + b, b - a


@TABLE.calls("jax-22501", lambda: (32,), lambda: (40,), lambda: (64,))
def powers_of_indices(n):
    """Two to the power of np.indices is counted in int64."""
    return 2 ** np.indices((n,))


@TABLE.calls(
    "jax-3952", lambda: (np.array([2**31, 7], "u4"), 3), lambda: (np.array([200, 7], "u1"), np.array([1, 9], "u1")),
    lambda: (np.array([-200, 7]), np.array([70, 64])),
)  # fmt: skip
def shifted_right(x, k):
    """Unsigned integers are shifted right, also by more bits than they have."""
    return np.right_shift(x, k), x >> k


@TABLE.calls("jax-16748", lambda: (np.array([8, 4]),), lambda: (np.array([31, 0]),))
def shifted_masks(bits):
    """Masks of ones are shifted by arrays of ints and become uint32."""
    mask = ~np.zeros(2, int)
    return (mask << bits).astype(np.uint32), (mask >> bits).astype(np.uint32), np.right_shift(~0, bits)


@TABLE.calls(
    "jax-37752",
    lambda: (1.0, 0.0),
    lambda: (np.float32(-1), np.float32(0)),
    lambda: (np.array([1.0, -1]), 0.0),
)
def floor_by_zero(x, y):
    """A float is divided by zero with floor_divide: infinite, with a warning."""
    return np.floor_divide(x, y)


@TABLE.calls("jax-40028", signs, lambda: (np.array([-1.0, -4, 0, 4]), np.array([1.0, 2, -3, -2])))
def zero_remainders(a, b):
    """A remainder that is zero has the sign of the divisor."""
    with np.errstate(all="ignore"):
        r = np.remainder(a, b)
        return r, np.copysign(1, r), np.signbit(np.divmod(a, b)[0]), np.signbit(np.fmod(a, b))


@TABLE.calls("jax-37819", *[lambda d=d: (np.array([0, 1, -2, 100], d), d(0)) for d in (np.int32, np.int64)])
def integers_by_zero(x, y):
    """Integers are divided by zero: zero, with a warning."""
    return x // y, x % y


@TABLE.calls("jax-11990", lambda: (2, 0), lambda: (np.arange(3), np.zeros(3, int)), lambda: (np.int8(2), np.int8(0)))
def floor_divide_zero(x, y):
    """The ufunc floor_divide gets a zero as the divisor."""
    return np.floor_divide(x, y)


@TABLE.calls("jax-31698", lambda: (5, 0), lambda: (5.0, 0.0), lambda: (np.array([5.0]), 0), lambda: (0.0, 0.0))
def operator_by_zero(x, y):
    """The operator // meets a zero: an error for Python's numbers, a warning for NumPy's."""
    return x // y


@TABLE.calls(
    "jax-15626",
    lambda: (np.zeros(1, "u4"),),
    lambda: (np.arange(4, dtype="u1"),),
    lambda: (np.zeros(2, "f4"),),
)
def clipped_unsigned(x):
    """Unsigned integers are clipped at minus one: an error for unsigned dtypes."""
    return np.clip(x, -1, 1)


@TABLE.calls("jax-1933", *[lambda d=d: (np.arange(5, dtype=d),) for d in "BHIL"])
def halves(x):
    """Unsigned integers of all sizes are halved with //."""
    return x // 2, x % 3


@TABLE.calls(
    "jax-37991",
    lambda: (np.array([-1, 1], "i4"),),
    lambda: (np.array([0, 2, 0]),),
    lambda: (np.array([0.5, 0]),),
)
def bool_cumsum(x):
    """A cumulative sum is asked for in bool."""
    return np.cumsum(x, dtype=bool)


@TABLE.calls("jax-37920", *[lambda d=d: (np.array([1, 2, 100], d),) for d in "bhilBHIL"])
def cumulative_dtypes(x):
    """Cumulative sums and products of small integers are as wide as the platform's."""
    return np.cumsum(x), np.cumprod(x), np.sum(x), np.prod(x)


@TABLE.calls("jax-12728", lambda: (np.array([5], "i1"), np.array([26], "i1")), lambda: (np.array([-4]), np.array([6])))
def multiples(a, b):
    """The least common multiple of int8 overflows."""
    return np.lcm(a, b), np.gcd(a, b)


@TABLE.calls(
    "jax-17105",
    lambda: (np.array([1, -1]),),
    lambda: (np.array([3, 4]),),
    lambda: (np.arange(1, 9, dtype="i1"),),
)
def unsigned_product(x):
    """A product of signed integers is asked for in uint16."""
    return np.prod(x, dtype="uint16")


@TABLE.calls("pytorch-105264", lambda: (np.array(128, "u1"),), lambda: (np.arange(120, 140, dtype="u1"),))
def doubled_bytes(x):
    """A sum of uint8 wraps before it is cast to int16."""
    return (x + x).astype(np.int16)


@TABLE.calls("pytorch-131910", lambda: (np.array([1.6, 0.4, 200.9]),), lambda: (np.array([-1.5, 300.0, np.nan]),))
def floats_to_bytes(x):
    """Floats are cast to uint8, negative and large ones among them."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.uint8)


@TABLE.calls("pytorch-156788", lambda: (np.array([1.5, -0.3, -2.2], "f4"),), lambda: (np.array([-1.1] * 70, "f4"),))
def negative_floats_to_unsigned(x):
    """Negative float32 are cast to unsigned integers of all sizes."""
    with np.errstate(invalid="ignore"):
        return x.astype("u1"), x.astype("u2"), x.astype("u4"), x.astype("u8")


@TABLE.calls("pytorch-93829", lambda: (np.array([1, 0, 255], "u1"),), lambda: (np.arange(100, dtype="u1"),))
def negated_bytes(x):
    """A negated uint8 wraps and is an operand of a float sum."""
    return -x + 0.5, np.sqrt(-x)


@TABLE.calls("pytorch-187018", lambda: (np.array([200, 200], "u1"),), lambda: (np.arange(250, dtype="u1"),))
def absolute_bytes(x):
    """The negated absolute value of uint8 is joined to itself and summed."""
    y = -np.abs(x)
    return np.concatenate([y, y]).sum()


@TABLE.calls("pytorch-183901", lambda: (9,), lambda: (100,))
def wide_products(n):
    """An arange of int64 is multiplied by a number beyond 32 bits of result."""
    return np.arange(0, n, dtype=np.int64) * np.array([1500000000])


@TABLE.calls("pytorch-97124", lambda: (2,), lambda: (1000,))
def integers_then_floats(n):
    """int32 zeros are added, cast to float32 and scaled by a Python float."""
    a = np.zeros((1, n), np.int32)
    a = a + a
    return a.astype(np.float32) * 0.8


@TABLE.calls("pytorch-109105", *[lambda d=d: (d(6), np.array([5, 100], d), np.array([4, 120], d)) for d in SIGNED[:2]])
def distributed(c, x, y):
    """A product of int8 is distributed over a sum: both forms wrap alike."""
    return c * (x + y), c * x + c * y


@TABLE.calls("jax-1830", lambda: (np.array([1, 2], "f4"), np.float32(1.0)), lambda: (np.ones(3, "f2"), np.float16(3)))
def squared_scalar(x, sigma):
    """An array of float32 is divided by the square of a float32 scalar and stays float32."""
    return np.exp(x / sigma**2), sigma**2


@TABLE.calls("jax-732", lambda: (np.array([1, 2, 3], "f4"), 0.1), lambda: (np.arange(3, dtype="i2"), 2))
def scaled_by_argument(r, c):
    """An array of float32 is multiplied by a Python float that is an argument."""
    return r * c


@TABLE.calls("jax-6874", lambda: (np.int16(1), np.array(2, "i2")), lambda: (np.int8(100), np.array([100], "i1")))
def three_before_and_after(a, b):
    """A Python int is added to an int16 scalar and an int16 array, first or last."""
    return a + b + 3, 3 + a + b


@TABLE.calls("jax-6160", lambda: (np.complex64,), lambda: (np.float32,), lambda: (np.int8,))
def promoted_with_float(dtype):
    """promote_types of complex64 and Python's float is complex128."""
    return np.ones(2, np.promote_types(dtype, float)), np.ones(2, np.result_type(dtype, 1.0))


@pytest.mark.parametrize("number", TABLE.numbers)
def test_report(number):
    TABLE.check(number)
