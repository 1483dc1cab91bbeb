; Pages by POSIX.

declare ptr @mmap(ptr, i64, i32, i32, i32, i64) nounwind
declare i32 @munmap(ptr, i64) nounwind
declare i32 @madvise(ptr, i64, i32) nounwind
declare i32 @sched_yield() nounwind

; Maps fresh pages, where they are `huge` from a multiple of 2 MiB on. Null where the system has no memory.
define internal ptr @map_pages(i64 %bytes, i1 %huge) nounwind {
entry:
  %extra = select i1 %huge, i64 2097152, i64 0
  %asked = add i64 %bytes, %extra
  %at = call ptr @mmap(ptr null, i64 %asked, i32 3, i32 $MAP_ANONYMOUS_PRIVATE, i32 -1, i64 0)
  %at.int = ptrtoint ptr %at to i64
  %failed = icmp eq i64 %at.int, -1
  br i1 %failed, label %fail, label %got
fail:
  ret ptr null
got:
  br i1 %huge, label %align, label %ready
ready:
  ret ptr %at
align:
  ; Give back what lies before the first huge page and after the block.
  %up = add i64 %at.int, 2097151
  %start = and i64 %up, -2097152
  %before = sub i64 %start, %at.int
  %has.before = icmp ne i64 %before, 0
  br i1 %has.before, label %cut.before, label %tail
cut.before:
  %r1 = call i32 @munmap(ptr %at, i64 %before)
  br label %tail
tail:
  %after = sub i64 2097152, %before
  %stop = add i64 %start, %bytes
  %stop.ptr = inttoptr i64 %stop to ptr
  %has.after = icmp ne i64 %after, 0
  br i1 %has.after, label %cut.after, label %advise
cut.after:
  %r2 = call i32 @munmap(ptr %stop.ptr, i64 %after)
  br label %advise
advise:
  %start.ptr = inttoptr i64 %start to ptr
  $ADVISE
  ret ptr %start.ptr
}

define internal void @unmap_pages(ptr %start, i64 %bytes) nounwind {
  %r = call i32 @munmap(ptr %start, i64 %bytes)
  ret void
}

; Lets another thread run.
define internal void @give_way() nounwind {
  %r = call i32 @sched_yield()
  ret void
}
