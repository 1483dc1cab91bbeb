; The call of a compiled function, and the operations that plans are made of: see plan.py and calls.py.
;
; A frame is an array of 64-bit words on the stack: $F_OUTCOME and its neighbours, then registers, then the references
; that the call owns, then words for kernels and argument lists. A register holds a pointer to an object, or an integer.
; An operation is a function ptr(frame, pc): pc points to the operation's address in the plan, its operands follow. It
; returns where the next operation stands, or null to end: the frame's outcome then says why.

declare void @Py_IncRef(ptr) nounwind
declare void @Py_DecRef(ptr) nounwind
declare i32 @PyContextVar_Get(ptr, ptr, ptr) nounwind
declare ptr @PyErr_Occurred() nounwind
declare void @PyErr_SetString(ptr, ptr) nounwind
declare void @PyErr_Clear() nounwind
declare i32 @PyErr_ExceptionMatches(ptr) nounwind
declare void @PyErr_Fetch(ptr, ptr, ptr) nounwind
declare void @PyErr_Restore(ptr, ptr, ptr) nounwind
declare void @PyErr_NormalizeException(ptr, ptr, ptr) nounwind
declare i32 @PyException_SetTraceback(ptr, ptr) nounwind
declare ptr @PyEval_SaveThread() nounwind
declare void @PyEval_RestoreThread(ptr) nounwind
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr) nounwind
declare ptr @PyObject_GetItem(ptr, ptr) nounwind
declare ptr @PyObject_GetAttr(ptr, ptr) nounwind
declare i32 @PyObject_IsTrue(ptr) nounwind
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32) nounwind
declare ptr @PyDict_GetItemWithError(ptr, ptr) nounwind
declare ptr @PyDict_New() nounwind
declare i32 @PyDict_SetItem(ptr, ptr, ptr) nounwind
declare ptr @PyList_New(i64) nounwind
declare ptr @PyTuple_New(i64) nounwind
declare ptr @PyCell_Get(ptr) nounwind
declare ptr @PyWeakref_GetObject(ptr) nounwind
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr) nounwind
declare ptr @PyLong_FromLongLong(i64) nounwind
declare ptr @PyThreadState_Get() nounwind
declare ptr @_PyType_Lookup(ptr, ptr) nounwind
declare ptr @_PyObject_MakeTpCall(ptr, ptr, ptr, i64, ptr) nounwind
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr) nounwind
declare ptr @PyArray_Scalar(ptr, ptr, ptr) nounwind
declare i32 @tc_parallel(ptr, ptr, i64, i64) nounwind
declare ptr @llvm.frameaddress.p0(i32)
declare i64 @llvm.abs.i64(i64, i1)
declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
@PyExc_Exception = external global ptr
@PyExc_RecursionError = external global ptr
@PyArray_Type = external global i8

