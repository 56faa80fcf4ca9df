// SPDX-License-Identifier: Apache-2.0
// Collectives of the mpi backend: parts are packed rank by rank, exchanged by MPI's non-blocking collectives, and reduced in rank
// order, so that processes give the bits of threads.
#pragma once

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <shardwise/runtime/host/collective_blocks.hpp>
#include <shardwise/runtime/host/copy_block.hpp>
#include <shardwise/runtime/mpi/rank.hpp>

namespace shardwise::inline v0_1::mpi {

using runtime::call;
using runtime::layout;
using runtime::result;

// n calls between one meeting and the next: of a batch, or one by itself.
template <class T, class Rank>
struct exchange {
  const call* c;
  int n;
  Rank& rank;
  world::buffers& b = rank.buffers();
  const int ranks = c->ranks, me = c->coordinate;

  void run() {
    switch (c->kind) {
      case transition::all_reduce: return all_reduce();
      case transition::reduce_scatter: return reduce_scatter();
      case transition::all_gather: return all_gather();
      case transition::all_to_all:
      case transition::exchange_halo: return all_to_all();
      case transition::none:
      case transition::take_chunk:
      case transition::to_partial:
      case transition::place_chunk: runtime::not_a_collective(c->kind);
    }
  }

 private:
  // --- what is sent ---------------------------------------------------------------------------------------------------

  T* out() { return reinterpret_cast<T*>(b.out.data()); }
  T* in() { return reinterpret_cast<T*>(b.in.data()); }
  static void hold(std::vector<std::byte>& v, std::int64_t elements) {
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(T);
    if (v.size() < bytes) v.resize(bytes);
  }
  static std::int64_t numel(const std::int64_t* ext, int dims) {
    std::int64_t k = 1;
    for (int d = 0; d < dims; ++d) k *= ext[d];
    return k;
  }
  // Counts by rank from size(rank); the places behind each other. Returns their sum.
  template <class F>
  std::int64_t count_parts(std::vector<int>& counts, std::vector<int>& at, const F& size) {
    counts.resize(static_cast<std::size_t>(ranks));
    at.resize(static_cast<std::size_t>(ranks));
    std::int64_t total = 0;
    for (int r = 0; r < ranks; ++r) {
      const std::int64_t k = size(r);
      at[static_cast<std::size_t>(r)] = count(total);
      counts[static_cast<std::size_t>(r)] = count(k);
      total += k;
    }
    count(total);
    return total;
  }
  static const std::int64_t* zero() {
    static constexpr std::int64_t z[max_rank]{};
    return z;
  }
  // The part of a block that begins at `begin`, dense at `to`; returns what lies behind it.
  static T* pack(const T* x, const layout& l, const std::int64_t* begin, const std::int64_t* ext, T* to) {
    layout dense = l;
    for (int d = 0; d < l.rank; ++d) dense.ext[d] = ext[d];
    dense.make_dense();
    host::copy_block<T>(x, l, begin, to, dense, zero(), ext);
    return to + numel(ext, l.rank);
  }
  static const T* unpack(const T* from, T* x, const layout& l, const std::int64_t* begin, const std::int64_t* ext) {
    layout dense = l;
    for (int d = 0; d < l.rank; ++d) dense.ext[d] = ext[d];
    dense.make_dense();
    host::copy_block<T>(from, dense, zero(), x, l, begin, ext);
    return from + numel(ext, l.rank);
  }

  // What lies in `out` for each rank goes there, and what each has for this one comes into `in`; nothing to itself.
  void all_to_all_parts(const char* what) {
    b.send[static_cast<std::size_t>(me)] = b.receive[static_cast<std::size_t>(me)] = 0;
    std::int64_t sent = 0;
    for (const int k : b.send) sent += k;
    rank.along(c->axis, what, [&](MPI_Comm comm, MPI_Request* r) {
      check(MPI_Ialltoallv(b.out.data(), b.send.data(), b.send_at.data(), word<sizeof(T)>(), b.in.data(), b.receive.data(),
                           b.receive_at.data(), word<sizeof(T)>(), comm, r),
            "MPI_Ialltoallv");
    });
    rank.count_written(c->axis, sent * static_cast<std::int64_t>(sizeof(T)));
  }
  // `own` elements in `out` go to all ranks, and theirs come into `in`.
  void gather_parts(const char* what, std::int64_t own) {
    rank.along(c->axis, what, [&](MPI_Comm comm, MPI_Request* r) {
      check(MPI_Iallgatherv(b.out.data(), count(own), word<sizeof(T)>(), b.in.data(), b.receive.data(), b.receive_at.data(),
                            word<sizeof(T)>(), comm, r),
            "MPI_Iallgatherv");
    });
    rank.count_written(c->axis, own * (ranks - 1) * static_cast<std::int64_t>(sizeof(T)));
  }
  T* received(int from) { return in() + b.receive_at[static_cast<std::size_t>(from)]; }

