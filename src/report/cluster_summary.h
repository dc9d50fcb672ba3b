// The table at the end of a training on several machines.
#ifndef CREMA_REPORT_CLUSTER_SUMMARY_H_
#define CREMA_REPORT_CLUSTER_SUMMARY_H_

#include <string>
#include <vector>

#include "crema/observer.h"

namespace crema {

// Headings, a rule, and a line for each worker, of some 100 columns. Shares are of the time that a worker was there.
// Of tournaments with the last score of each, and of the rounds in which it met another one those that it won.
std::vector<std::string> SummaryLines(const ClusterSummary& summary);

}  // namespace crema

#endif  // CREMA_REPORT_CLUSTER_SUMMARY_H_
