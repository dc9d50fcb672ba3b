#include "solver/snapshots/snapshot_hdf5.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/crc32.h"
#include "base/hdf5.h"
#include "base/input_file.h"
#include "crema/error.h"
#include "device/host_copies.h"
#include "schema/blob_numbers.h"
#include "schema/blob_shape.h"

namespace crema {

namespace {

constexpr char kIteration[] = "iter", kModel[] = "learned_net", kStep[] = "current_step", kOwn[] = "crema_state";

constexpr char kAverages[] = "ema";

std::string History(size_t index) { return "history/" + std::to_string(index); }
std::string Average(size_t index) { return std::string(kAverages) + "/" + std::to_string(index); }

[[noreturn]] void Fail(const std::string& path, const std::string& message) {
  throw UserError(Location{path, 0, 0}, message);
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void CheckKind(const Hdf5File& file, const Hdf5File::Names& names) {
  if (Has(names.groups, "history") && Has(names.datasets, kIteration)) return;
  if (Has(names.groups, "data")) {
    Fail(file.path(),
         "these are the weights of a net, not a snapshot of training; give the .solverstate.h5 that was written beside "
         "it, or start a new training from them with --weights");
  }
  Fail(file.path(), "is an HDF5 file, but no .solverstate.h5: that has a dataset \"iter\" and a group \"history\"");
}

// A state of crema that is damaged where its own dataset is named must not pass for one of Caffe, of which nothing can
// be checked.
void RefuseHidden(const std::string& path, const Hdf5File::Names& names) {
  std::vector<std::string> all = names.datasets;
  all.insert(all.end(), names.unreadable.begin(), names.unreadable.end());
  for (const std::string& name : all) {
    if (name == kIteration || name == kStep || name == kModel) continue;
    Fail(path, "damaged: its dataset \"" + name + "\" is none of a state; resume from another snapshot");
  }
  if (ReadFileText(path).find(kOwn) == std::string::npos) return;
  Fail(path, std::string("damaged: its dataset \"") + kOwn + "\" cannot be found; resume from another snapshot");
}

// All of a group, whose datasets `name_of` names.
void ReadBlobs(const Hdf5File& file, const std::string& group, std::string (*name_of)(size_t),
               google::protobuf::RepeatedPtrField<BlobProto>* blobs, uint32_t* crc32) {
  const uintmax_t file_bytes = std::filesystem::file_size(file.path());
  const size_t count = file.List(group).datasets.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string name = name_of(i);
    const Shape shape(file.Extents(name));
    // Neither Caffe nor crema compresses: what is larger than the file is none of its blobs.
    if (shape.count() > static_cast<int64_t>(std::min<uintmax_t>(file_bytes / sizeof(float), INT_MAX))) {
      Fail(file.path(), "damaged: its dataset \"" + name + "\" of " + shape.ToString() +
                            " is larger than the file; resume from another snapshot");
    }
    BlobProto* blob = blobs->Add();
    for (const int64_t extent : shape.dims()) blob->mutable_shape()->add_dim(extent);
    blob->mutable_shape();
    file.Read(name, MakeNumbers(blob->mutable_data(), shape.count()));
    *crc32 = Crc32(blob->data().data(), static_cast<size_t>(shape.count()) * sizeof(float), *crc32);
  }
}

}  // namespace

std::optional<std::string> UnfitForHdf5(const std::vector<std::string>& layers) {
  constexpr int kMostSegments = 16;  // that readers follow
  for (const std::string& layer : layers) {
    int segments = 0;
    std::istringstream parts(layer + "/");
    for (std::string part; std::getline(parts, part, '/'); ++segments) {
      if (part.empty() || part == ".") return layer;
    }
    if (segments > kMostSegments) return layer;
    if (std::count(layers.begin(), layers.end(), layer) > 1) return layer;
    // "a/0" of layer "a" is its first blob.
    for (const std::string& other : layers) {
      if (other.size() <= layer.size() + 1 || !other.starts_with(layer + "/")) continue;
      const std::string next = other.substr(layer.size() + 1, other.find('/', layer.size() + 1) - layer.size() - 1);
      if (next.find_first_not_of("0123456789") == std::string::npos) return other;
    }
  }
  return std::nullopt;
}

bool IsHdf5Snapshot(const std::string& path) { return path.ends_with(".h5"); }

void WriteHdf5Model(const std::string& path, const NetParameter& model) {
  const std::unique_ptr<Hdf5Writer> file = CreateHdf5(path);
  file->MakeGroup("data");
  for (const LayerParameter& layer : model.layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      const BlobProto& blob = layer.blobs(i);
      const std::string name = "/" + layer.name() + "/" + std::to_string(i);
      file->Write("data" + name, ShapeOf(blob).dims(), blob.data().data());
      if (blob.diff_size() > 0) file->Write("diff" + name, ShapeOf(blob).dims(), blob.diff().data());
    }
  }
  file->Close();
}

