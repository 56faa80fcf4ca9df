// SPDX-License-Identifier: Apache-2.0
// safetensors_reader: what is read, and one clear sentence for every way a file can be torn or lie.
#include <doctest/doctest.h>

#include <files.hpp>
#include <thrown.hpp>

#include <shardwise/io/safetensors/reader.hpp>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace sw = shardwise;
using test::thrown;

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + std::string(data_bytes, '\1');
}
std::string entry_of(const std::string& inside) { return "{\"a\":{" + inside + "}}"; }
const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";

// What the reader says of a file of these bytes, without the file's name.
std::string said_of(const std::string& bytes) {
  const test::folder scratch;
  const std::string path = scratch / "x";
  test::write_text(path, bytes);
  const std::string said = thrown([&] { const sw::safetensors_reader file(path); });
  const std::string begin = "shardwise: file '" + path + "' ";
  return said.compare(0, begin.size(), begin) == 0 ? said.substr(begin.size()) : said;
}

TEST_CASE("safetensors: tensors of every element type, in ranges of bytes") {
  const test::folder scratch;
  const std::string path = scratch / "x";
  const std::string header =
      R"({"__metadata__":{"k":"v\u00e9\ud83d\ude00\n"}, "two":{"shape":[1,2],"dtype":"F64","data_offsets":[0,16]},)"
      R"("none":{"dtype":"I64","shape":[0,5],"data_offsets":[16,16]},"one":{"dtype":"I32","shape":[],"data_offsets":[16,20]},)"
      R"("low":{"dtype":"BF16","shape":[2],"data_offsets":[20,24]},"yes":{"dtype":"BOOL","shape":[3],"data_offsets":[24,27]}}   )";
  std::string bytes = file_of(header, 27);
  const double two[2] = {1.5, -2};
  const std::int32_t one = 77;
  const std::size_t data = bytes.size() - 27;
  std::memcpy(bytes.data() + data, two, 16);
  std::memcpy(bytes.data() + data + 16, &one, 4);
  test::write_text(path, bytes);
  const sw::safetensors_reader file(path);
  CHECK(file.entries().size() == 5);
  CHECK(file.metadata("k") == "v\xC3\xA9\xF0\x9F\x98\x80\n");
  CHECK(file.bytes_read() == 0);
  CHECK(file.values<double>("two") == std::vector<double>{1.5, -2});
  CHECK(file.bytes_read() == 16);
  CHECK(file.values<std::int32_t>("one") == std::vector<std::int32_t>{77});
  CHECK(file.values<std::int64_t>("none").empty());
  CHECK(file.entry("none").shape == std::vector<std::uint64_t>{0, 5});
  CHECK(file.values<sw::bf16>("low")[1].bits == 0x0101);
  CHECK(file.values<std::uint8_t>("yes") == std::vector<std::uint8_t>{1, 1, 1});
  double second = 0;
  const std::uint64_t before = file.bytes_read();
  file.read(file.entry("two"), 8, &second, 8);
  CHECK(second == -2);
  CHECK(file.bytes_read() == before + 8);

  CHECK(thrown([&] { (void)file.values<float>("two"); }) ==
        "shardwise: file '" + path + "' holds 'two' as F64, and F32 is asked for");
  CHECK(thrown([&] { (void)file.values<float>("tow"); }) ==
        "shardwise: file '" + path + "' has no tensor 'tow'; it has 'two', 'none', 'one', 'low', 'yes'");
  CHECK(thrown([&] { (void)file.metadata("l"); }) == "shardwise: file '" + path + "' has no metadata 'l'");
  CHECK(thrown([&] { file.read(file.entry("two"), 9, &second, 8); }) ==
        "shardwise: file '" + path + "' has 16 bytes of 'two', and bytes 9 to 17 are asked for");
  CHECK(thrown([&] { file.read(file.entry("two"), UINT64_MAX, &second, 8); }).find("are asked for") != std::string::npos);
  CHECK(file.entries()[0].name == "two");
}

