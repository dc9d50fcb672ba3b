#include "report/cluster_summary.h"

#include <algorithm>
#include <cstdio>

#include "base/short_name.h"

namespace crema {

namespace {

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

// Where nobody is late, and each meets another one in nearly all rounds.
std::vector<std::string> LinesOfTournament(const ClusterSummary& summary) {
  char line[400];
  std::snprintf(line, sizeof line, "%5s %-12s %9s %10s %6s %6s %6s %7s %7s %8s %9s", "place", "worker", "examples",
                "examples/s", "train%", "wait%", "comm%", "MB out", "MB in", "score", "won");
  std::vector<std::string> lines = {line};
  for (const ClusterSummary::Worker& worker : summary.workers) {
    char score[40] = "-";
    if (worker.score) std::snprintf(score, sizeof score, "%.4g", *worker.score);
    const std::string won = std::to_string(worker.rounds_won) + "/" + std::to_string(worker.rounds_met);
    std::snprintf(line, sizeof line, "%5u %-12s %9llu %10.1f %5.1f%% %5.1f%% %5.1f%% %7.1f %7.1f %8s %9s%s",
                  worker.place, ShortName(worker.name, 12).c_str(), static_cast<unsigned long long>(worker.examples),
                  worker.seconds > 0 ? static_cast<double>(worker.examples) / worker.seconds : 0,
                  Percent(worker.trained, worker.seconds), Percent(worker.waited, worker.seconds),
                  Percent(worker.communicated, worker.seconds), static_cast<double>(worker.bytes_sent) / 1e6,
                  static_cast<double>(worker.bytes_received) / 1e6, score, won.c_str(), worker.left ? " left" : "");
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::vector<std::string> SummaryLines(const ClusterSummary& summary) {
  const bool tournament =
      std::any_of(summary.workers.begin(), summary.workers.end(), [](const auto& worker) { return worker.score; });
  if (tournament) return LinesOfTournament(summary);
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
