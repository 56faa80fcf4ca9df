// SPDX-License-Identifier: Apache-2.0
// A plain interpreter on one rank: whole tensors over shared storage, in double, with a bound of the error that the library's
// arithmetic may have, and with derivatives through a tape of scalars. It shares nothing with the library's kernels, rules,
// adjoints and passes: of a program it reads operations, attributes, extents, and where claims of blocks say they lie.
// A redistribution is a value: its result is never its operand's storage.
#pragma once

#include <library.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>

namespace fuzz {

inline constexpr double wild = std::numeric_limits<double>::infinity();  // an error that says: anything may be here
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// A value, how far the library's may be from it, and its place on the tape (-1: it depends on no variable).
struct num {
  double v = 0, e = 0;
  int n = -1;
  bool hidden = false;  // of a norm's statistics: differentiated where it is applied, and nowhere else
};
struct edge {
  int to;
  double p, ep;  // derivative, and how far it may be off
};

// Philox 4x32-10 as its authors have it: by key and counter.
inline void philox_words(std::uint64_t key, const std::uint32_t counter[4], std::uint32_t out[4]) {
  std::uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
  std::uint32_t k[2] = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ULL * c[0], p1 = 0xCD9E8D57ULL * c[2];
    const std::uint32_t next[4] = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
                                   static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    k[0] += 0x9E3779B9U;
    k[1] += 0xBB67AE85U;
  }
  for (int i = 0; i < 4; ++i) out[i] = c[i];
}

// Which part of a dim a rank has: the axes that shard it cut one after the other, each what is left, into multiples of the
// block; a strided shard waits for as many later axes as make up its factor.
struct part {
  std::int64_t begin, size;
};
inline part part_of(const spec& s, int dim, const int* coordinate) {
  std::vector<int> order;
  for (int a = s.axes - 1; a >= 0; --a) {
    const placement& p = s.place[a];
    if (p.kind != sw::placement_kind::shard || p.dim != dim) continue;
    const int factor = p.factor;
    std::size_t at = 0;
    for (int product = 1; at < order.size() && product < factor; ++at) product *= s.axis_size[order[at]];
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), a);
  }
  part r{0, s.extent[dim]};
  for (const int a : order) {
    const std::int64_t block = s.place[a].block, pieces = (r.size + block - 1) / block;
    const std::int64_t chunk = (pieces + s.axis_size[a] - 1) / s.axis_size[a] * block;
    const std::int64_t lo = std::min(chunk * coordinate[a], r.size), hi = std::min(lo + chunk, r.size);
    r = {r.begin + lo, hi - lo};
  }
  return r;
}

struct tensor {
  std::shared_ptr<std::vector<num>> storage;
  std::int64_t offset = 0;
  int rank = 0;
  std::int64_t ext[8]{}, str[8]{};

  std::int64_t count() const {
    std::int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= ext[d];
    return n;
  }
  num& at(std::int64_t i) const {
    std::int64_t where = offset;
    for (int d = rank; d-- > 0; i /= ext[d]) where += i % ext[d] * str[d];
    return (*storage)[static_cast<std::size_t>(where)];
  }
};
inline tensor fresh(const spec& s) {
  tensor t;
  t.rank = s.rank;
  std::int64_t step = 1;
  for (int d = s.rank - 1; d >= 0; --d) {
    t.ext[d] = s.extent[d];
    t.str[d] = step;
    step *= s.extent[d];
  }
  t.storage = std::make_shared<std::vector<num>>(static_cast<std::size_t>(std::max<std::int64_t>(step, 1)));
  return t;
}

using values = std::vector<num>;

class reference {
 public:
  // Off: whatever is not finite may be anything.
  static inline bool laws_of_special_values = true;

  std::vector<tensor> value;
  std::string wrong;  // what the interpreter does not know

  reference(const program& p, const std::vector<known>& specs, const run_numbers& run, bool derivatives)
      : p_(p), specs_(specs), run_(run), derivatives_(derivatives) {}

  // Leaves: all their elements, in the order of the whole tensor.
  void set_leaf(int statement, const std::vector<double>& x) { leaves_.emplace_back(statement, x); }
  void set_leaf(int statement, const values& x) { exact_.emplace_back(statement, x); }

  void go() {
    value.resize(p_.body.size());
    sites_ = 0;
    for (std::size_t i = 0; i < p_.body.size(); ++i) one(static_cast<int>(i));
  }

  // d (root) / d (leaf), element by element; by the tape, backwards.
  void differentiate(int root) {
    adjoint_.assign(first_.size() + 1, num{});
    const values r = dense(root);
    for (const num& x : r)
      if (x.n >= 0) adjoint_[static_cast<std::size_t>(x.n)].v += 1;
    for (std::size_t k = first_.size(); k-- > 0;) {
      const num a = adjoint_[k];
      const std::size_t end = k + 1 < first_.size() ? first_[k + 1] : edges_.size();
      for (std::size_t j = first_[k]; j < end; ++j) {
        if (a.v == 0 && a.e == 0 && std::isfinite(edges_[j].p) && edges_[j].ep != wild) continue;
        num& to = adjoint_[static_cast<std::size_t>(edges_[j].to)];
        const double p = edges_[j].p, ep = edges_[j].ep;
        to.v += p * a.v;
        const double more =
            (std::fabs(p) + ep) * a.e + ep * std::fabs(a.v) + 16 * eps_ * std::fabs(p * a.v) + (p * a.v != 0 ? tiny_ : 0);
        // a share of a cotangent may be infinite where the whole is not
        to.e += std::isfinite(more) && std::isfinite(to.v) && std::fabs(p * a.v) + more <= largest_ &&
                        std::fabs(to.v) <= largest_
                    ? more
                    : wild;
        if (!std::isfinite(to.v)) to.v = 0;
      }
    }
  }
  values gradient(int statement) const {
    values r;
    for (const auto& [leaf, ids] : variables_)
      if (leaf == statement)
        for (const int id : ids)
          r.push_back({adjoint_[static_cast<std::size_t>(id)].v, adjoint_[static_cast<std::size_t>(id)].e, -1});
    return r;
  }

  // What value i holds now: programs may write it after it was made.
  values dense(int i) const { return read(value[static_cast<std::size_t>(i)]); }

  // Whether derivatives are what they seem: no infinity times 0, no decision that the library may take otherwise.
  bool sure_of_derivatives() const {
    if (lost_) return false;
    for (const tensor& t : value)
      for (const num& x : *t.storage)
        if (!std::isfinite(x.v)) return false;
    return true;
  }
  double eps() const { return eps_; }
  void set_type(sw::dtype t) {
    f32_ = t != sw::dtype::f64;
    eps_ = f32_ ? 5.97e-8 : 1.12e-16;
    largest_ = f32_ ? 1e37 : 1e300;
    tiny_ = f32_ ? 1.2e-38 : 2.3e-308;
  }

 private:
  static values read(const tensor& t) {
    values r;
    const std::int64_t n = t.count();
    r.reserve(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) r.push_back(t.at(i));
    return r;
  }

  // --- numbers ------------------------------------------------------------------------------------------------------------

  struct with {
    num x;
    double p, ep = 0;
  };
  // A result of known derivatives; `own` is what rounding may add to the operands' errors.
  num made(double v, double own, const with* w, std::size_t count) {
    num r{v, own, -1};
    bool finite = true, any = false;
    for (std::size_t k = 0; k < count; ++k) {
      finite = finite && std::isfinite(w[k].x.v);
      if (w[k].x.e > 0) r.e += w[k].x.e == wild ? wild : (std::fabs(w[k].p) + w[k].ep) * w[k].x.e;
      any = any || w[k].x.n >= 0;
    }
    settle(r, finite);
    if (derivatives_ && any) {
      r.n = static_cast<int>(first_.size());
      first_.push_back(edges_.size());
      for (std::size_t k = 0; k < count; ++k)
        if (w[k].x.n >= 0)
          edges_.push_back(
              {w[k].x.n, w[k].p,
               std::isfinite(w[k].ep) && std::isfinite(r.v) && r.e != wild ? w[k].ep + 8 * eps_ * std::fabs(w[k].p) : wild});
    }
    return r;
  }
  num made(double v, double own, std::initializer_list<with> w) { return made(v, own, w.begin(), w.size()); }
  void settle(num& r, bool finite) const {
    if (std::isnan(r.e)) r.e = wild;
    if (!std::isfinite(r.v)) {
      if (finite || r.e > 0 || !laws_of_special_values) r.e = wild;
      return;
    }
    r.e += tiny_;
    if (std::fabs(r.v) + r.e > largest_) r.e = wild;
  }
  static bool is_wild(const num& x) { return x.e == wild; }
  // Whether the library's may be 0 or lie on its other side. A value that may be anything may, whatever the interpreter has: it
  // may have a NaN there, and no comparison finds one near 0.
  static bool near_zero(const num& x, double times = 1) { return is_wild(x) || (x.e > 0 && std::fabs(x.v) <= times * x.e); }
  // Rounding of a result of this size, k times.
  double rounding(double v, double k = 2) const { return std::isfinite(v) ? k * eps_ * std::fabs(v) : 0; }
  static num still(num x) {
    x.n = -1;
    return x;
  }
  static num constant(double v) { return {v, 0, -1}; }
  // The same number, of which some have no share: but 0 of a cotangent that is no number is none.
  num without_share(num y, const values& some) {
    std::vector<with> w{{{y.v, 0, y.n}, 1}};
    for (const num& x : some) w.push_back({{x.v, 0, x.n}, 0});
    num r = made(y.v, 0, w.data(), derivatives_ ? w.size() : 0);
    r.e = y.e;
    return r;
  }

  // f with its derivative d; both are looked at where the operand may be.
  template <class F, class D>
  num unary(num x, F f, D d, double k = 4, double slope_rounding = 0) {
    if (is_wild(x)) return made(x.v, wild, {{x, 1}});
    const double v = f(x.v), p = std::isfinite(x.v) ? d(x.v) : 0;
    double own = rounding(v, k), ep = slope_rounding * eps_;
    if (x.e > 0) {
      const double lo = f(x.v - x.e), hi = f(x.v + x.e);
      own += std::max(std::fabs(lo - v), std::fabs(hi - v));
      ep += std::max(std::fabs(d(x.v - x.e) - p), std::fabs(d(x.v + x.e) - p));
      if (std::isnan(own)) own = std::isnan(v) && std::isnan(lo) && std::isnan(hi) ? 0 : wild;
      if (std::isnan(ep)) ep = wild;
    }
    if (std::isnan(v) && std::isfinite(x.v) && laws_of_special_values) {  // outside the domain for certain, or perhaps
      num r = made(not_a_number, 0, {{{x.v, 0, x.n}, 0, wild}});
      r.e = own > 0 ? wild : 0;
      return r;
    }
    const num at = {x.v, 0, x.n};
    return made(v, own, {{at, p, ep}});
  }

