// SPDX-License-Identifier: Apache-2.0
// train_text's texts: what is read and refused, and the law that no held-out file has a near-duplicate in training.
#include "../../../examples/train_text/corpus.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using train_text::load_corpus;
using train_text::text_file;
using train_text::usage_error;

/// A folder that lasts as long as the test.
struct scratch {
  fs::path root = fs::temp_directory_path() / ("train_text_corpus_" + std::to_string(std::random_device{}()));
  scratch() { fs::create_directories(root); }
  ~scratch() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  fs::path put(const std::string& name, std::string_view content) const {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name, std::ios::binary) << content;
    return root / name;
  }
};

/// Lines that share nothing with those of another seed.
std::string prose(unsigned seed, std::size_t lines = 40) {
  std::mt19937 random(seed);
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) {
    for (int c = 0; c < 40; ++c) text += static_cast<char>('a' + random() % 26);
    text += '\n';
  }
  return text;
}

std::vector<text_file> files_of(const train_text::byte_vector& joined, const std::vector<std::string>& names) {
  std::vector<text_file> files;
  auto begin = joined.begin();
  for (const auto& name : names) {
    const auto end = std::find(begin, joined.end(), std::uint8_t{0});
    files.push_back({name, std::string(begin, end)});
    begin = end == joined.end() ? end : end + 1;
  }
  return files;
}

bool law_holds(const train_text::corpus& c) {
  return train_text::holds_out_cleanly(files_of(c.train, c.train_files), files_of(c.held_out, c.held_out_files));
}

TEST_CASE("train_text corpus: leading comments and blank lines go, all else stays") {
  using train_text::without_leading_comments;
  CHECK(without_leading_comments("// a\n\n/* b\n * c */\n  // d\n  int x;  // e\n") == "  int x;  // e\n");
  CHECK(without_leading_comments("#include <a>\n// b\n") == "#include <a>\n// b\n");
  CHECK(without_leading_comments("/**/int x;") == "int x;");
  CHECK(without_leading_comments("/* */ /* */\n\n") == "");
  CHECK(without_leading_comments("/*/ still open") == "");
  CHECK(without_leading_comments("// no line end") == "");
  CHECK(without_leading_comments("/ 2") == "/ 2");
  CHECK(without_leading_comments("") == "");
}

TEST_CASE("train_text corpus: what counts as a near-duplicate") {
  const std::string a = prose(1), b = prose(2);
  const auto near = [](std::string_view x, std::string_view y) {
    const auto s = train_text::shingles_of(x), t = train_text::shingles_of(y);
    const std::size_t shared = train_text::shared_shingles(s, t);
    CHECK(shared == train_text::shared_shingles(t, s));
    return train_text::near_duplicate(s.size(), t.size(), shared);
  };
  CHECK(near(a, a));
  CHECK_FALSE(near(a, b));
  CHECK(near(a, a.substr(0, a.size() / 10)));  // contained, either way round
  CHECK(near(a.substr(0, a.size() / 10), a + b));
  CHECK(near(a + b, prose(3) + a));                         // half of each: similarity 1/3
  CHECK(near(a + prose(4, 160), b + a));                    // a fifth of one, but half of the other
  CHECK_FALSE(near(a + prose(4, 160), prose(5, 120) + a));  // a fifth and a quarter
  CHECK_FALSE(near("short", "short"));                      // below one shingle there is nothing to tell
}

TEST_CASE("train_text corpus: a split that leaks is caught") {
  const std::string original = prose(1);
  std::string renamed = original;
  for (std::size_t i = 100; i < renamed.size(); i += 400) renamed[i] = '_';
  const std::vector<text_file> train{{"a", prose(2)}, {"b", original}}, clean{{"c", prose(3)}}, leak{{"d", renamed}};
  CHECK(train_text::holds_out_cleanly(train, clean));
  CHECK_FALSE(train_text::holds_out_cleanly(train, leak));
}

