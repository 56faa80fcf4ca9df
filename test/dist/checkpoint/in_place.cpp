// SPDX-License-Identifier: Apache-2.0
// What a load reads into its place: a program that held nothing holds nothing after a load that failed, and one that held something
// keeps it; long parts are read piece by piece.
#include <doctest/doctest.h>

#include <files.hpp>
#include <placed_steps.hpp>
#include <thrown.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>

#include <string>
#include <vector>

namespace {

using namespace test;
using namespace test::placed;

template <class Step>
void save_after(const std::string& folder, int steps) {
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank);
    ex.initialise(3);
    train(ex, 1, steps);
    sw::save(ex, folder, {.step = steps});
  });
}
void damage(const std::string& file) {
  std::string bytes = read_text(file);
  bytes[bytes.size() - 4] = static_cast<char>(bytes[bytes.size() - 4] ^ 4);
  write_text(file, bytes);
}
bool all_zeros(const std::vector<double>& v) {
  for (const double x : v)
    if (x != 0) return false;
  return !v.empty();
}

// The last rank's file is damaged: ranks have filled most of their leaves when one sees it.
template <class To>
void check_failure(const std::string& good, const std::string& bad) {
  sw::launch<typename To::mesh_type>([&](auto& rank) {
    sw::executor<To> ex(rank), whole(rank);
    CHECK(mentions(thrown([&] { sw::load(ex, bad); }), "is damaged: bytes 0 to "));
    CHECK(mentions(thrown([&] { ex.full_parameter("first.weight"); }), "has no value"));
    CHECK(mentions(thrown([&] { train(ex, 1, 1); }), "has no value"));
    for (const char* name : parameters)
      for (const sw::moment m : {sw::moment::first, sw::moment::second}) CHECK(all_zeros(ex.full_state(name, m)));
    // it may be initialised, as if nothing had been
    ex.initialise(5);
    whole.initialise(5);
    train(ex, 1, 2);
    train(whole, 1, 2);
    CHECK(everything(ex) == everything(whole));
    CHECK(sw::load(ex, good).step == 2);
    sw::executor<To> fresh(rank);
    CHECK(sw::load(fresh, good).step == 2);
    CHECK(everything(fresh) == everything(ex));
  });
}

}  // namespace

TEST_CASE("checkpoints: a load that fails leaves a program that held nothing as it was") {
  const folder good, bad;
  save_after<both4>(good.path(), 2);
  save_after<both4>(bad.path(), 2);
  damage(bad / "step-00000002/rank-00003.safetensors");
  check_failure<both4>(good.path(), bad.path());
  check_failure<whole2>(good.path(), bad.path());
  check_failure<strided8>(good.path(), bad.path());
}

TEST_CASE("checkpoints: a load that fails leaves what was given, parameters and states, and the rest empty") {
  const folder good, bad;
  save_after<both4>(good.path(), 2);
  save_after<both4>(bad.path(), 2);
  damage(bad / "step-00000002/rank-00003.safetensors");
  sw::launch<whole2::mesh_type>([&](auto& rank) {
    sw::executor<whole2> ex(rank), want(rank);
    const std::vector<double> weight = numbers(35);
    ex.set_parameter("second.weight", weight);
    ex.set_state("first.weight", sw::moment::second, weight);
    CHECK(mentions(thrown([&] { sw::load(ex, bad.path()); }), "is damaged"));
    CHECK(ex.full_parameter("second.weight") == weight);
    CHECK(ex.full_state("first.weight", sw::moment::second) == weight);
    CHECK(all_zeros(ex.full_state("first.weight", sw::moment::first)));
    CHECK(mentions(thrown([&] { ex.full_parameter("first.weight"); }), "has no value"));
    sw::load(ex, good.path());
    sw::load(want, good.path());
    CHECK(everything(ex) == everything(want));
  });
}

TEST_CASE("checkpoints: parts that are longer than what is read at once are read in pieces") {
  const folder scratch;
  save_after<both4>(scratch.path(), 2);
  const std::string path = scratch / "step-00000002";
  const auto index = [&] { return sw::storage::index_from(path + "/index.json", read_text(path + "/index.json")); };
  for (const std::uint64_t most : {1U, 8U, 24U, 100U, 1000U}) {
    sw::storage::block_reader whole(path, index()), pieces(path, index(), most);
    for (std::size_t t = 0; t < whole.index().tensors.size(); ++t) {
      const auto& shape = whole.index().tensors[t].shape;
      for (const std::int64_t skipped : {0, 1, 2}) {
        std::vector<std::int64_t> begin, size;
        std::int64_t elements = 1;
        for (const std::int64_t e : shape) {
          begin.push_back(skipped < e ? skipped : 0);
          size.push_back(e - begin.back());
          elements *= size.back();
        }
        const sw::runtime::layout l = sw::storage::dense_layout(begin, size);
        std::vector<double> a(static_cast<std::size_t>(elements), 7), b(static_cast<std::size_t>(elements), 8);
        whole.read(t, l, a.data());
        pieces.read(t, l, b.data());
        CHECK(a == b);
      }
    }
    CHECK(pieces.bytes_read() >= whole.bytes_read());
    if (most == 1) CHECK(pieces.bytes_read() > whole.bytes_read());
  }
}
