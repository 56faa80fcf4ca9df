// SPDX-License-Identifier: Apache-2.0
// Generates with a key/value cache: the prompt at once, then byte after byte, whose heads the ranks of a backend share.
#include "generate.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <type_traits>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/operations/cache/host.hpp>
#include <shardwise/shardwise.hpp>

#include "../common/progress.hpp"  // fixed
#include "decoding.hpp"
#include "places.hpp"
#include "plans.hpp"

namespace train_text {

namespace {

using one_text = decoding<size, 1>;
using one_window = config<1, size::time, size::width, size::heads, size::layers>;

// Heads, features and the cache over as many ranks as there are heads; what is more are copies.
template <int Ranks>
struct serving {
  static constexpr int parts = Ranks < size::heads ? Ranks : size::heads;
  using heads = plans::tp<parts>;
  using mesh = sw::mesh<plans::copies<Ranks / parts>, heads>;
  using plan = megatron<one_text, heads>;
  using cached_plan = megatron<one_text, heads, sw::at<"layers.*.attn.cache", sw::cache_heads<heads>>>;
};
template <class Place, int Ranks = Place::ranks>
using decoder_on = sw::forward_step<gpt_of<one_text>::gpt, predict_next<one_text>, typename serving<Ranks>::cached_plan,
                                    typename serving<Ranks>::mesh, sw::pipeline<>, float, typename Place::backend>;
// Each byte by the whole window before it.
template <class Place>
using window_on = sw::forward_step<gpt_of<one_window>::gpt, predict<one_window>, typename serving<Place::ranks>::plan,
                                   typename serving<Place::ranks>::mesh, sw::pipeline<>, float, typename Place::backend>;

struct timing {
  double prompt = 0, text = 0;  // seconds
  std::size_t bytes = 0;        // generated after the first one, which the prompt's run gives
};

// The bytes that the model sees: of a text that is longer than its context the last half, and what came since, so that not every byte
// needs a run of its own window.
class seen_text {
 public:
  explicit seen_text(std::string_view text) { append(text); }
  void append(std::string_view more) {
    for (const char c : more) bytes_.push_back(static_cast<unsigned char>(c));
    if (bytes_.size() <= size::time) return;
    bytes_.erase(bytes_.begin(), bytes_.end() - size::time / 2);
    read_ = 0;
  }
  const std::vector<std::int32_t>& bytes() const { return bytes_; }
  // Those that no cache has yet, and where they begin; from here on they are in it.
  std::vector<std::int32_t> take(std::int32_t& first) {
    first = static_cast<std::int32_t>(read_);
    std::vector<std::int32_t> fresh(bytes_.begin() + static_cast<std::ptrdiff_t>(read_), bytes_.end());
    read_ = bytes_.size();
    return fresh;
  }

