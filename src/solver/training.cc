// The training loop.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "solver/rates.h"
#include "solver/solver_impl.h"

namespace crema {

namespace {

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace

std::vector<OutputValue> OutputValues(const Net& net) {
  std::vector<OutputValue> values;
  for (const NetOutput& output : net.outputs()) {
    for (int64_t i = 0; i < output.value.count(); ++i) {
      values.push_back({output.name, static_cast<float>(output.value.value(i)), output.loss_weight});
    }
  }
  return values;
}

void Solver::Impl::Start() {
  if (started_) return;
  started_ = true;
  TrainingStart start;
  start.solver = options.path;
  start.net = net->name();
  start.solver_type = UpdateRuleName(param);
  start.lr_policy = param.lr_policy();
  start.iteration = iteration;
  start.max_iter = param.max_iter();
  start.test_nets = static_cast<int>(test_nets.size());
  start.seed = seed;
  start.seed_drawn = seed_drawn;
  start.ranks = ranks;
  Tell(&Observer::OnStart, start);
  since_display_.Restart();
  iteration_of_display_ = first_iteration_ = iteration;
  if (ranks > 1) CopyToRanks();
}

TrainingResult Solver::Impl::Train() {
  Start();
  if (iteration > 0 && iteration == saved_iteration && iteration >= param.max_iter()) {
    Warn({}, "the snapshot is of iteration " + std::to_string(iteration) + " and max_iter is " +
                 std::to_string(param.max_iter()) + ": nothing is left to train; raise max_iter to go on");
  }
  bool finished = Step(param.max_iter() - iteration);
  if ((param.snapshot_after_train() || !finished) && saved_iteration != iteration) TrySnapshot();
  if (finished && DueEvery(param.display())) {
    losses.Add(Forward());
    Display display;
    display.iteration = iteration;
    display.smoothed_loss = losses.mean();
    display.final = true;
    Tell(&Observer::OnDisplay, display);
  }
  if (finished && DueEvery(param.test_interval())) finished = Test();

  TrainingEnd end;
  end.iteration = iteration;
  end.stopped_early = !finished;
  end.failed_snapshots = failed_snapshots;
  Tell(&Observer::OnEnd, end);
  return {iteration, !finished, failed_snapshots, last_snapshot};
}

bool Solver::Impl::Step(int iterations) {
  Start();
  const int end = iteration + std::max(0, iterations);
  while (iteration < end) {
    if (DueEvery(param.test_interval()) && (iteration > 0 || param.test_initialization()) && !Test()) return false;
    Stopwatch watch;
    IterationEnd event;
    event.iteration = iteration;
    event.loss = RunIteration();
    event.seconds = watch.Seconds();
    Tell(&Observer::OnIteration, event);

    const SolverAction action = RequestedAction();
    if (DueEvery(param.snapshot()) || action == SolverAction::kSnapshot) TrySnapshot();
    if (action == SolverAction::kStop) {
      Settle();
      return false;
    }
  }
  Settle();
  return true;
}

float Solver::Impl::Iterate() {
  net->set_pass(static_cast<uint64_t>(iteration) * param.iter_size());
  net->ClearGradients();
  const float rate = LearningRateAt(param, iteration);
  const bool at_once = updater->updates_at_once();
  if (updates_singly || at_once) updater->Begin(iteration, rate);
  double sum = 0;
  for (int part = 1; part <= param.iter_size(); ++part) {
    const bool last = part == param.iter_size();
    GradientReader* const exchanges = last ? exchange.get() : nullptr;
    // Whether the other ranks may be waiting for this one's gradients.
    bool owes_gradients = exchanges != nullptr;
    const auto end_of_pass = [&] {
      if (exchange) exchange->Finish();
      owes_gradients = false;
      if (at_once) updater->Apply();
    };
    float loss = NAN;
    std::exception_ptr failure;
    try {
      loss = net->ForwardBackward(updates_singly ? updater.get() : exchanges,
                                  last && (exchange || at_once) ? std::function<void()>(end_of_pass) : nullptr);
    } catch (...) {
      if (!communicator || owes_gradients) throw;
      failure = std::current_exception();
    }
    // Where they are not, all end the iteration together, and none has changed its parameters.
    if (!std::isfinite(loss) && owes_gradients) FailNonFinite("the loss is " + Number(loss));
    const double mean = Mean(loss);
    if (!std::isfinite(mean)) EndTogether(loss, failure);
    sum += mean;
  }
  if (at_once && iteration > first_iteration_) TellClipping(iteration - 1, updater->NormOf(iteration - 1));
  const float loss = static_cast<float>(sum / param.iter_size());
  losses.Add(loss);
  if (rank == 0 && DueEvery(param.display())) TellDisplay(rate);
  if (param.lr_policy() == "multistep" && iteration > 0) {
    const int step = RateStepAt(param, iteration);
    if (step != RateStepAt(param, iteration - 1)) Tell(&Observer::OnStep, LearningRateStepped{iteration, step});
  }
  if (!updates_singly && !at_once) {
    updater->Begin(iteration, rate, ClipScale());
    updater->Apply();
  }
  net->ParametersChanged();
  ++iteration;
  return loss;
}

void Solver::Impl::EndTogether(double own_loss, const std::exception_ptr& own_failure) {
  if (communicator) AwaitDevice();  // as all ranks do, so that their sums come to an end
  if (own_failure) std::rethrow_exception(own_failure);
  if (!std::isfinite(own_loss)) FailNonFinite("the loss is " + Number(own_loss));
  throw Aborted();
}

float Solver::Impl::ClipScale() {
  if (param.clip_gradients() <= 0) return 1;
  return TellClipping(iteration, updater->GradientNorm());
}

float Solver::Impl::TellClipping(int of_iteration, double norm) {
  if (param.clip_gradients() <= 0) return 1;
  if (!std::isfinite(norm)) FailNonFinite("the norm of the gradients is " + Number(norm));
  const float scale = updater->ClipScale(norm);
  if (scale < 1) {
    Tell(&Observer::OnClipped, GradientsClipped{of_iteration, static_cast<float>(norm), param.clip_gradients()});
  }
  return scale;
}

void Solver::Impl::TellDisplay(float rate) {
  Display display;
  display.iteration = iteration;
  display.smoothed_loss = losses.mean();
  display.learning_rate = rate;
  display.seconds = since_display_.Seconds();
  display.iterations = iteration - iteration_of_display_;
  display.outputs = OutputValues(*net);
  Tell(&Observer::OnDisplay, display);
  since_display_.Restart();
  iteration_of_display_ = iteration;
}

void Solver::Impl::FailNonFinite(const std::string& what) {
  const std::string cause = net->FindNonFinite();
  throw EnvironmentError("iteration " + std::to_string(iteration) + ": " + what +
                         "; training stops before this update. " +
                         (cause.empty() ? "No parameter or layer output of this batch holds a NaN or an infinity."
                                        : "The first values that are not finite: " + cause + ".") +
                         " Lower base_lr (now " + Number(param.base_lr()) + "), set clip_gradients" +
                         (param.clip_gradients() > 0 ? " lower" : "") +
                         ", or check the scale of the input (scale and mean in transform_param)." +
                         (last_snapshot.empty() ? "" : " The last snapshot is " + last_snapshot + "."));
}

}  // namespace crema
