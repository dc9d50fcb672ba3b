#include "report/cluster_summary.h"

#include <algorithm>

#include "base/number_text.h"
#include "base/short_name.h"
#include "base/text_table.h"

namespace crema {

std::vector<std::string> SummaryLines(const ClusterSummary& summary) {
  // Nobody is late in one, and each meets another one in nearly all rounds.
  const bool tournament =
      std::any_of(summary.workers.begin(), summary.workers.end(), [](const auto& worker) { return worker.score; });
  std::vector<std::string> headings = {">place", "worker", ">examples", ">examples/s", ">train%",
                                       ">wait%", ">comm%", ">MB out",   ">MB in"};
  headings.push_back(tournament ? ">score" : ">rounds");
  headings.push_back(tournament ? ">won" : ">late");
  headings.push_back("");
  TextTable table(headings);
  for (const ClusterSummary::Worker& worker : summary.workers) {
    std::vector<std::string> row = {
        std::to_string(worker.place),
        ShortName(worker.name, 16),
        std::to_string(worker.examples),
        FormatNumber(worker.seconds > 0 ? static_cast<double>(worker.examples) / worker.seconds : 0, "%.1f"),
        FormatPercent(worker.trained, worker.seconds, "%.1f"),
        FormatPercent(worker.waited, worker.seconds, "%.1f"),
        FormatPercent(worker.communicated, worker.seconds, "%.1f"),
        FormatMegabytes(worker.bytes_sent),
        FormatMegabytes(worker.bytes_received)};
    if (tournament) {
      row.push_back(worker.score ? FormatNumber(*worker.score, "%.4g") : "-");
      row.push_back(std::to_string(worker.rounds_won) + "/" + std::to_string(worker.rounds_met));
    } else {
      row.push_back(std::to_string(worker.rounds));
      row.push_back(std::to_string(worker.rounds_late));
    }
    row.push_back(worker.left ? "left" : "");
    table.AddRow(std::move(row));
  }
  return table.Lines();
}

}  // namespace crema
