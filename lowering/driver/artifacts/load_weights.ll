@loaded = internal global i1 false

; Maps the file of weights; returns a status.
define i32 @NAME_load(ptr %path) nounwind {
  call i32 @pthread_mutex_lock(ptr @lock)
  %status = call i32 @load(ptr %path)
  call i32 @pthread_mutex_unlock(ptr @lock)
  ret i32 %status
}

define internal i32 @load(ptr %path) nounwind {
entry:
  %none = icmp eq ptr %path, null
  br i1 %none, label %bad, label %look
look:
  %again = load i1, ptr @loaded
  br i1 %again, label %good, label %opened
opened:
  %file = call i32 (ptr, i32, ...) @open(ptr %path, i32 0)
  %absent = icmp slt i32 %file, 0
  br i1 %absent, label %bad, label %measure
measure:
  %end = call i64 @lseek(i32 %file, i64 0, i32 2)
  %right = icmp eq i64 %end, LENGTH
  br i1 %right, label %map, label %shut
map:
  %memory = call ptr @mmap(ptr null, i64 LENGTH, i32 1, i32 2, i32 %file, i64 0)
  %failed = icmp eq ptr %memory, inttoptr (i64 -1 to ptr)
  br i1 %failed, label %shut, label %check
check:
  %same = call i1 @is_whole(ptr %memory)
  br i1 %same, label %keep, label %unmap
unmap:
  call i32 @munmap(ptr %memory, i64 LENGTH)
  br label %shut
shut:
  call i32 @close(i32 %file)
  br label %bad
keep:
  call i32 @close(i32 %file)
  call void @place(ptr %memory)
  store i1 true, ptr @loaded
  br label %good
good:
  ret i32 0
bad:
  ret i32 -5
}

; Returns whether the weights are those that the library was built with.
define internal i1 @is_whole(ptr %memory) nounwind {
entry:
  %sums = alloca [WORDS x i32], align 64
  call void @mirstack_stripe_checksum(ptr %memory, i64 STRIPES, ptr %sums)
  br label %next
next:
  %number = phi i64 [ 0, %entry ], [ %following, %equal ]
  %found.at = getelementptr i32, ptr %sums, i64 %number
  %wanted.at = getelementptr i32, ptr @checksum, i64 %number
  %found = load i32, ptr %found.at
  %wanted = load i32, ptr %wanted.at
  %same = icmp eq i32 %found, %wanted
  br i1 %same, label %equal, label %done
equal:
  %following = add i64 %number, 1
  %more = icmp ult i64 %following, WORDS
  br i1 %more, label %next, label %done
done:
  %whole = phi i1 [ false, %next ], [ true, %equal ]
  ret i1 %whole
}
