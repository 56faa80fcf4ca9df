// SPDX-License-Identifier: Apache-2.0
// A random program as a list of statements, which rules admit one by one, so that statements can be left out and extents
// and meshes made smaller; what it is made into; and its text.
#pragma once

#include <shardwise/graph/functions/channel_norms.hpp>
#include <shardwise/graph/functions/interpolate.hpp>
#include <shardwise/graph/functions/local.hpp>
#include <shardwise/graph/functions/pooling.hpp>
#include <shardwise/graph/tape.hpp>
#include <shardwise/graph/text/render.hpp>
#include <shardwise/operations/infer.hpp>

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace fuzz {

namespace sw = shardwise;
using sw::op_code;
using sw::placement;
using sw::spec;

inline constexpr int max_nodes = 512, max_specs = 384;
using graph = sw::graph<max_nodes, max_specs>;

// How programs come to contain an operation. An operation without a role does not compile: see role_of.
enum class role {
  missing,
  drawn,       // the generator has a row for it
  adjoint,     // differentiation writes it, and nothing else
  update,      // an optimizer writes it
  of_passes,   // passes write it
  of_modules,  // a module, or an optimizer of matrices, has it: drawn by test/fuzz_programs
  of_types     // of several element types: drawn by test/fuzz_programs
};

// Every op_code, by hand: a new one needs a row here, one in generate.hpp if it is drawn, and its law in reference.hpp.
constexpr role role_of(op_code op) {
  switch (op) {
    case op_code::input:
    case op_code::param:
    case op_code::fill:
    case op_code::redistribute:
    case op_code::wait:
    case op_code::einsum:
    case op_code::add:
    case op_code::sub:
    case op_code::mul:
    case op_code::scale:
    case op_code::relu:
    case op_code::tanh:
    case op_code::gelu_tanh:
    case op_code::gelu_erf:
    case op_code::clip_factor:
    case op_code::relu_dx:
    case op_code::tanh_dx:
    case op_code::gelu_tanh_dx:
    case op_code::gelu_erf_dx:
    case op_code::sum:
    case op_code::sumsq:
    case op_code::vector_norm:
    case op_code::vector_norm_dx:
    case op_code::softmax:
    case op_code::softmax_dx:
    case op_code::norm_stats:
    case op_code::norm_apply:
    case op_code::norm_dx:
    case op_code::norm_dw:
    case op_code::embedding:
    case op_code::embedding_dw:
    case op_code::lse:
    case op_code::nll:
    case op_code::nll_dx:
    case op_code::permute:
    case op_code::reshape:
    case op_code::slice:
    case op_code::pad:
    case op_code::contiguous:
    case op_code::broadcast:
    case op_code::cat:
    case op_code::gather:
    case op_code::scatter_add:
    case op_code::index_select:
    case op_code::index_add:
    case op_code::scatter:
    case op_code::scatter_dsrc:
    case op_code::one_hot:
    case op_code::constant_pad:
    case op_code::triangle:
    case op_code::arange:
    case op_code::rand:
    case op_code::randn:
    case op_code::bernoulli:
    case op_code::dropout:
    case op_code::relabel:
    case op_code::opaque:
    case op_code::custom:
    case op_code::getitem:
    case op_code::abs:
    case op_code::sign:
    case op_code::exp:
    case op_code::log:
    case op_code::sqrt:
    case op_code::rsqrt:
    case op_code::reciprocal:
    case op_code::sigmoid:
    case op_code::sin:
    case op_code::cos:
    case op_code::pow:
    case op_code::clamp_min:
    case op_code::clamp_max:
    case op_code::div:
    case op_code::maximum:
    case op_code::minimum:
    case op_code::wins:
    case op_code::keeps:
    case op_code::eq:
    case op_code::ne:
    case op_code::lt:
    case op_code::le:
    case op_code::gt:
    case op_code::ge:
    case op_code::where:
    case op_code::mask_keep:
    case op_code::amax:
    case op_code::amin:
    case op_code::prod:
    case op_code::prod_dx:
    case op_code::log_softmax:
    case op_code::exp_sum:
    case op_code::topk:
    case op_code::take:
    case op_code::take_dx:
    case op_code::slice_scatter:
    case op_code::detach:
    case op_code::copy_: return role::drawn;
    case op_code::expand: return role::adjoint;
    case op_code::state:
    case op_code::sgd:
    case op_code::adam:
    case op_code::sgd_with:
    case op_code::adam_with:
    case op_code::lion: return role::update;
    case op_code::module_buffer:
    case op_code::muon:
    case op_code::muon_direction: return role::of_modules;
    case op_code::cast: return role::of_types;
    case op_code::fused:
    case op_code::norm:
    case op_code::norm_dw_db:
    case op_code::norm_dx_dw:
    case op_code::nll_dx_loss:
    case op_code::room:
    case op_code::part:
    case op_code::pack:
    case op_code::unpack:
    case op_code::assign:
    case op_code::in_place:
    case op_code::advance:
    case op_code::adam_term:
    case op_code::adam_term_with:
    case op_code::adjust_scale: return role::of_passes;
    case op_code::count: break;
  }
  return role::missing;
}
constexpr bool all_ops_have_roles() {
  for (int k = 0; k < static_cast<int>(op_code::count); ++k)
    if (role_of(static_cast<op_code>(k)) == role::missing) return false;
  return true;
}
static_assert(all_ops_have_roles(), "an operation is unknown to the fuzzer: give it a role in test/fuzz/values/program.hpp");

struct statement {
  op_code op = op_code::input;
  sw::op_attr a{};
  double f = 0;
  int inputs = 0;
  int in[sw::max_inputs] = {-1, -1, -1, -1, -1, -1, -1, -1};
  spec given{};            // of leaves, fills and claims, which no rule places
  std::int64_t bound = 0;  // integers of an input are from 0 to this, which is not among them
  bool pending = false;    // a redistribution, or an input, that a wait must come for
};

enum class kind { forward, gradient, training };

struct program {
  std::uint64_t seed = 0;
  int axes = 1;
  std::int32_t sizes[sw::max_axes] = {1, 1, 1, 1};
  std::vector<statement> body;
  std::vector<int> outputs;
  kind what = kind::forward;
  bool special = false;      // inputs hold NaN, infinities, zeros of both signs, subnormals
  int root = -1;             // what is differentiated: the first output
  std::uint64_t wanted = 0;  // inputs whose gradients are asked for, bit by bit
  int optimizer = 0;
  std::vector<int> passes;           // numbers in the table of passes, in order
  std::vector<std::uint64_t> moves;  // to the next iteration: what picks root and destination
  int iterations = 1;
  std::uint64_t schedule = 0;  // in which order ranks and streams go on

  int ranks() const {
    int n = 1;
    for (int a = 0; a < axes; ++a) n *= sizes[a];
    return n;
  }
};

inline int rank_coordinate(const program& p, int rank, int axis) {
  for (int a = p.axes - 1; a > axis; --a) rank /= p.sizes[a];
  return rank % p.sizes[axis];
}

// What is known of a statement once it is admitted.
struct known {
  spec s;
  std::int64_t limit = 0;  // of integers: all are smaller
  int root = -1;           // whose storage it may share
  bool pending = false;    // nobody but a wait may have it, or, of several results, a getitem
  unsigned named = 0;      // of several results: those that a getitem has named, bit by bit
};

// A function of blocks: element by element, so that it is the same on every block.
template <class T>
void opaque_blocks(const sw::opaque_block* b) {
  T* const to = static_cast<T*>(b[0].data);
  const T* const x = static_cast<const T*>(b[1].data);
  for (std::int64_t i = 0; i < b[0].size; ++i) to[i] = x[i] * x[i] - T(2);
}
template <class T>
void opaque_cotangents(const sw::opaque_block* b) {
  T* const to = static_cast<T*>(b[0].data);
  const T* const x = static_cast<const T*>(b[1].data);
  const T* const dy = static_cast<const T*>(b[2].data);
  for (std::int64_t i = 0; i < b[0].size; ++i) to[i] = T(2) * x[i] * dy[i];
}
template <class T>
inline constexpr sw::opaque_operation opaque_square{&opaque_blocks<T>, {&opaque_cotangents<T>}, 1};

// A user's own operation, x y - y, and the products of its adjoint: another one of the user's.
inline constexpr sw::custom_operation own_product{.name = "own_product",
                                                  .operands = 2,
                                                  .record = sw::operations::pointwise(sw::linearity::each),
                                                  .adjoint = &sw::autodiff::unknown};
inline constexpr sw::autodiff::adjoint_rule own_adjoint = sw::autodiff::pulled<3>([](sw::autodiff::pullback& p) {
  const int x = p.n.in[0], y = p.n.in[1];
  if (p.wants(0)) p.give_summed(0, p.make(own_product, {}, 0, p.dy, y));
  if (p.wants(1)) p.give_summed(1, p.make(sw::op_code::sub, p.make(own_product, {}, 0, p.dy, x), p.dy));
});
inline constexpr sw::custom_operation own_operation{.name = "own_operation",
                                                    .operands = 2,
                                                    .record = sw::operations::pointwise(sw::linearity::none),
                                                    .adjoint = &own_adjoint};

// Of one operand: its squares, the sums of its rows, where each element stands in its row, and twice the elements, by which the
// adjoint multiplies.
inline sw::outcome own_shape(const sw::op_attr&, const spec* in, int, int result) {
  if (in[0].rank < 1) return sw::fail(sw::problem::dim_out_of_range, in[0]);
  sw::outcome r{{}, sw::contiguous(in[0])};
  if (result == 1) {
    r.out.rank = static_cast<std::uint8_t>(r.out.rank - 1);
    r.out.extent[r.out.rank] = r.out.stride[r.out.rank] = 0;
    sw::make_contiguous(r.out);
  }
  if (result == 2) r.out.type = sw::dtype::i32;
  return r;
}
inline sw::results_rows own_rows(const sw::operation&, const sw::op_attr&, const spec* in, int, const spec&) {
  using namespace sw::rows;
  sw::results_rows t;
  t.push_back({{R}, {R, R, R, R}});
  t.push_back({{U}, {U, U, U, U}});
  for (int d = 0; d + 1 < in[0].rank; ++d) t.push_back({{S(d)}, {S(d), S(d), S(d), S(d)}});
  return t;
}
inline constexpr sw::autodiff::adjoint_rule own_results_adjoint = sw::autodiff::pulled<6>([](sw::autodiff::pullback& p) {
  const int last = p.operand(0).rank - 1;
  if (p.has(0)) p.give(0, p.make(sw::op_code::mul, p.cotangent(0), p.result(3)));
  if (p.has(1)) p.give(0, p.emit(sw::op_code::expand, {{std::int64_t{1} << last, 0, 0, 0, 0, 0}}, 0, 0, p.cotangent(1)));
  if (p.has(3)) p.give(0, p.make(sw::op_code::scale, p.cotangent(3), -1, 2));
});
inline constexpr sw::custom_operation own_results{
    .name = "own_results",
    .operands = 1,
    .record = sw::operations::by_rows(&own_shape, &own_rows, &sw::operations::refuse_with<sw::problem::custom_placements>,
                                      -1, sw::element_rule::real, sw::operand_choice::kept, sw::recomputing::cheap, 4),
    .adjoint = &own_results_adjoint};

// Operations of images, which are made as a user's own: a statement's bound is one more than the number of its operation here, 0 of the
// two above.
inline constexpr const sw::custom_operation* image_operations[] = {&sw::custom::conv2d,
                                                                   &sw::custom::conv2d_dx,
                                                                   &sw::custom::conv2d_dw,
                                                                   &sw::custom::max_pool2d,
                                                                   &sw::custom::avg_pool2d,
                                                                   &sw::custom::avg_pool2d_dx,
                                                                   &sw::custom::interpolate,
                                                                   &sw::custom::interpolate_dx,
                                                                   &sw::custom::channel_moments,
                                                                   &sw::custom::channel_norm,
                                                                   &sw::custom::channel_moments_about};
inline constexpr int image_operation_count = static_cast<int>(std::size(image_operations));
constexpr std::int64_t bound_of(const sw::custom_operation& o) {
  for (int k = 0; k < image_operation_count; ++k)
    if (image_operations[k] == &o) return k + 1;
  return 0;
}
inline const sw::custom_operation& operation_of(const statement& s) {
  if (s.bound > 0 && s.bound <= image_operation_count) return *image_operations[s.bound - 1];
  return s.inputs == 1 ? own_results : own_operation;
}
inline bool is_operation(const statement& s, const sw::custom_operation& o) {
  return s.op == op_code::custom && &operation_of(s) == &o;
}
inline bool has_results(const statement& s) { return s.op == op_code::custom && operation_of(s).record.results > 1; }

// Statements one by one: those that a rule refuses are not admitted.
class assembly {
 public:
  graph g;
  std::vector<known> at;

  assembly() : b_(g.edit()) {}
  assembly(const assembly&) = delete;
  assembly& operator=(const assembly&) = delete;

  bool admit(statement s, const program& p) {
    if (b_.node_count >= max_nodes / 4) return false;
    known k;
    for (int j = 0; j < s.inputs; ++j)
      if (at[static_cast<std::size_t>(s.in[j])].pending != (s.op == op_code::wait || s.op == op_code::getitem)) return false;
    if (!placed(s, p, k)) return false;
    // a write through a detached view, or beside one, is refused or told from PyTorch's by what reads which; drawn: none
    if (s.op == op_code::copy_ && detached_[static_cast<std::size_t>(at[static_cast<std::size_t>(s.in[0])].root)])
      return false;
    k.pending = s.pending || has_results(s);
    if (sw::numel(k.s) > 300 || k.s.rank > sw::max_rank) return false;
    for (int d = 0; d < k.s.rank; ++d)
      if (k.s.extent[d] < 0) return false;
    if (!limited(s, k)) return false;
    sw::node n = sw::empty_node;
    n.op = s.op;
    n.a = s.a;
    n.f = s.f;
    n.inputs = s.inputs;
    for (int j = 0; j < s.inputs; ++j) n.in[j] = s.in[j];
    if (sw::rules::is_random(s.op)) n.a.v[0] = b_.sites++;
    if (s.op == op_code::opaque) {
      const sw::opaque_operation* const f = k.s.type == sw::dtype::f64 ? &opaque_square<double> : &opaque_square<float>;
      int i = 0;
      while (i < b_.function_count && b_.functions[i] != f) ++i;
      if (i == b_.function_count) b_.functions[b_.function_count++] = f;
      n.a.v[0] = i;
    }
    if (s.op == op_code::custom) b_.set_operation(n, &operation_of(s));
    if (s.op == op_code::getitem) at[static_cast<std::size_t>(s.in[0])].named |= 1U << s.a.v[0];
    n.spec = b_.intern(k.s);
    const int id = b_.append(n);
    k.root = s.inputs > 0 && (s.op == op_code::copy_ || s.op == op_code::redistribute ||
                              sw::is_view(n, at[static_cast<std::size_t>(s.in[0])].s, k.s))
                 ? at[static_cast<std::size_t>(s.in[0])].root
                 : id;
    at.push_back(k);
    if (s.op == op_code::wait) waited_[static_cast<std::size_t>(s.in[0])] = true;
    waited_.push_back(false);
    detached_.push_back(false);
    if (s.op == op_code::detach) detached_[static_cast<std::size_t>(k.root)] = true;
    return true;
  }
  void finish(const std::vector<int>& outputs) {
    g.finish(b_);
    g.output_count = 0;
    for (const int o : outputs)
      if (g.output_count < graph::output_capacity) g.outputs[g.output_count++] = o;
  }
  int size() const { return b_.node_count; }
  const spec& of(int i) const { return at[static_cast<std::size_t>(i)].s; }

 private:
  static bool has_partial(const spec& s) {
    for (int a = 0; a < s.axes; ++a)
      if (s.place[a].is_partial()) return true;
    return false;
  }

  bool placed(statement& s, const program& p, known& k) {
    switch (s.op) {
      case op_code::input:
      case op_code::param:
      case op_code::fill:
      case op_code::arange:
      case op_code::rand:
      case op_code::randn:
        k.s = s.given;
        for (int a = 0; a < sw::max_axes; ++a) k.s.axis_size[a] = a < p.axes ? p.sizes[a] : 1;
        k.s.axes = static_cast<std::uint8_t>(p.axes);
        for (int a = p.axes; a < sw::max_axes; ++a) k.s.place[a] = placement{};
        sw::make_contiguous(k.s);
        sw::drop_misplaced_factors(k.s);
        if (sw::check_placements(k.s)) return false;
        sw::normalise(k.s);
        if (s.op != op_code::input && has_partial(k.s)) return false;
        if (s.op == op_code::arange && k.s.rank != 1) return false;
        if ((s.op == op_code::rand || s.op == op_code::randn || s.op == op_code::param) && !sw::is_floating(k.s.type))
          return false;
        return true;
      case op_code::relabel: return claimed(s, k);
      case op_code::wait:
        k.s = of(s.in[0]);
        return !waited_[static_cast<std::size_t>(s.in[0])] && !sw::has_results(b_, s.in[0]);
      case op_code::getitem: {
        if (!sw::has_results(b_, s.in[0]) || (at[static_cast<std::size_t>(s.in[0])].named >> s.a.v[0] & 1U) != 0)
          return false;
        const sw::node& all = b_.nodes[s.in[0]];
        const sw::operation& record = b_.customs[all.a.v[sw::custom_word]]->record;
        if (s.a.v[0] < 0 || s.a.v[0] >= record.results) return false;
        k.s = sw::infer(record, all.a, &of(all.in[0]), 1, static_cast<int>(s.a.v[0])).out;
        return true;
      }
      case op_code::opaque: {
        const spec& x = of(s.in[0]);
        k.s = sw::contiguous(x);
        return sw::is_floating(x.type) && sw::is_contiguous(x) && !has_partial(x);
      }
      default: break;
    }
    if (s.op == op_code::redistribute) {  // what is sent is stored densely: functions of tensors see to it
      if (s.a.v[0] < 0 || s.a.v[0] >= p.axes) return false;
      const spec& x = of(s.in[0]);
      const int axis = static_cast<int>(s.a.v[0]);
      const placement to = sw::unpack_placement(s.a.v[1]);
      if (!sw::is_contiguous(x) && sw::transition_of(x.place[axis], to, x.axis_size[axis]) != sw::transition::none)
        return false;
    }
    spec in[sw::max_inputs]{};
    for (int j = 0; j < s.inputs; ++j) in[j] = of(s.in[j]);
    // a kernel gets what it can read: call, which functions of tensors end in, copies the rest
    if (s.op == op_code::custom && s.bound > 0)
      for (int j = 0; j < s.inputs; ++j)
        if (!sw::autodiff::reads(operation_of(s).record, in[j])) return false;
    if (s.op == op_code::einsum && !labelled(s, in)) return false;
    if (s.op == op_code::clip_factor && in[0].rank != 0) return false;
    if (s.op == op_code::embedding_dw) s.a = embedding_attr(s, in);
    const sw::outcome o =
        s.op == op_code::custom ? sw::infer(operation_of(s).record, s.a, in, s.inputs) : sw::infer(s.op, s.a, in, s.inputs);
    if (o.error) return false;
    k.s = o.out;
    return true;
  }
  static bool labelled(const statement& s, const spec* in) {
    for (int k = 0; k < 2; ++k)
      if (sw::rules::label_count(s.a.v[k]) != in[k].rank) return false;
    return true;
  }
  // Where the rows of the table would be: of the axes on which only the cotangent's rows could be.
  static sw::op_attr embedding_attr(const statement& s, const spec* in) {
    sw::op_attr a{{s.a.v[0], 0, 0, 0, 0, 0}};
    for (int x = 0; x < in[0].axes; ++x)
      if (in[0].place[x].is_reduced()) a.v[1 + x] = sw::pack(sw::shard_value(0));
    return a;
  }
  // to_local: blocks that are whole stand side by side along a dim. from_local: blocks of a shard are summands.
  bool claimed(statement& s, known& k) const {
    const spec& x = of(s.in[0]);
    if (!sw::is_floating(x.type) || !sw::is_contiguous(x) || has_partial(x)) return false;
    k.s = x;
    const int d = static_cast<int>(s.f);
    if (s.bound == 0) {
      const sw::detail::local_outcome o = sw::detail::local_spec(x);
      if (o.error) return false;
      k.s = o.out;
      for (int a = 0; a < x.axes; ++a)
        s.a.v[a] = sw::pack(x.place[a].is_shard()                           ? x.place[a]
                            : x.place[a].is_reduced() || x.axis_size[a] > 1 ? sw::partial_value()
                                                                            : placement{});
    } else {
      if (d >= x.rank) return false;
      for (int a = 0; a < x.axes; ++a) {
        s.a.v[a] = sw::pack(sw::dual(x.place[a]));
        if (!x.place[a].is_shard(d)) continue;
        if (x.extent[d] % x.axis_size[a] != 0) return false;
        k.s.place[a] = sw::partial_value();
        k.s.extent[d] /= x.axis_size[a];
      }
      for (int a = 0; a < x.axes; ++a)
        if (k.s.place[a].is_whole() && x.axis_size[a] > 1) return false;
      sw::make_contiguous(k.s);
      if (sw::check_placements(k.s)) return false;
    }
    return sw::same_blocks(x, k.s);
  }

  // Integers must stay where they may be used as indices.
  bool limited(const statement& s, known& k) {
    const auto limit = [&](int j) { return at[static_cast<std::size_t>(s.in[j])].limit; };
    const auto extent = [&](int j, std::int64_t d) {
      const spec& x = of(s.in[j]);
      return d >= 0 && d < x.rank ? x.extent[d] : 0;
    };
    const bool any = s.inputs > 1 && sw::index_operand(s.op) > 0 && sw::numel(of(s.in[sw::index_operand(s.op)])) > 0;
    switch (s.op) {
      case op_code::gather:
      case op_code::index_select:
      case op_code::scatter_dsrc:
      case op_code::scatter:
        if (any && limit(1) > extent(0, s.a.v[0])) return false;
        break;
      case op_code::scatter_add:
      case op_code::index_add:
        if (any && limit(1) > s.a.v[1]) return false;
        break;
      case op_code::embedding:
        if (any && limit(1) > extent(0, 0)) return false;
        break;
      case op_code::embedding_dw:
      case op_code::take_dx:
        if (any && limit(1) > s.a.v[0]) return false;
        break;
      case op_code::take:
        if (any && limit(1) > extent(0, of(s.in[0]).rank - 1)) return false;
        break;
      case op_code::nll:
        if (any && limit(2) > extent(0, of(s.in[0]).rank - 1)) return false;
        break;
      case op_code::nll_dx:
        if (any && limit(3) > extent(1, of(s.in[1]).rank - 1)) return false;
        break;
      case op_code::one_hot:
        if (sw::numel(of(s.in[0])) > 0 && limit(0) > s.a.v[0]) return false;
        break;
      default: break;
    }
    if (sw::is_floating(k.s.type)) return true;
    switch (s.op) {
      case op_code::input: k.limit = s.bound; return s.bound > 0;
      case op_code::fill: k.limit = static_cast<std::int64_t>(s.f < 0 ? 0 : s.f) + 1; return s.f >= 0 && s.f < 1e6;
      case op_code::arange:
        k.limit = s.a.v[0] + s.a.v[1] * (k.s.extent[0] > 0 ? k.s.extent[0] - 1 : 0) + 1;
        return s.a.v[0] >= 0 && s.a.v[1] >= 0;
      case op_code::topk: k.limit = extent(0, of(s.in[0]).rank - 1); return true;
      case op_code::getitem:  // positions in a row, or in a plane of an image
        k.limit = extent(0, of(s.in[0]).rank - 1);
        if (const sw::node& all = b_.nodes[s.in[0]]; b_.customs[all.a.v[sw::custom_word]] == &sw::custom::max_pool2d)
          k.limit = of(all.in[0]).extent[2] * of(all.in[0]).extent[3];
        return true;
      case op_code::one_hot: k.limit = 2; return true;
      case op_code::copy_: k.limit = limit(0); return limit(1) <= limit(0);
      default: break;
    }
    if (sw::is_comparison(s.op)) {
      k.limit = 2;
      return true;
    }
    k.limit = 1;  // what is padded
    for (int j = 0; j < s.inputs; ++j)
      if (j != sw::index_operand(s.op) && limit(j) > k.limit) k.limit = limit(j);
    if (s.op == op_code::constant_pad) {
      if (s.f < 0) return false;
      if (static_cast<std::int64_t>(s.f) + 1 > k.limit) k.limit = static_cast<std::int64_t>(s.f) + 1;
    }
    return true;
  }

  sw::builder b_;
  std::vector<bool> waited_, detached_;  // the second by root
};

// Whether a scalar may be differentiated, as train steps ask it.
inline bool is_loss(const spec& s) {
  if (s.rank != 0 || !sw::is_floating(s.type)) return false;
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_shard() || (s.place[a].is_partial() && s.place[a].op != sw::reduction::sum)) return false;
  return true;
}

