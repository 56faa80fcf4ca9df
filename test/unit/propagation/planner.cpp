// SPDX-License-Identifier: Apache-2.0
// Redistribution plans, run by definition for all pairs of placement lists: they keep the tensor and send what they
// say.
#include <shardwise/propagation/planner.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::placement;
using sw::redistribution_obstacle;
using sw::redistribution_policy;
using sw::reduction;
using numbers = std::vector<std::int64_t>;

constexpr std::int64_t common = 14400;  // values are multiples, so that every mean and every division here is exact

// What an axis can be. A partial axis is either split in the test's way, or in the way of the step that made it.
struct mark {
  placement at;
  bool made = false;  // by a step
};

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return x ^ (x >> 32);
}
std::int64_t noise(int axis, int c, std::int64_t g) {
  return static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>((axis * 8 + c) * 65536 + g)) % 7) - 3;
}

// What coordinate c of a partial axis of n ranks holds of value v at element g. Law: over all c it reduces to v, in any
// order of axes whose reductions commute; so the blocks depend on the placements alone, not on how they arose. Of norms v
// is not negative.
std::int64_t share(std::int64_t v, const mark& m, redistribution_policy policy, int axis, int n, int c, std::int64_t g) {
  const reduction op = m.at.op;
  if (m.made && op != reduction::sum) return v;
  if (m.made) return policy == redistribution_policy::seed_era ? v / n : c == 0 ? v : 0;
  std::int64_t rest = op == reduction::avg ? n : 1;
  switch (op) {
    case reduction::sum:
    case reduction::avg:
      for (int k = 1; k < n; ++k) rest -= noise(axis, k, g);
      return v * (c == 0 ? rest : noise(axis, c, g));
    case reduction::max: return c == g % n ? v : v - common * (3 + noise(axis, c, g));
    case reduction::min: return c == g % n ? v : v + common * (3 + noise(axis, c, g));
    case reduction::norm: {  // 9 + 16 = 25 and 1 + 4 + 4 = 9
      const bool one = m.at.order() == 1;
      const std::int64_t part = c == g % n ? (n == 2 ? 3 : 1) : n == 2 ? (one ? 2 : 4) : one ? 1 : 2;
      return v / (n == 2 ? 5 : 3) * part;
    }
    default: return c == g % n ? v : 1;
  }
}

// A reduction is begun with the first value, goes on with the others, and ends.
std::int64_t begun(const placement& p, std::int64_t x) {
  std::int64_t power = p.is_norm() ? 1 : x;
  for (int k = 0; k < p.order(); ++k) power *= std::abs(x);
  return power;
}
std::int64_t ended(const placement& p, std::int64_t x, int n) {
  if (p.op == reduction::avg) return x / n;
  if (p.order() != 2) return x;
  const auto root = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(x))));
  return root * root == x ? root : -1;
}
std::int64_t combine(const placement& p, std::int64_t a, std::int64_t b) {
  switch (p.op) {
    case reduction::norm: return a + begun(p, b);
    case reduction::product: return a * b;
    case reduction::max: return std::max(a, b);
    case reduction::min: return std::min(a, b);
    default: return a + b;
  }
}

struct box {
  std::int64_t begin[sw::max_rank]{}, size[sw::max_rank]{};
  int rank = 0;

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= size[d];
    return n;
  }
  box crossed(const box& o) const {
    box r = *this;
    for (int d = 0; d < rank; ++d) {
      const std::int64_t end = std::min(begin[d] + size[d], o.begin[d] + o.size[d]);
      r.begin[d] = std::max(begin[d], o.begin[d]);
      r.size[d] = std::max<std::int64_t>(end - r.begin[d], 0);
    }
    return r;
  }
  // f(position in this box's block, position in the block of `o`) for every element of both.
  template <class F>
  void each(const box& o, F&& f) const {
    const box x = crossed(o);
    if (x.numel() == 0) return;
    std::int64_t at[sw::max_rank]{};
    const std::int64_t run = x.size[rank - 1];
    for (;;) {
      std::int64_t i = 0, j = 0;
      for (int d = 0; d < rank; ++d) {
        i = i * size[d] + x.begin[d] - begin[d] + at[d];
        j = j * o.size[d] + x.begin[d] - o.begin[d] + at[d];
      }
      for (std::int64_t k = 0; k < run; ++k) f(i + k, j + k);
      int d = rank - 2;
      while (d >= 0 && ++at[d] == x.size[d]) at[d--] = 0;
      if (d < 0) return;
    }
  }
};

