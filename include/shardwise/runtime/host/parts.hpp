// SPDX-License-Identifier: Apache-2.0
// parts: how one call becomes several of the same kernel, each on a part of the blocks, for a rank's threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include <shardwise/propagation/contraction.hpp>
#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/support/config.hpp>

// Law: whatever the number of parts, each element of a result is computed from the same numbers in the same order as in the whole
// call, hence with the same bits. A part is a block as a rank's is: shorter along one dim, its origin further on. Sums over rows
// are never cut between rows. What a kernel's cut_kind admits and a call's storage or sizes do not runs whole, on one thread.
namespace shardwise::inline v0_1::runtime {

// The dim along which each operand and the result are cut; -1: whole in every part.
struct parts {
  int count = 1;
  std::int64_t extent = 0;  // of what is cut
  std::int32_t unit = 1;    // parts begin at multiples of it
  bool shares = false;      // the kernel cuts its own work
  std::int8_t dim[max_inputs + 1] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
  static_assert(max_inputs == 8);

  constexpr std::int64_t begin(int part) const { return part >= count ? extent : extent / unit * part / count * unit; }
};

}  // namespace shardwise::inline v0_1::runtime

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

using runtime::parts;

// Part `part` of a call, with scratch of its own.
inline call part_of(const call& whole, const parts& how, int part, void* workspace) {
  call c = whole;
  c.workspace = workspace;
  if (how.shares) {
    c.share = part;
    c.shares = how.count;
    return c;
  }
  const std::int64_t begin = how.begin(part), size = how.begin(part + 1) - begin;
  c.draw += how.dim[result] < 0 || how.extent == 0 ? 0 : whole.l[result].numel() / how.extent * begin;
  for (int k = 0; k <= max_inputs; ++k) {
    const int d = how.dim[k];
    if (d < 0) continue;
    c.p[k] = static_cast<std::byte*>(c.p[k]) + begin * c.l[k].str[d] * static_cast<std::int64_t>(size_of(c.type[k]));
    c.l[k].ext[d] = size;
    c.l[k].origin[d] += begin;
  }
  return c;
}

namespace parts_detail {

// The dim of x that dim d of the result is read along by broadcasting, -1: x is the same all along it.
constexpr int broadcast_dim(const layout& x, const layout& out, int d) {
  const int own = d - (out.rank - x.rank);
  return own < 0 || (x.global[own] == 1 && out.global[d] != 1) ? -1 : own;
}
constexpr int outermost(const layout& x) {
  int d = 0;
  while (d + 1 < x.rank && x.ext[d] == 1) ++d;
  return d;
}

// How a call of one kind is cut along dim d of the block that leads.
class cutter {
 public:
  constexpr cutter(const call& of, cut_kind by) : c(of), kind(by) {}

  constexpr const layout& lead() const {
    if (kind == cut_kind::update) return c.l[0];
    int at = result;  // of rows the block of most dims, which has all that the others have
    for (int k = 0; k < c.inputs && (kind == cut_kind::rows || kind == cut_kind::normed); ++k)
      if (c.l[k].rank > c.l[at].rank) at = k;
    return c.l[at];
  }
  // Dims that may be cut, from the outermost.
  constexpr int first() const {
    return kind == cut_kind::drawn || kind == cut_kind::update ? outermost(lead())
           : kind == cut_kind::gathered                        ? c.l[result].rank - 1
                                                               : 0;
  }
  constexpr int end() const {
    const int rank = lead().rank;
    return kind == cut_kind::drawn || kind == cut_kind::update  ? first() + 1
           : kind == cut_kind::rows || kind == cut_kind::normed ? rank - 1
           : kind == cut_kind::looked_up                        ? c.l[1].rank
                                                                : rank;
  }

  // False: it is not.
  constexpr bool along(int d, parts& p) const {
    p.extent = lead().ext[d];
    p.dim[result] = static_cast<std::int8_t>(d);
    for (int k = 0; k < max_inputs; ++k) p.dim[k] = -1;
    for (int k = 0; k < c.inputs; ++k)
      if (!operand(k, d, p)) return false;
    for (int k = c.inputs; k < c.all_inputs; ++k) p.dim[k] = narrowed(broadcast_dim(c.l[k], c.l[result], d));
    // Of sums, whole cache lines; and by 16 columns or more they are added as by all: sums_columns asks for 8.
    if (kind == cut_kind::columns || kind == cut_kind::sums || kind == cut_kind::gathered || has_sums()) p.unit = 16;
    for (int k = 0; k <= max_inputs; ++k)
      if (p.dim[k] >= 0 && c.l[k].ext[p.dim[k]] != p.extent) return false;
    return !meets_other_parts(p);
  }

 private:
  static constexpr std::int8_t narrowed(int d) { return static_cast<std::int8_t>(d); }

  constexpr bool operand(int k, int d, parts& p) const {
    const layout& x = c.l[k];
    switch (kind) {
      case cut_kind::places:
      case cut_kind::drawn: p.dim[k] = narrowed(broadcast_dim(x, c.l[result], d)); return true;
      case cut_kind::rows: p.dim[k] = narrowed(d); return x.rank > d;
      case cut_kind::normed: p.dim[k] = narrowed(x.rank == 1 ? -1 : d); return true;
      case cut_kind::columns: p.dim[k] = narrowed(k < 2 ? x.rank - 1 : k == 2 ? -1 : 0); return true;
      case cut_kind::sums: p.dim[k] = narrowed(summed_from(c.a, x, d)); return p.dim[k] >= 0;
      case cut_kind::product: return of_product(k, d, p);
      case cut_kind::looked_up: p.dim[k] = narrowed(k == 1 ? d : -1); return true;
      case cut_kind::gathered: p.dim[k] = narrowed(k == 0 ? x.rank - 1 : -1); return true;
      case cut_kind::update: p.dim[k] = narrowed(k < of_elements() ? d : -1); return c.all_inputs == c.inputs;
      case cut_kind::whole:
      case cut_kind::shares: break;
    }
    return false;
  }

