// SPDX-License-Identifier: Apache-2.0
// What eager models are bound to: a plan's parameters become tensors of their ranks, in the element type that is asked for.
#include <shardwise/module/eager.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/runtime/fake/fake.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace {

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;

using context = sw::eager_context<mesh, sw::dtype::f64>;
static_assert(std::is_same_v<context::mesh_type, mesh> && context::type == sw::dtype::f64);
constexpr sw::spec rows = sw::spec_of<double, sw::shape<6, 4>, mesh, sw::shard<0>>::value;
template <class Context, class Rank, sw::spec S>
constexpr bool holds() {  // a function: nvcc cannot write such a class into host code
  return std::is_same_v<typename Context::template tensor<S>, sw::dtensor<S, mesh, Rank>>;
}
static_assert(holds<context, sw::thread_rank<mesh>, rows>());
static_assert(holds<sw::eager_context<mesh, sw::dtype::f32, sw::fake_rank<mesh>>, sw::fake_rank<mesh>, rows>());

#if !defined(__CUDACC__)  // nvcc cannot write a binding's state into host code
template <class Bound = sw::unbound>
struct one : sw::module<one<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 6>, fc));
  constexpr auto forward(const auto& x) const { return fc(x); }
};
// A model of such a context has in its members what the context makes of the plan's placements.
using bound = sw::bind_eager<one, sw::plan<sw::at<"fc", sw::colwise<tp>>>, mesh, double, sw::fake_rank<mesh>>;
static_assert(std::is_base_of_v<sw::eager_context<mesh, sw::dtype::f64, sw::fake_rank<mesh>>, bound::bound::context>);
using weight = std::remove_cvref_t<decltype(bound{}.fc.weight)>;
static_assert(std::is_base_of_v<sw::dtensor<weight::sp, mesh, sw::fake_rank<mesh>>, weight> &&
              weight::sp.place[0].is_shard(0) && weight::sp.type == sw::dtype::f64);
#endif

}  // namespace
