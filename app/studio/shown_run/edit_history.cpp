#include "app/studio/shown_run/edit_history.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace comera::studio {
namespace {

constexpr const char* kCap = "rank.cap.";
constexpr const char* kWeight = "rank.weight.";

// The current value of a cap or a weight, in the format of edits.
std::string rank_value(const Snapshot& snapshot, const std::string& path) {
  for (const LayerRanks& layer : snapshot.ranks) {
    if (path == kWeight + layer.name) return layer.weight == 1 ? "null" : Json(layer.weight).dump();
    for (size_t i = 0; i < layer.caps.size(); ++i)
      if (path == kCap + layer.name + "." + std::to_string(i + 1)) return layer.caps[i] > 0 ? std::to_string(layer.caps[i]) : "null";
  }
  return "null";
}

// "/train/lr_core" -> "train.lr_core"
std::string path_of(std::string pointer) {
  pointer.erase(0, 1);
  std::replace(pointer.begin(), pointer.end(), '/', '.');
  return pointer;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

}  // namespace

EditChange inverse_of(const RunConfig& config, const Snapshot& snapshot, const std::string& path, const std::string& value) {
  EditChange change{path, value, "", ""};
  if (path == kStagePath) {
    change.back = snapshot.late ? "late" : "early";
    if (change.back != value) change.back_path = path;
    return change;
  }
  RunConfig after = config;
  RankOverrides unused;
  try {
    apply_edit(after, unused, path, value);
    if (path.starts_with("rank.")) {
      change.back = rank_value(snapshot, path);
      if (change.back != value) change.back_path = path;
      return change;
    }
    const Json before = config_to_json(config), flat = before.flatten(), changed = config_to_json(after).flatten();
    for (const auto& [pointer, old] : flat.items()) {
      if (changed.contains(pointer) && changed[pointer] == old) continue;
      RunConfig back = after;
      apply_edit(back, unused, path_of(pointer), text_of(old));
      if (config_to_json(back) != before) continue;
      change.back_path = path_of(pointer);
      change.back = text_of(old);
      break;
    }
  } catch (const Error&) {
    change.back_path.clear();
  }
  return change;
}

void EditHistory::made(EditChange change, bool goes_on) {
  if (goes_on && !done_.empty() && done_.back().path == change.path) {
    done_.back().to = change.to;
    return;
  }
  if (change.back_path.empty()) return;
  undone_.clear();
  done_.push_back(std::move(change));
}

void EditHistory::refused(const std::string& path, const std::string& value) {
  std::erase_if(done_, [&](const EditChange& change) { return change.path == path && change.to == value; });
}

EditChange EditHistory::take_undo() {
  EditChange change = std::move(done_.back());
  done_.pop_back();
  undone_.push_back(change);
  return change;
}

EditChange EditHistory::take_redo() {
  EditChange change = std::move(undone_.back());
  undone_.pop_back();
  done_.push_back(change);
  return change;
}

std::string text_of(const EditChange& change) {
  const auto named = [](const std::string& path) {
    if (path.starts_with(kCap)) return "cap of " + path.substr(std::string(kCap).size());
    if (path.starts_with(kWeight)) return "weight of " + path.substr(std::string(kWeight).size());
    return path.substr(path.rfind('.') + 1);
  };
  const auto said = [](const std::string& value) { return value == "null" ? "none" : value; };
  if (change.back_path == change.path) return named(change.path) + " " + said(change.back) + " -> " + said(change.to);
  return named(change.back_path) + " " + said(change.back) + " -> " + named(change.path) + " " + said(change.to);
}

}  // namespace comera::studio
