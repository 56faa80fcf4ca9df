# SPDX-License-Identifier: Apache-2.0
"""The statements that the generator knows: (public functions used, weight, writer, needs). A writer takes the generator,
writes one statement or a few, or raises Skip. Every public function of the headers is named here or in registry.py."""

import json
import math

import interpret as py
from interpret import NAN, new

STATEMENTS = []
SMOOTH = []   # for programs whose numbers are drawn: no jumps, no bends
WRITES = []


def statement(names, weight=1.0, smooth=False, needs=()):
    def add(f):
        entry = (tuple(names), weight, f, tuple(needs))
        STATEMENTS.append(entry)
        if smooth:
            SMOOTH.append(entry)
        return f
    return add


def skip(condition):
    from generate import Skip
    if condition:
        raise Skip


def places():
    from generate import P, R, S, U
    return R, U, S, P


# --- elementwise ------------------------------------------------------------------------------------------------------------

KINKS = {"relu": [0], "abs": [0], "sign": [0]}
EXACT = {"relu", "abs", "sign", "neg", "square"}


def unary_ready(g, op, t):
    v = [x for x in t.array.flat() if not py.is_nan(x)]
    g.apart(v, KINKS.get(op, []), t.exact)
    if not g.special:
        if op in ("log", "sqrt", "rsqrt"):
            skip(any(x < 0.05 for x in v))
        if op == "reciprocal":
            skip(any(abs(x) < 0.1 for x in v))
        if op == "exp":
            skip(any(abs(x) > 4 for x in v))
    skip(g.gradient and op == "sign")


def unary_text(g, op):
    if op == "gelu":
        return g.r.choice(["sw::gelu({0})", "sw::gelu<sw::gelu_form::erf>({0})"])
    if op == "gelu_tanh":
        return "sw::gelu<sw::gelu_form::tanh>({0})"
    if op == "neg" and g.chance(0.5):
        return "-{0}"
    return f"sw::{op}({{0}})"


def add_unary(op):
    smooth = op in ("tanh", "sigmoid", "sin", "cos", "silu", "gelu", "neg", "square")
    name = "gelu" if op == "gelu_tanh" else op

    @statement([name], 0.35, smooth=smooth)
    def write(g):
        t = g.pick()
        unary_ready(g, op, t)
        g.apply(unary_text(g, op), [t], lambda a: py.pointwise(py.UNARY[op], a), g.single(t, linear=op == "neg"), exact=op in EXACT,
                names=["operator-"] if op == "neg" else [])

    def over(g, t):
        skip(not t.real or (op != "neg" and any(p[0] == "P" for p in t.place)))
        if op in ("log", "sqrt", "rsqrt", "reciprocal") and not g.special:
            g.apart(t.array.flat(), [0], t.exact)
            g.in_place("sw::abs_({0})", t, [], lambda a: [abs(v) for v in a.flat()], ["abs_"])
            g.in_place("sw::add_({0}, 0.5)", t, [], lambda a: [v + 0.5 for v in a.flat()], ["add_"])
        unary_ready(g, op, t)
        text = {"gelu_tanh": "sw::gelu_<sw::gelu_form::tanh>({0})"}.get(op, f"sw::{op}_({{0}})")
        g.in_place(text, t, [], lambda a: py.pointwise(py.UNARY[op], a).flat(), [name + "_"], exact=op in EXACT)
    WRITES.append(over)


for _op in py.UNARY:
    add_unary(_op)


def no_partial(t):
    return all(p[0] != "P" for p in t.place)


@statement(["scale", "operator*", "div", "operator/"], 1.5, smooth=True)
def scaled(g):
    t = g.pick()
    n = g.number()
    text, f = g.r.choice([("sw::scale({0}, N)", lambda v: v * n), ("{0} * N", lambda v: v * n), ("N * {0}", lambda v: n * v),
                          ("sw::div({0}, N)", lambda v: v / n), ("{0} / N", lambda v: v / n)])
    g.apply(text.replace("N", repr(n)), [t], lambda a: py.pointwise(f, a), g.single(t, linear=True), exact=n in (2.0, -2.0, 0.5, -0.5, 0.25) or "/" not in text and "div" not in text)


@statement(["add", "operator+", "operator-"], 1.5, smooth=True)
def shifted(g):
    t = g.pick()
    n = g.number()
    text, f = g.r.choice([("sw::add({0}, N)", lambda v: v + n), ("{0} + N", lambda v: v + n), ("N + {0}", lambda v: v + n),
                          ("{0} - N", lambda v: v - n), ("N - {0}", lambda v: n - v)])
    g.apply(text.replace("N", repr(n)), [t], lambda a: py.pointwise(f, a), g.single(t), exact=True)


@statement(["operator/"], 0.3)
def divided(g):
    t = g.pick()
    skip(not g.special and any(abs(v) < 0.1 for v in t.array.flat()))
    n = g.number()
    g.apply(f"{n!r} / {{0}}", [t], lambda a: py.pointwise(lambda v: py.division(n, v) if not py.is_nan(v) else v, a), g.single(t))


@statement(["pow"], 0.4)
def power(g):
    t = g.pick()
    n = g.r.choice([2.0, 3.0, 0.5, -1.0, 1.5])
    skip(g.special)
    if n != int(n) or n < 0:
        skip(any(v < 0.1 for v in t.array.flat()))
    g.apply(f"sw::pow({{0}}, {n!r})", [t], lambda a: py.pointwise(lambda v: v ** n, a), g.single(t))


@statement(["clamp", "clamp_min", "clamp_max"], 0.8)
def clamped(g):
    t = g.pick()
    low, high = sorted(g.r.sample([-1.0, -0.5, 0.25, 0.75, 1.5], 2))
    g.apart(t.array.flat(), [low, high], t.exact)
    text, f = g.r.choice([(f"sw::clamp({{0}}, {low!r}, {high!r})", lambda v: py.clamp_max(py.clamp_min(v, low), high)),
                          (f"sw::clamp_min({{0}}, {low!r})", lambda v: py.clamp_min(v, low)),
                          (f"sw::clamp_max({{0}}, {high!r})", lambda v: py.clamp_max(v, high))])
    g.apply(text, [t], lambda a: py.pointwise(f, a), g.single(t), exact=True)


@statement(["cast"], 0.5)
def converted(g):
    """To another type and back. Where rounding jumps, numbers that are rounded themselves may fall on either side: exact ones alone.
    What goes back through a cast is cast, too, and no difference of the staircase that elements of two bytes are: where gradients are
    asked for, a type that keeps what is exact, or one of whole numbers away from its jumps."""
    t = g.pick()
    skip(not t.exact or g.special)
    whole = [("std::int32_t", math.trunc), ("bool", lambda v: float(v != 0))]
    if g.gradient:
        low, f = g.r.choice([("float" if g.p.dtype == "double" else "double", lambda v: v)] + whole)
    else:
        low, f = g.r.choice([("sw::bf16", py.to_bf16), ("sw::f16", py.to_f16)] + whole)
    v = t.array.flat()
    if low in ("sw::f16", "std::int32_t"):
        skip(any(abs(x) > 60000 for x in v))
    if low == "std::int32_t":
        for x in v:
            g.apart([x], [round(x)], t.exact)
    if low == "bool":
        g.apart(v, [0], t.exact)
    R, U, _, _ = places()
    rows = [(i, R() if low in ("std::int32_t", "bool") and o == U() else o) for i, o in g.single(t)]  # whole numbers have no gradients
    g.apply(f"sw::cast<{g.p.dtype}>(sw::cast<{low}>({{0}}))", [t], lambda a: py.pointwise(lambda x: float(f(x)), a), rows, exact=True)


def fits(a, b):
    """b broadcasts with a."""
    for x, y in zip(reversed(a.shape), reversed(b.shape)):
        if x != y and x != 1 and y != 1:
            return False
    return True


def partner(g, t, real=True):
    found = g.tensors(lambda o: o.real == real and fits(t, o) and py.numel(py.broadcast_shape([t.shape, o.shape])) <= 60)
    skip(not found)
    return g.r.choice(found)


BINARY = {
    "add": (lambda a, b: a + b, "joint", ["sw::add({0}, {1})", "{0} + {1}"], ["operator+"]),
    "sub": (lambda a, b: a - b, "joint", ["sw::sub({0}, {1})", "{0} - {1}"], ["operator-"]),
    "mul": (lambda a, b: a * b, "each", ["sw::mul({0}, {1})", "{0} * {1}"], ["operator*"]),
    "div": (py.division, "first", ["sw::div({0}, {1})", "{0} / {1}"], ["operator/"]),
    "call": (lambda x, y: math.tanh(x) * y, "none", ["sw::call<fuzz::gate>({0}, {1})"], []),
    "maximum": (py.maximum, "none", ["sw::maximum({0}, {1})"], []),
    "minimum": (py.minimum, "none", ["sw::minimum({0}, {1})"], []),
}


