#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>

#include "base/byte_size.h"
#include "compiler/compiler.h"
#include "device/device.h"

namespace crema {

namespace {

// What a second is made of, roughly: only ratios of times are shown or compared.
constexpr double kFlopsPerSecond = 2e11, kBytesPerSecond = 1.5e10;
// Of a schedule and its memory plan, each of which takes time that grows with the units; of nets of more than
// kManyUnits fewer.
constexpr int kMostTrials = 400, kManyUnits = 2500;

// Of which a GPU's kernels and libraries take a part, and the next batch, once the first pass runs.
size_t FreeMemory(const Device& device) {
  const size_t free = device.FreeMemory();
  return device.type() == DeviceType::kCpu ? free : free - std::min(free / 8, size_t{1} << 30);
}

// Chooses units whose results are not kept (Chen et al., "Training deep nets with sublinear memory cost", 2016): the
// net is cut into segments of equal bytes, and within each but the last all units go that are cheap enough for what
// they free. Of the cuts and prices that meet the limit the one with the least work wins, and then gives back, the
// dearest first, each unit that turns out not to be needed. Every trial is a true schedule and, unless it is known
// before to be no better, a true memory plan.
class Chooser {
 public:
  explicit Chooser(Compilation& c) : c_(c), graph_(c.net.graph), limit_(c.options.memory_limit) {
    if (limit_ == 0) limit_ = FreeMemory(*c.options.context.device);
    int64_t numbers = 0, gradients = 0;
    for (const GraphParam& param : graph_.params) {
      numbers += param.stored().shape.count();
      if (param.wants_grad()) gradients += param.stored().shape.count();
    }
    numbers += c.options.parameter_copies * numbers + (c.options.keep_gradients ? gradients : 0);
    parameters_ = static_cast<size_t>(numbers) * sizeof(float);
  }

  void Run() {
    FindCandidates();
    const Trial whole = *Try({}, SIZE_MAX, std::numeric_limits<double>::infinity());
    Trial best = whole;
    if (!Fits(whole) && c_.options.recompute == Recompute::kAuto) best = Refine(Search(whole));
    Apply(best.again);
    c_.net.program = {};
    if (!Fits(best)) return Refuse(best);
    if (best.seconds > 0) Tell(whole, best);
  }

 private:
  struct Candidate {
    int unit;
    size_t bytes;  // of what it makes
    double seconds;
    int last_reader = 0;  // in the order of the units
    int place = 0;
  };
  struct Trial {
    std::vector<bool> again;  // by candidate
    size_t arena = 0;
    double seconds = 0;  // of what runs again
  };

  bool Fits(const Trial& trial) const { return parameters_ + trial.arena <= limit_; }

  double SecondsOf(const Node& unit) const {
    double flops = unit.members.empty() ? unit.setup->flops() : 0;
    for (int member : unit.members) flops += graph_.nodes[member].setup->flops();
    size_t bytes = 0;
    for (const auto* values : {&unit.bottoms, &unit.tops}) {
      for (int v : *values) bytes += graph_.values[v].spec.bytes();
    }
    return flops / kFlopsPerSecond + static_cast<double>(bytes) / kBytesPerSecond;
  }

  void FindCandidates() {
    std::vector<int> place(graph_.nodes.size());
    for (size_t i = 0; i < graph_.order.size(); ++i) {
      const Node& unit = graph_.unit(graph_.order[i]);
      if (unit.members.empty()) place[graph_.order[i]] = static_cast<int>(i);
      for (int member : unit.members) place[member] = static_cast<int>(i);
    }
    seconds_.resize(graph_.nodes.size() + graph_.fused.size());
    for (size_t i = 0; i < graph_.order.size(); ++i) {
      const Node& unit = graph_.unit(graph_.order[i]);
      const double seconds = seconds_[graph_.order[i]] = SecondsOf(unit);
      if (unit.runs_backward) pass_seconds_ += 2 * seconds;
      pass_seconds_ += seconds;
      Candidate candidate{graph_.order[i], 0, seconds};
      candidate.place = static_cast<int>(i);
      bool inner = unit.runs_backward && !unit.setup->is_source() && !unit.setup->is_loss() && !unit.setup->is_view();
      for (size_t t = 0; t < unit.tops.size(); ++t) {
        const Value& top = graph_.values[unit.tops[t]];
        inner &= unit.loss_weights[t] == 0 && !top.uses.empty() && !top.is_output;
        candidate.bytes += top.spec.bytes();
        for (const Value::Use& use : top.uses) candidate.last_reader = std::max(candidate.last_reader, place[use.node]);
      }
      for (const TensorSpec& saved : unit.plan->saved()) candidate.bytes += saved.bytes();
      if (inner) candidates_.push_back(candidate);
    }
  }

  void Apply(const std::vector<bool>& again) {
    for (size_t i = 0; i < candidates_.size(); ++i)
      graph_.unit(candidates_[i].unit).recompute = !again.empty() && again[i];
    // A view is as much kept as what it shows.
    std::vector<int> maker(graph_.values.size(), -1);
    for (int u : graph_.order) {
      Node& unit = graph_.unit(u);
      for (int v : unit.tops) maker[v] = u;
      if (unit.setup->is_view()) unit.recompute = graph_.unit(maker[unit.bottoms[0]]).recompute;
    }
  }

  // None where it takes more bytes or seconds than that.
  std::optional<Trial> Try(std::vector<bool> again, size_t most_bytes, double most_seconds) {
    ++trials_;
    Apply(again);
    c_.net.program = {};
    Schedule(c_);
    Trial trial{std::move(again)};
    for (const Step& step : c_.net.program.backward) {
      if (step.kind == StepKind::kForward) trial.seconds += seconds_[step.node];
    }
    if (trial.seconds > most_seconds || !PlanMemoryWithin(c_, most_bytes)) return std::nullopt;
    trial.arena = c_.net.program.arena_bytes;
    return trial;
  }

