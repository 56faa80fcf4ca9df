// SPDX-License-Identifier: Apache-2.0
// Every device kernel equals the host kernel on the same call, in float and double, on awkward extents and strides.
#include "device.hpp"

// Named: nvcc reads CUDA's own headers after the source, and there the names of operations would hide functions.
namespace device_kernels {

using namespace device_test;
using enum op_code;

const extents sizes[] = {{},     {0},    {1},      {3},    {5},       {33},       {1025},         {4096},
                         {4099}, {3, 5}, {33, 64}, {1, 1}, {7, 0, 3}, {5, 3, 33}, {2, 3, 4, 5, 8}};

// Layouts of one logical shape: dense, stored backwards, sliced from a larger one.
std::vector<layout> layouts(const extents& e) {
  std::vector<layout> v{dense(e)};
  if (e.size() < 2) return v;
  extents back;
  for (std::size_t i = e.size(); i-- > 0;) back.push_back(static_cast<std::int64_t>(i));
  v.push_back(stored(e, back));
  v.push_back(sliced(e, static_cast<int>(e.size()) - 1, 3));
  v.push_back(sliced(e, 0, 2));
  v.push_back(sliced(e, static_cast<int>(e.size()) - 1, 4));
  return v;
}

template <op_code Op>
void unary(report& r, double f = 0, double unit = 0) {
  for (const extents& e : sizes)
    for (const layout& l : layouts(e))
      for (std::size_t shift : {0, 1}) {
        problem p{Op, {values(l, -4, 4)}, dense(e)};
        p.f = f;
        p.unit = unit;
        p.in[0].shift = shift;
        compare<Op>(p, r);
      }
}

template <op_code Op>
void binary(report& r) {
  for (const extents& e : sizes) {
    const auto all = layouts(e);
    for (std::size_t i = 0; i < all.size(); ++i) {
      problem p{Op, {values(all[i]), values(all[all.size() - 1 - i])}, dense(e)};
      p.shift = i % 2;
      compare<Op>(p, r);
    }
  }
}

TEST_CASE("unary pointwise kernels equal the host's") {
  NEEDS_GPU();
  report r("unary");
  unary<scale>(r, 0.37);
  unary<contiguous>(r);
  unary<relu>(r);
  unary<op_code::tanh>(r);
  unary<gelu_tanh>(r, 0, 1);  // 1 + tanh(x) cancels where x is far below 0
  unary<gelu_erf>(r, 0, 1);
  for (const extents& e : sizes) {
    problem p{fill, {}, dense(e)};
    p.f = 1.25;
    compare<fill>(p, r);
  }
}

TEST_CASE("binary pointwise kernels equal the host's") {
  NEEDS_GPU();
  report r("binary");
  binary<add>(r);
  binary<sub>(r);
  binary<mul>(r);
  binary<relu_dx>(r);
  binary<tanh_dx>(r);
  binary<gelu_tanh_dx>(r);
  binary<gelu_erf_dx>(r);
}

TEST_CASE("operands are broadcast from the right") {
  NEEDS_GPU();
  report r("broadcast");
  const struct {
    extents x, y, o;
  } cases[] = {{{5, 33}, {33}, {5, 33}},
               {{5, 64}, {64}, {5, 64}},
               {{64}, {5, 64}, {5, 64}},
               {{5, 64}, {5, 1}, {5, 64}},
               {{5, 64}, {}, {5, 64}},
               {{4096}, {1}, {4096}},
               {{3, 1, 8}, {1, 5, 1}, {3, 5, 8}},
               {{2, 3, 4, 5, 6}, {4, 1, 6}, {2, 3, 4, 5, 6}},
               {{0, 8}, {8}, {0, 8}},
               {{1025, 7}, {7}, {1025, 7}},
               {{7, 1025}, {7, 1}, {7, 1025}},
               {{1, 8}, {1, 8}, {1, 8}},
               {{300, 128, 16}, {128, 1}, {300, 128, 16}}};
  for (const auto& c : cases) {
    compare<add>(problem{add, {values(dense(c.x)), values(dense(c.y))}, dense(c.o)}, r);
    compare<mul>(problem{mul, {values(dense(c.x)), values(dense(c.y))}, dense(c.o)}, r);
  }
  // a shard of extent 1 of a longer dim is no broadcast
  compare<add>(problem{add, {values(shard(dense({1, 8}), 0, 2, 4)), values(dense({1, 8}))}, shard(dense({1, 8}), 0, 2, 4)},
               r);
}

TEST_CASE("an index walk is cut into pieces that cover it once") {
  const std::int64_t most[] = {1, 2, 5, 7, 100, 1000, 100000};
  for (const std::int64_t limit : most) {
    rt::layout l = stored({9, 70, 11}, {1, 0, 2});
    cu::walk<1> w;
    for (int d = 0; d < 3; ++d) w.push(l.ext[d], &l.str[d]);
    std::vector<int> seen(static_cast<std::size_t>(l.numel()));
    const std::int64_t origin[1]{};
    const auto visit = [&](const cu::walk<1>& piece, const std::int64_t* base) {
      CHECK((cu::points(piece) < limit || cu::points(piece) == 1));
      piece.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
        for (std::int64_t i = 0; i < n; ++i) ++seen[static_cast<std::size_t>(base[0] + off[0] + i * s[0])];
      });
    };
    cu::each_piece(w, origin, limit, visit);
    bool once = true;
    for (int n : seen) once = once && n == 1;
    CHECK(once);
  }
}

