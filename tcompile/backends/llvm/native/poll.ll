; Asks Python, from inside of a long loop, whether a signal has arrived: see ../native/interrupts.py.

declare i32 @PyGILState_Check()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @usleep(i32)

; What the signal's handler has raised: its type, the value, the traceback.
@raised = global [3 x ptr] zeroinitializer

define internal i32 @check() nounwind {
  %failed = call i32 @PyErr_CheckSignals()
  %quiet = icmp eq i32 %failed, 0
  br i1 %quiet, label %nothing, label %keep
keep:
  %value = getelementptr [3 x ptr], ptr @raised, i64 0, i64 1
  %traceback = getelementptr [3 x ptr], ptr @raised, i64 0, i64 2
  call void @PyErr_Fetch(ptr @raised, ptr %value, ptr %traceback)
  ret i32 1
nothing:
  ret i32 0
}

; i32 tc_poll(): 1 where a handler has raised. Other threads get their turn, as they do in plain Python.
define i32 @tc_poll() nounwind {
  %held = call i32 @PyGILState_Check()
  %free = icmp eq i32 %held, 0
  br i1 %free, label %take, label %hold
hold:
  %thread = call ptr @PyEval_SaveThread()
  %slept = call i32 @usleep(i32 50)  ; who waits wakes up meanwhile, else this thread would always be the first
  call void @PyEval_RestoreThread(ptr %thread)
  %one = call i32 @check()
  ret i32 %one
take:
  %state = call i32 @PyGILState_Ensure()
  %two = call i32 @check()
  call void @PyGILState_Release(i32 %state)
  ret i32 %two
}
