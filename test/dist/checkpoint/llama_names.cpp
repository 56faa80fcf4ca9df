// SPDX-License-Identifier: Apache-2.0
// Llama's names: files in Hugging Face's form and in Meta's are read into the course's model, which gives the logits that plain loops give,
// each written after the library whose form it is; and go back, and from one form to the other.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdint>
#include <files.hpp>
#include <shardwise/shardwise.hpp>
#include <string>
#include <vector>

#define main example
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"  // a main that is none
namespace course {
#include <12_llama.cpp>
}  // namespace course
#pragma GCC diagnostic pop
#undef main
#include <common/llama_names.hpp>

namespace {

namespace sw = shardwise;
using course::batch, course::length, course::width, course::heads, course::kv_heads, course::head, course::hidden,
    course::bytes, course::depth;

template <int N>
struct worker : sw::axis<N> {};

template <class Batch>
struct logits_task {
  using inputs = sw::inputs<sw::input_tensor<std::int32_t, sw::shape<batch, length>, sw::on<Batch, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return whole(model(x)); }
  template <class Y>
  static constexpr auto whole(const Y& y) {
    if constexpr (Y::mesh_type::axes == 2)
      return sw::redistribute<Batch, sw::replicate>(sw::redistribute<course::tp, sw::replicate>(y));
    else return sw::redistribute<Batch, sw::replicate>(y);
  }
};
using parallel =
    sw::forward_step<course::llama, logits_task<course::dp>, course::plan, course::mesh, sw::pipeline<>, double>;
// Rows of a matrix over N ranks, wherever heads begin.
template <int N>
using sharded = sw::forward_step<course::llama, logits_task<worker<N>>,
                                 sw::plan<sw::fully_shard<worker<N>>, sw::at<"layers.*", sw::fully_shard<worker<N>>>>,
                                 sw::mesh<worker<N>>, sw::pipeline<>, double>;
using meta = llama_names::meta<head>;
using hugging_face = llama_names::hugging_face;

std::vector<std::int32_t> tokens() {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < batch * length; ++i) ids.push_back(i * i % 89);
  return ids;
}

// What the tensors of a file are called, and which rows of a head are pair i.
struct form {
  std::string tokens, attention_norm, wq, wk, wv, wo, ffn_norm, w1, w2, w3, norm, output, left_out;
  bool neighbours;
};
const form hugging_face_form{"model.embed_tokens.weight",
                             "model.layers.*.input_layernorm.weight",
                             "model.layers.*.self_attn.q_proj.weight",
                             "model.layers.*.self_attn.k_proj.weight",
                             "model.layers.*.self_attn.v_proj.weight",
                             "model.layers.*.self_attn.o_proj.weight",
                             "model.layers.*.post_attention_layernorm.weight",
                             "model.layers.*.mlp.gate_proj.weight",
                             "model.layers.*.mlp.down_proj.weight",
                             "model.layers.*.mlp.up_proj.weight",
                             "model.norm.weight",
                             "lm_head.weight",
                             "model.layers.1.self_attn.rotary_emb.inv_freq",
                             false};
const form meta_form{"tok_embeddings.weight",
                     "layers.*.attention_norm.weight",
                     "layers.*.attention.wq.weight",
                     "layers.*.attention.wk.weight",
                     "layers.*.attention.wv.weight",
                     "layers.*.attention.wo.weight",
                     "layers.*.ffn_norm.weight",
                     "layers.*.feed_forward.w1.weight",
                     "layers.*.feed_forward.w2.weight",
                     "layers.*.feed_forward.w3.weight",
                     "norm.weight",
                     "output.weight",
                     "rope.freqs",
                     true};

std::string of_layer(std::string name, int layer) { return name.replace(name.find('*'), 1, std::to_string(layer)); }

