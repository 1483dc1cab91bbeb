; Time on Windows.

declare i32 @QueryPerformanceCounter(ptr)
declare i32 @QueryPerformanceFrequency(ptr)
declare void @Sleep(i32)

; i64 tc_now(): nanoseconds. Whole seconds apart from the rest: their product with 10^9 would not fit.
define i64 @tc_now() nounwind {
  %ticks.at = alloca i64
  %rate.at = alloca i64
  %t = call i32 @QueryPerformanceCounter(ptr %ticks.at)
  %r = call i32 @QueryPerformanceFrequency(ptr %rate.at)
  %ticks = load i64, ptr %ticks.at
  %rate = load i64, ptr %rate.at
  %seconds = udiv i64 %ticks, %rate
  %rest = urem i64 %ticks, %rate
  %whole = mul i64 %seconds, 1000000000
  %part = mul i64 %rest, 1000000000
  %nano = udiv i64 %part, %rate
  %now = add i64 %whole, %nano
  ret i64 %now
}

; A thread that has waited for the GIL for longer than the switch interval gets it in any case: who gives it up waits for
; that. A longer sleep lasts until the next tick of the clock, up to 16 milliseconds.
define internal void @let_others() nounwind {
  call void @Sleep(i32 0)
  ret void
}
