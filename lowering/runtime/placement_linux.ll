; Workers stay off the processor of the thread that shares out a region. Where a thread wakes another, Linux may put both on one
; processor and leave the next one idle, for as long as both run: a region then takes as long as on one thread, or longer.
;
; The processors are those that the calling thread itself may use; where there are fewer of them than threads, workers go where
; the system puts them. It is one comparison a region: masks are set again when the caller has moved.

@pinning = internal global i32 1                   ; 0: workers go where the system puts them
@settled = internal global i32 -1                  ; the processor that workers were told to stay off, -1 before that

declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare <16 x i64> @llvm.ctpop.v16i64(<16 x i64>)
declare i64 @llvm.vector.reduce.add.v16i64(<16 x i64>)

; With 0, workers that exist go anywhere from the next region on.
define void @mirstack_set_pinning(i32 %on) nounwind {
  store atomic i32 %on, ptr @pinning seq_cst, align 4
  store atomic i32 -1, ptr @settled seq_cst, align 4
  ret void
}

; Workers are new, or another number of them is wanted: the next region tells them where to run.
define internal void @unsettle() nounwind {
  store atomic i32 -1, ptr @settled monotonic, align 4
  ret void
}

; Tells workers where to run, unless they know. The caller holds the pool; %helpers of the workers take part.
define internal void @settle(i32 %helpers) nounwind {
entry:
  %mask = alloca <16 x i64>, align 128
  %own = call i32 @sched_getcpu()
  %before = load atomic i32, ptr @settled monotonic, align 4
  %known = icmp eq i32 %own, %before
  br i1 %known, label %done, label %ask
ask:
  store atomic i32 %own, ptr @settled monotonic, align 4
  %error = call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  %failed = icmp ne i32 %error, 0
  %beyond = icmp uge i32 %own, 1024
  %unknown = or i1 %failed, %beyond
  br i1 %unknown, label %done, label %count
count:
  %words = load <16 x i64>, ptr %mask
  %ones = call <16 x i64> @llvm.ctpop.v16i64(<16 x i64> %words)
  %processors = call i64 @llvm.vector.reduce.add.v16i64(<16 x i64> %ones)
  %wide = zext i32 %helpers to i64
  %enough = icmp ugt i64 %processors, %wide
  %on = load atomic i32, ptr @pinning monotonic, align 4
  %wanted = icmp ne i32 %on, 0
  %apart = and i1 %enough, %wanted
  br i1 %apart, label %clear, label %each
clear:
  %number = zext i32 %own to i64
  %word = lshr i64 %number, 6
  %bit = and i64 %number, 63
  %at = getelementptr inbounds i64, ptr %mask, i64 %word
  %old = load i64, ptr %at
  %set = shl i64 1, %bit
  %others = xor i64 %set, -1
  %new = and i64 %old, %others
  store i64 %new, ptr %at
  br label %each
each:
  %turn = phi i64 [ 0, %count ], [ 0, %clear ], [ %following, %tell ]
  %count.now = load i32, ptr @spawned
  %workers = zext i32 %count.now to i64
  %left = icmp ult i64 %turn, %workers
  br i1 %left, label %tell, label %done
tell:
  %handle = getelementptr inbounds [256 x i64], ptr @handles, i64 0, i64 %turn
  %thread = load i64, ptr %handle
  call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr %mask)
  %following = add i64 %turn, 1
  br label %each
done:
  ret void
}
