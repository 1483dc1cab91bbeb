"""Library functions of kernels: NumPy's arithmetic where one Triton operation is not enough, and NumPy's flags.

Input: blocks of one dtype.
Output: blocks.
Why: a GPU has no floating-point flags, so NumPy's reports follow from operands and result: ``flags_...`` give status
bits for each element (see ``backends.status``).

The file is Triton code: it is compiled into every kernel that uses it, and run by the interpreter as Python, so all of
it must be valid in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tcompile.backends.status import DIVIDE, INTEGER_OVERFLOW, INVALID, ONLY_NUMPY, OVERFLOW

if TYPE_CHECKING:  # the names are provided where these functions are compiled or run
    import triton.language as tl
    from triton.language.extra import libdevice

Block: TypeAlias = Any


# -- flags -------------------------------------------------------------------------------------------------------------


def flags_1(result: Block, a: Block, infinite: Block) -> Block:
    """Invalid for a NaN from a number; ``infinite`` for an infinity from a finite number."""
    lost = (result != result) & (a == a)
    pole = (tl.abs(result) == float("inf")) & (tl.abs(a) < float("inf"))
    return tl.where(lost, INVALID, 0) | tl.where(pole, infinite, 0)


def flags_2(result: Block, a: Block, b: Block, infinite: Block) -> Block:
    """The same for two operands."""
    lost = (result != result) & (a == a) & (b == b)
    pole = (tl.abs(result) == float("inf")) & (tl.abs(a) < float("inf")) & (tl.abs(b) < float("inf"))
    return tl.where(lost, INVALID, 0) | tl.where(pole, infinite, 0)


def flags_3(result: Block, a: Block, b: Block, c: Block, infinite: Block) -> Block:
    """The same for three operands."""
    lost = (result != result) & (a == a) & (b == b) & (c == c)
    finite = (tl.abs(a) < float("inf")) & (tl.abs(b) < float("inf")) & (tl.abs(c) < float("inf"))
    return tl.where(lost, INVALID, 0) | tl.where((tl.abs(result) == float("inf")) & finite, infinite, 0)


def flags_divide(result: Block, a: Block, b: Block) -> Block:
    """Flags of divisions, also rounded ones."""
    return flags_2(result, a, b, tl.where(b == 0, DIVIDE, OVERFLOW))


def flags_reciprocal(result: Block, a: Block) -> Block:
    """Flags of one divided by ``a``."""
    return flags_1(result, a, tl.where(a == 0, DIVIDE, OVERFLOW))


def flags_pow(result: Block, a: Block, b: Block) -> Block:
    """Flags of powers. Infinite operands are left to NumPy, since its loops differ."""
    far = (tl.abs(a) == float("inf")) | (tl.abs(b) == float("inf"))
    return flags_2(result, a, b, tl.where(a == 0, DIVIDE, OVERFLOW)) | tl.where(far, ONLY_NUMPY, 0)


def flags_nextafter(result: Block, a: Block) -> Block:
    """Flags of a step from the largest finite number."""
    beyond = (tl.abs(result) == float("inf")) & (tl.abs(a) < float("inf"))
    return tl.where(beyond, OVERFLOW, 0)


def flags_nan(a: Block, b: Block, bit: Block) -> Block:
    """A bit where an operand is a NaN."""
    return tl.where((a != a) | (b != b), bit, 0)


def flags_finite(a: Block) -> Block:
    """Leaves infinities and NaNs to NumPy."""
    return tl.where(tl.abs(a) < float("inf"), 0, ONLY_NUMPY)


def flags_regular(a: Block, least: Block) -> Block:
    """Leaves infinities, NaNs, and numbers not larger than ``least`` to NumPy."""
    return tl.where((tl.abs(a) < float("inf")) & (tl.abs(a) > least), 0, ONLY_NUMPY)


def flags_by_zero(b: Block) -> Block:
    """Flags of integer divisions by zero."""
    return tl.where(b == 0, DIVIDE, 0)


def flags_wrapped(a: Block, b: Block, least: Block) -> Block:
    """Flags of the least integer divided by -1."""
    return tl.where((a == least) & (b == -1), OVERFLOW, 0)


def flags_negative(a: Block) -> Block:
    """Flags of negative exponents of integers, which raise in NumPy, and of negative operands of Python's root."""
    return tl.where(a < 0, ONLY_NUMPY, 0)


def flags_fits(a: Block, low: Block, high: Block) -> Block:
    """Flags of floats that an integer type cannot hold: those not above ``low`` and below ``high``."""
    return tl.where((a > low) & (a < high), 0, ONLY_NUMPY)


