// SPDX-License-Identifier: Apache-2.0
// The index of a checkpoint: written and read again it is the same, and one that does not say where each element stands is refused.
#include <doctest/doctest.h>

#include <thrown.hpp>

#include <shardwise/io/checkpoint/index.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace {

namespace sw = shardwise;
namespace storage = sw::storage;

storage::checkpoint_index some() {
  storage::checkpoint_index index;
  index.position = {-0,
                    0xFFFFFFFFFFFFFFFFULL,
                    {{"row", -5}, {"largest", INT64_MAX}},
                    {{"rate", 0.1}, {"tiny", 5e-324}, {"no \"end\"", INFINITY}}};
  index.mesh = "mesh<dp=2>";
  index.ranks = 2;
  index.tensors = {{"a", "F32", {4, 3}}, {"b", "F64", {}}};
  index.files = {{"rank-00000.safetensors", 100, 7, {{0, {0, 0}, {2, 3}, {1}}, {1, {}, {}, {0xFFFFFFFFFFFFFFFFULL}}}},
                 {"rank-00001.safetensors", 60, 8, {{0, {2, 0}, {2, 3}, {2, 3}}}}};
  return index;
}
std::string text_of(const storage::checkpoint_index& index) {
  std::vector<std::string> files;
  for (const auto& f : index.files) files.push_back(storage::text_of(f, index.tensors));
  return storage::index_text(index, files);
}
std::string said(std::string text, const std::string& old = "", const std::string& now = "") {
  if (!old.empty()) {
    REQUIRE(text.find(old) != std::string::npos);
    text.replace(text.find(old), old.size(), now);
  }
  return test::thrown([&] { (void)storage::index_from("x", text); });
}

TEST_CASE("checkpoint index: written and read again") {
  const std::string text = text_of(some());
  const storage::checkpoint_index read = storage::index_from("x", text);
  CHECK(read.position == some().position);
  CHECK(text_of(read) == text);
  CHECK(read.files[1].blocks[0].sums == std::vector<std::uint64_t>{2, 3});
  CHECK(read.files[0].blocks[1].shape.empty());
}

TEST_CASE("checkpoint index: what is not whole is refused") {
  const std::string text = text_of(some());
  CHECK(said(text) == "nothing was thrown");
  CHECK(said("[]") == "shardwise: file 'x' is no JSON object of ours: an object, '{', is required at byte 0");
  CHECK(said("{}") == "shardwise: file 'x' has nothing as 'format', where a string is required");
  CHECK(said(text, "shardwise checkpoint", "other") == "shardwise: file 'x' is no index of a shardwise checkpoint");
  CHECK(said(text, "\"version\":1", "\"version\":9").find("is of version 9; this program reads version 1") !=
        std::string::npos);
  CHECK(said(text, "262144", "1").find("checksums of other chunks") != std::string::npos);
  CHECK(said(text, "[2,0]", "[1,0]") ==
        "shardwise: file 'x' has blocks of 'a' that overlap; each element must stand in one file");
  CHECK(said(text, "\"offset\":[2,0],\"shape\":[2,3]", "\"offset\":[2,0],\"shape\":[1,3]") ==
        "shardwise: file 'x' has blocks of 'a' that leave a part of it out; each element must stand in one file");
  CHECK(
      said(text, "\"offset\":[2,0],\"shape\":[2,3]", "\"offset\":[3,0],\"shape\":[2,3]") ==
      "shardwise: file 'x' has a block of 'a' in 'rank-00001.safetensors' that is no part of it: 2 x 3 from 3 x 0, of 4 x 3");
  CHECK(said(text, "\"offset\":[2,0]", "\"offset\":[9223372036854775807,0]").find("is no part of it") != std::string::npos);
  CHECK(said(text, "\"offset\":[2,0]", "\"offset\":[-2,0]").find("that are no sizes of a tensor") != std::string::npos);
  CHECK(said(text, "[4,3]", "[4294967296,4294967296]").find("that are no sizes of a tensor") != std::string::npos);
  CHECK(said(text, "\"offset\":[2,0]", "\"offset\":[2]").find("is no part of it") != std::string::npos);
  CHECK(said(text, "rank-00001", "../secret") ==
        "shardwise: file 'x' names a file '../secret.safetensors', which is none of its folder");
  CHECK(said(text, "\"0000000000000008\"", "\"000000000000000g\"").find("no groups of 16 hexadecimal digits") !=
        std::string::npos);
  CHECK(said(text, "\"0000000000000008\"", "\"\"").find("has no checksum of the header") != std::string::npos);
  CHECK(said(text, "\"b\":{\"offset\"", "\"c\":{\"offset\"").find("has a block of 'c', which is none of its tensors") !=
        std::string::npos);
  CHECK(said(text, "\"0.1\"", "\"0.1x\"").find("has '0.1x' among its reals") != std::string::npos);
}

// Law: an index that is no longer what was written is refused, or its blocks tile its tensors.
TEST_CASE("checkpoint index: thousands of damaged ones are refused or whole") {
  const std::string whole = text_of(some());
  std::uint64_t state = 7;
  const auto random = [&](std::size_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>((state >> 33) % below);
  };
  int refused = 0, read = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    std::string text = whole;
    for (std::size_t k = random(3) + 1; k > 0 && !text.empty(); --k) {
      const std::size_t at = random(text.size());
      switch (random(4)) {
        case 0: text.resize(at); break;
        case 1: text[at] = static_cast<char>(random(256)); break;
        case 2: text[at] = "0123456789[]{},:\"-"[random(18)]; break;
        case 3: text.erase(at, random(9) + 1); break;
      }
    }
    try {
      const storage::checkpoint_index index = storage::index_from("x", text);
      std::vector<std::int64_t> elements(index.tensors.size(), 0);
      for (const auto& f : index.files)
        for (const auto& b : f.blocks) elements[b.tensor] += storage::elements_in(b.shape);
      for (std::size_t t = 0; t < elements.size(); ++t) REQUIRE(elements[t] == storage::elements_in(index.tensors[t].shape));
      ++read;
    } catch (const sw::file_error& e) {
      REQUIRE(std::string(e.what()).find("shardwise: file 'x' ") == 0);
      ++refused;
    }
  }
  CHECK(refused > 2000);
  CHECK(read > 50);
}

TEST_CASE("checkpoint index: blocks may be runs of a tensor's elements, which tile it") {
  storage::checkpoint_index index = some();
  index.files[0].blocks = {{0, {0}, {5}, {1}}, {1, {0}, {1}, {9}}};
  index.files[1].blocks = {{0, {5}, {7}, {2}}};
  const std::string text = text_of(index);
  CHECK(text_of(storage::index_from("x", text)) == text);
  CHECK(said(text, "\"offset\":[5]", "\"offset\":[4]")
            .find("has blocks of 'a' that overlap; each element must stand in one file") != std::string::npos);
  CHECK(said(text, "\"shape\":[7]", "\"shape\":[6]").find("has blocks of 'a' that leave a part of it out") !=
        std::string::npos);
  CHECK(said(text, "\"shape\":[7]", "\"shape\":[8]") ==
        "shardwise: file 'x' has a block of 'a' in 'rank-00001.safetensors' that is no part of it: 8 from 5, of 4 x 3");
  index.files[0].blocks[0] = {0, {0, 0}, {2, 3}, {1}};
  index.files[1].blocks[0] = {0, {6}, {6}, {2}};
  CHECK(said(text_of(index))
            .find("has blocks of 'a' that are boxes and others that are runs of its elements; a checkpoint has one or the "
                  "other") != std::string::npos);
}

}  // namespace
