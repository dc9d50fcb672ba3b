// The training loop.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/number_text.h"
#include "solver/mean_sizes.h"
#include "solver/solver_impl.h"

namespace crema {

namespace {

// What says how large the rate is, and how large that is now.
std::string RateField(const SolverParameter& solver, float rate) {
  if (solver.lr_policy() == "multifixed") return "stagelr (now " + FormatNumber(rate) + ")";
  return "base_lr (now " + FormatNumber(solver.base_lr()) + ")";
}

}  // namespace

std::vector<OutputValue> OutputValues(const Net& net) {
  std::vector<OutputValue> values;
  for (const NetOutput& output : net.outputs()) {
    for (int64_t i = 0; i < output.value.count(); ++i) {
      values.push_back({output.name, static_cast<float>(output.value.value(i)), output.loss_weight, output.is_loss});
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
  if (param.snapshot() > 0 || param.snapshot_after_train()) start.snapshot_prefix = snapshots->prefix();
  start.seed = seed;
  start.seed_drawn = seed_drawn;
  (hogwild ? start.threads : start.ranks) = ranks;
  Tell(&Observer::OnStart, start);
  since_display_.Restart();
  iteration_of_display_ = iteration;
  if (options.processes) {
    ShareState(true);
  } else if (ranks > 1) {
    CopyToRanks();
  }
}

TrainingResult Solver::Impl::Train() {
  Start();
  WarnIfNothingIsLeft();
  return End(Step(param.max_iter() - iteration));
}

void Solver::Impl::WarnIfNothingIsLeft() const {
  if (iteration > 0 && iteration == snapshots->iteration() && iteration >= param.max_iter()) {
    Warn({}, "the snapshot is of iteration " + std::to_string(iteration) + " and max_iter is " +
                 std::to_string(param.max_iter()) + ": nothing is left to train; raise max_iter to go on");
  }
}

TrainingResult Solver::Impl::End(bool finished) {
  if (updater->loss_factor()) TellIssued();
  WarnOfZeroLosses(zero_losses_.End());
  if (param.snapshot_after_train() || !finished || snapshots->failed_at(iteration)) {
    CompareRanks();
    if (snapshots->iteration() != iteration) TrySnapshot(/*at_end=*/true);
  }
  if (finished && DueEvery(param.display()) && options.role == Role::kAlone) {
    read_past_end = true;
    losses.Add(Forward());
    Display display;
    display.iteration = iteration;
    display.smoothed_loss = losses.mean();
    display.final = true;
    Tell(&Observer::OnDisplay, display);
  }
  if (finished && DueEvery(param.test_interval())) finished = Test();
  if (finished || out_of_patience) BestAtEnd();

  TrainingEnd end;
  end.iteration = iteration;
  end.stopped_early = !finished && !out_of_patience;
  end.out_of_patience = out_of_patience;
  end.failed_snapshots = snapshots->failures();
  end.best = FoundBest();
  if (const auto lost = best ? best->lost() : std::nullopt) {
    Warn({}, "the parameters of the best test, " + best->output() + " = " + FormatNumber(lost->value) +
                 " at iteration " + std::to_string(lost->iteration) + ", could not be written" +
                 (end.best ? ": those of a lesser one are kept" : ", nor those of any other"));
  }
  Tell(&Observer::OnEnd, end);
  return {iteration, end.stopped_early, end.failed_snapshots, snapshots->last(), out_of_patience, end.best};
}

bool Solver::Impl::Step(int iterations) {
  try {
    return StepOn(iterations);
  } catch (const NotFinite&) {
    EndInFailure(data_not_finite);  // otherwise its numbers are of no use
    throw;
  } catch (const UserError&) {
    EndInFailure(true);
    throw;
  } catch (const EnvironmentError&) {
    EndInFailure(true);
    throw;
  }
}

bool Solver::Impl::StepOn(int iterations) {
  Start();
  const int end = iteration + std::clamp(iterations, 0, std::numeric_limits<int>::max() - iteration);
  while (iteration < end) {
    if (TestIsDue() && !Test()) return false;
    const Requests asked = hogwild ? RunFreely(NextPause(end)) : RunAndTell();
    if (DueEvery(param.snapshot()) || asked.snapshot) {
      CompareRanks();
      TrySnapshot();
    }
    if (asked.stop) {
      Settle();
      return false;
    }
  }
  Settle();
  return true;
}

Solver::Impl::Requests Solver::Impl::RunAndTell() {
  Stopwatch watch;
  IterationEnd event;
  event.iteration = iteration;
  undo.Begin(net.get(), device, CanTakeBack(), losses, plateau);
  event.loss = RunIteration();
  undo.End();
  event.seconds = watch.Seconds();
  Tell(&Observer::OnIteration, event);
  return TakeRequests();
}

float Solver::Impl::Iterate(uint64_t step) {
  const float rate = RateAt(iteration);
  const float loss = RunPasses(step, rate);
  undo.EndPasses();
  const bool at_once = updater->updates_at_once();
  if (updates_singly || at_once) undo.ChangeParameters();
  const int issued_in = std::exchange(issued_in_, kNone);
  if (issued_in == iteration - 1) TellUpdate(issued_in);
  if (!hogwild) {
    losses.Add(loss);
    if (rank == 0) WarnOfZeroLosses(zero_losses_.Look(iteration, loss, *net));
    if (rank == 0) WarnOfZeroLosses(zero_losses_.LookBelowZero(loss, *net));
    if (rank == 0 && options.role == Role::kAlone && DueEvery(param.display())) {
      TellDisplay(rate, OutputValues(*net));
      if (shows_sizes) Tell(&Observer::OnMeanSizes, MeanSizesOf(*net, iteration, param.iter_size() * ranks));
    }
    TellRateStep(iteration);
    FollowPlateau();
  }
  if (updates_singly) updater->UpdateOthers();
  if (!updates_singly && !at_once) Update(rate);
  if (at_once) issued_in_ = iteration;
  net->ParametersChanged();
  if (average) average->Add(iteration);
  ++iteration;
  undo.EndUpdate();
  return loss;
}

float Solver::Impl::RunPasses(uint64_t step, std::optional<float> rate, const std::function<void()>& after_each,
                              GradientReader* reader) {
  net->set_pass(step * static_cast<uint64_t>(param.iter_size()));
  const bool goes_on = step == following_step_.value_or(step);
  following_step_ = step + 1;
  net->ClearGradients();
  const bool at_once = rate && updater->updates_at_once(), singly = rate && updates_singly;
  if (singly || at_once) updater->Begin(iteration, *rate);
  double sum = 0;
  for (int part = 1; part <= param.iter_size(); ++part) {
    const bool last = part == param.iter_size();
    // What recurrent layers carry belongs to the batch before, which another rank may have had.
    if (ranks > 1 || (part == 1 && !goes_on)) net->ClearRecurrentStates();
    if (after_each) net->ClearGradients();
    GradientReader* const exchanges = !last ? nullptr : exchange ? exchange.get() : reader;
    // Whether the other ranks may be waiting for this one's gradients.
    bool owes_gradients = last && exchange;
    const auto end_of_pass = [&] {
      if (exchange) exchange->Finish();
      owes_gradients = false;
      if (at_once) updater->Apply();
    };
    float loss = NAN;
    std::exception_ptr failure;
    try {
      loss = net->ForwardBackward(singly ? updater.get() : exchanges,
                                  last && (exchange || at_once) ? std::function<void()>(end_of_pass) : nullptr);
    } catch (const Aborted&) {
      throw;  // nobody comes to the mean any more
    } catch (const GroupError&) {
      throw;
    } catch (const EnvironmentError&) {
      // Where it is a GPU that failed, the others wait for its sums and do not come to the mean.
      if (device->type() != DeviceType::kCpu) throw;
      failure = std::current_exception();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure && (!communicator || owes_gradients)) std::rethrow_exception(failure);
    // Where they are not, all end the iteration together, and none has changed its parameters.
    if (!std::isfinite(loss) && owes_gradients) FailNonFinite("the loss is " + FormatNumber(loss));
    if (last) AskTheOthers();
    const double mean = Mean(loss);
    if (!std::isfinite(mean)) EndTogether(loss, failure);
    if (after_each) after_each();
    sum += mean;
  }
  return static_cast<float>(sum / param.iter_size());
}

void Solver::Impl::Update(float rate) {
  if (updater->updates_at_once()) {
    updater->Begin(iteration, rate);
    updater->Apply(false);
    AwaitDevice();
    TellClipping(iteration, updater->NormOf(iteration));
  } else {
    const float scale = ClipScale();
    undo.ChangeParameters();
    updater->Begin(iteration, rate, scale);
    updater->Apply();
  }
}

void Solver::Impl::TellIssued() {
  if (issued_in_ < 0) return;
  AwaitDevice();
  TellUpdate(std::exchange(issued_in_, kNone));
}

void Solver::Impl::TellUpdate(int of_iteration) {
  if (TellOverflow(of_iteration, updater->LossScaleOf(of_iteration), true)) return;
  TellClipping(of_iteration, updater->NormOf(of_iteration));
}

bool Solver::Impl::TellOverflow(int of_iteration, const LossScale& loss_scale, bool left_out) {
  if (!loss_scale.overflowed) return false;
  const std::string what = "iteration " + std::to_string(of_iteration) + ": gradients are not finite with ";
  if (!updater->finds_loss_scale()) {
    throw NotFinite(what + "loss_scale " + FormatNumber(loss_scale.scale) +
                    "; training stops before this update. Set a lower loss_scale, or none: it is then found while "
                    "training, and such updates are left out." +
                    snapshots->LastInWords());
  }
  if (loss_scale.scale < kSmallestLossScale) {
    throw NotFinite(what + "a loss scale of " + FormatNumber(2 * loss_scale.scale) +
                    " still, so it is not the range of half precision; training stops before this update. Lower " +
                    RateField(param, RateAt(of_iteration)) + ", or look for the cause with precision: F32." +
                    snapshots->LastInWords());
  }
  Tell(&Observer::OnOverflowed, GradientsOverflowed{of_iteration, loss_scale.scale, left_out});
  return true;
}

void Solver::Impl::DivideByLossScale() {
  while (TellOverflow(iteration, updater->DivideGradients(), false)) net->RepeatBackward();
}

void Solver::Impl::TellRateStep(int of_iteration) const {
  if (param.lr_policy() != "multistep" || of_iteration == 0) return;
  const int step = RateStepAt(param, of_iteration);
  if (step != RateStepAt(param, of_iteration - 1)) Tell(&Observer::OnStep, LearningRateStepped{of_iteration, step});
}

void Solver::Impl::FollowPlateau() {
  if (param.lr_policy() != "plateau") return;
  const int drops = plateau.drops;
  FollowLoss(param, iteration, losses.mean(), &plateau);
  // Sums of another process may differ in the last bit.
  if (options.processes) options.processes->Broadcast(&plateau, sizeof plateau);
  if (plateau.drops > drops) Tell(&Observer::OnStep, LearningRateStepped{iteration, plateau.drops});
}

void Solver::Impl::EndTogether(double own_loss, const std::exception_ptr& own_failure) {
  if (communicator) AwaitDevice();  // as all ranks do, so that their sums come to an end
  if (own_failure) std::rethrow_exception(own_failure);
  if (!std::isfinite(own_loss)) FailNonFinite("the loss is " + FormatNumber(own_loss));
  throw Aborted();
}

float Solver::Impl::ClipScale() {
  if (param.clip_gradients() <= 0) return 1;
  return TellClipping(iteration, updater->GradientNorm());
}

float Solver::Impl::TellClipping(int of_iteration, double norm) {
  if (param.clip_gradients() <= 0) return 1;
  if (!std::isfinite(norm)) FailNonFinite("the norm of the gradients is " + FormatNumber(norm));
  const float scale = updater->ClipScale(norm);
  if (scale < 1) {
    Tell(&Observer::OnClipped, GradientsClipped{of_iteration, static_cast<float>(norm), param.clip_gradients()});
  }
  return scale;
}

void Solver::Impl::TellDisplay(float rate, std::vector<OutputValue> outputs, std::optional<double> seconds) {
  Display display;
  display.iteration = iteration;
  display.smoothed_loss = losses.mean();
  display.learning_rate = rate;
  display.seconds = seconds.value_or(since_display_.Seconds());
  display.iterations = iteration - iteration_of_display_;
  display.outputs = std::move(outputs);
  Tell(&Observer::OnDisplay, display);
  if (std::string notice = data_waits_.Look(*net, display.seconds); !notice.empty()) Warn({}, std::move(notice));
  since_display_.Restart();
  iteration_of_display_ = iteration;
}

void Solver::Impl::FailNonFinite(const std::string& what) {
  // A coordinator has no batch to look at.
  const bool computes = options.role != Role::kCoordinator;
  const std::string cause = computes ? net->FindNonFinite() : "";
  const auto extents = net->data_extents();
  const bool read_so = std::any_of(extents.begin(), extents.end(), [&](const auto& of_layer) {
    return of_layer.second.batch > 0 && cause.starts_with("layer \"" + of_layer.first + "\" ");
  });
  data_not_finite = read_so;
  const std::string remedy =
      read_so ? " They come so from the data: mend it, or how it is made ready."
              : " Lower " + RateField(param, RateAt(iteration)) + ", set clip_gradients" +
                    (param.clip_gradients() > 0 ? " lower" : "") +
                    ", or check the scale of the input (scale and mean in transform_param)." +
                    (updater->loss_factor()
                         ? " Half precision holds numbers up to 65504; precision: BF16 holds larger ones."
                         : "");
  throw NotFinite("iteration " + std::to_string(iteration) + ": " + what + "; training stops before this update." +
                  (!computes       ? ""
                   : cause.empty() ? " No parameter or layer output of this batch holds a NaN or an infinity."
                                   : " The first values that are not finite: " + cause + ".") +
                  remedy + snapshots->LastInWords());
}

// Kernels that rectify take a NaN for 0, so a loss may look sound whose parameters are lost.
void Solver::Impl::RefuseNan() const {
  const std::string found = net->FindNanParameter();
  if (found.empty()) return;
  throw NotFinite("iteration " + std::to_string(iteration) + ": " + found +
                  " holds a NaN, although the loss does not show it; training stops, and no snapshot of it is written. "
                  "Look for numbers in the data that are not finite, lower " +
                  RateField(param, RateAt(iteration)) + ", or set clip_gradients." + snapshots->LastInWords());
}

}  // namespace crema
