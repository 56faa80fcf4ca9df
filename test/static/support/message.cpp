// SPDX-License-Identifier: Apache-2.0
// Texts of errors as values: what a compiler that takes computed messages prints, compared under every compiler.
#include <limits>

#include <shardwise/graph/sym.hpp>
#include <shardwise/module/declared.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/support/message.hpp>

namespace sw = shardwise;
using sw::problem;

struct dp : sw::axis<2> {};
struct tp : sw::axis<4> {};
namespace mine {
struct ep : sw::axis<3> {};
struct data {};
template <class T, class U = int, class V = void>
struct pair_of {};
}  // namespace mine
namespace {
struct hidden : sw::axis<5> {};
}  // namespace
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 4>, net1));
  constexpr auto forward(const auto& x) const { return net1(x); }
};

// The facts alone, behind the sentence.
template <problem P, class... Facts>
constexpr bool says(std::string_view wanted) {
  constexpr std::string_view all = sw::message<P, Facts...>::view();
  const std::string_view sentence = sw::sentence(P);
  return all.size() == sentence.size() + wanted.size() && sw::detail::begins_at(all, 0, sentence) &&
         sw::detail::begins_at(all, sentence.size(), wanted);
}
template <class T>
constexpr bool is_written(std::string_view wanted) {
  sw::text_buffer<400> out;
  sw::written<T>::put(out);
  return out.view() == wanted;
}
constexpr bool spelled(std::string_view given, std::string_view wanted) {
  sw::text_buffer<400> out;
  sw::text::put_spelling(out, given);
  return out.view() == wanted;
}

// --- what compilers write, as users do --------------------------------------------------------------------------------
static_assert(spelled("shardwise::shard<0, 2>", "shard<0, 2>"));
static_assert(spelled("shardwise::op::add", "add"));
static_assert(spelled("shardwise::" SHARDWISE_VERSION_NAMESPACE "::op::add", "add"));
static_assert(spelled("shardwise::" SHARDWISE_VERSION_NAMESPACE "::shard<0>", "shard<0>") &&
              spelled("shardwise::v9::x", "v9::x"));
static_assert(spelled("net<mine, shardwise::unbound>", "net<mine>") && spelled("net<shardwise::unbound>", "net"));
static_assert(spelled("net<mine, shardwise::" SHARDWISE_VERSION_NAMESPACE "::unbound>", "net<mine>") &&
              spelled("net<shardwise::" SHARDWISE_VERSION_NAMESPACE "::unbound>", "net"));
static_assert(spelled("net<mine::unbound>", "net<mine::unbound>"));
static_assert(spelled("shardwise::pass_order::must_follow<shardwise::functionalise>", "must_follow<functionalise>"));
static_assert(spelled("op::add", "op::add"));  // a user's own
static_assert(spelled("my_shardwise::x", "my_shardwise::x"));
static_assert(spelled("{anonymous}::tp", "tp") && spelled("(anonymous namespace)::tp", "tp") &&
              spelled("<unnamed>::tp", "tp"));
static_assert(spelled("main()::tp", "tp") && spelled("f(int, std::pair<int, int>)::a<mine::b>", "a<mine::b>"));
static_assert(spelled("shardwise::at<shardwise::fixed_string<5>{\"net1\"}, shardwise::colwise<tp, 1> >",
                      "at<\"net1\", colwise<tp, 1>>"));
static_assert(spelled("at<fixed_string<5UL>{{\"a::b\"}}>", "at<\"a::b\">"));
static_assert(spelled("shape<4L, -8L, (long)16, (int)-3, 12UL>", "shape<4, -8, 16, -3, 12>"));
static_assert(spelled("partial<(shardwise::reduction)3>",
                      "partial<(reduction)3>"));  // the number of an enumerator says nothing alone
static_assert(spelled("const double &", "const double&") && spelled("int *", "int*"));
static_assert(spelled("mlp<shardwise::unbound>", "mlp") && spelled("linear<8, 6, shardwise::unbound>", "linear<8, 6>"));
static_assert(spelled("", "") && spelled("a \"b shardwise::c", "a \"b shardwise::c"));

