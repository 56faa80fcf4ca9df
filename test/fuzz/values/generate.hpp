// SPDX-License-Identifier: Apache-2.0
// Draws programs: every operation that a program may hold on tensors of every placement, writes in place, views of views,
// redistributions of all kinds, waits; then gradients or a training step, passes, and moves between iterations.
#pragma once

#include <library.hpp>

namespace fuzz {

struct dice {
  std::uint64_t state;

  explicit dice(std::uint64_t seed) : state(seed * 0x9E3779B97F4A7C15ULL + 0x1234567) { (*this)(2); }
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  int operator()(int n) { return n < 2 ? 0 : static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return (*this)(n) == 0; }
};

// What a run leaves out, and what it counts.
struct choice {
  bool partial_inputs = true;
  bool special = true;
  bool writes = true;
  bool gradients = true;
  bool moves = true;
  bool passes = true;
  bool integer_numbers = true;  // comparisons of integers with numbers that are none
  bool missing_adjoints = true;
  bool fused_collectives = true;
  int statements = 0;  // at most; 0: as many as it likes
};

struct tally {
  long long tried[static_cast<int>(op_code::count)]{}, admitted[static_cast<int>(op_code::count)]{};
};

class generator {
 public:
  generator(std::uint64_t seed, const choice& c, tally& t, int pass_count)
      : roll(seed), choice_(c), tally_(t), pass_count_(pass_count) {
    p.seed = seed;
  }

  program draw() {
    draw_mesh();
    const int k = roll(10);
    p.what = !choice_.gradients || k < 5 ? kind::forward : k < 8 ? kind::gradient : kind::training;
    p.special = choice_.special && p.what == kind::forward && roll.one_in(6);
    real_ = roll.one_in(2) ? sw::dtype::f32 : sw::dtype::f64;
    for (std::int64_t& e : extents_) {
      static constexpr std::int64_t some[] = {1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4, 4, 6};
      e = some[roll(13)];
    }
    if (roll.one_in(40)) extents_[0] = 0;
    const int most = choice_.statements > 0 ? choice_.statements : 4 + roll(p.what == kind::forward ? 22 : 16);
    const int leaves = 1 + roll(3);
    for (int i = 0; i < leaves; ++i) leaf(some_rank());
    for (int attempt = 0; attempt < 12 * most && a_.size() < most; ++attempt) {
      const op_code op = pick();
      ++tally_.tried[static_cast<int>(op)];
      const int before = a_.size();
      row(op);
      if (a_.size() > before) count(before);
    }
    finish();
    return p;
  }

  program p;

 private:
  dice roll;
  choice choice_;
  tally& tally_;
  int pass_count_;
  assembly a_;
  sw::dtype real_ = sw::dtype::f32;
  std::int64_t extents_[3]{};
  int inputs_ = 0, params_ = 0;

  void count(int from) {
    for (int i = from; i < a_.size(); ++i) ++tally_.admitted[static_cast<int>(p.body[static_cast<std::size_t>(i)].op)];
  }
  int chance(std::initializer_list<int> weights) {
    int sum = 0;
    for (const int w : weights) sum += w;
    int k = roll(sum), i = 0;
    for (const int w : weights) {
      if (k < w) return i;
      k -= w;
      ++i;
    }
    return 0;
  }

  void draw_mesh() {
    p.axes = 1 + chance({5, 4, 2});
    for (;;) {
      for (int a = 0; a < p.axes; ++a) p.sizes[a] = 1 + chance({4, 8, 4, 3});
      if (p.ranks() <= 8) return;
    }
  }

  bool holds(op_code op) const {
    for (const statement& s : p.body)
      if (s.op == op) return true;
    return false;
  }
  int emit(const statement& s) {
    if (!a_.admit(s, p)) return -1;
    p.body.push_back(s);
    return a_.size() - 1;
  }
  int emit(op_code op, std::initializer_list<int> in, sw::op_attr attr = {}, double f = 0) {
    statement s;
    s.op = op;
    s.a = attr;
    s.f = f;
    for (const int i : in) {
      if (i < 0) return -1;
      s.in[s.inputs++] = i;
    }
    return emit(s);
  }

  // --- leaves ---------------------------------------------------------------------------------------------------------------

  int some_rank() { return chance({8, 24, 48, 24, 8, 2, 2, 2, 2}); }
  std::int64_t some_extent() { return roll.one_in(8) ? 1 : extents_[roll(3)]; }
  spec some_spec(int rank, sw::dtype t) {
    spec s = sw::empty_spec(t, p.axes, p.sizes, sw::device_kind::host);
    s.rank = static_cast<std::uint8_t>(rank);
    for (int d = 0; d < rank; ++d) s.extent[d] = some_extent();
    while (sw::numel(s) > 120) s.extent[roll(rank)] = 1;
    sw::make_contiguous(s);
    return s;
  }
  placement some_placement(const spec& s, int axis, bool partial) {
    const int k = roll(20);
    if (k < 5) return sw::replicate_value();
    if (k < 9) return sw::reduced_value();
    if (k < 16 && s.rank > 0) {
      const int d = roll(s.rank);
      if (axis + 1 < p.axes && roll.one_in(2)) {
        const int factor = sw::last_factor(s, axis, d);
        if (factor > 1) return sw::strided_shard_value(d, factor);
      }
      const std::int64_t e = s.extent[d];
      if (e > 1 && roll.one_in(4)) {
        std::int64_t block = 1 + roll(static_cast<int>(e));
        if (e % block == 0) return sw::shard_value(d, static_cast<std::int32_t>(block));
      }
      return sw::shard_value(d);
    }
    if (!partial || k < 17) return sw::replicate_value();
    if (k < 19 || !sw::is_floating(s.type)) return sw::partial_value();
    const int op = roll(6);
    return op == 5 ? sw::partial_norm_value(1 + roll(3)) : sw::partial_value(static_cast<sw::reduction>(op));
  }
  void place(spec& s, bool partial) {
    for (int a = p.axes - 1; a >= 0; --a) s.place[a] = some_placement(s, a, partial);
  }
  int leaf_of(const spec& s, std::int64_t bound = 0, bool arriving = true) {
    statement x;
    x.given = s;
    x.bound = bound;
    bool partial = false;
    for (int a = 0; a < s.axes; ++a) partial = partial || s.place[a].is_partial();
    if (p.what == kind::training && sw::is_floating(s.type) && params_ < 3 && !partial && (params_ == 0 || roll.one_in(3))) {
      x.op = op_code::param;
      x.a.v[0] = params_;
      const int id = emit(x);
      params_ += id >= 0 ? 1 : 0;
      return id;
    }
    if (partial && !choice_.partial_inputs) return -1;
    x.op = op_code::input;
    x.a.v[0] = inputs_;
    if (arriving && roll.one_in(12)) {
      x.pending = true;
      const int way = emit(x);
      inputs_ += way >= 0 ? 1 : 0;
      return way < 0 ? -1 : emit(op_code::wait, {way});
    }
    const int id = emit(x);
    inputs_ += id >= 0 ? 1 : 0;
    return id;
  }
  int leaf(int rank) {
    for (int tries = 0; tries < 8; ++tries) {
      spec s = some_spec(rank, real_);
      place(s, choice_.partial_inputs);
      const int id = leaf_of(s);
      if (id >= 0) return id;
    }
    return -1;
  }

