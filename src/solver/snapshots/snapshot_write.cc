#include <google/protobuf/io/zero_copy_stream.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/atomic_file.h"
#include "base/check.h"
#include "device/host_copies.h"
#include "schema/blob_numbers.h"
#include "solver/snapshots/checksum.h"
#include "solver/snapshots/snapshot.h"
#include "solver/snapshots/snapshot_hdf5.h"

namespace crema {

namespace {

constexpr size_t kBufferBytes = 1 << 20;

// Lets protobuf serialise straight into a file. A failed write is kept and thrown by Finish, so that no exception
// crosses protobuf's code.
class AtomicFileStream : public google::protobuf::io::ZeroCopyOutputStream {
 public:
  explicit AtomicFileStream(AtomicFile* file) : file_(file), buffer_(new char[kBufferBytes]) {}

  bool Next(void** data, int* size) override {
    if (!Flush()) return false;
    *data = buffer_.get();
    *size = static_cast<int>(kBufferBytes);
    used_ = kBufferBytes;
    return true;
  }
  void BackUp(int count) override { used_ -= static_cast<size_t>(count); }
  int64_t ByteCount() const override { return static_cast<int64_t>(file_->bytes() + used_); }

  void Finish() {
    Flush();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  bool Flush() {
    if (failure_) return false;
    try {
      file_->Write(buffer_.get(), used_);
    } catch (...) {
      failure_ = std::current_exception();
    }
    used_ = 0;
    return !failure_;
  }

  AtomicFile* file_;
  std::unique_ptr<char[]> buffer_;
  size_t used_ = 0;
  std::exception_ptr failure_;
};

void Append(const google::protobuf::MessageLite& message, AtomicFile* file) {
  AtomicFileStream stream(file);
  const bool whole = message.SerializeToZeroCopyStream(&stream);
  stream.Finish();
  CREMA_CHECK(whole) << "a piece of a snapshot has " << message.ByteSizeLong() << " bytes";
}

void CheckSize(uint64_t bytes, const std::string& path) {
  if (bytes <= kProtobufLimit) return;
  throw EnvironmentError("cannot write " + path + ": it would have " + std::to_string(bytes >> 20) +
                         " MiB, and protobuf files end at 2048 MiB; set snapshot_format: HDF5");
}

SolverState WithHistory(const StoredHistory& history) {
  SolverState piece;
  ToBlob(history, piece.add_history());
  return piece;
}

const char* Ending(SnapshotFormat format) { return format == SolverParameter::HDF5 ? ".h5" : ""; }

// Where the state finds no room its model does not stay behind, or beside an earlier state.
void CommitBoth(AtomicFile* model, AtomicFile* state) {
  model->Flush();
  state->Flush();
  model->Commit();
  state->Commit();
}

WrittenFiles WriteHdf5Snapshot(const std::string& prefix, const NetParameter& model, SolverState state,
                               const std::vector<StoredHistory>& history) {
  const std::string model_path = ModelPath(prefix, state.iter(), SolverParameter::HDF5);
  AtomicFile model_file(model_path);
  WriteHdf5Model(model_file.temporary(), model);
  const Checksum written = ChecksumOf(model_file.temporary());

  state.set_learned_net(model_path);
  state.set_model_bytes(written.bytes);
  state.set_model_crc32(written.crc32);
  AtomicFile state_file(StatePath(prefix, state.iter(), SolverParameter::HDF5));
  const uint32_t state_crc32 = WriteHdf5State(state_file.temporary(), std::move(state), history);
  std::error_code error;
  const uint64_t state_bytes = std::filesystem::file_size(state_file.temporary(), error);
  CommitBoth(&model_file, &state_file);
  return {written.bytes + (error ? 0 : state_bytes), state_crc32};
}

}  // namespace

StoredHistory::StoredHistory(Tensor plain) : values(std::move(plain)), shape(values.shape()) {}

void ToBlob(const StoredHistory& stored, BlobProto* blob) {
  BlobShape* const shape = blob->mutable_shape();
  for (const int64_t extent : stored.shape.dims()) shape->add_dim(extent);
  CopyPlainOut(*stored.device, stored.layout, stored.values, MakeNumbers(blob->mutable_data(), stored.shape.count()));
}

std::string ModelPath(const std::string& prefix, int iteration, SnapshotFormat format) {
  return prefix + "_iter_" + std::to_string(iteration) + ".caffemodel" + Ending(format);
}

std::string StatePath(const std::string& prefix, int iteration, SnapshotFormat format) {
  return prefix + "_iter_" + std::to_string(iteration) + ".solverstate" + Ending(format);
}

std::string BestModelPath(const std::string& prefix, SnapshotFormat format) {
  return prefix + "_best.caffemodel" + Ending(format);
}

std::string EmaModelPath(const std::string& prefix, SnapshotFormat format) {
  return prefix + "_ema.caffemodel" + Ending(format);
}

void WriteModel(const std::string& path, const NetParameter& model) {
  if (IsHdf5Snapshot(path)) {
    AtomicFile file(path);
    WriteHdf5Model(file.temporary(), model);
    return file.Commit();
  }
  CheckSize(model.ByteSizeLong(), path);
  AtomicFile file(path);
  Append(model, &file);
  file.Commit();
}

WrittenFiles WriteSnapshot(const std::string& prefix, const NetParameter& model, SolverState state,
                           const std::vector<StoredHistory>& history, SnapshotFormat format) {
  if (format == SolverParameter::HDF5) return WriteHdf5Snapshot(prefix, model, std::move(state), history);
  const std::string model_path = ModelPath(prefix, state.iter()), state_path = StatePath(prefix, state.iter());
  CheckSize(model.ByteSizeLong(), model_path);
  uint64_t history_bytes = state.ByteSizeLong();
  for (const StoredHistory& one : history) history_bytes += one.shape.count() * sizeof(float) + 64;
  CheckSize(history_bytes, state_path);

  AtomicFile model_file(model_path);
  Append(model, &model_file);

  // One message may be written in pieces: readers merge them. The first piece says that the file is crema's and the
  // last one, the checksum, that it is whole.
  SolverState first, model_check, last;
  first.set_solver_type(state.solver_type());
  state.clear_solver_type();
  state.set_learned_net(model_path);
  model_check.set_model_bytes(model_file.bytes());
  model_check.set_model_crc32(model_file.crc32());
  AtomicFile state_file(state_path);
  Append(first, &state_file);
  Append(state, &state_file);
  for (const StoredHistory& one : history) Append(WithHistory(one), &state_file);
  Append(model_check, &state_file);
  last.set_state_crc32(state_file.crc32());
  Append(last, &state_file);
  CommitBoth(&model_file, &state_file);
  return {model_file.bytes() + state_file.bytes(), last.state_crc32()};
}

}  // namespace crema
