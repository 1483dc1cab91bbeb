; The builtin `launch`: see launch.py. Offsets of object fields ($OB_TYPE, ...) come from abi.py, texts too.

declare i64 @PyLong_AsLongLong(ptr) nounwind
declare double @PyFloat_AsDouble(ptr) nounwind
declare ptr @PyLong_FromLongLong(i64) nounwind
declare i32 @PyType_IsSubtype(ptr, ptr) nounwind
declare ptr @PyErr_Occurred() nounwind
declare ptr @PyErr_Format(ptr, ptr, ...) nounwind
declare ptr @PyEval_SaveThread() nounwind
declare void @PyEval_RestoreThread(ptr) nounwind
declare i32 @tc_parallel(ptr, ptr, i64, i64) nounwind
@PyExc_TypeError = external global ptr
@PyExc_ValueError = external global ptr
@PyLong_Type = external global i8
@PyFloat_Type = external global i8
@PyBytes_Type = external global i8
@PyArray_Type = external global i8

; Whether the object is of this type or of one derived from it. No code of the object's class runs.
define internal i1 @is_a(ptr %object, ptr %type) alwaysinline nounwind {
entry:
  %at = getelementptr i8, ptr %object, i64 $OB_TYPE
  %its = load ptr, ptr %at
  %exact = icmp eq ptr %its, %type
  br i1 %exact, label %yes, label %ask
ask:
  %sub = call i32 @PyType_IsSubtype(ptr %its, ptr %type)
  %is = icmp ne i32 %sub, 0
  ret i1 %is
yes:
  ret i1 true
}

define internal i1 @is_array(ptr %object) alwaysinline nounwind {
  %at = getelementptr i8, ptr %object, i64 $OB_TYPE
  %its = load ptr, ptr %at
  %exact = icmp eq ptr %its, @PyArray_Type
  ret i1 %exact
}

define internal ptr @type_name(ptr %object) noinline nounwind {
  %at = getelementptr i8, ptr %object, i64 $OB_TYPE
  %type = load ptr, ptr %at
  %name.at = getelementptr i8, ptr %type, i64 $TYPE_NAME
  %name = load ptr, ptr %name.at
  ret ptr %name
}