  // --- operands ---------------------------------------------------------------------------------------------------------------

  const spec& of(int i) const { return a_.of(i); }
  bool real(int i) const { return sw::is_floating(of(i).type); }
  int recent() {
    int i = 0;
    for (int tries = 0; tries < 6; ++tries) {
      i = roll.one_in(2) ? a_.size() - 1 - roll(a_.size() < 4 ? a_.size() : 4) : roll(a_.size());
      if (!a_.at[static_cast<std::size_t>(i)].pending) break;
    }
    return i;
  }
  int some(bool floating, int least_rank = 0) {
    for (int tries = 0; tries < 12; ++tries) {
      const int i = recent();
      if (real(i) == floating && of(i).rank >= least_rank) return i;
    }
    return -1;
  }
  static bool same_places(const spec& a, const spec& b) {
    for (int x = 0; x < a.axes; ++x)
      if (!(a.place[x] == b.place[x])) return false;
    return true;
  }
  // A value with these extents, type and placements: there already, redistributed, or a new input.
  int like(const spec& want, std::int64_t bound = 0) {
    const int start = roll(a_.size());
    int near = -1;
    if (bound == 0)
      for (int k = 0; k < a_.size(); ++k) {
        const int i = (start + k) % a_.size();
        const spec& s = of(i);
        bool fits = s.rank == want.rank && s.type == want.type;
        for (int d = 0; fits && d < s.rank; ++d) fits = s.extent[d] == want.extent[d];
        if (!fits) continue;
        if (a_.at[static_cast<std::size_t>(i)].pending) continue;
        if (same_places(s, want)) return i;
        near = i;
      }
    if (near >= 0 && !roll.one_in(3)) {
      int i = near;
      for (int tries = 0; tries < 3 && i >= 0 && !same_places(of(i), want); ++tries)
        for (int a = 0; a < p.axes && i >= 0; ++a)
          if (!(of(i).place[a] == want.place[a])) {
            const int next = move(i, a, want.place[a]);
            if (next >= 0) i = next;
          }
      if (i >= 0 && same_places(of(i), want)) return i;
    }
    return leaf_of(sw::contiguous(want), bound);
  }
  int move(int x, int axis, placement to) {
    const spec& s = of(x);
    if (!sw::is_contiguous(s) && sw::transition_of(s.place[axis], to, s.axis_size[axis]) != sw::transition::none)
      x = emit(op_code::contiguous, {x});
    return emit(op_code::redistribute, {x}, {{axis, sw::pack(to), 0, 0, 0, 0}});
  }

  // An operand that broadcasts to x's extents, placed so that the rule of elementwise operations takes it.
  int beside(int x) {
    spec want = of(x);
    sw::make_contiguous(want);
    const int how = roll(8);
    if (how == 0 && want.rank > 0) {  // without its first dim
      for (int d = 0; d + 1 < want.rank; ++d) want.extent[d] = want.extent[d + 1];
      --want.rank;
      want.extent[want.rank] = 0;
      for (int a = 0; a < p.axes; ++a) {
        placement& q = want.place[a];
        if (q.is_shard(0)) q = sw::reduced_value();
        else if (q.is_shard()) --q.dim;
      }
    } else if (how == 1 && want.rank > 0) {
      const int d = roll(want.rank);
      want.extent[d] = 1;
      for (int a = 0; a < p.axes; ++a)
        if (want.place[a].is_shard(d)) want.place[a] = sw::reduced_value();
    } else if (how == 2) {
      return some(real(x));
    }
    if (how != 1 && how != 0 && roll.one_in(3))  // linear in each: of a partial factor the other is reduced
      for (int a = 0; a < p.axes; ++a)
        if (want.place[a].is_partial()) want.place[a] = sw::reduced_value();
    sw::make_contiguous(want);
    sw::drop_misplaced_factors(want);
    return like(want);
  }

  // Integers in the extents and placements of x, below `bound`.
  int indices(const spec& x, std::int64_t bound, bool as_placed = true) {
    if (bound < 1) return -1;
    spec want = x;
    want.type = sw::dtype::i32;
    for (int a = 0; a < p.axes; ++a)
      if (!as_placed || !want.place[a].is_shard()) want.place[a] = sw::replicate_value();
    sw::drop_misplaced_factors(want);
    sw::make_contiguous(want);
    for (int tries = 0; tries < 6; ++tries) {  // one that is there
      const int i = roll(a_.size());
      const spec& s = of(i);
      bool fits = !real(i) && !a_.at[static_cast<std::size_t>(i)].pending && s.rank == want.rank &&
                  a_.at[static_cast<std::size_t>(i)].limit <= bound && same_places(s, want);
      for (int d = 0; fits && d < s.rank; ++d) fits = s.extent[d] == want.extent[d];
      if (fits) return i;
    }
    return leaf_of(want, bound);
  }

  // x without partial placements, as a user would make it.
  int whole(int x, int last_dim = -1) {
    for (int a = 0; a < p.axes && x >= 0; ++a) {
      const placement q = of(x).place[a];
      if (q.is_partial() || (last_dim >= 0 && q.is_shard(last_dim)))
        x = move(x, a, roll.one_in(2) ? sw::reduced_value() : sw::replicate_value());
    }
    return x;
  }
  int row_operand() {
    const int x = some(true, 1);
    return x < 0 || roll.one_in(4) ? x : whole(x, of(x).rank - 1);
  }
  // What belongs to the last dim, beside rows that are placed as x.
  int weight(int x) {
    spec want = sw::scalar_like(of(x));
    want.rank = 1;
    want.extent[0] = of(x).extent[of(x).rank - 1];
    for (int a = 0; a < p.axes; ++a)
      want.place[a] = of(x).place[a].is_shard() || of(x).place[a].is_reduced() ? sw::reduced_value() : sw::replicate_value();
    sw::make_contiguous(want);
    return like(want);
  }
  spec without_last(const spec& x, std::int64_t instead = -1) const {
    spec s = sw::contiguous(x);
    if (instead >= 0) {
      s.extent[s.rank - 1] = instead;
    } else {
      --s.rank;
      s.extent[s.rank] = s.stride[s.rank] = 0;
    }
    for (int a = 0; a < p.axes; ++a)
      if (s.place[a].is_shard() && s.place[a].dim >= s.rank) s.place[a] = sw::replicate_value();
    sw::make_contiguous(s);
    return s;
  }

  // --- operations ---------------------------------------------------------------------------------------------------------------

