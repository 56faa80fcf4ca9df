// SPDX-License-Identifier: Apache-2.0
// Every function where numbers are special, beside PyTorch's answers, as programs that hosts and devices run: values and
// gradients. A row of the input is a function's own, so that one program has them all.
#pragma once

#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <special_values_table.hpp>

namespace test::special {

namespace sw = shardwise;

// Where this library answers otherwise than PyTorch, on purpose.
struct difference {
  const char* name;
  const char* part;  // value, dx or dy
  const char* reason;
  bool (*admits)(double x, double y, double theirs, double ours);  // x, y: the operands there
};
inline bool is_nan(double x) { return x != x; }

inline const difference differences[] = {
    {"sign", "value", "a NaN stays visible; PyTorch has 0",
     [](double x, double, double theirs, double ours) { return is_nan(x) && theirs == 0 && is_nan(ours); }},
    {"abs", "dx", "sign's NaN",
     [](double x, double, double theirs, double ours) { return is_nan(x) && theirs == 0 && is_nan(ours); }},
    {"gelu", "value", "PyTorch's float, not its double, overflows on the way",
     [](double x, double, double theirs, double ours) { return x >= 3e38 && !std::isfinite(theirs) && ours > 0; }},
    {"gelu_tanh", "dx", "where x^2 overflows the slope is 1 or 0; PyTorch has 0 times infinity",
     [](double x, double, double theirs, double ours) {
       return std::fabs(x) >= 3e38 && is_nan(theirs) && ours == (x > 0 ? 1 : 0);
     }},
    {"norm 1", "dx", "sign's NaN", [](double, double, double theirs, double ours) { return theirs == 0 && is_nan(ours); }},
    {"norm 2", "value", "float's powers are summed in double",
     [](double x, double, double theirs, double ours) { return x == 1e38 && theirs == inf && ours < inf; }},
    {"norm 2", "dx", "the norm is finite",
     [](double x, double, double theirs, double ours) { return x == 1e38 && theirs == 0 && std::isfinite(ours); }},
    {"norm 3", "value", "float's powers are summed in double",
     [](double x, double, double theirs, double ours) { return x == 1e38 && theirs == inf && ours < inf; }},
    {"norm 3", "dx", "the norm is finite, or infinite beside finite elements, whose shares of it are 0",
     [](double x, double, double theirs, double ours) { return x >= 1e38 && is_nan(theirs) && std::isfinite(ours); }},
    {"layer_norm", "value", "float's statistics are in double",
     [](double x, double, double theirs, double ours) { return x == 1e38 && is_nan(theirs) && std::isfinite(ours); }},
    {"layer_norm", "dx", "float's statistics are in double",
     [](double x, double, double theirs, double ours) { return x == 1e38 && is_nan(theirs) && std::isfinite(ours); }},
    {"layer_norm eps 0", "value", "float's statistics are in double",
     [](double x, double, double theirs, double ours) { return x == 1e38 && is_nan(theirs) && std::isfinite(ours); }},
    {"layer_norm eps 0", "dx", "float's statistics are in double",
     [](double x, double, double theirs, double ours) { return x == 1e38 && is_nan(theirs) && std::isfinite(ours); }},
    {"std", "value", "squares of distances are of the element type",
     [](double x, double, double, double ours) { return x == 1e38 && ours == inf; }},
    {"std", "dx", "the deviation is infinite", [](double x, double, double, double ours) { return x == 1e38 && ours == 0; }},
#ifdef SHARDWISE_TEST_DEVICES
    {"prod", "value", "a GPU multiplies float's factors in double, where they stay finite",
     [](double x, double, double theirs, double ours) { return x == 1e38 && is_nan(theirs) && ours == 0; }},
#endif
    {"var", "dx", "differences of infinities",
     [](double, double, double theirs, double ours) { return std::isinf(theirs) && is_nan(ours); }},
    {"var of all", "dx", "differences of infinities",
     [](double, double, double theirs, double ours) { return std::isinf(theirs) && is_nan(ours); }},
    {"var correction 5", "dx",
     "the variance is infinite for want of degrees of freedom; PyTorch goes on with a negative number of them",
     [](double, double, double, double ours) { return is_nan(ours); }},
    {"cross_entropy", "value",
     "the log-sum-exp is one rounded number: infinite beside an infinity, and beside 1e38 its logarithm is lost",
     [](double x, double, double theirs, double ours) {
       return (x == inf && is_nan(theirs) && ours == inf) || (x >= 1e38 && ours == 0);
     }},
    {"cross_entropy", "dx", "the same",
     [](double x, double y, double, double ours) { return (x >= 1e38 || y == inf) && std::isfinite(ours); }},
    {"topk", "dx", "of equals the one that stands first, which PyTorch leaves open",
     [](double, double, double theirs, double ours) { return theirs + ours == 1 && theirs * ours == 0; }},
    {"topk smallest", "dx", "of equals the one that stands first, which PyTorch leaves open",
     [](double, double, double theirs, double ours) { return theirs + ours == 1 && theirs * ours == 0; }},
};

// --- the functions ------------------------------------------------------------------------------------------------------

// clang-format off: a table
#define SHARDWISE_UNARY(X)                                                                                                 \
  X("abs", sw::abs(x)) X("neg", sw::neg(x)) X("sign", sw::sign(x)) X("exp", sw::exp(x)) X("log", sw::log(x))               \
  X("sqrt", sw::sqrt(x)) X("rsqrt", sw::rsqrt(x)) X("reciprocal", sw::reciprocal(x)) X("sigmoid", sw::sigmoid(x))          \
  X("sin", sw::sin(x)) X("cos", sw::cos(x)) X("square", sw::square(x)) X("silu", sw::silu(x)) X("relu", sw::relu(x))       \
  X("tanh", sw::tanh(x)) X("gelu", sw::gelu(x)) X("gelu_tanh", sw::gelu<sw::gelu_form::tanh>(x))                           \
  X("pow 2", sw::pow(x, 2)) X("pow 3", sw::pow(x, 3)) X("pow 0.5", sw::pow(x, 0.5)) X("pow -0.5", sw::pow(x, -0.5))        \
  X("pow -1", sw::pow(x, -1)) X("pow -2", sw::pow(x, -2)) X("pow 0", sw::pow(x, 0)) X("pow 1", sw::pow(x, 1))              \
  X("pow 1.5", sw::pow(x, 1.5)) X("pow -1.5", sw::pow(x, -1.5)) X("pow nan", sw::pow(x, nan)) X("pow inf", sw::pow(x, inf)) \
  X("pow -inf", sw::pow(x, -inf)) X("clamp", sw::clamp(x, -0.5, 1.0)) X("clamp low > high", sw::clamp(x, 0.5, -0.5))       \
  X("clamp_min", sw::clamp_min(x, 0.5)) X("clamp_max", sw::clamp_max(x, 0.5)) X("clamp_min nan", sw::clamp_min(x, nan))    \
  X("clamp_max nan", sw::clamp_max(x, nan)) X("x + 2.5", x + 2.5) X("2.5 - x", 2.5 - x) X("x * 3", x * 3)                  \
  X("x * nan", x * nan) X("x / 4", x / 4) X("x / 3", x / 3) X("x / 1e-40", x / 1e-40) X("x / 1e-310", x / 1e-310)          \
  X("x / 1e308", x / 1e308) X("x / 0", x / 0.0) X("3 / x", 3 / x) X("dropout 1", sw::dropout(x, 1))                        \
  X("masked_fill nan", sw::masked_fill(x, sw::gt(x, 0), nan))
#define SHARDWISE_COMPARED(X)                                                                                            \
  X("eq 1", sw::eq(x, 1)) X("ne 1", sw::ne(x, 1)) X("lt 1", sw::lt(x, 1)) X("le 1", sw::le(x, 1)) X("gt 1", sw::gt(x, 1)) \
  X("ge 1", sw::ge(x, 1)) X("eq nan", sw::eq(x, nan)) X("ne nan", sw::ne(x, nan)) X("lt nan", sw::lt(x, nan))             \
  X("le nan", sw::le(x, nan)) X("gt nan", sw::gt(x, nan)) X("ge nan", sw::ge(x, nan))
#define SHARDWISE_BINARY(X)                                                                                               \
  X("add", sw::add(x, y)) X("sub", sw::sub(x, y)) X("mul", sw::mul(x, y)) X("div", sw::div(x, y)) X("maximum", sw::maximum(x, y)) \
  X("minimum", sw::minimum(x, y)) X("lerp 0.25", sw::lerp(x, y, 0.25)) X("lerp 0.75", sw::lerp(x, y, 0.75))               \
  X("where x < y", sw::where(sw::lt(x, y), x, y))
#define SHARDWISE_REDUCED(X)                                                                                              \
  X("sum", sw::sum<-1>(x)) X("mean", sw::mean<-1>(x)) X("amax", sw::amax<-1>(x)) X("amin", sw::amin<-1>(x))               \
  X("prod", sw::prod<-1>(x)) X("var", sw::var<-1>(x)) X("std", sw::std<-1>(x)) X("var of all", sw::var<-1>(x, 0))          \
  X("var correction 5", sw::var<-1>(x, 5)) X("norm 1", (sw::vector_norm<1, -1>(x))) X("norm 2", (sw::vector_norm<2, -1>(x))) \
  X("norm 3", (sw::vector_norm<3, -1>(x))) X("logsumexp", sw::logsumexp<-1>(x))                                           \
  X("cross_entropy", sw::cross_entropy_rows(x, sw::full<std::int32_t, sw::shape<1, row_count>>(x, 1)))
#define SHARDWISE_ALONG(X)                                                                                                \
  X("softmax", sw::softmax(x)) X("log_softmax", sw::log_softmax(x))                                                       \
  X("layer_norm", sw::layer_norm(x, ones_of<T, 4>(x), zeros_of<T, 4>(x)))                                                 \
  X("layer_norm eps 0", sw::layer_norm(x, ones_of<T, 4>(x), zeros_of<T, 4>(x), 0))                                        \
  X("topk", (sw::constant_pad<0, 1>(sw::topk<3>(x).values)))                                                              \
  X("topk smallest", (sw::constant_pad<0, 1>(sw::topk<3, -1, false>(x).values))) X("sort", sw::sort(x).values)             \
  X("sort descending", (sw::sort<-1, true>(x).values))
#define SHARDWISE_POSITIONS(X) X("argmax", sw::argmax<-1>(x)) X("argmin", sw::argmin<-1>(x))
// clang-format on

inline constexpr int element_count = 30, operand_count = 10, row_count = 17;

template <class T, int N>
constexpr auto ones_of(const auto& like) {
  return sw::full<T, sw::shape<N>>(like, 1);
}
template <class T, int N>
constexpr auto zeros_of(const auto& like) {
  return sw::full<T, sw::shape<N>>(like, 0);
}

// Results below each other.
constexpr auto joined(const auto& a) { return a; }
constexpr auto joined(const auto& a, const auto& b) { return sw::cat<0>(a, b); }
constexpr auto joined(const auto& a, const auto& b, const auto& c) { return sw::cat<0>(a, b, c); }
constexpr auto joined(const auto& a, const auto& b, const auto& c, const auto& d, const auto&... more) {
  if constexpr (sizeof...(more) == 0) return sw::cat<0>(a, b, c, d);
  else return joined(sw::cat<0>(a, b, c, d), more...);
}

template <class X>
using element_of = sw::element_t<std::remove_cvref_t<X>::sp.type>;

// A list's functions in order, and their names.
#define SHARDWISE_FUNCTION1(name, ...)                  \
  [](const auto& x) {                                   \
    using T [[maybe_unused]] = element_of<decltype(x)>; \
    return __VA_ARGS__;                                 \
  },
#define SHARDWISE_FUNCTION2(name, ...) [](const auto& x, const auto& y) { return __VA_ARGS__; },
#define SHARDWISE_NAME(name, ...) name,

template <auto& Functions>
inline constexpr std::size_t count_of = std::tuple_size_v<std::remove_cvref_t<decltype(Functions)>> - 1;

inline constexpr std::tuple unary_functions{SHARDWISE_UNARY(SHARDWISE_FUNCTION1) nullptr};
inline constexpr std::tuple compared_functions{SHARDWISE_COMPARED(SHARDWISE_FUNCTION1) nullptr};
inline constexpr std::tuple binary_functions{SHARDWISE_BINARY(SHARDWISE_FUNCTION2) nullptr};
inline constexpr std::tuple reduced_functions{SHARDWISE_REDUCED(SHARDWISE_FUNCTION1) nullptr};
inline constexpr std::tuple along_functions{SHARDWISE_ALONG(SHARDWISE_FUNCTION1) nullptr};
inline constexpr std::tuple position_functions{SHARDWISE_POSITIONS(SHARDWISE_FUNCTION1) nullptr};

inline const std::vector<std::string> unary_names{SHARDWISE_UNARY(SHARDWISE_NAME)},
    compared_names{SHARDWISE_COMPARED(SHARDWISE_NAME)}, binary_names{SHARDWISE_BINARY(SHARDWISE_NAME)},
    reduced_names{SHARDWISE_REDUCED(SHARDWISE_NAME)}, along_names{SHARDWISE_ALONG(SHARDWISE_NAME)},
    position_names{SHARDWISE_POSITIONS(SHARDWISE_NAME)};

// Function I of row I of the operands; `First`: of row 0.
template <auto& Functions, bool First = false>
constexpr auto each_of(const auto&... x) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto one = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
      return std::get<K>(Functions)(sw::slice<0, First ? 0 : static_cast<int>(K), 1>(x)...);
    };
    return joined(one(std::integral_constant<std::size_t, I>{})...);
  }(std::make_index_sequence<count_of<Functions>>{});
}

