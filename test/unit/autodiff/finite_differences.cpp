// SPDX-License-Identifier: Apache-2.0
// Every pullback against central differences of the same program's loss: the calculus, where the rule proofs show
// that shards agree.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <shardwise/shardwise.hpp>

namespace {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

constexpr std::int64_t rows = 3, columns = 4;

// Two parameters of rank 2 and one of rank 1, for F to combine.
template <class F>
struct holder {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<rows, columns>, sw::init::normal<1, 1>>, a),
                      (sw::parameter<sw::shape<rows, columns>, sw::init::normal<1, 1>>, b),
                      (sw::parameter<sw::shape<columns>, sw::init::normal<1, 1>>, c));
    constexpr auto forward(const auto& weight) const { return sw::sum(F{}(a, b, c) * weight); }
  };
};

// The result of F has extents Extents; it is weighted by fixed numbers so that no gradient vanishes by symmetry.
template <class F, class Extents>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, Extents>, sw::input_tensor<std::int32_t, sw::shape<rows>>>;
  constexpr auto operator()(const auto& model, const auto& weight, const auto&) const { return model(weight); }
};

template <class F, class Extents>
void check_gradients() {
  using step =
      sw::train_step<holder<F>::template model, task<F, Extents>, sw::plan<>, mesh, sw::sgd<>, sw::pipeline<>, double>;
  sw::launch<mesh>([](auto& rank) {
    using executor = sw::executor<step, sw::thread_rank<mesh>>;
    std::size_t outputs = 1;
    for (int d = 0; d < Extents::rank; ++d) outputs *= static_cast<std::size_t>(Extents::extent[d]);
    std::vector<double> weight(outputs);
    for (std::size_t i = 0; i < outputs; ++i) weight[i] = std::sin(1.7 * static_cast<double>(i) + 0.3);
    sw::step_env env;
    env.step = 1;

    executor run(rank);
    auto prepare = [&] {
      run.initialise(5);
      run.set_input(0, weight);
    };
    // with lr = 1 plain SGD subtracts the gradient itself
    env.lr = 1;
    prepare();
    std::vector<std::vector<double>> before, gradient;
    for (int p = 0; p < run.parameter_count(); ++p) before.emplace_back(run.parameter(p).begin(), run.parameter(p).end());
    run.run(env);
    for (int p = 0; p < run.parameter_count(); ++p) {
      std::vector<double> g;
      for (std::size_t i = 0; i < before[static_cast<std::size_t>(p)].size(); ++i)
        g.push_back(before[static_cast<std::size_t>(p)][i] - run.parameter(p)[i]);
      gradient.push_back(g);
    }
    env.lr = 0;
    double largest = 0;
    for (const auto& g : gradient)
      for (double x : g) largest = std::max(largest, std::abs(x));
    CHECK(largest > 1e-3);
    for (int p = 0; p < run.parameter_count(); ++p)
      for (std::size_t i = 0; i < gradient[static_cast<std::size_t>(p)].size(); ++i) {
        constexpr double h = 1e-5;
        double side[2];
        for (int s = 0; s < 2; ++s) {
          prepare();
          run.parameter(p)[i] += s ? h : -h;
          run.run(env);
          side[s] = run.loss();
        }
        CHECK(gradient[static_cast<std::size_t>(p)][i] ==
              doctest::Approx((side[1] - side[0]) / (2 * h)).epsilon(1e-6).scale(largest));
      }
  });
}

using full = sw::shape<rows, columns>;
using square = sw::shape<rows, rows>;
using turned = sw::shape<columns, rows>;
using by_row = sw::shape<rows>;
using by_column = sw::shape<columns>;
using part = sw::shape<rows, 2>;
using wider = sw::shape<rows, 2 * columns>;

// Indices 3, 1, 3, 1 in every row; made in the program, so that they need no input.
constexpr auto repeated(const auto& like) {
  const auto two = sw::arange_from<std::int32_t, 3, -1, -2>(like);
  return sw::expand<rows, columns>(sw::cat<0>(two, two));
}

}  // namespace

