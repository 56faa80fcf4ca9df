# SPDX-License-Identifier: Apache-2.0
"""Statements of the functions that stand beside the umbrella header (shardwise/more_functions.hpp), with their values."""

import math
from fractions import Fraction

import interpret as py
from statements import partner, places, skip, statement

# name, value, the points where it jumps or bends, whether differences see its gradient everywhere else, text
ELEMENTWISE = [
    ("floor", math.floor, lambda v: [round(v)], False, "sw::floor({0})"),
    ("ceil", math.ceil, lambda v: [round(v)], False, "sw::ceil({0})"),
    ("round", round, lambda v: [math.floor(v) + 0.5], False, "sw::round({0})"),
    ("erf", math.erf, None, True, "sw::erf({0})"),
    ("expm1", math.expm1, None, True, "sw::expm1({0})"),
    ("log1p", math.log1p, None, True, "sw::log1p({0})"),
    ("softplus", lambda v: math.log1p(math.exp(v)), None, True, "sw::softplus({0})"),
    ("softplus", lambda v: math.log1p(math.exp(2 * v)) / 2, None, True, "sw::softplus<sw::softplus_options{{.beta = 2}}>({0})"),
    ("log_sigmoid", lambda v: -math.log1p(math.exp(-v)), None, True, "sw::log_sigmoid({0})"),
    ("leaky_relu", lambda v: v if v > 0 else 0.125 * v, lambda v: [0], True, "sw::leaky_relu({0}, 0.125)"),
    ("elu", lambda v: v if v > 0 else 0.5 * math.expm1(v), lambda v: [0], True, "sw::elu({0}, 0.5)"),
]


def add_elementwise(name, f, bends, sloped, text):
    @statement([name], 0.2, smooth=sloped and bends is None and name != "log1p")
    def write(g):
        t = g.pick()
        v = t.array.flat()
        skip(g.special or any(abs(x) > 6 for x in v))
        skip(name == "log1p" and any(x < -0.9 for x in v))
        skip(g.gradient and not sloped)
        for x in v:
            if bends:
                g.apart([x], bends(x), t.exact)
        g.apply(text, [t], lambda a: py.pointwise(lambda x: float(f(x)), a), g.single(t), exact=not sloped)


for _row in ELEMENTWISE:
    add_elementwise(*_row)

GATED = {"swiglu": lambda x: x * py.sigmoid(x), "geglu": py.gelu, "reglu": lambda x: max(x, 0.0)}


def add_gated(name):
    @statement([name], 0.2, smooth=name != "reglu")
    def write(g):
        gate = g.pick()
        up = partner(g, gate)
        skip(g.special or any(abs(x) > 6 for x in gate.array.flat()))
        if name == "reglu":
            g.apart(gate.array.flat(), [0], gate.exact)
        g.apply(f"sw::{name}({{0}}, {{1}})", [gate, up], lambda x, y: py.pointwise(lambda u, v: GATED[name](u) * v, x, y),
                g.broadcast_rows([gate, up]))


for _name in GATED:
    add_gated(_name)


@statement(["glu"], 0.3)
def halves(g):
    t = g.pick(lambda t: any(n % 2 == 0 and n > 0 for n in t.shape))
    skip(g.special)
    dim = g.r.choice([d for d in range(t.rank) if t.shape[d] % 2 == 0 and t.shape[d] > 0])
    half = t.shape[dim] // 2
    g.apply(f"sw::glu<{dim if g.chance(0.5) else dim - t.rank}>({{0}})", [t],
            lambda a: py.pointwise(lambda u, v: u * py.sigmoid(v), py.narrow(a, dim, 0, half), py.narrow(a, dim, half, half)),
            g.single(t, drop=[dim]))


LOGICAL = {"logical_and": lambda a, b: int(a != 0 and b != 0), "logical_or": lambda a, b: int(a != 0 or b != 0),
           "logical_xor": lambda a, b: int((a != 0) != (b != 0))}


def add_logical(name):
    @statement([name], 0.25)
    def write(g):
        a = g.pick(real=None if g.chance(0.4) else False)
        b = partner(g, a, real=False)
        skip(a.real and not a.exact)  # whether a number is 0
        g.apply(f"sw::{name}({{0}}, {{1}})", [a, b], lambda x, y: py.pointwise(LOGICAL[name], x, y), g.broadcast_rows([a, b]),
                dtype="int", exact=True, implicit=False)


