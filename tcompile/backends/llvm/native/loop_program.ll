; Runs iterations of a loop without Python: see ../loop_program/encoding.py, which writes the program at %p.

declare i32 @tc_parallel(ptr, ptr, i64, i64) nounwind
declare i32 @tc_due(ptr) nounwind
declare i64 @tc_now() nounwind
declare ptr @PyEval_SaveThread() nounwind
declare void @PyEval_RestoreThread(ptr) nounwind
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal i64 @at(ptr %p, i64 %place) alwaysinline nounwind {
  %where = getelementptr i64, ptr %p, i64 %place
  %word = load i64, ptr %where
  ret i64 %word
}

; A kernel that copies elements: words are where to and from where, and the bytes of one.
define i32 @tc_copy(ptr %words, i64 %begin, i64 %end) nounwind {
  %to.word = call i64 @at(ptr %words, i64 0)
  %from.word = call i64 @at(ptr %words, i64 1)
  %size = call i64 @at(ptr %words, i64 2)
  %to = inttoptr i64 %to.word to ptr
  %from = inttoptr i64 %from.word to ptr
  %first = mul i64 %begin, %size
  %beyond = mul i64 %end, %size
  %bytes = sub i64 %beyond, %first
  %to.first = getelementptr i8, ptr %to, i64 %first
  %from.first = getelementptr i8, ptr %from, i64 %first
  call void @llvm.memcpy.p0.p0.i64(ptr %to.first, ptr %from.first, i64 %bytes, i1 false)
  ret i32 0
}

; A kernel that begins a loop anew: words are its program, its slots, how many iterations there are, the program as it was
; written, how many words that has, and how many slots get an address; then pairs of a slot and an address.
define i32 @tc_begin(ptr %words, i64 %begin, i64 %end) nounwind {
entry:
  %p.word = call i64 @at(ptr %words, i64 0)
  %slots.word = call i64 @at(ptr %words, i64 1)
  %first.word = call i64 @at(ptr %words, i64 3)
  %length = call i64 @at(ptr %words, i64 4)
  %count = call i64 @at(ptr %words, i64 5)
  %p = inttoptr i64 %p.word to ptr
  %slots = inttoptr i64 %slots.word to ptr
  %first = inttoptr i64 %first.word to ptr
  %bytes = shl i64 %length, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %first, i64 %bytes, i1 false)
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %put ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %put, label %done
put:
  %two = shl i64 %i, 1
  %n.at = add i64 %two, 6
  %a.at = add i64 %two, 7
  %slot = call i64 @at(ptr %words, i64 %n.at)
  %address = call i64 @at(ptr %words, i64 %a.at)
  %where = getelementptr i64, ptr %slots, i64 %slot
  store i64 %address, ptr %where
  %i.next = add i64 %i, 1
  br label %next
; Resets the clock: the stretch of an earlier run, with quicker iterations, says nothing of this one.
done:
  %clock.word = call i64 @at(ptr %p, i64 10)
  %clock = inttoptr i64 %clock.word to ptr
  store i64 1, ptr %clock
  %stretch.at = getelementptr i64, ptr %clock, i64 1
  store i64 1, ptr %stretch.at
  %status = call i32 @tc_loop(ptr %words, i64 0, i64 1)
  ret i32 %status
}

; A kernel that runs the iterations of a loop: words are its program, its slots, and how many iterations there are. It is called
; with the GIL, and lets go of it.
define i32 @tc_loop(ptr %words, i64 %begin, i64 %end) nounwind {
  %p.word = call i64 @at(ptr %words, i64 0)
  %slots.word = call i64 @at(ptr %words, i64 1)
  %iterations = call i64 @at(ptr %words, i64 2)
  %p = inttoptr i64 %p.word to ptr
  %slots = inttoptr i64 %slots.word to ptr
  %clock.word = call i64 @at(ptr %p, i64 10)
  %clock = inttoptr i64 %clock.word to ptr
  %last.at = getelementptr i64, ptr %clock, i64 2
  %now = call i64 @tc_now()
  store i64 %now, ptr %last.at
  %seen.at = getelementptr i64, ptr %clock, i64 3
  store i64 0, ptr %seen.at
  %polled.at = getelementptr i64, ptr %clock, i64 4
  store i64 0, ptr %polled.at
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 @tc_iterations(ptr %p, ptr %slots, i64 %iterations, i32 -1)
  call void @PyEval_RestoreThread(ptr %thread)
  ret i32 %status
}