// All ranks' blocks of one tensor. Equal placements and marks give equal blocks, so a plan is followed from one such
// state to the next, and a step is run once for each state that a plan of any pair meets it in: a million plans of up
// to six steps are a hundred thousand different ones.
class world {
 public:
  world(const sw::spec& shape, std::vector<mark> marks, redistribution_policy policy)
      : shape_(shape), marks_(std::move(marks)), policy_(policy) {
    for (int a = 0; a < shape.axes; ++a) {
      ranks_ *= shape.axis_size[a];
      states_ *= kinds();
    }
    for (const mark& m : marks_) positive_ = positive_ || m.at.is_norm();
    state_.resize(static_cast<std::size_t>(states_));
    moved_.resize(static_cast<std::size_t>(states_ * shape.axes * kinds()));
  }

  int kinds() const { return static_cast<int>(marks_.size()); }
  int states() const { return states_; }
  int steps_run() const { return steps_run_; }
  const mark& mark_of(int state, int axis) const { return marks_[static_cast<std::size_t>(digit(state, axis))]; }
  sw::spec spec_of(int state) const {
    sw::spec s = shape_;
    for (int a = 0; a < s.axes; ++a) s.place[a] = mark_of(state, a).at;
    return s;
  }
  // Only partial axes that the test splits; the others are reached by steps.
  bool initial(int state) const {
    for (int a = 0; a < shape_.axes; ++a)
      if (mark_of(state, a).made) return false;
    return true;
  }
  // Equal placements.
  bool alike(int s, int t) const {
    for (int a = 0; a < shape_.axes; ++a)
      if (mark_of(s, a).at != mark_of(t, a).at) return false;
    return true;
  }
  bool any_partial(int state) const {
    for (int a = 0; a < shape_.axes; ++a)
      if (mark_of(state, a).at.is_partial()) return true;
    return false;
  }
  // The state whose shards are spelled as plans spell them; its boundaries are the same.
  int canonical(int state) {
    sw::spec s = spec_of(state);
    sw::normalise(s);
    int other = state;
    for (int a = 0; a < s.axes; ++a) other = with_digit(other, a, index_of({s.place[a], mark_of(state, a).made}));
    return at(other).blocks == at(state).blocks ? other : -1;
  }
  // The full tensor by definition, at every rank: what its group of partial axes holds, reduced, is its part of v.
  bool holds_the_tensor(int state) {
    const content& s = at(state);
    for (int r = 0; r < ranks_; ++r) {
      const box& b = s.where[static_cast<std::size_t>(r)];
      numbers sum = reduced(s, state, r, 0);
      std::size_t i = 0;
      bool same = true;
      whole_.each(b, [&](std::int64_t g, std::int64_t) { same = same && sum[i++] == value(g); });
      if (!same || i != sum.size()) return false;
    }
    return true;
  }

  // Follows a plan; the state it ends in, or -1 where a step does not do what it says.
  int follow(const sw::redistribution_plan& p, int state) {
    for (const auto& step : p.steps) {
      const int to = index_of({step.to, step.to.is_partial()});
      auto& known = moved_[static_cast<std::size_t>((state * shape_.axes + step.axis) * kinds() + to)];
      const int next = with_digit(state, step.axis, to);
      if (!known.run) known = run(step, state, next);
      if (!known.right || known.busiest != step.bytes || step.padded_bytes < step.bytes) return -1;
      if (mark_of(state, step.axis).at != step.from || !sw::detail::same_tensor(step.after, shape_)) return -1;
      for (int a = 0; a < shape_.axes; ++a)
        if (step.after.place[a] != mark_of(next, a).at) return -1;
      state = next;
    }
    return state;
  }

