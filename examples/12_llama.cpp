// SPDX-License-Identifier: Apache-2.0
// Llama in one page: RMSNorm, rotary positions, SwiGLU, grouped-query attention; tensor and sequence parallel over tp, in shards over dp.

#include <cstdint>
#include <cstdio>
#include <vector>

#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
inline constexpr int batch = 4, length = 16, width = 32, heads = 4, kv_heads = 2, head = width / heads, hidden = 64,
                     bytes = 96, depth = 2;

template <int In, int Out>
using matrix = sw::linear<In, Out, sw::unbound, /*bias*/ false, sw::init::normal<20, 1000>>;

template <class Bound = sw::unbound>
struct attention : sw::module<attention<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (matrix<width, heads * head>, wq), (matrix<width, kv_heads * head>, wk),
                    (matrix<width, kv_heads * head>, wv), (matrix<heads * head, width>, wo));
  constexpr auto forward(const auto& x) const {
    constexpr sw::rotary_options turned{.layout = sw::head_layout::bthd};
    constexpr sw::attention_options grouped{.layout = sw::head_layout::bthd, .enable_gqa = true};  // causal by default
    const auto q = sw::rotary_embedding<turned>(sw::unflatten<-1, heads, head>(wq(x)));
    const auto k = sw::rotary_embedding<turned>(sw::unflatten<-1, kv_heads, head>(wk(x)));
    const auto v = sw::unflatten<-1, kv_heads, head>(wv(x));
    return wo(sw::flatten<2, 3>(sw::scaled_dot_product_attention<grouped>(q, k, v)));
  }
};
template <class Bound = sw::unbound>
struct feed_forward : sw::module<feed_forward<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (matrix<width, hidden>, w1), (matrix<hidden, width>, w2), (matrix<width, hidden>, w3));
  constexpr auto forward(const auto& x) const { return w2(sw::silu(w1(x)) * w3(x)); }
};
template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::rms_norm_module<width>, attention_norm), (attention<>, attn),
                    (sw::rms_norm_module<width>, ffn_norm), (feed_forward<>, ffn));
  constexpr auto forward(const auto& x) const {
    const auto h = x + attn(attention_norm(x));
    return h + ffn(ffn_norm(h));
  }
};
template <class Bound = sw::unbound>
struct llama : sw::module<llama<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::embedding_table<bytes, width>, tokens), (sw::repeat<depth, block>, layers),
                    (sw::rms_norm_module<width>, norm), (matrix<width, bytes>, head));
  constexpr auto forward(const auto& ids) const { return head(norm(layers(tokens(ids)))); }
};

// Between blocks activations are split along time (dim 1); a block gathers them once for all of its first matrices, which split
// heads and hidden features, and scatters what its last one sums. The classes of the loss stay split.
using gather = sw::prepare_input<tp, sw::replicate>;
using scattered = sw::output<sw::shard<1>>;
using plan =
    sw::plan<sw::fully_shard<dp>, sw::at<"layers.*", sw::fully_shard<dp>>,  // FSDP
             sw::at<"tokens", sw::rowwise<tp, 1, scattered>>,               // rows of the table
             sw::at<"norm", sw::sequence_parallel<tp>>, sw::at<"layers.*.*_norm", sw::sequence_parallel<tp>>,
             sw::at<"layers.*.attn", gather>, sw::at<"layers.*.attn.w[qkv]", sw::colwise<tp, head>>,  // by whole heads
             sw::at<"layers.*.attn.wo", sw::rowwise<tp, head, scattered>>, sw::at<"layers.*.ffn", gather>,
             sw::at<"layers.*.ffn.w[13]", sw::colwise<tp>>, sw::at<"layers.*.ffn.w2", sw::rowwise<tp, 1, scattered>>,
             sw::at<"head", sw::colwise<tp, 1, sw::input<sw::shard<1>>>>>;  // classes over tp
struct task {
  using ids = sw::input_tensor<std::int32_t, sw::shape<batch, length>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<ids, ids>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& next) const {
    return sw::loss_parallel_cross_entropy<tp>(model(x), next);
  }
};
using step = sw::train_step<llama, task, plan, mesh, sw::clip_norm<sw::adamw<true>>>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<std::int32_t> ids(batch * length), next(batch * length);
    for (int i = 0; i < batch * length; ++i) ids[i] = i * i % 17, next[i] = (i + 1) * (i + 1) % 17;
    sw::step_env env;
    env.lr = 0.01, env.weight_decay = 0.1, env.max_norm = 1;
    for (env.step = 1; env.step <= 40; ++env.step) {
      run.set_input(0, ids);
      run.set_input(1, next);
      run.run(env);
      if (rank.index() == 0 && env.step % 10 == 0)
        std::printf("step %d  loss %.3f\n", static_cast<int>(env.step), static_cast<double>(run.loss()));
    }
  });
  std::printf("of a rank: %lld bytes of memory; sent in a step: dp %lld, tp %lld\n",
              static_cast<long long>(step::peak_bytes), static_cast<long long>(step::comm_bytes<dp>),
              static_cast<long long>(step::comm_bytes<tp>));
}
