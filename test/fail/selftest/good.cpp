// SPDX-License-Identifier: Apache-2.0
// What a file of test/fail looks like: a control, a wrong program, the sentence.
// harness: ok
// expect: halve: 7 is not even; pass an even number such as 8
// expect: (halve|static assertion)

template <int N>
constexpr int halve() {
  static_assert(N % 2 == 0, "halve: 7 is not even; pass an even number such as 8");
  return N / 2;
}

#ifdef SHARDWISE_FAIL
constexpr int half = halve<7>();
#else
constexpr int half = halve<8>();
#endif
