// SPDX-License-Identifier: Apache-2.0
// Checkpoints and what goes wrong: disks that are full, programs that end in the middle, files that are torn, other programs. One
// exception on all ranks, nothing half-loaded, and what was saved before is still there.
#include <doctest/doctest.h>

#include <files.hpp>
#include <placed_steps.hpp>
#include <thrown.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace test;
using namespace test::placed;

// What each rank of Step sees of f(executor), all of which must be the same.
template <class Step, class F>
std::string said_by_all(F&& f) {
  std::vector<std::string> said(static_cast<std::size_t>(Step::mesh_type::size));
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank);
    said[static_cast<std::size_t>(rank.index())] = thrown([&] { f(ex, rank); });
  });
  for (const std::string& s : said) CHECK(s == said[0]);
  return said[0];
}
template <class Step>
void save_after(const std::string& folder, int steps, const sw::save_options& options = {}) {
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank);
    ex.initialise(3);
    train(ex, 1, steps);
    sw::save(ex, folder, {.step = steps}, options);
  });
}
// The step of the newest checkpoint, which must be whole: it is what training from the beginning gives.
template <class Step>
std::int64_t newest(const std::string& folder) {
  std::int64_t step = -1;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank), again(rank);
    const auto c = sw::load(ex, folder);
    again.initialise(3);
    train(again, 1, static_cast<int>(c.step));
    CHECK(everything(ex) == everything(again));
    if (rank.index() == 0) step = c.step;
  });
  return step;
}
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& e : std::filesystem::directory_iterator(folder)) names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}
// Of the calls that write, which one fails or ends the process.
std::atomic<int> calls{0};
int fatal = 0;
bool kills = false;
bool goes_wrong() {
  if (++calls != fatal) return false;
  if (kills) ::_exit(77);
  errno = ENOSPC;
  return true;
}
sw::file_calls watched_calls() {
  sw::file_calls c;
  c.write = [](int file, const void* bytes, std::size_t n) -> ::ssize_t {
    if (goes_wrong()) return -1;
    return ::write(file, bytes, n);
  };
  c.sync = [](int file) { return goes_wrong() ? -1 : ::fsync(file); };
  c.rename = [](const char* from, const char* to) { return goes_wrong() ? -1 : std::rename(from, to); };
  return c;
}
template <class Step>
std::string save_watched(const std::string& folder, int steps) {
  calls = 0;
  return said_by_all<Step>([&](auto& ex, auto&) {
    ex.initialise(3);
    train(ex, 1, steps);
    sw::save(ex, folder, {.step = steps}, {.keep_last = 1, .calls = watched_calls()});
  });
}

}  // namespace

TEST_CASE("checkpoints: a disk that is full at any call is one exception on all ranks, and the one before is whole") {
  const folder scratch;
  save_after<both4>(scratch.path(), 1);
  kills = false;
  fatal = 0;
  REQUIRE(save_watched<both4>(scratch.path(), 2) == "nothing was thrown");
  const int all = calls;
  CHECK(all > 30);
  std::filesystem::remove_all(scratch.path());
  save_after<both4>(scratch.path(), 1);
  for (int k = 1; k <= all; ++k) {
    fatal = k;
    const std::string said = save_watched<both4>(scratch.path(), 2);
    CHECK(said.find("shardwise: save: file '") == 0);
    CHECK(said.find("No space left on device; free some space") != std::string::npos);
    CHECK(said.find("(rank ") != std::string::npos);
    const std::int64_t step = newest<both4>(scratch.path());
    const bool recorded = step == 2;  // the record had been renamed when its folder could not be synchronised
    CHECK((step == 1 || recorded));
    if (recorded) {
      CHECK(k > all - 8);
      std::filesystem::remove_all(scratch.path());
      save_after<both4>(scratch.path(), 1);
    }
  }
  fatal = 0;
  CHECK(save_watched<both4>(scratch.path(), 2) == "nothing was thrown");
  CHECK(newest<both4>(scratch.path()) == 2);
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"checkpoints.json", "step-00000002"});
}

TEST_CASE("checkpoints: a program that ends at any call of a save leaves a whole checkpoint") {
  const folder scratch;
  save_after<both4>(scratch.path(), 1);
  kills = true;
  int killed = 0;
  std::int64_t step = 1;
  for (int k = 1;; ++k) {
    fatal = k;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      (void)save_watched<both4>(scratch.path(), 2);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    const std::int64_t now = newest<both4>(scratch.path());
    CHECK(now >= step);
    step = now;
    if (WEXITSTATUS(status) == 0) break;
    REQUIRE(WEXITSTATUS(status) == 77);
    ++killed;
    REQUIRE(killed < 200);
  }
  kills = false;
  CHECK(killed > 30);
  CHECK(step == 2);
  CHECK(names_in(scratch.path()).size() == 2);
}

