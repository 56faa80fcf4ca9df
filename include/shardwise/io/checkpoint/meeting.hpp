// SPDX-License-Identifier: Apache-2.0
// meeting: ranks do something each, and go on together: what one says all hear, and where one fails all throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <shardwise/runtime/failures.hpp>
#include <shardwise/runtime/rank.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// What save and load throw on every rank, whichever of them met it.
struct SHARDWISE_VISIBLE checkpoint_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace storage {

// What every rank says, in their order. Collective. Between processes texts travel as bytes of an all-reduce.
template <class Rank>
std::vector<std::string> texts_of_all(Rank& rank, const std::string& mine) {
  static_assert(shardwise::detail::rank_has<runtime::has_exchange<Rank>, Rank, rank_member::exchange>);
  std::vector<std::string> all(static_cast<std::size_t>(Rank::size()));
  if constexpr (requires(std::vector<std::uint8_t>& v) { rank.combine_disjoint(v); })
    if (!rank.shares_memory()) {
      std::vector<std::uint64_t> sizes(all.size(), 0);
      sizes[static_cast<std::size_t>(rank.index())] = mine.size();
      rank.combine_disjoint(sizes);
      std::size_t total = 0, before = 0;
      for (std::size_t r = 0; r < all.size(); ++r) {
        if (static_cast<int>(r) == rank.index()) before = total;
        total += static_cast<std::size_t>(sizes[r]);
      }
      std::vector<std::uint8_t> bytes(total, 0);
      for (std::size_t i = 0; i < mine.size(); ++i) bytes[before + i] = static_cast<std::uint8_t>(mine[i]);
      rank.combine_disjoint(bytes);
      std::size_t at = 0;
      for (std::size_t r = 0; r < all.size(); at += static_cast<std::size_t>(sizes[r++]))
        all[r].assign(reinterpret_cast<const char*>(bytes.data()) + at, static_cast<std::size_t>(sizes[r]));
      return all;
    }
  if constexpr (runtime::has_exchange<Rank>)
    rank.exchange(&mine, [&](const auto& peer) {
      for (int r = 0; r < Rank::size(); ++r) all[static_cast<std::size_t>(r)] = *static_cast<const std::string*>(peer(r));
    });
  return all;
}

// f() -> a text, on every rank; returns the texts of all, or throws checkpoint_error on all if it threw on one. f must not
// communicate. Collective.
template <class Rank, class F>
std::vector<std::string> together(Rank& rank, const char* call_name, const F& f) {
  std::string said;
  try {
    said = "." + f();
  } catch (const rank_failed&) {
    throw;
  } catch (const rank_returned&) {
    throw;
  } catch (const std::exception& e) {
    said = std::string("!") + e.what();
  }
  std::vector<std::string> all = texts_of_all(rank, said);
  std::string error;
  int failed = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r][0] == '!' && failed++ == 0) {
      const std::string library = "shardwise: ", call = std::string(call_name) + ": ";
      std::string_view what = std::string_view(all[r]).substr(1);
      for (const std::string& said_already : {library, call})
        if (what.substr(0, said_already.size()) == said_already) what.remove_prefix(said_already.size());
      error = library + call + std::string(what) + " (rank " + std::to_string(r);
    }
    all[r].erase(0, 1);
  }
  if (failed > 1) error += " and " + std::to_string(failed - 1) + " more";
  if (failed > 0) throw checkpoint_error(error + ")");
  return all;
}

// f() on rank 0 alone; all have its text.
template <class Rank, class F>
std::string on_first(Rank& rank, const char* call_name, const F& f) {
  return together(rank, call_name, [&] { return rank.index() == 0 ? f() : std::string(); })[0];
}

// Throws on all ranks where one says another text than rank 0.
template <class Rank>
void agree_on(Rank& rank, const char* call_name, const std::string& text, const char* what) {
  const std::vector<std::string> all = texts_of_all(rank, text);
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      throw checkpoint_error("shardwise: " + std::string(call_name) + ": rank " + std::to_string(r) + " gives another " +
                             what + " than rank 0 (" + all[r] + " and " + all[0] +
                             "); all ranks must make the same call with the same arguments");
}

}  // namespace storage

// Whether any rank says so: whether a signal has come to one, a clock has run out. Collective.
template <class Rank>
bool any_rank(Rank& rank, bool mine) {
  bool any = false;
  for (const std::string& said : storage::texts_of_all(rank, mine ? "1" : "0")) any = any || said == "1";
  return any;
}

}  // namespace shardwise::inline v0_1
