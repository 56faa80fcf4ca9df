// SPDX-License-Identifier: Apache-2.0
// Device kernels of elements of two bytes, of int64 and of bool against the host's: casts and single operations whose result is
// the rounded exact one give the same bits; functions may differ by one unit, by what they differ in float before they are rounded.
#include <cmath>
#include <cstring>
#include <type_traits>

#include <shardwise/runtime/cuda/compiled_elements.cuh>
#include <shardwise/runtime/host/provided_kernels.hpp>

#include "device.hpp"

SHARDWISE_DEVICE_ELEMENTS(shardwise::bf16, shardwise::f16, std::int64_t, bool, std::int32_t)

// Named: nvcc reads CUDA's own headers after the source, and there the names of operations would hide functions.
namespace device_low_precision {

using namespace device_test;
using enum op_code;
using sw::dtype;

// A block of elements of any type; `shift` elements off the alignment on the device.
struct buffer {
  dtype type;
  layout l;
  std::vector<std::byte> bytes;
  std::size_t shift = 0;

  template <class T>
  T at(std::size_t i) const {
    T v;
    std::memcpy(&v, bytes.data() + i * sizeof(T), sizeof(T));
    return v;
  }
};
template <class T, class F>
buffer filled(const layout& l, F&& f) {
  buffer b{sw::dtype_v<T>, l, std::vector<std::byte>(storage(l) * sizeof(T)), 0};
  for (std::size_t i = 0; i < storage(l); ++i) {
    const T v = f(i);
    std::memcpy(b.bytes.data() + i * sizeof(T), &v, sizeof(T));
  }
  return b;
}
template <class T>
buffer drawn(const layout& l, double low = -3, double high = 3) {
  return filled<T>(l, [&](std::size_t) { return static_cast<T>(static_cast<float>(uniform(low, high))); });
}
buffer ids(const layout& l, std::int64_t limit) {
  return filled<std::int32_t>(
      l, [&](std::size_t) { return static_cast<std::int32_t>(next_random() % static_cast<unsigned>(limit)); });
}

struct work {
  op_code op;
  std::vector<buffer> in;
  dtype type;  // of the result
  layout out;
  sw::op_attr a{};
  double f = 0;
  rt::step_env env{};
  std::size_t shift = 0;

