@idle = internal global ptr null                   ; contexts that no call uses, each with the next one

; Memory of a call of a level, with an arena of so many bytes; null where there is none.
define internal ptr @new_context(i32 %level, i64 %arena) nounwind {
  %all = add i64 %arena, START
  %part = add i64 %all, 63
  %whole = and i64 %part, -64
  %context = call ptr @aligned_alloc(i64 <ALIGNMENT>, i64 %whole)
  %none = icmp eq ptr %context, null
  br i1 %none, label %out, label %fill
out:
  ret ptr null
fill:
  call void @llvm.memset.p0.i64(ptr %context, i8 0, i64 START, i1 false)
  SELECT_CONSTANTS
  %prepared = call ptr @prepared_of(i32 %level)
  %top = getelementptr i8, ptr %context, i64 START
  %end = getelementptr i8, ptr %top, i64 %arena
  %to.top = getelementptr i8, ptr %context, i64 <TOP>
  store ptr %top, ptr %to.top
  %to.end = getelementptr i8, ptr %context, i64 <END>
  store ptr %end, ptr %to.end
  %to.constants = getelementptr i8, ptr %context, i64 <CONSTANTS>
  store ptr %constants, ptr %to.constants
  %to.prepared = getelementptr i8, ptr %context, i64 <PREPARED>
  store ptr %prepared, ptr %to.prepared
  %to.arena = getelementptr i8, ptr %context, i64 <ARENA>
  store i64 %arena, ptr %to.arena
  %table = getelementptr i8, ptr %context, i64 TABLE
  store ptr %context, ptr %table
  ret ptr %context
}

; A context that no call uses, or a new one. The caller holds the lock.
define internal ptr @take_context(i32 %level) nounwind {
  %found = load ptr, ptr @idle
  %none = icmp eq ptr %found, null
  br i1 %none, label %new, label %take
take:
  %to.next = getelementptr i8, ptr %found, i64 <NEXT>
  %next = load ptr, ptr %to.next
  store ptr %next, ptr @idle
  ret ptr %found
new:
  SELECT_ARENA
  %context = call ptr @new_context(i32 %level, i64 %arena)
  ret ptr %context
}

; Ends a call: keeps its context for the next one, with a larger arena where it took more memory than there was.
define internal void @end(ptr %used, i32 %level) nounwind {
entry:
  %to.grown = getelementptr i8, ptr %used, i64 <GROWN>
  %grown = load i64, ptr %to.grown
  %to.arena = getelementptr i8, ptr %used, i64 <ARENA>
  %arena = load i64, ptr %to.arena
  %wanted = add i64 %arena, %grown
  %some = icmp ne i64 %grown, 0
  %fits = icmp ule i64 %wanted, <MOST_ARENA>
  %grows = and i1 %some, %fits
  store i64 0, ptr %to.grown
  br i1 %grows, label %larger, label %keep
larger:
  %made = call ptr @new_context(i32 %level, i64 %wanted)
  %none = icmp eq ptr %made, null
  br i1 %none, label %keep, label %change
change:
  call void @free(ptr %used)
  br label %keep
keep:
  %context = phi ptr [ %used, %entry ], [ %used, %larger ], [ %made, %change ]
  %to.next = getelementptr i8, ptr %context, i64 <NEXT>
  call i32 @pthread_mutex_lock(ptr @lock)
  %first = load ptr, ptr @idle
  store ptr %first, ptr %to.next
  store ptr %context, ptr @idle
  call i32 @pthread_mutex_unlock(ptr @lock)
  ret void
}