def add_binary(op):
    f, linear, texts, more = BINARY[op]

    @statement([op], 1.2 if op in ("add", "mul", "sub") else 0.4, smooth=op in ("add", "sub", "mul", "call"))
    def write(g):
        a = g.pick()
        b = partner(g, a)
        if op == "div":
            skip(not g.special and any(abs(v) < 0.1 for v in b.array.flat()))
        if op in ("maximum", "minimum"):
            gaps = py.pointwise(lambda x, y: x - y, a.array, b.array).flat()
            g.apart(gaps, [0], a.exact and b.exact)
        g.apply(g.r.choice(texts), [a, b], lambda x, y: py.pointwise(f, x, y), g.broadcast_rows([a, b], linear), exact=op not in ("div", "call"),
                names=more)


for _op in BINARY:
    add_binary(_op)


@statement(["lerp"], 0.4)
def mixed(g):
    a = g.pick()
    b = partner(g, a)
    w = g.r.choice([0.25, 0.75])
    g.apply(f"sw::lerp({{0}}, {{1}}, {w!r})", [a, b], lambda x, y: py.pointwise(lambda u, v: u + w * (v - u) if w < 0.5 else v - (1 - w) * (v - u), x, y),
            g.broadcast_rows([a, b]), exact=not g.special)


def add_compare(op):
    f = py.COMPARE[op]

    @statement([op], 0.25)
    def tensors(g):
        real = not g.chance(0.3)
        a = g.pick(real=real)
        b = partner(g, a, real)
        if real:
            g.apart(py.pointwise(lambda x, y: x - y, a.array, b.array).flat(), [0], a.exact and b.exact)
        g.apply(f"sw::{op}({{0}}, {{1}})", [a, b], lambda x, y: py.pointwise(f, x, y), g.broadcast_rows([a, b]), dtype="int", exact=True)

    @statement([op], 0.35)
    def number(g):
        real = not g.chance(0.4)
        a = g.pick(real=real)
        n = g.r.choice([-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.25, 2.0, 2.5])
        if real:
            g.apart(a.array.flat(), [n], a.exact)
        elif g.chance(0.1):
            n = 3e9
        g.apply(f"sw::{op}({{0}}, {n!r})", [a], lambda x: py.pointwise(lambda v: f(v, n), x), g.single(a), dtype="int", exact=True)


for _op in py.COMPARE:
    add_compare(_op)


def where_rows(g, m, a, b):
    rows = [r for r in g.broadcast_rows([m, a, b])]
    return rows


@statement(["where"], 0.8)
def chosen(g):
    m = g.pick(real=False)
    a = partner(g, m)
    b = partner(g, a)
    skip(not fits(m, b))
    skip(py.numel(py.broadcast_shape([m.shape, a.shape, b.shape])) > 60)
    g.apply("sw::where({0}, {1}, {2})", [m, a, b], lambda k, x, y: py.pointwise(lambda c, u, v: u if c else v, k, x, y),
            where_rows(g, m, a, b), exact=True)


@statement(["masked_fill"], 0.5)
def filled(g):
    m = g.pick(real=False)
    a = partner(g, m)
    n = g.number()
    g.apply(f"sw::masked_fill({{0}}, {{1}}, {n!r})", [a, m],
            lambda x, k: py.pointwise(lambda u, c: n if c else u, x, k), g.broadcast_rows([a, m]), exact=True)


# --- products ---------------------------------------------------------------------------------------------------------------


def product_rows(g, a, b, k_a, k_b, free_a, free_b, out_rank, batch=()):
    R, U, S, P = places()
    rows = [([R(), R()], R()), ([U(), U()], U()), ([S(k_a), S(k_b)], P()), ([P(), U()], P()), ([U(), P()], P())]
    for d in free_a:
        rows.append(([S(d), U()], S(d)))
    rows.append(([U(), S(free_b)], S(out_rank - 1)))
    for d in batch:
        rows.append(([S(d), S(d)], S(d)))
    return rows


@statement(["matmul"], 1.5, smooth=True)
def multiplied(g):
    a = g.pick(lambda t: t.rank >= 2)
    found = g.tensors(lambda t: t.real and t.rank >= 2 and t.shape[-2] == a.shape[-1] and (t.rank == 2 or t.shape[:-2] == a.shape[:-2]))
    b = g.r.choice(found) if found and g.chance(0.7) else g.new_input([a.shape[-1], g.r.choice([2, 3, 4])])
    skip(g.special)
    if b.rank == 2:
        rows = product_rows(g, a, b, a.rank - 1, 0, range(a.rank - 1), 1, a.rank)
    else:
        rows = product_rows(g, a, b, a.rank - 1, b.rank - 2, [a.rank - 2], b.rank - 1, a.rank, range(a.rank - 2))
    g.apply("sw::matmul({0}, {1})", [a, b], py.matmul, rows, exact=True)


@statement(["linear_product"], 0.8, smooth=True)
def projected(g):
    x = g.pick(lambda t: t.rank >= 1)
    skip(g.special)
    w = g.new_input([g.r.choice([2, 3, 4, 6]), x.shape[-1]])
    g.apply("sw::linear_product({0}, {1})", [x, w], py.linear, product_rows(g, x, w, x.rank - 1, 1, range(x.rank - 1), 0, x.rank), exact=True)