  num add(num x, num y) { return made(x.v + y.v, rounding(std::fabs(x.v) + std::fabs(y.v)), {{x, 1}, {y, 1}}); }
  num sub(num x, num y) { return made(x.v - y.v, rounding(std::fabs(x.v) + std::fabs(y.v)), {{x, 1}, {y, -1}}); }
  num mul(num x, num y) {
    const double v = x.v * y.v, both = x.e * y.e;
    return made(v, rounding(v) + (both > 0 ? both : 0), {{x, y.v, y.e}, {y, x.v, x.e}});
  }
  num times(num x, double f) { return made(x.v * f, rounding(x.v * f, 3), {{x, f, std::fabs(f) * eps_}}); }
  num over(num x, num y) {
    if (near_zero(y) || y.v == 0) return made(x.v / y.v, wild, {{x, 1}, {y, 1}});
    const double v = x.v / y.v, low = std::isfinite(y.v) ? std::fabs(y.v) - y.e : std::fabs(y.v);
    const double px = 1 / y.v, py = -x.v / y.v / y.v;
    const double own =
        rounding(v, 3) + (y.e > 0 ? std::fabs(v) * y.e / low - std::fabs(py) * y.e + x.e / low - std::fabs(px) * x.e : 0);
    return made(v,
                !std::isfinite(v)                ? 0
                : own >= 0 || std::isfinite(own) ? own
                                                 : wild,
                {{x, std::isfinite(y.v) ? px : 0, y.e / (low * low)},
                 {y, std::isfinite(py) ? py : 0, (std::fabs(v) * 2 * y.e + x.e) / (low * low)}});
  }
  // A sum in whatever order, of parts that ranks and vectors make.
  num total(const values& x) {
    std::vector<with> w;
    w.reserve(x.size());
    long double s = 0;
    double size = 0;
    for (const num& k : x) {
      s += static_cast<long double>(k.v);
      size += std::isfinite(k.v) ? std::fabs(k.v) : 0;
      w.push_back({k, 1});
    }
    return made(static_cast<double>(s), size > largest_ ? wild : eps_ * static_cast<double>(x.size() + 4) * size, w.data(),
                w.size());
  }
  // A product in whatever order, of parts that ranks and rows make: a part may be infinite, or lose digits because it is too
  // small, where the whole is and does neither. Each factor's derivative is the product of the others, exact with any number
  // of zeros.
  num product(const values& x) {
    double v = 1, size = 1, largest = 1, smallest = 1;
    bool finite = true, nothing = false, unknown = false;
    for (const num& k : x) {
      unknown = unknown || std::isnan(k.v);
      const double most = std::fabs(k.v) + k.e, least = std::fabs(k.v) - k.e;
      v *= k.v;
      size *= most;
      finite = finite && std::isfinite(k.v);
      nothing = nothing || (k.v == 0 && k.e == 0);
      largest *= std::max(most, 1.0);
      if (std::isfinite(k.v) && k.v != 0) smallest *= std::clamp(least, 0.0, 1.0);
    }
    const bool vanishes = smallest < tiny_;
    const double lost = vanishes ? tiny_ * largest * static_cast<double>(x.size()) : 0;
    double own = std::isfinite(v) && std::isfinite(size) ? eps_ * static_cast<double>(x.size() + 2) * size : 0;
    if (!nothing) own += finite ? lost : 0;
    if (finite && largest > largest_) own = wild;
    if (!finite && !unknown && !nothing && vanishes)
      v = wild, own = wild;  // infinite, or 0 times infinity where a part vanishes first
    std::vector<with> w;
    for (std::size_t k = 0; k < x.size(); ++k) {
      double others = 1, most = 1;
      for (std::size_t j = 0; j < x.size(); ++j)
        if (j != k) {
          others *= x[j].v;
          most *= std::fabs(x[j].v) + x[j].e;
        }
      w.push_back({x[k], others, std::isfinite(most) ? most - std::fabs(others) + (finite ? lost : 0) + 1e-300 : 0});
    }
    return made(v, own, w.data(), w.size());
  }
  // Sums of powers are not scaled, as torch.linalg.vector_norm does not: they may be 0 or infinite where the norm is neither.
  num power_of(num x, int order) {
    const num a = unary(x, [](double z) { return std::fabs(z); }, [](double z) { return z > 0 ? 1.0 : z < 0 ? -1.0 : 0.0; });
    num power = a;
    for (int k = 1; k < order; ++k) power = mul(power, a);
    return power;
  }
  num root_of(num t, int order) {
    const double q = 1.0 / order;
    num r =
        unary(t, [q](double v) { return std::pow(v < 0 ? 0 : v, q); }, [q](double v) { return q * std::pow(v, q - 1); }, 16);
    if (std::isfinite(r.v) && t.v > 0) r.e += std::fabs(r.v * std::log(t.v)) * eps_;  // 1 / order is rounded
    return r;
  }
  num exponential(num x) {
    return unary(x, [](double v) { return std::exp(v); }, [](double v) { return std::exp(v); }, 6);
  }
  num logarithm(num x) {
    return unary(x, [](double v) { return std::log(v); }, [](double v) { return 1 / v; });
  }
  num root(num x) {
    return unary(x, [](double v) { return std::sqrt(v); }, [](double v) { return 0.5 / std::sqrt(v); });
  }
  // Whether the library may see x and y the other way round.
  static bool close(num x, num y) {
    return is_wild(x) || is_wild(y) || (x.e + y.e > 0 && std::fabs(x.v - y.v) <= 4 * (x.e + y.e));
  }
  // The extreme of some: a NaN is it; those that are equal to it share its derivative.
  num extreme(const values& x, bool largest) {
    if (x.empty()) return constant(largest ? -wild : wild);
    num best = x[0];
    for (const num& k : x) {
      if (is_wild(k)) {
        std::vector<with> all;
        for (const num& v : x) all.push_back({v, 1});
        return made(k.v, wild, all.data(), all.size());
      }
      if (std::isnan(k.v) || (!std::isnan(best.v) && (largest ? k.v > best.v : k.v < best.v))) best = k;
    }
    double e = best.e;
    int ties = 0, near = 0;
    for (const num& k : x) {
      e = std::max(e, k.e);
      ties += k.v == best.v ? 1 : 0;
      near += close(k, best) || k.v == best.v ? 1 : 0;
    }
    std::vector<with> w;  // those that lose have a share of 0, which is none of a cotangent that is no number
    for (const num& k : x) {
      const bool may_win = close(k, best) || k.v == best.v;
      w.push_back(
          {{k.v, 0, k.n}, k.v == best.v ? 1.0 / ties : 0, !may_win || (near == ties && !(e > 0 && ties > 1)) ? 0.0 : 1.0});
    }
    return made(best.v, std::isfinite(best.v) ? e : 0, w.data(), w.size());
  }

  // --- tensors ------------------------------------------------------------------------------------------------------------

  const spec& spec_of(int i) const { return specs_[static_cast<std::size_t>(i)].s; }

  void write(int i, const values& x) {
    tensor t = fresh(spec_of(i));
    for (std::size_t k = 0; k < x.size() && k < t.storage->size(); ++k) (*t.storage)[k] = x[k];
    if (static_cast<std::int64_t>(x.size()) != t.count())
      wrong = std::string("the interpreter made ") + std::to_string(x.size()) + " elements for " +
              sw::name_of(p_.body[static_cast<std::size_t>(i)].op);
    value[static_cast<std::size_t>(i)] = t;
  }

  // Operand k of statement i, its elements in order; without derivatives where none flow.
  values operand(int i, int k) {
    const statement& s = p_.body[static_cast<std::size_t>(i)];
    values r = read(value[static_cast<std::size_t>(s.in[k])]);
    for (num& x : r) {
      if (x.hidden && !(s.op == op_code::norm_apply && k == 1)) x.n = -1;
      x.hidden = false;
    }
    return r;
  }
  // The same, broadcast to the result's extents.
  values spread(int i, int k) {
    const statement& s = p_.body[static_cast<std::size_t>(i)];
    const values x = operand(i, k);
    const spec &from = spec_of(s.in[k]), &to = spec_of(i);
    const std::int64_t n = sw::numel(to);
    values r;
    r.reserve(static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < n; ++j) {
      std::int64_t rest = j, where = 0, step = 1;
      for (int d = to.rank - 1; d >= 0; --d) {
        const std::int64_t c = rest % to.extent[d];
        rest /= to.extent[d];
        const int own = d - (to.rank - from.rank);
        if (own < 0) continue;
        if (from.extent[own] != 1) where += c * step;
        step *= from.extent[own];
      }
      r.push_back(x[static_cast<std::size_t>(where)]);
    }
    return r;
  }
  template <class F>
  void map1(int i, F f) {
    values x = operand(i, 0);
    for (num& v : x) v = f(v);
    write(i, x);
  }
  template <class F>
  void map2(int i, F f) {
    values x = spread(i, 0);
    const values y = spread(i, 1);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = f(x[k], y[k]);
    write(i, x);
  }
  static bool any_special(num x, num y = {}, num z = {}) {
    return !std::isfinite(x.v) || !std::isfinite(y.v) || !std::isfinite(z.v);
  }

  // Which result each element goes into when the dims of the mask go.
  std::vector<std::size_t> folded(const spec& x, std::int64_t mask) const {
    std::vector<std::size_t> to;
    const std::int64_t n = sw::numel(x);
    for (std::int64_t j = 0; j < n; ++j) {
      std::int64_t rest = j, where = 0, step = 1;
      for (int d = x.rank - 1; d >= 0; --d) {
        const std::int64_t c = rest % x.extent[d];
        rest /= x.extent[d];
        if ((mask >> d) & 1) continue;
        where += c * step;
        step *= x.extent[d];
      }
      to.push_back(static_cast<std::size_t>(where));
    }
    return to;
  }
  std::vector<values> groups(int i, int k, std::int64_t mask, std::size_t count) {
    const values x = operand(i, k);
    const std::vector<std::size_t> to = folded(spec_of(p_.body[static_cast<std::size_t>(i)].in[k]), mask);
    std::vector<values> g(count);
    for (std::size_t j = 0; j < x.size(); ++j) g[to[j]].push_back(x[j]);
    return g;
  }

