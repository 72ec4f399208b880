#include "app/studio/shown_run/checkpoint_values.h"

#include "core/base/error.h"
#include "core/session/inspect.h"
#include "core/tensor/safetensors.h"

namespace comera::studio {

CheckpointValues read_checkpoint_values(const CheckpointQuestion& question) {
  CheckpointValues out{question, {}, {}, ""};
  try {
    const SafetensorsFile file(question.path);
    if (question.bond > 0) {
      out.bond = {question.layer, question.bond, question.step, file.values(question.layer + ".rank." + std::to_string(question.bond))};
    } else {
      const std::string name = question.layer + ".core." + std::to_string(question.core);
      out.core = describe_core(question.layer, question.core, question.step, file.entry(name).shape, file.values(name));
    }
  } catch (const Error& error) {
    out.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    out.problem = error.what();
  }
  return out;
}

}  // namespace comera::studio