  call make_call() const {
    call c;
    c.a = a;
    c.f = f;
    c.all_inputs = static_cast<int>(in.size());
    c.inputs = op == sw::op_code::fused ? 0 : c.all_inputs;  // those of a kernel, before its expression's
    c.node = 7;
    for (std::size_t k = 0; k < in.size(); ++k) {
      c.l[k] = in[k].l;
      c.type[k] = in[k].type;
    }
    c.l[rt::result] = out;
    c.type[rt::result] = type;
    return c;
  }
};

// The result's bytes, those of strided gaps as they were.
std::vector<std::byte> on_device(const work& w, cu::launcher start) {
  device& d = device::get();
  call c = w.make_call();
  std::vector<std::unique_ptr<device_bytes>> mem;
  std::vector<sw::spec> specs;
  for (std::size_t k = 0; k < w.in.size(); ++k) {
    mem.push_back(std::make_unique<device_bytes>(w.in[k].bytes.size(), w.in[k].shift * sw::size_of(w.in[k].type)));
    mem.back()->upload(w.in[k].bytes.data());
    c.p[k] = mem.back()->data();
    specs.push_back(spec_like(w.in[k].l, w.in[k].type));
  }
  std::vector<std::byte> out(storage(w.out) * sw::size_of(w.type), std::byte{0x5A});
  device_bytes result(out.size(), w.shift * sw::size_of(w.type));
  result.upload(out.data());
  c.p[rt::result] = result.data();
  std::vector<const sw::spec*> in;
  for (const sw::spec& s : specs) in.push_back(&s);
  const std::int64_t scratch =
      sw::operation_of(w.op).device_scratch.value(w.a, in.data(), static_cast<int>(in.size()), spec_like(w.out, w.type));
  device_bytes workspace(static_cast<std::size_t>(scratch));
  c.workspace = scratch > 0 ? workspace.data() : nullptr;
  cu::set_env(w.env, d.env, d.ctx.stream);
  REQUIRE((start != nullptr));
  start(c, d.ctx);
  d.sync();
  result.download(out.data());
  for (const auto& m : mem) CHECK(m->intact());
  CHECK(result.intact());
  CHECK(workspace.intact());
  CHECK(d.tickets_are_zero());
  return out;
}

// T: the kernel's element type. What an executor on the host would run.
template <op_code Op, class T>
std::vector<std::byte> on_host(const work& w) {
  call c = w.make_call();
  std::vector<std::vector<std::byte>> in;
  for (const buffer& b : w.in) in.push_back(b.bytes);
  for (std::size_t k = 0; k < in.size(); ++k) c.p[k] = in[k].data();
  std::vector<std::byte> out(storage(w.out) * sw::size_of(w.type), std::byte{0x5A});
  c.p[rt::result] = out.data();
  std::size_t space = 1 << 20;
  for (const buffer& b : w.in) space += 4 * storage(b.l) + 64;
  std::vector<std::byte> scratch(space + 4 * out.size());
  c.workspace = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
  if constexpr (sw::is_low_precision(sw::dtype_v<T>) && sw::widens(Op))
    rt::compute_widened<Op, T, sw::no_expression>(c, w.env);
  else rt::compute<Op, T>(c, w.env);
  return out;
}

// Two-byte floats in their order, one step a unit.
template <class T>
int ordinal(T v) {
  const int bits = v.bits;
  return (bits & 0x8000) != 0 ? -(bits & 0x7FFF) : bits;
}
// How many elements differ by more than `units` and by more than `slack`; NaNs are equal.
template <class T>
std::int64_t differing(const std::vector<std::byte>& a, const std::vector<std::byte>& b, int units, double slack = 0) {
  if (a.size() != b.size()) return -1;
  std::int64_t n = 0;
  for (std::size_t i = 0; i < a.size() / sizeof(T); ++i) {
    T x, y;
    std::memcpy(&x, a.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&y, b.data() + i * sizeof(T), sizeof(T));
    if (std::memcmp(&x, &y, sizeof(T)) == 0) continue;
    if constexpr (sw::is_low_precision(sw::dtype_v<T>)) {
      if (!(x == x) && !(y == y)) continue;
      if (x == x && y == y && std::abs(ordinal(x) - ordinal(y)) <= units) continue;
      if (std::fabs(float(x) - float(y)) <= slack) continue;
    } else if constexpr (std::is_floating_point_v<T>) {
      if (x != x && y != y) continue;
      if (std::fabs(x - y) <= slack) continue;
    }
    ++n;
  }
  return n;
}

const extents sizes[] = {{}, {0}, {1}, {7}, {33}, {4096}, {4101}, {3, 5}, {33, 64}, {7, 0, 3}, {5, 3, 33}, {2, 3, 4, 5, 8}};

std::vector<layout> layouts(const extents& e) {
  std::vector<layout> v{dense(e)};
  if (e.size() < 2) return v;
  extents back;
  for (std::size_t i = e.size(); i-- > 0;) back.push_back(static_cast<std::int64_t>(i));
  v.push_back(stored(e, back));
  v.push_back(sliced(e, static_cast<int>(e.size()) - 1, 3));
  v.push_back(sliced(e, static_cast<int>(e.size()) - 1, 8));
  return v;
}

// --- casts ----------------------------------------------------------------------------------------------------------

// Every pattern of two bytes; of wider types those, what lies half way between two of them and beside it, and the special ones.
template <class From>
From pattern(std::size_t i) {
  if constexpr (sw::is_low_precision(sw::dtype_v<From>)) {
    return From::of_bits(static_cast<std::uint16_t>(i));
  } else if constexpr (std::is_same_v<From, bool>) {
    return i % 3 != 0;
  } else if constexpr (std::is_integral_v<From>) {
    const auto n = static_cast<From>(i);
    return i % 2 == 0 ? n : i % 5 == 0 ? static_cast<From>(-n * 32749) : static_cast<From>(n - 40000);
  } else {
    const auto kind = static_cast<std::uint32_t>(next_random() % 6);
    const std::uint32_t low[] = {0x8000U, 0x7FFFU, 0x8001U, 0x1000U, 0x0FFFU, next_random() & 0xFFFFU};
    return static_cast<From>(std::bit_cast<float>(static_cast<std::uint32_t>(i) << 16 | low[kind]));
  }
}
template <class From, class To>
void check_cast() {
  constexpr std::size_t n = 65536;
  INFO(sw::name_of(sw::dtype_v<From>) << " to " << sw::name_of(sw::dtype_v<To>));
  const cu::launcher start = cu::cast_elements<From, To>;
  for (const std::size_t shift : {0, 1})
    for (const layout& l : {dense({n}), dense({n - 3}), stored({256, 256}, {1, 0}), sliced({256, 248}, 1, 8)}) {
      work w{cast,
             {filled<From>(l, [](std::size_t i) { return pattern<From>(i); })},
             sw::dtype_v<To>,
             dense(extents(l.ext, l.ext + l.rank))};
      w.in[0].shift = shift;
      w.shift = shift;
      w.a = sw::pack_attributes(sw::cast_attributes{static_cast<std::int64_t>(sw::dtype_v<To>)});
      CHECK(differing<To>(on_device(w, start), on_host<cast, To>(w), 0) == 0);
    }
}
template <class From, class... To>
void check_casts_to() {
  const auto one = [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<From, T>) check_cast<From, T>();
  };
  (one(std::type_identity<To>{}), ...);
}
template <class... T>
void check_casts() {
  (check_casts_to<T, T...>(), ...);
}

