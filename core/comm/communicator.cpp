#include "core/comm/communicator.h"

#include <sched.h>

#include <algorithm>
#include <sstream>
#include <thread>

namespace comera {
namespace {

constexpr char kWell = '.', kFailed = '!';

// One line each, as the texts of an Error are.
std::string packed(const Error& error) {
  return kFailed + std::to_string(static_cast<int>(error.code())) + "\n" + error.what() + "\n" + error.why() + "\n" + error.hint();
}

Error unpacked(const std::string& text, size_t process) {
  std::istringstream in(text.substr(1));
  std::string code, what, why, hint;
  std::getline(in, code);
  std::getline(in, what);
  std::getline(in, why);
  std::getline(in, hint);
  if (process > 0) what = "process " + std::to_string(process) + ": " + what;
  return Error(static_cast<ErrorCode>(std::stoi(code)), what, why, hint);
}

}  // namespace

std::vector<std::string> Communicator::exchange(const std::string& mine) {
  std::vector<std::string> all = trade_texts(kWell + mine);
  for (size_t process = 0; process < all.size(); ++process)
    if (all[process][0] == kFailed) {
      ended_ = true;
      throw unpacked(all[process], process);
    }
  for (std::string& text : all) text.erase(0, 1);
  return all;
}

void Communicator::fail(const Error& error) noexcept {
  if (ended_) return;
  ended_ = true;
  try {
    trade_texts(packed(error));
  } catch (const std::exception&) {  // the others are gone
  }
}

void check_alike(Communicator& communicator, const std::string& text, const std::string& what, const std::string& hint) {
  const std::vector<std::string> all = communicator.exchange(text);
  for (size_t process = 1; process < all.size(); ++process)
    if (all[process] != all[0])
      throw Error(ErrorCode::usage, "process " + std::to_string(process) + " has " + what + " than process 0",
                  "all processes of a run must train the same", hint);
}

int share_of_threads(const Communicator& communicator) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), share = cores / communicator.processes_here();
  cpu_set_t bound;
  CPU_ZERO(&bound);
  const int own = sched_getaffinity(0, sizeof bound, &bound) == 0 ? CPU_COUNT(&bound) : cores;
  return std::max(1, own < cores ? own : share);  // mpirun gives each process cores of its own, or none
}

}  // namespace comera