#define SHARDWISE_CASE(name, extents, expression)                                             \
  namespace {                                                                                 \
  struct name {                                                                               \
    constexpr auto operator()([[maybe_unused]] const auto& a, [[maybe_unused]] const auto& b, \
                              [[maybe_unused]] const auto& c) const {                         \
      return expression;                                                                      \
    }                                                                                         \
  };                                                                                          \
  }                                                                                           \
  TEST_CASE("gradient: " #name) { check_gradients<name, extents>(); }

// clang-format off: a table
SHARDWISE_CASE(add_and_sub_broadcast, full, (a + c) - (c - b))
SHARDWISE_CASE(mul_broadcast, full, a * c * b)
SHARDWISE_CASE(scaled, full, sw::scale(a, -2.5) * b)
SHARDWISE_CASE(relu_of, full, sw::relu(a) * b)
SHARDWISE_CASE(tanh_of, full, sw::tanh(a * b))
SHARDWISE_CASE(gelu_erf_of, full, sw::gelu(a + b))
SHARDWISE_CASE(gelu_tanh_of, full, (sw::gelu<sw::gelu_form::tanh>(a + b)))
SHARDWISE_CASE(matrix_product, square, (sw::matmul(a, sw::permute<1, 0>(b))))
SHARDWISE_CASE(linear_of, square, sw::linear_product(a, b))
SHARDWISE_CASE(row_sums, by_row, (sw::sum<1>(a * b)))
SHARDWISE_CASE(column_means, by_column, (sw::mean<0>(a * a)))
SHARDWISE_CASE(row_norms, by_row, (sw::vector_norm<2, 1>(a * b)))
SHARDWISE_CASE(column_norms_of_order_one, by_column, (sw::vector_norm<1, 0>(a * b)))
SHARDWISE_CASE(norm_of_order_three, full, (b * sw::vector_norm<3>(a)))
SHARDWISE_CASE(sum_of_squares, full, (b * sw::detail::apply<sw::op_code::sumsq, sw::attributes<sw::sum_attributes>(3)>(0, a)))
SHARDWISE_CASE(column_sums_of_squares, by_column, (sw::detail::apply<sw::op_code::sumsq, sw::attributes<sw::sum_attributes>(1)>(0, a * b)))
SHARDWISE_CASE(softmax_of, full, sw::softmax(a) * b)
SHARDWISE_CASE(causal_softmax_of, full, sw::causal_softmax(a) * b)
SHARDWISE_CASE(layer_norm_of, full, sw::layer_norm(a * b, c, c))
SHARDWISE_CASE(rms_norm_of, full, sw::rms_norm(a * b, c))
SHARDWISE_CASE(permuted, turned, (sw::permute<1, 0>(a * b)))
SHARDWISE_CASE(reshaped, turned, (sw::reshape<columns, rows>(sw::permute<1, 0>(a)) * sw::reshape<columns, rows>(b)))
SHARDWISE_CASE(sliced, part, (sw::slice<1, 1, 2>(a) * sw::slice<-1, 2, 2>(b)))
SHARDWISE_CASE(joined, wider, (sw::cat<1>(a * b, a)))
SHARDWISE_CASE(joined_with_itself, wider, (sw::cat<1>(a, a)))
using pile = sw::shape<2, rows, columns>;
SHARDWISE_CASE(stacked, pile, sw::stack<0>(a * b, b))
SHARDWISE_CASE(split_in_two, part, (std::get<0>(sw::chunk<1, 2>(a)) * std::get<1>(sw::split<1, 2, 2>(b))))
SHARDWISE_CASE(unbound, by_row, (std::get<1>(sw::unbind<1>(a)) * sw::select<1, -1>(a)))
SHARDWISE_CASE(expanded, full, (sw::expand<rows, columns>(c) * a))
SHARDWISE_CASE(transposed_and_squeezed, turned, (sw::squeeze<1>(sw::unsqueeze<1>(sw::transpose<0, 1>(a))) * sw::transpose<1, 0>(b)))
SHARDWISE_CASE(flattened, by_row, (sw::sum<1>(sw::unflatten<0, -1, 4>(sw::flatten(sw::transpose<0, 1>(a * b))))))
SHARDWISE_CASE(gathered, full, sw::gather<1>(a * b, repeated(a)))
SHARDWISE_CASE(scatter_added, full, sw::scatter_add<1>(a, repeated(a), a * b))
SHARDWISE_CASE(scattered, full, sw::scatter<1>(a, repeated(a), a * b))  // overwritten elements have gradient 0
SHARDWISE_CASE(scattered_number, full, (sw::scatter<1>(a * b, repeated(a), 2.0)))
SHARDWISE_CASE(selected_by_index, part, (sw::index_select<1>(a * b, sw::arange_from<std::int32_t, 3, -1, -2>(a))))
SHARDWISE_CASE(added_by_index, full, (sw::index_add<1>(a, sw::arange_from<std::int32_t, 3, -1, -2>(a), sw::slice<1, 1, 2>(b))))
using framed = sw::shape<rows + 1, columns + 2>;
SHARDWISE_CASE(padded, framed, (sw::constant_pad<1, 1, 0, 1>(a * b, 2)))
SHARDWISE_CASE(lower, full, (sw::tril(a * b) * sw::triu<-1>(b)))
SHARDWISE_CASE(with_random_numbers, full, a * sw::rand_like(a) + b * sw::randn_like(b) * sw::bernoulli(sw::full_like(a, 0.5)))
SHARDWISE_CASE(dropped, full, sw::dropout(a * b, 0.3))
SHARDWISE_CASE(one_value_used_often, full, a + a * a + sw::tanh(a) * a)
// clang-format on
