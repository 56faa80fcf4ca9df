# SPDX-License-Identifier: Apache-2.0
"""Training programs: small modules under random plans, as train_step and as eager training, some with accumulated gradients and a
scaled loss. Losses and parameters after each step come from plain Python: central differences and the optimizer's formula. A
plan places parameters: where each must lie is worked out here from the plan's text."""

import fnmatch
import math
import random
import re

import interpret as py
from interpret import Array

F = 4  # features between modules
WORKED_OUT = True  # what training must come to; without it programs are looked at, not run


class ModuleProgram:
    kind = "module"

    def __init__(self, seed, sizes):
        self.seed, self.sizes = seed, list(sizes)
        self.used = set()


ACTIVATIONS = {"sw::relu": py.UNARY["relu"], "sw::tanh": py.UNARY["tanh"], "sw::gelu": py.UNARY["gelu"], "sw::silu": py.UNARY["silu"]}


class Layer:
    """A member of the network: its C++ type and declaration, parameters [(path, shape)], and what it does."""

    def __init__(self, name, cpp, parameters, forward, plans):
        self.name, self.cpp, self.parameters, self.forward, self.plans = name, cpp, parameters, forward, plans


def linear(p, path, x):
    return py.pointwise(lambda a, b: a + b, py.linear(x, p[path + ".weight"]), p[path + ".bias"])


def make(seed, sizes):
    for attempt in range(40):
        p = attempt_program(seed, sizes, random.Random(seed * 613 + attempt))
        if p is not None:
            return p
    raise RuntimeError(f"no training program for seed {seed}")