static_assert(is_written<int>("std::int32_t") && is_written<float>("float") && is_written<dp>("dp"));
static_assert(is_written<mine::ep>("mine::ep"));
#if !defined(__CUDACC__)  // nvcc renames what has no name
static_assert(is_written<hidden>("hidden"));
#endif
static_assert(is_written<sw::shard<1>>("shard<1>") && is_written<sw::shard<-1, 16>>("shard<-1, 16>") &&
              is_written<sw::shard<>>("shard<>"));
static_assert(is_written<sw::partial<>>("partial<>") &&
              is_written<sw::partial<sw::reduction::max>>("partial<reduction::max>"));
static_assert(is_written<sw::on<tp, sw::even<sw::shard<0>>>>("on<tp, even<shard<0>>>"));
static_assert(is_written<sw::strided_shard<0, 2>>("strided_shard<0, 2>") &&
              is_written<sw::partial_norm<2>>("partial_norm<2>"));
static_assert(is_written<sw::shape<8, sw::dyn<16>>>("shape<8, dyn<16>>") && is_written<sw::shape<>>("shape<>"));
static_assert(is_written<mesh>("mesh<dp, tp>"));
static_assert(is_written<sw::colwise<tp>>("colwise<tp>") && is_written<sw::rowwise<tp, 16>>("rowwise<tp, 16>"));
static_assert(is_written<sw::rowwise<tp, 1, sw::output<sw::shard<1>>>>("rowwise<tp, 1, output<shard<1>>>"));
static_assert(is_written<sw::sequence_parallel<tp>>("sequence_parallel<tp>"));
#if !defined(__CUDACC__)  // nvcc does not specialise on strings
static_assert(is_written<sw::plan<sw::at<"net1", sw::colwise<tp>>, sw::at<"", sw::prepare_input<tp, sw::replicate>>>>(
    "plan<at<\"net1\", colwise<tp>>, at<\"\", prepare_input<tp, replicate>>>"));
#endif
static_assert(is_written<mine::pair_of<dp>>("mine::pair_of<dp>") &&
              is_written<mine::pair_of<dp, float>>("mine::pair_of<dp, float>"));
static_assert(is_written<mine::pair_of<dp, int, tp>>("mine::pair_of<dp, std::int32_t, tp>"));
static_assert(is_written<model<>>("model"));
static_assert(is_written<sw::sym<sw::spec_of<double, sw::shape<8, 16>, mesh, sw::on<tp, sw::shard<1>>>::value, mesh>>(
    "double[8, 16] (dp: replicate, tp: shard<1>)"));

// --- a text: the sentence, then facts by name -----------------------------------------------------------------------------
static_assert(sw::message<problem::mesh_bad_axis>::view() == sw::sentence(problem::mesh_bad_axis));  // no facts
static_assert(sw::message<problem::mesh_bad_axis>::size() == sw::sentence(problem::mesh_bad_axis).size());
static_assert(sw::message<problem::mesh_bad_axis>::data()[0] == 's');
static_assert(says<problem::mesh_axis_used_twice, dp, tp, mine::ep, hidden>(
    " Here: axes: \"dp\" of 2, \"tp\" of 4, \"ep\" of 3, \"hidden\" of 5."));
static_assert(says<problem::submesh_axes, mesh, mine::ep>(" Here: mesh: \"dp\" of 2, \"tp\" of 4; axis: \"ep\" of 3."));
static_assert(says<problem::submesh_axes, sw::mesh<sw::on_cuda, dp>>(" Here: mesh: on_cuda, \"dp\" of 2."));
static_assert(says<problem::element_type, mine::data>(" Here: given: mine::data."));
static_assert(says<problem::executor_rank, void, mesh>(" Here: mesh: \"dp\" of 2, \"tp\" of 4."));  // a fact without a value
static_assert(says<problem::executor_rank, void>(""));

// A finding's operand, dim, axis and numbers, and what the numbers are.
template <sw::finding F, class... Facts>
constexpr bool finds(std::string_view wanted) {
  using all = typename sw::detail::joined_lists<sw::detail::type_list<Facts...>,
                                                typename sw::detail::finding_facts<F, mesh>::type>::type;
  return [wanted]<class... All>(sw::detail::type_list<All...>) { return says<F.what, All...>(wanted); }(all{});
}
static_assert(
    finds<sw::finding{problem::uneven_shard, 0, 0, 1, 10, 4}>(" Here: dim: 0; axis: \"tp\" of 4; extent: 10; ranks: 4."));