 private:
  struct content {
    std::vector<box> where;
    std::vector<numbers> blocks;
  };
  struct outcome {
    bool run = false, right = false;
    std::int64_t busiest = 0;
  };

  int power(int axis) const {
    int p = 1;
    for (int a = axis + 1; a < shape_.axes; ++a) p *= kinds();
    return p;
  }
  int digit(int state, int axis) const { return state / power(axis) % kinds(); }
  int with_digit(int state, int axis, int to) const { return state + (to - digit(state, axis)) * power(axis); }
  int index_of(const mark& m) const {
    for (int i = 0; i < kinds(); ++i)
      if (marks_[static_cast<std::size_t>(i)].at == m.at && marks_[static_cast<std::size_t>(i)].made == m.made) return i;
    return -1;
  }
  void coordinate(int r, int* c) const {
    for (int a = shape_.axes - 1; a >= 0; --a) {
      c[a] = r % shape_.axis_size[a];
      r /= shape_.axis_size[a];
    }
  }
  int member(int r, int axis, int k) const {
    int stride = 1;
    for (int a = axis + 1; a < shape_.axes; ++a) stride *= shape_.axis_size[a];
    return r + (k - r / stride % shape_.axis_size[axis]) * stride;
  }
  std::int64_t value(std::int64_t g) const {
    const std::int64_t v = common * (g * 37 % 101 - 40 + (g == 3));
    return positive_ ? std::abs(v) : v;
  }

  content& at(int state) {
    content& s = state_[static_cast<std::size_t>(state)];
    if (!s.where.empty()) return s;
    const sw::spec sp = spec_of(state);
    whole_.rank = sp.rank;
    for (int d = 0; d < sp.rank; ++d) whole_.size[d] = sp.extent[d];
    for (int r = 0; r < ranks_; ++r) {
      int c[sw::max_axes]{};
      coordinate(r, c);
      box b;
      b.rank = sp.rank;
      for (int d = 0; d < sp.rank; ++d) {
        const sw::interval v = sw::local_interval(sp, d, c);
        b.begin[d] = v.begin;
        b.size[d] = v.size;
      }
      numbers block(static_cast<std::size_t>(b.numel()));
      whole_.each(b, [&](std::int64_t g, std::int64_t i) {
        std::int64_t v = value(g);
        for (int a = 0; a < sp.axes; ++a)
          if (sp.place[a].is_partial()) v = share(v, mark_of(state, a), policy_, a, sp.axis_size[a], c[a], g);
        block[static_cast<std::size_t>(i)] = v;
      });
      s.where.push_back(b);
      s.blocks.push_back(std::move(block));
    }
    return s;
  }

  numbers reduced(const content& s, int state, int r, int axis) const {
    while (axis < shape_.axes && !mark_of(state, axis).at.is_partial()) ++axis;
    if (axis == shape_.axes) return s.blocks[static_cast<std::size_t>(r)];
    const int n = shape_.axis_size[axis];
    const placement& by = mark_of(state, axis).at;
    numbers sum;
    for (int k = 0; k < n; ++k) {
      const numbers part = reduced(s, state, member(r, axis, k), axis + 1);
      if (k == 0) sum.resize(part.size());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = k == 0 ? begun(by, part[i]) : combine(by, sum[i], part[i]);
    }
    for (auto& x : sum) x = ended(by, x, n);
    return sum;
  }

