; The numbers in lists: see ../native/list_numbers.py. Each function stores the values of a list's items, and returns
; how many it has stored: fewer than there are, where one is of another class or has more than 64 bits. Nothing else
; runs meanwhile, as the caller holds the GIL and no code of Python's is called.

declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
@PyFloat_Type = external global i8
@PyLong_Type = external global i8
@_Py_TrueStruct = external global i8
@_Py_FalseStruct = external global i8

define internal ptr @item(ptr %items, i64 %i) alwaysinline {
  %place = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %place
  ret ptr %item
}

define internal i1 @is_a(ptr %item, ptr %class) alwaysinline {
  %at = getelementptr i8, ptr %item, i64 $OB_TYPE
  %found = load ptr, ptr %at
  %same = icmp eq ptr %found, %class
  ret i1 %same
}

define i64 @tc_list_float64(ptr %list, ptr %made, i64 %count) {
start:
  %held = getelementptr i8, ptr %list, i64 $LIST_ITEMS
  %items = load ptr, ptr %held
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %more, %store ]
  %done = icmp eq i64 %i, %count
  br i1 %done, label %end, label %look
look:
  %item = call ptr @item(ptr %items, i64 %i)
  %fits = call i1 @is_a(ptr %item, ptr @PyFloat_Type)
  br i1 %fits, label %store, label %end
store:
  %at = getelementptr i8, ptr %item, i64 $FLOAT_VALUE
  %value = load double, ptr %at
  %to = getelementptr double, ptr %made, i64 %i
  store double %value, ptr %to
  %more = add i64 %i, 1
  br label %next
end:
  ret i64 %i
}

define i64 @tc_list_int64(ptr %list, ptr %made, i64 %count) {
start:
  %over = alloca i32
  %held = getelementptr i8, ptr %list, i64 $LIST_ITEMS
  %items = load ptr, ptr %held
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %more, %store ]
  %done = icmp eq i64 %i, %count
  br i1 %done, label %end, label %look
look:
  %item = call ptr @item(ptr %items, i64 %i)
  %fits = call i1 @is_a(ptr %item, ptr @PyLong_Type)
  br i1 %fits, label %read, label %end
read:
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %item, ptr %over)
  %overflow = load i32, ptr %over
  %small = icmp eq i32 %overflow, 0
  br i1 %small, label %store, label %end
store:
  %to = getelementptr i64, ptr %made, i64 %i
  store i64 %value, ptr %to
  %more = add i64 %i, 1
  br label %next
end:
  ret i64 %i
}

define i64 @tc_list_bool(ptr %list, ptr %made, i64 %count) {
start:
  %held = getelementptr i8, ptr %list, i64 $LIST_ITEMS
  %items = load ptr, ptr %held
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %more, %store ]
  %done = icmp eq i64 %i, %count
  br i1 %done, label %end, label %look
look:
  %item = call ptr @item(ptr %items, i64 %i)
  %true = icmp eq ptr %item, @_Py_TrueStruct
  %false = icmp eq ptr %item, @_Py_FalseStruct
  %fits = or i1 %true, %false
  br i1 %fits, label %store, label %end
store:
  %value = zext i1 %true to i8
  %to = getelementptr i8, ptr %made, i64 %i
  store i8 %value, ptr %to
  %more = add i64 %i, 1
  br label %next
end:
  ret i64 %i
}