  // Adjoints are drawn as operations of their own where nothing is differentiated.
  static bool only_forward(op_code op) {
    switch (op) {
      case op_code::relu_dx:
      case op_code::tanh_dx:
      case op_code::gelu_tanh_dx:
      case op_code::gelu_erf_dx:
      case op_code::vector_norm_dx:
      case op_code::softmax_dx:
      case op_code::norm_stats:
      case op_code::norm_dx:
      case op_code::norm_dw:
      case op_code::embedding_dw:
      case op_code::nll_dx:
      case op_code::prod_dx:
      case op_code::take_dx:
      case op_code::scatter_dsrc:
      case op_code::exp_sum:
      case op_code::clip_factor: return true;
      default: return false;
    }
  }
  op_code pick() {
    const int k = roll(100);
    if (k < 16) return op_code::redistribute;
    if (k < 26 && choice_.writes) return op_code::copy_;
    if (k < 30) return op_code::wait;
    if (k < 42) {
      static constexpr op_code views[] = {op_code::permute, op_code::reshape, op_code::slice, op_code::broadcast,
                                          op_code::contiguous};
      return views[roll(5)];
    }
    if (k < 52) {
      static constexpr op_code often[] = {op_code::add,   op_code::mul,    op_code::sub,    op_code::einsum, op_code::sum,
                                          op_code::scale, op_code::custom, op_code::custom, op_code::getitem};
      return often[roll(9)];
    }
    for (;;) {
      const op_code op = static_cast<op_code>(roll(static_cast<int>(op_code::count)));
      if (role_of(op) != role::drawn || op == op_code::param) continue;
      if (p.what != kind::forward && only_forward(op)) continue;
      if (p.what != kind::forward && op == op_code::sumsq && !choice_.missing_adjoints) continue;
      if (op == op_code::copy_ && !choice_.writes) continue;
      return op;
    }
  }

  double some_number() {
    static constexpr double numbers[] = {0.5, -0.5, 2, -1, 1.25, 0, -0.0, 1, 0.1, -3, 1.5, 0.75};
    return numbers[roll(12)];
  }
  static sw::op_attr attr(std::int64_t a = 0, std::int64_t b = 0, std::int64_t c = 0) { return {{a, b, c, 0, 0, 0}}; }
  std::int64_t some_dims(int rank) {
    return roll.one_in(3) ? (std::int64_t{1} << rank) - 1 : rank == 0 ? 0 : 1 + roll((1 << rank) - 1);
  }