TEST_CASE("sums, means and their adjoint equal the host's") {
  NEEDS_GPU();
  report r("sum");
  struct {
    extents e;
    int mask, kept;
  } cases[] = {
      {{}, 0, 0},           {{5}, 1, 0},          {{0}, 1, 0},          {{0, 5}, 1, 0},         {{5, 0}, 1, 0},
      {{5, 0}, 2, 2},       {{33}, 0, 0},         {{1025}, 1, 1},       {{1 << 20}, 1, 0},      {{(1 << 20) + 3}, 1, 0},
      {{1024, 1024}, 3, 0}, {{3000, 33}, 1, 0},   {{3000, 5}, 1, 0},    {{5, 100000}, 2, 0},    {{700, 1025}, 2, 2},
      {{33, 64}, 2, 0},     {{64, 33, 65}, 5, 0}, {{64, 33, 65}, 2, 2}, {{64, 33, 65}, 3, 3},   {{4, 5, 6, 7, 8}, 21, 4},
      {{20000, 100}, 1, 0}, {{1, 1, 1}, 7, 0},    {{100000, 1}, 1, 0},  {{2, 40000, 16}, 2, 0}, {{64, 33, 64}, 3, 3},
      {{9, 7, 768}, 3, 0},  {{5, 40960}, 1, 0},   {{8192, 768}, 1, 1}};
  for (const auto& c : cases)
    for (const layout& l : layouts(c.e))
      for (int mean : {0, 1}) {
        extents out;
        for (int d = 0; d < l.rank; ++d) {
          if (!((c.mask >> d) & 1)) out.push_back(l.ext[d]);
          else if ((c.kept >> d) & 1) out.push_back(1);
        }
        bool empty = false;  // a mean over nothing is 0 / 0
        for (int d = 0; d < l.rank; ++d) empty = empty || (((c.mask >> d) & 1) && l.ext[d] == 0);
        problem p{sum, {values(l)}, dense(out)};
        p.a = {{c.mask, c.kept, mean && !empty, 0, 0, 0}};
        compare<sum>(p, r);
        if (!mean) compare<sumsq>(p, r);
        if (!mean)
          for (int order : {1, 2, 3}) {
            problem norm{vector_norm, {values(l)}, dense(out)};
            norm.a = {{c.mask, c.kept, order, 0, 0, 0}};
            compare<vector_norm>(norm, r);
            problem slope{vector_norm_dx, {values(dense(out)), values(l, -1, 1), values(dense(out), 1, 2)}, dense(c.e)};
            slope.a = norm.a;
            compare<vector_norm_dx>(slope, r);
          }
        problem back{expand, {values(dense(out))}, dense(c.e)};
        back.a = p.a;
        compare<expand>(back, r);
      }
}

TEST_CASE("softmax and its adjoint equal the host's") {
  NEEDS_GPU();
  report r("softmax");
  for (const extents& e :
       {extents{1}, {33}, {1025}, {5, 1}, {5, 33}, {3, 1024}, {3, 1025}, {2, 50000}, {1000, 7}, {0, 5}, {2, 3, 4, 65}})
    for (const layout& l : layouts(e)) {
      compare<softmax>(problem{softmax, {values(l, -30, 30)}, dense(e)}, r);
      compare<softmax_dx>(problem{softmax_dx, {values(l), values(dense(e), 0, 1)}, dense(e)}, r);
      compare<softmax_dx>(problem{softmax_dx, {values(dense(e)), values(l, 0, 1)}, dense(e)}, r);
    }
  for (const std::int64_t origin : {0, 2, 40})
    for (const extents& e : {extents{5, 5}, {3, 33}, {2, 3, 7, 65}, {2, 3, 2000}, {0, 8}, {4, 1, 9}, {1100, 1100}})
      for (const layout& l : layouts(e)) {
        const int q = l.rank - 2;
        problem p{softmax, {values(shard(l, q, origin, e[static_cast<unsigned>(q)] + origin))}, dense(e)};
        p.a.v[0] = 1;
        compare<softmax>(p, r);
      }
  // infinities: masked positions are 0
  problem p{softmax, {values(dense({2, 40}))}, dense({2, 40})};
  for (std::size_t i = 0; i < 40; i += 3) p.in[0].v[i] = -HUGE_VAL;
  compare<softmax>(p, r);
}

