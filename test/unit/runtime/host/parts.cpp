// SPDX-License-Identifier: Apache-2.0
// A call in parts leaves the bits of the whole one: every family of kernels, for 2, 3, 5 and 7 threads and sizes that divide badly.
#include <doctest/doctest.h>

#include <models.hpp>
#include <parted_run.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/module/muon.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/shardwise.hpp>
#include <tuple>

namespace {

namespace sw = shardwise;
using sw::op_code;
using test::parted::cuts;
using test::parted::run_in_parts;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;
template <class T, std::int64_t... E>
using in = sw::input_tensor<T, sw::shape<E...>>;

constexpr int thread_counts[] = {2, 3, 5, 7};

// Each of `ops` is cut, whatever the number of threads.
template <class Step>
void check_cut(std::initializer_list<op_code> ops) {
  for (const int threads : thread_counts) {
    const cuts seen = run_in_parts<Step>(threads);
    for (const op_code op : ops) {
      const std::string name = sw::name_of(op);
      CAPTURE(name);
      CAPTURE(threads);
      CHECK(seen(op) > 0);
    }
  }
}

// --- a step ----------------------------------------------------------------------------------------------------------

struct sizes : test::transformer_sizes {
  static constexpr int vocabulary = 51;
  static constexpr int time = 19;
  static constexpr int width = 36;
  static constexpr int heads = 3;
  static constexpr int layers = 1;
  static constexpr double dropout = 0.2;
};
template <class T, class Optimizer, class Pipeline = sw::pipeline<>>
using step = sw::train_step<test::transformer<sizes>::model, test::language_task<sizes, 5, one>,
                            sw::plan<sw::data_parallel<one>>, mesh, Optimizer, Pipeline, T>;
template <class Step>
void check_step(std::initializer_list<op_code> ops) {
  sw::step_env env;
  env.seed = 5;
  env.step = 1;
  env.lr = 0.01;
  env.momentum = 0.9;
  env.dampening = 0.3;
  env.clip_value = 0.01;
  env.max_norm = 0.5;
  env.weight_decay = 0.1;
  for (const int threads : thread_counts)
    for (const sw::random_policy random : {sw::random_policy::by_element, sw::random_policy::by_offset}) {
      env.random = random;
      const cuts seen = run_in_parts<Step>(threads, env, [](auto& ex) {
        ex.initialise(3);
        test::parted::fill_inputs(ex);
      });
      for (const op_code op : ops) {
        const std::string name = sw::name_of(op);
        CAPTURE(name);
        CAPTURE(threads);
        CHECK(seen(op) > 0);
      }
    }
}

TEST_CASE("parts: a training step of a transformer, operation by operation") {
  const auto ops = {op_code::einsum,  op_code::custom,  op_code::norm_stats, op_code::norm_apply,
                    op_code::norm_dx, op_code::norm_dw, op_code::gelu_erf,   op_code::sum,
                    op_code::nll,     op_code::nll_dx,  op_code::lse,        op_code::embedding,
                    op_code::adam,    op_code::dropout, op_code::add,        op_code::embedding_dw};
  check_step<step<float, sw::clip_norm<sw::adamw<true>>>>(ops);
  check_step<step<double, sw::clip_norm<sw::adamw<true>>>>(ops);
  check_step<step<float, sw::sgd<true>>>({op_code::sgd});
  check_step<step<float, sw::clip_value<sw::sgd<true, sw::sgd_form::dampened>>>>({op_code::sgd_with});
  check_step<step<float, sw::clip_norm<sw::amsgrad<sw::adamw<>>>>>({op_code::adam_with});
  check_step<step<float, sw::lion<>>>({op_code::lion});
  check_step<step<float, sw::clip_norm<sw::muon<>>>>({op_code::muon, op_code::muon_direction});
}
TEST_CASE("parts: the same step with fused kernels, sums beside products and statistics beside norms") {
  check_step<step<float, sw::adam<>, sw::pipeline<sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>>>(
      {op_code::einsum, op_code::norm, op_code::adam});
  check_step<step<float, sw::adam<>, sw::pipeline<sw::fuse_pointwise>>>({op_code::fused});
}

// --- functions -------------------------------------------------------------------------------------------------------

struct along_rows {
  constexpr auto operator()(const auto& x, const auto& index, const auto& weight) const {
    const auto best = sw::topk<2>(x);
    return std::tuple{sw::softmax(x), sw::log_softmax(x),      sw::logsumexp(x),       best.values,
                      best.indices,   sw::rms_norm(x, weight), sw::gather<2>(x, index)};
  }
};
struct rows_back {
  constexpr auto operator()(const auto& x, const auto& weight) const {
    return sw::sum(sw::mul(sw::softmax(x), sw::rms_norm(sw::log_softmax(x), weight)));
  }
};
template <class T>
using row_step = sw::function_step<along_rows, mesh, sw::inputs<in<T, 3, 11, 29>, in<std::int32_t, 3, 11, 5>, in<T, 29>>>;
template <class T>
using row_gradients = sw::gradient_step<rows_back, mesh, sw::inputs<in<T, 3, 11, 29>, in<T, 29>>, sw::wrt<0, 1>>;

TEST_CASE("parts: functions along rows and their gradients") {
  check_cut<row_step<float>>({op_code::softmax, op_code::log_softmax, op_code::topk, op_code::take});
  check_cut<row_step<double>>({op_code::softmax});
  check_cut<row_gradients<float>>({op_code::softmax_dx, op_code::norm_dx});
}

// Columns side by side, rows, several runs, with sums of few and of many: each way of adding.
struct sums {
  constexpr auto operator()(const auto& x) const {
    return std::tuple{sw::sum<0>(x),
                      sw::sum<1>(x),
                      sw::sum<2>(x),
                      sw::sum<0, 1>(x),
                      sw::mean<1, 2>(x, sw::keepdim),
                      sw::sum<0, 2>(x),
                      sw::sum<1>(sw::permute<2, 0, 1>(x)),
                      sw::mean<0>(x * x),
                      sw::var<1>(x)};
  }
};
template <class T, std::int64_t... E>
using sum_step = sw::function_step<sums, mesh, sw::inputs<in<T, E...>>>;

TEST_CASE("parts: sums over some dims are cut along the others, in the same order of additions") {
  check_cut<sum_step<float, 7, 65, 67>>({op_code::sum});
  check_cut<sum_step<double, 7, 65, 67>>({op_code::sum});
  check_cut<sum_step<float, 33, 70, 17>>({op_code::sum});
  check_cut<sum_step<float, 5, 17, 300>>({op_code::sum});
  run_in_parts<sum_step<double, 9, 9, 9>>(3);  // columns side by side, where three would be added one by one
}

struct products {
  constexpr auto operator()(const auto& x, const auto& y, const auto& w) const {
    return std::tuple{sw::matmul(x, y), sw::linear_product(x, w),
                      sw::matmul(sw::transpose<1, 2>(y), sw::transpose<1, 2>(x))};
  }
};
struct products_back {
  constexpr auto operator()(const auto& x, const auto& y, const auto& w) const {
    return sw::add(sw::sum(sw::tanh(sw::matmul(x, y))), sw::sum(sw::tanh(sw::linear_product(x, w))));
  }
};
template <class T, std::int64_t B, std::int64_t M, std::int64_t K, std::int64_t N>
using product_step = sw::function_step<products, mesh, sw::inputs<in<T, B, M, K>, in<T, B, K, N>, in<T, 23, K>>>;
template <class T, std::int64_t B, std::int64_t M, std::int64_t K, std::int64_t N>
using product_gradients =
    sw::gradient_step<products_back, mesh, sw::inputs<in<T, B, M, K>, in<T, B, K, N>, in<T, 23, K>>, sw::wrt<0, 1, 2>>;

TEST_CASE("parts: products along any label of the result, tall, wide, deep and alone in a batch") {
  check_cut<product_step<float, 3, 37, 13, 41>>({op_code::einsum});
  check_cut<product_step<float, 1, 150, 530, 9>>({op_code::einsum});
  check_cut<product_step<double, 2, 5, 64, 600>>({op_code::einsum});
  check_cut<product_gradients<float, 3, 37, 13, 41>>({op_code::einsum});
  run_in_parts<product_step<float, 1, 1, 3, 1>>(5);
}

struct places {
  constexpr auto operator()(const auto& x, const auto& y, const auto& row, const auto& column) const {
    const auto wide = sw::gelu(x + row) * sw::permute<1, 0>(y);
    const auto chosen = sw::where(sw::lt(x, row), wide, column);
    return std::tuple{chosen, sw::cast<double>(sw::exp(chosen)), sw::tanh(sw::permute<1, 0>(x)),
                      sw::masked_fill(x, sw::eq(x, x), 0.5)};
  }
};
using place_step =
    sw::function_step<places, mesh, sw::inputs<in<float, 31, 43>, in<float, 43, 31>, in<float, 43>, in<float, 31, 1>>>;
using fused_places =
    sw::function_step<places, mesh, sw::inputs<in<float, 31, 43>, in<float, 43, 31>, in<float, 43>, in<float, 31, 1>>,
                      sw::pipeline<sw::fuse_pointwise>>;

TEST_CASE("parts: elements at one place, broadcast and transposed operands, choices and casts") {
  check_cut<place_step>(
      {op_code::add, op_code::gelu_erf, op_code::where, op_code::cast, op_code::exp, op_code::lt, op_code::mul});
  check_cut<fused_places>({op_code::fused});
}

struct low {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return std::tuple{sw::softmax(sw::linear_product(sw::gelu(x), w)), sw::layer_norm(x, sw::sum<0>(w), sw::mean<0>(w)),
                      sw::cast<float>(x)};
  }
};
using low_step = sw::function_step<low, mesh, sw::inputs<in<sw::bfloat16, 33, 40>, in<sw::bfloat16, 29, 40>>>;

