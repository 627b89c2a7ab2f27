; PTHREAD_MUTEX_INITIALIZER of Linux's C libraries.
@lock = internal global [128 x i8] zeroinitializer, align 64
@is_ready = internal global i1 false
@outcome = internal global i32 0

; Finds the code for this processor and computes what it needs of the weights, once; returns a status. The caller holds the lock.
define internal i32 @ready() nounwind {
entry:
  CHECK
  %done = load i1, ptr @is_ready
  br i1 %done, label %known, label %work
known:
  %outcome = load i32, ptr @outcome
  ret i32 %outcome
work:
  BEGIN
  %level = call i32 @level()
  store i32 %level, ptr @chosen
  CALLS
keep:
  %status = phi i32 MADE[ PROCESSOR, %unknown ]
  store i32 %status, ptr @outcome
  store i1 true, ptr @is_ready
  ret i32 %status
}

; Begins a call: returns a status, the number of the code for this processor, and a context.
define internal { i32, i32, ptr } @begin() nounwind {
entry:
  call i32 @pthread_mutex_lock(ptr @lock)
  %status = call i32 @ready()
  %good = icmp eq i32 %status, 0
  br i1 %good, label %take, label %out
take:
  %level = load i32, ptr @chosen
  %context = call ptr @take_context(i32 %level)
  %none = icmp eq ptr %context, null
  %memory = select i1 %none, i32 MEMORY, i32 0
  br label %out
out:
  %code = phi i32 [ %status, %entry ], [ %memory, %take ]
  %which = phi i32 [ -1, %entry ], [ %level, %take ]
  %found = phi ptr [ null, %entry ], [ %context, %take ]
  call i32 @pthread_mutex_unlock(ptr @lock)
  %one = insertvalue { i32, i32, ptr } undef, i32 %code, 0
  %two = insertvalue { i32, i32, ptr } %one, i32 %which, 1
  %three = insertvalue { i32, i32, ptr } %two, ptr %found, 2
  ret { i32, i32, ptr } %three
}
