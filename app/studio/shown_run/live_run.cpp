#include "app/studio/shown_run/live_run.h"

#include <algorithm>
#include <chrono>

#include "app/studio/shown_run/processes_link.h"
#include "core/base/error.h"
#include "core/store/run_reader.h"

namespace comera::studio {
namespace {

// Reads the missing steps. `left_out` of the result: the steps that the store has by now. Never throws: unreadable data counts as missing.
Records read_left_out(const LeftOutQuestion& question) try {
  Records found;
  const RunReader reader(question.store);
  const int64_t before = question.steps.first - 1;
  for (const std::string& name : reader.metric_names(question.run)) {
    Series series;
    reader.metric(question.run, name, before, question.steps.last, series);
    if (series.steps.empty()) continue;
    found.left_out.add(question.steps.first, series.steps.back());
    found.metrics[name] = std::move(series);
  }
  const Series times = reader.wall_times(question.run, before);
  for (size_t i = 0; i < times.steps.size() && times.steps[i] <= question.steps.last; ++i) {
    found.times.steps.push_back(times.steps[i]);
    found.times.values.push_back(times.values[i]);
  }
  return found;
} catch (const Error&) {
  return {};
}

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

std::unique_ptr<RunLink> start_session(SessionStart start) {
  start.attended = start.watched = true;
  if (start.processes > 1) return start_processes(std::move(start));
  return std::make_unique<SessionLink>(std::move(start));
}

LiveRun::LiveRun(std::unique_ptr<RunLink> link, RunConfig config, std::shared_ptr<RunView> base, std::string store)
    : link_(std::move(link)),
      resumed_(base ? base->snapshot->run : ""),
      view_(base ? std::move(base) : std::make_shared<RunView>(std::move(config))) {
  view_->live = true;
  for (LogLine& line : view_->log) line.place = std::min(line.place, LogLine::after);  // the stored run's state becomes an ordinary line
  view_->store = std::move(store);
  view_->snapshot = link_->latest();
}

void LiveRun::poll(const AlertRules* rules) {
  // The snapshot before the records: then records that come later belong to later steps and are at most a frame early.
  const std::shared_ptr<const Snapshot> now = link_->latest();
  const bool changed = now != view_->snapshot;
  const Records records = link_->drain();
  view_->take(now, records);
  if (rules && !stopping_)
    for (const Alert& alert : watch_.look(records, *rules)) {
      send(AlertCommand{alert.step, alert.kind, alert.text});
      if (alert.pause && now->phase != Phase::paused) pause();
    }
  if (records.left_out.any()) left_out_.add(records.left_out.first, records.left_out.last);
  if (left_out_.any()) fetch_left_out();
  for (const EventRow& event : records.events)
    if (event.kind == "alert") alerts_.push_back({Level::warning, event.step, alert_text(event)});
  if (changed) finish_sent(*now);
  if (!sent_) post_next();
}

// Reads records that the session dropped from the database, repeatedly until it has them all.
void LiveRun::fetch_left_out() {
  const Snapshot& s = *view_->snapshot;
  if (view_->store.empty() || s.run.empty()) {
    view_->add_log(Level::warning, s.step,
                   "the window was too slow: steps " + std::to_string(left_out_.first) + " to " + std::to_string(left_out_.last) +
                       " are missing in the curves, because the run is not stored");
    left_out_ = {};
    return;
  }
  if (!fetcher_) fetcher_ = std::make_unique<Background<LeftOutQuestion, Records>>(read_left_out, nullptr);
  const auto answer = fetcher_->latest();
  if (fetching_ != 0 && (!answer || answer->number != fetching_)) return;
  if (fetching_ != 0) {
    view_->fill_in(answer->answer);
    const int64_t have = answer->answer.left_out.last;  // last step that was read
    if (have >= left_out_.last || (has_ended(s.phase) && link_->ended() && have < left_out_.first)) {
      left_out_ = {};
      fetching_ = 0;
      return;
    }
    left_out_.first = std::max(left_out_.first, have + 1);
    fetching_ = 0;
  }
  constexpr std::chrono::seconds kApart(1);  // a run writes to the store about once a second
  const auto now = std::chrono::steady_clock::now();
  if (fetcher_->latest() && now < fetched_ + kApart) return;
  fetched_ = now;
  fetching_ = fetcher_->ask({view_->store, s.run, left_out_});
}

void LiveRun::stop(bool checkpoint) {
  stopping_ = true;
  stops_with_checkpoint_ = checkpoint;
  queue_.clear();  // commands that were not posted would follow the stop
  send(StopCommand{checkpoint});
}

void LiveRun::edit(const std::string& path, const std::string& value, bool goes_on) {
  // The slider was released at its last value, which was already requested.
  if (const auto known = edits_.find(path);
      goes_on && known != edits_.end() && known->second.value == value && known->second.stage != EditState::refused)
    return;
  history_.made(inverse_of(config_to_come(), *view_->snapshot, path, value), goes_on);
  post_edit(path, value);
}

void LiveRun::foresee(const std::string& path, const std::string& value, int64_t high) {
  std::erase_if(queue_, [](const Command& command) { return std::holds_alternative<ForeseeCommand>(command); });
  send(ForeseeCommand{path, value, high});
}

bool LiveRun::switches_stage() const {
  const auto found = edits_.find(kStagePath);
  if (found == edits_.end() || found->second.stage == EditState::refused) return false;
  const Snapshot& s = *view_->snapshot;
  const bool waits = found->second.stage == EditState::pending || s.step < found->second.step;
  return waits && found->second.value != (s.late ? "late" : "early");
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

// The config with all pending edits.
RunConfig LiveRun::config_to_come() const {
  RunConfig config = view_->config;
  RankOverrides unused;
  for (const auto& [path, edit] : edits_) try {
      if (edit.stage == EditState::pending) apply_edit(config, unused, path, edit.value);
    } catch (const Error&) {  // the session will refuse this edit
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

// The snapshot has the last executed command and its refusal, if any.
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