@statement(["conv2d"], 0.4, smooth=True)
def windows(g):
    skip(g.special)
    groups = g.r.choice([1, 1, 1, 2])
    c, o = g.r.choice([2, 4]), g.r.choice([2, 4, 6])
    x = g.new_input([g.r.choice([1, 2, 3]), c, g.r.choice([3, 4]), g.r.choice([2, 3])])
    w = g.new_input([o, c // groups, g.r.choice([1, 2, 3]), g.r.choice([1, 2])])
    stride, padding, dilation = g.r.choice([1, 2]), g.r.choice([0, 1, "same"]), g.r.choice([1, 1, 2])
    skip(padding == "same" and stride != 1)
    skip(padding != "same" and any(x.shape[2 + d] + 2 * padding < dilation * (w.shape[2 + d] - 1) + 1 for d in range(2)))
    R, U, S, P = places()
    rows = [([R(), R()], R()), ([U(), U()], U()), ([S(0), U()], S(0)), ([P(), U()], P()), ([U(), P()], P())]
    rows += [([S(d), U()], S(d)) for d in (2, 3)]
    if groups == 1:
        rows += [([U(), S(0)], S(1)), ([S(1), S(1)], P())]
    options = "sw::convolution_options{{" + f".stride = {stride}, .padding = {json.dumps(padding)}, .dilation = {dilation}, .groups = {groups}" + "}}"  # format's
    g.apply(f"sw::conv2d<{options}>({{0}}, {{1}})", [x, w], lambda a, b: py.conv2d(a, b, stride, padding, dilation, groups), rows, exact=True, alone=(2, 3))


@statement(["max_pool2d", "max_pool2d_with_indices", "avg_pool2d"], 0.4)
def pooled(g):
    skip(g.special)
    t = g.new_input([g.r.choice([1, 2, 3]), g.r.choice([1, 2, 3]), g.r.choice([3, 4]), g.r.choice([2, 3])])
    kernel, stride = [g.r.choice([1, 2, 3]), g.r.choice([1, 2])], g.r.choice([0, 1, 2])
    padding = g.r.choice([0, 0, 1]) if min(kernel) > 1 else 0
    steps = [stride or k for k in kernel]
    options = "sw::pool_options{{" + f".kernel = {{{{{kernel[0]}, {kernel[1]}}}}}, .stride = {stride}, .padding = {padding}"  # format's
    R, U, S, P = places()
    rows = [([R()], R()), ([U()], U())] + [([S(d)], S(d)) for d in range(4)]
    if g.chance(0.4):
        counted = g.chance(0.5)
        given = options + ("}}" if counted else ", .count_include_pad = false}}")
        return g.apply(f"sw::avg_pool2d<{given}>({{0}})", [t], lambda a: py.pooled(a, kernel, steps, padding, py.mean_of_window(kernel, counted)),
                       rows + [([P()], P())], exact=counted and kernel[0] * kernel[1] in (1, 2, 4), alone=(2, 3))
    for plane in py.reduce(t.array, [2, 3], True, lambda v: v).flat():
        g.distinct(plane, t.exact)
    indices = g.chance(0.4) and not g.gradient
    which = g.r.choice([0, 1]) if indices else 0
    name = "max_pool2d_with_indices" if indices else "max_pool2d"
    member = [".values", ".indices"][which] if indices else ""
    g.apply(f"sw::{name}<{options}}}}}>({{0}}){member}", [t], lambda a: py.pooled(a, kernel, steps, padding, py.largest_of_window(which)), rows,
            dtype="int" if which else g.p.dtype, exact=True, implicit=not indices, alone=(2, 3))


@statement(["scaled_dot_product_attention"], 0.4)
def attended(g):
    skip(g.special)
    bthd = g.chance(0.5)
    causal = g.chance(0.5)
    grouped, window = g.chance(0.3), g.r.choice([0, 0, 1, 2])
    plain = not grouped and not window and g.chance(0.5)
    shape = lambda heads, size: [2, 3, heads, size] if bthd else [2, heads, 3, size]
    q, k, v = g.new_input(shape(4 if grouped else 2, 2)), g.new_input(shape(2, 2)), g.new_input(shape(2, g.r.choice([2, 3])))
    R, U, S, P = places()
    head, time = (2, 1) if bthd else (1, 2)
    rows = [([R()] * 3, R()), ([U()] * 3, U()), ([S(0)] * 3, S(0)), ([S(time), U(), U()], S(time)), ([U(), U(), S(3)], S(3))]
    if not grouped:  # heads of whole groups on every mesh
        rows.append(([S(head)] * 3, S(head)))
    layout = f"sw::head_layout::{'bthd' if bthd else 'bhtd'}"
    causes = "true" if causal else "false"
    options = f"{causes}, {layout}" if plain else "sw::attention_options{{" + \
        f".causal = {causes}, .layout = {layout}, .enable_gqa = {'true' if grouped else 'false'}, .window = {window}" + "}}"  # format's
    g.apply(f"sw::scaled_dot_product_attention<{options}>({{0}}, {{1}}, {{2}})", [q, k, v],
            lambda a, b, c: py.attention(a, b, c, causal, bthd, window), rows, implicit=False)


@statement(["rotary_embedding"], 0.3)
def rotated(g):
    skip(g.special)
    bthd, interleaved, first = g.chance(0.5), g.chance(0.5), g.r.choice([0, 0, 1, 9])
    x = g.new_input([2, 3, 2, g.r.choice([2, 4])])
    R, U, S, P = places()
    rows = [([p], p) for p in (R(), U(), P(), S(0), S(1), S(2))]
    options = "sw::rotary_options{{" + f".layout = sw::head_layout::{'bthd' if bthd else 'bhtd'}, " + \
        f".form = sw::rotary_form::{'interleaved' if interleaved else 'half_split'}, .base = 100" + "}}"  # format's
    g.apply(f"sw::rotary_embedding<{options}>({{0}}, {first})", [x], lambda a: py.rotary(a, 1 if bthd else 2, interleaved, first), rows)


# --- reductions -------------------------------------------------------------------------------------------------------------


def some_dims(g, t):
    if t.rank == 0 or g.chance(0.3):
        return []
    return sorted(g.r.sample(range(t.rank), g.r.randrange(1, t.rank + 1)))


def written_dims(g, t, dims):
    return ", ".join(str(d - t.rank if g.chance(0.3) else d) for d in dims)


def reduction_rows(t, dims, keep, partial, linear=True):
    R, U, S, P = places()
    all_dims = dims or list(range(t.rank))
    rows = [([R()], R()), ([U()], U())]
    for d in range(t.rank):
        if d in all_dims:
            if partial:
                rows.append(([S(d)], P(partial)))
        else:
            rows.append(([S(d)], S(d if keep else d - sum(1 for x in all_dims if x < d))))
    if linear and partial:
        rows.append(([P(partial)], P(partial)))
    return rows


def reduced(g, name, f, partial, exact, ready=None, linear=True, no_keep=False, extra="", t=None):
    t = t or g.pick(lambda x: x.array.flat())
    dims = some_dims(g, t)
    keep = g.chance(0.4) and not no_keep
    if ready:
        ready(g, t, dims)
    which = written_dims(g, t, dims)
    angle = f"<{extra}{', ' if extra and which else ''}{which}>" if which or extra else ""
    g.apply(f"sw::{name}{angle}({{0}}{', sw::keepdim' if keep else ''})", [t], lambda a: py.reduce(a, dims, keep, f),
            reduction_rows(t, dims, keep, partial, linear), exact=exact)


@statement(["sum"], 1.5, smooth=True)
def summed(g):
    reduced(g, "sum", py.total, "sum", True)


@statement(["mean"], 1.0, smooth=True)
def averaged(g):
    reduced(g, "mean", py.mean, "sum", False)


def ordered(g, t, dims):
    for group in py.reduce(t.array, dims, True, lambda v: v).flat():
        if g.gradient or not t.exact:
            g.distinct(group, t.exact)


def add_extreme(name, f, op):
    @statement([name], 0.6)
    def write(g):
        skip(g.special and op != "max" and op != "min")
        # over a sharded dim there is no gradient
        reduced(g, name, f, None if g.gradient or g.special else op, op != "product", ordered if op != "product" else None)


add_extreme("amax", py.largest, "max")
add_extreme("amin", py.smallest, "min")
add_extreme("prod", py.product, "product")


@statement(["max", "min"], 0.3)
def extreme(g):
    t = g.pick(lambda x: x.array.flat())
    ordered(g, t, [])
    name, f = g.r.choice([("max", py.largest), ("min", py.smallest)])
    g.apply(f"sw::{name}({{0}})", [t], lambda a: py.reduce(a, [], False, f), reduction_rows(t, [], False, None if g.gradient else name), exact=True)


@statement(["var", "std"], 0.5)
def spread(g):
    skip(g.special)
    t = g.pick(lambda x: x.rank > 0)
    dims = some_dims(g, t)
    count = py.numel([t.shape[d] for d in dims] if dims else t.shape)
    c = g.r.choice([0, 1])
    skip(count - c < 1)
    name = g.r.choice(["var", "std"])
    f = (lambda v: py.variance(v, c)) if name == "var" else (lambda v: py.sqrt(py.variance(v, c)))
    if name == "std":
        skip(any(x < 0.05 for x in py.reduce(t.array, dims, False, f).flat()))
    which = written_dims(g, t, dims)
    g.apply(f"sw::{name}{'<' + which + '>' if which else ''}({{0}}, {c})", [t], lambda a: py.reduce(a, dims, False, f),
            reduction_rows(t, dims, False, None), implicit=False)


@statement(["var_over"], 0.4)
def spread_over(g):
    R, U, S, P = places()
    skip(g.special)
    axis = g.r.randrange(g.axes)
    t = g.pick(lambda x: x.rank > 0)
    d = g.r.randrange(t.rank)
    skip(t.shape[d] < 2)
    target = [R()] * g.axes
    target[axis] = S(d)
    moved = g.move(t, target)
    place = [R()] * g.axes
    place[axis] = P()
    g.define(f"sw::var_over<A{axis}, {d}>({moved.name})", [moved], lambda a: py.reduce(a, [d], False, lambda v: py.variance(v, 1)),
             g.p.dtype, place, False)


@statement(["vector_norm"], 0.5)
def normed(g):
    skip(g.special)
    p = g.r.choice([1, 2, 3])
    t = g.pick(lambda x: x.array.flat())
    dims = some_dims(g, t)

    def norm(v):
        return sum(abs(x) ** p for x in v) ** (1 / p)
    if g.gradient:
        skip(any(abs(v) < 0.05 for v in t.array.flat()))
    which = written_dims(g, t, dims)
    g.apply(f"sw::vector_norm<{p}{', ' + which if which else ''}>({{0}})", [t], lambda a: py.reduce(a, dims, False, norm),
            reduction_rows(t, dims, False, None if g.gradient else f"norm{p}", linear=False))


def along_rows(t, d):
    R, U, S, P = places()
    return [([R()], R()), ([U()], U())] + [([S(k)], S(k)) for k in range(t.rank) if k != d]


@statement(["softmax", "log_softmax"], 0.8)
def soft(g):
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat())
    d = g.r.randrange(t.rank)
    name, f = g.r.choice([("softmax", py.softmax), ("log_softmax", py.log_softmax)])
    spelled = d if g.chance(0.6) else d - t.rank
    # along another dim than the last the result is a view: what it is, in order
    g.apply(f"sw::contiguous(sw::{name}<{spelled}>({{0}}))", [t], lambda a: py.lines(a, d, f), along_rows(t, d))


@statement(["call"], 0.4, smooth=True)
def running(g):
    t = g.pick(lambda x: x.rank >= 1)
    skip(g.special)
    back = g.chance(0.5)

    def sums(line):
        total, out = 0.0, []
        for v in (line[::-1] if back else line):
            total += v
            out.append(total)
        return out[::-1] if back else out
    g.apply(f"sw::call<sums::running{', 1' if back else ''}>({{0}})", [t], lambda a: py.lines(a, t.rank - 1, sums),
            g.single(t, linear=True, drop=[t.rank - 1]))


@statement(["call"], 0.5, smooth=True)
def several(g):
    skip(g.special)
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat())
    skip(any(abs(v) > 8 for v in t.array.flat()))
    d = t.rank - 1
    if g.chance(0.5):
        return g.apply("fuzz::one_result({0})", [t], lambda a: py.lines(a, d, lambda v: [math.exp(x) for x in v]), along_rows(t, d))
    if g.chance(0.7) or g.gradient:
        return g.apply("fuzz::two_results({0})", [t], lambda a: py.lines(a, d, lambda v: [math.tanh(math.exp(x)) + sum(v) for x in v]), along_rows(t, d))
    for group in py.reduce(t.array, [d], True, lambda v: v).flat():
        g.distinct(group, t.exact)
    g.apply("fuzz::three_results({0})", [t], lambda a: py.reduce(a, [d], False, lambda v: py.ranks_of(v, True)[0]),
            reduction_rows(t, [d], False, None), dtype="int", exact=True, implicit=False)


