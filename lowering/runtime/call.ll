; Calls of compiled Relay programs from Python, by Python's own C interface.
;
; mirstack_call is the code of a builtin function (METH_FASTCALL). It looks at its arguments as numpy's C interface lays them
; out, and calls the program only where each is exactly what the program takes: an array of numpy's own class, of the very
; dtype object, of the shape but for open extents, row-major contiguous and aligned. Anything else, a program that fails, and a call for which
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
  ptr,  ; NotImplemented
  ptr   ; what frees the results of open shape, null where there is none
}
%Input = type { ptr, i64, ptr }         ; dtype, rank, extents, where open negative
%Output = type { ptr, ptr, i64, ptr }   ; what makes an array, its arguments, their number, %Form of an open shape or null
%Form = type { i64, ptr, i64, i64, ptr } ; rank, extents as above, bytes of an element, from how many bytes on Python copies it, the function that does
%Context = type { ptr, i64, ptr, ptr, ptr } ; the next, the thread it is ready for, the table for the entry, depth and growth of its heap

declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @PyThread_get_thread_ident()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @memcpy(ptr, ptr, i64)

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

; The words of an array's descriptor, if the program takes it as this input, otherwise 0: its address, then its open extents, which
; are written after the first word of %descriptor.
define internal i64 @fits(ptr %array, ptr %input, ptr %class, ptr %descriptor) nounwind {
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
  %number = phi i64 [ 0, %shape ], [ %following, %compare ], [ %following, %write ]
  %words = phi i64 [ 1, %shape ], [ %words, %compare ], [ %more, %write ]
  %left = icmp slt i64 %number, %rank
  br i1 %left, label %compare, label %yes
compare:
  %extent.at = getelementptr inbounds i64, ptr %extents, i64 %number
  %extent = load i64, ptr %extent.at
  %its.extent.at = getelementptr inbounds i64, ptr %its.extents, i64 %number
  %its.extent = load i64, ptr %its.extent.at
  %same = icmp eq i64 %its.extent, %extent
  %following = add i64 %number, 1
  br i1 %same, label %axis, label %differs
differs:
  ; `MOST_EXTENT` of dialects/extents.py.
  %open = icmp slt i64 %extent, 0
  %counted = icmp ult i64 %its.extent, 2147483648
  %free = and i1 %open, %counted
  br i1 %free, label %write, label %no
write:
  %word.at = getelementptr inbounds i64, ptr %descriptor, i64 %words
  store i64 %its.extent, ptr %word.at
  %more = add i64 %words, 1
  br label %axis
yes:
  ret i64 %words
no:
  ret i64 0
}