TEST_CASE("casts between all element types give the host's bits, for every pattern of two bytes") {
  NEEDS_GPU();
  check_casts<float, sw::bf16, sw::f16, double, std::int32_t, std::int64_t, bool>();
}

TEST_CASE("an int64 that is no int32 becomes the nearest one") {
  NEEDS_GPU();
  const std::int64_t far[] = {std::int64_t{1} << 31, -(std::int64_t{1} << 31) - 1, std::int64_t{1} << 60, -1};
  work w{cast, {filled<std::int64_t>(dense({4}), [&](std::size_t i) { return far[i]; })}, dtype::i32, dense({4})};
  const std::vector<std::byte> out = on_device(w, cu::cast_elements<std::int64_t, std::int32_t>);
  const std::int32_t want[] = {2147483647, -2147483647 - 1, 2147483647, -1};
  CHECK(std::memcmp(out.data(), want, sizeof want) == 0);
}

// --- elementwise ----------------------------------------------------------------------------------------------------

// Whether a formula is one rounded operation, or none, so that devices and hosts give the same float.
constexpr bool is_exact(op_code op) {
  for (const op_code o : {contiguous, scale, relu, abs, sign, op_code::sqrt, reciprocal, clamp_min, clamp_max, add, sub, mul,
                          relu_dx, div, maximum, minimum, wins, keeps})
    if (o == op) return true;
  return false;
}
template <op_code Op, class T>
void check_elementwise() {
  INFO(std::string(sw::name_of(Op)) << " of " << sw::name_of(sw::dtype_v<T>));
  const bool positive = Op == op_code::log || Op == op_code::sqrt || Op == rsqrt || Op == op_code::pow;
  constexpr int arity = sw::operations::element<Op>::arity;
  for (const extents& e : sizes)
    for (const layout& l : layouts(e))
      for (const std::size_t shift : {0, 1}) {
        work w{Op, {drawn<T>(l, positive ? 0.25 : -3, 3)}, sw::dtype_v<T>, dense(e)};
        if (arity == 2) w.in.push_back(drawn<T>(dense(e)));
        w.in[0].shift = shift;
        w.f = Op == op_code::pow ? 1.7 : 0.37;
        const std::vector<std::byte> d = on_device(w, cu::launcher_of<T>(Op)), h = on_host<Op, T>(w);
        if (is_exact(Op)) CHECK(differing<T>(d, h, 0) == 0);
        else CHECK(differing<T>(d, h, 1, 1e-6) == 0);
      }
  // what is no number, and what is too large or too small
  const float large = Op == op_code::sin || Op == op_code::cos ? 3e4F : 3e38F;  // their periods are not those of two bytes
  const float special[] = {NAN, INFINITY, -INFINITY, 0.F, -0.F, large, 6e4F, 1e-30F, 6e-8F, 1, -1};
  const layout many = dense({11, 11});
  work w{Op, {filled<T>(many, [&](std::size_t i) { return T(special[i % 11]); })}, sw::dtype_v<T>, many};
  if (arity == 2) w.in.push_back(filled<T>(many, [&](std::size_t i) { return T(special[i / 11]); }));
  w.f = 0.5;
  CHECK(differing<T>(on_device(w, cu::launcher_of<T>(Op)), on_host<Op, T>(w), is_exact(Op) ? 0 : 1, 1e-6) == 0);
}

TEST_CASE("elementwise functions of two-byte elements are the host's, rounded once") {
  NEEDS_GPU();
#define SHARDWISE_X(name, ...)                  \
  check_elementwise<op_code::name, sw::bf16>(); \
  check_elementwise<op_code::name, sw::f16>();
  SHARDWISE_FORMULAS1(SHARDWISE_X)
  SHARDWISE_FORMULAS2(SHARDWISE_X)
#undef SHARDWISE_X
}