@statement(["causal_softmax"], 0.3)
def causal(g):
    skip(g.special)
    t = g.pick(lambda x: x.rank >= 2)
    g.apply("sw::causal_softmax({0})", [t], py.causal_softmax, along_rows(t, t.rank - 1))


@statement(["logsumexp"], 0.5)
def summed_exp(g):
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat())
    d = g.r.randrange(t.rank)
    keep = g.chance(0.5)
    g.apply(f"sw::logsumexp<{d}>({{0}}{', sw::keepdim' if keep else ''})", [t], lambda a: py.reduce(a, [d], keep, py.logsumexp),
            reduction_rows(t, [d], keep, None))


@statement(["layer_norm", "rms_norm"], 0.6)
def layer(g):
    R, U, S, P = places()
    skip(g.special)
    t = g.pick(lambda x: x.rank >= 1 and x.shape[-1] > 1)
    skip(any(x < 0.05 for x in py.reduce(t.array, [t.rank - 1], False, lambda v: py.variance(v, 0)).flat()))
    w = g.new_input([t.shape[-1]])
    weights = [w] + ([g.new_input([t.shape[-1]])] if g.chance(0.5) else [])
    n = len(weights)
    rows = [([R()] * (n + 1), R()), ([U()] * (n + 1), U())] + [([S(d)] + [U()] * n, S(d)) for d in range(t.rank - 1)]
    if n == 2:
        g.apply("sw::layer_norm({0}, {1}, {2})", [t] + weights, py.layer_norm, rows)
    else:
        g.apply("sw::rms_norm({0}, {1})", [t] + weights, py.rms_norm, rows)


# --- losses -----------------------------------------------------------------------------------------------------------------


@statement(["cross_entropy", "cross_entropy_rows"], 0.6)
def losses(g):
    R, U, S, P = places()
    skip(g.special)
    x = g.pick(lambda t: t.rank >= 2)
    dim = g.r.randrange(x.rank) if g.chance(0.4) else x.rank - 1
    order = [d for d in range(x.rank) if d != dim] + [dim]
    classes = x.shape[dim]
    ignore = g.r.choice([None, None, 1, 0]) if classes > 1 else None
    target = g.new_input([x.shape[d] for d in order[:-1]], "int", below=classes)
    skip(ignore is not None and all(v == ignore for v in target.array.flat()))
    named = [] if dim == x.rank - 1 and g.chance(0.8) else [str(g.r.choice([dim, dim - x.rank]))]
    given = named + ([] if ignore is None else [f"sw::ignore_index<{ignore}>"])
    angle = f"<{', '.join(given)}>" if given else ""
    rows = [([R(), R()], R()), ([U(), R()], U())]
    if g.chance(0.5):
        g.apply(f"sw::cross_entropy_rows{angle}({{0}}, {{1}})", [x, target],
                lambda a, t: py.cross_entropy_rows(py.permute(a, order), t, ignore),
                rows + [([S(d), S(k)], S(k)) for k, d in enumerate(order[:-1])])
    else:
        # the mean, or the quotient of two sums: partial where rows are sharded
        rows += [([S(d), S(k)], P()) for k, d in enumerate(order[:-1])]
        g.apply(f"sw::cross_entropy{angle}({{0}}, {{1}})", [x, target],
                lambda a, t: py.cross_entropy(py.permute(a, order), t, ignore), rows)


@statement(["loss_parallel_cross_entropy", "loss_parallel_cross_entropy_rows"], 0.5)
def parallel_losses(g):
    R, U, S, P = places()
    skip(g.special)
    x = g.pick(lambda t: t.rank >= 2)
    axis = g.r.randrange(g.axes)
    target = g.new_input(x.shape[:-1], "int", place=[R()] * g.axes, below=x.shape[-1])
    place = [R()] * g.axes
    place[axis] = S(x.rank - 1)
    moved = g.move(x, place)
    ignore = g.r.choice([None, None, 1])
    skip(ignore is not None and all(v == ignore for v in target.array.flat()))
    rows = g.chance(0.5)
    out = [R()] * g.axes
    out[axis] = P()
    name = "loss_parallel_cross_entropy" + ("_rows" if rows else "")
    angle = f"<A{axis}>" if ignore is None else f"<A{axis}, sw::ignore_index<{ignore}>>"
    f = py.cross_entropy_rows if rows else py.cross_entropy
    g.define(f"sw::{name}{angle}({moved.name}, {target.name})", [moved, target], lambda a, t: f(a, t, ignore), g.p.dtype, out, False)


# --- indices ----------------------------------------------------------------------------------------------------------------


def index_for(g, shape, below):
    return g.new_input(shape, "int", below=below)


def index_rows(t, d, n, beside=True, partial=True):
    """x, index, and as many more as are placed like x."""
    R, U, S, P = places()
    more = n - 2
    rows = [([R(), R()] + [R()] * more, R()), ([U(), R()] + [U()] * more, U())]
    if partial:
        rows.append(([P(), R()] + [P()] * more, P()))
    for k in range(t.rank):
        if k != d:
            rows.append(([S(k), S(k) if beside else R()] + [S(k)] * more, S(k)))
    return rows


@statement(["gather"], 0.6)
def gathered(g):
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat(), real=None)
    d = g.r.randrange(t.rank)
    shape = list(t.shape)
    shape[d] = g.r.choice([1, 2, 3, 4])
    i = index_for(g, shape, t.shape[d])
    spelled = d if g.chance(0.6) else d - t.rank
    g.apply(f"sw::gather<{spelled}>({{0}}, {{1}})", [t, i], lambda a, k: py.gather(a, d, k), index_rows(t, d, 2, partial=t.real and not g.special),
            dtype=t.dtype, exact=True)


@statement(["index_select"], 0.6)
def selected(g):
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat(), real=None)
    d = g.r.randrange(t.rank)
    i = index_for(g, [g.r.choice([1, 3, 4])], t.shape[d])
    g.apply(f"sw::index_select<{d}>({{0}}, {{1}})", [t, i], lambda a, k: py.index_select(a, d, k),
            index_rows(t, d, 2, beside=False, partial=t.real and not g.special), dtype=t.dtype, exact=True)


@statement(["scatter_add", "scatter", "scatter_zero", "index_add"], 1.2)
def scattered(g):
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat())
    d = g.r.randrange(t.rank)
    which = g.r.choice(["scatter_add", "scatter", "number", "zero", "index_add"])
    skip(g.special)
    if which == "index_add":
        n = g.r.choice([1, 2, 4])
        i = index_for(g, [n], t.shape[d])
        source = g.new_input(t.shape[:d] + [n] + t.shape[d + 1:])
        return g.apply(f"sw::index_add<{d}>({{0}}, {{1}}, {{2}})", [t, i, source], lambda a, k, s: py.index_add(a, d, k, s),
                       index_rows(t, d, 3, beside=False), exact=True, implicit=False)
    shape = list(t.shape)
    shape[d] = g.r.choice([1, 2, 3])
    i = index_for(g, shape, t.shape[d])
    if which == "zero":
        return g.apply(f"sw::scatter_zero<{d}>({{0}}, {{1}})", [t, i], lambda a, k: py.scatter(a, d, k, 0.0, False), index_rows(t, d, 2), exact=True)
    if which == "number":
        n = g.number()
        return g.apply(f"sw::scatter<{d}>({{0}}, {{1}}, {n!r})", [t, i], lambda a, k: py.scatter(a, d, k, n, False),
                       index_rows(t, d, 2, partial=False), exact=True)
    source = g.new_input(shape)
    g.apply(f"sw::{which}<{d}>({{0}}, {{1}}, {{2}})", [t, i, source], lambda a, k, s: py.scatter(a, d, k, s, which == "scatter_add"),
            index_rows(t, d, 3), exact=True, implicit=which == "scatter")


@statement(["embedding"], 0.6)
def embedded(g):
    R, U, S, P = places()
    t = g.pick(lambda x: x.rank == 2 and x.array.flat())
    skip(g.special)
    i = index_for(g, g.r.choice([[3], [2, 3], [5]]), t.shape[0])
    n = i.rank
    rows = [([R(), R()], R()), ([U(), R()], U()), ([S(1), R()], S(n)), ([S(0), R()], P())] + [([U(), S(d)], S(d)) for d in range(n)]
    g.apply("sw::embedding({0}, {1})", [t, i], py.embedding, rows, exact=True)


@statement(["one_hot"], 0.3)
def hot(g):
    i = index_for(g, g.r.choice([[3], [2, 3]]), 4)
    from generate import CPP_TYPE
    dtype = g.r.choice([g.p.dtype, "int"])
    R, U, S, P = places()
    g.apply(f"sw::one_hot<4, {CPP_TYPE[dtype]}>({{0}})", [i], lambda k: py.one_hot(k, 4), [([R()], R())] + [([S(d)], S(d)) for d in range(i.rank)],
            dtype=dtype, exact=True, implicit=False)


# --- views ------------------------------------------------------------------------------------------------------------------


