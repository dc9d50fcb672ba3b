// The launchers of configs/cluster with the real programs, and stand-ins for what they start these with.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

const std::string kCluster = std::string(CREMA_SOURCE_DIR) + "/configs/cluster";
// Fails soon, and ends soon where the other side is gone.
const std::string kTimes = "heartbeat_ms: 200 dead_ms: 2000 orphan_ms: 30000 join_timeout_ms: 30000 local_steps: 5";
const std::string kKeyFlags = "--secret_key=worker.secret --server_key=coordinator.public";

// A port of this machine that nobody listens at.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  int port = 0;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    port = ntohs(address.sin_port);
  }
  close(fd);
  return port;
}

bool Installed(const std::string& program) {
  return RunProgram({"/bin/sh", "-c", "command -v " + program + " >/dev/null"}).exit_code == 0;
}

// A training with a folder of stand-ins, which come first in PATH.
class Launch : public ::testing::Test {
 protected:
  void Prepare(int max_iter, const std::string& security) {
    WriteTinyTraining(
        folder_, {.max_iter = max_iter, .snapshot = 200, .more = "distributed { " + kTimes + " " + security + " }\n"});
    StandIn("hostname", "echo localhost");
  }
  void PrepareWithKeys(int max_iter, const std::string& secret = "coordinator.secret",
                       const std::string& authorized = "workers") {
    Prepare(max_iter, "security { secret_key_file: \"" + secret + "\" authorized_keys_dir: \"" + authorized + "\" }");
    for (const char* name : {"coordinator", "worker"}) {
      const Finished made = RunProgram({"crema", "keygen", std::string("--output=") + name}, In());
      ASSERT_EQ(made.exit_code, 0) << made.err;
    }
    fs::create_directory(folder_ / "workers");
    fs::copy(folder_ / "worker.public", folder_ / "workers/worker.public");
  }
  void StandIn(const std::string& name, const std::string& script) {
    folder_.Write("bin/" + name, "#!/bin/bash\n" + script + "\n");
    fs::permissions(folder_ / ("bin/" + name), fs::perms::owner_all);
  }
  Setting In() const { return {.folder = folder_.path()}; }
  // `words` with the stand-ins in PATH and these variables.
  std::vector<std::string> With(std::vector<std::string> variables, const std::vector<std::string>& words) const {
    std::vector<std::string> all = {"/usr/bin/env",
                                    "PATH=" + (folder_ / "bin").string() + ":" + CREMA_BIN_DIR + ":" + getenv("PATH")};
    all.insert(all.end(), variables.begin(), variables.end());
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  bool Exists(const std::string& name) const { return fs::exists(folder_ / name); }

  ScratchFolder folder_;
};

using Launchers = Launch;

TEST_F(Launchers, AreCleanShell) {
  std::vector<std::string> scripts;
  for (const auto& entry : fs::recursive_directory_iterator(kCluster)) {
    const fs::path extension = entry.path().extension();
    if (extension == ".sh" || extension == ".sbatch") scripts.push_back(entry.path().string());
  }
  EXPECT_EQ(scripts.size(), 10u);
  for (const std::string& script : scripts) {
    const Finished parsed = RunProgram({"/bin/bash", "-n", script});
    EXPECT_EQ(parsed.exit_code, 0) << parsed.err;
    EXPECT_TRUE((fs::status(script).permissions() & fs::perms::owner_exec) != fs::perms::none) << script;
  }
  if (!Installed("shellcheck")) GTEST_SKIP() << "shellcheck is not installed: only bash -n was run";
  std::vector<std::string> check = {"/usr/bin/env", "shellcheck"};
  check.insert(check.end(), scripts.begin(), scripts.end());
  const Finished checked = RunProgram(check);
  EXPECT_EQ(checked.exit_code, 0) << checked.out;
}

TEST_F(Launchers, RestartWhatFailsAndNoMore) {
  folder_.Write("fail", "echo run >>runs\nexit ${1}\n");
  const std::string restart = kCluster + "/restart.sh";
  const auto runs = [&](const std::string& code) {
    fs::remove(folder_ / "runs");
    const Finished run = RunProgram(With({"CREMA_MAX_RESTARTS=1"}, {restart, "/bin/bash", "fail", code}), In());
    EXPECT_EQ(std::to_string(run.exit_code), code) << run.err;
    return ReadText(folder_ / "runs");
  };
  EXPECT_EQ(runs("0"), "run\n");
  EXPECT_EQ(runs("2"), "run\n") << "a mistake is no accident";
  EXPECT_EQ(runs("1"), "run\nrun\n");
  EXPECT_EQ(RunProgram({restart}).exit_code, 2);
}

TEST_F(Launchers, SshTrainsToTheEndThoughAWorkerIsKilled) {
  Prepare(1000, "");
  // Runs here what would run there; its process becomes the worker.
  StandIn("ssh", R"(while [[ $1 == -* ]]; do [[ $1 == -o ]] && shift; shift; done
echo $$ >"pid.$1"; shift; exec sh -c "$*")");
  folder_.Write("hosts", "# two workers\none --threads=1\n\ntwo --threads=1");
  const std::string address = "tcp://127.0.0.1:" + std::to_string(FreePort());
  Running run(With({"CREMA_ADDRESS=" + address, "CREMA_LISTEN=" + address, "CREMA_WORKER_FLAGS=--data_threads=1"},
                   {kCluster + "/ssh/train.sh", "hosts", "solver.prototxt"}),
              In());
  ASSERT_TRUE(run.WaitFor("Iteration 50 (")) << run.Err();
  kill(std::stoi(ReadText(folder_ / "pid.two")), SIGKILL);
  const Finished done = run.Wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.Says("restart.sh: exit code 137; restart 1 of 5")) << done.err;
  EXPECT_EQ(Count(done.err, "worker 1-two joined"), 2) << done.err;
  EXPECT_TRUE(done.Says("Optimization Done.")) << done.err;
  EXPECT_TRUE(Exists("tiny_iter_1000.caffemodel"));
}

