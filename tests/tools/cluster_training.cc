#include "tools/cluster_training.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "crema/net.pb.h"
#include "distributed/journal/journal_file.h"
#include "tools/patterns.h"

namespace crema::testing_tools {

namespace fs = std::filesystem;

std::string Distributed(const std::string& more) {
  std::string all = "distributed { " + more;
  for (const auto& [field, value] :
       {std::pair("heartbeat_ms", "50"), {"dead_ms", "3000"}, {"orphan_ms", "20000"}, {"join_timeout_ms", "20000"}}) {
    if (more.find(std::string(field) + ":") == std::string::npos) all += std::string(" ") + field + ": " + value;
  }
  return all + " }\n";
}

ClusterFolder::ClusterFolder(const std::string& settings, TinyTraining training) {
  if (!settings.empty()) training.more += Distributed(settings);
  WriteTinyTraining(*this, training);
  fs::create_directory(*this / "tmp");
}

ClusterFolder::~ClusterFolder() {
  for (const pid_t process : ProcessesLeftIn(path())) {
    ADD_FAILURE() << "process " << process << " is left";
    kill(process, SIGKILL);
  }
  for (const auto& entry : fs::directory_iterator(*this / "tmp")) ADD_FAILURE() << entry.path() << " is left";
}

Setting ClusterFolder::setting() const {
  Setting setting;
  setting.folder = path();
  setting.temporary = *this / "tmp";
  return setting;
}

std::unique_ptr<Running> ClusterFolder::Start(const std::vector<std::string>& flags) const {
  std::vector<std::string> words = {"train", "--solver=solver.prototxt", "--threads=1"};
  words.insert(words.end(), flags.begin(), flags.end());
  return std::make_unique<Running>(words, setting());
}

Finished ClusterFolder::Run(const std::vector<std::string>& flags) const { return Start(flags)->Wait(); }

std::unique_ptr<Running> ClusterFolder::Coordinate(int expected, std::string* endpoint,
                                                   const std::vector<std::string>& flags) const {
  std::vector<std::string> words = {"--coordinate=tcp://127.0.0.1:*", "--expect=" + std::to_string(expected)};
  words.insert(words.end(), flags.begin(), flags.end());
  auto coordinator = Start(words);
  coordinator->WaitFor("Listening for workers at ");
  coordinator->WaitFor("\n", Count(coordinator->Err(), "\n"));
  *endpoint = EndpointOf(coordinator->Err());
  EXPECT_NE(*endpoint, "") << coordinator->Err();
  return coordinator;
}

std::unique_ptr<Running> ClusterFolder::Join(const std::string& endpoint, const std::string& name,
                                             const std::vector<std::string>& flags) const {
  std::vector<std::string> words = {"train", "--join=" + endpoint, "--worker_name=" + name, "--threads=1"};
  words.insert(words.end(), flags.begin(), flags.end());
  return std::make_unique<Running>(words, setting());
}

Finished ClusterFolder::Ask(const std::string& request, const std::string& endpoint,
                            const std::vector<std::string>& flags) const {
  std::vector<std::string> words = {"crema", "cluster", request, "--address=" + endpoint};
  words.insert(words.end(), flags.begin(), flags.end());
  return RunProgram(words, setting());
}

std::string ClusterFolder::Model(int iteration) const { return testing_tools::Model(*this, iteration); }

SolverState ClusterFolder::State(int iteration) const {
  SolverState state;
  EXPECT_TRUE(state.ParseFromString(ReadText(*this / ("tiny_iter_" + std::to_string(iteration) + ".solverstate"))));
  return state;
}

std::string ClusterFolder::StateBytes(int iteration) const {
  SolverState state = State(iteration);
  state.mutable_cluster()->clear_job();
  state.clear_state_crc32();
  return state.SerializeAsString();
}

int ClusterFolder::NewestState() const { return testing_tools::NewestState(*this); }

void AddBatchNorm(const ClusterFolder& folder) {
  std::string net = ReadText(folder / "net.prototxt");
  const std::string pool = "layer {\n  name: \"pool1\"";
  net.insert(net.find(pool), "layer { name: \"norm1\" type: \"BatchNorm\" bottom: \"conv1\" top: \"conv1\" }\n");
  // Statistics take a bias away again: what is left of its gradient is rounding.
  net = Replaced(net, "num_output: 8 ", "num_output: 8 bias_term: false ");
  folder.Write("net.prototxt", net);
}

bool GoesOn(Running& coordinator, int displays) {
  return coordinator.WaitFor(", lr = ", Count(coordinator.Err(), ", lr = ") + displays);
}

Cluster::Cluster(const ClusterFolder& where, int count, const std::vector<std::string>& worker_flags)
    : folder(where), coordinator(where.Coordinate(count, &endpoint)) {
  for (int i = 0; i < count; ++i) Join(std::string(1, static_cast<char>('a' + i)), worker_flags);
}

Running& Cluster::Join(const std::string& name, const std::vector<std::string>& flags) {
  workers.push_back(folder.Join(endpoint, name, flags));
  return *workers.back();
}

void Cluster::Kill(size_t index) {
  workers[index]->Signal(SIGKILL);
  workers[index]->Wait();
  workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(index));
}

