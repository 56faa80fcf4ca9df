// SPDX-License-Identifier: Apache-2.0
// One program through the library and through the interpreter, and where they differ.
#pragma once

#include <generate.hpp>
#include <library.hpp>
#include <reference.hpp>

#include <cmath>
#include <set>

namespace fuzz {

struct verdict {
  enum class what { fine, refused, broken, thrown, differs } is = what::fine;
  std::string text;
};

struct statistics {
  long long programs = 0, refused = 0, elements = 0, unsure = 0, vague = 0, gradients = 0, updates = 0, iterated = 0;
  long long executed[static_cast<int>(op_code::count)]{};
  long long images[image_operation_count]{},
      channels_last[image_operation_count]{};  // run; of these with an operand stored so
  std::map<std::string, long long> refusals;
  std::map<int, long long> passes;
};

inline double leaf_element(const program& p, const statement& s, std::int64_t element, int iteration) {
  dice roll(p.seed ^ (static_cast<std::uint64_t>(s.op) << 56) ^ (static_cast<std::uint64_t>(s.a.v[0] + 1) << 40) ^
            (static_cast<std::uint64_t>(iteration) << 32) ^ static_cast<std::uint64_t>(element));
  if (s.given.type == sw::dtype::i32) return static_cast<double>(roll(static_cast<int>(s.bound)));
  bool norm = false;
  for (int a = 0; a < p.axes; ++a) norm = norm || s.given.place[a].is_norm();
  double v = (roll(97) - 48) / 16.0;
  if (p.special && roll.one_in(8)) {
    const bool f32 = s.given.type == sw::dtype::f32;
    const double some[] = {not_a_number, wild, -wild, -0.0, 0, f32 ? 1e-40 : 1e-310, f32 ? 1e10 : 1e100, -1e-7, 90};
    v = some[roll(9)];
    if (f32) v = static_cast<double>(static_cast<float>(v));
  }
  return norm ? std::fabs(v) : v;
}
inline std::vector<double> leaf_data(const program& p, int i, const spec& s, int iteration) {
  std::vector<double> x;
  for (std::int64_t k = 0; k < sw::numel(s); ++k)
    x.push_back(leaf_element(p, p.body[static_cast<std::size_t>(i)], k, iteration));
  return x;
}

// --- a whole tensor out of the ranks' blocks --------------------------------------------------------------------------------

inline bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

struct whole_tensor {
  std::vector<double> x;
  std::string wrong;
};
// A norm out of its shares, scaled: what the library makes of powers is not asked here.
inline double norm_of(const std::vector<double>& shares, int order) {
  double most = 0;
  for (const double x : shares) most = std::isnan(x) || std::isnan(most) ? not_a_number : std::max(most, std::fabs(x));
  if (most == 0 || !std::isfinite(most)) return most;
  double sum = 0;
  for (const double x : shares) sum += std::pow(std::fabs(x) / most, order);
  return most * std::pow(sum, 1.0 / order);
}
inline whole_tensor assemble(const program& p, const spec& s, const std::vector<output_block>& blocks) {
  whole_tensor w;
  const int ranks = p.ranks();
  const std::size_t n = static_cast<std::size_t>(sw::numel(s));
  // by element and rank: what the rank holds of it
  std::vector<std::vector<double>> held(n, std::vector<double>(static_cast<std::size_t>(ranks)));
  std::vector<std::vector<char>> has(n, std::vector<char>(static_cast<std::size_t>(ranks), 0));
  for (int r = 0; r < ranks; ++r) {
    int c[sw::max_axes]{};
    for (int a = 0; a < p.axes; ++a) c[a] = rank_coordinate(p, r, a);
    part box[sw::max_rank]{};
    std::int64_t count = 1;
    for (int d = 0; d < s.rank; ++d) {
      box[d] = part_of(s, d, c);
      count *= box[d].size;
    }
    const std::vector<double>& x = blocks[static_cast<std::size_t>(r)].x;
    if (static_cast<std::int64_t>(x.size()) != count) {
      w.wrong = "rank " + std::to_string(r) + " holds " + std::to_string(x.size()) + " elements of a block of " +
                std::to_string(count);
      return w;
    }
    for (std::int64_t j = 0; j < count; ++j) {
      std::int64_t rest = j, at = 0, step = 1;
      for (int d = s.rank - 1; d >= 0; --d) {
        at += (box[d].begin + rest % box[d].size) * step;
        rest /= box[d].size;
        step *= s.extent[d];
      }
      held[static_cast<std::size_t>(at)][static_cast<std::size_t>(r)] = x[static_cast<std::size_t>(j)];
      has[static_cast<std::size_t>(at)][static_cast<std::size_t>(r)] = 1;
    }
  }
  for (std::size_t e = 0; e < n; ++e) {
    std::vector<double> v = held[e];
    std::vector<char> h = has[e];
    int left = ranks;
    for (int a = p.axes - 1; a >= 0; --a) {  // the last axis is fastest
      const placement& q = s.place[a];
      const int size = p.sizes[a];
      left /= size;
      std::vector<double> next(static_cast<std::size_t>(left));
      std::vector<char> there(static_cast<std::size_t>(left), 0);
      for (int k = 0; k < left; ++k) {
        double& to = next[static_cast<std::size_t>(k)];
        int found = 0;
        std::vector<double> shares;
        for (int c = 0; c < size; ++c) {
          const std::size_t at = static_cast<std::size_t>(k * size + c);
          if (!h[at]) continue;
          const double x = v[at];
          if (q.is_norm()) shares.push_back(x);
          if (found++ == 0) {
            to = x;
            continue;
          }
          if (q.is_partial()) {
            switch (q.op) {
              case sw::reduction::product: to *= x; break;
              case sw::reduction::max: to = std::isnan(to) || std::isnan(x) ? not_a_number : std::max(to, x); break;
              case sw::reduction::min: to = std::isnan(to) || std::isnan(x) ? not_a_number : std::min(to, x); break;
              default: to += x; break;
            }
          } else if (q.is_shard()) {
            w.wrong = "element " + std::to_string(e) + " lies on two ranks of axis " + std::to_string(a);
          } else if (!same(to, x)) {
            w.wrong = "copies of element " + std::to_string(e) + " differ along axis " + std::to_string(a) + ": " +
                      std::to_string(to) + " and " + std::to_string(x);
          }
        }
        if (found > 0 && !q.is_shard() && found != size)
          w.wrong = "element " + std::to_string(e) + " is missing on some ranks of axis " + std::to_string(a);
        if (found > 0 && q.is_partial() && q.op == sw::reduction::avg) to /= size;
        if (found > 0 && q.is_norm() && size > 1) to = norm_of(shares, q.order());
        there[static_cast<std::size_t>(k)] = found > 0 ? 1 : 0;
      }
      v = next;
      h = there;
    }
    if (!h[0]) w.wrong = "no rank holds element " + std::to_string(e);
    w.x.push_back(v[0]);
    if (!w.wrong.empty()) return w;
  }
  return w;
}

// --- comparison --------------------------------------------------------------------------------------------------------------------

inline std::string number(double v) {
  char t[40];
  std::snprintf(t, sizeof t, "%.17g", v);
  return t;
}

inline std::string difference(const std::vector<double>& have, const values& want, sw::dtype t, double eps, statistics& st) {
  if (have.size() != want.size())
    return std::to_string(have.size()) + " elements, the interpreter has " + std::to_string(want.size());
  std::string text;
  int wrong = 0;
  for (std::size_t k = 0; k < have.size(); ++k) {
    ++st.elements;
    const num& w = want[k];
    if (!(w.e < wild) || (!sw::is_floating(t) && w.v != std::floor(w.v))) {
      ++st.unsure;
      continue;
    }
    bool good = false;
    if (!std::isfinite(w.v) || !sw::is_floating(t)) {
      good = same(have[k], w.v);
    } else {
      const double most = 4 * w.e + 4 * eps * std::fabs(w.v);
      if (most > 1e-2 * std::max(1.0, std::fabs(w.v))) ++st.vague;
      good = std::fabs(have[k] - w.v) <= most;
    }
    if (good) continue;
    if (++wrong <= 4)
      text += (wrong > 1 ? ", " : "") + std::string("element ") + std::to_string(k) + " is " + number(have[k]) +
              ", the interpreter has " + number(w.v) + " +- " + number(4 * w.e);
  }
  if (wrong > 4) text += " and " + std::to_string(wrong - 4) + " more";
  return text;
}

// Optimizers as PyTorch has them, on whole tensors.
struct parameter_state {
  values x, m, v, largest;
};
inline void update(const program& p, std::vector<parameter_state>& params, const std::vector<values>& gradients,
                   const std::vector<int>& ranks, const run_numbers& run, double eps) {
  const bool sgd = p.optimizer == 0 || p.optimizer == 1 || p.optimizer == 6 || p.optimizer == 8,
             clips = p.optimizer == 4 || p.optimizer == 6 || p.optimizer == 9;
  const bool clips_values = p.optimizer >= 8, lion = p.optimizer == 9;
  double factor = 1, factor_e = 0;
  if (clips) {
    long double sum = 0, e = 0;
    for (const values& g : gradients)
      for (const num& k : g) {
        const long double v = k.v, ke = k.e;
        sum += v * v;
        e += 2 * std::fabs(v) * ke + ke * ke;
      }
    // Squares are not scaled, as torch.nn.utils.clip_grad_norm_ does not: their sum may be infinite where the norm is not,
    // and such a norm leaves nothing of the gradients.
    const long double highest = eps > 1e-10 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    const long double norm = std::sqrt(sum), ne = norm > 0 ? e / norm : std::sqrt(e);
    if (sum - e > 1.001L * highest) {
      factor = 0;
    } else if (!(sum + e < 0.999L * highest)) {
      factor_e = wild;
    } else {
      const double ratio = run.max_norm / static_cast<double>(norm + 1e-6L);
      factor = std::min(1.0, ratio);
      factor_e =
          ratio > 2 && norm + ne < run.max_norm
              ? 0
              : ratio * (static_cast<double>(ne / (norm + 1e-6L)) + 16 * eps * static_cast<double>(8 + gradients.size()));
      if (!std::isfinite(factor_e)) factor_e = wild;
    }
  }
  const double largest = eps > 1e-10 ? 1e37 : 1e300;
  for (std::size_t k = 0; k < params.size(); ++k) {
    if (gradients[k].empty()) continue;  // it has no part in the loss
    parameter_state& s = params[k];
    const double decay = p.optimizer == 5 && ranks[k] < 2 ? 0 : run.weight_decay;
    const double t = static_cast<double>(run.step);
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      num& x = s.x[i];
      const num g0 = gradients[k][i];
      double g = g0.v * factor,
             ge = g0.e == wild ? wild : g0.e * factor + std::fabs(g0.v) * factor_e + 4 * eps * std::fabs(g);
      if (factor_e == wild || std::isnan(ge) || std::fabs(g0.v) + g0.e > largest) ge = wild;  // 0 times infinity is none
      if (clips_values) g = std::min(std::max(g, -run.clip_value), run.clip_value);
      if (p.optimizer == 8) g = -g;
      if (lion) {
        num& m = s.m[i];
        const double c = run.beta1 * m.v + (1 - run.beta1) * g;
        const double ce = run.beta1 * m.e + (1 - run.beta1) * ge + 8 * eps * (std::fabs(m.v) + std::fabs(g));
        m.v = run.beta2 * m.v + (1 - run.beta2) * g;
        m.e = run.beta2 * m.e + (1 - run.beta2) * ge + 8 * eps * (std::fabs(m.v) + std::fabs(g));
        x.v = x.v * (1 - run.lr * decay) - run.lr * (c > 0 ? 1 : c < 0 ? -1 : 0);
        x.e += 4 * eps * (std::fabs(x.v) + run.lr) + (std::fabs(c) <= ce || std::isnan(ce) ? 2 * run.lr : 0);
        if (ge == wild || m.e == wild) x.e = wild;
        if (!std::isfinite(x.e) || !std::isfinite(x.v)) x = {0, wild, -1};
        continue;
      }
      if (sgd) {
        g += decay * x.v;
        ge += decay * x.e + 4 * eps * (std::fabs(g) + std::fabs(x.v));
        if (p.optimizer == 1 || p.optimizer == 8) {
          const double share = p.optimizer == 8 && run.step > 1 ? 1 - run.dampening : 1;
          s.m[i].v = run.momentum * s.m[i].v + share * g;
          s.m[i].e = run.momentum * s.m[i].e + ge + 4 * eps * (std::fabs(s.m[i].v) + std::fabs(g));
          g = s.m[i].v;
          ge = s.m[i].e;
        }
        x.e += run.lr * ge + 4 * eps * (std::fabs(x.v) + run.lr * std::fabs(g));
        x.v -= run.lr * g;
        if (!std::isfinite(x.e) || !std::isfinite(x.v)) x = {0, wild, -1};
        continue;
      }
      const bool decoupled = p.optimizer == 3 || p.optimizer == 5;
      if (!decoupled) {
        g += decay * x.v;
        ge += decay * x.e + 4 * eps * (std::fabs(g) + std::fabs(x.v));
      }
      num &m = s.m[i], &v = s.v[i];
      m.v = run.beta1 * m.v + (1 - run.beta1) * g;
      m.e = run.beta1 * m.e + (1 - run.beta1) * ge + 8 * eps * std::fabs(m.v) + 8 * eps * std::fabs(g);
      v.v = run.beta2 * v.v + (1 - run.beta2) * g * g;
      v.e = run.beta2 * v.e + (1 - run.beta2) * (2 * std::fabs(g) * ge + ge * ge) + 8 * eps * v.v + 8 * eps * g * g;
      const num* divides = &v;
      if (p.optimizer == 7) {
        num& most = s.largest[i];
        most = {std::max(most.v, v.v), std::max(most.e, v.e), -1};
        divides = &most;
      }
      const double mh = m.v / (1 - std::pow(run.beta1, t)), vh = divides->v / (1 - std::pow(run.beta2, t));
      const double me = m.e / (1 - std::pow(run.beta1, t)), ve = divides->e / (1 - std::pow(run.beta2, t));
      const double lowest = std::sqrt(std::max(0.0, vh - ve)) + run.eps, below = std::sqrt(vh) + run.eps;
      const double change = mh / below;
      const double ce =
          std::max((std::fabs(mh) + me) / lowest - std::fabs(change), me / lowest) + 32 * eps * std::fabs(change);
      if (decoupled) {
        x.v *= 1 - run.lr * decay;
        x.e += 4 * eps * std::fabs(x.v);
      }
      x.e += run.lr * ce + 4 * eps * (std::fabs(x.v) + run.lr * std::fabs(change));
      x.v -= run.lr * change;
      if (divides->v + divides->e > largest || g * g + ge * ge > largest)
        x.e = wild;  // squares of the library's type may be infinite
      if (!std::isfinite(x.e) || !std::isfinite(x.v)) x = {0, wild, -1};
    }
  }
}

