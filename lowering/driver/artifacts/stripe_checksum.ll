; The checksum of stripes of 256 bytes, %count of them, from any address: 64 sums of 32 bits, stored at %sums.
; Each is that of the words at its place in all stripes; sum := (sum xor word) * odd, sum := sum xor (sum >> 15) is one to one in either.
define void @mirstack_stripe_checksum(ptr %from, i64 %count, ptr %sums) ATTRIBUTES {
entry:
  br label %test
test:
  %number = phi i64 [ 0, %entry ], [ %following, %one ]
  %at = phi ptr [ %from, %entry ], [ %next, %one ]
  %s0 = phi <16 x i32> [ splat (i32 -2128831035), %entry ], [ %t0, %one ]
  %s1 = phi <16 x i32> [ splat (i32 -2128831035), %entry ], [ %t1, %one ]
  %s2 = phi <16 x i32> [ splat (i32 -2128831035), %entry ], [ %t2, %one ]
  %s3 = phi <16 x i32> [ splat (i32 -2128831035), %entry ], [ %t3, %one ]
  %more = icmp ult i64 %number, %count
  br i1 %more, label %one, label %done
one:
  %at1 = getelementptr i8, ptr %at, i64 64
  %at2 = getelementptr i8, ptr %at, i64 128
  %at3 = getelementptr i8, ptr %at, i64 192
  %w0 = load <16 x i32>, ptr %at, align 4
  %w1 = load <16 x i32>, ptr %at1, align 4
  %w2 = load <16 x i32>, ptr %at2, align 4
  %w3 = load <16 x i32>, ptr %at3, align 4
  %x0 = xor <16 x i32> %s0, %w0
  %x1 = xor <16 x i32> %s1, %w1
  %x2 = xor <16 x i32> %s2, %w2
  %x3 = xor <16 x i32> %s3, %w3
  %m0 = mul <16 x i32> %x0, splat (i32 -1640531535)
  %m1 = mul <16 x i32> %x1, splat (i32 -1640531535)
  %m2 = mul <16 x i32> %x2, splat (i32 -1640531535)
  %m3 = mul <16 x i32> %x3, splat (i32 -1640531535)
  %h0 = lshr <16 x i32> %m0, splat (i32 15)
  %h1 = lshr <16 x i32> %m1, splat (i32 15)
  %h2 = lshr <16 x i32> %m2, splat (i32 15)
  %h3 = lshr <16 x i32> %m3, splat (i32 15)
  %t0 = xor <16 x i32> %m0, %h0
  %t1 = xor <16 x i32> %m1, %h1
  %t2 = xor <16 x i32> %m2, %h2
  %t3 = xor <16 x i32> %m3, %h3
  %next = getelementptr i8, ptr %at, i64 256
  %following = add i64 %number, 1
  br label %test
done:
  %to1 = getelementptr i8, ptr %sums, i64 64
  %to2 = getelementptr i8, ptr %sums, i64 128
  %to3 = getelementptr i8, ptr %sums, i64 192
  store <16 x i32> %s0, ptr %sums, align 4
  store <16 x i32> %s1, ptr %to1, align 4
  store <16 x i32> %s2, ptr %to2, align 4
  store <16 x i32> %s3, ptr %to3, align 4
  ret void
}
