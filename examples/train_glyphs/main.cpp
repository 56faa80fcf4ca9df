// SPDX-License-Identifier: Apache-2.0
// Learns to recognise letters and digits of many fonts over four ranks, each with its part of the batch, and is judged on fonts it never
// saw, beside the nearest neighbour among the images that it learned from.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/module/schedules.hpp>
#include <shardwise/runtime/program/describe.hpp>

#include "../common/output_folder.hpp"
#include "../common/progress.hpp"
#include "fonts.hpp"
#include "glyphs.hpp"
#include "images.hpp"
#include "model.hpp"
#include "nearest.hpp"
#include "options.hpp"
#include "pictures.hpp"
#include "random_numbers.hpp"

namespace train_glyphs {

using example::fixed;

inline constexpr double required = 0.85;           // of the held-out images
inline constexpr std::size_t most_known = 24'576;  // images that the nearest neighbour is looked for among
inline constexpr int own = batch / ranks;          // images of a step on one rank

struct result {
  std::vector<known_image> known;  // the first images that were trained on
  std::vector<judgement> said;
  std::vector<float> filters;
  double loss = 0, images_per_second = 0;
};

auto learning_rates(std::size_t steps) {
  const std::int64_t all = static_cast<std::int64_t>(steps), warm = std::clamp<std::int64_t>(all / 10, 1, 100);
  return sw::warm_up(warm, sw::cosine_schedule{.from = 3e-3, .to = 3e-5, .steps = std::max<std::int64_t>(1, all - warm)});
}

void show(std::span<float> rows, std::size_t row, const glyph& g) {
  std::transform(g.picture.begin(), g.picture.end(), rows.begin() + static_cast<std::ptrdiff_t>(row * pixels), seen);
}

/// Trains, and asks network and neighbours about the held-out images.
result train(const options& o, const font_files& fonts, const std::vector<glyph>& held_out) {
  result all;
  all.known.resize(std::min(most_known, o.steps * batch));
  all.said.resize(held_out.size());
  example::progress bar(o.steps, batch, "images");
  sw::launch<mesh>([&](auto& rank) {
    const bool speaks = rank.index() == 0;
    const auto first_row = static_cast<std::size_t>(rank.index() * own);  // of every batch the rows of this rank
    renderer draws(fonts.training);
    sw::executor<step> run(rank);
    run.initialise(o.seed);
    sw::step_env env;
    env.weight_decay = 0.02;
    env.max_norm = 1;
    const auto rates = learning_rates(o.steps);
    for (std::size_t s = 1; s <= o.steps; ++s) {
      const std::span<float> rows = run.template input<float>(0);
      const std::span<std::int32_t> labels = run.template input<std::int32_t>(1);
      for (std::size_t r = 0; r < own; ++r) {
        const std::size_t number =
            (s - 1) * batch + first_row + r;  // an image is a function of (seed, number), whatever the mesh
        const glyph g = draws.any(random_numbers(o.seed, for_training, number));
        show(rows, r, g);
        labels[r] = g.label;
        if (number < all.known.size()) all.known[number] = {standard(g.picture), g.label};
      }
      env.step = static_cast<std::int64_t>(s);
      env.lr = rates.at(env.step);  // counted from 1, so that the first update moves something
      run.run(env);
      if (!speaks) continue;
      all.loss = static_cast<double>(run.loss());
      if (!std::isfinite(all.loss))
        throw std::runtime_error("train_glyphs: the loss is not finite at step " + std::to_string(s));
      bar.update(s, "loss " + fixed(all.loss, 3));
    }
    const std::vector<float> filters = run.full_parameter("first.conv.weight");
    if (speaks) {
      all.images_per_second = bar.rate();
      all.filters = filters;
      std::cout << "judging " << held_out.size() << " images, and looking for the nearest of " << all.known.size()
                << " for each\n"
                << std::flush;
    }

    sw::executor<judge> judged(rank, run);
    for (std::size_t first = 0; first < held_out.size(); first += batch) {
      const std::span<float> rows = judged.template input<float>(0);
      const std::size_t begin = first + first_row, end = std::min(begin + own, held_out.size());
      for (std::size_t i = begin; i < end; ++i) show(rows, i - begin, held_out[i]);  // behind the last ones: earlier images
      judged.run({});
      for (std::size_t i = begin; i < end; ++i) {
        const std::span<const float> logits = judged.output().subspan((i - begin) * classes.size(), classes.size());
        const auto best = std::max_element(logits.begin(), logits.end());
        double total = 0;
        for (const float x : logits) total += std::exp(static_cast<double>(x - *best));
        all.said[i].answer = static_cast<std::int32_t>(best - logits.begin());
        all.said[i].sure = 1 / total;
      }
    }
    rank.barrier();  // all known images are there
    for (std::size_t i = static_cast<std::size_t>(rank.index()); i < held_out.size(); i += ranks)
      all.said[i].neighbour = nearest_label(standard(held_out[i].picture), all.known);
  });
  return all;
}

// Report ------------------------------------------------------------------------------------------------------------

struct score {
  std::size_t right = 0, nearest_right = 0, all = 0;
  void add(const glyph& g, const judgement& j) {
    right += j.answer == g.label;
    nearest_right += j.neighbour == g.label;
    ++all;
  }
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(all); }
  double nearest() const { return static_cast<double>(nearest_right) / static_cast<double>(all); }
};

