// A session behind a socket: what goes over it comes out alike, it is watched and told as one of this program, and the loss of either end
// is an end that leaves a run to be resumed.
#include "core/session/remote_session.h"

#include "core/session/session_socket.h"
#include "core/session/wire.h"
#include "core/session/wire_fields.h"
#include "tests/session/support.h"

namespace comera {
namespace {

using test::Folder;

struct Anything {
  template <class T>
  operator T() const;
};
// How many values `T{...}` takes: a number a field, of an array of C one an element, of a base one.
template <class T, class... Values>
constexpr int values_of() {
  if constexpr (requires { T{Values()..., Anything()}; })
    return values_of<T, Values..., Anything>();
  else
    return sizeof...(Values);
}
template <class T>
int fields_of_wire() {
  T value;
  int count = 0;
  wire_fields(value, [&](const char*, auto&) { ++count; });
  return count;
}

template <class... T>
void expect_all() {
  for (const auto& [visited, all] : {std::pair(fields_of_wire<T>(), values_of<T>())...}) EXPECT_EQ(visited, all);
}

TEST(Wire, NoFieldIsMissing) {
  EXPECT_EQ(fields_of_wire<SessionStart>(), values_of<SessionStart>() - 4) << "but config, processes, others and open";
  EXPECT_EQ(fields_of_wire<Snapshot>(), values_of<Snapshot>() - 1) << "but step_memory";
  EXPECT_EQ(fields_of_wire<StepRecord>(), values_of<StepRecord>() - kRates + 1);
  EXPECT_EQ(fields_of_wire<EvalRecord>(), values_of<EvalRecord>() - 1 + values_of<Score>());
  expect_all<ScheduledChange, StopCommand, StepCommand, EditCommand, ForeseeCommand, InspectCommand, ProfileCommand, AlertCommand,
             MemoryByPurpose, StepMemory::Phase, StepMemory, StepResults, StepTimes, SharedStep, ModelSize, LayerRanks, RankedMatrix,
             InspectedBond, InspectedCore, Foreseen, Saving, Series, RankRow, MemoryRow, EventRow, Records::LeftOut, Records>();
}

// As a socket carries it.
Json over(const Json& json) { return Json::from_cbor(Json::to_cbor(json)); }

TEST(Wire, AllThatASessionTellsComesOutAlike) {
  Folder folder;
  Session session(start_in(folder));
  session.post(InspectCommand{"fc0", 1, 0});
  session.join();
  Snapshot last = *session.latest();
  last.inspected_core = {"fc0", 1, 80, {2, 3}, 0.5, {1, 2}, 3, kUnknown};
  last.last.shared = {{1, 2}, 3};
  const Snapshot back = snapshot_of_wire(over(wire_snapshot(last)));
  expect_same(last, back);
  EXPECT_EQ(wire_snapshot(back).dump(), wire_snapshot(last).dump());
  ASSERT_TRUE(last.step_memory && back.step_memory);
  EXPECT_TRUE(std::isnan(back.inspected_core.gradient_norm));
  const Records records = session.drain();
  ASSERT_GT(records.metrics.size(), 10u);
  ASSERT_FALSE(records.events.empty() || records.ranks.empty() || records.memory.empty());
  EXPECT_EQ(wire_records(records_of_wire(over(wire_records(records)))).dump(), wire_records(records).dump());
  EXPECT_EQ(records_of_wire(over(wire_records(records))).points(), records.points());
}

TEST(Wire, EveryCommandAndAStartComeOutAlike) {
  for (const Command& command : std::vector<Command>{
           PauseCommand{}, ResumeCommand{}, StopCommand{false}, CheckpointCommand{}, StepCommand{7, true}, EditCommand{"train.lr", "1e-3"},
           ForeseeCommand{"method.rank", "8", 64}, InspectCommand{"fc0", 1, 2}, ProfileCommand{9}, AlertCommand{3, "loss", "rises"}}) {
    const Command back = command_of_wire(over(wire_command(command)));
    EXPECT_EQ(back.index(), command.index());
    EXPECT_EQ(wire_command(back).dump(), wire_command(command).dump());
  }
  Folder folder;
  SessionStart start = start_in(folder);
  start.sets = {"rank.cap.fc0.1=4"};
  start.changes = {{5, "train.lr", "1e-3"}};
  start.paused = true;
  const SessionStart back = start_of_wire(over(wire_start(start)));
  EXPECT_EQ(wire_start(back).dump(), wire_start(start).dump());
  EXPECT_EQ(back.changes, start.changes);
  EXPECT_THROW(command_of_wire({{"kind", 99}, {"fields", Json::object()}}), Error);
  EXPECT_THROW(snapshot_of_wire({{"run", 1}}), Error);
  EXPECT_THROW(records_of_wire({1, 2}), Error);
}

// The program at the other end is a thread.
class ThreadProgram final : public RemoteSession::Program {
 public:
  explicit ThreadProgram(std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          try {
            body();
          } catch (const Error&) {  // the other end has closed the connection
          }
          ended_ = true;
        }) {}
  ~ThreadProgram() override { thread_.join(); }
  std::optional<std::string> ended() override { return ended_ ? std::optional<std::string>("its last line") : std::nullopt; }