TEST_CASE("norms and their adjoints equal the host's") {
  NEEDS_GPU();
  report r("norm");
  for (const extents& e :
       {extents{7}, {5, 1}, {5, 33}, {3, 1024}, {3, 1025}, {0, 8}, {2, 3, 4, 64}, {5000, 48}, {300, 768}, {9000, 3}})
    for (const layout& l : layouts(e))
      for (int rms : {0, 1}) {
        extents stat(e.begin(), e.end() - 1);
        stat.push_back(2);
        const std::int64_t n = e.back();
        problem s{norm_stats, {values(l, -1, 3)}, dense(stat)};
        s.a.v[0] = rms;
        s.f = 1e-5;
        compare<norm_stats>(s, r);

        const operand stats = values(dense(stat), 0.25, 1), w = values(dense({n})), b = values(dense({n}));
        problem y{norm_apply, {values(l), stats, w}, dense(e)};
        y.a.v[0] = rms;
        compare<norm_apply>(y, r);
        y.in.push_back(b);
        y.shift = 1;
        compare<norm_apply>(y, r);

        problem dx{norm_dx, {values(l), values(dense(e)), stats, w}, dense(e)};
        dx.a.v[0] = rms;
        compare<norm_dx>(dx, r);
        problem dw{norm_dw, {values(dense(e)), values(l), stats}, dense({n})};
        dw.a.v[0] = rms;
        compare<norm_dw>(dw, r);
        dw.in[0] = values(l);
        compare<norm_dw>(dw, r);
      }
}

TEST_CASE("log-sum-exp, cross entropy and its adjoint equal the host's") {
  NEEDS_GPU();
  report r("cross entropy");
  for (const extents& e : {extents{5}, {5, 1}, {5, 33}, {300, 65}, {3, 1024}, {3, 1025}, {2, 50257}, {0, 8}, {2, 3, 4, 64}})
    for (const layout& l : layouts(e)) {
      const extents rows(e.begin(), e.end() - 1);
      const std::int64_t n = e.back();
      compare<lse>(problem{lse, {values(l, -30, 30)}, dense(rows)}, r);
      const operand norm = values(dense(rows), 4, 8), target = indices(dense(rows), n);
      compare<nll>(problem{nll, {values(l), norm, target}, dense(rows)}, r);
      compare<nll_dx>(problem{nll_dx, {values(dense(rows)), values(l), norm, target}, dense(e)}, r);
    }
}

// The result where the logits lie, as memory plans place it: they are copied there first.
template <class T>
void loss_in_place(const call& given, cu::context& ctx) {
  call c = given;
  cu::check(cudaMemcpyAsync(c.p[rt::result], c.p[1], static_cast<std::size_t>(c.l[1].numel()) * sizeof(T),
                            cudaMemcpyDeviceToDevice, ctx.stream),
            "cudaMemcpyAsync");
  c.p[1] = c.p[rt::result];
  cu::kernel<nll_dx_loss>::template run<T>(c, ctx);
}

TEST_CASE(
    "cross entropy and its adjoint in one kernel equal the host's, of rows that shared memory holds and of others, in place too") {
  NEEDS_GPU();
  report r("cross entropy, joined");
  for (const extents& e : {extents{5, 1},
                           {5, 33},
                           {300, 65},
                           {3, 1024},
                           {3, 1025},
                           {7, 2048},
                           {500, 1028},
                           {3, 8192},
                           {2, 50304},
                           {2, 50257},
                           {0, 8},
                           {2, 3, 4, 1088}})
    for (const layout& l : layouts(e))
      for (const bool ignores : {false, true}) {
        const extents rows(e.begin(), e.end() - 1);
        problem p{nll_dx_loss,
                  {values(dense(rows)), values(l, -9, 9), indices(dense(rows), e.back()), values(dense(rows))},
                  dense(e)};
        sw::nll_attributes a{};
        a.ignores = ignores;
        a.ignored = !p.in[2].index.empty() ? p.in[2].index[0] : 0;
        p.a = sw::pack_attributes(a);
        compare<nll_dx_loss>(p, r);
        if (l.str[l.rank - 1] != 1 || l.numel() != static_cast<std::int64_t>(storage(l))) continue;
        const outcome h = on_host<nll_dx_loss>(p);
        compare_as<nll_dx_loss, float>(p, h, r, &loss_in_place<float>);
        compare_as<nll_dx_loss, double>(p, h, r, &loss_in_place<double>);
      }
  for (const std::int64_t n : {64, 2048}) {  // infinities and NaNs among the logits
    problem p{
        nll_dx_loss, {values(dense({5})), values(dense({5, n})), indices(dense({5}), n), values(dense({5}))}, dense({5, n})};
    const auto at = [&](std::int64_t row, std::int64_t k) -> double& {
      return p.in[1].v[static_cast<std::size_t>(row * n + k)];
    };
    at(0, 3) = -HUGE_VAL;
    at(1, 6) = HUGE_VAL;
    at(2, 12) = std::nan("");
    for (std::int64_t k = 0; k < n; ++k) at(3, k) = -HUGE_VAL;
    compare<nll_dx_loss>(p, r);
  }
}

