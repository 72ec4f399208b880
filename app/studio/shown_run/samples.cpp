#include "app/studio/shown_run/samples.h"

#include <algorithm>
#include <filesystem>

#include "app/format.h"
#include "app/studio/ui_state.h"
#include "core/base/error.h"
#include "core/ops/device.h"
#include "core/train/system_memory.h"
#include "core/train/text_writer.h"

namespace comera::studio {
namespace {

constexpr size_t kKept = 200;   // texts of a run
constexpr int64_t kCopies = 5;  // of the parameters that a loaded model takes at most

}  // namespace

Sample write_sample(const SampleQuestion& question) {
  Sample out{question, "", ""};
  try {
    const auto need = kCopies * static_cast<int64_t>(std::filesystem::file_size(question.path)), free = available_memory();
    if (need > free / 2)
      throw Error(ErrorCode::memory, "the model is too large to be loaded next to the run",
                  "it may take " + mebibytes(static_cast<double>(need)) + " of " + mebibytes(static_cast<double>(free)) + " that are free");
    const std::unique_ptr<Device> device = open_device("cpu", 1);
    TextWriter writer(question.path, "", *device);
    out.text = readable(writer.write(question.prompt, question.tokens, {.temperature = question.temperature, .seed = question.seed},
                                     [&](std::string_view) { return !*question.given_up; }));
  } catch (const Error& error) {
    out.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    out.problem = error.what();
  }
  return out;
}

bool writes_text(const UiState& ui) { return ui.has_run() && ui.shown().config.model.task == "language"; }

void tick_samples(UiState& ui, bool again) {
  SamplesView& samples = ui.samples;
  if (samples.view != &ui.shown()) {
    samples.view = &ui.shown();
    samples.written.clear();
    samples.asked = {};
    samples.number = 0;
    *samples.given_up = true;
    samples.given_up = std::make_shared<std::atomic<bool>>(false);
  }
  if (samples.writer)
    if (const auto answer = samples.writer->latest();
        answer && answer->number == samples.number && answer->answer.question.given_up == samples.given_up) {
      if (samples.written.size() >= kKept) samples.written.erase(samples.written.begin());
      samples.written.push_back(answer->answer);
      samples.number = 0;
    }
  const Snapshot& s = ui.snapshot();
  if (s.last_checkpoint_path.empty() || samples.number != 0) return;
  SampleQuestion question{.path = s.last_checkpoint_path,
                          .step = s.last_checkpoint_step,
                          .prompt = samples.prompt,
                          .temperature = samples.temperature,
                          .tokens = samples.tokens,
                          .given_up = samples.given_up};
  if (question.same_text(samples.asked)) {
    if (!again) return;
    question.seed = samples.asked.seed + 1;
  }
  samples.asked = question;
  if (!samples.writer) samples.writer = std::make_unique<Background<SampleQuestion, Sample>>(write_sample, ui.wake);
  samples.number = samples.writer->ask(question);
}

}  // namespace comera::studio
