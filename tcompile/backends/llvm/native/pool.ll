; Thread pool: see threads.py. The functions of the operating system are those of ../../../system.
;
; Rounding and the handling of denormal numbers are a thread's own. A chunk must not depend on who runs it, so all
; threads take that mode from the caller, and start with the exception flags clear.

; kernel, words, items, grain, grains, batch, floating-point mode of the caller
%region = type { ptr, ptr, i64, i64, i64, i64, %mode }

; A waiting thread spins 8000 times, a tenth of a millisecond or two, before it sleeps. A woken thread may be put on the
; processor of the one that woke it (see @send_away), and the two then share it for 20 ms and more.

; Each group of variables that different threads write has its own two cache lines.
@ticket   = internal global i64 0, align 128          ; generation << 48 | end << 24 | next
@pending  = internal global i32 0, align 128          ; chunks of the region that are not done; the caller sleeps on it
@waiting  = internal global i32 0, align 4            ; 1 while the caller sleeps on @pending
@status   = internal global i32 0, align 4            ; OR of the statuses of the region's chunks
@epoch    = internal global i32 0, align 128          ; counts regions; the workers sleep on it
@sleepers = internal global i32 0, align 4            ; workers that sleep on @epoch, or are about to
@busy     = internal global i32 0, align 128          ; 1 while a region runs: the dispatch lock
@wanted   = internal global i32 0, align 4            ; workers that may take chunks
@started  = internal global i32 0, align 4            ; workers that exist
@region   = internal global %region zeroinitializer, align 128

; Claims and runs chunks until none is left, from the end of the region or from its start. Returns how many it ran.
define internal i32 @drain(i1 %from.end) nounwind {
entry:
  br label %look
look:
  %ran = phi i32 [ 0, %entry ], [ %ran.more, %finished ]
  %fresh = load atomic i64, ptr @ticket acquire, align 8
  br label %try
try:
  %t = phi i64 [ %fresh, %look ], [ %now, %claim ]
  %next = and i64 %t, 16777215
  %t.end = lshr i64 %t, 24
  %end = and i64 %t.end, 16777215
  %left = icmp ult i64 %next, %end
  br i1 %left, label %claim, label %empty
claim:
  %last.one = sub i64 %end, 1
  %chunk = select i1 %from.end, i64 %last.one, i64 %next
  %change = select i1 %from.end, i64 -16777216, i64 1
  %t.next = add i64 %t, %change
  %swap = cmpxchg ptr @ticket, i64 %t, i64 %t.next seq_cst acquire, align 8
  %now = extractvalue { i64, i1 } %swap, 0
  %won = extractvalue { i64, i1 } %swap, 1
  br i1 %won, label %run, label %try
run:
  %r = load %region, ptr @region, align 128
  %kernel = extractvalue %region %r, 0
  %words = extractvalue %region %r, 1
  %items = extractvalue %region %r, 2
  %grain = extractvalue %region %r, 3
  %grains = extractvalue %region %r, 4
  %batch = extractvalue %region %r, 5
  %mode = extractvalue %region %r, 6
  call void @set_mode(%mode %mode)
  %first = mul i64 %chunk, %batch
  %beyond = add i64 %first, %batch
  %over = icmp sgt i64 %beyond, %grains
  %last = select i1 %over, i64 %grains, i64 %beyond
  %s = call i32 @run_grains(ptr %kernel, ptr %words, i64 %items, i64 %grain, i64 %first, i64 %last)
  %clean = icmp eq i32 %s, 0
  br i1 %clean, label %count, label %merge
merge:
  %old.status = atomicrmw or ptr @status, i32 %s seq_cst, align 4
  br label %count
count:
  %ran.more = add i32 %ran, 1
  %before = atomicrmw sub ptr @pending, i32 1 seq_cst, align 4
  %is.last = icmp eq i32 %before, 1
  br i1 %is.last, label %ended, label %finished
ended:
  %w = load atomic i32, ptr @waiting seq_cst, align 4
  %asleep = icmp ne i32 %w, 0
  br i1 %asleep, label %wake, label %finished
wake:
  call void @wake(ptr @pending, i32 1, i32 0)
  br label %finished
finished:
  br label %look
empty:
  ret i32 %ran
}

; A worker thread, number `self` from 0.
define internal ptr @worker(ptr %argument) nounwind {
entry:
  %self.wide = ptrtoint ptr %argument to i64
  %self = trunc i64 %self.wide to i32
  %even = and i32 %self, 1
  %from.end = icmp eq i32 %even, 0
  call void @note_worker(i32 %self)
  br label %look
look:
  %seen = load atomic i32, ptr @epoch seq_cst, align 4
  %limit = load atomic i32, ptr @wanted seq_cst, align 4
  %active = icmp slt i32 %self, %limit
  br i1 %active, label %work, label %sleep
work:
  %ran = call i32 @drain(i1 %from.end)
  br label %spin
spin:
  %turn = phi i32 [ 0, %work ], [ %turn.next, %again ]
  call void @pause()
  %epoch.now = load atomic i32, ptr @epoch seq_cst, align 4
  %changed = icmp ne i32 %epoch.now, %seen
  br i1 %changed, label %look, label %again
again:
  %turn.next = add i32 %turn, 1
  %tired = icmp sge i32 %turn.next, 8000
  br i1 %tired, label %sleep, label %spin
sleep:
  ; The dispatcher advances @epoch first and reads @sleepers then. So either it sees this worker and wakes it, or
  ; the system sees that the epoch is no longer the one of `seen` and does not let it sleep.
  call void @before_sleep(i32 %self)
  %s.more = atomicrmw add ptr @sleepers, i32 1 seq_cst, align 4
  call void @sleep_on(ptr @epoch, i32 %seen, i32 1)
  %s.less = atomicrmw sub ptr @sleepers, i32 1 seq_cst, align 4
  call void @after_sleep(i32 %self)
  br label %look
}

