#include "core/session/with_others.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/ops/device.h"
#include "core/session/stored_run.h"
#include "core/train/device_links.h"
#include "core/train/trainer.h"

namespace comera {

namespace {
void tell_others(Communicator& others, const Json& call) { others.exchange(call.dump()); }
}  // namespace

void tell_of_trainer(Communicator& others, const RunConfig& config, const std::string& device, const std::string& checkpoint) {
  const std::string file = checkpoint.empty() ? "" : std::filesystem::absolute(checkpoint).string();
  tell_others(others, {{"call", "trainer"}, {"config", config_to_json(config)}, {"device", device}, {"checkpoint", file}});
}

void tell_calls_of(Trainer& trainer, Communicator& others) {
  trainer.tell_calls([&others](const char* call, const std::string& argument, const std::string& value) {
    tell_others(others, {{"call", call}, {"argument", argument}, {"value", value}});
  });
}

void tell_end(Communicator& others) {
  tell_others(others, {{"call", "end"}});
  others.ended();
}

std::unique_ptr<Device> open_share_of_device(const std::string& name, int threads, const Communicator& others) {
  std::string own = name;
  if (name.starts_with("cuda")) {
    const std::string first = name.size() > 5 ? name.substr(5) : "0";
    if (first.find_first_not_of("0123456789") == std::string::npos && first.size() < 4)
      own = "cuda:" + std::to_string(std::stoi(first) + others.process_here());
  }
  return open_device(own, threads > 0 ? threads : share_of_threads(others));
}

void share_batches(RunConfig& config, const Communicator& others) {
  const int64_t processes = others.processes();
  if (config.method.update == "backward")
    throw Error(ErrorCode::config, std::to_string(processes) + " processes cannot use method.update backward",
                "a gradient would be gone before those of the other processes are added", "use method.update after, or one process");
  if (config.train.micro_batches > 1) return;  // Engine says whether they are too few
  if (config.train.batch % processes != 0)
    throw Error(ErrorCode::config, std::to_string(processes) + " processes cannot share a batch of " + std::to_string(config.train.batch),
                "each computes an equal part of a batch", "use a train.batch that " + std::to_string(processes) + " divides");
  config.train.micro_batches = processes;
  validate_config(config, std::to_string(processes) + " processes, so train.micro_batches is " + std::to_string(processes));
}

namespace {

class Follower {
 public:
  explicit Follower(Communicator& others) : others_(others) {}

  void run() {
    for (;;) {
      const Json told = parse_json(others_.exchange("")[0], "process 0");
      const std::string call = told.at("call");
      if (call == "end") return others_.ended();
      if (call == "trainer")
        make_trainer(config_from_json(told.at("config"), "process 0"), told.at("device"), told.at("checkpoint"));
      else
        make(call, told.at("argument"), told.at("value"));
    }
  }

 private:
  void make_trainer(const RunConfig& config, const std::string& device, const std::string& checkpoint) {
    trainer_.reset();
    if (!device_) device_ = open_share_of_device(device, static_cast<int>(config.train.threads), others_);
    link_devices(*device_, others_);
    data_ = open_run_data(config);
    trainer_ = std::make_unique<Trainer>(config, data_.train, data_.validation, *device_, none_, &others_, checkpoint);
  }
  void make(const std::string& call, const std::string& argument, const std::string& value) {
    CHECK(trainer_, call << " without a trainer");
    if (call == "start")
      trainer_->start();
    else if (call == "restore")
      trainer_->restore(argument);
    else if (call == "edit")
      trainer_->edit(argument, value);
    else if (call == "collect")
      trainer_->collect();
    else if (call == "guard_growth")
      trainer_->guard_growth();
    else if (call == "step")
      trainer_->step();
    else
      CHECK(false, "process 0 calls " << call);
  }

  Communicator& others_;
  std::unique_ptr<Device> device_;
  RunData data_;
  TrainObserver none_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace

void train_with_process_0(Communicator& others) { Follower(others).run(); }

std::unique_ptr<OthersInThreads> others_in_threads(const RunConfig& config) {
  if (config.train.sync_every == 1 || config.train.micro_batches == 1) return nullptr;
  return std::make_unique<OthersInThreads>(static_cast<int>(config.train.micro_batches));
}

OthersInThreads::OthersInThreads(int processes) : all_(processes), first_(all_, 0) {
  for (int process = 1; process < processes; ++process)
    threads_.emplace_back([this, process] {
      ThreadCommunicator communicator(all_, process);
      try {
        train_with_process_0(communicator);
      } catch (const Error& error) {
        communicator.fail(error);
      } catch (const std::exception&) {
        all_.end();
      }
    });
}

OthersInThreads::~OthersInThreads() {
  if (std::uncaught_exceptions() > 0) {
    first_.fail(Error(ErrorCode::other, "process 0 has ended"));
  } else if (!first_.has_ended()) {
    try {
      tell_end(first_);
    } catch (const std::exception&) {
      all_.end();
    }
  }
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace comera
