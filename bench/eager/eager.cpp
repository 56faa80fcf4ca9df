// SPDX-License-Identifier: Apache-2.0
// Times eager operations beside the same host kernels called by hand on the same data, turn by turn in one process.
// Usage: eager [turns]; prints one JSON line per operation. By hand: the call's layouts are settled and all buffers are
// there before the clock runs, so that what the eager form adds is everything it does per operation.
#include <shardwise/shardwise.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

namespace sw = shardwise;
namespace rt = sw::runtime;

struct dp : sw::axis<1> {};
using mesh = sw::mesh<dp>;
template <class Shape>
using tensor = sw::dtensor_of<float, Shape, mesh, sw::replicate>;

using clock_type = std::chrono::steady_clock;

// A kernel's call on blocks that stay where they are.
class by_hand {
 public:
  template <class Out, class... X>
  by_hand(const sw::op_attr& attr, const Out& like, const X&... x) {
    sw::node n = sw::empty_node;
    n.op = sw::op_code::einsum;
    n.a = attr;
    c_.a = attr;
    c_.f = 1;
    c_.inputs = static_cast<int>(sizeof...(X));
    int k = 0;
    ((c_.l[k] = x.to_local().layout, c_.p[k] = const_cast<float*>(x.to_local().data.data()), ++k), ...);
    c_.l[rt::result] = like.to_local().layout;
    out_.resize(static_cast<std::size_t>(c_.l[rt::result].numel()) + 16);
    c_.p[rt::result] = aligned(out_.data());
  }
  void scratch(std::int64_t bytes) {
    scratch_.resize(static_cast<std::size_t>(bytes) / sizeof(float) + 16);
    c_.workspace = aligned(scratch_.data());
  }
  void result_is_input(const by_hand& before, int k) { c_.p[k] = before.c_.p[rt::result]; }
  const rt::call& call() const { return c_; }
  const float* result() const { return static_cast<const float*>(c_.p[rt::result]); }

 private:
  static void* aligned(float* p) { return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(p) + 63) / 64 * 64); }
  rt::call c_;
  std::vector<float> out_, scratch_;
};

void keep(const void* p) { asm volatile("" : : "g"(p) : "memory"); }

template <class F>
double seconds(long times, F&& f) {
  const auto start = clock_type::now();
  for (long i = 0; i < times; ++i) f();
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Turns of about half a millisecond, alternately; which form begins alternates too.
template <class Eager, class Hand>
void compare(const char* what, int kernels, int turns, Eager&& eager, Hand&& hand) {
  for (int i = 0; i < 20; ++i) {
    eager();
    hand();
  }
  long times = 1;
  while (seconds(times, hand) < 3e-4 && times < (1L << 24)) times *= 2;
  std::vector<double> e, h, ratio;
  for (int t = 0; t < turns; ++t) {
    double se = 0, sh = 0;
    if (t % 2 == 0) se = seconds(times, eager);
    sh = seconds(times, hand);
    if (t % 2 == 1) se = seconds(times, eager);
    e.push_back(se / static_cast<double>(times) * 1e9);
    h.push_back(sh / static_cast<double>(times) * 1e9);
    ratio.push_back(se / sh);
  }
  const double least_e = *std::min_element(e.begin(), e.end()), least_h = *std::min_element(h.begin(), h.end());
  std::printf(
      "{\"op\":\"%s\",\"kernels\":%d,\"eager_ns\":%.1f,\"hand_ns\":%.1f,\"ratio_of_medians\":%.3f,\"eager_min_ns\":%.1f,"
      "\"hand_min_ns\":%.1f,\"ratio_of_minima\":%.3f,\"added_ns\":%.1f}\n",
      what, kernels, median(e), median(h), median(e) / median(h), least_e, least_h, least_e / least_h, least_e - least_h);
  std::fflush(stdout);
}

template <class A, class B>
void check_equal(const char* what, const A& eager, const B& hand) {
  const auto block = eager.to_local();
  for (std::size_t i = 0; i < block.data.size(); ++i)
    if (block.data[i] != hand.result()[i]) {
      std::printf("%s: element %zu differs\n", what, i);
      std::exit(1);
    }
}

const sw::step_env env{};

template <class Shape, class On>
tensor<Shape> some(const On& on, int salt) {
  std::vector<float> v(static_cast<std::size_t>(sw::numel(tensor<Shape>::sp)));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(salt) * 11) % 101) / 50 - 1;
  return tensor<Shape>::distribute(on, v);
}

