// SPDX-License-Identifier: Apache-2.0
// The reader of reference files: values, and one clear sentence for every way a file can be broken.
#if SHARDWISE_TEST_JSON

#include <doctest/doctest.h>

#include <golden.hpp>
#include <string>
#include <vector>

namespace {

using test::safetensors;

std::vector<char> file_of(const std::string& header, std::size_t data_bytes) {
  std::vector<char> bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i) & 0xFF));
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), data_bytes, '\0');
  return bytes;
}

std::string error_of(const auto& body) {
  try {
    body();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "no error";
}

std::string error_of_file(const std::string& header, std::size_t data_bytes) {
  return error_of([&] { const safetensors file("x", file_of(header, data_bytes)); });
}

TEST_CASE("a reference file is read") {
  const safetensors file(test::data_file("tp_simple_model"));
  CHECK(file.metadata("optimizer") == "SGD lr=0.1");
  CHECK(file.shape("in.rank0.0") == std::vector<std::int64_t>{3, 20, 10});
  CHECK(file.type("in.rank0.0") == "F32");
  CHECK(file.values("in.rank0.0").size() == 600);
  CHECK(file.has("ref.losses"));
  CHECK_FALSE(file.has("ref.loss"));
  CHECK(file.names("init.").size() == 8);
  CHECK(safetensors(test::data_file("fsdp_transformer_xent_adam")).integers("in.rank0.0")[1] == 5);
}

TEST_CASE("broken reference files are refused") {
  CHECK(error_of([] { const safetensors file("/nowhere/x"); }) == "safetensors: file '/nowhere/x' cannot be opened");
  CHECK(error_of([] { const safetensors file("x", {1, 2}); }) ==
        "safetensors: file 'x' is truncated: 2 bytes, the header size alone takes 8");
  std::vector<char> cut = file_of("{}", 0);
  cut.pop_back();
  CHECK(error_of([&] { const safetensors file("x", cut); }) ==
        "safetensors: file 'x' is truncated: its header takes 2 bytes, 1 follow");
  CHECK(error_of_file("{\"a\":", 0) == "safetensors: file 'x' has a header that is not a JSON object");
  CHECK(error_of_file("[1]", 0) == "safetensors: file 'x' has a header that is not a JSON object");
  CHECK(error_of_file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7) ==
        "safetensors: file 'x' is truncated: 'a' ends at byte 8 of the data, 7 are there");
  CHECK(error_of_file(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8) ==
        "safetensors: file 'x' gives 'a' 8 bytes, its shape takes 12");
  CHECK(error_of_file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8) ==
        "safetensors: file 'x' gives 'a' offsets that are not a range");
  CHECK(error_of_file(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8)
            .starts_with("safetensors: file 'x' describes 'a' wrongly: "));
}

TEST_CASE("tensors that are missing or of another kind are refused") {
  const safetensors file("x", file_of(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", 8));
  CHECK(file.integers("a") == std::vector<std::int32_t>{0});
  CHECK(error_of([&] { (void)file.values("a"); }) ==
        "safetensors: file 'x' holds 'a' as I64, which is not read as floating point");
  CHECK(error_of([&] { (void)file.values("b"); }) == "safetensors: file 'x' has no tensor 'b'");
  CHECK(error_of([&] { (void)file.metadata("b"); }) == "safetensors: file 'x' has no metadata 'b'");
}

}  // namespace

#endif
