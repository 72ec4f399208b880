#include "core/train/batch_fit.h"

#include "core/base/error.h"
#include "core/models/model.h"
#include "core/tasks/task.h"

namespace comera {
namespace {

int64_t bound_of(const BatchField& field) { return field.dtype == DType::i32 && field.width == 1 ? field.high : field.width; }

bool fits(const BatchField& reads, const BatchField& filled) {
  return reads.dtype == filled.dtype && reads.per == filled.per && reads.width == filled.width &&
         (reads.dtype != DType::i32 || filled.high <= reads.high);
}

}  // namespace

BatchLayout batch_layout(const ModelConfig& config) {
  BatchLayout layout = model_inputs(config);
  make_task(config)->targets(layout);
  return layout;
}

std::string Misfit::text() const {
  return (reads.setting.empty() ? reads.title : reads.setting) + " is " + std::to_string(bound_of(reads)) + ", " + filled->about;
}

std::string Misfit::remedy() const { return reads.setting.empty() ? "" : reads.setting + "=" + std::to_string(bound_of(*filled)); }

std::optional<Misfit> misfit(const BatchLayout& reads, const DatasetInfo& info) {
  for (const BatchField& field : reads.fields)
    if (!field.collated && !info.fields.find(field.name)) return Misfit{field, {}};
  for (const BatchField& field : reads.fields)
    if (const BatchField* filled = info.fields.find(field.name); filled && !fits(field, *filled)) return Misfit{field, *filled};
  return {};
}

void check_fit(const RunConfig& config, const DatasetInfo& train, const DatasetInfo* validation) {
  const BatchLayout reads = batch_layout(config.model);
  const auto wrong = [](const std::string& what, const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::config, what, why, hint);
  };
  const std::optional<Misfit> found = misfit(reads, train);
  if (found && !found->filled) {
    const std::string kind = model_kind_for(train.fields);
    if (kind == config.model.kind)
      wrong("model.task '" + config.model.task + "' does not fit the data set " + train.name, "the set has no " + found->reads.name, "");
    wrong("model.kind '" + config.model.kind + "' does not fit the data set " + train.name, std::string("the set holds ") + train.holds,
          kind.empty() ? "" : "use --set model.kind=" + kind);
  }
  if (config.mask_share() > 0 && train.mask_token < 0)
    wrong("the tokenizer of " + train.name + " has no mask token", "model.task masked reads masked tokens as this one",
          "use a tokenizer with <mask> or [MASK]; running text without one has bytes");
  if (!train.labelled) wrong("the training file of " + train.name + " has no labels", "", "give a file with labels");
  if (found) wrong(found->text(), found->reads.why, found->remedy().empty() ? "" : "use --set " + found->remedy());
  if (validation)
    if (const std::optional<Misfit> other = misfit(reads, *validation); other && !other->filled)
      wrong("training and validation data are of different kinds", "", "");
  if (train.rows < config.train.batch)
    wrong("train.batch is " + std::to_string(config.train.batch) + ", the data set has " + std::to_string(train.rows) + " rows", "",
          "use a smaller batch");
}

}  // namespace comera