TEST_CASE("parts: elements of two bytes, which are copied as floats") {
  check_cut<low_step>(
      {op_code::einsum, op_code::softmax, op_code::norm_apply, op_code::gelu_erf, op_code::cast, op_code::sum});
}

// --- kernels that cut their own work -----------------------------------------------------------------------------------

template <sw::head_layout Layout, bool Grouped>
struct attends {
  static constexpr sw::attention_options options{.causal = true, .layout = Layout, .enable_gqa = Grouped};
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    return sw::sum(sw::tanh(sw::scaled_dot_product_attention<options>(q, k, v)));
  }
};
template <class T>
using by_head = sw::gradient_step<attends<sw::head_layout::bhtd, true>, mesh,
                                  sw::inputs<in<T, 3, 6, 70, 5>, in<T, 3, 2, 70, 5>, in<T, 3, 2, 70, 5>>, sw::wrt<0, 1, 2>>;
template <class T>
using by_time = sw::gradient_step<attends<sw::head_layout::bthd, false>, mesh,
                                  sw::inputs<in<T, 1, 9, 5, 4>, in<T, 1, 9, 5, 4>, in<T, 1, 9, 5, 4>>, sw::wrt<0, 1, 2>>;
struct turned {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::sum(sw::tanh(sw::conv2d(sw::rotary_embedding(x), w)));
  }
};
using convolved = sw::gradient_step<turned, mesh, sw::inputs<in<float, 2, 3, 9, 10>, in<float, 4, 3, 3, 3>>, sw::wrt<0, 1>>;