TEST_CASE("embedding and its adjoint equal the host's") {
  NEEDS_GPU();
  report r("embedding");
  const struct {
    std::int64_t rows, width;
    extents places;
  } cases[] = {{1, 1, {1}},          {5, 3, {7}},     {33, 64, {5, 33}},  {65, 128, {1025}}, {65, 130, {300}},
               {9000, 48, {4, 500}}, {50, 4, {}},     {50, 4, {0, 3}},    {4, 1025, {2, 3}}, {20000, 260, {129}},
               {7, 0, {3}},          {1, 40, {3000}}, {2, 140, {3, 3000}}};
  for (const auto& c : cases) {
    extents out = c.places;
    out.push_back(c.width);
    const operand where = indices(dense(c.places), c.rows);
    for (const layout& table :
         {dense({c.rows, c.width}), stored({c.rows, c.width}, {1, 0}), sliced({c.rows, c.width}, 1, 4)})
      compare<embedding>(problem{embedding, {values(table), where}, dense(out)}, r);
    for (const layout& l : layouts(out)) {
      problem p{embedding_dw, {values(l), where}, dense({c.rows, c.width})};
      p.a.v[0] = c.rows;
      compare<embedding_dw>(p, r);
    }
  }
  {  // most places in few rows of a block: it lists them in several turns, for each of its rounds
    problem p{embedding_dw, {values(dense({6000, 600})), indices(dense({6000}), 1500)}, dense({1500, 600})};
    p.a.v[0] = 1500;
    for (std::size_t i = 0; i < p.in[1].index.size(); ++i)
      if (i % 100 != 7) p.in[1].index[i] %= 2;
    p.unit = 54;  // two rows sum 2970 values each, which may end near zero: the square root of how many
    compare<embedding_dw>(p, r);
  }
  // a block of a table's rows: first ones, some, none
  for (const std::int64_t origin : {0, 3, 30, 40})
    for (const std::int64_t rows : {0, 1, 10}) {
      const operand where = indices(dense({5, 33}), 40);
      if (origin + rows > 40) continue;
      compare<embedding>(problem{embedding, {values(shard(dense({rows, 8}), 0, origin, 40)), where}, dense({5, 33, 8})}, r);
      problem p{embedding_dw, {values(dense({5, 33, 8})), where}, shard(dense({rows, 8}), 0, origin, 40)};
      p.a.v[0] = 40;
      compare<embedding_dw>(p, r);
    }
  problem turned{embedding, {values(dense({40, 8})), indices(stored({5, 33}, {1, 0}), 40)}, dense({5, 33, 8})};
  compare<embedding>(turned, r);
}

TEST_CASE("an index outside the table is reported once and read as 0") {
  NEEDS_GPU();
  device& d = device::get();
  report r("bad indices");
  const auto trial = [&]<op_code Op>(problem p, std::size_t operand, std::size_t at, std::int32_t bad, std::int64_t limit,
                                     std::integral_constant<op_code, Op>) {
    p.in[operand].index[at] = 0;
    const outcome h = on_host<Op>(p);
    p.in[operand].index[at] = bad;
    d.clear_fault();
    compare_as<Op, float>(p, h, r);
    CHECK(d.fault().node == 7);
    CHECK(d.fault().index == bad);
    CHECK(d.fault().limit == limit);
    d.set_fault({7, 0, 99, limit});  // a second fault leaves the first in place
    compare_as<Op, double>(p, h, r);
    CHECK(d.fault().index == 99);
    d.clear_fault();
  };
  for (const std::int32_t bad : {-1, 33, 2000000000}) {
    trial(problem{embedding, {values(dense({33, 8})), indices(dense({100}), 33)}, dense({100, 8})}, 1, 57, bad, 33,
          std::integral_constant<op_code, embedding>{});
    problem dw{embedding_dw, {values(dense({100, 8})), indices(dense({100}), 33)}, dense({33, 8})};
    dw.a.v[0] = 33;
    trial(dw, 1, 57, bad, 33, std::integral_constant<op_code, embedding_dw>{});
    trial(problem{nll, {values(dense({100, 33})), values(dense({100})), indices(dense({100}), 33)}, dense({100})}, 2, 99,
          bad, 33, std::integral_constant<op_code, nll>{});
    trial(problem{nll_dx,
                  {values(dense({100})), values(dense({100, 33})), values(dense({100})), indices(dense({100}), 33)},
                  dense({100, 33})},
          3, 3, bad, 33, std::integral_constant<op_code, nll_dx>{});
    for (const std::int64_t n : {33, 2048})
      if (bad < 0 || bad >= n)
        trial(problem{nll_dx_loss,
                      {values(dense({10})), values(dense({10, n})), indices(dense({10}), n), values(dense({10}))},
                      dense({10, n})},
              2, 9, bad, n, std::integral_constant<op_code, nll_dx_loss>{});
  }
}