uint32_t WriteHdf5State(const std::string& path, SolverState state, const std::vector<StoredHistory>& history) {
  const std::unique_ptr<Hdf5Writer> file = CreateHdf5(path);
  file->WriteInteger(kIteration, state.iter());
  file->WriteText(kModel, state.learned_net());
  file->WriteInteger(kStep, state.current_step());
  state.clear_state_crc32();
  google::protobuf::RepeatedPtrField<BlobProto> averages;
  averages.Swap(state.mutable_ema());
  if (state.ByteSizeLong() > INT_MAX) {
    throw EnvironmentError("cannot write " + path + ": beside its blobs it would have " +
                           std::to_string(state.ByteSizeLong() >> 20) + " MiB, of which 2047 can be");
  }
  const std::string without = state.SerializeAsString();
  uint32_t crc32 = Crc32(without.data(), without.size());
  if (!averages.empty()) file->MakeGroup(kAverages);
  for (int i = 0; i < averages.size(); ++i) {
    const BlobProto& blob = averages[i];
    file->Write(Average(static_cast<size_t>(i)), ShapeOf(blob).dims(), blob.data().data());
    crc32 = Crc32(blob.data().data(), static_cast<size_t>(blob.data_size()) * sizeof(float), crc32);
  }
  file->MakeGroup("history");
  for (size_t i = 0; i < history.size(); ++i) {
    const StoredHistory& one = history[i];
    std::vector<float> values(static_cast<size_t>(one.shape.count()));
    CopyPlainOut(*one.device, one.layout, one.values, values.data());
    file->Write(History(i), {one.shape.dims().begin(), one.shape.dims().end()}, values.data());
    crc32 = Crc32(values.data(), values.size() * sizeof(float), crc32);
  }
  state.set_state_crc32(crc32);
  file->WriteBytes(kOwn, state.SerializeAsString());
  file->Close();
  return crc32;
}

std::optional<uint32_t> Hdf5StateChecksum(const std::string& path) {
  try {
    SolverState state;
    if (state.ParseFromString(OpenHdf5(path)->ReadBytes(kOwn)) && state.has_state_crc32()) return state.state_crc32();
  } catch (const std::runtime_error&) {
    // Another file, or a damaged one.
  }
  return std::nullopt;
}

SolverState ReadHdf5State(const std::string& path) {
  const std::unique_ptr<Hdf5File> file = OpenHdf5(path);
  const Hdf5File::Names names = file->List("/");
  CheckKind(*file, names);
  SolverState state;
  const bool own = Has(names.datasets, kOwn);
  if (!own) RefuseHidden(path, names);
  if (own && !state.ParseFromString(file->ReadBytes(kOwn))) {
    Fail(path, std::string("damaged: its dataset \"") + kOwn + "\" is no state; resume from another snapshot");
  }
  const auto expected = static_cast<uint32_t>(state.state_crc32());
  state.clear_state_crc32();
  const std::string without = state.SerializeAsString();
  uint32_t crc32 = Crc32(without.data(), without.size());
  const int64_t iteration = file->ReadInteger(kIteration);
  const int64_t step = Has(names.datasets, kStep) ? file->ReadInteger(kStep) : 0;
  const std::string model = Has(names.datasets, kModel) ? file->ReadText(kModel) : "";
  if (iteration != static_cast<int>(iteration) || step != static_cast<int>(step)) {
    Fail(path, "damaged: it is of iteration " + std::to_string(iteration) + " and step " + std::to_string(step) +
                   "; resume from another snapshot");
  }
  const bool same = state.iter() == iteration && state.current_step() == step && state.learned_net() == model;
  state.set_iter(static_cast<int>(iteration));
  state.set_current_step(static_cast<int>(step));
  state.set_learned_net(model);

  if (Has(names.groups, kAverages)) ReadBlobs(*file, kAverages, &Average, state.mutable_ema(), &crc32);
  ReadBlobs(*file, "history", &History, state.mutable_history(), &crc32);
  if (own && (!same || crc32 != expected)) {
    Fail(path, "damaged: its checksum does not fit its contents; resume from another snapshot");
  }
  if (own) state.set_state_crc32(expected);
  return state;
}

}  // namespace crema