template <class Shape, class On>
void add(const char* what, const On& on, int turns) {
  const auto a = some<Shape>(on, 1), b = some<Shape>(on, 2);
  by_hand k({}, a, a, b);
  rt::compute<sw::op_code::add, float>(k.call(), env);
  check_equal(what, a + b, k);
  compare(
      what, 1, turns,
      [&] {
        const auto y = a + b;
        keep(&y);
      },
      [&] {
        rt::compute<sw::op_code::add, float>(k.call(), env);
        keep(k.result());
      });
}

template <class Shape, class On>
void relu(const char* what, const On& on, int turns) {
  const auto a = some<Shape>(on, 1);
  by_hand k({}, a, a);
  rt::compute<sw::op_code::relu, float>(k.call(), env);
  check_equal(what, sw::relu(a), k);
  compare(
      what, 1, turns,
      [&] {
        const auto y = sw::relu(a);
        keep(&y);
      },
      [&] {
        rt::compute<sw::op_code::relu, float>(k.call(), env);
        keep(k.result());
      });
}

template <class Shape, class On>
void softmax(const char* what, const On& on, int turns) {
  const auto a = some<Shape>(on, 1);
  by_hand k({}, a, a);
  rt::compute<sw::op_code::softmax, float>(k.call(), env);
  check_equal(what, sw::softmax(a), k);
  compare(
      what, 1, turns,
      [&] {
        const auto y = sw::softmax(a);
        keep(&y);
      },
      [&] {
        rt::compute<sw::op_code::softmax, float>(k.call(), env);
        keep(k.result());
      });
}

std::int64_t scratch_of(const sw::op_attr& attr, const sw::spec& x, const sw::spec& y, const sw::spec& out) {
  sw::node n = sw::empty_node;
  n.op = sw::op_code::einsum;
  n.a = attr;
  n.inputs = 2;
  const sw::spec* const in[] = {&x, &y};
  return rt::eager_workspace(sw::operation_of(n.op), n, in, out);
}

template <int N, class On>
void matmul(const char* what, const On& on, int turns) {
  using shape = sw::shape<N, N>;
  const auto a = some<shape>(on, 1), b = some<shape>(on, 2);
  constexpr auto labels = sw::detail::matmul_labels(2, 2);
  by_hand k(labels, a, a, b);
  k.scratch(scratch_of(labels, a.sp, b.sp, a.sp));
  rt::compute<sw::op_code::einsum, float>(k.call(), env);
  check_equal(what, sw::matmul(a, b), k);
  compare(
      what, 1, turns,
      [&] {
        const auto y = sw::matmul(a, b);
        keep(&y);
      },
      [&] {
        rt::compute<sw::op_code::einsum, float>(k.call(), env);
        keep(k.result());
      });
}

// x w' + bias: two kernels.
template <int Rows, int In, int Out, class On>
void linear(const char* what, const On& on, int turns) {
  const auto x = some<sw::shape<Rows, In>>(on, 1);
  const auto w = some<sw::shape<Out, In>>(on, 2);
  const auto bias = some<sw::shape<Out>>(on, 3);
  const auto y = sw::linear_product(x, w);
  constexpr auto labels = sw::detail::linear_labels(2);
  by_hand product(labels, y, x, w), sum({}, y, y, bias);
  product.scratch(scratch_of(labels, x.sp, w.sp, y.sp));
  sum.result_is_input(product, 0);
  const auto hand = [&] {
    rt::compute<sw::op_code::einsum, float>(product.call(), env);
    rt::compute<sw::op_code::add, float>(sum.call(), env);
    keep(sum.result());
  };
  hand();
  check_equal(what, y + bias, sum);
  compare(
      what, 2, turns,
      [&] {
        const auto z = sw::linear_product(x, w) + bias;
        keep(&z);
      },
      hand);
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 31;
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    add<sw::shape<1>>("add 1", on, turns);
    add<sw::shape<64>>("add 64", on, turns);
    add<sw::shape<1024>>("add 1k", on, turns);
    add<sw::shape<16, 1024>>("add 16k", on, turns);
    relu<sw::shape<1024>>("relu 1k", on, turns);
    relu<sw::shape<16, 1024>>("relu 16k", on, turns);
    softmax<sw::shape<64, 64>>("softmax 64x64", on, turns);
    matmul<16>("matmul 16x16", on, turns);
    matmul<64>("matmul 64x64", on, turns);
    matmul<128>("matmul 128x128", on, turns);
    linear<32, 64, 64>("linear 32x64 to 64", on, turns);
    linear<128, 128, 128>("linear 128x128 to 128", on, turns);
    const auto blocks = on.allocations();
    const auto a = some<sw::shape<64>>(on, 1);
    for (int i = 0; i < 1000; ++i) keep((a + a).to_local().data.data());
    if (on.allocations() > blocks + 2) {
      std::printf("eager operations allocate\n");
      std::exit(1);
    }
  });
}