; Starts the workers that are wanted and do not exist yet. Called under the dispatch lock. Where no thread can be had,
; fewer are wanted.
define internal void @start_workers(i32 %limit) nounwind noinline {
entry:
  br label %look
look:
  %n = load i32, ptr @started, align 4
  %enough = icmp sge i32 %n, %limit
  br i1 %enough, label %out, label %create
create:
  %error = call i32 @start_thread(i32 %n)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %created, label %failed
created:
  %n.more = add i32 %n, 1
  store i32 %n.more, ptr @started, align 4
  br label %look
failed:
  store atomic i32 %n, ptr @wanted seq_cst, align 4
  br label %out
out:
  ret void
}

; One region. `items` > 0 and `grain` > 0.
define i32 @tc_parallel(ptr %kernel, ptr %words, i64 %items, i64 %grain) nounwind {
entry:
  %grains = call i64 @count_grains(i64 %items, i64 %grain)
  %limit = load atomic i32, ptr @wanted seq_cst, align 4
  %alone = icmp slt i32 %limit, 1
  br i1 %alone, label %serial, label %lock
lock:
  %was.busy = atomicrmw xchg ptr @busy, i32 1 seq_cst, align 4
  %taken = icmp ne i32 %was.busy, 0
  br i1 %taken, label %serial, label %begin
serial:
  %s.serial = call i32 @run_grains(ptr %kernel, ptr %words, i64 %items, i64 %grain, i64 0, i64 %grains)
  ret i32 %s.serial
begin:
  %have = load i32, ptr @started, align 4
  %few = icmp slt i32 %have, %limit
  br i1 %few, label %start, label %fill
start:
  call void @start_workers(i32 %limit)
  br label %fill
fill:
  ; At most 2^22 + 1 chunks of `batch` grains.
  %excess = lshr i64 %grains, 22
  %batch = add i64 %excess, 1
  %n = call i64 @count_grains(i64 %grains, i64 %batch)
  %r0 = insertvalue %region poison, ptr %kernel, 0
  %r1 = insertvalue %region %r0, ptr %words, 1
  %r2 = insertvalue %region %r1, i64 %items, 2
  %r3 = insertvalue %region %r2, i64 %grain, 3
  %r4 = insertvalue %region %r3, i64 %grains, 4
  %r5 = insertvalue %region %r4, i64 %batch, 5
  %mode = call %mode @get_mode()
  %r6 = insertvalue %region %r5, %mode %mode, 6
  store %region %r6, ptr @region, align 128
  %n.small = trunc i64 %n to i32
  store atomic i32 0, ptr @status monotonic, align 4
  store atomic i32 %n.small, ptr @pending seq_cst, align 4
  %t.old = load atomic i64, ptr @ticket monotonic, align 8
  %g.old = lshr i64 %t.old, 48
  %g = add i64 %g.old, 1
  %g.high = shl i64 %g, 48
  %n.high = shl i64 %n, 24
  %t = or i64 %g.high, %n.high
  store atomic i64 %t, ptr @ticket seq_cst, align 8
  %e = atomicrmw add ptr @epoch, i32 1 seq_cst, align 4
  %idle = load atomic i32, ptr @sleepers seq_cst, align 4
  %none.idle = icmp eq i32 %idle, 0
  br i1 %none.idle, label %work, label %rouse
rouse:
  ; Wake no more than there is work for, but all where some of the sleepers are not wanted: a wake-up may hit them.
  %others = sub i32 %n.small, 1
  %surplus = icmp sgt i32 %have, %limit
  %count = select i1 %surplus, i32 2147483647, i32 %others
  call void @send_away()
  call void @wake(ptr @epoch, i32 %count, i32 1)
  br label %work
work:
  %ran = call i32 @drain(i1 false)
  br label %spin
spin:
  %turn = phi i32 [ 0, %work ], [ %turn.next, %again ]
  %left = load atomic i32, ptr @pending seq_cst, align 4
  %over = icmp eq i32 %left, 0
  br i1 %over, label %done, label %again
again:
  call void @pause()
  %turn.next = add i32 %turn, 1
  %tired = icmp sge i32 %turn.next, 8000
  br i1 %tired, label %sleep, label %spin
sleep:
  store atomic i32 1, ptr @waiting seq_cst, align 4
  %left.now = load atomic i32, ptr @pending seq_cst, align 4
  %over.now = icmp eq i32 %left.now, 0
  br i1 %over.now, label %awake, label %wait
wait:
  call void @sleep_on(ptr @pending, i32 %left.now, i32 0)
  br label %sleep
awake:
  store atomic i32 0, ptr @waiting seq_cst, align 4
  br label %done
done:
  %s = load atomic i32, ptr @status seq_cst, align 4
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret i32 %s
}

; `n` workers beside the caller, from the next region on.
define void @tc_set_workers(i32 %n) nounwind {
  store atomic i32 %n, ptr @wanted seq_cst, align 4
  ret void
}

; At the start, and in the child of a fork, which has no workers: a region that ran in the parent is never finished there.
define void @tc_reset_threads() nounwind {
  store atomic i64 0, ptr @ticket seq_cst, align 8
  store atomic i32 0, ptr @pending seq_cst, align 4
  store atomic i32 0, ptr @waiting seq_cst, align 4
  store atomic i32 0, ptr @sleepers seq_cst, align 4
  store i32 0, ptr @started, align 4
  call void @forget_threads()
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}
