; In place of the pool, where a system has none: the caller does all the work.

define i32 @tc_parallel(ptr %kernel, ptr %words, i64 %items, i64 %grain) nounwind {
  %n = call i64 @count_grains(i64 %items, i64 %grain)
  %s = call i32 @run_grains(ptr %kernel, ptr %words, i64 %items, i64 %grain, i64 0, i64 %n)
  ret i32 %s
}
define void @tc_set_workers(i32 %n) nounwind { ret void }
define void @tc_reset_threads() nounwind { ret void }
