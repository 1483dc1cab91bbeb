; MXCSR keeps the exception flags of this thread: 1 invalid, 4 divide, 8 overflow, 16 underflow.
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define void @tc_clear_flags() nounwind {
  %at = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %old = load volatile i32, ptr %at, align 4
  %new = and i32 %old, -64
  store volatile i32 %new, ptr %at, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
define i32 @tc_read_flags() nounwind {
  %at = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %old = load volatile i32, ptr %at, align 4
  %new = and i32 %old, -64
  store volatile i32 %new, ptr %at, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  %shifted = lshr i32 %old, 2
  %three = and i32 %shifted, 7
  %one = and i32 %old, 1
  %invalid = shl i32 %one, 3
  %status = or i32 %three, %invalid
  ret i32 %status
}
