#include "report/cluster_summary.h"

#include <cstdio>

#include "base/short_name.h"

namespace crema {

namespace {

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

std::vector<std::string> SummaryLines(const ClusterSummary& summary) {
  char line[400];
  std::snprintf(line, sizeof line, "%5s %-16s %10s %10s %6s %4s %6s %6s %6s %8s %8s", "place", "worker", "examples",
                "examples/s", "rounds", "late", "train%", "wait%", "comm%", "MB out", "MB in");
  std::vector<std::string> lines = {line};
  for (const ClusterSummary::Worker& worker : summary.workers) {
    std::snprintf(line, sizeof line, "%5u %-16s %10llu %10.1f %6llu %4llu %5.1f%% %5.1f%% %5.1f%% %8.1f %8.1f%s",
                  worker.place, ShortName(worker.name, 16).c_str(), static_cast<unsigned long long>(worker.examples),
                  worker.seconds > 0 ? static_cast<double>(worker.examples) / worker.seconds : 0,
                  static_cast<unsigned long long>(worker.rounds), static_cast<unsigned long long>(worker.rounds_late),
                  Percent(worker.trained, worker.seconds), Percent(worker.waited, worker.seconds),
                  Percent(worker.communicated, worker.seconds), static_cast<double>(worker.bytes_sent) / 1e6,
                  static_cast<double>(worker.bytes_received) / 1e6, worker.left ? " left" : "");
    lines.push_back(line);
  }
  return lines;
}

}  // namespace crema