static_assert(finds<sw::finding{problem::placement_count, 0, -1, -1, 3, 2}>(" Here: placements: 3; mesh axes: 2."));
static_assert(finds<sw::finding{problem::cat_shapes, 1, -1, -1, 2, 3}>(
    " Here: at fault: the second operand; rank: 2; required rank: 3."));
static_assert(finds<sw::finding{problem::cat_shapes, 1, 0, -1, 5, 7}>(
    " Here: at fault: the second operand; dim: 0; extent: 5; required extent: 7."));
static_assert(finds<sw::finding{problem::shard_dim_out_of_range, 0, -1, 0, -1, 2}>(
    " Here: axis: \"dp\" of 2; dim named: -1; rank: 2."));
static_assert(finds<sw::finding{problem::shard_block_does_not_divide, 0, 0, 0, 3, 1LL << 40}>(
    " Here: dim: 0; axis: \"dp\" of 2; block: 3; extent: 1099511627776."));
static_assert(finds<sw::finding{problem::meshes_differ}>(""));

// Operands by their elements, extents and placements; the axes are named where the mesh is among the facts.
using x = sw::operand_t<sw::spec_of<float, sw::shape<8, 16>, mesh, sw::on<tp, sw::shard<1>>>::value>;
using y = sw::operand_t<sw::spec_of<std::int32_t, sw::shape<sw::dyn<6>>, mesh, sw::on<dp, sw::partial<>>>::value>;
static_assert(says<problem::tensor_condition, x>(" Here: operand: float[8, 16] (replicate, shard<1>)."));
static_assert(says<problem::types_differ, sw::detail::where<sw::op::add, mesh, x, y>>(
    " Here: operation: add; operands: float[8, 16] (dp: replicate, tp: shard<1>), std::int32_t[dyn<6>] (dp: partial<>, tp: replicate); "
    "mesh: \"dp\" of 2, \"tp\" of 4."));
static_assert(
    says<problem::types_differ, sw::mesh<dp>, x>(" Here: mesh: \"dp\" of 2; operand: float[8, 16] (replicate, shard<1>)."));

// Places: module, node, what it reads.
#if !defined(__CUDACC__)  // nvcc does not specialise on strings
static_assert(
    says<problem::graph_unplaced, sw::in_module<"layers.3.attn">, sw::at_node<"relu_1">, sw::reading<"add", "einsum_2">>(
        " Here: module: layers.3.attn; node: relu_1; which reads: add, einsum_2."));
static_assert(
    says<problem::graph_unplaced, sw::in_module<"">, sw::at_node<"relu">>(" Here: module: the model itself; node: relu."));
static_assert(says<problem::child_index, sw::member_named<"net1">, sw::given<1>, sw::required<0>>(
    " Here: member: \"net1\"; given: 1; required: 0."));
static_assert(
    says<problem::plan_path_unmatched, sw::plan_entry<sw::at<"net9", sw::colwise<tp>>>, sw::nearest<"net1", "net2", "">>(
        " Here: plan_entry: at<\"net9\", colwise<tp>>; nearest: \"net1\", \"net2\"."));
static_assert(says<problem::child_index, sw::member_named<"net1">, sw::given_own_binding, sw::required<0>>(
    " Here: member: \"net1\"; given: Bound, the module's own; required: 0."));
#endif

static_assert(says<problem::dyn_declared, sw::have<1>, sw::want<sw::max_dyn_extent>, sw::dyn_size<7>>(
    " Here: bound: 1; largest bound: 281474976710655; size: 7."));

// A type of any length is cut.
template <int>
struct long_name_of_a_type_that_nobody_would_like_to_read_in_a_message {};
template <class... T>
struct many {};
template <int... I>
constexpr std::string_view many_names(std::integer_sequence<int, I...>) {
  return sw::message<problem::element_type,
                     many<long_name_of_a_type_that_nobody_would_like_to_read_in_a_message<I>...>>::view();
}
static_assert(many_names(std::make_integer_sequence<int, 40>{}).size() <= sw::sentence(problem::element_type).size() + 500);
static_assert(many_names(std::make_integer_sequence<int, 40>{})
                  .substr(many_names(std::make_integer_sequence<int, 40>{}).size() - 5) == " ....");

// The least number of its type has no positive twin.
static_assert([] {
  sw::text_buffer<30> out;
  sw::text::put(out, std::numeric_limits<std::int64_t>::min());
  return out.view() == "-9223372036854775808";
}());