  struct lines {  // element (outer, along, inner)
    std::int64_t outer = 1, along = 1, inner = 1;
    std::size_t at(std::int64_t o, std::int64_t a, std::int64_t n) const {
      return static_cast<std::size_t>((o * along + a) * inner + n);
    }
  };
  static lines lines_of(const spec& s, int dim) {
    lines l;
    for (int d = 0; d < s.rank; ++d) (d < dim ? l.outer : d == dim ? l.along : l.inner) *= s.extent[d];
    return l;
  }
  std::int64_t index_at(const values& x, std::size_t k) {
    if (is_wild(x[k])) unsure_ = lost_ = true;
    return static_cast<std::int64_t>(x[k].v);
  }

  num random_uniform(std::int64_t site, std::int64_t element, int bits) {
    std::uint32_t w[4];
    const std::uint32_t counter[4] = {static_cast<std::uint32_t>(element), 0, static_cast<std::uint32_t>(site) + 1,
                                      static_cast<std::uint32_t>(run_.step)};
    philox_words(run_.seed, counter, w);
    return constant(bits == 24 ? (w[0] >> 8) / 16777216.0 : w[0] / 4294967296.0);
  }

  void one(int i);
  void einsum(int i);
  void view(int i);
  void relabel(int i);
  void rows(int i);
  void indexed(int i);
  void convolution(int i);
  void pooling(int i);
  void pooled_result(int i);
  void interpolation(int i);
  void channel_moments(int i);
  void channel_moments_about(int i);
  void channel_norm(int i);

  const program& p_;
  const std::vector<known>& specs_;
  run_numbers run_;
  bool derivatives_;
  bool f32_ = true;
  double eps_ = 5.97e-8, largest_ = 1e37, tiny_ = 1.2e-38;
  bool unsure_ = false;  // an index may be another one
  bool lost_ = false;    // or was: nobody knows where derivatives go
  std::int64_t sites_ = 0;
  std::vector<std::pair<int, std::vector<double>>> leaves_;
  std::vector<std::pair<int, values>> exact_;
  std::vector<std::size_t> first_;  // edges of each entry of the tape
  std::vector<edge> edges_;
  values adjoint_;
  std::vector<std::pair<int, std::vector<int>>> variables_;
};

inline void reference::view(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const tensor& x = value[static_cast<std::size_t>(s.in[0])];
  const spec& out = spec_of(i);
  tensor t = x;
  t.rank = out.rank;
  for (int d = 0; d < out.rank; ++d) t.ext[d] = out.extent[d];
  if (s.op == op_code::permute) {
    for (int d = 0; d < x.rank; ++d) t.str[d] = x.str[(s.a.v[0] >> (4 * d)) & 15];
  } else if (s.op == op_code::slice) {
    t.offset += s.a.v[1] * x.str[s.a.v[0]];
  } else if (s.op == op_code::broadcast) {
    for (int d = 0; d < out.rank; ++d) {
      const int own = d - (out.rank - x.rank);
      t.str[d] = own < 0 || (x.ext[own] == 1 && out.extent[d] != 1) ? 0 : x.str[own];
    }
  } else if (s.op == op_code::reshape) {
    // the elements stay where they are: one step along a dim goes from the first one to that which is so much further in order
    const auto place = [&](std::int64_t at) {
      std::int64_t where = 0;
      for (int d = x.rank - 1; d >= 0; at /= x.ext[d--]) where += at % x.ext[d] * x.str[d];
      return where;
    };
    std::int64_t below = 1;
    for (int d = out.rank - 1; d >= 0; below *= out.extent[d--])
      t.str[d] = out.extent[d] > 1 && sw::numel(out) > 0 ? place(below) : 0;
  }
  value[static_cast<std::size_t>(i)] = t;
}

// Blocks under another name: every rank's block of the result is its block of the operand; of a partial result they add up.
inline void reference::relabel(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const spec &x = spec_of(s.in[0]), &out = spec_of(i);
  const values in = operand(i, 0);
  std::vector<values> parts(static_cast<std::size_t>(sw::numel(out)));
  for (int rank = 0; rank < p_.ranks(); ++rank) {
    int c[sw::max_axes]{};
    for (int a = 0; a < p_.axes; ++a) c[a] = rank_coordinate(p_, rank, a);
    part px[8]{}, po[8]{};
    std::int64_t n = 1;
    for (int d = 0; d < x.rank; ++d) {
      px[d] = part_of(x, d, c);
      po[d] = part_of(out, d, c);
      n *= px[d].size;
    }
    for (std::int64_t j = 0; j < n; ++j) {
      std::int64_t rest = j, from = 0, to = 0, sf = 1, st = 1;
      for (int d = x.rank - 1; d >= 0; --d) {
        const std::int64_t k = rest % px[d].size;
        rest /= px[d].size;
        from += (px[d].begin + k) * sf;
        to += (po[d].begin + k) * st;
        sf *= x.extent[d];
        st *= out.extent[d];
      }
      parts[static_cast<std::size_t>(to)].push_back(in[static_cast<std::size_t>(from)]);
    }
  }
  values r;
  for (const values& v : parts) r.push_back(v.size() == 1 ? v[0] : total(v));
  write(i, r);
}

inline void reference::einsum(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const spec *in[2] = {&spec_of(s.in[0]), &spec_of(s.in[1])}, &out = spec_of(i);
  const values x[2] = {operand(i, 0), operand(i, 1)};
  std::int64_t extent[16]{};
  for (int k = 0; k < 2; ++k)
    for (int d = 0; d < in[k]->rank; ++d) extent[(s.a.v[k] >> (4 * d)) & 15] = in[k]->extent[d];
  bool in_out[16]{};
  for (int d = 0; d < out.rank; ++d) in_out[(s.a.v[2] >> (4 * d)) & 15] = true;
  std::vector<int> summed;
  std::int64_t terms = 1;
  for (int l = 1; l < 16; ++l) {
    bool used = false;
    for (int k = 0; k < 2; ++k)
      for (int d = 0; d < in[k]->rank; ++d) used = used || ((s.a.v[k] >> (4 * d)) & 15) == l;
    if (used && !in_out[l]) {
      summed.push_back(l);
      terms *= extent[l];
    }
  }
  values r;
  for (std::int64_t j = 0; j < sw::numel(out); ++j) {
    std::int64_t c[16]{}, rest = j;
    for (int d = out.rank - 1; d >= 0; --d) {
      c[(s.a.v[2] >> (4 * d)) & 15] = rest % out.extent[d];
      rest /= out.extent[d];
    }
    std::vector<with> w;
    long double sum = 0;
    double size = 0, both = 0;
    for (std::int64_t t = 0; t < terms; ++t) {
      rest = t;
      for (const int l : summed) {
        c[l] = rest % extent[l];
        rest /= extent[l];
      }
      std::int64_t at[2]{};
      for (int k = 0; k < 2; ++k)
        for (int d = 0; d < in[k]->rank; ++d) at[k] = at[k] * in[k]->extent[d] + c[(s.a.v[k] >> (4 * d)) & 15];
      const num a = x[0][static_cast<std::size_t>(at[0])], b = x[1][static_cast<std::size_t>(at[1])];
      sum += static_cast<long double>(a.v) * static_cast<long double>(b.v);
      const double product = a.v * b.v;
      size += std::isfinite(product) ? std::fabs(product) : 0;
      both += a.e > 0 && b.e > 0 ? a.e * b.e : 0;
      w.push_back({a, b.v, b.e});
      w.push_back({b, a.v, a.e});
    }
    r.push_back(times(made(static_cast<double>(sum),
                           size > largest_ ? wild : eps_ * static_cast<double>(terms + 6) * size + both, w.data(), w.size()),
                      s.f));
  }
  write(i, r);
}

