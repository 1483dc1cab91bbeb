; Threads on Linux. $FUTEX and $GETTID are numbers of system calls; SIG_SETMASK is 2.

@threads = internal global [$FEW x i32] zeroinitializer, align 4             ; the first workers' numbers, for Linux
@may     = internal global [$FEW x [128 x i8]] zeroinitializer, align 128   ; the processors that they may run on
@state   = internal global [$FEW x i32] zeroinitializer, align 4             ; 1 while they sleep, 2 where they were sent away

declare i64 @syscall(i64, ...) nounwind
declare i32 @pthread_create(ptr, ptr, ptr, ptr) nounwind
declare i32 @pthread_detach(i64) nounwind
declare i32 @pthread_sigmask(i32, ptr, ptr) nounwind
declare i32 @sigfillset(ptr) nounwind
declare i32 @sched_getcpu() nounwind
declare i32 @sched_getaffinity(i32, i64, ptr) nounwind
declare i32 @sched_setaffinity(i32, i64, ptr) nounwind
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; FUTEX_WAIT_PRIVATE is 128, FUTEX_WAKE_PRIVATE 129. Both may return early; callers look again. Each word is its own queue.
define internal void @sleep_on(ptr %word, i32 %seen, i32 %queue) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr %word, i64 128, i32 %seen, ptr null, ptr null, i64 0)
  ret void
}
define internal void @wake(ptr %word, i32 %count, i32 %queue) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr %word, i64 129, i32 %count, ptr null, ptr null, i64 0)
  ret void
}

; Starts @worker(number). Returns 0 where that worked. Workers inherit a mask that blocks all signals, so that signals go
; on reaching Python's threads.
define internal i32 @start_thread(i32 %number) nounwind noinline {
entry:
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %thread = alloca i64, align 8
  %f = call i32 @sigfillset(ptr %all)
  %m = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  %wide = zext i32 %number to i64
  %argument = inttoptr i64 %wide to ptr
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %u = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %detach, label %out
detach:
  %id = load i64, ptr %thread, align 8
  %d = call i32 @pthread_detach(i64 %id)
  br label %out
out:
  ret i32 %error
}

; A worker begins: notes its number.
define internal void @note_worker(i32 %self) nounwind noinline {
entry:
  %few = icmp slt i32 %self, $FEW
  br i1 %few, label %tell, label %out
tell:
  %thread.long = call i64 (i64, ...) @syscall(i64 $GETTID)
  %thread = trunc i64 %thread.long to i32
  %thread.at = getelementptr i32, ptr @threads, i32 %self
  store atomic i32 %thread, ptr %thread.at monotonic, align 4
  br label %out
out:
  ret void
}

; Before workers are woken: sends the first $FEW away from the processor that the caller runs on. A virtual processor that
; has been idle for a while looks taken to Linux, which would then wake a worker beside the caller. There the worker waits
; for up to a time slice, and meanwhile the caller does all the work alone.
define internal void @send_away() nounwind noinline {
entry:
  %others = alloca [128 x i8], align 16
  %here = call i32 @sched_getcpu()
  %known = icmp ult i32 %here, 1024
  br i1 %known, label %look, label %out
look:
  %k = phi i32 [ 0, %entry ], [ %k.next, %next ]
  %started = load i32, ptr @started, align 4
  %there = icmp slt i32 %k, %started
  %few = icmp slt i32 %k, $FEW
  %more = and i1 %there, %few
  br i1 %more, label %worker, label %out
worker:
  %may.at = getelementptr [128 x i8], ptr @may, i32 %k
  %state.at = getelementptr i32, ptr @state, i32 %k
  %state = load atomic i32, ptr %state.at seq_cst, align 4
  %awake = icmp eq i32 %state, 0
  br i1 %awake, label %next, label %asleep
asleep:
  ; It has told its number before it fell asleep, and not earlier than that must this be read.
  %thread.at = getelementptr i32, ptr @threads, i32 %k
  %thread = load atomic i32, ptr %thread.at monotonic, align 4
  ; Where it was sent away before, what it may is known already.
  %first = icmp eq i32 %state, 1
  br i1 %first, label %ask, label %send
ask:
  %got = call i32 @sched_getaffinity(i32 %thread, i64 128, ptr %may.at)
  %failed = icmp slt i32 %got, 0
  br i1 %failed, label %next, label %send
send:
  call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr %may.at, i64 128, i1 false)
  %byte = lshr i32 %here, 3
  %at = getelementptr i8, ptr %others, i32 %byte
  %bit = trunc i32 %here to i8
  %low = and i8 %bit, 7
  %one = shl i8 1, %low
  %rest = xor i8 %one, -1
  %old = load i8, ptr %at
  %new = and i8 %old, %rest
  store i8 %new, ptr %at
  ; Where there is no other processor, this fails and changes nothing.
  %done = call i32 @sched_setaffinity(i32 %thread, i64 128, ptr %others)
  %swap = cmpxchg ptr %state.at, i32 %state, i32 2 seq_cst seq_cst, align 4
  %still = extractvalue { i32, i1 } %swap, 1
  br i1 %still, label %next, label %woke
woke:
  ; It woke up meanwhile, and did not see that it was sent.
  %undone = call i32 @sched_setaffinity(i32 %thread, i64 128, ptr %may.at)
  br label %next
next:
  %k.next = add i32 %k, 1
  br label %look
out:
  ret void
}

; A worker falls asleep.
define internal void @before_sleep(i32 %self) nounwind noinline {
entry:
  %few = icmp slt i32 %self, $FEW
  br i1 %few, label %tell, label %out
tell:
  %state.at = getelementptr i32, ptr @state, i32 %self
  store atomic i32 1, ptr %state.at seq_cst, align 4
  br label %out
out:
  ret void
}

; A worker that is awake may run on all its processors again.
define internal void @after_sleep(i32 %self) nounwind noinline {
entry:
  %few = icmp slt i32 %self, $FEW
  br i1 %few, label %look, label %out
look:
  %state.at = getelementptr i32, ptr @state, i32 %self
  %state = atomicrmw xchg ptr %state.at, i32 0 seq_cst, align 4
  %away = icmp eq i32 %state, 2
  br i1 %away, label %back, label %out
back:
  %may.at = getelementptr [128 x i8], ptr @may, i32 %self
  %done = call i32 @sched_setaffinity(i32 0, i64 128, ptr %may.at)
  br label %out
out:
  ret void
}

; No worker exists: at the start, and in the child of a fork.
define internal void @forget_threads() nounwind {
  store [$FEW x i32] zeroinitializer, ptr @threads, align 4
  store [$FEW x i32] zeroinitializer, ptr @state, align 4
  ret void
}
