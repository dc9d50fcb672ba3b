#include "solver/snapshots/kept_snapshots.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "solver/snapshots/snapshot_hdf5.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr auto kFormats = {SolverParameter::BINARYPROTO, SolverParameter::HDF5};

bool HasChecksum(const std::string& path, uint32_t crc32) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  if (IsHdf5Snapshot(path)) return Hdf5StateChecksum(path) == crc32;
  // It ends the file, field and all.
  SolverState last;
  last.set_state_crc32(crc32);
  const std::string expected = last.SerializeAsString();
  std::string end(expected.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(-static_cast<std::streamoff>(end.size()), std::ios::end);
  file.read(end.data(), static_cast<std::streamsize>(end.size()));
  return file.good() && end == expected;
}

}  // namespace

std::string KeptSnapshots::Restore(const LoadedState& loaded) {
  kept_.clear();
  std::error_code ignored;
  const auto is_ours = [&](SnapshotFormat format) {
    return fs::equivalent(loaded.state_path, StatePath(prefix_, loaded.state.iter(), format), ignored);
  };
  if (std::none_of(kFormats.begin(), kFormats.end(), is_ours)) return {};
  kept_.assign(loaded.state.kept_snapshot().begin(), loaded.state.kept_snapshot().end());
  return Add(loaded.state.iter(), loaded.state.state_crc32());
}

void KeptSnapshots::List(SolverState* state) const {
  for (const KeptSnapshot& one : kept_) {
    if (one.iteration() != state->iter()) *state->add_kept_snapshot() = one;
  }
}

std::string KeptSnapshots::Add(int iteration, uint32_t state_crc32) {
  if (keep_ == 0) {
    kept_.clear();
    return {};
  }
  std::erase_if(kept_, [iteration](const KeptSnapshot& one) { return one.iteration() == iteration; });
  KeptSnapshot& added = kept_.emplace_back();
  added.set_iteration(iteration);
  added.set_state_crc32(state_crc32);
  std::string failures;
  for (; kept_.size() > keep_; kept_.pop_front()) {
    const KeptSnapshot& oldest = kept_.front();
    for (const SnapshotFormat format : kFormats) {
      const std::string state = StatePath(prefix_, oldest.iteration(), format);
      if (!HasChecksum(state, oldest.state_crc32())) continue;  // it is gone, or another run's
      // The state last: while it is there, a run that goes on after a kill knows what it has to remove.
      for (const std::string& path : {ModelPath(prefix_, oldest.iteration(), format), state}) {
        std::error_code error;
        fs::remove(path, error);
        if (!error) continue;
        failures += (failures.empty() ? "" : "; ") + path + ": " + error.message();
        break;
      }
    }
  }
  return failures;
}

}  // namespace crema
