// SPDX-License-Identifier: Apache-2.0
// Weights of other libraries: GPT-2's names, transposed matrices and thirds of them, on 1 rank and 4, and back; files that do not fit.
#include <train_text/gpt2_names.hpp>
#include <train_text/model.hpp>

#include <shardwise/shardwise.hpp>
#include <shardwise/io/checkpoint/checkpoint.hpp>

#include <doctest/doctest.h>

#include <files.hpp>
#include <thrown.hpp>

#include <cerrno>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace sw = shardwise;
namespace tt = train_text;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
using size = tt::config<4, 6, 12, 2, 2, 20>;
template <int D, int N, class T = float>
using program = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp<D>>,
                               tt::megatron<size, tp<N>, sw::fully_shard<dp<D>>, sw::at<"layers.*", sw::fully_shard<dp<D>>>>,
                               sw::mesh<dp<D>, tp<N>>, sw::adam<>, sw::pipeline<>, T>;

// GPT-2's tensors of these sizes, each element another number.
std::vector<sw::safetensors_entry> gpt2_tensors(const std::string& type) {
  std::vector<sw::safetensors_entry> all;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    all.push_back({name, type, std::move(shape), 0, 0});
  };
  add("wte.weight", {20, 12});
  add("wpe.weight", {6, 12});
  for (const std::string h : {"h.0.", "h.1."}) {
    for (const char* ln : {"ln_1", "ln_2"}) {
      add(h + ln + ".weight", {12});
      add(h + ln + ".bias", {12});
    }
    add(h + "attn.bias", {1, 1, 6, 6});
    add(h + "attn.c_attn.weight", {12, 36});
    add(h + "attn.c_attn.bias", {36});
    add(h + "attn.c_proj.weight", {12, 12});
    add(h + "attn.c_proj.bias", {12});
    add(h + "mlp.c_fc.weight", {12, 48});
    add(h + "mlp.c_fc.bias", {48});
    add(h + "mlp.c_proj.weight", {48, 12});
    add(h + "mlp.c_proj.bias", {12});
  }
  add("ln_f.weight", {12});
  add("ln_f.bias", {12});
  return all;
}
template <class T>
void write_file(const std::string& path, std::vector<sw::safetensors_entry> entries) {
  sw::safetensors_writer file(path, std::move(entries));
  float next = 0;
  for (const auto& e : file.entries()) {
    std::vector<T> v(static_cast<std::size_t>(e.end - e.begin) / sizeof(T));
    for (T& x : v) x = static_cast<T>((next += 1) / 4096);
    file.put(v.data(), v.size() * sizeof(T));
  }
  file.finish();
}

template <class Program>
void check_names(const std::string& path, const std::string& back) {
  const sw::safetensors_reader file(path);
  sw::launch<typename Program::mesh_type>([&](auto& rank) {
    sw::executor<Program> ex(rank);
    sw::load_weights<tt::gpt2_names>(ex, path);
    using T = typename Program::element;
    const auto same = [&](const std::string& name, const std::string& in_file, auto&& at) {
      const std::vector<T> got = ex.full_parameter(name);
      const std::vector<float> want = file.values<float>(in_file);
      bool all = true;
      for (std::size_t i = 0; i < got.size(); ++i) all = all && got[i] == static_cast<T>(want[at(i)]);
      CAPTURE(name);
      CHECK(all);
    };
    const auto straight = [](std::size_t i) { return i; };
    same("bytes.weight", "wte.weight", straight);
    same("position.weight", "wpe.weight", straight);
    same("norm.bias", "ln_f.bias", straight);
    same("layers.1.norm2.weight", "h.1.ln_2.weight", straight);
    for (std::size_t third = 0; third < 3; ++third) {
      const std::string w = std::string("layers.1.attn.w") + "qkv"[third];
      same(w + ".weight", "h.1.attn.c_attn.weight", [&](std::size_t i) { return i % 12 * 36 + third * 12 + i / 12; });
      same(w + ".bias", "h.1.attn.c_attn.bias", [&](std::size_t i) { return third * 12 + i; });
    }
    same("layers.0.attn.wo.weight", "h.0.attn.c_proj.weight", [](std::size_t i) { return i % 12 * 12 + i / 12; });
    same("layers.0.ffn.up.weight", "h.0.mlp.c_fc.weight", [](std::size_t i) { return i % 12 * 48 + i / 12; });
    same("layers.0.ffn.down.weight", "h.0.mlp.c_proj.weight", [](std::size_t i) { return i % 48 * 12 + i / 48; });
    sw::save_weights<tt::gpt2_names>(ex, back);
  });
  const sw::safetensors_reader again(back);
  CHECK(again.entries().size() == file.entries().size() - 2);  // the masks are no parameters
  for (const auto& e : again.entries()) {
    CHECK(e.shape == file.entry(e.name).shape);
    const std::vector<float> want = file.values<float>(e.name);
    if constexpr (std::is_same_v<typename Program::element, float>) CHECK(again.values<float>(e.name) == want);
    else CHECK(again.values<double>(e.name) == std::vector<double>(want.begin(), want.end()));
  }
}

