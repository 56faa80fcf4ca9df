// SPDX-License-Identifier: Apache-2.0
// safetensors_writer: what it writes this library and Python's safetensors read; disks that are full.
#include <doctest/doctest.h>

#include <files.hpp>
#include <thrown.hpp>

#include <shardwise/io/safetensors/reader.hpp>
#include <shardwise/io/safetensors/writer.hpp>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using test::thrown;

template <class T>
void put(sw::safetensors_writer& w, const std::vector<T>& v) {
  w.put(v.data(), v.size() * sizeof(T));
}

void write_some(const std::string& path, const sw::file_calls& calls = {}) {
  sw::safetensors_writer w(path,
                           {{"b", "F32", {2, 3}, 0, 0},
                            {"a \"quoted\"\n\xC3\xA9", "F32", {}, 0, 0},
                            {"wide", "F64", {2}, 0, 0},
                            {"empty", "I64", {0, 4}, 0, 0},
                            {"yes", "BOOL", {3}, 0, 0},
                            {"low", "BF16", {2}, 0, 0},
                            {"half", "F16", {1}, 0, 0},
                            {"ids", "I32", {2}, 0, 0}},
                           {{"format", "pt"}}, calls);
  for (const sw::safetensors_entry& e : w.entries()) {
    if (e.name == "b") put<float>(w, {0, 1, 2, 3, 4, 5.5F});
    if (e.name[0] == 'a') put<float>(w, {-1});
    if (e.name == "wide") put<double>(w, {0.1, -0.0});
    if (e.name == "yes") put<std::uint8_t>(w, {1, 0, 1});
    if (e.name == "low") put<std::uint16_t>(w, {0x3F80, 0xC000});
    if (e.name == "half") put<std::uint16_t>(w, {0x3C00});
    if (e.name == "ids") put<std::int32_t>(w, {-7, 2000000000});
  }
  w.finish();
}

TEST_CASE("safetensors: what is written is read, wide elements first") {
  const test::folder scratch;
  const std::string path = scratch / "x.safetensors";
  write_some(path);
  const sw::safetensors_reader file(path);
  std::string order;
  for (const sw::safetensors_entry& e : file.entries()) order += e.type + " ";
  CHECK(order == "I64 F64 F32 F32 I32 F16 BF16 BOOL ");
  CHECK(file.metadata("format") == "pt");
  CHECK(file.values<float>("b") == std::vector<float>{0, 1, 2, 3, 4, 5.5F});
  CHECK(file.values<float>("a \"quoted\"\n\xC3\xA9") == std::vector<float>{-1});
  CHECK(std::signbit(file.values<double>("wide")[1]));
  CHECK(static_cast<float>(file.values<sw::bf16>("low")[1]) == -2);
  CHECK(static_cast<float>(file.values<sw::f16>("half")[0]) == 1);
  CHECK(file.values<std::int32_t>("ids")[1] == 2000000000);
  CHECK((file.file_bytes() - 8 * 2 - 4 * 7 - 4 * 2 - 2 * 3 - 3) % 8 == 0);  // the data begins at a multiple of 8
}

TEST_CASE("safetensors: an element type has one name, and a tensor to write is its values' bytes") {
  for (int k = 0; k < static_cast<int>(sw::dtypes); ++k) {
    const sw::dtype t = static_cast<sw::dtype>(k);
    CHECK(sw::storage::bits_of_type(sw::safetensors_type(t)) == 8 * sw::size_of(t));
    for (int j = 0; j < k; ++j)
      CHECK(std::string(sw::safetensors_type(static_cast<sw::dtype>(j))) != sw::safetensors_type(t));
  }
  CHECK(std::string(sw::safetensors_type(sw::dtype::f32)) == "F32");
  CHECK(std::string(sw::safetensors_type(sw::dtype::bf16)) == "BF16");
  CHECK(std::string(sw::safetensors_type(sw::dtype::f16)) == "F16");
  CHECK(std::string(sw::safetensors_type(sw::dtype::i64)) == "I64");

  const std::vector<double> six{1, 2, 3, 4, 5, 6};
  const sw::safetensors_values given("w", {2, 3}, six);
  CHECK(given.entry().name == "w");
  CHECK(given.entry().type == "F64");
  CHECK(given.entry().shape == std::vector<std::uint64_t>{2, 3});
  CHECK(given.data() == six.data());
  CHECK(given.bytes() == 48);
  CHECK(thrown([&] { sw::safetensors_values("w", {2, 2}, six); }) ==
        "shardwise: write_safetensors: 'w' is given 6 values; its shape has 4");
  CHECK(thrown([&] { sw::safetensors_values("w", {0, 3}, six); }) ==
        "shardwise: write_safetensors: 'w' is given 6 values; its shape has 0");
}

