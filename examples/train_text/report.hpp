// SPDX-License-Identifier: Apache-2.0
// What a run leaves: loss.csv, loss.svg and summary.json, with evaluations held_out.csv, whole or not at all.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../common/output_folder.hpp"
#include "../common/progress.hpp"  // fixed

namespace train_text {

using example::fixed;
using example::usage_error;

struct loss_point {
  std::size_t step;
  double bits_per_byte;
};

struct summary {
  std::size_t steps = 0;
  double held_out_bits_per_byte = 0;
  double unigram_bits_per_byte = 0;
  double bigram_bits_per_byte = 0;
  double trigram_bits_per_byte = 0;
  double tokens_per_second = 0;
  std::uint64_t comm_bytes_per_step = 0;
  std::uint64_t peak_bytes = 0;
  // What one rank does in a step, as the library's records count it: operations, and bytes of its kernels' operands and results.
  double flops_per_step = 0;
  double kernel_bytes_per_step = 0;
  // Of the recorded steps' time the part in which rank 0 communicates, or waits for that, and computes nothing; -1: none was recorded.
  double communication_share = -1;
};

/// What a step does, and at which rates it did: the machine's own rates are not known here. Its floor follows from those: it takes no less
/// than its operations do at the highest rate that the machine has. Bytes are a floor where no cache holds them.
inline std::string step_report(const summary& s, double tokens_per_step) {
  const double seconds = s.tokens_per_second > 0 ? tokens_per_step / s.tokens_per_second : 0;
  if (seconds == 0) return "";
  std::string text = "step: " + fixed(1e3 * seconds, 2) + " ms, " + fixed(s.tokens_per_second, 0) +
                     " tokens/s; of each rank " + fixed(s.flops_per_step / 1e9, 2) + " GFLOP and " +
                     fixed(s.kernel_bytes_per_step / 1e9, 2) + " GB of its kernels' operands, done at " +
                     fixed(s.flops_per_step / 1e9 / seconds, 1) + " GFLOP/s and " +
                     fixed(s.kernel_bytes_per_step / 1e9 / seconds, 1) + " GB/s";
  if (s.communication_share >= 0)
    text += "; " + fixed(100 * s.communication_share, 1) + " % of the recorded steps is communication that rank 0 waits for";
  return text + "\n";
}

/// What the progress line says of a step.
inline std::string loss_words(double bits_per_byte) { return "loss " + fixed(bits_per_byte, 3) + " bits/byte"; }

// The three files ---------------------------------------------------------------------------------------------------

inline std::string loss_csv(std::span<const loss_point> curve) {
  std::string text = "step,bits_per_byte\n";
  for (const auto& point : curve) text += std::to_string(point.step) + ',' + fixed(point.bits_per_byte, 6) + '\n';
  return text;
}

inline std::string summary_json(const summary& s) {
  std::string text = "{\n";
  const auto member = [&](std::string_view key, const std::string& value) {
    text += (text.size() > 2 ? ",\n" : "") + ("  \"" + std::string(key) + "\": ") + value;
  };
  member("steps", std::to_string(s.steps));
  member("held_out_bits_per_byte", fixed(s.held_out_bits_per_byte, 6));
  member("unigram_bits_per_byte", fixed(s.unigram_bits_per_byte, 6));
  member("bigram_bits_per_byte", fixed(s.bigram_bits_per_byte, 6));
  member("trigram_bits_per_byte", fixed(s.trigram_bits_per_byte, 6));
  member("tokens_per_second", fixed(s.tokens_per_second, 1));
  member("comm_bytes_per_step", std::to_string(s.comm_bytes_per_step));
  member("peak_bytes", std::to_string(s.peak_bytes));
  member("flops_per_step", fixed(s.flops_per_step, 0));
  member("kernel_bytes_per_step", fixed(s.kernel_bytes_per_step, 0));
  member("communication_share", s.communication_share < 0 ? "null" : fixed(s.communication_share, 4));
  return text + "\n}\n";
}

namespace detail {

/// The curve as at most `most` points, each the mean of its stretch: a long run stays a small file.
inline std::vector<std::pair<double, double>> thinned(std::span<const loss_point> curve, std::size_t most) {
  std::vector<std::pair<double, double>> points;
  const std::size_t stretch = std::max<std::size_t>(1, (curve.size() + most - 1) / most);
  for (std::size_t begin = 0; begin < curve.size(); begin += stretch) {
    const auto part = curve.subspan(begin, std::min(stretch, curve.size() - begin));
    double step = 0, bits = 0;
    for (const auto& p : part) step += static_cast<double>(p.step), bits += p.bits_per_byte;
    points.emplace_back(step / static_cast<double>(part.size()), bits / static_cast<double>(part.size()));
  }
  return points;
}

inline std::vector<std::pair<double, double>> smoothed(std::span<const std::pair<double, double>> points) {
  const std::size_t reach = points.size() / 50;
  std::vector<std::pair<double, double>> result;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t side = std::min({reach, i, points.size() - 1 - i});  // narrower at the ends, so they are kept
    double bits = 0;
    for (std::size_t j = i - side; j <= i + side; ++j) bits += points[j].second;
    result.emplace_back(points[i].first, bits / static_cast<double>(2 * side + 1));
  }
  return result;
}

/// The tick distance, 1, 2 or 5 times a power of ten, that cuts `range` into at most `most` parts.
inline double tick_distance(double range, double most) {
  const double power = std::pow(10.0, std::floor(std::log10(range / most)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (range <= most * factor * power) return factor * power;
  return 10 * power;
}

}  // namespace detail

/// Training loss over steps, with the n-grams and the held-out loss as labelled dashed lines.
inline std::string loss_svg(std::span<const loss_point> curve, const summary& s) {
  constexpr double width = 800, height = 450, left = 60, right = 620, top = 48, bottom = 396;

  struct level {
    std::string_view name, color;
    double bits, label_y;
  };
  std::array levels{
      level{"unigram", "#8c959f", s.unigram_bits_per_byte, 0}, level{"bigram", "#6e7781", s.bigram_bits_per_byte, 0},
      level{"trigram", "#424a53", s.trigram_bits_per_byte, 0}, level{"held out", "#cf222e", s.held_out_bits_per_byte, 0}};
  std::sort(levels.begin(), levels.end(), [](const level& a, const level& b) { return a.bits > b.bits; });

  const auto points = detail::thinned(curve, 600);
  double most_bits = levels.front().bits, most_steps_shown = static_cast<double>(std::max<std::size_t>(s.steps, 1));
  for (const auto& [step, bits] : points) {
    most_bits = std::max(most_bits, bits);
    most_steps_shown = std::max(most_steps_shown, step);
  }
  // Uniform guessing costs 8 bits; what lies far above says only that training began badly, and is cut off.
  const double y_end = std::clamp(std::ceil(most_bits + 0.01), 1.0, 12.0);
  const auto x_of = [&](double step) { return left + (right - left) * step / most_steps_shown; };
  const auto y_of = [&](double bits) { return bottom - (bottom - top) * std::clamp(bits / y_end, 0.0, 1.0); };

  std::string svg;
  const auto line = [&](double x1, double y1, double x2, double y2, std::string_view style) {
    svg += "<line x1=\"" + fixed(x1, 1) + "\" y1=\"" + fixed(y1, 1) + "\" x2=\"" + fixed(x2, 1) + "\" y2=\"" + fixed(y2, 1) +
           "\" " + std::string(style) + "/>\n";
  };
  const auto text = [&](double x, double y, std::string_view style, std::string_view words) {
    svg += "<text x=\"" + fixed(x, 1) + "\" y=\"" + fixed(y, 1) + "\" " + std::string(style) + '>' + std::string(words) +
           "</text>\n";
  };
  const auto path = [&](std::span<const std::pair<double, double>> through, std::string_view style) {
    svg += "<polyline fill=\"none\" stroke=\"#0969da\" stroke-linejoin=\"round\" " + std::string(style) + " points=\"";
    for (const auto& [step, bits] : through) svg += fixed(x_of(step), 1) + ',' + fixed(y_of(bits), 1) + ' ';
    svg += "\"/>\n";
  };

  svg += "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed(width, 0) + ' ' + fixed(height, 0) +
         "\" width=\"" + fixed(width, 0) + "\" height=\"" + fixed(height, 0) +
         "\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#1f2328\">\n"
         "<title>Training loss in bits per byte</title>\n"
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  text(left, 28, "font-size=\"16\" font-weight=\"bold\" fill=\"#0969da\"", "Training loss");

  const double y_tick = detail::tick_distance(y_end, 9);
  for (int i = 0; i * y_tick <= y_end + 1e-9; ++i) {
    const double y = y_of(i * y_tick);
    line(left, y, right, y, "stroke=\"#eaeef2\"");
    text(left - 8, y + 4, "text-anchor=\"end\"", fixed(i * y_tick, y_tick < 1 ? 1 : 0));
  }
  const double x_tick = std::max(1.0, detail::tick_distance(most_steps_shown, 8));
  for (int i = 0; i * x_tick <= most_steps_shown + 1e-9; ++i) {
    const double x = x_of(i * x_tick);
    line(x, bottom, x, bottom + 5, "stroke=\"#1f2328\"");
    text(x, bottom + 20, "text-anchor=\"middle\"", fixed(i * x_tick, 0));
  }
  line(left, top, left, bottom, "stroke=\"#1f2328\"");
  line(left, bottom, right, bottom, "stroke=\"#1f2328\"");
  text((left + right) / 2, bottom + 42, "text-anchor=\"middle\"", "step");
  text(18, (top + bottom) / 2, "text-anchor=\"middle\" transform=\"rotate(-90 18 " + fixed((top + bottom) / 2, 1) + ")\"",
       "bits per byte");

  // Labels keep a line's height between them: first pushed down in order, then up again from the axis.
  constexpr double spacing = 17;
  for (std::size_t i = 0; i < levels.size(); ++i)
    levels[i].label_y = std::max(y_of(levels[i].bits), i == 0 ? top : levels[i - 1].label_y + spacing);
  for (std::size_t i = levels.size(); i-- > 0;)
    levels[i].label_y = std::min(levels[i].label_y, i + 1 == levels.size() ? bottom : levels[i + 1].label_y - spacing);
  for (const level& l : levels) {
    const std::string stroke = "stroke=\"" + std::string(l.color) + "\"";
    line(left, y_of(l.bits), right, y_of(l.bits), stroke + " stroke-width=\"1.5\" stroke-dasharray=\"6 4\"");
    line(right + 2, y_of(l.bits), right + 12, l.label_y, stroke);
    text(right + 16, l.label_y + 4, "fill=\"" + std::string(l.color) + "\"", std::string(l.name) + ' ' + fixed(l.bits, 3));
  }
  path(points, "stroke-width=\"1\" stroke-opacity=\"0.3\"");
  path(detail::smoothed(points), "stroke-width=\"2\"");
  return svg + "</svg>\n";
}

// The folder --------------------------------------------------------------------------------------------------------

class output_folder : public example::output_folder {
 public:
  /// evaluates: held_out.csv is written, too.
  explicit output_folder(std::filesystem::path folder, bool evaluates = false)
      : example::output_folder(std::move(folder),
                               evaluates ? std::vector<std::string>{"held_out.csv", "loss.csv", "loss.svg", "summary.json"}
                                         : std::vector<std::string>{"loss.csv", "loss.svg", "summary.json"}),
        evaluates_(evaluates) {}

  /// Throws std::runtime_error, having written nothing, where a figure is not finite (training diverged) or the disk refuses.
  void write(std::span<const loss_point> curve, const summary& s, std::span<const loss_point> evaluations = {}) {
    for (const auto& point : curve) require_finite(point.bits_per_byte, "the loss at step " + std::to_string(point.step));
    for (const auto& point : evaluations)
      require_finite(point.bits_per_byte, "the held-out loss at step " + std::to_string(point.step));
    require_finite(s.held_out_bits_per_byte, "the held-out loss");
    require_finite(s.unigram_bits_per_byte, "the unigram cross-entropy");
    require_finite(s.bigram_bits_per_byte, "the bigram cross-entropy");
    require_finite(s.trigram_bits_per_byte, "the trigram cross-entropy");
    require_finite(s.tokens_per_second, "the number of tokens per second");
    std::vector<std::string> files;
    if (evaluates_) files.push_back(loss_csv(evaluations));
    for (std::string file : {loss_csv(curve), loss_svg(curve, s), summary_json(s)}) files.push_back(std::move(file));
    example::output_folder::write(files);
  }

 private:
  bool evaluates_;

  static void require_finite(double value, const std::string& what) {
    if (!std::isfinite(value)) throw std::runtime_error(what + " is not a finite number, so no report was written.");
  }
};

}  // namespace train_text
