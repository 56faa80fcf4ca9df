// SPDX-License-Identifier: Apache-2.0
// Transitions of one mesh axis from one placement to another: which collective, and the bytes that each rank sends.
#pragma once

#include <shardwise/propagation/rule.hpp>

namespace shardwise::inline v0_1 {

enum class transition : std::uint8_t {
  none,            // the same values under another name, or an axis of one rank; the mean and the extremes of equal
                   // values are that value, so replicate, reduced -> partial of avg, max, min is none
  all_reduce,      // partial -> replicate, reduced
  reduce_scatter,  // partial -> shard
  all_gather,      // shard -> replicate, reduced
  all_to_all,      // shard -> shard of another dim, or of the same dim with other boundaries
  exchange_halo,   // shard -> windows, readers of the same dim: to each rank what its block lacks
  take_chunk,      // replicate, reduced -> shard: local
  to_partial,      // replicate, reduced -> partial sum: coordinate 0 keeps the value, the others hold zeros; exact, local
  place_chunk,     // shard -> partial sum: the own chunk in zeros; local
};

constexpr transition transition_of(placement from, placement to, int ranks) {
  if (ranks == 1) return transition::none;
  if (from == to) return transition::none;
  if (to.overlaps()) return transition::exchange_halo;
  if (from.is_whole()) {
    if (to.is_shard()) return transition::take_chunk;
    return to.is_partial() && to.op == reduction::sum ? transition::to_partial : transition::none;
  }
  if (from.is_partial())
    return to.is_shard() ? transition::reduce_scatter : to.is_whole() ? transition::all_reduce : transition::none;
  if (to.is_whole()) return transition::all_gather;
  return to.is_partial() ? transition::place_chunk : transition::all_to_all;
}

constexpr bool communicates(transition t) {
  return t == transition::all_reduce || t == transition::reduce_scatter || t == transition::all_gather ||
         t == transition::all_to_all || t == transition::exchange_halo;
}

inline constexpr transition collectives[] = {transition::all_reduce, transition::reduce_scatter, transition::all_gather,
                                             transition::all_to_all, transition::exchange_halo};

// Collectives under NCCL's names where it has them; null where nothing moves between ranks.
constexpr const char* name_of(transition t) {
  switch (t) {
    case transition::all_reduce: return "all_reduce";
    case transition::reduce_scatter: return "reduce_scatter";
    case transition::all_gather: return "all_gather";
    case transition::all_to_all: return "all_to_all";
    case transition::exchange_halo: return "exchange_halo";
    case transition::none:
    case transition::take_chunk:
    case transition::to_partial:
    case transition::place_chunk: break;
  }
  return nullptr;
}

// A placement as one word of an operation's attributes. Law: unpack_placement(pack(p)) == p. From the lowest bit: four bits
// of the kind, eight of the reduction, eight of the dim, 32 of the order of a norm and of the block of all others (of overlapping
// shards 16, the other 16 of what stands before and behind), eight of the factor less one, four of the block's run-time sizes.
constexpr std::int64_t pack(placement p) {
  const std::int64_t number = p.is_norm() ? p.more : p.overlaps() ? p.block | std::int64_t{p.more} << 16 : p.block;
  return static_cast<std::int64_t>(p.kind) | static_cast<std::int64_t>(p.op) << 4 | (std::int64_t{p.dim} & 255) << 12 |
         (number & 0xffffffff) << 20 | ((std::int64_t{p.factor} - 1) & 255) << 52 |
         static_cast<std::int64_t>(static_cast<std::uint64_t>(p.block_sizes) << 60);
}
constexpr placement unpack_placement(std::int64_t v) {
  placement p{.kind = static_cast<placement_kind>(v & 15),
              .op = static_cast<reduction>((v >> 4) & 255),
              .dim = static_cast<std::int8_t>((v >> 12) & 255),
              .factor = static_cast<std::uint8_t>((v >> 52) + 1),
              .block_sizes = static_cast<std::uint16_t>((v >> 60) & 15)};
  const auto number = static_cast<std::uint32_t>(v >> 20);
  if (p.is_norm() || p.overlaps()) p.more = static_cast<std::uint16_t>(p.is_norm() ? number : number >> 16);
  if (!p.is_norm()) p.block = static_cast<std::int32_t>(p.overlaps() ? number & 0xffff : number);
  return p;
}

namespace rules {

// redistribute on one axis. Axes that shard one dim must be undone from the last one that splits
// it to the first.
constexpr outcome redistribute_spec(const op_attr& a, const spec& x) {
  const auto of = attributes_of<redistribute_attributes>(a);
  const int axis = static_cast<int>(of.axis);
  const placement to = unpack_placement(of.to);
  const placement from = x.place[axis];
  outcome r{{}, contiguous(x)};
  if (from == to) return {{}, x};
  if (to.is_partial() && x.axis_size[axis] > 1) {
    problem wrong = problem::none;
    if (from.is_partial()) wrong = problem::redistribute_partial_op_changes;
    if (from.is_shard() && to.op != reduction::sum) wrong = problem::redistribute_shard_to_partial;
    if (from.is_whole() && (to.op == reduction::product || to.is_norm())) wrong = problem::redistribute_whole_to_partial;
    if (wrong != problem::none) return fail(wrong, x, 0, -1, 0, 0, axis);
  }
  if (from.overlaps() || (to.overlaps() && from != shard_value(to.dim)))
    return fail(problem::redistribute_halo, x, 0, to.dim, 0, 0, axis);
  r.out.place[axis] = to;
  for (const spec* s : {&x, static_cast<const spec*>(&r.out)}) {
    const placement p = s->place[axis];
    const int later = p.is_shard() && s->axis_size[axis] > 1 ? split_after(*s, axis, p.dim) : -1;
    if (later >= 0) return fail(problem::redistribute_nested, x, 0, p.dim, 0, 0, later);
  }
  if (finding f = check_placements(r.out)) {
    f.axis = axis;
    r.out.place[axis] = from;
    return {f, r.out};
  }
  normalise(r.out);
  // a change of name alone keeps the storage as it is
  if (transition_of(from, r.out.place[axis], x.axis_size[axis]) == transition::none) {
    for (int d = 0; d < x.rank; ++d) r.out.stride[d] = x.stride[d];
    r.out.offset = x.offset;
  }
  return r;
}

}  // namespace rules

// Of a dim of n elements in equal shards: what rank `of` holds and rank `to` gets where that is placed by windows or readers.
constexpr interval halo_part(const placement& by, std::int64_t n, int ranks, int of, int to) {
  const interval have = split({0, n}, 1, ranks, of), want = overlapping(by, n, ranks, to);
  const std::int64_t lo = have.begin > want.begin ? have.begin : want.begin;
  const std::int64_t end = have.begin + have.size, want_end = want.begin + want.size, hi = end < want_end ? end : want_end;
  return {lo, hi > lo ? hi - lo : 0};
}

// Payload in bytes that the rank at coordinate `c` writes into other ranks' memory for a redistribution of `from` to
// `to` on `axis`. Algorithms: direct exchange; all-reduce is reduce-scatter then all-gather over equal flat chunks
// (ceil), so an even all-reduce of B bytes over N ranks sends 2 (N-1)/N B, an all-gather (N-1) times the own shard.
constexpr std::int64_t bytes_sent(const spec& from, const spec& to, int axis, const int* c, const run_sizes& run = {}) {
  const int ranks = from.axis_size[axis];
  const transition t = transition_of(from.place[axis], to.place[axis], ranks);
  const std::int64_t bytes = static_cast<std::int64_t>(size_of(from.type));
  switch (t) {
    case transition::all_reduce: {
      const std::int64_t total = local_numel(from, c, run);
      const std::int64_t own = split({0, total}, 1, ranks, c[axis]).size;
      return (total - own + own * (ranks - 1)) * bytes;
    }
    case transition::all_gather: return local_numel(from, c, run) * (ranks - 1) * bytes;
    case transition::reduce_scatter: return (local_numel(from, c, run) - local_numel(to, c, run)) * bytes;
    case transition::all_to_all: {
      const int keep = to.place[axis].dim;
      if (keep == from.place[axis].dim) {  // other boundaries of one dim: what is not kept
        const interval a = local_interval(from, keep, c, run), b = local_interval(to, keep, c, run);
        const std::int64_t lo = a.begin > b.begin ? a.begin : b.begin;
        const std::int64_t hi = a.begin + a.size < b.begin + b.size ? a.begin + a.size : b.begin + b.size;
        const std::int64_t kept = lo < hi ? hi - lo : 0;
        return a.size == 0 ? 0 : local_numel(from, c, run) / a.size * (a.size - kept) * bytes;
      }
      // own rows times the other ranks' columns
      const std::int64_t mine = local_interval(to, keep, c, run).size;
      const std::int64_t all = local_interval(from, keep, c, run).size;
      return all == 0 ? 0 : local_numel(from, c, run) / all * (all - mine) * bytes;
    }
    case transition::exchange_halo: {
      const int d = to.place[axis].dim;
      const std::int64_t n = extent_at(from, d, run), rows = local_interval(from, d, c, run).size;
      std::int64_t sent = 0;
      for (int r = 0; r < ranks; ++r)
        if (r != c[axis]) sent += halo_part(to.place[axis], n, ranks, c[axis], r).size;
      return rows == 0 ? 0 : local_numel(from, c, run) / rows * sent * bytes;
    }
    case transition::none:
    case transition::take_chunk:
    case transition::to_partial:
    case transition::place_chunk: break;
  }
  return 0;
}

}  // namespace shardwise::inline v0_1
