// SPDX-License-Identifier: Apache-2.0
// einsum on the host: labelled dims become loops around one strided matrix product; exact loops where T is no float.
#pragma once

#include <type_traits>

#include <shardwise/propagation/contraction.hpp>
#include <shardwise/runtime/host/gemm.hpp>
#include <shardwise/runtime/host/sums.hpp>
#include <shardwise/support/config.hpp>
#if defined(SHARDWISE_WITH_BLAS)
#include <shardwise/runtime/host/cblas.hpp>
#endif

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// The dims of one role with the strides of lhs, rhs and out (0 where absent), neighbours merged.
struct einsum_plan {
  walk<3> batch, m, n, k;
};

constexpr einsum_plan plan_einsum(const op_attr& a, const layout& x, const layout& y, const layout& o) {
  einsum_plan p;
  const auto of = attributes_of<einsum_attributes>(a);
  for (int d = 0; d < x.rank; ++d) {
    const int l = rules::label(of.lhs, d);
    const int dy = rules::find_label(of.rhs, y.rank, l), dout = rules::find_label(of.out, o.rank, l);
    const std::int64_t s[3] = {x.str[d], dy < 0 ? 0 : y.str[dy], dout < 0 ? 0 : o.str[dout]};
    (dy >= 0 ? (dout >= 0 ? p.batch : p.k) : p.m).push(x.ext[d], s);
  }
  for (int d = 0; d < y.rank; ++d) {
    const int l = rules::label(of.rhs, d);
    if (rules::find_label(of.lhs, x.rank, l) >= 0) continue;
    const int dout = rules::find_label(of.out, o.rank, l);
    const std::int64_t s[3] = {0, y.str[d], o.str[dout]};
    p.n.push(y.ext[d], s);
  }
  p.batch.merge();
  p.m.merge();
  p.n.merge();
  p.k.merge();
  return p;
}

namespace detail {
// The largest dim of a role becomes the matrix dim (kept last), the others become loops.
constexpr void largest_last(walk<3>& w) {
  int best = w.rank - 1;
  for (int d = 0; d < w.rank; ++d)
    if (w.ext[d] > w.ext[best]) best = d;
  const int last = w.rank - 1;
  const std::int64_t e = w.ext[best];
  w.ext[best] = w.ext[last];
  w.ext[last] = e;
  for (auto& s : w.str) {
    const std::int64_t t = s[best];
    s[best] = s[last];
    s[last] = t;
  }
}

// The sum of lhs over the dims that are contracted, to operand 2: the gradient of a bias beside its weight's.
template <class T>
constexpr void sum_rows(const call& c, const operands<T>& q) {
  call s;
  s.a = pack_attributes(sum_attributes{.dims = rules::contracted_dims(c.a, c.l[0].rank, c.l[1].rank), .kept = 0, .mean = 0});
  s.inputs = 1;
  s.l[0] = c.l[0];
  s.l[result] = c.l[2];
  operands<T> of;
  of.p[0] = q.p[0];
  of.p[result] = q.p[2];
  sum_into<T, false>(s, of);
}
}  // namespace detail