  // One step on every rank, from what its group holds; counts what comes from another rank's block.
  outcome run(const sw::redistribution_step& step, int before, int after) {
    ++steps_run_;
    const content &x = at(before), &y = at(after);
    const int n = shape_.axis_size[step.axis];
    numbers sent(static_cast<std::size_t>(ranks_));
    outcome o{true, true, 0};
    for (int r = 0; r < ranks_; ++r) {
      const box& mine = y.where[static_cast<std::size_t>(r)];
      numbers got(static_cast<std::size_t>(mine.numel()));
      const bool reduces = step.from.is_partial() && !step.to.is_partial() && n > 1;
      int c[sw::max_axes]{};
      coordinate(r, c);
      if (step.from.is_shard() || reduces) {
        const std::int64_t chunk = sw::ceil_div(mine.numel(), n);  // of an all-reduce
        for (int k = 0; k < n; ++k) {
          const int p = member(r, step.axis, k);
          std::int64_t& counter = sent[static_cast<std::size_t>(p)];
          const numbers& theirs = x.blocks[static_cast<std::size_t>(p)];
          mine.each(x.where[static_cast<std::size_t>(p)], [&](std::int64_t i, std::int64_t j) {
            std::int64_t& e = got[static_cast<std::size_t>(i)];
            const std::int64_t v = theirs[static_cast<std::size_t>(j)];
            e = !reduces ? v : k == 0 ? begun(step.from, v) : combine(step.from, e, v);
            // an element of an all-reduce is summed where its chunk is, and sent from there
            if (reduces && !step.to.is_shard()) counter += i / chunk == c[step.axis] ? p != r : i / chunk == k;
            else counter += p != r;
          });
        }
        if (reduces)
          for (auto& e : got) e = ended(step.from, e, n);
      } else {
        const bool keeps = step.kind != sw::transition::to_partial || step.divisor > 1 || c[step.axis] == 0;
        const numbers& own = x.blocks[static_cast<std::size_t>(r)];
        mine.each(x.where[static_cast<std::size_t>(r)], [&](std::int64_t i, std::int64_t j) {
          got[static_cast<std::size_t>(i)] = keeps ? own[static_cast<std::size_t>(j)] / step.divisor : 0;
        });
      }
      o.right = o.right && got == y.blocks[static_cast<std::size_t>(r)];
    }
    const sw::spec from = spec_of(before), to = spec_of(after);
    for (int r = 0; r < ranks_; ++r) {
      int c[sw::max_axes]{};
      coordinate(r, c);
      const std::int64_t bytes = 4 * sent[static_cast<std::size_t>(r)];
      o.right = o.right && bytes == sw::bytes_sent(from, to, step.axis, c);
      o.busiest = std::max(o.busiest, bytes);
    }
    o.right = o.right && (sw::communicates(step.kind) || o.busiest == 0);
    // the step is one that redistribute admits
    const sw::outcome typed = sw::rules::redistribute_spec({{step.axis, sw::pack(step.to), 0, 0, 0, 0}}, from);
    o.right = o.right && !typed.error;
    for (int a = 0; a < shape_.axes; ++a) o.right = o.right && typed.out.place[a] == step.after.place[a];
    return o;
  }

  sw::spec shape_;
  std::vector<mark> marks_;
  redistribution_policy policy_;
  int ranks_ = 1, states_ = 1, steps_run_ = 0;
  bool positive_ = false;
  box whole_;
  std::vector<content> state_;
  std::vector<outcome> moved_;
};

std::string text_of(const sw::spec& s) {
  std::string t = "(";
  for (int d = 0; d < s.rank; ++d) t += (d ? "," : "") + std::to_string(s.extent[d]);
  t += ") on";
  for (int a = 0; a < s.axes; ++a) {
    const placement& p = s.place[a];
    t += " " + std::to_string(s.axis_size[a]) + ":";
    t += p.is_replicate() ? "R" : p.is_reduced() ? "U" : p.is_shard() ? "S" : "P";
    if (!p.is_whole()) t += std::to_string(p.is_shard() ? p.dim : static_cast<int>(p.op));
    if (p.is_strided()) t += "after" + std::to_string(p.factor);
    if (p.is_norm()) t += "of" + std::to_string(p.order());
    if (p.block > 1) t += "/" + std::to_string(p.block);
  }
  return t;
}