// A file in that form, each element another number.
void write(const std::string& path, const form& f) {
  std::vector<sw::safetensors_entry> all;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    all.push_back({name, "F32", std::move(shape), 0, 0});
  };
  add(f.tokens, {bytes, width});
  for (int l = 0; l < depth; ++l) {
    add(of_layer(f.attention_norm, l), {width});
    add(of_layer(f.wq, l), {heads * head, width});
    add(of_layer(f.wk, l), {kv_heads * head, width});
    add(of_layer(f.wv, l), {kv_heads * head, width});
    add(of_layer(f.wo, l), {width, heads * head});
    add(of_layer(f.ffn_norm, l), {width});
    add(of_layer(f.w1, l), {hidden, width});
    add(of_layer(f.w2, l), {width, hidden});
    add(of_layer(f.w3, l), {hidden, width});
  }
  add(f.norm, {width});
  add(f.output, {bytes, width});
  add(f.left_out, {head / 2});
  sw::safetensors_writer file(path, all);
  std::uint64_t at = 1;
  for (const auto& e : file.entries()) {
    std::vector<float> v((e.end - e.begin) / sizeof(float));
    for (float& x : v) {
      at = at * 6364136223846793005U + 1442695040888963407U;
      x = static_cast<float>(at >> 40) / static_cast<float>(1 << 24) - 0.5F + (e.shape.size() == 1 ? 1.0F : 0.0F);
    }
    file.put(v.data(), v.size() * sizeof(float));
  }
  file.finish();
}

// --- the reference: one sequence at a time, in loops --------------------------------------------------------------------------

using values = std::vector<double>;
using rows = std::vector<values>;