def view_of(g, code, t, f, place, dtype=None, copies=False, names=()):
    """A view: what is written through it shows in t. copies: a copy where t is not dense."""
    if copies and t.loose:
        g.frozen.add(id(t.array.store))
    out = g.define(code.format(t.name), [t], f, t.dtype, place, True, loose=t.loose and not copies)
    if copies and t.loose:
        g.frozen.add(id(out.array.store))
    out.exact = t.exact
    g.used.update(names)
    return out


def whole_dims(g, t, dims):
    """t with none of the dims sharded."""
    R, U, S, P = places()
    target = [R() if p[0] == "S" and p[1] in dims else p for p in t.place]
    return g.move(t, target)


@statement(["transpose", "permute"], 1.0, smooth=True)
def turned(g):
    t = g.pick(lambda x: x.rank >= 2, real=None)
    order = list(range(t.rank))
    g.r.shuffle(order)
    if g.chance(0.6):
        a, b = g.r.sample(range(t.rank), 2)
        order = list(range(t.rank))
        order[a], order[b] = b, a
        code = f"sw::transpose<{a}, {b - t.rank if g.chance(0.3) else b}>({{0}})"
    else:
        code = f"sw::permute<{', '.join(map(str, order))}>({{0}})"
    place = [("S", order.index(p[1]), p[2], p[3]) if p[0] == "S" else p for p in t.place]
    view_of(g, code, t, lambda a: py.permute(a, order), place)


@statement(["narrow", "slice"], 1.2, smooth=True)
def cut(g):
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat(), real=None)
    d = g.r.randrange(t.rank)
    t = whole_dims(g, t, [d])
    n = g.r.randrange(1, t.shape[d] + 1)
    at = g.r.randrange(0, t.shape[d] - n + 1)
    code = g.r.choice([f"sw::slice<{d}, {at}, {n}>({{0}})", f"sw::narrow<{d}, {at}, {n}>({{0}})",
                       f"sw::narrow<{d - t.rank}, {at - t.shape[d]}, {n}>({{0}})"])
    view_of(g, code, t, lambda a: py.narrow(a, d, at, n), t.place)


@statement(["select"], 0.6, smooth=True)
def one_index(g):
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat(), real=None)
    d = g.r.randrange(t.rank)
    t = whole_dims(g, t, [d])
    k = g.r.randrange(t.shape[d])
    place = [("S", p[1] - (p[1] > d), p[2], p[3]) if p[0] == "S" else p for p in t.place]

    def f(a):
        n = py.narrow(a, d, k, 1)
        return py.Array(n.store, n.shape[:d] + n.shape[d + 1:], n.strides[:d] + n.strides[d + 1:], n.offset)
    view_of(g, f"sw::select<{d}, {k if g.chance(0.6) else k - t.shape[d]}>({{0}})", t, f, place)


@statement(["unsqueeze", "squeeze"], 0.8, smooth=True)
def unit(g):
    t = g.pick(lambda x: x.rank < g.most_rank, real=None)
    if 1 in t.shape and g.chance(0.6):
        d = t.shape.index(1)
        t = whole_dims(g, t, [d])
        place = [("S", p[1] - (p[1] > d), p[2], p[3]) if p[0] == "S" else p for p in t.place]
        shape = t.shape[:d] + t.shape[d + 1:]
        code = f"sw::squeeze<{d}>({{0}})"
        if t.shape.count(1) == 1 and g.chance(0.5):
            code = "sw::squeeze({0})"
        return view_of(g, code, t, lambda a: py.Array(a.store, shape, a.strides[:d] + a.strides[d + 1:], a.offset), place)
    skip(any(p[0] == "S" and t.shape[p[1]] == 1 for p in t.place))
    d = g.r.randrange(t.rank + 1)
    place = [("S", p[1] + (p[1] >= d), p[2], p[3]) if p[0] == "S" else p for p in t.place]
    shape = t.shape[:d] + [1] + t.shape[d:]
    view_of(g, f"sw::unsqueeze<{d if g.chance(0.6) else d - t.rank - 1}>({{0}})", t,
            lambda a: py.Array(a.store, shape, a.strides[:d] + [0 if not a.is_dense() else py.dense(shape)[d]] + a.strides[d:], a.offset), place)