TEST_CASE("safetensors: torn and hostile files, each with its sentence") {
  CHECK(thrown([] { const sw::safetensors_reader file("/nowhere/x"); }) ==
        "shardwise: file '/nowhere/x' cannot be opened: No such file or directory");
  CHECK(thrown([] { const sw::safetensors_reader file("/dev/zero"); }) == "shardwise: file '/dev/zero' is no regular file");
  CHECK(thrown([] { const sw::safetensors_reader file("/tmp"); }) == "shardwise: file '/tmp' is no regular file");

  const std::string whole = file_of(entry_of(good), 8);
  CHECK(said_of(whole) == "nothing was thrown");
  CHECK(said_of(file_of("{}", 0)) == "nothing was thrown");
  const std::string wrongly = "describes 'a' wrongly: ", none = "has a header that is none: ";
  const std::string huge = "4294967296";
  const std::pair<std::string, std::string> table[] = {
      {"", "is torn: it has 0 bytes, and the size of its header alone takes 8"},
      {std::string("\1\0\0", 3), "is torn: it has 3 bytes, and the size of its header alone takes 8"},
      {whole.substr(0, 8), "is torn: its header takes 54 bytes, and 0 follow its size"},
      {whole.substr(0, 20), "is torn: its header takes 54 bytes, and 12 follow its size"},
      {whole.substr(0, whole.size() - 1), "is torn: 7 bytes follow its header, and its tensors take 8"},
      {whole + "x", "is too long: 9 bytes follow its header, and its tensors take 8"},
      {std::string(8, '\xFF') + "{}",
       "says that its header has 18446744073709551615 bytes; the format allows 100000000: it is no safetensors file, or a torn one"},
      {file_of("", 0), "has a header that does not begin with '{'"},
      {file_of(" {}", 0), "has a header that does not begin with '{'"},
      {file_of("[1]", 0), "has a header that does not begin with '{'"},
      {file_of("{\"a\":", 0), none + "the text ends where a value is required at byte 5 of it"},
      {file_of("{", 0), none + "a name in quotes is required at byte 1 of it"},
      {file_of("{}}", 0), none + "something follows the object at byte 2 of it"},
      {file_of(std::string("{}\0", 3), 0), none + "something follows the object at byte 2 of it"},
      {file_of("{\"a\"}", 0), none + "':' is required at byte 4 of it"},
      {file_of("{\"a\":{},}", 0), none + "a name in quotes is required at byte 8 of it"},
      {file_of("{\"a\":true}", 0), none + "an object, an array, a string or a whole number is required at byte 5 of it"},
      {file_of("{\"a\":1.5}", 0), none + "a whole number is required, without fraction and exponent at byte 6 of it"},
      {file_of("{\"a\":01}", 0), none + "a number begins with 0 at byte 5 of it"},
      {file_of("{\"a\":18446744073709551616}", 0), none + "a number does not fit 64 bits at byte 24 of it"},
      {file_of("{\"a\":-}", 0), none + "a digit is required at byte 6 of it"},
      {file_of("{\"a", 0), none + "the text ends inside of a string at byte 3 of it"},
      {file_of("{\"a\x01\":1}", 0), none + "a control character stands in a string at byte 3 of it"},
      {file_of("{\"\xFF\":1}", 0), none + "a string is no UTF-8 at byte 2 of it"},
      {file_of("{\"\xC0\x80\":1}", 0), none + "a string is no UTF-8 at byte 2 of it"},
      {file_of("{\"\xED\xA0\x80\":1}", 0), none + "a string is no UTF-8 at byte 2 of it"},
      {file_of("{\"\xF4\x90\x80\x80\":1}", 0), none + "a string is no UTF-8 at byte 2 of it"},
      {file_of("{\"\\ud800\":1}", 0), none + "half of a surrogate pair stands alone at byte 8 of it"},
      {file_of("{\"\\u12g4\":1}", 0), none + "four hexadecimal digits are required at byte 6 of it"},
      {file_of("{\"\\x\":1}", 0), none + "an escape that JSON does not have at byte 3 of it"},
      {file_of("{\"a\":" + std::string(100000, '['), 0), none + "more than 8 levels at byte 12 of it"},
      {file_of("{\"a\":{" + good + "},\"a\":{" + good + "}}", 8),
       none + "the name 'a' stands twice in the object that ends at byte 107 of it"},
      {file_of("{\"a\":{" + good + "},\"\\u0061\":{" + good + "}}", 8),
       none + "the name 'a' stands twice in the object that ends at byte 112 of it"},
      {file_of("{\"a\":1}", 0), wrongly + "it is a number, an object is required"},
      {file_of(entry_of(good + ",\"more\":1"), 8), wrongly + "'more' is none of dtype, shape and data_offsets"},
      {file_of(entry_of(R"("shape":[2],"data_offsets":[0,8])"), 8), wrongly + "a string dtype is required"},
      {file_of(entry_of(R"("dtype":7,"shape":[2],"data_offsets":[0,8])"), 8), wrongly + "a string dtype is required"},
      {file_of(entry_of(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"), 8), wrongly + "the format has no dtype 'F33'"},
      {file_of(entry_of(R"("dtype":"F32","data_offsets":[0,8])"), 8), wrongly + "an array shape is required"},
      {file_of(entry_of(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), 8),
       wrongly + "extents are whole numbers from 0 on"},
      {file_of(entry_of(R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])"), 8),
       wrongly + "extents are whole numbers from 0 on"},
      {file_of(entry_of(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), 8), wrongly + "two data_offsets are required"},
      {file_of(entry_of(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), 8),
       wrongly + "its data_offsets end before they begin"},
      {file_of(entry_of(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), 8),
       wrongly + "its data_offsets hold 8 bytes, and its shape takes 12"},
      {file_of(entry_of(R"("dtype":"F4","shape":[3],"data_offsets":[0,1])"), 1),
       wrongly + "its data_offsets hold 1 bytes, and its shape takes 1 and a part of one"},
      {file_of(entry_of("\"dtype\":\"F32\",\"shape\":[" + huge + "," + huge + "],\"data_offsets\":[0,0]"), 0),
       wrongly + "its shape has more elements than 64 bits count"},
      {file_of(entry_of("\"dtype\":\"F64\",\"shape\":[" + huge + ",1073741824],\"data_offsets\":[0,0]"), 0),
       wrongly + "its shape has more elements than 64 bits count"},
      {file_of("{\"a\":{" + good + R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
       "has 'b' at byte 4 of its data, where byte 8 is required: tensors lie side by side, without gaps and overlaps"},
      {file_of("{\"a\":{" + good + R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16),
       "has 'b' at byte 12 of its data, where byte 8 is required: tensors lie side by side, without gaps and overlaps"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
       "has 'a' at byte 4 of its data, where byte 0 is required: tensors lie side by side, without gaps and overlaps"},
      {file_of(R"({"__metadata__":[]})", 0), "has __metadata__ that is an array, an object is required"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "has metadata 'a' that is no string"},
  };
  for (const auto& [bytes, sentence] : table) CHECK(said_of(bytes) == sentence);
}

// Law: a file that is no longer what was written either throws or gives tensors that lie in it. Run under sanitizers too.
TEST_CASE("safetensors: thousands of damaged files throw or are consistent") {
  const test::folder scratch;
  const std::string path = scratch / "x";
  const std::string whole = file_of(
      R"({"__metadata__":{"k\u0041":"v"},"first.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("second":{"dtype":"I64","shape":[1],"data_offsets":[24,32]},"e":{"dtype":"F16","shape":[0],"data_offsets":[32,32]}})",
      32);
  std::uint64_t state = 42;
  const auto random = [&](std::size_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>((state >> 33) % below);
  };
  int refused = 0, read = 0;
  const char* const pieces[] = {
      "0", "9", "99999999999999999999", "-", "\"", "{", "}", "[", "]", ",", ":", "\\u", "\xFF", "F64", "1e3", "null"};
  for (int turn = 0; turn < 6000; ++turn) {
    std::string bytes = whole;
    for (std::size_t k = random(3) + 1; k > 0 && !bytes.empty(); --k) {
      const std::size_t at = random(bytes.size());
      switch (random(5)) {
        case 0: bytes.resize(at); break;
        case 1: bytes[at] = static_cast<char>(bytes[at] ^ 1 << random(8)); break;
        case 2: bytes[at] = static_cast<char>(random(256)); break;
        case 3: bytes.insert(at, pieces[random(std::size(pieces))]); break;
        case 4: bytes.erase(at, random(9) + 1); break;
      }
    }
    if (turn % 2 != 0 && bytes.size() > 8) {  // the size as it must be, so that the header is read
      const std::size_t header = bytes.size() > 40 ? bytes.size() - 40 : 0;
      for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header >> (8 * i) & 0xFF);
    }
    test::write_text(path, bytes);
    try {
      const sw::safetensors_reader file(path);
      for (const sw::safetensors_entry& e : file.entries()) {
        std::vector<char> all(static_cast<std::size_t>(e.end - e.begin));
        file.read(e, 0, all.data(), all.size());
      }
      ++read;
    } catch (const sw::file_error& e) {
      REQUIRE(std::string(e.what()).find(path) != std::string::npos);
      ++refused;
    }
  }
  CHECK(refused + read == 6000);
  CHECK(refused > 4000);
  CHECK(read > 100);  // bits of elements flip, too
}

}  // namespace