  void row(op_code op) {
    switch (op) {
      case op_code::input:
        if (roll.one_in(4)) {
          spec s = some_spec(some_rank(), sw::dtype::i32);
          place(s, choice_.partial_inputs && roll.one_in(3));
          leaf_of(s, 1 + roll(6));
        } else {
          leaf(some_rank());
        }
        return;
      case op_code::fill:
      case op_code::rand:
      case op_code::randn:
      case op_code::arange: {
        statement s;
        s.op = op;
        s.given = some_spec(op == op_code::arange ? 1 : some_rank(),
                            op == op_code::rand || op == op_code::randn || roll.one_in(2) ? real_ : sw::dtype::i32);
        place(s.given, false);
        if (op == op_code::arange) s.a = attr(roll(3), roll(3));
        if (op == op_code::fill) s.f = sw::is_floating(s.given.type) ? some_number() : roll(4);
        emit(s);
        return;
      }
      case op_code::redistribute: {
        int x = recent();
        const int axis = roll(p.axes);
        spec s = of(x);
        placement to = some_placement(s, axis, true);
        if (roll.one_in(8)) to = s.place[axis];
        statement m;
        m.op = op;
        m.a = attr(axis, sw::pack(to));
        m.in[m.inputs++] = x;
        m.pending = roll.one_in(4);
        if (!sw::is_contiguous(s) && sw::transition_of(s.place[axis], to, s.axis_size[axis]) != sw::transition::none)
          x = emit(op_code::contiguous, {x});
        m.in[0] = x;
        const int id = x < 0 ? -1 : emit(m);
        if (id >= 0 && m.pending && roll.one_in(2)) emit(op_code::wait, {id});
        return;
      }
      case op_code::wait:
        for (int tries = 0; tries < 8; ++tries)
          if (const int i = roll(a_.size()); a_.at[static_cast<std::size_t>(i)].pending && emit(op, {i}) >= 0) return;
        return;
      case op_code::copy_: {
        if (holds(op_code::relabel)) return;
        const int x = recent();
        if (p.what == kind::training && p.body[static_cast<std::size_t>(x)].op == op_code::param) return;
        int y = -1;
        const int how = roll(5);
        if (how < 3 && real(x)) {  // of what it was
          static constexpr op_code of_itself[] = {op_code::scale, op_code::relu, op_code::tanh,
                                                  op_code::abs,   op_code::exp,  op_code::cos};
          const op_code f = of_itself[roll(6)];
          if (roll.one_in(3)) {
            const int z = beside(x);
            if (z >= 0) y = emit(roll.one_in(2) ? op_code::add : op_code::mul, {x, z});
          } else {
            y = emit(f, {x}, {}, f == op_code::scale ? some_number() : 0);
          }
        } else {
          spec want = of(x);
          sw::make_contiguous(want);
          y = like(want, real(x) ? 0 : a_.at[static_cast<std::size_t>(x)].limit);
        }
        if (y >= 0) emit(op, {x, y});
        return;
      }
      case op_code::getitem:
        for (int tries = 0; tries < 8; ++tries)
          if (const int i = roll(a_.size()); a_.at[static_cast<std::size_t>(i)].pending && emit(op, {i}, attr(roll(4))) >= 0)
            return;
        return;
      case op_code::einsum: product(); return;
      case op_code::add:
      case op_code::sub:
      case op_code::mul:
      case op_code::custom:
      case op_code::div:
      case op_code::maximum:
      case op_code::minimum:
      case op_code::wins:
      case op_code::keeps:
      case op_code::relu_dx:
      case op_code::tanh_dx:
      case op_code::gelu_tanh_dx:
      case op_code::gelu_erf_dx: {
        int x = some(true);
        if (op == op_code::custom && !roll.one_in(4)) return image();
        if (op == op_code::custom && roll.one_in(2)) {  // several results, some of which are named here
          if (x < 0) return;
          if (!sw::is_contiguous(of(x))) x = emit(op_code::contiguous, {x});
          const int all = x < 0 ? -1 : emit(op, {x});
          for (int k = 0; all >= 0 && k < 4; ++k)
            if (roll.one_in(2)) emit(op_code::getitem, {all}, attr(k));
          return;
        }
        if (x < 0) return;
        const int y = beside(x);
        roll.one_in(4) ? emit(op, {y, x}) : emit(op, {x, y});
        return;
      }
      case op_code::eq:
      case op_code::ne:
      case op_code::lt:
      case op_code::le:
      case op_code::gt:
      case op_code::ge: {
        const int x = some(roll.one_in(2));
        if (x < 0) return;
        if (roll.one_in(2)) {  // with a number, as functions of tensors and numbers make them
          statement s;
          s.op = op_code::fill;
          s.given = sw::scalar_like(of(x));
          for (int a = 0; a < p.axes; ++a)
            s.given.place[a] = of(x).place[a].is_shard() && real(x)     ? sw::reduced_value()
                               : of(x).place[a].is_reduced() && real(x) ? sw::reduced_value()
                                                                        : sw::replicate_value();
          s.f = real(x) ? some_number() : roll(4);  // functions of integers and numbers see to it that it is one
          const int y = emit(s);
          emit(op, {x, y});
          return;
        }
        const int y = beside(x);
        emit(op, {x, y});
        return;
      }
      case op_code::where:
      case op_code::mask_keep: {
        const int x = some(true);
        if (x < 0) return;
        const int m = indices(of(x), 2);
        if (op == op_code::mask_keep) emit(op, {x, m}, attr(roll(2)));
        else emit(op, {m, x, beside(x)});
        return;
      }
      case op_code::scale:
      case op_code::pow:
      case op_code::clamp_min:
      case op_code::clamp_max: emit(op, {some(true)}, {}, some_number()); return;
      case op_code::dropout: emit(op, {some(true)}, {}, roll(4) * 0.25); return;
      case op_code::relu:
      case op_code::tanh:
      case op_code::gelu_tanh:
      case op_code::gelu_erf:
      case op_code::abs:
      case op_code::sign:
      case op_code::exp:
      case op_code::log:
      case op_code::sqrt:
      case op_code::rsqrt:
      case op_code::reciprocal:
      case op_code::sigmoid:
      case op_code::sin:
      case op_code::cos: {
        int x = some(true);
        if (x >= 0 && !roll.one_in(3)) x = whole(x);
        if (x >= 0 && (op == op_code::log || op == op_code::sqrt || op == op_code::rsqrt) && !roll.one_in(3))
          x = emit(op_code::abs, {x});
        emit(op, {x});
        return;
      }
      case op_code::contiguous: {
        const int x = recent();
        const bool last = of(x).rank == 4 && !roll.one_in(3);
        const auto format = last ? sw::memory_format::channels_last : sw::memory_format::contiguous;
        emit(op, {x}, sw::attributes<sw::contiguous_attributes>(static_cast<int>(format)));
        return;
      }
      case op_code::bernoulli: {
        const int x = some(true);
        emit(op, {x < 0 ? -1 : emit(op_code::sigmoid, {whole(x)})});
        return;
      }
      case op_code::opaque: emit(op, {some(true)}); return;
      case op_code::clip_factor: {
        int x = some(true);
        if (x >= 0) x = whole(emit(op_code::sumsq, {x}, attr((1 << of(x).rank) - 1)));
        emit(op, {x});
        return;
      }
      case op_code::sum:
      case op_code::sumsq:
      case op_code::vector_norm:
      case op_code::amax:
      case op_code::amin:
      case op_code::prod: {
        const int x = some(true);
        if (x < 0) return;
        const std::int64_t dims = some_dims(of(x).rank), keep = roll.one_in(2) ? dims : 0;
        if (op == op_code::amax || op == op_code::amin || op == op_code::prod) {
          for (int d = 0; d < of(x).rank; ++d)
            if (((dims >> d) & 1) && of(x).extent[d] == 0 && op != op_code::prod) return;
          emit(op, {x}, attr(dims));
        } else {
          emit(op, {x}, attr(dims, keep, op == op_code::sum ? roll(2) : op == op_code::vector_norm ? 1 + roll(3) : 0));
        }
        return;
      }
      case op_code::vector_norm_dx: {
        const int x = whole(some(true, 1));
        if (x < 0) return;
        const std::int64_t dims = some_dims(of(x).rank);
        const sw::op_attr a = attr(dims, 0, 1 + roll(3));
        int n = emit(op_code::vector_norm, {x}, a);
        for (int m = 0; m < p.axes && n >= 0; ++m)
          if (of(n).place[m].is_partial()) return;
        if (n >= 0) emit(op, {like(of(n)), x, n}, a);
        return;
      }
      case op_code::prod_dx: {
        const int x = whole(some(true, 1));
        if (x < 0) return;
        const sw::op_attr a = attr(some_dims(of(x).rank));
        const int y = emit(op_code::prod, {x}, a);
        if (y >= 0) emit(op, {like(of(y)), x}, a);
        return;
      }
      case op_code::softmax:
      case op_code::log_softmax: {
        const int x = row_operand();
        if (x >= 0 && of(x).extent[of(x).rank - 1] > 0)
          emit(op, {x}, attr(op == op_code::softmax && of(x).rank > 1 ? roll(2) : 0));
        return;
      }
      case op_code::softmax_dx: {
        const int x = row_operand();
        const int y = x < 0 ? -1 : emit(op_code::softmax, {x});
        if (y >= 0) emit(op, {like(of(y)), y});
        return;
      }
      case op_code::norm_stats:
      case op_code::norm_apply:
      case op_code::norm_dx:
      case op_code::norm_dw: norms(op); return;
      case op_code::lse:
      case op_code::nll:
      case op_code::nll_dx:
      case op_code::exp_sum: losses(op); return;
      case op_code::embedding:
      case op_code::embedding_dw: {
        spec table = some_spec(2, real_);
        for (int a = 0; a < p.axes; ++a) {
          const int k = roll(5);
          table.place[a] = k == 0   ? sw::shard_value(0)
                           : k == 1 ? sw::shard_value(1)
                           : k < 4  ? sw::reduced_value()
                                    : sw::replicate_value();
        }
        spec ids = some_spec(1 + roll(2), sw::dtype::i32);
        for (int a = 0; a < p.axes; ++a)
          if (table.place[a].is_reduced() && roll.one_in(2)) ids.place[a] = sw::shard_value(roll(ids.rank));
        const int i = indices(ids, table.extent[0]);
        if (i < 0) return;
        const int t = like(table);
        const int y = t < 0 ? -1 : emit(op_code::embedding, {t, i});
        if (y >= 0 && op == op_code::embedding_dw) {
          spec dy = of(y);
          for (int a = 0; a < p.axes; ++a) dy.place[a] = sw::dual(dy.place[a]);
          emit(op, {like(dy), i}, attr(table.extent[0]));
        }
        return;
      }
      case op_code::permute: {
        const int x = recent();
        const int rank = of(x).rank;
        int dims[sw::max_rank]{};
        for (int d = 0; d < rank; ++d) dims[d] = d;
        for (int d = rank; d > 1; --d) std::swap(dims[d - 1], dims[roll(d)]);
        sw::op_attr a{};
        for (int d = 0; d < rank; ++d) a.v[0] |= std::int64_t{dims[d]} << (4 * d);
        emit(op, {x}, a);
        return;
      }
      case op_code::detach: emit(op, {recent()}); return;
      case op_code::reshape: {
        const int x = recent();
        emit(op, {x}, other_extents(of(x)));
        return;
      }
      case op_code::slice:
      case op_code::slice_scatter: {
        const int x = recent();
        if (of(x).rank == 0) return;
        const int d = roll(of(x).rank);
        const int e = static_cast<int>(of(x).extent[d]);
        const int start = roll.one_in(3) ? 0 : roll(e + 1), length = e == start ? 0 : 1 + roll(e - start);
        if (op == op_code::slice) {
          emit(op, {x}, attr(d, start, length));
          return;
        }
        spec want = sw::contiguous(of(x));
        want.extent[d] = length;
        sw::make_contiguous(want);
        const int y = like(want, real(x) ? 0 : a_.at[static_cast<std::size_t>(x)].limit);
        emit(op, {x, y}, attr(d, start, length));
        return;
      }
      case op_code::pad: {
        const int x = recent();
        if (of(x).rank == 0) return;
        const int d = roll(of(x).rank), before = roll(3);
        emit(op, {x}, attr(d, before, of(x).extent[d] + before + roll(3)));
        return;
      }
      case op_code::broadcast: {
        const int x = recent();
        const spec& s = of(x);
        std::int64_t e[sw::max_rank]{};
        const int more = s.rank < sw::max_rank && (s.rank < 4 || roll.one_in(4)) ? roll(2) : 0;
        for (int d = 0; d < s.rank + more; ++d) {
          const int own = d - more;
          e[d] = own < 0 ? 1 + roll(3) : s.extent[own] == 1 ? 1 + roll(4) : s.extent[own];
        }
        emit(op, {x}, sw::pack_extents(e, s.rank + more));
        return;
      }
      case op_code::cat: {
        const int x = recent();
        if (of(x).rank == 0) return;
        statement s;
        s.op = op;
        const int d = roll(of(x).rank), count = 1 + roll(roll.one_in(4) ? sw::max_inputs : 4);
        s.a = attr(d);
        s.in[s.inputs++] = x;
        for (int k = 1; k < count; ++k) {
          spec want = sw::contiguous(of(x));
          if (roll.one_in(2)) want.extent[d] = 1 + roll(3);
          sw::make_contiguous(want);
          const int y = like(want, real(x) ? 0 : a_.at[static_cast<std::size_t>(x)].limit);
          if (y < 0) return;
          s.in[s.inputs++] = y;
        }
        emit(s);
        return;
      }
      case op_code::gather:
      case op_code::scatter:
      case op_code::scatter_add:
      case op_code::scatter_dsrc:
      case op_code::take:
      case op_code::take_dx: {
        const int x = some(true, 1);
        if (x < 0) return;
        const spec s = of(x);
        const bool last = op == op_code::take || op == op_code::take_dx;
        const int d = last ? s.rank - 1 : roll(s.rank);
        const std::int64_t places = 1 + roll(5);
        spec want = sw::contiguous(s);
        if (op != op_code::scatter_add && op != op_code::take_dx) want.extent[d] = 1 + roll(5);
        sw::make_contiguous(want);
        const int i = indices(want, op == op_code::scatter_add || op == op_code::take_dx ? places : s.extent[d]);
        if (i < 0) return;
        if (op == op_code::take) emit(op, {x, i});
        else if (op == op_code::take_dx) emit(op, {x, i}, attr(places));
        else if (op == op_code::scatter && roll.one_in(2)) emit(op, {x, i}, attr(d, roll(2)), 0);
        else if (op == op_code::scatter) emit(op, {x, i, like(want)}, attr(d));
        else emit(op, {x, i}, attr(d, op == op_code::scatter_add ? places : 0));
        return;
      }
      case op_code::index_select:
      case op_code::index_add: {
        const int x = some(op == op_code::index_add || !roll.one_in(3), 1);
        if (x < 0) return;
        const spec s = of(x);
        const int d = roll(s.rank);
        const std::int64_t places = 1 + roll(5);
        spec want = sw::scalar_like(s);
        want.rank = 1;
        want.extent[0] = op == op_code::index_add ? s.extent[d] : 1 + roll(5);
        for (int a = 0; a < p.axes; ++a)
          if (op == op_code::index_add ? s.place[a].is_shard(d) : s.place[a].is_reduced() && roll.one_in(2))
            want.place[a] = op == op_code::index_add ? sw::split_along(0, s.place[a]) : sw::shard_value(0);
        const int i = indices(want, op == op_code::index_add ? places : s.extent[d]);
        if (i >= 0) emit(op, {x, i}, attr(d, op == op_code::index_add ? places : 0));
        return;
      }
      case op_code::one_hot: {
        const int x = some(false);
        if (x < 0) return;
        const std::int64_t limit = a_.at[static_cast<std::size_t>(x)].limit;
        emit(op, {x}, attr(limit + roll(2), static_cast<std::int64_t>(roll.one_in(3) ? sw::dtype::i32 : real_)));
        return;
      }
      case op_code::constant_pad: {
        const int x = recent();
        sw::op_attr a{};
        const int rank = of(x).rank, first = rank > sw::rules::padded_dims ? roll(rank - sw::rules::padded_dims + 1) : 0;
        for (int k = 0; k < sw::rules::padded_dims && first + k < rank; ++k)
          if (roll.one_in(2)) a.v[k] = roll(3) | std::int64_t{roll(3)} << 32;
        const bool zero = roll.one_in(2);
        a.v[5] = (zero ? 1 : 0) | first << 1;
        emit(op, {x}, a, zero ? 0 : real(x) ? some_number() : roll(3));
        return;
      }
      case op_code::triangle: emit(op, {some(true, 2)}, attr(roll(5) - 2, roll(2))); return;
      case op_code::relabel: {
        // blocks of a tensor that all axes shard are a view of it, of which the interpreter has no notion
        const int x = some(true);
        if (x < 0 || holds(op_code::copy_)) return;
        const int y = whole(x);
        const int dense = y >= 0 && !sw::is_contiguous(of(y)) ? emit(op_code::contiguous, {y}) : y;
        if (dense < 0) return;
        statement s;
        s.op = op;
        s.inputs = 1;
        s.in[0] = dense;
        const int local = emit(s);  // to_local
        if (local < 0 || !roll.one_in(2)) return;
        s.in[0] = local;  // and from it
        s.bound = 1;
        s.f = of(local).rank > 0 ? roll(of(local).rank) : 0;
        emit(s);
        return;
      }
      case op_code::topk: {
        const int x = row_operand();
        if (x < 0 || of(x).extent[of(x).rank - 1] < 1) return;
        emit(op, {x},
             attr(1 + roll(static_cast<int>(of(x).extent[of(x).rank - 1])),
                  roll(2)));  // (2: argmin's, whose NaN comes first)
        return;
      }
      default: return;  // written by passes, optimizers and differentiation
    }
  }

