#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/hdf5.h"
#include "base/input_file.h"
#include "base/paths.h"
#include "device/host_copies.h"
#include "schema/blob_shape.h"
#include "solver/snapshots/checksum.h"
#include "solver/snapshots/prefix_files.h"
#include "solver/snapshots/snapshot.h"
#include "solver/snapshots/snapshot_hdf5.h"
#include "solver/snapshots/state_check.h"

namespace crema {

namespace {

[[noreturn]] void Refuse(const std::string& path, const std::string& message) {
  throw UserError(Location{path, 0, 0}, message);
}

bool Parse(const std::string& path, google::protobuf::MessageLite* message) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) FailToRead(path, errno);
  google::protobuf::io::FileInputStream stream(fd, 1 << 20);
  stream.SetCloseOnDelete(true);
  const bool parsed = message->ParseFromZeroCopyStream(&stream);
  if (stream.GetErrno() != 0) FailToRead(path, stream.GetErrno());
  return parsed;
}

std::string StateBeside(const std::string& model) {
  constexpr std::string_view kModel = ".caffemodel";
  if (!model.ends_with(kModel)) return {};
  const std::string state = model.substr(0, model.size() - kModel.size()) + ".solverstate";
  return Exists(state) ? state : std::string();
}

// Says what a file is that was given as a .solverstate.
[[noreturn]] void FailAsOther(const std::string& path) {
  NetParameter net;
  if (path.ends_with(".caffemodel") || (Parse(path, &net) && (net.layer_size() > 0 || net.layers_size() > 0))) {
    const std::string state = StateBeside(path);
    Refuse(path, "these are the weights of a net, not a snapshot of training; " +
                     (state.empty() ? "start a new training from them with --weights, or give the .solverstate"
                                    : "resume from " + state + ", or start a new training from them with --weights"));
  }
  Refuse(path, "not a .solverstate, or damaged; give the <prefix>_iter_N.solverstate that training wrote");
}

void CheckModel(const LoadedState& loaded) {
  const Checksum sum = ChecksumOf(loaded.model_path);
  if (sum.bytes != loaded.state.model_bytes() || sum.crc32 != loaded.state.model_crc32()) {
    Refuse(loaded.model_path, "damaged, or not the model that " + loaded.state_path + " was written with: it has " +
                                  std::to_string(sum.bytes) + " bytes and expected are " +
                                  std::to_string(loaded.state.model_bytes()) +
                                  (sum.bytes == loaded.state.model_bytes() ? " with another checksum" : "") +
                                  "; resume from another snapshot");
  }
}

// The checksum is the last field of the file and covers all before it.
void CheckState(const LoadedState& loaded) {
  const std::string& path = loaded.state_path;
  if (!loaded.state.has_state_crc32()) Refuse(path, "damaged: its end is missing; resume from another snapshot");
  SolverState last;
  last.set_state_crc32(loaded.state.state_crc32());
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) FailToRead(path, errno);
  const Checksum sum = ChecksumOf(path, static_cast<uint64_t>(file.st_size) - last.ByteSizeLong());
  if (sum.crc32 != loaded.state.state_crc32()) {
    Refuse(path, "damaged: its checksum does not fit its contents; resume from another snapshot");
  }
}

}  // namespace

LoadedState LoadState(const std::string& path) {
  LoadedState loaded;
  loaded.state_path = path;
  CheckRegularFile(path, ".solverstate");
  SolverState& state = loaded.state;
  const bool hdf5 = BeginsAsHdf5(path);
  if (hdf5) {
    state = ReadHdf5State(path);
  } else if (!Parse(path, &state) || !state.has_iter()) {
    FailAsOther(path);
  }
  // Any of ours: damage may hide one of them.
  loaded.exact = state.has_solver_type() || state.has_model_crc32() || state.has_state_crc32();
  if (loaded.exact && !hdf5) CheckState(loaded);
  if (const std::string damage = DamageOf(state); !damage.empty()) {
    Refuse(path, "damaged: " + damage + "; resume from another snapshot");
  }

  const std::string beside = DirectoryOf(path) + "/" + FileName(state.learned_net());
  if (state.learned_net().empty()) Refuse(path, "names no model (learned_net is empty); it cannot be resumed from");
  loaded.model_path = Exists(state.learned_net()) ? state.learned_net() : beside;
  if (!Exists(loaded.model_path)) {
    Refuse(path, "its model is neither at " + state.learned_net() + " nor at " + beside + "; copy it beside the state");
  }
  if (loaded.exact) {
    // A state that was moved together with its model may find an unrelated file under the old name.
    if (loaded.model_path != beside && Exists(beside)) {
      try {
        CheckModel(loaded);
      } catch (const std::runtime_error&) {
        loaded.model_path = beside;
      }
    }
    CheckModel(loaded);
  }
  return loaded;
}