 private:
  std::vector<std::int32_t> bytes_;
  std::size_t read_ = 0;
};

// logits(seen): of the byte that comes next.
template <class Logits>
std::string extended(std::string text, std::size_t count, const example::sampling& how, Logits&& logits, timing* time) {
  const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  seen_text seen(text);
  const double began = now();
  double first = began;
  for (std::size_t k = 0; k < count; ++k) {
    const std::vector<float> next = logits(seen);
    const char byte = static_cast<char>(example::next_token(next, how, k));
    if (k == 0) first = now();
    text += byte;
    seen.append({&byte, 1});
  }
  if (time) *time = {first - began, now() - first, count > 0 ? count - 1 : 0};
  return text;
}

template <class Run>
std::vector<float> logits_at(Run& run, std::size_t row) {
  const auto all = run.template output<float>(0);
  std::vector<float> of(size::bytes);
  for (std::size_t b = 0; b < of.size(); ++b) of[b] = all[row * size::bytes + b];
  return of;
}
template <class Run>
auto by_cache(Run& run) {
  return [&run](seen_text& seen) {
    std::int32_t first = 0;
    const std::vector<std::int32_t> fresh = seen.take(first);
    run.resize(static_cast<std::int64_t>(fresh.size()));
    run.set_input(0, fresh);
    run.set_input(1, std::vector<std::int32_t>{first});
    run.run({});
    return logits_at(run, fresh.size() - 1);
  };
}
template <class Run>
auto by_window(Run& run) {
  return [&run](seen_text& seen) {
    std::vector<std::int32_t> window = seen.bytes();
    const std::size_t used = window.size();
    window.resize(size::time, 0);
    run.set_input(0, window);
    run.run({});
    return logits_at(run, used - 1);
  };
}

template <class Place>
int generate_at(const options& o) {
  const std::filesystem::path folder = o.resume.empty() ? o.out / "checkpoints" : o.resume;
  std::error_code unknown;
  if (!std::filesystem::exists(folder / "checkpoints.json", unknown))
    throw usage_error(
        "there is no checkpoint in '" + folder.string() +
        "' to generate with: train one with --save DIR and name it with --resume DIR, or ./quickstart train first.");
  constexpr bool may_read_windows = Place::precision == "float32";
  if (!o.cached && !may_read_windows)
    throw usage_error(
        "--no-cache needs attention in float32, of which this program, built for bf16, has no kernels: leave it out, take "
        "--backend threads, or ./quickstart generate TEXT --backend cuda --precision float32.");
  const bool silent = is_silent<Place>();
  const example::sampling how{.temperature = o.temperature, .top_k = o.top_k, .seed = o.seed};
  std::string text;
  timing time;
  sw::loaded_checkpoint from;
  Place::template launch<typename serving<Place::ranks>::mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    if constexpr (requires { rank.compute_threads(o.threads); }) rank.compute_threads(o.threads);
    const auto with = [&](auto& run, auto logits) {
      timing mine;
      const sw::loaded_checkpoint found = sw::load(run, folder.string(), {.contents = sw::load_contents::weights});
      const std::string written = extended(o.generate, o.new_tokens, how, logits, &mine);
      rank.agree(sw::storage::checksum(written), "the generated text");
      if (rank.index() == 0) text = written, time = mine, from = found;
    };
    if (o.cached) {
      sw::executor<decoder_on<Place>, rank_type> run(rank);
      with(run, by_cache(run));
    } else if constexpr (may_read_windows) {
      sw::executor<window_on<Place>, rank_type> run(rank);
      with(run, by_window(run));
    }
  });
  if (silent) return 0;
  std::cout << printable(text) << "\n\nby " << from.path << ", step " << from.step << ": prompt of " << o.generate.size()
            << " bytes in " << example::fixed(1e3 * time.prompt, 1) << " ms";
  if (time.text > 0 && time.bytes > 0)
    std::cout << ", then " << example::fixed(static_cast<double>(time.bytes) / time.text, 1) << " tokens/s"
              << (o.cached ? "" : " without a cache");
  std::cout << "\n";
  return 0;
}

struct alone : on_threads {
  static constexpr int ranks = 1;
};

}  // namespace

int generate(const options& o) {
  return at_place(o, [&]<class Place>(Place) { return generate_at<Place>(o); });
}

std::string continued(const std::vector<std::vector<float>>& parameters, const std::string& text, std::size_t count,
                      const example::sampling& how, int threads) {
  std::string all;
  sw::launch<serving<1>::mesh>([&](auto& rank) {
    rank.compute_threads(threads);
    sw::executor<decoder_on<alone>> run(rank);
    run.initialise(0);  // the cache
    for (int i = 0; i < run.parameter_count(); ++i) run.set_parameter(i, parameters[static_cast<std::size_t>(i)]);
    all = extended(text, count, how, by_cache(run), nullptr);
  });
  return all;
}

std::string printable(const std::string& text) {
  std::string s;
  for (const char c : text) s += (c >= 32 && c < 127) || c == '\n' || c == '\t' ? c : '?';
  return s;
}

}  // namespace train_text
