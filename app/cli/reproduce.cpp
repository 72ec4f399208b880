// comera reproduce RUN: computes a run again and prints `identical` or the first difference.
#include <cstdio>
#include <iostream>
#include <memory>

#include "app/cli/cli.h"
#include "core/session/reproduce.h"

namespace comera::cli {
namespace {

// Why values may differ: what computes them now and did not then.
std::string reason(const ComputedWith& then, const ComputedWith& now) {
  std::string text;
  const auto compare = [&](const std::string& what, const std::string& before, const std::string& after) {
    if (before != after) text += (text.empty() ? "" : "; ") + what + before + ", not " + after;
  };
  compare("trained by ", then.program.empty() ? "an earlier version" : "version " + then.program, "version " + now.program);
  compare("trained on ", then.device, now.device);
  compare("trained with ", then.blas, now.blas);
  return text.empty() ? "the store was changed, or the run was trained on another processor" : "the run was " + text;
}

Json as_json(const ComputedWith& with) { return {{"program", with.program}, {"device", with.device}, {"blas", with.blas}}; }

int reproduce(const Context& context, const std::string& run) {
  const bool live = stderr_is_terminal() && !context.quiet;
  const Reproduction result = reproduce_run(store_to_read(context), run, [&](int64_t step, int64_t steps) {
    if (live) std::fprintf(stderr, "\rcomputing step %lld of %lld again", static_cast<long long>(step), static_cast<long long>(steps));
    return true;
  });
  if (live) std::fprintf(stderr, "\r\x1b[2K");
  if (context.json) {
    Json difference = nullptr;
    if (!result.identical)
      difference = {{"step", result.step}, {"what", result.what}, {"stored", result.stored}, {"computed", result.computed}};
    print_json({{"run", result.run},
                {"identical", result.identical},
                {"steps", result.steps},
                {"values", result.values},
                {"weights_compared", result.weights_compared},
                {"trained_with", as_json(result.then)},
                {"computed_with", as_json(result.now)},
                {"first_difference", difference}});
  } else if (result.identical) {
    std::cout << "identical: " << thousands(static_cast<double>(result.values)) << " stored values of " << counted(result.steps, "step")
              << (result.weights_compared ? ", and the final weights, byte for byte" : "") << "\n";
  } else {
    char line[200];
    std::snprintf(line, sizeof line, "step %lld: %s is stored as %.17g, but computed as %.17g", static_cast<long long>(result.step),
                  result.what.c_str(), result.stored, result.computed);
    std::cout << "different: " << line << "\n  why: " << reason(result.then, result.now) << "\n";
  }
  return result.identical ? 0 : 1;
}

}  // namespace

void add_reproduce(Verb& program, Context& context) {
  Verb verb = program.verb("reproduce", "train a stored run again from its event log and compare every stored value");
  const auto run = std::make_shared<std::string>();
  verb.option("run", *run, "run id, its beginning, or name").required();
  verb.does([&context, run] { return reproduce(context, *run); });
}

}  // namespace comera::cli
