; Calls of compiled Relay programs from Python, by Python's own C interface.
;
; mirstack_call is the code of a builtin function (METH_FASTCALL). It looks at its arguments as numpy's C interface lays them
; out, and calls the program only where each is exactly what the program takes: an array of numpy's own class, of the very
; dtype object, of the shape, row-major contiguous and aligned. Anything else, a program that fails, and a call for which
; no context of this thread lies ready, it declines: it gives NotImplemented, and the caller does the call again the careful
; way, which raises the errors. Whoever uses this file has checked that arrays lie in memory as %Array says.
;
; Python's lock is held but for the program itself.

%Array = type { i64, ptr, ptr, i32, ptr, ptr, ptr, ptr, i32 }  ; references, class, data, rank, extents, strides, base, dtype, flags
%Plan = type {
  ptr,  ; the program's entry
  ptr,  ; contexts that no call uses, the newest first
  i64,  ; how many inputs
  ptr,  ; %Input of each
  i64,  ; how many outputs
  ptr,  ; %Output of each
  i64,  ; 1 where the only output is the result, 0 where the result is a tuple
  i64,  ; how many threads the program's loops need, 0 where it has none that are parallel
  ptr,  ; i64: how many threads the pool is set to
  ptr,  ; numpy.ndarray
  ptr   ; NotImplemented
}
%Input = type { ptr, i64, ptr }    ; dtype, rank, extents
%Output = type { ptr, ptr, i64 }   ; what makes an array, its arguments, their number
%Context = type { ptr, i64, ptr, ptr, ptr } ; the next, the thread it is ready for, the table for the entry, depth and growth of its heap

declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @PyThread_get_thread_ident()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)

; Takes a context that no call uses, or null.
define ptr @mirstack_take_context(ptr %plan) nounwind {
  %head = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 1
  %context = load ptr, ptr %head
  %none = icmp eq ptr %context, null
  br i1 %none, label %done, label %unlink
unlink:
  %next = load ptr, ptr %context
  store ptr %next, ptr %head
  br label %done
done:
  ret ptr %context
}

; Gives a context back.
define void @mirstack_give_context(ptr %plan, ptr %context) nounwind {
  %head = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 1
  %next = load ptr, ptr %head
  store ptr %next, ptr %context
  store ptr %context, ptr %head
  ret void
}

; Whether an object is an array that the program takes as this input.
define internal i1 @fits(ptr %array, ptr %input, ptr %class) nounwind {
entry:
  %class.at = getelementptr inbounds %Array, ptr %array, i64 0, i32 1
  %its.class = load ptr, ptr %class.at
  %is.array = icmp eq ptr %its.class, %class
  br i1 %is.array, label %look, label %no
look:
  %dtype = load ptr, ptr %input
  %dtype.at = getelementptr inbounds %Array, ptr %array, i64 0, i32 7
  %its.dtype = load ptr, ptr %dtype.at
  %same.dtype = icmp eq ptr %its.dtype, %dtype
  %rank.at = getelementptr inbounds %Input, ptr %input, i64 0, i32 1
  %rank = load i64, ptr %rank.at
  %its.rank.at = getelementptr inbounds %Array, ptr %array, i64 0, i32 3
  %its.rank = load i32, ptr %its.rank.at
  %wide = sext i32 %its.rank to i64
  %same.rank = icmp eq i64 %wide, %rank
  ; NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED.
  %flags.at = getelementptr inbounds %Array, ptr %array, i64 0, i32 8
  %flags = load i32, ptr %flags.at
  %masked = and i32 %flags, 257
  %laid.out = icmp eq i32 %masked, 257
  %both = and i1 %same.dtype, %same.rank
  %all = and i1 %both, %laid.out
  br i1 %all, label %shape, label %no
shape:
  %extents.at = getelementptr inbounds %Input, ptr %input, i64 0, i32 2
  %extents = load ptr, ptr %extents.at
  %its.extents.at = getelementptr inbounds %Array, ptr %array, i64 0, i32 4
  %its.extents = load ptr, ptr %its.extents.at
  br label %axis
axis:
  %number = phi i64 [ 0, %shape ], [ %following, %compare ]
  %left = icmp slt i64 %number, %rank
  br i1 %left, label %compare, label %yes
compare:
  %extent.at = getelementptr inbounds i64, ptr %extents, i64 %number
  %extent = load i64, ptr %extent.at
  %its.extent.at = getelementptr inbounds i64, ptr %its.extents, i64 %number
  %its.extent = load i64, ptr %its.extent.at
  %same = icmp eq i64 %its.extent, %extent
  %following = add i64 %number, 1
  br i1 %same, label %axis, label %no
yes:
  ret i1 1
no:
  ret i1 0
}