// The program without what is not admitted and what depends on it. False: nothing is left to see.
inline bool tidy(program& p) {
  program q = p;
  q.body.clear();
  std::vector<int> to(p.body.size(), -1);
  assembly a;
  for (std::size_t i = 0; i < p.body.size(); ++i) {
    statement s = p.body[i];
    bool whole = true;
    for (int k = 0; k < s.inputs; ++k) {
      s.in[k] = s.in[k] < 0 || s.in[k] >= static_cast<int>(i) ? -1 : to[static_cast<std::size_t>(s.in[k])];
      whole = whole && s.in[k] >= 0;
    }
    if (!whole || !a.admit(s, q)) continue;
    to[i] = static_cast<int>(q.body.size());
    q.body.push_back(s);
  }
  const auto moved = [&](int i) { return i < 0 || i >= static_cast<int>(to.size()) ? -1 : to[static_cast<std::size_t>(i)]; };
  q.root = moved(p.root);
  q.outputs.clear();
  for (const int o : p.outputs)
    if (moved(o) >= 0 && !a.at[static_cast<std::size_t>(moved(o))].pending) q.outputs.push_back(moved(o));
  if (q.what != kind::forward) {
    if (q.root < 0) return false;
    if (!is_loss(a.of(q.root))) return false;
  }
  int params = 0;
  for (statement& s : q.body)
    if (s.op == op_code::param) s.a.v[0] = params++;
  if (q.what == kind::training && (params < 1 || params > 3)) return false;
  p = q;
  return !p.outputs.empty() || p.what != kind::forward;
}

