// A running session as the window sees it: its snapshots become a RunView, its commands are posted one at a time so
// that each answer is known, and nothing here ever waits.
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
  virtual bool ended() = 0;  // its thread is done, so that destroying it does not wait
};
std::unique_ptr<RunLink> start_session(SessionStart start);

// State of an edit of a live setting.
struct EditState {
  enum Stage { pending, applied, refused };
  Stage stage = pending;
  std::string value;   // asked for
  int64_t step = 0;    // since when it is in force
  std::string reason;  // why it was refused
};

// Metrics that a session left out, in the store; how far it has them.
struct LeftOutQuestion {
  std::string store, run;
  Records::LeftOut steps;
};

class LiveRun {
 public:
  // `base`: what is known already of a run that goes on; null for a new one. `store`: the database it is written to.
  LiveRun(std::unique_ptr<RunLink> link, RunConfig config, std::shared_ptr<RunView> base = nullptr, std::string store = {});

  // Takes new records and posts alerts of the rules (null = no rules) to the session. Called once per frame.
  void poll(const AlertRules* rules = nullptr);

  void pause() { send(PauseCommand{}); }
  void resume() { send(ResumeCommand{}); }
  void step(int64_t steps) { send(StepCommand{steps}); }
  void run_to_event() { send(StepCommand{.to_event = true}); }
  void stop(bool checkpoint);
  void checkpoint() { send(CheckpointCommand{}); }
  void inspect(const std::string& layer, int64_t bond, int64_t core = 0) { send(InspectCommand{layer, bond, core}); }
  void profile(int64_t steps) { send(ProfileCommand{steps}); }
  // The newest value of a path wins while an older one still waits. `goes_on`: it belongs to the edit before, of the
  // same path, which is still being made; both are taken back together.
  void edit(const std::string& path, const std::string& value, bool goes_on = false);
  // Takes the last edit of this window back, with an edit; and makes it again. Nothing when there is none.
  void undo();
  void redo();
  const EditHistory& history() const { return history_; }

  const RunView& view() const { return *view_; }
  // Its id in the store, of a run that goes on also before the session says so; "" = none yet.
  const std::string& run() const { return view_->snapshot->run.empty() ? resumed_ : view_->snapshot->run; }
  const std::map<std::string, EditState>& edits() const { return edits_; }
  // Another stage was asked for and is not in force yet.
  bool switches_stage() const;
  bool ended() { return link_->ended(); }
  // Its threads have nothing left to do: destroying it does not wait.
  bool done() { return ended() && !(fetcher_ && fetcher_->busy()); }
  bool pending() const { return sent_ || !queue_.empty(); }  // some command is not done yet
  bool stopping() const { return stopping_; }
  bool wants_checkpoint() const { return stopping_ && stops_with_checkpoint_; }  // as its last act
  // Alerts of the run since the last call, the rules' and the trainer's own.
  std::vector<LogLine> take_alerts() { return std::exchange(alerts_, {}); }
  // New log lines since the last call.
  std::vector<LogLine> take_lines() { return std::exchange(view_->new_lines, {}); }
  // A command of this kind was sent and is not done yet.
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
  std::optional<std::pair<Ticket, Command>> sent_;  // posted, not done
  std::map<std::string, EditState> edits_;          // by path
  EditHistory history_;
  AlertWatch watch_;
  Records::LeftOut left_out_;  // not in the curves yet
  uint64_t fetching_ = 0;      // number of the question; 0 = none is asked
  std::chrono::steady_clock::time_point fetched_;
  std::unique_ptr<Background<LeftOutQuestion, Records>> fetcher_;
  std::vector<LogLine> alerts_;
  bool stopping_ = false, stops_with_checkpoint_ = false;
};

}  // namespace comera::studio
