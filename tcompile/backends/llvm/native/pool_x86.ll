; What the thread pool needs of an x86 processor.
%mode = type i32

declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal void @pause() nounwind alwaysinline {
  call void @llvm.x86.sse2.pause()
  ret void
}
; The lowest six bits of MXCSR are the exception flags.
define internal %mode @get_mode() nounwind noinline {
  %at = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %all = load i32, ptr %at, align 4
  %mode = and i32 %all, -64
  ret %mode %mode
}
define internal void @set_mode(%mode %mode) nounwind noinline {
  %at = alloca i32, align 4
  store i32 %mode, ptr %at, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
