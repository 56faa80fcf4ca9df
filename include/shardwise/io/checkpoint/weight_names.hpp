// SPDX-License-Identifier: Apache-2.0
// weight_names: what the tensors of a program are called in a file of another library, and how they lie there; checked against the
// program while it compiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <shardwise/runtime/program/copied_parameters.hpp>
#include <shardwise/runtime/program/lowered.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1 {

namespace storage {

// How an entry says that its tensor lies in the file.
struct weight_form {
  bool transposed = false;
  int part = 0, of = 1, dim = 0;
  int head = 0;  // rows of a head whose pairs are neighbours in the file; 0: rows are in the program's order
};

}  // namespace storage

// The file has the matrix with its dims exchanged, as GPT-2's Conv1D keeps its weights.
struct transposed {
  static constexpr void set(storage::weight_form& f) { f.transposed = true; }
};
// Of a tensor in the file, cut into Of equal parts along its dim Dim, this is part Part: q, k and v of one matrix.
template <int Part, int Of, int Dim = 0>
struct part_of {
  static_assert(Part >= 0 && Part < Of && Dim >= 0, "shardwise: part_of: parts count from 0 to Of - 1, dims from 0");
  static constexpr void set(storage::weight_form& f) {
    f.part = Part;
    f.of = Of;
    f.dim = Dim;
  }
};
// Dim 0 is heads of Size rows, of which rotary positions turn pairs: rows i and i + Size / 2 in the program (rotary_form::half_split), the
// neighbours 2 i and 2 i + 1 in the file. So Meta's Llama files differ from Hugging Face's, in the queries' and keys' matrices.
template <int Size>
struct interleaved_heads {
  static_assert(Size > 0 && Size % 2 == 0, "shardwise: interleaved_heads: a head has an even number of rows");
  static constexpr void set(storage::weight_form& f) { f.head = Size; }
};
// The parameter or buffer Path is called Name in the file. A * in Path stands for a number, and the first, second, ... * of Name for
// the same ones: named_as<"layers.*.norm1.weight", "h.*.ln_1.weight">. How: transposed, part_of, interleaved_heads.
template <fixed_string Path, fixed_string Name, class... How>
struct named_as {
  static constexpr auto path = Path;
  static constexpr auto name = Name;
  static constexpr bool names = true;
  static constexpr storage::weight_form form() {
    storage::weight_form f;
    (How::set(f), ...);
    return f;
  }
};
// What the file has under such names is not read.
template <fixed_string Name>
struct left_out {
  static constexpr auto name = Name;
  static constexpr bool names = false;
};
template <class... Entries>
struct weight_names {};
// Everything is called in the file as in the program.
struct own_names {};

namespace storage {

// Of a * in the pattern, where the digits that it stands for begin and end.
struct matched_number {
  std::size_t begin = 0, end = 0;
};
// Whether a pattern, in which * stands for a number, is this path. The numbers go to `found`, as many as there is room for.
constexpr bool path_matches(std::string_view pattern, std::string_view path, matched_number* found = nullptr, int room = 0) {
  std::size_t p = 0, at = 0;
  int stars = 0;
  while (p < pattern.size()) {
    if (pattern[p] != '*') {
      if (at >= path.size() || path[at] != pattern[p]) return false;
      ++p, ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < path.size() && path[at] >= '0' && path[at] <= '9') ++at;
    if (at == begin) return false;
    if (stars < room) found[stars] = {begin, at};
    ++stars;
    ++p;
  }
  return at == path.size();
}
constexpr int stars_in(std::string_view pattern) {
  int n = 0;
  for (const char c : pattern) n += c == '*' ? 1 : 0;
  return n;
}

// A path of an entry, for errors.
template <fixed_string Path>
struct entry_path;

}  // namespace storage

template <fixed_string Path>
struct fact<storage::entry_path<Path>> : detail::quoted_fact<"entry", Path> {};