TEST_F(Launchers, SshEndsInOrderWhenAsked) {
  Prepare(100000, "");
  StandIn("ssh", R"(while [[ $1 == -* ]]; do [[ $1 == -o ]] && shift; shift; done
shift; exec sh -c "$*")");
  folder_.Write("hosts", "one --threads=1\n");
  const std::string address = "tcp://127.0.0.1:" + std::to_string(FreePort());
  Running run(With({"CREMA_ADDRESS=" + address, "CREMA_LISTEN=" + address, "CREMA_WORKER_FLAGS="},
                   {kCluster + "/ssh/train.sh", "hosts", "solver.prototxt"}),
              In());
  ASSERT_TRUE(run.WaitFor("Iteration 50 (")) << run.Err();
  run.Signal(SIGTERM);
  const Finished done = run.Wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.Says("Optimization stopped early.")) << done.err;
  EXPECT_TRUE(done.Says("Done: stopped")) << "the worker was not told: " << done.err;
  EXPECT_FALSE(done.Says("restart 1 of")) << done.err;
}

TEST_F(Launchers, SshPassesOnMistakes) {
  folder_.Write("hosts", "one\n");
  StandIn("ssh", "exec sleep 60");
  StandIn("hostname", "echo localhost");
  const auto launch = [&](const std::string& hosts) {
    return RunProgram(With({}, {kCluster + "/ssh/train.sh", hosts, "missing.prototxt"}), In());
  };
  const Finished no_solver = launch("hosts");
  EXPECT_EQ(no_solver.exit_code, 2) << no_solver.err;
  EXPECT_TRUE(no_solver.Says("missing.prototxt")) << no_solver.err;
  EXPECT_EQ(launch("no_hosts").exit_code, 2);
  folder_.Write("empty", "# nobody\n");
  EXPECT_TRUE(launch("empty").Says("names no host"));
}