template <op_code Op, class T>
void check_comparison() {
  for (const extents& e : sizes)
    for (const layout& l : layouts(e)) {
      work w{Op, {drawn<T>(l, -2, 2), drawn<T>(dense(e), -2, 2)}, dtype::i32, dense(e)};
      CHECK(differing<std::int32_t>(on_device(w, cu::launcher_of<T>(Op)), on_host<Op, T>(w), 0) == 0);
    }
}
TEST_CASE("comparisons of two-byte elements, of int64 and of bool") {
  NEEDS_GPU();
#define SHARDWISE_X(name, ...)                     \
  check_comparison<op_code::name, sw::bf16>();     \
  check_comparison<op_code::name, sw::f16>();      \
  check_comparison<op_code::name, std::int64_t>(); \
  check_comparison<op_code::name, bool>();
  SHARDWISE_COMPARISONS(SHARDWISE_X)
#undef SHARDWISE_X
}

template <op_code Op, class T>
void check_integers() {
  for (const extents& e : sizes)
    for (const layout& l : layouts(e)) {
      const auto whole = [&](const layout& x) {
        return filled<T>(x, [](std::size_t) { return static_cast<T>(next_random()) * 97 - 1000000; });
      };
      work w{Op, {whole(l), whole(dense(e))}, sw::dtype_v<T>, dense(e)};
      if (sizeof(T) == 4 && Op == mul) w.in[1] = filled<T>(dense(e), [](std::size_t i) { return static_cast<T>(i % 2); });
      CHECK(differing<T>(on_device(w, cu::launcher_of<T, true>(Op)), on_host<Op, T>(w), 0) == 0);
    }
}
template <class T>
void check_integer_sums() {
  const struct {
    extents e;
    int mask;
    extents out;
  } cases[] = {{{5}, 1, {}}, {{0}, 1, {}}, {{33, 1025}, 2, {33}}, {{3000, 33}, 1, {33}}, {{40000}, 1, {}}};
  for (const auto& c : cases)
    for (const layout& l : layouts(c.e)) {
      work w{sum,
             {filled<T>(l, [](std::size_t) { return static_cast<T>(next_random() % 1000) - 300; })},
             sw::dtype_v<T>,
             dense(c.out)};
      if (sizeof(T) == 8 && l.numel() > 0)  // no double holds it
        w.in[0] = filled<T>(l, [](std::size_t i) { return static_cast<T>((std::int64_t{1} << 53) / 64 + i % 3); });
      w.a.v[0] = c.mask;
      CHECK(differing<T>(on_device(w, cu::launcher_of<T, true>(sum)), on_host<sum, T>(w), 0) == 0);
    }
}
TEST_CASE("integers are added, subtracted, multiplied and summed") {
  NEEDS_GPU();
  check_integer_sums<std::int32_t>();
  check_integer_sums<std::int64_t>();
  check_integers<add, std::int32_t>();
  check_integers<sub, std::int32_t>();
  check_integers<mul, std::int32_t>();
  check_integers<add, std::int64_t>();
  check_integers<sub, std::int64_t>();
  check_integers<mul, std::int64_t>();
  CHECK((cu::launcher_of<std::int32_t, false>(add) == nullptr));
  CHECK((cu::launcher_of<bool, true>(add) == nullptr));
}

TEST_CASE("operands of two bytes are broadcast from the right, and choices keep every bit") {
  NEEDS_GPU();
  const struct {
    extents x, y, o;
  } cases[] = {{{5, 64}, {64}, {5, 64}},
               {{5, 64}, {5, 1}, {5, 64}},
               {{5, 33}, {}, {5, 33}},
               {{3, 1, 8}, {1, 5, 1}, {3, 5, 8}},
               {{300, 128, 16}, {128, 1}, {300, 128, 16}}};
  for (const auto& c : cases) {
    work w{mul, {drawn<sw::bf16>(dense(c.x)), drawn<sw::bf16>(dense(c.y))}, dtype::bf16, dense(c.o)};
    CHECK(differing<sw::bf16>(on_device(w, cu::launcher_of<sw::bf16>(mul)), on_host<mul, sw::bf16>(w), 0) == 0);
    work chosen{
        where, {ids(dense(c.o), 2), drawn<sw::bf16>(dense(c.x)), drawn<sw::bf16>(dense(c.y))}, dtype::bf16, dense(c.o)};
    CHECK(differing<sw::bf16>(on_device(chosen, cu::launcher_of<sw::bf16>(where)), on_host<where, sw::bf16>(chosen), 0) ==
          0);
    work kept{mask_keep, {drawn<sw::f16>(dense(c.o)), ids(dense(c.o), 2)}, dtype::f16, dense(c.o)};
    CHECK(differing<sw::f16>(on_device(kept, cu::launcher_of<sw::f16>(mask_keep)), on_host<mask_keep, sw::f16>(kept), 0) ==
          0);
  }
}

