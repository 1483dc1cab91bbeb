; Other systems do not enforce limits of a process's memory, or do not tell what is left of them.
define internal i64 @fair_share(i64 %held) nounwind {
  ret i64 4611686018427387904
}