TEST_CASE("parts: attention by batches and heads, convolutions, rotations") {
  check_cut<by_head<float>>({op_code::custom});
  check_cut<by_head<double>>({op_code::custom});
  check_cut<by_time<float>>({op_code::custom});
  check_cut<convolved>({op_code::custom});
  CHECK(run_in_parts<by_head<float>>(5)(op_code::custom) == 3);  // attention, delta, adjoint
  CHECK(run_in_parts<convolved>(5)(op_code::custom) == 5);       // two and their adjoints, of which one has two
}
TEST_CASE("parts: heads with infinities go the plain way in parts, too") {
  for (const int threads : thread_counts)
    run_in_parts<by_head<float>>(threads, {}, [](auto& ex) {
      test::parted::fill_inputs(ex);
      ex.template input<float>(1)[70 * 5 + 3] = std::numeric_limits<float>::infinity();
    });
}

// --- what is not cut ---------------------------------------------------------------------------------------------------

TEST_CASE("parts: small work stays on one thread, and none is cut into more parts than it is worth") {
  using sw::host::cut_kind, sw::host::parts_of, sw::host::least_work;
  sw::runtime::call c;
  c.inputs = c.all_inputs = 1;
  const auto of_rows = [&](std::int64_t rows) {
    for (const int k : {0, static_cast<int>(sw::runtime::result)}) {
      c.l[k].rank = 2;
      c.l[k].ext[0] = c.l[k].global[0] = rows;
      c.l[k].ext[1] = c.l[k].global[1] = 64;
      c.l[k].make_dense();
      c.type[k] = sw::dtype::f32;
    }
    return c;
  };
  constexpr auto rows = static_cast<std::int64_t>(least_work) / 64;
  CHECK(parts_of(of_rows(2 * rows - 1), cut_kind::places, 8).count == 1);
  CHECK(parts_of(of_rows(2 * rows), cut_kind::places, 8).count == 2);
  CHECK(parts_of(of_rows(5 * rows + 1), cut_kind::rows, 8).count == 5);
  CHECK(parts_of(of_rows(100 * rows), cut_kind::rows, 8).count == 8);
  CHECK(parts_of(of_rows(100 * rows), cut_kind::rows, 1).count == 1);
  CHECK(parts_of(of_rows(100 * rows), cut_kind::whole, 8).count == 1);
}
TEST_CASE("parts: a result over an operand is cut where each part keeps to its own bytes, and only there") {
  using sw::host::cut_kind, sw::host::parts_of;
  std::vector<double> memory(4096);
  sw::runtime::call c;
  c.inputs = c.all_inputs = 1;
  for (const int k : {0, static_cast<int>(sw::runtime::result)}) {
    c.l[k].rank = 1;
    c.l[k].ext[0] = c.l[k].global[0] = 4096;
    c.l[k].make_dense();
    c.type[k] = sw::dtype::f64;
    c.p[k] = memory.data();
  }
  CHECK(parts_of(c, cut_kind::places, 4, 1).count == 4);
  c.type[sw::runtime::result] = sw::dtype::f32;  // the second part would write over what the first one reads
  CHECK(parts_of(c, cut_kind::places, 4, 1).count == 1);
  c.p[sw::runtime::result] = memory.data() + 4096;
  CHECK(parts_of(c, cut_kind::places, 4, 1).count == 4);
}

}  // namespace
