// SPDX-License-Identifier: Apache-2.0
// What the model's parameters are called in GPT-2's files (transformers' GPT2Model): there Conv1D keeps a matrix as inputs x outputs, and
// q, k and v are the thirds of one.
#pragma once

#include <shardwise/io/checkpoint/weights.hpp>

namespace train_text {

using gpt2_names =
    shardwise::weight_names<shardwise::named_as<"bytes.weight", "wte.weight">,
                            shardwise::named_as<"position.weight", "wpe.weight">,
                            shardwise::named_as<"layers.*.norm1.weight", "h.*.ln_1.weight">,
                            shardwise::named_as<"layers.*.norm1.bias", "h.*.ln_1.bias">,
                            shardwise::named_as<"layers.*.attn.wq.weight", "h.*.attn.c_attn.weight", shardwise::transposed,
                                                shardwise::part_of<0, 3, 1>>,
                            shardwise::named_as<"layers.*.attn.wk.weight", "h.*.attn.c_attn.weight", shardwise::transposed,
                                                shardwise::part_of<1, 3, 1>>,
                            shardwise::named_as<"layers.*.attn.wv.weight", "h.*.attn.c_attn.weight", shardwise::transposed,
                                                shardwise::part_of<2, 3, 1>>,
                            shardwise::named_as<"layers.*.attn.wq.bias", "h.*.attn.c_attn.bias", shardwise::part_of<0, 3>>,
                            shardwise::named_as<"layers.*.attn.wk.bias", "h.*.attn.c_attn.bias", shardwise::part_of<1, 3>>,
                            shardwise::named_as<"layers.*.attn.wv.bias", "h.*.attn.c_attn.bias", shardwise::part_of<2, 3>>,
                            shardwise::named_as<"layers.*.attn.wo.weight", "h.*.attn.c_proj.weight", shardwise::transposed>,
                            shardwise::named_as<"layers.*.attn.wo.bias", "h.*.attn.c_proj.bias">,
                            shardwise::named_as<"layers.*.norm2.weight", "h.*.ln_2.weight">,
                            shardwise::named_as<"layers.*.norm2.bias", "h.*.ln_2.bias">,
                            shardwise::named_as<"layers.*.ffn.up.weight", "h.*.mlp.c_fc.weight", shardwise::transposed>,
                            shardwise::named_as<"layers.*.ffn.up.bias", "h.*.mlp.c_fc.bias">,
                            shardwise::named_as<"layers.*.ffn.down.weight", "h.*.mlp.c_proj.weight", shardwise::transposed>,
                            shardwise::named_as<"layers.*.ffn.down.bias", "h.*.mlp.c_proj.bias">,
                            shardwise::named_as<"norm.weight", "ln_f.weight">, shardwise::named_as<"norm.bias", "ln_f.bias">,
                            shardwise::left_out<"h.*.attn.bias">,  // the causal mask, which is no parameter
                            shardwise::left_out<"h.*.attn.masked_bias">>;

}  // namespace train_text
