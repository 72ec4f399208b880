// What may be asked of a running session. Commands are taken at a step boundary only.
#pragma once
#include <cstdint>
#include <string>
#include <variant>

namespace comera {

struct PauseCommand {};
struct ResumeCommand {};
struct StopCommand {
  bool checkpoint = true;
};
struct CheckpointCommand {};
struct StepCommand {  // pause again after this many steps
  int64_t steps = 1;
  bool to_event = false;  // instead: after the step in which something happens that is told as an event
};
struct EditCommand {  // a live field, rank.cap.LAYER.BOND, rank.weight.LAYER, or stage (late, early)
  std::string path, value;
};
struct ForeseeCommand {  // snapshots say what the run would take with this value of a setting that replans (Snapshot::foreseen)
  std::string path, value;
  int64_t high = 0;  // above 0: and the largest whole number up to here that fits
};
struct InspectCommand {  // snapshots show the entries of this bond or core from now on; both 0 = of none
  std::string layer;
  int64_t bond = 0;  // from 1
  int64_t core = 0;  // from 1
};
struct ProfileCommand {  // times the ops of the next steps; told by an event "profile" (profile.h)
  int64_t steps = 20;
};

struct AlertCommand {  // whoever watches the run saw something: an event "alert"
  int64_t step = 0;    // where; not beyond the steps that are done
  std::string kind, text;
};

using Command = std::variant<PauseCommand, ResumeCommand, StopCommand, CheckpointCommand, StepCommand, EditCommand, ForeseeCommand,
                             InspectCommand, ProfileCommand, AlertCommand>;
using Ticket = uint64_t;  // number of a posted command; a snapshot says which one was done last

}  // namespace comera
