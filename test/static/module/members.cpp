// SPDX-License-Identifier: Apache-2.0
// SHARDWISE_MEMBERS: every form of member and of module; the program is that of the same model written with
// BOOST_HANA_DEFINE_STRUCT and children by hand, under plans that treat equal members differently.
#include <boost/hana/at_key.hpp>
#include <boost/hana/equal.hpp>
#include <boost/hana/keys.hpp>
#include <string_view>
#include <type_traits>

#include <shardwise/module/hana.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace {

namespace sw = shardwise;
namespace hana = boost::hana;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

// --- where a module's binding stands -----------------------------------------------------------------------------------

struct sizes {
  static constexpr int width = 8, hidden = 16, layers = 3;
};
enum class form { plain, scaled };

template <class Bound = sw::unbound>
struct alone : sw::module<alone<Bound>, Bound> {};
template <class C, class Bound = sw::unbound>
struct after_type : sw::module<after_type<C, Bound>, Bound> {};
template <int N, class Bound = sw::unbound>
struct after_value : sw::module<after_value<N, Bound>, Bound> {};
template <int N, long M, form F, class C, class Bound = sw::unbound>
struct after_many : sw::module<after_many<N, M, F, C, Bound>, Bound> {};
template <class Bound = sw::unbound, bool Bias = true>
struct before_value : sw::module<before_value<Bound, Bias>, Bound> {};
template <class C, class Bound = sw::unbound, bool Bias = true, int N = 2>
struct between : sw::module<between<C, Bound, Bias, N>, Bound> {};
template <class C, int N, class Bound = sw::unbound>
struct type_value : sw::module<type_value<C, N, Bound>, Bound> {};
template <int In, int Out, class Bound = sw::unbound, bool Bias = true, class Init = sw::init::zeros>
struct like_linear : sw::module<like_linear<In, Out, Bound, Bias, Init>, Bound> {};
template <class... Inner>
struct of_members : sw::module<of_members<Inner...>, sw::unbound> {};

struct other;
template <class T>
using to_other = typename sw::detail::rebind<T, other>::type;
static_assert(std::is_same_v<to_other<alone<>>, alone<other>>);
static_assert(std::is_same_v<to_other<after_type<sizes>>, after_type<sizes, other>>);
static_assert(std::is_same_v<to_other<after_value<3>>, after_value<3, other>>);
static_assert(std::is_same_v<to_other<after_many<1, 2, form::scaled, sizes>>, after_many<1, 2, form::scaled, sizes, other>>);
static_assert(std::is_same_v<to_other<before_value<sw::unbound, false>>, before_value<other, false>>);
static_assert(std::is_same_v<to_other<between<sizes, sw::unbound, false, 5>>, between<sizes, other, false, 5>>);
static_assert(std::is_same_v<to_other<type_value<sizes, 4>>, type_value<sizes, 4, other>>);
static_assert(std::is_same_v<to_other<like_linear<2, 3>>, like_linear<2, 3, other>>);
static_assert(std::is_same_v<to_other<sw::linear<2, 3, sw::unbound, false>>, sw::linear<2, 3, other, false>>);
// a module that is an argument keeps its own binding
static_assert(std::is_same_v<to_other<after_type<sw::linear<2, 3>>>, after_type<sw::linear<2, 3>, other>>);

// --- one model in both spellings ---------------------------------------------------------------------------------------

