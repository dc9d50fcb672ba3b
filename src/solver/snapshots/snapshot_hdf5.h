// Snapshots in HDF5, as Caffe writes them with snapshot_format: HDF5: weights as /data/<layer>/<blob> (and /diff/...),
// states as /iter, /learned_net, /current_step and /history/<blob>. What Caffe has no place for lies in /crema_state: a
// SolverState in protobuf's binary form, without what lies elsewhere, which Caffe does not look at.
#ifndef CREMA_SOLVER_SNAPSHOTS_SNAPSHOT_HDF5_H_
#define CREMA_SOLVER_SNAPSHOTS_SNAPSHOT_HDF5_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "solver/snapshots/snapshot.h"

namespace crema {

// Whether the path ends as files in HDF5 do.
bool IsHdf5Snapshot(const std::string& path);

// The first of these names of layers with parameters that a path in HDF5 cannot stand for: one with an empty segment or
// ".", one of very many segments, or one where another layer has its blobs.
std::optional<std::string> UnfitForHdf5(const std::vector<std::string>& layers);

// All throw EnvironmentError where the file cannot be written, or this crema has no HDF5.
void WriteHdf5Model(const std::string& path, const NetParameter& model);
// Sets state_crc32 to a checksum of everything else, and returns it.
uint32_t WriteHdf5State(const std::string& path, SolverState state, const std::vector<StoredHistory>& history);

// The whole state with its history. Throws UserError where it is none, is damaged, or its checksum does not fit.
SolverState ReadHdf5State(const std::string& path);
// Its state_crc32 alone; none where it is not there, or no such file.
std::optional<uint32_t> Hdf5StateChecksum(const std::string& path);

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_SNAPSHOT_HDF5_H_
