"""How loops over elements are entered: each gets the arrays it works on as arguments of their own.

Enters: words of a launch, of which the first is a function's address, and those behind it are arrays'. Leaves: what the
function returns, and the floating-point flags that it has raised. Exists because LLVM takes arguments for arrays that
share no memory, but not addresses that are read, and because the flags must be cleared and read outside of a function
whose instructions LLVM may move. Made once, these are as much work as a small loop; so they are in no loop's module.
"""

from __future__ import annotations

from functools import cache

from tcompile.backends.llvm.native import launch, target

MOST = 8  # arrays that are handed over; further ones are read from the words


def _entry(arrays: int) -> str:
    lines = [f"define i32 @tc_enter_{arrays}(ptr %words, i64 %begin, i64 %end) nounwind {{"]
    given = "ptr %words"
    for number in range(arrays):
        lines.append(f"  %at{number} = getelementptr i64, ptr %words, i64 {number + 1}")
        lines.append(f"  %array{number} = load ptr, ptr %at{number}")
        given += f", ptr %array{number}"
    lines += [
        "  %function = load ptr, ptr %words", "  call void @tc_clear_flags()",
        f"  %status = call i32 %function({given})", "  %flags = call i32 @tc_read_flags()",
        "  %both = or i32 %status, %flags", "  ret i32 %both", "}",
    ]  # fmt: skip
    return "\n".join(lines)


@cache
def _code() -> target.Code:
    texts = [_entry(arrays) for arrays in range(MOST + 1)]
    names = [f"tc_enter_{arrays}" for arrays in range(MOST + 1)]
    ir = "\n".join([launch.FLAGS, *texts])
    return target.keep_forever(target.load(ir, names, launch.flags(), opt=0))


def entry(arrays: int) -> int:
    """The address of the kernel that calls words[0] with ``words`` and the arrays at words[1], words[2] and so on."""
    return _code()[f"tc_enter_{min(arrays, MOST)}"]


__all__ = ["MOST", "entry"]
