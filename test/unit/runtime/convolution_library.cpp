// SPDX-License-Identifier: Apache-2.0
// What a library on devices is asked of a convolution: blocks in one memory format, those that lie otherwise copied within the scratch that
// the record asks for, the values of the plain loops; and the report says which kernels run, and why.
#include <convolving.hpp>
#include <shardwise/operations/convolution/device_request.hpp>

#include <string>
#include <vector>

namespace {

using namespace convolving;
namespace cu = shardwise::cuda;
namespace runtime = shardwise::runtime;
constexpr which passes[] = {which::forward, which::dx, which::dw};

// --- a library whose kernels are the host's plain loops, which takes dense blocks of one format alone ----------------------

sizes sizes_of(const runtime::convolution_request& r) {
  sizes s{r.n, r.c, r.h, r.w, r.o, r.kh, r.kw, {}};
  s.a.groups = static_cast<std::int32_t>(r.groups);
  for (int d = 0; d < 2; ++d) {
    s.a.stride[d] = static_cast<std::int16_t>(r.stride[d]);
    s.a.padding[d] = static_cast<std::int16_t>(r.before[d]);
    s.a.further[d] = static_cast<std::int32_t>(r.behind[d] - r.before[d]);
    s.a.dilation[d] = static_cast<std::int16_t>(r.dilation[d]);
  }
  return s;
}
layout of_strides(const extents& e, const std::int64_t (&stride)[4]) {
  layout l = laid(e, format::contiguous);
  for (int d = 0; d < 4; ++d) l.str[d] = stride[d];
  return l;
}
std::vector<cu::convolution_request> ran;

template <class T>
void compute(const cu::convolution_request& q, const runtime::convolution_pointers& p, void* workspace) {
  const runtime::convolution_request& r = q.of;
  const sizes s = sizes_of(r);
  std::memset(workspace, 0x7f, static_cast<std::size_t>(q.bytes));  // it is the library's, all of it
  const layout x = of_strides(s.x(), r.image), w = of_strides(s.weight(), r.weight), y = of_strides(s.y(), r.result);
  T *const image = static_cast<T*>(p.image), *const weight = static_cast<T*>(p.weight),
           *const result = static_cast<T*>(p.result);
  ran.push_back(q);
  if (r.pass == runtime::convolution_pass::forward) run<T>(s, which::forward, {image, weight, result}, {x, w, y}, 1, true);
  else if (r.pass == runtime::convolution_pass::image_gradient)
    run<T>(s, which::dx, {result, weight, image}, {y, w, x}, 1, true);
  else run<T>(s, which::dw, {result, image, weight}, {y, x, w}, 1, true);
}

// As a device's kernel does it, on the host. False: the library is not asked.
template <int X, int Weight, int Y, class T>
bool run_library(const sw::kernel_arguments<T>& k, bool tf32 = false) {
  const cu::convolution_detail::library_call<X, Weight, Y, T> call(k, tf32);
  if (!cu::common_refusal(call.request()).empty()) return false;
  bool in_order = true;
  call.run(
      [&](const cu::convolution_detail::library_block& b, const T* from, T* to, bool back) {
        for (std::int64_t at = 0; at < b.elements(); ++at) {
          const auto p = b.places_of(at, call.is_channels_last());
          in_order = in_order && p.dense == at;  // as the copy is stored
          if (back) to[p.given] = from[p.dense];
          else to[p.dense] = from[p.given];
        }
      },
      [&](const runtime::convolution_pointers& p, void* workspace) { compute<T>(call.request(), p, workspace); });
  CHECK(in_order);
  return true;
}

// The call's result by the library, in row-major order; nothing beside scratch and result is written.
template <class T>
std::vector<T> by_library(const sizes& s, which k, const std::vector<T>& a, const std::vector<T>& b, const format (&f)[3]) {
  const auto e = operands_of(s, k);
  const layout l[] = {laid(e[0], f[0]), laid(e[1], f[1]), laid(e[2], f[2])};
  auto x = stored(a, l[0]), y = stored(b, l[1]);
  std::vector<T> out(l[2].span(), T(-99));
  sw::spec specs[3]{};
  call c;
  c.a = sw::pack_attributes(s.a);
  c.inputs = c.all_inputs = 2;
  sw::host::operands<T> q;
  T* const p[] = {x.data(), y.data(), out.data()};
  for (int i = 0; i < 3; ++i) {
    specs[i].rank = 4;
    specs[i].type = sw::dtype_v<T>;
    for (int d = 0; d < 4; ++d) specs[i].extent[d] = l[i].ext[d];
    c.l[i < 2 ? i : result] = l[i];
    q.p[i < 2 ? i : result] = p[i];
  }
  const sw::spec* const in[] = {&specs[0], &specs[1]};
  const auto bytes = static_cast<std::size_t>(record_of(k).device_scratch.value(c.a, in, 2, specs[2]));
  std::vector<T> memory((bytes + 8192) / sizeof(T), T(-77));
  std::byte* scratch = reinterpret_cast<std::byte*>(memory.data()) + 1024;
  scratch += 256 - reinterpret_cast<std::uintptr_t>(scratch) % 256;
  q.scratch = reinterpret_cast<T*>(scratch);
  q.has_scratch = true;
  const sw::kernel_arguments<T> arguments(c, q);
  bool taken = false;
  if (k == which::forward) taken = run_library<0, 1, -1>(arguments);
  else if (k == which::dx) taken = run_library<-1, 1, 0>(arguments);
  else taken = run_library<1, -1, 0>(arguments);
  CHECK(taken);
  const std::size_t first = static_cast<std::size_t>(scratch - reinterpret_cast<std::byte*>(memory.data())) / sizeof(T);
  bool untouched = true;
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (i < first || i >= first + bytes / sizeof(T)) untouched = untouched && memory[i] == T(-77);
  CHECK(untouched);
  return read(out.data(), l[2]);
}

void check(const sizes& s) {
  for (const which k : passes) {
    const auto e = operands_of(s, k);
    const auto x = some<float>(count(e[0]), 0), y = some<float>(count(e[1]), 1);
    const auto expected = computed<float>(s, k, x, y, plain, 1, true);
    for (const format a : each)
      for (const format b : each)
        for (const format out : each) {
          CAPTURE(static_cast<int>(k));
          CAPTURE(static_cast<int>(a));
          CAPTURE(static_cast<int>(b));
          CAPTURE(static_cast<int>(out));
          CHECK(same_bits(by_library<float>(s, k, x, y, {a, b, out}), expected));
        }
  }
}

TEST_CASE(
    "a library is asked for dense blocks of one format, whatever the blocks lie in, and the values are those of the loops") {
  check({2, 4, 6, 5, 6, 3, 2, with(1, 1)});
  check({3, 6, 7, 9, 4, 3, 3, with(2, 1, 1, 2)});
  check({2, 3, 9, 8, 5, 2, 3, with(1, 2, 2, 1, 1)});  // more padding behind than in front
  check({2, 6, 8, 8, 6, 3, 3, with(3, 0, 1, 6)});     // rows behind the last window
  check({1, 1, 5, 5, 1, 3, 3, with(1, 1)});           // blocks of both formats
  check({4, 7, 1, 1, 3, 1, 1, with(1, 0)});
}

cu::convolution_request asked(const sizes& s, which k, const format (&f)[3]) {
  ran.clear();
  const auto e = operands_of(s, k);
  by_library<float>(s, k, some<float>(count(e[0]), 0), some<float>(count(e[1]), 1), f);
  REQUIRE(ran.size() == 1);
  return ran[0];
}
std::vector<std::int64_t> numbers(const std::int64_t (&x)[4]) { return {x, x + 4}; }

TEST_CASE("the format that a library computes in is the image's or the result's, channels-last where either is") {
  constexpr format c = format::contiguous, l = format::channels_last, apart = format::spread;
  const sizes s{2, 4, 6, 5, 8, 3, 3, with(1, 1)};
  using strides = std::vector<std::int64_t>;
  const strides image_c{120, 30, 5, 1}, image_l{120, 1, 20, 4}, weight_c{36, 9, 3, 1}, weight_l{36, 1, 12, 4};
  const auto in = [&](const format(&f)[3], const strides& image, const strides& weight, std::int64_t copied) {
    const cu::convolution_request r = asked(s, which::forward, f);
    CHECK(numbers(r.of.image) == image);
    CHECK(numbers(r.of.weight) == weight);
    const std::int64_t all = sw::operations::convolution_library_bytes(sw::dtype::f32, 240, 288, 480);
    CHECK(r.bytes == all - copied);
  };
  in({c, c, c}, image_c, weight_c, 0);
  in({l, l, l}, image_l, weight_l, 0);
  in({l, c, l}, image_l, weight_l, 1280);  // 288 floats are 1152 bytes, 256 at a time
  in({c, l, c}, image_c, weight_c, 1280);
  in({l, l, c}, image_l, weight_l, 2048);
  in({c, l, l}, image_l, weight_l, 1024);
  in({apart, c, c}, image_c, weight_c, 1024);
  in({apart, apart, apart}, image_c, weight_c, 1024 + 1280 + 2048);
}

TEST_CASE("blocks that may be taken for either format follow the others") {
  constexpr format c = format::contiguous, l = format::channels_last;
  const sizes narrow{2, 1, 6, 5, 1, 3, 3, with(1, 1)};  // one channel: both formats
  CHECK(asked(narrow, which::forward, {c, c, c}).bytes == asked(narrow, which::forward, {l, l, l}).bytes);
  const sizes pixels{2, 4, 1, 1, 8, 1, 1, with(1, 0)};  // one place
  const cu::convolution_request r = asked(pixels, which::forward, {l, l, l});
  CHECK(numbers(r.of.image) == std::vector<std::int64_t>{4, 1, 1, 1});
  CHECK(r.bytes == sw::operations::convolution_library_bytes(sw::dtype::f32, 8, 32, 16));
}

// --- what is refused -------------------------------------------------------------------------------------------------------

cu::convolution_request some_request() {
  cu::convolution_request q;
  runtime::convolution_request& r = q.of;
  r.n = 2;
  r.c = r.i = 4;
  r.o = 8;
  r.h = 6;
  r.w = 5;
  r.kh = r.kw = 3;
  r.before[0] = r.before[1] = r.behind[0] = r.behind[1] = 1;
  r.oh = 6;
  r.ow = 5;
  runtime::make_dense({r.n, r.c, r.h, r.w}, true, r.image);
  return q;
}
std::string why_not(void (*change)(cu::convolution_request&)) {
  cu::convolution_request q = some_request();
  change(q);
  return cu::common_refusal(q);
}
using request = cu::convolution_request;

TEST_CASE("no library is asked for what it would compute otherwise") {
  CHECK(cu::common_refusal(some_request()).empty());
  CHECK(why_not([](request& q) { q.of.type = sw::dtype::i32; }) == "elements are no floating-point numbers");
  CHECK(why_not([](request& q) { q.of.n = 0; }) == "a block is empty");
  CHECK(why_not([](request& q) { q.of.oh = 0; }) == "a block is empty");
  CHECK(why_not([](request& q) { q.of.n = 1 << 29; }) == "a block has more than 2147483647 elements");
  CHECK(why_not([](request& q) { q.of.before[0] = -1; }) == "the image's block begins before the first window");
  CHECK(why_not([](request& q) { q.of.h = 7; }) == "the image's block goes on behind the last window");
  CHECK(why_not([](request& q) { q.of.behind[1] = 0; }) == "the image's block goes on behind the last window");
  CHECK(why_not([](request& q) { q.of.kh = 10; }) == "the image's block goes on behind the last window");
  CHECK(why_not([](request& q) { q.bytes = -1; }) ==
        "its scratch has no room for the copies that bring its blocks to one memory format");
  CHECK(why_not([](request& q) { q.aligned = false; }) == "a block does not begin at a multiple of 16 bytes");
}

// A block of an image's rows, as a rank of a cut image has it: rows 4 to 9 of 12, and y's rows 2 and 3 of stride 2.
TEST_CASE(
    "a rank's block of a cut image: the padding is what its own windows miss, and a row that no window reads is left out") {
  const sizes s{1, 2, 6, 4, 3, 3, 3, with(2, 1)};
  call c;
  c.a = sw::pack_attributes(s.a);
  c.inputs = c.all_inputs = 2;
  c.l[0] = laid({1, 2, 6, 4}, format::contiguous);
  c.l[0].origin[2] = 3;
  c.l[0].global[2] = 12;
  c.l[1] = laid({3, 2, 3, 3}, format::contiguous);
  c.l[result] = laid({1, 3, 2, 2}, format::contiguous);
  c.l[result].origin[2] = 2;
  c.l[result].global[2] = 6;
  alignas(64) static float memory[1024];
  sw::host::operands<float> q;
  q.p[0] = memory;
  q.p[1] = memory + 64;
  q.p[result] = memory + 128;
  const sw::kernel_arguments<float> k(c, q);
  const cu::convolution_detail::library_call<0, 1, -1, float> whole(k, true);
  const cu::convolution_request& r = whole.request();
  CHECK(r.of.before[0] == 0);
  CHECK(r.of.behind[0] == 0);  // rows 3 to 7 are read, row 8 is not
  CHECK(r.of.before[1] == 1);
  CHECK(r.tf32);
  CHECK(cu::common_refusal(r).empty());
  q.p[1] = memory + 65;
  CHECK(!cu::convolution_detail::library_call<0, 1, -1, float>(sw::kernel_arguments<float>(c, q), false).request().aligned);
}

// --- the report ------------------------------------------------------------------------------------------------------------

constexpr cu::convolution_library of_even{
    [] { return std::string("even 1.0"); },
    [](const cu::convolution_request& q, CUstream_st*) {
      return q.of.n % 2 == 0 ? std::string() : std::string("an odd batch");
    },
    [](const cu::convolution_request&, const runtime::convolution_pointers&, void*, CUstream_st*) {},
    [](const cu::convolution_request&) { return false; }};
struct registered {
  const cu::convolution_library* const before = cu::used_convolution_library();
  explicit registered(const cu::convolution_library* l) {
    cu::use_convolution_library(l);
    cu::clear_convolution_report();
  }
  ~registered() { cu::use_convolution_library(before); }
};
CUstream_st* const some_stream = reinterpret_cast<CUstream_st*>(&ran);  // nobody reads it
bool says(const std::string& text) { return cu::convolution_report().find(text) != std::string::npos; }

TEST_CASE("the report says what ran each convolution, and why") {
  const registered of(&of_even);
  request q = some_request();
  CHECK(cu::convolution_library_for(q) == &of_even);  // in advance: no call
  CHECK(cu::convolution_report() ==
        "forward of float, image 2 4 6 5, kernel 8 4 3 3, padding 1 1 1 1, channels-last: even 1.0, 0 calls\n");
  CHECK(cu::convolution_library_for(q, some_stream) == &of_even);
  CHECK(says("even 1.0, 1 call\n"));
  q.of.n = 3;
  q.of.pass = runtime::convolution_pass::weight_gradient;
  q.tf32 = true;
  q.ordered = false;
  CHECK(cu::convolution_library_for(q, some_stream) == nullptr);
  CHECK(
      says("gradient of the weight of float, image 3 4 6 5, kernel 8 4 3 3, padding 1 1 1 1, channels-last, TF32, in any "
           "order: own kernel (an odd batch), 1 call\n"));
  cu::use_convolution_library(nullptr);
  CHECK(cu::convolution_library_for(some_request(), some_stream) == nullptr);
  CHECK(says("own kernel (no library is linked (shardwise::cudnn)), 1 call\n"));
}
TEST_CASE("convolutions are ordered unless told otherwise") {
  CHECK(cu::are_convolutions_ordered());
  cu::order_convolutions(false);
  ran.clear();
  const sizes s{2, 4, 6, 5, 6, 3, 2, with(1, 1)};
  CHECK(!asked(s, which::dw, plain).ordered);
  cu::order_convolutions(true);
  CHECK(asked(s, which::dw, plain).ordered);
}

}  // namespace