  // --- reductions -----------------------------------------------------------------------------------------------------

  // o = x_0 op x_1 op ... , where x_r, `size` elements, lies `at` elements into what rank r sent.
  void combine(const placement& by, std::int64_t at, std::int64_t size, T* o) {
    for (int r = 0; r < ranks; ++r) {
      T* const x = received(r) + at;
      runtime::begin_reduction(by, x, size);
      if (r == 0) {
        for (std::int64_t i = 0; i < size; ++i) o[i] = x[i];
      } else if (by.op == reduction::sum) {
        SHARDWISE_IVDEP
        for (std::int64_t i = 0; i < size; ++i) o[i] = o[i] + x[i];
      } else {
        for (std::int64_t i = 0; i < size; ++i) o[i] = runtime::combine(by.op, o[i], x[i]);
      }
    }
    runtime::end_reduction(by, o, size, ranks);
  }
  // Whether MPI may add by itself: see mpi_options::fast_reduce.
  bool fast() const {
    bool all = has_number<T> && rank.reduces_fast();
    for (int k = 0; k < n; ++k)
      all = all &&
            (c[k].from.op == reduction::sum || c[k].from.op == reduction::avg || c[k].from.op == reduction::product) &&
            (c[k].from.op == reduction::product) == (c->from.op == reduction::product);
    return all;
  }
  MPI_Op operation() const { return c->from.op == reduction::product ? MPI_PROD : MPI_SUM; }

  interval chunk(int k, int r) const { return split({0, c[k].l[0].numel()}, 1, ranks, r); }
  // Equal flat chunks to their owners, reduced in rank order, and gathered.
  void all_reduce() {
    if constexpr (has_number<T>)
      if (fast()) return fast_all_reduce();
    const auto sizes = [&](int r) {
      std::int64_t k = 0;
      for (int m = 0; m < n; ++m) k += chunk(m, r).size;
      return k;
    };
    hold(b.out, count_parts(b.send, b.send_at, sizes));
    hold(b.in, count_parts(b.receive, b.receive_at, [&](int) { return sizes(me); }));
    for (int r = 0; r < ranks; ++r) {
      T* to = r == me ? received(me) : out() + b.send_at[static_cast<std::size_t>(r)];
      for (int m = 0; m < n; ++m) {
        const interval part = chunk(m, r);
        std::memcpy(to, static_cast<const T*>(c[m].p[0]) + part.begin, static_cast<std::size_t>(part.size) * sizeof(T));
        to += part.size;
      }
    }
    all_to_all_parts("an all-reduce");
    T* own = out();
    for (int m = 0; m < n; ++m) {
      const std::int64_t size = chunk(m, me).size;
      combine(c[m].from, own - out(), size, own);
      own += size;
    }
    hold(b.in, count_parts(b.receive, b.receive_at, sizes));
    gather_parts("an all-reduce", own - out());
    for (int r = 0; r < ranks; ++r) {
      const T* from = received(r);
      for (int m = 0; m < n; ++m) {
        const interval part = chunk(m, r);
        std::memcpy(static_cast<T*>(c[m].p[result]) + part.begin, from, static_cast<std::size_t>(part.size) * sizeof(T));
        from += part.size;
      }
    }
  }
  void fast_all_reduce() {
    std::int64_t total = 0, sent = 0;
    for (int m = 0; m < n; ++m) {
      total += c[m].l[0].numel();
      sent += c[m].l[0].numel() + (ranks - 2) * chunk(m, me).size;
    }
    hold(b.out, total);
    hold(b.in, total);
    T* to = out();
    for (int m = 0; m < n; ++m) to = pack(static_cast<const T*>(c[m].p[0]), c[m].l[0], zero(), c[m].l[0].ext, to);
    rank.along(c->axis, "an all-reduce", [&](MPI_Comm comm, MPI_Request* r) {
      check(MPI_Iallreduce(b.out.data(), b.in.data(), count(total), number<T>(), operation(), comm, r), "MPI_Iallreduce");
    });
    rank.count_written(c->axis, sent * static_cast<std::int64_t>(sizeof(T)));
    T* from = in();
    for (int m = 0; m < n; ++m) {
      const std::int64_t size = c[m].l[0].numel();
      runtime::end_reduction(c[m].from, from, size, ranks);
      std::memcpy(c[m].p[result], from, static_cast<std::size_t>(size) * sizeof(T));
      from += size;
    }
  }