for _name in LOGICAL:
    add_logical(_name)

QUESTIONS = {"isnan": py.is_nan, "isinf": math.isinf, "isfinite": math.isfinite, "logical_not": lambda v: v == 0}


def add_question(name):
    @statement([name], 0.2)
    def write(g):
        a = g.pick(real=None)
        skip(a.real and not a.exact and name == "logical_not")
        g.apply(f"sw::{name}({{0}})", [a], lambda x: py.pointwise(lambda v: int(QUESTIONS[name](v)), x), g.single(a), dtype="int",
                exact=True, implicit=False)


for _name in QUESTIONS:
    add_question(_name)


def add_quantifier(name):
    @statement([name], 0.25)
    def write(g):
        t = g.pick(lambda t: t.rank > 0, real=False)
        dim = g.r.randrange(t.rank)
        keep = g.chance(0.4)
        shape = [1 if d == dim else n for d, n in enumerate(t.shape)] if keep else t.shape[:dim] + t.shape[dim + 1:]
        f = {"any": any, "all": all}[name]

        def value(a):
            lines = [[a.at(*i[:dim], k, *i[dim:]) != 0 for k in range(a.shape[dim])]
                     for i in py.indices(a.shape[:dim] + a.shape[dim + 1:])]
            return py.new(shape, [int(f(line)) for line in lines])
        places = {d: d if keep or d < dim else d - 1 for d in range(t.rank)}
        g.apply(f"sw::{name}<{dim}>({{0}}{', sw::keepdim' if keep else ''})", [t], value, g.single(t, dims=places, drop=[dim]),
                dtype="int", exact=True, implicit=False)


for _name in ("any", "all"):
    add_quantifier(_name)


# --- norms over channels ------------------------------------------------------------------------------------------------------


def normed_sets(x, set_of, w, b):
    """(x - mean) / sqrt(variance + eps) of the elements that have one set, weighted by channel."""
    places_of = {}
    for i in py.indices(x.shape):
        places_of.setdefault(set_of(i), []).append(x.at(*i))
    known = {s: (py.mean(v), math.sqrt(py.variance(v, 0) + 1e-5)) for s, v in places_of.items()}
    return py.new(x.shape, [(x.at(*i) - known[set_of(i)][0]) / known[set_of(i)][1] * w.at(i[1]) + b.at(i[1]) for i in py.indices(x.shape)])


def spread(x, set_of):
    sets = {}
    for i in py.indices(x.shape):
        sets.setdefault(set_of(i), []).append(x.at(*i))
    return all(len(v) > 1 and py.variance(v, 0) >= 0.05 for v in sets.values())


def channel_rows(n, channels):
    R, U, S, P = places()
    rows = [([R()] * (n + 1), R()), ([U()] * (n + 1), U()), ([S(0)] + [U()] * n, S(0))]
    return rows + ([([S(1)] + [S(0)] * n, S(1))] if channels else [])


