// The whole state of a run in one safetensors file: parameters, optimizer state, stash ranges, and as metadata the
// config with all edits and the plain TrainState. Bond sizes may differ from the config's start (ranks were cut):
// the file's shapes win.
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/tensor/safetensors.h"
#include "core/train/trainer.h"

namespace comera {

Json TrainState::to_json() const {
  Json caps = Json::object(), weights = Json::object();
  for (const auto& [bond, cap] : overrides.caps) caps[bond] = cap;
  for (const auto& [layer, weight] : overrides.weights) weights[layer] = weight;
  return {{"step", step}, {"cursor", cursor}, {"late", late}, {"late_at", late_at}, {"late_entries", late_entries},
          {"late_requested", late_requested}, {"plateau", plateau.to_json()}, {"best_loss", best_loss},
          {"best_accuracy", best_accuracy}, {"best_step", best_step}, {"caps", caps}, {"weights", weights}};
}

TrainState TrainState::from_json(const Json& json) {
  TrainState state;
  state.step = json.at("step");
  state.cursor = json.at("cursor");
  state.late = json.at("late");
  state.late_at = json.at("late_at");
  state.late_entries = json.at("late_entries");
  state.late_requested = json.at("late_requested");
  state.plateau = PlateauState::from_json(json.at("plateau"));
  state.best_loss = json.at("best_loss");
  state.best_accuracy = json.at("best_accuracy");
  state.best_step = json.at("best_step");
  for (const auto& [bond, cap] : json.at("caps").items()) state.overrides.caps[bond] = cap;
  for (const auto& [layer, weight] : json.at("weights").items()) state.overrides.weights[layer] = weight;
  return state;
}

}  // namespace comera