; A copy of the tensor that a descriptor is of, as an array; null with an exception set.
define internal ptr @copied(ptr %output, ptr %descriptor) nounwind {
entry:
  %with = alloca ptr, i64 2
  %form.at = getelementptr inbounds %Output, ptr %output, i64 0, i32 3
  %form = load ptr, ptr %form.at
  %rank = load i64, ptr %form
  %extents.at = getelementptr inbounds %Form, ptr %form, i64 0, i32 1
  %extents = load ptr, ptr %extents.at
  %element.at = getelementptr inbounds %Form, ptr %form, i64 0, i32 2
  %element = load i64, ptr %element.at
  %shape = call ptr @PyTuple_New(i64 %rank)
  %no.shape = icmp eq ptr %shape, null
  br i1 %no.shape, label %no, label %axis
axis:
  %number = phi i64 [ 0, %entry ], [ %following, %set ]
  %words = phi i64 [ 1, %entry ], [ %more, %set ]
  %bytes = phi i64 [ %element, %entry ], [ %product, %set ]
  %left = icmp slt i64 %number, %rank
  br i1 %left, label %look, label %shaped
look:
  %declared.at = getelementptr inbounds i64, ptr %extents, i64 %number
  %declared = load i64, ptr %declared.at
  %open = icmp slt i64 %declared, 0
  %word.at = getelementptr inbounds i64, ptr %descriptor, i64 %words
  %extent.at = select i1 %open, ptr %word.at, ptr %declared.at
  %extent = load i64, ptr %extent.at
  %one = zext i1 %open to i64
  %more = add i64 %words, %one
  %product = mul i64 %bytes, %extent
  %following = add i64 %number, 1
  %integer = call ptr @PyLong_FromLongLong(i64 %extent)
  %no.integer = icmp eq ptr %integer, null
  br i1 %no.integer, label %drop.shape, label %set
set:
  call i32 @PyTuple_SetItem(ptr %shape, i64 %number, ptr %integer)
  br label %axis
drop.shape:
  call void @Py_DecRef(ptr %shape)
  br label %no
shaped:
  %large.at = getelementptr inbounds %Form, ptr %form, i64 0, i32 3
  %large = load i64, ptr %large.at
  %is.large = icmp uge i64 %bytes, %large
  br i1 %is.large, label %hand.on, label %make
make:
  store ptr %shape, ptr %with
  %arguments.at = getelementptr inbounds %Output, ptr %output, i64 0, i32 1
  %arguments = load ptr, ptr %arguments.at
  %dtype.at = getelementptr inbounds ptr, ptr %arguments, i64 1
  %dtype = load ptr, ptr %dtype.at
  %second = getelementptr inbounds ptr, ptr %with, i64 1
  store ptr %dtype, ptr %second
  %maker = load ptr, ptr %output
  %array = call ptr @PyObject_Vectorcall(ptr %maker, ptr %with, i64 2, ptr null)
  call void @Py_DecRef(ptr %shape)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %no, label %copy
copy:
  %memory.at = getelementptr inbounds %Array, ptr %array, i64 0, i32 2
  %memory = load ptr, ptr %memory.at
  %source = load ptr, ptr %descriptor
  call ptr @memcpy(ptr %memory, ptr %source, i64 %bytes)
  ret ptr %array
hand.on:
  call void @Py_DecRef(ptr %shape)
  %address = call ptr @PyLong_FromVoidPtr(ptr %descriptor)
  %no.address = icmp eq ptr %address, null
  br i1 %no.address, label %no, label %ask
ask:
  store ptr %address, ptr %with
  %copies.at = getelementptr inbounds %Form, ptr %form, i64 0, i32 4
  %copies = load ptr, ptr %copies.at
  %result = call ptr @PyObject_Vectorcall(ptr %copies, ptr %with, i64 1, ptr null)
  call void @Py_DecRef(ptr %address)
  ret ptr %result
no:
  ret ptr null
}

; Frees the results of open shape, and makes the context ready for the next call.
define internal void @end(ptr %plan, ptr %context, ptr %table) nounwind {
entry:
  %finish.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 11
  %finish = load ptr, ptr %finish.at
  %nothing = icmp eq ptr %finish, null
  br i1 %nothing, label %give, label %free
free:
  %words = load ptr, ptr %table
  call i32 %finish(ptr %words)
  br label %give
give:
  call void @mirstack_give_context(ptr %plan, ptr %context)
  ret void
}

; Drops the first %count objects of a list, some of which may be null.
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
  %outputs.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 4
  %outputs = load i64, ptr %outputs.at
  %first.word = add i64 %inputs, 1
  %last.word = add i64 %first.word, %outputs
  %descriptors = getelementptr inbounds ptr, ptr %table, i64 %last.word
  br label %argument
argument:
  %number = phi i64 [ 0, %read ], [ %following, %take ], [ %following, %describe ]
  %descriptor = phi ptr [ %descriptors, %read ], [ %after.it, %take ], [ %after.it, %describe ]
  %left = icmp slt i64 %number, %inputs
  br i1 %left, label %check, label %make
check:
  %argument.at = getelementptr inbounds ptr, ptr %arguments, i64 %number
  %array = load ptr, ptr %argument.at
  %spec = getelementptr inbounds %Input, ptr %specs, i64 %number
  %words = call i64 @fits(ptr %array, ptr %spec, ptr %class, ptr %descriptor)
  %fits = icmp ne i64 %words, 0
  br i1 %fits, label %take, label %decline