// --- text -----------------------------------------------------------------------------------------------------------------

inline std::string name(int i) { return "v" + std::to_string(i); }
inline std::string of_type(const spec& s) {
  return s.type == sw::dtype::f32 ? "f32" : s.type == sw::dtype::f64 ? "f64" : "i32";
}
inline std::string shown(const spec& s) {
  std::string t = of_type(s) + sw::extents_text(s) + " {";
  for (int a = 0; a < s.axes; ++a) t += (a ? ", " : "") + sw::to_string(s.place[a]);
  return t + "}";
}

template <class Names>
std::string text_of(const program& p, Names&& pass_name) {
  std::string t = "mesh(";
  for (int a = 0; a < p.axes; ++a) t += (a ? ", " : "") + std::to_string(p.sizes[a]);
  t += std::string(")") + (p.special ? ", special values" : "") +
       (p.iterations > 1 ? ", " + std::to_string(p.iterations) + " iterations" : "") + "\n";
  assembly a;
  for (std::size_t i = 0; i < p.body.size(); ++i) {
    const statement& s = p.body[i];
    if (!a.admit(s, p)) return t + "  (statement " + std::to_string(i) + " is not admitted)\n";
    t += "  " + name(static_cast<int>(i)) + " = " +
         (s.op == op_code::custom ? operation_of(s).name.value : sw::name_of(s.op)) + "(";
    for (int k = 0; k < s.inputs; ++k) t += (k ? ", " : "") + name(s.in[k]);
    int last = 5;
    while (last >= 0 && s.a.v[last] == 0) --last;
    if (s.op == op_code::redistribute) {
      t += "; axis " + std::to_string(s.a.v[0]) + " to " + sw::to_string(sw::unpack_placement(s.a.v[1]));
    } else {
      for (int k = 0; k <= last; ++k) t += (k ? " " : "; ") + std::to_string(s.a.v[k]);
    }
    if (s.pending) t += "; on its way";
    if (s.f != 0) t += "; f " + std::to_string(s.f);
    if (s.op == op_code::input && !sw::is_floating(s.given.type)) t += "; below " + std::to_string(s.bound);
    t += ")  " + shown(a.of(static_cast<int>(i))) + "\n";
  }
  t += "  outputs";
  for (const int o : p.outputs) t += " " + name(o);
  if (p.what != kind::forward)
    t += std::string(p.what == kind::gradient ? ", gradients of " : ", a training step on ") + name(p.root);
  if (p.what == kind::gradient) {
    t += " by inputs";
    for (int k = 0; k < 64; ++k)
      if ((p.wanted >> k) & 1U) t += " " + std::to_string(k);
  }
  if (p.what == kind::training) t += " with optimizer " + std::to_string(p.optimizer);
  t += "\n";
  if (!p.passes.empty()) {
    t += "  passes";
    for (const int k : p.passes) t += " " + pass_name(k);
    t += "\n";
  }
  if (!p.moves.empty()) t += "  " + std::to_string(p.moves.size()) + " move(s) to the next iteration\n";
  return t;
}

