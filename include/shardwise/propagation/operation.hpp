// SPDX-License-Identifier: Apache-2.0
// operation: what rules, differentiation, passes and planners ask of one operation, as one constant. The records stand in
// operations/<family>/record.hpp, what differentiation makes of them beside them in adjoint.hpp; operations/all.hpp lists them.
#pragma once

#include <type_traits>

#include <shardwise/propagation/pointwise.hpp>
#include <shardwise/propagation/reduction.hpp>
#include <shardwise/propagation/scratch.hpp>
#include <shardwise/vocabulary/memory_format.hpp>

namespace shardwise::inline v0_1 {

// A field that a record may not leave out.
template <class T>
struct stated {
  T value;
  template <class Given>
    requires std::is_convertible_v<Given, T>
  constexpr stated(Given given) : value(given) {}  // not explicit: a record states plain values
  constexpr operator T() const { return value; }
};

using rules::linearity;

enum class operation_kind : std::uint8_t {
  leaf,       // belongs to the caller, whether or not a program reads it
  source,     // makes its value out of nothing
  pointwise,  // an element of the result is a function of the operands' elements there, broadcast
  computed,   // any other function of its operands
  view,       // its first operand's storage seen differently
  moving,     // a view where nothing moves between ranks, else a result of its own
  update      // writes into operands, and has no result of its own
};

// Which elements the kernels exist for. An operand that holds indices is int32 whatever this says.
enum class element_rule : std::uint8_t {
  real,       // floating-point numbers
  number,     // numbers, integers too
  any,        // only moved, so integers too
  compared,   // any, compared: the result is int32
  positions,  // floating-point numbers, of which positions are found: the result is int32
  converted   // any; the result is of the type that its attributes say
};

// The operands, and results, bit by bit, that are float where the others are of two bytes: sums, statistics and losses are never
// stored in fewer digits than they are computed in. Of float and double they have the others' type.
struct wide_values {
  unsigned operands = 0, results = 0;
  constexpr dtype operand(int k, dtype others) const { return (operands >> k & 1U) != 0 ? wide_of(others) : others; }
  constexpr dtype result(int k, dtype others) const { return (results >> k & 1U) != 0 ? wide_of(others) : others; }
};
inline constexpr wide_values nothing_wide;

// How implicit mode places the operands: see operations/strategy.hpp.
enum class operand_choice : std::uint8_t {
  none,        // any placement is admitted, or nothing helps
  followed,    // as the operand that most axes shard
  kept,        // the operand as it is, but whole on axes whose shards the rule refuses
  merged,      // all operands alike, gathered along the joined dim
  written,     // where the tensor is that is written to
  cheapest,    // the cheapest of all combinations of rows over the mesh axes
  contracted,  // the same, of rows that take no partial operand, in DTensor's order
  along_rows   // as cheapest, but shards of dims before the last one stay
};

// Whether computing the value again, to save memory, is cheap.
enum class recomputing : std::uint8_t { never, cheap, cheap_unless_it_communicates };

// Which neighbouring nodes of one operation go out in one launch, where a backend's kernel has run_all.
enum class launching : std::uint8_t {
  alone,
  together,  // all: they write apart from each other; of casts those of parameters to two bytes
  chained    // those with one element whose expression, if any, adds earlier ones' results in their order
};

struct operation;

// Extents and element type of a result: a function of (attributes, operands, how many), or, of an operation with several
// results, of these and the result's number.
class shape_rule {
  using one_t = outcome (*)(const op_attr&, const spec*, int);
  using each_t = outcome (*)(const op_attr&, const spec*, int, int);

 public:
  template <class F>
    requires std::is_convertible_v<F, one_t>
  constexpr shape_rule(F f) : one_(f), each_(&no_other), several_(false) {}  // not explicit: a record states functions
  template <class F>
    requires std::is_convertible_v<F, each_t>
  constexpr shape_rule(F f) : one_(&no_one), each_(f), several_(true) {}

  constexpr bool several() const { return several_; }
  constexpr outcome operator()(const op_attr& a, const spec* in, int n, int result = 0) const {
    return several_ ? each_(a, in, n, result) : one_(a, in, n);
  }

 private:
  static constexpr outcome no_one(const op_attr&, const spec* in, int) { return fail(problem::rule_missing, in[0]); }
  static constexpr outcome no_other(const op_attr&, const spec* in, int, int) { return fail(problem::rule_missing, in[0]); }

  one_t one_;
  each_t each_;
  bool several_;
};

// The table of placements: a function of (record, attributes, operands, how many, the first result) that gives rule_rows, or,
// of an operation with several results, results_rows.
class row_rule {
  using one_t = rule_rows (*)(const operation&, const op_attr&, const spec*, int, const spec&);
  using each_t = results_rows (*)(const operation&, const op_attr&, const spec*, int, const spec&);

