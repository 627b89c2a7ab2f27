; The runtime of compiled code: a pool of threads for parallel loops.
;
; One region (a call of mirstack_parallel_for) runs at a time. A caller that finds the pool taken runs its loop by itself:
; so do nested regions, and a second Python thread. Iterations are handed out in chunks from a shared counter: a part of what is left
; each time, so that all threads end together (Polychronopoulos and Kuck, "Guided Self-Scheduling", 1987).
; Workers look for a new region for a while, which is longer than a kernel that runs on one thread takes, then sleep on a condition variable. The caller does not wait for
; sleepers to wake: a worker takes part in a region if it comes while the region is open, and the caller, once the
; iterations are all given out, closes the region and waits for those who are inside.
;
; PAUSE stands for the processor's hint that a thread spins. A second file, placement_*.ll, says where workers run.

@threads = internal global i32 1, align 64        ; threads of a region, the caller's own among them
@spawned = internal global i32 0                   ; workers that exist
@spins = internal global i32 0                     ; how often to look for work before sleeping, or yielding
@stop = internal global i32 0                      ; 1: workers shall end
@sleepers = internal global i32 0                  ; workers on the condition variable
@busy = internal global [16 x i32] zeroinitializer, align 64   ; 1 while a region runs
@epoch = internal global [8 x i64] zeroinitializer, align 64   ; regions so far
@gate = internal global [8 x i64] zeroinitializer, align 64    ; workers inside, plus 2^32 while the region is open
@next = internal global [8 x i64] zeroinitializer, align 64    ; the first iteration that is not given out
@last = internal global i64 0, align 64
@least = internal global i64 0                     ; iterations of a chunk at least
@shares = internal global i64 0                    ; a chunk is what is left, divided by this
@body = internal global ptr null
@context = internal global ptr null
@status = internal global i32 0                    ; what the first failing chunk returned
@mutex = internal global [128 x i8] zeroinitializer, align 64
@wake = internal global [128 x i8] zeroinitializer, align 64
@handles = internal global [256 x i64] zeroinitializer, align 64

declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @sched_yield()

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)

; Readies the pool; called once after loading, and in the child after a fork, where no worker has survived.
define void @mirstack_reset() nounwind {
  store i32 0, ptr @spawned
  store i32 0, ptr @stop
  store i32 0, ptr @sleepers
  store i32 0, ptr @busy
  store i64 0, ptr @gate
  call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  call i32 @pthread_cond_init(ptr @wake, ptr null)
  ret void
}

; Regions use up to %count threads (1 to 256) from now on.
define void @mirstack_set_threads(i32 %count) nounwind {
  %least = call i32 @llvm.smax.i32(i32 %count, i32 1)
  %most = call i32 @llvm.smin.i32(i32 %least, i32 256)
  store atomic i32 %most, ptr @threads seq_cst, align 4
  call void @unsettle()
  ret void
}

; A thread looks %count times for what it waits for before it sleeps or yields.
define void @mirstack_set_spins(i32 %count) nounwind {
  store atomic i32 %count, ptr @spins seq_cst, align 4
  ret void
}

define i32 @mirstack_get_threads() nounwind {
  %count = load atomic i32, ptr @threads monotonic, align 4
  ret i32 %count
}

; Gives out chunks and runs them until none is left, or one fails.
define internal void @work() nounwind {
entry:
  %body = load ptr, ptr @body
  %context = load ptr, ptr @context
  %last = load i64, ptr @last
  %least = load i64, ptr @least
  %shares = load i64, ptr @shares
  br label %take
take:
  %begin = load atomic i64, ptr @next monotonic, align 8
  %rest = sub i64 %last, %begin
  %left = icmp sgt i64 %rest, 0
  br i1 %left, label %claim, label %done
claim:
  %rounded = add i64 %rest, %shares
  %up = sub i64 %rounded, 1
  %part = udiv i64 %up, %shares
  %size = call i64 @llvm.smax.i64(i64 %part, i64 %least)
  %past = add i64 %begin, %size
  %end = call i64 @llvm.smin.i64(i64 %past, i64 %last)
  %swap = cmpxchg ptr @next, i64 %begin, i64 %end monotonic monotonic
  %ours = extractvalue { i64, i1 } %swap, 1
  br i1 %ours, label %run, label %take
run:
  %code = call i32 %body(ptr %context, i64 %begin, i64 %end)
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %take, label %fail
fail:
  %old = cmpxchg ptr @status, i32 0, i32 %code monotonic monotonic
  store atomic i64 %last, ptr @next monotonic, align 8
  br label %done
done:
  ret void
}