; PyObject *launch(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
; args: kernel, spec, items, grain, then the kernel's arguments.
; The words are on the stack. Probing makes sure that many of them meet the guard page where the stack ends.
define ptr @launch(ptr %self, ptr %args, i64 %nargs) nounwind $PROBES {
entry:
  %enough = icmp sge i64 %nargs, 4
  br i1 %enough, label %head, label %e.few

head:
  %spec.at = getelementptr ptr, ptr %args, i64 1
  %spec = load ptr, ptr %spec.at
  %is.bytes = call i1 @is_a(ptr %spec, ptr @PyBytes_Type)
  br i1 %is.bytes, label %count, label %e.spec
count:
  %length.at = getelementptr i8, ptr %spec, i64 $OB_SIZE
  %length = load i64, ptr %length.at
  %given = sub i64 %nargs, 4
  %fits = icmp eq i64 %length, %given
  br i1 %fits, label %numbers, label %e.count

numbers:
  ; Objects with __index__ may run Python code here, which is why no address was read from any array so far.
  %o.kernel = load ptr, ptr %args
  %items.at = getelementptr ptr, ptr %args, i64 2
  %o.items = load ptr, ptr %items.at
  %grain.at = getelementptr ptr, ptr %args, i64 3
  %o.grain = load ptr, ptr %grain.at
  %address = call i64 @PyLong_AsLongLong(ptr %o.kernel)
  %k.odd = icmp eq i64 %address, -1
  br i1 %k.odd, label %number.error, label %number.items
number.items:
  %items = call i64 @PyLong_AsLongLong(ptr %o.items)
  %i.odd = icmp eq i64 %items, -1
  br i1 %i.odd, label %number.error, label %number.grain
number.grain:
  %grain = call i64 @PyLong_AsLongLong(ptr %o.grain)
  %g.odd = icmp eq i64 %grain, -1
  br i1 %g.odd, label %number.error, label %number.range
number.error:
  %raised = call ptr @PyErr_Occurred()
  %is.raised = icmp ne ptr %raised, null
  br i1 %is.raised, label %fail, label %e.range
number.range:
  %has.kernel = icmp ne i64 %address, 0
  %has.items = icmp sge i64 %items, 0
  %some = icmp sge i64 %grain, 1
  %whole = icmp sle i64 %items, %grain
  %has.grain = or i1 %some, %whole
  %ok.1 = and i1 %has.kernel, %has.items
  %ok.2 = and i1 %ok.1, %has.grain
  br i1 %ok.2, label %room, label %e.range

room:
  ; How many words there may be at most: an array with strides has at most 64 axes.
  %text = getelementptr i8, ptr %spec, i64 $BYTES_TEXT
  %none = icmp eq i64 %length, 0
  br i1 %none, label %reserve, label %room.loop
room.loop:
  %ri = phi i64 [ 0, %room ], [ %ri.next, %room.loop ]
  %rw = phi i64 [ 0, %room ], [ %rw.next, %room.loop ]
  %rc.at = getelementptr i8, ptr %text, i64 %ri
  %rc = load i8, ptr %rc.at
  %r.strided = icmp eq i8 %rc, 115
  %r.words = select i1 %r.strided, i64 65, i64 1
  %rw.next = add i64 %rw, %r.words
  %ri.next = add i64 %ri, 1
  %r.more = icmp slt i64 %ri.next, %length
  br i1 %r.more, label %room.loop, label %reserve
reserve:
  %most = phi i64 [ 0, %room ], [ %rw.next, %room.loop ]
  %too.many = icmp sgt i64 %most, $MOST_WORDS
  br i1 %too.many, label %e.many, label %allocate
allocate:
  %words = alloca i64, i64 %most, align 16
  %arguments = getelementptr ptr, ptr %args, i64 4
  br i1 %none, label %go, label %next

next:
  %i = phi i64 [ 0, %allocate ], [ %i.next, %stored ]
  %w = phi i64 [ 0, %allocate ], [ %w.next, %stored ]
  %c.at = getelementptr i8, ptr %text, i64 %i
  %c = load i8, ptr %c.at
  %a.at = getelementptr ptr, ptr %arguments, i64 %i
  %a = load ptr, ptr %a.at
  %word = getelementptr i64, ptr %words, i64 %w
  %w.one = add i64 %w, 1
  switch i8 %c, label %e.letter [
    i8 97, label %plain
    i8 115, label %strided
    i8 105, label %int
    i8 102, label %float
  ]

plain:
  %p.ok = call i1 @is_array(ptr %a)
  br i1 %p.ok, label %plain.read, label %e.array
plain.read:
  %p.at = getelementptr i8, ptr %a, i64 $ARRAY_DATA
  %p.data = load i64, ptr %p.at
  store i64 %p.data, ptr %word
  br label %stored

strided:
  %s.ok = call i1 @is_array(ptr %a)
  br i1 %s.ok, label %strided.read, label %e.array
strided.read:
  %s.at = getelementptr i8, ptr %a, i64 $ARRAY_DATA
  %s.data = load i64, ptr %s.at
  store i64 %s.data, ptr %word
  %nd.at = getelementptr i8, ptr %a, i64 $ARRAY_NDIM
  %nd.int = load i32, ptr %nd.at
  %nd = sext i32 %nd.int to i64
  %strides.at = getelementptr i8, ptr %a, i64 $ARRAY_STRIDES
  %strides = load ptr, ptr %strides.at
  %s.end = add i64 %w.one, %nd
  %s.none = icmp eq i64 %nd, 0
  br i1 %s.none, label %stored, label %axis
axis:
  %d = phi i64 [ 0, %strided.read ], [ %d.next, %axis ]
  %sw = phi i64 [ %w.one, %strided.read ], [ %sw.next, %axis ]
  %stride.at = getelementptr i64, ptr %strides, i64 %d
  %stride = load i64, ptr %stride.at
  %stride.word = getelementptr i64, ptr %words, i64 %sw
  store i64 %stride, ptr %stride.word
  %d.next = add i64 %d, 1
  %sw.next = add i64 %sw, 1
  %d.more = icmp slt i64 %d.next, %nd
  br i1 %d.more, label %axis, label %stored

int:
  %n.ok = call i1 @is_a(ptr %a, ptr @PyLong_Type)
  br i1 %n.ok, label %int.read, label %e.int
int.read:
  %n = call i64 @PyLong_AsLongLong(ptr %a)
  store i64 %n, ptr %word
  %n.odd = icmp eq i64 %n, -1
  br i1 %n.odd, label %int.check, label %stored
int.check:
  %n.raised = call ptr @PyErr_Occurred()
  %n.is.raised = icmp ne ptr %n.raised, null
  br i1 %n.is.raised, label %fail, label %stored

float:
  %f.ok = call i1 @is_a(ptr %a, ptr @PyFloat_Type)
  br i1 %f.ok, label %float.read, label %e.float
float.read:
  %f = call double @PyFloat_AsDouble(ptr %a)
  store double %f, ptr %word
  br label %stored

stored:
  %w.next = phi i64 [ %w.one, %plain.read ], [ %s.end, %strided.read ], [ %s.end, %axis ],
                    [ %w.one, %int.read ], [ %w.one, %int.check ], [ %w.one, %float.read ]
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %length
  br i1 %more, label %next, label %go

go:
  %kernel = inttoptr i64 %address to ptr
  %small = icmp sle i64 %items, %grain
  br i1 %small, label %one, label %many
one:
  %status.one = call i32 %kernel(ptr %words, i64 0, i64 %items)
  br label %return
many:
  %thread = call ptr @PyEval_SaveThread()
  %status.many = call i32 @tc_parallel(ptr %kernel, ptr %words, i64 %items, i64 %grain)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %return
return:
  %status = phi i32 [ %status.one, %one ], [ %status.many, %many ]
  %status.wide = zext i32 %status to i64
  %result = call ptr @PyLong_FromLongLong(i64 %status.wide)
  ret ptr %result

e.few:
  %x.few = load ptr, ptr @PyExc_TypeError
  %r.few = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %x.few, ptr @text.few)
  ret ptr null
e.spec:
  %x.spec = load ptr, ptr @PyExc_TypeError
  %t.spec = call ptr @type_name(ptr %spec)
  %r.spec = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %x.spec, ptr @text.spec, ptr %t.spec)
  ret ptr null