TEST_CASE("weights: GPT-2's names, on 1 rank, 4 and 8, and back") {
  const test::folder scratch;
  write_file<float>(scratch / "gpt2", gpt2_tensors("F32"));
  check_names<program<1, 1>>(scratch / "gpt2", scratch / "back1");
  check_names<program<2, 2>>(scratch / "gpt2", scratch / "back4");
  check_names<program<8, 1, double>>(scratch / "gpt2", scratch / "back8");
  CHECK(test::read_text(scratch / "back1") == test::read_text(scratch / "back4"));
}

TEST_CASE("weights: elements of fewer bits become the program's, others are refused") {
  const test::folder scratch;
  write_file<sw::bf16>(scratch / "low", gpt2_tensors("BF16"));
  write_file<double>(scratch / "wide", gpt2_tensors("F64"));
  sw::launch<sw::mesh<dp<2>, tp<2>>>([&](auto& rank) {
    sw::executor<program<2, 2>> ex(rank);
    sw::load_weights<tt::gpt2_names>(ex, scratch / "low");
    const auto got = ex.full_parameter("norm.weight");
    const auto want = sw::safetensors_reader(scratch / "low").values<sw::bf16>("ln_f.weight");
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == static_cast<float>(want[i]));
    CHECK(test::mentions(test::thrown([&] { sw::load_weights<tt::gpt2_names>(ex, scratch / "wide"); }),
                         "as F64, and the program as F32, which does not hold all its values; convert the file"));
    CHECK(ex.full_parameter("norm.weight") == got);
    sw::executor<program<2, 2>> fresh(rank);
    CHECK(test::mentions(test::thrown([&] { sw::load_weights<tt::gpt2_names>(fresh, scratch / "wide"); }), "as F64"));
    CHECK(test::mentions(test::thrown([&] { fresh.full_parameter("norm.weight"); }), "has no value"));
  });
}

TEST_CASE("weights: files that do not fit, and full disks") {
  const test::folder scratch;
  const auto said = [&](std::vector<sw::safetensors_entry> entries) {
    write_file<float>(scratch / "x", std::move(entries));
    std::vector<std::string> all(4);
    sw::launch<sw::mesh<dp<2>, tp<2>>>([&](auto& rank) {
      sw::executor<program<2, 2>> ex(rank);
      all[static_cast<std::size_t>(rank.index())] =
          test::thrown([&] { sw::load_weights<tt::gpt2_names>(ex, scratch / "x"); });
    });
    for (const auto& s : all) CHECK(s == all[0]);
    return all[0];
  };
  auto entries = gpt2_tensors("F32");
  entries.push_back({"lm_head.weight", "F32", {20, 12}, 0, 0});
  CHECK(
      test::mentions(said(entries),
                     "has 'lm_head.weight', which is no tensor of the program; if it is meant to be left out, say so in the "
                     "names: left_out<\"lm_head.weight\">"));
  entries = gpt2_tensors("F32");
  entries.pop_back();
  CHECK(test::mentions(said(entries), "has no tensor 'ln_f.bias'"));
  entries = gpt2_tensors("F32");
  entries[0].shape = {21, 12};
  CHECK(test::mentions(said(entries), "has 'wte.weight' of 21 x 12, and 'bytes.weight' of the program makes it 20 x 12"));

  sw::launch<sw::mesh<dp<2>, tp<2>>>([&](auto& rank) {
    sw::executor<program<2, 2>> ex(rank);
    CHECK(test::mentions(test::thrown([&] { sw::save_weights(ex, scratch / "own"); }),
                         "save_weights: parameter 'bytes.weight' has no value"));
    ex.initialise(1);
    sw::save_weights(ex, scratch / "own");  // under its own names
    const auto before = ex.full_parameter("layers.1.attn.wo.weight");
    ex.initialise(2);
    sw::load_weights(ex, scratch / "own");
    CHECK(ex.full_parameter("layers.1.attn.wo.weight") == before);
    // that is what own_names say, which may be written
    sw::save_weights<sw::own_names>(ex, scratch / "said");
    if (rank.index() == 0) CHECK(test::read_text(scratch / "said") == test::read_text(scratch / "own"));
    ex.initialise(3);
    sw::load_weights<sw::own_names>(ex, scratch / "own");
    CHECK(ex.full_parameter("layers.1.attn.wo.weight") == before);
    sw::file_calls full;
    full.write = [](int, const void*, std::size_t) -> ::ssize_t {
      errno = ENOSPC;
      return -1;
    };
    CHECK(test::mentions(test::thrown([&] { sw::save_weights(ex, scratch / "own", full); }),
                         "own.new' cannot be written: No space left"));
    CHECK(!std::filesystem::exists(scratch / "own.new"));
    sw::load_weights(ex, scratch / "own");  // is as it was
  });
}

