// SPDX-License-Identifier: Apache-2.0
// A Llama block, its heads and hidden features over two ranks, beside the same block on one.

#include <cmath>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

inline constexpr int batch = 2, length = 8, width = 32, heads = 4, kv_heads = 2, head = width / heads, hidden = 48;
template <int In, int Out>
using matrix = sw::linear<In, Out, sw::unbound, /*bias*/ false>;

template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::rms_norm_module<width>, norm1), (matrix<width, heads * head>, wq),
                    (matrix<width, kv_heads * head>, wk), (matrix<width, kv_heads * head>, wv),
                    (matrix<heads * head, width>, wo), (sw::rms_norm_module<width>, norm2), (matrix<width, hidden>, w1),
                    (matrix<hidden, width>, w2), (matrix<width, hidden>, w3));
  constexpr auto forward(const auto& x) const {
    constexpr sw::rotary_options turned{.layout = sw::head_layout::bthd};
    constexpr sw::attention_options grouped{.layout = sw::head_layout::bthd, .enable_gqa = true};
    const auto n = norm1(x);
    const auto q = sw::rotary_embedding<turned>(sw::unflatten<-1, heads, head>(wq(n)));
    const auto k = sw::rotary_embedding<turned>(sw::unflatten<-1, kv_heads, head>(wk(n)));
    const auto v = sw::unflatten<-1, kv_heads, head>(wv(n));
    const auto h = x + wo(sw::flatten<2, 3>(sw::scaled_dot_product_attention<grouped>(q, k, v)));
    const auto m = norm2(h);
    return h + w2(sw::silu(w1(m)) * w3(m));
  }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<batch, length, width>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
template <int Ranks>
struct tp : sw::axis<Ranks> {};
template <int Ranks>
using plan = sw::plan<sw::at<"w[qkv]", sw::colwise<tp<Ranks>, head>>, sw::at<"wo", sw::rowwise<tp<Ranks>, head>>,
                      sw::at<"w[13]", sw::colwise<tp<Ranks>>>, sw::at<"w2", sw::rowwise<tp<Ranks>>>>;

template <int Ranks>
std::vector<float> result() {
  std::vector<float> y;
  sw::launch<sw::mesh<tp<Ranks>>>([&](auto& rank) {
    sw::executor<sw::forward_step<block, task, plan<Ranks>, sw::mesh<tp<Ranks>>>> run(rank);
    run.initialise(/*seed*/ 1);  // the same values on every mesh
    std::vector<float> x(batch * length * width);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 19) / 9.5F - 1;
    run.set_input(0, x);
    run.run({});
    if (rank.index() == 0) y.assign(run.output().begin(), run.output().end());
  });
  return y;
}

int main() {
  const std::vector<float> one = result<1>(), two = result<2>();
  check(one.size() == batch * length * width && one.size() == two.size(), "both are whole");
  for (std::size_t i = 0; i < one.size(); ++i) check(std::fabs(one[i] - two[i]) < 1e-5F, "two ranks give what one gives");
}
