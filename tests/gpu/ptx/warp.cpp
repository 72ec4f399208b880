#include "tests/gpu/ptx/warp.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "tests/gpu/ptx/actions.h"

namespace comera::ptx {

// Which blocks of a launch used each word of global memory. On a GPU they run in any order and at the same time, so none may use what
// another one writes, unless all of them use atomic or volatile instructions.
class UseByBlocks {
 public:
  // The fault, or null. Accesses of less than a word are ignored.
  const char* note(uint64_t address, int64_t bytes, int64_t block, bool writes, bool atomic) {
    const auto self = static_cast<int32_t>(block + 1);
    for (uint64_t word = address / 4; word < (address + static_cast<uint64_t>(bytes)) / 4; ++word) {
      Used& used = at(word);
      used.all_atomic = used.all_atomic && atomic;
      const bool others_wrote = used.writer != 0 && used.writer != self;
      const bool others_read = used.several_read || (used.reader != 0 && used.reader != self);
      if (!used.all_atomic && others_wrote)
        return writes ? "writes memory that another block writes" : "reads memory that another block writes";
      if (!used.all_atomic && others_read && writes) return "writes memory that another block reads";
      if (writes) {
        used.writer = self;
      } else {
        used.several_read = others_read;
        used.reader = self;
      }
    }
    return nullptr;
  }

 private:
  struct Used {
    int32_t writer = 0, reader = 0;  // the last ones, from 1; 0: none
    bool several_read = false, all_atomic = true;
  };
  static constexpr uint64_t kWords = 1024;  // of a page

  Used& at(uint64_t word) {
    const uint64_t number = word / kWords;
    if (number != last_number_ || !last_) {
      std::unique_ptr<Used[]>& page = pages_[number];
      if (!page) page.reset(new Used[kWords]());
      last_number_ = number, last_ = page.get();
    }
    return last_[word % kWords];
  }

  std::unordered_map<uint64_t, std::unique_ptr<Used[]>> pages_;
  uint64_t last_number_ = 0;
  Used* last_ = nullptr;
};

// One block while it runs: its shared memory, and who used it since when.
class Block {
 public:
  // `others`: null: not watched.
  Block(Program& program, const Kernel& kernel, const Launch& launch, Allowed allowed, UseByBlocks* others, Counts* counts)
      : program(program), kernel(kernel), launch(launch), allowed(allowed), others(others), counts(counts) {
    const int64_t bytes =
        launch.dynamic_shared_bytes > 0 ? kernel.dynamic_shared_at + launch.dynamic_shared_bytes : kernel.static_shared_bytes;
    // Aligned as a device has it.
    storage_.resize(static_cast<size_t>(bytes) + 128);
    shared = storage_.data() + (128 - std::bit_cast<uintptr_t>(storage_.data()) % 128) % 128;
    shared_bytes = bytes;
    used_.resize(static_cast<size_t>(bytes / 4 + 1));
    for (int thread = 0; thread < launch.threads; thread += kLanes) warps_.emplace_back(std::make_unique<Warp>(kernel, *this, thread));
  }

  void run(int64_t number) {
    index = number;
    ++epoch_;
    std::memset(shared, 0xff, static_cast<size_t>(shared_bytes));  // NaN
    for (const auto& warp : warps_) warp->begin(number, launch.blocks, launch.threads);
    for (;;) {
      bool all_left = true;
      for (const auto& warp : warps_) {
        warp->run();
        all_left = all_left && warp->left();
      }
      if (all_left) break;
      ++epoch_;
      for (const auto& warp : warps_) warp->pass_barrier();
      any = false;
    }
    if (!counts) return;
    for (const auto& warp : warps_) {
      counts->instructions += warp->instructions();
      longest = std::max(longest, warp->instructions());
    }
    counts->warps += static_cast<int64_t>(warps_.size());
  }

  // Notes that a thread reads or writes words of shared memory; what is wrong with it, if anything. What is smaller than a
  // word is not looked at, nor are threads of a warp that has waited for its lanes alone since the last barrier.
  const char* note(int64_t at, int64_t bytes, int thread, bool lanes_waited, bool writes, bool atomic) {
    const auto meets = [&](int other) { return other != thread && (!lanes_waited || other / kLanes != thread / kLanes); };
    const auto self = static_cast<uint16_t>(thread);
    for (int64_t word = at / 4; word < (at + bytes) / 4; ++word) {
      Used& used = used_[static_cast<size_t>(word)];
      if (used.written == epoch_ && meets(used.writer) && !(atomic && used.atomic))
        return writes ? "writes shared memory that another thread writes, without a barrier between"
                      : "reads shared memory that another thread writes, without a barrier between";
      if (!writes) {  // two readers stand for all, of different warps where there are such
        if (used.read != epoch_)
          used.read = epoch_, used.reader = used.other_reader = self;
        else if (used.other_reader / kLanes == used.reader / kLanes)
          used.other_reader = self;
        continue;
      }
      if (used.read == epoch_ && !atomic && (meets(used.reader) || meets(used.other_reader)))
        return "writes shared memory that another thread reads, without a barrier between";
      used.written = epoch_, used.writer = self, used.atomic = atomic;
    }
    return nullptr;
  }

