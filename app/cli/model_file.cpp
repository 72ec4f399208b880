#include <filesystem>

#include "app/cli/cli.h"
#include "core/session/stored_run.h"

namespace comera::cli {

ModelPath model_file(const Context& context, const std::string& model, int64_t step) {
  if (std::filesystem::is_regular_file(model)) return {model, std::filesystem::path(model).stem().string()};
  const StoredRun run = load_stored_run(store_to_read(context), model);
  auto found = run.checkpoints.end();
  if (step >= 0)
    found = run.checkpoints.find(step);
  else if (!run.checkpoints.empty())
    found = std::prev(run.checkpoints.end());
  if (found == run.checkpoints.end()) {
    std::string steps;
    for (const auto& [at, path] : run.checkpoints) steps += (steps.empty() ? "" : ", ") + std::to_string(at);
    throw Error(ErrorCode::not_found, "run " + run.id + " has no checkpoint" + (step >= 0 ? " at step " + std::to_string(step) : ""),
                steps.empty() ? "its store lists no checkpoint that still exists" : "its checkpoints are at steps: " + steps,
                steps.empty() && run.status != "running" ? "train it again, or use the store that it was trained in" : "");
  }
  return {found->second, run.id, run.config.data, run.data_fingerprint};
}

}  // namespace comera::cli