// The same as lines for a builder, to be pasted into a test.
inline std::string lines_of(const program& p) {
  std::string t = "  fuzz::program p;\n  p.axes = " + std::to_string(p.axes) + ";\n";
  for (int a = 0; a < p.axes; ++a) t += "  p.sizes[" + std::to_string(a) + "] = " + std::to_string(p.sizes[a]) + ";\n";
  for (std::size_t i = 0; i < p.body.size(); ++i) {
    const statement& s = p.body[i];
    t += "  {\n    fuzz::statement s;\n    s.op = op_code::" + std::string(sw::name_of(s.op)) + ";\n";
    for (int k = 0; k < 6; ++k)
      if (s.a.v[k] != 0) t += "    s.a.v[" + std::to_string(k) + "] = " + std::to_string(s.a.v[k]) + ";\n";
    if (s.pending) t += "    s.pending = true;\n";
    if (s.f != 0) t += "    s.f = " + std::to_string(s.f) + ";\n";
    if (s.bound != 0) t += "    s.bound = " + std::to_string(s.bound) + ";\n";
    for (int k = 0; k < s.inputs; ++k) t += "    s.in[s.inputs++] = " + std::to_string(s.in[k]) + ";\n";
    if (s.inputs == 0) {
      t += "    s.given.type = sw::dtype::" + of_type(s.given) + ";\n    s.given.rank = " + std::to_string(s.given.rank) +
           ";\n";
      for (int d = 0; d < s.given.rank; ++d)
        t += "    s.given.extent[" + std::to_string(d) + "] = " + std::to_string(s.given.extent[d]) + ";\n";
      for (int a = 0; a < p.axes; ++a)
        t += "    s.given.place[" + std::to_string(a) + "] = sw::unpack_placement(" +
             std::to_string(sw::pack(s.given.place[a])) + ");\n";
    }
    t += "    p.body.push_back(s);\n  }\n";
  }
  t += "  p.outputs = {";
  for (std::size_t k = 0; k < p.outputs.size(); ++k) t += (k ? ", " : "") + std::to_string(p.outputs[k]);
  return t + "};\n";
}