struct of_elements {
  constexpr auto operator()(const auto& x) const {
    return std::tuple(each_of<unary_functions>(x), each_of<compared_functions, true>(x));
  }
};
struct of_pairs {
  constexpr auto operator()(const auto& x, const auto& y) const { return each_of<binary_functions>(x, y); }
};
struct of_rows {
  constexpr auto operator()(const auto& x) const {
    return std::tuple(each_of<reduced_functions>(x), each_of<position_functions, true>(x));
  }
};
struct of_lines {
  constexpr auto operator()(const auto& x) const { return each_of<along_functions>(x); }
};

// --- the comparison -------------------------------------------------------------------------------------------------------

// Counts how often each difference was met, over all types and programs of a run.
inline int met[sizeof(differences) / sizeof(differences[0])]{};

// Exact in sign, zero, infinity and NaN; to rounding else. What differences cancel in may be off by some units of 1.
template <class T>
bool alike(const std::string& name, bool value, double ours, double theirs) {
  if (is_nan(ours) || is_nan(theirs)) return is_nan(ours) && is_nan(theirs);
  if (ours == theirs) return true;
  if (std::isinf(ours) || std::isinf(theirs)) return false;
  const double unit = sizeof(T) == 4 ? 1.2e-7 : 2.3e-16, least = sizeof(T) == 4 ? 1.5e-45 : 5e-324;
  static const char* const exact[] = {"exp",    "abs", "neg",   "relu", "sqrt", "rsqrt", "reciprocal",
                                      "square", "pow", "clamp", "x /",  "x *",  "3 /"};
  bool strict = false;
  for (const char* e : exact) strict = strict || name.starts_with(e);
  const double error = std::fabs(ours - theirs);
  return error <= 32 * unit * std::fabs(theirs) + 2 * least || (!(strict && value) && error <= 32 * unit);
}

