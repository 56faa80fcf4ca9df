// SPDX-License-Identifier: Apache-2.0
// Which kind of operation a call of the GPT-2 step is, and the least time that a kind can take on a device: its multiply-adds at the
// rate of one large product, or the bytes that it cannot but move at the rate of a copy.
#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include <shardwise/pass/analysis/phases.hpp>
#include <shardwise/runtime/timeline/timeline.hpp>

#include "model.hpp"

namespace gpt2 {

inline bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
inline bool ends(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}

inline std::string product_of(const sw::timeline_call& c, const sw::spec& result) {
  const auto wide = [&](int n) { return holds(c.shapes, std::to_string(n)); };
  constexpr int own_hidden = size::hidden / (gpus / copies);  // of this rank's block
  const bool hidden =
      result.extent[result.rank - 1] == size::hidden;  // of a weight's gradient the columns: the layer's inputs
  if (wide(size::bytes)) return "product head";
  const bool merged = ends(c.module, ".attn");  // the three are one, in the module that holds them
  if (!wide(own_hidden))
    return merged || (holds(c.module, ".attn.w") && !ends(c.module, ".wo")) ? "product qkv" : "product out";
  return hidden ? "product up" : "product down";
}

// A region of fused nodes has the module that holds them all, so products are told by their sizes where that is enough. `result`:
// the node's; a weight's gradient is a matrix, or three, every activation has the positions before its last dim.
inline std::string kind_of(const sw::timeline_call& c, sw::program_phase phase, const sw::spec& result) {
  const std::string_view op = c.op, path = c.module;
  const bool forward = phase == sw::program_phase::forward;
  const bool norm = ends(path, "norm1") || ends(path, "norm2") || path == "norm" || path == "norm_f";
  if (phase == sw::program_phase::optimizer) return "update and clipping";
  if (c.sent > 0) return "collectives";  // as long as its stream works on it, also beside kernels
  if (op == "cast") return "casts";      // no floor: what an optimizer writes could be of both types
  if (holds(op, "attention") || (ends(path, ".attn") && op != "sum" && op != "einsum"))
    return forward ? "attention forward" : "attention backward";
  if (op == "lse" || op == "exp_sum" || holds(op, "nll") || holds(op, "cross_entropy")) return "loss";
  if (op == "einsum") {
    const std::string of = product_of(c, result);
    if (forward) return of + " forward";
    // backward, `up` and `down` change places: what one reads the other writes
    const bool turned = of == "product up" || of == "product down";
    const std::string layer = !turned ? of : of == "product up" ? "product down" : "product up";
    const bool activation = result.rank > 2 && result.extent[result.rank - 2] == size::time;  // not three weights' gradients
    return layer + (activation ? " input gradient" : " weight gradient");
  }
  if (holds(op, "norm") || norm) return forward ? "norms forward" : "norms backward";
  if (holds(op, "embedding") || path == "bytes" || path == "position") return "embeddings";
  if (holds(op, "gelu") || holds(c.fused, "gelu") || ends(path, ".ffn")) return forward ? "gelu forward" : "gelu backward";
  if (op == "sum" && !forward) return "bias gradients";
  return forward ? "other forward" : "other backward";
}

// What a device does at best: multiply-adds count as two operations.
struct rates {
  double bytes = 0, operations = 0;  // a second
};

// Milliseconds by kind. Bytes as a program moves them that fuses what can be fused: a norm reads the branch and the residual and
// writes their sum and its result; gelu's value is written beside its operand; logits become their own gradient.
inline std::map<std::string, double> floors(const rates& r) {
  const double e = sizeof(gpt2::activation), activation = rows * width * e;
  const auto moved = [&](double bytes) { return bytes / r.bytes * 1e3; };
  const auto computed = [&](double operations) { return operations / r.operations * 1e3; };
  std::map<std::string, double> f;
  const auto product = [&](const std::string& name, double count, double m, double n) {
    for (const char* way : {" forward", " input gradient", " weight gradient"})
      f["product " + name + way] = computed(count * 2 * rows * m * n);
  };
  product("qkv", layers, width, 3 * width);
  product("out", layers, width, width);
  product("up", layers, width, 4 * width);
  product("down", layers, width, 4 * width);
  product("head", 1, width, vocabulary);
  const double scores = layers * 2 * rows * size::time * width;  // causal: half of two products of 2 rows T width
  f["attention forward"] = computed(scores);
  f["attention backward"] = computed(2.5 * scores);
  f["norms forward"] = f["norms backward"] = moved((2 * layers + 1) * 4 * activation);
  f["gelu forward"] = moved(layers * 4 * activation);
  f["gelu backward"] = moved(layers * 3 * 4 * activation);
  f["bias gradients"] = moved(layers * 9 * activation);
  f["loss"] = moved(2 * rows * vocabulary * e);
  f["embeddings"] = moved(4 * activation);
  f["update and clipping"] =
      moved(parameters * (e < 4 ? 34 : 8 * e));  // of 2 bytes: float moments, float parameter beside it
  return f;
}

// Figures that somebody has measured in place of these: lines with "kind": NAME and "ms": NUMBER, as torch_rival.py --floor
// prints them. A kind that no floor has is refused.
inline void read_floors(const char* path, std::map<std::string, double>& f) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("gpt2: cannot read ") + path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t kind = line.find("\"kind\": \""), ms = line.find("\"ms\": ");
    if (kind == std::string::npos || ms == std::string::npos) continue;
    const std::string name = line.substr(kind + 9, line.find('"', kind + 9) - kind - 9);
    if (f.find(name) == f.end())
      throw std::runtime_error("gpt2: " + std::string(path) + " has a kind '" + name + "'; none here");
    f[name] = std::atof(line.c_str() + ms + 6);
  }
}

}  // namespace gpt2
