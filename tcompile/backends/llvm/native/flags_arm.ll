; FPSR keeps the exception flags of this thread: 1 invalid, 2 divide, 4 overflow, 8 underflow, 16 inexact, 128 denormal.
declare i64 @llvm.aarch64.get.fpsr()
declare void @llvm.aarch64.set.fpsr(i64)
define void @tc_clear_flags() nounwind {
  %old = call i64 @llvm.aarch64.get.fpsr()
  %new = and i64 %old, -160
  call void @llvm.aarch64.set.fpsr(i64 %new)
  ret void
}
define internal i32 @tc_status_of(i64 %all) nounwind {
  %flags = trunc i64 %all to i32
  %shifted = lshr i32 %flags, 1
  %three = and i32 %shifted, 7
  %one = and i32 %flags, 1
  %invalid = shl i32 %one, 3
  %status = or i32 %three, %invalid
  ret i32 %status
}
; What is raised, and stays so.
define i32 @tc_raised_flags() nounwind {
  %flags = call i64 @llvm.aarch64.get.fpsr()
  %status = call i32 @tc_status_of(i64 %flags)
  ret i32 %status
}
define i32 @tc_read_flags() nounwind {
  %old = call i64 @llvm.aarch64.get.fpsr()
  %new = and i64 %old, -160
  call void @llvm.aarch64.set.fpsr(i64 %new)
  %status = call i32 @tc_status_of(i64 %old)
  ret i32 %status
}
; There is no second place where they are.
define void @tc_clear_asked_flags() nounwind {
  ret void
}
define i32 @tc_read_asked_flags() nounwind {
  ret i32 0
}
