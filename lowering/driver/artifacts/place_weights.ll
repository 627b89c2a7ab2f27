define internal void @place.TABLE(ptr %memory) nounwind {
entry:
  br label %next
next:
  %number = phi i64 [ 0, %entry ], [ %following, %one ]
  %more = icmp ult i64 %number, COUNT
  br i1 %more, label %one, label %done
one:
  %from = getelementptr i64, ptr @places.TABLE, i64 %number
  %offset = load i64, ptr %from
  %address = getelementptr i8, ptr %memory, i64 %offset
  %to = getelementptr i64, ptr @TABLE, i64 %number
  store ptr %address, ptr %to
  %following = add i64 %number, 1
  br label %next
done:
  ret void
}
