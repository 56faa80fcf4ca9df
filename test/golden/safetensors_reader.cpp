// SPDX-License-Identifier: Apache-2.0
// What tests read of reference files: values as doubles, ids as int32. Broken files are the library's reader's affair
// (unit/io/safetensors).
#include <doctest/doctest.h>

#include <golden.hpp>
#include <thrown.hpp>

#include <string>
#include <vector>

namespace {

using test::safetensors;
using test::thrown;

TEST_CASE("a reference file is read") {
  const safetensors file(test::data_file("tp_simple_model"));
  CHECK(file.metadata("optimizer") == "SGD lr=0.1");
  CHECK(file.shape("in.rank0.0") == std::vector<std::int64_t>{3, 20, 10});
  CHECK(file.type("in.rank0.0") == "F32");
  CHECK(file.values("in.rank0.0").size() == 600);
  CHECK(file.has("ref.losses"));
  CHECK_FALSE(file.has("ref.loss"));
  CHECK(file.names("init.").size() == 8);
  const safetensors ids(test::data_file("fsdp_transformer_xent_adam"));
  CHECK(ids.integers("in.rank0.0")[1] == 5);
  CHECK(
      test::mentions(thrown([&] { (void)file.integers("in.rank0.0"); }), "holds 'in.rank0.0' as F32, and I64 is asked for"));
  CHECK(test::mentions(thrown([&] { (void)ids.values("in.rank0.0"); }), "and F32 is asked for"));
  CHECK(test::mentions(thrown([&] { (void)file.values("b"); }), "has no tensor 'b'"));
}

}  // namespace