; A worker; %argument is its number, from 0.
define internal ptr @worker(ptr %argument) nounwind {
entry:
  %number = ptrtoint ptr %argument to i32
  br label %wait
wait:
  %seen = phi i64 [ -1, %entry ], [ %epoch, %idle ], [ %epoch, %enter ], [ %epoch, %leave ]
  %spins = load atomic i32, ptr @spins monotonic, align 4
  br label %spin
spin:
  %turn = phi i32 [ 0, %wait ], [ %following, %again ]
  %now = load atomic i64, ptr @epoch acquire, align 8
  %new = icmp ne i64 %now, %seen
  br i1 %new, label %woken, label %again
again:
  PAUSE
  %following = add i32 %turn, 1
  %on = icmp ult i32 %following, %spins
  br i1 %on, label %spin, label %sleep
sleep:
  call i32 @pthread_mutex_lock(ptr @mutex)
  atomicrmw add ptr @sleepers, i32 1 seq_cst
  br label %check
check:
  %later = load atomic i64, ptr @epoch seq_cst, align 8
  %changed = icmp ne i64 %later, %seen
  br i1 %changed, label %up, label %rest
rest:
  call i32 @pthread_cond_wait(ptr @wake, ptr @mutex)
  br label %check
up:
  atomicrmw sub ptr @sleepers, i32 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %woken
woken:
  %epoch = phi i64 [ %now, %spin ], [ %later, %up ]
  %stop = load atomic i32, ptr @stop acquire, align 4
  %ending = icmp ne i32 %stop, 0
  br i1 %ending, label %end, label %idle
idle:
  ; More workers may exist than are wanted now.
  %threads = load atomic i32, ptr @threads monotonic, align 4
  %helpers = sub i32 %threads, 1
  %wanted = icmp slt i32 %number, %helpers
  br i1 %wanted, label %enter, label %wait
enter:
  %state = load atomic i64, ptr @gate acquire, align 8
  %open = icmp uge i64 %state, 4294967296
  br i1 %open, label %try, label %wait
try:
  %more = add i64 %state, 1
  %swap = cmpxchg ptr @gate, i64 %state, i64 %more acquire monotonic
  %inside = extractvalue { i64, i1 } %swap, 1
  br i1 %inside, label %leave, label %enter
leave:
  call void @work()
  atomicrmw sub ptr @gate, i64 1 release
  br label %wait
end:
  ret ptr null
}

; Makes workers until there are %wanted of them, or the system refuses one. The caller holds the pool.
define internal void @spawn(i32 %wanted) nounwind {
entry:
  br label %next
next:
  %count = load i32, ptr @spawned
  %enough = icmp sge i32 %count, %wanted
  br i1 %enough, label %done, label %make
make:
  %position = zext i32 %count to i64
  %handle = getelementptr inbounds [256 x i64], ptr @handles, i64 0, i64 %position
  %argument = inttoptr i64 %position to ptr
  %error = call i32 @pthread_create(ptr %handle, ptr null, ptr @worker, ptr %argument)
  %made = icmp eq i32 %error, 0
  br i1 %made, label %count_it, label %done
count_it:
  %more = add i32 %count, 1
  store i32 %more, ptr @spawned
  call void @unsettle()
  br label %next
done:
  ret void
}

; Wakes workers that sleep.
define internal void @wake_sleepers() nounwind {
entry:
  %sleeping = load atomic i32, ptr @sleepers seq_cst, align 4
  %none = icmp eq i32 %sleeping, 0
  br i1 %none, label %done, label %wake_them
wake_them:
  call i32 @pthread_mutex_lock(ptr @mutex)
  call i32 @pthread_cond_broadcast(ptr @wake)
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %done
done:
  ret void
}

