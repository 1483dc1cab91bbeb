; Threads on Windows. A word is its own queue.

declare i32 @WaitOnAddress(ptr, ptr, i64, i32) nounwind
declare void @WakeByAddressSingle(ptr) nounwind
declare void @WakeByAddressAll(ptr) nounwind
declare ptr @CreateThread(ptr, i64, ptr, ptr, i32, ptr) nounwind
declare i32 @CloseHandle(ptr) nounwind

; It may return early; callers look again. -1 is INFINITE.
define internal void @sleep_on(ptr %word, i32 %seen, i32 %queue) nounwind {
  %compared = alloca i32, align 4
  store i32 %seen, ptr %compared, align 4
  %r = call i32 @WaitOnAddress(ptr %word, ptr %compared, i64 4, i32 -1)
  ret void
}

; More than 64 are all.
define internal void @wake(ptr %word, i32 %count, i32 %queue) nounwind {
entry:
  %many = icmp sgt i32 %count, 64
  br i1 %many, label %all, label %check
all:
  call void @WakeByAddressAll(ptr %word)
  br label %out
check:
  %woken = phi i32 [ 0, %entry ], [ %woken.next, %one ]
  %more = icmp slt i32 %woken, %count
  br i1 %more, label %one, label %out
one:
  call void @WakeByAddressSingle(ptr %word)
  %woken.next = add i32 %woken, 1
  br label %check
out:
  ret void
}

; Starts @worker(number). Returns 0 where that worked. 65536 says that $STACK is the size of what is reserved.
define internal i32 @start_thread(i32 %number) nounwind noinline {
entry:
  %wide = zext i32 %number to i64
  %argument = inttoptr i64 %wide to ptr
  %thread = call ptr @CreateThread(ptr null, i64 $STACK, ptr @worker, ptr %argument, i32 65536, ptr null)
  %failed = icmp eq ptr %thread, null
  br i1 %failed, label %fail, label %close
fail:
  ret i32 1
close:
  %c = call i32 @CloseHandle(ptr %thread)
  ret i32 0
}

; Processes do not fork, and the system puts a thread that is woken where there is room.
define internal void @forget_threads() nounwind alwaysinline { ret void }
define internal void @note_worker(i32 %self) nounwind alwaysinline { ret void }
define internal void @before_sleep(i32 %self) nounwind alwaysinline { ret void }
define internal void @after_sleep(i32 %self) nounwind alwaysinline { ret void }
define internal void @send_away() nounwind alwaysinline { ret void }