void Cluster::KillCoordinator() {
  coordinator->Signal(SIGKILL);
  coordinator->Wait();
}

void Cluster::StartSuccessor(int expected) {
  coordinator = folder.Start({"--coordinate=tcp://127.0.0.1" + endpoint.substr(endpoint.rfind(':')),
                              "--expect=" + std::to_string(expected), "--snapshot=auto"});
}

bool Cluster::GoesOn(int displays) { return testing_tools::GoesOn(*coordinator, displays); }

Finished Cluster::Finish() {
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const auto& worker : workers) {
    const Finished left = worker->Wait();
    EXPECT_EQ(left.exit_code, 0) << left.err;
    logs.push_back(left.err);
  }
  return run;
}

bool GoesBackWithoutWorkers(const ClusterFolder& whole, const ClusterFolder& folder, const std::string& when,
                            int iteration) {
  EXPECT_EQ(whole.Run().exit_code, 0);
  Cluster cluster(folder, 3);
  EXPECT_TRUE(cluster.coordinator->WaitFor(when)) << cluster.coordinator->Err();
  for (const auto& worker : cluster.workers) worker->Signal(SIGKILL);
  while (!cluster.workers.empty()) cluster.Kill(0);
  EXPECT_TRUE(cluster.coordinator->WaitFor("was not heard of for ", 3)) << cluster.coordinator->Err();
  for (const char* name : {"d", "e", "f"}) cluster.Join(name);
  const Finished run = cluster.Finish();
  EXPECT_EQ(AuditJournal(folder, iteration).mistake, "");
  if (!run.Says("all workers that had the parameters of rounds ")) return false;
  EXPECT_TRUE(Matches(run.err, R"(rounds \d+ to \d+ are lost and will be trained again)")) << run.err;
  EXPECT_TRUE(SameModel(whole, folder, iteration)) << run.err;
  return true;
}

std::string EndpointOf(const std::string& log) {
  const auto endpoints = FindAll(log, R"(Listening for workers at (\S+)\n)");
  return endpoints.empty() ? "" : endpoints.back();
}

std::vector<pid_t> ProcessesIn(const fs::path& folder) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // A process that ended and was not waited for has no directory.
    const fs::path cwd = fs::read_symlink(entry.path() / "cwd", error);
    if (!error && cwd == folder && std::stoi(name) != getpid()) found.push_back(std::stoi(name));
  }
  return found;
}

pid_t LocalWorkerOf(const ClusterFolder& folder, const Running& coordinator) {
  pid_t worker = 0;
  for (const pid_t process : ProcessesIn(folder.path())) {
    if (process != coordinator.pid()) worker = process;
  }
  return worker;
}

std::vector<pid_t> ProcessesLeftIn(const fs::path& folder) {
  std::vector<pid_t> left = ProcessesIn(folder);
  for (int i = 0; i < 40 && !left.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    left = ProcessesIn(folder);
  }
  return left;
}

