; Asks Python, from inside of a long loop, whether a signal has arrived: see ../native/interrupts.py.

declare ptr @PyGILState_GetThisThreadState()
declare ptr @$THREAD_STATE()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare void @Py_DecRef(ptr)
@yes = external global i8
@reread = external global i8

; What the signal's handler has raised: its type, the value, the traceback.
@raised = global [3 x ptr] zeroinitializer

define internal i32 @check() nounwind {
  %failed = call i32 @PyErr_CheckSignals()
  %quiet = icmp eq i32 %failed, 0
  br i1 %quiet, label %ask, label %keep
; Handlers may run in this call, too.
ask:
  %answer = call ptr @PyObject_CallNoArgs(ptr @reread)
  %lost = icmp eq ptr %answer, null
  br i1 %lost, label %keep, label %told
told:
  %changed = icmp eq ptr %answer, @yes
  call void @Py_DecRef(ptr %answer)
  %two = select i1 %changed, i32 2, i32 0
  ret i32 %two
keep:
  %value = getelementptr [3 x ptr], ptr @raised, i64 0, i64 1
  %traceback = getelementptr [3 x ptr], ptr @raised, i64 0, i64 2
  call void @PyErr_Fetch(ptr @raised, ptr %value, ptr %traceback)
  ret i32 1
}

; i32 tc_poll(): 1 where a handler has raised, 2 where something that the code has read has changed since, else 0. Other
; threads get their turn, as they do in plain Python.
; PyGILState_Check does not do: once the process has had a second interpreter, it says that every thread holds the GIL.
define i32 @tc_poll() nounwind {
  %holder = call ptr @$THREAD_STATE()  ; in CPython 3.11 that of any thread
  %own = call ptr @PyGILState_GetThisThreadState()
  %unheld = icmp eq ptr %holder, null
  %other = icmp ne ptr %holder, %own
  %free = or i1 %unheld, %other
  br i1 %free, label %take, label %hold
hold:
  %thread = call ptr @PyEval_SaveThread()
  call void @let_others()
  call void @PyEval_RestoreThread(ptr %thread)
  %one = call i32 @check()
  ret i32 %one
take:
  %state = call i32 @PyGILState_Ensure()
  %two = call i32 @check()
  call void @PyGILState_Release(i32 %state)
  ret i32 %two
}

; i32 tc_due(i64 *clock): the same for iterations of any length. The clock holds how many iterations are left until the
; next call, how many there are from one to the next, when the last one was, and when a change was seen (0: none was), in
; nanoseconds. 2.5 to 10 milliseconds are aimed at: the first call that polls comes within some 8 of the loop's start.
; Each call that polls notes so in the word after these. Once a change was seen, each call returns 2, and 3 when it is
; too long ago: the loop that could end with an iteration of its own has not come to the end of one.
define i32 @tc_due(ptr %clock) nounwind {
  %seen.at = getelementptr i64, ptr %clock, i64 3
  %seen = load i64, ptr %seen.at
  %unseen = icmp eq i64 %seen, 0
  br i1 %unseen, label %entry, label %again
again:
  store i64 1, ptr %clock
  %since = call i64 @tc_now()
  %waited = sub i64 %since, %seen
  %long.ago = icmp sgt i64 %waited, $PATIENCE
  %ends = select i1 %long.ago, i32 3, i32 2
  ret i32 %ends
entry:
  %stretch.at = getelementptr i64, ptr %clock, i64 1
  %last.at = getelementptr i64, ptr %clock, i64 2
  %stretch = load i64, ptr %stretch.at
  %last = load i64, ptr %last.at
  %now = call i64 @tc_now()
  store i64 %now, ptr %last.at
  %took = sub i64 %now, %last
  %short = icmp slt i64 %took, 2500000
  %very.short = icmp slt i64 %took, 625000
  %tiny = icmp slt i64 %took, 39000
  %long = icmp sgt i64 %took, 10000000
  %wide = icmp slt i64 %stretch, 1099511627776
  %widens = and i1 %short, %wide
  %more = select i1 %very.short, i64 2, i64 1
  %shift = select i1 %tiny, i64 4, i64 %more
  %longer = shl i64 %stretch, %shift
  %half = lshr i64 %stretch, 1
  %half.one = call i64 @llvm.umax.i64(i64 %half, i64 1)
  %less = select i1 %long, i64 %half.one, i64 %stretch
  %next = select i1 %widens, i64 %longer, i64 %less
  store i64 %next, ptr %stretch.at
  store i64 %next, ptr %clock
  br i1 %short, label %later, label %ask
later:
  ret i32 0
ask:
  %polled.at = getelementptr i64, ptr %clock, i64 4
  store i64 1, ptr %polled.at
  %raised = call i32 @tc_poll()
  %changed = icmp eq i32 %raised, 2
  br i1 %changed, label %note, label %answer
note:
  store i64 %now, ptr %seen.at
  store i64 1, ptr %clock
  br label %answer
answer:
  ret i32 %raised
}

; i32 tc_late(i64 *last): the same for code that asks often: it is asked again where 5 milliseconds have gone by since.
define i32 @tc_late(ptr %last) nounwind {
  %before = load i64, ptr %last
  %now = call i64 @tc_now()
  %took = sub i64 %now, %before
  %early = icmp slt i64 %took, 5000000
  br i1 %early, label %later, label %late
late:
  store i64 %now, ptr %last
  %first = icmp eq i64 %before, 0
  br i1 %first, label %later, label %ask
later:
  ret i32 0
ask:
  %raised = call i32 @tc_poll()
  ret i32 %raised
}

declare i64 @llvm.umax.i64(i64, i64)

; i32 tc_wait(i8 *over, i64 until): waits for the byte to be set, or for the time, and returns the byte. For a caller
; without the GIL.
define i32 @tc_wait(ptr %over, i64 %until) nounwind {
  br label %look
look:
  %byte = load volatile i8, ptr %over
  %unset = icmp eq i8 %byte, 0
  %now = call i64 @tc_now()
  %early = icmp slt i64 %now, %until
  %again = and i1 %unset, %early
  br i1 %again, label %sleep, label %end
sleep:
  call void @let_others()
  br label %look
end:
  %found = zext i8 %byte to i32
  ret i32 %found
}
