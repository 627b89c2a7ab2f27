; Where a thread cannot be told where to run, workers go where the system puts them.

define void @mirstack_set_pinning(i32 %on) nounwind {
  ret void
}

define internal void @unsettle() nounwind {
  ret void
}

define internal void @settle(i32 %helpers) nounwind {
  ret void
}
