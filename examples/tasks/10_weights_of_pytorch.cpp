// SPDX-License-Identifier: Apache-2.0
// Attention whose weights lie in a safetensors file under PyTorch's names: q, k and v in one matrix, the last matrix transposed.

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
inline constexpr int length = 4, width = 8, heads = 2, head = width / heads;

template <class Bound = sw::unbound>
struct attention : sw::module<attention<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<width, width>, wq), (sw::linear<width, width>, wk), (sw::linear<width, width>, wv),
                    (sw::linear<width, width, sw::unbound, false>, wo));
  static constexpr auto split(const auto& x) { return sw::unflatten<-1, heads, head>(x); }
  constexpr auto forward(const auto& x) const {
    constexpr sw::attention_options causal{.causal = true, .layout = sw::head_layout::bthd};
    return wo(sw::flatten<2, 3>(sw::scaled_dot_product_attention<causal>(split(wq(x)), split(wk(x)), split(wv(x)))));
  }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<1, length, width>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
using plan = sw::plan<sw::at<"w[qkv]", sw::colwise<tp, head>>, sw::at<"wo", sw::rowwise<tp, head>>>;
using names = sw::weight_names<sw::named_as<"wq.weight", "attn.in_proj_weight", sw::part_of<0, 3>>,
                               sw::named_as<"wk.weight", "attn.in_proj_weight", sw::part_of<1, 3>>,
                               sw::named_as<"wv.weight", "attn.in_proj_weight", sw::part_of<2, 3>>,
                               sw::named_as<"wq.bias", "attn.in_proj_bias", sw::part_of<0, 3>>,
                               sw::named_as<"wk.bias", "attn.in_proj_bias", sw::part_of<1, 3>>,
                               sw::named_as<"wv.bias", "attn.in_proj_bias", sw::part_of<2, 3>>,
                               sw::named_as<"wo.weight", "attn.out.kernel", sw::transposed>>;

std::vector<float> numbers(int n, int seed) {
  std::vector<float> v(n);
  for (int i = 0; i < n; ++i) v[i] = std::sin(1.F * i * seed + seed);
  return v;
}

int main() {
  const std::string folder = "shardwise_task_10_";
  const std::vector<float> qkv = numbers(3 * width * width, 3), bias = numbers(3 * width, 5),
                           out = numbers(width * width, 7);
  sw::write_safetensors(folder + "theirs.safetensors", {{"attn.in_proj_weight", {3 * width, width}, qkv},
                                                        {"attn.in_proj_bias", {3 * width}, bias},
                                                        {"attn.out.kernel", {width, width}, out}});
  const std::vector<float> x = numbers(length * width, 2);
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<sw::forward_step<attention, task, plan, mesh>> run(rank);
    sw::load_weights<names>(run, folder + "theirs.safetensors");
    run.set_input(0, x);
    run.run({});
    // The first token sees itself alone: wo(wv(x)).
    for (int o = 0; o < width; ++o) {
      double sum = 0;
      for (int h = 0; h < width; ++h) {
        double v = bias[2 * width + h];
        for (int i = 0; i < width; ++i) v += qkv[(2 * width + h) * width + i] * x[i];
        sum += v * out[h * width + o];
      }
      check(std::fabs(run.output()[o] - sum) < 1e-5, "the model computes with the file's weights");
    }
    sw::save_weights<names>(run, folder + "ours.safetensors");
  });
  const sw::safetensors_reader ours(folder + "ours.safetensors");
  check(ours.values<float>("attn.in_proj_weight") == qkv && ours.values<float>("attn.in_proj_bias") == bias &&
            ours.values<float>("attn.out.kernel") == out,
        "the file written has the same names and values");
  std::filesystem::remove(folder + "theirs.safetensors");
  std::filesystem::remove(folder + "ours.safetensors");
}
