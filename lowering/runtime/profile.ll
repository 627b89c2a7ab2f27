; Records when kernels run, for the one thread that is profiled.
;
; The memory of records is a log of words: each record begins with the number of its words. Words that the log has no room for are counted,
; not written. Chunks of parallel loops are recorded by the threads that run them, if the profiled thread is the caller.
;
; CLOCK stands for the system's number of the clock that Python's perf_counter reads.

@owner = internal global i64 0        ; the thread that is profiled, 0 for none
@log = internal global ptr null
@room = internal global i64 0         ; words of the log
@used = internal global i64 0         ; words recorded, those that the log has no room for among them

declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()
declare i32 @mirstack_parallel_for(ptr, ptr, i64, i64, i64)

; Records what the calling thread does from now on.
define void @mirstack_profile_begin(ptr %log, i64 %room) nounwind {
  %self = call i64 @pthread_self()
  store ptr %log, ptr @log
  store i64 %room, ptr @room
  store i64 0, ptr @used
  store atomic i64 %self, ptr @owner seq_cst, align 8
  ret void
}

; Ends the recording; returns the words that were recorded.
define i64 @mirstack_profile_end() nounwind {
  store atomic i64 0, ptr @owner seq_cst, align 8
  %used = load atomic i64, ptr @used seq_cst, align 8
  ret i64 %used
}

define internal i64 @clock() nounwind {
  %time = alloca [2 x i64], align 8
  %error = call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %place = getelementptr inbounds i8, ptr %time, i64 8
  %nanoseconds = load i64, ptr %place
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nanoseconds
  ret i64 %now
}

; Returns the time in nanoseconds; 0 on a thread that is not profiled.
define i64 @mirstack_profile_now() nounwind {
  %owner = load atomic i64, ptr @owner monotonic, align 8
  %off = icmp eq i64 %owner, 0
  br i1 %off, label %no, label %ask
ask:
  %self = call i64 @pthread_self()
  %ours = icmp eq i64 %self, %owner
  br i1 %ours, label %yes, label %no
yes:
  %now = call i64 @clock()
  ret i64 %now
no:
  ret i64 0
}

; Records that a call site's kernel ran from %start until now, with %count sizes.
define void @mirstack_profile_record(i64 %site, i64 %start, ptr %sizes, i64 %count) nounwind {
entry:
  %off = icmp eq i64 %start, 0
  br i1 %off, label %done, label %take
take:
  %end = call i64 @clock()
  %words = add i64 %count, 5
  %at = atomicrmw add ptr @used, i64 %words monotonic
  %past = add i64 %at, %words
  %room = load i64, ptr @room
  %fits = icmp ule i64 %past, %room
  br i1 %fits, label %write, label %done
write:
  %self = call i64 @pthread_self()
  %log = load ptr, ptr @log
  %record = getelementptr inbounds i64, ptr %log, i64 %at
  store i64 %words, ptr %record
  %p1 = getelementptr inbounds i64, ptr %record, i64 1
  store i64 %site, ptr %p1
  %p2 = getelementptr inbounds i64, ptr %record, i64 2
  store i64 %start, ptr %p2
  %p3 = getelementptr inbounds i64, ptr %record, i64 3
  store i64 %end, ptr %p3
  %p4 = getelementptr inbounds i64, ptr %record, i64 4
  store i64 %self, ptr %p4
  br label %next
next:
  %number = phi i64 [ 0, %write ], [ %following, %copy ]
  %more = icmp ult i64 %number, %count
  br i1 %more, label %copy, label %done
copy:
  %from = getelementptr inbounds i64, ptr %sizes, i64 %number
  %size = load i64, ptr %from
  %place = add i64 %number, 5
  %to = getelementptr inbounds i64, ptr %record, i64 %place
  store i64 %size, ptr %to
  %following = add i64 %number, 1
  br label %next
done:
  ret void
}

; Runs a chunk of a loop of the profiled thread, and records it as site -1. %loop is the loop's body and its context.
define internal i32 @chunk(ptr %loop, i64 %begin, i64 %end) nounwind {
  %body = load ptr, ptr %loop
  %place = getelementptr inbounds i8, ptr %loop, i64 8
  %context = load ptr, ptr %place
  %start = call i64 @clock()
  %status = call i32 %body(ptr %context, i64 %begin, i64 %end)
  call void @mirstack_profile_record(i64 -1, i64 %start, ptr null, i64 0)
  ret i32 %status
}

; As mirstack_parallel_for, in whose place programs that are profiled call it.
define i32 @mirstack_profile_parallel_for(ptr %body, ptr %context, i64 %begin, i64 %end, i64 %grain) nounwind {
  %now = call i64 @mirstack_profile_now()
  %off = icmp eq i64 %now, 0
  br i1 %off, label %plain, label %profiled
plain:
  %code = call i32 @mirstack_parallel_for(ptr %body, ptr %context, i64 %begin, i64 %end, i64 %grain)
  ret i32 %code
profiled:
  %loop = alloca [2 x ptr], align 8
  store ptr %body, ptr %loop
  %place = getelementptr inbounds i8, ptr %loop, i64 8
  store ptr %context, ptr %place
  %status = call i32 @mirstack_parallel_for(ptr @chunk, ptr %loop, i64 %begin, i64 %end, i64 %grain)
  ret i32 %status
}