  sw::op_attr other_extents(const spec& x) {
    // neighbouring dims joined or cut, dims of extent 1 put in or left out
    std::vector<std::int64_t> e(x.extent, x.extent + x.rank);
    const int steps = 1 + roll(2), most = roll.one_in(4) ? sw::max_rank : 4;
    for (int k = 0; k < steps; ++k) {
      const int how = roll(4), n = static_cast<int>(e.size());
      if (how == 0 && n > 1) {
        const int d = roll(n - 1);
        e[static_cast<std::size_t>(d)] *= e[static_cast<std::size_t>(d + 1)];
        e.erase(e.begin() + d + 1);
      } else if (how == 1 && n > 0 && n < most) {
        const int d = roll(n);
        const std::int64_t whole = e[static_cast<std::size_t>(d)];
        for (std::int64_t f : {2, 3, 4, 5}) {
          if (whole % f != 0 || whole <= f || roll.one_in(3)) continue;
          e[static_cast<std::size_t>(d)] = f;
          e.insert(e.begin() + d + 1, whole / f);
          break;
        }
      } else if (how == 2 && n < most) {
        e.insert(e.begin() + roll(n + 1), 1);
      } else if (how == 3) {
        for (int d = 0; d < n; ++d)
          if (e[static_cast<std::size_t>(d)] == 1) {
            e.erase(e.begin() + d);
            break;
          }
      }
    }
    return sw::pack_extents(e.data(), static_cast<int>(e.size()));
  }