// --- expressions ----------------------------------------------------------------------------------------------------

// relu(v0 v1 + v2) v0, whose steps are each rounded: the sum stored, too.
constexpr sw::expression steps = [] {
  sw::expression e = sw::begin_expression(3, 1, false);
  e.append({mul, 0, 1, 0, 0});
  e.append({add, 3, 2, 1, 0});
  e.append({relu, 4, sw::no_slot, 0, 0});
  e.append({mul, 5, 0, 0, 0});
  e.append({scale, 6, sw::no_slot, 0, 1});
  return e;
}();

TEST_CASE("a fused expression on two-byte elements rounds after each operation, as the operations alone and as the host") {
  NEEDS_GPU();
  for (const extents& e : sizes)
    for (const layout& l : layouts(e)) {
      using T = sw::bf16;
      work w{fused, {drawn<T>(l), drawn<T>(dense(e)), drawn<T>(dense(e)), drawn<T>(dense(e))}, dtype::bf16, dense(e)};
      sw::fused_attributes of{};
      of.constant[0] = sw::real{0.3};
      w.a = sw::pack_attributes(of);
      const std::vector<std::byte> d = on_device(w, &cu::run_with<fused, T, steps>);
      call c = w.make_call();
      sw::host::operands<T> q;
      std::vector<std::byte> h(d.size());
      for (std::size_t k = 0; k < w.in.size(); ++k) q.p[k] = reinterpret_cast<T*>(w.in[k].bytes.data());
      q.p[rt::result] = reinterpret_cast<T*>(h.data());
      sw::host::evaluate<T, steps>(c, q);
      CHECK(differing<T>(d, h, 0) == 0);
      if (l.rank != 1) continue;
      std::vector<std::byte> alone(d.size());
      for (std::size_t i = 0; i < storage(l); ++i) {
        const T x = w.in[0].at<T>(i), sum = x * w.in[1].at<T>(i) + w.in[2].at<T>(i);
        const T r = T(float((sum < T(0) ? T(0) : sum) * x) * 0.3F);
        std::memcpy(alone.data() + i * sizeof(T), &r, sizeof(T));
      }
      CHECK(differing<T>(d, alone, 0) == 0);
    }
}

// --- rows, reductions, indices -----------------------------------------------------------------------------------------

template <op_code Op, class T>
void check_within(const work& w, int units, double slack) {
  INFO(std::string(sw::name_of(Op)) << " of " << sw::name_of(sw::dtype_v<T>));
  const std::vector<std::byte> d = on_device(w, cu::launcher_of<T>(Op)), h = on_host<Op, T>(w);
  if (w.type == dtype::i32) CHECK(differing<std::int32_t>(d, h, 0) == 0);
  else if (w.type == dtype::f32) CHECK(differing<float>(d, h, 0, slack) == 0);
  else CHECK(differing<T>(d, h, units, slack) == 0);
}
work with(work w, std::int64_t v0, std::int64_t v1 = 0, std::int64_t v2 = 0) {
  w.a.v[0] = v0;
  w.a.v[1] = v1;
  w.a.v[2] = v2;
  return w;
}