TEST_CASE("checkpoints: the newest stay") {
  const folder scratch;
  for (int steps = 1; steps <= 4; ++steps) save_after<whole2>(scratch.path(), steps, {.keep_last = 2});
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"checkpoints.json", "step-00000003", "step-00000004"});
  const std::vector<std::string> others{".step-notes.partial", ".step.partial", "step-by-step.txt", "step-notes"};
  for (const std::string& other : others) std::filesystem::create_directory(scratch / other);
  std::filesystem::create_directory(scratch / ".step-00000009.partial");
  std::filesystem::create_directory(scratch / "step-00000009");  // a save that ended before the record named it
  save_after<whole2>(scratch.path(), 4, {.keep_last = 2});
  for (const std::string& other : others)
    CHECK(std::filesystem::remove(scratch / other));  // what is not a save's is left alone
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"checkpoints.json", "step-00000004", "step-00000004.2"});
  CHECK(newest<whole2>(scratch.path()) == 4);
  save_after<whole2>(scratch.path(), 4);  // the same step again has a folder of its own
  CHECK(names_in(scratch.path()).size() == 4);
  CHECK(newest<whole2>(scratch.path()) == 4);
  const std::string said = said_by_all<whole2>([&](auto& ex, auto&) { sw::load(ex, scratch.path(), {.step = 7}); });
  CHECK(said.find("has no checkpoint of step 7; it has those of steps 4, 4, 4 (rank 0 and 1 more)") != std::string::npos);
  said_by_all<whole2>(
      [&](auto& ex, auto&) { CHECK(sw::load(ex, scratch.path(), {.step = 4}).path == scratch / "step-00000004.3"); });
}

TEST_CASE(
    "checkpoints: files that are torn, damaged, missing or another checkpoint's are refused before anything is written") {
  const folder scratch, other;
  save_after<both4>(other.path(), 1);
  const auto refused = [&](const std::string& name, const auto& damage) {
    std::filesystem::remove_all(scratch.path());
    save_after<both4>(scratch.path(), 2);
    const std::string file = name == "checkpoints.json" ? scratch / name : scratch / ("step-00000002/" + name);
    damage(file);
    std::string said;
    sw::launch<mesh<2, 1>>([&](auto& rank) {
      sw::executor<columns2> ex(rank);
      ex.initialise(5);
      train(ex, 1, 1);
      const auto before = everything(ex);
      const std::string mine = thrown([&] { sw::load(ex, scratch.path()); });
      CHECK(mine.find("shardwise: load: ") == 0);
      CHECK(everything(ex) == before);
      train(ex, 2, 2);  // and it goes on
      if (rank.index() == 1) said = mine;
    });
    return said;
  };
  const auto flip = [](std::size_t from_end) {
    return [=](const std::string& file) {
      std::string bytes = read_text(file);
      bytes[bytes.size() - 1 - from_end] = static_cast<char>(bytes[bytes.size() - 1 - from_end] ^ 4);
      write_text(file, bytes);
    };
  };
  const auto cut = [](const std::string& file) { std::filesystem::resize_file(file, std::filesystem::file_size(file) - 8); };
  const auto gone = [](const std::string& file) { std::filesystem::remove(file); };
  const auto has = [](const std::string& said, const std::string& part) {
    CAPTURE(said);
    CHECK(said.find(part) != std::string::npos);
  };
  for (const char* file :
       {"rank-00000.safetensors", "rank-00001.safetensors", "rank-00002.safetensors", "rank-00003.safetensors"}) {
    has(refused(file, flip(3)), std::string(file) + "' is damaged: bytes 0 to ");
    has(refused(file, cut), std::string(file) + "' is torn: ");
    has(refused(file, gone), std::string(file) + "' cannot be opened: No such file or directory");
  }
  has(refused("rank-00002.safetensors",
              [&](const std::string& file) {
                std::filesystem::copy_file(other / "step-00000001/rank-00002.safetensors", file,
                                           std::filesystem::copy_options::overwrite_existing);
              }),
      "is damaged: bytes 0 to ");
  has(refused("rank-00002.safetensors",
              [&](const std::string& file) {
                std::filesystem::copy_file(other / "step-00000001/rank-00001.safetensors", file,
                                           std::filesystem::copy_options::overwrite_existing);
              }),
      "of its checkpoint says");
  has(refused("rank-00001.safetensors",
              [&](const std::string& file) {
                std::string bytes = read_text(file);
                bytes[bytes.find("\"pt\"") + 1] = 'q';
                write_text(file, bytes);
              }),
      "has a header with another checksum than the index of its checkpoint says");
  has(refused("index.json", flip(40)), "index.json' is damaged: its checksum is ");
  has(refused("index.json", gone), "index.json' cannot be opened");
  has(refused("checkpoints.json", gone), "has no checkpoint: it lacks the record checkpoints.json");
  has(refused("checkpoints.json", [](const std::string& file) { write_text(file, "{\"format\":"); }),
      "is no JSON object of ours");
  has(refused("checkpoints.json",
              [](const std::string& file) {
                std::string text = read_text(file);
                text.replace(text.find("\"version\":1"), 11, "\"version\":2");
                write_text(file, text);
              }),
      "is of version 2; this program reads version 1");
  std::filesystem::remove_all(scratch.path());
  save_after<rows8>(scratch.path(), 1);  // whose last rank has nothing to write
  CHECK(sw::safetensors_reader(scratch / "step-00000001/rank-00007.safetensors").entries().empty());
  gone(scratch / "step-00000001/rank-00007.safetensors");
  has(said_by_all<whole2>([&](auto& ex, auto&) { sw::load(ex, scratch.path()); }),
      "rank-00007.safetensors' cannot be opened");
  std::filesystem::remove_all(scratch.path());
  CHECK(said_by_all<whole2>([&](auto& ex, auto&) { sw::load(ex, scratch.path()); }) ==
        "shardwise: load: file '" + scratch.path() +
            "' does not exist: there is no checkpoint to go on from (rank 0 and 1 more)");
}