  // Labels for two operands: each dim of either is contracted, shared or free.
  void product() {
    const int x = some(true, 1);
    if (x < 0) return;
    const spec sx = of(x);
    int next = 1;
    sw::op_attr a{};
    std::vector<int> shared, out;
    std::int64_t extent[16]{};
    for (int d = 0; d < sx.rank; ++d) {
      a.v[0] |= std::int64_t{next} << (4 * d);
      extent[next] = sx.extent[d];
      ++next;
    }
    std::vector<int> right;
    std::vector<bool> summed(16, false);
    for (int l = 1; l < next; ++l) {
      const int how = roll(4);
      if (how < 2) {
        summed[static_cast<std::size_t>(l)] = true;
        right.push_back(l);
      } else if (how == 2) {
        right.push_back(l);
        out.push_back(l);
      } else {
        out.push_back(l);
      }
    }
    const int free = roll(2);
    for (int k = 0; k < free && next < 12; ++k) {
      extent[next] = some_extent();
      right.push_back(next);
      out.push_back(next++);
    }
    if (right.empty() || right.size() > sw::max_rank || out.size() > sw::max_rank) return;
    for (std::size_t k = right.size(); k > 1; --k)
      std::swap(right[k - 1], right[static_cast<std::size_t>(roll(static_cast<int>(k)))]);
    for (std::size_t k = out.size(); k > 1; --k)
      std::swap(out[k - 1], out[static_cast<std::size_t>(roll(static_cast<int>(k)))]);
    spec want = sw::scalar_like(sx);
    want.rank = static_cast<std::uint8_t>(right.size());
    for (std::size_t d = 0; d < right.size(); ++d) {
      a.v[1] |= std::int64_t{right[d]} << (4 * d);
      want.extent[d] = extent[right[d]];
    }
    for (std::size_t d = 0; d < out.size(); ++d) a.v[2] |= std::int64_t{out[d]} << (4 * d);
    for (int m = 0; m < p.axes; ++m) {
      const placement q = sx.place[m];
      if (q.is_shard()) {
        int d = -1;
        for (std::size_t k = 0; k < right.size(); ++k)
          if (right[k] == q.dim + 1) d = static_cast<int>(k);
        want.place[m] = d < 0 ? sw::reduced_value() : sw::split_along(d, q);
      } else if (q.is_partial()) {
        want.place[m] = sw::reduced_value();
      } else if (q.is_reduced() && roll.one_in(2)) {
        for (std::size_t k = 0; k < right.size(); ++k)
          if (right[k] > sx.rank) want.place[m] = sw::shard_value(static_cast<int>(k));
        if (!want.place[m].is_shard()) want.place[m] = sw::reduced_value();
      } else {
        want.place[m] = q;
      }
    }
    sw::make_contiguous(want);
    sw::drop_misplaced_factors(want);
    if (sw::numel(want) > 120) return;
    const int y = like(want);
    if (y < 0) return;
    if (roll.one_in(4)) {
      std::swap(a.v[0], a.v[1]);
      emit(op_code::einsum, {y, x}, a, roll.one_in(4) ? 0.5 : 1);
    } else {
      emit(op_code::einsum, {x, y}, a, roll.one_in(4) ? -0.75 : 1);
    }
  }

  // --- images -------------------------------------------------------------------------------------------------------------------

