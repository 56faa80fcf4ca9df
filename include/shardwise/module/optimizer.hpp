// SPDX-License-Identifier: Apache-2.0
// Optimizers as graph updates: each parameter's gradient is reduced where it is still partial, clipped, and applied.
#pragma once

#include <bit>
#include <type_traits>

#include <shardwise/autodiff/grad.hpp>
#include <shardwise/graph/mutation.hpp>
#include <shardwise/module/loss_scaler.hpp>
#include <shardwise/module/low_gradients.hpp>
#include <shardwise/module/optimizers.hpp>
#include <shardwise/module/state_shards.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace shardwise::inline v0_1 {

// What an optimizer asks of a parameter and its gradient: same extents, gradient summed, same shards. The gradient of floats may be
// of two bytes: updates and norms read it as floats.
constexpr finding check_update(const spec& p, const spec& g) {
  if (p.rank != g.rank || (p.type != g.type && !(p.type == dtype::f32 && is_low_precision(g.type))))
    return {problem::gradient_shape, 1};
  for (int d = 0; d < p.rank; ++d)
    if (p.extent[d] != g.extent[d]) return {problem::gradient_shape, 1, d, -1, g.extent[d], p.extent[d]};
  for (int a = 0; a < p.axes; ++a) {
    if (g.place[a].is_partial()) return {problem::gradient_unreduced, 1, -1, a};
    if (p.place[a].is_shard() ? !(g.place[a] == p.place[a]) : !g.place[a].is_whole())
      return {problem::gradient_placement, 1, -1, a};
  }
  return {};
}

// The typed form of the same check, for steps written by hand on eager or symbolic tensors.
template <class Parameter, class Gradient>
struct checked_update {
  static constexpr finding found = check_update(Parameter::sp, Gradient::sp);
  static_assert(raise<found.what, typename Parameter::mesh_type, operand_t<Parameter::sp>, operand_t<Gradient::sp>>::ok);
  static constexpr bool ok = !found;
};

namespace detail {

// States are replicate where the parameter is whole: nothing is differentiated through them.
constexpr spec state_spec(spec s) {
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_reduced()) s.place[a] = replicate_value();
  return contiguous(s);
}

// What follows from a spec alone, worked out once: layers repeat, so few specs serve all parameters.
struct update_memo {
  int dense_spec = -1;
  int partial_axis = -2;  // the first; -1: none, -2: not known yet
  int summed_spec = -1;   // dense, with that axis summed
  int square_spec = -1;
  int state_spec = -1;
  int checked_with = -1;  // gradient spec that check_update has passed for this parameter spec
};

// A gradient's square sum is partial on the axes that shard the gradient and whole on the others: so many ways.
inline constexpr int max_sums = 1 << max_axes;

// Of parameters whose states are split: none are in most programs.
template <int Specs, int Params, bool Split>
struct split_updates {};
template <int Specs, int Params>
struct split_updates<Specs, Params, true> {
  state_shards<Specs> moves;
  int rows[Params > 0 ? Params : 1];  // a parameter's, then what updates them
  int first = 0, end = 0;             // parameters of one module, some of which wait for their updates
};

template <class Graph, int Forward, int Params, bool Split = false>
struct update_state : split_updates<Graph::spec_capacity, Params, Split> {
  Graph g{typename Graph::unfilled{}};
  update_memo memo[Graph::spec_capacity];
  int cotangent[Forward];
  int gradient[Params > 0 ? Params : 1];  // reduced gradient of each parameter, -1 if it has none
  int param_node[Params > 0 ? Params : 1];
  int scalar_sum[max_sums];  // partial sums of squares, one for each way of placing them; -1: none
  int factor = -1;
  int states = 0;
  int phase =
      0;  // 0 reduce gradients, 1 clip, 2 update; where states are split, squares are summed at -1, behind all reductions
  int cursor = 0;
};

}  // namespace detail

