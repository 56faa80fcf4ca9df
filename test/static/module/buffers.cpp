// SPDX-License-Identifier: Apache-2.0
// Buffers and modes in types and graphs: where plans place buffers, what a step counts, differentiates and stores, and which
// modules train under which plan.
#include <type_traits>

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/hana.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace {

namespace sw = shardwise;
using sw::op_code;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

// --- where a buffer lies ------------------------------------------------------------------------------------------------

// Two parameters with a buffer between them, by both ways of registration.
template <class Bound = sw::unbound>
struct listed : sw::module<listed<Bound>, Bound> {
  static constexpr sw::module_kind kind = sw::module_kind::linear;
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<8, 4>, sw::init::ones>, weight),
                    (sw::buffer<sw::shape<8>, sw::init::ones>, held), (sw::parameter<sw::shape<8>, sw::init::zeros>, bias));
  constexpr auto forward(const auto& x) const {
    const auto y = sw::linear_product(x, weight) + bias;
    sw::lerp_(held, bias, 0.5);
    return y;
  }
};
template <class Bound = sw::unbound>
struct by_hand : sw::module<by_hand<Bound>, Bound> {
  static constexpr sw::module_kind kind = sw::module_kind::linear;
  using weight_type = sw::parameter<sw::shape<8, 4>, sw::init::ones, sw::child<Bound, 0>>;
  using held_type = sw::buffer<sw::shape<8>, sw::init::ones, sw::child<Bound, 1>>;
  using bias_type = sw::parameter<sw::shape<8>, sw::init::zeros, sw::child<Bound, 2>>;
  BOOST_HANA_DEFINE_STRUCT(by_hand, (weight_type, weight), (held_type, held), (bias_type, bias));
  constexpr auto forward(const auto& x) const {
    const auto y = sw::linear_product(x, weight) + bias;
    sw::lerp_(held, bias, 0.5);
    return y;
  }
};
template <template <class> class Model, class Plan>
constexpr sw::spec held = decltype(sw::bind<Model, Plan, mesh>{}.held)::sp;
template <template <class> class Model>
constexpr bool placed =
    held<Model, sw::plan<>>.place[0].is_replicate() && held<Model, sw::plan<>>.place[1].is_replicate() &&
    held<Model, sw::plan<sw::data_parallel<dp>>>.place[0].is_reduced() &&
    held<Model, sw::plan<sw::data_parallel<dp>, sw::at<"", sw::prepare_output<tp, sw::replicate>>>>.place[1].is_replicate();
static_assert(placed<listed> && placed<by_hand>);

// --- what a step makes of it ----------------------------------------------------------------------------------------------

struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<6, 4>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto y = model(x);
    return sw::mean(y * y);
  }
};
using plan = sw::plan<sw::data_parallel<dp>>;
template <template <class> class Model, class Plan = plan>
using train = sw::train_step<Model, task, Plan, mesh, sw::adam<>>;
template <template <class> class Model, class Plan = plan>
using forward = sw::forward_step<Model, task, Plan, mesh>;

template <class Step>
constexpr int count(op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}
template <template <class> class Model>
constexpr bool stored_once = [] {
  using step = train<Model>;
  const auto& g = step::program;
  bool good = step::parameter_total == 2 && step::buffer_total == 1 && count<step>(op_code::module_buffer) == 1 &&
              count<step>(op_code::param) == 2 && count<step>(op_code::state) == 4 && count<step>(op_code::adam) == 2 &&
              count<step>(op_code::assign) == 1;
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    if (n.op == op_code::assign) good = good && g.nodes[n.in[0]].op == op_code::module_buffer;
    if (n.op == op_code::adam) good = good && g.nodes[n.in[0]].op == op_code::param;
  }
  // the table: parameters in their order, then the buffer
  const auto& t = step::parameters;
  return good && t.item[0].name[0] == 'w' && t.item[1].name[0] == 'b' && t.item[2].name[0] == 'h' &&
         step::memory_use::value.kind[static_cast<int>(sw::memory_kind::buffers)] == 64;
}();
static_assert(stored_once<listed> && stored_once<by_hand>);

// A program that writes a buffer more than once, also in part, stores it once; one that reads it alone does not.
template <class Bound = sw::unbound>
struct counting : sw::module<counting<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<4>, sw::init::ones>, factor),
                    (sw::buffer<sw::shape<4>, sw::init::zeros>, seen), (sw::buffer<sw::shape<4>, sw::init::ones>, offset));
  constexpr auto forward(const auto& x) const {
    sw::add_(seen, 1);
    sw::mul_(sw::narrow<0, 0, 2>(seen), 2);
    return x * factor + offset + seen;
  }
};
static_assert(count<train<counting>>(op_code::assign) == 1 && count<forward<counting>>(op_code::assign) == 1);