// Those that the journal of a tiny training holds.
std::vector<JournalRecord> RecordsOf(const ClusterFolder& folder) {
  std::vector<JournalRecord> records;
  JournalFile((folder / "tiny_cluster.journal").string(),
              [&](const JournalRecord& record) { records.push_back(record); });
  return records;
}

void CommitInSecret(const ClusterFolder& folder, uint64_t steps) {
  JournalRecord record;
  uint64_t next = 0;
  for (const JournalRecord& written : RecordsOf(folder)) {
    if (!written.has_commit()) continue;
    record = written;
    for (const JournalRecord::Commit::Share& share : written.commit().share()) {
      next = std::max(next, share.steps().first() + share.steps().count());
    }
  }
  JournalRecord::Commit& commit = *record.mutable_commit();
  commit.set_version(commit.version() + 1);
  commit.set_iteration(commit.iteration() + steps);
  commit.set_digest(commit.digest() ^ 1);
  for (JournalRecord::Commit::Share& share : *commit.mutable_share()) {
    share.mutable_steps()->set_first(next);
    share.mutable_steps()->set_count(steps);
    next += steps;
  }
  JournalFile((folder / "tiny_cluster.journal").string()).Write(record);
}

int RoundsTrained(const std::string& log) {
  const auto rounds = FindAll(log, R"(Done: [^\n]* \((\d+) rounds, )");
  return rounds.empty() ? -1 : std::stoi(rounds.front());
}

JournalAudit AuditJournal(const ClusterFolder& folder, int iteration) {
  JournalAudit audit;
  const auto wrong = [&](const std::string& what) {
    if (audit.mistake.empty()) audit.mistake = what;
  };
  std::vector<JournalRecord::Commit> counting;
  for (const JournalRecord& record : RecordsOf(folder)) {
    if (record.has_start()) {
      ++audit.starts;
      while (!counting.empty() && counting.back().version() > record.start().version()) counting.pop_back();
      if (record.start().version() != counting.size()) {
        wrong("a start from round " + std::to_string(record.start().version()));
      }
      continue;
    }
    ++audit.committed;
    if (record.commit().version() != counting.size() + 1) {
      wrong("round " + std::to_string(record.commit().version()) + " follows " + std::to_string(counting.size()));
    }
    if (record.commit().share_size() == 0) wrong("a round of nobody");
    counting.push_back(record.commit());
  }
  std::map<uint64_t, int> uses;
  for (const JournalRecord::Commit& commit : counting) {
    // Where workers do not wait for each other, an iteration is of several commits, and a lease of several iterations.
    const bool stale = commit.has_carried();
    if (stale ? commit.iteration() < audit.iteration : commit.iteration() <= audit.iteration)
      wrong("iteration " + std::to_string(commit.iteration()) + " comes late");
    for (const JournalRecord::Commit::Share& share : commit.share()) {
      if (!stale && share.steps().count() > commit.iteration() - audit.iteration)
        wrong("a lease longer than its round");
      for (uint64_t i = 0; i < share.steps().count(); ++i) ++uses[share.steps().first() + i];
      audit.used += share.steps().count();
    }
    audit.iteration = commit.iteration();
  }
  audit.version = counting.size();
  const ClusterState state = folder.State(iteration).cluster();
  for (const StepRange& range : state.unused()) {
    for (uint64_t i = 0; i < range.count(); ++i) ++uses[range.first() + i];
  }
  for (const auto& [step, count] : uses) {
    if (count != 1) wrong("step " + std::to_string(step) + " was used " + std::to_string(count) + " times");
  }
  if (!uses.empty() && (uses.begin()->first != 0 || uses.rbegin()->first != uses.size() - 1))
    wrong("steps are missing");
  if (state.next_step() != uses.size()) {
    wrong("the snapshot knows " + std::to_string(state.next_step()) + " steps, the journal and it " +
          std::to_string(uses.size()));
  }
  if (state.version() != audit.version) wrong("the snapshot is of round " + std::to_string(state.version()));
  if (audit.iteration != static_cast<uint64_t>(iteration))
    wrong("the journal ends at " + std::to_string(audit.iteration));
  return audit;
}

}  // namespace crema::testing_tools