template <class T>
void compare(const char* where, const answer& a, const char* part, const std::vector<double>& theirs, std::size_t i,
             double x, double y, double ours) {
  if (alike<T>(a.name, std::string(part) == "value", ours, theirs[i])) return;
  for (std::size_t d = 0; d < sizeof(differences) / sizeof(differences[0]); ++d)
    if (std::string(differences[d].name) == a.name && std::string(differences[d].part) == part &&
        differences[d].admits(x, y, theirs[i], ours)) {
      ++met[d];
      return;
    }
  char text[256];
  std::snprintf(text, sizeof text, "%s, %s, %s, %s at %.9g %.9g (number %zu): %.9g, and PyTorch has %.9g", where,
                sizeof(T) == 4 ? "float" : "double", a.name, part, x, y, i, ours, theirs[i]);
  const std::string said = text;
  FAIL_CHECK(said);
}

inline std::vector<const answer*> answers_of(kind k) {
  std::vector<const answer*> all;
  for (const answer& a : answers)
    if (a.of == k) all.push_back(&a);
  return all;
}
inline void check_names(kind k, const std::vector<std::string>& names) {
  const auto all = answers_of(k);
  REQUIRE(all.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(names[i] == all[i]->name);
}

// --- the programs ---------------------------------------------------------------------------------------------------------

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

// A blocks' worth of lanes and a tail.
inline constexpr int columns = 71;

// Runs F and its gradients on `in`; gives all outputs as doubles.
template <class Place, class F, class Wrt, class Inputs, class Pipeline, class T, int Ints>
std::vector<std::vector<double>> outputs_of(const std::vector<std::vector<T>>& in) {
  using program = sw::gradient_step<F, mesh, Inputs, Wrt, Pipeline, typename Place::backend>;
  std::vector<std::vector<double>> out;
  Place::template launch<mesh>([&](auto& rank) {
    sw::executor<program, std::remove_reference_t<decltype(rank)>> run(rank);
    for (std::size_t k = 0; k < in.size(); ++k) run.set_input(static_cast<int>(k), in[k]);
    run.run({});
    for (int k = 0; k < program::program.output_count; ++k) {
      if (Ints == k) {
        const auto v = run.template output<std::int32_t>(k);
        if constexpr (requires { v.data.data(); }) out.emplace_back(v.data.begin(), v.data.end());
        else out.emplace_back(v.begin(), v.end());
      } else {
        const auto v = run.template output<T>(k);
        if constexpr (requires { v.data.data(); }) out.emplace_back(v.data.begin(), v.data.end());
        else out.emplace_back(v.begin(), v.end());
      }
    }
  });
  return out;
}

template <class T>
const std::vector<double>& value_of(const answer& a) {
  return sizeof(T) == 4 ? a.f32 : a.f64;
}
template <class T>
const std::vector<double>& dx_of(const answer& a) {
  return sizeof(T) == 4 ? a.f32_dx : a.f64_dx;
}
template <class T>
const std::vector<double>& dy_of(const answer& a) {
  return sizeof(T) == 4 ? a.f32_dy : a.f64_dy;
}

template <class Place, class T, class Pipeline>
void check_elements(const char* where) {
  constexpr int count = static_cast<int>(count_of<unary_functions>);
  const auto all = answers_of(kind::unary), compared = answers_of(kind::compared);
  std::vector<T> x;
  for (int k = 0; k < count; ++k)
    for (int j = 0; j < columns; ++j) x.push_back(static_cast<T>(elements[static_cast<std::size_t>(j % element_count)]));
  using input = sw::input_tensor<T, sw::shape<count, columns>>;
  const auto out = outputs_of<Place, of_elements, sw::wrt<0>, sw::inputs<input>, Pipeline, T, 1>({x});
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::size_t f = k / columns, i = k % columns % element_count;
    compare<T>(where, *all[f], "value", value_of<T>(*all[f]), i, elements[i], 0, out[0][k]);
    compare<T>(where, *all[f], "dx", dx_of<T>(*all[f]), i, elements[i], 0, out[2][k]);
  }
  for (std::size_t k = 0; k < out[1].size(); ++k) {
    const std::size_t f = k / columns, i = k % columns % element_count;
    compare<T>(where, *compared[f], "value", value_of<T>(*compared[f]), i, elements[i], 0, out[1][k]);
  }
}