take:
  %data.at = getelementptr inbounds %Array, ptr %array, i64 0, i32 2
  %data = load ptr, ptr %data.at
  %is.open = icmp ugt i64 %words, 1
  %passed = select i1 %is.open, ptr %descriptor, ptr %data
  %beyond = getelementptr inbounds ptr, ptr %descriptor, i64 %words
  %after.it = select i1 %is.open, ptr %beyond, ptr %descriptor
  %following = add i64 %number, 1
  %word.at = getelementptr inbounds ptr, ptr %table, i64 %following
  store ptr %passed, ptr %word.at
  br i1 %is.open, label %describe, label %argument
describe:
  store ptr %data, ptr %descriptor
  br label %argument

make:
  ; From here on Python code may run, and other threads.
  %after = load ptr, ptr %context
  store ptr %after, ptr %slot
  %makers.at = getelementptr inbounds %Plan, ptr %plan, i64 0, i32 5
  %makers = load ptr, ptr %makers.at
  %results = alloca ptr, i64 %outputs
  %places = alloca ptr, i64 %outputs
  br label %output
output:
  %made = phi i64 [ 0, %make ], [ %more, %keep ]
  %missing = icmp slt i64 %made, %outputs
  br i1 %missing, label %ask, label %run
ask:
  %output.at = getelementptr inbounds %Output, ptr %makers, i64 %made
  %place.for.it = getelementptr inbounds ptr, ptr %places, i64 %made
  %form.at = getelementptr inbounds %Output, ptr %output.at, i64 0, i32 3
  %form = load ptr, ptr %form.at
  %known = icmp eq ptr %form, null
  br i1 %known, label %create, label %keep
create:
  %maker = load ptr, ptr %output.at
  %with.at = getelementptr inbounds %Output, ptr %output.at, i64 0, i32 1
  %with = load ptr, ptr %with.at
  %with.count.at = getelementptr inbounds %Output, ptr %output.at, i64 0, i32 2
  %with.count = load i64, ptr %with.count.at
  %result = call ptr @PyObject_Vectorcall(ptr %maker, ptr %with, i64 %with.count, ptr null)
  %refused = icmp eq ptr %result, null
  br i1 %refused, label %give.up, label %created
created:
  %memory.at = getelementptr inbounds %Array, ptr %result, i64 0, i32 2
  %its.memory = load ptr, ptr %memory.at
  br label %keep
keep:
  ; Where the shape is known after the call, the program writes the address of a descriptor.
  %kept = phi ptr [ null, %ask ], [ %result, %created ]
  %memory = phi ptr [ %place.for.it, %ask ], [ %its.memory, %created ]
  %result.at = getelementptr inbounds ptr, ptr %results, i64 %made
  store ptr %kept, ptr %result.at
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
  br i1 %good, label %copy, label %fail
fail:
  ; Where recursion ended early, its calls are still counted.
  %depth.at = getelementptr inbounds %Context, ptr %context, i64 0, i32 3
  %depth = load ptr, ptr %depth.at
  store i64 0, ptr %depth
  call void @end(ptr %plan, ptr %context, ptr %table)
  call void @drop(ptr %results, i64 %outputs)
  br label %decline
copy:
  %copy.number = phi i64 [ 0, %run ], [ %copy.next, %copy.following ]
  %uncopied = icmp slt i64 %copy.number, %outputs
  br i1 %uncopied, label %inspect, label %finish
inspect:
  %slot.of.it = getelementptr inbounds ptr, ptr %results, i64 %copy.number
  %in.slot = load ptr, ptr %slot.of.it
  %there = icmp ne ptr %in.slot, null
  br i1 %there, label %copy.following, label %copy.it
copy.it:
  %place.of.it = getelementptr inbounds ptr, ptr %places, i64 %copy.number
  %its.descriptor = load ptr, ptr %place.of.it
  %its.output = getelementptr inbounds %Output, ptr %makers, i64 %copy.number
  %copied = call ptr @copied(ptr %its.output, ptr %its.descriptor)
  store ptr %copied, ptr %slot.of.it
  %uncopiable = icmp eq ptr %copied, null
  br i1 %uncopiable, label %no.copy, label %copy.following
copy.following:
  %copy.next = add i64 %copy.number, 1
  br label %copy
no.copy:
  call void @end(ptr %plan, ptr %context, ptr %table)
  br label %lost
finish:
  call void @end(ptr %plan, ptr %context, ptr %table)
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
