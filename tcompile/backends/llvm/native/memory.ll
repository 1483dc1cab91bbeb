; The pool after NumPy's memory handler: see memory.py. Pages come from the layer of the operating system.

; The header of a block. Free blocks of one class are a ring through their `link`, closed by the class's head.
;   0 mapping   the first of its pages          32 link.prev
;   8 mapped    bytes of the mapping                   40 class
;  16 capacity  bytes from the data to the end         48 stamp of the last free
;  24 link.next                                        56 not used
%link = type { ptr, ptr }

@heads  = internal global [240 x %link] zeroinitializer, align 64
@lock   = internal global i32 0, align 64
@limit  = internal global i64 0, align 8
@share  = internal global i64 0, align 8               ; what the limits of the process left to the pool when it last asked
@due    = internal global i64 0, align 8               ; how many blocks come back before it asks again
@clock  = internal global i64 0, align 8
@colour = internal global i64 0, align 8
@in_use = internal global i64 0, align 8
@cached = internal global i64 0, align 8
@hits   = internal global i64 0, align 8
@misses = internal global i64 0, align 8

declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @acquire() nounwind {
entry:
  br label %try
try:
  %old = atomicrmw xchg ptr @lock, i32 1 acquire, align 4
  %taken = icmp ne i32 %old, 0
  br i1 %taken, label %yield, label %out
yield:
  call void @give_way()
  br label %try
out:
  ret void
}
define internal void @release() nounwind {
  store atomic i32 0, ptr @lock release, align 4
  ret void
}

; Takes a block out of its ring. Under the lock.
define internal void @unlink(ptr %h) nounwind {
  %next.at = getelementptr i8, ptr %h, i64 24
  %prev.at = getelementptr i8, ptr %h, i64 32
  %next = load ptr, ptr %next.at
  %prev = load ptr, ptr %prev.at
  store ptr %next, ptr %prev
  %next.prev = getelementptr i8, ptr %next, i64 8
  store ptr %prev, ptr %next.prev
  %mapped.at = getelementptr i8, ptr %h, i64 8
  %mapped = load i64, ptr %mapped.at
  %c = load i64, ptr @cached
  %c.less = sub i64 %c, %mapped
  store i64 %c.less, ptr @cached
  ret void
}

; Gives blocks back to the system, those freed longest ago first, until no more than `keep` bytes are cached. Under
; the lock. Each ring's last block is its oldest, so the oldest of all is found by looking at the rings' ends.
define internal void @evict(i64 %keep) nounwind {
entry:
  br label %check
check:
  %c = load i64, ptr @cached
  %full = icmp ugt i64 %c, %keep
  br i1 %full, label %scan, label %out
scan:
  %k = phi i64 [ 0, %check ], [ %k.next, %scanned ]
  %best = phi ptr [ null, %check ], [ %best.next, %scanned ]
  %oldest = phi i64 [ -1, %check ], [ %oldest.next, %scanned ]
  %head = getelementptr %link, ptr @heads, i64 %k
  %last.at = getelementptr i8, ptr %head, i64 8
  %last = load ptr, ptr %last.at
  %none = icmp eq ptr %last, %head
  br i1 %none, label %scanned, label %compare
compare:
  %h = getelementptr i8, ptr %last, i64 -24
  %stamp.at = getelementptr i8, ptr %h, i64 48
  %stamp = load i64, ptr %stamp.at
  %older = icmp ult i64 %stamp, %oldest
  %best.cmp = select i1 %older, ptr %h, ptr %best
  %oldest.cmp = select i1 %older, i64 %stamp, i64 %oldest
  br label %scanned
scanned:
  %best.next = phi ptr [ %best, %scan ], [ %best.cmp, %compare ]
  %oldest.next = phi i64 [ %oldest, %scan ], [ %oldest.cmp, %compare ]
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 240
  br i1 %more, label %scan, label %drop
drop:
  %found = icmp ne ptr %best.next, null
  br i1 %found, label %unmap, label %out
unmap:
  call void @unlink(ptr %best.next)
  call void @unmap(ptr %best.next)
  br label %check
out:
  ret void
}