// Joint graph (autodiff::grad) to train step: outputs become whole, the loss summed over the mesh. Law: an output is what it
// was before the step's update; one that lies in a parameter that is updated is copied first, however it came to lie there.
// Split: the states of some parameters are split while they are whole: of these each rank updates its rows, which are then
// gathered, those of one module together. LossScale: what gradients are divided by, before they are clipped (loss_scale). Scaler: what
// adjusts the scale where that is a state of the joint graph (dynamic_loss_scale); void: nothing does. The norm that report_norm asks for
// is a state, and no output: outputs are the forward pass's, and those of runs that update nothing.
// A gradient of two bytes that no rank sums in float any more is read by norm and update as it is: the bits of its cast, which is left
// dead, and none of its memory.
template <class Optimizer, int Params, bool Split = false, std::int64_t LossScale = 1, class Scaler = void>
struct apply_optimizer {
 private:
  static constexpr bool dynamic = !std::is_void_v<Scaler>;
  static constexpr bool sums_squares = Optimizer::clips || dynamic || detail::reports_norm<Optimizer>;
  static constexpr bool by_matrix = requires { typename Optimizer::adam_groups; };  // muon: matrices by a rule of their own

  struct sizes {
    int nodes, specs;
  };
  // A close bound, as in grad: what makes gradients whole and dense, their squares and sums, states and updates.
  template <int Forward, class Joint>
  static constexpr sizes sizes_after(const Joint& joint) {
    const bool low = has_low_precision(joint.g);
    int total = joint.g.node_count + joint.g.output_count * (2 * max_axes + 1) +
                (sums_squares ? detail::max_sums * (2 * max_axes + 1) + 1 : 0) + (LossScale != 1 || dynamic ? 4 : 0) +
                (detail::reports_norm<Optimizer> ? 5 : 0);
    for (int i = 0; i < Forward; ++i) {
      const int c = joint.cotangent[i];
      if (joint.g.nodes[i].op != op_code::param || c < 0) continue;
      const spec& s = joint.g.specs[joint.g.nodes[c].spec];
      total += 1 + Optimizer::states + (sums_squares ? 2 : 0) + (is_contiguous(s) ? 0 : 1);
      for (int a = 0; a < s.axes; ++a) total += s.place[a].is_partial() ? 1 : 0;
      total += s.type != joint.g.spec_of(i).type ? 1 : 0;
      if (low && detail::has_low_form(joint.g, c)) total += detail::steps_to_low_form(joint.g, c);
      if constexpr (by_matrix) total += s.rank == 2 ? Optimizer::most_nodes : 0;
      if (Split) total += 3 * std::popcount(detail::split_states(joint.g.nodes[i])) + 1;
    }
    return {total, ((Split ? 6 : 3) + (by_matrix ? 2 * max_axes + 2 : 0)) * joint.g.spec_count + 32};
  }

 public:
  template <class Source>
  static constexpr int stages(int nodes) {
    return Params > 0 ? ((Split ? 3 : 2) * Params + chunk(nodes) - 1) / chunk(nodes) : 1;
  }

  template <class Source>
  static constexpr int forward = static_cast<int>(sizeof(Source::value.cotangent) / sizeof(int));
  template <class Source>
  static constexpr sizes size = sizes_after<forward<Source>>(Source::value);
  template <class Source>
  using state = detail::update_state<resized<decltype(Source::value.g), size<Source>.nodes, size<Source>.specs>,
                                     forward<Source>, Params, Split>;

