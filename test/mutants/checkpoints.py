# SPDX-License-Identifier: Apache-2.0
"""Mutants of checkpoints: what a header may say, the order of a save, whole files, ranks that fail together."""

FORMAT = "io/safetensors/format.hpp"
READER = "io/safetensors/reader.hpp"
JSON = "io/storage/json.hpp"
FOLDER = "io/checkpoint/folder.hpp"
SAVE = "io/checkpoint/save.hpp"
LOAD = "io/checkpoint/load.hpp"
BLOCKS = "io/checkpoint/block_reader.hpp"
ACCESS = "runtime/executor/block_access.hpp"
IN_PLACE = "dist/checkpoint/in_place.cpp"
MEETING = "io/checkpoint/meeting.hpp"
LEAVES = "io/checkpoint/leaves.hpp"
INDEX = "io/checkpoint/index.hpp"
READS = "unit/io/safetensors/reader.cpp"
WRITES = "unit/io/safetensors/writer.cpp"
FAULTS = "dist/checkpoint/faults.cpp"
RESHARDING = "dist/checkpoint/resharding.cpp"
TRAINING = "dist/checkpoint/training.cpp"
NAMES = "io/checkpoint/weight_names.hpp"
WEIGHTS = "io/checkpoint/weights.hpp"
NAMED = "dist/checkpoint/weights.cpp"
LLAMA = "dist/checkpoint/llama_names.cpp"
INDICES = "unit/io/checkpoint/index.cpp"
BOXES = "io/checkpoint/runs.hpp"
RUNS = "unit/io/checkpoint/runs.cpp"
FLAT = "dist/checkpoint/flat_parameters.cpp"