// One line that is the program, for the list of those that failed once: it does not depend on how programs are drawn.
template <class Names>
std::string encoded(const program& p, Names&& pass_name) {
  std::string t = std::to_string(p.axes);
  const auto put = [&t](const std::string& v) { t += " " + v; };
  const auto real = [](double v) {
    char b[40];
    std::snprintf(b, sizeof b, "%.17g", v);
    return std::string(b);
  };
  for (int a = 0; a < p.axes; ++a) put(std::to_string(p.sizes[a]));
  for (const std::uint64_t v :
       {p.seed, static_cast<std::uint64_t>(p.what), static_cast<std::uint64_t>(p.special), p.wanted,
        static_cast<std::uint64_t>(p.optimizer), static_cast<std::uint64_t>(p.iterations), p.schedule})
    put(std::to_string(v));
  put(std::to_string(p.root));
  put(std::to_string(p.passes.size()));
  for (const int k : p.passes) put(pass_name(k));
  put(std::to_string(p.moves.size()));
  for (const std::uint64_t k : p.moves) put(std::to_string(k));
  put(std::to_string(p.outputs.size()));
  for (const int k : p.outputs) put(std::to_string(k));
  put(std::to_string(p.body.size()));
  for (const statement& s : p.body) {
    put(sw::name_of(s.op));
    for (const std::int64_t v : s.a.v) put(std::to_string(v));
    put(real(s.f));
    put(std::to_string(s.bound));
    put(std::to_string(s.pending ? 1 : 0));
    put(std::to_string(s.inputs));
    for (int k = 0; k < s.inputs; ++k) put(std::to_string(s.in[k]));
    put(std::to_string(static_cast<int>(s.given.type)));
    put(std::to_string(s.given.rank));
    for (int d = 0; d < s.given.rank; ++d) put(std::to_string(s.given.extent[d]));
    for (int a = 0; a < p.axes; ++a) put(std::to_string(sw::pack(s.given.place[a])));
  }
  return t;
}
// False: the line names an operation or a pass that there is no more, or is no program.
template <class Names>
bool decode(const std::string& line, program& p, Names&& pass_name, int pass_count) {
  std::istringstream in(line);
  const auto get = [&in](auto& v) { in >> v; };
  const auto number = [&in] {
    long long v = 0;
    in >> v;
    return v;
  };
  p = program{};
  get(p.axes);
  for (int a = 0; a < p.axes && a < sw::max_axes; ++a) get(p.sizes[a]);
  get(p.seed);
  p.what = static_cast<kind>(number());
  p.special = number() != 0;
  get(p.wanted);
  get(p.optimizer);
  get(p.iterations);
  get(p.schedule);
  get(p.root);
  for (long long k = number(); k > 0; --k) {
    std::string name;
    in >> name;
    int at = 0;
    while (at < pass_count && pass_name(at) != name) ++at;
    if (at == pass_count) return false;
    p.passes.push_back(at);
  }
  for (long long k = number(); k > 0; --k) {
    std::uint64_t v = 0;
    in >> v;
    p.moves.push_back(v);
  }
  for (long long k = number(); k > 0; --k) p.outputs.push_back(static_cast<int>(number()));
  for (long long k = number(); k > 0 && in; --k) {
    statement s;
    std::string name;
    in >> name;
    int op = 0;
    while (op < static_cast<int>(op_code::count) && name != sw::name_of(static_cast<op_code>(op))) ++op;
    if (op == static_cast<int>(op_code::count)) return false;
    s.op = static_cast<op_code>(op);
    for (std::int64_t& v : s.a.v) get(v);
    get(s.f);
    get(s.bound);
    s.pending = number() != 0;
    get(s.inputs);
    for (int j = 0; j < s.inputs && j < sw::max_inputs; ++j) get(s.in[j]);
    s.given = sw::empty_spec(static_cast<sw::dtype>(number()), p.axes, p.sizes, sw::device_kind::host);
    s.given.rank = static_cast<std::uint8_t>(number());
    for (int d = 0; d < s.given.rank && d < sw::max_rank; ++d) get(s.given.extent[d]);
    sw::make_contiguous(s.given);
    for (int a = 0; a < p.axes; ++a) s.given.place[a] = sw::unpack_placement(number());
    p.body.push_back(s);
  }
  return static_cast<bool>(in) && tidy(p);
}

}  // namespace fuzz
