declare i32 @feclearexcept(i32) nounwind
declare i32 @fetestexcept(i32) nounwind
define void @tc_clear_flags() nounwind {
  %e = call i32 @feclearexcept(i32 31)
  ret void
}
define i32 @tc_read_flags() nounwind {
  %raised = call i32 @fetestexcept(i32 15)
  %e = call i32 @feclearexcept(i32 31)
  %shifted = lshr i32 %raised, 1
  %one = and i32 %raised, 1
  %invalid = shl i32 %one, 3
  %status = or i32 %shifted, %invalid
  ret i32 %status
}
; There is no second place where they are.
define void @tc_clear_asked_flags() nounwind {
  ret void
}
define i32 @tc_read_asked_flags() nounwind {
  ret i32 0
}
