// RUN: mir-opt %s -t mlir | filecheck %s
// RUN: mir-opt %s -t mlir | mir-opt -f mlir -t mlir | filecheck %s
// RUN: xdsl-opt %s | filecheck %s

// CHECK-LABEL: func.func @ops
func.func @ops(%a: vector<4xi32>, %x: vector<4xf32>, %m: memref<8x8xf32>, %i: index, %u: vector<16xi8>) {
  // CHECK-NEXT: %cmpi = vector_ext.cmpi "ult" %a, %a : vector<4xi32> -> vector<4xi1>
  %cmpi = vector_ext.cmpi "ult" %a, %a : vector<4xi32> -> vector<4xi1>
  // CHECK-NEXT: %cmpf = vector_ext.cmpf "oge" %x, %x : vector<4xf32> -> vector<4xi1>
  %cmpf = vector_ext.cmpf "oge" %x, %x : vector<4xf32> -> vector<4xi1>
  // CHECK-NEXT: %select = vector_ext.select %cmpf, %x, %x : vector<4xi1>, vector<4xf32>
  %select = vector_ext.select %cmpf, %x, %x : vector<4xi1>, vector<4xf32>
  // CHECK-NEXT: %cast = vector_ext.cast "sitofp" %a : vector<4xi32> to vector<4xf32>
  %cast = vector_ext.cast "sitofp" %a : vector<4xi32> to vector<4xf32>
  // CHECK-NEXT: %gather = vector_ext.gather %m[%i, %i] [%a], %cmpf, %x : memref<8x8xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
  %gather = vector_ext.gather %m[%i, %i] [%a], %cmpf, %x : memref<8x8xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
  // CHECK-NEXT: vector_ext.scatter %m[%i, %i] [%a], %cmpf, %x : memref<8x8xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
  vector_ext.scatter %m[%i, %i] [%a], %cmpf, %x : memref<8x8xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
  // CHECK-NEXT: %dot = vector_ext.dot %a, %u, %u unsigned [1, 0] : vector<4xi32>, vector<16xi8>, vector<16xi8>
  %dot = vector_ext.dot %a, %u, %u unsigned [1, 0] : vector<4xi32>, vector<16xi8>, vector<16xi8>
  func.return
}
