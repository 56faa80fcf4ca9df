// SPDX-License-Identifier: Apache-2.0
// Every part of the example model earns its place: without attention, positions or one rank's gradients it learns less.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "../../../../examples/train_text/corpus.hpp"
#include "../../../../examples/train_text/model.hpp"
#include "../../../../examples/train_text/ngram.hpp"

namespace {

namespace tt = train_text;
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using size = tt::config</*batch*/ 16, /*time*/ 64, /*width*/ 64, /*heads*/ 4, /*layers*/ 2>;
using plan = tt::megatron_plan<size, dp, tp>;

enum class part { none, attention, position };

template <part Without>
struct ablated {
  template <class Bound = sw::unbound>
  struct block : sw::module<block<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::layer_norm_module<size::width>, norm1), (tt::attention<size>, attn),
                      (sw::layer_norm_module<size::width>, norm2), (tt::feed_forward<size>, ffn));
    template <class X>
    constexpr auto forward(const X& x) const {
      const auto h = x + sw::scale(attn(norm1(x)), Without == part::attention ? 0.0 : 1.0);
      return h + ffn(norm2(h));
    }
  };

  template <class Bound = sw::unbound>
  struct gpt : sw::module<gpt<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::embedding_table<size::bytes, size::width, sw::unbound, tt::narrow>, bytes),
                      (tt::positions<size>, position), (sw::repeat<size::layers, block>, layers),
                      (sw::layer_norm_module<size::width>, norm));
    template <class X>
    constexpr auto forward(const X& x) const {
      const auto e = bytes(x) + sw::scale(position.weight, Without == part::position ? 0.0 : 1.0);
      return sw::linear_product(norm(layers(e)), bytes.weight);
    }
  };
};

using ids = sw::input_tensor<std::int32_t, sw::shape<size::batch, size::time>, sw::on<dp, sw::shard<0>>>;
using weights = sw::input_tensor<float, sw::shape<size::batch, size::time>, sw::on<dp, sw::shard<0>>>;

// Rows count as much as their weight: zero weights on one rank's rows drop its gradients.
struct weighted {
  using inputs = sw::inputs<ids, ids, weights>;
  constexpr auto operator()(const auto& model, const auto& in, const auto& next, const auto& weight) const {
    return sw::mean(sw::cross_entropy_rows(model(in), next) * weight);
  }
};

struct data {
  tt::corpus text = tt::load_corpus(std::nullopt, 1);
  std::vector<std::size_t> starts;
  data() {
    const std::size_t spans = 64 * size::batch;
    for (std::size_t i = 0; i < spans; ++i) starts.push_back(i * (text.held_out.size() - size::time - 1) / spans);
  }
};
const data& shared() {
  static const data d;
  return d;
}

void take(const std::vector<std::uint8_t>& text, std::size_t row, std::size_t start, std::vector<std::int32_t>& in,
          std::vector<std::int32_t>& next) {
  for (std::size_t t = 0; t < size::time; ++t) {
    in[row * size::time + t] = text[start + t];
    next[row * size::time + t] = text[start + t + 1];
  }
}

// Held-out bits per byte after `steps` steps on the real text.
template <part Without>
double trained(int steps, bool drop_rank = false) {
  using step = sw::train_step<ablated<Without>::template gpt, weighted, plan, mesh, sw::clip_norm<sw::adamw<true>>>;
  using score = sw::forward_step<ablated<Without>::template gpt, weighted, plan, mesh>;
  const data& d = shared();
  double bits = 0;
  sw::launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<step, rank_type> run(rank);
    run.initialise(1);
    std::vector<std::int32_t> in(size::batch * size::time), next(in.size());
    std::vector<float> weight(in.size(), 1.0F);
    if (drop_rank) std::fill(weight.begin() + static_cast<std::ptrdiff_t>(in.size() / 2), weight.end(), 0.0F);
    sw::step_env env;
    env.seed = 1;
    env.beta2 = 0.99;
    env.max_norm = 1;
    for (int s = 1; s <= steps; ++s) {
      for (std::size_t r = 0; r < size::batch; ++r) {
        const double u = sw::philox_uniform(7, 0, static_cast<std::uint32_t>(s), r);
        take(d.text.train, r, static_cast<std::size_t>(u * static_cast<double>(d.text.train.size() - size::time)), in, next);
      }
      run.set_input(0, in);
      run.set_input(1, next);
      run.set_input(2, weight);
      env.step = s;
      env.lr = 4e-3 * std::min(1.0, s / 40.0) * (1 - 0.9 * s / steps);
      run.run(env);
    }
    sw::executor<score, rank_type> judge(rank);
    for (int i = 0; i < run.parameter_count(); ++i) {
      const auto from = run.parameter(i);
      std::copy(from.begin(), from.end(), judge.parameter(i).begin());
    }
    judge.set_input(2, std::vector<float>(in.size(), 1.0F));
    double total = 0;
    for (std::size_t first = 0; first < d.starts.size(); first += size::batch) {
      for (std::size_t r = 0; r < size::batch; ++r) take(d.text.held_out, r, d.starts[first + r], in, next);
      judge.set_input(0, in);
      judge.set_input(1, next);
      judge.run(env);
      total += judge.loss();
    }
    if (rank.index() == 0) bits = total / static_cast<double>(d.starts.size() / size::batch) / std::log(2.0);
  });
  return bits;
}

constexpr int steps = 300;

double whole_model() {
  static const double bits = trained<part::none>(steps);
  return bits;
}

}  // namespace

TEST_CASE("training: the whole model beats bigram counts within a few hundred steps") {
  const data& d = shared();
  const double bigram = tt::bits_per_byte(tt::ngram(d.text.train, 2), d.text.held_out, d.starts, size::time);
  MESSAGE("whole model " << whole_model() << ", bigram " << bigram);
  CHECK(whole_model() < bigram);
}

TEST_CASE("training: attention zeroed is worse") {
  const double bits = trained<part::attention>(steps);
  MESSAGE("attention zeroed " << bits << ", whole model " << whole_model());
  CHECK(bits > whole_model());
}

TEST_CASE("training: position embedding zeroed is worse") {
  const double bits = trained<part::position>(steps);
  MESSAGE("positions zeroed " << bits << ", whole model " << whole_model());
  CHECK(bits > whole_model());
}

TEST_CASE("training: dropping one data-parallel rank's gradients is worse") {
  const double bits = trained<part::none>(steps, true);
  MESSAGE("one rank dropped " << bits << ", whole model " << whole_model());
  CHECK(bits > whole_model());
}