  // One that is to be as good as `best`.
  std::optional<Trial> Try(std::vector<bool> again, const Trial& best) {
    return Fits(best) ? Try(std::move(again), limit_ - parameters_, best.seconds)
                      : Try(std::move(again), best.arena, std::numeric_limits<double>::infinity());
  }

  // All candidates at or below `price` seconds a byte whose results do not leave their one of `count` segments.
  std::vector<bool> Segments(int count, double price) const {
    double total = 0;
    for (const Candidate& candidate : candidates_) total += static_cast<double>(candidate.bytes);
    std::vector<int> ends;  // the places that end segments
    double sum = 0;
    for (const Candidate& candidate : candidates_) {
      sum += static_cast<double>(candidate.bytes);
      if (sum >= total * static_cast<double>(ends.size() + 1) / count) ends.push_back(candidate.place);
    }
    std::vector<bool> again;
    for (const Candidate& candidate : candidates_) {
      const auto end = std::lower_bound(ends.begin(), ends.end(), candidate.place);
      const bool last = end == ends.end() || end + 1 >= ends.end();
      const bool leaves = end != ends.end() && candidate.last_reader > *end;
      again.push_back(candidate.seconds <= price * static_cast<double>(candidate.bytes) &&
                      (count == 1 || (!last && !leaves)));
    }
    return again;
  }

  // The trial that meets the limit with the least work; if none does, the one that takes the least memory.
  Trial Search(const Trial& whole) {
    std::vector<double> prices;
    for (const Candidate& candidate : candidates_) {
      prices.push_back(candidate.seconds / static_cast<double>(std::max<size_t>(candidate.bytes, 1)));
    }
    std::sort(prices.begin(), prices.end());
    Trial best = whole;
    std::set<std::vector<bool>> tried;
    for (const int eighths : {1, 2, 3, 4, 5, 6, 7, 8}) {
      if (prices.empty()) break;
      const double price = prices[(prices.size() * eighths + 7) / 8 - 1];
      for (int count = 1; count <= static_cast<int>(candidates_.size()); count += std::max(1, count / 2)) {
        std::vector<bool> again = Segments(count, price);
        if (!tried.insert(again).second) {
          ++trials_;
          continue;
        }
        std::optional<Trial> trial = Try(std::move(again), best);
        const bool better = trial && (Fits(best) ? trial->seconds < best.seconds : trial->arena < best.arena);
        if (better) best = *std::move(trial);
      }
    }
    return best;
  }

  Trial Refine(Trial best) {
    if (!Fits(best)) return best;
    const int units = static_cast<int>(graph_.order.size());
    const int most = units <= kManyUnits ? kMostTrials : static_cast<int>(int64_t{kMostTrials} * kManyUnits / units);
    std::vector<size_t> dearest(candidates_.size());
    for (size_t i = 0; i < dearest.size(); ++i) dearest[i] = i;
    std::stable_sort(dearest.begin(), dearest.end(),
                     [&](size_t a, size_t b) { return candidates_[a].seconds > candidates_[b].seconds; });
    for (size_t i : dearest) {
      if (trials_ >= most) break;
      if (!best.again[i]) continue;
      std::vector<bool> less = best.again;
      less[i] = false;
      std::optional<Trial> trial = Try(std::move(less), best);
      if (trial) best = *std::move(trial);
    }
    return best;
  }

  static std::string Limit(const Compilation& c, size_t limit) {
    return c.options.memory_limit > 0 ? "memory_limit " + FormatBytes(limit)
                                      : FormatBytes(limit) + " that are free on this device";
  }

  void Tell(const Trial& whole, const Trial& best) {
    int units = 0;
    for (int u : graph_.order) units += graph_.unit(u).recompute && !graph_.unit(u).setup->is_view();
    const int percent = static_cast<int>(100 * best.seconds / pass_seconds_ + 0.5);
    c_.diagnostics.Note(c_.options.memory_limit_at,
                        "recompute: " + std::to_string(units) + " of " + std::to_string(graph_.order.size()) +
                            " units of layers run again in the backward pass, about " + std::to_string(percent) +
                            " % more work: " + FormatBytes(parameters_ + best.arena) + " instead of " +
                            FormatBytes(parameters_ + whole.arena) + ", within the " + Limit(c_, limit_));
  }

  void Refuse(const Trial& least) {
    const bool recomputes = c_.options.recompute == Recompute::kAuto;
    const size_t bytes = parameters_ + least.arena;  // told to the last one, as a limit that would do
    c_.diagnostics.Error(c_.options.memory_limit_at,
                         "the net takes " + std::to_string(bytes) + " B (" + FormatBytes(bytes) + ") of memory" +
                             (recomputes ? ", even where layers run again in the backward pass" : "") + " (" +
                             FormatBytes(parameters_) +
                             " of it parameters and what is kept beside them), more than the " + Limit(c_, limit_) +
                             "; " + (recomputes ? "" : "set recompute: AUTO, or ") +
                             "lower batch_size (and raise iter_size to keep the effective batch)" +
                             (c_.options.precision == Precision::kF32 ? ", or set precision: BF16" : ""));
  }

  Compilation& c_;
  Graph& graph_;
  size_t limit_;
  size_t parameters_ = 0;  // bytes outside the arena
  double pass_seconds_ = 0;
  std::vector<double> seconds_;  // by unit
  int trials_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace

void ChooseRecompute(Compilation& c) {
  const bool limited = c.options.memory_limit > 0 || c.options.recompute == Recompute::kAuto;
  if (limited && c.options.backward && !c.options.keep_all) Chooser(c).Run();
}

}  // namespace crema
