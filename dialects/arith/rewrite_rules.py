"""Lists the rules of `rewrite_simplify` on integers: `pattern -> result where condition`.

x, y, z, w match any expression, the same where they are repeated; a, b, c numbers; `+ * min max` match in both orders. With `=>`
the order counts, and only the parts of the result are simplified again. What a condition asks of numbers is computed, what it asks of expressions
must be proven.

Source: the rules of TVM's rewrite_simplify.cc and of Halide's simplifier, as their tests show them.
"""

from __future__ import annotations

SUMS = """
(x - y) + y -> x
(x - y) + (y - z) -> x - z
(x - y) + (z - x) -> z - y
(x - a) + (b - y) -> x - y where a == b
(x + a) + (b - y) -> x - y where a + b == 0
min(x, y - z) + z -> min(x + z, y)
max(x, y - z) + z -> max(x + z, y)
min(x, y + a) + b -> min(x + b, y) where a + b == 0
max(x, y + a) + b -> max(x + b, y) where a + b == 0
min(x + a, y + b) + c -> min(x, y + (b + c)) where a + c == 0
max(x + a, y + b) + c -> max(x, y + (b + c)) where a + c == 0
min(a - x, 0) + x -> min(x, a)
max(a - x, 0) + x -> max(x, a)
min(x, y) + max(x, y) -> x + y
select(w, x, y) + select(w, z, a) -> select(w, x + z, y + a)
select(w, x, y) + select(w, a, z) -> select(w, x + a, y + z)
x // a * a + x % a -> x where a != 0
truncdiv(x, a) * a + truncmod(x, a) -> x where a != 0
(x % a + b) // a + x // a -> (x + b) // a where a > 0
x * a + x * b -> x * (a + b)
x * y + x * z -> x * (y + z)
x * y + x -> x * (y + 1)
x + x -> x * 2
(x + a) + b -> x + (a + b)
(x + a) + y -> (x + y) + a
(a - y) + x -> (x - y) + a
(x - a) + y -> (x + y) + (0 - a)
x + y * a -> x - y * (0 - a) where a < 0
x - x -> 0
(x + y) - y -> x
x - (x + y) -> 0 - y
(x - y) - x -> 0 - y
x - (x - y) -> y
min(x, y) - x => min(0, y - x)
min(x, y) - y => min(x - y, 0)
max(x, y) - x => max(0, y - x)
max(x, y) - y => max(x - y, 0)
x - min(x, y) => max(0, x - y)
y - min(x, y) => max(y - x, 0)
x - max(x, y) => min(0, x - y)
y - max(x, y) => min(y - x, 0)
min(x, y) - min(x, y) -> 0
max(x, y) - max(x, y) -> 0
min(x, y) - min(z, w) -> a where known(a, x - z) and known(a, y - w)
max(x, y) - max(z, w) -> a where known(a, x - z) and known(a, y - w)
min(x, y) - min(z, w) -> a where known(a, x - w) and known(a, y - z)
max(x, y) - max(z, w) -> a where known(a, x - w) and known(a, y - z)
min(x + y, z) - x => min(y, z - x)
min(y + x, z) - x => min(y, z - x)
min(z, x + y) - x => min(z - x, y)
min(z, y + x) - x => min(z - x, y)
max(x + y, z) - x => max(y, z - x)
max(y + x, z) - x => max(y, z - x)
max(z, x + y) - x => max(z - x, y)
max(z, y + x) - x => max(z - x, y)
x - min(x + y, z) => max(0 - y, x - z)
x - min(y + x, z) => max(0 - y, x - z)
x - min(z, x + y) => max(x - z, 0 - y)
x - min(z, y + x) => max(x - z, 0 - y)
x - max(x + y, z) => min(0 - y, x - z)
x - max(y + x, z) => min(0 - y, x - z)
x - max(z, x + y) => min(x - z, 0 - y)
x - max(z, y + x) => min(x - z, 0 - y)
min(x, y) - (x + z) -> min(0, y - x) - z
max(x, y) - (x + z) -> max(0, y - x) - z
select(w, x, y) - select(w, z, a) -> select(w, x - z, y - a)
select(w, x, y) - select(w, a, z) -> select(w, x - a, y - z)
select(w, x, y) - x -> select(w, 0, y - x)
select(w, x, y) - y -> select(w, x - y, 0)
x * a - x * b -> x * (a - b)
x * y - x * z -> x * (y - z)
x * y - x -> x * (y + -1)
x - x * y -> x * (1 - y)
(x + y) - (x + z) -> y - z
(x + y) - z -> (x - z) + y where number(y)
x - a -> x + (0 - a) where a != 0
x - (y + a) -> (x - y) + (0 - a)
x - (y - z) -> (x + z) - y
(x - y) - a -> (x - y) + (0 - a)
(x + a) - y -> (x - y) + a
x - y * a -> x + y * (0 - a) where a < 0 and not number(x)
x - x // a * a -> x % a where a > 0
x - truncdiv(x, a) * a -> truncmod(x, a) where a > 0
x - truncdiv(x, a) * a -> truncmod(x, 0 - a) where a < 0
x // a * a - x -> 0 - x % a where a > 0
truncdiv(x, a) * a - x -> 0 - truncmod(x, a) where a > 0
x - (x + y) // a * a -> (x + y) % a - y where a > 0
x - truncdiv(x + y, a) * a -> truncmod(x + y, a) - y where a > 0
x - (x - y) // a * a -> (x - y) % a + y where a > 0
x - truncdiv(x - y, a) * a -> truncmod(x - y, a) + y where a > 0
(x + y) // a * a - x -> y - (x + y) % a where a > 0
truncdiv(x + y, a) * a - x -> y - truncmod(x + y, a) where a > 0
(x - y) // a * a - x -> (0 - (x - y) % a) - y where a > 0
truncdiv(x - y, a) * a - x -> (0 - truncmod(x - y, a)) - y where a > 0
x * a - x // b * c -> x % b * a where b > 0 and c == a * b
x * a - truncdiv(x, b) * c -> truncmod(x, b) * a where b > 0 and c == a * b
x // b * c - x * a -> x % b * (0 - a) where b > 0 and c == a * b
truncdiv(x, b) * c - x * a -> truncmod(x, b) * (0 - a) where b > 0 and c == a * b
x * a - (x + y) // b * c -> ((x + y) % b - y) * a where b > 0 and c == a * b
x * a - truncdiv(x + y, b) * c -> (truncmod(x + y, b) - y) * a where b > 0 and c == a * b
x * a - (x - y) // b * c -> ((x - y) % b + y) * a where b > 0 and c == a * b
x * a - truncdiv(x - y, b) * c -> (truncmod(x - y, b) + y) * a where b > 0 and c == a * b
(x + y) // b * c - x * a -> (y - (x + y) % b) * a where b > 0 and c == a * b
truncdiv(x + y, b) * c - x * a -> (y - truncmod(x + y, b)) * a where b > 0 and c == a * b
(x - y) // b * c - x * a -> ((0 - (x - y) % b) - y) * a where b > 0 and c == a * b
truncdiv(x - y, b) * c - x * a -> ((0 - truncmod(x - y, b)) - y) * a where b > 0 and c == a * b
(x + b) // a - x // a -> (x % a + b) // a where a > 0
(x + b) // a - (x + c) // a -> ((x + c) % a + (b - c)) // a where a > 0
truncdiv(x + b, a) - truncdiv(x, a) -> truncdiv(truncmod(x, a) + b, a) where a > 0 and b >= 0 and prove(x >= 0)
truncdiv(x + b, a) - truncdiv(x + c, a) -> truncdiv(truncmod(x + c, a) + (b - c), a) where a > 0 and b >= c and prove(x + c >= 0)
"""

