#include "app/cli/progress.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "core/base/numbers.h"

namespace comera::cli {
namespace {

// A curve in one line, from block characters of eight heights.
std::string sparkline(const std::vector<double>& values, size_t width) {
  static const char* const kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.empty()) return "";
  const size_t count = std::min(width, values.size());
  std::vector<double> cells(count);
  for (size_t i = 0; i < count; ++i) {  // mean of the values under each cell
    const size_t begin = i * values.size() / count, end = std::max(begin + 1, (i + 1) * values.size() / count);
    double sum = 0;
    for (size_t k = begin; k < end; ++k) sum += values[k];
    cells[i] = sum / static_cast<double>(end - begin);
  }
  const auto [low, high] = std::minmax_element(cells.begin(), cells.end());
  const double base = *low, span = std::max(1e-12, *high - *low);
  std::string out;
  for (double cell : cells) out += kBars[std::clamp(static_cast<int>((cell - base) / span * 7.999), 0, 7)];
  return out;
}

// One column per bond; its height is live rank / initial rank.
std::string rank_bars(const Snapshot& snapshot, size_t width) {
  static const char* const kBars[] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string out;
  size_t columns = 0;
  for (const LayerRanks& layer : snapshot.ranks) {
    if (columns + layer.live.size() + 1 > width) return out + "…";
    if (columns) {
      out += " ";
      ++columns;
    }
    for (size_t bond = 0; bond < layer.live.size(); ++bond, ++columns) {
      const double share = layer.initial[bond] > 0 ? static_cast<double>(layer.live[bond]) / static_cast<double>(layer.initial[bond]) : 0;
      out += kBars[layer.live[bond] == 0 ? 0 : std::clamp(1 + static_cast<int>(share * 7.0 + 0.5), 1, 8)];
    }
  }
  return out;
}

std::string bar(double share, size_t width) {
  const size_t full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width) + 0.5);
  std::string out;
  for (size_t i = 0; i < width; ++i) out += i < full ? "━" : "─";
  return out;
}

std::string speed(const Snapshot& s) {
  std::string out = significant(s.steps_per_s, 3) + " it/s";
  if (s.tokens_per_s > 0) out += "  " + thousands(std::round(s.tokens_per_s)) + " tokens/s";
  if (s.gemm_share > 0) out += "  " + significant(100 * s.gemm_share, 2) + " % of the GEMM rate";
  return out + "  ETA " + duration(s.eta_s);
}

// Before step 1: what takes time.
bool prepares(const Snapshot& s) { return s.phase == Phase::preparing && !s.message.empty(); }

std::string one_line(const Snapshot& s) {
  if (prepares(s)) return s.message;
  std::string out = "step " + thousands(static_cast<double>(s.step)) + "/" + thousands(static_cast<double>(s.total_steps)) + "  loss " +
                    significant(s.last.results.ce) + (s.eval.examples > 0 ? "  val accuracy " + significant(s.eval.accuracy) : "");
  if (!s.ranks.empty()) {
    out += "  entries " + thousands(s.size.entries);
    if (s.size.entries > 0) out += " (" + significant(s.size.compression, 3) + "x)";
  }
  return out + "  " + speed(s);
}

}  // namespace

Progress::Progress(const Context& context)
    : context_(context), terminal_(stderr_is_terminal() && !context.quiet), color_(use_color(context)) {}

// The line to print when writes to the store begin to fail, fail for another reason (numbers, which change with every step, are ignored),
// or work again; "" = no change.
std::string Progress::warning_of(const std::string& store_problem) {
  if (same_but_for_numbers(store_problem, problem_)) return "";
  problem_ = store_problem;
  return problem_.empty() ? "the store works again" : (color_ ? "\x1b[1;31mwarning:\x1b[0m " : "warning: ") + problem_;
}

void Progress::show(const Snapshot& snapshot, bool last) {
  if (context_.quiet) return;
  const std::string warning = warning_of(snapshot.store_problem);
  if (snapshot.step != last_step_ && snapshot.step > 0) curve_.push_back(snapshot.last.results.ce);
  if (terminal_) {
    if (snapshot.step != last_step_ || last || lines_ == 0 || !warning.empty() || prepares(snapshot)) draw(snapshot, warning);
  } else {
    if (!warning.empty()) std::cerr << warning << "\n";
    const auto now = std::chrono::steady_clock::now();
    if ((snapshot.step > 0 || prepares(snapshot)) && (now >= next_line_ || last)) {
      std::cerr << one_line(snapshot) << "\n";
      next_line_ = now + std::chrono::seconds(30);
    }
  }
  last_step_ = snapshot.step;
}

