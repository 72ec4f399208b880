// Score and cost of each evaluation of a run.
#pragma once
#include <string>
#include <vector>

#include "app/figure/pareto.h"
#include "app/studio/compare/compared_run.h"

namespace comera::studio {

struct Compare;

// size: MiB of all parameters, without dead ranks, at the evaluation. peak: MiB that training held at most. step: median ms of a step.
// time: seconds of training steps until the evaluation.
enum class ParetoCost { size, peak, step, time };
inline constexpr int kParetoCosts = 4;
const char* title_of(ParetoCost cost);            // "Whole model"
const char* unit_of(ParetoCost cost);             // "MiB"
std::string text_of(ParetoCost cost, double at);  // with its unit

// The axes of the chart. The score is validation accuracy; validation loss for language models, which store perplexity, and for runs
// without accuracy.
struct ParetoAxes {
  ParetoCost cost = ParetoCost::size;
  bool loss = false;
  const char* score_title() const { return loss ? "Validation loss" : "Validation accuracy, %"; }
  double shown(double score) const { return loss ? -score : score * 100; }  // on the y axis
  std::string score_text(double score) const;
};
ParetoAxes pareto_axes(const Compare& compare);

// All evaluations up to the cursor, by step. Empty if the run stores no such score or its cost is not known.
std::vector<ParetoPoint> pareto_points(const ComparedRun& run, const ParetoAxes& axes);

}  // namespace comera::studio