; Drops the first %count objects of a list.
define internal void @drop(ptr %objects, i64 %count) nounwind {
entry:
  br label %test
test:
  %number = phi i64 [ 0, %entry ], [ %following, %turn ]
  %left = icmp slt i64 %number, %count
  br i1 %left, label %turn, label %done
turn:
  %at = getelementptr inbounds ptr, ptr %objects, i64 %number
  %object = load ptr, ptr %at
  call void @Py_DecRef(ptr %object)
  %following = add i64 %number, 1
  br label %test
done:
  ret void
}

; (a tuple whose first item is the plan's address as an int, the arguments, their number) to the result, to NotImplemented,
; or to null with an exception set.
define ptr @mirstack_call(ptr %self, ptr %arguments, i64 %count) nounwind {
entry:
  %address = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %plan = call ptr @PyLong_AsVoidPtr(ptr %address)
  %inputs.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 2
  %inputs = load i64, ptr %inputs.at
  %counted = icmp eq i64 %count, %inputs
  br i1 %counted, label %ready, label %decline

ready:
  ; A context of this thread, as stacks differ; and the heap of that need not grow first.
  %me = call i64 @PyThread_get_thread_ident()
  %head = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 1
  br label %search
search:
  %slot = phi ptr [ %head, %ready ], [ %context, %look ]
  %context = load ptr, ptr %slot
  %none = icmp eq ptr %context, null
  br i1 %none, label %decline, label %look
look:
  %thread.at = getelementptr inbounds %Context, ptr %context, i64 0, i32 1
  %thread = load i64, ptr %thread.at
  %mine = icmp eq i64 %thread, %me
  br i1 %mine, label %found, label %search
found:
  %grown.at = getelementptr inbounds %Context, ptr %context, i64 0, i32 4
  %grown.word = load ptr, ptr %grown.at
  %grown = load i64, ptr %grown.word
  %enough = icmp eq i64 %grown, 0
  br i1 %enough, label %threads, label %decline
threads:
  %threads.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 7
  %wanted = load i64, ptr %threads.at
  %any = icmp eq i64 %wanted, 0
  %pool.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 8
  %pool = load ptr, ptr %pool.at
  %set = load i64, ptr %pool
  %same = icmp eq i64 %set, %wanted
  %right = or i1 %any, %same
  br i1 %right, label %read, label %decline

read:
  %table.at = getelementptr inbounds %Context, ptr %context, i64 0, i32 2
  %table = load ptr, ptr %table.at
  %specs.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 3
  %specs = load ptr, ptr %specs.at
  %class.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 9
  %class = load ptr, ptr %class.at
  br label %argument
argument:
  %number = phi i64 [ 0, %read ], [ %following, %take ]
  %left = icmp slt i64 %number, %inputs
  br i1 %left, label %check, label %make
check:
  %argument.at = getelementptr inbounds ptr, ptr %arguments, i64 %number
  %array = load ptr, ptr %argument.at
  %spec = getelementptr inbounds %Input, ptr %specs, i64 %number
  %fits = call i1 @fits(ptr %array, ptr %spec, ptr %class)
  br i1 %fits, label %take, label %decline
take:
  %data.at = getelementptr inbounds %Array, ptr %array, i64 0, i32 2
  %data = load ptr, ptr %data.at
  %following = add i64 %number, 1
  %word.at = getelementptr inbounds ptr, ptr %table, i64 %following
  store ptr %data, ptr %word.at
  br label %argument

make:
  ; From here on Python code may run, and other threads.
  %after = load ptr, ptr %context
  store ptr %after, ptr %slot
  %outputs.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 4
  %outputs = load i64, ptr %outputs.at
  %makers.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 5
  %makers = load ptr, ptr %makers.at
  %results = alloca ptr, i64 %outputs
  %first.word = add i64 %inputs, 1
  br label %output
output:
  %made = phi i64 [ 0, %make ], [ %more, %keep ]
  %missing = icmp slt i64 %made, %outputs
  br i1 %missing, label %ask, label %run
ask:
  %output.at = getelementptr inbounds %Output, ptr %makers, i64 %made
  %maker = load ptr, ptr %output.at
  %with.at = getelementptr inbounds %Output, ptr %output.at, i64 0, i32 1
  %with = load ptr, ptr %with.at
  %with.count.at = getelementptr inbounds %Output, ptr %output.at, i64 0, i32 2
  %with.count = load i64, ptr %with.count.at
  %result = call ptr @PyObject_Vectorcall(ptr %maker, ptr %with, i64 %with.count, ptr null)
  %refused = icmp eq ptr %result, null
  br i1 %refused, label %give.up, label %keep
keep:
  %result.at = getelementptr inbounds ptr, ptr %results, i64 %made
  store ptr %result, ptr %result.at
  %memory.at = getelementptr inbounds %Array, ptr %result, i64 0, i32 2
  %memory = load ptr, ptr %memory.at
  %place = add i64 %first.word, %made
  %place.at = getelementptr inbounds ptr, ptr %table, i64 %place
  store ptr %memory, ptr %place.at
  %more = add i64 %made, 1
  br label %output
give.up:
  call void @drop(ptr %results, i64 %made)
  call void @mirstack_give_context(ptr %plan, ptr %context)
  ret ptr null

run:
  %code = load ptr, ptr %plan
  %state = call ptr @PyEval_SaveThread()
  %status = call i32 %code(ptr %table)
  call void @PyEval_RestoreThread(ptr %state)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %finish, label %fail
fail:
  ; Where recursion ended early, its calls are still counted.
  %depth.at = getelementptr inbounds %Context, ptr %context, i64 0, i32 3
  %depth = load ptr, ptr %depth.at
  store i64 0, ptr %depth
  call void @mirstack_give_context(ptr %plan, ptr %context)
  call void @drop(ptr %results, i64 %outputs)
  br label %decline
finish:
  call void @mirstack_give_context(ptr %plan, ptr %context)
  %single.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 6
  %single = load i64, ptr %single.at
  %alone = icmp ne i64 %single, 0
  br i1 %alone, label %one, label %several
one:
  %only = load ptr, ptr %results
  ret ptr %only
several:
  %tuple = call ptr @PyTuple_New(i64 %outputs)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %lost, label %field
lost:
  call void @drop(ptr %results, i64 %outputs)
  ret ptr null
field:
  %index = phi i64 [ 0, %several ], [ %next.index, %fill ]
  %unfilled = icmp slt i64 %index, %outputs
  br i1 %unfilled, label %fill, label %full
fill:
  %item.at = getelementptr inbounds ptr, ptr %results, i64 %index
  %item = load ptr, ptr %item.at
  call i32 @PyTuple_SetItem(ptr %tuple, i64 %index, ptr %item)
  %next.index = add i64 %index, 1
  br label %field
full:
  ret ptr %tuple

decline:
  %declined.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 10
  %declined = load ptr, ptr %declined.at
  call void @Py_IncRef(ptr %declined)
  ret ptr %declined
}
