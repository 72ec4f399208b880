#include "app/studio/runs/run_fields.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "app/format.h"

namespace comera::studio {
namespace {

double seconds_since(double time) {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() - time;
}

std::string ago(double time) {
  const double seconds = seconds_since(time);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return std::to_string(static_cast<int>(seconds / 60)) + " min ago";
  if (seconds < 86400) return std::to_string(static_cast<int>(seconds / 3600)) + " h ago";
  return std::to_string(static_cast<int>(seconds / 86400)) + " d ago";
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return std::isfinite(share) ? text : "";
}

std::string known(double value, const std::string& text) { return std::isfinite(value) ? text : ""; }

std::string tags_text(const RunRow& row) {
  std::string text;
  for (const std::string& tag : row.tags)
    if (tag != kStar) text += (text.empty() ? "" : ", ") + tag;
  return text;
}

}  // namespace

bool has_tag(const RunRow& row, const std::string& tag) {
  return std::find(row.tags.begin(), row.tags.end(), tag) != row.tags.end() || (tag == kShort && is_short(row));
}
bool can_resume(const RunRow& row) {
  const bool failed = row.status == "failed" && row.summary.step > 0 && !failed_for_memory(row);
  return row.status == "interrupted" || row.status == "stopped" || failed;
}

std::span<const RunField> run_fields() {
  using Row = const RunRow&;
  static constexpr double kMiB = 1 << 20;
  static constexpr RunField kFields[] = {
      {"status", "Status", "running, finished, stopped, interrupted, failed or diverged", 7, true, nullptr, [](Row r) { return r.status; }},
      {"name", "Name", "name of the run", 14, true, nullptr, [](Row r) { return r.name.empty() ? r.id : r.name; }},
      {"id", "Id", "id of the run", 5, true, nullptr, [](Row r) { return r.id; }},
      {"tag", "Tags", "any tag of the run", 8, false, nullptr, tags_text},
      {"stage", "Stage", "early or late", 4, false, nullptr, [](Row r) { return r.summary.stage; }},
      {"step", "Step", "steps trained", 9, true, [](Row r) { return static_cast<double>(r.summary.step); },
       [](Row r) {
         const auto step = thousands(static_cast<double>(r.summary.step));
         return r.summary.total_steps > 0 ? step + " / " + thousands(static_cast<double>(r.summary.total_steps)) : step;
       }},
      {"accuracy", "Accuracy", "validation accuracy of the last evaluation, 0 to 1 (or 90%)", 4.7f, true,
       [](Row r) { return r.summary.val_accuracy; }, [](Row r) { return percent(r.summary.val_accuracy); }},
      {"loss", "Val loss", "validation loss of the last evaluation", 4.7f, false, [](Row r) { return r.summary.val_loss; },
       [](Row r) { return known(r.summary.val_loss, significant(r.summary.val_loss, 4)); }},
      {"train_loss", "Train loss", "training loss of the last step", 4.9f, false, [](Row r) { return r.summary.train_loss; },
       [](Row r) { return known(r.summary.train_loss, significant(r.summary.train_loss, 4)); }},
      {"size", "Size", "MiB of the tensor trains; of a dense model all parameters", 5.6f, true,
       [](Row r) { return r.summary.bytes / kMiB; }, [](Row r) { return known(r.summary.bytes, mebibytes(r.summary.bytes)); }},
      {"compression", "Compression", "dense size / size of the tensor trains", 4.6f, true, [](Row r) { return r.summary.compression; },
       [](Row r) { return known(r.summary.compression, significant(r.summary.compression, 3) + " x"); }},
      {"peak", "Peak memory", "most MiB that training held at one time", 6.4f, true, [](Row r) { return r.summary.peak_bytes / kMiB; },
       [](Row r) { return known(r.summary.peak_bytes, mebibytes(r.summary.peak_bytes)); }},
      {"step_ms", "Step time", "ms, median of the last steps", 5, false, [](Row r) { return r.summary.step_ms; },
       [](Row r) { return known(r.summary.step_ms, significant(r.summary.step_ms, 3) + " ms"); }},
      {"time", "Time", "seconds of training, over all resumes", 5.6f, false, [](Row r) { return r.active_s; },
       [](Row r) { return r.active_s > 0 ? duration(r.active_s) : ""; }},
      {"device", "Device", "device that trained the run", 8, false, nullptr, [](Row r) { return r.device; }},
      {"seed", "Seed", "random seed", 4.2f, false, [](Row r) { return static_cast<double>(r.seed); },
       [](Row r) { return std::to_string(r.seed); }},
      {"parent", "Parent", "parent of a fork", 6.8f, false, nullptr,
       [](Row r) { return r.parent.empty() ? "" : r.parent + " @ " + thousands(static_cast<double>(r.fork_step)); }},
      {"notes", "Notes", "notes of the run", 10, false, nullptr, [](Row r) { return r.notes.substr(0, r.notes.find('\n')); }},
      {"started", "Started", "start of the run, seconds since 1970", 5.4f, true, [](Row r) { return r.created; },
       [](Row r) { return ago(r.created); }},
      {"age", "Age", "days since the start", 0, false, [](Row r) { return seconds_since(r.created) / 86400; },
       [](Row r) { return ago(r.created); }},
  };
  return kFields;
}

const RunField* find_run_field(const std::string& id) {
  for (const RunField& field : run_fields())
    if (id == field.id) return &field;
  return nullptr;
}

}  // namespace comera::studio
