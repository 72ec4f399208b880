#include "app/studio/shown_run/live_run.h"

#include <algorithm>

#include "core/base/error.h"

namespace comera::studio {
namespace {

class SessionLink : public RunLink {
 public:
  explicit SessionLink(SessionStart start) : session_(std::move(start)) {}
  Ticket post(Command command) override { return session_.post(std::move(command)); }
  std::shared_ptr<const Snapshot> latest() const override { return session_.latest(); }
  Records drain() override { return session_.drain(); }
  bool ended() override { return session_.wait(0); }

 private:
  Session session_;
};

}  // namespace

std::unique_ptr<RunLink> start_session(SessionStart start) { return std::make_unique<SessionLink>(std::move(start)); }

LiveRun::LiveRun(std::unique_ptr<RunLink> link, RunConfig config, std::shared_ptr<RunView> base, std::string store)
    : link_(std::move(link)),
      resumed_(base ? base->snapshot->run : ""),
      view_(base ? std::move(base) : std::make_shared<RunView>(std::move(config))) {
  view_->live = true;
  view_->store = std::move(store);
  view_->snapshot = link_->latest();
}

void LiveRun::poll(const AlertRules* rules) {
  // The snapshot first: records that come after it belong to later steps and are drawn a frame early at worst.
  const std::shared_ptr<const Snapshot> now = link_->latest();
  const bool changed = now != view_->snapshot;
  const Records records = link_->drain();
  view_->take(now, records);
  if (rules && !stopping_)
    for (const Alert& alert : watch_.look(records, *rules)) {
      send(AlertCommand{alert.step, alert.kind, alert.text});
      if (alert.pause && now->phase != Phase::paused) pause();
    }
  for (const EventRow& event : records.events)
    if (event.kind == "alert") alerts_.push_back({Level::warning, event.step, alert_text(event)});
  if (changed) finish_sent(*now);
  if (!sent_) post_next();
}

void LiveRun::stop(bool checkpoint) {
  stopping_ = true;
  stops_with_checkpoint_ = checkpoint;
  queue_.clear();  // what was not posted would come after the end
  send(StopCommand{checkpoint});
}

void LiveRun::edit(const std::string& path, const std::string& value, bool goes_on) {
  // A slider that is let go where it was: that was asked for already.
  if (const auto known = edits_.find(path);
      goes_on && known != edits_.end() && known->second.value == value && known->second.stage != EditState::refused)
    return;
  history_.made(inverse_of(config_to_come(), *view_->snapshot, path, value), goes_on);
  post_edit(path, value);
}

void LiveRun::undo() {
  if (!history_.undo()) return;
  const EditChange change = history_.take_undo();
  post_edit(change.back_path, change.back);
}

void LiveRun::redo() {
  if (!history_.redo()) return;
  const EditChange change = history_.take_redo();
  post_edit(change.path, change.to);
}

// With what was asked for and is not in force yet.
RunConfig LiveRun::config_to_come() const {
  RunConfig config = view_->config;
  RankOverrides unused;
  for (const auto& [path, edit] : edits_) try {
      if (edit.stage == EditState::pending) apply_edit(config, unused, path, edit.value);
    } catch (const Error&) {  // it will be refused
    }
  return config;
}

void LiveRun::post_edit(const std::string& path, const std::string& value) {
  edits_[path] = {EditState::pending, value, 0, ""};
  const auto same = std::find_if(queue_.begin(), queue_.end(), [&](const Command& command) {
    const EditCommand* edit = std::get_if<EditCommand>(&command);
    return edit && edit->path == path;
  });
  if (same != queue_.end())
    std::get<EditCommand>(*same).value = value;
  else
    send(EditCommand{path, value});
}

void LiveRun::send(Command command) {
  queue_.push_back(std::move(command));
  if (!sent_ || stopping_) post_next();
}

void LiveRun::post_next() {
  if (queue_.empty()) return;
  Command command = std::move(queue_.front());
  queue_.pop_front();
  const Ticket ticket = link_->post(command);
  sent_.emplace(ticket, std::move(command));
}

// The snapshot tells which command was done last, and whether it was refused.
void LiveRun::finish_sent(const Snapshot& snapshot) {
  if (!sent_ || snapshot.last_ticket < sent_->first) return;
  const Command command = std::move(sent_->second);
  sent_.reset();
  const std::string& refusal = snapshot.last_refusal;
  if (const EditCommand* edit = std::get_if<EditCommand>(&command)) {
    EditState& state = edits_[edit->path];
    const bool newest = state.value == edit->value;
    if (newest && refusal.empty()) state = {EditState::applied, edit->value, snapshot.last_ticket_step, ""};
    if (!refusal.empty()) history_.refused(edit->path, edit->value);
    if (newest && !refusal.empty()) state = {EditState::refused, edit->value, snapshot.step, refusal};
  }
  if (!refusal.empty()) view_->add_log(Level::warning, snapshot.step, refusal);
}

}  // namespace comera::studio
