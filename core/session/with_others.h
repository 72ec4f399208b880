// A run that several processes train. Process 0 has the session, the store and the checkpoints. The others have a trainer alone and make
// every call that its trainer makes: calls that change the run are told to them one after another (Communicator::exchange).
#pragma once
#include <memory>
#include <string>

#include "core/base/json.h"
#include "core/comm/communicator.h"
#include "core/comm/process_threads.h"
#include "core/config/config.h"

namespace comera {

class Device;
class Trainer;

// Process 0 tells that a trainer is made from these, then every call that changes it, and the end of the run.
void tell_of_trainer(Communicator& others, const RunConfig& config, const std::string& device, const std::string& checkpoint);
void tell_calls_of(Trainer& trainer, Communicator& others);
void tell_end(Communicator& others);
// The device of this process, where that of process 0 is `name`: GPUs are numbered from the one that is named.
std::unique_ptr<Device> open_share_of_device(const std::string& name, int threads, const Communicator& others);
// A new run whose batches are of one part has a part a process. Throws Error(config) where the batch cannot be shared so.
void share_batches(RunConfig& config, const Communicator& others);

// Process 1, 2, ...: until process 0 says that the run ends. Throws what ends the run before.
void train_with_process_0(Communicator& others);

// The other processes of a run as threads of this program, whose calling thread is process 0. They end with this object.
class OthersInThreads {
 public:
  explicit OthersInThreads(int processes);  // all together, at least 2
  ~OthersInThreads();
  OthersInThreads(const OthersInThreads&) = delete;
  Communicator& others() { return first_; }

 private:
  ProcessThreads all_;
  ThreadCommunicator first_;
  std::vector<std::thread> threads_;
};
// Of a run whose processes train weights of their own (train.sync_every): as many as it needs; null for any other one.
std::unique_ptr<OthersInThreads> others_in_threads(const RunConfig& config);

}  // namespace comera