// Starts its ranks as Open MPI does.
constexpr char kMpirun[] = R"(n=$2; shift 2
for ((r = 0; r < n; ++r)); do
  OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=$n OMPI_COMM_WORLD_LOCAL_RANK=$r PMIX_NAMESPACE=job-7@1 "$@" &
done
code=0; for p in $(jobs -p); do wait "$p" || code=$?; done; exit "$code")";

TEST_F(Launchers, MpirunTrainsToTheEnd) {
  PrepareWithKeys(200);
  StandIn("mpirun", kMpirun);
  const Finished run =
      RunProgram(With({"CREMA_PORT=" + std::to_string(FreePort()), "CREMA_WORKER_FLAGS=--threads=1 " + kKeyFlags},
                      {"mpirun", "-np", "3", kCluster + "/mpirun/train.sh", "solver.prototxt"}),
                 In());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("worker rank-1 joined")) << run.err;
  EXPECT_TRUE(run.Says("worker rank-2 joined")) << run.err;
  EXPECT_TRUE(run.Says("Optimization Done.")) << run.err;
  EXPECT_FALSE(Exists(".crema_address.job-7_1")) << "left behind";
}

TEST_F(Launchers, MpirunNeedsItsVariables) {
  const std::string script = kCluster + "/mpirun/train.sh";
  const Finished bare = RunProgram({"/usr/bin/env", "-i", "PATH=/usr/bin:/bin", script, "solver.prototxt"}, In());
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_TRUE(bare.Says("start it with mpirun")) << bare.err;
  const Finished alone = RunProgram({"/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "OMPI_COMM_WORLD_RANK=0",
                                     "OMPI_COMM_WORLD_SIZE=1", script, "solver.prototxt"},
                                    In());
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_TRUE(alone.Says("-np 2 or more")) << alone.err;
}

TEST_F(Launchers, SlurmGoesBackIntoTheQueueAndOn) {
  PrepareWithKeys(1000);
  StandIn("srun", R"(while [[ $1 == --* ]]; do shift; done
for ((t = 0; t < SLURM_NTASKS; ++t)); do "$@" & done; wait)");
  StandIn("scontrol", "echo \"$@\" >scontrol.txt");
  const auto job = With({"SLURM_JOB_ID=77", "SLURM_NTASKS=2", "CREMA_CLUSTER=" + kCluster,
                         "CREMA_PORT=" + std::to_string(FreePort()), "CREMA_WORKER_FLAGS=--threads=1 " + kKeyFlags},
                        {kCluster + "/slurm/train.sbatch", "solver.prototxt"});
  Running first(job, In());
  ASSERT_TRUE(first.WaitFor("Iteration 50 (")) << first.Err();
  first.Signal(SIGUSR1);
  const Finished interrupted = first.Wait();
  EXPECT_EQ(interrupted.exit_code, 0) << interrupted.err;
  EXPECT_TRUE(interrupted.Says("Optimization stopped early.")) << interrupted.err;
  EXPECT_EQ(ReadText(folder_ / "scontrol.txt"), "requeue 77\n");
  fs::remove(folder_ / "scontrol.txt");
  const Finished second = RunProgram(job, In());
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(second.Says("Resuming from tiny_iter_")) << second.err;
  EXPECT_TRUE(second.Says("Optimization Done.")) << second.err;
  EXPECT_FALSE(Exists("scontrol.txt")) << "nothing is left to do";
}