 public:
  template <class F>
    requires std::is_convertible_v<F, one_t>
  constexpr row_rule(F f) : one_(f), each_(&no_other), several_(false) {}
  template <class F>
    requires std::is_convertible_v<F, each_t>
  constexpr row_rule(F f) : one_(&no_one), each_(f), several_(true) {}

  constexpr bool several() const { return several_; }
  // With the placement of that result in each row.
  constexpr rule_rows operator()(const operation& o, const op_attr& a, const spec* in, int n, const spec& out,
                                 int result = 0) const {
    return several_ ? rows_of(each_(o, a, in, n, out), result) : one_(o, a, in, n, out);
  }
  // Whether a row places fewer or more results than there are.
  constexpr bool incomplete(const operation& o, const op_attr& a, const spec* in, int n, const spec& out,
                            int results) const {
    if (!several_) return results != 1;
    const results_rows t = each_(o, a, in, n, out);
    for (int r = 0; r < t.count; ++r)
      if (t.item[r].results != results) return true;
    return false;
  }

 private:
  static constexpr rule_rows no_one(const operation&, const op_attr&, const spec*, int, const spec&) { return rule_rows(); }
  static constexpr results_rows no_other(const operation&, const op_attr&, const spec*, int, const spec&) {
    return results_rows();
  }

  one_t one_;
  each_t each_;
  bool several_;
};

// In which floating-point operands the result is linear: one linearity, or a function of (attributes, how many operands).
class linear_rule {
  using when_t = linearity (*)(const op_attr&, int);

 public:
  constexpr linear_rule(linearity always) : always_(always) {}  // not explicit: a record states either
  template <class F>
    requires std::is_convertible_v<F, when_t>
  constexpr linear_rule(F f) : when_(f) {}
  constexpr linearity operator()(const op_attr& a, int n) const { return when_ ? when_(a, n) : always_; }

 private:
  linearity always_ = linearity::none;
  when_t when_ = nullptr;
};

struct operation {
  using linear_rule = shardwise::linear_rule;
  using scratch_rule = shardwise::scratch_rule;
  using shape_rule = shardwise::shape_rule;
  using row_rule = shardwise::row_rule;
  using refusal_rule = void (*)(finding&, bool, const operation&, const op_attr&, const spec*, int, const spec&, bool);
  using split_rule = placement (*)(const op_attr&, int, placement);
  using write_rule = unsigned (*)(const op_attr&);
  using work_rule = double (*)(const op_attr&, const spec* const*, const spec&);

