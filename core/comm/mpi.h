// Processes that mpirun or srun started. MPI is in a library of its own (comm/mpi) next to the program, opened where they did: others do not
// pay for it, nor need it.
#pragma once
#include "core/comm/communicator.h"

namespace comera {

struct MpiStatus {
  bool here = false;    // this program can train with others
  std::string library;  // "Open MPI v4.1.4"
  std::string reason;   // why it cannot
};
MpiStatus mpi_status();
// Null: this process was started alone. Asks the environment alone, unless mpirun or srun started it. Throws Error(device) where they did
// and this program has no MPI.
std::unique_ptr<Communicator> join_processes();
// How many processes mpirun or srun started, and the number of this one, known before it joins; 1 and 0 where it was started alone.
int started_processes();
int started_as_process();

}  // namespace comera