void Progress::draw(const Snapshot& s, const std::string& above) {
  const std::string bold = color_ ? "\x1b[1m" : "", dim = color_ ? "\x1b[2m" : "", accent = color_ ? "\x1b[36m" : "",
                    reset = color_ ? "\x1b[0m" : "";
  std::vector<std::string> block;
  block.push_back(bold + (s.name.empty() ? "run" : s.name) + reset + dim + "  " + s.run + "  " + s.device + "  " + name_of(s.phase) +
                  (s.ranks.empty() ? ""
                   : s.late        ? "  late stage"
                                   : "  early stage") +
                  reset);
  const double share = s.total_steps > 0 ? static_cast<double>(s.step) / static_cast<double>(s.total_steps) : 0;
  block.push_back(prepares(s) ? s.message
                              : accent + bar(share, 30) + reset + "  " + thousands(static_cast<double>(s.step)) + " / " +
                                    thousands(static_cast<double>(s.total_steps)) + "  epoch " + significant(s.epoch, 3) + "  " + speed(s));
  block.push_back("loss      " + significant(s.last.results.ce) + "  " + accent + sparkline(curve_.values(), 48) + reset);
  block.push_back("accuracy  train " + significant(s.last.accuracy, 3) +
                  (s.eval.examples > 0
                       ? "   validation " + significant(s.eval.accuracy, 4) + " (step " + thousands(static_cast<double>(s.eval.step)) + ")"
                       : "   validation: not evaluated yet"));
  if (!s.ranks.empty()) {
    block.push_back("size      " + thousands(s.size.entries) + " entries, " + smaller_than_dense(s.size) +
                    (s.late ? ", target " + thousands(s.target_entries) : ""));
    block.push_back("ranks     " + rank_bars(s, 64));
  }
  block.push_back("memory    " + mebibytes(static_cast<double>(s.memory_now.total())) + " held, peak " +
                  mebibytes(static_cast<double>(s.memory_peak.total())));
  if (!s.store_problem.empty()) block.push_back(std::string(color_ ? "\x1b[31m" : "") + "store     " + s.store_problem + reset);
  std::string out = lines_ > 0 ? "\x1b[" + std::to_string(lines_) + "A" : "";
  if (!above.empty()) out += "\r\x1b[2K" + above + "\n";  // stays on the screen above the block
  for (const std::string& line : block) out += "\r\x1b[2K" + line + "\n";
  std::cerr << out << std::flush;
  lines_ = static_cast<int>(block.size());
}

void Progress::summary(const Snapshot& s) {
  std::vector<std::vector<std::string>> rows = {
      {"run", s.run + (s.name.empty() ? "" : " (" + s.name + ")")},
      {"status", std::string(name_of(s.phase)) + " at step " + thousands(static_cast<double>(s.step))},
      {"training loss", significant(s.last.results.ce)},
  };
  if (s.eval.examples > 0)
    rows.push_back(
        {"validation accuracy", significant(s.eval.accuracy) + " (" + thousands(static_cast<double>(s.eval.examples)) + " labels)"});
  for (const auto& [name, value] : s.eval.more) rows.push_back({"validation " + name, significant(value)});
  if (!s.ranks.empty()) rows.push_back({"size", thousands(s.size.entries) + " entries, " + smaller_than_dense(s.size)});
  rows.push_back({"memory peak", mebibytes(static_cast<double>(s.memory_peak.total())) + " (planned " +
                                     mebibytes(static_cast<double>(s.memory_planned.total())) + ")"});
  rows.push_back({"step time", significant(s.step_ms_median, 3) + " ms median, " + significant(s.step_ms_p95, 3) + " ms p95"});
  rows.push_back({"time", duration(s.elapsed_s)});
  print_table(context_, {"metric", "value"}, rows);
}

}  // namespace comera::cli