@statement(["reshape", "view", "flatten", "unflatten"], 1.4, smooth=True)
def seen(g):
    R, U, S, P = places()
    t = g.pick(lambda x: x.array.flat() and x.rank >= 1, real=None)
    n = py.numel(t.shape)
    t = whole_dims(g, t, range(t.rank)) if not g.chance(0.3) else t
    which = g.r.choice(["reshape", "view", "flatten", "unflatten"])
    place, code, shape = list(t.place), None, None
    sharded = [p for p in place if p[0] == "S"]
    if which == "flatten":
        skip(t.rank < 2)
        first = g.r.randrange(t.rank - 1)
        skip(any(p[1] >= first for p in sharded))
        shape = t.shape[:first] + [py.numel(t.shape[first:])]
        code = f"sw::flatten<{first}>({{0}})" if first or g.chance(0.5) else "sw::flatten({0})"
    elif which == "unflatten":
        found = [(d, k) for d in range(t.rank) for k in (2, 3) if t.shape[d] % k == 0 and t.shape[d] > 0]
        skip(not found or t.rank >= g.most_rank)
        d, k = g.r.choice(found)
        skip(any(p[1] == d for p in sharded) or any(t.shape[p[1]] == 1 for p in sharded))
        shape = t.shape[:d] + [k, t.shape[d] // k] + t.shape[d + 1:]
        place = [S(p[1] + (p[1] > d), p[2], p[3]) if p[0] == "S" else p for p in place]
        code = f"sw::unflatten<{d}, {k}, {-1 if g.chance(0.5) else t.shape[d] // k}>({{0}})"
    else:
        skip(sharded)
        factors = [k for k in range(1, n + 1) if n % k == 0]
        k = g.r.choice(factors)
        shape = g.r.choice([[n], [k, n // k], [n // k, k]])
        text = ", ".join(map(str, shape))
        if which == "view":
            skip(not t.array.is_dense() or t.loose)
            text = text if g.chance(0.5) else ", ".join(["-1"] + [str(e) for e in shape[1:]])
        code = f"sw::{which}<{text}>({{0}})"
    view_of(g, code, t, lambda a: py.reshape(a, shape), place, copies=which != "view")


@statement(["flatten"], 0)
def merged(g):
    """Two dims as one that scales with the sizes of both; a shard of the first, cut by whole rows of the second, is gathered."""
    R, U, S, P = places()
    t = g.pick(lambda x: x.rank >= 2, real=None)
    d = g.r.randrange(t.rank - 1)
    run_time = (g.p.bound, g.p.second)
    skip(not any(e in run_time for e in t.shape[d:d + 2]) or any(e > 7 for e in t.shape[d:d + 2]))
    skip(t.shape[d] == t.shape[d + 1])  # a square of a size
    t = whole_dims(g, t, [d + 1])
    split = [a for a, p in enumerate(t.place) if p[0] == "S" and p[1] == d]
    skip(len(split) > 1 or any(t.place[a][2] != 1 or t.place[a][3] for a in split))
    place = [R() if a in split else ("S", p[1] - (p[1] > d), p[2], p[3]) if p[0] == "S" else p for a, p in enumerate(t.place)]
    code = f"sw::flatten<{d}, {d + 1}>({{0}})"
    for a in split:
        code = f"sw::redistribute<A{a}, sw::replicate>({code})"
    view_of(g, code, t, lambda x: py.reshape(x, x.shape[:d] + [x.shape[d] * x.shape[d + 1]] + x.shape[d + 2:]), place, copies=True)


@statement(["contiguous"], 0.5, smooth=True)
def packed(g):
    t = g.pick(real=None)
    if t.rank == 4 and g.chance(0.6):
        view_of(g, "sw::contiguous<sw::memory_format::channels_last>({0})", t, py.channels_last, t.place, copies=True)
    else:
        view_of(g, "sw::contiguous({0})", t, py.contiguous, t.place, copies=True)


@statement(["expand", "expand_as"], 0.6, smooth=True)
def widened(g):
    t = g.pick(lambda x: x.rank < g.most_rank and py.numel(x.shape) <= 24)
    skip(any(p[0] == "S" and t.shape[p[1]] == 1 for p in t.place))
    lead = g.r.random() < 0.5 or 1 not in t.shape
    shape = [g.r.choice([2, 3]) if e == 1 and g.chance(0.8) else e for e in t.shape]
    if lead:
        shape = [g.r.choice([2, 3])] + shape
    skip(shape == t.shape)
    k = len(shape) - t.rank
    place = [("S", p[1] + k, p[2], p[3]) if p[0] == "S" else p for p in t.place]
    others = g.tensors(lambda o: o.shape == shape)
    if others and g.chance(0.6):
        out = g.define(f"sw::expand_as({t.name}, {others[0].name})", [t, others[0]], lambda a, _: py.expand(a, shape), t.dtype, place, True, loose=t.loose)
        out.exact = t.exact
        return
    text = ", ".join(str(-1 if d >= k and e == t.shape[d - k] and g.chance(0.5) else e) for d, e in enumerate(shape))
    view_of(g, f"sw::expand<{text}>({{0}})", t, lambda a: py.expand(a, shape), place)


# --- joins ------------------------------------------------------------------------------------------------------------------


def alike_rows(n, rank, dim, ints=False, out=None):
    R, U, S, P = places()
    rows = [([R()] * n, R()), ([U()] * n, U())]
    rows += [([S(d)] * n, S(d if out is None else out(d))) for d in range(rank) if d != dim]
    if not ints:
        rows.append(([P()] * n, P()))
    return rows


@statement(["cat", "stack"], 1.0, smooth=True)
def joined(g):
    a = g.pick(lambda x: x.rank >= 1, real=None)
    stack = g.chance(0.4)
    d = g.r.randrange(a.rank + (1 if stack else 0))
    same = g.tensors(lambda o: o.dtype == a.dtype and o.rank == a.rank and all(
        o.shape[k] == a.shape[k] for k in range(a.rank) if k != d or stack))
    parts = [a] + [g.r.choice(same) for _ in range(g.r.choice([1, 1, 2, 5]))]
    n = len(parts)
    skip(stack and any(t.shape.count(1) for t in parts))
    text = ", ".join(f"{{{k}}}" for k in range(n))
    if stack:
        skip(a.rank >= g.most_rank)

        def f(*v):
            return py.cat(d, [py.reshape(x, x.shape[:d] + [1] + x.shape[d:]) for x in v])
        g.apply(f"sw::stack<{d}>({text})", parts, f, alike_rows(n, a.rank, -1, not a.real or g.special, lambda k: k + (k >= d)), dtype=a.dtype, exact=True)
    else:
        g.apply(f"sw::cat<{d if g.chance(0.6) else d - a.rank}>({text})", parts, lambda *v: py.cat(d, v),
                alike_rows(n, a.rank, d, not a.real or g.special), dtype=a.dtype, exact=True)


@statement(["split", "chunk", "unbind"], 0.9, smooth=True)
def parted(g):
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat(), real=None)
    d = g.r.randrange(t.rank)
    t = whole_dims(g, t, [d])
    n = t.shape[d]
    which = g.r.choice(["split", "chunk", "unbind"])
    if which == "split":
        k = g.r.randrange(0, n + 1)
        sizes = [k, n - k]
        code = f"sw::split<{d}, {k}, {n - k}>({{0}})"
    elif which == "chunk":
        k = g.r.choice([2, 3])
        size = -(-n // k)
        sizes = [min(size, n - s) for s in range(0, n, size)]
        code = f"sw::chunk<{d}, {k}>({{0}})"
    else:
        skip(n > 4)
        sizes = [1] * n
        code = f"sw::unbind<{d}>({{0}})"
    tuple_name, source = g.fresh("s"), t.name
    g.statement(f"const auto {tuple_name} = {code.format(source)};", [t], lambda env: env.__setitem__(tuple_name, env[source]), [tuple_name])
    holder = type(t)(tuple_name, t.dtype, t.place, t.array, t.exact)
    start = 0
    for k, size in enumerate(sizes):
        s0 = start
        start += size
        if size == 0 or (k > 0 and g.chance(0.4)):
            continue

        def f(a, s0=s0, size=size):
            v = py.narrow(a, d, s0, size)
            return py.Array(v.store, v.shape[:d] + v.shape[d + 1:], v.strides[:d] + v.strides[d + 1:], v.offset) if which == "unbind" else v
        place = [("S", p[1] - (p[1] > d), p[2], p[3]) if p[0] == "S" else p for p in t.place] if which == "unbind" else t.place
        out = g.define(f"std::get<{k}>({tuple_name})", [holder], f, t.dtype, place, True, loose=t.loose)
        out.exact = t.exact


@statement(["slice_scatter"], 0.6)
def placed_slice(g):
    R, U, S, P = places()
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat())
    d = g.r.randrange(t.rank)
    n = g.r.randrange(1, t.shape[d] + 1)
    at = g.r.randrange(0, t.shape[d] - n + 1)
    shape = list(t.shape)
    shape[d] = n
    found = g.tensors(lambda o: o.real and o.shape == shape)
    part = g.r.choice(found) if found and g.chance(0.5) else g.new_input(shape)

    def f(a, b):
        out = a.copy()
        py.narrow(out, d, at, n).write(b.flat())
        return out
    g.apply(f"sw::slice_scatter<{d}, {at if g.chance(0.6) else at - t.shape[d]}>({{0}}, {{1}})", [t, part], f, alike_rows(2, t.rank, d, g.special),
            exact=True, implicit=False)


# --- paddings, triangles, fills ---------------------------------------------------------------------------------------------


@statement(["constant_pad"], 0.5)
def padded(g):
    t = g.pick(lambda x: x.rank >= 1)
    pairs = [(0, 0)] * t.rank
    count = g.r.randrange(1, t.rank + 1)
    text = []
    for k in range(count):
        b, c = g.r.choice([(0, 1), (1, 0), (1, 2), (0, 0)])
        pairs[t.rank - 1 - k] = (b, c)
        text += [str(b), str(c)]
    touched = [t.rank - 1 - k for k in range(count)]
    n = g.r.choice([0.0, g.number()])
    R, U, S, P = places()
    rows = [([R()], R()), ([U()], U())] + [([S(d)], S(d)) for d in range(t.rank) if d not in touched]
    if n == 0:
        rows.append(([P()], P()))
    call = f"sw::constant_pad<{', '.join(text)}>({{0}}{'' if n == 0 else f', {n!r}'})"
    g.apply(call, [t], lambda a: py.pad(a, pairs, n), rows, exact=True)


@statement(["tril", "triu"], 0.5)
def triangles(g):
    t = g.pick(lambda x: x.rank >= 2)
    skip(g.special)
    k, upper = g.r.choice([-1, 0, 1]), g.chance(0.5)
    g.apply(f"sw::{'triu' if upper else 'tril'}<{k}>({{0}})", [t], lambda a: py.triangle(a, k, upper), g.single(t, linear=True), exact=True)


def like_place(t):
    R, U, S, P = places()
    return [R() if p[0] == "P" else p for p in t.place]


@statement(["full_like", "zeros_like", "ones_like", "constant_like"], 0.6, smooth=True)
def alike(g):
    R, U, S, P = places()
    t = g.pick()
    n = g.number()
    name, value = g.r.choice([("full_like", n), ("zeros_like", 0.0), ("ones_like", 1.0), ("constant_like", n)])
    shape = [] if name == "constant_like" else list(t.shape)
    place = like_place(t)
    if name == "constant_like":
        place = [U() if p[0] in "SU" else R() for p in t.place]
    call = f"sw::{name}({{0}}{f', {n!r}' if 'full' in name or 'constant' in name else ''})"
    g.define(call.format(t.name), [t], lambda a: new(shape, [value] * py.numel(shape)), t.dtype, place, True)


@statement(["full", "arange", "arange_from"], 0.5, smooth=True)
def made(g):
    R, U, S, P = places()
    from generate import CPP_TYPE, cpp_place
    like = g.pick(real=None)
    dtype = g.r.choice([g.p.dtype, "int"])
    which = g.r.choice(["full", "arange", "arange_from"])
    if which == "full":
        shape = g.r.choice([[4], [5, 2], []])
        n = g.r.choice([2.0, -3.0, 1.0])
        values = [n] * py.numel(shape)
    else:
        first, step, count = (0, 1, g.r.choice([3, 5, 7])) if which == "arange" else g.r.choice([(2, 3, 4), (7, -2, 5), (-3, 1, 6)])
        shape, values = [count], [first + step * k for k in range(count)]
    place = [g.r.choice([R()] + [S(d) for d in range(len(shape))]) for _ in range(g.axes)]
    where = "".join(f", {cpp_place(p)}" for p in place)
    if g.r.random() < 0.5:  # nothing is said: beside what it is made like
        place = [U() if dtype != "int" and p[0] != "R" else R() for p in like.place]
        where = ""
    t = CPP_TYPE[dtype]
    if which == "full":
        code = f"sw::full<{t}, sw::shape<{', '.join(map(str, shape))}>{where}>({{0}}, {n!r})"
    elif which == "arange":
        code = f"sw::arange<{t}, {count}{where}>({{0}})"
    else:
        code = f"sw::arange_from<{t}, {first}, {first + step * count}, {step}{where}>({{0}})"
    values = [int(v) if dtype == "int" else float(v) for v in values]
    g.define(code.format(like.name), [like], lambda a: new(shape, values), dtype, place, True)


RANDOM = ["rand_like", "randn_like", "rand", "randn", "bernoulli", "dropout"]


@statement(RANDOM, 8.0, smooth=True, needs=("random",))
def drawn(g):
    R, U, S, P = places()
    from generate import CPP_TYPE, cpp_place
    t = g.pick(lambda x: no_partial(x))
    which = g.r.choice(RANDOM)
    shape, place = list(t.shape), list(t.place)
    if which in ("rand", "randn"):
        shape = g.r.choice([[4, 3], [5]])
        place = [g.r.choice([R()] + [S(d) for d in range(len(shape))]) for _ in range(g.axes)]
        code = f"sw::{which}<{CPP_TYPE[g.p.dtype]}, sw::shape<{', '.join(map(str, shape))}>{''.join(', ' + cpp_place(p) for p in place)}>({{0}})"
    elif which == "bernoulli":
        code = "sw::bernoulli(sw::sigmoid({0}))"
    elif which == "dropout":
        code = "sw::dropout({0}, 0.25)"
    else:
        code = f"sw::{which}({{0}})"
    skip(which == "bernoulli" and g.gradient)
    g.define(code.format(t.name), [t], lambda a: new(shape, [0.5] * py.numel(shape)), g.p.dtype, place, False)


@statement(["dropout"], 0.15)
def kept(g):
    t = g.pick()
    skip(g.special)
    p, f = g.r.choice([(0.0, lambda v: v), (1.0, lambda v: 0.0)])
    skip(p == 1.0 and g.gradient)
    g.apply(f"sw::dropout({{0}}, {p!r})", [t], lambda a: py.pointwise(f, a), g.single(t), exact=True)


@statement(["bernoulli"], 0.15, needs=("no_gradient",))
def certain(g):
    t = g.pick()
    skip(g.special)
    g.apart(t.array.flat(), [0], t.exact)
    g.apply("sw::bernoulli(sw::where(sw::gt({0}, 0.0), sw::ones_like({0}), sw::zeros_like({0})))", [t],
            lambda a: py.pointwise(lambda v: 1.0 if v > 0 else 0.0, a), g.single(t), exact=True, implicit=False)


# --- ranking ----------------------------------------------------------------------------------------------------------------


@statement(["topk", "sort"], 0.7)
def ranked(g):
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat())
    skip(g.special)
    d = g.r.randrange(t.rank)
    for group in py.reduce(t.array, [d], True, lambda v: v).flat():
        g.distinct(group, t.exact)
    n = t.shape[d]
    k = g.r.randrange(1, n + 1)
    big = g.chance(0.5)
    if g.chance(0.5):
        k = n
        code = f"sw::sort<{d}, {'true' if big else 'false'}>({{0}})"
    else:
        code = f"sw::topk<{k}, {d}, {'true' if big else 'false'}>({{0}})"
    indices = g.chance(0.4)
    member = "indices" if indices else "values"

    def f(a):
        return py.lines(a, d, lambda v: [(i if indices else v[i]) for i in py.ranks_of(v, big)[:k]])
    skip(indices and g.gradient)
    g.apply(f"sw::contiguous({code}.{member})", [t], f, along_rows(t, d), dtype="int" if indices else g.p.dtype, exact=True, implicit=False)


@statement(["max", "min"], 0.5)
def extreme_and_place(g):
    skip(g.special)
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat())
    d = g.r.randrange(t.rank)
    skip("dynamic" in g.features and t.shape[d] == g.p.bound)  # a size that may be 0 has no largest element
    for group in py.reduce(t.array, [d], True, lambda v: v).flat():
        g.distinct(group, t.exact)
    big, keep = g.chance(0.5), g.chance(0.3)
    indices = g.chance(0.4)
    skip(indices and g.gradient)
    code = f"sw::{'max' if big else 'min'}<{d - t.rank if g.chance(0.3) else d}>({{0}}{', sw::keepdim' if keep else ''}).{'indices' if indices else 'values'}"
    g.apply(code, [t], lambda a: py.reduce(a, [d], keep, lambda v: py.ranks_of(v, big)[0] if indices else v[py.ranks_of(v, big)[0]]),
            along_rows(t, d) if keep else reduction_rows(t, [d], False, None), dtype="int" if indices else g.p.dtype, exact=True, implicit=False)


@statement(["argmax", "argmin"], 0.5, needs=("no_gradient", "no_special"))
def position(g):
    R, U, S, P = places()
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat())
    big = g.chance(0.5)
    name = "argmax" if big else "argmin"
    if g.chance(0.3):
        g.distinct(t.array.flat(), t.exact)
        return g.apply(f"sw::{name}({{0}})", [t], lambda a: new([], [py.ranks_of(a.flat(), big)[0]]), [([R()], R())], dtype="int", exact=True)
    d = g.r.randrange(t.rank)
    for group in py.reduce(t.array, [d], True, lambda v: v).flat():
        g.distinct(group, t.exact)
    g.apply(f"sw::{name}<{d}>({{0}})", [t], lambda a: py.reduce(a, [d], False, lambda v: py.ranks_of(v, big)[0]),
            reduction_rows(t, [d], False, None), dtype="int", exact=True)


