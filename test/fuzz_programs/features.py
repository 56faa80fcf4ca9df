# SPDX-License-Identifier: Apache-2.0
"""What the generator is to draw, and how many of some seeds' programs have it: nothing is compiled. A feature that is in none, or in
fewer than its share, fails."""

import re

import generate
import modules

# text of a program that has the feature
TEXTS = {
    "writes in place": r"sw::(?!out)[a-z]+\w*_(<[^;(]*>)?\(", "views": r"sw::(narrow|slice|select|transpose|permute|view|reshape|unsqueeze|expand)\b",
    "async": r"redistribute_async", "async with then": r"\.then\(", "implicit": r"sw::implicit\(", "to_local and back": r"sw::from_local",
    "opaque functions": r"sw::opaque<", "own operations": r"sw::call<fuzz::", "own kernels": r"sw::call<sums::", "convolutions": r"sw::conv2d<", "several results": r"fuzz::(one|two|three)_results?\(|sw::(max|min)<", "random numbers": r"sw::(rand|randn|dropout|bernoulli)\w*[<(]", "named results": r"sw::named<",
    "strided shards": r"sw::strided_shard<", "shards by blocks": r"sw::shard<\d, \d",
    "double": r"dtensor_of<double", "float": r"dtensor_of<float", "int32": r"dtensor_of<std::int32_t", "special values": r"fuzz::(nan|inf)",
    "run-time extents": r"sw::dyn<", "several run-time sizes": r"second_run_time", "products of run-time sizes": r"sw::flatten<\d, \d>",
    "passes": r"pipeline = sw::pipeline<sw::", "members bound by hand": r"BOOST_HANA_DEFINE_STRUCT",
    "members said once": r"SHARDWISE_MEMBERS", "lists of modules": r"sw::repeat<", "embedding tables": r"sw::embedding_table", "clipped gradients": r"clip_norm", "reported norms": r"report_norm",
    "Lion": r"sw::lion<", "Muon": r"sw::muon<", "largest second moments": r"sw::amsgrad<",
    "momentum dampened or in Nesterov's form": r"sgd_form::(dampened|nesterov)", "gradients clipped by value": r"sw::clip_value<", "up the gradient": r"sw::maximize<",
    "buckets in place": r"comm_fusion_in_place", "buckets by copies": r"comm_fusion_with_concat", "one update for all": r"sw::fused_optimizer",
    "updates as lists": r"sw::foreach_optimizer", "sequence-parallel norms": r"sequence_parallel", "rematerialisation": r"sw::rematerialise",
    "checkpoints": r"sw::checkpoint\b", "selective checkpoints": r"sw::checkpoint_(except|only)",
    "parameters in shards": r"sw::fully_shard<", "hybrid shards": r"sw::replicate_over<", "groups of shards in groups": r'sw::at<"[^"]*", sw::fully_shard<',
    "shards kept after the forward pass": r"reshard_after_forward<false", "shards freed after the forward pass": r"reshard_after_forward<true",
    "shards freed to a number of ranks": r"reshard_after_forward<(1|int)", "averaged gradients": r"sw::average_gradients", "prefetched groups": r"sw::prefetch<",
    "optimizer states in shards": r"sw::shard_optimizer_states", "buckets of a plan": r"sw::buckets<",
    "flat parameters": r"sw::flat_parameters", "flat parameters of modules": r'sw::at<"[^"]*", sw::fully_shard<[^"]*sw::flat_parameters',
    "shards over two axes": r"sw::shard_over<", "kept over the inner axis": r"sw::reshard_after_forward<A\d::size",
    "frozen parameters": r'sw::at<"[^"]*\.\w*", sw::frozen>',
    "generated kernels": r"sw::fuse_(kernels|pointwise)", "lowered parts": r"sw::partial_lower", "waits put off": r"schedule_comm_wait|sink_waits",
    "merged products": r"sw::merge_products", "joined adjoints of norms": r"sw::join_norm_adjoints", "joined losses": r"sw::join_cross_entropy", "ranks without peers": r"fuzz::faked",
    "watched for NaN": r"executor_checks::finite", "eager": r"fuzz::eager", "compiled": r"fuzz::compiled\b", "traced": r"fuzz::traced", "mixed": r"fuzz::mixed",
    "value_and_grad": r"fuzz::gradients", "frozen modules": r"sw::frozen", "groups of parameters": r"sw::param_group", "gradient_step": r"fuzz::compiled_gradients", "arriving inputs": r"arrives = true",
}


