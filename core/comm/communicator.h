// Programs that train one run together, each with its share of every batch (MPI calls them ranks): process 0..P-1. What all get is the
// same on all, so every decision that follows from it is. Calls are made by all processes in the same order; one thread of each.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace comera {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int process() const = 0;    // 0..processes()-1
  virtual int processes() const = 0;  // P, at least 2
  // The same among the processes of this machine.
  virtual int process_here() const = 0;
  virtual int processes_here() const = 0;
  virtual bool plans() const { return false; }  // there are no others, a plan counts with them (planned_processes.h)

  // `mine` and `all` are P pieces of `bytes`: piece q of `mine` goes to process q, piece q of `all` comes from it.
  void trade(const void* mine, void* all, int64_t bytes) {
    sent_bytes_ += bytes * (processes() - 1);
    do_trade(mine, all, bytes);
  }
  // `all` (P pieces of `bytes`) is what the processes gave, in ascending order.
  void gather(const void* mine, void* all, int64_t bytes) {
    sent_bytes_ += bytes * (processes() - 1);
    do_gather(mine, all, bytes);
  }
  // `data` (bytes) of process 0 goes to all.
  void spread(void* data, int64_t bytes) {
    if (process() == 0) sent_bytes_ += bytes * (processes() - 1);
    do_spread(data, bytes);
  }
  // What this process has given to others by trade(), gather() and spread(). A library of MPI may pass some of it on through a third
  // process.
  int64_t sent_bytes() const { return sent_bytes_; }
  // Ends all processes, where this one cannot reach the next exchange().
  [[noreturn]] virtual void abort(const std::string& why) = 0;

  // The texts of all processes, in ascending order. Where a process failed instead: its error, on all.
  std::vector<std::string> exchange(const std::string& mine);
  // Tells the others, in their next exchange(), why this process ends. Nothing where all know it already, or have ended().
  void fail(const Error& error) noexcept;
  void ended() { ended_ = true; }  // there is no exchange() any more
  bool has_ended() const { return ended_; }

 protected:
  virtual void do_trade(const void* mine, void* all, int64_t bytes) = 0;
  virtual void do_gather(const void* mine, void* all, int64_t bytes) = 0;
  virtual void do_spread(void* data, int64_t bytes) = 0;
  virtual std::vector<std::string> trade_texts(const std::string& mine) = 0;

 private:
  int64_t sent_bytes_ = 0;
  bool ended_ = false;
};

// Throws Error(usage) on all processes where a text is not the same on all; `what`: "another config".
void check_alike(Communicator& communicator, const std::string& text, const std::string& what, const std::string& hint);

// Threads of a process that takes every core: its share of the cores of its machine.
int share_of_threads(const Communicator& communicator);

}  // namespace comera