// --- gradients: what a buffer would lose is refused, and nothing else ---------------------------------------------------------

// Its forward: Forward{}(what the layer gives, the mean of that over the batch, the batch's own mean, buffer).
template <class Forward>
struct written_by {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<4, 4>, net), (sw::buffer<sw::shape<4>, sw::init::zeros>, held));
    constexpr auto forward(const auto& x) const {
      const auto h = net(x);
      return Forward{}(h, sw::redistribute<dp, sw::reduced>(sw::mean<0>(h)),
                       sw::redistribute<dp, sw::reduced>(sw::mean<0>(x)), held);
    }
  };
  template <class B>
  using model_of = model<B>;
};
template <class Forward>
constexpr sw::finding lost = [] {
  using trace = sw::traced<written_by<Forward>::template model_of, task, plan, mesh>;
  return sw::detail::buffer_problem<trace>(trace::value, trace::value.outputs[0]);
}();
template <class Forward>
constexpr bool refused = lost<Forward>.what == sw::problem::buffer_gradient;

struct never_read {
  constexpr auto operator()(const auto& h, const auto& mean, const auto&, const auto& held) const {
    const auto y = h - held;
    sw::lerp_(held, mean, 0.5);
    sw::lerp_(held, mean, 0.5);
    return y;
  }
};
struct read_behind {
  constexpr auto operator()(const auto& h, const auto& mean, const auto&, const auto& held) const {
    sw::lerp_(held, mean, 0.5);
    return h - held;
  }
};
struct read_by_way_of_a_tensor {  // that is written itself
  constexpr auto operator()(const auto& h, const auto& mean, const auto&, const auto& held) const {
    sw::copy_(held, mean);
    const auto y = h * 2;
    sw::copy_(sw::narrow<1, 0, 2>(y), sw::narrow<1, 0, 2>(h - held));
    return y;
  }
};
struct view_read_behind {
  constexpr auto operator()(const auto& h, const auto& mean, const auto&, const auto& held) const {
    const auto part = sw::narrow<0, 0, 2>(held);
    sw::add_(part, sw::narrow<0, 2, 2>(mean));
    return sw::narrow<1, 0, 2>(h) * part;
  }
};
struct of_the_input {
  constexpr auto operator()(const auto& h, const auto&, const auto& given, const auto& held) const {
    sw::lerp_(held, given, 0.5);
    return h - held;
  }
};
struct overwritten {
  constexpr auto operator()(const auto& h, const auto& mean, const auto&, const auto& held) const {
    sw::copy_(held, mean);
    sw::zero_(held);
    return h - held;
  }
};
struct partly_overwritten {
  constexpr auto operator()(const auto& h, const auto& mean, const auto&, const auto& held) const {
    sw::copy_(held, mean);
    sw::zero_(sw::narrow<0, 0, 2>(held));
    return h - held;
  }
};
struct value_read {
  constexpr auto operator()(const auto& h, const auto& mean, const auto&, const auto& held) const {
    const auto now = sw::lerp(held, mean, 0.5);
    sw::copy_(held, now);
    return h - now;
  }
};
static_assert(!refused<never_read> && !refused<of_the_input> && !refused<overwritten> && !refused<value_read>);
static_assert(refused<read_behind> && refused<read_by_way_of_a_tensor> && refused<view_read_behind> &&
              refused<partly_overwritten>);
// The node is the one that reads it.
static_assert([] {
  using trace = sw::traced<written_by<read_behind>::model_of, task, plan, mesh>;
  return trace::value.nodes[lost<read_behind>.operand].op == op_code::sub;
}());
static_assert(count<train<written_by<never_read>::model_of>>(op_code::assign) == 1);
static_assert(count<forward<written_by<read_behind>::model_of>>(op_code::assign) == 1);  // without gradients nothing is lost