def flags_fits_from(a: Block, low: Block, high: Block) -> Block:
    """The same where ``low`` itself is held."""
    return tl.where((a >= low) & (a < high), 0, ONLY_NUMPY)


def flags_total(result: Block, seen: Block) -> Block:
    """Flags of sums of floats; ``seen`` are the bits of ``kinds`` of all elements."""
    lost = (result != result) & (((seen & 1) == 0) | ((seen & 6) == 6))
    beyond = (tl.abs(result) == float("inf")) & ((seen & 6) == 0)
    return tl.where(lost, INVALID, 0) | tl.where(beyond, OVERFLOW, 0)


def flags_on_the_way(flags: Block) -> Block:
    """Flags of scans in NumPy's order, in which a sum that overflows stays infinite."""
    return flags | tl.where((flags & OVERFLOW) != 0, ONLY_NUMPY, 0)


def flags_all_multiplied(result: Block, seen: Block) -> Block:
    """Flags of products of floats. Beside a NaN, an infinity may have met a zero."""
    lost = (result != result) & (((seen & 1) == 0) | ((seen & 6) != 0))
    beyond = (tl.abs(result) == float("inf")) & ((seen & 6) == 0)
    return tl.where(lost, INVALID, 0) | tl.where(beyond, OVERFLOW, 0)


def kinds(a: Block) -> Block:
    """1 where there is a NaN, 2 where there is an infinity, 4 where there is a negative one."""
    return tl.where(a != a, 1, 0) | tl.where(a == float("inf"), 2, 0) | tl.where(a == float("-inf"), 4, 0)


# -- extrema, signs ---------------------------------------------------------------------------------------------------


def larger(a: Block, b: Block) -> Block:
    """NumPy's maximum of floats: NaN wins."""
    return tl.where((a > b) | (a != a), a, b)


def smaller(a: Block, b: Block) -> Block:
    """NumPy's minimum of floats."""
    return tl.where((a < b) | (a != a), a, b)


def larger_number(a: Block, b: Block) -> Block:
    """NumPy's fmax of floats: numbers win."""
    return tl.where((a > b) | (b != b), a, b)


def smaller_number(a: Block, b: Block) -> Block:
    """NumPy's fmin of floats."""
    return tl.where((a < b) | (b != b), a, b)


def sign(a: Block, zero: Block, one: Block) -> Block:
    """The sign; a NaN is its own."""
    return tl.where(a > zero, one, tl.where(a < zero, zero - one, tl.where(a == zero, zero, a)))


def heaviside(a: Block, at_zero: Block, zero: Block, one: Block) -> Block:
    """The step function; a NaN is its own."""
    step = tl.where(a < zero, zero, tl.where(a > zero, one, a))
    return tl.where(a == zero, at_zero, step)


# -- integers ---------------------------------------------------------------------------------------------------------


def quotient(a: Block, b: Block, one: Block) -> Block:
    """The integers' quotient, rounded down; zero where ``b`` is zero."""
    divisor = tl.where(b == 0, one, b)
    whole = a // divisor
    rest = a - whole * divisor
    down = (rest != 0) & ((rest < 0) != (divisor < 0))
    return tl.where(b == 0, one - one, tl.where(down, whole - one, whole))