; Calls %body(%context, b, e) on ranges that make up %begin to %end, none but the last shorter than %grain, on several
; threads. Returns 0, or what the first failing call returned; what is not given out by then is left undone.
define i32 @mirstack_parallel_for(ptr %body, ptr %context, i64 %begin, i64 %end, i64 %grain) nounwind {
entry:
  %count = sub i64 %end, %begin
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %measure, label %nothing
nothing:
  ret i32 0
measure:
  %threads = load atomic i32, ptr @threads monotonic, align 4
  %least = call i64 @llvm.smax.i64(i64 %grain, i64 1)
  %small = icmp sle i64 %count, %least
  %one = icmp sle i32 %threads, 1
  %alone = or i1 %small, %one
  br i1 %alone, label %serial, label %claim
claim:
  %swap = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %ours = extractvalue { i32, i1 } %swap, 1
  br i1 %ours, label %region, label %serial
serial:
  %code = call i32 %body(ptr %context, i64 %begin, i64 %end)
  ret i32 %code
region:
  %helpers = sub i32 %threads, 1
  call void @spawn(i32 %helpers)
  call void @settle(i32 %helpers)
  ; The first chunks are half of a thread's share, the last ones a sixteenth, or what is worth it.
  %wide = zext i32 %threads to i64
  %shares = mul i64 %wide, 2
  %parts = mul i64 %wide, 16
  %small.share = udiv i64 %count, %parts
  %size = call i64 @llvm.smax.i64(i64 %small.share, i64 %least)
  store ptr %body, ptr @body
  store ptr %context, ptr @context
  store i64 %end, ptr @last
  store i64 %size, ptr @least
  store i64 %shares, ptr @shares
  store i32 0, ptr @status
  store atomic i64 %begin, ptr @next monotonic, align 8
  store atomic i64 4294967296, ptr @gate release, align 8
  atomicrmw add ptr @epoch, i64 1 seq_cst
  call void @wake_sleepers()
  call void @work()
  atomicrmw sub ptr @gate, i64 4294967296 acq_rel
  %spins = load atomic i32, ptr @spins monotonic, align 4
  br label %join
join:
  %turn = phi i32 [ 0, %region ], [ %following, %pause ], [ 0, %yield ]
  %inside = load atomic i64, ptr @gate acquire, align 8
  %over = icmp eq i64 %inside, 0
  br i1 %over, label %done, label %linger
linger:
  %following = add i32 %turn, 1
  %patient = icmp ult i32 %following, %spins
  br i1 %patient, label %pause, label %yield
pause:
  PAUSE
  br label %join
yield:
  call i32 @sched_yield()
  br label %join
done:
  %result = load i32, ptr @status
  store atomic i32 0, ptr @busy release, align 4
  ret i32 %result
}

; Ends all workers and waits for them. Another region starts new ones.
define void @mirstack_shutdown() nounwind {
entry:
  br label %claim
claim:
  %swap = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %ours = extractvalue { i32, i1 } %swap, 1
  br i1 %ours, label %ask, label %later
later:
  call i32 @sched_yield()
  br label %claim
ask:
  store atomic i32 1, ptr @stop release, align 4
  atomicrmw add ptr @epoch, i64 1 seq_cst
  call void @wake_sleepers()
  br label %next
next:
  %number = phi i32 [ 0, %ask ], [ %more, %join ]
  %count = load i32, ptr @spawned
  %left = icmp slt i32 %number, %count
  br i1 %left, label %join, label %done
join:
  %position = zext i32 %number to i64
  %handle = getelementptr inbounds [256 x i64], ptr @handles, i64 0, i64 %position
  %thread = load i64, ptr %handle
  call i32 @pthread_join(i64 %thread, ptr null)
  %more = add i32 %number, 1
  br label %next
done:
  store i32 0, ptr @spawned
  store atomic i32 0, ptr @stop release, align 4
  store atomic i32 0, ptr @busy release, align 4
  ret void
}
