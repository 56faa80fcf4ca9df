// SPDX-License-Identifier: Apache-2.0
// eager_flight: an eager tensor on its way, without its type: its steps are calls on the rank's stream.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <vector>

#include <shardwise/runtime/eager/eager.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::runtime {

// Results and scratch are the rank's pool's. The blocks that calls under way use are kept until they are done. Law: the
// value is that of what was redistributed when it was: whoever writes that waits for the call that reads it.
template <class Rank>
struct eager_flight {
  eager_value<Rank> value{};
  std::vector<block> kept{};
  unsigned ticket = 0;
  bool issued = false;  // otherwise the value is there
  op_code op = op_code::redistribute;
  int exceptions = 0;  // under way when it began

  eager_flight() = default;
  explicit eager_flight(const eager_value<Rank>& v) : value(v), exceptions(std::uncaught_exceptions()) { v.live(); }
};

template <class Rank>
void land(eager_flight<Rank>& f) {
  if constexpr (has_stream<Rank>)
    if (f.issued) f.value.live().rank->stream().wait(f.ticket);
  f.issued = false;
  for (const block& b : f.kept) b.was_read(f.ticket);
  f.kept.clear();
}

// Nobody may write into its memory any more. An eager run that has ended has waited.
template <class Rank>
void settle(const eager_flight<Rank>& f) noexcept {
  if constexpr (has_stream<Rank>)
    if (f.issued && f.value.core->rank) try {
        f.value.core->rank->stream().wait(f.ticket);
      } catch (...) {  // another rank failed: this one will hear of it where it can throw
      }
  for (const block& b : f.kept) b.was_read(f.ticket);
}

// The next step of a flight. Views and what comes before the first collective are done at once.
template <class Rank>
eager_flight<Rank> next_step(const eager_operation<Rank>& x, double f, const eager_flight<Rank>& from) {
  eager_core<Rank>& core = from.value.live();
  const int* const coordinate = core.rank->coordinate().data();
  call c;
  if (x.op == op_code::redistribute)
    lower_redistribute(c, static_cast<int>(attributes_of<redistribute_attributes>(x.a).axis), *x.in, *x.out, coordinate);
  if constexpr (has_stream<Rank>)
    if (!x.view && (from.issued || communicates(c.kind))) {
      if (core.checks == eager_checks::agree && communicates(c.kind))
        core.rank->agree(x.signature, "the collective to run next");
      eager_flight<Rank> to(from);
      eager_value<Rank> source = from.value;
      if (source.storage.is_given()) source.storage = source.storage.copy();  // nobody can tell when he writes
      to.value = eager_value<Rank>(core, *x.out);
      to.op = x.op;
      c.a = x.a;
      if (rules::is_random(x.op)) core.draw_at(c, -1, *x.out);
      c.f = f;
      c.inputs = 1;
      c.l[0] = *source.layout;
      c.p[0] = source.data();
      c.l[result] = *to.value.layout;
      c.p[result] = to.value.data();
      if (x.workspace > 0) {
        to.kept.push_back(core.take(x.workspace));
        c.workspace = to.kept.back().data();
      }
      to.kept.push_back(source.storage.bytes());
      to.ticket = core.rank->stream().issue(x.kernel, c, core.env);
      to.kept.back().read_until(to.ticket);
      to.issued = true;
      return to;
    }
  const eager_value<Rank>* const operand = &from.value;
  eager_flight<Rank> to(from);
  to.value = apply_eagerly<Rank>(x, f, &operand, 1);
  return to;
}

template <class Rank>
eager_flight<Rank> depart_eagerly(const eager_operation<Rank>& x, double f, const eager_flight<Rank>& from) {
  try {
    return next_step(x, f, from);
  } catch (...) {
    settle(from);  // nobody else will
    throw;
  }
}

// A pending tensor is dropped.
template <class Rank>
void drop(const eager_flight<Rank>& f) noexcept {
  if (!f.value.storage) return;
  settle(f);
  if (SHARDWISE_CHECKED && std::uncaught_exceptions() <= f.exceptions) {
    std::fprintf(stderr,
                 "shardwise: redistribute_async: a pending tensor (%s, rank %d) is never waited for; take the tensor with "
                 "std::move(p).wait(), or redistribute without async.\n",
                 name_of(f.op), f.value.core->rank ? f.value.core->rank->index() : -1);
    std::abort();
  }
}

// Tensors on their way to a program's inputs: which of its calls needs each first, and where it goes.
template <class Rank>
class arrivals {
 public:
  arrivals() = default;
  arrivals(const arrivals&) = delete;
  arrivals& operator=(const arrivals&) = delete;
  ~arrivals() {
    for (const item& a : items_) settle(a.flight);
  }

  bool any() const { return !items_.empty(); }
  void add(std::size_t before, void* to, const layout& at, std::int64_t item_bytes, eager_flight<Rank>&& f) {
    items_.push_back({before, to, at, item_bytes, std::move(f)});
  }
  // Those that are for `to` come too late: something else has been set there.
  void forget(const void* to) {
    for (std::size_t i = items_.size(); i-- > 0;)
      if (items_[i].to == to) {
        settle(items_[i].flight);
        items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(i));
      }
  }
  // Whether call number `call` or an earlier one needs any.
  bool due(std::size_t call) const {
    for (const item& a : items_)
      if (a.before <= call) return true;
    return false;
  }
  // All that call number `call` and earlier ones need.
  void land_for(std::size_t call) {
    for (std::size_t i = items_.size(); i-- > 0;)
      if (items_[i].before <= call) {
        land(items_[i].flight);
        copy(items_[i]);
        items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(i));
      }
  }

 private:
  struct item {
    std::size_t before;
    void* to;
    layout at;
    std::int64_t bytes;  // of an element
    eager_flight<Rank> flight;
  };
  // The input is stored densely, the value in any way.
  static void copy(const item& a) {
    const layout& from = *a.flight.value.layout;
    std::int64_t at[max_rank]{};
    const std::int64_t n = a.at.numel();
    const int last = from.rank - 1;
    const std::int64_t run = last >= 0 && from.str[last] == 1 ? from.ext[last] : 1;
    for (std::int64_t i = 0; i < n; i += run) {
      std::int64_t offset = 0;
      for (int d = 0; d < from.rank; ++d) offset += at[d] * from.str[d];
      std::memcpy(static_cast<std::byte*>(a.to) + i * a.bytes, a.flight.value.data() + offset * a.bytes,
                  static_cast<std::size_t>(run * a.bytes));
      if (last < 0) break;
      at[last] += run;
      for (int d = last; d > 0 && at[d] == from.ext[d]; --d) {
        at[d] = 0;
        ++at[d - 1];
      }
    }
  }

  std::vector<item> items_;
};

}  // namespace shardwise::inline v0_1::runtime