TEST_CASE("checkpoints: programs that hold other tensors") {
  using momentum = step<2, 1, sw::sgd<true>, sw::pipeline<>>;
  using frozen = adam_step<2, 1, sw::at<"first", sw::frozen>>;
  using single = sw::train_step<models<2, 1>::net_of, task<2>, sw::plan<sw::data_parallel<dp<2>>>, mesh<2, 1>, sw::sgd<>,
                                sw::pipeline<>, double>;
  using part = sw::train_step<models<2, 1>::inner, task<2>, sw::plan<sw::data_parallel<dp<2>>>, mesh<2, 1>, sw::adam<>,
                              sw::pipeline<>, double>;
  const folder scratch, plain;
  save_after<whole2>(scratch.path(), 1);
  const auto said = [&](auto* step, const std::string& from, sw::load_contents what = sw::load_contents::all) {
    using program = std::remove_pointer_t<decltype(step)>;
    return said_by_all<program>([&](auto& ex, auto&) { sw::load(ex, from, {.contents = what}); });
  };
  const std::string remedy =
      "load it into the program that saved it, or parameters and buffers alone: load_contents::parameters";
  CHECK(said(static_cast<momentum*>(nullptr), scratch.path())
            .find("has 'first.bias:second_moment', which the program does not hold, and 3 more such; " + remedy) !=
        std::string::npos);
  CHECK(said(static_cast<frozen*>(nullptr), scratch.path())
            .find("has 'first.bias:first_moment', which the program does not hold") != std::string::npos);
  CHECK(said(static_cast<single*>(nullptr), scratch.path(), sw::load_contents::parameters) == "nothing was thrown");
  CHECK(said(static_cast<part*>(nullptr), scratch.path())
            .find("has no 'weight', which the program holds; its nearest name is 'first.weight'") != std::string::npos);
  sw::launch<mesh<2, 1>>([&](auto& rank) {
    sw::executor<single> ex(rank);
    ex.initialise(1);
    sw::save(ex, plain.path());
  });
  CHECK(said(static_cast<whole2*>(nullptr), plain.path())
            .find("has no 'first.weight:first_moment', which the program holds") != std::string::npos);
}

TEST_CASE("checkpoints: what is no checkpoint yet is refused on all ranks, and a rank that fails leaves none waiting") {
  using keeps = adam_step<2, 1, sw::keep_gradients<>>;
  const folder scratch;
  CHECK(said_by_all<whole2>([&](auto& ex, auto&) {
          sw::save(ex, scratch.path());
        }).find("shardwise: save: parameter 'first.weight' has no value") == 0);
  CHECK(said_by_all<keeps>([&](auto& ex, auto&) {
          ex.initialise(3);
          ex.set_input(0, numbers(56));
          sw::step_env env;
          env.step = 1;
          ex.accumulate(env);
          sw::save(ex, scratch.path());
        }).find("gradients have been added up that no update has seen") != std::string::npos);
  CHECK(said_by_all<whole2>([&](auto& ex, auto& rank) {
          ex.initialise(3);
          sw::save(ex, scratch.path(), {.step = rank.index()});
        }).find("shardwise: save: rank 1 gives another position or options than rank 0") == 0);
  CHECK(said_by_all<whole2>([&](auto& ex, auto& rank) {
          ex.initialise(3);
          sw::save(ex, rank.index() == 0 ? scratch.path() : "/elsewhere");
        }).find("another position or options than rank 0") != std::string::npos);
  CHECK(said_by_all<whole2>([&](auto& ex, auto&) {
          ex.initialise(3);
          sw::save(ex, "/dev/null/no");
        }).find("shardwise: save: file '/dev/null/no' cannot be made: Not a directory (rank 0)") == 0);
  CHECK(std::filesystem::is_empty(scratch.path()));
  save_after<whole2>(scratch.path(), 1);
  CHECK_THROWS_WITH((sw::launch<mesh<2, 1>>([&](auto& rank) {
                      sw::executor<whole2> ex(rank);
                      if (rank.index() == 1) throw std::runtime_error("on purpose");
                      sw::load(ex, scratch.path());
                    })),
                    "on purpose");
}