  int emit_image(const sw::custom_operation& o, std::initializer_list<int> in, const sw::op_attr& a) {
    statement s;
    s.op = op_code::custom;
    s.a = a;
    s.bound = bound_of(o);
    for (int i : in) {
      if (i < 0) return -1;
      if (!sw::autodiff::reads(o.record, of(i))) i = emit(op_code::contiguous, {i});
      if (i < 0) return -1;
      s.in[s.inputs++] = i;
    }
    return emit(s);
  }
  // Some tensor of four dims, in either format.
  int some_image() {
    int x = -1;
    for (int tries = 0; tries < 12 && x < 0; ++tries) {
      const int i = recent();
      if (real(i) && of(i).rank == 4) x = i;
    }
    if (x < 0 || roll.one_in(3)) x = leaf(4);
    return formatted(x);
  }
  int formatted(int x) {
    if (x < 0 || of(x).rank != 4 || roll.one_in(2)) return x;
    const auto format = roll.one_in(3) ? sw::memory_format::contiguous : sw::memory_format::channels_last;
    return emit(op_code::contiguous, {x}, sw::attributes<sw::contiguous_attributes>(static_cast<int>(format)));
  }
  // Of these extents beside x: on an axis that cuts x along `from` cut along `to`, else whole as x is, or as `other` where that is no shard.
  int partner(int x, std::initializer_list<std::int64_t> extents, int batch_to, int channels_to, int own) {
    spec want = sw::scalar_like(of(x));
    want.rank = static_cast<std::uint8_t>(extents.size());
    int d = 0;
    for (const std::int64_t e : extents) want.extent[d++] = e;
    for (int a = 0; a < p.axes; ++a) {
      const placement q = of(x).place[a];
      const auto along = [](int dim) { return dim < 0 ? sw::reduced_value() : sw::shard_value(dim); };
      want.place[a] = q.is_shard(0)    ? along(batch_to)
                      : q.is_shard(1)  ? along(channels_to)
                      : q.is_shard()   ? sw::reduced_value()
                      : q.is_reduced() ? along(roll.one_in(2) ? own : -1)
                      : q.is_partial() ? sw::reduced_value()
                                       : sw::replicate_value();
    }
    sw::make_contiguous(want);
    return formatted(like(want));
  }
  // Without cuts of height and width.
  int in_planes(int x) {
    for (int a = 0; a < p.axes && x >= 0; ++a)
      if (of(x).place[a].is_shard() && of(x).place[a].dim > 1)
        x = move(x, a, roll.one_in(2) ? sw::reduced_value() : sw::shard_value(roll(2)));
    return x;
  }
  void convolutions(int x) {
    const spec s = of(x);
    sw::convolution_attributes a;
    std::int64_t kernel[2], out[2];
    for (int d = 0; d < 2; ++d) {
      a.stride[d] = static_cast<std::int16_t>(1 + chance({6, 3, 1}));
      a.padding[d] = static_cast<std::int16_t>(chance({5, 4, 2}));
      a.dilation[d] = static_cast<std::int16_t>(1 + chance({5, 2}));
      a.further[d] = chance({5, 1});
      kernel[d] = 1 + chance({4, 4, 4, 1});
      out[d] = sw::operations::convolved_extent(a, d, s.extent[2 + d], kernel[d]);
      if (out[d] < 1) return;
    }
    const std::int64_t c = s.extent[1];
    if (c < 1) return;
    a.groups = roll.one_in(2) ? 1 : roll.one_in(2) ? static_cast<std::int32_t>(c) : c % 2 == 0 ? 2 : 1;
    const std::int64_t inputs = c / a.groups, outputs = a.groups * (1 + roll(3));
    const int which = roll(5);
    if (which < 3) {
      const int w = partner(x, {outputs, inputs, kernel[0], kernel[1]}, -1, 1, 0);
      emit_image(sw::custom::conv2d, {x, w}, sw::pack_attributes(a));
    } else if (which == 3) {
      for (int d = 0; d < 2; ++d) a.extent[d] = kernel[d];
      const int dy = partner(x, {s.extent[0], outputs, out[0], out[1]}, 0, -1, 1);
      emit_image(sw::custom::conv2d_dw, {dy, x}, sw::pack_attributes(a));
    } else {  // x is what would be y
      if (c % a.groups != 0) return;
      for (int d = 0; d < 2; ++d) {
        a.extent[d] = (s.extent[2 + d] - 1) * a.stride[d] + a.dilation[d] * (kernel[d] - 1) + 1 - 2 * a.padding[d] -
                      a.further[d] + roll(a.stride[d]);
        if (a.extent[d] < 1) return;
      }
      const int w = partner(x, {c, 1 + roll(3), kernel[0], kernel[1]}, -1, 0, 1);
      emit_image(sw::custom::conv2d_dx, {x, w}, sw::pack_attributes(a));
    }
  }
  void pools(int x) {
    const spec s = of(x);
    const int which = roll(5);
    sw::pool_attributes a;
    a.counts_padding = static_cast<std::int16_t>(roll(2));
    a.ceil = static_cast<std::int16_t>(roll(2));
    if (which >= 2 && roll.one_in(4)) a.divisor = 1 + roll(5);
    for (int d = 0; d < 2; ++d) {
      a.kernel[d] = static_cast<std::int16_t>(1 + roll(3));
      a.stride[d] = static_cast<std::int16_t>(1 + roll(3));
      if (which < 2) a.dilation[d] = static_cast<std::int16_t>(1 + roll(2) * roll(2));
      a.padding[d] = static_cast<std::int16_t>(roll(static_cast<int>(a.reach(d)) / 2 + 1));
    }
    if (which < 4 && sw::operations::pool_finding(a, s)) return;
    if (which < 2) {
      const int all = emit_image(sw::custom::max_pool2d, {x}, sw::pack_attributes(a));
      for (int k = 0; all >= 0 && k < 2; ++k)
        if (k == 0 || roll.one_in(2)) emit(op_code::getitem, {all}, attr(k));
    } else if (which < 4) {
      emit_image(sw::custom::avg_pool2d, {x}, sw::pack_attributes(a));
    } else {  // x is what would be the means
      for (int d = 0; d < 2; ++d) {
        a.extent[d] = (s.extent[2 + d] - 1) * a.stride[d] + a.kernel[d] - 2 * a.padding[d] + roll(a.stride[d]);
        if (a.extent[d] < 1 || sw::operations::pooled_extent(a, d, a.extent[d]) != s.extent[2 + d]) return;
      }
      emit_image(sw::custom::avg_pool2d_dx, {x}, sw::pack_attributes(a));
    }
  }
  void interpolations(int x) {
    const spec s = of(x);
    const sw::interpolate_options o{roll.one_in(2) ? sw::interpolation::nearest : sw::interpolation::bilinear, false};
    sw::interpolate_options with = o;
    with.align_corners = o.mode == sw::interpolation::bilinear && roll.one_in(2);
    const std::int64_t h = 1 + roll(6), w = 1 + roll(6);
    if (s.extent[2] < 1 || s.extent[3] < 1) return;
    if (!roll.one_in(4)) {
      emit_image(sw::custom::interpolate, {x}, sw::detail::interpolation_to(with, h, w, s.extent[2], s.extent[3]));
      return;
    }
    // x is what an image of h and w has become
    auto a =
        sw::attributes_of<sw::interpolation_attributes>(sw::detail::interpolation_to(with, s.extent[2], s.extent[3], h, w));
    a.extent[0] = static_cast<std::int32_t>(h);
    a.extent[1] = static_cast<std::int32_t>(w);
    emit_image(sw::custom::interpolate_dx, {x}, sw::pack_attributes(a));
  }
  // A norm of channels by x's own statistics, of each image's groups or of the batch; or, where nothing is differentiated, by any.
  void channel_norms(int x) {
    x = whole(x);
    if (x < 0) return;
    const spec s = of(x);
    const std::int64_t c = s.extent[1];
    sw::channel_norm_attributes a;
    if (c < 1 || sw::numel(s) == 0) return;
    a.groups = roll.one_in(2) ? 0 : roll.one_in(2) ? 1 : c % 2 == 0 ? 2 : 1;
    const sw::op_attr each = sw::pack_attributes(a);
    const std::int64_t groups = a.groups > 0 ? a.groups : c, count = sw::numel(s) / s.extent[0] / groups;
    const auto pair = [&](int moments, int k) {
      const int row = emit(op_code::slice, {moments}, attr(0, k, 1));
      return row < 0 ? -1 : emit(op_code::sum, {row}, attr(1));
    };
    const auto share = [&](int v) { return whole(emit(op_code::scale, {v}, {}, 1.0 / static_cast<double>(count))); };
    int mean = -1, variance = -1;
    if (sw::detail::cuts_points(s) || roll.one_in(3)) {  // sums of parts, about 0 and about their mean
      statement zero;
      zero.op = op_code::fill;
      zero.given = sw::detail::of_statistics(s, each);
      mean = share(pair(emit_image(sw::custom::channel_moments_about, {x, emit(zero)}, each), 0));
      variance = share(pair(emit_image(sw::custom::channel_moments_about, {x, mean}, each), 1));
    } else {
      const int moments = emit_image(sw::custom::channel_moments, {x}, each);
      mean = pair(moments, 0);
      variance = share(pair(moments, 1));
    }
    if (variance < 0 || roll.one_in(6)) return;
    if (a.groups == 0 && roll.one_in(2)) {  // of the batch
      a.over_batch = 1;
      const int common = whole(emit(op_code::sum, {mean}, attr(1, 1, 1)));
      const int apart = emit(op_code::sub, {mean, common});
      variance =
          whole(emit(op_code::sum, {emit(op_code::add, {variance, emit(op_code::mul, {apart, apart})})}, attr(1, 1, 1)));
      mean = common;
    }
    if (mean < 0 || variance < 0) return;
    statement eps;
    eps.op = op_code::fill;
    eps.given = sw::scalar_like(of(variance));
    for (int m = 0; m < p.axes; ++m)
      eps.given.place[m] = of(variance).place[m].is_whole() ? of(variance).place[m] : sw::reduced_value();
    eps.f = 0.1;
    const int scale = emit(op_code::rsqrt, {emit(op_code::add, {variance, emit(eps)})});
    const int w = partner(x, {c}, -1, 0, -1), b = partner(x, {c}, -1, 0, -1);
    emit_image(sw::custom::channel_norm, {x, mean, scale, w, b}, sw::pack_attributes(a));
  }
  void image() {
    int x = some_image();
    if (x >= 0 && !roll.one_in(4)) x = in_planes(x);
    if (x < 0) return;
    switch (chance({5, 2, 2, 1})) {
      case 0: convolutions(x); return;
      case 1: pools(x); return;
      case 2: interpolations(x); return;
      default: channel_norms(x); return;
    }
  }

