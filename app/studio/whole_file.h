// Files that appear whole or not at all: written as PATH.part, and named PATH at the end.
#pragma once
#include <atomic>
#include <functional>
#include <ostream>
#include <string>

namespace comera::studio {

struct GivenUp {};  // the result of a work is not wanted any more

// `fill` writes the contents. Throws Error(storage) when they cannot be written, GivenUp at the next write after `stop` became
// true, and lets exceptions of `fill` through; then there is neither PATH nor PATH.part. Thread: any.
void write_whole(const std::string& path, const std::atomic<bool>& stop, const std::function<void(std::ostream&)>& fill);

// Removes what write_whole() has written so far in any thread, for a process that ends at once.
void remove_unfinished_files();

}  // namespace comera::studio