TEST_CASE("train_text corpus: near-duplicates stay on one side, for every seed") {
  std::vector<text_file> files;
  for (unsigned f = 0; f < 60; ++f) {
    files.push_back({"f" + std::to_string(f), prose(f)});
    if (f % 3 == 0) files.push_back({"g" + std::to_string(f), prose(f, 30) + prose(1000 + f, 10)});
    // A chain: h resembles g's end and its own successor, so the cluster is larger than any one file's neighbours.
    if (f % 6 == 0) files.push_back({"h" + std::to_string(f), prose(1000 + f, 10) + prose(2000 + f, 5)});
  }
  // A chain too long to hold out: whichever link is met first, the others must not be held out without it.
  for (unsigned f = 0; f < 24; ++f) files.push_back({"x" + std::to_string(f), prose(3000 + f, 20) + prose(3001 + f, 20)});
  std::size_t total = 0;
  for (const auto& file : files) total += file.bytes.size();
  std::set<std::vector<bool>> splits;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<bool> held = train_text::hold_out(files, seed);
    CHECK(held == train_text::hold_out(files, seed));
    splits.insert(held);
    std::vector<text_file> train, held_out;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
      (held[i] ? held_out : train).push_back(files[i]);
      bytes += held[i] ? files[i].bytes.size() : 0;
    }
    CHECK(train_text::holds_out_cleanly(train, held_out));
    CHECK(bytes >= total / 20);
    CHECK(bytes <= total * 8 / 100);
  }
  CHECK(splits.size() > 30);
}

TEST_CASE("train_text corpus: the index finds what comparing every pair finds") {
  std::vector<text_file> files;
  for (unsigned f = 0; f < 30; ++f) files.push_back({"", prose(f % 10, 20) + prose(100 + f, f)});
  train_text::near_duplicate_index index(files);
  std::size_t links = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto found = index.duplicates_of(i);
    links += found.size();
    for (std::size_t j = 0; j < files.size(); ++j) {
      if (i == j) continue;
      const bool linked = std::find(found.begin(), found.end(), j) != found.end();
      CHECK(linked == !train_text::holds_out_cleanly({&files[i], 1}, {&files[j], 1}));
    }
  }
  CHECK(links > 0);
  CHECK(links < 30 * 29);
}

TEST_CASE("train_text corpus: a folder's files, sorted, joined by 0, without copies, binaries and comments") {
  const scratch dir;
  std::size_t kept = 0;
  for (unsigned f = 0; f < 30; ++f) {
    dir.put("sub" + std::to_string(f % 3) + "/f" + std::to_string(f), "// licence\n" + prose(f));
    kept += prose(f).size();
  }
  dir.put("copy", "/* other licence */\n" + prose(3));
  dir.put("binary", std::string("a\0b", 3));
  dir.put("banner", "// only\n// this\n");
  dir.put("empty", "");
  fs::create_directory_symlink(dir.root, dir.root / "sub0" / "cycle");
  fs::create_symlink(dir.root / "nowhere", dir.root / "dangling");

  const auto c = load_corpus(dir.root, 1);
  CHECK(c.source == dir.root.string());
  CHECK(c.train_files.size() + c.held_out_files.size() == 30);
  CHECK(c.dropped_duplicates == 1);
  CHECK(c.skipped_files == 3);
  CHECK(std::is_sorted(c.train_files.begin(), c.train_files.end()));
  CHECK(c.train.size() + c.held_out.size() == kept + 30 - 2);
  CHECK(std::count(c.train.begin(), c.train.end(), 0) == static_cast<std::ptrdiff_t>(c.train_files.size() - 1));
  CHECK(std::string(c.train.begin(), c.train.end()).find("licence") == std::string::npos);
  CHECK(law_holds(c));
  CHECK(load_corpus(dir.root, 1).held_out == c.held_out);
}

TEST_CASE("train_text corpus: two files are enough, one or only near-duplicates are not") {
  const scratch dir;
  dir.put("a", prose(1));
  CHECK_THROWS_WITH_AS(load_corpus(dir.root, 1), doctest::Contains("holds one text only, 'a'"), usage_error);
  dir.put("b", prose(1) + prose(9, 2));
  CHECK_THROWS_WITH_AS(load_corpus(dir.root, 1), doctest::Contains("near-duplicates of one another"), usage_error);
  dir.put("c", prose(2));
  const auto c = load_corpus(dir.root, 1);
  CHECK(c.held_out_files == std::vector<std::string>{"c"});
  CHECK(law_holds(c));
}

