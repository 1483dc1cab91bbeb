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
define internal i32 @tc_status_of(i32 %flags) nounwind {
  %shifted = lshr i32 %flags, 2
  %three = and i32 %shifted, 7
  %one = and i32 %flags, 1
  %invalid = shl i32 %one, 3
  %status = or i32 %three, %invalid
  ret i32 %status
}
; What is raised, and stays so.
define i32 @tc_raised_flags() nounwind {
  %at = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %flags = load volatile i32, ptr %at, align 4
  %status = call i32 @tc_status_of(i32 %flags)
  ret i32 %status
}
; Overflow and underflow that C code asks for, instead of coming to them, glibc raises in the x87 unit: NumPy's
; conversions to half precision do. The bits are those of MXCSR.
define void @tc_clear_asked_flags() nounwind {
  call void asm sideeffect "fnclex", "~{fpsr},~{dirflag},~{flags}"()
  ret void
}
define i32 @tc_read_asked_flags() nounwind {
  %word = call i16 asm sideeffect "fnstsw %ax", "={ax},~{fpsr},~{dirflag},~{flags}"()
  call void @tc_clear_asked_flags()
  %flags = zext i16 %word to i32
  %status = call i32 @tc_status_of(i32 %flags)
  ret i32 %status
}
