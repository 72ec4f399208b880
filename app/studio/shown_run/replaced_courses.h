// Discarded branches of the shown run: steps before a rollback, stored as runs (core/store/run_types.h). Their curves are drawn behind
// those of the run.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/studio/background.h"
#include "app/studio/parts/plots.h"

namespace comera::studio {

struct UiState;

struct CourseQuestion {
  std::string store;
  std::vector<std::string> runs;
  bool operator==(const CourseQuestion&) const = default;
};
struct Course {
  std::string run;
  std::map<std::string, Curve> metrics;  // by the names of the store
};
// The readable branches; a branch may have been purged. Never throws.
std::vector<Course> read_courses(const CourseQuestion& question);

inline constexpr size_t kMostCourses = 4;  // the newest ones are drawn

struct ReplacedCourses {
  bool shown = true;
  CourseQuestion asked;
  using Reader = Background<CourseQuestion, std::vector<Course>>;
  std::unique_ptr<Reader> reader;
  std::shared_ptr<const Reader::Numbered> read;  // null before the first answer
  uint64_t number = 0;                           // number of the question about the shown run
  const std::vector<Course>& of_shown() const;   // empty while they are read
};

// Requests the branches of the shown run and takes the answer. Called once a frame; never waits.
void tick_replaced(UiState& ui);
// Adds grey lines behind the lines of stored metrics.
void add_replaced(const UiState& ui, std::vector<PlotTile>& tiles);

}  // namespace comera::studio
