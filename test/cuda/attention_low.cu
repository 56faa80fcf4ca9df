// SPDX-License-Identifier: Apache-2.0
// Attention of two-byte elements and of float by the library's own kernels on a GPU, with tensor cores and without, is the host's in
// float, and equal from run to run: every option, both layouts, times and sizes that no tile divides, operands that are not finite.
#include "attention_blocks.hpp"

#include <limits>

namespace {

using namespace attention_test;
using option = sw::attention_operand;

enum class way { plain, tensor_cores, tensor_cores_by_tf32 };  // the last: of float

constexpr int bits(option o) { return static_cast<int>(o); }

// Forward by one way, the adjoint by another.
template <class T>
outcome run(const blocks<T>& b, way forward, way adjoint) {
  cu::stream stream;
  b.forget();
  cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const auto x = b.call();
  const sw::host::attention_block<T> out(b.out(), x.a, x.heads, x.queries, x.value_size);
  if (forward == way::plain) kernels::attend(x, out, b.lse(), stream.get());
  else REQUIRE(kernels::attend_by_mma(x, out, b.lse(), forward == way::tensor_cores_by_tf32, stream.get()));
  b.multiply(stream.get());
  if (adjoint == way::plain) kernels::attend_back(x, b.gradients(), stream.get());
  else REQUIRE(kernels::attend_back_by_mma(x, b.gradients(), adjoint == way::tensor_cores_by_tf32, stream.get()));
  return b.results();
}

// Of factors, in units of bfloat16's: two parts of 11 bits are not rounded, but their smallest product is left out.
template <class T>
double rounding(way by) {
  return sizeof(T) == 2 ? 1 : by == way::tensor_cores_by_tf32 ? 0.5 : 1e-3;
}
// What cancels in gradients of float are products of about this size.
template <class T>
constexpr double least = sizeof(T) == 2 ? 1e-5 : 0.1;
template <class T>
void check(const problem& p, const operands<T>& of, way by) {
  INFO(text_of<T>(p));
  const blocks<T> b(p, of);
  const outcome first = run(b, by, by);
  check_alike(first, on_host(p, of), rounding<T>(by), least<T>);
  CHECK(are_equal(run(b, by, by), first));
}
template <class T>
void check(const problem& p, way by = way::tensor_cores) {
  check(p, operands<T>(p), by);
}

bool has_tensor_cores() {
  if (!has_gpu()) return false;
  int major = 0;
  cu::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  return major >= 8;
}

TEST_CASE("attention of bfloat16 and float16 without tensor cores is the host's in float") {
  if (!has_gpu()) return;
  for (const problem& p : problems()) check<sw::bfloat16>(p, way::plain);
  check<sw::float16>(problems()[3], way::plain);
  check<sw::float16>(problems()[6], way::plain);
  check<sw::bfloat16>({{1, 2, 2, 40, 40, 20, 20}, 1}, way::plain);
  check<sw::bfloat16>({{1, 2, 2, 90, 9, 16, 16}, 0, true, 3}, way::plain);
}

// What a device before sm_80 runs.
TEST_CASE("attention of float without tensor cores is the host's") {
  if (!has_gpu()) return;
  for (const problem& p : problems()) check<float>(p, way::plain);
}

TEST_CASE("attention by tensor cores is the host's in float") {
  if (!has_tensor_cores()) return;
  for (const problem& p : problems()) check<sw::bfloat16>(p);
  check<sw::float16>(problems()[3]);
  check<sw::float16>(problems()[6]);
  for (const std::int64_t time : {1, 17, 63, 65, 200})
    for (const std::int64_t size : {16, 40, 64, 80, 128}) check<sw::bfloat16>({{1, 2, 2, time, time, size, size}, 1});
  check<sw::bfloat16>({{1, 2, 2, 40, 40, 20, 20}, 1});  // rows that are no chunks of 16 bytes
  check<sw::bfloat16>({{1, 2, 1, 67, 67, 33, 50}});
  check<sw::float16>({{1, 2, 1, 67, 67, 33, 50}, 1});
  check<sw::bfloat16>({{1, 2, 2, 90, 9, 16, 16}, 0, true, 3});  // queries that see no key
}

TEST_CASE("attention of float by tensor cores, in two parts and by TF32, is the host's") {
  if (!has_tensor_cores()) return;
  for (const way by : {way::tensor_cores, way::tensor_cores_by_tf32}) {
    for (const problem& p : problems()) check<float>(p, by);
    for (const std::int64_t time : {1, 17, 63, 65, 200})
      for (const std::int64_t size : {4, 40, 64, 80, 128}) check<float>({{1, 2, 2, time, time, size, size}, 1}, by);
    check<float>({{1, 2, 1, 67, 67, 33, 50}}, by);  // rows that are no chunks of 16 bytes
    check<float>({{1, 2, 2, 90, 9, 16, 16}, 0, true, 3}, by);
  }
}

TEST_CASE("attention by tensor cores takes every option") {
  if (!has_tensor_cores()) return;
  for (int further = 1; further < 16; ++further) {
    problem p{{2, 4, 2, 130, 130, 64, 64}, further % 2, further % 3 != 0, further % 4 == 0 ? 40 : 0, 0, further};
    p.dropout = p.has(option::key) ? 0.25 : 0;
    check<sw::bfloat16>(p);
    check<float>(p);
    check<float>(p, way::tensor_cores_by_tf32);
  }
  check<float>({{2, 2, 2, 70, 130, 128, 128}, 1, true, 0, 60, 15, 0.25});
  check<float>({{1, 3, 3, 149, 149, 64, 64}, 1, true, 0, 0, bits(option::key), 0.3});
  check<sw::float16>({{2, 4, 2, 130, 130, 64, 64}, 1, true, 0, 0, 15, 0.25});
  check<sw::bfloat16>({{2, 2, 2, 70, 130, 128, 128}, 1, true, 0, 60, 15, 0.25});
  check<sw::bfloat16>(
      {{1, 3, 3, 152, 152, 128, 64}, 1, true, 0, 0, bits(option::key), 0.3});  // whole blocks of random words a row
  check<sw::bfloat16>({{1, 3, 3, 149, 149, 64, 64}, 1, true, 0, 0, bits(option::key), 0.3});  // and none
  check<sw::bfloat16>({{1, 2, 2, 131, 131, 40, 40}, 0, true, 0, 0, bits(option::key), 1.0});
}

// Two rows of one operand with a bad number; check_with(p, of, bad) is asked of each.
template <class T, class F>
void with_bad_numbers(F&& check_with) {
  const float infinite = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const problem& p : {problem{{1, 2, 2, 150, 150, 64, 64}, 1}, problem{{1, 4, 2, 70, 150, 40, 40}, 0, true, 30, 60},
                           problem{{1, 2, 2, 70, 150, 128, 128}, 0, false, 0, 0, bits(option::mask)}})
    for (const float bad : {infinite, none})
      for (std::vector<T> operands<T>::* const which :
           {&operands<T>::q, &operands<T>::k, &operands<T>::v, &operands<T>::dout}) {
        const auto with = [&](float number) {
          operands<T> of(p);
          std::vector<T>& x = of.*which;
          x[x.size() / 2 + 3] = T(number);
          x[x.size() / 5] = T(-number);
          return of;
        };
        check_with(p, with(bad), with(none));
      }
}
TEST_CASE("what a query does not see does not reach it by tensor cores, finite or not") {
  if (!has_tensor_cores()) return;
  with_bad_numbers<sw::bfloat16>([](const problem& p, const operands<sw::bfloat16>& of, const operands<sw::bfloat16>&) {
    check(p, of, way::tensor_cores);
  });
  with_bad_numbers<float>(
      [](const problem& p, const operands<float>& of, const operands<float>&) { check(p, of, way::tensor_cores_by_tf32); });
}
// Law: of two parts what an infinity reaches may be no number, but nothing that a NaN in its place would not reach.
TEST_CASE("an infinity in float reaches nothing by tensor cores that it does not reach on the host") {
  if (!has_tensor_cores()) return;
  with_bad_numbers<float>([](const problem& p, const operands<float>& of, const operands<float>& with_none) {
    INFO(text_of<float>(p));
    outcome device = run(blocks<float>(p, of), way::tensor_cores, way::tensor_cores);
    const outcome host = on_host(p, of), reached = on_host(p, with_none);
    for (std::vector<float> outcome::* const which :
         {&outcome::out, &outcome::lse, &outcome::dq, &outcome::dk, &outcome::dv})
      for (std::size_t i = 0; i < (host.*which).size(); ++i)
        if (std::isnan((device.*which)[i]) && std::isnan((reached.*which)[i])) (device.*which)[i] = (host.*which)[i];
    check_alike(device, host, rounding<float>(way::tensor_cores), least<float>);
  });
}