# --- placements -------------------------------------------------------------------------------------------------------------


def any_place(g, t):
    R, U, S, P = places()
    choices = [R(), R()] + [S(d) for d in range(t.rank) if t.shape[d] != 1] * 2
    if t.real:
        choices += [U()] + ([P()] if not g.special else [])
    place = []
    for p in t.place:
        q = g.r.choice(choices + [p])
        if p[0] == "P" and q[0] == "P":
            q = p
        place.append(q)
    if t.rank and g.axes >= 2 and g.chance(0.08) and t.real and 1 not in t.shape:
        d = g.r.randrange(t.rank)
        place[0], place[1] = S(d, 1, "A1"), S(d)
    from generate import lawful
    return lawful(place)


@statement(["redistribute"], 2.2, smooth=True)
def moved(g):
    t = g.pick(real=None)
    g.move(t, list(t.place) if g.chance(0.25) else any_place(g, t), force=True)


@statement(["redistribute", "redistribute_async"], 0.8, smooth=True)
def departed(g):
    """What is on its way is what its source was, whatever is written into that meanwhile."""
    t = g.pick(g.may_write if g.writes else lambda x: True, real=None)
    target = any_place(g, t)
    skip(not g.can_move(t, target))
    changed = [a for a in range(g.axes) if t.place[a] != target[a]] or [g.r.randrange(g.axes)]
    from generate import cpp_place
    on = ", ".join(f"sw::on<A{a}, {cpp_place(target[a])}>" for a in changed)
    g.move_async(t, target, changed, on, g.nested(t.place) or g.nested(target), free=True)


@statement(["full_tensor"], 0.4, smooth=True)
def gathered_whole(g):
    R, U, S, P = places()
    t = g.pick(real=None)
    skip(g.nested(t.place))
    target = [R()] * g.axes
    g.one_move(t, "sw::full_tensor({0})", target, ["full_tensor"], ("full", tuple(target)))


@statement(["wait"], 0.2, smooth=True)
def awaited(g):
    t = g.pick(real=None)
    skip(g.gradient)
    out = view_of(g, "sw::wait({0})", t, lambda a: py.Array(a.store, a.shape, a.strides, a.offset), t.place)
    g.frozen.add(id(out.array.store))


@statement(["detach"], 0.3, needs=("no_gradient",))
def detached(g):
    """A view that may not be written, nor what it is a view of; gradients past it are what fuzz/values looks at."""
    t = g.pick(real=None)
    out = view_of(g, "sw::detach({0})", t, lambda a: py.Array(a.store, a.shape, a.strides, a.offset), t.place)
    g.frozen.add(id(out.array.store))


@statement(["to_local", "from_local"], 0.7, needs=("no_gradient",))
def in_blocks(g):
    """Blocks as tensors of their own, an elementwise function of them, and back."""
    R, U, S, P = places()
    from generate import cpp_place
    t = g.pick(lambda x: x.rank >= 1 and x.array.flat())
    # replicate and plain shards; an even dim takes the axes that do not shard
    place = [g.r.choice([R()] + [S(d) for d in range(t.rank) if t.shape[d] != 1]) for _ in range(g.axes)]
    dims = [p[1] for p in place if p[0] == "S"]
    skip(len(dims) != len(set(dims)))
    uneven = [a for a, p in enumerate(place) if p[0] == "S" and t.shape[p[1]] % g.p.sizes[a] != 0]
    whole = [a for a, p in enumerate(place) if p[0] != "S"]
    free = [d for d in range(t.rank) if d not in dims]
    skip(whole and not free)
    m = g.move(t, place)
    n = g.r.choice([0.5, -2.0])
    shape = "" if not uneven and g.chance(0.5) else f"sw::shape<{', '.join(map(str, t.shape))}>, "
    back = ", ".join(cpp_place(p) for p in place)
    grad = "sw::grad<" + ", ".join(cpp_place(p) for p in place) + ">"
    code = f"sw::from_local<{shape}{back}>(sw::scale(sw::to_local<{grad}>({m.name}), {n!r}))"
    if g.chance(0.5) and shape:
        code = f"sw::from_local_unchecked<{shape}{back}>(sw::scale(sw::to_local<{grad}>({m.name}), {n!r})).checked()"
        g.used.add("from_local_unchecked")
    g.define(code, [m], lambda a: py.pointwise(lambda v: v * n, a), g.p.dtype, place, True)


@statement(["opaque"], 0.5, smooth=True)
def unknown(g):
    R, U, S, P = places()
    t = g.pick()
    same = g.tensors(lambda o: o.real and o.shape == t.shape and o.dtype == t.dtype)
    other = g.r.choice(same)
    place = [p if p[0] != "P" else R() for p in t.place]
    a, b = g.move(t, place), g.move(other, place)
    g.define(f"sw::opaque<fuzz::twice_and>({a.name}, {b.name})", [a, b], lambda x, y: py.pointwise(lambda u, v: 2 * u + v, x, y), g.p.dtype, place, True)