// Operations along the last dim.
inline void reference::rows(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const int lead = s.op == op_code::norm_dx || s.op == op_code::nll_dx ? 1 : 0;  // the operand with whole rows
  const spec& whole = spec_of(s.in[lead]);
  const std::int64_t n = whole.extent[whole.rank - 1], count = n == 0 ? 0 : sw::numel(whole) / n;
  std::int64_t row_count = 1;
  for (int d = 0; d + 1 < whole.rank; ++d) row_count *= whole.extent[d];
  std::vector<values> in;
  for (int k = 0; k < s.inputs; ++k) in.push_back(operand(i, k));
  const auto row = [&](int k, std::int64_t r) {
    const auto begin = in[static_cast<std::size_t>(k)].begin() + static_cast<std::ptrdiff_t>(r * n);
    return values(begin, begin + static_cast<std::ptrdiff_t>(n));
  };
  const bool rms = s.a.v[0] == 1;
  values out;
  const auto push = [&](const values& v) { out.insert(out.end(), v.begin(), v.end()); };
  // exp(x - top), where top is the largest, and their sum
  const auto exponentials = [&](const values& x, values& e) {
    double top = -wild;
    for (const num& v : x) top = std::isnan(v.v) ? v.v : std::max(top, v.v);
    for (const num& v : x) e.push_back(exponential(sub(v, constant(top))));
    return top;
  };
  const std::int64_t all = n == 0 ? row_count : count;
  values weight_gradient(static_cast<std::size_t>(n));
  std::vector<values> weight_terms(static_cast<std::size_t>(n));
  for (std::int64_t r = 0; r < all; ++r) {
    const values x = row(lead, r);
    switch (s.op) {
      case op_code::softmax: {
        const std::int64_t queries = s.a.v[0] != 0 ? whole.extent[whole.rank - 2] : 1;
        const std::int64_t visible = s.a.v[0] != 0 ? std::min(r % queries + 1, n) : n;
        const values seen(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(visible));
        values e;
        exponentials(seen, e);
        const num sum = total(e);
        for (const num& v : e) out.push_back(without_share(over(v, sum), x));
        for (std::int64_t k = visible; k < n; ++k) out.push_back(without_share(constant(0), x));
        break;
      }
      case op_code::log_softmax: {
        values e;
        const double top = exponentials(x, e);
        const num norm = add(constant(top), logarithm(total(e)));
        double sure = 0;
        for (const num& v : x) sure = is_wild(v) ? wild : sure;
        for (const num& v : x) out.push_back(std::isinf(top) ? num{not_a_number, sure, -1} : sub(v, norm));
        break;
      }
      case op_code::lse: {
        double top = -wild;
        for (const num& v : x) top = std::isnan(v.v) ? v.v : std::max(top, v.v);
        if (!std::isfinite(top)) {
          num bad = constant(top);
          for (const num& v : x) bad.e = is_wild(v) ? wild : bad.e;
          out.push_back(bad);
          break;
        }
        values e;
        exponentials(x, e);
        out.push_back(add(constant(top), logarithm(total(e))));
        break;
      }
      case op_code::exp_sum: {
        num top = in[1][static_cast<std::size_t>(r)];
        if (!std::isfinite(top.v)) top.v = 0;  // so that the sum says what logsumexp says of an infinity
        values e;
        for (const num& v : x) e.push_back(exponential(sub(v, top)));
        out.push_back(still(total(e)));
        break;
      }
      case op_code::softmax_dx: {
        const values y = row(1, r);
        values t;
        for (std::size_t k = 0; k < x.size(); ++k) t.push_back(mul(x[k], y[k]));
        const num dot = total(t);
        for (std::size_t k = 0; k < x.size(); ++k)
          out.push_back(any_special(x[k], y[k], dot) ? made(0, wild, {}) : mul(y[k], sub(x[k], dot)));
        break;
      }
      case op_code::norm_stats: {
        num mean = constant(0);
        if (!rms) mean = over(total(x), constant(static_cast<double>(n)));
        values sq;
        for (const num& v : x) {
          const num d = rms ? v : sub(v, mean);
          sq.push_back(mul(d, d));
        }
        const num variance = over(total(sq), constant(static_cast<double>(n)));
        push({mean, over(constant(1), root(add(variance, constant(s.f))))});
        break;
      }
      case op_code::norm_apply: {
        const num mean = in[1][static_cast<std::size_t>(2 * r)], rstd = in[1][static_cast<std::size_t>(2 * r + 1)];
        for (std::size_t k = 0; k < x.size(); ++k) {
          num y = mul(mul(sub(x[k], mean), rstd), in[2][k]);
          if (s.inputs > 3) y = add(y, in[3][k]);
          out.push_back(y);
        }
        break;
      }
      case op_code::norm_dx: {
        const values dy = row(0, r);
        const num mean = in[2][static_cast<std::size_t>(2 * r)], rstd = in[2][static_cast<std::size_t>(2 * r + 1)];
        values g, h, gh;
        for (std::size_t k = 0; k < x.size(); ++k) {
          g.push_back(mul(dy[k], in[3][k]));
          h.push_back(mul(sub(x[k], mean), rstd));
          gh.push_back(mul(g[k], h[k]));
        }
        const num count_n = constant(static_cast<double>(n));
        const num g1 = rms ? constant(0) : over(total(g), count_n), g2 = over(total(gh), count_n);
        for (std::size_t k = 0; k < x.size(); ++k) out.push_back(mul(rstd, sub(sub(g[k], g1), mul(h[k], g2))));
        break;
      }
      case op_code::norm_dw: {
        const values y = row(1, r);
        const num mean = in[2][static_cast<std::size_t>(2 * r)], rstd = in[2][static_cast<std::size_t>(2 * r + 1)];
        for (std::size_t k = 0; k < x.size(); ++k) weight_terms[k].push_back(mul(x[k], mul(sub(y[k], mean), rstd)));
        break;
      }
      case op_code::nll:
      case op_code::nll_dx: {
        const bool forward = s.op == op_code::nll;
        const values& t = in[forward ? 2 : 3];
        const std::int64_t id = index_at(t, static_cast<std::size_t>(r));
        const bool ignored = s.a.v[0] != 0 && id == s.a.v[1];
        const num norm = in[forward ? 1 : 2][static_cast<std::size_t>(r)];
        if (forward) {
          out.push_back(ignored ? constant(0) : sub(norm, x[static_cast<std::size_t>(id)]));
          break;
        }
        const num g = in[0][static_cast<std::size_t>(r)];
        for (std::int64_t k = 0; k < n; ++k) {
          num y = ignored ? constant(0) : mul(g, exponential(sub(x[static_cast<std::size_t>(k)], norm)));
          if (!ignored && k == id) y = sub(y, g);
          out.push_back(any_special(y) ? made(0, wild, {}) : y);
        }
        break;
      }
      case op_code::topk: {
        // the order of the elements, NaN as the largest; of equals the first
        const bool smallest = s.a.v[1] != 0;
        std::vector<std::size_t> order;
        for (std::size_t k = 0; k < x.size(); ++k) order.push_back(k);
        const auto before = [&](std::size_t a, std::size_t b) {
          const double p = x[a].v, q = x[b].v;
          if (std::isnan(p) || std::isnan(q))
            return smallest ? !std::isnan(p) && std::isnan(q) : std::isnan(p) && !std::isnan(q);
          return smallest ? p < q : p > q;
        };
        std::stable_sort(order.begin(), order.end(), before);
        for (std::int64_t k = 0; k < s.a.v[0]; ++k) {
          const std::size_t o = order[static_cast<std::size_t>(k)];
          num v = constant(static_cast<double>(o));
          for (std::size_t j = 0; j < x.size(); ++j)
            if (j != o && close(x[j], x[o])) v.e = wild;
          if (is_wild(x[o])) v.e = wild;
          out.push_back(v);
        }
        break;
      }
      default: wrong = "rows"; break;
    }
  }
  if (s.op == op_code::norm_dw)
    for (const values& t : weight_terms) out.push_back(total(t));
  for (num& v : out) v.hidden = s.op == op_code::norm_stats;
  write(i, out);
}

// Elements by index along a dim.
inline void reference::indexed(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const spec& out = spec_of(i);
  const int dim = static_cast<int>(s.a.v[0]);
  const bool last_dim = s.op == op_code::take || s.op == op_code::take_dx;
  const int d = last_dim ? out.rank - 1 : dim;
  const values x = operand(i, 0), ix = operand(i, 1);
  const spec &sx = spec_of(s.in[0]), &si = spec_of(s.in[1]);
  const lines lx = lines_of(sx, d), lo = lines_of(out, d);
  const bool beside = si.rank == sx.rank && s.op != op_code::index_select && s.op != op_code::index_add;
  const lines li = beside ? lines_of(si, d) : lines{1, si.extent[0], 1};
  const auto index = [&](std::int64_t o, std::int64_t k, std::int64_t n) {
    return index_at(ix, beside ? li.at(o, k, n) : static_cast<std::size_t>(k));
  };
  values r(static_cast<std::size_t>(sw::numel(out)));
  for (std::int64_t o = 0; o < lo.outer; ++o)
    for (std::int64_t n = 0; n < lo.inner; ++n) switch (s.op) {
        case op_code::gather:
        case op_code::index_select:
        case op_code::take:
          for (std::int64_t k = 0; k < lo.along; ++k) r[lo.at(o, k, n)] = x[lx.at(o, index(o, k, n), n)];
          break;
        case op_code::scatter_add:
        case op_code::index_add:
        case op_code::take_dx: {
          std::vector<values> parts(static_cast<std::size_t>(lo.along));
          for (std::int64_t k = 0; k < lx.along; ++k)
            parts[static_cast<std::size_t>(index(o, k, n))].push_back(x[lx.at(o, k, n)]);
          for (std::int64_t k = 0; k < lo.along; ++k) r[lo.at(o, k, n)] = total(parts[static_cast<std::size_t>(k)]);
          break;
        }
        case op_code::scatter: {
          const values src = s.inputs > 2 ? operand(i, 2) : values{};
          const lines ls = s.inputs > 2 ? lines_of(spec_of(s.in[2]), d) : lines{};
          for (std::int64_t k = 0; k < lo.along; ++k) r[lo.at(o, k, n)] = x[lx.at(o, k, n)];
          for (std::int64_t k = 0; k < li.along; ++k)
            r[lo.at(o, index(o, k, n), n)] = s.inputs > 2 ? src[ls.at(o, k, n)] : num{s.f, rounding(s.f), -1};
          break;
        }
        case op_code::scatter_dsrc:
          for (std::int64_t k = 0; k < lo.along; ++k) {
            bool later = false;
            for (std::int64_t j = k + 1; j < lo.along; ++j) later = later || index(o, j, n) == index(o, k, n);
            r[lo.at(o, k, n)] = later ? constant(0) : x[lx.at(o, index(o, k, n), n)];
          }
          break;
        default: wrong = "indexed"; break;
      }
  write(i, r);
}

// A place of a tensor of four dims.
inline std::size_t in_four(const spec& s, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return static_cast<std::size_t>(((a * s.extent[1] + b) * s.extent[2] + c) * s.extent[3] + d);
}