; How many bytes may be kept, with a block of `mapped` bytes that comes back. Under the lock. What the limits of the
; process leave is found out by system calls: for every 64th block, and where more would be kept than it was.
define internal i64 @allowance(i64 %mapped) nounwind {
entry:
  %cached = load i64, ptr @cached
  %held = add i64 %cached, %mapped
  %old = load i64, ptr @share
  %more = icmp ugt i64 %held, %old
  %due = load i64, ptr @due
  %now = icmp eq i64 %due, 0
  %ask = or i1 %more, %now
  br i1 %ask, label %look, label %count
look:
  %new = call i64 @fair_share(i64 %held)
  store i64 %new, ptr @share
  br label %out
count:
  %less = sub i64 %due, 1
  br label %out
out:
  %left = phi i64 [ 63, %look ], [ %less, %count ]
  %share = phi i64 [ %new, %look ], [ %old, %count ]
  store i64 %left, ptr @due
  %limit = load i64, ptr @limit
  %least = call i64 @llvm.umin.i64(i64 %limit, i64 %share)
  ret i64 %least
}

define internal void @unmap(ptr %h) nounwind {
  %mapping = load ptr, ptr %h
  %mapped.at = getelementptr i8, ptr %h, i64 8
  %mapped = load i64, ptr %mapped.at
  call void @unmap_pages(ptr %mapping, i64 %mapped)
  ret void
}

; Maps a fresh block of `capacity` bytes. Returns its header, null where the system has no memory.
define internal ptr @map(i64 %capacity, i64 %class) nounwind {
entry:
  %mapped = add i64 %capacity, $HEAD_PAGE
  %huge = icmp uge i64 %capacity, 2097152
  %mapping = call ptr @map_pages(i64 %mapped, i1 %huge)
  %failed = icmp eq ptr %mapping, null
  br i1 %failed, label %fail, label %ready
fail:
  ret ptr null
ready:
  %turn = atomicrmw add ptr @colour, i64 1 monotonic, align 8
  ; 2 to 13 times 256 bytes after a page, of blocks mapped one after the other at least twice as much apart
  %turn.5 = mul i64 %turn, 5
  %turn.12 = urem i64 %turn.5, 12
  %turn.2 = add i64 %turn.12, 2
  %shift = shl i64 %turn.2, 8
  %h = getelementptr i8, ptr %mapping, i64 %shift
  store ptr %mapping, ptr %h
  %mapped.at = getelementptr i8, ptr %h, i64 8
  store i64 %mapped, ptr %mapped.at
  %capacity.at = getelementptr i8, ptr %h, i64 16
  store i64 %capacity, ptr %capacity.at
  %class.at = getelementptr i8, ptr %h, i64 40
  store i64 %class, ptr %class.at
  ret ptr %h
}

; The four functions of the handler.

define internal ptr @pool_malloc(ptr %ctx, i64 %size) nounwind {
entry:
  ; 2^e <= need - 1 < 2^(e+1); the class's capacity is the next of (9 .. 16) * 2^(e-3).
  %need = call i64 @llvm.smax.i64(i64 %size, i64 262145)
  %less = sub i64 %need, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %less, i1 true)
  %e = sub i64 63, %zeros
  %e.3 = sub i64 %e, 3
  %top = lshr i64 %less, %e.3
  %steps = add i64 %top, 1
  %capacity = shl i64 %steps, %e.3
  %sub = and i64 %top, 7
  %e.18 = sub i64 %e, 18
  %doublings = shl i64 %e.18, 3
  %class = add i64 %doublings, %sub
  %negative = icmp slt i64 %size, 0
  %high = icmp uge i64 %class, 232
  %absurd = or i1 %negative, %high
  br i1 %absurd, label %fail, label %look
fail:
  ret ptr null
look:
  call void @acquire()
  %head = getelementptr %link, ptr @heads, i64 %class
  %first = load ptr, ptr %head
  %empty = icmp eq ptr %first, %head
  br i1 %empty, label %miss, label %hit
hit:
  %h.hit = getelementptr i8, ptr %first, i64 -24
  call void @unlink(ptr %h.hit)
  %hit.old = load i64, ptr @hits
  %hit.new = add i64 %hit.old, 1
  store i64 %hit.new, ptr @hits
  br label %give