def rest(a: Block, b: Block, one: Block) -> Block:
    """The remainder, with the sign of ``b``; zero where ``b`` is zero."""
    divisor = tl.where((b == 0) | (b == -1), one, b)
    left = a - (a // divisor) * divisor
    moved = tl.where((left != 0) & ((left < 0) != (divisor < 0)), left + divisor, left)
    return tl.where(b == 0, one - one, moved)


def rest_towards_zero(a: Block, b: Block, one: Block) -> Block:
    """The same with the sign of ``a``."""
    divisor = tl.where((b == 0) | (b == -1), one, b)
    left = a - (a // divisor) * divisor
    return tl.where(b == 0, one - one, left)


def quotient_unsigned(a: Block, b: Block, one: Block) -> Block:
    """The quotient of unsigned integers."""
    return tl.where(b == 0, one - one, a // tl.where(b == 0, one, b))


def rest_unsigned(a: Block, b: Block, one: Block) -> Block:
    """The remainder of unsigned integers."""
    divisor = tl.where(b == 0, one, b)
    return tl.where(b == 0, one - one, a - (a // divisor) * divisor)


def shifted_left(a: Block, b: Block, bits: Block, zero: Block) -> Block:
    """A left shift by any number of bits."""
    fits = (b >= 0) & (b < bits)
    return tl.where(fits, a << tl.where(fits, b, zero), zero)


def shifted_right(a: Block, b: Block, bits: Block, zero: Block) -> Block:
    """A right shift by any number of bits, keeping the sign."""
    fits = (b >= 0) & (b < bits)
    return a >> tl.where(fits, b, zero + bits - 1)


def shifted_right_unsigned(a: Block, b: Block, bits: Block, zero: Block) -> Block:
    """A right shift of unsigned integers by any number of bits."""
    fits = b < bits
    return tl.where(fits, a >> tl.where(fits, b, zero), zero)


def power(base: Block, exponent: Block, one: Block, BITS: tl.constexpr) -> Block:
    """Integer powers by squaring, wrapping around."""
    result = base * 0 + one
    square = base
    left = exponent
    for _ in range(BITS):
        result = tl.where((left & one) != 0, result * square, result)
        square = square * square
        left = left >> one
    return result


def flags_sum(a: Block, b: Block, total: Block) -> Block:
    """Flags of signed sums that wrap around."""
    return tl.where(((a ^ total) & (b ^ total)) < 0, INTEGER_OVERFLOW, 0)


def flags_python(flags: Block) -> Block:
    """Flags of arithmetic that does not wrap around in Python's ints."""
    return tl.where(flags != 0, ONLY_NUMPY, 0)


def flags_difference(a: Block, b: Block, left: Block) -> Block:
    """Flags of signed differences that wrap around."""
    return tl.where(((a ^ b) & (a ^ left)) < 0, INTEGER_OVERFLOW, 0)


def flags_less(a: Block, b: Block) -> Block:
    """Flags of unsigned differences that wrap around: ``a`` is less than ``b``."""
    return tl.where(a < b, INTEGER_OVERFLOW, 0)


def flags_product(a: Block, b: Block, product: Block, one: Block, least: Block) -> Block:
    """Flags of signed products that wrap around."""
    safe = tl.where((a == 0) | (a == -1), one, a)
    apart = (a != 0) & (a != -1) & ((product // safe != b) | (product - (product // safe) * safe != 0))
    return tl.where(apart | ((a == -1) & (b == least)), INTEGER_OVERFLOW, 0)


def flags_product_unsigned(a: Block, b: Block, product: Block, one: Block) -> Block:
    """Flags of unsigned products that wrap around."""
    safe = tl.where(a == 0, one, a)
    return tl.where((a != 0) & (product // safe != b), INTEGER_OVERFLOW, 0)


def magnitude(a: Block) -> Block:
    """|a|; the least integer is itself. CUDA assumes that the result of ``tl.abs`` is positive; the subtraction from 0
    here is opaque to the compiler.
    """
    nothing = tl.program_id(1).to(a.dtype)
    return tl.where(a < 0, nothing - a, a)


# -- shared counters
# ----------------------------------------------------------------------------------------------------
def is_last(counter: Block, programs: Block) -> Block:
    """Whether this is the last of so many programs to arrive: it sees the stores of all others."""
    tl.debug_barrier()
    return tl.atomic_add(counter, 1) == programs - 1


# -- floats -----------------------------------------------------------------------------------------------------------


def remainder(a: Block, b: Block) -> Block:
    """Python's and NumPy's remainder of floats: it has the divisor's sign."""
    left = libdevice.fmod(a, b)
    moved = tl.where((left != 0) & ((b < 0) != (left < 0)), left + b, left)
    return tl.where((b == 0) | (left != 0) | (left != left), moved, libdevice.copysign(left, b))


def floor_divide(a: Block, b: Block, plain: Block, one: Block) -> Block:
    """NumPy's floor division of floats; ``plain`` is the plain quotient, which it is where ``b`` is zero."""
    by_zero = b == 0
    divisor = tl.where(by_zero, one, b)
    dividend = tl.where(by_zero, one - one, a)
    left = libdevice.fmod(dividend, divisor)
    whole = plain_quotient(dividend - left, divisor)
    whole = tl.where((left != 0) & ((divisor < 0) != (left < 0)), whole - one, whole)
    down = tl.floor(whole)
    down = tl.where(whole - down > 0.5, down + one, down)
    result = tl.where(whole != 0, down, libdevice.copysign(one - one, plain))
    return tl.where(by_zero, plain, result)


def plain_quotient(a: Block, b: Block) -> Block:
    """The correctly rounded quotient of floats."""
    if a.dtype == tl.float32:
        return tl.div_rn(a, b)
    else:
        return a / b


def logaddexp(a: Block, b: Block, log_2: Block) -> Block:
    """The logarithm of the sum of two exponentials."""
    same = a == b
    distance = tl.abs(tl.where(same, log_2, a) - tl.where(same, log_2, b))
    apart = larger(a, b) + libdevice.log1p(libdevice.exp(distance * -1.0))
    return tl.where(same, a + log_2, apart)


def lost_in_sum(a: Block, b: Block, total: Block) -> Block:
    """The rounding error of ``total = a + b``, exactly (D. E. Knuth, TAOCP 2, 4.2.2, theorem B)."""
    of_b = total - a
    of_a = total - of_b
    return (a - of_a) + (b - of_b)


def with_error(total: Block, error: Block) -> Block:
    """A sum and its rounding errors, which mean nothing where the sum is infinite or a NaN. Zeros keep their sign."""
    return tl.where((error != error) | (error == 0), total, total + error)


# -- along an axis ----------------------------------------------------------------------------------------------------


def added(a: Block, b: Block) -> Block:
    """For ``sum_of``."""
    return a + b


def multiplied(a: Block, b: Block) -> Block:
    """For ``product_of``."""
    return a * b


def highest(a: Block, b: Block) -> Block:
    """The larger one, or NaN. For float64 GPUs have no such operation; the substitute compares zeros' signs."""
    if a.dtype == tl.float64:
        return larger(a, b)
    else:
        return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


def lowest(a: Block, b: Block) -> Block:
    """The smaller one, or NaN."""
    if a.dtype == tl.float64:
        return smaller(a, b)
    else:
        return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


def either(a: Block, b: Block) -> Block:
    """For ``bits_of``."""
    return a | b


def sum_of(a: Block) -> Block:
    """The sum of each row, as a column."""
    return tl.reduce(a, 1, added, keep_dims=True)


def added_with_errors(a: Block, error: Block, b: Block, other: Block) -> tuple[Block, Block]:
    """For ``sums_of``."""
    total = a + b
    return total, error + other + lost_in_sum(a, b, total)


def sums_of(a: Block, error: Block) -> tuple[Block, Block]:
    """The sum of each row, and its rounding errors, to which those of the elements are added, as columns."""
    total, errors = tl.reduce((a, error), 1, added_with_errors, keep_dims=True)
    return total, errors


def product_of(a: Block) -> Block:
    """The product of each row, as a column."""
    return tl.reduce(a, 1, multiplied, keep_dims=True)


def max_of(a: Block) -> Block:
    """The largest number of each row, as a column; NaN where there is one."""
    return tl.reduce(a, 1, highest, keep_dims=True)


def min_of(a: Block) -> Block:
    """The smallest number of each row, as a column; NaN where there is one."""
    return tl.reduce(a, 1, lowest, keep_dims=True)


def bits_of(a: Block) -> Block:
    """The bits that are set in any element of each row, as a column."""
    return tl.reduce(a, 1, either, keep_dims=True)


def sums_along(a: Block) -> Block:
    """The sum of the elements of a row up to each of them."""
    return tl.associative_scan(a, 1, added)


def products_along(a: Block) -> Block:
    """The product of the elements of a row up to each of them."""
    return tl.associative_scan(a, 1, multiplied)


def bits_along(a: Block) -> Block:
    """The bits that are set in any element of a row up to each of them."""
    return tl.associative_scan(a, 1, either)


def last_of(a: Block, zero: Block, COLUMNS: tl.constexpr) -> Block:
    """The last element of each row, as a column."""
    at = tl.arange(0, COLUMNS)[None, :]
    return sum_of(tl.where(at == COLUMNS - 1, a, zero))


def moments_of(inside: Block, a: Block) -> tuple[Block, Block, Block]:
    """Per row, as columns: the number of elements ``inside``, their mean, and the sum of squared deviations. The mean
    cannot overflow.
    """
    count = sum_of(inside.to(tl.int32)).to(tl.float64)
    mean = sum_of(tl.where(inside, a, 0.0) * (1.0 / tl.maximum(count, 1.0)))
    apart = tl.where(inside, a - mean, 0.0)
    return count, mean, sum_of(apart * apart)


def moments_of_all(count: Block, mean: Block, squares: Block) -> tuple[Block, Block, Block]:
    """Merges all sets of elements in a row, given their moments."""
    elements = sum_of(count)
    middle = sum_of(mean * (count * (1.0 / tl.maximum(elements, 1.0))))
    apart = mean - middle
    return elements, middle, sum_of(squares + apart * (apart * count))


def moments_together(
    count: Block, mean: Block, squares: Block, more: Block, other: Block, others: Block
) -> tuple[Block, Block, Block]:
    """Merges the moments of two sets of elements; the first has ``count``, the second ``more`` of them.

    T. F. Chan, G. H. Golub, R. J. LeVeque, The American Statistician 37, 1983, page 242.
    """
    elements = count + more
    share = more * (1.0 / tl.maximum(elements, 1.0))
    apart = other - mean
    return elements, mean + apart * share, squares + others + apart * (apart * (count * share))


def all_bits(a: Block) -> Block:
    """The bits that are set in any element."""
    return tl.reduce(a, None, either)