// y(n, o, u, v) = sum of w(o, j, p, q) x(n, group of o, u stride - padding + p dilation, v ...), and for each of the three the products
// that are its elements. What is outside of x is not multiplied.
inline void reference::convolution(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const auto a = sw::attributes_of<sw::convolution_attributes>(s.a);
  const bool back = is_operation(s, sw::custom::conv2d_dx), weights = is_operation(s, sw::custom::conv2d_dw);
  const spec &sx = back ? spec_of(i) : spec_of(s.in[weights ? 1 : 0]), &sw_ = weights ? spec_of(i) : spec_of(s.in[1]),
             &sy = back || weights ? spec_of(s.in[0]) : spec_of(i);
  const values first = operand(i, 0), second = operand(i, 1);
  std::vector<std::vector<std::pair<num, num>>> terms(static_cast<std::size_t>(sw::numel(spec_of(i))));
  const std::int64_t inputs = sw_.extent[1], outputs = sw_.extent[0] / a.groups;
  for (std::int64_t n = 0; n < sy.extent[0]; ++n)
    for (std::int64_t o = 0; o < sy.extent[1]; ++o)
      for (std::int64_t u = 0; u < sy.extent[2]; ++u)
        for (std::int64_t v = 0; v < sy.extent[3]; ++v)
          for (std::int64_t j = 0; j < inputs; ++j)
            for (std::int64_t k = 0; k < sw_.extent[2] * sw_.extent[3]; ++k) {
              const std::int64_t r = k / sw_.extent[3], t = k % sw_.extent[3];
              const std::int64_t h = u * a.stride[0] - a.padding[0] + r * a.dilation[0],
                                 w = v * a.stride[1] - a.padding[1] + t * a.dilation[1];
              if (h < 0 || h >= sx.extent[2] || w < 0 || w >= sx.extent[3]) continue;
              const std::size_t x = in_four(sx, n, o / outputs * inputs + j, h, w), weight = in_four(sw_, o, j, r, t),
                                y = in_four(sy, n, o, u, v);
              const std::size_t to = back      ? x
                                     : weights ? weight
                                               : y,
                                one = back || weights ? y : x, other = weights ? x : weight;
              terms[to].push_back({first[one], second[other]});
            }
  values r;
  for (const auto& of : terms) {
    std::vector<with> w;
    long double sum = 0;
    double size = 0, both = 0;
    for (const auto& [x, y] : of) {
      sum += static_cast<long double>(x.v) * static_cast<long double>(y.v);
      const double product = x.v * y.v;
      size += std::isfinite(product) ? std::fabs(product) : 0;
      both += x.e > 0 && y.e > 0 ? x.e * y.e : 0;
      w.push_back({x, y.v, y.e});
      w.push_back({y, x.v, x.e});
    }
    r.push_back(made(static_cast<double>(sum),
                     size > largest_ ? wild : eps_ * static_cast<double>(of.size() + 6) * size + both, w.data(), w.size()));
  }
  write(i, r);
}

// Places of an image under the window at (u, v), as row times width and column.
inline std::vector<std::int64_t> window_of(const sw::pool_attributes& a, const spec& x, std::int64_t u, std::int64_t v) {
  std::vector<std::int64_t> r;
  for (std::int64_t k = 0; k < a.kernel[0] * a.kernel[1]; ++k) {
    const std::int64_t h = u * a.stride[0] - a.padding[0] + k / a.kernel[1] * a.dilation[0],
                       w = v * a.stride[1] - a.padding[1] + k % a.kernel[1] * a.dilation[1];
    if (h >= 0 && h < x.extent[2] && w >= 0 && w < x.extent[3]) r.push_back(h * x.extent[3] + w);
  }
  return r;
}
// What its mean is taken over: elements, those of the padding among them if these count, or a given number.
inline std::int64_t counted_in(const sw::pool_attributes& a, const spec& x, std::int64_t u, std::int64_t v) {
  if (a.divisor != 0) return a.divisor;
  std::int64_t n = 0;
  for (std::int64_t k = 0; k < a.kernel[0] * a.kernel[1]; ++k) {
    const std::int64_t h = u * a.stride[0] - a.padding[0] + k / a.kernel[1],
                       w = v * a.stride[1] - a.padding[1] + k % a.kernel[1];
    const std::int64_t top = a.counts_padding != 0 ? a.padding[0] : 0, left = a.counts_padding != 0 ? a.padding[1] : 0;
    n += h >= -top && h < x.extent[2] + top && w >= -left && w < x.extent[3] + left ? 1 : 0;
  }
  return n;
}
// Means of windows, and what of such means goes to each element.
inline void reference::pooling(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const auto a = sw::attributes_of<sw::pool_attributes>(s.a);
  const bool back = is_operation(s, sw::custom::avg_pool2d_dx);
  const spec &sx = back ? spec_of(i) : spec_of(s.in[0]), &sy = back ? spec_of(s.in[0]) : spec_of(i);
  const values x = operand(i, 0);
  std::vector<values> terms(static_cast<std::size_t>(sw::numel(spec_of(i))));
  std::vector<double> shares(terms.size(), 1);
  const std::int64_t plane = sx.extent[2] * sx.extent[3], places = sy.extent[2] * sy.extent[3];
  for (std::int64_t image = 0; image < sx.extent[0] * sx.extent[1]; ++image)
    for (std::int64_t at = 0; at < places; ++at) {
      const std::vector<std::int64_t> window = window_of(a, sx, at / sy.extent[3], at % sy.extent[3]);
      const double share = 1.0 / static_cast<double>(counted_in(a, sx, at / sy.extent[3], at % sy.extent[3]));
      const std::size_t y = static_cast<std::size_t>(image * places + at);
      for (const std::int64_t k : window) {
        const std::size_t e = static_cast<std::size_t>(image * plane + k);
        if (back) terms[e].push_back(times(x[y], share));
        else terms[y].push_back(x[e]);
      }
      if (!back) shares[y] = share;
    }
  values r;
  for (std::size_t k = 0; k < terms.size(); ++k) r.push_back(back ? total(terms[k]) : times(total(terms[k]), shares[k]));
  write(i, r);
}
// The largest of each window, a NaN before all others, and where it is; of equals the first, which alone has the derivative.
inline void reference::pooled_result(int i) {
  const statement &s = p_.body[static_cast<std::size_t>(i)], &pool = p_.body[static_cast<std::size_t>(s.in[0])];
  const auto a = sw::attributes_of<sw::pool_attributes>(pool.a);
  const spec &sx = spec_of(pool.in[0]), &sy = spec_of(i);
  values all = operand(s.in[0], 0);
  const std::int64_t plane = sx.extent[2] * sx.extent[3], places = sy.extent[2] * sy.extent[3];
  values r;
  for (std::int64_t image = 0; image < sx.extent[0] * sx.extent[1]; ++image)
    for (std::int64_t at = 0; at < places; ++at) {
      const std::vector<std::int64_t> window = window_of(a, sx, at / sy.extent[3], at % sy.extent[3]);
      const auto x = [&](std::size_t k) { return all[static_cast<std::size_t>(image * plane + window[k])]; };
      std::size_t best = 0;
      for (std::size_t k = 1; k < window.size(); ++k)
        if (!std::isnan(x(best).v) && (std::isnan(x(k).v) || x(k).v > x(best).v)) best = k;
      bool unsure = is_wild(x(best));
      double e = x(best).e;
      std::vector<with> w;
      for (std::size_t k = 0; k < window.size(); ++k) {
        const bool near = k != best && close(x(k), x(best));
        unsure = unsure || near || is_wild(x(k));
        e = near ? std::max(e, x(k).e) : e;
        w.push_back({{x(k).v, 0, x(k).n}, k == best ? 1.0 : 0.0, near ? 1.0 : 0.0});
      }
      if (unsure)
        for (with& k : w) k.ep = k.p != 0 || k.ep != 0 || is_wild(x(best)) ? 1 : 0;
      if (s.a.v[0] == 1) {
        num place = constant(static_cast<double>(window[best]));
        if (unsure) place.e = wild;
        r.push_back(place);
      } else {
        bool any_wild = false;
        for (std::size_t k = 0; k < window.size(); ++k) any_wild = any_wild || is_wild(x(k));
        r.push_back(made(x(best).v, any_wild ? wild : std::isfinite(x(best).v) ? e : 0, w.data(), w.size()));
      }
    }
  write(i, r);
}

// Pixels of a result that lie at multiples of a step in the image: the one below, or of the four around each as near as it is.
inline void reference::interpolation(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const auto a = sw::attributes_of<sw::interpolation_attributes>(s.a);
  const bool back = is_operation(s, sw::custom::interpolate_dx);
  const spec &sx = back ? spec_of(i) : spec_of(s.in[0]), &sy = back ? spec_of(s.in[0]) : spec_of(i);
  const values x = operand(i, 0);
  struct source {
    std::int64_t at[2];
    double share[2];
  };
  const auto of = [&](int d, std::int64_t k) {
    const double step = static_cast<double>(a.step[d][0]) / a.step[d][1];
    const std::int64_t last = sx.extent[2 + d] - 1;
    if (a.mode == sw::interpolation::nearest) return source{{std::min(k * a.step[d][0] / a.step[d][1], last), 0}, {1, 0}};
    const double at = a.corners != 0 ? static_cast<double>(k * a.step[d][0]) / a.step[d][1]
                                     : std::max(0.0, (static_cast<double>(k) + 0.5) * step - 0.5);
    const std::int64_t below = std::min(static_cast<std::int64_t>(at + 1e-9), last);
    const double part = std::clamp(at - static_cast<double>(below), 0.0, 1.0);
    return source{{below, std::min(below + 1, last)}, {1 - part, part}};
  };
  std::vector<std::vector<with>> terms(static_cast<std::size_t>(sw::numel(spec_of(i))));
  const bool exact = a.mode == sw::interpolation::nearest;
  for (std::int64_t n = 0; n < sy.extent[0]; ++n)
    for (std::int64_t c = 0; c < sy.extent[1]; ++c)
      for (std::int64_t u = 0; u < sy.extent[2]; ++u)
        for (std::int64_t v = 0; v < sy.extent[3]; ++v) {
          const source rows = of(0, u), columns = of(1, v);
          for (int k = 0; k < (exact ? 1 : 4); ++k) {
            const double share = rows.share[k / 2] * columns.share[k % 2];
            const std::size_t e = in_four(sx, n, c, rows.at[k / 2], columns.at[k % 2]), y = in_four(sy, n, c, u, v);
            terms[back ? e : y].push_back({x[back ? y : e], share, exact ? 0 : 32 * eps_});
          }
        }
  values r;
  for (const auto& w : terms) {
    long double sum = 0;
    double size = 0;
    bool special = false;
    for (const with& k : w) {
      sum += static_cast<long double>(k.x.v) * static_cast<long double>(k.p);
      size += std::isfinite(k.x.v) ? std::fabs(k.x.v) : 0;
      special = special || !std::isfinite(k.x.v);
    }
    const bool lost = size > largest_ || (special && !exact);  // 0 of an infinity, where a pixel's share is 0 or nearly so
    r.push_back(made(static_cast<double>(sum), lost ? wild : exact && !back ? 0 : 40 * eps_ * size, w.data(), w.size()));
  }
  write(i, r);
}

