// The tasks: what menus and checks have to know of each. Free of layer types; their losses and scores are in core/tasks.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/fields.h"

namespace comera {

struct ModelConfig;
class Task;

struct TaskInfo {
  Choice choice = {""};              // of model.task
  int64_t classes = 0, outputs = 0;  // that it has; 0: any number of classes, an output for each
  const char* per_token = nullptr;   // its classes are the tokens of the vocabulary; the kind of model that has such outputs
};

struct ClassificationTask {
  static TaskInfo info() {
    return {.choice = {"classification", "Classification", "One of several classes an example: softmax and cross-entropy."}};
  }
  static std::unique_ptr<Task> make(const ModelConfig& config);
};
struct BinaryTask {
  static TaskInfo info() {
    return {
        .choice = {"binary", "Binary classification", "One of two classes from one logit: sigmoid and cross-entropy. Evaluations add AUC."},
        .classes = 2,
        .outputs = 1};
  }
  static std::unique_ptr<Task> make(const ModelConfig& config);
};
struct LanguageTask {
  static TaskInfo info() {
    return {.choice = {"language", "Language model", "The next token of each: softmax and cross-entropy. Evaluations add the perplexity."},
            .per_token = "decoder"};
  }
  static std::unique_ptr<Task> make(const ModelConfig& config);
};
struct MaskedTask {
  static TaskInfo info() {
    return {
        .choice = {"masked", "Masked language model", "Tokens that are masked: softmax and cross-entropy. Evaluations add the perplexity."},
        .per_token = "encoder"};
  }
  static std::unique_ptr<Task> make(const ModelConfig& config);
};

// f(task) for each, in the order of menus.
void each_task(auto&& f) {
  f(ClassificationTask());
  f(BinaryTask());
  f(LanguageTask());
  f(MaskedTask());
}

// An empty one where there is none of that name.
inline TaskInfo find_task(const std::string& id) {
  TaskInfo found;
  each_task([&](auto task) {
    if (id == task.info().choice.id) found = task.info();
  });
  return found;
}

}  // namespace comera
