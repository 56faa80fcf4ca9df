// SPDX-License-Identifier: Apache-2.0
// What records of operations are made of: rules that are functions or constants, and what the library's records say with them.

#include <shardwise/operations/all.hpp>

namespace {

namespace sw = shardwise;
using sw::linearity;
using sw::op_code;
using sw::operation;
using sw::operation_of;
namespace operations = sw::operations;

constexpr sw::spec matrix(std::int64_t rows, std::int64_t columns) {
  const std::int32_t sizes[] = {2};
  sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
  s.rank = 2;
  s.extent[0] = rows;
  s.extent[1] = columns;
  sw::make_contiguous(s);
  return s;
}

// --- linear_rule: one linearity, or a function of attributes and operands -----------------------------------------------------

constexpr sw::linear_rule always(linearity::joint);
static_assert(always({}, 1) == linearity::joint && always({{1, 2, 3, 4, 5, 6}}, 8) == linearity::joint);
constexpr sw::linear_rule by_case([](const sw::op_attr& a, int n) {
  return a.v[0] != 0 ? linearity::first : n == 1 ? linearity::joint : linearity::each;
});
static_assert(by_case({}, 1) == linearity::joint && by_case({}, 2) == linearity::each &&
              by_case({{1}}, 2) == linearity::first);

// --- shape_rule: of one result, or of several by their numbers ---------------------------------------------------------------

constexpr sw::shape_rule of_one(&operations::like_second);
constexpr sw::shape_rule of_two([](const sw::op_attr&, const sw::spec* in, int, int result) {
  return sw::outcome{{}, result == 0 ? in[0] : matrix(in[0].extent[1], in[0].extent[0])};
});
constexpr sw::outcome shaped(const sw::shape_rule& rule, int result) {
  const sw::spec in[] = {matrix(3, 5), matrix(7, 2)};
  return rule({}, in, 2, result);
}
static_assert(!of_one.several() && of_two.several());
static_assert(shaped(of_one, 0).out == matrix(7, 2) && shaped(of_two, 0).out == matrix(3, 5) &&
              shaped(of_two, 1).out == matrix(5, 3));
// A rule without a number is the first result's.
static_assert([] {
  const sw::spec in[] = {matrix(3, 5)};
  return of_two({}, in, 1).out == matrix(3, 5);
}());

// --- row_rule: a table of one result's placements, or of all results' -----------------------------------------------------------

constexpr sw::placement R = sw::replicate_value(), P = sw::partial_value();
constexpr sw::row_rule one_table([](const operation&, const sw::op_attr&, const sw::spec*, int, const sw::spec&) {
  sw::rule_rows t;
  t.push_back(sw::rows::all(R, P));
  return t;
});
// Results R and P in one row, and a row that leaves the second out where attribute 0 is set.
constexpr sw::row_rule each_table([](const operation&, const sw::op_attr& a, const sw::spec*, int, const sw::spec&) {
  sw::results_rows t;
  if (a.v[0] == 0) t.push_back({{R}, {R, P}});
  else t.push_back({{R}, {R}});
  return t;
});
static_assert(!one_table.several() && each_table.several());
constexpr sw::placement placed(const sw::row_rule& rule, int result) {
  const sw::spec in[] = {matrix(3, 5)};
  const operation& o = operation_of(op_code::relu);
  const sw::rule_rows t = rule(o, {}, in, 1, in[0], result);
  return t.count == 1 && t.item[0].in[0] == R ? sw::placement(t.item[0].out) : sw::shard_value(7);
}
static_assert(placed(one_table, 0) == P && placed(each_table, 0) == R && placed(each_table, 1) == P);
constexpr bool incomplete(const sw::row_rule& rule, std::int64_t attribute, int results) {
  const sw::spec in[] = {matrix(3, 5)};
  return rule.incomplete(operation_of(op_code::relu), {{attribute}}, in, 1, in[0], results);
}
static_assert(!incomplete(one_table, 0, 1) && incomplete(one_table, 0, 2) && !incomplete(each_table, 0, 2) &&
              incomplete(each_table, 0, 3) && incomplete(each_table, 1, 2));

// --- stated: a field that has no default ------------------------------------------------------------------------------------------

static_assert(!std::is_default_constructible_v<sw::stated<int>> && std::is_convertible_v<int, sw::stated<int>> &&
              std::is_convertible_v<sw::stated<int>, int> && !std::is_convertible_v<const char*, sw::stated<int>>);
static_assert(sw::stated<int>(3) == 3 && sw::stated<int>(3).value == 3 && sw::stated<bool>(false).value == false);

// --- launching: who goes out with whom ---------------------------------------------------------------------------------------

// Updates write apart from each other, casts of parameters do, and sums may add earlier ones' results in their order.
static_assert(operation_of(op_code::adam).launch == sw::launching::together &&
              operation_of(op_code::sgd).launch == sw::launching::together &&
              operation_of(op_code::cast).launch == sw::launching::together &&
              operation_of(op_code::sumsq).launch == sw::launching::chained &&
              operation_of(op_code::einsum).launch == sw::launching::alone);
// Whatever goes out together has no result that one of them could read: an update's is none.
constexpr bool only_these_together() {
  for (int k = 0; k < static_cast<int>(op_code::count); ++k) {
    const op_code op = static_cast<op_code>(k);
    if (op == op_code::custom) continue;
    const operation& o = operation_of(op);
    if (o.launch == sw::launching::together && o.kind != sw::operation_kind::update && op != op_code::cast) return false;
  }
  return true;
}
static_assert(only_these_together());

// --- records that others are made of -----------------------------------------------------------------------------------------

// A field that is set leaves the others alone.
constexpr operation plain =
    operations::by_rows(&operations::like_first, &operations::no_rows, &operations::refuse_pointwise);
constexpr operation wide = operations::with_wide(5U, 2U, plain);
static_assert(plain.wide.value.operands == 0 && plain.wide.value.results == 0);
static_assert(wide.wide.value.operands == 5 && wide.wide.value.results == 2 && wide.kind == plain.kind &&
              wide.results == plain.results && wide.indices == plain.indices && wide.recompute == plain.recompute);
// Of elements of two bytes those are float, of others all have one type.
constexpr bool is_wide(sw::dtype others, sw::dtype wanted) {
  const sw::wide_values w = wide.wide;
  return w.operand(0, others) == wanted && w.operand(1, others) == others && w.operand(2, others) == wanted &&
         w.result(0, others) == others && w.result(1, others) == wanted;
}
static_assert(is_wide(sw::dtype::bf16, sw::dtype::f32) && is_wide(sw::dtype::f16, sw::dtype::f32) &&
              is_wide(sw::dtype::f32, sw::dtype::f32) && is_wide(sw::dtype::f64, sw::dtype::f64));

// What no table places has no row on any placement, and is written as it is said to be.
constexpr operation bare = operations::without_rule(sw::operation_kind::update, &operations::writes_first,
                                                    sw::element_rule::any, sw::recomputing::cheap);
static_assert(bare.kind == sw::operation_kind::update && bare.elements == sw::element_rule::any &&
              bare.recompute == sw::recomputing::cheap && bare.results == 1 && bare.indices == -1 && !bare.scalar);
static_assert(bare.writes.value({}) == 1 && operations::without_rule(sw::operation_kind::leaf).writes.value({}) == 0);
static_assert([] {
  const sw::spec in[] = {matrix(3, 5)};
  return bare.rows.value(bare, {}, in, 1, in[0]).count == 0 && bare.shape.value({}, in, 1).out == in[0];
}());

}  // namespace