e.count:
  %x.count = load ptr, ptr @PyExc_TypeError
  %r.count = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %x.count, ptr @text.count, i64 %length, i64 %given)
  ret ptr null
e.range:
  %x.range = load ptr, ptr @PyExc_ValueError
  %r.range = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %x.range, ptr @text.range)
  ret ptr null
e.many:
  %x.many = load ptr, ptr @PyExc_ValueError
  %r.many = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %x.many, ptr @text.many)
  ret ptr null
e.letter:
  %x.letter = load ptr, ptr @PyExc_TypeError
  %c.int = zext i8 %c to i32
  %r.letter = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %x.letter, ptr @text.letter, i32 %c.int)
  ret ptr null
e.array:
  br label %e.type
e.int:
  br label %e.type
e.float:
  br label %e.type
e.type:
  %needs = phi ptr [ @text.array, %e.array ], [ @text.int, %e.int ], [ @text.float, %e.float ]
  %x.type = load ptr, ptr @PyExc_TypeError
  %t.type = call ptr @type_name(ptr %a)
  %r.type = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %x.type, ptr @text.type, i64 %i, ptr %needs, ptr %t.type)
  ret ptr null
fail:
  ret ptr null
}

; A kernel for the self-test: copies its first seven words to where the first one points. Status 31.
define i32 @echo(ptr %words, i64 %begin, i64 %end) nounwind {
  %to = load ptr, ptr %words
  %all = load [7 x i64], ptr %words
  store [7 x i64] %all, ptr %to
  ret i32 31
}
