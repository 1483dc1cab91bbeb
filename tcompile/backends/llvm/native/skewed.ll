; Runs skewed kernels over the same arrays, some slabs apart: see ../loop_program/skewing.py. encoding.py writes the
; table at %t: how many kernels, slabs in a block, zones, the most slabs that a kernel has, and when the
; last slab is done; then for each kernel its code, how many words after the table its words are, its items, how many
; make a slab, its first slab and the one after its last, and how many slabs before and after the border of two zones
; wait for both.

; Those of the slabs [low, high) that a kernel has.
define internal i32 @slabs(ptr %row, ptr %t, i64 %lower, i64 %higher) nounwind {
entry:
  %first = call i64 @at(ptr %row, i64 4)
  %last = call i64 @at(ptr %row, i64 5)
  %low = call i64 @llvm.smax.i64(i64 %lower, i64 %first)
  %high = call i64 @llvm.smin.i64(i64 %higher, i64 %last)
  %some = icmp slt i64 %low, %high
  br i1 %some, label %run, label %none
run:
  %code.word = call i64 @at(ptr %row, i64 0)
  %code = inttoptr i64 %code.word to ptr
  %place = call i64 @at(ptr %row, i64 1)
  %words = getelementptr i64, ptr %t, i64 %place
  %items = call i64 @at(ptr %row, i64 2)
  %slab = call i64 @at(ptr %row, i64 3)
  %from = sub i64 %low, %first
  %to = sub i64 %high, %first
  %begin = mul i64 %from, %slab
  %whole = mul i64 %to, %slab
  %end = call i64 @llvm.smin.i64(i64 %whole, i64 %items)
  %status = call i32 %code(ptr %words, i64 %begin, i64 %end)
  ret i32 %status
none:
  ret i32 0
}

; Where zone %z begins.
define internal i64 @border(ptr %t, i64 %z) alwaysinline nounwind {
  %zones = call i64 @at(ptr %t, i64 2)
  %most = call i64 @at(ptr %t, i64 3)
  %product = mul i64 %z, %most
  %slab = sdiv i64 %product, %zones
  ret i64 %slab
}

; One zone: block after block, all kernels each. A kernel's slab is done at the time of its number plus its %before.
define internal i32 @zone(ptr %t, i64 %z, i64 %z.end) nounwind {
entry:
  %kernels = call i64 @at(ptr %t, i64 0)
  %block = call i64 @at(ptr %t, i64 1)
  %zones = call i64 @at(ptr %t, i64 2)
  %start = call i64 @border(ptr %t, i64 %z)
  %z.next = add i64 %z, 1
  %border = call i64 @border(ptr %t, i64 %z.next)
  %first = icmp eq i64 %z, 0
  %last = icmp eq i64 %z.next, %zones
  %end = call i64 @at(ptr %t, i64 4)
  %stop = select i1 %last, i64 %end, i64 %border
  br label %blocks
blocks:
  %time = phi i64 [ %start, %entry ], [ %time.next, %next ]
  %status = phi i32 [ 0, %entry ], [ %status.k, %next ]
  %more = icmp slt i64 %time, %stop
  br i1 %more, label %kernel, label %done
kernel:
  %k = phi i64 [ 0, %blocks ], [ %k.next, %run ]
  %status.k = phi i32 [ %status, %blocks ], [ %status.next, %run ]
  %k.more = icmp slt i64 %k, %kernels
  br i1 %k.more, label %run, label %next
run:
  %eight = shl i64 %k, 3
  %place = add i64 %eight, 5
  %row = getelementptr i64, ptr %t, i64 %place
  %before = call i64 @at(ptr %row, i64 6)
  %after = call i64 @at(ptr %row, i64 7)
  %low = sub i64 %time, %before
  %high = add i64 %low, %block
  %inside = add i64 %start, %after
  %least = select i1 %first, i64 %low, i64 %inside
  %from = call i64 @llvm.smax.i64(i64 %low, i64 %least)
  %outside = sub i64 %border, %before
  %most = select i1 %last, i64 %high, i64 %outside
  %to = call i64 @llvm.smin.i64(i64 %high, i64 %most)
  %s = call i32 @slabs(ptr %row, ptr %t, i64 %from, i64 %to)
  %status.next = or i32 %status.k, %s
  %k.next = add i64 %k, 1
  br label %kernel
next:
  %time.next = add i64 %time, %block
  br label %blocks
done:
  ret i32 %status
}

; What zone %z and the next one have left for when both are done.
define internal i32 @seam(ptr %t, i64 %z, i64 %z.end) nounwind {
entry:
  %kernels = call i64 @at(ptr %t, i64 0)
  %z.next = add i64 %z, 1
  %border = call i64 @border(ptr %t, i64 %z.next)
  br label %kernel
kernel:
  %k = phi i64 [ 0, %entry ], [ %k.next, %run ]
  %status = phi i32 [ 0, %entry ], [ %status.next, %run ]
  %more = icmp slt i64 %k, %kernels
  br i1 %more, label %run, label %done
run:
  %eight = shl i64 %k, 3
  %place = add i64 %eight, 5
  %row = getelementptr i64, ptr %t, i64 %place
  %before = call i64 @at(ptr %row, i64 6)
  %after = call i64 @at(ptr %row, i64 7)
  %low = sub i64 %border, %before
  %high = add i64 %border, %after
  %s = call i32 @slabs(ptr %row, ptr %t, i64 %low, i64 %high)
  %status.next = or i32 %status, %s
  %k.next = add i64 %k, 1
  br label %kernel
done:
  ret i32 %status
}

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)

; All of it; returns the OR of all statuses.
define internal i32 @skewed(ptr %t) nounwind {
entry:
  %zones = call i64 @at(ptr %t, i64 2)
  %status = call i32 @tc_parallel(ptr @zone, ptr %t, i64 %zones, i64 1)
  %seams = sub i64 %zones, 1
  %any = icmp sgt i64 %seams, 0
  br i1 %any, label %rest, label %done
rest:
  %status.rest = call i32 @tc_parallel(ptr @seam, ptr %t, i64 %seams, i64 1)
  br label %done
done:
  %status.seams = phi i32 [ 0, %entry ], [ %status.rest, %rest ]
  %status.all = or i32 %status, %status.seams
  ret i32 %status.all
}