// --- the check ------------------------------------------------------------------------------------------------------------------

inline verdict check(const program& p, statistics& st) {
  verdict r;
  assembly a;
  for (const statement& s : p.body)
    if (!a.admit(s, p)) return {verdict::what::refused, "a statement is not admitted"};
  a.finish(p.outputs);
  made m = make(p, a);
  if (!m.refused.empty()) return {verdict::what::refused, m.refused};
  if (!m.broken.empty()) return {verdict::what::broken, m.broken};
  if (m.iterated && p.iterations < 2) return {verdict::what::refused, "too few iterations"};
  for (const int k : m.applied) ++st.passes[k];

  const int phases = m.iterated ? 3 : 1;
  for (int k = 0; k < phases; ++k)
    for (int i = 0; i < m.g[k]->node_count; ++i) {
      const sw::node& n = m.g[k]->nodes[i];
      ++st.executed[static_cast<int>(n.op)];
      const std::int64_t image = n.op == op_code::custom ? bound_of(*m.g[k]->customs[n.a.v[sw::custom_word]]) : 0;
      if (image == 0) continue;
      ++st.images[image - 1];
      bool last = false;
      for (int j = 0; j < n.inputs; ++j)
        last = last || (sw::is_channels_last(m.g[k]->spec_of(n.in[j])) && !sw::is_contiguous(m.g[k]->spec_of(n.in[j])));
      st.channels_last[image - 1] += last ? 1 : 0;
    }
  st.iterated += m.iterated ? 1 : 0;

  std::vector<leaf_values> leaves(static_cast<std::size_t>(p.iterations));
  for (int k = 0; k < p.iterations; ++k)
    for (std::size_t i = 0; i < p.body.size(); ++i)
      if (p.body[i].op == op_code::input || p.body[i].op == op_code::param)
        leaves[static_cast<std::size_t>(k)][{p.body[i].op, p.body[i].a.v[0]}] =
            leaf_data(p, static_cast<int>(i), a.of(static_cast<int>(i)), p.body[i].op == op_code::param ? 0 : k);

  run_numbers numbers;
  const run_result run = execute(p, m, leaves, numbers);
  if (run.thrown.find("is no probability") != std::string::npos)
    return {verdict::what::refused, "a probability outside 0..1"};
  if (!run.thrown.empty()) return {verdict::what::thrown, run.thrown};
  if (!run.broken.empty()) return {verdict::what::broken, run.broken};

  // the interpreter, iteration by iteration
  sw::dtype real = sw::dtype::f32;
  for (std::size_t i = 0; i < p.body.size(); ++i)
    if (a.of(static_cast<int>(i)).type == sw::dtype::f64) real = sw::dtype::f64;
  std::vector<parameter_state> state;
  std::vector<int> param_of, param_rank;
  for (std::size_t i = 0; i < p.body.size(); ++i)
    if (p.body[i].op == op_code::param) {
      parameter_state s;
      for (const double x : leaves[0][{op_code::param, p.body[i].a.v[0]}]) s.x.push_back({x, 0, -1});
      s.m.resize(s.x.size());
      s.v.resize(s.x.size());
      s.largest.resize(s.x.size());
      state.push_back(s);
      param_of.push_back(static_cast<int>(i));
      param_rank.push_back(a.of(static_cast<int>(i)).rank);
    }
  // a parameter that has no gradient is not updated: no update names it
  std::vector<bool> has_part(state.size(), false);
  for (const int k : m.updated) has_part[static_cast<std::size_t>(k)] = true;
  std::vector<int> shown;
  if (p.what != kind::forward) shown.push_back(p.root);
  for (const int o : p.outputs)
    if (static_cast<int>(shown.size()) < graph::output_capacity) shown.push_back(o);
  for (int it = 0; it < p.iterations; ++it) {
    numbers.step = it + 1;
    reference ref(p, a.at, numbers, p.what != kind::forward);
    ref.set_type(real);
    for (std::size_t i = 0; i < p.body.size(); ++i)
      if (p.body[i].op == op_code::input)
        ref.set_leaf(static_cast<int>(i), leaves[static_cast<std::size_t>(it)][{op_code::input, p.body[i].a.v[0]}]);
    for (std::size_t k = 0; k < state.size(); ++k) ref.set_leaf(param_of[k], state[k].x);
    ref.go();
    if (!ref.wrong.empty()) return {verdict::what::broken, ref.wrong};
    if (p.what != kind::forward) ref.differentiate(p.root);
    const bool differentiable = p.what == kind::forward || ref.sure_of_derivatives();
    const std::string when = p.iterations > 1 ? " in iteration " + std::to_string(it + 1) : "";
    for (std::size_t k = 0; k < shown.size() && k < run.outputs.size(); ++k) {
      const spec& s = run.outputs[k];
      const whole_tensor w = assemble(p, s, run.blocks[static_cast<std::size_t>(it)][k]);
      if (!w.wrong.empty()) return {verdict::what::differs, "output " + name(shown[k]) + when + ": " + w.wrong};
      const std::string d = difference(w.x, ref.dense(shown[k]), s.type, ref.eps(), st);
      if (!d.empty()) return {verdict::what::differs, "output " + name(shown[k]) + when + ": " + d};
    }
    for (const shown_gradient& g : m.gradients) {
      int leaf = -1;
      for (std::size_t i = 0; i < p.body.size(); ++i)
        if (p.body[i].op == op_code::input && p.body[i].a.v[0] == g.input) leaf = static_cast<int>(i);
      values want = ref.gradient(leaf);
      if (!differentiable)
        for (num& v : want) v.e = wild;
      double mean = 1;  // of a mean's block
      for (int x = 0; x < p.axes; ++x)
        if (a.of(leaf).place[x] == sw::partial_value(sw::reduction::avg)) mean *= p.sizes[x];
      for (num& v : want) {
        v.v /= mean;
        v.e /= mean;
      }
      ++st.gradients;
      if (g.output < 0) {
        for (const num& v : want)
          if (v.e != wild && std::fabs(v.v) > 4 * v.e)
            return {verdict::what::differs, "the gradient of input " + std::to_string(g.input) + " is missing" + when +
                                                "; an element of it is " + number(v.v)};
        continue;
      }
      const spec& s = run.outputs[static_cast<std::size_t>(g.output)];
      const whole_tensor w = assemble(p, s, run.blocks[static_cast<std::size_t>(it)][static_cast<std::size_t>(g.output)]);
      const std::string d = w.wrong.empty() ? difference(w.x, want, s.type, ref.eps(), st) : w.wrong;
      if (!d.empty()) return {verdict::what::differs, "gradient of input " + std::to_string(g.input) + when + ": " + d};
    }
    if (p.what == kind::training) {
      std::vector<values> gradients;
      for (const int i : param_of) {
        values g = ref.gradient(i);
        if (!differentiable)
          for (num& v : g) v = {0, wild, -1};
        if (!has_part[static_cast<std::size_t>(p.body[static_cast<std::size_t>(i)].a.v[0])])
          for (const num& v : g)
            if (v.e != wild && std::fabs(v.v) > 4 * v.e)
              return {verdict::what::differs, "parameter " + std::to_string(p.body[static_cast<std::size_t>(i)].a.v[0]) +
                                                  " is not updated; an element of its gradient is " + number(v.v)};
        if (!has_part[static_cast<std::size_t>(p.body[static_cast<std::size_t>(i)].a.v[0])]) g.clear();
        gradients.push_back(g);
      }
      update(p, state, gradients, param_rank, numbers, ref.eps());
      ++st.updates;
    } else {
      for (std::size_t k = 0; k < state.size(); ++k) state[k].x = ref.dense(param_of[k]);
    }
  }
  for (const parameter_blocks& b : run.parameters) {
    const whole_tensor w = assemble(p, b.s, b.by_rank);
    const std::string d = w.wrong.empty() ? difference(w.x, state[static_cast<std::size_t>(b.number)].x, b.s.type,
                                                       real == sw::dtype::f64 ? 1.12e-16 : 5.97e-8, st)
                                          : w.wrong;
    if (!d.empty())
      return {verdict::what::differs,
              "parameter " + std::to_string(b.number) + " after " + std::to_string(p.iterations) + " iterations: " + d};
  }
  return r;
}

}  // namespace fuzz