TEST_CASE("dropout draws the host's masks") {
  NEEDS_GPU();
  report r("dropout");
  for (const std::int64_t step : {1, 2, 100000})
    for (const extents& e : {extents{}, {0}, {33}, {5, 33}, {1025, 7}, {2, 3, 4, 5, 6}})
      for (const layout& l : layouts(e)) {
        problem p{dropout, {values(l, 1, 2)}, dense(e)};
        for (int dim = 0; dim < p.out.rank; ++dim) p.out = shard(p.out, dim, 3 + dim, p.out.ext[dim] + 5 + 2 * dim);
        if (p.out.rank > 0) p.out.global[0] = std::int64_t{1} << 33;  // indices beyond 32 bits
        p.env.seed = 0x123456789ABCDEFULL;
        p.env.step = step;
        p.a.v[0] = 3;
        p.f = 0.3;
        compare<dropout>(p, r);
      }
}

TEST_CASE("sgd and adam equal the host's") {
  NEEDS_GPU();
  report r("update");
  for (const std::int64_t n : {0, 1, 3, 5, 33, 1025, 4096, 100003})
    for (const int flags : {0, 1, 2, 3})
      for (const std::size_t shift : {0, 1}) {
        const bool clipped = flags & 1, flavour = flags & 2;
        rt::step_env env{5, 3, 0.01, 0.9, 0.999, 1e-8, 0.8, 0.1, 0.5};
        const layout l = dense({n});
        problem p{sgd, {values(l), values(l)}, l};
        p.env = env;
        p.f = 0.5;
        p.a = {{clipped, flavour, 0, 0, 0, 0}};
        problem q = p;
        p.in[0].shift = shift;
        if (flavour) p.in.push_back(values(l));
        if (clipped) p.in.push_back(values(dense({}), 0.2, 0.9));
        compare<sgd>(p, r);
        q.in.push_back(values(l, -1, 1));
        q.in.push_back(values(l, 0.01, 1));
        q.in[3].shift = shift;
        if (clipped) q.in.push_back(values(dense({}), 0.2, 0.9));
        compare<adam>(q, r);
      }
  for (const double square : {0.0, 1e-6, 0.2, 400.0}) {
    problem p{clip_factor, {values(dense({}), square, square)}, dense({})};
    p.env.max_norm = 0.5;
    compare<clip_factor>(p, r);
  }
}

TEST_CASE("pads and local redistributions equal the host's") {
  NEEDS_GPU();
  report r("block");
  for (const int dim : {0, 1, 2})
    for (const layout& l : layouts({5, 6, 8})) {
      problem p{pad, {values(l)}, dense({5 + 4 * (dim == 0), 6 + 4 * (dim == 1), 8 + 4 * (dim == 2)})};
      p.a = {{dim, 3, p.out.ext[dim], 0, 0, 0}};
      compare<pad>(p, r);
      extents slice{5, 6, 8};
      slice[static_cast<unsigned>(dim)] = 2;
      problem put{slice_scatter, {values(l), values(dense(slice))}, dense({5, 6, 8})};
      put.a = {{dim, 1, 2, 0, 0, 0}};
      compare<slice_scatter>(put, r);
      for (const std::int64_t origin : {0, 2, 4, 8}) {
        const std::int64_t whole = l.ext[dim], begin = origin < whole ? origin : whole,
                           size = begin + 2 < whole ? 2 : whole - begin;
        extents part{5, 6, 8};
        part[static_cast<unsigned>(dim)] = size;
        problem take{redistribute, {values(l)}, shard(dense(part), dim, begin, whole)};
        take.kind = sw::transition::take_chunk;
        take.to = sw::shard_value(dim);
        compare<redistribute>(take, r);
        problem place{redistribute, {values(shard(dense(part), dim, begin, whole))}, dense({5, 6, 8})};
        place.kind = sw::transition::place_chunk;
        place.from = sw::shard_value(dim);
        compare<redistribute>(place, r);
      }
      for (const int coordinate : {0, 1}) {
        problem partial{redistribute, {values(l)}, dense({5, 6, 8})};
        partial.kind = sw::transition::to_partial;
        partial.coordinate = coordinate;
        compare<redistribute>(partial, r);
      }
    }
}