  // Each rank gets the parts that it owns, and reduces them in rank order.
  void reduce_scatter() {
    const auto part_of = [&](int m, int r) { return split({0, c[m].l[0].ext[c[m].to.dim]}, c[m].to.block, ranks, r); };
    const auto sizes = [&](int r) {
      std::int64_t k = 0;
      for (int m = 0; m < n; ++m) k += runtime::with_extent(c[m].l[0], c[m].to.dim, part_of(m, r).size).numel();
      return k;
    };
    const bool is_fast = fast();
    const std::int64_t total = count_parts(b.send, b.send_at, sizes), own = sizes(me);
    hold(b.out, total);
    hold(b.in, count_parts(b.receive, b.receive_at, [&](int) { return own; }));
    for (int r = 0; r < ranks; ++r) {
      T* to = r == me && !is_fast ? received(me) : out() + b.send_at[static_cast<std::size_t>(r)];
      for (int m = 0; m < n; ++m) {
        const interval part = part_of(m, r);
        std::int64_t begin[max_rank]{}, ext[max_rank]{};
        for (int d = 0; d < c[m].l[0].rank; ++d) ext[d] = c[m].l[0].ext[d];
        begin[c[m].to.dim] = part.begin;
        ext[c[m].to.dim] = part.size;
        to = pack(static_cast<const T*>(c[m].p[0]), c[m].l[0], begin, ext, to);
      }
    }
    if constexpr (has_number<T>)
      if (is_fast) {
        rank.along(c->axis, "a reduce-scatter", [&](MPI_Comm comm, MPI_Request* r) {
          check(MPI_Ireduce_scatter(b.out.data(), b.in.data(), b.send.data(), number<T>(), operation(), comm, r),
                "MPI_Ireduce_scatter");
        });
        rank.count_written(c->axis, (total - own) * static_cast<std::int64_t>(sizeof(T)));
        T* from = in();
        for (int m = 0; m < n; ++m) {
          const std::int64_t size = c[m].l[result].numel();
          runtime::end_reduction(c[m].from, from, size, ranks);
          std::memcpy(c[m].p[result], from, static_cast<std::size_t>(size) * sizeof(T));
          from += size;
        }
        return;
      }
    all_to_all_parts("a reduce-scatter");
    std::int64_t at = 0;
    for (int m = 0; m < n; ++m) {
      const std::int64_t size = c[m].l[result].numel();
      combine(c[m].from, at, size, static_cast<T*>(c[m].p[result]));
      at += size;
    }
  }

  // --- movement -------------------------------------------------------------------------------------------------------

  // Every rank's block, where it belongs.
  void all_gather() {
    const auto part_of = [&](int m, int r) {
      const int d = c[m].from.dim;
      return split({0, c[m].l[result].ext[d]}, c[m].from.block, ranks, r);
    };
    const auto ext_of = [&](int m, int r, std::int64_t* ext) {
      for (int d = 0; d < c[m].l[0].rank; ++d) ext[d] = c[m].l[0].ext[d];
      ext[c[m].from.dim] = part_of(m, r).size;
    };
    const auto sizes = [&](int r) {
      std::int64_t k = 0, ext[max_rank]{};
      for (int m = 0; m < n; ++m) {
        ext_of(m, r, ext);
        k += numel(ext, c[m].l[0].rank);
      }
      return k;
    };
    hold(b.in, count_parts(b.receive, b.receive_at, sizes));
    hold(b.out, sizes(me));
    T* to = out();
    for (int m = 0; m < n; ++m) to = pack(static_cast<const T*>(c[m].p[0]), c[m].l[0], zero(), c[m].l[0].ext, to);
    gather_parts("an all-gather", to - out());
    for (int r = 0; r < ranks; ++r) {
      const T* from = received(r);
      for (int m = 0; m < n; ++m) {
        std::int64_t begin[max_rank]{}, ext[max_rank]{};
        ext_of(m, r, ext);
        begin[c[m].from.dim] = part_of(m, r).begin;
        from = unpack(from, static_cast<T*>(c[m].p[result]), c[m].l[result], begin, ext);
      }
    }
  }

  // A part of a block: where it begins, in it, and its extents.
  struct box {
    std::int64_t begin[max_rank]{}, ext[max_rank]{};
  };
  // Where a block lies along the dim that is split anew.
  struct place {
    std::int64_t x, x_end, o, o_end;
  };
  static box common(const layout& l, int d, std::int64_t begin, std::int64_t end, std::int64_t other,
                    std::int64_t other_end) {
    box part;
    const std::int64_t lo = begin > other ? begin : other, hi = end < other_end ? end : other_end;
    for (int k = 0; k < l.rank; ++k) part.ext[k] = l.ext[k];
    part.ext[d] = hi > lo ? hi - lo : 0;
    part.begin[d] = part.ext[d] > 0 ? lo - begin : 0;
    return part;
  }