  void norms(op_code op) {
    const int x = row_operand();
    if (x < 0 || of(x).extent[of(x).rank - 1] < 1) return;
    const sw::op_attr a = attr(roll(2), 0);
    const double epsilon = 1e-5;
    const int stats = emit(op_code::norm_stats, {x}, a, epsilon);
    if (stats < 0 || op == op_code::norm_stats) return;
    const int w = weight(x);
    if (w < 0) return;
    if (op == op_code::norm_apply) {
      if (a.v[0] == 0 && roll.one_in(2)) {
        const int b = weight(x);
        emit(op, {x, stats, w, b}, attr(0, 1), epsilon);
      } else {
        emit(op, {x, stats, w}, a, epsilon);
      }
      return;
    }
    spec dy = sw::contiguous(of(x));
    if (roll.one_in(3))
      for (int m = 0; m < p.axes; ++m)
        if (dy.place[m].is_reduced()) dy.place[m] = sw::partial_value();
    const int g = like(dy);
    if (op == op_code::norm_dx) emit(op, {g, x, stats, w}, a, epsilon);
    else emit(op, {g, x, stats}, a, epsilon);
  }

  void losses(op_code op) {
    int x = row_operand();
    if (x < 0 || of(x).extent[of(x).rank - 1] < 1) return;
    const spec s = of(x);
    if (op == op_code::exp_sum) {  // of classes that ranks share: the largest of all comes first
      int top = emit(op_code::amax, {x}, attr(std::int64_t{1} << (s.rank - 1)));
      if (top < 0) return;
      for (int m = 0; m < p.axes && top >= 0; ++m)
        if (of(top).place[m].is_partial()) top = move(top, m, sw::reduced_value());
      if (top < 0) return;
      top = emit(op_code::reshape, {top}, sw::pack_extents(s.extent, s.rank - 1));
      if (top >= 0) emit(op, {x, top});
      return;
    }
    int norm = emit(op_code::lse, {x});
    if (norm < 0 || op == op_code::lse) return;
    const bool ignores = roll.one_in(3);
    const int t = indices(without_last(s), s.extent[s.rank - 1]);
    if (t < 0) return;
    if (roll.one_in(3) && p.what == kind::forward)  // the classes sharded
      for (int m = 0; m < p.axes; ++m)
        if (of(x).place[m].is_reduced()) {
          const int y = move(x, m, sw::shard_value(s.rank - 1));
          if (y >= 0) x = y;
        }
    if (op == op_code::nll) {
      emit(op, {x, norm, t}, attr(ignores ? 1 : 0, ignores ? roll(3) : 0));
      return;
    }
    spec dy = of(norm);
    const int g = like(dy);
    emit(op, {g, x, norm, t}, attr(ignores ? 1 : 0, ignores ? roll(3) : 0));
  }

  // --- the rest of a program ------------------------------------------------------------------------------------------------------

  void finish() {
    for (int i = 0; i < a_.size(); ++i)  // nothing is left on its way
      if (a_.at[static_cast<std::size_t>(i)].pending) emit(op_code::wait, {i});
    // what is looked at: some values, the last ones, and inputs, which may have been written
    const int count = a_.size();
    const int shown = p.what == kind::forward ? 4 + roll(4) : 1 + roll(3);
    if (p.what != kind::forward) {
      // the sum of a late value
      int x = -1;
      for (int tries = 0; tries < 20 && x < 0; ++tries) {
        const int i = recent();
        if (real(i) && !a_.at[static_cast<std::size_t>(i)].pending) x = i;
      }
      if (x >= 0 && of(x).rank > 0) x = emit(op_code::sum, {x}, attr((1 << of(x).rank) - 1, 0, roll(2)));
      for (int m = 0; m < p.axes && x >= 0; ++m) {
        const placement q = of(x).place[m];
        if (q.is_partial() && q.op != sw::reduction::sum) x = move(x, m, sw::replicate_value());
      }
      if (x < 0 || !is_loss(of(x))) p.what = kind::forward;
      else p.root = x;
    }
    if (p.what == kind::training && params_ == 0) p.what = kind::forward;
    for (int k = 0; k < shown; ++k) {
      const int o = k < 2 ? a_.size() - 1 - k : k == 2 ? roll(count) : recent();
      if (o >= 0 && !a_.at[static_cast<std::size_t>(o)].pending) p.outputs.push_back(o);
    }
    for (std::size_t i = 0; i < p.body.size() && p.outputs.size() < 7; ++i)
      if (p.body[i].op == op_code::input && !p.body[i].pending && roll.one_in(3)) p.outputs.push_back(static_cast<int>(i));
    if (p.what == kind::gradient)
      for (const statement& s : p.body)
        if (s.op == op_code::input && sw::is_floating(s.given.type) && !roll.one_in(3))
          p.wanted |= std::uint64_t{1} << s.a.v[0];
    if (p.what == kind::gradient && p.wanted == 0) p.what = kind::forward;
    p.optimizer = roll(10);
    if (choice_.passes && !roll.one_in(4)) {
      std::vector<int> order;
      for (int k = 0; k < pass_count_; ++k)
        if (choice_.fused_collectives || short_name(k) != "comm_fusion") order.push_back(k);
      pass_count_ = static_cast<int>(order.size());
      for (int k = pass_count_; k > 1; --k)
        std::swap(order[static_cast<std::size_t>(k - 1)], order[static_cast<std::size_t>(roll(k))]);
      order.resize(static_cast<std::size_t>(1 + roll(pass_count_ < 6 ? pass_count_ : 6)));
      p.passes = order;
    }
    p.iterations = p.what == kind::training ? 2 + roll(2) : roll.one_in(4) ? 2 : 1;
    if (choice_.moves && roll.one_in(p.what == kind::training ? 2 : 12)) {
      p.iterations = 3 + roll(2);
      p.moves.push_back(roll.next());
      if (roll.one_in(3)) p.moves.push_back(roll.next());
    }
    p.schedule = roll.next();
  }
};

}  // namespace fuzz