bool LoadNewestState(const std::string& prefix, const std::function<void(const Diagnostic&)>& notice,
                     LoadedState* newest, SnapshotFormat preferred) {
  const std::vector<StateFile> found = FindStates(prefix, preferred);
  const StateFile* taken = nullptr;
  for (const StateFile& state : found) {
    // Of those below it only what was written later counts.
    if (taken && (state.iteration == taken->iteration || state.written <= taken->written)) continue;
    try {
      LoadedState loaded = LoadState(state.path);
      if (!taken) {
        *newest = std::move(loaded);
        taken = &state;
        continue;
      }
    } catch (const std::runtime_error& error) {
      Diagnostic passed_over;
      passed_over.severity = Diagnostic::Severity::kWarning;
      passed_over.message = std::string("passing over a snapshot: ") + error.what();
      notice(passed_over);
      continue;
    }
    const bool in_future = state.written > std::filesystem::file_time_type::clock::now();
    const std::string relation = in_future ? "whose time lies in the future, so they may be of different runs"
                                           : "which was written later, so they are of different runs";
    const std::string touch =
        in_future ? "are of one run, touch " + state.path + " and then " : std::string("were copied, touch ");
    Refuse(taken->path, "has more iterations than " + state.path + ", " + relation +
                            "; go on with one of them by --snapshot=FILE, or move the files of the other run away "
                            "(where they " +
                            touch + taken->path + ")");
  }
  return taken != nullptr;
}

void RestoreHistory(const LoadedState& loaded, const std::string& solver_type,
                    const std::vector<StoredHistory>& history) {
  const SolverState& state = loaded.state;
  if (state.has_solver_type() && state.solver_type() != solver_type) {
    Refuse(loaded.state_path, "written by solver type \"" + state.solver_type() + "\" but the solver file says \"" +
                                  solver_type + "\"; set type: \"" + state.solver_type() +
                                  "\", or start a new training from its model with --weights=" + loaded.model_path);
  }
  if (state.history_size() != static_cast<int>(history.size())) {
    Refuse(loaded.state_path, "holds " + std::to_string(state.history_size()) +
                                  " history blobs but this net and solver type \"" + solver_type + "\" have " +
                                  std::to_string(history.size()) +
                                  "; it belongs to another net or another solver type, or is damaged");
  }
  for (int i = 0; i < state.history_size(); ++i) {
    const BlobProto& blob = state.history(i);
    const Shape& shape = history[i].shape;
    const bool doubles = blob.data_size() == 0 && blob.double_data_size() > 0;
    const int64_t count = doubles ? blob.double_data_size() : blob.data_size();
    // States older than BlobProto.shape pad shapes to four axes: only the count can be compared.
    const bool same_shape = !blob.has_shape() || ShapeOf(blob) == shape;
    if (!same_shape || count != shape.count()) {
      Refuse(loaded.state_path, "history blob " + std::to_string(i) + " has shape " + ShapeOf(blob).ToString() +
                                    " and " + std::to_string(count) + " values but the net's parameter has shape " +
                                    shape.ToString() + "; it belongs to another net, or is damaged");
    }
    if (doubles) {
      const std::vector<float> floats(blob.double_data().begin(), blob.double_data().end());
      CopyPlainIn(*history[i].device, history[i].layout, floats.data(), history[i].values);
    } else {
      CopyPlainIn(*history[i].device, history[i].layout, blob.data().data(), history[i].values);
    }
  }
}

}  // namespace crema
