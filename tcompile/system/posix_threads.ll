; Threads by POSIX alone: macOS. A queue is a mutex and a condition; 128 bytes have room for either on every system.

@mutexes    = internal global [2 x [128 x i8]] zeroinitializer, align 128
@conditions = internal global [2 x [128 x i8]] zeroinitializer, align 128

declare i32 @pthread_mutex_init(ptr, ptr) nounwind
declare i32 @pthread_mutex_lock(ptr) nounwind
declare i32 @pthread_mutex_unlock(ptr) nounwind
declare i32 @pthread_cond_init(ptr, ptr) nounwind
declare i32 @pthread_cond_wait(ptr, ptr) nounwind
declare i32 @pthread_cond_signal(ptr) nounwind
declare i32 @pthread_cond_broadcast(ptr) nounwind
declare i32 @pthread_attr_init(ptr) nounwind
declare i32 @pthread_attr_setstacksize(ptr, i64) nounwind
declare i32 @pthread_attr_destroy(ptr) nounwind
declare i32 @pthread_create(ptr, ptr, ptr, ptr) nounwind
declare i32 @pthread_detach(i64) nounwind
declare i32 @pthread_sigmask(i32, ptr, ptr) nounwind
declare i32 @sigfillset(ptr) nounwind

; Whoever changes the word does so before it takes the mutex to wake. So either the change is seen here, or this thread
; waits by then. It may return early; callers look again.
define internal void @sleep_on(ptr %word, i32 %seen, i32 %queue) nounwind {
entry:
  %mutex = getelementptr [128 x i8], ptr @mutexes, i32 %queue
  %condition = getelementptr [128 x i8], ptr @conditions, i32 %queue
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %now = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %now, %seen
  br i1 %same, label %wait, label %out
wait:
  %w = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %out
out:
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

; More than 64 are all.
define internal void @wake(ptr %word, i32 %count, i32 %queue) nounwind {
entry:
  %mutex = getelementptr [128 x i8], ptr @mutexes, i32 %queue
  %condition = getelementptr [128 x i8], ptr @conditions, i32 %queue
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %many = icmp sgt i32 %count, 64
  br i1 %many, label %all, label %check
all:
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  br label %out
check:
  %woken = phi i32 [ 0, %entry ], [ %woken.next, %one ]
  %more = icmp slt i32 %woken, %count
  br i1 %more, label %one, label %out
one:
  %s = call i32 @pthread_cond_signal(ptr %condition)
  %woken.next = add i32 %woken, 1
  br label %check
out:
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

; Starts @worker(number). Returns 0 where that worked. Workers inherit a mask that blocks all signals, so that signals go
; on reaching Python's threads.
define internal i32 @start_thread(i32 %number) nounwind noinline {
entry:
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %attributes = alloca [128 x i8], align 16
  %thread = alloca i64, align 8
  %f = call i32 @sigfillset(ptr %all)
  %m = call i32 @pthread_sigmask(i32 $SIG_SETMASK, ptr %all, ptr %old)
  %a = call i32 @pthread_attr_init(ptr %attributes)
  %k = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $STACK)
  %wide = zext i32 %number to i64
  %argument = inttoptr i64 %wide to ptr
  %error = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @worker, ptr %argument)
  %r = call i32 @pthread_attr_destroy(ptr %attributes)
  %u = call i32 @pthread_sigmask(i32 $SIG_SETMASK, ptr %old, ptr null)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %detach, label %out
detach:
  %id = load i64, ptr %thread, align 8
  %d = call i32 @pthread_detach(i64 %id)
  br label %out
out:
  ret i32 %error
}

; No worker exists: at the start, and in the child of a fork, where a mutex may be left locked.
define internal void @forget_threads() nounwind {
entry:
  br label %queue
queue:
  %k = phi i32 [ 0, %entry ], [ %k.next, %queue ]
  %mutex = getelementptr [128 x i8], ptr @mutexes, i32 %k
  %condition = getelementptr [128 x i8], ptr @conditions, i32 %k
  call void @llvm.memset.p0.i64(ptr %mutex, i8 0, i64 128, i1 false)
  call void @llvm.memset.p0.i64(ptr %condition, i8 0, i64 128, i1 false)
  %m = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %k.next = add i32 %k, 1
  %more = icmp slt i32 %k.next, 2
  br i1 %more, label %queue, label %out
out:
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; There is no way to say where a thread is to run.
define internal void @note_worker(i32 %self) nounwind alwaysinline { ret void }
define internal void @before_sleep(i32 %self) nounwind alwaysinline { ret void }
define internal void @after_sleep(i32 %self) nounwind alwaysinline { ret void }
define internal void @send_away() nounwind alwaysinline { ret void }