values linear(const values& w, const values& x) {  // w: outputs x inputs
  values y(w.size() / x.size(), 0.0);
  for (std::size_t o = 0; o < y.size(); ++o)
    for (std::size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
  return y;
}
values rms_norm(const values& w, const values& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  values y;
  for (std::size_t i = 0; i < x.size(); ++i)
    y.push_back(x[i] / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5) * w[i]);
  return y;
}
void turn(values& x, int position, bool neighbours) {
  for (std::size_t h = 0; h < x.size(); h += head)
    for (std::size_t i = 0; i < head / 2; ++i) {
      const std::size_t a = h + (neighbours ? 2 * i : i), b = neighbours ? a + 1 : a + head / 2;
      const double angle = position * std::pow(10000.0, -2.0 * static_cast<double>(i) / head);
      const double p = x[a], q = x[b];
      x[a] = p * std::cos(angle) - q * std::sin(angle);
      x[b] = p * std::sin(angle) + q * std::cos(angle);
    }
}
values attend(const values& q, const rows& k, const rows& v, std::size_t now) {
  values out;
  for (int h = 0; h < heads; ++h) {
    const std::size_t at = static_cast<std::size_t>(h) * head, kv = static_cast<std::size_t>(h / (heads / kv_heads)) * head;
    values p;
    double most = -1e300, sum = 0;
    for (std::size_t s = 0; s <= now; ++s) {
      double score = 0;
      for (std::size_t i = 0; i < head; ++i) score += q[at + i] * k[s][kv + i];
      p.push_back(score / std::sqrt(static_cast<double>(head)));
      most = std::max(most, p.back());
    }
    for (double& x : p) sum += x = std::exp(x - most);
    for (std::size_t i = 0; i < head; ++i) {
      double y = 0;
      for (std::size_t s = 0; s <= now; ++s) y += p[s] / sum * v[s][kv + i];
      out.push_back(y);
    }
  }
  return out;
}
void add(values& x, const values& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

values reference(const std::string& path, const form& f) {
  const sw::safetensors_reader file(path);
  const auto weight = [&](const std::string& name) {
    const std::vector<float> v = file.values<float>(name);
    return values(v.begin(), v.end());
  };
  const std::vector<std::int32_t> ids = tokens();
  const values table = weight(f.tokens), output = weight(f.output), norm = weight(f.norm);
  values all;
  for (int b = 0; b < batch; ++b) {
    rows x;
    for (int t = 0; t < length; ++t) {
      const auto* const row = table.data() + ids[static_cast<std::size_t>(b * length + t)] * width;
      x.emplace_back(row, row + width);
    }
    for (int l = 0; l < depth; ++l) {
      const auto w = [&](const std::string& name) { return weight(of_layer(name, l)); };
      const values wq = w(f.wq), wk = w(f.wk), wv = w(f.wv), wo = w(f.wo), w1 = w(f.w1), w2 = w(f.w2), w3 = w(f.w3);
      rows q, k, v;
      for (int t = 0; t < length; ++t) {
        const values n = rms_norm(w(f.attention_norm), x[static_cast<std::size_t>(t)]);
        q.push_back(linear(wq, n));
        k.push_back(linear(wk, n));
        v.push_back(linear(wv, n));
        turn(q.back(), t, f.neighbours);
        turn(k.back(), t, f.neighbours);
      }
      for (std::size_t t = 0; t < x.size(); ++t) {
        add(x[t], linear(wo, attend(q[t], k, v, t)));
        const values n = rms_norm(w(f.ffn_norm), x[t]);
        values gate = linear(w1, n);
        const values up = linear(w3, n);
        for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
        add(x[t], linear(w2, gate));
      }
    }
    for (const values& each : x) {
      const values y = linear(output, rms_norm(norm, each));
      all.insert(all.end(), y.begin(), y.end());
    }
  }
  return all;
}

double apart(const values& a, const values& b) {
  double most = a.size() == b.size() && !a.empty() ? 0 : 1e9;
  for (std::size_t i = 0; i < a.size() && most < 1e9; ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// The model's logits with the weights of a file, which it also writes in both forms.
template <class Names, class Program>
values logits_of(const std::string& path, const std::string& as_hugging_face = {}, const std::string& as_meta = {}) {
  values all;
  sw::launch<typename Program::mesh_type>([&](auto& rank) {
    sw::executor<Program> run(rank);
    sw::load_weights<Names>(run, path);
    run.set_input(0, tokens());
    run.run({});
    if (rank.index() == 0) all.assign(run.output().begin(), run.output().end());
    if (!as_hugging_face.empty()) sw::save_weights<hugging_face>(run, as_hugging_face);
    if (!as_meta.empty()) sw::save_weights<meta>(run, as_meta);
  });
  return all;
}

// Every tensor of one file is in the other, element by element, but for what is left out.
bool same_weights(const std::string& path, const std::string& back, const form& f) {
  const sw::safetensors_reader a(path), b(back);
  bool same = a.entries().size() == b.entries().size() + 1;
  for (const auto& e : a.entries()) {
    if (e.name == f.left_out) continue;
    const auto x = a.values<float>(e.name);
    same = same && b.has(e.name) && b.entry(e.name).shape == e.shape &&
           b.values<double>(e.name) == std::vector<double>(x.begin(), x.end());
  }
  return same;
}

}  // namespace

TEST_CASE("weights: Llama's names of Hugging Face, the reference's logits") {
  const test::folder scratch;
  write(scratch / "hf", hugging_face_form);
  const values want = reference(scratch / "hf", hugging_face_form);
  const values got = logits_of<hugging_face, parallel>(scratch / "hf", scratch / "hf4");
  CHECK(apart(got, want) < 1e-10);
  CHECK(apart(logits_of<hugging_face, sharded<3>>(scratch / "hf", scratch / "hf3"), want) < 1e-10);
  CHECK(same_weights(scratch / "hf", scratch / "hf4", hugging_face_form));
  CHECK(same_weights(scratch / "hf", scratch / "hf3", hugging_face_form));
  // the reference tells the forms apart
  form other = hugging_face_form;
  other.neighbours = true;
  CHECK(apart(reference(scratch / "hf", other), want) > 1e-3);
}

TEST_CASE("weights: Meta's names of Llama, whose heads are interleaved, and from one form to the other") {
  const test::folder scratch;
  write(scratch / "meta", meta_form);
  const values want = reference(scratch / "meta", meta_form);
  CHECK(apart(logits_of<meta, parallel>(scratch / "meta", scratch / "hf", scratch / "meta4"), want) < 1e-10);
  CHECK(apart(logits_of<meta, sharded<3>>(scratch / "meta", {}, scratch / "meta3"), want) <
        1e-10);  // shards end within heads
  CHECK(same_weights(scratch / "meta", scratch / "meta4", meta_form));
  CHECK(same_weights(scratch / "meta", scratch / "meta3", meta_form));
  CHECK(apart(logits_of<hugging_face, sharded<1>>(scratch / "hf"), want) < 1e-10);
}