// Which group of an image's channels each element of (batch, channels, ...) is in, images one after the other.
struct channel_groups {
  std::int64_t images, channels, each, count;  // elements of a channel, groups of an image
  channel_groups(const spec& x, std::int64_t groups)
      : images(x.extent[0]), channels(x.extent[1]), each(1), count(groups > 0 ? groups : x.extent[1]) {
    for (int d = 2; d < x.rank; ++d) each *= x.extent[d];
  }
  std::int64_t channel(std::int64_t k) const { return k / each % channels; }
  std::int64_t group(std::int64_t k) const { return k / each / channels * count + channel(k) * count / channels; }
  std::int64_t size() const { return count > 0 ? channels / count * each : 0; }
};
// Mean and sum of squares about it of each group of each image. Nothing is differentiated through them.
inline void reference::channel_moments(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const channel_groups g(spec_of(s.in[0]), sw::attributes_of<sw::channel_norm_attributes>(s.a).groups);
  const values x = operand(i, 0);
  std::vector<values> of(static_cast<std::size_t>(g.images * g.count));
  for (std::size_t k = 0; k < x.size(); ++k)
    of[static_cast<std::size_t>(g.group(static_cast<std::int64_t>(k)))].push_back(still(x[k]));
  values means, squares;
  for (const values& v : of) {
    bool special = v.empty();
    for (const num& k : v) special = special || !std::isfinite(k.v);
    const num mean = times(total(v), v.empty() ? 0 : 1.0 / static_cast<double>(v.size()));
    values about;
    double largest = 0;
    for (const num& k : v) {
      const num apart = sub(k, mean);
      about.push_back(mul(apart, apart));
      largest = std::max(largest, std::fabs(k.v));
    }
    means.push_back(mean);
    num sum = total(about);
    sum.e += 16 * eps_ * (sum.v + largest * std::sqrt(std::fabs(sum.v)) + eps_ * largest * largest) *
             static_cast<double>(v.size());
    squares.push_back(sum);
    if (special) means.back().e = squares.back().e = wild;
  }
  means.insert(means.end(), squares.begin(), squares.end());
  write(i, means);
}
// Sums of what elements are apart from their statistic's number, and of that squared.
inline void reference::channel_moments_about(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const auto a = sw::attributes_of<sw::channel_norm_attributes>(s.a);
  const channel_groups g(spec_of(s.in[0]), a.groups);
  const values x = operand(i, 0), about = operand(i, 1);
  const std::size_t all = static_cast<std::size_t>(g.images * g.count);
  std::vector<values> apart(2 * all);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::int64_t group = g.group(static_cast<std::int64_t>(k));
    const num d = sub(still(x[k]), still(about[static_cast<std::size_t>(a.over_batch != 0 ? group % g.count : group)]));
    apart[static_cast<std::size_t>(group)].push_back(d);
    apart[all + static_cast<std::size_t>(group)].push_back(mul(d, d));
  }
  values sums;
  for (const values& v : apart) {
    sums.push_back(total(v));
    for (const num& k : v)
      if (!std::isfinite(k.v)) sums.back().e = wild;
  }
  write(i, sums);
}
// (x - mean) / deviation times weight and plus bias of the channel. The derivative is that of x's own statistics, of each image's groups or of
// the whole batch: that of the mean is 1 / count, of 1 / deviation r: -r^3 (x - mean) / count.
inline void reference::channel_norm(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const auto a = sw::attributes_of<sw::channel_norm_attributes>(s.a);
  const channel_groups g(spec_of(s.in[0]), a.groups);
  const values x = operand(i, 0), w = operand(i, 3), b = operand(i, 4);
  values mean = operand(i, 1), scale = operand(i, 2);
  std::vector<std::vector<std::size_t>> of(mean.size());
  const auto group_of = [&](std::size_t k) {
    const std::int64_t n = g.group(static_cast<std::int64_t>(k));
    return static_cast<std::size_t>(a.over_batch != 0 ? n % g.count : n);
  };
  for (std::size_t k = 0; k < x.size(); ++k) of[group_of(k)].push_back(k);
  for (std::size_t k = 0; k < mean.size(); ++k) {
    const double count = static_cast<double>(of[k].size()), r = scale[k].v;
    std::vector<with> to_mean, to_scale;
    for (const std::size_t e : of[k]) {
      const double apart = x[e].v - mean[k].v, slope = -r * r * r * apart / count;
      to_mean.push_back({{x[e].v, 0, x[e].n}, 1 / count, 4 * eps_ / count});
      to_scale.push_back({{x[e].v, 0, x[e].n},
                          slope,
                          (std::fabs(slope) * 64 * eps_ + 3 * r * r * scale[k].e * std::fabs(apart) / count +
                           std::fabs(r * r * r) * (x[e].e + mean[k].e) / count)});
    }
    const double em = mean[k].e, es = scale[k].e;
    mean[k] = made(mean[k].v, em, to_mean.data(), to_mean.size());
    scale[k] = made(r, es, to_scale.data(), to_scale.size());
    mean[k].e = em;
    scale[k].e = es;
  }
  values out;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::size_t c = static_cast<std::size_t>(g.channel(static_cast<std::int64_t>(k)));
    num y = add(mul(mul(sub(x[k], mean[group_of(k)]), scale[group_of(k)]), w[c]), b[c]);
    // the library may multiply by scale times weight and add the rest at once
    y.e += 16 * eps_ * (std::fabs(x[k].v) + std::fabs(mean[group_of(k)].v)) * std::fabs(scale[group_of(k)].v * w[c].v);
    if (!std::isfinite(y.v) || std::isnan(y.e)) y.e = wild;
    out.push_back(y);
  }
  write(i, out);
}

