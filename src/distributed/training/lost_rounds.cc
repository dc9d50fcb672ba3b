#include "distributed/training/lost_rounds.h"

#include "distributed/averaging/round_formula.h"

namespace crema {

std::string WhyNobodyHasRounds(const DistributedParameter& settings, const StateLayout& layout,
                               bool updates_with_history) {
  if (HasOuterMomentum(settings) && layout.velocity == 0) return "workers do not know the outer momentum";
  if (updates_with_history) return "workers do not know the solver's history";
  // Those of this machine died with the coordinator that started them.
  if (settings.endpoint().empty()) return "no worker is left";
  return "";
}

std::string GiveUpRounds(const std::string& why_not, JournalReplay* replay) {
  std::optional<uint64_t> last = replay->out_of_reach;
  if (!replay->lost.empty() && !why_not.empty()) {
    last = replay->lost.back().version();
    replay->lost.clear();
  }
  if (!last) return "";
  return "rounds " + std::to_string(replay->version + 1) + " to " + std::to_string(*last) +
         " are lost and will be trained again: the snapshot does not have them, and " +
         (replay->out_of_reach ? "the journal begins behind it" : why_not);
}

}  // namespace crema
