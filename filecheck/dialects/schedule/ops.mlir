// RUN: mir-opt %s -t mlir | filecheck %s
// RUN: mir-opt %s -t mlir --print-op-generic | mir-opt -f mlir -t mlir | filecheck %s
// RUN: xdsl-opt %s | filecheck %s

// CHECK: schedule.script @tiled(@mm) {
schedule.script @tiled(@mm) {
  // CHECK-NEXT: %b = schedule.get_block("Y") as "b" : !schedule.block
  %b = schedule.get_block("Y") as "b" : !schedule.block
  // CHECK-NEXT: %i, %j, %k = schedule.get_loops(%b) as "i", "j_0", "k" : !schedule.loop, !schedule.loop, !schedule.loop
  %i, %j, %k = schedule.get_loops(%b) as "i", "j_0", "k" : !schedule.loop, !schedule.loop, !schedule.loop
  // CHECK-NEXT: %ls = schedule.split(%j, factors = [none, 4]) : !schedule.list<!schedule.loop>
  %ls = schedule.split(%j, factors = [none, 4]) : !schedule.list<!schedule.loop>
  // CHECK-NEXT: %l = schedule.item %ls[0] : !schedule.list<!schedule.loop>
  %l = schedule.item %ls[0] : !schedule.list<!schedule.loop>
  // CHECK-NEXT: %r = schedule.slice %ls[none : none : -1] : !schedule.list<!schedule.loop>
  %r = schedule.slice %ls[none : none : -1] : !schedule.list<!schedule.loop>
  // CHECK-NEXT: schedule.reorder(*%r, %k)
  schedule.reorder(*%r, %k)
  // CHECK-NEXT: schedule.annotate(%l, "a", {"x" = 1, "y" = [2.5, "s", true, %l]})
  schedule.annotate(%l, "a", {"x" = 1, "y" = [2.5, "s", true, %l]})
  // CHECK-NEXT: schedule.transform_layout(%b, ["write", 0], lambda ("x", "y_0") {
  // CHECK-NEXT: ^bb0(%x: i32, %y: i32):
  // CHECK-NEXT:   schedule.yield %y, %x separators [1] : i32, i32
  // CHECK-NEXT: }, pad_value = none)
  schedule.transform_layout(%b, ["write", 0], lambda ("x", "y_0") {
  ^bb0(%x: i32, %y: i32):
    schedule.yield %y, %x separators [1] : i32, i32
  }, pad_value = none)
}
