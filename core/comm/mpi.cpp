#include "core/comm/mpi.h"

#include <dlfcn.h>

#include <cstdlib>

#include "core/base/module.h"

namespace comera {
namespace {

constexpr const char* kLibrary = "libcomera_mpi.so";

struct Library {
  void* handle = nullptr;
  std::string reason;
};

// Stays open: MPI does not end before the program does.
const Library& library() {
  static const Library kOpened = [] {
    Library opened;
    const std::string path = module_path(kLibrary);
    if (path.empty()) {
      opened.reason = std::string("not here: there is no ") + kLibrary + " next to the program; it is built where MPI (libopenmpi-dev) is";
      return opened;
    }
    // Plugins of Open MPI look for its symbols among those of all libraries.
    opened.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!opened.handle) opened.reason = "built in, but it does not load: " + std::string(dlerror());
    return opened;
  }();
  return kOpened;
}

template <class Function>
Function* function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(library().handle, name));
}

}  // namespace

// By what Open MPI, MPICH and Slurm set for the processes that they start.
int started_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* size = std::getenv(name)) return std::atoi(size);
  if (!std::getenv("PMIX_RANK")) return 1;
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks ? std::atoi(tasks) : 2;  // a launcher that does not say how many: perhaps several
}

int started_as_process() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const char* number = std::getenv(name)) return std::atoi(number);
  return 0;
}

MpiStatus mpi_status() {
  if (!library().handle) return {false, "", library().reason};
  return {true, function<const char*()>("comera_mpi_library")(), ""};
}

std::unique_ptr<Communicator> join_processes() {
  if (started_processes() <= 1) return nullptr;
  if (!library().handle)
    throw Error(ErrorCode::device, "this program cannot train with other processes", "MPI is " + library().reason,
                "install libopenmpi-dev and build again, or start it without mpirun");
  std::unique_ptr<Communicator> joined(function<Communicator*()>("comera_mpi_join")());
  return joined->processes() > 1 ? std::move(joined) : nullptr;
}

}  // namespace comera