PRODUCTS = """
(x + a) * b -> x * b + a * b
x * a * b -> x * (a * b)
(x * a) * y -> (x * y) * a where not number(y)
(x - y) * a -> (y - x) * (0 - a) where a < 0
min(x, y) * max(x, y) -> x * y
"""

QUOTIENTS = """
x // 1 -> x
x // a // b -> x // (a * b) where a > 0 and b > 0
(x // a + b) // c -> (x + a * b) // (a * c) where a > 0 and c > 0
(x - x % a) // a -> x // a where a != 0
x * a // b -> x * (a // b) where b > 0 and a % b == 0
x * a // b -> x // (b // a) where a > 0 and b > 0 and b % a == 0
(x * a + b) // c -> (x + b // a) // (c // a) where a > 0 and c > 0 and c % a == 0 and (b >= 0 or b % c >= a)
(x * a + y) // b => x * (a // b) + y // b where b > 0 and a % b == 0
(y + x * a) // b => y // b + x * (a // b) where b > 0 and a % b == 0
(x * a - y) // b -> x * (a // b) + (0 - y) // b where b > 0 and a % b == 0
(y - x * a) // b -> y // b + x * (0 - a // b) where b > 0 and a % b == 0
(x * a + y) // b -> x // (b // a) where a > 0 and b > 0 and b % a == 0 and prove(0 <= y) and prove(y < a)
(x * a + y + z) // b -> x * (a // b) + (y + z) // b where b > 0 and a % b == 0
(x * a - y + z) // b -> x * (a // b) + (z - y) // b where b > 0 and a % b == 0
(x * a + y - z) // b -> x * (a // b) + (y - z) // b where b > 0 and a % b == 0
(x * a + y) // b -> x * (a // b) + (x * (a % b) + y) // b where b > 0 and a > b and a % b != 0 and not number(y)
min(x * a, y) // b => min(x * (a // b), y // b) where b > 0 and a % b == 0
min(y, x * a) // b => min(y // b, x * (a // b)) where b > 0 and a % b == 0
max(x * a, y) // b => max(x * (a // b), y // b) where b > 0 and a % b == 0
max(y, x * a) // b => max(y // b, x * (a // b)) where b > 0 and a % b == 0
(x + a) // b -> x // b + a // b where b > 0 and a % b == 0
(x + y) // x -> y // x + 1 where prove(x >= 0)
(x - y) // x -> (0 - y) // x + 1 where prove(x >= 0)
(y - x) // x -> y // x + -1 where prove(x >= 0)
((x + y) + z) // x -> (y + z) // x + 1 where prove(x >= 0)
x * y // y -> x where prove(y >= 0)
(x * z + y) // z -> x + y // z where prove(z >= 0)
(x * z - y) // z -> x + (0 - y) // z where prove(z >= 0)
(y - x * z) // z -> y // z - x where prove(z >= 0)
x // a -> 0 where a > 0 and prove(0 <= x) and prove(x < a)
x // a -> b where a > 0 and known(b, x // a)
x % 1 -> 0
x * a % b -> x % (b // a) * a where a != 0 and b > 0 and a > 0 and b % a == 0
x * a % b -> 0 where b > 0 and a % b == 0
(x * a + y) % b -> y % b where b > 0 and a % b == 0
(x * a - y) % b -> (0 - y) % b where b > 0 and a % b == 0
(y - x * a) % b -> y % b where b > 0 and a % b == 0
(x * a + b) % c -> (x * a + b % c) % c where c > 0 and (b >= c or b < 0)
(x + a) % b -> x % b where b > 0 and a % b == 0
(x * a + y) % b -> x % (b // a) * a + y where a > 0 and b > 0 and b % a == 0 and prove(0 <= y) and prove(y < a)
(x * a + y) % b -> (x * (a % b) + y) % b where b > 0 and (a >= b or a < 0) and a % b != 0
(x + y * a) % b -> (x + y * (a % b)) % b where b > 0 and a >= b and a % b != 0
x * y % y -> 0 where prove(y != 0)
(x + y) % x -> y % x where prove(x >= 0)
(x * z + y) % z -> y % z where prove(z >= 0)
(x % a) % b -> x % b where a > 0 and b > 0 and a % b == 0
x % a -> x where a > 0 and prove(0 <= x) and prove(x < a)
truncdiv(x, 1) -> x
truncdiv(truncdiv(x, a), b) -> truncdiv(x, a * b) where a > 0 and b > 0
truncdiv(truncdiv(x, a) + b, c) -> truncdiv(x + a * b, a * c) where a > 0 and b >= 0 and c > 0 and prove(x >= 0)
truncdiv(x - truncmod(x, a), a) -> truncdiv(x, a) where a != 0
truncdiv(x * a, b) -> x * (a // b) where b > 0 and a > 0 and a % b == 0
truncdiv(x * a, b) -> truncdiv(x, b // a) where a > 0 and b > 0 and b % a == 0
truncdiv(x * a + y, b) -> x * (a // b) + truncdiv(y, b) where a > 0 and b > 0 and a % b == 0 and prove(x >= 0) and prove(y >= 0)
truncdiv(min(x * a, y), b) -> min(x * (a // b), truncdiv(y, b)) where a > 0 and b > 0 and a % b == 0 and prove(x >= 0) and prove(y >= 0)
truncdiv(max(x * a, y), b) -> max(x * (a // b), truncdiv(y, b)) where a > 0 and b > 0 and a % b == 0 and prove(x >= 0) and prove(y >= 0)
truncdiv(x * a - y, b) -> x * (a // b) - truncdiv(y, b) where a > 0 and b > 0 and a % b == 0 and prove(x * a - y >= 0) and prove(y <= 0)
truncdiv(x + a, b) -> truncdiv(x, b) + a // b where a > 0 and b > 0 and a % b == 0 and prove(x >= 0)
truncdiv(x + y, x) -> truncdiv(y, x) + 1 where prove(x >= 0) and prove(y >= 0)
truncdiv((x + y) + z, x) -> truncdiv(y + z, x) + 1 where prove(x >= 0) and prove(y + z >= 0)
truncdiv(x * y, y) -> x where prove(y >= 0)
truncdiv(x * z + y, z) -> x + truncdiv(y, z) where prove(x >= 0) and prove(y >= 0) and prove(z >= 0)
truncdiv(x, a) -> 0 where a > 0 and prove(x < a) and prove(x > 0 - a)
truncmod(x * a, b) -> 0 where b > 0 and a % b == 0
truncmod(x * a + y, b) -> truncmod(y, b) where b > 0 and a % b == 0 and prove(x * a >= 0) and prove(y >= 0)
truncmod(x + a, b) -> truncmod(x, b) where b > 0 and a > 0 and a % b == 0 and prove(x >= 0)
truncmod(x * y, y) -> 0 where prove(y != 0)
truncmod(x, a) -> truncmod(x, 0 - a) where a < 0
truncmod(x, a) -> x where a > 0 and prove(0 <= x) and prove(x < a)
"""