TEST_CASE("safetensors: whole tensors are written under their names, in whatever order they are given") {
  const test::folder scratch;
  const std::string path = scratch / "x.safetensors";
  const std::vector<float> weight{1, 2, 3, 4, 5, 6}, bias{7, 8};
  const std::vector<double> wide{0.5};
  const std::int64_t ids[] = {9, 10};
  sw::write_safetensors(path, {{"weight", {2, 3}, weight}, {"bias", {2}, bias}, {"wide", {}, wide}, {"ids", {2}, ids}},
                        {{"by", "us"}});
  const sw::safetensors_reader file(path);
  CHECK(file.values<float>("weight") == weight);
  CHECK(file.values<float>("bias") == bias);
  CHECK(file.values<double>("wide") == wide);
  CHECK(file.values<std::int64_t>("ids") == std::vector<std::int64_t>{9, 10});
  CHECK(file.metadata("by") == "us");
  CHECK(thrown([&] { sw::write_safetensors(path, {{"weight", {3, 3}, weight}}); }) ==
        "shardwise: write_safetensors: 'weight' is given 6 values; its shape has 9");
  CHECK_THROWS(sw::write_safetensors(path, {{"twice", {2}, bias}, {"twice", {2}, bias}}));
  sw::write_safetensors(path, {});
  CHECK(sw::safetensors_reader(path).entries().empty());
}

TEST_CASE("safetensors: what cannot be written says so") {
  const test::folder scratch;
  const std::string path = scratch / "x";
  CHECK(thrown([&] {
          sw::safetensors_writer w(path, {{"a", "F32", {1}, 0, 0}, {"a", "F32", {1}, 0, 0}});
        }).find("the name 'a' stands twice") != std::string::npos);
  CHECK(thrown([&] { sw::safetensors_writer w(path, {{"a", "F4", {2}, 0, 0}}); }).find("'F4'; give one of whole bytes") !=
        std::string::npos);
  CHECK(thrown([&] {
          sw::safetensors_writer w(path, {{"a", "F32", {2}, 0, 0}});
          put<float>(w, {1});
          w.finish();
        }) == "shardwise: safetensors_writer: 4 bytes of '" + path + "' have been put; its tensors have 8");
  CHECK(thrown([&] { sw::safetensors_writer w(scratch / "no/x", {}); }) ==
        "shardwise: file '" + (scratch / "no/x") + "' cannot be created: No such file or directory");
  CHECK(thrown([&] { write_some("/dev/full"); }) ==
        "shardwise: file '/dev/full' cannot be written: No space left on device; free some space, or save to another disk");
  sw::file_calls short_writes;  // a system that writes a byte at a time writes all of them
  short_writes.write = [](int file, const void* bytes, std::size_t) { return ::write(file, bytes, 1); };
  write_some(path, short_writes);
  CHECK(sw::safetensors_reader(path).values<float>("b")[5] == 5.5F);
  sw::file_calls failing;
  failing.sync = [](int) {
    errno = EIO;
    return -1;
  };
  CHECK(thrown([&] { write_some(path, failing); }) ==
        "shardwise: file '" + path + "' cannot be synchronised: Input/output error");
}

TEST_CASE("safetensors: both ways with Python's package") {
  if (std::system("python3 -c 'import safetensors.numpy' >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: python3 has no package safetensors (pip install safetensors numpy)");
    return;
  }
  const test::folder scratch;
  const std::string ours = scratch / "ours", theirs = scratch / "theirs", script = scratch / "check.py";
  write_some(ours);
  test::write_text(script, R"(
import sys, struct, numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file
with safe_open(sys.argv[1], "numpy") as f:
    assert f.metadata() == {"format": "pt"}, f.metadata()
    assert set(f.keys()) == {"b", 'a "quoted"\n\u00e9', "wide", "empty", "yes", "low", "half", "ids"}, f.keys()
    assert (f.get_tensor("b") == np.array([[0, 1, 2], [3, 4, 5.5]], "float32")).all()
    assert f.get_tensor('a "quoted"\n\u00e9') == -1
    assert (f.get_tensor("wide") == [0.1, 0]).all() and np.signbit(f.get_tensor("wide")[1])
    assert f.get_tensor("empty").shape == (0, 4)
    assert (f.get_tensor("yes") == [True, False, True]).all()
    assert f.get_tensor("half")[0] == 1 and (f.get_tensor("ids") == [-7, 2000000000]).all()
save_file({"x": np.arange(12, dtype="float64").reshape(3, 4), "flag": np.array([True, False]), "i": np.array(-5, "int64"),
           "h": np.array([0.5], "float16"), "none": np.zeros((2, 0), "float32")}, sys.argv[2], {"who": "python \u00e9"})
)");
  REQUIRE(std::system(("python3 '" + script + "' '" + ours + "' '" + theirs + "'").c_str()) == 0);
  const sw::safetensors_reader file(theirs);
  CHECK(file.metadata("who") == "python \xC3\xA9");
  CHECK(file.entry("x").shape == std::vector<std::uint64_t>{3, 4});
  CHECK(file.values<double>("x")[11] == 11);
  CHECK(file.values<std::uint8_t>("flag") == std::vector<std::uint8_t>{1, 0});
  CHECK(file.values<std::int64_t>("i") == std::vector<std::int64_t>{-5});
  CHECK(static_cast<float>(file.values<sw::f16>("h")[0]) == 0.5F);
  CHECK(file.values<float>("none").empty());
}

TEST_CASE("checksums are XXH64") {
  using sw::storage::checksum;
  CHECK(checksum("") == 0xef46db3751d8e999ULL);
  CHECK(checksum("a") == 0xd24ec4f1a98c6e5bULL);
  CHECK(checksum("abc") == 0x44bc2cf5ad770999ULL);
  CHECK(checksum("Nobody inspects the spammish repetition") == 0xfbcea83c8a378bf1ULL);
  CHECK(sw::storage::checksum_text(0xef46db3751d8e999ULL) == "ef46db3751d8e999");
}

}  // namespace
