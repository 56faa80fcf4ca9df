// SPDX-License-Identifier: Apache-2.0
// Which kernels attention runs by: a library takes what it takes and nothing else, and the report says which one ran, and why.
#include <shardwise/runtime/cuda/attention_library.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
namespace cu = shardwise::cuda;

// A library that takes heads of size 64 and remembers what it ran.
std::vector<cu::attention_request> ran;
constexpr cu::attention_library of_64{
    [] { return std::string("sixty-four 1.0"); },
    [](const cu::attention_request& r, CUstream_st*) {
      return r.extents.size == 64 ? std::string() : std::string("the size is not 64");
    },
    [](const cu::attention_request& r, const cu::attention_pointers&, void*, std::int64_t, CUstream_st*) {
      ran.push_back(r);
    },
    [](const cu::attention_request& r) { return std::find(ran.begin(), ran.end(), r) != ran.end(); }};

struct registered {
  const cu::attention_library* const before = cu::used_attention_library();
  explicit registered(const cu::attention_library* l) {
    cu::use_attention_library(l);
    cu::clear_attention_report();
  }
  ~registered() { cu::use_attention_library(before); }
};

cu::attention_request of_gpt2() {
  cu::attention_request r;
  r.extents = {16, 12, 12, 1024, 1024, 64, 64};
  r.causal = true;
  return r;
}
CUstream_st* const some_stream = reinterpret_cast<CUstream_st*>(&ran);  // nobody reads it

bool says(const std::string& text) { return cu::attention_report().find(text) != std::string::npos; }

TEST_CASE("attention runs by the registered library where that takes it, and the report says so") {
  const registered of(&of_64);
  cu::attention_request r = of_gpt2();
  CHECK(cu::attention_library_for(r, some_stream) == &of_64);
  CHECK(cu::attention_library_for(r, some_stream) == &of_64);
  CHECK(cu::attention_report() ==
        "forward of bfloat16, batch 16, heads 12, 1024 queries, 1024 keys, size 64, causal: sixty-four 1.0, 2 calls\n");
  r.extents.size = r.extents.value_size = 80;
  CHECK(cu::attention_library_for(r, some_stream) == nullptr);
  CHECK(says("size 80, causal: own kernel (the size is not 64), 1 call\n"));
}

TEST_CASE("without a library the own kernels run, and the report names what to link") {
  const registered none(nullptr);
  CHECK(cu::attention_library_for(of_gpt2(), some_stream) == nullptr);
  CHECK(says("own kernel (no library is linked (shardwise::cudnn)), 1 call"));
}

TEST_CASE("a question in advance is no call, and one library after another is another line") {
  const registered of(&of_64);
  CHECK(cu::attention_library_for(of_gpt2()) == &of_64);
  CHECK(says("sixty-four 1.0, 0 calls"));
  CHECK(cu::attention_library_for(of_gpt2(), some_stream) == &of_64);
  cu::use_attention_library(nullptr);
  CHECK(cu::attention_library_for(of_gpt2(), some_stream) == nullptr);
  CHECK(says("sixty-four 1.0, 1 call\n"));
  CHECK(says("own kernel (no library is linked (shardwise::cudnn)), 1 call\n"));
}

TEST_CASE("no library is asked about what differs in meaning or in type") {
  const registered of(&of_64);
  const auto refused = [](auto change, const char* why) {
    cu::attention_request r = of_gpt2();
    change(r);
    CHECK(cu::attention_library_for(r, some_stream) == nullptr);
    CHECK(says(why));
  };
  using request = cu::attention_request;
  refused([](request& r) { r.type = sw::dtype::f32; }, "elements of two bytes alone are taken");
  refused([](request& r) { r.type = sw::dtype::f64; }, "forward of double");
  refused([](request& r) { r.biased = true; }, "a bias, a mask or documents are given");
  refused([](request& r) { r.dropped = true; }, "weights are dropped by masks of this library");
  refused([](request& r) { r.whole = false; }, "a result is not wanted");
  refused([](request& r) { r.extents.keys = 0; }, "a block is empty");
  refused([](request& r) { r.extents.batch = 0; }, "a block is empty");
}

TEST_CASE("adjoints are ordered unless told otherwise, and the workspace follows") {
  CHECK(cu::are_attention_adjoints_ordered());
  cu::order_attention_adjoints(false);
  CHECK(!cu::are_attention_adjoints_ordered());
  cu::order_attention_adjoints(true);
  cu::attention_request r = of_gpt2();
  CHECK(cu::workspace_of(r) == 4096);
  r.adjoint = true;
  CHECK(cu::workspace_of(r) == std::int64_t{256} << 20);
  CHECK(cu::text_of(r) == "adjoint of bfloat16, batch 16, heads 12, 1024 queries, 1024 keys, size 64, causal, ordered");
  r.ordered = false;
  CHECK(cu::workspace_of(r) < 110 << 20);
  r.extents.key_heads = 4;
  r.extents.value_size = 32;
  r.window = 100;
  r.first_query = 7;
  CHECK(
      cu::text_of(r) ==
      "adjoint of bfloat16, batch 16, heads 12 on 4, 1024 queries, 1024 keys, size 64 and 32, causal, window 100, from query 7");
}

}  // namespace
