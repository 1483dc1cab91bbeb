; Pages on Windows. They lie at multiples of 64 KiB. Huge ones need a right that users do not have.

declare ptr @VirtualAlloc(ptr, i64, i32, i32) nounwind
declare i32 @VirtualFree(ptr, i64, i32) nounwind
declare void @Sleep(i32) nounwind

; MEM_COMMIT | MEM_RESERVE is 12288, PAGE_READWRITE 4. Null where the system has no memory.
define internal ptr @map_pages(i64 %bytes, i1 %huge) nounwind {
  %at = call ptr @VirtualAlloc(ptr null, i64 %bytes, i32 12288, i32 4)
  ret ptr %at
}

; MEM_RELEASE is 32768: the whole mapping, so no size is given.
define internal void @unmap_pages(ptr %start, i64 %bytes) nounwind {
  %r = call i32 @VirtualFree(ptr %start, i64 0, i32 32768)
  ret void
}

; Lets another thread run.
define internal void @give_way() nounwind {
  call void @Sleep(i32 0)
  ret void
}
