// SPDX-License-Identifier: Apache-2.0
// What the parameters of 12_llama.cpp are called in Llama's files. Matrices lie as in PyTorch's nn.Linear, outputs x inputs, as they do
// here: nothing is transposed. Hugging Face's files keep a head's rows in the order that rotary_embedding turns by default, halves apart;
// Meta's keep the rows of a pair side by side, in the matrices of queries and keys.
#pragma once

#include <shardwise/io/checkpoint/weights.hpp>

namespace llama_names {

namespace sw = shardwise;

// transformers' LlamaForCausalLM, as the files of its repositories have it.
using hugging_face = sw::weight_names<
    sw::named_as<"tokens.weight", "model.embed_tokens.weight">,
    sw::named_as<"layers.*.attention_norm.weight", "model.layers.*.input_layernorm.weight">,
    sw::named_as<"layers.*.attn.wq.weight", "model.layers.*.self_attn.q_proj.weight">,
    sw::named_as<"layers.*.attn.wk.weight", "model.layers.*.self_attn.k_proj.weight">,
    sw::named_as<"layers.*.attn.wv.weight", "model.layers.*.self_attn.v_proj.weight">,
    sw::named_as<"layers.*.attn.wo.weight", "model.layers.*.self_attn.o_proj.weight">,
    sw::named_as<"layers.*.ffn_norm.weight", "model.layers.*.post_attention_layernorm.weight">,
    sw::named_as<"layers.*.ffn.w1.weight", "model.layers.*.mlp.gate_proj.weight">,
    sw::named_as<"layers.*.ffn.w3.weight", "model.layers.*.mlp.up_proj.weight">,
    sw::named_as<"layers.*.ffn.w2.weight", "model.layers.*.mlp.down_proj.weight">,
    sw::named_as<"norm.weight", "model.norm.weight">, sw::named_as<"head.weight", "lm_head.weight">,
    sw::left_out<"model.layers.*.self_attn.rotary_emb.inv_freq">>;  // of older files: the angles, which are no parameters

// Meta's own, consolidated.00 of a model in one part. HeadSize: of one head, width / heads.
template <int HeadSize>
using meta = sw::weight_names<
    sw::named_as<"tokens.weight", "tok_embeddings.weight">,
    sw::named_as<"layers.*.attention_norm.weight", "layers.*.attention_norm.weight">,
    sw::named_as<"layers.*.attn.wq.weight", "layers.*.attention.wq.weight", sw::interleaved_heads<HeadSize>>,
    sw::named_as<"layers.*.attn.wk.weight", "layers.*.attention.wk.weight", sw::interleaved_heads<HeadSize>>,
    sw::named_as<"layers.*.attn.wv.weight", "layers.*.attention.wv.weight">,
    sw::named_as<"layers.*.attn.wo.weight", "layers.*.attention.wo.weight">,
    sw::named_as<"layers.*.ffn_norm.weight", "layers.*.ffn_norm.weight">,
    sw::named_as<"layers.*.ffn.w1.weight", "layers.*.feed_forward.w1.weight">,
    sw::named_as<"layers.*.ffn.w2.weight", "layers.*.feed_forward.w2.weight">,
    sw::named_as<"layers.*.ffn.w3.weight", "layers.*.feed_forward.w3.weight">, sw::named_as<"norm.weight", "norm.weight">,
    sw::named_as<"head.weight", "output.weight">, sw::left_out<"rope.freqs">>;

}  // namespace llama_names