; i32 tc_iterations(i64 *p, i64 *slots, i64 iterations, i32 until): the OR of all kernels' statuses. p[8] becomes the number of
; iterations that were done, p[9] the way by which the loop was left (0: all are done). Some milliseconds after a status has
; one of the bits of until, the loop pauses: fewer iterations are done. The outermost loop, whose until is not 0, also pauses
; after each poll, so that its state can be kept.
define internal i32 @tc_iterations(ptr %p, ptr %slots, i64 %iterations, i32 %until) nounwind {
entry:
  %n.steps = call i64 @at(ptr %p, i64 0)
  %o.steps = call i64 @at(ptr %p, i64 1)
  %n.addresses = call i64 @at(ptr %p, i64 2)
  %o.addresses = call i64 @at(ptr %p, i64 3)
  %n.growing = call i64 @at(ptr %p, i64 4)
  %o.growing = call i64 @at(ptr %p, i64 5)
  %n.swaps = call i64 @at(ptr %p, i64 6)
  %o.swaps = call i64 @at(ptr %p, i64 7)
  %clock.word = call i64 @at(ptr %p, i64 10)
  %clock = inttoptr i64 %clock.word to ptr
  %n.several = call i64 @at(ptr %p, i64 11)
  %o.several = call i64 @at(ptr %p, i64 12)
  br label %iteration
iteration:
  %r = phi i64 [ 0, %entry ], [ %r.next, %count ], [ %r.next, %look ]
  %status = phi i32 [ 0, %entry ], [ %status.end, %count ], [ %status.end, %look ]
  %more = icmp slt i64 %r, %iterations
  br i1 %more, label %addresses, label %done

; the addresses of swapped buffers
addresses:
  %a = phi i64 [ 0, %iteration ], [ %a.next, %address ]
  %a.more = icmp slt i64 %a, %n.addresses
  br i1 %a.more, label %address, label %ask
address:
  %a.two = shl i64 %a, 1
  %a.at = add i64 %o.addresses, %a.two
  %a.at1 = add i64 %a.at, 1
  %a.place = call i64 @at(ptr %p, i64 %a.at)
  %a.slot = call i64 @at(ptr %p, i64 %a.at1)
  %a.word = call i64 @at(ptr %slots, i64 %a.slot)
  %a.where = getelementptr i64, ptr %p, i64 %a.place
  store i64 %a.word, ptr %a.where
  %a.next = add i64 %a, 1
  br label %addresses

; some iterations at once, where so many are left: an even number, after which no arrays have changed places
ask:
  %some = icmp sgt i64 %o.several, 0
  %some.left = sub i64 %iterations, %r
  %enough = icmp sge i64 %some.left, %n.several
  %at.once = and i1 %some, %enough
  br i1 %at.once, label %several, label %steps
several:
  %several.t = getelementptr i64, ptr %p, i64 %o.several
  %status.of.them = call i32 @skewed(ptr %several.t)
  %status.several = or i32 %status, %status.of.them
  %several.last = and i32 %status.several, $LAST
  %several.stop = icmp ne i32 %several.last, 0
  br i1 %several.stop, label %stopped, label %growing

; kernels and copies
steps:
  %s = phi i64 [ 0, %ask ], [ %s.next, %step.end ]
  %status.steps = phi i32 [ %status, %ask ], [ %status.next, %step.end ]
  %s.more = icmp slt i64 %s, %n.steps
  br i1 %s.more, label %step, label %growing
step:
  %s.five = mul i64 %s, 5
  %s.at = add i64 %o.steps, %s.five
  %s.at1 = add i64 %s.at, 1
  %s.at2 = add i64 %s.at, 2
  %s.at3 = add i64 %s.at, 3
  %s.at4 = add i64 %s.at, 4
  %s.kind = call i64 @at(ptr %p, i64 %s.at)
  %s.a = call i64 @at(ptr %p, i64 %s.at1)
  %s.b = call i64 @at(ptr %p, i64 %s.at2)
  %s.c = call i64 @at(ptr %p, i64 %s.at3)
  %s.d = call i64 @at(ptr %p, i64 %s.at4)
  switch i64 %s.kind, label %kernel [
    i64 1, label %copy
    i64 2, label %bind
    i64 3, label %move
    i64 4, label %inner
    i64 5, label %leave
    i64 6, label %unless
    i64 7, label %growing
    i64 8, label %pick
    i64 9, label %tell
    i64 10, label %least
    i64 11, label %together
  ]
kernel:
  %k.code = inttoptr i64 %s.a to ptr
  %k.words = getelementptr i64, ptr %p, i64 %s.b
  %k.one = icmp sle i64 %s.c, %s.d
  br i1 %k.one, label %one, label %many
one:
  %status.one = call i32 %k.code(ptr %k.words, i64 0, i64 %s.c)
  br label %step.end
together:
  %together.t = getelementptr i64, ptr %p, i64 %s.a
  %status.together = call i32 @skewed(ptr %together.t)
  br label %step.end
many:
  %status.many = call i32 @tc_parallel(ptr %k.code, ptr %k.words, i64 %s.c, i64 %s.d)
  br label %step.end
copy:
  %c.to.at = inttoptr i64 %s.a to ptr
  %c.from.at = inttoptr i64 %s.b to ptr
  %c.to.p = load ptr, ptr %c.to.at
  %c.from.p = load ptr, ptr %c.from.at
  call void @llvm.memcpy.p0.p0.i64(ptr %c.to.p, ptr %c.from.p, i64 %s.c, i1 false)
  br label %step.end
; a loop inside: what it reads, its first numbers, and itself
bind:
  %b.to = inttoptr i64 %s.a to ptr
  %b.address = call i64 @at(ptr %slots, i64 %s.b)
  store i64 %b.address, ptr %b.to
  br label %step.end
move:
  %m.to = inttoptr i64 %s.a to ptr
  %m.word = call i64 @at(ptr %p, i64 %s.b)
  store i64 %m.word, ptr %m.to
  br label %step.end
inner:
  %i.p = inttoptr i64 %s.a to ptr
  %i.slots = inttoptr i64 %s.b to ptr
  %status.inner = call i32 @tc_iterations(ptr %i.p, ptr %i.slots, i64 %s.c, i32 0)
  br label %step.end
; what a loop inside has made, which is in one place or another, by the way in which it was left; its numbers; and
; whether it was left as the graph can follow
pick:
  %w.to.at = inttoptr i64 %s.a to ptr
  %w.table = inttoptr i64 %s.b to ptr
  %w.way.at = inttoptr i64 %s.d to ptr
  %w.way = load i64, ptr %w.way.at
  %w.at = getelementptr ptr, ptr %w.table, i64 %w.way
  %w.from.at = load ptr, ptr %w.at
  %w.to.p = load ptr, ptr %w.to.at
  %w.from.p = load ptr, ptr %w.from.at
  call void @llvm.memcpy.p0.p0.i64(ptr %w.to.p, ptr %w.from.p, i64 %s.c, i1 false)
  br label %step.end
tell:
  %t.to.at = inttoptr i64 %s.a to ptr
  %t.from = inttoptr i64 %s.b to ptr
  %t.to = load ptr, ptr %t.to.at
  %t.word = load i64, ptr %t.from
  store i64 %t.word, ptr %t.to
  br label %step.end
least:
  %f.p = inttoptr i64 %s.a to ptr
  %f.table = inttoptr i64 %s.b to ptr
  %f.done = call i64 @at(ptr %f.p, i64 8)
  %f.way = call i64 @at(ptr %f.p, i64 9)
  %f.fewest = call i64 @at(ptr %f.table, i64 %f.way)
  %f.less = icmp slt i64 %f.done, %f.fewest
  %status.least = select i1 %f.less, i32 $ONLY_NUMPY, i32 0
  br label %step.end
; a flag that ends the loop, or without which some steps are passed over
leave:
  %l.at = inttoptr i64 %s.a to ptr
  %l.flag.at = load ptr, ptr %l.at
  %l.flag = load i8, ptr %l.flag.at
  %l.set = icmp ne i8 %l.flag, 0
  br i1 %l.set, label %left, label %step.end
unless:
  %u.at = inttoptr i64 %s.a to ptr
  %u.flag.at = load ptr, ptr %u.at
  %u.flag = load i8, ptr %u.flag.at
  %u.set = icmp ne i8 %u.flag, 0
  %u.skip = select i1 %u.set, i64 0, i64 %s.b
  br label %step.end
step.end:
  %skip = phi i64 [ 0, %one ], [ 0, %many ], [ 0, %copy ], [ 0, %bind ], [ 0, %move ], [ 0, %inner ], [ 0, %leave ],
                  [ %u.skip, %unless ], [ 0, %pick ], [ 0, %tell ], [ 0, %least ], [ 0, %together ]
  %status.step = phi i32 [ %status.one, %one ], [ %status.many, %many ], [ 0, %copy ], [ 0, %bind ], [ 0, %move ],
                         [ %status.inner, %inner ], [ 0, %leave ], [ 0, %unless ], [ 0, %pick ], [ 0, %tell ],
                         [ %status.least, %least ], [ %status.together, %together ]
  %status.next = or i32 %status.steps, %status.step
  %s.over = add i64 %s, %skip
  %s.next = add i64 %s.over, 1
  %status.last = and i32 %status.next, $LAST  ; what comes after would start from anything
  %stops = icmp ne i32 %status.last, 0
  br i1 %stops, label %stopped, label %steps

; numbers that grow from iteration to iteration
growing:
  %g = phi i64 [ 0, %steps ], [ 0, %step ], [ 0, %several ], [ %g.next, %grow ]
  %finished = phi i64 [ 1, %steps ], [ 1, %step ], [ %n.several, %several ], [ %finished, %grow ]
  %status.end = phi i32 [ %status.steps, %steps ], [ %status.steps, %step ], [ %status.several, %several ], [ %status.end, %grow ]
  %g.more = icmp slt i64 %g, %n.growing
  br i1 %g.more, label %grow, label %grown
grow:
  %g.two = shl i64 %g, 1
  %g.at = add i64 %o.growing, %g.two
  %g.at1 = add i64 %g.at, 1
  %g.place = call i64 @at(ptr %p, i64 %g.at)
  %g.by = call i64 @at(ptr %p, i64 %g.at1)
  %g.where = getelementptr i64, ptr %p, i64 %g.place
  %g.old = load i64, ptr %g.where
  %g.all = mul i64 %g.by, %finished
  %g.new = add i64 %g.old, %g.all
  store i64 %g.new, ptr %g.where
  %g.next = add i64 %g, 1
  br label %growing

; buffers are swapped, an even number of times or once
grown:
  %x.again = icmp sgt i64 %finished, 1
  br i1 %x.again, label %iteration.end, label %swaps
swaps:
  %x = phi i64 [ 0, %grown ], [ %x.next, %swap ]
  %x.more = icmp slt i64 %x, %n.swaps
  br i1 %x.more, label %swap, label %iteration.end
swap:
  %x.two = shl i64 %x, 1
  %x.at = add i64 %o.swaps, %x.two
  %x.at1 = add i64 %x.at, 1
  %x.a = call i64 @at(ptr %p, i64 %x.at)
  %x.b = call i64 @at(ptr %p, i64 %x.at1)
  %x.a.at = getelementptr i64, ptr %slots, i64 %x.a
  %x.b.at = getelementptr i64, ptr %slots, i64 %x.b
  %x.one = load i64, ptr %x.a.at
  %x.two.old = load i64, ptr %x.b.at
  store i64 %x.two.old, ptr %x.a.at
  store i64 %x.one, ptr %x.b.at
  %x.next = add i64 %x, 1
  br label %swaps
iteration.end:
  %r.next = add i64 %r, %finished
  %z.at = getelementptr i64, ptr %clock, i64 4
  %z.polled = load i64, ptr %z.at
  %z.some = icmp ne i64 %z.polled, 0
  %z.outermost = icmp ne i32 %until, 0
  %z.seen.at = getelementptr i64, ptr %clock, i64 3
  %z.seen = load i64, ptr %z.seen.at
  %z.unseen = icmp eq i64 %z.seen, 0  ; else it ends by the change that was seen
  %z.asked = and i1 %z.some, %z.unseen
  %z.keeps = and i1 %z.asked, %z.outermost
  br i1 %z.keeps, label %pause, label %count
count:
  %q.left = load i64, ptr %clock
  %q.less = add i64 %q.left, -1
  store i64 %q.less, ptr %clock
  %q.more = icmp sgt i64 %q.less, 0
  br i1 %q.more, label %iteration, label %due
; now and then: has a signal arrived, and is there a status that may be the end of the loop?
due:
  %q.raised = call i32 @tc_due(ptr %clock)
  switch i32 %q.raised, label %late [
    i32 0, label %look
    i32 1, label %interrupted
    i32 2, label %changed
  ]
; something that the code has read has changed: the outermost loop ends with this iteration
changed:
  %q.outermost = icmp ne i32 %until, 0
  br i1 %q.outermost, label %pause, label %look
look:
  %q.bits = and i32 %status.end, %until
  %q.none = icmp eq i32 %q.bits, 0
  br i1 %q.none, label %iteration, label %pause

interrupted:
  ret i32 $INTERRUPTED
late:
  ret i32 $CHANGED
pause:
  %q.bit = phi i32 [ 0, %iteration.end ], [ 0, %look ], [ $PAUSED, %changed ]
  %q.status = or i32 %status.end, %q.bit
  %q.done = getelementptr i64, ptr %p, i64 8
  %q.way = getelementptr i64, ptr %p, i64 9
  store i64 %r.next, ptr %q.done
  store i64 0, ptr %q.way
  ret i32 %q.status
done:
  %d.done = getelementptr i64, ptr %p, i64 8
  %d.way = getelementptr i64, ptr %p, i64 9
  store i64 %r, ptr %d.done
  store i64 0, ptr %d.way
  ret i32 %status
stopped:
  %status.stopped = phi i32 [ %status.next, %step.end ], [ %status.several, %several ]
  %e.done = getelementptr i64, ptr %p, i64 8
  %e.way = getelementptr i64, ptr %p, i64 9
  store i64 %r, ptr %e.done
  store i64 0, ptr %e.way
  ret i32 %status.stopped
left:
  %l.done = getelementptr i64, ptr %p, i64 8
  %l.way = getelementptr i64, ptr %p, i64 9
  store i64 %r, ptr %l.done
  store i64 %s.b, ptr %l.way
  ret i32 %status.steps
}