def of_program(p, name):
    if p.kind == "refused":
        return {"refused programs"}
    text = generate.cpp(p, name) + generate.check_line(p, name) if p.kind == "function" else p.text + p.line
    found = {k for k, pattern in TEXTS.items() if re.search(pattern, text)}
    found.add(f"{len(p.sizes)} mesh axes")
    found |= {f"axes of {n}" for n in p.sizes}
    if p.kind == "creation":
        found |= {"tensors made on a rank", "submeshes", "flat groups"}
    if p.kind == "module":
        found |= p.flat_features
        found.add("modules under plans")
        entries = p.note
        if p.accumulate:
            found.add("gradient accumulation")
        if "keep_gradients" in entries:
            found.add("gradients kept from run to run")
        if p.scale != 1.0:
            found.add("loss scaling")
        if p.form in ("iterated", "moved"):
            found.add("iterated")
            if "comm_fusion" in p.pipeline:
                found.add("iterated with buckets")
        if p.form == "moved":
            found.add("updates moved to the next iteration")
        if "comm_fusion" in p.pipeline and entries.count("data_parallel") >= 2:
            found.add("buckets on two axes")
        if "comm_fusion" in p.pipeline and "data_parallel" in entries and "sequence_parallel" in entries:
            found.add("buckets with sequence-parallel norms")
        if "dyn<" in text:
            found.add("run-time batches")
        if "writer" in text and "prepare_input" in text:
            found.add("modules that write their input")
        if p.buffers:
            found.add("buffers")
    found |= {u for u in p.used if u in ALL}
    if p.kind == "function":
        viewing = {}
        for s in p.statements:
            m = re.match(r"const auto (\w+) = sw::(?:narrow|slice|select|transpose|permute|view|unsqueeze|squeeze|unflatten)\b.*\((\w+)\);", s.code)
            if m:
                viewing[m.group(1)] = m.group(2)
            if s.effect and viewing.get(viewing.get(s.uses[0])):
                found.add("writes through views of views")
        if any(v in viewing for v in viewing.values()):
            found.add("views of views")
        if p.written:
            found.add("written inputs")
        for _, _, shape, place, _ in p.inputs:
            for a, q in enumerate(place):
                if q[0] == "S" and p.sizes[a] > 1:
                    n = p.sizes[a]
                    chunk = -(-shape[q[1]] // n)
                    if shape[q[1]] % n:
                        found.add("uneven shards")
                    if chunk * (n - 1) >= shape[q[1]]:
                        found.add("empty shards")
    return found


ALL = set(TEXTS) | {"refused programs", "partial extremes, products and norms", "1 mesh axes", "2 mesh axes", "3 mesh axes", "axes of 1", "axes of 2", "axes of 3", "axes of 4", "tensors made on a rank",
                    "submeshes", "flat groups", "modules under plans", "gradient accumulation", "gradients kept from run to run", "loss scaling", "iterated", "iterated with buckets",
                    "updates moved to the next iteration", "buckets on two axes", "buckets with sequence-parallel norms", "run-time batches",
                    "modules that write their input", "buffers", "flat parameters beside others", "flat parameters on one rank", "flat parameters with padding", "flat parameters of which ranks hold none", "flat parameters in hybrid shards",
                    "flat parameters without gradients that decay", "writes through views of views", "views of views", "written inputs", "uneven shards", "empty shards"}


# Of a thousand programs at least so many: about half of those that have it now, so that what is drawn is drawn often.
LEAST = {"modules under plans": 60, "parameters in shards": 25, "groups of shards in groups": 20, "hybrid shards": 3, "flat parameters": 5, "flat parameters of modules": 4,
         "shards kept after the forward pass": 8, "shards freed after the forward pass": 8, "shards freed to a number of ranks": 10,
         "averaged gradients": 12, "prefetched groups": 4, "checkpoints": 12, "selective checkpoints": 12, "frozen modules": 6,
         "groups of parameters": 6}


def count(first, programs, mesh_of):
    """Prints how many programs have each feature; the number of features that too few have."""
    modules.WORKED_OUT = False
    generate.Program.gradient = lambda self, k: [1.0] * len(self.inputs[k][4])
    have = {k: 0 for k in ALL}
    for seed in range(first, first + programs):
        for k in of_program(generate.make_any(seed, mesh_of(seed)), f"p{seed}"):
            have[k] += 1
    for k in sorted(have, key=lambda k: (have[k], k)):
        print(f"{have[k]:5} {k}")
    missing = [k for k in have if have[k] < max(1, LEAST.get(k, 0) * programs // 1000)]
    print(f"tests: {len(have) - len(missing)} of {len(have)} features are in {programs} programs from seed {first}"
          + (f"; too few: {', '.join(missing)}" if missing else ""))
    return len(missing)