sw::spec tensor_on(const std::vector<std::int32_t>& sizes, const std::vector<std::int64_t>& extents) {
  sw::spec s = sw::empty_spec(sw::dtype::f32, static_cast<int>(sizes.size()), sizes.data(), sw::device_kind::host);
  for (std::int64_t e : extents) s.extent[s.rank++] = e;
  sw::make_contiguous(s);
  return s;
}

// Up to 20 distinct tuples of extents, each value in turn at each dim, few of them empty: an empty tensor shows little.
std::vector<std::vector<std::int64_t>> seeded_extents(int rank, const std::vector<std::int64_t>& some) {
  std::vector<std::vector<std::int64_t>> all;
  const std::uint64_t values = some.size();
  for (std::uint64_t i = 0; i < 200 && all.size() < 20; ++i) {
    std::vector<std::int64_t> t;
    for (std::uint64_t d = 0; d < static_cast<std::uint64_t>(rank); ++d)
      t.push_back(some[i < values ? (i + d) % values : 1 + mixed(i * 8 + d + 99) % (values - 1)]);
    if (std::find(all.begin(), all.end(), t) == all.end()) all.push_back(t);
  }
  return all;
}

// Reducing over one axis and then another is what it is the other way round.
bool commute(const placement& p, const placement& q) {
  const auto sums = [](const placement& r) { return r.op == reduction::sum || r.op == reduction::avg; };
  return p == q || (sums(p) && sums(q));
}
bool has_value(const sw::spec& s) {
  for (const placement& p : s.place)
    for (const placement& q : s.place)
      if (p.is_partial() && q.is_partial() && !commute(p, q)) return false;
  return true;
}

// The obstacles, said otherwise: on every axis that changes, a partial target must come from a whole that has shares of
// that kind; and where a partial axis changes, no two reductions may disagree.
bool has_plan(const sw::spec& from, const sw::spec& to, redistribution_policy policy) {
  bool moves = false, orderly = true;
  for (int a = 0; a < from.axes; ++a) {
    const placement f = from.place[a], t = to.place[a];
    for (int b = 0; b < from.axes; ++b)
      if (f.is_partial() && to.place[b].is_partial()) orderly = orderly && commute(f, to.place[b]);
    if (policy == redistribution_policy::seed_era && (f.is_strided() || t.is_strided())) return false;
    if (f == t || (from.axis_size[a] == 1 && policy == redistribution_policy::late)) continue;
    moves = moves || f.is_partial() || t.is_partial();
    if (!t.is_partial()) continue;
    if (!f.is_whole() || t.op == reduction::product || t.is_norm()) return false;
    if (policy == redistribution_policy::seed_era && t.op != reduction::sum) return false;
  }
  return !moves || (orderly && has_value(from) && has_value(to));
}

constexpr redistribution_policy late = redistribution_policy::late, seed_era = redistribution_policy::seed_era;

struct tally {
  std::int64_t pairs = 0, plans = 0, steps = 0;
};

