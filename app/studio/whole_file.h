// Files that appear complete or not at all: written as PATH.part, renamed to PATH at the end.
#pragma once
#include <atomic>
#include <functional>
#include <ostream>
#include <string>

namespace comera::studio {

struct GivenUp {};  // the result is no longer wanted

// `fill` writes the contents. Throws Error(storage) if they cannot be written, and GivenUp at the first write after `stop` became true;
// exceptions of `fill` pass through. In all these cases PATH and PATH.part are not created. Thread: any.
void write_whole(const std::string& path, const std::atomic<bool>& stop, const std::function<void(std::ostream&)>& fill);

// Removes the unfinished files of all threads, for a process that exits at once.
void remove_unfinished_files();

}  // namespace comera::studio
