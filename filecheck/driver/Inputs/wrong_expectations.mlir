// expected-error@+3 {{this is not what it says}}
// expected-eror {{misspelt}}
func.func @f() {
  %0 = arith.addi %b, %b : i32
  func.return
}