TEST_CASE("attention forward and backward may run by different kernels, and leave out what nobody wants") {
  if (!has_tensor_cores()) return;
  const problem p{{2, 4, 2, 130, 130, 64, 64}, 1};
  const operands<sw::bfloat16> of(p);
  const blocks<sw::bfloat16> b(p, of);
  const outcome host = on_host(p, of), both = run(b, way::tensor_cores, way::tensor_cores);
  check_alike(run(b, way::plain, way::tensor_cores), host);
  check_alike(run(b, way::tensor_cores, way::plain), host);

  const auto x = b.call();
  b.forget();
  REQUIRE(kernels::attend_by_mma(x, sw::host::attention_block<sw::bfloat16>(), b.lse(), false, nullptr));
  CHECK(b.results().lse == both.lse);
  auto g = b.gradients();
  g.dq.data = g.dk.data = nullptr;
  REQUIRE(kernels::attend_back_by_mma(x, g, false, nullptr));
  const outcome values_alone = b.results();
  CHECK(values_alone.dv == both.dv);
  CHECK(values_alone.dk != both.dk);
}

TEST_CASE("tensor cores leave large heads to the kernels of float") {
  if (!has_gpu()) return;
  const problem p{{1, 1, 1, 20, 20, 136, 136}};
  const blocks<sw::bfloat16> b(p, operands<sw::bfloat16>(p));
  const auto x = b.call();
  CHECK_FALSE(kernels::attend_by_mma(x, sw::host::attention_block<sw::bfloat16>(), b.lse(), false, nullptr));
  CHECK_FALSE(kernels::attend_back_by_mma(x, b.gradients(), false, nullptr));
}

}  // namespace
