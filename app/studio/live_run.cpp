#include "app/studio/live_run.h"

#include <algorithm>

#include "app/format.h"
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

int64_t sum(const std::vector<LayerRanks>& layers) {
  int64_t total = 0;
  for (const LayerRanks& layer : layers)
    for (int64_t rank : layer.live) total += rank;
  return total;
}

}  // namespace

std::unique_ptr<RunLink> start_session(SessionStart start) { return std::make_unique<SessionLink>(std::move(start)); }

LiveRun::LiveRun(std::unique_ptr<RunLink> link, RunConfig config, std::shared_ptr<RunView> base)
    : link_(std::move(link)), view_(base ? std::move(base) : std::make_shared<RunView>()) {
  view_->config = std::move(config);
  view_->live = true;
  view_->snapshot = link_->latest();
}

void LiveRun::poll() {
  // The snapshot first: rows that come after it belong to later steps and are drawn a frame early at worst.
  const std::shared_ptr<const Snapshot> now = link_->latest();
  for (const MetricRow& row : link_->drain().metrics)
    for (const auto& [name, value] : row.values) view_->metrics[name].append(static_cast<double>(row.step), value);
  if (now != view_->snapshot) {
    const std::shared_ptr<const Snapshot> before = std::exchange(view_->snapshot, now);
    finish_sent(*now);
    follow(*before, *now);
  }
  if (!sent_) post_next();
}

void LiveRun::stop(bool checkpoint) {
  stopping_ = true;
  queue_.clear();  // what was not posted would come after the end
  send(StopCommand{checkpoint});
}

void LiveRun::edit(const std::string& path, const std::string& value) {
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
    if (refusal.empty()) {
      try {
        apply_edit(view_->config, view_->overrides, edit->path, edit->value);
      } catch (const Error&) {  // the trainer took it, so this cannot be; the value stays as shown
      }
      if (newest) state = {EditState::applied, edit->value, snapshot.last_ticket_step, ""};
      view_->marks.push_back({snapshot.last_ticket_step, Mark::edit, edit->path + " = " + edit->value});
      log(Level::info, snapshot.last_ticket_step, "set " + edit->path + " = " + edit->value);
    } else if (newest) {
      state = {EditState::refused, edit->value, snapshot.step, refusal};
    }
  }
  if (!refusal.empty()) log(Level::warning, snapshot.step, refusal);
}

// What changed between two snapshots, as lines of the log, marks and points of the memory curves.
void LiveRun::follow(const Snapshot& before, const Snapshot& now) {
  if (now.phase != before.phase) {
    const bool bad = now.phase == Phase::failed || now.phase == Phase::diverged;
    std::string text = name_of(now.phase);
    if (bad && !now.message.empty()) text += ": " + now.message + (now.error_why.empty() ? "" : " (" + now.error_why + ")");
    log(bad ? Level::error : now.phase == Phase::finished ? Level::good : Level::info, now.step, text);
  }
  if (now.late && !before.late && before.step > 0) {
    view_->marks.push_back({now.step, Mark::late_stage, "late stage"});
    log(Level::good, now.step, "late stage: ranks are pushed towards the size target");
  }
  // A share of the size at the start of the stage is the target; both are known before the first edit of it.
  const double share = view_->config.method.comera.target;
  if (now.late && view_->late_entries == 0 && share > 0 && now.target_entries > 0) view_->late_entries = now.target_entries / share;
  if (now.last_checkpoint_step > before.last_checkpoint_step) {
    view_->marks.push_back({now.last_checkpoint_step, Mark::checkpoint, "checkpoint"});
    log(Level::info, now.last_checkpoint_step, "checkpoint written");
  }
  for (const LayerRanks& layer : now.ranks) view_->add_ranks(now.step, layer);
  if (!before.ranks.empty() && !now.ranks.empty()) {
    const int64_t was = sum(before.ranks), is = sum(now.ranks);
    if (is < was)
      log(Level::info, now.step,
          "ranks fell by " + thousands(static_cast<double>(was - is)) + ", sum now " + thousands(static_cast<double>(is)));
  }
  const auto held_before = static_cast<double>(before.size.held_entries), held = static_cast<double>(now.size.held_entries);
  if (held > 0 && held < held_before)
    log(Level::good, now.step, "dead slices cut out of memory: " + thousands(held_before) + " -> " + thousands(held) + " entries held");
  if (now.store_problem != before.store_problem) {
    if (now.store_problem.empty())
      log(Level::good, now.step, "the store works again");
    else
      log(Level::error, now.step, now.store_problem);
  }
  if (now.memory_planned.total() > 0) view_->has_plan = true;
  // Points only where something changed: it stays like that until the next one.
  if (now.memory_now.total() > 0 && (view_->memory[0].empty() || now.memory_now.bytes != before.memory_now.bytes))
    for (int i = 0; i < kPurposes; ++i)
      view_->memory[static_cast<size_t>(i)].append(static_cast<double>(now.step),
                                                   static_cast<double>(now.memory_now.bytes[static_cast<size_t>(i)]));
}

void LiveRun::log(Level level, int64_t step, std::string text) { view_->log.push_back({level, step, std::move(text)}); }

}  // namespace comera::studio
