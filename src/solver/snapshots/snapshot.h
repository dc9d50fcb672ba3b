// Snapshots on disk: <prefix>_iter_N.caffemodel (NetParameter) and <prefix>_iter_N.solverstate (SolverState), both
// Caffe's binary formats, or in HDF5 (solver/snapshots/snapshot_hdf5.h). crema adds fields from 10000 on to the state,
// which Caffe skips.
#ifndef CREMA_SOLVER_SNAPSHOTS_SNAPSHOT_H_
#define CREMA_SOLVER_SNAPSHOTS_SNAPSHOT_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "crema/net.pb.h"
#include "crema/observer.h"
#include "crema/parameter_layout.h"
#include "crema/solver.pb.h"
#include "crema/tensor.h"
#include "device/device.h"

namespace crema {

using SnapshotFormat = SolverParameter::SnapshotFormat;

// Bytes of a file in protobuf's binary form.
inline constexpr uint64_t kProtobufLimit = std::numeric_limits<int32_t>::max();

// With ".h5" behind them in HDF5.
std::string ModelPath(const std::string& prefix, int iteration, SnapshotFormat format = SolverParameter::BINARYPROTO);
std::string StatePath(const std::string& prefix, int iteration, SnapshotFormat format = SolverParameter::BINARYPROTO);
std::string BestModelPath(const std::string& prefix, SnapshotFormat format);
std::string EmaModelPath(const std::string& prefix, SnapshotFormat format);

// One history of an update rule, stored as the parameter it belongs to; files hold it plain, in the parameter's shape.
struct StoredHistory {
  StoredHistory(Tensor values, Shape shape, const ParameterLayout* layout, Device& device)
      : values(std::move(values)), shape(std::move(shape)), layout(layout), device(&device) {}
  StoredHistory(Tensor plain);  // NOLINT: a tensor is one

  Tensor values;
  Shape shape;
  const ParameterLayout* layout = nullptr;
  Device* device = &CpuDevice();  // in whose memory the values lie
};

// The values, plain, and their shape, that of a scalar, too.
void ToBlob(const StoredHistory& stored, BlobProto* blob);

// Writes a .caffemodel, or a .caffemodel.h5; replaces an older file only when whole. Throws EnvironmentError.
void WriteModel(const std::string& path, const NetParameter& model);

struct WrittenFiles {
  uint64_t bytes = 0;  // of both
  uint32_t state_crc32 = 0;
};
// Writes the model, then the state that points to it; each replaces an older file only when whole. `state` has no
// history yet (it comes from `history`, so that no second copy is made) and no learned_net, model_bytes, model_crc32.
// Throws EnvironmentError.
WrittenFiles WriteSnapshot(const std::string& prefix, const NetParameter& model, SolverState state,
                           const std::vector<StoredHistory>& history,
                           SnapshotFormat format = SolverParameter::BINARYPROTO);

struct LoadedState {
  std::string state_path, model_path;
  SolverState state;
  bool exact = false;  // crema's own: has data positions, seed and the model's checksum
};

// Reads and checks a .solverstate, or a .solverstate.h5, and finds its model: learned_net as written, else beside the
// state. Throws UserError that says what is wrong with the pair, or what the file is instead.
LoadedState LoadState(const std::string& path);

// The whole pair of the highest iteration with this prefix, where it is there in both formats in the preferred one.
// Damaged ones are told to `notice` and passed over. False where there is none. Throws UserError where one of a lower
// iteration was written later: which run is to go on is not known.
bool LoadNewestState(const std::string& prefix, const std::function<void(const Diagnostic&)>& notice,
                     LoadedState* newest, SnapshotFormat preferred = SolverParameter::BINARYPROTO);

// Copies the state's history into `history`; throws UserError where number, shapes or solver type differ.
void RestoreHistory(const LoadedState& loaded, const std::string& solver_type,
                    const std::vector<StoredHistory>& history);

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_SNAPSHOT_H_