  Program& program;
  const Kernel& kernel;
  const Launch& launch;
  const Allowed allowed;
  UseByBlocks* const others;
  Counts* const counts;
  int64_t longest = 0;
  char* shared = nullptr;
  int64_t shared_bytes = 0, index = 0;
  bool any = false;  // of the predicates that were brought to a barrier

 private:
  struct Used {
    uint32_t written = 0, read = 0;  // when: barriers that were passed
    uint16_t writer = 0, reader = 0, other_reader = 0;
    bool atomic = false;
  };
  std::vector<char> storage_;
  std::vector<Used> used_;
  uint32_t epoch_ = 0;
  std::vector<std::unique_ptr<Warp>> warps_;
};

Warp::Warp(const Kernel& kernel, Block& block, int first_thread)
    : kernel_(kernel),
      block_(block),
      first_thread_(first_thread),
      storage_(new char[static_cast<size_t>(kernel.file_bytes) + 64]()),
      file_(storage_.get() + (64 - std::bit_cast<uintptr_t>(storage_.get()) % 64) % 64),
      local_(static_cast<size_t>(kernel.local_bytes) * kLanes) {
  for (const Constant& c : kernel.constants)
    if (c.bytes == 0)
      bits(c.at) = c.value ? ~0u : 0;
    else
      for (int lane = 0; lane < kLanes; ++lane) std::memcpy(file_ + c.at + lane * c.bytes, &c.value, static_cast<size_t>(c.bytes));
}

void Warp::begin(int64_t block, int64_t blocks, int threads) {
  const int lanes = std::min(threads - first_thread_, kLanes);
  here_ = lanes == kLanes ? ~0u : (1u << lanes) - 1;
  at_barrier_ = parked_ = 0;
  lanes_waited_ = false;
  instructions_ = 0;
  next_.fill(0);
  for (int lane = 0; lane < kLanes; ++lane) {
    row<int>(kernel_.specials.thread)[lane] = first_thread_ + lane;
    row<int>(kernel_.specials.threads)[lane] = threads;
    row<uint32_t>(kernel_.specials.block)[lane] = static_cast<uint32_t>(block);
    row<uint32_t>(kernel_.specials.blocks)[lane] = static_cast<uint32_t>(blocks);
    row<int>(kernel_.specials.lane)[lane] = lane;
    row<uint32_t>(kernel_.specials.lanes_up_to)[lane] = (2u << lane) - 1;
  }
}

void Warp::fault(const Instruction& i, int lane, const std::string& what) const {
  throw Fault(kernel_.name + ", block " + std::to_string(block_.index) + ", thread " + std::to_string(first_thread_ + lane) + " " + what +
              ": " + block_.program.line(i.line));
}

void Warp::reach(const Instruction& i, uint32_t lanes, uint64_t* addresses, int64_t bytes, bool writes, bool atomic) {
  const auto each = [&](const auto& body) {
    for (uint32_t l = lanes; l != 0; l &= l - 1) body(std::countr_zero(l));
  };
  Space space = i.space;
  if (space == Space::generic) {
    const uint64_t window = addresses[std::countr_zero(lanes)] & kWindowBits;
    space = window == kSharedWindow ? Space::shared : window == kLocalWindow ? Space::local : Space::global;
    each([&](int lane) {
      if ((addresses[lane] & kWindowBits) != window)
        fault(i, lane, "uses memory of another kind than other lanes, which is not known here");
    });
  }
  const uint64_t inside = static_cast<uint64_t>(bytes) - 1;
  uint64_t first = ~uint64_t{0}, last = 0, misaligned = 0;
  const auto look = [&](int lane) {
    misaligned |= addresses[lane] & inside;
    first = std::min(first, addresses[lane]);
    last = std::max(last, addresses[lane]);
  };
  if (lanes == ~0u)
    for (int lane = 0; lane < kLanes; ++lane) look(lane);
  else
    each(look);
  if (misaligned)
    each([&](int lane) {
      if (addresses[lane] & inside) fault(i, lane, "uses memory at an address that is no multiple of " + std::to_string(bytes));
    });
  if (block_.counts && (space == Space::global || space == Space::shared))
    count(*block_.counts, space == Space::shared, lanes, addresses, bytes);
  if (space == Space::global) {
    if (!block_.allowed(first, static_cast<int64_t>(last - first) + bytes))
      each([&](int lane) {
        if (!block_.allowed(addresses[lane], bytes))
          fault(i, lane,
                std::string(writes ? "writes " : "reads ") + std::to_string(bytes) + " bytes at " + std::to_string(addresses[lane]) +
                    ", where no memory of the device is");
      });
    if (block_.others)
      each([&](int lane) {
        if (const char* what = block_.others->note(addresses[lane], bytes, block_.index, writes, atomic)) fault(i, lane, what);
      });
    return;
  }
  const bool shared = space == Space::shared, local = space == Space::local;
  const int64_t has = shared ? block_.shared_bytes : local ? kernel_.local_bytes : kernel_.param_bytes;
  char* begin = shared ? block_.shared : local ? local_.data() : const_cast<char*>(block_.launch.params);
  if (static_cast<int64_t>(last & ~kWindowBits) + bytes > has)
    each([&](int lane) {
      const int64_t at = static_cast<int64_t>(addresses[lane] & ~kWindowBits);
      if (at + bytes > has)
        fault(i, lane,
              "uses " + std::to_string(bytes) + " bytes at " + std::to_string(at) + " of the " + std::to_string(has) + " of its " +
                  (shared  ? "shared memory"
                   : local ? "local memory"
                           : "parameters"));
    });
  if (shared && block_.launch.watch) {
    uint32_t noted = lanes;
    if (first == last && !writes) noted &= 1u << std::countr_zero(lanes) | 1u << (31 - std::countl_zero(lanes));  // two stand for all
    for (; noted != 0; noted &= noted - 1) {
      const int lane = std::countr_zero(noted);
      const int64_t at = static_cast<int64_t>(addresses[lane] & ~kWindowBits);
      if (const char* what = block_.note(at, bytes, first_thread_ + lane, lanes_waited_, writes, atomic)) fault(i, lane, what);
    }
  }
  const uint64_t base = std::bit_cast<uint64_t>(begin), step = local ? static_cast<uint64_t>(kernel_.local_bytes) : 0;
  for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = base + (addresses[lane] & ~kWindowBits) + static_cast<uint64_t>(lane) * step;
}

void Warp::pass_barrier() {
  lanes_waited_ = false;
  for (uint32_t lanes = at_barrier_; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    int& next = next_[static_cast<size_t>(lane)];
    const Instruction& i = kernel_.code[static_cast<size_t>(next)];
    if (i.kind == Kind::barrier_or) bits(i.at[0]) = (bits(i.at[0]) & ~(1u << lane)) | (static_cast<uint32_t>(block_.any) << lane);
    ++next;
  }
  at_barrier_ = 0;
}

void Warp::run() {
  const Instruction* const code = kernel_.code.data();
  for (;;) {
    // Those that are furthest behind go on, until they come to where others wait.
    uint32_t ready = here_ & ~at_barrier_ & ~parked_;
    if (ready == 0) {
      if (parked_ != 0) {
        const int lane = std::countr_zero(parked_);
        fault(code[next_[static_cast<size_t>(lane)]], lane, "waits for lanes of its warp that never come");
      }
      return;
    }
    int at = INT32_MAX, others_at = INT32_MAX;
    for (uint32_t l = ready; l != 0; l &= l - 1) at = std::min(at, next_[static_cast<size_t>(std::countr_zero(l))]);
    uint32_t lanes = 0;
    for (uint32_t l = here_ & ~at_barrier_; l != 0; l &= l - 1) {
      const int lane = std::countr_zero(l), its = next_[static_cast<size_t>(lane)];
      if (its == at)
        lanes |= 1u << lane;
      else if (its > at)
        others_at = std::min(others_at, its);
    }
    parked_ &= ~lanes;
    const bool together = lanes == (here_ & ~at_barrier_);
    const auto leave_at = [&](uint32_t which, int where) {
      for (uint32_t l = which; l != 0; l &= l - 1) next_[static_cast<size_t>(std::countr_zero(l))] = where;
    };
    for (bool parted = false; !parted;) {
      const Instruction& i = code[at];
      ++instructions_;
      uint32_t active = lanes;
      if (i.guard >= 0) active &= i.unless ? ~bits(i.guard) : bits(i.guard);
      switch (i.kind) {
        case Kind::plain:
          if (active) i.action(*this, i, active);
          ++at;
          break;
        case Kind::branch: {
          const int from = at;
          if (active == lanes) {
            at = i.target;
          } else {
            ++at;
            if (active) {
              leave_at(active, i.target);
              leave_at(lanes & ~active, at);
              parted = true;
              continue;
            }
          }
          if (at <= from && !together) {  // back to where others may be
            leave_at(lanes, at);
            parted = true;
            continue;
          }
          break;
        }
        case Kind::leave:
          here_ &= ~active;
          leave_at(lanes & ~active, at + 1);
          parted = true;
          continue;
        case Kind::barrier:
        case Kind::barrier_or:
          if (active != lanes) fault(i, std::countr_zero(lanes), "comes to a barrier that not all of its lanes come to");
          if (i.kind == Kind::barrier_or) block_.any = block_.any || (bits(i.at[1]) & lanes) != 0;
          leave_at(lanes, at);
          at_barrier_ |= lanes;
          parted = true;
          continue;
        case Kind::among_lanes: {
          uint32_t come = ~0u;
          if (i.target >= 0) come = row<uint32_t>(i.target)[std::countr_zero(active ? active : 1u)];
          if (active && (come & ~here_)) fault(i, std::countr_zero(active), "waits for lanes of its warp that have left");
          if (active && (come & ~active)) {
            leave_at(lanes, at);
            parked_ |= lanes;
            parted = true;
            continue;
          }
          if (active) i.action(*this, i, active);
          ++at;
          break;
        }
      }
      if (at >= others_at) {
        leave_at(lanes, at);
        parted = true;
      }
    }
  }
}

void Warp::count(Counts& counts, bool shared, uint32_t lanes, const uint64_t* addresses, int64_t bytes) const {
  std::array<uint64_t, kLanes> at{};  // without those that are there already
  size_t used = 0;
  bool rising = true;
  for (uint32_t l = lanes; l != 0; l &= l - 1) {
    const uint64_t address = addresses[std::countr_zero(l)];
    if (used > 0 && address == at[used - 1]) continue;
    rising = rising && (used == 0 || address > at[used - 1]);
    if (rising || std::find(at.begin(), at.begin() + used, address) == at.begin() + used) at[used++] = address;
  }
  if (!shared) {
    counts.sectors_least += (static_cast<int64_t>(used) * bytes + 31) / 32;
    for (size_t k = 0; k < used; ++k) at[k] /= 32;
    if (!rising) std::sort(at.begin(), at.begin() + used);
    counts.sectors += std::unique(at.begin(), at.begin() + used) - at.begin();
    return;
  }
  // 32 banks of 4 bytes; of wide numbers as many lanes are served at a time as fit.
  counts.bank_accesses += 1;
  const size_t at_a_time = static_cast<size_t>(std::max<int64_t>(1, 128 / std::max<int64_t>(bytes, 4)));
  if (rising && bytes >= 4 && at[used - 1] - at[0] == (used - 1) * static_cast<uint64_t>(bytes)) {  // neighbours: all in different banks
    counts.bank_passes += static_cast<int64_t>((used + at_a_time - 1) / at_a_time);
    return;
  }
  for (size_t begin = 0; begin < used; begin += at_a_time) {
    std::array<int, 32> words{};
    for (size_t k = begin; k < std::min(used, begin + at_a_time); ++k)
      for (int64_t b = 0; b < std::max<int64_t>(bytes, 4); b += 4) ++words[(at[k] + static_cast<uint64_t>(b)) / 4 % 32];
    counts.bank_passes += *std::max_element(words.begin(), words.end());
  }
}

void run(Program& program, const Kernel& kernel, const Launch& launch, Allowed allowed, Counts* counts) {
  if (!kernel.unknown.empty()) throw Fault(kernel.name + " cannot be run here: " + kernel.unknown);
  UseByBlocks use;
  Block block(program, kernel, launch, allowed, launch.watch && launch.blocks > 1 ? &use : nullptr, counts);
  for (int64_t b = 0; b < launch.blocks; ++b) block.run(b);
  if (!counts) return;
  counts->launches += 1;
  counts->blocks += launch.blocks;
  counts->longest += block.longest;
  counts->shared = std::max(counts->shared, kernel.static_shared_bytes + launch.dynamic_shared_bytes);
}

}  // namespace comera::ptx
