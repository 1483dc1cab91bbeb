; Allocation functions that stand in for those of $OF: see memory.py.

@$OF.next = global [3 x ptr] zeroinitializer           ; malloc, calloc and realloc as they were, filled in from outside

define ptr @$OF.malloc(ptr %ctx, i64 %size) nounwind {
entry:
  %next = load ptr, ptr @$OF.next
  %first = call ptr %next(ptr %ctx, i64 %size)
  %failed = icmp eq ptr %first, null
  br i1 %failed, label %relieve, label %out
relieve:
  call void @tc_memory_trim(i64 0)
  %second = call ptr %next(ptr %ctx, i64 %size)
  ret ptr %second
out:
  ret ptr %first
}

define ptr @$OF.calloc(ptr %ctx, i64 %count, i64 %size) nounwind {
entry:
  %next.at = getelementptr ptr, ptr @$OF.next, i64 1
  %next = load ptr, ptr %next.at
  %first = call ptr %next(ptr %ctx, i64 %count, i64 %size)
  %failed = icmp eq ptr %first, null
  br i1 %failed, label %relieve, label %out
relieve:
  call void @tc_memory_trim(i64 0)
  %second = call ptr %next(ptr %ctx, i64 %count, i64 %size)
  ret ptr %second
out:
  ret ptr %first
}

; Null for a size of 0 is no failure: the block is gone.
define ptr @$OF.realloc(ptr %ctx, ptr %old, i64 %size) nounwind {
entry:
  %next.at = getelementptr ptr, ptr @$OF.next, i64 2
  %next = load ptr, ptr %next.at
  %first = call ptr %next(ptr %ctx, ptr %old, i64 %size)
  %null = icmp eq ptr %first, null
  %wanted = icmp ne i64 %size, 0
  %failed = and i1 %null, %wanted
  br i1 %failed, label %relieve, label %out
relieve:
  call void @tc_memory_trim(i64 0)
  %second = call ptr %next(ptr %ctx, ptr %old, i64 %size)
  ret ptr %second
out:
  ret ptr %first
}