// Without a GPU a case counts as skipped, so what needs none has a case of its own.
TEST_CASE("every operation has a launcher for floats, and integers are only moved and compared") {
  using cu::launcher_of;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const op_code op = static_cast<op_code>(i);
    const bool computes = sw::runs_kernel(op) && op != op_code::fused && op != op_code::opaque && op != op_code::custom &&
                          op != op_code::cast;  // expressions; the user's; of two types
    CHECK((launcher_of<float>(op) != nullptr) == computes);
    CHECK((launcher_of<double>(op) != nullptr) == computes);
    const bool of_integers =
        sw::runs_kernel(op) && (op == redistribute || sw::rules::only_moves(op) || sw::is_comparison(op));
    CHECK((launcher_of<std::int32_t>(op) != nullptr) == of_integers);
  }
}

TEST_CASE("moved integers equal the host's") {
  NEEDS_GPU();
  for (const layout& l : layouts({33, 7})) {
    problem p{contiguous, {values(l, -1000000, 1000000)}, dense({33, 7})};
    for (double& v : p.in[0].v) v = std::trunc(v);
    CHECK(difference(on_device<std::int32_t>(p).out, on_host<contiguous>(p).out) == 0);
    p.op = redistribute;
    CHECK(difference(on_device<std::int32_t>(p).out, on_host<redistribute>(p).out) == 0);
  }
}

// --- einsum ---------------------------------------------------------------------------------------------------------

std::int64_t labels(const char* s) {
  std::int64_t v = 0;
  for (int d = 0; s[d]; ++d) v |= std::int64_t{s[d] - 'a' + 1} << (4 * d);
  return v;
}

// Extents by letter, a to o.
problem contraction(const char* x, const char* y, const char* o, const std::vector<std::int64_t>& ext) {
  const auto of = [&](const char* s) {
    extents e;
    for (; *s; ++s) e.push_back(ext[static_cast<unsigned>(*s - 'a')]);
    return e;
  };
  problem p{einsum, {values(dense(of(x))), values(dense(of(y)))}, dense(of(o))};
  p.a = {{labels(x), labels(y), labels(o), 0, 0, 0}};
  p.f = 0.75;
  return p;
}

// The ways there are, whatever the sizes: which of them a product takes depends on its size and strides.
template <class T>
void by_cublaslt(const call& c, cu::context& ctx) {
  cu::detail::device_einsum<T>(c, ctx).run();
}
template <class T>
void by_own_product(const call& c, cu::context& ctx) {
  if (!cu::detail::run_product<T>(c, cu::no_epilogue{}, 1 << 20, ctx)) by_cublaslt<T>(c, ctx);
}
template <class Shape, class T>
void by_flat_product(const call& c, cu::context& ctx) {
  if (!cu::detail::run_flat_product<T, false, Shape>(c, cu::no_epilogue{}, nullptr, nullptr, true, ctx))
    by_cublaslt<T>(c, ctx);
}
template <class T>
void compare_own_products(const problem& p, const outcome& h, report& r) {
  compare_as<einsum, T>(p, h, r, &by_own_product<T>);
  compare_as<einsum, T>(p, h, r, &by_flat_product<cu::detail::small_tiles, T>);
  compare_as<einsum, T>(p, h, r, &by_flat_product<cu::detail::large_tiles, T>);
}
void compare_products(problem p, report& r) {
  const outcome h = on_host<einsum>(p);
  compare_as<einsum, float>(p, h, r, &by_cublaslt<float>);
  compare_as<einsum, double>(p, h, r, &by_cublaslt<double>);
  compare_own_products<float>(p, h, r);
  compare_own_products<double>(p, h, r);
}

TEST_CASE("matrix products equal the host's") {
  NEEDS_GPU();
  report r("matmul");
  for (const std::int64_t m : {0, 1, 3, 33, 128})
    for (const std::int64_t n : {0, 1, 5, 64, 65})
      for (const std::int64_t k : {0, 1, 4, 33, 256})
        for (const char* x : {"ac", "ca"})
          for (const char* y : {"cb", "bc"})
            for (const char* o : {"ab", "ba"}) compare_products(contraction(x, y, o, {m, n, k}), r);
  for (const auto& e : {std::vector<std::int64_t>{1025, 300, 700}, {4, 4, 100000}, {2000, 3, 2000}})
    compare_products(contraction("ac", "bc", "ab", e), r);
}