namespace storage {

template <class Entry>
constexpr bool entry_matches(std::string_view path) {
  if constexpr (Entry::names) return path_matches(Entry::path.view(), path);
  else return false;
}
template <class Entry>
constexpr bool more_stars_in_name() {
  if constexpr (Entry::names) return stars_in(Entry::name.view()) > stars_in(Entry::path.view());
  else return false;
}
template <class Entry>
constexpr bool fits_rank(std::string_view path, int rank) {
  if constexpr (Entry::names) {
    constexpr weight_form f = Entry::form();
    return !path_matches(Entry::path.view(), path) ||
           ((!f.transposed || rank == 2) && (f.of == 1 || f.dim < rank) && (f.head == 0 || rank > 0));
  } else {
    return true;
  }
}
template <class Entry>
constexpr bool fits_heads(std::string_view path, std::int64_t rows) {
  if constexpr (Entry::names) {
    constexpr int head = Entry::form().head;
    return head == 0 || rows % head == 0 || !path_matches(Entry::path.view(), path);
  } else {
    return true;
  }
}

#if !SHARDWISE_DEVICE_PASS
// Parameter or buffer number At of a program, against the entries.
template <class Program, bool Buffers, int At, class... Entries>
struct mapped_tensor {
  using path = runtime::detail::parameter_path<Program, Buffers, At>;
  static constexpr int count = (0 + ... + (entry_matches<Entries>(path::path.view()) ? 1 : 0));
  static constexpr spec described = runtime::flat_parts_of<Program>.spec_of(
      Program::program, runtime::detail::module_tensors<Program, Buffers>(Program::program).node[At]);
  static constexpr bool fits = (fits_rank<Entries>(path::path.view(), described.rank) && ...);
  static constexpr bool has_heads = (fits_heads<Entries>(path::path.view(), described.extent[0]) && ...);
  static constexpr problem wrong = count == 0   ? problem::weight_unmapped
                                   : count > 1  ? problem::weight_mapped_twice
                                   : !fits      ? problem::weight_form_rank
                                   : !has_heads ? problem::weight_form_heads
                                                : problem::none;
  static constexpr bool ok = raise<wrong, typename path::type>::ok;
  template <class Entry>
  static constexpr bool is_of = entry_matches<Entry>(path::path.view());
};
template <class Program, class Entry, int... P, int... B>
constexpr bool entry_used(std::integer_sequence<int, P...>, std::integer_sequence<int, B...>) {
  if constexpr (Entry::names) {
    constexpr bool used =
        (entry_matches<Entry>(runtime::detail::parameter_path<Program, false, P>::path.view()) || ... || false) ||
        (entry_matches<Entry>(runtime::detail::parameter_path<Program, true, B>::path.view()) || ... || false);
    constexpr problem wrong = more_stars_in_name<Entry>() ? problem::weight_name_numbers
                              : !used                     ? problem::weight_path_unmatched
                                                          : problem::none;
    return raise<wrong, entry_path<Entry::path>>::ok;
  } else {
    return true;
  }
}
template <class Program, class... Entries, int... P, int... B>
constexpr bool check_names(weight_names<Entries...>, std::integer_sequence<int, P...> p,
                           std::integer_sequence<int, B...> b) {
  return (entry_used<Program, Entries>(p, b) && ...) && (mapped_tensor<Program, false, P, Entries...>::ok && ... && true) &&
         (mapped_tensor<Program, true, B, Entries...>::ok && ... && true);
}
#endif

// `ok` is true; a map that leaves out a parameter or buffer of the program, has one twice, or names what it has not, is a sentence.
template <class Names, class Program>
struct checked_names {
#if SHARDWISE_DEVICE_PASS
  static constexpr bool ok = true;
#else
  static constexpr bool ok = check_names<Program>(Names{}, std::make_integer_sequence<int, Program::parameter_total>(),
                                                  std::make_integer_sequence<int, Program::buffer_total>());
#endif
};
template <class Program>
struct checked_names<own_names, Program> {
  static constexpr bool ok = true;
};

// What a tensor is called in the file, and in which form.
struct file_weight {
  std::string name;
  weight_form form;
};
template <class Entry>
void find_in_entry(const std::string& path, file_weight& to) {
  if constexpr (Entry::names) {
    constexpr int stars = stars_in(Entry::path.view());
    matched_number number[stars + 1]{};
    if (!path_matches(Entry::path.view(), path, number, stars)) return;
    to.form = Entry::form();
    int star = 0;
    for (const char c : Entry::name.view()) {
      if (c != '*') to.name += c;
      else {
        to.name += path.substr(number[star].begin, number[star].end - number[star].begin);
        ++star;
      }
    }
  }
}
template <class Names>
struct name_map;
template <class... Entries>
struct name_map<weight_names<Entries...>> {
  static file_weight of(const std::string& path) {
    file_weight w;
    (find_in_entry<Entries>(path, w), ...);
    return w;
  }
  static bool leaves_out(const std::string& name) { return (left_out_by<Entries>(name) || ... || false); }

 private:
  template <class Entry>
  static bool left_out_by(const std::string& name) {
    if constexpr (Entry::names) return false;
    else return path_matches(Entry::name.view(), name);
  }
};
template <>
struct name_map<own_names> {
  static file_weight of(const std::string& path) { return {path, {}}; }
  static bool leaves_out(const std::string&) { return false; }
};

}  // namespace storage

}  // namespace shardwise::inline v0_1