  template <class Source, class State>
  static constexpr void start(State& st) {
    copy_into(st.g, Source::value.g);
    // g++ 12 reads elements of a copied constant that were never assigned as zeros, not as their default initialisers
    for (detail::update_memo& m : st.memo) m = detail::update_memo{};
    const int* const cotangent = Source::value.cotangent;
    for (int i = 0; i < forward<Source>; ++i) st.cotangent[i] = cotangent[i];
    for (int& g : st.gradient) g = -1;
    for (int& p : st.param_node) p = -1;
    for (int& sum : st.scalar_sum) sum = -1;
    if constexpr (requires { Source::value.states; }) st.states = Source::value.states;  // numbers that keep_sums has taken
    if constexpr (Split) {
      st.moves.clear();
      for (int& r : st.rows) r = -1;
    }
    for (int i = 0; i < forward<Source>; ++i)
      if (st.g.nodes[i].op == op_code::param) st.param_node[attributes_of<leaf_attributes>(st.g.nodes[i].a).index] = i;
    builder b = st.g.edit();
    for (int k = 0; k < st.g.output_count; ++k) st.g.outputs[k] = apart(st, b, whole(st, b, st.g.outputs[k], -1));
    st.g.finish(b);
  }

  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    builder b = st.g.edit();
    int left = chunk(nodes);
    if (st.phase == 0) {
      for (; left > 0 && st.cursor < Params; --left, ++st.cursor) {
        const int p = st.param_node[st.cursor];
        int g = p < 0 ? -1 : st.cotangent[p];  // it is a part of a flat one
        if (g >= 0 && detail::has_low_form(b, g)) g = detail::low_form(b, g);
        // update kernels walk parameter and gradient as flat arrays
        st.gradient[st.cursor] =
            g < 0 ? -1 : as_stored(b, dense(st, b, whole(st, b, own_rows(st, b, g, p), b.nodes[g].scope)), p);
        if (sums_squares && !Split && g >= 0) add_square(st, b, st.gradient[st.cursor]);
      }
      if (st.cursor == Params) st.phase = sums_squares && Split ? -1 : 1, st.cursor = 0;
    }
    if (st.phase == -1) {
      for (; left > 0 && st.cursor < Params; --left, ++st.cursor)
        if (st.gradient[st.cursor] >= 0) add_square(st, b, st.gradient[st.cursor]);
      if (st.cursor == Params) st.phase = 1;
    }
    if (st.phase == 1 && left > 0) {
      if (sums_squares) clip(st, b);
      if (LossScale != 1) unscale(st, b);
      st.phase = 2;
      st.cursor = 0;
    }
    if (st.phase == 2)
      for (; left > 0 && st.cursor < Params; --left, ++st.cursor) {
        if constexpr (Split) update_rows(st, b, st.cursor);
        else update(st, b, st.cursor, st.param_node[st.cursor]);
      }
    st.g.finish(b);
  }

 private:
  // Parameters handled by a stage, in either phase: each makes two to four nodes there, mostly from the memo.
  static constexpr int chunk(int nodes) {
    const int each = by_matrix ? 64 : Split ? 4 : 2;
    return nodes / each > 0 ? nodes / each : 1;
  }

  // The rows of gradient `g` that this rank updates of parameter node `p`.
  template <class State>
  static constexpr int own_rows([[maybe_unused]] State& st, [[maybe_unused]] builder& b, int g, [[maybe_unused]] int p) {
    if constexpr (!Split) return g;
    else if (detail::split_states(b.nodes[p]) == 0) return g;
    else return st.moves.rows_of(b, dense(st, b, g), detail::split_states(b.nodes[p]), b.nodes[g].scope, p);
  }

  template <class State>
  static constexpr int dense(State& st, builder& b, int id) {
    const int from = b.nodes[id].spec;
    int& to = st.memo[from].dense_spec;
    if (to < 0) to = is_contiguous(b.specs[from]) ? from : b.intern(contiguous(b.specs[from]));
    return to == from ? id : b.emit(op_code::contiguous, {}, 0, to, b.nodes[id].scope, id);
  }

  // A gradient that was summed in another type than its parameter has (mixed); of two bytes, it is read as floats where it is used.
  static constexpr int as_stored(builder& b, int id, int p) {
    const dtype type = b.specs[b.nodes[p].spec].type;
    spec s = b.specs[b.nodes[id].spec];
    if (s.type == type || (type == dtype::f32 && is_low_precision(s.type))) return id;
    s.type = type;
    return b.emit(op_code::cast, attributes<cast_attributes>(static_cast<std::int64_t>(type)), 0, b.intern(s),
                  b.nodes[id].scope, id);
  }

  // The value of `id` with every partial axis summed.
  template <class State>
  static constexpr int whole(State& st, builder& b, int id, int scope) {
    for (;;) {
      detail::update_memo& m = st.memo[b.nodes[id].spec];
      if (m.partial_axis == -2) {
        const spec& s = b.specs[b.nodes[id].spec];
        int a = 0;
        while (a < s.axes && !s.place[a].is_partial()) ++a;
        m.partial_axis = a < s.axes ? a : -1;
      }
      if (m.partial_axis < 0) return id;
      id = dense(st, b, id);
      if (m.summed_spec < 0) {
        spec s = b.specs[b.nodes[id].spec];
        s.place[m.partial_axis] = replicate_value();
        m.summed_spec = b.intern(s);
      }
      id = b.emit(op_code::redistribute, attributes<redistribute_attributes>(m.partial_axis, pack(replicate_value())), 0,
                  m.summed_spec, scope, id);
    }
  }

  // The value of `id` where no update writes.
  template <class State>
  static constexpr int apart(State& st, builder& b, int id) {
    int at = id;
    while (lies_in_operand(b.nodes[at], b.specs, b.nodes)) at = b.nodes[at].in[0];
    if (b.nodes[at].op != op_code::param || st.cotangent[at] < 0) return id;
    return b.emit(op_code::contiguous, {}, 0, b.intern(contiguous(b.specs[b.nodes[id].spec])), b.nodes[id].scope, id);
  }

  template <class State>
  static constexpr void add_square(State& st, builder& b, int g) {
    const int in = b.nodes[g].spec;
    const op_attr all = attributes<sum_attributes>((std::int64_t{1} << b.specs[in].rank) - 1);
    int& out = st.memo[in].square_spec;
    if (out < 0) {
      const outcome o = infer(op_code::sumsq, all, b.specs + in, 1);
      if (o.error && !b.error) b.error = o.error;
      out = b.intern(o.out);
    }
    const int square = b.emit(op_code::sumsq, all, 0, out, b.nodes[g].scope, g);
    for (int& sum : st.scalar_sum) {
      if (sum < 0) {
        sum = square;
        return;
      }
      if (b.nodes[sum].spec == out) {
        sum = b.emit(op_code::add, {}, 0, out, -1, sum, square);
        return;
      }
    }
  }

  template <class State>
  static constexpr void clip(State& st, builder& b) {
    int total = -1;
    for (int sum : st.scalar_sum) {
      if (sum < 0) continue;
      sum = whole(st, b, sum, -1);
      spec s = b.specs[b.nodes[sum].spec];
      for (int a = 0; a < s.axes; ++a)
        if (s.place[a].is_reduced()) {
          s.place[a] = replicate_value();
          sum = b.emit(op_code::redistribute, attributes<redistribute_attributes>(a, pack(replicate_value())), 0,
                       b.intern(s), -1, sum);
        }
      total = total < 0 ? sum : b.emit(op_code::add, {}, 0, b.intern(s), -1, total, sum);
    }
    // the norm of what is divided: a power of two, so this is exact
    constexpr double inverse = 1 / static_cast<double>(LossScale);
    if (total >= 0 && LossScale != 1) total = b.emit(op_code::scale, {}, inverse * inverse, b.nodes[total].spec, -1, total);
    if constexpr (dynamic) st.states = 3;  // behind the scale, its counts and the factor
    if constexpr (detail::reports_norm<Optimizer>)
      if (total >= 0) report(st, b, total);
    if constexpr (dynamic) {
      if (total >= 0) st.factor = detail::emit_adjustment<Scaler, Optimizer::clips>(b, total);
    } else if (Optimizer::clips && total >= 0) {
      st.factor = b.emit(op_code::clip_factor, {}, 0, b.nodes[total].spec, -1, total);
    }
  }

  // The root of a sum of squares, over a dynamic scale as the step began with it, into a state.
  template <class State>
  static constexpr void report(State& st, builder& b, int total) {
    const spec s = b.specs[b.nodes[total].spec];
    const auto as = [&](int id, dtype type) {
      spec to = b.specs[b.nodes[id].spec];
      if (to.type == type) return id;
      to.type = type;
      return b.emit(op_code::cast, attributes<cast_attributes>(static_cast<std::int64_t>(type)), 0, b.intern(to), -1, id);
    };
    int norm = b.emit(op_code::sqrt, attributes<sqrt_attributes>(std::int64_t{0}), 0, b.nodes[total].spec, -1, total);
    if constexpr (dynamic) norm = b.emit(op_code::div, {}, 0, b.nodes[norm].spec, -1, norm, as(detail::scale_of(b), s.type));
    for (int k = 0, p = -1; k < Params && p < 0; ++k) {
      p = st.gradient[k] >= 0 ? st.param_node[k] : -1;
      if (p >= 0) norm = as(norm, b.specs[b.nodes[p].spec].type);  // as all states
    }
    const int own = b.nodes[norm].spec;
    const op_attr kept = attributes<leaf_attributes>(st.states++, -1, std::int64_t{gradient_norm});
    b.emit(op_code::assign, {}, 0, own, -1, b.emit(op_code::state, kept, 0, own, -1), norm);
  }

  // Updates multiply gradients by one factor.
  template <class State>
  static constexpr void unscale(State& st, builder& b) {
    constexpr double inverse = 1 / static_cast<double>(LossScale);
    if (st.factor >= 0) {
      st.factor = b.emit(op_code::scale, {}, inverse, b.nodes[st.factor].spec, -1, st.factor);
      return;
    }
    for (const int g : st.gradient) {
      if (g < 0) continue;
      spec s = scalar_like(b.specs[b.nodes[g].spec]);
      s.type = wide_of(s.type);
      st.factor = b.emit(op_code::fill, {}, inverse, b.intern(s), -1);
      return;
    }
  }

  // The parameter's update at once, or, where its states are split, with those of its module behind all of them.
  template <class State>
  static constexpr void update_rows(State& st, builder& b, int index) {
    const int p = st.param_node[index];
    const unsigned axes = detail::split_states(b.nodes[p]);
    const bool waits = axes != 0 && st.gradient[index] >= 0;
    if (st.first < st.end && b.nodes[st.param_node[st.first]].scope != b.nodes[p].scope) update_module(st, b);
    if (waits) st.rows[index] = st.moves.rows_of(b, p, axes, b.nodes[p].scope, p);
    else update(st, b, index, p);
    if (st.first == st.end) st.first = index;
    st.end = index + 1;
    if (st.end == Params) update_module(st, b);
  }
  template <class State>
  static constexpr void update_module(State& st, builder& b) {
    const auto each = [&](auto&& f) {
      for (int k = st.first; k < st.end; ++k)
        if (const int p = st.param_node[k]; st.gradient[k] >= 0 && detail::split_states(b.nodes[p]) != 0)
          st.rows[k] = f(k, p);
    };
    each([&](int k, int) { return update(st, b, k, st.rows[k]); });
    each([&](int k, int p) {
      return st.moves.gathered(b, st.rows[k], detail::split_states(b.nodes[p]), b.nodes[p].scope, p);
    });
    each([&](int k, int p) { return b.emit(op_code::assign, {}, 0, b.nodes[p].spec, b.nodes[p].scope, p, st.rows[k]); });
    st.first = st.end;
  }

  // `written`: the parameter, or its rows.
  template <class State>
  static constexpr int update(State& st, builder& b, int index, int written) {
    const int p = st.param_node[index], g = st.gradient[index];
    if (g < 0) return -1;
    const int own = b.nodes[written].spec, given = b.nodes[g].spec;
    const spec& sp = b.specs[own];
    detail::update_memo& m = st.memo[own];
    if (m.checked_with != given) {
      if (const finding f = check_update(sp, b.specs[given]); f && !b.error) {
        b.error = f;
        detail::place_error(b.error, b, p);
      }
      m.checked_with = given;
    }
    if (Optimizer::states > 0 && m.state_spec < 0) m.state_spec = b.intern(detail::state_spec(sp));
    if constexpr (by_matrix) {
      if (Optimizer::is_rest(sp, attributes_of<parameter_attributes>(b.nodes[p].a).group))
        return emit_update<typename Optimizer::rest>(st, b, index, written, g);
      else return update_matrix(st, b, index, written, g);
    } else {
      return emit_update<Optimizer>(st, b, index, written, g);
    }
  }

  // By another optimizer than the step's own (muon's rest) with the step's options.
  template <class By, class State>
  static constexpr int emit_update(State& st, builder& b, int index, int written, int g) {
    const int p = st.param_node[index], own = b.nodes[written].spec;
    const spec& sp = b.specs[own];
    node n = empty_node;
    n.op = !by_matrix || Optimizer::options == 0 ? By::op : detail::with_options(By::op);
    n.spec = own;
    n.scope = b.nodes[p].scope;
    n.f = !By::matrices_only || sp.rank >= 2 ? 1 : 0;  // whether weight decay applies
    n.a = attributes<adam_attributes>(st.factor < 0 ? 0
                                      : dynamic     ? 2
                                                    : 1,
                                      By::flavour, 0,
                                      attributes_of<parameter_attributes>(b.nodes[p].a).group);  // and sgd's and lion's
    n.a.v[4] = Optimizer::options;
    n.in[n.inputs++] = written;
    n.in[n.inputs++] = g;
    for (int k = 0; k < By::states; ++k)
      n.in[n.inputs++] =
          b.emit(op_code::state,
                 attributes<leaf_attributes>(st.states++, index,
                                             k < 2 ? std::int64_t{first_moment} + k : std::int64_t{largest_second_moment}),
                 0, st.memo[own].state_spec, n.scope);
    if (st.factor >= 0) n.in[n.inputs++] = st.factor;
    return b.append(n);
  }

  // The direction is computed from the momentum before the update writes it.
  template <class State>
  static constexpr int update_matrix(State& st, builder& b, int index, int written, int g) {
    const int p = st.param_node[index], own = b.nodes[written].spec, scope = b.nodes[p].scope;
    const std::int64_t clipped = st.factor < 0 ? 0 : dynamic ? 2 : 1;
    const std::int64_t group = attributes_of<parameter_attributes>(b.nodes[p].a).group;
    if (const dtype type = b.specs[own].type; b.specs[b.nodes[g].spec].type != type) {
      spec s = b.specs[b.nodes[g].spec];
      s.type = type;
      g = b.emit(op_code::cast, attributes<cast_attributes>(static_cast<std::int64_t>(type)), 0, b.intern(s), scope, g);
    }
    const int state_spec = st.memo[own].state_spec;
    const int momentum = b.emit(op_code::state, attributes<leaf_attributes>(st.states++, index, std::int64_t{first_moment}),
                                0, state_spec, scope);
    op_attr a = attributes<adam_term_attributes>(clipped, 0, 3, group);
    a.v[4] = Optimizer::options;
    const int direction =
        Optimizer::orthogonal(b, b.emit(op_code::muon_direction, a, 0, state_spec, scope, momentum, g, st.factor), scope);
    a = attributes<sgd_attributes>(clipped, 0, 0, group);
    a.v[4] = Optimizer::options;
    return b.emit(op_code::muon, a, Optimizer::rate(b.specs[own]), own, scope, written, g, direction, momentum, st.factor);
  }
};

}  // namespace shardwise::inline v0_1
