declare i32 @feclearexcept(i32) nounwind
declare i32 @fetestexcept(i32) nounwind
define void @tc_clear_flags() nounwind {
  %e = call i32 @feclearexcept(i32 31)
  ret void
}
; What is raised, and stays so.
define i32 @tc_raised_flags() nounwind {
  %raised = call i32 @fetestexcept(i32 15)
  %shifted = lshr i32 %raised, 1
  %one = and i32 %raised, 1
  %invalid = shl i32 %one, 3
  %status = or i32 %shifted, %invalid
  ret i32 %status
}
define i32 @tc_read_flags() nounwind {
  %status = call i32 @tc_raised_flags()
  %e = call i32 @feclearexcept(i32 31)
  ret i32 %status
}
; There is no second place where they are.
define void @tc_clear_asked_flags() nounwind {
  ret void
}
define i32 @tc_read_asked_flags() nounwind {
  ret i32 0
}
