#include "core/config/model.h"

#include <algorithm>
#include <string_view>

#include "core/config/model_parts.h"
#include "core/config/tt_shape.h"

namespace comera {
namespace {

// A model with its built-in settings.
struct BuiltIn {
  ModelInfo info;
  std::vector<ModelMatrix> matrices;

  bool has(std::string_view matrix) const {
    return std::any_of(matrices.begin(), matrices.end(), [&](const ModelMatrix& each) { return each.kind == matrix; });
  }
};

const std::vector<BuiltIn>& built_in_models() {
  static const std::vector<BuiltIn> kAll = [] {
    std::vector<BuiltIn> all;
    const ModelConfig model;
    ModelConfig::each(model, [&](const auto& own) { all.push_back({own.info(), own.matrices(model)}); });
    return all;
  }();
  return kAll;
}

When models_where(auto&& holds) {
  When when{"model.kind"};
  for (const BuiltIn& model : built_in_models())
    if (holds(model)) when.values.push_back(model.info.choice.id);
  return when;
}

std::vector<Choice> kinds() {
  std::vector<Choice> choices;
  for (const bool special : {false, true})
    for (const BuiltIn& model : built_in_models())
      if (model.info.special == special) choices.push_back(model.info.choice);
  return choices;
}

std::vector<Choice> tasks() {
  std::vector<Choice> choices;
  each_task([&](auto task) { choices.push_back(task.info().choice); });
  return choices;
}

}  // namespace

void Problems::add(const std::string& path, const std::string& text, const std::string& hint) {
  const bool known = std::any_of(list_.begin(), list_.end(), [&](const Problem& p) { return p.path == path && p.text == text; });
  if (!known) list_.push_back({path, text, hint});
}

bool Problems::at_least(int64_t value, int64_t least, const std::string& path) {
  if (value < least) add(path, "must be at least " + std::to_string(least) + ", is " + std::to_string(value), "");
  return value >= least;
}

ModelMatrix token_table(int64_t rows, int64_t columns, bool tied) {
  if (tied) return {"embedding", columns, rows, &TTKinds::embedding};
  return {"embedding", rows, columns, &TTKinds::embedding, true};
}

FieldInfo kept_probabilities() {
  return {.title = "Keep probabilities",
          .help = "keep attention probabilities for backward; false: recompute them, less memory, more time",
          .more = "With method.waist they are always recomputed where attention is computed in the width of the rank."};
}

std::vector<Choice> activation_choices(std::vector<Choice> more) {
  const Choice all[] = {{"gelu", "GELU", "x times the normal distribution function of x."},
                        {"gelu_tanh", "GELU (tanh)", "GELU approximated by tanh, as in GPT-2."},
                        {"silu", "SiLU", "x times the logistic function of x."},
                        {"relu", "ReLU", "max(x, 0)."}};
  more.insert(more.end(), std::begin(all), std::end(all));
  return more;
}

When models_that_read(std::vector<Reads> what) {
  return models_where([&](const BuiltIn& model) { return std::find(what.begin(), what.end(), model.info.reads) != what.end(); });
}

When models_with(const char* matrix, const char* and_first) {
  When first = models_where([&](const BuiltIn& model) { return model.has(matrix) && model.has(and_first); });
  const When rest = models_where([&](const BuiltIn& model) { return model.has(matrix) && !model.has(and_first); });
  first.values.insert(first.values.end(), rest.values.begin(), rest.values.end());
  return first;
}

When tasks_of_tokens() {
  When when{"model.task"};
  for (const BuiltIn& model : built_in_models())
    each_task([&](auto task) {
      const TaskInfo info = task.info();
      if (info.per_token && model.info.choice.id == std::string_view(info.per_token)) when.values.push_back(info.choice.id);
    });
  return when;
}

void ModelConfig::fields(FieldVisitor& v) {
  v.field("kind", kind, {.title = "Model kind", .help = "model family", .choices = kinds()});
  v.field("task", task, {.title = "Task", .help = "task that the outputs are trained for: its loss and scores", .choices = tasks()});
  v.field("classes", classes,
          {.title = "Classes", .help = "classes of the task", .range = {2, 1000000}, .when = models_where([](const BuiltIn& model) {
                                                                                       return !model.info.task;
                                                                                     })});
  v.field("length", length,
          {.title = "Sequence length",
           .unit = "tokens",
           .help = "maximum sequence length",
           .range = {3, 65536},
           .when = models_that_read({Reads::texts, Reads::stream})});
  each(*this, [&](auto& own) {
    const Choice choice = own.info().choice;
    v.group(choice.id, own, {.title = choice.title, .main = true, .when = {"model.kind", {choice.id}}});
  });
  v.group("tt", tt, {.title = "Tensor trains", .when = {"method.weights", {"tt"}}});
}

ModelInfo ModelConfig::info() const {
  ModelInfo found;
  with_chosen([&](const auto& own) { found = own.info(); });
  return found;
}

bool ModelConfig::per_token() const { return find_task(task).per_token; }

int64_t ModelConfig::outputs() const {
  const TaskInfo chosen = find_task(task);
  if (!chosen.per_token) return chosen.outputs > 0 ? chosen.outputs : classes;
  int64_t vocab = 0;
  each(*this, [&](const auto& own) {
    if (const ModelInfo model = own.info(); chosen.per_token == std::string_view(model.choice.id)) vocab = model.vocab;
  });
  return vocab;
}

std::vector<ModelMatrix> matrices_of(const ModelConfig& config) {
  std::vector<ModelMatrix> all;
  config.with_chosen([&](const auto& own) { all = own.matrices(config); });
  if (std::any_of(all.begin(), all.end(), [](const ModelMatrix& matrix) { return matrix.in < 1 || matrix.out < 1; })) all.clear();
  return all;
}

std::vector<Problem> ModelConfig::problems(bool tensorise) {
  Problems problems;
  const TaskInfo of_task = find_task(task);
  const ModelInfo model = info();
  const bool known = *model.choice.id && *of_task.choice.id;
  problems.at_least(classes, 2, "classes");
  if (of_task.classes > 0 && classes != of_task.classes)
    problems.add("classes", "must be " + std::to_string(of_task.classes) + " with model.task " + task + ", is " + std::to_string(classes),
                 "use model.task classification for other numbers");
  if (known && of_task.per_token && kind != of_task.per_token)
    problems.add("task", task + " needs model.kind " + of_task.per_token + ", is " + kind, "");
  if (known && !of_task.per_token && model.task)
    problems.add("task", std::string("must be ") + model.task + " with model.kind " + kind + ", is " + task, model.why);
  if (tensorise && tt.head.tensorise && !per_token())
    problems.add("tt.head.tensorise", "is for heads of language models, the task is " + task, "the head of a few classes stays dense");
  bool sizes = false;
  with_chosen([&](const auto& own) { sizes = own.check(*this, problems); });
  if (!sizes || !tensorise) return problems.list();
  with_chosen([&](const auto& own) {
    for (const ModelMatrix& matrix : own.matrices(*this)) {
      const TTOptions& options = tt.*matrix.options;
      std::vector<Problem> found;
      if (options.tensorise)
        (matrix.table ? table_shape : linear_shape)(matrix.in, matrix.out, options, (std::string("tt.") + matrix.kind).c_str(), found);
      for (const Problem& problem : found) problems.add(problem.path, problem.text, problem.hint);
    }
  });
  return problems.list();
}

}  // namespace comera
