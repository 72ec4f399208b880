#include "app/version.h"

#include "core/ops/device.h"
#include "version_of_build.h"  // made by cmake/version.cmake; included here only, so that a commit rebuilds one file

namespace comera {

const char* version_number() { return COMERA_VERSION; }
const char* version_commit() { return COMERA_COMMIT; }

std::string version_text(const std::string& program) {
  return program + " " + version_number() + " (commit " + version_commit() + ", CUDA " +
         (cuda_status().built ? "built in" : "not built in") + ", " + blas_name() + ")";
}

}  // namespace comera