// Every pair of lists over `marks`, one tensor.
tally prove(const sw::spec& tensor, const std::vector<mark>& marks, redistribution_policy policy) {
  world w(tensor, marks, policy);
  tally n;
  std::vector<int> lists;
  for (int s = 0; s < w.states(); ++s) {
    if (sw::check_placements(w.spec_of(s))) continue;
    if (w.initial(s)) lists.push_back(s);
  }
  for (int from : lists) {
    const sw::spec x = w.spec_of(from);
    const int first = w.canonical(from);
    if (first < 0) FAIL("another spelling moves boundaries: " << text_of(x));
    for (int to : lists) {
      const sw::spec y = w.spec_of(to);
      const int last = w.canonical(to);
      const sw::redistribution_plan there = sw::plan_redistribution(x, y, policy);
      const bool exists = static_cast<bool>(there);
      if (exists != has_plan(x, y, policy) || exists == (there.cost == sw::cost_model::infinite))
        FAIL("a plan is missing, or should not be there: " << text_of(x) << " -> " << text_of(y));
      ++n.pairs;
      if (!exists) continue;
      ++n.plans;
      const int reached = w.follow(there, first);
      bool right = reached >= 0 && w.alike(reached, last) && (first != last || there.steps.size() == 0);
      // the way back from a list without partial is the plan of another pair; a partial one starts as the plan left it
      if (right && w.any_partial(to) && has_plan(y, x, policy)) {
        const int back = w.follow(sw::plan_redistribution(y, x, policy), reached);
        right = back >= 0 && (w.any_partial(from) ? w.alike(back, first) : back == first);
      }
      if (!right) FAIL("a step does not do what it says: " << text_of(x) << " -> " << text_of(y));
    }
  }
  // blocks that a state names are the tensor; mixed reductions have no value of their own and are only carried along
  for (int s = 0; s < w.states(); ++s) {
    const sw::spec x = w.spec_of(s);
    if (!sw::check_placements(x) && has_value(x) && !w.holds_the_tensor(s))
      FAIL("blocks do not make up the tensor: " << text_of(x));
  }
  n.steps = w.steps_run();
  return n;
}

void prove_all(const std::vector<std::int32_t>& mesh, redistribution_policy policy) {
  tally all;
  for (int rank = 1; rank <= 4; ++rank) {
    std::vector<mark> marks = {{sw::replicate_value()}, {sw::partial_value()}, {sw::partial_value(), true}};
    for (int d = 0; d < rank; ++d) marks.push_back({sw::shard_value(d)});
    std::int64_t lists = 1, finite = 1;  // all pairs but those that take a shard to partial
    for (std::size_t a = 0; a < mesh.size(); ++a) {
      lists *= rank + 2;
      finite *= (rank + 2) * (rank + 2) - (mesh[a] == 1 && policy == redistribution_policy::late ? 0 : rank);
    }
    for (const auto& extents : seeded_extents(rank, {0, 1, 3, 5, 8})) {
      const tally n = prove(tensor_on(mesh, extents), marks, policy);
      CHECK(n.pairs == lists * lists);
      CHECK(n.plans == finite);
      all.plans += n.plans;
      all.steps += n.steps;
    }
  }
  std::string text;
  for (std::int32_t n : mesh) text += (text.empty() ? "" : "x") + std::to_string(n);
  std::printf("%s ranks: %lld plans, made of %lld different steps\n", text.c_str(), static_cast<long long>(all.plans),
              static_cast<long long>(all.steps));
}

// With the shards of every split order.
void prove_strided(const std::vector<std::int32_t>& mesh, int rank) {
  std::vector<mark> marks = {{sw::replicate_value()}, {sw::partial_value()}, {sw::partial_value(), true}};
  for (int d = 0; d < rank; ++d) marks.push_back({sw::shard_value(d)});
  // every product of later axes' sizes; check_placements keeps those that fit
  for (std::uint32_t later = 1; later < 1U << mesh.size(); ++later) {
    int factor = 1;
    for (std::size_t a = 1; a < mesh.size(); ++a) factor *= (later >> a) & 1U ? mesh[a] : 1;
    for (int d = 0; d < rank; ++d) {
      const mark m{sw::strided_shard_value(d, factor)};
      const bool known = std::any_of(marks.begin(), marks.end(), [&](const mark& x) { return x.at == m.at; });
      if (!known) marks.push_back(m);
    }
  }
  // Every order in which axes split a dim has one spelling: the first axis may be R, P or begin one of `rank` orders, and
  // each one that joins the orders adds a place for the next.
  std::int64_t lists = 0;
  for (std::uint32_t sharded = 0; sharded < 1U << mesh.size(); ++sharded) {
    std::int64_t ways = 1;
    int places = rank;
    for (std::size_t a = 0; a < mesh.size(); ++a) ways *= (sharded >> a) & 1U ? places++ : 2;
    lists += ways;
  }
  const bool one_spelling = std::find(mesh.begin(), mesh.end(), 1) == mesh.end();
  std::int64_t plans = 0;
  for (const auto& extents : seeded_extents(rank, {0, 1, 3, 5, 8, 13})) {
    const tally n = prove(tensor_on(mesh, extents), marks, late);
    if (one_spelling) CHECK(n.pairs == lists * lists);
    plans += n.plans;
  }
  CHECK(plans > 200);
  // none under the other policy
  const sw::spec tensor = tensor_on(mesh, seeded_extents(rank, {8, 5, 13}).front());
  CHECK(prove(tensor, marks, seed_era).plans < prove(tensor, marks, late).plans);
}