TEST_CASE("einsum with batches, several dims a role, views and copies equals the host's") {
  NEEDS_GPU();
  report r("einsum");
  const std::vector<std::int64_t> e{3, 5, 8, 6, 7, 2}, ones{1, 5, 1, 6, 1, 1}, big{4, 33, 64, 17, 9, 3};
  for (const auto& ext : {e, ones, big}) {
    compare_products(contraction("abc", "cd", "abd", ext), r);
    compare_products(contraction("abc", "abd", "cd", ext), r);
    compare_products(contraction("abc", "adc", "abd", ext), r);
    compare_products(contraction("abcd", "abed", "abce", ext), r);  // attention
    compare_products(contraction("abce", "abed", "abcd", ext), r);
    compare_products(contraction("abcd", "cdef", "abef", ext), r);  // two contracted dims
    compare_products(contraction("abcd", "dcef", "abef", ext), r);  // ... in another order: accumulated
    compare_products(contraction("abc", "db", "adc", ext), r);      // the contracted dim in the middle
    compare_products(contraction("ab", "ac", "bca", ext), r);       // a batch dim last: the result is copied
    compare_products(contraction("cab", "bda", "acd", ext), r);     // a batch dim last in an operand: it is copied
    compare_products(contraction("bca", "dba", "cda", ext), r);     // ... in all three
    compare_products(contraction("a", "a", "", ext), r);
    compare_products(contraction("a", "b", "ab", ext), r);
    compare_products(contraction("cab", "cdba", "cd", ext), r);  // contracted dims that no copy of one operand merges
    compare_products(contraction("dab", "cdab", "dc", ext), r);
    compare_products(contraction("ca", "adb", "cbd", ext), r);
    compare_products(contraction("bca", "ade", "edcb", ext), r);
    compare_products(contraction("cabde", "edbaf", "cf", ext), r);
    compare_products(contraction("ab", "ab", "ab", ext), r);  // batches only
    compare_products(contraction("", "", "", ext), r);
    problem heads = contraction("abcd", "abed", "abce", ext);  // heads split from the model dim
    heads.in[0] = values(stored({ext[0], ext[1], ext[2], ext[3]}, {0, 2, 1, 3}));
    heads.in[1] = values(stored({ext[0], ext[1], ext[4], ext[3]}, {0, 2, 1, 3}));
    compare_products(heads, r);
    heads.in[0] = values(sliced({ext[0], ext[1], ext[2], ext[3]}, 3, 3));
    heads.in[1] = values(stored({ext[0], ext[1], ext[4], ext[3]}, {3, 2, 1, 0}));
    heads.in[0].shift = 1;
    heads.shift = 1;
    compare_products(heads, r);
  }
  compare_products(contraction("abc", "abd", "acd", {70000, 2, 3, 2}), r);  // more batches than one product takes
}

// Random roles, orders of dims and storage; local blocks smaller than what the scratch is reserved for.
TEST_CASE("random einsums equal the host's in the scratch that is reserved") {
  NEEDS_GPU();
  report r("random einsum");
  const std::int64_t choice[] = {1, 2, 3, 4, 6, 9};
  for (int trial = 0; trial < 400; ++trial) {
    std::string s[3];
    std::int64_t elements[3] = {1, 1, 1};
    std::vector<std::int64_t> ext, whole;
    for (char l = 'a'; l < 'a' + 8; ++l) {
      ext.push_back(choice[next_random() % 6]);
      whole.push_back(ext.back() * (1 + next_random() % 2));
      const int roles[] = {3, 5, 6, 7}, role = roles[next_random() % 4];
      bool room = true;
      for (int k = 0; k < 3; ++k)
        room = room && (!((role >> k) & 1) || (s[k].size() < sw::max_rank && elements[k] * whole.back() <= 1 << 21));
      for (int k = 0; k < 3 && room; ++k)
        if ((role >> k) & 1) {
          s[k].insert(next_random() % (s[k].size() + 1), 1, l);
          elements[k] *= whole.back();
        }
    }
    problem p = contraction(s[0].c_str(), s[1].c_str(), s[2].c_str(), ext);
    const problem all = contraction(s[0].c_str(), s[1].c_str(), s[2].c_str(), whole);
    p.whole = {all.in[0].l, all.in[1].l, all.out};
    for (std::size_t k = 0; k < 2; ++k) {
      extents order, local, full;
      for (int d = 0; d < p.in[k].l.rank; ++d) {
        order.insert(order.begin() + next_random() % (order.size() + 1), d);
        local.push_back(p.in[k].l.ext[d]);
        full.push_back(p.whole[k].ext[d]);
      }
      if (next_random() % 2) {
        p.in[k] = values(stored(local, order));
        p.whole[k] = stored(full, order);
      }
    }
    INFO(s[0] << "," << s[1] << "->" << s[2]);
    compare_products(p, r);
  }
}