EXTREMA = """
min(x, x) -> x
max(x, x) -> x
min(x, y) -> x where prove(x <= y)
max(x, y) -> x where prove(x >= y)
min(min(x, y), x) -> min(x, y)
max(max(x, y), x) -> max(x, y)
min(max(x, y), x) -> x
max(min(x, y), x) -> x
min(max(x, y), min(x, y)) -> min(x, y)
max(min(x, y), max(x, y)) -> max(x, y)
min(min(min(x, y), z), y) -> min(min(x, y), z)
max(max(max(x, y), z), y) -> max(max(x, y), z)
min(min(min(min(x, y), z), w), y) -> min(min(min(x, y), z), w)
max(max(max(max(x, y), z), w), y) -> max(max(max(x, y), z), w)
min(max(x, y), max(x, z)) -> max(min(y, z), x)
max(min(x, y), min(x, z)) -> min(max(y, z), x)
min(min(x, y), min(x, z)) -> min(min(y, z), x)
max(max(x, y), max(x, z)) -> max(max(y, z), x)
min(min(x, a), b) -> min(x, min(a, b))
max(max(x, a), b) -> max(x, max(a, b))
min(max(x, a), b) -> b where a >= b
max(min(x, a), b) -> b where a <= b
min(max(x, a), b) -> max(min(x, b), a) where a < b
min(x + a, y + b) -> min(x, y + (b - a)) + a where number(a) and number(b)
max(x + a, y + b) -> max(x, y + (b - a)) + a where number(a) and number(b)
min(y + x, z + x) -> min(y, z) + x
max(y + x, z + x) -> max(y, z) + x
min(x - y, x - z) -> x - max(y, z)
max(x - y, x - z) -> x - min(y, z)
min(y - x, z - x) -> min(y, z) - x
max(y - x, z - x) -> max(y, z) - x
min(a - x, b) -> a - max(x, a - b)
max(a - x, b) -> a - min(x, a - b)
min(x * a, y * a) -> min(x, y) * a where a > 0
max(x * a, y * a) -> max(x, y) * a where a > 0
min(x * a, y * a) -> max(x, y) * a where a < 0
max(x * a, y * a) -> min(x, y) * a where a < 0
min(x * a, b) -> min(x, b // a) * a where a > 0 and b % a == 0
max(x * a, b) -> max(x, b // a) * a where a > 0 and b % a == 0
min(x * a, b) -> max(x, b // a) * a where a < 0 and b % a == 0
max(x * a, b) -> min(x, b // a) * a where a < 0 and b % a == 0
min(x // a, y // a) -> min(x, y) // a where a > 0
max(x // a, y // a) -> max(x, y) // a where a > 0
min(x // a, y // a) -> max(x, y) // a where a < 0
max(x // a, y // a) -> min(x, y) // a where a < 0
min(truncdiv(x, a), truncdiv(y, a)) -> truncdiv(min(x, y), a) where a > 0
max(truncdiv(x, a), truncdiv(y, a)) -> truncdiv(max(x, y), a) where a > 0
min(truncdiv(x, a), truncdiv(y, a)) -> truncdiv(max(x, y), a) where a < 0
max(truncdiv(x, a), truncdiv(y, a)) -> truncdiv(min(x, y), a) where a < 0
min(x // a * a, x) -> x // a * a where a > 0
max(x // a * a, x) -> x where a > 0
min((x + b) // a * a, x) -> x where a > 0 and b + 1 == a
max((x + b) // a * a, x) -> (x + b) // a * a where a > 0 and b + 1 == a
min((x + b) // a * a, max(x, a)) -> max(x, a) where a > 0 and b + 1 == a and prove(x > 0)
max((x + b) // a * a, max(x, a)) -> (x + b) // a * a where a > 0 and b + 1 == a and prove(x > 0)
min(truncdiv(x + b, a) * a, x) -> x where a > 0 and b + 1 == a
max(truncdiv(x + b, a) * a, x) -> truncdiv(x + b, a) * a where a > 0 and b + 1 == a
min(truncdiv(x + b, a) * a, max(x, a)) -> max(x, a) where a > 0 and b + 1 == a and prove(x > 0)
max(truncdiv(x + b, a) * a, max(x, a)) -> truncdiv(x + b, a) * a where a > 0 and b + 1 == a and prove(x > 0)
min(select(w, x, y), select(w, z, a)) -> select(w, min(x, z), min(y, a))
max(select(w, x, y), select(w, z, a)) -> select(w, max(x, z), max(y, a))
"""