  // The dim of x that is dim d of its sum.
  static constexpr int summed_from(const op_attr& a, const layout& x, int d) {
    const auto of = attributes_of<sum_attributes>(a);
    for (int i = 0, k = 0; i < x.rank; ++i) {
      const bool summed = (of.dims >> i) & 1, kept = (of.kept >> i) & 1;
      if (!summed && k == d) return i;
      if (!summed || kept) ++k;
    }
    return -1;
  }
  constexpr bool has_sums() const {
    return kind == cut_kind::product && attributes_of<einsum_attributes>(c.a).keeps_sums != 0;
  }
  constexpr bool of_product(int k, int d, parts& p) const {
    const auto of = attributes_of<einsum_attributes>(c.a);
    const int label = rules::label(of.out, d);
    if (k < 2) {
      p.dim[k] = narrowed(rules::find_label(k == 0 ? of.lhs : of.rhs, c.l[k].rank, label));
      return true;
    }
    // sums of lhs over what is contracted: they have lhs's dims, and no part may write another one's
    const op_attr sum =
        pack_attributes(sum_attributes{.dims = rules::contracted_dims(c.a, c.l[0].rank, c.l[1].rank), .kept = 0, .mean = 0});
    for (int i = 0; i < c.l[k].rank; ++i)
      if (summed_from(sum, c.l[0], i) == p.dim[0]) p.dim[k] = narrowed(i);
    return p.dim[k] >= 0;
  }
  // Operands of an update that have the parameter's elements: up to the last one that is written, and a gradient. Behind them are
  // numbers for all of it. One that writes into no operand is a term, of three, or the larger one of two.
  constexpr int of_elements() const {
    if (c.written == 0) return attributes_of<adam_term_attributes>(c.a).which == 3 ? 2 : 3;
    int n = 2;
    while ((c.written >> n) != 0) ++n;
    return n;
  }

  // A result may lie where an operand does: then each part must read and write the same bytes.
  constexpr bool meets_other_parts(const parts& p) const {
    for (int w = 0; w <= max_inputs; ++w) {
      if (w != result && (c.written >> w & 1U) == 0) continue;
      for (int k = 0; k <= max_inputs; ++k)
        if (k != w && overlap(w, k) && !same_bytes(p, w, k)) return true;
    }
    return false;
  }
  constexpr bool overlap(int w, int k) const {
    if (!c.p[w] || !c.p[k]) return false;
    const auto from = [&](int i) { return reinterpret_cast<std::uintptr_t>(c.p[i]); };
    const auto end = [&](int i) { return from(i) + c.l[i].span() * size_of(c.type[i]); };
    return from(w) < end(k) && from(k) < end(w);
  }
  constexpr bool same_bytes(const parts& p, int w, int k) const {
    return c.p[w] == c.p[k] && p.dim[w] >= 0 && p.dim[k] >= 0 && size_of(c.type[w]) == size_of(c.type[k]) &&
           c.l[w].str[p.dim[w]] == c.l[k].str[p.dim[k]] && c.l[w].span() == c.l[k].span();
  }

  const call& c;
  cut_kind kind;
};

}  // namespace parts_detail

// What a call costs, in elements that a kernel of functions computes: about a nanosecond each. 32 multiplications and additions of a
// product count as one; kernels that cut their own work take more for each element of their blocks, by a rough 16.
inline double work_of(const call& c, cut_kind kind) {
  if (kind == cut_kind::product) {
    const auto of = attributes_of<einsum_attributes>(c.a);
    double products = static_cast<double>(c.l[result].numel());
    for (int d = 0; d < c.l[0].rank; ++d)
      if (rules::find_label(of.out, c.l[result].rank, rules::label(of.lhs, d)) < 0)
        products *= static_cast<double>(c.l[0].ext[d]);
    return products / 32;
  }
  double most = c.results ? 0 : static_cast<double>(c.l[result].numel());
  for (int k = 0; k < c.all_inputs; ++k)
    if (const double n = static_cast<double>(c.l[k].numel()); n > most) most = n;
  return kind == cut_kind::shares ? 16 * most : most;
}

// Law of small work: a call is cut into parts of at least this much, so that what is not worth waking a thread stays on one
// (bench/results/threads.md).
inline constexpr double least_work = 4096;

// How `threads` threads share a call, in parts of at least so much work.
inline parts parts_of(const call& c, cut_kind kind, int threads, double least = least_work) {
  parts none;
  if (kind == cut_kind::whole || threads < 2 || c.members != 1) return none;
  const double fit = work_of(c, kind) / least;
  const int most = fit < threads ? static_cast<int>(fit) : threads;
  if (most < 2) return none;
  if (kind == cut_kind::shares) {
    none.count = most;
    none.shares = true;
    return none;
  }
  if (c.results) return none;
  const parts_detail::cutter how(c, kind);
  parts best = none;
  std::int64_t steps = 0;  // those of the longest part, of a thousand
  for (int d = how.first(); d < how.end(); ++d) {
    parts p;
    if (!how.along(d, p) || p.extent / p.unit < 2) continue;
    const std::int64_t units = p.extent / p.unit;
    p.count = units < most ? static_cast<int>(units) : most;
    const std::int64_t longest = ceil_div(units, std::int64_t{p.count}) * 1000 / units;
    if (best.count > 1 && longest * 10 > steps * 9) continue;  // an outer dim is cut unless an inner one is much more even
    best = p;
    steps = longest;
  }
  return best;
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
