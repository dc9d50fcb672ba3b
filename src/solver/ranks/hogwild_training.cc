// Training by threads that change the same parameters without locks (hogwild.h).
#include <omp.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/compute_threads.h"
#include "solver/solver_impl.h"

namespace crema {

void Solver::Impl::ChooseHogwild() {
  if (options.role != Role::kAlone || !TrainsHogwild(param)) return;
  ranks = static_cast<int>(param.distributed().local_workers());
  options.devices.assign(static_cast<size_t>(ranks), options.device);
}

int Solver::Impl::ThreadsOfNet() const {
  const int all = omp_get_max_threads();
  return TrainsHogwild(param) ? std::max(1, all / ranks) : all;
}

void Solver::Impl::MakeHogwild(const SolverFile& file) {
  if (ranks > 1) RefuseInputs("for the first thread only: remove mode: HOGWILD");
  hogwild = std::make_unique<HogwildProgress>(ranks);
  for (int r = 1; r < ranks; ++r) others.push_back(std::make_unique<Impl>(file, *this, r));
  threads_ = std::make_unique<RankThreads>(ranks, ThreadsOfNet(), [this] { hogwild->Abort(); });
}

int Solver::Impl::NextPause(int end) const {
  for (const int interval : {param.test_interval(), param.snapshot()}) {
    if (interval > 0) end = std::min(end, iteration - iteration % interval + interval);
  }
  return end;
}

Solver::Impl::Requests Solver::Impl::RunFreely(int end) {
  hogwild->Begin(iteration, end);
  since_finished_.Restart();
  Requests asked;
  {
    const ComputeThreads share(ThreadsOfNet());
    threads_->Run([&](int r) {
      while (hogwild->Enter(r)) {
        Rank(r).StepFreely(*hogwild);
        if (r > 0) continue;
        TellFinished();
        if (asked.snapshot || asked.stop) continue;
        asked = TakeRequests();
        if (asked.snapshot || asked.stop) hogwild->Pause();
      }
    });
  }
  TellFinished();
  if (ranks > 1 && param.distributed().batch_norm() == DistributedParameter::POOL) {
    std::vector<Net*> nets;
    for (int r = 0; r < ranks; ++r) nets.push_back(Rank(r).net.get());
    PoolStatistics(nets);
  }
  return asked;
}

void Solver::Impl::StepFreely(HogwildProgress& progress) {
  const bool displays = rank == 0 && DueEvery(param.display());
  const float loss = Iterate(static_cast<uint64_t>(iteration));
  progress.Leave(rank, static_cast<double>(loss),
                 displays ? std::optional(OutputValues(*net)) : std::optional<std::vector<OutputValue>>());
}

void Solver::Impl::TellFinished() {
  std::vector<HogwildProgress::Finished> finished = hogwild->TakeFinished();
  if (finished.empty()) return;
  const double seconds = since_finished_.Seconds() / static_cast<double>(finished.size());
  since_finished_.Restart();
  const int now = iteration;
  for (HogwildProgress::Finished& one : finished) {
    losses.Add(static_cast<float>(one.loss));
    iteration = one.iteration;
    if (one.outputs) TellDisplay(RateAt(iteration), std::move(*one.outputs));
    TellRateStep(iteration);
    IterationEnd event;
    event.iteration = iteration;
    event.loss = static_cast<float>(one.loss);
    event.seconds = seconds;
    Tell(&Observer::OnIteration, event);
  }
  iteration = now;
}

std::vector<float> Solver::Impl::MeanHistory(int index) {
  const Tensor first = updater->history(index);
  std::vector<float> mean(static_cast<size_t>(first.count()));
  for (int64_t i = 0; i < first.count(); ++i) {
    double sum = 0;
    for (int r = 0; r < ranks; ++r) sum += static_cast<double>(Rank(r).updater->history(index).f32()[i]);
    mean[static_cast<size_t>(i)] = static_cast<float>(sum / ranks);
  }
  return mean;
}

}  // namespace crema
