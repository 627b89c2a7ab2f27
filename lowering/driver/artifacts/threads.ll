; Parallel loops use up to %count threads from now on, the calling one among them; at most those that the library was built for.
define i32 @NAME_threads(i32 %count) GENERIC {
  %few = call i32 @llvm.smin.i32(i32 %count, i32 MOST)
  READY_CHECK
}

@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @mirstack_shutdown, ptr null }]
