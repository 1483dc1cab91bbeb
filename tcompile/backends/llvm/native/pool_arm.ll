; What the thread pool needs of a 64-bit ARM processor.
%mode = type i64

declare void @llvm.aarch64.hint(i32)
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

; Hint 1 is `yield`.
define internal void @pause() nounwind alwaysinline {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
define internal %mode @get_mode() nounwind noinline {
  %mode = call i64 @llvm.aarch64.get.fpcr()
  ret %mode %mode
}
define internal void @set_mode(%mode %mode) nounwind noinline {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