template <class T>
void check_rows() {
  constexpr dtype t = sw::dtype_v<T>;
  for (const extents& e : {extents{1}, {33}, {5, 33}, {3, 1024}, {3, 1025}, {2, 5000}, {0, 5}, {2, 3, 4, 65}})
    for (const layout& l : layouts(e)) {
      check_within<softmax, T>({softmax, {drawn<T>(l, -20, 20)}, t, dense(e)}, 1, 1e-7);
      check_within<log_softmax, T>({log_softmax, {drawn<T>(l, -20, 20)}, t, dense(e)}, 1, 1e-5);
      check_within<softmax_dx, T>({softmax_dx, {drawn<T>(l), drawn<T>(dense(e), 0, 1)}, t, dense(e)}, 1, 1e-3);
      if (e.back() < 3) continue;
      extents few = e;
      few.back() = 3;
      for (const std::int64_t smallest : {0, 1})
        check_within<topk, T>(with({topk, {drawn<T>(l)}, dtype::i32, dense(few)}, 3, smallest), 0, 0);
      check_within<take, T>({take, {drawn<T>(l), ids(dense(few), e.back())}, t, dense(few)}, 0, 0);
      check_within<take_dx, T>({take_dx, {drawn<T>(dense(few)), ids(dense(few), 2)}, t, dense(e)}, 0, 1e-6);
    }
  for (const layout& l : layouts({2, 7, 65})) {  // causal
    work w{softmax, {drawn<T>(shard(l, 1, 3, 40))}, t, dense({2, 7, 65})};
    check_within<softmax, T>(with(w, 1), 1, 1e-7);
  }
}
TEST_CASE("rows of two-byte elements: softmax, its logarithm, largest elements") {
  NEEDS_GPU();
  check_rows<sw::bf16>();
  check_rows<sw::f16>();
}

template <class T>
void check_reductions() {
  constexpr dtype t = sw::dtype_v<T>;
  const struct {
    extents e;
    int mask;
    extents out;
  } cases[] = {{{5}, 1, {}},          {{0}, 1, {}},        {{5, 0}, 2, {5}}, {{33, 1025}, 2, {33}},
               {{3000, 33}, 1, {33}}, {{4, 5, 6}, 5, {5}}, {{40000}, 1, {}}};
  for (const auto& c : cases)
    for (const layout& l : layouts(c.e)) {
      extents kept = c.e;
      for (std::size_t d = 0; d < kept.size(); ++d)
        if ((c.mask >> d & 1) != 0) kept[d] = 1;
      const bool empty = l.numel() == 0;
      for (const int mean : {0, 1})
        if (mean == 0 || !empty) check_within<sum, T>(with({sum, {drawn<T>(l)}, t, dense(c.out)}, c.mask, 0, mean), 1, 1e-2);
      check_within<sumsq, T>(with({sumsq, {drawn<T>(l)}, dtype::f32, dense(c.out)}, c.mask), 1, 0.1);
      check_within<vector_norm, T>(with({vector_norm, {drawn<T>(l)}, dtype::f32, dense(c.out)}, c.mask, 0, 2), 0, 1e-4);
      const work slope{
          vector_norm_dx, {drawn<float>(dense(c.out)), drawn<T>(l), drawn<float>(dense(c.out), 1, 2)}, t, dense(c.e)};
      check_within<vector_norm_dx, T>(with(slope, c.mask, 0, 2), 1, 1e-6);
      check_within<expand, T>(with({expand, {drawn<T>(dense(c.out))}, t, dense(c.e)}, c.mask, 0, 0), 0, 0);
      if (empty) continue;
      check_within<amax, T>(with({amax, {drawn<T>(l)}, t, dense(kept)}, c.mask), 0, 0);
      check_within<amin, T>(with({amin, {drawn<T>(l)}, t, dense(kept)}, c.mask), 0, 0);
    }
  for (const layout& l : layouts({6, 5})) {
    check_within<prod, T>(with({prod, {drawn<T>(l, 0.5, 1.5)}, t, dense({6, 1})}, 2), 1, 0);
    work w{prod_dx, {drawn<T>(dense({6, 1})), drawn<T>(l, 0.5, 1.5)}, t, dense({6, 5})};
    check_within<prod_dx, T>(with(w, 2), 2, 0);  // the products before an element are rounded once more
  }
}
TEST_CASE("reductions of two-byte elements are summed in more digits and rounded once") {
  NEEDS_GPU();
  check_reductions<sw::bf16>();
  check_reductions<sw::f16>();
}

// How a sum of 4096 ones would end if it were rounded on its way: at 256.
TEST_CASE("sums by index of two-byte elements are floats while they grow") {
  NEEDS_GPU();
  using T = sw::bf16;
  const auto ones = [](const layout& l) { return filled<T>(l, [](std::size_t) { return T(1); }); };
  const auto zeros = [](const layout& l) { return filled<std::int32_t>(l, [](std::size_t) { return 0; }); };
  work w{scatter_add, {ones(dense({4096, 3})), zeros(dense({4096, 3}))}, dtype::bf16, dense({2, 3})};
  w.a = sw::pack_attributes(sw::index_attributes{.dim = 0});
  const std::vector<std::byte> out = on_device(w, cu::launcher_of<T>(scatter_add));
  T first;
  std::memcpy(&first, out.data(), sizeof first);
  CHECK(float(first) == 4096.F);
  for (const layout& l : layouts({300, 5})) {
    work a{index_add, {drawn<T>(l), ids(dense({300}), 11)}, dtype::bf16, dense({11, 5})};
    check_within<index_add, T>(with(a, 0, 11), 1, 1e-3);
    work s{scatter_add, {drawn<T>(l), ids(dense({300, 5}), 11)}, dtype::bf16, dense({11, 5})};
    check_within<scatter_add, T>(with(s, 0, 11), 1, 1e-3);
  }
}

