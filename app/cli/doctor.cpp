// comera doctor: capabilities of this build and this machine.
#include <iostream>
#include <thread>

#include "app/cli/cli.h"
#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/comm/mpi.h"
#include "core/config/config.h"
#include "core/data/parquet.h"
#include "core/ops/device.h"
#include "core/ops/device_link.h"
#include "core/session/version.h"

namespace comera::cli {
namespace {

// Path of the window's log file; "" without a home folder.
std::string log_path() try { return paths::studio_log(); } catch (const Error&) {
  return "";
}

// Name of the CPU, with the level of its kernels if there are several.
std::string cpu_name() try { return open_device("cpu")->name(); } catch (const Error& error) {
  return std::string("none: ") + error.what() + " (" + error.why() + ")";
}

// Devices by the names that --device accepts.
std::string devices_text(const CudaStatus& cuda) {
  std::string text;
  for (size_t i = 0; i < cuda.devices.size(); ++i) text += (i ? ", " : "") + ("cuda:" + std::to_string(i)) + " " + cuda.devices[i];
  return text;
}

}  // namespace

void add_doctor(Verb& program, Context& context) {
  Verb verb = program.verb("doctor", "show the capabilities of this build and this machine");
  verb.does([&context] {
    const CudaStatus cuda = cuda_status();
    const std::string cpu = cpu_name();
    const MpiStatus mpi = mpi_status();
    const NcclStatus nccl = nccl_status();
    const ParquetStatus parquet = parquet_status();
    const OnednnStatus onednn = onednn_status();
    const unsigned threads = std::thread::hardware_concurrency();
    const std::string cuda_text = !cuda.built            ? "not built in: " + cuda.reason
                                  : cuda.devices.empty() ? "built in (" + cuda.toolkit + "), no device: " + cuda.reason
                                                         : "built in (" + cuda.toolkit + "), " + devices_text(cuda);
    if (context.json) {
      print_json({{"version", version_number()},
                  {"commit", version_commit()},
                  {"cuda", {{"built", cuda.built}, {"toolkit", cuda.toolkit}, {"devices", cuda.devices}, {"reason", cuda.reason}}},
                  {"mpi", {{"here", mpi.here}, {"library", mpi.library}, {"reason", mpi.reason}}},
                  {"nccl", {{"here", nccl.here}, {"version", nccl.version}, {"reason", nccl.reason}}},
                  {"parquet", {{"here", parquet.here}, {"library", parquet.library}, {"reason", parquet.reason}}},
                  {"onednn", {{"here", onednn.here}, {"library", onednn.library}, {"reason", onednn.reason}}},
                  {"cpu", cpu},
                  {"blas", blas_name()},
                  {"threads", threads},
                  {"store", store_path(context)},
                  {"log", log_path()},
                  {"assets", assets_folder()},
                  {"presets", preset_names()}});
      return 0;
    }
    std::string presets;
    for (const std::string& name : preset_names()) presets += (presets.empty() ? "" : ", ") + name;
    std::vector<std::vector<std::string>> rows = {{"version", version_number()},
                                                  {"commit", version_commit()},
                                                  {"CUDA", cuda_text},
                                                  {"MPI", mpi.here ? mpi.library : mpi.reason},
                                                  {"NCCL", nccl.here ? nccl.version : "not used: " + nccl.reason},
                                                  {"Parquet", parquet.here ? parquet.library : "Arrow is " + parquet.reason},
                                                  {"bf16 on the CPU", onednn.here ? onednn.library : "oneDNN is " + onednn.reason},
                                                  {"CPU", cpu},
                                                  {"BLAS", blas_name()},
                                                  {"threads", std::to_string(threads)},
                                                  {"store", store_path(context)},
                                                  {"log of the window", log_path()},
                                                  {"assets", assets_folder()},
                                                  {"presets", presets}};
    print_table(context, {"component", "state"}, rows);
    return 0;
  });
}

}  // namespace comera::cli