TEST_CASE("a plan is made once for a shape") {
  NEEDS_GPU();
  device& d = device::get();
  const problem p = contraction("ac", "cb", "ab", {19, 23, 29});
  on_device<float>(p, &by_cublaslt<float>);
  const std::size_t n = d.ctx.plans->size();
  on_device<float>(p, &by_cublaslt<float>);
  CHECK(d.ctx.plans->size() == n);
}

TEST_CASE("scratch is reserved where it is needed") {
  const auto bytes = [](const problem& p) {
    const auto t = sw::dtype::f32;
    const sw::spec x = spec_like(p.in[0].l, t), y = spec_like(p.in.back().l, t);
    const sw::spec* const in[] = {&x, &y};
    return sw::operation_of(p.op).device_scratch.value(p.a, in, static_cast<int>(p.in.size()), spec_like(p.out, t));
  };
  const std::vector<std::int64_t> e{3, 5, 8, 6, 7, 2};
  CHECK(bytes(contraction("abc", "cd", "abd", e)) == sw::device_scratch::product_bytes);
  CHECK(bytes(contraction("abcd", "abed", "abce", e)) == sw::device_scratch::product_bytes);
  CHECK(bytes(contraction("ab", "ac", "bca", e)) > sw::device_scratch::product_bytes);
  problem p{sum, {values(dense({1 << 20}))}, dense({})};
  p.a = {{1, 0, 0, 0, 0, 0}};
  CHECK(bytes(p) == 8192);
  p.in[0] = values(dense({33}));
  CHECK(bytes(p) == 0);
}

// --- graphs and sizes -----------------------------------------------------------------------------------------------

TEST_CASE("a captured graph follows the numbers of its step") {
  NEEDS_GPU();
  device& d = device::get();
  const std::int64_t n = 1000;
  problem p{dropout, {values(dense({n}), 1, 2)}, dense({n})};
  p.f = 0.5;
  p.env.seed = 11;
  call c = p.make_call();
  device_bytes x(n * sizeof(double)), y(n * sizeof(double));
  x.upload(p.in[0].v.data());
  c.p[0] = x.data();
  c.p[rt::result] = y.data();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cu::check(cudaStreamBeginCapture(d.ctx.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cu::launcher_of<double>(dropout)(c, d.ctx);
  cu::check(cudaStreamEndCapture(d.ctx.stream, &graph), "cudaStreamEndCapture");
  cu::check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  for (const std::int64_t step : {1, 2, 3}) {
    p.env.step = step;
    cu::set_env(p.env, d.env, d.ctx.stream);
    cu::check(cudaGraphLaunch(exec, d.ctx.stream), "cudaGraphLaunch");
    d.sync();
    std::vector<double> out(n);
    y.download(out.data());
    CHECK(difference(out, on_host<dropout>(p).out) <= 1e-12);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_CASE("tensors of more than 2^31 elements") {
  NEEDS_GPU();
  device& d = device::get();
  const std::int64_t n = (std::int64_t{1} << 31) + 4099;
  std::size_t free = 0, total = 0;
  cu::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  if (free < static_cast<std::size_t>(n) * 4 + (std::size_t{1} << 30)) {
    std::puts("too little device memory for 2^31 elements, skipped");
    return;
  }
  device_bytes x(static_cast<std::size_t>(n) * 4), y(8), scratch(8192);
  call c;
  c.l[rt::result] = dense({n});
  c.p[rt::result] = x.data();
  c.f = 1.5;
  cu::launcher_of<float>(fill)(c, d.ctx);
  call s;
  s.inputs = 1;
  s.l[0] = dense({n});
  s.p[0] = x.data();
  s.l[rt::result] = dense({});
  s.p[rt::result] = y.data();
  s.a = {{1, 0, 0, 0, 0, 0}};
  s.workspace = scratch.data();
  cu::launcher_of<float>(sumsq)(s, d.ctx);
  d.sync();
  double out = 0;
  float got = 0;
  y.download(&out);
  std::memcpy(&got, &out, sizeof(got));
  CHECK(got == static_cast<float>(2.25 * static_cast<double>(n)));
  CHECK(x.intact());
  CHECK(scratch.intact());
}

}  // namespace device_kernels