template <class Place, class T, class Pipeline>
void check_pairs(const char* where) {
  constexpr int count = static_cast<int>(count_of<binary_functions>), pairs = operand_count * operand_count;
  const auto all = answers_of(kind::binary);
  std::vector<T> x, y;
  for (int k = 0; k < count; ++k)
    for (int j = 0; j < pairs; ++j) {
      x.push_back(static_cast<T>(operands[static_cast<std::size_t>(j / operand_count)]));
      y.push_back(static_cast<T>(operands[static_cast<std::size_t>(j % operand_count)]));
    }
  using input = sw::input_tensor<T, sw::shape<count, pairs>>;
  const auto out = outputs_of<Place, of_pairs, sw::wrt<0, 1>, sw::inputs<input, input>, Pipeline, T, -1>({x, y});
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::size_t f = k / pairs, i = k % pairs;
    const double a = operands[i / operand_count], b = operands[i % operand_count];
    compare<T>(where, *all[f], "value", value_of<T>(*all[f]), i, a, b, out[0][k]);
    compare<T>(where, *all[f], "dx", dx_of<T>(*all[f]), i, a, b, out[1][k]);
    compare<T>(where, *all[f], "dy", dy_of<T>(*all[f]), i, a, b, out[2][k]);
  }
}

// To one number of four, and to four.
template <class Place, class T, class Pipeline, bool Reduced>
void check_rows(const char* where) {
  constexpr int count = static_cast<int>(Reduced ? count_of<reduced_functions> : count_of<along_functions>);
  const auto all = answers_of(Reduced ? kind::reduced : kind::along), positions = answers_of(kind::position);
  std::vector<T> x;
  for (int k = 0; k < count; ++k)
    for (const double v : rows) x.push_back(static_cast<T>(v));
  using input = sw::input_tensor<T, sw::shape<count, row_count, 4>>;
  const auto out = outputs_of<Place, std::conditional_t<Reduced, of_rows, of_lines>, sw::wrt<0>, sw::inputs<input>, Pipeline,
                              T, Reduced ? 1 : -1>({x});
  for (std::size_t f = 0; f < all.size(); ++f) {
    const bool ranked = std::string(all[f]->name).starts_with("topk");  // three of four
    const std::size_t width = Reduced ? 1 : 4, given = Reduced ? 1 : ranked ? 3 : 4;
    for (std::size_t r = 0; r < row_count; ++r) {
      for (std::size_t j = 0; j < given; ++j)
        compare<T>(where, *all[f], "value", value_of<T>(*all[f]), r * given + j, rows[4 * r], rows[4 * r + 1],
                   out[0][(f * row_count + r) * width + j]);
      for (std::size_t j = 0; j < 4; ++j)
        compare<T>(where, *all[f], "dx", dx_of<T>(*all[f]), r * 4 + j, rows[4 * r], rows[4 * r + 1],
                   out[Reduced ? 2 : 1][(f * row_count + r) * 4 + j]);
    }
  }
  if constexpr (Reduced)
    for (std::size_t k = 0; k < out[1].size(); ++k)
      compare<T>(where, *positions[k / row_count], "value", value_of<T>(*positions[k / row_count]), k % row_count,
                 rows[4 * (k % row_count)], rows[4 * (k % row_count) + 1], out[1][k]);
}

template <class Place, class T, class Pipeline>
void check_all(const char* where) {
  check_elements<Place, T, Pipeline>(where);
  check_pairs<Place, T, Pipeline>(where);
  check_rows<Place, T, Pipeline, true>(where);
  check_rows<Place, T, Pipeline, false>(where);
}

inline void check_tables() {
  check_names(kind::unary, unary_names);
  check_names(kind::compared, compared_names);
  check_names(kind::binary, binary_names);
  check_names(kind::reduced, reduced_names);
  check_names(kind::along, along_names);
  check_names(kind::position, position_names);
  REQUIRE(elements.size() == element_count);
  REQUIRE(operands.size() == operand_count);
  REQUIRE(rows.size() == 4 * row_count);
}
// After all programs of a run: a difference that nobody meets any more goes.
inline void check_differences() {
  for (std::size_t d = 0; d < sizeof(differences) / sizeof(differences[0]); ++d)
    if (met[d] == 0) {
      const std::string text = std::string("nothing differs any more: ") + differences[d].name + ", " + differences[d].part;
      FAIL_CHECK(text);
    }
}

}  // namespace test::special