MUTANTS = [
    ("safetensors: tensors may leave gaps", FORMAT, "if (e.begin != at)", "if (e.begin < at)", (READS,)),
    ("safetensors: a shape's product may leave 64 bits", FORMAT, "if (!fits) refuse_entry", "if (false) refuse_entry", (READS,)),
    ("safetensors: what follows the tensors is ignored", FORMAT, "if (at != data)", "if (at > data)", (READS,)),
    ("safetensors: unknown members pass", FORMAT, "for (const std::string& key : v.names)", "for (const std::string& key : std::vector<std::string>())", (READS,)),
    ("safetensors: a header of any size is read", READER, "if (header > storage::most_header_bytes)", "if (false)", (READS,)),
    ("safetensors: a range behind a tensor's end is read", READER, "if (from > e.end - e.begin || count > e.end - e.begin - from)", "if (false)", (READS,)),
    ("safetensors: the data begins anywhere", FORMAT, "while (text.size() % 8 != 0) text += ' ';", "", (WRITES,)),
    ("json: names stand twice", JSON, "if (named) check_names(v);", "", (READS,)),
    ("json: surrogates are UTF-8", JSON, "first == 0xED ? 0x9F", "first == 0xED ? 0xBF", (READS,)),
    ("json: any depth", JSON, "if (depth >= max_depth)", "if (depth >= 1000000)", (READS,)),
    ("save: the record is written before the files are where it says", FOLDER, "rename_file(made, inside(name), calls);\n    sync_folder(path_, calls);\n    std::vector<recorded_checkpoint> all;\n    if (has_record()) all = record();\n    all.push_back({name, step, checksum(index)});\n    write_record(all, calls);",
     "std::vector<recorded_checkpoint> all;\n    if (has_record()) all = record();\n    all.push_back({name, step, checksum(index)});\n    write_record(all, calls);\n    rename_file(made, inside(name), calls);\n    sync_folder(path_, calls);", (FAULTS,)),
    ("save: old checkpoints go before the record forgets them", FOLDER, "write_record(all, calls);\n    for (const recorded_checkpoint& c : old) remove(c.name);", "for (const recorded_checkpoint& c : old) remove(c.name);\n    write_record(all, calls);", (FAULTS,)),
    ("save: what was left unfinished stays", FOLDER, "for (const std::string& name : unfinished) remove(name);", "", (FAULTS,)),
    ("save: what is not a save's is removed", FOLDER, 'name.find_first_not_of("0123456789.", 5) == name.npos', "true", (FAULTS,)),
    ("save: parts of iterated steps are saved", LEAVES, "if (of.which == kept_value)", "if (false)", (TRAINING,)),
    ("save: a rank's failure is its own", MEETING, "if (failed > 0) throw", "if (failed > 0 && !said.empty() && said[0] == '!') throw", (FAULTS,)),
    ("save: ranks may give other positions", MEETING, "if (all[r] != all[0])", "if (false)", (FAULTS,)),
    ("save: rank 0 writes what all have", LEAVES, "leaf % groups.copies()", "0 * leaf", (RESHARDING,)),
    ("save: every rank writes what all have", LEAVES, "return groups.member(rank, leaf % groups.copies()) == rank;", "return true;", (RESHARDING,)),
    ("save: gradients that are added up are forgotten", SAVE, "if (ex.accumulated() != 0)", "if (false)", (FAULTS,)),
    ("load: checksums are not looked at", BLOCKS, "if (sum != p.block->sums", "if (false && sum != p.block->sums", (FAULTS, TRAINING)),
    ("load: another checkpoint's header passes", BLOCKS, "if (file->header_checksum() != said.header)", "if (false)", (FAULTS,)),
    ("load: files that nobody needs are not looked for", LOAD, "(void)reader->file(f);", "", (FAULTS,)),
    ("load: the index is believed", LOAD, "sum != chosen->index", "false && sum != chosen->index", (FAULTS,)),
    ("load: states that the program lacks are dropped", LOAD, "if (state && !states) continue;", "if (state) continue;", (FAULTS,)),
    ("load: whole blocks are read", BLOCKS, "static_cast<std::uint64_t>(first) * sizeof(T) / chunk_bytes * chunk_bytes", "0 * static_cast<std::uint64_t>(first)", (TRAINING,)),
    ("index: blocks may overlap", INDEX, "apart = apart && !meet;", "", (INDICES,)),
    ("index: a part may be left out", INDEX, "if (left != 0 || !apart)", "if (!apart)", (INDICES,)),
    ("index: blocks may reach beyond their tensor", INDEX, "if (!inside)", "if (false)", (INDICES,)),
    ("load: what was read into its place stays after a failure", LOAD, "  } catch (...) {\n    all_read.take_back();\n    throw;", "  } catch (...) {\n    throw;", (IN_PLACE,)),
    ("load: a state that was set is taken for none", ACCESS, "nothing = bytes[i] == 0;", "nothing = bytes[i] <= 255;", (IN_PLACE,)),
    ("load: a parameter that was set is taken for none", ACCESS, "return !e.given().has_parameter(table);", "return true;", (IN_PLACE,)),
    ("load: both halves of a long part are the first", BLOCKS, "half.begin[d] += half.size[d];", "", (IN_PLACE,)),
    ("weights: a matrix lies as it is in the program", WEIGHTS, "if (w.form.transposed) std::swap(p.stride[0], p.stride[1]);", "", (NAMED,)),
    ("weights: a head's pairs lie as in the program", WEIGHTS, "if (head == 0) return i;", "return i;", (LLAMA,)),
    ("weights: of a head only the block's own rows are read", WEIGHTS, "return head == 0 ? i : i - i % head;", "return i;", (LLAMA,)),
    ("weights: every part is the first", WEIGHTS, "w.form.of * w.form.part * dense[d]", "w.form.of * 0 * dense[d]", (NAMED,)),
    ("weights: a part of a tensor may be left out", WEIGHTS, "if (f.second != elements_in(f.first))", "if (false)", (NAMED,)),
    ("weights: what the program lacks is dropped", WEIGHTS, "if (read.count(e.name) == 0 && !leaves_out(e.name))", "if (false)", (NAMED,)),
    ("weights: two tensors may have one place", WEIGHTS, "if (once && !is_new)", "if (false)", (NAMED,)),
    ("weights: a * stands for nothing, too", NAMES, "if (at == begin) return false;", "", (NAMED,)),
    ("runs: slices begin anywhere", BOXES, "here % stride[d] != 0 || ", "", (RUNS,)),
    ("runs: slices go beyond the run", BOXES, "asked < left ? asked : left", "left", (RUNS,)),
    ("runs: rows that are whole are no box", BOXES, "while (d + 1 < dims && (", "while (d + 1 < dims && (true || ", (RUNS,)),
    ("index: a tensor may stand as boxes and as runs", INDEX, "if (is_run(*parts[t][i]", "if (false && is_run(*parts[t][i]", (INDICES,)),
    ("load: what a run of a file has before a box is skipped nowhere", BLOCKS, "read_common<T>(p, stored, at, l, to)", "read_common<T>(p, stored, 0, l, to)", (FLAT,)),
    ("load: all boxes of a run go to its first elements", BLOCKS, "0, wanted, to + at", "0, wanted, to + 0 * at", (FLAT,)),
    ("load: a flat group's counts of steps may differ", LOAD, "blocks[other] != blocks[k])", "false && blocks[other] != blocks[k])", (FLAT,)),
    ("weights: boxes of a run come in another order", WEIGHTS, "block.insert(block.end(), next", "block.insert(block.begin(), next", (FLAT,)),
    ("load: weights alone leave buffers without a value", ACCESS, "if (!e.given().has_parameter(at)) e.draw_leaf(at, seed);",
     ";", ("dist/checkpoint/own_buffers.cpp",)),
    ("load: weights leave out buffers that the checkpoint has", LOAD, "if (weights && leaf.buffer >= 0 && !has(leaf.name)) continue;", "if (weights && leaf.buffer >= 0) continue;",
     ("dist/checkpoint/own_buffers.cpp",)),
    ("safetensors: whole tensors are written in the order in which they are given", "io/safetensors/writer.hpp", "if (t.entry().name == e.name) file.put(t.data(), t.bytes());",
     "if (&t - tensors.data() == &e - file.entries().data()) file.put(t.data(), t.bytes());", ("unit/io/safetensors/writer.cpp",)),
    ("safetensors: values of another count than the shape's are written", "io/safetensors/writer.hpp", "if (count != std::size(values))", "if (false)",
     ("unit/io/safetensors/writer.cpp",)),
]