template <class Bound = sw::unbound>
struct pair : sw::module<pair<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<4, 6>, sw::init::ones>, up),
                    (sw::parameter<sw::shape<4, 6>, sw::init::zeros>, down));
  constexpr auto forward(const auto& x) const { return sw::sum(sw::linear_product(x, up) + sw::linear_product(x, down)); }
};
struct pair_task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<2, 6>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
using pairs = sw::forward_step<pair, pair_task, sw::plan<>, sw::mesh<dp<1>>>;

TEST_CASE("weights: maps that give two tensors one place, or fill a part of one") {
  using twice = sw::weight_names<sw::named_as<"up", "w">, sw::named_as<"down", "w">>;
  using third = sw::weight_names<sw::named_as<"up", "w", sw::part_of<0, 3>>, sw::named_as<"down", "w", sw::part_of<1, 3>>>;
  using uneven =
      sw::weight_names<sw::named_as<"up", "w", sw::part_of<0, 2>>, sw::named_as<"down", "w", sw::part_of<1, 2, 1>>>;
  using halves = sw::weight_names<sw::named_as<"up", "w", sw::part_of<1, 2>>, sw::named_as<"down", "w", sw::part_of<0, 2>>>;
  const test::folder scratch;
  sw::launch<sw::mesh<dp<1>>>([&](auto& rank) {
    sw::executor<pairs> ex(rank);
    ex.initialise(1);
    CHECK(test::mentions(
        test::thrown([&] { sw::save_weights<twice>(ex, scratch / "x"); }),
        "'down' is 'w' in the file, as another tensor of the program is; give it a name or a part of its own"));
    CHECK(test::mentions(test::thrown([&] { sw::save_weights<third>(ex, scratch / "x"); }),
                         "of 'w', 12 x 6 in the file, the program's tensors are 48 elements; name the other parts, too"));
    CHECK(test::mentions(test::thrown([&] { sw::load_weights<third>(ex, scratch / "x"); }), "name the other parts, too"));
    CHECK(test::mentions(test::thrown([&] { sw::save_weights<uneven>(ex, scratch / "x"); }),
                         "'down' would be a part of 'w' of 4 x 12, and another tensor of the program of 8 x 6"));
    sw::save_weights<halves>(ex, scratch / "x");
    std::vector<float> want(48, 0);
    for (std::size_t i = 24; i < 48; ++i) want[i] = 1;
    CHECK(sw::safetensors_reader(scratch / "x").values<float>("w") == want);
    sw::executor<pairs> again(rank);
    sw::load_weights<halves>(again, scratch / "x");
    CHECK(again.full_parameter("up") == std::vector<float>(24, 1));
    sw::safetensors_writer w(scratch / "tied",
                             {{"w", "F32", {4, 6}, 0, 0}});  // one tensor for two parameters is read into both
    w.put(want.data(), 24 * sizeof(float));
    w.finish();
    sw::load_weights<twice>(again, scratch / "tied");
    CHECK(again.full_parameter("up") == std::vector<float>(24, 0));
    CHECK(again.full_parameter("down") == std::vector<float>(24, 0));
  });
}

TEST_CASE("weights: patterns of paths") {
  using sw::storage::path_matches;
  static_assert(path_matches("layers.*.w", "layers.12.w"));
  static_assert(!path_matches("layers.*.w", "layers..w"));
  static_assert(!path_matches("layers.*.w", "layers.x.w"));
  static_assert(!path_matches("layers.*.w", "layers.1.w2"));
  static_assert(path_matches("*.*", "3.14"));
  using names = sw::weight_names<sw::named_as<"a.*.b.*", "x*.y*z">>;
  CHECK(sw::storage::name_map<names>::of("a.12.b.3").name == "x12.y3z");
}

}  // namespace
