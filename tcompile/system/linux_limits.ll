; What the limits of the process leave to the memory pool, on Linux.

declare i32 @getrlimit(i32, ptr) nounwind
declare i32 @open(ptr, i32, ...) nounwind
declare i64 @read(i32, ptr, i64) nounwind
declare i32 @close(i32) nounwind
declare i64 @llvm.smin.i64(i64, i64)

@statm = private constant [17 x i8] c"/proc/self/statm\00"

; A soft limit in bytes; 2^62 where there is none.
define internal i64 @soft_limit(i32 %which) nounwind {
entry:
  %limits = alloca { i64, i64 }
  store i64 -1, ptr %limits
  %failed = call i32 @getrlimit(i32 %which, ptr %limits)
  %soft = load i64, ptr %limits
  %bytes = call i64 @llvm.umin.i64(i64 %soft, i64 4611686018427387904)
  ret i64 %bytes
}

; How many bytes the pool may keep, which holds `held` bytes of free memory: a quarter of what the process could have if
; the pool held none. RLIMIT_AS counts all mappings, RLIMIT_DATA the private ones that can be written. Nothing is kept
; where /proc does not say how much is mapped.
define internal i64 @fair_share(i64 %held) nounwind {
entry:
  %text = alloca [128 x i8]
  %space = call i64 @soft_limit(i32 9)
  %data = call i64 @soft_limit(i32 2)
  %lower = call i64 @llvm.smin.i64(i64 %space, i64 %data)
  %unlimited = icmp eq i64 %lower, 4611686018427387904
  br i1 %unlimited, label %all, label %ask
all:
  ret i64 %lower
ask:
  %file = call i32 (ptr, i32, ...) @open(ptr @statm, i32 524288)       ; O_CLOEXEC
  %closed = icmp slt i32 %file, 0
  br i1 %closed, label %none, label %fill
none:
  ret i64 0
fill:
  %count = call i64 @read(i32 %file, ptr %text, i64 128)
  %r = call i32 @close(i32 %file)
  %empty = icmp slt i64 %count, 1
  br i1 %empty, label %none, label %parse
parse:
  ; Pages: all of the process, resident, shared, code, 0, data and stacks.
  %i = phi i64 [ 0, %fill ], [ %i.next, %next ]
  %field = phi i64 [ 0, %fill ], [ %field.next, %next ]
  %number = phi i64 [ 0, %fill ], [ %number.next, %next ]
  %mapped = phi i64 [ 0, %fill ], [ %mapped.next, %next ]
  %private = phi i64 [ 0, %fill ], [ %private.next, %next ]
  %at = getelementptr i8, ptr %text, i64 %i
  %char = load i8, ptr %at
  %digit = sub i8 %char, 48
  %is.digit = icmp ult i8 %digit, 10
  br i1 %is.digit, label %append, label %end
append:
  %wide = zext i8 %digit to i64
  %tens = mul i64 %number, 10
  %longer = add i64 %tens, %wide
  br label %next
end:
  %is.first = icmp eq i64 %field, 0
  %is.sixth = icmp eq i64 %field, 5
  %mapped.read = select i1 %is.first, i64 %number, i64 %mapped
  %private.read = select i1 %is.sixth, i64 %number, i64 %private
  %following = add i64 %field, 1
  br label %next
next:
  %field.next = phi i64 [ %field, %append ], [ %following, %end ]
  %number.next = phi i64 [ %longer, %append ], [ 0, %end ]
  %mapped.next = phi i64 [ %mapped, %append ], [ %mapped.read, %end ]
  %private.next = phi i64 [ %private, %append ], [ %private.read, %end ]
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %parse, label %compare
compare:
  %mapped.bytes = mul i64 %mapped.next, $PAGE
  %private.bytes = mul i64 %private.next, $PAGE
  %space.left = sub i64 %space, %mapped.bytes
  %data.left = sub i64 %data, %private.bytes
  %least = call i64 @llvm.smin.i64(i64 %space.left, i64 %data.left)
  %left = call i64 @llvm.smax.i64(i64 %least, i64 0)
  %free = add i64 %left, %held
  %share = lshr i64 %free, 2
  ret i64 %share
}