miss:
  %miss.old = load i64, ptr @misses
  %miss.new = add i64 %miss.old, 1
  store i64 %miss.new, ptr @misses
  %h.new = call ptr @map(i64 %capacity, i64 %class)
  %none = icmp eq ptr %h.new, null
  br i1 %none, label %squeeze, label %give
squeeze:
  ; Out of memory: what the pool keeps may be what is missing.
  call void @evict(i64 0)
  %h.again = call ptr @map(i64 %capacity, i64 %class)
  %none.again = icmp eq ptr %h.again, null
  br i1 %none.again, label %fail.unlock, label %give
fail.unlock:
  call void @release()
  ret ptr null
give:
  %h = phi ptr [ %h.hit, %hit ], [ %h.new, %miss ], [ %h.again, %squeeze ]
  %mapped.at = getelementptr i8, ptr %h, i64 8
  %mapped = load i64, ptr %mapped.at
  %u = load i64, ptr @in_use
  %u.more = add i64 %u, %mapped
  store i64 %u.more, ptr @in_use
  call void @release()
  %data = getelementptr i8, ptr %h, i64 64
  ret ptr %data
}

define internal void @pool_free(ptr %ctx, ptr %data, i64 %size) nounwind {
entry:
  ; The size that NumPy passes is not always the block's, so the header's counts.
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %out, label %take
take:
  %h = getelementptr i8, ptr %data, i64 -64
  %mapped.at = getelementptr i8, ptr %h, i64 8
  %mapped = load i64, ptr %mapped.at
  call void @acquire()
  %u = load i64, ptr @in_use
  %u.less = sub i64 %u, %mapped
  store i64 %u.less, ptr @in_use
  %limit = call i64 @allowance(i64 %mapped)
  %big = icmp ugt i64 %mapped, %limit
  br i1 %big, label %drop, label %keep
drop:
  call void @release()
  call void @unmap(ptr %h)
  br label %out
keep:
  %room = sub i64 %limit, %mapped
  call void @evict(i64 %room)
  %class.at = getelementptr i8, ptr %h, i64 40
  %class = load i64, ptr %class.at
  %head = getelementptr %link, ptr @heads, i64 %class
  %first = load ptr, ptr %head
  %link = getelementptr i8, ptr %h, i64 24
  store ptr %first, ptr %link
  %link.prev = getelementptr i8, ptr %h, i64 32
  store ptr %head, ptr %link.prev
  store ptr %link, ptr %head
  %first.prev = getelementptr i8, ptr %first, i64 8
  store ptr %link, ptr %first.prev
  %now = load i64, ptr @clock
  %later = add i64 %now, 1
  store i64 %later, ptr @clock
  %stamp.at = getelementptr i8, ptr %h, i64 48
  store i64 %later, ptr %stamp.at
  %c = load i64, ptr @cached
  %c.more = add i64 %c, %mapped
  store i64 %c.more, ptr @cached
  call void @release()
  br label %out
out:
  ret void
}

define internal ptr @pool_calloc(ptr %ctx, i64 %count, i64 %size) nounwind {
entry:
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue { i64, i1 } %product, 0
  %overflow = extractvalue { i64, i1 } %product, 1
  br i1 %overflow, label %fail, label %get
get:
  %data = call ptr @pool_malloc(ptr %ctx, i64 %bytes)
  %none = icmp eq ptr %data, null
  br i1 %none, label %fail, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %bytes, i1 false)
  ret ptr %data
fail:
  ret ptr null
}

define internal ptr @pool_realloc(ptr %ctx, ptr %data, i64 %size) nounwind {
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %fresh, label %old
fresh:
  %new = call ptr @pool_malloc(ptr %ctx, i64 %size)
  ret ptr %new
old:
  %h = getelementptr i8, ptr %data, i64 -64
  %capacity.at = getelementptr i8, ptr %h, i64 16
  %capacity = load i64, ptr %capacity.at
  %fits = icmp ule i64 %size, %capacity
  %quarter = lshr i64 %capacity, 2
  %used = icmp uge i64 %size, %quarter
  %least = icmp ule i64 %capacity, 1048576
  %worth = or i1 %used, %least
  %stay = and i1 %fits, %worth
  br i1 %stay, label %same, label %move
same:
  ret ptr %data
move:
  %other = call ptr @pool_malloc(ptr %ctx, i64 %size)
  %none = icmp eq ptr %other, null
  br i1 %none, label %fail, label %copy
copy:
  %bytes = call i64 @llvm.umin.i64(i64 %size, i64 %capacity)
  call void @llvm.memcpy.p0.p0.i64(ptr %other, ptr %data, i64 %bytes, i1 false)
  call void @pool_free(ptr %ctx, ptr %data, i64 0)
  ret ptr %other
fail:
  ret ptr null
}

