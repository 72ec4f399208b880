// A running session in the window: its snapshots and records become a RunView, and its commands are posted one at a time, so that each
// result can be matched. Nothing here waits.
#pragma once
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "app/studio/alerts.h"
#include "app/studio/background.h"
#include "app/studio/shown_run/edit_history.h"
#include "app/studio/shown_run/run_view.h"
#include "core/session/session.h"

namespace comera::studio {

// Interface of a session, so that tests can replace it.
class RunLink {
 public:
  virtual ~RunLink() = default;
  virtual Ticket post(Command command) = 0;
  virtual std::shared_ptr<const Snapshot> latest() const = 0;
  virtual Records drain() = 0;
  virtual bool ended() = 0;  // its thread has ended, so the destructor does not wait
};
std::unique_ptr<RunLink> start_session(SessionStart start);

// State of an edit of a live setting.
struct EditState {
  enum Stage { pending, applied, refused };
  Stage stage = pending;
  std::string value;   // requested value
  int64_t step = 0;    // first step it is in effect
  std::string reason;  // why the session refused it
};

// Which steps a session dropped from its records; the answer is read from the store.
struct LeftOutQuestion {
  std::string store, run;
  Records::LeftOut steps;
};

class LiveRun {
 public:
  // `base`: known data of a resumed run; null for a new one. `store`: the database that the run is written to.
  LiveRun(std::unique_ptr<RunLink> link, RunConfig config, std::shared_ptr<RunView> base = nullptr, std::string store = {});

  // Takes new records, and posts alerts of the rules (null = no rules) to the session. Called once a frame.
  void poll(const AlertRules* rules = nullptr);

  void pause() { send(PauseCommand{}); }
  void resume() { send(ResumeCommand{}); }
  void step(int64_t steps) { send(StepCommand{steps}); }
  void run_to_event() { send(StepCommand{.to_event = true}); }
  void stop(bool checkpoint);
  void checkpoint() { send(CheckpointCommand{}); }
  void inspect(const std::string& layer, int64_t bond, int64_t core = 0) { send(InspectCommand{layer, bond, core}); }
  void profile(int64_t steps) { send(ProfileCommand{steps}); }
  // If an edit of the same path still waits, its value is replaced. `goes_on`: continues the previous edit of this path (a moving slider);
  // undo reverts both together.
  void edit(const std::string& path, const std::string& value, bool goes_on = false);
  // Asks for the memory with another value (Snapshot::foreseen); the newest question counts. `high`: end of its slider.
  void foresee(const std::string& path, const std::string& value, int64_t high);
  // Revert the last edit of this window by another edit, or repeat it. No effect if there is none.
  void undo();
  void redo();
  const EditHistory& history() const { return history_; }

  const RunView& view() const { return *view_; }
  // Id in the store; for a resumed run it is known before the session reports it. "" = none yet.
  const std::string& run() const { return view_->snapshot->run.empty() ? resumed_ : view_->snapshot->run; }
  const std::map<std::string, EditState>& edits() const { return edits_; }
  // A stage switch was requested and is not in effect yet.
  bool switches_stage() const;
  bool ended() { return link_->ended(); }
  // All its threads have ended: the destructor does not wait.
  bool done() { return ended() && !(fetcher_ && fetcher_->busy()); }
  bool pending() const { return sent_ || !queue_.empty(); }  // a command was not executed yet
  bool stopping() const { return stopping_; }
  bool wants_checkpoint() const { return stopping_ && stops_with_checkpoint_; }  // when it stops
  // Alerts since the last call, from the rules and from the trainer.
  std::vector<LogLine> take_alerts() { return std::exchange(alerts_, {}); }
  // New log lines since the last call.
  std::vector<LogLine> take_lines() { return std::exchange(view_->new_lines, {}); }
  // A command of this kind was not executed yet.
  template <class Kind>
  bool waits() const {
    const auto is = [](const Command& command) { return std::holds_alternative<Kind>(command); };
    if (sent_ && is(sent_->second)) return true;
    for (const Command& command : queue_)
      if (is(command)) return true;
    return false;
  }

 private:
  void send(Command command);
  void post_edit(const std::string& path, const std::string& value);
  RunConfig config_to_come() const;
  void post_next();
  void finish_sent(const Snapshot& snapshot);
  void fetch_left_out();

  std::unique_ptr<RunLink> link_;
  const std::string resumed_;
  std::shared_ptr<RunView> view_;
  std::deque<Command> queue_;                       // not posted yet
  std::optional<std::pair<Ticket, Command>> sent_;  // posted, not executed yet
  std::map<std::string, EditState> edits_;          // by path of the setting
  EditHistory history_;
  AlertWatch watch_;
  Records::LeftOut left_out_;  // missing in the curves
  uint64_t fetching_ = 0;      // number of the pending question; 0 = none
  std::chrono::steady_clock::time_point fetched_;
  std::unique_ptr<Background<LeftOutQuestion, Records>> fetcher_;
  std::vector<LogLine> alerts_;
  bool stopping_ = false, stops_with_checkpoint_ = false;
};

}  // namespace comera::studio