template <class T>
void check_moves() {
  constexpr dtype t = sw::dtype_v<T>;
  const auto any = [](const layout& l) { return filled<T>(l, [](std::size_t i) { return pattern<T>(i * 251 + 77); }); };
  const auto bits = [](const work& w, auto op) {
    constexpr op_code o = decltype(op)::value;
    INFO(std::string(sw::name_of(o)) << " of " << sw::name_of(w.type));
    CHECK(on_device(w, cu::launcher_of<T>(o)) == on_host<o, T>(w));
  };
  for (const extents& e : {extents{5, 33}, {64, 128}, {3, 0}, {1, 1025}})
    for (const layout& l : layouts(e)) {
      const layout out = dense(e);
      bits({contiguous, {any(l)}, t, out}, std::integral_constant<op_code, contiguous>{});
      for (const int dim : {0, 1}) {
        extents joined = e;
        joined[static_cast<unsigned>(dim)] *= 3;
        bits(with({cat, {any(l), any(out), any(l)}, t, dense(joined)}, dim), std::integral_constant<op_code, cat>{});
        if (e[1] == 0) continue;
        extents some = e;
        some[static_cast<unsigned>(dim)] = 7;
        const buffer index = ids(dense(some), e[static_cast<unsigned>(dim)]);
        bits(with({gather, {any(l), index}, t, dense(some)}, dim), std::integral_constant<op_code, gather>{});
        bits(with({index_select, {any(l), ids(dense({7}), e[static_cast<unsigned>(dim)])}, t, dense(some)}, dim),
             std::integral_constant<op_code, index_select>{});
      }
      work padded{constant_pad, {any(l)}, t, dense({e[0] + 1, e[1] + 5})};
      padded.f = 1;
      bits(with(padded, std::int64_t{1} << 32, 2 | std::int64_t{3} << 32), std::integral_constant<op_code, constant_pad>{});
    }
  work ones{fill, {}, t, dense({4101})};
  ones.f = 1;
  bits(ones, std::integral_constant<op_code, fill>{});
  bits(with({one_hot, {ids(dense({5, 33}), 9)}, t, dense({5, 33, 9})}, 9), std::integral_constant<op_code, one_hot>{});
}
TEST_CASE("what only moves keeps every bit, NaNs too: bf16, f16, int64, bool") {
  NEEDS_GPU();
  check_moves<sw::bf16>();
  check_moves<sw::f16>();
  check_moves<std::int64_t>();
  check_moves<bool>();
}

TEST_CASE("random elements of two bytes are the host's, rounded") {
  NEEDS_GPU();
  using T = sw::bf16;
  for (const extents& e : {extents{33}, {5, 33}, {1025, 7}}) {
    const auto seeded = [](work w) {
      w.env.seed = 9;
      w.env.step = 4;
      w.a.v[0] = 2;
      return w;
    };
    check_within<op_code::rand, T>(seeded({op_code::rand, {}, dtype::bf16, dense(e)}), 0, 0);
    check_within<randn, T>(seeded({randn, {}, dtype::bf16, dense(e)}), 1, 1e-6);
    check_within<bernoulli, T>(seeded({bernoulli, {drawn<T>(dense(e), 0, 1)}, dtype::bf16, dense(e)}), 0, 0);
    work w = seeded({dropout, {drawn<T>(dense(e))}, dtype::bf16, dense(e)});
    w.f = 0.25;
    check_within<dropout, T>(w, 0, 0);
  }
}

// --- what stands around collectives ----------------------------------------------------------------------------------