; NumPy's PyDataMem_Handler: name, version 1, and the allocator with its context.
@handler = global { [127 x i8], i8, ptr, ptr, ptr, ptr, ptr } {
  [127 x i8] c"$HANDLER_NAME", i8 1, ptr null,
  ptr @pool_malloc, ptr @pool_calloc, ptr @pool_realloc, ptr @pool_free }

; Empties all rings without giving memory back: at the start, and in the child of a fork that caught another thread
; inside the pool. (Array memory comes and goes under the GIL, which the forking thread holds, so that is not expected.)
define void @tc_memory_reset(i32 %first) nounwind {
entry:
  %held = load atomic i32, ptr @lock acquire, align 4
  %why = or i32 %held, %first
  %needed = icmp ne i32 %why, 0
  br i1 %needed, label %loop, label %out
loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %head = getelementptr %link, ptr @heads, i64 %k
  store ptr %head, ptr %head
  %prev = getelementptr i8, ptr %head, i64 8
  store ptr %head, ptr %prev
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 240
  br i1 %more, label %loop, label %done
done:
  store i64 0, ptr @cached
  store atomic i32 0, ptr @lock release, align 4
  br label %out
out:
  ret void
}

; Keeps no more than `limit` bytes from now on.
define void @tc_memory_limit(i64 %limit) nounwind {
  call void @acquire()
  store i64 %limit, ptr @limit
  call void @evict(i64 %limit)
  call void @release()
  ret void
}

define void @tc_memory_trim(i64 %keep) nounwind {
  call void @acquire()
  call void @evict(i64 %keep)
  call void @release()
  ret void
}

define void @tc_memory_stats(ptr %to) nounwind {
  call void @acquire()
  %u = load i64, ptr @in_use
  %c = load i64, ptr @cached
  %h = load i64, ptr @hits
  %m = load i64, ptr @misses
  %l = load i64, ptr @limit
  call void @release()
  store i64 %u, ptr %to
  %to.1 = getelementptr i64, ptr %to, i64 1
  store i64 %c, ptr %to.1
  %to.2 = getelementptr i64, ptr %to, i64 2
  store i64 %h, ptr %to.2
  %to.3 = getelementptr i64, ptr %to, i64 3
  store i64 %m, ptr %to.3
  %to.4 = getelementptr i64, ptr %to, i64 4
  store i64 %l, ptr %to.4
  ret void
}

; New arrays.
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr) nounwind
declare ptr @PyErr_Format(ptr, ptr, ...) nounwind
declare void @PyErr_Clear() nounwind
declare ptr @PyErr_Occurred() nounwind
declare i64 @PyLong_AsLongLong(ptr) nounwind
declare i64 @PyTuple_Size(ptr) nounwind
declare ptr @PyTuple_GetItem(ptr, i64) nounwind
declare i32 @PyTraceMalloc_Track(i32, i64, i64) nounwind
declare void @Py_IncRef(ptr) nounwind
@PyArray_Type = external global i8
@PyExc_TypeError = external global ptr
@capsule = global ptr null, align 8                    ; the PyCapsule of @handler, filled in from outside
@none = global ptr null, align 8                       ; None, filled in from outside

