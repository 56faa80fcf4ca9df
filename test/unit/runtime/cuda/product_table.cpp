// SPDX-License-Identifier: Apache-2.0
// The file of measured products: what is written is read again; what is damaged, or another machine's, is not.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <shardwise/runtime/cuda/product_table.hpp>

namespace {

namespace cu = shardwise::cuda;

// A folder of this test's own, two levels of which do not exist yet.
struct folder {
  std::string root = "/tmp/shardwise_products_" + std::to_string(getpid()), path = root + "/a/b";
  ~folder() { CHECK(std::system(("rm -rf " + root).c_str()) == 0); }
};

cu::product_key key_of(std::int64_t n) {
  cu::product_key k{};
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = n * 1000003 + static_cast<std::int64_t>(i) - 7;
  return k;
}
cu::product_algorithm algorithm_of(std::uint64_t n) {
  cu::product_algorithm a{};
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = (n + i) * 0x9E3779B97F4A7C15ULL;
  return a;
}

std::string read(const std::string& path) {
  std::string text;
  std::FILE* const f = std::fopen(path.c_str(), "r");
  REQUIRE(f);
  for (int c; (c = std::fgetc(f)) != EOF;) text += static_cast<char>(c);
  std::fclose(f);
  return text;
}
void write(const std::string& path, const std::string& text) {
  std::FILE* const f = std::fopen(path.c_str(), "w");
  REQUIRE(f);
  std::fputs(text.c_str(), f);
  std::fclose(f);
}

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// A table with three choices, saved; and where.
std::string saved(const folder& at) {
  cu::product_table t("a device");
  for (int n = 0; n < 3; ++n) t.add(key_of(n), algorithm_of(static_cast<std::uint64_t>(n)));
  CHECK(t.save(at.path) == "");
  return t.path_in(at.path);
}

}  // namespace

TEST_CASE("measured products: what is saved is loaded, to the bit, and two savers lose nothing") {
  const folder at;
  saved(at);
  cu::product_table t("a device");
  CHECK(t.load(at.path) == "");
  CHECK(t.size() == 3);
  for (int n = 0; n < 3; ++n) {
    REQUIRE(t.find(key_of(n)));
    CHECK(*t.find(key_of(n)) == algorithm_of(static_cast<std::uint64_t>(n)));
  }
  CHECK(!t.find(key_of(3)));

  cu::product_table other("a device");
  other.add(key_of(9), algorithm_of(9));
  other.add(key_of(0), algorithm_of(77));  // what it has chosen itself stays
  CHECK(other.save(at.path) == "");
  cu::product_table both("a device");
  CHECK(both.load(at.path) == "");
  CHECK(both.size() == 4);
  CHECK(*both.find(key_of(0)) == algorithm_of(77));
}

TEST_CASE("measured products: no file is no message, another machine's has a file of its own") {
  const folder at;
  cu::product_table t("another device");
  CHECK(t.load(at.path) == "");
  saved(at);
  CHECK(t.load(at.path) == "");
  CHECK(t.size() == 0);
  CHECK(t.path_in(at.path) != cu::product_table("a device").path_in(at.path));
}

TEST_CASE("measured products: a damaged or foreign file is not read at all, and says why") {
  const folder at;
  const std::string path = saved(at), good = read(path);
  const auto answer = [&](const std::string& text) {
    write(path, text);
    cu::product_table t("a device");
    const std::string message = t.load(at.path);
    CHECK(t.size() == 0);
    CHECK(holds(message, path.c_str()));
    return message;
  };
  CHECK(holds(answer(""), "no list of products"));
  CHECK(holds(answer("something else\n"), "no list of products"));
  std::string foreign = good;
  foreign.replace(foreign.find("a device"), 8, "b device");
  CHECK(holds(answer(foreign), "another device"));
  CHECK(holds(answer(good.substr(0, good.size() - 1)), "line 4 is damaged"));
  CHECK(holds(answer(good.substr(0, good.size() - 30)), "line 4 is damaged"));
  // any one character of a line changed
  const std::size_t second = good.find('\n') + 1;
  for (std::size_t i = second; i < good.find('\n', second); i += 5) {
    std::string changed = good;
    changed[i] = changed[i] == '7' ? '8' : '7';
    CHECK(holds(answer(changed), "line 2 is damaged"));
  }
  // the next save replaces it
  write(path, foreign);
  saved(at);
  CHECK(read(path) == good);
}

TEST_CASE("measured products: a folder that cannot be written is a message that names it and the remedy") {
  cu::product_table t("a device");
  const std::string message = t.save("/proc/shardwise");
  CHECK(holds(message, "/proc/shardwise"));
  CHECK(holds(message, "SHARDWISE_PRODUCT_CACHE"));
}

TEST_CASE("measured products: the folder is the one asked for, then the environment's, then the user's cache") {
  setenv("HOME", "/h", 1);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("SHARDWISE_PRODUCT_CACHE");
  CHECK(cu::product_folder("/asked") == "/asked");
  CHECK(cu::product_folder("") == "/h/.cache/shardwise");
  setenv("XDG_CACHE_HOME", "/x", 1);
  CHECK(cu::product_folder("") == "/x/shardwise");
  setenv("SHARDWISE_PRODUCT_CACHE", "/p", 1);
  CHECK(cu::product_folder("") == "/p");
  setenv("SHARDWISE_PRODUCT_CACHE", "none", 1);
  CHECK(cu::product_folder("") == "");
  unsetenv("SHARDWISE_PRODUCT_CACHE");
}