// Rows put together piece by piece and back, in words of one byte and of two, which no wider word divides.
template <std::int64_t Element>
void check_regroup() {
  device& d = device::get();
  for (const std::int64_t cols : {3, 7, 8, 33})
    for (const std::int64_t chunk : {1, 2, 5}) {
      const std::int64_t rows = 6, n = rows * cols * Element;
      std::vector<std::uint8_t> x(static_cast<std::size_t>(n)), back(x.size()), pieces(x.size()), want(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i * 37 + 11);
      std::size_t at = 0;
      for (std::int64_t begin = 0; begin < cols; begin += chunk)
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t b = begin * Element; b < (begin + chunk < cols ? begin + chunk : cols) * Element; ++b)
            want[at++] = x[static_cast<std::size_t>(r * cols * Element + b)];
      device_bytes from(x.size()), to(x.size()), again(x.size());
      from.upload(x.data());
      cu::exchange::regroup_rows<0, Element>(from.data(), to.data(), rows, cols, chunk, 0, d.ctx);
      cu::exchange::regroup_rows<1, Element>(to.data(), again.data(), rows, cols, chunk, 0, d.ctx);
      d.sync();
      to.download(pieces.data());
      again.download(back.data());
      CHECK(pieces == want);
      CHECK(back == x);
      CHECK((to.intact() && again.intact()));
    }
}
TEST_CASE("rows of elements of one byte and of two are regrouped") {
  NEEDS_GPU();
  check_regroup<1>();
  check_regroup<2>();
}

TEST_CASE("extremes of two-byte elements travel as keys that keep NaNs, infinities and signs") {
  NEEDS_GPU();
  device& d = device::get();
  constexpr std::int64_t n = 65536;
  for (const sw::reduction op : {sw::reduction::max, sw::reduction::min}) {
    const buffer x = filled<sw::bf16>(dense({n}), [](std::size_t i) { return pattern<sw::bf16>(i); });
    device_bytes from(x.bytes.size()), keys(static_cast<std::size_t>(rt::extreme_scratch(n, 0))), to(x.bytes.size());
    from.upload(x.bytes.data());
    call c;
    c.kind = sw::transition::all_reduce;
    c.from = sw::partial_value(op);
    c.l[0] = c.l[rt::result] = dense({n});
    c.p[0] = from.data();
    c.p[rt::result] = to.data();
    c.workspace = keys.data();
    const void* sent = cu::exchange::begin_reduction(c, static_cast<const sw::bf16*>(c.p[0]), c.workspace, n, d.ctx);
    CHECK(sent == c.workspace);
    cu::exchange::end_reduction<sw::bf16>(c, d.ctx);
    d.sync();
    std::vector<std::byte> got(x.bytes.size());
    to.download(got.data());
    CHECK(differing<sw::bf16>(got, x.bytes, 0) == 0);
    // keys stand in the order of the numbers, a NaN beyond the end that is looked for
    std::vector<std::int32_t> key(n);
    keys.download(key.data());
    for (std::size_t i = 1; i < 0x7F80; ++i) {
      CHECK(key[i] > key[i - 1]);
      CHECK(key[0x8000 + i] < key[0x8000 + i - 1]);
    }
    CHECK((op == sw::reduction::max ? key[0x7FC0] > key[0x7F80] : key[0x7FC0] < key[0xFF80]));
    CHECK((keys.intact() && to.intact()));
  }
  call norm;
  norm.from = sw::partial_norm_value(2);
  CHECK_THROWS_WITH_AS(cu::exchange::begin_reduction(norm, static_cast<const sw::f16*>(nullptr), nullptr, 0, d.ctx),
                       doctest::Contains("cast the tensor to float"), std::logic_error);
}

// --- what there is ----------------------------------------------------------------------------------------------------

// Without a GPU a case counts as skipped, so what needs none has a case of its own.
TEST_CASE("two-byte elements have a launcher for all operations but those that say so") {
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const op_code op = static_cast<op_code>(i);
    const bool computes = sw::runs_kernel(op) && op != fused && op != opaque && op != custom && op != cast;
    CHECK((cu::launcher_of<sw::bf16>(op) != nullptr) == (computes && !cu::is_wide_only(op)));
    CHECK((cu::launcher_of<sw::f16>(op) != nullptr) == (computes && !cu::is_wide_only(op)));
    const bool moves = sw::runs_kernel(op) && (op == redistribute || sw::rules::only_moves(op) || sw::is_comparison(op)) &&
                       op != opaque && op != custom;
    CHECK((cu::launcher_of<bool, true>(op) != nullptr) == moves);
    CHECK((cu::launcher_of<std::int64_t, true>(op) != nullptr) ==
          (moves || op == add || op == sub || op == mul || op == sum));
  }
}

}  // namespace device_low_precision