template <>
struct kernel<op_code::einsum> {
#if defined(SHARDWISE_WITH_BLAS)
  static constexpr cut_kind cut = cut_kind::whole;  // a library's rows may depend on how many there are
#else
  static constexpr cut_kind cut = cut_kind::product;
#endif
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    if (attributes_of<einsum_attributes>(c.a).keeps_sums != 0) detail::sum_rows<T>(c, q);
    if constexpr (std::is_floating_point_v<T>) {
      const T alpha = static_cast<T>(c.f);
      products(
          c, [&](std::int64_t m, std::int64_t n, std::int64_t k, const einsum_plan& p, const std::int64_t* off, bool first) {
            const int lm = p.m.rank - 1, ln = p.n.rank - 1, lk = p.k.rank - 1;
            const matrix_view<const T> va{q.p[0] + off[0], p.m.str[0][lm], p.k.str[0][lk]};
            const matrix_view<const T> vb{q.p[1] + off[1], p.k.str[1][lk], p.n.str[1][ln]};
            const matrix_view<T> vc{q.p[result] + off[2], p.m.str[2][lm], p.n.str[2][ln]};
            const T beta = first ? T(0) : T(1);
#if defined(SHARDWISE_WITH_BLAS)
            namespace product = cblas;  // named, since operands would find the other one, too
#else
        namespace product = shardwise::host;
#endif
            // rows of the result should run along memory
            if (vc.col != 1 && vc.row == 1)
              product::gemm<T>(n, m, k, alpha, {vb.data, vb.col, vb.row}, {va.data, va.col, va.row}, beta,
                               {vc.data, vc.col, vc.row}, c.workspace);
            else product::gemm<T>(m, n, k, alpha, va, vb, beta, vc, c.workspace);
          });
    } else {
      const T alpha = math<T>::from(c.f);
      products(
          c, [&](std::int64_t m, std::int64_t n, std::int64_t k, const einsum_plan& p, const std::int64_t* off, bool first) {
            const int lm = p.m.rank - 1, ln = p.n.rank - 1, lk = p.k.rank - 1;
            for (std::int64_t i = 0; i < m; ++i)
              for (std::int64_t j = 0; j < n; ++j) {
                T total = T(0);
                for (std::int64_t r = 0; r < k; ++r)
                  total = total + q.p[0][off[0] + i * p.m.str[0][lm] + r * p.k.str[0][lk]] *
                                      q.p[1][off[1] + r * p.k.str[1][lk] + j * p.n.str[1][ln]];
                T& o = q.p[result][off[2] + i * p.m.str[2][lm] + j * p.n.str[2][ln]];
                o = first ? alpha * total : o + alpha * total;
              }
          });
    }
  }

 private:
  // body(m, n, k, plan, offsets, first along k) for every matrix product of the loops.
  template <class F>
  static constexpr void products(const call& c, F&& body) {
    einsum_plan p = plan_einsum(c.a, c.l[0], c.l[1], c.l[result]);
    detail::largest_last(p.m);
    detail::largest_last(p.n);
    detail::largest_last(p.k);
    const std::int64_t m = p.m.ext[p.m.rank - 1], n = p.n.ext[p.n.rank - 1], k = p.k.ext[p.k.rank - 1];
    each(p.batch, false, [&](const std::int64_t* ob, bool) {
      each(p.m, true, [&](const std::int64_t* om, bool) {
        each(p.n, true, [&](const std::int64_t* on, bool) {
          bool empty = true;
          each(p.k, true, [&](const std::int64_t* ok, bool first) {
            empty = false;
            const std::int64_t off[3] = {ob[0] + om[0] + on[0] + ok[0], ob[1] + om[1] + on[1] + ok[1],
                                         ob[2] + om[2] + on[2] + ok[2]};
            body(m, n, k, p, off, first);
          });
          if (empty) {  // nothing to contract: zeros
            const std::int64_t off[3] = {0, 0, ob[2] + om[2] + on[2]};
            body(m, n, 0, p, off, true);
          }
        });
      });
    });
  }

  // All index combinations of w, without its last dim if `skip_last`.
  template <class F>
  static constexpr void each(const walk<3>& w, bool skip_last, F&& f) {
    const int dims = skip_last ? w.rank - 1 : w.rank;
    for (int d = 0; d < dims; ++d)
      if (w.ext[d] == 0) return;
    std::int64_t at[max_rank + 1]{}, off[3]{};
    bool first = true;
    for (;;) {
      f(off, first);
      first = false;
      int d = dims - 1;
      for (; d >= 0; --d) {
        ++at[d];
        for (int k = 0; k < 3; ++k) off[k] += w.str[k][d];
        if (at[d] < w.ext[d]) break;
        for (int k = 0; k < 3; ++k) off[k] -= w.str[k][d] * w.ext[d];
        at[d] = 0;
      }
      if (d < 0) return;
    }
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