// x + inner(x), of any module; a parameter of its own; a bias that a switch leaves out; no member at all.
template <class Inner, class Bound = sw::unbound>
struct residual : sw::module<residual<Inner, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (Inner, inner));
  constexpr auto forward(const auto& x) const { return x + inner(x); }
};
template <int Width, bool Bias, class Bound = sw::unbound>
struct scale_by : sw::module<scale_by<Width, Bias, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<Width>, sw::init::ones>, weight),
                    (std::conditional_t<Bias, sw::parameter<sw::shape<Width>, sw::init::zeros>, sw::absent>, bias));
  constexpr auto forward(const auto& x) const {
    if constexpr (Bias) return x * weight + bias;
    else return x * weight;
  }
};
template <class Bound = sw::unbound>
struct activation : sw::module<activation<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound);
  constexpr auto forward(const auto& x) const { return sw::gelu(x); }
};
template <class C, class Bound = sw::unbound>
struct feed : sw::module<feed<C, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::layer_norm_module<C::width>, norm), (sw::linear<C::width, C::hidden>, up),
                    (activation<>, act), (sw::linear<C::hidden, C::width, sw::unbound, false>, down));
  constexpr auto forward(const auto& x) const { return down(act(up(norm(x)))); }
};
template <class Bound>
using layer = residual<feed<sizes>, Bound>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<sizes::width, sizes::width>, first), (sw::repeat<sizes::layers, layer>, layers),
                    (scale_by<sizes::width, true>, scale), (scale_by<sizes::width, false>, rate),
                    (sw::linear<sizes::width, sizes::width>, last));
  constexpr auto forward(const auto& x) const { return last(rate(scale(layers(first(x))))); }
};

template <class Bound = sw::unbound>
struct old_activation : sw::module<old_activation<Bound>, Bound> {
  constexpr auto forward(const auto& x) const { return sw::gelu(x); }
};
template <class C, class Bound = sw::unbound>
struct old_feed : sw::module<old_feed<C, Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(old_feed, (sw::layer_norm_module<C::width, sw::child<Bound, 0>>, norm),
                           (sw::linear<C::width, C::hidden, sw::child<Bound, 1>>, up),
                           (old_activation<sw::child<Bound, 2>>, act),
                           (sw::linear<C::hidden, C::width, sw::child<Bound, 3>, false>, down));
  constexpr auto forward(const auto& x) const { return down(act(up(norm(x)))); }
};
template <class Bound = sw::unbound>
struct old_residual : sw::module<old_residual<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(old_residual, (old_feed<sizes, sw::child<Bound, 0>>, inner));
  constexpr auto forward(const auto& x) const { return x + inner(x); }
};
template <class Bound = sw::unbound>
struct old_scale : sw::module<old_scale<Bound>, Bound> {
  using weight_type = sw::parameter<sw::shape<sizes::width>, sw::init::ones, sw::child<Bound, 0>>;
  using bias_type = sw::parameter<sw::shape<sizes::width>, sw::init::zeros, sw::child<Bound, 1>>;
  BOOST_HANA_DEFINE_STRUCT(old_scale, (weight_type, weight), (bias_type, bias));
  constexpr auto forward(const auto& x) const { return x * weight + bias; }
};
template <class Bound = sw::unbound>
struct old_rate : sw::module<old_rate<Bound>, Bound> {
  using weight_type = sw::parameter<sw::shape<sizes::width>, sw::init::ones, sw::child<Bound, 0>>;
  BOOST_HANA_DEFINE_STRUCT(old_rate, (weight_type, weight));
  constexpr auto forward(const auto& x) const { return x * weight; }
};
template <class Bound = sw::unbound>
struct old_model : sw::module<old_model<Bound>, Bound> {
  using list_type = sw::repeat<sizes::layers, old_residual, sw::child<Bound, 1>>;
  BOOST_HANA_DEFINE_STRUCT(old_model, (sw::linear<sizes::width, sizes::width, sw::child<Bound, 0>>, first),
                           (list_type, layers), (old_scale<sw::child<Bound, 2>>, scale),
                           (old_rate<sw::child<Bound, 3>>, rate),
                           (sw::linear<sizes::width, sizes::width, sw::child<Bound, 4>>, last));
  constexpr auto forward(const auto& x) const { return last(rate(scale(layers(first(x))))); }
};
// children by hand are understood among SHARDWISE_MEMBERS too
template <class Bound = sw::unbound>
struct mixed_model : sw::module<mixed_model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<sizes::width, sizes::width, sw::child<Bound, 0>>, first),
                    (sw::repeat<sizes::layers, layer>, layers), (old_scale<>, scale),
                    (scale_by<sizes::width, false, Bound>, rate), (sw::linear<sizes::width, sizes::width>, last));
  constexpr auto forward(const auto& x) const { return last(rate(scale(layers(first(x))))); }
};

struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, sizes::width>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum(m(x)); }
};
// --- bindings: what a plan says differently is bound differently, all else shares one ----------------------------------------------