def attempt_program(seed, sizes, r):
    p = ModuleProgram(seed, sizes)
    name = f"p{seed}"
    axes = len(sizes)
    roles = {1: r.choice([["dp"], ["tp"]]), 2: r.choice([["dp", "tp"], ["tp", "dp"]]),
             3: r.choice([["dp", "tp", "dp"], ["dp", "dp", "tp"], ["tp", "dp", "dp"]])}[axes]
    more = random.Random(seed * 7877 + 29)  # of its own: what is drawn below does not move what is drawn above
    held = random.Random(seed * 5113 + 47)  # likewise
    again = random.Random(seed * 9929 + 61)  # likewise
    if more.random() < 0.3:
        roles = ["dp"] * axes
    tp = roles.index("tp") if "tp" in roles else None
    dp = [a for a, role in enumerate(roles) if role == "dp"]
    batch = r.choice([4, 5, 6, 8])
    out_features = r.choice([1, 2, 3])
    dtype = "float" if more.random() < 0.15 else "double"
    sequence = more.choice([0, 2, 3])  # rows of a batch's element; 0: an element is one row
    accumulate = r.random() < 0.35
    form = "plain" if accumulate else more.choice(["plain", "plain", "fused", "fused", "iterated", "iterated", "moved", "moved", "dynamic", "dynamic"])
    count_steps = 3 if form in ("iterated", "moved") and more.random() < 0.7 else 2
    if accumulate:
        batch = r.choice([2, 3, 4])  # of each of two halves
    scale = r.choice([1.0, 1.0, 1024.0]) if accumulate else 1.0

    # --- the network
    types, members, parameters, steps = [], [], [], []
    # an axis over which parameters are stored in shards; named moves are of reductions, which there are none of then
    groups = random.Random(seed * 4241 + 83)
    sharded = groups.choice(dp) if dp and form != "moved" and groups.random() < 0.65 else None
    flatly = random.Random(seed * 2749 + 53)
    takes_flat = not accumulate and form in ("plain", "fused", "dynamic")
    flat_alone = takes_flat and sharded is None and bool(dp) and flatly.random() < 0.75  # shards for the sake of flat ones
    if flat_alone:
        sharded = flatly.choice(dp)
    copies = [a for a in dp if a != sharded and not flat_alone]
    hybrid = copies[0] if sharded is not None and copies and groups.random() < 0.6 else None
    nested = random.Random(seed * 3571 + 29)
    # the second axis of shards, which splits rows first
    inner_axis = copies[0] if sharded is not None and copies and hybrid is None and nested.random() < 0.9 else None
    # over which axes gradients are averaged: the same for all styles that split the batch over one axis
    averages = {a for a in dp if groups.random() < 0.3}
    for beside in (hybrid, inner_axis):
        if beside is not None and (sharded in averages) != (beside in averages):
            averages ^= {beside}
    averaged = math.prod(sizes[a] for a in averages)

    def shards(options):
        """fully_shard with options: these, and what all groups share."""
        options = [q for q in options if q] + ([f"sw::replicate_over<A{hybrid}>"] if hybrid is not None else [])
        if inner_axis is not None:
            options.append(f"sw::shard_over<A{inner_axis}>")
        if sharded in averages:
            options.append("sw::average_gradients")
        groups.shuffle(options)
        return f"sw::fully_shard<{', '.join([f'A{sharded}'] + options)}>"

    def after_forward():
        """What becomes of gathered parameters; as a number of ranks where the axis may be of one rank, too."""
        if inner_axis is not None:
            return nested.choice(["", f"sw::reshard_after_forward<A{inner_axis}::size>", "sw::reshard_after_forward<false>"])
        return groups.choice(["", "", f"sw::reshard_after_forward<{groups.choice(['true', 'false'])}>",
                              f"sw::reshard_after_forward<{groups.choice(['1', f'int(A{sharded}::size)'])}>"])
    entries = [f"sw::data_parallel<A{a}{', sw::average_gradients' if a in averages else ''}>" for a in dp]
    if sharded is not None:
        entries[dp.index(sharded)] = shards([after_forward()])
        if hybrid is not None and groups.random() < 0.7:
            del entries[dp.index(hybrid)]  # shards' copies are copies of the batch's parts as well
        if inner_axis is not None:
            entries.remove(f"sw::data_parallel<A{inner_axis}{', sw::average_gradients' if inner_axis in averages else ''}>")

    def style(path, text):
        if tp is not None:
            entries.append(f'sw::at<"{path}", {text}>')

    bound_by_hand = more.random() < 0.4

    def struct(of, entries):
        """Its members, bound by hand or not: (type with {} for what binds it, name)."""
        if bound_by_hand:
            text = ", ".join(f"({cpp.format(f'sw::child<Bound, {k}>')}, {n})" for k, (cpp, n) in enumerate(entries))
            return f"BOOST_HANA_DEFINE_STRUCT({of}, {text});"
        text = ", ".join(f"({cpp.replace(', {}', '').format('')}, {n})" for cpp, n in entries)
        return f"SHARDWISE_MEMBERS(Bound, {text});"

    activation = r.choice(list(ACTIVATIONS))
    act = ACTIVATIONS[activation]
    hidden = r.choice([3, 5, 6])
    residual = r.random() < 0.5
    body = f"down({activation}(up(x)))"
    types.append(f"""template <class Bound = sw::unbound>
struct {name}_block : sw::module<{name}_block<Bound>, Bound> {{
  {struct(name + "_block", [(f"sw::linear<{F}, {hidden}, {{}}>", "up"), (f"sw::linear<{hidden}, {F}, {{}}>", "down")])}
  constexpr auto forward(const auto& x) const {{ return {body}{' + x' if residual else ''}; }}
}};
template <class B>
using {name}_block_of = {name}_block<B>;
""")
    writing = r.random() < 0.5
    write_op = r.choice(["sw::relu_(x)", "sw::mul_(x, 0.5)", "sw::tanh_(x)", "sw::add_(x, 1.5)"])
    write_f = {"sw::relu_(x)": py.UNARY["relu"], "sw::mul_(x, 0.5)": lambda v: v * 0.5, "sw::tanh_(x)": math.tanh,
               "sw::add_(x, 1.5)": lambda v: v + 1.5}[write_op]
    if writing:
        types.append(f"""template <class Bound = sw::unbound>
struct {name}_writer : sw::module<{name}_writer<Bound>, Bound> {{
  {struct(name + "_writer", [(f"sw::rms_norm_module<{F}, {{}}>", "unused")])}
  constexpr auto forward(const auto& x) const {{
    {write_op};
    return x * 2.0;
  }}
}};
""")

    embedded = r.random() < 0.25
    rows = 5
    code = []

    def member(cpp, n):
        members.append((cpp, n))

    # what a path's tensor-parallel style does: (name pattern, kind of the style)
    styles = []

    if embedded:
        member(f"sw::embedding_table<{rows}, {F}, {{}}>", "table")
        parameters.append(("table.weight", [rows, F], "embedding"))
        code.append("const auto h0 = table(x);")
        steps.append(("table",))
        if tp is not None and r.random() < 0.7:
            which = r.choice(["colwise", "rowwise"])
            styles.append(("table", which, r.choice(["table", "t*", "tabl?"])))
    else:
        code.append("const auto h0 = x * 1.0;")
        steps.append(("identity",))
    now = 0

    def nxt(text):
        nonlocal now
        code.append(f"const auto h{now + 1} = {text};")
        now += 1

    if writing:
        member(f"{name}_writer<{{}}>", "writer")
        parameters.append(("writer.unused.weight", [F], "norm"))
        prepared = tp is not None and r.random() < 0.75
        nxt(f"writer(h{now}) + h{now}")
        steps.append(("writer", prepared))
        if prepared:
            to = r.choice(["sw::shard<1>", "sw::replicate", "sw::reduced"])
            back = "sw::replicate"
            styles.append(("writer", f"sw::prepare_input<A{tp}, {to}>, sw::prepare_output<A{tp}, {back}>", "writer"))
    layers = r.choice(["one", "two", "repeat", "repeat"])
    if layers == "repeat":
        member(f"sw::repeat<2, {name}_block_of, {{}}>", "layers")
        blocks = ["layers.0", "layers.1"]
        nxt(f"layers(h{now})")
        steps.append(("blocks", blocks))
    else:
        blocks = ["first"] if layers == "one" else ["first", "second"]
        for b in blocks:
            member(f"{name}_block<{{}}>", b)
            nxt(f"{b}(h{now})")
            steps.append(("blocks", [b]))
    for b in blocks:
        for leaf, (o, i) in (("up", (hidden, F)), ("down", (F, hidden))):
            parameters.append((f"{b}.{leaf}.weight", [o, i], "linear"))
            parameters.append((f"{b}.{leaf}.bias", [o], "linear"))
    # a running mean of what comes by, read before it is written: (initial values, weight of the new mean)
    tracked = None
    if not accumulate and held.random() < 0.35:
        tracked = ([held.randrange(-8, 9) / 16 for _ in range(F)], held.choice([0.25, 0.5, 1.0]))
        partly = held.random() < 0.3  # written through a view, twice
        over = "0, 1" if sequence else "0"
        write = f"sw::lerp_(sw::implicit(seen), sw::mean<{over}>(x), {tracked[1]});"
        if partly:
            write += " sw::mul_(sw::narrow<0, 1, 2>(seen), 0.5);"
        types.append(f"""template <class Bound = sw::unbound>
struct {name}_tracker : sw::module<{name}_tracker<Bound>, Bound> {{
  {struct(name + "_tracker", [(f"sw::buffer<sw::shape<{F}>, sw::init::zeros, {{}}>", "seen")])}
  constexpr auto forward(const auto& x) const {{
    const auto y = x + seen * 0.5;
    if constexpr (sw::training<Bound>) {{
      {write}
    }}
    return y;
  }}
}};
""")
        member(f"{name}_tracker<{{}}>", "running")
        nxt(f"running(h{now})")
        steps.append(("running",))
    norm = r.choice([None, "layer_norm", "rms_norm"])
    if tp is not None and sequence and form != "plain" and norm is None:
        norm = more.choice(["layer_norm", "rms_norm"])
    if norm:
        member(f"sw::{norm}_module<{F}, {{}}>", "norm")
        parameters.append(("norm.weight", [F], "norm"))
        if tp is not None and sequence and more.random() < 0.9:
            styles.append(("norm", f"sw::prepare_input<A{tp}, sw::shard<1>>, sw::sequence_parallel<A{tp}>, sw::prepare_output<A{tp}, sw::replicate>", "norm"))
        if norm == "layer_norm":
            parameters.append(("norm.bias", [F], "norm"))
        nxt(f"norm(h{now})")
        steps.append((norm,))
    member(f"sw::linear<{F}, {out_features}, {{}}>", "head")
    parameters.append(("head.weight", [out_features, F], "linear"))
    parameters.append(("head.bias", [out_features], "linear"))
    steps.append(("head",))

    # --- the plan: which modules are groups of their own; which blocks are split, by which paths
    if sharded is not None and groups.random() < 0.8:
        paths = ["layers.*", "layers.1", "layers.*.up"] if layers == "repeat" else blocks + ["first.down"]
        paths += [n for _, n in members if n not in blocks + ["layers", "running"]]
        for path in groups.sample(paths, min(len(paths), groups.choice([1, 1, 2, 3]))):
            entries.append(f'sw::at<"{path}", {shards([after_forward()])}>')
    if tp is not None:
        block_styles = []
        if layers == "repeat":
            split = r.choice([["layers.*"], ["layers.0"], ["layers.1"], ["layers.?"], ["layers.0"], ["layers.1"], []])
        elif layers == "two":
            split = r.choice([["first", "second"], ["first"], ["second"], ["[fs]*"], []])
        else:
            split = r.choice([["first"], ["f*st"], []])
        for path in split:
            block_styles.append((path + ".up", "colwise"))
            block_styles.append((path + ".down", "rowwise"))
        r.shuffle(block_styles)
        for path, which in block_styles:
            styles.append((path, which, path))
        if r.random() < 0.4:
            styles.append(("head", "gathered", r.choice(["head", "h*"])))
    for path, which, text in styles:
        if which == "colwise" and path == "table":
            style(text, f"sw::colwise<A{tp}, 1, sw::output<sw::replicate>>")
        elif which == "gathered":
            style(text, f"sw::colwise<A{tp}, 1, sw::output<sw::replicate>>")
        elif which in ("colwise", "rowwise"):
            style(text, f"sw::{which}<A{tp}>")
        else:
            style(text, which)

    def place_of(path, shape, kind):
        """Placement on each axis: 0 replicate, 1 reduced, 2 + d shard of dim d, -1 a shard that is split otherwise."""
        leaf = path.split(".")[-1]
        module = path.split(".")[:-1]
        place = [0] * axes
        for a in dp:
            place[a] = 2 if a in (sharded, inner_axis) else 1
        for _, which, text in styles:
            pattern = text.split(".")
            if len(pattern) != len(module) or not all(fnmatch.fnmatchcase(m, q) for m, q in zip(module, pattern)):
                continue
            if which in ("colwise", "gathered"):
                place[tp] = 3 if kind == "embedding" else 2
            elif "sequence_parallel" in which:
                place[tp] = 1
            elif which == "rowwise":
                place[tp] = 2 if kind == "embedding" else 3 if leaf == "weight" else 0
        by_tp = tp is not None and place[tp] == 2 and sizes[tp] > 1
        nested = inner_axis is not None and sharded < inner_axis and sizes[inner_axis] > 1
        if sharded is not None and (nested or (by_tp and sharded < tp)):
            place[sharded] = -1  # behind a later axis, which is a strided shard
        if inner_axis is not None and by_tp and inner_axis < tp:
            place[inner_axis] = -1
        return place
    p.places = [place_of(*q) for q in parameters]

    # which groups are one flat parameter: (where a parameter begins in its group's, elements of that); none that a style splits, or of
    # which it reduces a part. At least one is, and of some programs the one-rank run has none.
    flat_runs, plain_places = [None] * len(parameters), p.places
    together = set()  # parameters that lie in a flat one with others
    if sharded is not None and inner_axis is None and takes_flat and (flat_alone or flatly.random() < 0.8):
        owners = [owner_of(entries, path) for path, _, _ in parameters]
        uses = {}  # of each group, how its parameters are placed over tp: all alike, and no shards
        for q, owner in zip(p.places, owners):
            uses.setdefault(owner, set()).add(0 if tp is None else q[tp])
        free = [k for k in sorted({entry for entry, _ in owners})
                if all(len(u) == 1 and max(u) < 2 for (entry, _), u in uses.items() if entry == k)]
        chosen = [k for k in free if flatly.random() < 0.75] or free[:1]
        for k in chosen:
            entries[k] = with_option(entries[k], FLAT, flatly.random() < 0.5)
        p.places = [[1 if a == sharded and entry in chosen else v for a, v in enumerate(q)] for q, (entry, _) in zip(p.places, owners)]
        for group_of in {o for o in owners if o[0] in chosen}:
            mine = [k for k, o in enumerate(owners) if o == group_of]
            total = sum(py.numel(parameters[k][1]) for k in mine)
            begin = 0
            for k in mine:
                flat_runs[k] = (begin, total)
                begin += py.numel(parameters[k][1])
            if len(mine) > 1:
                together |= {parameters[k][0] for k in mine}
    flat_plan = any(flat_runs)
    plain_alone = flat_plan and flatly.random() < 0.5
    p.flat_features = set()
    if flat_plan:
        n = sizes[sharded]
        totals = {q[1] for q in flat_runs if q}
        parts = [(-(-total // n), total) for total in totals]
        if None in flat_runs:
            p.flat_features.add("flat parameters beside others")
        if hybrid is not None:
            p.flat_features.add("flat parameters in hybrid shards")
        if n == 1 or not plain_alone:
            p.flat_features.add("flat parameters on one rank")
        if any(part * n > total for part, total in parts):
            p.flat_features.add("flat parameters with padding")
        if any(part * (n - 1) >= total for part, total in parts):
            p.flat_features.add("flat parameters of which ranks hold none")

    # --- what is fed, and what must come out
    count = 2 if accumulate else 1
    inputs = []
    lead = [batch, sequence] if sequence else [batch]
    for _ in range(count):
        if embedded:
            x = Array([r.randrange(rows) for _ in range(py.numel(lead))], lead)
        else:
            x = Array([r.randrange(-16, 17) / 8 for _ in range(py.numel(lead) * F)], lead + [F])
        y = Array([r.randrange(-8, 9) / 8 for _ in range(py.numel(lead) * out_features)], lead + [out_features])
        inputs.append((x, y))
    # the batch of each step: of a program for up to `batch` elements, fewer in one of them
    sizes_of_steps = [batch] * count_steps
    if form == "dynamic":
        sizes_of_steps[more.randrange(count_steps)] = more.randrange(1, batch)
    values = {path: [r.choice([k for k in range(-24, 25) if k != 0]) / 32 for _ in range(py.numel(shape))] for path, shape, _ in parameters}
    shapes = {path: shape for path, shape, _ in parameters}
    near = [0.0]
    seen = list(tracked[0]) if tracked else []
    seen_now = []  # what the forward pass made last has written

    def forward(v, x):
        q = {k: Array(v[k], shapes[k]) for k in v}
        h = x
        for s in steps:
            if s[0] == "table":
                h = py.embedding(q["table.weight"], x)
            elif s[0] == "identity":
                h = py.pointwise(lambda a: a * 1.0, x)
            elif s[0] == "writer":
                given = h.copy() if s[1] else h  # a redistribution is a value
                given.write(py.pointwise(write_f, given).flat())
                h = py.pointwise(lambda a, b: 2 * a + b, given, h)
            elif s[0] == "blocks":
                for b in s[1]:
                    up = linear(q, b + ".up", h)
                    out = linear(q, b + ".down", py.pointwise(act, up))
                    if activation == "sw::relu":
                        near[0] = min([near[0]] + [abs(u) for u in up.flat()])
                    h = py.pointwise(lambda a, c: a + c, out, h) if residual else out
            elif s[0] == "running":
                flat = h.flat()
                means = [math.fsum(flat[f::F]) / (len(flat) // F) for f in range(F)]
                seen_now[:] = [a + tracked[1] * (b - a) for a, b in zip(seen, means)]
                if partly:
                    seen_now[1:3] = [0.5 * a for a in seen_now[1:3]]
                h = py.pointwise(lambda a, b: a + 0.5 * b, h, Array(list(seen), [F]))
            elif s[0] == "layer_norm":
                h = py.layer_norm(h, q["norm.weight"], q["norm.bias"])
            elif s[0] == "rms_norm":
                h = py.rms_norm(h, q["norm.weight"])
            else:
                h = linear(q, "head", h)
        return h

    def loss(v, n):
        total = 0.0
        for x, y in inputs:
            if n < batch:
                x, y = (py.contiguous(py.narrow(t, 0, 0, n)) for t in (x, y))
            e = [(a - b) ** 2 for a, b in zip(forward(v, x).flat(), y.flat())]
            total += math.fsum(e) / len(e) / count
        return total
    optimizer, python = r.choice([("sw::sgd<>", "sgd"), ("sw::sgd<true>", "momentum"), ("sw::adam<>", "adam"), ("sw::adamw<>", "adamw"),
                                  ("sw::clip_norm<sw::sgd<>>", "clip")])
    if form == "moved":  # of updates of one list
        optimizer, python = more.choice([("sw::adam<>", "adam"), ("sw::adamw<>", "adamw")])
    # options of optimizers, and other ones; drawn apart, so that nothing above moves
    options = random.Random(seed * 9973 + 37)
    has = set()
    clips_norm = python == "clip"
    if form != "moved" and options.random() < 0.75:
        if python in ("sgd", "clip", "momentum") and options.random() < 0.5:
            python = options.choice(["lion", "lion", "muon"] if not flat_plan else ["lion"])
        elif python in ("sgd", "momentum") and not flat_plan:
            python = "momentum"
            has.add(options.choice(["nesterov", "dampened"]))
        elif python in ("adam", "adamw") and options.random() < 0.6:
            has.add("amsgrad")
        has |= {q for q in ("maximize", "clip_value") if options.random() < 0.4}
        optimizer = {"sgd": "sw::sgd<>", "clip": "sw::sgd<>", "momentum": "sw::sgd<true>", "adam": "sw::adam<>", "adamw": "sw::adamw<>",
                     "lion": "sw::lion<>", "muon": "sw::muon<{}>"}[python]
        for q in ("nesterov", "dampened"):
            if q in has:
                optimizer = f"sw::sgd<true, sw::sgd_form::{q}>"
        for q in ("amsgrad", *options.sample(["maximize", "clip_value"], 2)):
            if q in has:
                optimizer = f"sw::{q}<{optimizer}>"
        if clips_norm:
            optimizer = f"sw::clip_norm<{optimizer}>"
    if random.Random(seed * 7919 + 5).random() < 0.2:  # changes no bit of what is trained
        optimizer = f"sw::report_norm<{optimizer}>"
    # what is not trained, and what is trained by numbers of its own; drawn apart, so that nothing above moves
    settings = random.Random(seed * 6151 + 11)
    frozen, group, pattern = None, None, None
    trained = [path for path, _, _ in parameters if not path.startswith("writer.unused")]
    if not accumulate and form != "moved":
        firsts = sorted({path.split(".")[0] for path in trained})
        if flat_plan:
            pass  # which takes neither
        elif settings.random() < 0.2 and len(firsts) > 1:
            frozen = settings.choice(firsts)
            alone = random.Random(seed * 8191 + 17)
            if alone.random() < 0.5:
                frozen = alone.choice([path for path in trained if path.split(".")[0] == frozen])
            entries.append(f'sw::at<"{frozen}", sw::frozen>')
        elif settings.random() < 0.35:
            pattern = settings.choice(["bias", "weight", "w*", ""])
            if any(pattern != "bias" or path.endswith(".bias") for path in trained):
                group = 0.0125
                entries.append('sw::param_group<"own"' + (f', "{pattern}"' if pattern else "") + ">")
    is_frozen = lambda path: frozen is not None and (path == frozen or path.startswith(frozen + "."))

    def rate_of(path):
        mine = group is not None and (not pattern or path.split(".")[-1].startswith(pattern.rstrip("*")))
        return group if mine else rate
    rate, decay = 0.05, (r.choice([0.0, 0.125]) if python in ("adam", "adamw") else 0.0)
    if python in ("lion", "muon"):
        rate, decay = 0.01, options.choice([0.0, 0.125])
    matches = python == "muon" and options.random() < 0.5
    by_adam = python == "muon" and group is not None and options.random() < 0.5  # the group, whatever it has
    optimizer = optimizer.format("sw::muon_rate::" + ("match_rms_adamw" if matches else "original") + (', "own"' if by_adam else ""))
    extents_of = {path: extents for path, extents, _ in parameters}
    clip_value, dampening = 0.02, 0.25
    if "writer.unused.weight" in together and python in ("adam", "adamw"):
        decay = 0.125
        plain_alone = False  # there it would not decay
        p.flat_features.add("flat parameters without gradients that decay")
    eps, beta1, beta2, momentum, max_norm = 0.01, 0.9, 0.99, 0.5, 0.25
    losses, now_values = [], {k: list(v) for k, v in values.items()}
    state = {k: ([0.0] * len(v), [0.0] * len(v), [0.0] * len(v)) for k, v in values.items()}
    for step in range(1, count_steps + 1 if WORKED_OUT else 1):
        near[0] = 1.0
        n = sizes_of_steps[step - 1]
        losses.append(loss(now_values, n))
        written = list(seen_now)
        if near[0] < 1e-3:
            return None
        gradient = {}
        for k, v in now_values.items():
            gradient[k] = []
            for i in range(len(v)):
                h, before = 1e-5, v[i]
                v[i] = before + h
                up = loss(now_values, n)
                v[i] = before - h
                down = loss(now_values, n)
                v[i] = before
                gradient[k].append((up - down) / (2 * h))
                gradient[k][-1] /= averaged
        factor = 1.0
        if clips_norm:
            norm2 = math.sqrt(sum(g * g for k, gs in gradient.items() if not is_frozen(k) for g in gs))
            factor = min(1.0, max_norm / (norm2 + 1e-6))
        for k, v in now_values.items():
            if k.startswith("writer.unused") and k not in together:
                continue  # no loss depends on it: it stays as it is, but for a flat one's decay
            if is_frozen(k):
                continue
            own_rate = rate_of(k)
            m1, m2, m3 = state[k]
            given = [g * factor for g in gradient[k]]
            if "clip_value" in has:
                given = [min(max(g, -clip_value), clip_value) for g in given]
            if "maximize" in has:
                given = [-g for g in given]
            rule = python
            if python == "muon":
                rule = "adamw" if len(extents_of[k]) != 2 or (by_adam and own_rate == group) else "muon"
            if rule == "muon":
                rows, columns = extents_of[k]
                for i, g in enumerate(given):
                    m1[i] = momentum * m1[i] + (1 - momentum) * g
                direction = orthogonal([(1 - momentum) * g + momentum * a for g, a in zip(given, m1)], rows, columns)
                by = 0.2 * math.sqrt(max(rows, columns)) if matches else math.sqrt(max(1.0, rows / columns))
                for i, d in enumerate(direction):
                    v[i] = v[i] * (1 - own_rate * decay) - own_rate * by * d
                continue
            for i in range(len(v)):
                g = given[i]
                if rule == "momentum":
                    share = 1 - dampening if "dampened" in has and step > 1 else 1.0
                    m1[i] = momentum * m1[i] + share * g if step > 1 or "dampened" not in has else g
                    v[i] -= own_rate * (g + momentum * m1[i] if "nesterov" in has else m1[i])
                elif rule == "lion":
                    c = beta1 * m1[i] + (1 - beta1) * g
                    if not k.startswith("writer.unused"):
                        near[0] = min(near[0], 100 * abs(c))  # its sign must not depend on rounding
                    v[i] -= own_rate * (decay * v[i] + ((c > 0) - (c < 0)))
                    m1[i] = beta2 * m1[i] + (1 - beta2) * g
                elif rule in ("adam", "adamw"):
                    if rule == "adam":
                        g += decay * v[i]
                    else:
                        v[i] -= own_rate * decay * v[i]
                    m1[i] = beta1 * m1[i] + (1 - beta1) * g
                    m2[i] = beta2 * m2[i] + (1 - beta2) * g * g
                    m3[i] = max(m3[i], m2[i])
                    mh, vh = m1[i] / (1 - beta1 ** step), (m3 if "amsgrad" in has else m2)[i] / (1 - beta2 ** step)
                    v[i] -= own_rate * mh / (math.sqrt(vh) + eps)
                else:
                    v[i] -= own_rate * g
        if near[0] < 1e-3:
            return None
        seen = written
    if any(py.is_nan(x) or abs(x) > 1e3 for x in losses):
        return None
    p.losses = losses
    p.parameters = [(path, values[path], now_values[path]) for path, _, _ in parameters]
    p.buffers = [("running.seen", tracked[0], seen)] if tracked else []
    p.inputs = inputs
    p.accumulate, p.scale = accumulate, scale
    pipelines = ["", "", "sw::cancel_redistributions, sw::merge_common", "sw::fuse_pointwise", "sw::schedule_comm_wait",
                 "sw::rematerialise<50>", "sw::expedite_comms, sw::reorder_compute_for_overlap<>, sw::sink_waits, sw::raise_comms"]
    p.pipeline = "" if accumulate else r.choice(pipelines)
    p.ways = "eager" if accumulate else "compiled" if p.pipeline else r.choice(["eager | fuzz::compiled", "eager", "compiled"])
    fusion = more.choice(["sw::comm_fusion_in_place<>", "sw::comm_fusion_in_place<>", "sw::comm_fusion_with_concat<>"])
    if form == "fused" or (form == "iterated" and more.random() < 0.6):
        p.pipeline = fused_pipeline(more, fusion, python)
    elif form == "moved":
        p.pipeline = f"sw::fused_optimizer, {fusion}, sw::remove_copy_from_optimizer"
    elif form == "dynamic":
        p.pipeline = more.choice(["", "", "sw::fuse_kernels", "sw::cancel_redistributions, sw::merge_common", "sw::schedule_comm_wait"])
    if sharded is not None and not accumulate and p.pipeline in ("", *pipelines[2:4], pipelines[5]) and groups.random() < 0.7:
        p.pipeline += (", " if p.pipeline else "") + groups.choice(["sw::prefetch<1>", "sw::batch_collectives, sw::prefetch<1>", "sw::prefetch<2>"])
        p.ways = "compiled"
    if form != "plain" or flat_plan:
        p.ways = "compiled"
    moves = []
    if form == "moved":
        moves.append(f"fuzz::moved_bucket<Step, {'true' if embedded else 'false'}>")
    if form in ("iterated", "moved") and more.random() < 0.4:
        wanted = more.choice([["sw::raise_comms", "sw::sink_waits"], ["sw::sink_waits"], ["sw::raise_comms"]])
        moves += [m for m in wanted if m not in p.pipeline]  # a pass is listed once
    if form == "iterated" and more.random() < 0.3 and "partial_lower" not in (p.pipeline or ""):
        moves = ["sw::finalize<sw::partial_lower<sw::core_operations, 2>>"]
    # what the backward pass computes again; the layers and what is in them may both be checkpoints
    def checkpoint():
        return again.choice(["sw::checkpoint", "sw::checkpoint", 'sw::checkpoint_except<"matmul", "collectives">',
                             f'sw::checkpoint_only<"add", "{"relu" if activation == "sw::relu" else "einsum"}", "norm_apply">'])

    if again.random() < 0.4:
        paths = [n + ".*" if "sw::repeat" in cpp else n for cpp, n in members]
        if again.random() < 0.3:
            entries.append(checkpoint())
        for path in again.sample(paths, again.randint(0 if entries and entries[-1].startswith("sw::checkpoint") else 1, min(2, len(paths)))):
            entries.append(f'sw::at<"{path}", {checkpoint()}>')
    # what data_parallel does with gradients and the optimizer's states: lists and moves by name take neither shards nor other buckets
    held_in = random.Random(seed * 6007 + 29)
    for k, entry in enumerate(entries):
        if not entry.startswith("sw::data_parallel"):
            continue
        if form in ("plain", "dynamic") and held_in.random() < 0.4 and not flat_plan:
            entries[k] = f"{entry[:-1]}, sw::shard_optimizer_states>"
        elif form != "moved" and "comm_fusion" not in (p.pipeline or "") and held_in.random() < 0.4:
            entries[k] = f"{entry[:-1]}, sw::buckets<>>"
    # and whether gradients are kept, of one batch here: run(env) is then both parts of the program
    kept_in = random.Random(seed * 7127 + 31)
    if form in ("plain", "fused", "dynamic") and not accumulate and not flat_plan and kept_in.random() < 0.3:
        entries.append(kept_in.choice(["sw::keep_gradients<>", "sw::keep_gradients<sw::no_sync>"]))
    p.form, p.moves = form, moves
    p.note = f"{optimizer}, {'accumulated, ' if accumulate else ''}{form}, plan {', '.join(entries)}"

    # --- text
    places_x = [f"sw::on<typename W::A{a}, sw::shard<0>>" for a in dp]
    extents = ", ".join([f"sw::dyn<{batch}>" if form == "dynamic" else str(batch)] + ([str(sequence)] if sequence else []))
    type_x = f"sw::dtensor_of<{'std::int32_t' if embedded else dtype}, sw::shape<{extents}{'' if embedded else f', {F}'}>, typename W::mesh{''.join(', ' + q for q in places_x)}>"
    type_y = f"sw::dtensor_of<{dtype}, sw::shape<{extents}, {out_features}>, typename W::mesh{''.join(', ' + q for q in places_x)}>"
    from generate import numbers
    out = [f"// {name}: seed {seed}, {' x '.join(map(str, sizes))}, {p.note}\n"]
    out += types
    out.append(f"""template <class Bound = sw::unbound>
struct {name}_net : sw::module<{name}_net<Bound>, Bound> {{
  {struct(name + "_net", members)}
  constexpr auto forward(const auto& x) const {{
    {(chr(10) + '    ').join(code)}
    return head(h{now});
  }}
}};
template <class B>
using {name}_model = {name}_net<B>;
""")
    flat = []
    for x, y in inputs:
        flat += [x.flat(), y.flat()]
    out.append(numbers(f"{name}_data", flat))
    out.append(numbers(f"{name}_start", [q[1] for q in p.parameters + p.buffers]))
    out.append(numbers(f"{name}_results", [[v] for v in losses or [0.0] * count_steps] + [q[2] for q in p.parameters + p.buffers]))
    places = p.places + [[1 if a in dp else 0 for a in range(axes)] for _ in p.buffers]
    out.append(f"inline const int {name}_places[] = {{{', '.join(str(v) for q in places for v in q)}}};\n")
    out.append(f"inline const char* const {name}_names[] = {{{', '.join(f'{chr(34)}{path}{chr(34)}' for path, _, _ in parameters)}}};\n")
    plan_text = f"sw::plan<{', '.join(entries)}>"
    placed_here = f"static constexpr const int* places = {name}_places;\n    static constexpr const fuzz::run_in_flat* flat = nullptr;"
    if flat_plan:
        out.append(f"inline const fuzz::run_in_flat {name}_flat[] = {{{', '.join('{%d, %d}' % (q or (-1, 0)) for q in flat_runs)}}};\n")
        placed_here = placed_here.replace("nullptr", f"{name}_flat")
    if plain_alone and any(n != 1 for n in sizes):
        places = plain_places + [[1 if a in dp else 0 for a in range(axes)] for _ in p.buffers]
        out.append(f"inline const int {name}_plain_places[] = {{{', '.join(str(v) for q in places for v in q)}}};\n")
        plan_text = f"std::conditional_t<(W::mesh::size > 1), {plan_text}, sw::plan<{', '.join(plain(e) for e in entries)}>>"
        placed_here = (f"static constexpr const int* places = W::mesh::size > 1 ? {name}_places : {name}_plain_places;\n"
                       f"    static constexpr const fuzz::run_in_flat* flat = W::mesh::size > 1 ? {name}_flat : nullptr;")
    sums = "".join(f"    {member_text('a', path)} = sw::scale({member_text('a', path)} + {member_text('b', path)}, {0.5 / scale!r});\n"
                   for path, _, _ in parameters if not path.startswith("writer.unused"))
    # Muon makes of a gradient's smallest directions, and so of rounding in them, up to 500 times as much
    tolerances = ("2e-3, 0, 2e-3" if dtype == "float" else "1e-5, 0, 1e-6") if python == "muon" else "1e-4, 0, 1e-4" if dtype == "float" else "1e-7, 0, 1e-10"
    alone = all(n == 1 for n in sizes) or averaged > 1  # one rank has nothing to average over
    out.append(f"""struct {name} {{
  template <class B>
  using model = {name}_net<B>;
  template <class W>
  struct placed {{
    using A0 = typename W::A0;
    using A1 = typename W::A1;
    using A2 = typename W::A2;
    using plan = {plan_text};
    {placed_here}
    using x = {type_x};
    using y = {type_y};
    struct task {{
      using inputs = sw::inputs<sw::input_like<x>, sw::input_like<y>>;
      constexpr auto operator()(const auto& model, const auto& in, const auto& wanted) const {{
        const auto apart = model(in) - wanted;
        return sw::mean(apart * apart){'' if scale == 1.0 else f' * {scale!r}'};
      }}
    }};
  }};
  using optimizer = {optimizer};
  using pipeline = sw::pipeline<{p.pipeline}>;
  using element = {dtype};
  static constexpr bool accumulates = {'true' if accumulate else 'false'};
  static constexpr double loss_factor = {0.5 / scale if accumulate else 1.0!r};
  static constexpr int steps = {count_steps}, batch = {batch}, batches[] = {{{', '.join(map(str, sizes_of_steps))}}};
  static constexpr bool dynamic = {'true' if form == 'dynamic' else 'false'}, iterates = {'true' if form in ('iterated', 'moved') else 'false'};
  template <class Step>
  using iterated = sw::iterated<{', '.join(['Step'] + moves)}>;
  static constexpr std::size_t results = {count_steps + len(parameters) + len(p.buffers)}, parameters = {len(parameters)}, buffers = {len(p.buffers)};
  static constexpr const fuzz::numbers* data = {name}_data;
  static constexpr const fuzz::numbers* start = {name}_start;
  static constexpr const char* const* names = {name}_names;
  static constexpr bool has_flat = {'true' if flat_plan else 'false'};
  static constexpr std::size_t flat_axis = {sharded if flat_plan else 0};
  static void accumulate(auto& a, const auto& b) {{
{sums or '    (void)a, (void)b;'}
  }}
  template <class Env>
  static void set(Env& env) {{
    env.seed = 3;
    env.lr = {rate};
    env.beta1 = {beta1};
    env.beta2 = {beta2};
    env.eps = {eps};
    env.momentum = {momentum};
    env.weight_decay = {decay};
    env.max_norm = {max_norm};
    env.clip_value = {clip_value};
    env.dampening = {dampening};
{'    env.template group<"own">().lr = ' + repr(group) + ';' if group is not None else ''}
  }}
  static fuzz::expectation expected() {{
    return {{{name}_results, nullptr, nullptr, {count_steps + len(parameters) + len(p.buffers)}, 0, 0, {tolerances}, false, 0}};
  }}
}};

""")
    p.text = "".join(out)
    world = ", ".join(map(str, sizes))
    p.line = f"  fuzz::train<{name}, fuzz::world<{world}>, (fuzz::{p.ways}), {'0' if alone else 'fuzz::' + r.choice(p.ways.split(' | fuzz::'))}>(\"{name}\");\n"
    p.used |= {"value_and_grad"}
    return p


def orthogonal(x, rows, columns):
    """Muon's direction of a matrix, row-major: five steps of Newton and Schulz."""
    def product(a, b, r, k, c):
        return [math.fsum(a[i * k + l] * b[l * c + j] for l in range(k)) for i in range(r) for j in range(c)]

    def turned(a, r, c):
        return [a[i * c + j] for j in range(c) for i in range(r)]
    tall = rows > columns
    if tall:
        x, rows, columns = turned(x, rows, columns), columns, rows
    norm = math.sqrt(math.fsum(e * e for e in x)) + 1e-7
    x = [e / norm for e in x]
    for _ in range(5):
        a = product(x, turned(x, rows, columns), rows, columns, rows)
        b = [-4.7750 * p + 2.0315 * q for p, q in zip(a, product(a, a, rows, rows, rows))]
        x = [3.4445 * p + q for p, q in zip(x, product(b, x, rows, rows, columns))]
    return turned(x, rows, columns) if tall else x


def owner_of(entries, path):
    """(number of the entry, modules in its path) of the fully_shard whose group a parameter is in: the innermost, of several the last."""
    module = path.split(".")[:-1]
    found = None
    for k, entry in enumerate(entries):
        if "sw::fully_shard<" not in entry:
            continue
        at = re.match(r'sw::at<"([^"]*)"', entry)
        pattern = at.group(1).split(".") if at else []
        if len(pattern) > len(module) or not all(fnmatch.fnmatchcase(m, q) for m, q in zip(module, pattern)):
            continue
        if found is None or len(pattern) >= len(found[1]):
            found = k, tuple(module[:len(pattern)])
    return found


FLAT = "sw::flat_parameters"


def with_option(entry, option, first):
    """An entry's fully_shard with one more option, the first or the last one."""
    begin = entry.index("sw::fully_shard<") + len("sw::fully_shard<")
    end, depth = begin, 1
    while depth > 0:
        depth += {"<": 1, ">": -1}.get(entry[end], 0)
        end += 1
    options = entry[begin:end - 1].split(", ")
    options.insert(1 if first else len(options), option)
    return entry[:begin] + ", ".join(options) + entry[end - 1:]


def plain(entry):
    return entry.replace(f", {FLAT}", "")


def fused_pipeline(r, fusion, optimizer):
    """Collectives in buckets, alone and with the passes that may stand around them."""
    adam = optimizer in ("adam", "adamw")
    passes = r.choice([[], [], [], ["sw::cancel_redistributions", "sw::merge_common"]])
    if adam and r.random() < 0.6:
        passes.append(r.choice(["sw::fused_optimizer", "sw::foreach_optimizer"]))
    passes.append(fusion)
    if "sw::fused_optimizer" in passes and r.random() < 0.7:
        passes.append("sw::remove_copy_from_optimizer")
    if r.random() < 0.2:
        passes.append("sw::merge_products")
    if r.random() < 0.4:
        passes.append("sw::schedule_comm_wait")
    passes += r.choice([[], [], ["sw::fuse_kernels"], ["sw::fuse_pointwise"], ["sw::partial_lower<sw::core_operations, 2>"], ["sw::join_norm_adjoints"], ["sw::join_cross_entropy"],
                        ["sw::optimize_layout<>", "sw::fuse_pointwise"]])
    return ", ".join(passes)


def member_text(model, path):
    """A parameter of an eager model, as an expression: a list's elements are std::get<k>(items)."""
    parts = path.split(".")
    text = f"{model}.{parts[0]}"
    for part in parts[1:]:
        text = f"std::get<{part}>({text}.items)" if part.isdigit() else f"{text}.{part}"
    return text
