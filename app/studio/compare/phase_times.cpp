#include "app/studio/compare/phase_times.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/format.h"

namespace comera::studio {
namespace {

constexpr double kUnknownMs = std::numeric_limits<double>::quiet_NaN();

// Number of points up to the cursor.
size_t points_until(const Curve& curve, double step) {
  return static_cast<size_t>(std::upper_bound(curve.x().begin(), curve.x().end(), step) - curve.x().begin());
}

double mean_until(const Curve& curve, double step) {
  const size_t count = points_until(curve, step);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += curve.y()[i];
  return count > 0 ? sum / static_cast<double>(count) : kUnknownMs;
}

// Weighted mean: each point is the mean of the steps since the previous point.
double mean_of_samples(const Curve& samples, double step) {
  double sum = 0, before = 0;
  const size_t count = points_until(samples, step);
  for (size_t i = 0; i < count; ++i) {
    sum += samples.y()[i] * (samples.x()[i] - before);
    before = samples.x()[i];
  }
  return before > 0 ? sum / before : kUnknownMs;
}

}  // namespace

PhaseTimes phase_times(const ComparedRun& run) {
  PhaseTimes out{kUnknownMs, kUnknownMs, kUnknownMs, kUnknownMs, kUnknownMs, kUnknownMs, kUnknownMs};
  if (!run.read()) return out;
  const RunView& view = *run.view;
  const double step = run.step();
  out.evaluation = mean_until(view.metric("eval_ms"), step);
  if (const size_t count = points_until(view.metric("forward_ms"), step); count > 0) {
    const double last = view.metric("forward_ms").x()[count - 1];
    out.data = mean_of_samples(view.metric("data_ms"), last);
    out.forward = mean_of_samples(view.metric("forward_ms"), last);
    out.backward = mean_of_samples(view.metric("backward_ms"), last);
    out.update = mean_of_samples(view.metric("update_ms"), last);
    if (const size_t steps = points_until(view.metric("step_ms"), last); steps > 0)
      out.whole = view.trained_ms.curve().at(last) / static_cast<double>(steps);
  } else {
    for (const StepProfile& profile : view.profiles) {
      if (profile.steps == 0 || static_cast<double>(profile.step) > step) continue;
      out.update = 0;
      for (const StepProfile::Phase& phase : profile.phases) {
        if (phase.name == "data") out.data = phase.mean;
        if (phase.name == "forward") out.forward = phase.mean;
        if (phase.name == "backward") out.backward = phase.mean;
        if (phase.name == "update" || phase.name == "refresh") out.update += phase.mean;
      }
      out.whole = profile.whole.mean;
    }
  }
  if (out.known()) out.rest = std::max(0.0, out.whole - out.data - out.forward - out.backward - out.update);
  return out;
}

AllPhaseTimes phase_times(const std::vector<std::shared_ptr<ComparedRun>>& runs) {
  AllPhaseTimes out;
  for (const auto& run : runs) out.emplace(run.get(), phase_times(*run));
  return out;
}

const std::vector<StepPart>& step_parts() {
  static const std::vector<StepPart> kLooks = {
      {"data", "Waiting for data", "The next batch was not ready yet.", 3, &PhaseTimes::data, true},
      {"forward", "Forward", "Batch to the device, the model, the loss.", 0, &PhaseTimes::forward, true},
      {"backward", "Backward", "Gradients of all parameters.", 1, &PhaseTimes::backward, true},
      {"update", "Update", "The optimizer's step, with new projections of gradients.", 2, &PhaseTimes::update, true},
      {"rest", "Ranks and other", "Live ranks, caps, pruning; waiting for other processes.", 7, &PhaseTimes::rest, true},
      {"step", "Whole step", "Mean of all steps up to the cursor.", 6, &PhaseTimes::whole, false},
      {"evaluation", "Evaluation", "Mean time of an evaluation on all validation examples, up to the cursor.", 4, &PhaseTimes::evaluation,
       false},
  };
  return kLooks;
}

std::vector<Quantity> phase_quantities(std::shared_ptr<const AllPhaseTimes> times) {
  std::vector<Quantity> out;
  for (const StepPart& look : step_parts()) {
    Quantity quantity{std::string("phase:") + look.id,
                      look.title,
                      "",
                      look.help,
                      Better::lower,
                      true,
                      [times, ms = look.ms](const ComparedRun& run) { return times->at(&run).*ms; },
                      [](double ms) { return significant(ms, 4) + " ms"; }};
    quantity.both = true;
    out.push_back(std::move(quantity));
  }
  return out;
}

}  // namespace comera::studio