TEST_CASE("train_text corpus: a single file holds out its last tenth, less what it repeats") {
  const scratch dir;
  const std::string text = prose(1, 1000);
  const auto c = load_corpus(dir.put("book.txt", text), 1);
  CHECK(c.dropped_duplicates == 0);
  CHECK(std::string(c.train.begin(), c.train.end()) + std::string(c.held_out.begin(), c.held_out.end()) == text);
  CHECK(c.train.back() == '\n');
  CHECK(c.held_out.size() >= text.size() / 10 - 41);
  CHECK(c.held_out.size() <= text.size() / 10);

  // The end repeats the beginning but for a stretch in its middle.
  const auto d = load_corpus(dir.put("echo.txt", text + prose(1, 40) + prose(2, 60) + prose(1, 20)), 1);
  const std::string held(d.held_out.begin(), d.held_out.end());
  CHECK(d.dropped_duplicates >= 1);
  CHECK(held.find(prose(2, 60).substr(1200, 400)) != std::string::npos);
  CHECK(held.find(prose(1).substr(20 * 41, 40)) == std::string::npos);
  CHECK(held.size() < 60 * 41 + 2 * 1024);  // blocks at the seams may keep a little of what they repeat

  CHECK_THROWS_WITH_AS(load_corpus(dir.put("loop.txt", text + text), 1), doctest::Contains("only repeats"), usage_error);
}

TEST_CASE("train_text corpus: a file without line ends, or of a few bytes, is still split") {
  const scratch dir;
  std::string line = prose(1, 500);
  std::erase(line, '\n');
  const auto c = load_corpus(dir.put("line", line), 1);
  CHECK(c.train.size() + c.held_out.size() == line.size());
  CHECK(c.held_out.size() == line.size() / 10);
  for (std::size_t n = 1; n < 30; ++n) {
    const auto tiny = load_corpus(dir.put("tiny", prose(1).substr(0, n)), 1);
    CHECK(tiny.train.size() + tiny.held_out.size() == n);
  }
}

TEST_CASE("train_text corpus: bad input is one sentence that names the path") {
  const scratch dir;
  const auto refuses = [](const fs::path& path, const std::string& why) {
    CAPTURE(path.string());
    CHECK_THROWS_WITH_AS(load_corpus(path, 1), doctest::Contains(why.c_str()), usage_error);
    CHECK_THROWS_WITH_AS(load_corpus(path, 1), doctest::Contains(path.c_str()), usage_error);
  };
  refuses(dir.root / "missing", "No such file");
  refuses(dir.put("empty", ""), "is empty");
  refuses(dir.put("banner", "// a\n"), "nothing but comments");
  refuses(dir.put("binary", std::string("a\0b", 3)), "not text");
  refuses("/dev/null", "neither a file nor a folder");
  fs::create_directories(dir.root / "hollow" / "inner");
  refuses(dir.root / "hollow", "holds no text");
  if (fs::exists("/proc/self/mem")) refuses("/proc/self/mem", "cannot read");  // opens, but does not read
}

TEST_CASE("train_text corpus: a text shorter than one batch is refused with both sizes") {
  const train_text::byte_vector bytes(100);
  CHECK_NOTHROW(train_text::require_at_least(bytes, 100));
  CHECK_THROWS_WITH_AS(train_text::require_at_least(bytes, 101, "the held-out text"),
                       "the held-out text has 100 bytes, and one batch takes 101: give a longer text.", usage_error);
}

TEST_CASE("train_text corpus: the law holds on the standard library's headers") {
  const auto c = load_corpus({}, 1);
  MESSAGE(c.source << ": train " << c.train.size() << " bytes of " << c.train_files.size() << " files, held out "
                   << c.held_out.size() << " bytes of " << c.held_out_files.size() << " files");
  CHECK(law_holds(c));
  const double part = static_cast<double>(c.held_out.size()) / static_cast<double>(c.train.size() + c.held_out.size());
  CHECK(part >= 0.05);
  CHECK(part <= 0.08);
  CHECK(c.held_out_files.size() >= 6);
}

}  // namespace