@statement(["group_norm"], 0.3, smooth=True)
def grouped(g):
    skip(g.special)
    t = g.pick(lambda t: t.rank >= 2 and all(n > 0 for n in t.shape))
    channels = t.shape[1]
    groups = g.r.choice([n for n in range(1, channels + 1) if channels % n == 0])
    each = channels // groups
    skip(not spread(t.array, lambda i: (i[0], i[1] // each)))
    w, b = g.new_input([channels]), g.new_input([channels])
    g.apply(f"sw::group_norm<{groups}>({{0}}, {{1}}, {{2}})", [t, w, b],
            lambda x, u, v: normed_sets(x, lambda i: (i[0], i[1] // each), u, v), channel_rows(2, each == 1))


@statement(["batch_norm"], 0.3, smooth=True)
def batch_normed(g):
    skip(g.special)
    t = g.pick(lambda t: t.rank >= 2 and all(n > 0 for n in t.shape))
    w, b, m = (g.new_input([t.shape[1]]) for _ in range(3))
    if g.chance(0.5):  # running statistics that nothing else sees are written
        skip(not spread(t.array, lambda i: i[1]))
        given = "sw::batch_norm_options{{.training = true}}"  # format's
        return g.apply(f"sw::batch_norm<{given}>({{0}}, {{3}} * 1.0, {{3}} * 2.0, {{1}}, {{2}})", [t, w, b, m],
                       lambda x, u, v, _: normed_sets(x, lambda i: i[1], u, v), channel_rows(3, True), implicit=False)

    def value(x, u, v, n):
        return py.new(x.shape, [(x.at(*i) - n.at(i[1])) / math.sqrt(n.at(i[1]) ** 2 + 0.5 + 1e-5) * u.at(i[1]) + v.at(i[1])
                                for i in py.indices(x.shape)])
    g.apply("sw::batch_norm({0}, {3}, {3} * {3} + 0.5, {1}, {2})", [t, w, b, m], value, channel_rows(3, True))


# --- images at another size -------------------------------------------------------------------------------------------------------


def neighbours(mode, t, n, out, step):
    """(pixel, weight) of what pixel t of `out` is made; step: pixels of the n for one of the result."""
    if mode == "nearest":
        return [(min(int(t * step), n - 1), 1.0)]
    at = t * Fraction(n - 1, max(out - 1, 1)) if mode == "corners" else max(Fraction(0), (t + Fraction(1, 2)) * step - Fraction(1, 2))
    low = min(int(at), n - 1)
    high = min(low + 1, n - 1)
    return [(low, float(1 - (at - low))), (high, float(at - low))]


@statement(["interpolate"], 0.4, smooth=True)
def resized(g):
    skip(g.special)
    t = g.new_input([g.r.choice([1, 2, 3]), g.r.choice([1, 2, 3]), g.r.choice([1, 2, 3]), g.r.choice([2, 3, 4])])
    n, c, *of = t.shape
    mode = g.r.choice(["nearest", "bilinear", "corners"])
    if g.chance(0.5):
        to = [g.r.choice([1, 2, 3, 4]) for _ in range(2)]
        step = [Fraction(a, b) for a, b in zip(of, to)]
        given = f"{to[0]}, {to[1]}"
    else:
        by = [g.r.choice([Fraction(2), Fraction(1), Fraction(3, 2), Fraction(2, 3), Fraction(1, 2)]) for _ in range(2)]
        to = [int(a * f) for a, f in zip(of, by)]
        skip(0 in to)
        step = [1 / f for f in by]
        given = "sw::scale_factor(" + ", ".join(f"sw::scale_ratio({f.numerator}, {f.denominator})" for f in by) + ")"
    if mode != "nearest":
        given += ", sw::interpolate_options{{sw::interpolation::bilinear, " + ("true" if mode == "corners" else "false") + "}}"  # format's

    def value(x):
        out = []
        for i, k, u, v in py.indices([n, c, *to]):
            rows, columns = (neighbours(mode, w, of[d], to[d], step[d]) for d, w in enumerate((u, v)))
            out.append(sum(x.at(i, k, r, s) * p * q for r, p in rows for s, q in columns))
        return py.new([n, c, *to], out)
    R, U, S, P = places()
    g.apply(f"sw::interpolate<{given}>({{0}})", [t], value, [([p], p) for p in (R(), U(), S(0), S(1), P())], exact=mode == "nearest")


# --- losses -----------------------------------------------------------------------------------------------------------------


def smooth_l1(d, beta):
    return d * d / (2 * beta) if abs(d) < beta else abs(d) - beta / 2


LOSSES = {
    "mse_loss": (lambda x, y: (x - y) ** 2, "", None),
    "l1_loss": (lambda x, y: abs(x - y), "", [0]),
    "smooth_l1_loss": (lambda x, y: smooth_l1(x - y, 0.5), ", 0.5", [-0.5, 0, 0.5]),
    "huber_loss": (lambda x, y: 0.5 * smooth_l1(x - y, 0.5), ", 0.5", [-0.5, 0, 0.5]),
    "binary_cross_entropy_with_logits": (lambda x, y: max(x, 0.0) - x * y + math.log1p(math.exp(-abs(x))), "", None),
    "kl_div": (lambda x, y: y * (math.log(y) - x), "", None),
    "kl_div_log_target": (lambda x, y: math.exp(y) * (y - x), "", None),
}


def add_loss(name):
    f, more, bends = LOSSES[name]

    @statement([name], 0.2)
    def write(g):
        x = g.pick()
        y = partner(g, x)
        skip(g.special or any(abs(v) > 6 for v in x.array.flat() + y.array.flat()))
        skip(name == "kl_div" and any(v < 0.1 for v in y.array.flat()))
        if bends:
            g.apart(py.pointwise(lambda a, b: a - b, x.array, y.array).flat(), bends, x.exact and y.exact)
        g.apply(f"sw::{name}<sw::loss_reduction::none>({{0}}, {{1}}{more})", [x, y], lambda a, b: py.pointwise(f, a, b),
                g.broadcast_rows([x, y]))


for _name in LOSSES:
    add_loss(_name)


@statement(["cross_entropy_rows", "cross_entropy"], 0.4)
def options_of_cross_entropy(g):
    x = g.pick(lambda t: t.rank >= 1 and t.shape[-1] >= 1)
    skip(g.special or any(abs(v) > 6 for v in x.array.flat()))
    target = g.new_input(x.shape[:-1], "int", below=x.shape[-1])
    share = g.r.choice([0.0, 0.25, 1.0])
    n = x.shape[-1]

    def value(a, t):
        out = []
        for i in py.indices(a.shape[:-1]):
            row = [a.at(*i, c) for c in range(n)]
            top = math.log(sum(math.exp(v) for v in row))
            out.append((1 - share) * (top - row[int(t.at(*i))]) + share / n * sum(top - v for v in row))
        return py.new(a.shape[:-1], out)
    R, U, S, P = places()
    rows = [([R(), R()], R()), ([U(), R()], U())] + [([S(d), S(d)], S(d)) for d in range(x.rank - 1)]
    g.apply(f"sw::cross_entropy_rows({{0}}, {{1}}, sw::label_smoothing{{{{{share!r}}}}})", [x, target], value, rows, implicit=False)


# --- other orders -------------------------------------------------------------------------------------------------------------


def line_dim(g, t):
    dims = [d for d in range(t.rank) if t.shape[d] > 0]
    skip(not dims)
    return g.r.choice(dims)


def rearranged(a, f):
    return py.new(a.shape, [f(i) for i in py.indices(a.shape)])


@statement(["cumsum"], 0.4, smooth=True)
def running(g):
    t = g.pick(lambda t: t.rank > 0)
    skip(g.special)
    d = line_dim(g, t)
    g.apply(f"sw::cumsum<{d}>({{0}})", [t],
            lambda a: rearranged(a, lambda i: sum(a.at(*i[:d], k, *i[d + 1:]) for k in range(i[d] + 1))),
            g.single(t, linear=True, drop=[d]), implicit=False)


@statement(["roll"], 0.3, smooth=True)
def rolled(g):
    t = g.pick(lambda t: t.rank > 0)
    d = line_dim(g, t)
    n, by = t.shape[d], g.r.choice([-4, -1, 0, 1, 2, 5])
    g.apply(f"sw::roll<{d}, {by}>({{0}})", [t], lambda a: rearranged(a, lambda i: a.at(*i[:d], (i[d] - by) % n, *i[d + 1:])),
            g.single(t, drop=[d]), exact=True, implicit=False)


@statement(["flip"], 0.3, smooth=True)
def flipped(g):
    t = g.pick(lambda t: t.rank > 0)
    d = line_dim(g, t)
    g.apply(f"sw::flip<{d}>({{0}})", [t], lambda a: rearranged(a, lambda i: a.at(*i[:d], t.shape[d] - 1 - i[d], *i[d + 1:])),
            [r for r in g.single(t, drop=[d]) if r[1][0] != "U"], exact=True, implicit=False)


@statement(["tile"], 0.3, smooth=True)
def tiled(g):
    t = g.pick(lambda t: 0 < t.rank < 4)
    d = line_dim(g, t)
    counts = [2 if k == d else 1 for k in range(t.rank)]
    shape = [n * c for n, c in zip(t.shape, counts)]
    g.apply(f"sw::tile<{', '.join(map(str, counts))}>({{0}})", [t],
            lambda a: py.new(shape, [a.at(*[k % n for k, n in zip(i, t.shape)]) for i in py.indices(shape)]),
            g.single(t, drop=[d]), exact=True, implicit=False)


@statement(["einsum"], 0.4, smooth=True)
def by_letters(g):
    a = g.pick(lambda t: t.rank == 2)
    skip(g.special)
    b = g.new_input([g.r.choice([2, 3]), a.shape[1]])
    R, U, S, P = places()
    g.apply('sw::einsum<"ij,kj->ki">({0}, {1})', [a, b],
            lambda x, y: py.new([y.shape[0], x.shape[0]],
                                [sum(x.at(i, j) * y.at(k, j) for j in range(x.shape[1])) for k in range(y.shape[0]) for i in range(x.shape[0])]),
            [([R(), R()], R()), ([U(), U()], U()), ([S(0), U()], S(1)), ([U(), S(0)], S(0)), ([S(1), S(1)], P()), ([P(), U()], P())],
            exact=True)


# --- key/value caches: no gradient flows through one ----------------------------------------------------------------------------


def positions_of(g, batch, below):
    return g.new_input([batch], "int", below=below)


@statement(["cache_update"], 0.3, needs=("no_gradient",))
def cached_rows(g):
    skip(g.special)
    R, U, S, P = places()
    d = g.r.choice([1, 2])
    shape = [2, 3, 3, 2]
    cache, rows, at = g.new_input(shape), g.new_input([2 if k == d else n for k, n in enumerate(shape)]), positions_of(g, 2, 2)

    def value(c, r, p):
        out = c.copy()
        for i in py.indices(r.shape):
            to = list(i)
            to[d] += int(p.at(i[0]))
            py.put(out, to, r.at(*i))
        return out

    table = [([p, p, R()], p) for p in (R(), U(), P())] + [([S(0)] * 3, S(0))]
    table += [([S(k), S(k), R()], S(k)) for k in (1, 2, 3) if k != d]
    g.apply(f"sw::cache_update<{d}>({{0}}, {{1}}, {{2}})", [cache, rows, at], value, table, exact=True, implicit=False)


@statement(["cached_attention"], 0.3, needs=("no_gradient",))
def attended_so_far(g):
    skip(g.special)
    bthd, grouped, window = g.chance(0.5), g.chance(0.3), g.r.choice([0, 0, 1, 2])
    shape = lambda heads, time, size: [2, time, heads, size] if bthd else [2, heads, time, size]
    q, k, at = g.new_input(shape(4 if grouped else 2, 2, 2)), g.new_input(shape(2, 4, 2)), positions_of(g, 2, 3)
    v = g.new_input(shape(2, 4, g.r.choice([2, 3])))
    R, U, S, P = places()
    head, time = (2, 1) if bthd else (1, 2)
    rows = [([R()] * 4, R()), ([U(), U(), U(), R()], U()), ([S(0)] * 4, S(0)), ([S(time), U(), U(), R()], S(time)),
            ([U(), U(), S(3), R()], S(3))]
    if not grouped:
        rows.append(([S(head)] * 3 + [R()], S(head)))
    options = "sw::attention_options{{" + f".layout = sw::head_layout::{'bthd' if bthd else 'bhtd'}, " + \
        f".enable_gqa = {'true' if grouped else 'false'}, .window = {window}" + "}}"  # format's
    g.apply(f"sw::cached_attention<{options}>({{0}}, {{1}}, {{2}}, {{3}})", [q, k, v, at],
            lambda a, b, c, p: py.attention(a, b, c, True, bthd, window, [int(x) for x in p.flat()]), rows, implicit=False)


@statement(["rotary_embedding"], 0.2, needs=("no_gradient",))
def turned_from(g):
    skip(g.special)
    bthd, interleaved = g.chance(0.5), g.chance(0.5)
    x, at = g.new_input([2, 3, 2, g.r.choice([2, 4])]), positions_of(g, 2, 9)
    R, U, S, P = places()
    rows = [([p, S(0) if p == S(0) else R()], p) for p in (R(), U(), P(), S(0), S(1), S(2))]
    options = "sw::rotary_options{{" + f".layout = sw::head_layout::{'bthd' if bthd else 'bhtd'}, " + \
        f".form = sw::rotary_form::{'interleaved' if interleaved else 'half_split'}, .base = 100" + "}}"  # format's
    g.apply(f"sw::rotary_embedding<{options}>({{0}}, {{1}})", [x, at],
            lambda a, p: py.rotary(a, 1 if bthd else 2, interleaved, [int(n) for n in p.flat()]), rows, implicit=False)


@statement(["position_ids"], 0.2, needs=("no_gradient",))
def counted(g):
    R, U, S, P = places()
    ids, at = g.new_input([2, 3], "int", below=5), positions_of(g, 2, 9)
    g.apply("sw::position_ids({0}, {1})", [ids, at],
            lambda a, p: py.new(a.shape, [int(p.at(b)) + t for b, t in py.indices(a.shape)]),
            [([R(), R()], R()), ([S(0), S(0)], S(0)), ([S(1), R()], S(1))], dtype="int", exact=True, implicit=False)