  stated<operation_kind> kind;
  stated<int> results;         // how many; several: its node is read by `getitem` nodes alone
  stated<linear_rule> linear;  // of a pointwise one its rows for partial values follow; proofs of adjoints ask for it
  stated<int> indices;         // the operand that holds int32 indices, targets or a mask, -1: none
  stated<element_rule> elements;
  stated<wide_values> wide;
  stated<bool> random;   // draws at a site, whose number is v0
  stated<bool> strided;  // its kernels read operands, and write the result, by their strides: that may be channels-last
  stated<bool> scalar;   // an element needs the operands' elements and one real parameter: may be fused
  stated<operand_choice> choice;
  stated<recomputing> recompute;
  stated<shape_rule> shape;  // (attributes, operands, how many): extents of the result, and what is wrong with theirs
  stated<row_rule> rows;     // (record, attributes, operands, how many, result): the table of placements; empty: no rule
                             // of both, those of several results: see shape_rule and row_rule
  stated<bool> tabled;       // the rows place the result; else `shape` gives its placements, too
  stated<split_rule> split;  // (attributes, axis, placement of the row): how the result is cut there
  stated<refusal_rule>
      refusal;                // (finding, a partial operand, record, attributes, operands, how many, result, cuts differ):
                              // the sentence where no row fits
  stated<write_rule> writes;  // the operands written into, bit by bit
  stated<bool>
      writes_into_first;  // of a custom operation: its result is operand 0 but for a part, and its kernels, given one place for
                          // both, write that part alone
  stated<launching> launch;           // whether neighbours of it go out in one launch, where a backend has kernels for that
  stated<bool> arithmetic;            // its arithmetic takes longer than reading and writing its blocks
  stated<work_rule> flops;            // (attributes, operands, result): of the ranks at coordinate 0
  stated<scratch_rule> host_scratch;  // bytes beside operands and results that its kernels on hosts
  stated<scratch_rule> device_scratch;  // and on devices are given
};

namespace operations {

// --- what many records have in common -------------------------------------------------------------------------------------

constexpr outcome like_first(const op_attr&, const spec* in, int) { return {{}, contiguous(in[0])}; }
constexpr outcome like_second(const op_attr&, const spec* in, int) { return {{}, contiguous(in[1])}; }
constexpr rule_rows no_rows(const operation&, const op_attr&, const spec*, int, const spec&) { return rule_rows(); }
constexpr placement as_the_row_says(const op_attr&, int, placement p) { return p; }
constexpr unsigned writes_nothing(const op_attr&) { return 0; }
constexpr unsigned writes_first(const op_attr&) { return 1; }
constexpr double one_an_element(const op_attr&, const spec* const*, const spec& out) {
  constexpr int origin[max_axes]{};
  return static_cast<double>(local_numel(out, origin));
}

constexpr rule_rows rows_of_pointwise(const operation& o, const op_attr& a, const spec* in, int n, const spec& out) {
  rule_rows t = rules::pointwise_rows(in, n, out, o.linear.value(a, n));
  if (o.indices >= 0) rules::indices_replicate(t, in, n);
  return t;
}
constexpr void refuse_pointwise(finding& f, bool, const operation& o, const op_attr& a, const spec* in, int n,
                                const spec& out, bool) {
  f.what = rules::pointwise_problem(in, n, out, f.axis, o.linear.value(a, n));
}

// One sentence whatever the placements are; or one for a partial operand and one for all else.
template <problem P>
constexpr void refuse_with(finding& f, bool, const operation&, const op_attr&, const spec*, int, const spec&, bool) {
  f.what = P;
}
template <problem Partial, problem Other, bool LastDim = false, int Operand = -1>
constexpr void refuse_partial(finding& f, bool partial, const operation&, const op_attr&, const spec* in, int, const spec&,
                              bool) {
  f.what = partial ? Partial : Other;
  if (LastDim) f.dim = in[0].rank - 1;
  if (Operand >= 0) f.operand = Operand;
}

// Whose rule is a table of rows. Several results: `shape` and `rows` are such functions, and `results` says how many.
constexpr operation by_rows(operation::shape_rule shape, operation::row_rule rows, operation::refusal_rule refusal,
                            int indices = -1, element_rule elements = element_rule::real,
                            operand_choice choice = operand_choice::cheapest, recomputing recompute = recomputing::never,
                            int results = 1) {
  return {.kind = operation_kind::computed,
          .results = results,
          .linear = linearity::none,
          .indices = indices,
          .elements = elements,
          .wide = nothing_wide,
          .random = false,
          .strided = false,
          .scalar = false,
          .choice = choice,
          .recompute = recompute,
          .shape = shape,
          .rows = rows,
          .tabled = true,
          .split = &as_the_row_says,
          .refusal = refusal,
          .writes = &writes_nothing,
          .writes_into_first = false,
          .launch = launching::alone,
          .arithmetic = false,
          .flops = &one_an_element,
          .host_scratch = no_scratch,
          .device_scratch = no_scratch};
}

constexpr operation linear_in(linear_rule linear, operation o) {
  o.linear = linear;
  return o;
}
// Operands and results, bit by bit, that are float where the others are of two bytes.
constexpr operation with_wide(unsigned operands, unsigned results, operation o) {
  o.wide = wide_values{operands, results};
  return o;
}
constexpr operation with_scratch(scratch_rule on_hosts, scratch_rule on_devices, operation o) {
  o.host_scratch = on_hosts;
  o.device_scratch = on_devices;
  return o;
}

// What no table of rows places: what is never inferred (leaves, and what only passes write, which verify checks by the rules of
// its parts), and, with a `shape` of its own and `tabled` false, what is placed by a function.
constexpr operation without_rule(operation_kind kind, operation::write_rule writes = &writes_nothing,
                                 element_rule elements = element_rule::real, recomputing recompute = recomputing::never) {
  return {.kind = kind,
          .results = 1,
          .linear = linearity::none,
          .indices = -1,
          .elements = elements,
          .wide = nothing_wide,
          .random = false,
          .strided = false,
          .scalar = false,
          .choice = operand_choice::cheapest,
          .recompute = recompute,
          .shape = &like_first,
          .rows = &no_rows,
          .tabled = true,
          .split = &as_the_row_says,
          .refusal = &refuse_pointwise,
          .writes = writes,
          .writes_into_first = false,
          .launch = launching::alone,
          .arithmetic = false,
          .flops = &one_an_element,
          .host_scratch = no_scratch,
          .device_scratch = no_scratch};
}

}  // namespace operations

}  // namespace shardwise::inline v0_1