COMPARISONS = """
x - a == 0 -> x == a
a - x == 0 -> x == a
x + a == b -> x == b - a
x * a == 0 -> x == 0 where a != 0
x * y == 0 -> x == 0 or y == 0
x - y == 0 -> x == y
x + a == y + a -> x == y
x > y -> y < x
x >= y -> y <= x
x <= x + y -> 0 <= y
x + y <= x -> y <= 0
x <= x - y -> y <= 0
x - y <= x -> 0 <= y
x + y <= x + z -> y <= z
x + y < x + z -> y < z
y - x < z - x -> y < z
x - y < x - z -> z < y
y - x <= z - x -> y <= z
x - y <= x - z -> z <= y
x < x + y -> 0 < y
x + y < x -> y < 0
x < x - y -> y < 0
x - y < x -> 0 < y
x < x // a * a + b -> x % a < b where a > 0
x // a * a < x -> 0 < x % a where a > 0
x // a * a < x + y -> 0 < x % a + y where a > 0
x // a * a < x - y -> y < x % a where a > 0
x <= x // a * a -> x % a == 0 where a > 0
x * a < y * a -> x < y where a > 0
x * a < y * a -> y < x where a < 0
x * a <= y * a -> x <= y where a > 0
x * a <= y * a -> y <= x where a < 0
min(x, y) < x -> y < x
min(x, y) < z -> x < z or y < z where not number(x) and not number(y)
max(x, y) < z -> x < z and y < z where not number(x) and not number(y)
x < max(x, y) -> x < y
max(x, a) < b -> x < b where a < b
min(x, a) < b -> x < b where a >= b
a < max(x, b) -> a < x where a >= b
a < min(x, b) -> a < x where a < b
a < min(x, b) -> False where a >= b
max(x, a) < b -> False where a >= b
min(x, a) < b -> True where a < b
a < max(x, b) -> True where a < b
x + a < max(x, b) -> x < b - a where a > 0
min(x, b) < x + a -> b - a < x where a < 0
x - y < 0 -> x < y
0 < x - y -> y < x
x - y <= 0 -> x <= y
0 <= x - y -> y <= x
x + a < b -> x < b - a
a < x + b -> a - b < x
x + a <= b -> x <= b - a
a <= x + b -> a - b <= x
a - x < b -> a - b < x
b < a - x -> x < a - b
a - x <= b -> a - b <= x
b <= a - x -> x <= a - b
x * a < b -> x < 0 - (0 - b) // a where a > 0 and b % a == 0
x * a < b -> x <= (b - 1) // a where a > 0 and b % a != 0
b < x * a -> b // a < x where a > 0
x * a <= b -> x <= b // a where a > 0
b <= x * a -> 0 - (0 - b) // a <= x where a > 0
x * a < b -> b // a < x where a < 0
b < x * a -> x < 0 - (0 - b) // a where a < 0
x // a < b -> x < a * b where a > 0
b < x // a -> (b + 1) * a + -1 < x where a > 0
b <= x // a -> b * a <= x where a > 0
x // a <= b -> x < (b + 1) * a where a > 0
truncdiv(x, a) < b -> x < a * b where a > 0 and b > 0
b < truncdiv(x, a) -> (b + 1) * a + -1 < x where a > 0 and b >= 0
x < y -> True where prove(x < y)
x < y -> False where prove(x >= y)
x <= y -> True where prove(x <= y)
x <= y -> False where prove(x > y)
x == y -> True where prove(x == y)
x == y -> False where prove(x != y)
x != y -> True where prove(x != y)
x != y -> False where prove(x == y)
"""

