#include "tools/rank.h"

#include <gflags/gflags.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <set>
#include <thread>

#include "base/compute_threads.h"
#include "base/listed.h"
#include "base/log.h"
#include "crema/error.h"
#include "device/gpu.h"
#include "device/processes.h"
#include "distributed/training/mpi_training.h"
#include "tools/flags.h"

DEFINE_string(engine, "", "who carries values between processes");

namespace crema::tools {

namespace {

[[noreturn]] void Fail(const CommandLine& line, const std::string& message) {
  throw UserError(Location{line.program, 0, 0}, message);
}

// Whether the launcher shows each rank of this machine other GPUs (srun --gpus-per-task=1): each counts its own from 0.
bool HaveGpusOfTheirOwn(Processes& processes) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::vector<std::string> of_ranks = processes.Gather(visible ? visible : "");
  const std::vector<std::string>& machines = processes.machines();
  std::set<std::string> different;
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (machines[rank] == machines[static_cast<size_t>(processes.rank())]) different.insert(of_ranks[rank]);
  }
  return different.size() == static_cast<size_t>(processes.local_ranks()) && different.count("") == 0;
}

// Of those that --gpu names, the one for this rank.
Device& DeviceOfRank(const CommandLine& line, const Processes& processes, bool of_its_own) {
  if (!line.has("gpu")) return CpuDevice();
  const std::vector<int> ids = GpusOf(line);
  if (of_its_own) return OpenGpu(ids[0]);
  const auto place = static_cast<size_t>(processes.local_rank());
  if (static_cast<size_t>(processes.local_ranks()) > ids.size()) {
    Fail(line, "--gpu=" + FLAGS_gpu + " names " + std::to_string(ids.size()) + " GPUs, and there are " +
                   std::to_string(processes.local_ranks()) + " ranks on machine \"" +
                   processes.machines()[static_cast<size_t>(processes.rank())] +
                   "\", each of which needs one: name more, start fewer, or let the launcher show each rank its own "
                   "(CUDA_VISIBLE_DEVICES)");
  }
  return OpenGpu(ids[place]);
}

// A share of the cores, where neither flags nor the launcher say how many threads there may be.
void ChooseThreads(const Processes& processes) {
  if (FLAGS_threads > 0 || std::getenv("OMP_NUM_THREADS")) return;
  const int allowed = omp_get_num_procs(), cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int share = std::max(1, cores / processes.local_ranks());
  // Bound to some of them: those are this rank's.
  UseComputeThreads(allowed < cores ? allowed : share);
  if (allowed < share && processes.rank() == 0) {
    LOG(WARNING) << "the launcher lets this rank use " << allowed << " of " << cores << " cores; " << share
                 << " are there for each of " << processes.local_ranks()
                 << " ranks: mpirun --bind-to none, or --map-by slot:PE=" << share << " (srun --cpus-per-task)";
  }
}

std::string RanksText(const Processes& processes, const std::vector<int>& ranks) {
  if (ranks.size() == static_cast<size_t>(processes.ranks())) return "";
  std::string text = (ranks.size() == 1 ? "rank " : "ranks ") + Listed(ranks, {.most = kAllNames});
  text += " of " + std::to_string(processes.ranks());
  if (ranks.size() == 1) text += ", on machine \"" + processes.machines()[static_cast<size_t>(ranks[0])] + "\"";
  return text;
}

void SayWho(const CommandLine& line, const std::string& ranks) {
  // In one piece: ranks write side by side.
  if (!ranks.empty()) std::cerr << line.program + ": " + ranks + ":\n";
}

// Where this rank, or another one, failed alone: the rest may be waiting for it.
[[noreturn]] void EndAll(const CommandLine& line, Processes& processes, const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Aborted&) {
    // The one that failed says why and ends all.
    std::this_thread::sleep_for(std::chrono::seconds(30));
    processes.Abort(kExitEnvironment);
  } catch (...) {
    SayWho(line, RanksText(processes, {processes.rank()}));
  }
  const int code = Guarded(line.program, [&]() -> int { std::rethrow_exception(failure); });
  processes.Abort(code);
  std::_Exit(code);
}

}  // namespace

void ApplyEngineFlag(const CommandLine& line, SolverFile* file) {
  SolverParameter& solver = file->solver;
  if (line.has("engine")) {
    if (FLAGS_engine != "MPI" && FLAGS_engine != "ZMQ") {
      Fail(line, "--engine=" + FLAGS_engine + ": MPI or ZMQ was expected");
    }
    if (solver.distributed().mode() == DistributedParameter::OFF) {
      Fail(line, "the solver file says distributed { mode: OFF }; remove that to train with several processes");
    }
    solver.mutable_distributed()->set_engine(FLAGS_engine == "MPI" ? DistributedParameter::MPI
                                                                   : DistributedParameter::ZMQ);
  }
  if (!UsesMpi(solver)) return;
  for (const char* flag : {"workers", "worker_threads", "coordinate", "expect", "timeline"}) {
    if (!line.has(flag)) continue;
    Fail(line, std::string("--") + flag +
                   " does not go with engine: MPI, where the launcher says how many ranks there "
                   "are (mpirun -n 4 train ...); leave it out, or give --engine=ZMQ");
  }
}

int RunRank(const CommandLine& line, const SolverFile& file, SolverOptions options, TrainingConsole& console,
            const std::function<int(const SolverOptions&)>& train) {
  const std::unique_ptr<Processes> processes = OpenMpi();
  std::exception_ptr failure;
  try {
    options.processes = processes.get();
    console.ForLaunched();
    if (processes->rank() > 0) options.observers.clear();
    std::vector<Diagnostic> warnings;
    Together(*processes, [&] { warnings = CheckMpi(file); });
    for (Observer* observer : options.observers) {
      for (const Diagnostic& warning : warnings) observer->OnNotice(warning);
    }
    if (processes->ranks() == 1) {
      LOG(WARNING)
          << "engine: MPI, but there is one rank only: this process trains alone. Start several with mpirun -n "
             "4 "
          << line.program << " ...";
    } else if (processes->rank() == 0) {
      const std::set<std::string> machines(processes->machines().begin(), processes->machines().end());
      LOG(INFO) << "MPI: " << processes->ranks() << " ranks on "
                << (machines.size() == 1 ? "one machine" : std::to_string(machines.size()) + " machines") << ", by "
                << processes->library();
    }
    ChooseThreads(*processes);
    std::vector<Fact> facts;
    const bool own_gpus = HaveGpusOfTheirOwn(*processes);
    Together(*processes, [&] {
      options.device = &DeviceOfRank(line, *processes, own_gpus);
      options.devices = {options.device};
      facts = FactsOf(file, options, VersionText());
    });
    CheckAlike(*processes, facts);
    return train(options);
  } catch (const FailedTogether& failed) {
    if (failed.own) {
      SayWho(line, RanksText(*processes, failed.ranks));
      Guarded(line.program, [&]() -> int { std::rethrow_exception(failed.own); });
    }
    return failed.by_user ? kExitUser : kExitEnvironment;
  } catch (...) {
    failure = std::current_exception();
  }
  if (processes->ranks() == 1) std::rethrow_exception(failure);
  EndAll(line, *processes, failure);
}

void WarnOfLaunchedAlone() {
  const int launched = LaunchedProcesses();
  if (launched < 2) return;
  LOG(WARNING)
      << "the launcher started " << launched
      << " processes, and each of them trains for itself; to train together say distributed { engine: MPI } in "
         "the solver file, or --engine=MPI";
}

}  // namespace crema::tools
