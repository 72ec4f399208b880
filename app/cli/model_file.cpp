#include <filesystem>

#include "app/cli/cli.h"
#include "core/session/stored_run.h"

namespace comera::cli {

ModelPath model_file(const Context& context, const std::string& model, int64_t step) {
  if (std::filesystem::is_regular_file(model)) return {model, std::filesystem::path(model).stem().string()};
  return model_of_run(load_stored_run(store_to_read(context), model), step);
}

}  // namespace comera::cli
