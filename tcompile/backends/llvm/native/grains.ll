; What every system has. A chunk of the pool may be several grains, so that the number of chunks fits the ticket's
; 24 bits; a kernel call always covers one grain.

; Calls the kernel for the grains [first, last), one call each. Returns the OR of the statuses.
define internal i32 @run_grains(ptr %kernel, ptr %words, i64 %items, i64 %grain, i64 %first, i64 %last) nounwind {
entry:
  %any = icmp slt i64 %first, %last
  br i1 %any, label %loop, label %none
loop:
  %k = phi i64 [ %first, %entry ], [ %k.next, %loop ]
  %status = phi i32 [ 0, %entry ], [ %status.next, %loop ]
  %begin = mul i64 %k, %grain
  %room = sub i64 %items, %begin
  %short = icmp slt i64 %room, %grain
  %length = select i1 %short, i64 %room, i64 %grain
  %end = add i64 %begin, %length
  %s = call i32 %kernel(ptr %words, i64 %begin, i64 %end)
  %status.next = or i32 %status, %s
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %last
  br i1 %more, label %loop, label %done
done:
  ret i32 %status.next
none:
  ret i32 0
}

; Number of grains that cover the items.
define internal i64 @count_grains(i64 %items, i64 %grain) nounwind {
  %less = sub i64 %items, 1
  %whole = sdiv i64 %less, %grain
  %n = add i64 %whole, 1
  ret i64 %n
}