// With reduced, all reductions and blocks; or with norms, for which the tensor is not negative.
void prove_kinds(const std::vector<std::int32_t>& mesh, int rank, redistribution_policy policy, bool norms = false) {
  std::vector<mark> marks = {{sw::replicate_value()}, {sw::reduced_value()}};
  for (reduction op : {reduction::sum, reduction::avg, reduction::product, reduction::max, reduction::min})
    for (bool made : {false, true})
      if (!made || op != reduction::product) marks.push_back({sw::partial_value(op), made});
  if (norms) marks = {{sw::replicate_value()}, {sw::reduced_value()}, {sw::partial_value()}, {sw::partial_value(), true}};
  for (int order = 1; norms && order <= 2; ++order) marks.push_back({sw::partial_norm_value(order)});
  for (int d = 0; d < rank; ++d) marks.push_back({sw::shard_value(d)});
  marks.push_back({sw::shard_value(0, 2)});
  std::int64_t plans = 0;
  for (const auto& extents : seeded_extents(rank, {0, 1, 2, 3, 6, 10}))
    plans += prove(tensor_on(mesh, extents), marks, policy).plans;
  CHECK(plans > 150);
}

}  // namespace

TEST_CASE("redistribution plans keep the tensor: one axis") {
  for (auto policy : {late, seed_era})
    for (int n : {2, 3}) prove_all({n}, policy);
}

TEST_CASE("redistribution plans keep the tensor: two axes") {
  for (auto policy : {late, seed_era}) {
    prove_all({2, 2}, policy);
    prove_all({2, 3}, policy);
    prove_all({1, 3}, policy);
  }
}

TEST_CASE("redistribution plans keep the tensor: three axes") { prove_all({2, 2, 2}, late); }
TEST_CASE("redistribution plans keep the tensor: three axes, seed era") { prove_all({2, 2, 2}, seed_era); }

TEST_CASE("redistribution plans keep the tensor: all reductions, reduced, blocks") {
  for (auto policy : {late, seed_era}) {
    for (int rank = 1; rank <= 2; ++rank) {
      prove_kinds({3}, rank, policy);
      prove_kinds({2, 2}, rank, policy);
      prove_kinds({2, 3}, rank, policy);
    }
  }
}

TEST_CASE("redistribution plans keep the tensor: strided shards") {
  for (int rank = 1; rank <= 4; ++rank) {
    prove_strided({2, 2}, rank);
    prove_strided({2, 3}, rank);
  }
  prove_strided({1, 3}, 2);
  prove_strided({3, 1}, 2);
  prove_strided({2, 1, 3}, 2);
}

TEST_CASE("redistribution plans keep the tensor: strided shards on three axes") {
  for (int rank = 1; rank <= 3; ++rank) prove_strided({2, 2, 2}, rank);
  prove_strided({4, 3, 2}, 1);
}

TEST_CASE("redistribution plans keep the tensor: norms") {
  for (auto policy : {late, seed_era})
    for (int rank = 1; rank <= 2; ++rank) {
      prove_kinds({3}, rank, policy, true);
      prove_kinds({2, 2}, rank, policy, true);
      prove_kinds({2, 3}, rank, policy, true);
    }
}