std::string by_family(const std::vector<glyph>& held_out, const result& r, const std::vector<family>& families) {
  std::vector<score> of(families.size());
  for (std::size_t i = 0; i < held_out.size(); ++i)
    of[static_cast<std::size_t>(held_out[i].family)].add(held_out[i], r.said[i]);
  std::string text = "held-out family     network   nearest neighbour\n";
  for (std::size_t f = 0; f < of.size(); ++f) {
    std::string line = "  " + families[f].name;
    line.resize(20, ' ');
    text += line + percent(of[f].accuracy()) + "    " + percent(of[f].nearest()) + "\n";
  }
  return text;
}

/// The pairs of classes that are taken for one another most often, either way.
std::string most_mistaken(const std::vector<glyph>& held_out, const result& r) {
  std::map<std::pair<std::int32_t, std::int32_t>, int> pairs;
  int all = 0;
  for (std::size_t i = 0; i < held_out.size(); ++i) {
    const std::int32_t a = held_out[i].label, b = r.said[i].answer;
    if (a != b) ++pairs[{std::min(a, b), std::max(a, b)}], ++all;
  }
  std::vector<std::pair<int, std::pair<std::int32_t, std::int32_t>>> sorted;
  for (const auto& [pair, n] : pairs) sorted.emplace_back(-n, pair);
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (std::size_t k = 0; k < std::min<std::size_t>(8, sorted.size()); ++k)
    text += (k == 0 ? "" : ", ") + std::string(classes[static_cast<std::size_t>(sorted[k].second.first)]) + " and " +
            std::string(classes[static_cast<std::size_t>(sorted[k].second.second)]) + " " + std::to_string(-sorted[k].first);
  return std::to_string(all) + " mistakes" + (text.empty() ? "" : ", most between " + text) + "\n";
}

std::string summary_json(const options& o, const result& r, const score& s) {
  return "{\n  \"steps\": " + std::to_string(o.steps) + ",\n  \"seed\": " + std::to_string(o.seed) +
         ",\n  \"held_out_images\": " + std::to_string(s.all) + ",\n  \"accuracy\": " + fixed(s.accuracy(), 6) +
         ",\n  \"nearest_neighbour_accuracy\": " + fixed(s.nearest(), 6) +
         ",\n  \"nearest_neighbour_images\": " + std::to_string(r.known.size()) + ",\n  \"last_loss\": " + fixed(r.loss, 6) +
         ",\n  \"images_per_second\": " + fixed(r.images_per_second, 1) +
         ",\n  \"comm_bytes_per_step\": " + std::to_string(step::total_comm_bytes()) +
         ",\n  \"peak_bytes\": " + std::to_string(step::peak_bytes) + "\n}\n";
}

int run(const options& o) {
  std::cout << sw::describe_plan<step>({"dp"}) << std::flush;
  if (o.plan_only) return 0;

  const font_files fonts = find_fonts(o.fonts, o.allow_missing);
  example::output_folder out(o.out, {"mistakes.png", "confusion.png", "filters.png", "summary.json"});
  const auto listed = [](const std::vector<family>& families) {
    std::string names;
    std::size_t faces = 0;
    for (const family& f : families) names += (names.empty() ? "" : ", ") + f.name, faces += f.files.size();
    return std::to_string(faces) + " faces of " + names;
  };
  std::cout << fonts.notes << "trained on: " << listed(fonts.training) << "\nheld out: " << listed(fonts.held_out) << "\n"
            << std::flush;

  const std::vector<glyph> held_out = held_out_images(fonts.held_out);
  const result r = train(o, fonts, held_out);

  score s;
  for (std::size_t i = 0; i < held_out.size(); ++i) s.add(held_out[i], r.said[i]);
  std::cout << '\n' << by_family(held_out, r, fonts.held_out) << most_mistaken(held_out, r);
  const std::string& face = fonts.for_words;
  const auto shown = std::find_if(held_out.begin(), held_out.end(), [](const glyph& g) { return g.character == 'R'; });
  const std::vector<std::string> files{mistakes_png(held_out, r.said, fonts.held_out, face),
                                       confusion_png(held_out, r.said, face), filters_png(r.filters, *shown, face),
                                       summary_json(o, r, s)};
  out.write(files);
  std::cout << "mistakes.png, confusion.png, filters.png and summary.json are in " << o.out.string() << "\n";
  const bool good = s.accuracy() >= required && s.accuracy() > s.nearest();
  std::cout << "verdict: " << (good ? "passed" : "missed") << ", " << percent(s.accuracy(), 2) << " of " << s.all
            << " images of unseen fonts recognised; asked for are " << percent(required, 0)
            << " and more than the nearest neighbour's " << percent(s.nearest(), 2) << "\n";
  return 0;
}

}  // namespace train_glyphs

int main(int argc, char** argv) {
  try {
    const train_glyphs::options o = train_glyphs::parse_options(argc, argv);
    if (o.help) {
      std::cout << train_glyphs::usage();
      return 0;
    }
    return train_glyphs::run(o);
  } catch (const train_glyphs::usage_error& e) {
    std::cerr << "train_glyphs: " << e.what() << '\n';
    return 2;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