# --- writes in place --------------------------------------------------------------------------------------------------------


@statement(["copy_"], 4.0, needs=("writes",))
def written(g):
    found = g.tensors(g.may_write)
    skip(not found)
    g.write_into(g.r.choice(found))


def a_part(g, t):
    """A view of some of t's elements along a dim that is not sharded."""
    dims = [d for d in range(t.rank) if t.shape[d] > 1 and all(p[0] != "S" or p[1] != d for p in t.place)]
    skip(not dims)
    d = g.r.choice(dims)
    n = g.r.randrange(1, t.shape[d])
    at = g.r.randrange(0, t.shape[d] - n + 1)
    return view_of(g, f"sw::narrow<{d}, {at}, {n}>({{0}})", t, lambda a: py.narrow(a, d, at, n), t.place, names=["narrow"])


@statement(["narrow", "copy_"], 0.5, needs=("writes",))
def written_through(g):
    """Views of views, and writes through several of them, the whole included, in any order."""
    t = g.pick(lambda x: g.may_write(x) and x.rank >= 1 and x.array.flat())
    family = [t, a_part(g, t)]
    family.append(a_part(g, family[1]))
    if g.chance(0.5):
        family.append(a_part(g, t))
    for x in g.r.choices(family, k=g.r.choice([2, 3])) + [family[2]]:
        g.write_into(x)


@statement(["redistribute", "copy_"], 0.5, needs=("writes",))
def written_beside(g):
    """A tensor and what it was redistributed to are two: a write to one is not seen in the other."""
    t = g.pick(g.may_write)
    r = g.move(t, list(t.place) if g.chance(0.4) else any_place(g, t), force=True)
    g.write_into(g.r.choice([t, r]))


# For programs of run-time sizes: continuous functions whose Python takes any extent, and nothing that names one.
DYNAMIC_NAMES = {"relu", "tanh", "abs", "exp", "sigmoid", "sin", "cos", "neg", "square", "silu", "gelu", "scale", "add", "sub", "mul", "lerp", "clamp",
                 "maximum", "minimum", "matmul", "linear_product", "sum", "mean", "amax", "amin", "max", "logsumexp", "softmax", "layer_norm",
                 "transpose", "redistribute", "full_tensor", "cross_entropy", "tril"}
DYNAMIC = [s for s in STATEMENTS if s[0][0] in DYNAMIC_NAMES] + [(s[0], 2.5, *s[2:]) for s in STATEMENTS if s[2] is merged]
RARE = [s for s in STATEMENTS if s[1] <= 0.5 and s[0][0] not in py.UNARY and s[0][0] not in py.COMPARE] + [s for s in STATEMENTS if s[2] is in_blocks] * 4
VIEWING = [s for s in STATEMENTS if s[2] in (cut, cut, turned, one_index, unit, moved)]
WRITING = [s for s in STATEMENTS if s[2] in (written, departed, written_through)] + [s for s in STATEMENTS if s[2] is written_beside] * 3


def in_place_operand(g, t, rows):
    """An operand that broadcasts to t, moved so that a row of (t, operand) gives t's own placements."""
    from generate import kind
    R, U, S, P = places()
    found = g.tensors(lambda o: o.real == t.real and o.dtype == t.dtype and fits(t, o) and py.broadcast_shape([t.shape, o.shape]) == list(t.shape)
                      and o is not t)
    skip(not found)
    o = g.r.choice(found)
    all_rows = g.broadcast_rows([t, o], rows)
    target = list(o.place)
    for a in range(g.axes):
        good = [r for r in all_rows if kind(r[0][0]) == kind(t.place[a]) and kind(r[1]) == kind(t.place[a])]
        skip(not good)
        want = good[0][0][1]
        if want[0] == "S":
            skip(t.place[a][2] != 1 or t.place[a][3] is not None)
            want = S(want[1])
        if kind(o.place[a]) != kind(want):
            skip(o.place[a][0] == "P" and want[0] == "P")
        skip(want == U() and not t.real)  # no integers are moved to reduced
        target[a] = want
    return g.move(o, target)


def add_write_binary(op):
    f, linear, _, _ = BINARY[op]
    if op in ("maximum", "minimum"):
        return
    name = "call_<fuzz::gate>" if op == "call" else f"{op}_"

    def over(g, t):
        skip(not t.real)
        skip(op == "call" and any(p[0] == "P" for p in t.place))
        if op == "div":
            skip(g.special)
        o = in_place_operand(g, t, linear)
        if op == "div":
            skip(any(abs(v) < 0.1 for v in o.array.flat()))
        skip(o.array.store is t.array.store and not (o.array is t.array))
        g.in_place(f"sw::{name}({{0}}, {{1}})", t, [o], lambda a, b: py.pointwise(f, a, py.expand(b, a.shape)).flat(), [op + "_"],
                   exact=op not in ("div", "call"))
    WRITES.append(over)
    if op == "call":
        return

    def number(g, t):
        skip(not t.real)
        n = g.number()
        if op in ("add", "sub"):
            skip(any(p[0] == "P" for p in t.place))
        g.in_place(f"sw::{op}_({{0}}, {n!r})", t, [], lambda a: [f(v, n) for v in a.flat()], [op + "_"], exact=op != "div")
    WRITES.append(number)
    WRITES.append(number)


for _op in BINARY:
    add_write_binary(_op)


def copy_over(g, t):
    o = in_place_operand(g, t, "joint")
    skip(o.shape != t.shape and any(p[0] == "S" for p in t.place))  # expanded, it is whole
    g.in_place("sw::copy_({0}, {1})", t, [o], lambda a, b: py.expand(b, a.shape).flat(), ["copy_"])


def fill_over(g, t):
    n = g.number() if t.real else 3.0
    skip(any(p[0] == "P" for p in t.place))
    v = n if t.real else int(n)
    g.in_place(f"sw::fill_({{0}}, {n!r})", t, [], lambda a: [v] * py.numel(a.shape), ["fill_"])


def zero_over(g, t):
    z = 0.0 if t.real else 0
    g.in_place("sw::zero_({0})", t, [], lambda a: [z] * py.numel(a.shape), ["zero_"])


def clamp_over(g, t):
    skip(not t.real or any(p[0] == "P" for p in t.place))
    low, high = -0.75, 1.25
    g.apart(t.array.flat(), [low, high], t.exact)
    text, f = g.r.choice([("sw::clamp_({0}, -0.75, 1.25)", lambda v: py.clamp_max(py.clamp_min(v, low), high)),
                          ("sw::clamp_min_({0}, -0.75)", lambda v: py.clamp_min(v, low)),
                          ("sw::clamp_max_({0}, 1.25)", lambda v: py.clamp_max(v, high))])
    g.in_place(text, t, [], lambda a: [f(v) for v in a.flat()], ["clamp_", "clamp_min_", "clamp_max_"])


def pow_over(g, t):
    skip(not t.real or any(p[0] == "P" for p in t.place) or g.special)
    g.in_place("sw::pow_({0}, 2.0)", t, [], lambda a: [v * v for v in a.flat()], ["pow_"])


def dropout_over(g, t):
    skip(not t.real or any(p[0] == "P" for p in t.place) or g.special)
    g.in_place("sw::dropout_({0}, 0.0)", t, [], lambda a: a.flat(), ["dropout_"])


def mask_over(g, t):
    R, U, S, P = places()
    skip(not t.real or any(p[0] == "P" for p in t.place))
    found = g.tensors(lambda o: not o.real and o.shape == t.shape)
    mask = g.r.choice(found) if found else g.new_input(t.shape, "int", below=2)
    o = g.move(mask, [R() if p[0] == "U" else p for p in t.place])
    n = g.number()
    g.in_place(f"sw::masked_fill_({{0}}, {{1}}, {n!r})", t, [o], lambda a, m: [n if c else v for v, c in zip(a.flat(), m.flat())], ["masked_fill_"])


def lerp_over(g, t):
    skip(not t.real or any(p[0] == "P" for p in t.place) or g.special)
    o = in_place_operand(g, t, "none")
    skip(o.array.store is t.array.store)
    g.in_place("sw::lerp_({0}, {1}, 0.25)", t, [o], lambda a, b: py.pointwise(lambda u, v: u + 0.25 * (v - u), a, py.expand(b, a.shape)).flat(), ["lerp_"])


def triangle_over(g, t):
    skip(not t.real or t.rank < 2 or g.special)
    upper, k = g.chance(0.5), g.r.choice([-1, 0, 1])
    name = "triu_" if upper else "tril_"
    g.in_place(f"sw::{name}<{k}>({{0}})", t, [], lambda a: py.triangle(a, k, upper).flat(), [name])


WRITES += [copy_over, copy_over, fill_over, fill_over, zero_over, zero_over, clamp_over, clamp_over, clamp_over, pow_over, dropout_over, mask_over, mask_over, lerp_over, triangle_over, triangle_over]

import further  # noqa: E402,F401  its statements join these
