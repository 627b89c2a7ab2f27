// RUN: mir-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: vector<4xi32>) {
  // expected-error@below {{unknown predicate 'lt'; known are eq, ne, slt}}
  %c = vector_ext.cmpi "lt" %a, %a : vector<4xi32> -> vector<4xi1>
  func.return
}

// -----

func.func @f(%a: vector<4xf32>) {
  // expected-error@below {{comparing vector<4xf32> gives vector<4xi1>}}
  %c = vector_ext.cmpf "olt" %a, %a : vector<4xf32> -> vector<2xi1>
  func.return
}

// -----

func.func @f(%m: vector<2xi1>, %a: vector<4xf32>) {
  // expected-error@below {{the condition vector<2xi1> has not one lane per lane of vector<4xf32>}}
  %c = vector_ext.select %m, %a, %a : vector<2xi1>, vector<4xf32>
  func.return
}

// -----

func.func @f(%a: vector<4xi32>) {
  // expected-error@below {{unknown cast 'itof'; known are extsi}}
  %c = vector_ext.cast "itof" %a : vector<4xi32> to vector<4xf32>
  func.return
}

// -----

func.func @f(%a: vector<4xi32>) {
  // expected-error@below {{a cast keeps the shape: vector<4xi32> to vector<2xf32>}}
  %c = vector_ext.cast "sitofp" %a : vector<4xi32> to vector<2xf32>
  func.return
}

// -----

func.func @f(%a: vector<4xi32>, %b: vector<14xi8>) {
  // expected-error@below {{14 and 14 lanes are no equal groups for 4 sums}}
  %c = vector_ext.dot %a, %b, %b unsigned [1, 1] : vector<4xi32>, vector<14xi8>, vector<14xi8>
  func.return
}

// -----

func.func @f(%a: vector<4xi32>, %b: vector<8xf32>) {
  // expected-error@below {{a dot product is of integers, or of floats}}
  %c = vector_ext.dot %a, %b, %b unsigned [1, 1] : vector<4xi32>, vector<8xf32>, vector<8xf32>
  func.return
}

// -----

func.func @f(%a: vector<2x2xi32>, %b: vector<8xi8>) {
  // expected-error@below {{a dot product is of vectors of one dimension}}
  %c = vector_ext.dot %a, %b, %b unsigned [1, 1] : vector<2x2xi32>, vector<8xi8>, vector<8xi8>
  func.return
}

// -----

func.func @f(%a: vector<4xi32>, %b: vector<8xi8>) {
  // expected-error@below {{`unsigned` has one flag for each side}}
  %c = vector_ext.dot %a, %b, %b unsigned [1] : vector<4xi32>, vector<8xi8>, vector<8xi8>
  func.return
}