#if !defined(__CUDACC__)  // nvcc cannot write a binding's state into host code
using some_plan = sw::plan<sw::data_parallel<dp>, sw::at<"first", sw::colwise<tp, 1, sw::output<sw::replicate>>>>;
using bound_model = sw::bind<model, some_plan, mesh>;
template <class M>
using bound_of = typename std::remove_cvref_t<M>::bound;
template <class B>
struct parts_of {};
template <class Ctx, class Plan, auto State, class M>
struct parts_of<sw::binding<Ctx, Plan, State, M>> {
  using mesh_type = typename Ctx::mesh_type;
  using plan_type = Plan;
  using unbound_module = M;
};
using root = parts_of<bound_model::bound>;
static_assert(std::is_same_v<root::mesh_type, mesh> && std::is_same_v<root::plan_type, some_plan> &&
              std::is_same_v<root::unbound_module, model<>>);
using first_of = bound_of<decltype(bound_model::first)>;
using last_of = bound_of<decltype(bound_model::last)>;
static_assert(std::is_same_v<parts_of<first_of>::unbound_module, parts_of<last_of>::unbound_module> &&
              std::is_same_v<parts_of<first_of>::unbound_module, sw::linear<sizes::width, sizes::width>> &&
              !std::is_same_v<first_of, last_of>);
// Under a plan that says nothing of either they are one.
using plain_model = sw::bind<model, sw::plan<sw::data_parallel<dp>>, mesh>;
static_assert(std::is_same_v<decltype(plain_model::first), decltype(plain_model::last)>);
#endif

// equal members, equal blocks: each treated otherwise
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"first", sw::colwise<tp, 1, sw::output<sw::replicate>>>,
                      sw::at<"layers.1.inner.up", sw::colwise<tp>>, sw::at<"layers.1.inner.down", sw::rowwise<tp>>>;

template <template <class> class Model, class Plan>
using step = sw::train_step<Model, task, Plan, mesh>;

template <class A, class B>
constexpr bool same_program() {
  const auto& a = A::program;
  const auto& b = B::program;
  if (a.node_count != b.node_count || a.output_count != b.output_count || A::parameter_total != B::parameter_total)
    return false;
  for (int i = 0; i < a.node_count; ++i) {
    const sw::node &x = a.nodes[i], &y = b.nodes[i];
    if (x.op != y.op || x.inputs != y.inputs || !(x.a == y.a) || x.scope != y.scope || !(a.specs[x.spec] == b.specs[y.spec]))
      return false;
    for (int k = 0; k < x.inputs; ++k)
      if (x.in[k] != y.in[k]) return false;
  }
  for (int p = 0; p < A::parameter_total; ++p) {
    const auto &x = A::parameters.item[p], &y = B::parameters.item[p];
    if (std::string_view(x.name) != y.name || x.kind != y.kind || x.scale != y.scale || x.scope != y.scope) return false;
  }
  return A::peak_bytes == B::peak_bytes && A::template comm_bytes<tp> == B::template comm_bytes<tp>;
}
using whole = sw::plan<sw::data_parallel<dp>>;
static_assert(same_program<step<model, whole>, step<old_model, whole>>());
static_assert(same_program<step<model, plan>, step<old_model, plan>>());
static_assert(same_program<step<mixed_model, plan>, step<old_model, plan>>());
static_assert(step<model, plan>::comm_bytes<tp> != step<model, whole>::comm_bytes<tp>);

// --- as a Boost.Hana struct --------------------------------------------------------------------------------------------

static_assert(hana::Struct<model<>>::value);
static_assert(decltype(hana::length(hana::keys(model<>{})))::value == 5);
static_assert(decltype(hana::keys(scale_by<4, true>{}) == hana::make_tuple(hana::string_c<'w', 'e', 'i', 'g', 'h', 't'>,
                                                                           hana::string_c<'b', 'i', 'a', 's'>))::value);
static_assert(std::is_same_v<std::remove_cvref_t<decltype(hana::at_key(model<>{}, hana::string_c<'l', 'a', 's', 't'>))>,
                             sw::linear<sizes::width, sizes::width>>);

}  // namespace