; tc_now is that of this system (system/*_clock.ll).
; Provided by Python: words of other modules that each call reads, and immortal objects.
@generation = external global i64
@departed = external global i64
@listening = external global i64
@switched_off = external global i64
@changes = external global i64
@room = external global [3 x i64]
@debugger = external global i64
@harmless = external global i8
@stance_block = external global i8
@error_state = external global i8
@none = external global i8
@report = external global i8
@check_errors = external global i8
@is_raised = external global i8
@measure_room = external global i8
@yes = external global i8
@empty = external global i8
@new_array = external global ptr

; -- operands and registers -------------------------------------------------------------------------------------------
define internal i64 @word(ptr %pc, i64 %k) alwaysinline nounwind {
  %at = getelementptr i64, ptr %pc, i64 %k
  %value = load i64, ptr %at
  ret i64 %value
}

define internal ptr @pointer(ptr %pc, i64 %k) alwaysinline nounwind {
  %at = getelementptr ptr, ptr %pc, i64 %k
  %value = load ptr, ptr %at
  ret ptr %value
}

; The place of the register that operand k names: plans hold its distance from the frame in bytes.
define internal ptr @register(ptr %frame, ptr %pc, i64 %k) alwaysinline nounwind {
  %offset = call i64 @word(ptr %pc, i64 %k)
  %at = getelementptr i8, ptr %frame, i64 %offset
  ret ptr %at
}

define internal ptr @object(ptr %frame, ptr %pc, i64 %k) alwaysinline nounwind {
  %at = call ptr @register(ptr %frame, ptr %pc, i64 %k)
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal i64 @number(ptr %frame, ptr %pc, i64 %k) alwaysinline nounwind {
  %at = call ptr @register(ptr %frame, ptr %pc, i64 %k)
  %value = load i64, ptr %at
  ret i64 %value
}

define internal ptr @field(ptr %object, i64 %offset) alwaysinline nounwind {
  %at = getelementptr i8, ptr %object, i64 %offset
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal ptr @next(ptr %pc, i64 %count) alwaysinline nounwind {
  %to = getelementptr i64, ptr %pc, i64 %count
  ret ptr %to
}

; Continues if the condition holds; else the call misses this plan, which is a frame's initial outcome.
define internal ptr @next_if(i1 %holds, ptr %pc, i64 %count) alwaysinline nounwind {
  %on = getelementptr i64, ptr %pc, i64 %count
  %to = select i1 %holds, ptr %on, ptr null
  ret ptr %to
}

define internal ptr @end(ptr %frame, i64 %outcome) alwaysinline nounwind {
  %at = getelementptr i64, ptr %frame, i64 $F_OUTCOME
  store i64 %outcome, ptr %at
  ret ptr null
}

define internal void @own(ptr %frame, ptr %object) alwaysinline nounwind {
  %at = getelementptr ptr, ptr %frame, i64 $F_TOP
  %top = load ptr, ptr %at
  store ptr %object, ptr %top
  %next = getelementptr ptr, ptr %top, i64 1
  store ptr %next, ptr %at
  ret void
}

; A new reference into the register of operand 1; null means that the outcome is %raised.
define internal ptr @take(ptr %frame, ptr %pc, ptr %object, i64 %count, i64 %raised) alwaysinline nounwind {
  %there = icmp ne ptr %object, null
  br i1 %there, label %keep, label %fail
keep:
  call void @own(ptr %frame, ptr %object)
  %at = call ptr @register(ptr %frame, ptr %pc, i64 1)
  store ptr %object, ptr %at
  %to = call ptr @next(ptr %pc, i64 %count)
  ret ptr %to
fail:
  %ended = call ptr @end(ptr %frame, i64 %raised)
  ret ptr %ended
}

; The same of a borrowed reference.
define internal ptr @take_borrowed(ptr %frame, ptr %pc, ptr %object, i64 %count) alwaysinline nounwind {
  call void @Py_IncRef(ptr %object)
  %to = call ptr @take(ptr %frame, ptr %pc, ptr %object, i64 %count, i64 $RAISED)
  ret ptr %to
}

; -- loads ------------------------------------------------------------------------------------------------------------
; constant: register, word
define ptr @constant(ptr %frame, ptr %pc) nounwind {
  %at = call ptr @register(ptr %frame, ptr %pc, i64 1)
  %value = call i64 @word(ptr %pc, i64 2)
  store i64 %value, ptr %at
  %to = call ptr @next(ptr %pc, i64 3)
  ret ptr %to
}

; entry_of: register, register of an exact dict, key
define ptr @entry_of(ptr %frame, ptr %pc) nounwind {
  %dict = call ptr @object(ptr %frame, ptr %pc, i64 2)
  %key = call ptr @pointer(ptr %pc, i64 3)
  %found = call ptr @PyDict_GetItemWithError(ptr %dict, ptr %key)
  %there = icmp ne ptr %found, null
  br i1 %there, label %keep, label %gone
keep:
  %to = call ptr @take_borrowed(ptr %frame, ptr %pc, ptr %found, i64 4)
  ret ptr %to
gone:
  %ended = call ptr @end(ptr %frame, i64 $RAISED)
  ret ptr %ended
}

; item: register, register, key
define ptr @item(ptr %frame, ptr %pc) nounwind {
  %base = call ptr @object(ptr %frame, ptr %pc, i64 2)
  %key = call ptr @pointer(ptr %pc, i64 3)
  %found = call ptr @PyObject_GetItem(ptr %base, ptr %key)
  %to = call ptr @take(ptr %frame, ptr %pc, ptr %found, i64 4, i64 $RAISED)
  ret ptr %to
}

; attribute: register, register, name
define ptr @attribute(ptr %frame, ptr %pc) nounwind {
  %base = call ptr @object(ptr %frame, ptr %pc, i64 2)
  %name = call ptr @pointer(ptr %pc, i64 3)
  %found = call ptr @PyObject_GetAttr(ptr %base, ptr %name)
  %to = call ptr @take(ptr %frame, ptr %pc, ptr %found, i64 4, i64 $RAISED)
  ret ptr %to
}

; contents: register, register of a cell
define ptr @contents(ptr %frame, ptr %pc) nounwind {
  %cell = call ptr @object(ptr %frame, ptr %pc, i64 2)
  %found = call ptr @PyCell_Get(ptr %cell)
  %to = call ptr @take(ptr %frame, ptr %pc, ptr %found, i64 3, i64 $RAISED)
  ret ptr %to
}

; held: register, register, offset of a field that holds an object
define ptr @held(ptr %frame, ptr %pc) nounwind {
  %base = call ptr @object(ptr %frame, ptr %pc, i64 2)
  %offset = call i64 @word(ptr %pc, i64 3)
  %found = call ptr @field(ptr %base, i64 %offset)
  %there = icmp ne ptr %found, null
  br i1 %there, label %keep, label %gone
keep:
  %to = call ptr @take_borrowed(ptr %frame, ptr %pc, ptr %found, i64 4)
  ret ptr %to
gone:
  ret ptr null
}

; boxed: register, register of an integer
define ptr @boxed(ptr %frame, ptr %pc) nounwind {
  %value = call i64 @number(ptr %frame, ptr %pc, i64 2)
  %made = call ptr @PyLong_FromLongLong(i64 %value)
  %to = call ptr @take(ptr %frame, ptr %pc, ptr %made, i64 3, i64 $RAISED)
  ret ptr %to
}

; Objects from registers, as arguments of a call, in the words for kernels.
define internal ptr @gather(ptr %frame, ptr %pc, i64 %first, i64 %count) alwaysinline nounwind {
entry:
  %list.at = getelementptr ptr, ptr %frame, i64 $F_WORDS
  %list = load ptr, ptr %list.at
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %k = add i64 %first, %i
  %value = call ptr @object(ptr %frame, ptr %pc, i64 %k)
  %at = getelementptr ptr, ptr %list, i64 %i
  store ptr %value, ptr %at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %loop, label %done
done:
  ret ptr %list
}

; result_of: register, function, count, registers. One that raises misses the plan.
define ptr @result_of(ptr %frame, ptr %pc) nounwind {
  %function = call ptr @pointer(ptr %pc, i64 2)
  %count = call i64 @word(ptr %pc, i64 3)
  %list = call ptr @gather(ptr %frame, ptr %pc, i64 4, i64 %count)
  %made = call ptr @PyObject_Vectorcall(ptr %function, ptr %list, i64 %count, ptr null)
  %length = add i64 %count, 4
  %to = call ptr @take(ptr %frame, ptr %pc, ptr %made, i64 %length, i64 $RAISED)
  ret ptr %to
}

; -- integers ---------------------------------------------------------------------------------------------------------
; dimension: register, register of an array, axis
define ptr @dimension(ptr %frame, ptr %pc) nounwind {
  %array = call ptr @object(ptr %frame, ptr %pc, i64 2)
  %dims = call ptr @field(ptr %array, i64 $ARRAY_DIMS)
  %axis = call i64 @word(ptr %pc, i64 3)
  %size = call i64 @word(ptr %dims, i64 %axis)
  %at = call ptr @register(ptr %frame, ptr %pc, i64 1)
  store i64 %size, ptr %at
  %to = call ptr @next(ptr %pc, i64 4)
  ret ptr %to
}

; stride: register, register of an array, axis
define ptr @stride(ptr %frame, ptr %pc) nounwind {
  %array = call ptr @object(ptr %frame, ptr %pc, i64 2)
  %strides = call ptr @field(ptr %array, i64 $ARRAY_STRIDES)
  %axis = call i64 @word(ptr %pc, i64 3)
  %size = call i64 @word(ptr %strides, i64 %axis)
  %at = call ptr @register(ptr %frame, ptr %pc, i64 1)
  store i64 %size, ptr %at
  %to = call ptr @next(ptr %pc, i64 4)
  ret ptr %to
}

; integer: register, register of an exact int, least, most
define ptr @integer(ptr %frame, ptr %pc) nounwind {
  %beyond = alloca i32
  %object = call ptr @object(ptr %frame, ptr %pc, i64 2)
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %beyond)
  %which = load i32, ptr %beyond
  %inside = icmp eq i32 %which, 0
  %least = call i64 @word(ptr %pc, i64 3)
  %most = call i64 @word(ptr %pc, i64 4)
  %above = icmp sge i64 %value, %least
  %below = icmp sle i64 %value, %most
  %ok.1 = and i1 %above, %below
  %ok = and i1 %ok.1, %inside
  %at = call ptr @register(ptr %frame, ptr %pc, i64 1)
  store i64 %value, ptr %at
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 5)
  ret ptr %to
}

define internal ptr @computed(ptr %frame, ptr %pc, { i64, i1 } %pair) alwaysinline nounwind {
  %value = extractvalue { i64, i1 } %pair, 0
  %lost = extractvalue { i64, i1 } %pair, 1
  %ok = xor i1 %lost, true
  %at = call ptr @register(ptr %frame, ptr %pc, i64 1)
  store i64 %value, ptr %at
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 4)
  ret ptr %to
}

; add, subtract, multiply, floor_divide, remainder: register, register, register. On overflow of 64 bits it misses.
define ptr @add(ptr %frame, ptr %pc) nounwind {
  %a = call i64 @number(ptr %frame, ptr %pc, i64 2)
  %b = call i64 @number(ptr %frame, ptr %pc, i64 3)
  %pair = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %a, i64 %b)
  %to = call ptr @computed(ptr %frame, ptr %pc, { i64, i1 } %pair)
  ret ptr %to
}

define ptr @subtract(ptr %frame, ptr %pc) nounwind {
  %a = call i64 @number(ptr %frame, ptr %pc, i64 2)
  %b = call i64 @number(ptr %frame, ptr %pc, i64 3)
  %pair = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 %a, i64 %b)
  %to = call ptr @computed(ptr %frame, ptr %pc, { i64, i1 } %pair)
  ret ptr %to
}

define ptr @multiply(ptr %frame, ptr %pc) nounwind {
  %a = call i64 @number(ptr %frame, ptr %pc, i64 2)
  %b = call i64 @number(ptr %frame, ptr %pc, i64 3)
  %pair = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %a, i64 %b)
  %to = call ptr @computed(ptr %frame, ptr %pc, { i64, i1 } %pair)
  ret ptr %to
}

; Only by positive numbers: the smallest integer divided by -1 is no integer of 64 bits.
define internal ptr @divide(ptr %frame, ptr %pc, i1 %floor) alwaysinline nounwind {
entry:
  %a = call i64 @number(ptr %frame, ptr %pc, i64 2)
  %b = call i64 @number(ptr %frame, ptr %pc, i64 3)
  %positive = icmp sgt i64 %b, 0
  br i1 %positive, label %go, label %miss
go:
  %q = sdiv i64 %a, %b
  %r = srem i64 %a, %b
  %under = icmp slt i64 %r, 0
  %q.less = sub i64 %q, 1
  %r.more = add i64 %r, %b
  %q.floor = select i1 %under, i64 %q.less, i64 %q
  %r.floor = select i1 %under, i64 %r.more, i64 %r
  %value = select i1 %floor, i64 %q.floor, i64 %r.floor
  %at = call ptr @register(ptr %frame, ptr %pc, i64 1)
  store i64 %value, ptr %at
  %to = call ptr @next(ptr %pc, i64 4)
  ret ptr %to
miss:
  ret ptr null
}

define ptr @floor_divide(ptr %frame, ptr %pc) nounwind {
  %to = call ptr @divide(ptr %frame, ptr %pc, i1 true)
  ret ptr %to
}

define ptr @remainder(ptr %frame, ptr %pc) nounwind {
  %to = call ptr @divide(ptr %frame, ptr %pc, i1 false)
  ret ptr %to
}

; -- guards -----------------------------------------------------------------------------------------------------------
; is, is_not: register, object
define ptr @is(ptr %frame, ptr %pc) nounwind {
  %object = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %wanted = call ptr @pointer(ptr %pc, i64 2)
  %ok = icmp eq ptr %object, %wanted
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 3)
  ret ptr %to
}

define ptr @is_not(ptr %frame, ptr %pc) nounwind {
  %object = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %other = call ptr @pointer(ptr %pc, i64 2)
  %ok = icmp ne ptr %object, %other
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 3)
  ret ptr %to
}

; type_is: register, type
define ptr @type_is(ptr %frame, ptr %pc) nounwind {
  %object = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %type = call ptr @field(ptr %object, i64 $OB_TYPE)
  %wanted = call ptr @pointer(ptr %pc, i64 2)
  %ok = icmp eq ptr %type, %wanted
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 3)
  ret ptr %to
}

; field_is: register, object, offset of a field
define ptr @field_is(ptr %frame, ptr %pc) nounwind {
  %object = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %wanted = call ptr @pointer(ptr %pc, i64 2)
  %offset = call i64 @word(ptr %pc, i64 3)
  %value = call ptr @field(ptr %object, i64 %offset)
  %ok = icmp eq ptr %value, %wanted
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 4)
  ret ptr %to
}

; equals: register, object
define ptr @equals(ptr %frame, ptr %pc) nounwind {
  %object = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %wanted = call ptr @pointer(ptr %pc, i64 2)
  %same = icmp eq ptr %object, %wanted
  br i1 %same, label %on, label %ask
ask:
  %answer = call i32 @PyObject_RichCompareBool(ptr %object, ptr %wanted, i32 2)
  %yes = icmp eq i32 %answer, 1
  br i1 %yes, label %on, label %no
no:
  %raised = icmp slt i32 %answer, 0
  %outcome = select i1 %raised, i64 $RAISED, i64 $MISSED
  %ended = call ptr @end(ptr %frame, i64 %outcome)
  ret ptr %ended
on:
  %to = call ptr @next(ptr %pc, i64 3)
  ret ptr %to
}

; class_holds: class, name, what the classes in its resolution order hold, null for nothing
define ptr @class_holds(ptr %frame, ptr %pc) nounwind {
  %class = call ptr @pointer(ptr %pc, i64 1)
  %name = call ptr @pointer(ptr %pc, i64 2)
  %wanted = call ptr @pointer(ptr %pc, i64 3)
  %found = call ptr @_PyType_Lookup(ptr %class, ptr %name)
  %ok = icmp eq ptr %found, %wanted
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 4)
  ret ptr %to
}

; dict_holds: dict, key, what it holds under that, null for nothing
define ptr @dict_holds(ptr %frame, ptr %pc) nounwind {
  %dict = call ptr @pointer(ptr %pc, i64 1)
  %key = call ptr @pointer(ptr %pc, i64 2)
  %wanted = call ptr @pointer(ptr %pc, i64 3)
  %found = call ptr @PyDict_GetItemWithError(ptr %dict, ptr %key)
  %ok = icmp eq ptr %found, %wanted
  br i1 %ok, label %same, label %no
same:
  %none = icmp eq ptr %found, null
  br i1 %none, label %ask, label %on
ask:
  %occurred = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %occurred, null
  br i1 %raised, label %no, label %on
no:
  %ended = call ptr @end(ptr %frame, i64 $RAISED)
  ret ptr %ended
on:
  %to = call ptr @next(ptr %pc, i64 4)
  ret ptr %to
}

; unchanged: address of a word that changes with a dict, its value, the dict, a number of pairs, (key, object)...
; If the word has changed, each key is looked up; if all objects are the same, the plan stores the new word.
define ptr @unchanged(ptr %frame, ptr %pc) nounwind {
entry:
  %version.at = call ptr @pointer(ptr %pc, i64 1)
  %known = call i64 @word(ptr %pc, i64 2)
  %now = load i64, ptr %version.at
  %count = call i64 @word(ptr %pc, i64 4)
  %pairs = shl i64 %count, 1
  %words = add i64 %pairs, 5
  %to = call ptr @next(ptr %pc, i64 %words)
  %same = icmp eq i64 %known, %now
  br i1 %same, label %on, label %begin
begin:
  %dict = call ptr @pointer(ptr %pc, i64 3)
  br label %more
more:
  %k = phi i64 [ 5, %begin ], [ %k.next, %found ]
  %rest = icmp ult i64 %k, %words
  br i1 %rest, label %look, label %keep
look:
  %key = call ptr @pointer(ptr %pc, i64 %k)
  %found.object = call ptr @PyDict_GetItemWithError(ptr %dict, ptr %key)
  %k.wanted = add i64 %k, 1
  %k.next = add i64 %k, 2
  %wanted = call ptr @pointer(ptr %pc, i64 %k.wanted)
  %is = icmp eq ptr %found.object, %wanted
  br i1 %is, label %found, label %other
found:
  br label %more
keep:
  %known.at = getelementptr i64, ptr %pc, i64 2
  store i64 %now, ptr %known.at
  br label %on
other:
  %ended = call ptr @end(ptr %frame, i64 $RAISED)
  ret ptr %ended
on:
  ret ptr %to
}

; int rebound(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value): called before a watched dict changes.
define i32 @rebound(i32 %event, ptr %dict, ptr %key, ptr %value) nounwind {
  %before = load i64, ptr @changes
  %after = add i64 %before, 1
  store i64 %after, ptr @changes
  ret i32 0
}

; true: register
define ptr @true(ptr %frame, ptr %pc) nounwind {
  %object = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %answer = call i32 @PyObject_IsTrue(ptr %object)
  %yes = icmp eq i32 %answer, 1
  br i1 %yes, label %on, label %no
no:
  %raised = icmp slt i32 %answer, 0
  %outcome = select i1 %raised, i64 $RAISED, i64 $MISSED
  %ended = call ptr @end(ptr %frame, i64 %outcome)
  ret ptr %ended
on:
  %to = call ptr @next(ptr %pc, i64 2)
  ret ptr %to
}

; length_is: register of a list or tuple, length
define ptr @length_is(ptr %frame, ptr %pc) nounwind {
  %object = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %at = getelementptr i8, ptr %object, i64 $OB_SIZE
  %length = load i64, ptr %at
  %wanted = call i64 @word(ptr %pc, i64 2)
  %ok = icmp eq i64 %length, %wanted
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 3)
  ret ptr %to
}

; axes: register of an array, number of axes
define ptr @axes(ptr %frame, ptr %pc) nounwind {
  %array = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %at = getelementptr i8, ptr %array, i64 $ARRAY_NDIM
  %found = load i32, ptr %at
  %wide = sext i32 %found to i64
  %wanted = call i64 @word(ptr %pc, i64 2)
  %ok = icmp eq i64 %wide, %wanted
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 3)
  ret ptr %to
}

; axis_is: register of an array, axis, size
define ptr @axis_is(ptr %frame, ptr %pc) nounwind {
  %array = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %dims = call ptr @field(ptr %array, i64 $ARRAY_DIMS)
  %axis = call i64 @word(ptr %pc, i64 2)
  %size = call i64 @word(ptr %dims, i64 %axis)
  %wanted = call i64 @word(ptr %pc, i64 3)
  %ok = icmp eq i64 %size, %wanted
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 4)
  ret ptr %to
}

; flags: register of an array, mask, what the flags are under it
define ptr @flags(ptr %frame, ptr %pc) nounwind {
  %array = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %at = getelementptr i8, ptr %array, i64 $ARRAY_FLAGS
  %found = load i32, ptr %at
  %wide = zext i32 %found to i64
  %mask = call i64 @word(ptr %pc, i64 2)
  %wanted = call i64 @word(ptr %pc, i64 3)
  %set = and i64 %wide, %mask
  %ok = icmp eq i64 %set, %wanted
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 4)
  ret ptr %to
}

; ranked: register of an array, bytes of an element, count of axes, the rank of each, the axes innermost first. Holds
; where `layout_of` gives these ranks and memory that is not dense.
define ptr @ranked(ptr %frame, ptr %pc) nounwind {
entry:
  %array = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %itemsize = call i64 @word(ptr %pc, i64 2)
  %count = call i64 @word(ptr %pc, i64 3)
  %ranks = call ptr @next(ptr %pc, i64 4)
  %inner = getelementptr i64, ptr %ranks, i64 %count
  %dims = call ptr @field(ptr %array, i64 $ARRAY_DIMS)
  %strides = call ptr @field(ptr %array, i64 $ARRAY_STRIDES)
  %flags.at = getelementptr i8, ptr %array, i64 $ARRAY_FLAGS
  %flags = load i32, ptr %flags.at
  %c.order = and i32 %flags, 1
  %other = icmp eq i32 %c.order, 0
  br i1 %other, label %axis, label %miss
axis:
  %i = phi i64 [ 0, %entry ], [ %i.next, %axis.next ]
  %i.more = icmp slt i64 %i, %count
  br i1 %i.more, label %axis.one, label %dense
axis.one:
  %i.size = call i64 @word(ptr %dims, i64 %i)
  %i.counts = icmp ne i64 %i.size, 1
  br i1 %i.counts, label %axis.zero, label %axis.next
axis.zero:
  %i.stride = call i64 @word(ptr %strides, i64 %i)
  %i.distance = call i64 @llvm.abs.i64(i64 %i.stride, i1 false)
  %i.rank = call i64 @word(ptr %ranks, i64 %i)
  %i.still = icmp eq i64 %i.distance, 0
  %i.wanted = icmp eq i64 %i.rank, 0
  %i.ok = icmp eq i1 %i.still, %i.wanted
  br i1 %i.ok, label %pair, label %miss
pair:
  %j = phi i64 [ 0, %axis.zero ], [ %j.next, %pair.next ]
  %j.more = icmp slt i64 %j, %i
  br i1 %j.more, label %pair.one, label %axis.next
pair.one:
  %j.size = call i64 @word(ptr %dims, i64 %j)
  %j.counts = icmp ne i64 %j.size, 1
  br i1 %j.counts, label %pair.order, label %pair.next
pair.order:
  %j.stride = call i64 @word(ptr %strides, i64 %j)
  %j.distance = call i64 @llvm.abs.i64(i64 %j.stride, i1 false)
  %j.rank = call i64 @word(ptr %ranks, i64 %j)
  %less = icmp ult i64 %j.distance, %i.distance
  %less.wanted = icmp ult i64 %j.rank, %i.rank
  %more = icmp ugt i64 %j.distance, %i.distance
  %more.wanted = icmp ugt i64 %j.rank, %i.rank
  %less.ok = icmp eq i1 %less, %less.wanted
  %more.ok = icmp eq i1 %more, %more.wanted
  %j.ok = and i1 %less.ok, %more.ok
  br i1 %j.ok, label %pair.next, label %miss
pair.next:
  %j.next = add i64 %j, 1
  br label %pair
axis.next:
  %i.next = add i64 %i, 1
  br label %axis
dense:
  %k = phi i64 [ 0, %axis ], [ %k.next, %dense.next ]
  %step = phi i64 [ %itemsize, %axis ], [ %step.next, %dense.next ]
  %k.more = icmp slt i64 %k, %count
  br i1 %k.more, label %dense.one, label %miss
dense.one:
  %k.axis = call i64 @word(ptr %inner, i64 %k)
  %k.stride = call i64 @word(ptr %strides, i64 %k.axis)
  %k.size = call i64 @word(ptr %dims, i64 %k.axis)
  %k.negative = icmp slt i64 %k.stride, 0
  br i1 %k.negative, label %on, label %dense.size
dense.size:
  %k.counts = icmp ne i64 %k.size, 1
  %k.fits = icmp eq i64 %k.stride, %step
  %k.gap = xor i1 %k.fits, true
  %k.apart = and i1 %k.counts, %k.gap
  br i1 %k.apart, label %on, label %dense.next
dense.next:
  %step.next = mul i64 %step, %k.size
  %k.next = add i64 %k, 1
  br label %dense
on:
  %words = mul i64 %count, 2
  %length = add i64 %words, 4
  %to = call ptr @next(ptr %pc, i64 %length)
  ret ptr %to
miss:
  ret ptr null
}

; Where an array's elements lie: the address of the first byte, and the one after the last.
define internal { i64, i64 } @stretch(ptr %array, i64 %itemsize) noinline nounwind {
entry:
  %dims = call ptr @field(ptr %array, i64 $ARRAY_DIMS)
  %strides = call ptr @field(ptr %array, i64 $ARRAY_STRIDES)
  %data.at = getelementptr i8, ptr %array, i64 $ARRAY_DATA
  %data = load i64, ptr %data.at
  %count.at = getelementptr i8, ptr %array, i64 $ARRAY_NDIM
  %count.narrow = load i32, ptr %count.at
  %count = sext i32 %count.narrow to i64
  %after = add i64 %data, %itemsize
  br label %axis
axis:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  %first = phi i64 [ %data, %entry ], [ %first.next, %one ]
  %end = phi i64 [ %after, %entry ], [ %end.next, %one ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %done
one:
  %size = call i64 @word(ptr %dims, i64 %i)
  %stride = call i64 @word(ptr %strides, i64 %i)
  %steps = sub i64 %size, 1
  %reach = mul i64 %steps, %stride
  %down = icmp slt i64 %reach, 0
  %below = select i1 %down, i64 %reach, i64 0
  %above = select i1 %down, i64 0, i64 %reach
  %first.next = add i64 %first, %below
  %end.next = add i64 %end, %above
  %i.next = add i64 %i, 1
  br label %axis
done:
  %part = insertvalue { i64, i64 } poison, i64 %first, 0
  %both = insertvalue { i64, i64 } %part, i64 %end, 1
  ret { i64, i64 } %both
}

; apart: registers of two arrays with elements, bytes of an element of each, words to skip where the stretches of memory
; in which they lie have nothing in common: the following operations check the others
define ptr @apart(ptr %frame, ptr %pc) nounwind {
  %one = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %other = call ptr @object(ptr %frame, ptr %pc, i64 2)
  %one.bytes = call i64 @word(ptr %pc, i64 3)
  %other.bytes = call i64 @word(ptr %pc, i64 4)
  %skipped = call i64 @word(ptr %pc, i64 5)
  %a = call { i64, i64 } @stretch(ptr %one, i64 %one.bytes)
  %b = call { i64, i64 } @stretch(ptr %other, i64 %other.bytes)
  %a.first = extractvalue { i64, i64 } %a, 0
  %a.end = extractvalue { i64, i64 } %a, 1
  %b.first = extractvalue { i64, i64 } %b, 0
  %b.end = extractvalue { i64, i64 } %b, 1
  %before = icmp ule i64 %a.end, %b.first
  %after = icmp ule i64 %b.end, %a.first
  %apart = or i1 %before, %after
  %length = select i1 %apart, i64 %skipped, i64 0
  %on = add i64 %length, 6
  %to = call ptr @next(ptr %pc, i64 %on)
  ret ptr %to
}

; float_is: register of an exact float, the double (equal, so that -0.0 is 0.0 and NaN is nothing)
define ptr @float_is(ptr %frame, ptr %pc) nounwind {
  %object = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %at = getelementptr i8, ptr %object, i64 $FLOAT_VALUE
  %value = load double, ptr %at
  %wanted.at = call ptr @next(ptr %pc, i64 2)
  %wanted = load double, ptr %wanted.at
  %ok = fcmp oeq double %value, %wanted
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 3)
  ret ptr %to
}

; less, less_equal, equal, not_equal: register of an integer, register of an integer
define ptr @less(ptr %frame, ptr %pc) nounwind {
  %a = call i64 @number(ptr %frame, ptr %pc, i64 1)
  %b = call i64 @number(ptr %frame, ptr %pc, i64 2)
  %ok = icmp slt i64 %a, %b
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 3)
  ret ptr %to
}

define ptr @less_equal(ptr %frame, ptr %pc) nounwind {
  %a = call i64 @number(ptr %frame, ptr %pc, i64 1)
  %b = call i64 @number(ptr %frame, ptr %pc, i64 2)
  %ok = icmp sle i64 %a, %b
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 3)
  ret ptr %to
}

define ptr @equal(ptr %frame, ptr %pc) nounwind {
  %a = call i64 @number(ptr %frame, ptr %pc, i64 1)
  %b = call i64 @number(ptr %frame, ptr %pc, i64 2)
  %ok = icmp eq i64 %a, %b
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 3)
  ret ptr %to
}

define ptr @not_equal(ptr %frame, ptr %pc) nounwind {
  %a = call i64 @number(ptr %frame, ptr %pc, i64 1)
  %b = call i64 @number(ptr %frame, ptr %pc, i64 2)
  %ok = icmp ne i64 %a, %b
  %to = call ptr @next_if(i1 %ok, ptr %pc, i64 3)
  ret ptr %to
}

; -- graphs -----------------------------------------------------------------------------------------------------------
; errors: if NumPy's error state has changed since the last check, Python checks it, and raises if the call must miss.
define ptr @errors(ptr %frame, ptr %pc) nounwind {
  %found.at = alloca ptr
  %bad = call i32 @PyContextVar_Get(ptr @error_state, ptr null, ptr %found.at)
  %raised = icmp ne i32 %bad, 0
  br i1 %raised, label %fail, label %look
look:
  %found = load ptr, ptr %found.at
  %there = icmp ne ptr %found, null
  br i1 %there, label %compare, label %ask
compare:
  %items = call ptr @field(ptr @harmless, i64 $LIST_ITEMS)
  %known = load ptr, ptr %items
  %same = icmp eq ptr %found, %known
  call void @Py_DecRef(ptr %found)
  br i1 %same, label %on, label %ask
ask:
  %answer = call ptr @PyObject_Vectorcall(ptr @check_errors, ptr null, i64 0, ptr null)
  %refused = icmp eq ptr %answer, null
  br i1 %refused, label %fail, label %accepted
accepted:
  call void @Py_DecRef(ptr %answer)
  br label %on
on:
  %to = call ptr @next(ptr %pc, i64 1)
  ret ptr %to
fail:
  %ended = call ptr @end(ptr %frame, i64 $FAILED)
  ret ptr %ended
}

; What only Python allocates: empty(shape, dtype, order).
define internal ptr @empty_array(ptr %sizes, i64 %count, ptr %dtype, ptr %order) noinline nounwind {
entry:
  %list = alloca [3 x ptr]
  %shape = call ptr @PyTuple_New(i64 %count)
  %none = icmp eq ptr %shape, null
  br i1 %none, label %fail, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %call
one:
  %size = call i64 @word(ptr %sizes, i64 %i)
  %number = call ptr @PyLong_FromLongLong(i64 %size)
  %no.number = icmp eq ptr %number, null
  br i1 %no.number, label %drop, label %next
next:
  %items = getelementptr i8, ptr %shape, i64 $TUPLE_ITEMS
  %item.at = getelementptr ptr, ptr %items, i64 %i
  store ptr %number, ptr %item.at
  %i.next = add i64 %i, 1
  br label %loop
call:
  store ptr %shape, ptr %list
  %dtype.at = getelementptr ptr, ptr %list, i64 1
  store ptr %dtype, ptr %dtype.at
  %order.at = getelementptr ptr, ptr %list, i64 2
  store ptr %order, ptr %order.at
  %made = call ptr @PyObject_Vectorcall(ptr @empty, ptr %list, i64 3, ptr null)
  call void @Py_DecRef(ptr %shape)
  ret ptr %made
drop:
  call void @Py_DecRef(ptr %shape)
  br label %fail
fail:
  ret ptr null
}

; allocate: register, dtype, bytes of an element, flags (1: Fortran order, 2: by Python), order, count, registers of the
; sizes. Arrays of $POOLED bytes and more come from the pool; the very first, and those that the pool refuses, from Python.
define ptr @allocate(ptr %frame, ptr %pc) nounwind {
entry:
  %dtype = call ptr @pointer(ptr %pc, i64 2)
  %itemsize = call i64 @word(ptr %pc, i64 3)
  %flags = call i64 @word(ptr %pc, i64 4)
  %count = call i64 @word(ptr %pc, i64 6)
  %sizes = call ptr @gather(ptr %frame, ptr %pc, i64 7, i64 %count)
  %length = add i64 %count, 7
  %elsewhere = icmp sge i64 %flags, 2
  br i1 %elsewhere, label %python, label %start
start:
  %fortran = trunc i64 %flags to i32
  %none = icmp eq i64 %count, 0
  br i1 %none, label %make, label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %further ]
  %bytes = phi i64 [ %itemsize, %start ], [ %product, %further ]
  %size = call i64 @word(ptr %sizes, i64 %i)
  %pair = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %bytes, i64 %size)
  %product = extractvalue { i64, i1 } %pair, 0
  %lost = extractvalue { i64, i1 } %pair, 1
  %negative = icmp slt i64 %size, 0
  %other = or i1 %negative, %lost
  br i1 %other, label %python, label %further
further:
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %loop, label %sized
sized:
  %large = icmp sge i64 %product, $POOLED
  br i1 %large, label %pool, label %make
pool:
  %new = load ptr, ptr @new_array
  %no.pool = icmp eq ptr %new, null
  br i1 %no.pool, label %python, label %ask
ask:
  %order.flag = shl i32 %fortran, 1
  %given = call ptr %new(ptr %dtype, i64 %product, i64 %count, ptr %sizes, ptr null, i32 %order.flag)
  %refused = icmp eq ptr %given, null
  br i1 %refused, label %python, label %take
take:
  %after = call ptr @take(ptr %frame, ptr %pc, ptr %given, i64 %length, i64 $FAILED)
  ret ptr %after
make:
  call void @Py_IncRef(ptr %dtype)
  %nd = trunc i64 %count to i32
  %made = call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr %dtype, i32 %nd, ptr %sizes, ptr null, ptr null,
                                         i32 %fortran, ptr null)
  %to = call ptr @take(ptr %frame, ptr %pc, ptr %made, i64 %length, i64 $FAILED)
  ret ptr %to
python:
  %order = call ptr @pointer(ptr %pc, i64 5)
  %pooled = call ptr @empty_array(ptr %sizes, i64 %count, ptr %dtype, ptr %order)
  %on = call ptr @take(ptr %frame, ptr %pc, ptr %pooled, i64 %length, i64 $FAILED)
  ret ptr %on
}

; Appends a word for the next kernel.
define internal void @push(ptr %frame, i64 %value) alwaysinline nounwind {
  %at = getelementptr ptr, ptr %frame, i64 $F_LAST
  %last = load ptr, ptr %at
  store i64 %value, ptr %last
  %next = getelementptr i64, ptr %last, i64 1
  store ptr %next, ptr %at
  ret void
}

; give_data: register of an array, count of strides to give after its address
define ptr @give_data(ptr %frame, ptr %pc) nounwind {
entry:
  %array = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %count = call i64 @word(ptr %pc, i64 2)
  %data = call ptr @field(ptr %array, i64 $ARRAY_DATA)
  %data.word = ptrtoint ptr %data to i64
  call void @push(ptr %frame, i64 %data.word)
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %start
start:
  %strides = call ptr @field(ptr %array, i64 $ARRAY_STRIDES)
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %loop ]
  %stride = call i64 @word(ptr %strides, i64 %i)
  call void @push(ptr %frame, i64 %stride)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %loop, label %done
done:
  %to = call ptr @next(ptr %pc, i64 3)
  ret ptr %to
}

; give_inside: register, offset: the address of something inside an object (the value of a NumPy scalar)
define ptr @give_inside(ptr %frame, ptr %pc) nounwind {
  %object = call i64 @number(ptr %frame, ptr %pc, i64 1)
  %offset = call i64 @word(ptr %pc, i64 2)
  %at = add i64 %object, %offset
  call void @push(ptr %frame, i64 %at)
  %to = call ptr @next(ptr %pc, i64 3)
  ret ptr %to
}

; give_value: register of an exact float: its double
define ptr @give_value(ptr %frame, ptr %pc) nounwind {
  %object = call ptr @object(ptr %frame, ptr %pc, i64 1)
  %at = getelementptr i8, ptr %object, i64 $FLOAT_VALUE
  %value = load i64, ptr %at
  call void @push(ptr %frame, i64 %value)
  %to = call ptr @next(ptr %pc, i64 2)
  ret ptr %to
}

; give: register of an integer
define ptr @give(ptr %frame, ptr %pc) nounwind {
  %value = call i64 @number(ptr %frame, ptr %pc, i64 1)
  call void @push(ptr %frame, i64 %value)
  %to = call ptr @next(ptr %pc, i64 2)
  ret ptr %to
}

; launch: kernel, register of the number of items, register of the grain
define ptr @launch(ptr %frame, ptr %pc) nounwind {
  %kernel = call ptr @pointer(ptr %pc, i64 1)
  %items = call i64 @number(ptr %frame, ptr %pc, i64 2)
  %grain = call i64 @number(ptr %frame, ptr %pc, i64 3)
  %words.at = getelementptr ptr, ptr %frame, i64 $F_WORDS
  %words = load ptr, ptr %words.at
  %last.at = getelementptr ptr, ptr %frame, i64 $F_LAST
  store ptr %words, ptr %last.at
  %has.items = icmp sge i64 %items, 0
  %some = icmp sge i64 %grain, 1
  %whole = icmp sle i64 %items, %grain
  %has.grain = or i1 %some, %whole
  %fits = and i1 %has.items, %has.grain
  br i1 %fits, label %go, label %fail
go:
  %small = icmp sle i64 %items, %grain
  br i1 %small, label %one, label %many
one:
  %status.one = call i32 %kernel(ptr %words, i64 0, i64 %items)
  br label %done
many:
  %thread = call ptr @PyEval_SaveThread()
  %status.many = call i32 @tc_parallel(ptr %kernel, ptr %words, i64 %items, i64 %grain)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done
done:
  %status = phi i32 [ %status.one, %one ], [ %status.many, %many ]
  %at = getelementptr i64, ptr %frame, i64 $F_STATUS
  %before = load i64, ptr %at
  %wide = zext i32 %status to i64
  %all = or i64 %before, %wide
  store i64 %all, ptr %at
  %to = call ptr @next(ptr %pc, i64 4)
  ret ptr %to
fail:
  %ended = call ptr @end(ptr %frame, i64 $FAILED)
  ret ptr %ended
}

; status: Python handles the kernels' status: NumPy's warnings. It raises if plain Python must run the call again.
define ptr @status(ptr %frame, ptr %pc) nounwind {
  %at = getelementptr i64, ptr %frame, i64 $F_STATUS
  %status = load i64, ptr %at
  %quiet = icmp eq i64 %status, 0
  br i1 %quiet, label %on, label %tell
tell:
  %argument = alloca ptr
  %number = call ptr @PyLong_FromLongLong(i64 %status)
  store ptr %number, ptr %argument
  %no.number = icmp eq ptr %number, null
  br i1 %no.number, label %fail, label %say
say:
  %answer = call ptr @PyObject_Vectorcall(ptr @report, ptr %argument, i64 1, ptr null)
  call void @Py_DecRef(ptr %number)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %fail, label %said
said:
  call void @Py_DecRef(ptr %answer)
  br label %on
on:
  %to = call ptr @next(ptr %pc, i64 1)
  ret ptr %to
fail:
  %ended = call ptr @end(ptr %frame, i64 $FAILED)
  ret ptr %ended
}

; undoing: function, count, registers. As status, for kernels that have written to the caller's arrays: the function takes
; the status, and the registers but the first one.
define ptr @undoing(ptr %frame, ptr %pc) nounwind {
  %at = getelementptr i64, ptr %frame, i64 $F_STATUS
  %status = load i64, ptr %at
  %count = call i64 @word(ptr %pc, i64 2)
  %quiet = icmp eq i64 %status, 0
  br i1 %quiet, label %on, label %tell
tell:
  %function = call ptr @pointer(ptr %pc, i64 1)
  %list = call ptr @gather(ptr %frame, ptr %pc, i64 3, i64 %count)
  %number = call ptr @PyLong_FromLongLong(i64 %status)
  store ptr %number, ptr %list
  %no.number = icmp eq ptr %number, null
  br i1 %no.number, label %fail, label %say
say:
  %answer = call ptr @PyObject_Vectorcall(ptr %function, ptr %list, i64 %count, ptr null)
  call void @Py_DecRef(ptr %number)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %fail, label %said
said:
  call void @Py_DecRef(ptr %answer)
  br label %on
on:
  %length = add i64 %count, 3
  %to = call ptr @next(ptr %pc, i64 %length)
  ret ptr %to
fail:
  %ended = call ptr @end(ptr %frame, i64 $FAILED)
  ret ptr %ended
}

; scalar: register, register of an array without axes: its element as a NumPy scalar
define ptr @scalar(ptr %frame, ptr %pc) nounwind {
  %array = call ptr @object(ptr %frame, ptr %pc, i64 2)
  %data = call ptr @field(ptr %array, i64 $ARRAY_DATA)
  %dtype = call ptr @field(ptr %array, i64 $ARRAY_DTYPE)
  %made = call ptr @PyArray_Scalar(ptr %data, ptr %dtype, ptr %array)
  %to = call ptr @take(ptr %frame, ptr %pc, ptr %made, i64 3, i64 $FAILED)
  ret ptr %to
}

; -- results ----------------------------------------------------------------------------------------------------------
; Fills the new list or tuple, whose items lie at %items.
define internal void @fill(ptr %frame, ptr %pc, ptr %items, i64 %count) alwaysinline nounwind {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %k = add i64 %i, 3
  %value = call ptr @object(ptr %frame, ptr %pc, i64 %k)
  call void @Py_IncRef(ptr %value)
  %at = getelementptr ptr, ptr %items, i64 %i
  store ptr %value, ptr %at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; tuple, list: register, count, registers
define ptr @tuple(ptr %frame, ptr %pc) nounwind {
  %count = call i64 @word(ptr %pc, i64 2)
  %made = call ptr @PyTuple_New(i64 %count)
  %none = icmp eq ptr %made, null
  br i1 %none, label %fail, label %go
go:
  %items = getelementptr i8, ptr %made, i64 $TUPLE_ITEMS
  call void @fill(ptr %frame, ptr %pc, ptr %items, i64 %count)
  %length = add i64 %count, 3
  %to = call ptr @take(ptr %frame, ptr %pc, ptr %made, i64 %length, i64 $FAILED)
  ret ptr %to
fail:
  %ended = call ptr @end(ptr %frame, i64 $FAILED)
  ret ptr %ended
}

define ptr @list(ptr %frame, ptr %pc) nounwind {
  %count = call i64 @word(ptr %pc, i64 2)
  %made = call ptr @PyList_New(i64 %count)
  %none = icmp eq ptr %made, null
  br i1 %none, label %fail, label %go
go:
  %items = call ptr @field(ptr %made, i64 $LIST_ITEMS)
  call void @fill(ptr %frame, ptr %pc, ptr %items, i64 %count)
  %length = add i64 %count, 3
  %to = call ptr @take(ptr %frame, ptr %pc, ptr %made, i64 %length, i64 $FAILED)
  ret ptr %to
fail:
  %ended = call ptr @end(ptr %frame, i64 $FAILED)
  ret ptr %ended
}

; dict: register, count of pairs, registers of a key and a value in turn
define ptr @dict(ptr %frame, ptr %pc) nounwind {
entry:
  %count = call i64 @word(ptr %pc, i64 2)
  %words = mul i64 %count, 2
  %length = add i64 %words, 3
  %made = call ptr @PyDict_New()
  %none = icmp eq ptr %made, null
  br i1 %none, label %fail, label %start
start:
  call void @own(ptr %frame, ptr %made)
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %done, label %loop
loop:
  %k = phi i64 [ 3, %start ], [ %k.next, %stored ]
  %key = call ptr @object(ptr %frame, ptr %pc, i64 %k)
  %k.value = add i64 %k, 1
  %value = call ptr @object(ptr %frame, ptr %pc, i64 %k.value)
  %bad = call i32 @PyDict_SetItem(ptr %made, ptr %key, ptr %value)
  %raised = icmp ne i32 %bad, 0
  br i1 %raised, label %fail, label %stored
stored:
  %k.next = add i64 %k, 2
  %more = icmp slt i64 %k.next, %length
  br i1 %more, label %loop, label %done
done:
  %at = call ptr @register(ptr %frame, ptr %pc, i64 1)
  store ptr %made, ptr %at
  %to = call ptr @next(ptr %pc, i64 %length)
  ret ptr %to
fail:
  %ended = call ptr @end(ptr %frame, i64 $FAILED)
  ret ptr %ended
}

; give_back: register. The end of a plan: the result of the call.
define ptr @give_back(ptr %frame, ptr %pc) nounwind {
  %object = call ptr @object(ptr %frame, ptr %pc, i64 1)
  call void @Py_IncRef(ptr %object)
  %at = getelementptr ptr, ptr %frame, i64 $F_RESULT
  store ptr %object, ptr %at
  %ended = call ptr @end(ptr %frame, i64 $RETURNED)
  ret ptr %ended
}

; body: function, count, registers. The end of a plan: Python makes the result of what was loaded and computed.
define ptr @body(ptr %frame, ptr %pc) nounwind {
  %function = call ptr @pointer(ptr %pc, i64 1)
  %count = call i64 @word(ptr %pc, i64 2)
  %list = call ptr @gather(ptr %frame, ptr %pc, i64 3, i64 %count)
  %made = call ptr @PyObject_Vectorcall(ptr %function, ptr %list, i64 %count, ptr null)
  %at = getelementptr ptr, ptr %frame, i64 $F_RESULT
  store ptr %made, ptr %at
  %raised = icmp eq ptr %made, null
  %outcome = select i1 %raised, i64 $FAILED, i64 $RETURNED
  %ended = call ptr @end(ptr %frame, i64 %outcome)
  ret ptr %ended
}

; plain: the end of a plan: the guards hold, and the function itself is to run.
define ptr @plain(ptr %frame, ptr %pc) nounwind {
  %ended = call ptr @end(ptr %frame, i64 $PLAIN)
  ret ptr %ended
}

; resting: limit and patience in nanoseconds, a word that is not 0 where functions may not rest, the excess so far, and
; whether a call is in progress. The end of a plan: plain Python runs the function. Once calls have exceeded the limit by
; more than the patience in all, it misses.
define ptr @resting(ptr %frame, ptr %pc) nounwind {
  %patience = call i64 @word(ptr %pc, i64 2)
  %off.at = call ptr @pointer(ptr %pc, i64 3)
  %off = load volatile i64, ptr %off.at
  %excess = call i64 @word(ptr %pc, i64 4)
  %patient = icmp sle i64 %excess, %patience
  %on = icmp eq i64 %off, 0
  %rests = and i1 %patient, %on
  br i1 %rests, label %keep, label %end
keep:
  %at = getelementptr ptr, ptr %frame, i64 $F_RESULT
  store ptr %pc, ptr %at
  %ended = call ptr @end(ptr %frame, i64 $RESTS)
  ret ptr %ended
end:
  ret ptr null
}

; -- the call ---------------------------------------------------------------------------------------------------------
; Releases the frame's references. This may run any code.
define internal void @release(ptr %frame, ptr %first) nounwind {
entry:
  %at = getelementptr ptr, ptr %frame, i64 $F_TOP
  %top = load ptr, ptr %at
  %none = icmp eq ptr %top, %first
  br i1 %none, label %done, label %loop
loop:
  %p = phi ptr [ %top, %entry ], [ %p.next, %loop ]
  %p.next = getelementptr ptr, ptr %p, i64 -1
  %object = load ptr, ptr %p.next
  call void @Py_DecRef(ptr %object)
  %more = icmp ne ptr %p.next, %first
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Calls the __call__ of the object's class, in Python.
define internal ptr @slow(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames) alwaysinline nounwind {
  %nargs = and i64 %nargsf, 9223372036854775807
  %thread = call ptr @PyThreadState_Get()
  %result = call ptr @_PyObject_MakeTpCall(ptr %thread, ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %result
}

; Fills the registers without positional arguments with keywords and defaults. False: Python binds the arguments.
define internal i1 @bind(ptr %table, ptr %parameters, i64 %nargs, ptr %args, ptr %kwnames, ptr %frame) noinline nounwind {
entry:
  %count = call i64 @word(ptr %table, i64 $T_COUNT)
  %positional = call i64 @word(ptr %table, i64 $T_POSITIONAL)
  %only = call i64 @word(ptr %table, i64 $T_ONLY)
  %cells = call i64 @word(ptr %table, i64 $T_CELLS)
  %names.first = add i64 %cells, $T_LISTS
  %names = getelementptr ptr, ptr %table, i64 %names.first
  %function = call ptr @pointer(ptr %table, i64 $T_FUNCTION)
  br label %clear
clear:
  %c = phi i64 [ %nargs, %entry ], [ %c.next, %clear.one ]
  %c.more = icmp slt i64 %c, %count
  br i1 %c.more, label %clear.one, label %keywords
clear.one:
  %c.at = getelementptr ptr, ptr %parameters, i64 %c
  store ptr null, ptr %c.at
  %c.next = add i64 %c, 1
  br label %clear

keywords:
  %has.names = icmp ne ptr %kwnames, null
  br i1 %has.names, label %keywords.count, label %defaults
keywords.count:
  %k.size.at = getelementptr i8, ptr %kwnames, i64 $OB_SIZE
  %k.count = load i64, ptr %k.size.at
  br label %keyword
keyword:
  %k = phi i64 [ 0, %keywords.count ], [ %k.next, %bound ]
  %k.more = icmp slt i64 %k, %k.count
  br i1 %k.more, label %keyword.name, label %defaults
keyword.name:
  %k.items = getelementptr i8, ptr %kwnames, i64 $TUPLE_ITEMS
  %name = call ptr @pointer(ptr %k.items, i64 %k)
  br label %search
search:
  %s = phi i64 [ %only, %keyword.name ], [ %s.next, %search.on ]
  %s.more = icmp slt i64 %s, %count
  br i1 %s.more, label %search.one, label %no
search.one:
  %s.name = call ptr @pointer(ptr %names, i64 %s)
  %s.same = icmp eq ptr %s.name, %name
  br i1 %s.same, label %named, label %search.on
search.on:
  %s.next = add i64 %s, 1
  br label %search
named:
  %n.at = getelementptr ptr, ptr %parameters, i64 %s
  %n.before = load ptr, ptr %n.at
  %n.free = icmp eq ptr %n.before, null
  br i1 %n.free, label %bound, label %no
bound:
  %a.at = add i64 %nargs, %k
  %a = call ptr @pointer(ptr %args, i64 %a.at)
  store ptr %a, ptr %n.at
  %k.next = add i64 %k, 1
  br label %keyword

defaults:
  %d.tuple = call ptr @field(ptr %function, i64 $FUNCTION_DEFAULTS)
  %d.dict = call ptr @field(ptr %function, i64 $FUNCTION_KWDEFAULTS)
  %d.none = icmp eq ptr %d.tuple, null
  br i1 %d.none, label %default.start, label %default.size
default.size:
  %d.size.at = getelementptr i8, ptr %d.tuple, i64 $OB_SIZE
  %d.size.read = load i64, ptr %d.size.at
  br label %default.start
default.start:
  %d.size = phi i64 [ 0, %defaults ], [ %d.size.read, %default.size ]
  %d.first = sub i64 %positional, %d.size
  %d.fits = icmp sge i64 %d.first, 0
  br i1 %d.fits, label %default, label %no
default:
  %d = phi i64 [ %nargs, %default.start ], [ %d.next, %default.on ]
  %d.more = icmp slt i64 %d, %count
  br i1 %d.more, label %default.one, label %yes
default.one:
  %d.at = getelementptr ptr, ptr %parameters, i64 %d
  %d.value = load ptr, ptr %d.at
  %d.open = icmp eq ptr %d.value, null
  br i1 %d.open, label %default.which, label %default.on
default.which:
  %d.by.place = icmp slt i64 %d, %positional
  br i1 %d.by.place, label %default.place, label %default.name
default.place:
  %d.index = sub i64 %d, %d.first
  %d.there = icmp sge i64 %d.index, 0
  br i1 %d.there, label %default.item, label %no
default.item:
  %d.items = getelementptr i8, ptr %d.tuple, i64 $TUPLE_ITEMS
  %d.item = call ptr @pointer(ptr %d.items, i64 %d.index)
  br label %default.take
default.name:
  %d.no.dict = icmp eq ptr %d.dict, null
  br i1 %d.no.dict, label %no, label %default.ask
default.ask:
  %d.key = call ptr @pointer(ptr %names, i64 %d)
  %d.found = call ptr @PyDict_GetItemWithError(ptr %d.dict, ptr %d.key)
  %d.missing = icmp eq ptr %d.found, null
  br i1 %d.missing, label %clear.error, label %default.take
default.take:
  %d.default = phi ptr [ %d.item, %default.item ], [ %d.found, %default.ask ]
  call void @Py_IncRef(ptr %d.default)
  call void @own(ptr %frame, ptr %d.default)
  store ptr %d.default, ptr %d.at
  br label %default.on
default.on:
  %d.next = add i64 %d, 1
  br label %default
clear.error:
  call void @PyErr_Clear()
  br label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether the current exception is the caller's: Ctrl-C, or an exception of a signal handler. Else the exception is
; cleared, and Python runs the call.
define private i1 @is_callers() noinline nounwind {
  %kind.at = alloca ptr
  %value.at = alloca ptr
  %traceback.at = alloca ptr
  %occurred = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %occurred, null
  br i1 %none, label %no, label %raised
raised:
  %exception = load ptr, ptr @PyExc_Exception
  %is.exception = call i32 @PyErr_ExceptionMatches(ptr %exception)
  %is.other = icmp eq i32 %is.exception, 0
  br i1 %is.other, label %callers, label %look
look:
  call void @PyErr_Fetch(ptr %kind.at, ptr %value.at, ptr %traceback.at)
  call void @PyErr_NormalizeException(ptr %kind.at, ptr %value.at, ptr %traceback.at)
  %kind = load ptr, ptr %kind.at
  %value = load ptr, ptr %value.at
  %traceback = load ptr, ptr %traceback.at
  %is.traced = icmp ne ptr %traceback, null
  br i1 %is.traced, label %trace, label %ask
trace:
  %set = call i32 @PyException_SetTraceback(ptr %value, ptr %traceback)
  br label %ask
ask:
  %answer = call ptr @PyObject_Vectorcall(ptr @is_raised, ptr %value.at, i64 1, ptr null)
  %is.answer = icmp ne ptr %answer, null
  br i1 %is.answer, label %drop, label %put.back
drop:
  call void @Py_DecRef(ptr %answer)
  br label %put.back
put.back:
  %theirs = icmp eq ptr %answer, @yes
  call void @PyErr_Restore(ptr %kind, ptr %value, ptr %traceback)
  br i1 %theirs, label %callers, label %forget
forget:
  call void @PyErr_Clear()
  br label %no
callers:
  ret i1 true
no:
  ret i1 false
}

; -- the stack ----------------------------------------------------------------------------------------------------------
define internal i1 @is_inside(i64 %here) alwaysinline nounwind {
  %highest.at = getelementptr i64, ptr @room, i64 1
  %lowest = load volatile i64, ptr @room
  %highest = load volatile i64, ptr %highest.at
  %above = icmp uge i64 %here, %lowest
  %below = icmp ule i64 %here, %highest
  %inside = and i1 %above, %below
  ret i1 %inside
}

; Whether there is stack left at an address outside the known bounds: another thread's, or too low. Else RecursionError
; is raised. Exceptions of measuring are the caller's, too.
define internal i1 @has_room(i64 %here) noinline nounwind {
  %done = call ptr @PyObject_Vectorcall(ptr @measure_room, ptr null, i64 0, ptr null)
  %measured = icmp ne ptr %done, null
  br i1 %measured, label %compare, label %no
compare:
  call void @Py_DecRef(ptr %done)
  %least = load volatile i64, ptr @room
  %end.at = getelementptr i64, ptr @room, i64 2
  %end = load volatile i64, ptr %end.at
  %over = icmp ult i64 %here, %least
  %ours = icmp uge i64 %here, %end
  %low = and i1 %over, %ours
  br i1 %low, label %full, label %yes
full:
  %error = load ptr, ptr @PyExc_RecursionError
  call void @PyErr_SetString(ptr %error, ptr @full_text)
  br label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether a call may begin here. This may run other threads, so replaceable objects must be read after it.
define internal i1 @may_begin() alwaysinline nounwind {
entry:
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %here = ptrtoint ptr %frame to i64
  %inside = call i1 @is_inside(i64 %here)
  br i1 %inside, label %done, label %measure
measure:
  %room = call i1 @has_room(i64 %here)
  br label %done
done:
  %may = phi i1 [ true, %entry ], [ %room, %measure ]
  ret i1 %may
}

; PyObject *check_stack(PyObject *self, PyObject *const *args, Py_ssize_t nargs): the same for calls that are Python's.
define ptr @check_stack(ptr %self, ptr %args, i64 %nargs) nounwind {
  %may = call i1 @may_begin()
  br i1 %may, label %yes, label %no
yes:
  call void @Py_IncRef(ptr @none)
  ret ptr @none
no:
  ret ptr null
}

; PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames): the object's slot holds a table.
define ptr @call(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames) nounwind {
  %may = call i1 @may_begin()
  br i1 %may, label %go, label %full
go:
  %table = call ptr @field(ptr %self, i64 $SELF_TABLES)
  %result = call ptr @serve(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames, ptr %table)
  ret ptr %result
full:
  ret ptr null
}

; The same for an object whose slot holds a weak reference to a table: a resume point, which is called inside a call.
define ptr @enter(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames) nounwind {
entry:
  %reference = call ptr @field(ptr %self, i64 $SELF_TABLES)
  %there = icmp ne ptr %reference, null
  br i1 %there, label %look, label %go
look:
  %found = call ptr @PyWeakref_GetObject(ptr %reference)
  %alive = icmp ne ptr %found, @none
  %held = select i1 %alive, ptr %found, ptr null
  br label %go
go:
  %table = phi ptr [ null, %entry ], [ %held, %look ]
  %result = call ptr @serve(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames, ptr %table)
  ret ptr %result
}

define internal ptr @serve(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames, ptr %tables) noinline nounwind
    $PROBES {
entry:
  %context = alloca ptr
  %ready = icmp ne ptr %tables, null
  br i1 %ready, label %look, label %slow.before
look:
  %table = call ptr @field(ptr %tables, i64 $ARRAY_ITEMS)
  %generation = load volatile i64, ptr @generation
  %departed = load volatile i64, ptr @departed
  %listening = load volatile i64, ptr @listening
  %switched = load volatile i64, ptr @switched_off
  %debugger = load volatile i64, ptr @debugger
  %thread = call ptr @PyThreadState_Get()
  %tracer.at = getelementptr i8, ptr %thread, i64 $TRACE_OBJECT
  %tracer = load i64, ptr %tracer.at
  %off.1 = or i64 %departed, %listening
  %off.2 = or i64 %off.1, %switched
  %off.3 = or i64 %off.2, %debugger
  %off = or i64 %off.3, %tracer
  %on = icmp eq i64 %off, 0
  %expected = call i64 @word(ptr %table, i64 $T_GENERATION)
  %young = icmp eq i64 %generation, %expected
  %go.1 = and i1 %on, %young
  br i1 %go.1, label %code, label %slow.before
code:
  %function = call ptr @pointer(ptr %table, i64 $T_FUNCTION)
  %code.now = call ptr @field(ptr %function, i64 $FUNCTION_CODE)
  %code.then = call ptr @pointer(ptr %table, i64 $T_CODE)
  %same.code = icmp eq ptr %code.now, %code.then
  %nargs = and i64 %nargsf, 9223372036854775807
  %positional = call i64 @word(ptr %table, i64 $T_POSITIONAL)
  %enough.room = icmp ule i64 %nargs, %positional
  %go.2 = and i1 %same.code, %enough.room
  br i1 %go.2, label %stance, label %slow.before
stance:
  %bad = call i32 @PyContextVar_Get(ptr @stance_block, ptr null, ptr %context)
  %raised = icmp ne i32 %bad, 0
  br i1 %raised, label %error, label %block
block:
  %value = load ptr, ptr %context
  %outside = icmp eq ptr %value, @none
  br i1 %outside, label %start, label %inside
inside:
  %there = icmp ne ptr %value, null
  br i1 %there, label %drop, label %slow.before
drop:
  call void @Py_DecRef(ptr %value)
  br label %slow.before
start:
  call void @Py_DecRef(ptr %value)
  call void @Py_IncRef(ptr %tables)
  %size = call i64 @word(ptr %table, i64 $T_FRAME)
  %frame = alloca i64, i64 %size, align 16
  %cells = call i64 @word(ptr %table, i64 $T_CELLS)
  %registers = getelementptr i64, ptr %frame, i64 $F_REGISTERS
  %parameters = getelementptr i64, ptr %registers, i64 %cells
  %owned.offset = call i64 @word(ptr %table, i64 $T_OWNED)
  %owned = getelementptr i64, ptr %frame, i64 %owned.offset
  %top.at = getelementptr ptr, ptr %frame, i64 $F_TOP
  store ptr %owned, ptr %top.at
  %words.offset = call i64 @word(ptr %table, i64 $T_WORDS)
  %words = getelementptr i64, ptr %frame, i64 %words.offset
  %words.at = getelementptr ptr, ptr %frame, i64 $F_WORDS
  store ptr %words, ptr %words.at
  br label %cell
cell:
  %c = phi i64 [ 0, %start ], [ %c.next, %cell.one ]
  %c.more = icmp slt i64 %c, %cells
  br i1 %c.more, label %cell.one, label %argument
cell.one:
  %c.from = add i64 %c, $T_LISTS
  %c.value = call i64 @word(ptr %table, i64 %c.from)
  %c.to = getelementptr i64, ptr %registers, i64 %c
  store i64 %c.value, ptr %c.to
  %c.next = add i64 %c, 1
  br label %cell
argument:
  %a = phi i64 [ 0, %cell ], [ %a.next, %argument.one ]
  %a.more = icmp slt i64 %a, %nargs
  br i1 %a.more, label %argument.one, label %arguments.done
argument.one:
  %a.value = call i64 @word(ptr %args, i64 %a)
  %a.to = getelementptr i64, ptr %parameters, i64 %a
  store i64 %a.value, ptr %a.to
  %a.next = add i64 %a, 1
  br label %argument
arguments.done:
  %count = call i64 @word(ptr %table, i64 $T_COUNT)
  %all = icmp eq i64 %nargs, %count
  %no.names = icmp eq ptr %kwnames, null
  %simple = and i1 %all, %no.names
  br i1 %simple, label %plans, label %others
others:
  %fits = call i1 @bind(ptr %table, ptr %parameters, i64 %nargs, ptr %args, ptr %kwnames, ptr %frame)
  br i1 %fits, label %plans, label %slow.after

plans:
  %first.plan = load ptr, ptr %top.at
  %plan.count = call i64 @word(ptr %table, i64 $T_PLANS)
  %list.from.1 = add i64 %cells, %count
  %list.from = add i64 %list.from.1, $T_LISTS
  %list = getelementptr ptr, ptr %table, i64 %list.from
  %outcome.at = getelementptr i64, ptr %frame, i64 $F_OUTCOME
  %status.at = getelementptr i64, ptr %frame, i64 $F_STATUS
  %last.at = getelementptr ptr, ptr %frame, i64 $F_LAST
  br label %plan
plan:
  %p = phi i64 [ 0, %plans ], [ %p.next, %missed ]
  %p.more = icmp slt i64 %p, %plan.count
  br i1 %p.more, label %plan.one, label %slow.after
plan.one:
  %plan.at = getelementptr ptr, ptr %list, i64 %p
  %plan.words = load ptr, ptr %plan.at
  store i64 $MISSED, ptr %outcome.at
  store i64 0, ptr %status.at
  store ptr %words, ptr %last.at
  %begin = getelementptr i64, ptr %plan.words, i64 $P_CODE
  br label %step
step:
  %pc = phi ptr [ %begin, %plan.one ], [ %pc.next, %step ]
  %operation = load ptr, ptr %pc
  %pc.next = call ptr %operation(ptr %frame, ptr %pc)
  %ended = icmp eq ptr %pc.next, null
  br i1 %ended, label %outcome, label %step
outcome:
  %what = load i64, ptr %outcome.at
  switch i64 %what, label %missed [
    i64 $RETURNED, label %hit
    i64 $PLAIN, label %hit
    i64 $RESTS, label %hit
    i64 $FAILED, label %failed
    i64 $RAISED, label %raised.inside
  ]
raised.inside:
  %r.theirs = call i1 @is_callers()
  br i1 %r.theirs, label %error.after, label %missed
missed:
  call void @release(ptr %frame, ptr %first.plan)
  store ptr %first.plan, ptr %top.at
  %p.next = add i64 %p, 1
  br label %plan

hit:
  %hits = load i64, ptr %plan.words
  %hits.more = add i64 %hits, 1
  store i64 %hits.more, ptr %plan.words
  %is.first = icmp eq i64 %p, 0
  br i1 %is.first, label %finish, label %promote
; Most recent first. A nested call may have changed the order: it stays a permutation.
promote:
  %q = phi i64 [ %p, %hit ], [ %q.before, %promote.one ]
  %q.more = icmp sgt i64 %q, 0
  br i1 %q.more, label %promote.one, label %promoted
promote.one:
  %q.before = sub i64 %q, 1
  %q.to = getelementptr ptr, ptr %list, i64 %q
  %q.from = getelementptr ptr, ptr %list, i64 %q.before
  %q.here = load ptr, ptr %q.to
  %q.there = load ptr, ptr %q.from
  store ptr %q.there, ptr %q.to
  store ptr %q.here, ptr %q.from
  br label %promote
promoted:
  br label %finish
finish:
  %is.plain = icmp eq i64 %what, $PLAIN
  call void @release(ptr %frame, ptr %owned)
  br i1 %is.plain, label %run.plain, label %not.plain
not.plain:
  %rests = icmp eq i64 %what, $RESTS
  br i1 %rests, label %run.timed, label %return
; A call inside another one that is timed is not: its time would count twice.
run.timed:
  %plan.held = getelementptr ptr, ptr %frame, i64 $F_RESULT
  %held = load ptr, ptr %plan.held
  %busy.at = getelementptr i64, ptr %held, i64 5
  %busy = load i64, ptr %busy.at
  %nested = icmp ne i64 %busy, 0
  br i1 %nested, label %run.plain, label %time
time:
  store i64 1, ptr %busy.at
  %begun = call i64 @tc_now()
  %timed.result = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %nargsf, ptr %kwnames)
  %over = call i64 @tc_now()
  store i64 0, ptr %busy.at
  %limit = call i64 @word(ptr %held, i64 1)
  %taken = sub i64 %over, %begun
  %beyond = sub i64 %taken, %limit
  %late = icmp sgt i64 %beyond, 0
  %returned = icmp ne ptr %timed.result, null
  %counts = and i1 %late, %returned
  %more.excess = select i1 %counts, i64 %beyond, i64 0
  %excess.at = getelementptr i64, ptr %held, i64 4
  %excess.before = load i64, ptr %excess.at
  %excess.after = add i64 %excess.before, %more.excess
  store i64 %excess.after, ptr %excess.at
  call void @Py_DecRef(ptr %tables)
  ret ptr %timed.result
run.plain:
  %own.result = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %nargsf, ptr %kwnames)
  call void @Py_DecRef(ptr %tables)
  ret ptr %own.result
return:
  %result.at = getelementptr ptr, ptr %frame, i64 $F_RESULT
  %result = load ptr, ptr %result.at
  call void @Py_DecRef(ptr %tables)
  ret ptr %result

failed:
  %f.theirs = call i1 @is_callers()
  br i1 %f.theirs, label %error.after, label %slow.after

slow.after:
  call void @release(ptr %frame, ptr %owned)
  call void @Py_DecRef(ptr %tables)
  br label %slow.before
slow.before:
  %other.result = call ptr @slow(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames)
  ret ptr %other.result
error.after:
  call void @release(ptr %frame, ptr %owned)
  call void @Py_DecRef(ptr %tables)
  br label %error
error:
  ret ptr null
}