; An array that owns memory of the pool's: `bytes` in all, `count` axes, strides where they are given, else in C order
; (`order` 0) or Fortran's (2). Null, with no error set, where NumPy must be asked, which says what is wrong. NumPy's way
; to have memory from a handler is to set it, in the context, and back, which takes longer than all of this.
define ptr @tc_pool_array(ptr %dtype, i64 %bytes, i64 %count, ptr %sizes, ptr %strides, i32 %order) nounwind {
entry:
  %data = call ptr @pool_malloc(ptr null, i64 %bytes)
  %no.data = icmp eq ptr %data, null
  br i1 %no.data, label %fail, label %make
make:
  call void @Py_IncRef(ptr %dtype)
  %nd = trunc i64 %count to i32
  %flags = or i32 %order, 1280                         ; aligned and writeable
  %array = call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr %dtype, i32 %nd, ptr %sizes, ptr %strides, ptr %data,
                                          i32 %flags, ptr null)
  %refused = icmp eq ptr %array, null
  br i1 %refused, label %free, label %own
free:
  call void @PyErr_Clear()
  call void @pool_free(ptr null, ptr %data, i64 %bytes)
  br label %fail
fail:
  ret ptr null
own:
  %flags.at = getelementptr i8, ptr %array, i64 $ARRAY_FLAGS
  %now = load i32, ptr %flags.at
  %owns = or i32 %now, $OWNDATA
  store i32 %owns, ptr %flags.at
  %capsule = load ptr, ptr @capsule
  call void @Py_IncRef(ptr %capsule)
  %handler.at = getelementptr i8, ptr %array, i64 $ARRAY_HANDLER
  store ptr %capsule, ptr %handler.at
  %place = ptrtoint ptr %data to i64
  %told = call i32 @PyTraceMalloc_Track(i32 $TRACED, i64 %place, i64 %bytes)
  ret ptr %array
}

; Writes a tuple's integers. Where one is none, or too large, an error is set.
define internal void @unpack(ptr %tuple, i64 %count, ptr %to) nounwind {
entry:
  br label %check
check:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %out
one:
  %item = call ptr @PyTuple_GetItem(ptr %tuple, i64 %i)
  %number = call i64 @PyLong_AsLongLong(ptr %item)
  %at = getelementptr i64, ptr %to, i64 %i
  store i64 %number, ptr %at
  %next = add i64 %i, 1
  br label %check
out:
  ret void
}

; new(dtype, bytes, shape, strides): such an array, in C order where strides are None; None where NumPy must be asked.
define ptr @new(ptr %self, ptr %args, i64 %nargs) nounwind {
entry:
  %sizes = alloca [$MOST_AXES x i64]
  %steps = alloca [$MOST_AXES x i64]
  %four = icmp eq i64 %nargs, 4
  br i1 %four, label %read, label %e.few
e.few:
  %x = load ptr, ptr @PyExc_TypeError
  %r.few = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %x, ptr @text.few)
  ret ptr null
read:
  %dtype = load ptr, ptr %args
  %bytes.at = getelementptr ptr, ptr %args, i64 1
  %bytes.int = load ptr, ptr %bytes.at
  %bytes = call i64 @PyLong_AsLongLong(ptr %bytes.int)
  %shape.at = getelementptr ptr, ptr %args, i64 2
  %shape = load ptr, ptr %shape.at
  %count = call i64 @PyTuple_Size(ptr %shape)
  %fits = icmp ule i64 %count, $MOST_AXES
  br i1 %fits, label %unpack, label %ask
unpack:
  call void @unpack(ptr %shape, i64 %count, ptr %sizes)
  %strides.at = getelementptr ptr, ptr %args, i64 3
  %strides = load ptr, ptr %strides.at
  %none = load ptr, ptr @none
  %in.order = icmp eq ptr %strides, %none
  br i1 %in.order, label %unpacked, label %steps.too
steps.too:
  call void @unpack(ptr %strides, i64 %count, ptr %steps)
  br label %unpacked
unpacked:
  %given = phi ptr [ null, %unpack ], [ %steps, %steps.too ]
  %error = call ptr @PyErr_Occurred()
  %wrong = icmp ne ptr %error, null
  br i1 %wrong, label %ask, label %make
make:
  %array = call ptr @tc_pool_array(ptr %dtype, i64 %bytes, i64 %count, ptr %sizes, ptr %given, i32 0)
  %refused = icmp eq ptr %array, null
  br i1 %refused, label %ask, label %give
give:
  ret ptr %array
ask:
  call void @PyErr_Clear()
  %answer = load ptr, ptr @none
  call void @Py_IncRef(ptr %answer)
  ret ptr %answer
}
