#include "report/timing_table.h"

#include <algorithm>
#include <numeric>

#include "base/number_text.h"
#include "base/text_table.h"
#include "report/step_info.h"

namespace crema {

namespace {

// In 1e9 a second; empty for none.
std::string Rate(double amount, double seconds) {
  if (amount <= 0 || seconds <= 0) return "";
  const double rate = amount / seconds / 1e9;
  return FormatNumber(rate, rate < 9.995 ? "%.2f" : rate < 99.95 ? "%.1f" : "%.0f");
}

std::string PassLine(const char* name, const std::vector<double>& sums) {
  const auto [low, high] = std::minmax_element(sums.begin(), sums.end());
  return std::string(name) + FormatSeconds(Median(sums)) + "  (" + FormatSeconds(*low) + " to " + FormatSeconds(*high) +
         ")\n";
}

// What is done in one direction.
struct Part {
  bool present = false;
  double seconds = 0, flops = 0, bytes = 0;

  void Add(const Part& other) {
    present |= other.present;
    seconds += other.seconds;
    flops += other.flops;
    bytes += other.bytes;
  }
};

struct Row {
  double place = 0;  // rows stand in the order of the forward pass
  const StepInfo* info = nullptr;
  Part forward, backward;
};

class Rows {
 public:
  Rows(const CompiledNet& net, const std::vector<StepInfo>& infos, const std::vector<double>& seconds)
      : infos_(infos), seconds_(seconds) {
    const std::vector<Step>& forward = net.program.forward;
    std::vector<size_t> row_of(net.graph.nodes.size() + net.graph.fused.size());
    for (size_t i = 0; i < forward.size(); ++i) {
      if (forward[i].node >= 0) row_of[forward[i].node] = rows_.size();
      rows_.push_back({static_cast<double>(i), &infos[i], PartOf(i), {}});
    }
    // Sums and reorders of gradients run before the backward step that wants them, and so belong behind its layer.
    std::vector<size_t> waiting;
    double place = 0;
    for (size_t j = 0; j < net.program.backward.size(); ++j) {
      const size_t i = forward.size() + j;
      if (net.program.backward[j].kind != StepKind::kBackward) {
        waiting.push_back(i);
        continue;
      }
      Row& row = rows_[row_of[net.program.backward[j].node]];
      row.backward = PartOf(i);
      place = row.place;
      Place(waiting, place + 0.5);
    }
    Place(waiting, place - 0.5);
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.place < b.place; });
  }

  const std::vector<Row>& list() const { return rows_; }

 private:
  Part PartOf(size_t i) const { return {true, seconds_[i], infos_[i].flops, static_cast<double>(infos_[i].bytes)}; }

  void Place(std::vector<size_t>& steps, double place) {
    for (size_t k = steps.size(); k-- > 0;) rows_.push_back({place, &infos_[steps[k]], {}, PartOf(steps[k])});
    steps.clear();
  }

  const std::vector<StepInfo>& infos_;
  const std::vector<double>& seconds_;
  std::vector<Row> rows_;
};

void AddCells(const Part& part, std::vector<std::string>& cells) {
  if (!part.present) {
    cells.insert(cells.end(), 3, "");
    return;
  }
  cells.insert(cells.end(),
               {FormatSeconds(part.seconds), Rate(part.flops, part.seconds), Rate(part.bytes, part.seconds)});
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string TimingTable(const CompiledNet& net, std::span<const StepEvent> events, int64_t items) {
  const int forward_steps = static_cast<int>(net.program.forward.size());
  std::vector<std::vector<double>> times(net.program.steps());  // by step and pass
  std::vector<double> forward, backward;                        // by pass
  int last = net.program.steps();
  for (const StepEvent& event : events) {
    if (event.step == 0) forward.push_back(0);
    if (event.step >= forward_steps && (last < forward_steps || last >= event.step)) backward.push_back(0);
    std::vector<double>& passes = event.step < forward_steps ? forward : backward;
    passes.back() += event.seconds();
    times[event.step].resize(passes.size());
    times[event.step].back() += event.seconds();  // of all turns
    last = event.step;
  }
  std::vector<double> seconds;
  for (std::vector<double>& list : times) seconds.push_back(Median(std::move(list)));

  const std::vector<StepInfo> infos = DescribeSteps(net);
  const Rows rows(net, infos, seconds);
  Part all_forward, all_backward;
  for (const Row& row : rows.list()) {
    all_forward.Add(row.forward);
    all_backward.Add(row.backward);
  }
  const double total = all_forward.seconds + all_backward.seconds;

  std::vector<std::string> headings = {"layer", "type", "kernel", ">forward", ">GFLOP/s", ">GB/s"};
  if (!backward.empty()) headings.insert(headings.end(), {">backward", ">GFLOP/s", ">GB/s"});
  headings.push_back(">share");
  TextTable table(headings);
  const auto add = [&](std::vector<std::string> cells, const Part& f, const Part& b) {
    AddCells(f, cells);
    if (!backward.empty()) AddCells(b, cells);
    cells.push_back(FormatPercent(f.seconds + b.seconds, total));
    table.AddRow(std::move(cells));
  };
  for (const Row& row : rows.list()) {
    add({row.info->name, row.info->type, row.info->kernel}, row.forward, row.backward);
  }
  table.AddRule();
  add({"total", "", ""}, all_forward, all_backward);

  std::string text = table.ToString();
  if (forward.empty()) return text;
  text += "\n" + PassLine("forward   ", forward);
  // Of all passes together: waits for data come in bursts, which medians leave out.
  double all = std::accumulate(forward.begin(), forward.end(), 0.0);
  if (backward.size() == forward.size()) {
    std::vector<double> both = forward;
    for (size_t i = 0; i < both.size(); ++i) both[i] += backward[i];
    text += PassLine("backward  ", backward) + PassLine("both      ", both);
    all = std::accumulate(both.begin(), both.end(), 0.0);
  }
  if (items > 0 && all > 0) {
    text += "items     " + FormatScaled(static_cast<double>(items) * static_cast<double>(forward.size()) / all) +
            " a second\n";
  }
  return text;
}

}  // namespace crema