inline void reference::one(int i) {
  const statement& s = p_.body[static_cast<std::size_t>(i)];
  const spec& out = spec_of(i);
  const std::int64_t site = sw::rules::is_random(s.op) ? sites_++ : 0;
  const double f = s.f, fe = std::fabs(f) * eps_;
  unsure_ = false;
  const auto rounded = [&](double v) { return f32_ ? static_cast<double>(static_cast<float>(v)) : v; };
  switch (s.op) {
    case op_code::input:
    case op_code::param: {
      tensor t = fresh(out);
      bool partial = false;
      for (int a = 0; a < out.axes; ++a) partial = partial || out.place[a].is_partial();
      const bool variable =
          derivatives_ && (s.op == op_code::param ? p_.what == kind::training
                                                  : p_.what == kind::gradient && ((p_.wanted >> s.a.v[0]) & 1U) != 0);
      std::vector<int> ids;
      const auto put = [&](std::int64_t k, num v) {
        if (variable) {
          v.n = static_cast<int>(first_.size());
          first_.push_back(edges_.size());
          ids.push_back(v.n);
        }
        (*t.storage)[static_cast<std::size_t>(k)] = v;
      };
      for (const auto& [leaf, x] : leaves_)
        if (leaf == i)
          for (std::int64_t k = 0; k < t.count(); ++k)
            put(k, {x[static_cast<std::size_t>(k)],
                    partial && sw::is_floating(out.type) ? rounding(x[static_cast<std::size_t>(k)], 8) : 0, -1});
      for (const auto& [leaf, x] : exact_)
        if (leaf == i)
          for (std::int64_t k = 0; k < t.count(); ++k) put(k, still(x[static_cast<std::size_t>(k)]));
      if (variable) variables_.emplace_back(i, ids);
      value[static_cast<std::size_t>(i)] = t;
      break;
    }
    case op_code::fill:
      write(i, values(static_cast<std::size_t>(sw::numel(out)), num{f, sw::is_floating(out.type) ? fe : 0, -1}));
      break;
    case op_code::arange: {
      values r;
      for (std::int64_t k = 0; k < out.extent[0]; ++k) r.push_back(constant(static_cast<double>(s.a.v[0] + s.a.v[1] * k)));
      write(i, r);
      break;
    }
    case op_code::rand:
    case op_code::randn: {
      values r;
      for (std::int64_t k = 0; k < sw::numel(out); ++k) {
        if (s.op == op_code::rand) {
          r.push_back(random_uniform(site, k, 24));
          continue;
        }
        std::uint32_t w[4];
        const std::uint32_t counter[4] = {static_cast<std::uint32_t>(k), 0, static_cast<std::uint32_t>(site) + 1,
                                          static_cast<std::uint32_t>(run_.step)};
        philox_words(run_.seed, counter, w);
        const double v = std::sqrt(-2 * std::log((w[0] + 0.5) / 4294967296.0)) *
                         std::cos(2 * 3.14159265358979323846 * (w[1] / 4294967296.0));
        r.push_back({v, 4 * eps_ * std::fabs(v) + 1e-15, -1});
      }
      write(i, r);
      break;
    }
    case op_code::bernoulli: {
      values x = operand(i, 0);
      for (std::size_t k = 0; k < x.size(); ++k) {
        const num u = random_uniform(site, static_cast<std::int64_t>(k), 24);
        const bool sure = !is_wild(x[k]) && std::isfinite(x[k].v) && std::fabs(x[k].v - u.v) > x[k].e;
        x[k] = {x[k].v > u.v ? 1.0 : 0.0, sure ? 0 : wild, -1};
      }
      write(i, x);
      break;
    }
    case op_code::dropout: {
      values x = operand(i, 0);
      for (std::size_t k = 0; k < x.size(); ++k) {
        const bool gone = random_uniform(site, static_cast<std::int64_t>(k), 32).v < f;
        x[k] = times(x[k], gone ? 0 : 1 / (1 - f));
      }
      write(i, x);
      break;
    }
    case op_code::redistribute: {  // a value of its own
      values x = operand(i, 0);
      const placement &by = spec_of(s.in[0]).place[s.a.v[0]], &to = out.place[s.a.v[0]];
      if (by.is_norm() && by.order() > 1 && !(by == to) && out.axis_size[s.a.v[0]] > 1)
        for (num& v : x) v = root_of(power_of(v, by.order()), by.order());
      for (num& v : x)  // reduced and made again
        if (sw::is_floating(out.type) && std::isfinite(v.v)) v.e += rounding(v.v, 8);
      write(i, x);
      break;
    }
    case op_code::wait: value[static_cast<std::size_t>(i)] = value[static_cast<std::size_t>(s.in[0])]; break;
    case op_code::permute:
    case op_code::reshape:
    case op_code::slice:
    case op_code::broadcast: view(i); break;
    case op_code::detach:  // programs do not write what it shares: see assembly::admit
      map1(i, [](num x) {
        x.n = -1;
        return x;
      });
      break;
    case op_code::relabel: relabel(i); break;
    case op_code::copy_: {
      const values x = operand(i, 1);
      tensor& t = value[static_cast<std::size_t>(s.in[0])];
      for (std::size_t k = 0; k < x.size(); ++k) t.at(static_cast<std::int64_t>(k)) = x[k];
      value[static_cast<std::size_t>(i)] = t;
      break;
    }
    case op_code::einsum: einsum(i); break;
    case op_code::contiguous: map1(i, [](num x) { return x; }); break;
    case op_code::opaque: map1(i, [&](num x) { return sub(mul(x, x), constant(2)); }); break;
    case op_code::getitem: {
      if (is_operation(p_.body[static_cast<std::size_t>(s.in[0])], sw::custom::max_pool2d)) {
        pooled_result(i);
        break;
      }
      const values x = operand(i, 0);
      const std::size_t row = static_cast<std::size_t>(spec_of(s.in[0]).extent[spec_of(s.in[0]).rank - 1]);
      values r;
      if (s.a.v[0] == 1) {
        for (const values& g :
             groups(i, 0, std::int64_t{1} << (spec_of(s.in[0]).rank - 1), static_cast<std::size_t>(sw::numel(out))))
          r.push_back(total(g));
      } else {
        for (std::size_t k = 0; k < x.size(); ++k)
          r.push_back(s.a.v[0] == 0   ? mul(x[k], x[k])
                      : s.a.v[0] == 2 ? constant(static_cast<double>(k % row))
                                      : times(x[k], 2));
      }
      write(i, r);
      break;
    }
    case op_code::custom:
      if (is_operation(s, sw::custom::conv2d) || is_operation(s, sw::custom::conv2d_dx) ||
          is_operation(s, sw::custom::conv2d_dw)) {
        convolution(i);
        break;
      }
      if (is_operation(s, sw::custom::avg_pool2d) || is_operation(s, sw::custom::avg_pool2d_dx)) {
        pooling(i);
        break;
      }
      if (is_operation(s, sw::custom::interpolate) || is_operation(s, sw::custom::interpolate_dx)) {
        interpolation(i);
        break;
      }
      if (is_operation(s, sw::custom::channel_moments)) {
        channel_moments(i);
        break;
      }
      if (is_operation(s, sw::custom::channel_moments_about)) {
        channel_moments_about(i);
        break;
      }
      if (is_operation(s, sw::custom::channel_norm)) {
        channel_norm(i);
        break;
      }
      if (is_operation(s, sw::custom::max_pool2d)) {  // what its results are made of: pooled_result
        write(i, values(static_cast<std::size_t>(sw::numel(out)), constant(0)));
        break;
      }
      if (s.inputs == 1) {  // what its results are made of
        map1(i, [](num x) { return x; });
        break;
      }
      map2(i, [&](num x, num y) { return sub(mul(x, y), y); });
      break;
    case op_code::add: map2(i, [&](num x, num y) { return add(x, y); }); break;
    case op_code::sub: map2(i, [&](num x, num y) { return sub(x, y); }); break;
    case op_code::mul: map2(i, [&](num x, num y) { return mul(x, y); }); break;
    case op_code::div: map2(i, [&](num x, num y) { return over(x, y); }); break;
    case op_code::scale: map1(i, [&](num x) { return times(x, f); }); break;
    case op_code::relu:
      map1(i, [&](num x) {
        return unary(
            x, [](double v) { return std::isnan(v) ? v
                                     : v > 0       ? v
                                                   : 0; }, [](double v) { return v > 0 ? 1.0 : 0.0; });
      });
      break;
    case op_code::tanh:
      map1(i, [&](num x) {
        return unary(
            x, [](double v) { return std::tanh(v); }, [](double v) { return 1 - std::tanh(v) * std::tanh(v); }, 64, 128);
      });
      break;
    case op_code::gelu_tanh:
    case op_code::gelu_erf: {
      const bool by_erf = s.op == op_code::gelu_erf;
      const auto of = [by_erf](double v) {
        return by_erf ? 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)))
                      : 0.5 * v * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
      };
      map1(i, [&](num x) {
        if (std::isinf(x.v)) return made(0, wild, {{x, 1}});
        num r = unary(
            x, of,
            [&](double v) {
              const double h = 1e-4;
              return (of(v - 2 * h) - 8 * of(v - h) + 8 * of(v + h) - of(v + 2 * h)) / (12 * h);
            },
            16);
        r.e += std::isfinite(x.v) ? 64 * eps_ * std::fabs(x.v) : 0;  // 1 + tanh cancels
        if (r.n >= 0) edges_.back().ep += 1e-10 + 128 * eps_ * (1 + std::fabs(x.v));
        return r;
      });
      break;
    }
    case op_code::abs:
      map1(i, [&](num x) {
        return unary(x, [](double v) { return std::fabs(v); }, [](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0; });
      });
      break;
    case op_code::sign:
      map1(i, [&](num x) {
        num r{std::isnan(x.v) ? x.v : x.v > 0 ? 1.0 : x.v < 0 ? -1.0 : 0.0, near_zero(x) ? wild : 0, -1};
        return r;
      });
      break;
    case op_code::exp: map1(i, [&](num x) { return exponential(x); }); break;
    case op_code::log: map1(i, [&](num x) { return logarithm(x); }); break;
    case op_code::sqrt: map1(i, [&](num x) { return root(x); }); break;
    case op_code::rsqrt:
      map1(i, [&](num x) {
        return unary(x, [](double v) { return 1 / std::sqrt(v); }, [](double v) { return -0.5 / (v * std::sqrt(v)); });
      });
      break;
    case op_code::reciprocal: map1(i, [&](num x) { return over(constant(1), x); }); break;
    case op_code::sigmoid:
      map1(i, [&](num x) {
        return unary(
            x, [](double v) { return 1 / (1 + std::exp(-v)); },
            [](double v) {
              const double y = 1 / (1 + std::exp(-v));
              return y * (1 - y);
            },
            10, 16);
      });
      break;
    case op_code::sin:
      map1(i, [&](num x) {
        return x.e > 0.1 ? made(0, wild, {{x, 1}})
                         : unary(x, [](double v) { return std::sin(v); }, [](double v) { return std::cos(v); });
      });
      break;
    case op_code::cos:
      map1(i, [&](num x) {
        return x.e > 0.1 ? made(0, wild, {{x, 1}})
                         : unary(x, [](double v) { return std::cos(v); }, [](double v) { return -std::sin(v); });
      });
      break;
    case op_code::pow: {
      const double g = rounded(f);
      map1(i, [&](num x) {
        if (g < 0 && near_zero(x, 4)) return made(0, wild, {{x, 1}});  // perhaps at the pole
        num r = unary(
            x, [g](double v) { return g == 0.5    ? std::sqrt(v)
                                      : g == -0.5 ? 1 / std::sqrt(v)
                                                  : std::pow(v, g); },
            [g](double v) { return g == 0 ? 0 : g * std::pow(v, g - 1); }, 16);
        if (r.e != wild && std::isfinite(r.v) && x.v > 0) r.e += std::fabs(r.v * std::log(x.v)) * eps_ * std::fabs(g);
        return r;
      });
      break;
    }
    case op_code::clamp_min:
    case op_code::clamp_max: {
      const double g = rounded(f);
      const bool low = s.op == op_code::clamp_min;
      map1(i, [&](num x) {
        return unary(
            x, [&](double v) { return std::isnan(v) ? v
                                      : low         ? (v < g ? g : v)
                                                    : (v > g ? g : v); },
            [&](double v) { return (low ? v >= g : v <= g) ? 1.0 : 0.0; });
      });
      break;
    }
    case op_code::maximum: map2(i, [&](num x, num y) { return extreme({x, y}, true); }); break;
    case op_code::minimum: map2(i, [&](num x, num y) { return extreme({x, y}, false); }); break;
    case op_code::keeps:
      map2(i, [&](num x, num y) { return num{x.v == y.v ? 0.5 : x.v < y.v ? 0.0 : 1.0, close(x, y) ? wild : 0, -1}; });
      break;
    case op_code::wins:
      map2(i, [&](num x, num y) {
        const bool unsure = close(x, y) || std::isnan(x.v) || std::isnan(y.v);
        return num{x.v == y.v ? 0.5 : x.v > y.v ? 1.0 : 0.0, unsure ? wild : 0, -1};
      });
      break;
    case op_code::eq:
    case op_code::ne:
    case op_code::lt:
    case op_code::le:
    case op_code::gt:
    case op_code::ge:
      map2(i, [&](num x, num y) {
        bool r = false;
        switch (s.op) {
          case op_code::eq: r = x.v == y.v; break;
          case op_code::ne: r = x.v != y.v; break;
          case op_code::lt: r = x.v < y.v; break;
          case op_code::le: r = x.v <= y.v; break;
          case op_code::gt: r = x.v > y.v; break;
          default: r = x.v >= y.v; break;
        }
        return num{r ? 1.0 : 0.0, close(x, y) ? wild : 0, -1};
      });
      break;
    case op_code::where: {
      const values m = spread(i, 0), x = spread(i, 1), y = spread(i, 2);
      values r;
      for (std::size_t k = 0; k < m.size(); ++k) {
        num v = m[k].v != 0 ? x[k] : y[k];
        if (is_wild(m[k])) {
          v.e = wild;
          lost_ = true;
        }
        r.push_back(v);
      }
      write(i, r);
      break;
    }
    case op_code::mask_keep:
      map2(i, [&](num x, num m) {
        num r = (m.v != 0) == (s.a.v[0] != 0) ? constant(0) : x;
        if (is_wild(m)) {
          r.e = wild;
          lost_ = true;
        }
        return r;
      });
      break;
    case op_code::clip_factor:
      map1(i, [&](num x) {
        const num ratio = over(constant(run_.max_norm), add(root(x), constant(1e-6)));
        return extreme({constant(1), ratio}, false);
      });
      break;
    case op_code::relu_dx:
      map2(i, [&](num x, num y) {
        num r = y.v > 0 ? x : constant(0);
        if (any_special(x, y) || near_zero(y)) r.e = wild;
        return r;
      });
      break;
    case op_code::tanh_dx:
      map2(i, [&](num x, num y) { return any_special(x, y) ? made(0, wild, {}) : mul(x, sub(constant(1), mul(y, y))); });
      break;
    case op_code::gelu_tanh_dx:
    case op_code::gelu_erf_dx: {
      const bool by_erf = s.op == op_code::gelu_erf_dx;
      const auto slope = [by_erf](double v) {
        const double pi = 3.14159265358979323846;
        if (by_erf) return 0.5 * (1 + std::erf(v / std::sqrt(2.0))) + v * std::exp(-0.5 * v * v) / std::sqrt(2 * pi);
        const double k = std::sqrt(2 / pi), t = std::tanh(k * (v + 0.044715 * v * v * v));
        return 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * k * (1 + 3 * 0.044715 * v * v);
      };
      map2(i, [&](num x, num y) {
        if (any_special(x, y)) return made(0, wild, {});
        num q = unary(still(y), slope, [](double) { return 1.0; }, 64);
        q.e += 256 * eps_ * (1 + std::fabs(y.v) + std::fabs(y.v * y.v * y.v));
        return mul(x, q);
      });
      break;
    }
    case op_code::sum:
    case op_code::sumsq:
    case op_code::vector_norm: {
      const std::vector<values> g = groups(i, 0, s.a.v[0], static_cast<std::size_t>(sw::numel(out)));
      std::int64_t count = 1;
      for (int d = 0; d < spec_of(s.in[0]).rank; ++d)
        if ((s.a.v[0] >> d) & 1) count *= spec_of(s.in[0]).extent[d];
      values r;
      const int order = static_cast<int>(s.a.v[2]);
      for (const values& x : g) {
        if (s.op == op_code::sum) {
          const num t = total(x);
          r.push_back(s.a.v[2] != 0 ? count == 0 ? made(0, wild, {}) : times(t, 1.0 / static_cast<double>(count)) : t);
          continue;
        }
        values powers;
        for (num v : x) {
          if (s.op == op_code::sumsq) {
            powers.push_back(mul(v, v));
            continue;
          }
          powers.push_back(power_of(v, order));
        }
        num t = total(powers);
        if (s.op == op_code::vector_norm && order > 1) {
          if (t.v == 0 && t.n >= 0) {  // no element has a share of a norm of nothing
            t.n = -1;
            t.e = std::pow(t.e, 1.0 / order);
            t = without_share(t, x);
          } else {
            t = root_of(t, order);
          }
        }
        r.push_back(t);
      }
      write(i, r);
      break;
    }
    case op_code::vector_norm_dx: {
      const spec& whole = spec_of(s.in[1]);
      const std::vector<std::size_t> to = folded(whole, s.a.v[0]);
      const values dy = operand(i, 0), x = operand(i, 1), n = operand(i, 2);
      values r;
      for (std::size_t k = 0; k < x.size(); ++k) {
        const num norm = n[to[k]], g = dy[to[k]];
        if (any_special(x[k], norm, g) || near_zero(norm)) {
          r.push_back(made(0, wild, {}));
          continue;
        }
        num slope = norm.v == 0 || x[k].v == 0 ? constant(0) : constant(x[k].v < 0 ? -1 : 1);
        if (slope.v != 0) {
          const num ratio =
              over(unary(x[k], [](double v) { return std::fabs(v); }, [](double v) { return v < 0 ? -1.0 : 1.0; }), norm);
          for (int p = 1; p < static_cast<int>(s.a.v[2]); ++p) slope = mul(slope, ratio);
        }
        if (near_zero(x[k])) slope.e = wild;
        r.push_back(mul(g, slope));
      }
      write(i, r);
      break;
    }
    case op_code::amax:
    case op_code::amin:
    case op_code::prod: {
      const std::vector<values> g = groups(i, 0, s.a.v[0], static_cast<std::size_t>(sw::numel(out)));
      values r;
      for (const values& x : g) {
        if (s.op != op_code::prod) {
          r.push_back(extreme(x, s.op == op_code::amax));
          continue;
        }
        r.push_back(product(x));
      }
      write(i, r);
      break;
    }
    case op_code::prod_dx: {
      const spec& whole = spec_of(s.in[1]);
      const std::vector<std::size_t> to = folded(whole, s.a.v[0]);
      const values dy = operand(i, 0), x = operand(i, 1);
      values r;
      for (std::size_t k = 0; k < x.size(); ++k) {
        values factors{dy[to[k]]};
        for (std::size_t j = 0; j < x.size(); ++j)
          if (j != k && to[j] == to[k]) factors.push_back(x[j]);
        const num v = product(factors);
        r.push_back(any_special(v) ? made(0, wild, {}) : v);
      }
      write(i, r);
      break;
    }
    case op_code::softmax:
    case op_code::softmax_dx:
    case op_code::log_softmax:
    case op_code::lse:
    case op_code::exp_sum:
    case op_code::norm_stats:
    case op_code::norm_apply:
    case op_code::norm_dx:
    case op_code::norm_dw:
    case op_code::nll:
    case op_code::nll_dx:
    case op_code::topk: rows(i); break;
    case op_code::gather:
    case op_code::index_select:
    case op_code::take:
    case op_code::scatter_add:
    case op_code::index_add:
    case op_code::take_dx:
    case op_code::scatter:
    case op_code::scatter_dsrc: indexed(i); break;
    case op_code::embedding: {
      const values table = operand(i, 0), index = operand(i, 1);
      const std::int64_t n = spec_of(s.in[0]).extent[1];
      values r;
      for (std::size_t k = 0; k < index.size(); ++k)
        for (std::int64_t j = 0; j < n; ++j) r.push_back(table[static_cast<std::size_t>(index_at(index, k) * n + j)]);
      write(i, r);
      break;
    }
    case op_code::embedding_dw: {
      const values dy = operand(i, 0), index = operand(i, 1);
      const std::int64_t n = out.extent[1];
      std::vector<values> parts(static_cast<std::size_t>(sw::numel(out)));
      for (std::size_t k = 0; k < index.size(); ++k)
        for (std::int64_t j = 0; j < n; ++j)
          parts[static_cast<std::size_t>(index_at(index, k) * n + j)].push_back(
              dy[k * static_cast<std::size_t>(n) + static_cast<std::size_t>(j)]);
      values r;
      for (const values& v : parts) r.push_back(total(v));
      write(i, r);
      break;
    }
    case op_code::one_hot: {
      const values index = operand(i, 0);
      values r;
      for (std::size_t k = 0; k < index.size(); ++k)
        for (std::int64_t j = 0; j < s.a.v[0]; ++j) r.push_back(constant(index_at(index, k) == j ? 1 : 0));
      write(i, r);
      break;
    }
    case op_code::cat: {
      const int d = static_cast<int>(s.a.v[0]);
      const lines lo = lines_of(out, d);
      values r(static_cast<std::size_t>(sw::numel(out)));
      std::int64_t begin = 0;
      for (int k = 0; k < s.inputs; ++k) {
        const values x = operand(i, k);
        const lines lx = lines_of(spec_of(s.in[k]), d);
        for (std::int64_t o = 0; o < lx.outer; ++o)
          for (std::int64_t a = 0; a < lx.along; ++a)
            for (std::int64_t n = 0; n < lx.inner; ++n) r[lo.at(o, begin + a, n)] = x[lx.at(o, a, n)];
        begin += lx.along;
      }
      write(i, r);
      break;
    }
    case op_code::pad:
    case op_code::slice_scatter: {
      const int d = static_cast<int>(s.a.v[0]);
      const bool scattered = s.op == op_code::slice_scatter;
      const values x = operand(i, scattered ? 1 : 0);
      const lines lo = lines_of(out, d), lx = lines_of(spec_of(s.in[scattered ? 1 : 0]), d);
      values r = scattered ? operand(i, 0) : values(static_cast<std::size_t>(sw::numel(out)));
      for (std::int64_t o = 0; o < lx.outer; ++o)
        for (std::int64_t a = 0; a < lx.along; ++a)
          for (std::int64_t n = 0; n < lx.inner; ++n) r[lo.at(o, s.a.v[1] + a, n)] = x[lx.at(o, a, n)];
      write(i, r);
      break;
    }
    case op_code::constant_pad: {
      const values x = operand(i, 0);
      const spec& from = spec_of(s.in[0]);
      values r(static_cast<std::size_t>(sw::numel(out)), num{s.f, sw::is_floating(out.type) ? fe : 0, -1});
      for (std::int64_t j = 0; j < sw::numel(from); ++j) {
        std::int64_t rest = j, where = 0, step = 1;
        for (int d = from.rank - 1; d >= 0; --d) {
          where += (rest % from.extent[d] + sw::rules::pad_before(s.a, d)) * step;
          rest /= from.extent[d];
          step *= out.extent[d];
        }
        r[static_cast<std::size_t>(where)] = x[static_cast<std::size_t>(j)];
      }
      write(i, r);
      break;
    }
    case op_code::triangle: {
      values x = operand(i, 0);
      const std::int64_t m = out.extent[out.rank - 2], n = out.extent[out.rank - 1];
      for (std::size_t k = 0; k < x.size(); ++k) {
        const std::int64_t c = static_cast<std::int64_t>(k) % n, r = static_cast<std::int64_t>(k) / n % m;
        const std::int64_t off = c - r - s.a.v[0];
        if (s.a.v[1] != 0 ? off < 0 : off > 0) x[k] = constant(0);
      }
      write(i, x);
      break;
    }
    default: wrong = std::string("the interpreter does not know ") + sw::name_of(s.op); break;
  }
  tensor& t = value[static_cast<std::size_t>(i)];
  if (unsure_)  // an index that the library may see otherwise
    for (std::int64_t k = 0; k < t.count(); ++k) t.at(k).e = wild;
  if (s.op == op_code::redistribute || s.op == op_code::copy_ || s.op == op_code::wait || s.inputs == 0 ||
      !sw::is_floating(out.type))
    return;
  // shares of a sum: infinities and NaNs need not come out of them as they would of the whole
  bool partial = false;
  for (int k = 0; k < s.inputs; ++k)
    for (int a = 0; a < out.axes; ++a) partial = partial || spec_of(s.in[k]).place[a].is_partial();
  if (!partial || sw::rules::only_moves(s.op)) return;
  switch (s.op) {
    case op_code::permute:
    case op_code::reshape:
    case op_code::slice:
    case op_code::detach:
    case op_code::amax:
    case op_code::amin:
    case op_code::prod: return;
    default: break;
  }
  for (std::int64_t k = 0; k < t.count(); ++k)
    if (!std::isfinite(t.at(k).v)) t.at(k).e = wild;
}

}  // namespace fuzz