// --- modes --------------------------------------------------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct leaf : sw::module<leaf<Bound>, Bound> {
  template <class B = Bound>
  static constexpr bool trains = sw::training<B>;
  constexpr auto forward(const auto& x) const { return x; }
};
template <class B>
using leaf_of = leaf<B>;
template <class Bound = sw::unbound>
struct branch : sw::module<branch<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<3, leaf_of>, leaves), (leaf<>, last));
  template <class B = Bound>
  static constexpr bool trains = sw::training<B>;
  constexpr auto forward(const auto& x) const { return last(leaves(x)); }
};
template <class Bound = sw::unbound>
struct tree : sw::module<tree<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (branch<>, left), (branch<>, right));
  template <class B = Bound>
  static constexpr bool trains = sw::training<B>;
  constexpr auto forward(const auto& x) const { return right(left(x)); }
};
// Bits: the tree, left, left.last, left.leaves.1, right, right.last, right.leaves.1.
template <sw::run_mode Mode, class... Entries>
constexpr int modes = [] {
  using bound = sw::bind<tree, sw::plan<Entries...>, mesh, float, Mode>;
  using left = decltype(bound{}.left);
  using right = decltype(bound{}.right);
  const auto second = [](const auto& list) {
    if constexpr (std::remove_cvref_t<decltype(list)>::uniform) return list.items[1].template trains<>;
    else return std::get<1>(list.items).template trains<>;
  };
  return (bound::template trains<> ? 64 : 0) + (left::template trains<> ? 32 : 0) +
         (decltype(left{}.last)::template trains<> ? 16 : 0) + (second(left{}.leaves) ? 8 : 0) +
         (right::template trains<> ? 4 : 0) + (decltype(right{}.last)::template trains<> ? 2 : 0) +
         (second(right{}.leaves) ? 1 : 0);
}();
inline constexpr auto trained = sw::run_mode::train, evaluated = sw::run_mode::eval, unsaid = sw::run_mode::unsaid;
static_assert(modes<trained> == 0b1111111 && modes<evaluated> == 0);
static_assert(modes<trained, sw::eval_mode> == 0 && modes<unsaid, sw::train_mode> == 0b1111111);
static_assert(modes<evaluated, sw::at<"", sw::train_mode>> == 0b1111111);
static_assert(modes<trained, sw::at<"left", sw::eval_mode>> == 0b1000111);
static_assert(modes<trained, sw::at<"*", sw::eval_mode>> == 0b1000000);
static_assert(modes<trained, sw::at<"left", sw::eval_mode>, sw::at<"left.last", sw::train_mode>> == 0b1010111);
static_assert(modes<trained, sw::at<"left.last", sw::train_mode>, sw::at<"left", sw::eval_mode>> == 0b1000111);
static_assert(modes<trained, sw::at<"right.leaves", sw::eval_mode>> == 0b1111110);  // a list has a mode, and no style
static_assert(modes<trained, sw::at<"right.leaves.1", sw::eval_mode>> == 0b1111110);
static_assert(modes<trained, sw::at<"right.leaves.2", sw::eval_mode>> == 0b1111111);
static_assert(modes<evaluated, sw::at<"left.last", sw::train_mode>, sw::eval_mode> ==
              0b0010000);  // entries without a path first
// Modes change no placement.
static_assert(held<listed, sw::plan<sw::data_parallel<dp>, sw::eval_mode>> == held<listed, plan>);

// --- dropout follows ------------------------------------------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct thinned : sw::module<thinned<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 4>, net), (sw::dropout_module<1, 4>, first), (sw::dropout_module<1, 2>, second));
  constexpr auto forward(const auto& x) const { return second(net(first(x))); }
};
template <class Bound = sw::unbound>
struct thinned_by_hand : sw::module<thinned_by_hand<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 4>, net));
  constexpr auto forward(const auto& x) const { return sw::dropout(net(sw::dropout(x, 0.25)), 0.5); }
};
// Equal but for the modules that nodes belong to.
template <class A, class B>
constexpr bool same_nodes() {
  const auto& a = A::program;
  const auto& b = B::program;
  if (a.node_count != b.node_count || a.sites != b.sites) return false;
  for (int i = 0; i < a.node_count; ++i) {
    const sw::node &x = a.nodes[i], &y = b.nodes[i];
    bool same = x.op == y.op && x.f == y.f && x.inputs == y.inputs && a.spec_of(i) == b.spec_of(i);
    for (int k = 0; same && k < x.inputs; ++k) same = x.in[k] == y.in[k];
    for (int k = 0; same && k < 6; ++k) same = x.a.v[k] == y.a.v[k];
    if (!same) return false;
  }
  return true;
}
static_assert(same_nodes<train<thinned>, train<thinned_by_hand>>() && train<thinned>::program.sites == 2);
static_assert(count<forward<thinned>>(op_code::dropout) == 0 && forward<thinned>::program.sites == 0);
static_assert(count<forward<thinned, sw::plan<sw::data_parallel<dp>, sw::train_mode>>>(op_code::dropout) == 2);
static_assert(count<train<thinned, sw::plan<sw::data_parallel<dp>, sw::eval_mode>>>(op_code::dropout) == 0);
static_assert(train<thinned, sw::plan<sw::data_parallel<dp>, sw::at<"second", sw::eval_mode>>>::program.sites == 1);

}  // namespace