  // From shards of one dim to shards of another, or of the same one with other boundaries: each rank gets the crossing of the other's rows
  // and its own columns.
  void all_to_all() {
    check_places();
    const auto at = [&](int m, int r) { return place_of(m, r); };
    const auto sent_to = [&](int m, int r) {
      const layout& x = c[m].l[0];
      const int from = c[m].from.dim, d = c[m].to.dim;
      if (from == d) return common(x, d, at(m, me).x, at(m, me).x_end, at(m, r).o, at(m, r).o_end);
      const interval part = split({0, x.ext[d]}, c[m].to.block, ranks, r);
      return common(x, d, 0, x.ext[d], part.begin, part.begin + part.size);
    };
    const auto come_from = [&](int m, int r) {
      const layout& o = c[m].l[result];
      const int from = c[m].from.dim, d = c[m].to.dim;
      if (from == d) return common(o, d, at(m, me).o, at(m, me).o_end, at(m, r).x, at(m, r).x_end);
      const interval part = split({0, o.ext[from]}, c[m].from.block, ranks, r);
      return common(o, from, 0, o.ext[from], part.begin, part.begin + part.size);
    };
    const auto total = [&](const auto& parts) {
      return [&](int r) {
        std::int64_t k = 0;
        for (int m = 0; m < n; ++m) k += numel(parts(m, r).ext, c[m].l[0].rank);
        return k;
      };
    };
    hold(b.out, count_parts(b.send, b.send_at, total(sent_to)));
    hold(b.in, count_parts(b.receive, b.receive_at, total(come_from)));
    for (int r = 0; r < ranks; ++r) {
      T* to = r == me ? received(me) : out() + b.send_at[static_cast<std::size_t>(r)];
      for (int m = 0; m < n; ++m) {
        const box part = sent_to(m, r);
        to = pack(static_cast<const T*>(c[m].p[0]), c[m].l[0], part.begin, part.ext, to);
      }
    }
    all_to_all_parts(c->kind == transition::exchange_halo ? "an exchange of halos" : "an all-to-all");
    for (int r = 0; r < ranks; ++r) {
      const T* from = received(r);
      for (int m = 0; m < n; ++m) {
        const box part = come_from(m, r);
        from = unpack(from, static_cast<T*>(c[m].p[result]), c[m].l[result], part.begin, part.ext);
      }
    }
  }
  // Of rank r, where it keeps the dim: law of the blocks (vocabulary/spec.hpp). No axis splits the dim after this one.
  place place_of(int m, int r) const {
    const call& k = c[m];
    interval x, o;
    if (k.kind == transition::exchange_halo) {
      const std::int64_t extent = k.l[0].global[k.to.dim];
      x = split({0, extent}, 1, ranks, r);
      o = overlapping(k.to, extent, ranks, r);
    } else {
      x = split(k.cut, k.from.block, ranks, r);
      o = split(k.cut, k.to.block, ranks, r);
    }
    return {x.begin, x.begin + x.size, o.begin, o.begin + o.size};
  }
  // All ranks compute the same only where each finds its own blocks so.
  void check_places() const {
    for (int m = 0; m < n; ++m) {
      const int d = c[m].to.dim;
      if (c[m].from.dim != d) continue;
      const layout &x = c[m].l[0], &o = c[m].l[result];
      const place at = place_of(m, me);
      const auto is = [d](const layout& l, std::int64_t begin, std::int64_t end) {
        return l.ext[d] == end - begin && (l.ext[d] == 0 || l.origin[d] == begin);
      };
      if (!is(x, at.x, at.x_end) || !is(o, at.o, at.o_end))
        throw std::logic_error("shardwise: a redistribution along axis " + std::to_string(c[m].axis) +
                               " of the mesh was lowered for other blocks than it is given");
    }
  }
};

// What ranks exchange. Bytes are counted as threads count them; of MPI's own reduction, what a reduce-scatter and a gather would send.
struct collectives {
  template <class T, class Rank>
  static void batch(const call* c, int n, Rank& rank) {
    exchange<T, Rank>{c, n, rank}.run();
  }
#define SHARDWISE_COLLECTIVE(function)              \
  template <class T, class Rank>                    \
  static void function(const call& c, Rank& rank) { \
    batch<T>(&c, 1, rank);                          \
  }
  SHARDWISE_COLLECTIVE(all_reduce)
  SHARDWISE_COLLECTIVE(reduce_scatter)
  SHARDWISE_COLLECTIVE(all_gather)
  SHARDWISE_COLLECTIVE(all_to_all)
  SHARDWISE_COLLECTIVE(resplit)
  SHARDWISE_COLLECTIVE(exchange_halo)
#undef SHARDWISE_COLLECTIVE
};

}  // namespace shardwise::inline v0_1::mpi
