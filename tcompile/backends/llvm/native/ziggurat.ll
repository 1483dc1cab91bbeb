; Draws from NumPy's ziggurats, taken apart: see ziggurat.py. A bitgen_t is a state, and functions of it that give the
; next 64 bits, 32 bits, float in [0, 1), and 64 bits again.

; The state of one that gives `held` first and goes on as `real` does.
%held = type { i64, i64, ptr }

define internal i64 @held_bits(ptr %state) nounwind {
  %at = getelementptr %held, ptr %state, i64 0, i32 1
  %first = load i64, ptr %at
  %is_first = icmp ne i64 %first, 0
  br i1 %is_first, label %give, label %go_on
give:
  store i64 0, ptr %at
  %bits = load i64, ptr %state
  ret i64 %bits
go_on:
  %real = call ptr @real_of(ptr %state)
  %function_at = getelementptr ptr, ptr %real, i64 1
  %function = load ptr, ptr %function_at
  %its_state = load ptr, ptr %real
  %next = call i64 %function(ptr %its_state)
  ret i64 %next
}
define internal i32 @held_half(ptr %state) nounwind {
  %real = call ptr @real_of(ptr %state)
  %function_at = getelementptr ptr, ptr %real, i64 2
  %function = load ptr, ptr %function_at
  %its_state = load ptr, ptr %real
  %next = call i32 %function(ptr %its_state)
  ret i32 %next
}
define internal double @held_float(ptr %state) nounwind {
  %real = call ptr @real_of(ptr %state)
  %function_at = getelementptr ptr, ptr %real, i64 3
  %function = load ptr, ptr %function_at
  %its_state = load ptr, ptr %real
  %next = call double %function(ptr %its_state)
  ret double %next
}
define internal ptr @real_of(ptr %state) nounwind {
  %at = getelementptr %held, ptr %state, i64 0, i32 2
  %real = load ptr, ptr %at
  ret ptr %real
}

define internal void @make(ptr %bitgen, ptr %state, ptr %bits, ptr %half, ptr %float) nounwind {
  store ptr %state, ptr %bitgen
  %one = getelementptr ptr, ptr %bitgen, i64 1
  store ptr %bits, ptr %one
  %two = getelementptr ptr, ptr %bitgen, i64 2
  store ptr %half, ptr %two
  %three = getelementptr ptr, ptr %bitgen, i64 3
  store ptr %float, ptr %three
  %four = getelementptr ptr, ptr %bitgen, i64 4
  store ptr %bits, ptr %four
  ret void
}

; double tc_redraw(double (*function)(bitgen_t *), bitgen_t *real, i64 held): what is drawn where `held` is drawn first.
define double @tc_redraw(ptr %function, ptr %real, i64 %held) nounwind {
  %state = alloca %held
  %bitgen = alloca [5 x ptr]
  store i64 %held, ptr %state
  %first = getelementptr %held, ptr %state, i64 0, i32 1
  store i64 1, ptr %first
  %real_at = getelementptr %held, ptr %state, i64 0, i32 2
  store ptr %real, ptr %real_at
  call void @make(ptr %bitgen, ptr %state, ptr @held_bits, ptr @held_half, ptr @held_float)
  %drawn = call double %function(ptr %bitgen)
  ret double %drawn
}

; The state of one that gives `held` first, then nothing but zeros and halves, and counts.
define internal i64 @counted_bits(ptr %state) nounwind {
  %count = call i64 @count(ptr %state)
  %is_first = icmp eq i64 %count, 1
  %held = load i64, ptr %state
  %bits = select i1 %is_first, i64 %held, i64 0
  ret i64 %bits
}
define internal i32 @counted_half(ptr %state) nounwind {
  %count = call i64 @count(ptr %state)
  ret i32 0
}
define internal double @counted_float(ptr %state) nounwind {
  %count = call i64 @count(ptr %state)
  ret double 0.5
}
define internal i64 @count(ptr %state) nounwind {
  %at = getelementptr %held, ptr %state, i64 0, i32 1
  %before = load i64, ptr %at
  %count = add i64 %before, 1
  store i64 %count, ptr %at
  ret i64 %count
}

; What is drawn where `held` is drawn first; `drawn` is set to it. Says whether nothing else was asked for.
define internal i1 @try(ptr %function, i64 %held, ptr %drawn) nounwind {
  %state = alloca %held
  %bitgen = alloca [5 x ptr]
  store i64 %held, ptr %state
  %count_at = getelementptr %held, ptr %state, i64 0, i32 1
  store i64 0, ptr %count_at
  call void @make(ptr %bitgen, ptr %state, ptr @counted_bits, ptr @counted_half, ptr @counted_float)
  %found = call double %function(ptr %bitgen)
  store double %found, ptr %drawn
  %count = load i64, ptr %count_at
  %at_once = icmp eq i64 %count, 1
  ret i1 %at_once
}

; void tc_probe(double (*function)(bitgen_t *), i64 layer, i64 value, i64 bits, {i64, double} *table): for each of 256
; layers, whose number stands at the bit `layer`, below which of the numbers of so many `bits` at the bit `value` it
; gives at once the number times the layer's step; and the step.
define void @tc_probe(ptr %function, i64 %layer, i64 %value, i64 %bits, ptr %table) nounwind {
entry:
  %drawn = alloca double
  %end = shl i64 1, %bits
  br label %next
next:
  %number = phi i64 [ 0, %entry ], [ %more, %found ]
  %name = shl i64 %number, %layer
  br label %search
search:
  %low = phi i64 [ 0, %next ], [ %new_low, %search ]
  %high = phi i64 [ %end, %next ], [ %new_high, %search ]
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %shifted = shl i64 %middle, %value
  %held = or i64 %shifted, %name
  %is_below = call i1 @try(ptr %function, i64 %held, ptr %drawn)
  %above = add i64 %middle, 1
  %new_low = select i1 %is_below, i64 %above, i64 %low
  %new_high = select i1 %is_below, i64 %high, i64 %middle
  %goes_on = icmp ult i64 %new_low, %new_high
  br i1 %goes_on, label %search, label %found
found:
  %one = shl i64 1, %value
  %second = or i64 %one, %name
  %ignored = call i1 @try(ptr %function, i64 %second, ptr %drawn)
  %step = load double, ptr %drawn
  %row = getelementptr { i64, double }, ptr %table, i64 %number
  store i64 %new_low, ptr %row
  %step_at = getelementptr { i64, double }, ptr %table, i64 %number, i32 1
  store double %step, ptr %step_at
  %more = add i64 %number, 1
  %is_more = icmp ult i64 %more, 256
  br i1 %is_more, label %next, label %done
done:
  ret void
}

; i64 tc_try(function, held, double *drawn)
define i64 @tc_try(ptr %function, i64 %held, ptr %drawn) nounwind {
  %at_once = call i1 @try(ptr %function, i64 %held, ptr %drawn)
  %found = zext i1 %at_once to i64
  ret i64 %found
}