CONDITIONS = """
not not x -> x
not x < y -> y <= x
not x <= y -> y < x
not x == y -> x != y
not x != y -> x == y
not (x or y) -> not x and not y
not (x and y) -> not x or not y
x and x -> x
x or x -> x
x and not x -> False
x or not x -> True
x < y and y < x -> False
x < y or y <= x -> True
x <= y and y < x -> False
x <= y or y < x -> True
x == y and x != y -> False
x == y or x != y -> True
x <= a and b <= x -> x == a where a == b
x < a and x < b -> x < min(a, b)
a < x and b < x -> max(a, b) < x
x <= a and x <= b -> x <= min(a, b)
a <= x and b <= x -> max(a, b) <= x
x < a and b < x -> False where a <= b + 1
x < a and b <= x -> False where a <= b
x <= a and b < x -> False where a <= b
x <= a and b <= x -> False where a < b
x < a or b < x -> True where b < a
x < a or b <= x -> True where b <= a
x <= a or b < x -> True where b <= a
x <= a or b <= x -> True where b <= a + 1
x == a and x != b -> False where a == b
x == a and x != b -> x == a where a != b
x == a and x == b -> False where a != b
x != a or x != b -> True where a != b
x < y and x != y -> x < y
x <= y and x != y -> x < y
x < y or x == y -> x <= y
x and (x and y) -> x and y
x or (x or y) -> x or y
x and (x or y) -> x
x or (x and y) -> x
select(x, y, y) -> y
select(True, x, y) -> x
select(False, x, y) -> y
select(not w, x, y) -> select(w, y, x)
"""

RULES = "\n".join((SUMS, PRODUCTS, QUOTIENTS, EXTREMA, COMPARISONS, CONDITIONS))