 private:
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

RemoteSession::Open program(std::function<void(SessionSocket)> body) {
  return [body = std::move(body)](const std::string& path) {
    return std::make_unique<ThreadProgram>([body, path] { body(SessionSocket::connect(path)); });
  };
}
const auto kServes = [](SessionSocket socket) { serve_session(std::move(socket), nullptr, [] { return false; }); };

bool until(const RemoteSession& session, const std::function<bool(const Snapshot&)>& condition) {
  return test::wait_for([&] { return condition(*session.latest()); }, 60);
}
bool until_done(const RemoteSession& session, Ticket ticket) {
  return until(session, [&](const Snapshot& s) { return s.last_ticket >= ticket; });
}

TEST(RemoteSession, IsWatchedAndToldAsOneOfThisProgram) {
  Folder folder, other;
  SessionStart start = start_in(folder);
  start.paused = true;
  RemoteSession session(start, program(kServes));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"train.batch", "8"})));
  EXPECT_NE(session.latest()->last_refusal, "");
  session.post(StepCommand{5});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 5 && s.phase == Phase::paused; }));
  session.post(ResumeCommand{});
  ASSERT_TRUE(test::wait_for([&] { return session.ended(); }, 60));
  const auto last = session.latest();
  EXPECT_EQ(last->phase, Phase::finished) << last->message;
  // The same run in this program.
  Session here(start_in(other));
  here.join();
  const Records told = session.drain(), told_here = here.drain();
  EXPECT_EQ(told.metrics.at("train_loss").values, told_here.metrics.at("train_loss").values);
  EXPECT_EQ(told.metrics.at("val_loss").values, told_here.metrics.at("val_loss").values);
  EXPECT_EQ(told.ranks.size(), told_here.ranks.size());
  EXPECT_EQ(last->size, here.latest()->size);
}

TEST(RemoteSession, StopsWithACheckpointWhenNobodyWatchesAnyMore) {
  Folder folder, other;
  {
    RemoteSession session(start_in(folder, 1'000'000), program(kServes));
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step > 3; }));
  }
  const RunRow closed = RunReader(folder.store()).find("small");
  EXPECT_EQ(closed.status, "stopped");
  EXPECT_EQ(RunReader(folder.store()).checkpoints(closed.id).back().step, closed.summary.step);
  // The program that watches dies.
  SessionListener listener;
  std::thread serving([&] { kServes(SessionSocket::connect(listener.path())); });
  {
    auto socket = listener.accept(60'000);
    ASSERT_TRUE(socket);
    socket->send(wire_start(start_in(other, 1'000'000)));
    while (snapshot_of_wire(socket->receive(60'000)->at("snapshot")).step < 3) {
    }
  }
  serving.join();
  const RunRow lost = RunReader(other.store()).find("small");
  EXPECT_EQ(lost.status, "stopped");
  EXPECT_EQ(RunReader(other.store()).checkpoints(lost.id).back().step, lost.summary.step);
}

TEST(RemoteSession, FailsWhenItsProgramEnds) {
  Folder folder;
  const auto fails = [&](RemoteSession::Open open, const std::string& what, const std::string& why) {
    RemoteSession session(start_in(folder), std::move(open));
    ASSERT_TRUE(test::wait_for([&] { return session.ended(); }, 60));
    EXPECT_EQ(session.latest()->phase, Phase::failed);
    EXPECT_EQ(session.latest()->message, what);
    EXPECT_EQ(session.latest()->error_why, why);
  };
  fails([](const std::string&) { return std::make_unique<ThreadProgram>([] {}); }, "the processes of the run did not start",
        "its last line");
  fails(
      [](const std::string&) -> std::unique_ptr<RemoteSession::Program> { throw Error(ErrorCode::device, "mpirun is missing", "no PATH"); },
      "mpirun is missing", "no PATH");
  fails(program([](SessionSocket socket) { socket.receive(60'000); }), "the processes of the run have ended", "its last line");
  fails(program([](SessionSocket socket) {
          socket.receive(60'000);
          socket.send({{"snapshot", {}}});
        }),
        "the processes of the run have ended", "its last line");
}

TEST(RemoteSession, LongMessagesComeWhole) {
  SessionListener listener;
  const Json sent = {{"text", std::string(3'000'000, 'x')}, {"unknown", kUnknown}};
  std::thread sending([&] {
    auto socket = SessionSocket::connect(listener.path());
    socket.send(sent);
    socket.send(1);
  });
  auto socket = listener.accept(60'000);
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->receive(60'000)->dump(), sent.dump());
  EXPECT_EQ(*socket->receive(60'000), 1);
  sending.join();
  EXPECT_THROW(socket->receive(60'000), Error);
  EXPECT_THROW(SessionSocket::connect("/nowhere/session"), Error);
  EXPECT_THROW(SessionSocket::connect(std::string(200, 'x')), Error);
}

}  // namespace
}  // namespace comera