TEST_F(Launchers, SlurmStartsRanksOfMpi) {
  if (!Installed("mpirun")) GTEST_SKIP() << "there is no mpirun (openmpi-bin)";
  if (!fs::exists(fs::path(CREMA_BIN_DIR) / "../lib/libcrema_mpi.so")) GTEST_SKIP() << "crema was built without MPI";
  WriteTinyTraining(folder_, {.max_iter = 3000, .snapshot = 0, .test_interval = 3000});
  StandIn("srun", R"(while [[ $1 == --* ]]; do echo "$1" >>flags.txt; shift; done
echo $$ >srun.pid
# mpirun would ask Slurm for its nodes.
unset SLURM_JOB_ID
exec mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$@")");
  StandIn("scancel", "[[ $* == '--signal=USR2 77.0' ]] && kill -USR2 $(<srun.pid)");
  StandIn("scontrol", "echo \"$@\" >scontrol.txt");
  const auto job = With({"SLURM_JOB_ID=77"}, {kCluster + "/mpi/train.sbatch", "solver.prototxt"});
  Running first(job, In());
  ASSERT_TRUE(first.WaitFor("Iteration 50 (")) << first.Err();
  first.Signal(SIGUSR1);
  const Finished interrupted = first.Wait();
  EXPECT_EQ(interrupted.exit_code, 0) << interrupted.err;
  EXPECT_TRUE(interrupted.Says("Optimization stopped early.")) << interrupted.err;
  EXPECT_EQ(ReadText(folder_ / "scontrol.txt"), "requeue 77\n");
  EXPECT_EQ(ReadText(folder_ / "flags.txt"), "--mpi=pmix\n--kill-on-bad-exit=1\n--cpus-per-task=1\n");
  fs::remove(folder_ / "scontrol.txt");
  const Finished second = RunProgram(job, In());
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(second.Says("Resuming from tiny_iter_")) << second.err;
  EXPECT_TRUE(second.Says("Optimization Done.")) << second.err;
  EXPECT_FALSE(Exists("scontrol.txt")) << "nothing is left to do";
  // A mistake ends it for good.
  folder_.Write("solver.prototxt", "net: \"nowhere.prototxt\"\n");
  EXPECT_EQ(RunProgram(job, In()).exit_code, 2);
  EXPECT_FALSE(Exists("scontrol.txt"));
}

// The scripts of the pods with folders of the test's where Kubernetes mounts volumes.
class Pods : public Launch {
 protected:
  void SetUp() override {
    PrepareWithKeys(12000, "c/keys/own.secret", "c/keys/authorized");
    for (const char* name : {"keys.sh", "coordinator.sh", "worker.sh", "probe.sh"}) {
      CopyFor("c", name);
      CopyFor("w", name);
    }
    for (const char* pod : {"c", "w"}) fs::create_directories(folder_ / (std::string(pod) + "/tmp"));
    Secret("c/secret", {{"coordinator.secret", "own.secret"},
                        {"coordinator.public", "own.public"},
                        {"worker.public", "worker.public"}});
    Secret("w/secret", {{"worker.secret", "own.secret"}, {"coordinator.public", "coordinator.public"}});
  }
  void CopyFor(const std::string& pod, const std::string& name) {
    std::string text = ReadText(kCluster + "/helm/crema/files/" + name);
    for (const std::string mounted : {"/tmp/", "/secret/", "/keys"}) {
      const std::string own = (folder_ / pod).string() + mounted;
      for (size_t at = text.find(mounted); at != std::string::npos; at = text.find(mounted, at + own.size())) {
        text.replace(at, mounted.size(), own);
      }
    }
    folder_.Write(pod + "/" + name, text);
  }
  // As a Secret with an fsGroup: readable by the group, in a folder that all may write.
  void Secret(const std::string& path, const std::vector<std::pair<std::string, std::string>>& files) {
    fs::create_directories(folder_ / path);
    fs::permissions(folder_ / path, fs::perms::all);
    for (const auto& [from, to] : files) {
      fs::copy(folder_ / from, folder_ / (path + "/" + to));
      fs::permissions(folder_ / (path + "/" + to), fs::perms::owner_read | fs::perms::group_read);
    }
  }
};

