// SPDX-License-Identifier: Apache-2.0
// print: eager tensors, specs and meshes as text: type, extents, mesh, placements, and the block that this rank holds.
#pragma once

#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include <shardwise/graph/text/render.hpp>
#include <shardwise/runtime/eager/dtensor.hpp>
#include <shardwise/support/type_name.hpp>
#include <shardwise/vocabulary/submesh.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// "lib::(anonymous namespace)::tp<2>" -> "tp<2>": what a reader calls an axis.
inline std::string last_name(const std::string& type) {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < type.size(); ++i) {
    if (type[i] == '<' || type[i] == '(' || type[i] == '{') ++depth;
    if (type[i] == '>' || type[i] == ')' || type[i] == '}') --depth;
    if (depth == 0 && type[i] == ':') begin = i + 1;
  }
  return type.substr(begin);
}

template <class... A>
std::vector<std::string> names_of(axis_list<A...>) {
  return {last_name(type_name<A>())...};
}

inline const char* dtype_text(dtype t) { return t == dtype::i32 ? "int32" : t == dtype::i64 ? "int64" : name_of(t); }

inline void put_number(std::string& out, double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  out += text;
}
inline void put_number(std::string& out, std::int32_t v) { out += std::to_string(v); }

inline std::string list_text(const std::int64_t* v, int n) {
  std::string s = "(";
  for (int i = 0; i < n; ++i) s += (i ? ", " : "") + std::to_string(v[i]);
  return s + ")";
}

// Of blocks with more elements only `edge` entries at both ends of each dim are written.
inline constexpr std::int64_t most_elements = 1000, edge = 3;

template <class T>
void put_values(std::string& out, const local_block<T>& b, int d, std::int64_t offset, bool cut) {
  if (d == b.layout.rank) {
    if constexpr (is_floating_element<T>) put_number(out, static_cast<double>(b.data[static_cast<std::size_t>(offset)]));
    else put_number(out, b.data[static_cast<std::size_t>(offset)]);
    return;
  }
  out += '[';
  const std::int64_t n = b.layout.ext[d];
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) out += d + 1 == b.layout.rank ? ", " : ",\n" + std::string(static_cast<std::size_t>(d) + 1, ' ');
    if (cut && n > 2 * edge && i == edge) {
      out += "...";
      i = n - edge - 1;
      continue;
    }
    put_values(out, b, d + 1, offset + i * b.layout.str[d], cut);
  }
  out += ']';
}

}  // namespace detail

// The axes' names, in the mesh's order.
template <class Mesh>
std::vector<std::string> axis_names() {
  return detail::names_of(typename detail::axes_of<Mesh>::type{});
}

// "mesh<dp=2, tp=4>"; a mesh of GPUs is a "cuda mesh<...>".
template <class Mesh>
std::string mesh_text() {
  const std::vector<std::string> names = axis_names<Mesh>();
  std::string s = Mesh::device == device_kind::cuda ? "cuda mesh<" : "mesh<";
  for (std::size_t a = 0; a < names.size(); ++a) s += (a ? ", " : "") + names[a] + "=" + std::to_string(Mesh::sizes[a]);
  return s + ">";
}

// "dtensor<float, (8, 4), mesh<dp=2, tp=2>, [shard<0>, replicate]>".
template <class Tensor>
std::string type_text() {
  constexpr spec s = Tensor::sp;
  std::string out = std::string("dtensor<") + detail::dtype_text(s.type) + ", " + extents_text(s) + ", " +
                    mesh_text<typename Tensor::mesh_type>() + ", ";
  text::put_placements(out, s);
  return out + ">";
}

// The type; this rank's coordinate, the extents of its block and where the block begins in the whole tensor; the block.
// Not collective. To print it whole, print full_tensor() on one rank.
template <spec S, class Mesh, class Rank>
std::string to_string(const dtensor<S, Mesh, Rank>& x) {
  std::string out = type_text<dtensor<S, Mesh, Rank>>();
  if (!x.has_value()) return out + " without a value";
  const auto b = x.to_local();
  const Rank& rank = x.rank();
  std::int64_t at[max_axes]{};
  for (int a = 0; a < Mesh::axes; ++a) at[a] = rank.coordinate(a);
  out += "\nrank " + std::to_string(rank.index()) + " at " + detail::list_text(at, Mesh::axes) + ", block " +
         detail::list_text(b.layout.ext, b.layout.rank) + " from " + detail::list_text(b.layout.origin, b.layout.rank) +
         "\n";
  if (b.layout.numel() == 0) return out + "empty";
  detail::put_values(out, b, 0, 0, b.layout.numel() > detail::most_elements);
  return out;
}

template <spec S, class Mesh, class Rank>
std::ostream& operator<<(std::ostream& out, const dtensor<S, Mesh, Rank>& x) {
  return out << to_string(x);
}

}  // namespace shardwise::inline v0_1
