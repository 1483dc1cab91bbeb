; Time by POSIX. $MONOTONIC is the number of the clock that never goes back.

declare i32 @usleep(i32)
declare i32 @clock_gettime(i32, ptr)

; i64 tc_now(): nanoseconds.
define i64 @tc_now() nounwind {
  %at = alloca [2 x i64]
  %failed = call i32 @clock_gettime(i32 $MONOTONIC, ptr %at)
  %nano.at = getelementptr i64, ptr %at, i64 1
  %seconds = load i64, ptr %at
  %nano = load i64, ptr %nano.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nano
  ret i64 %now
}

; Between releasing the GIL and taking it again: waiting threads wake up meanwhile, else this one would always be first.
define internal void @let_others() nounwind {
  %slept = call i32 @usleep(i32 50)
  ret void
}