TEST_F(Pods, MoveTheCoordinatorWhileWorkersWait) {
  for (const auto& [pod, role] : {std::pair{"c", "coordinator"}, {"w", "worker"}}) {
    const Finished keys = RunProgram(With({}, {"/bin/bash", std::string(pod) + "/keys.sh", role}), In());
    ASSERT_EQ(keys.exit_code, 0) << keys.err;
  }
  const std::string port = std::to_string(FreePort());
  const std::string endpoint = "tcp://127.0.0.1:" + port;
  const auto coordinator =
      With({"STATE=" + folder_.path().string(), "GRACE=20"},
           {"/bin/bash", "c/coordinator.sh", "--solver=solver.prototxt", "--coordinate=tcp://*:" + port, "--expect=1"});
  const auto probe = [&](const std::string& pod, const std::string& role, const std::string& name) {
    return RunProgram(With({"HOSTNAME=" + name}, {"/bin/bash", pod + "/probe.sh", role, endpoint}), In()).exit_code;
  };
  Running worker(With({}, {"/bin/bash", "w/worker.sh", "--join=" + endpoint, "--secret_key=w/keys/own.secret",
                           "--server_key=w/keys/coordinator.public", "--worker_name=pod-1", "--threads=1"}),
                 In());
  {
    Running first(coordinator, In());
    ASSERT_TRUE(first.WaitFor("Iteration 50 (")) << first.Err();
    EXPECT_EQ(probe("c", "coordinator", "c"), 0);
    EXPECT_EQ(probe("w", "worker", "pod-1"), 0);
    EXPECT_NE(probe("w", "worker", "pod-2"), 0) << "is none of them";
    first.Signal(SIGTERM);
    const Finished gone = first.Wait();
    EXPECT_EQ(gone.exit_code, 0) << gone.err;
    EXPECT_TRUE(gone.Says("Snapshotting solver state")) << gone.err;
  }
  EXPECT_FALSE(worker.ended()) << worker.Err();
  EXPECT_NE(probe("c", "coordinator", "c"), 0);
  EXPECT_EQ(probe("w", "worker", "pod-1"), 0) << "restarted because the coordinator moves";
  Running second(coordinator, In());
  ASSERT_TRUE(second.WaitFor("Optimization Done.")) << second.Err();
  const Finished sent_home = worker.Wait();
  EXPECT_EQ(sent_home.exit_code, 0) << sent_home.err;
  EXPECT_TRUE(second.Err().find("Resuming from") != std::string::npos) << second.Err();
  while (!Exists("c/tmp/ended") && !second.ended()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(probe("c", "coordinator", "c"), 0) << "idle is well";
  second.Signal(SIGTERM);
  EXPECT_EQ(second.Wait().exit_code, 0);
}

TEST_F(Pods, RenderWithHelm) {
  if (!Installed("helm")) GTEST_SKIP() << "helm is not installed: the chart's templates are not rendered";
  folder_.Write("solver", ReadText(folder_ / "solver.prototxt"));
  const auto render = [&](const std::string& solver, const std::string& kind) {
    return RunProgram({"/usr/bin/env", "helm", "template", "run", kCluster + "/helm/crema", "--set",
                       "image.repository=registry.example/crema,workers.kind=" + kind, "--set-file",
                       "files.net=net.prototxt,files.solver=" + solver, "--set-file",
                       "keys.coordinatorSecret=coordinator.secret,keys.coordinatorPublic=coordinator.public",
                       "--set-file", "keys.workerSecret=worker.secret,keys.workerPublic=worker.public"},
                      In());
  };
  const Finished elsewhere = render("solver", "Job");
  EXPECT_NE(elsewhere.exit_code, 0);
  EXPECT_TRUE(elsewhere.Says("snapshot_prefix must be in /state")) << elsewhere.err;
  folder_.Write("fit",
                "net: \"net.prototxt\"\nsnapshot_prefix: \"/state/tiny\"\ndistributed { security { secret_key_file: "
                "\"/keys/own.secret\" authorized_keys_dir: \"/keys/authorized\" } }\n");
  for (const std::string kind : {"Job", "Deployment"}) {
    const Finished run = render("fit", kind);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("kind: " + kind), std::string::npos) << run.out;
    EXPECT_NE(run.out.find("--join=tcp://run-crema-coordinator-0.run-crema-coordinator:5570"), std::string::npos);
  }
}

}  // namespace
}  // namespace crema::testing_tools
