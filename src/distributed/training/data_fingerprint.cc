#include "distributed/training/data_fingerprint.h"

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "base/evenly_spread.h"
#include "base/hdf5.h"
#include "base/input_file.h"
#include "base/paths.h"
#include "crema/error.h"
#include "data/databases/record_source.h"
#include "data/files/hdf5_files.h"
#include "data/files/image_list.h"
#include "data/files/video_clip.h"
#include "data/files/window_file.h"
#include "data/loaders/file_order.h"
#include "distributed/journal/digest.h"
#include "solver/nets.h"

namespace crema {

namespace {

constexpr uint64_t kRecords = 64;  // that are looked at

uint64_t FingerprintOf(const RecordSource& source) {
  std::vector<uint64_t> digests = {source.count()};
  ForEachSpread(source.count(), kRecords, [&](uint64_t record) { digests.push_back(DigestOf(source.Read(record))); });
  return DigestOf(std::as_bytes(std::span(digests)));
}

uint64_t FingerprintOf(const Hdf5Files& files) {
  std::vector<uint64_t> digests = files.rows;
  const FileOrder order(files.rows, {});
  size_t open = files.paths.size();
  std::unique_ptr<Hdf5File> file;
  std::vector<float> values;
  ForEachSpread(files.row_count(), kRecords, [&](uint64_t record) {
    const FileOrder::Place place = order.At(record);
    if (place.file != open) file = OpenHdf5(files.paths[open = place.file]);
    const auto row = static_cast<int64_t>(place.record);
    for (size_t i = 0; i < files.datasets.size(); ++i) {
      values.resize(static_cast<size_t>(files.row_shapes[i].count()));
      file->ReadRows(files.datasets[i], row, row + 1, values.data());
      digests.push_back(DigestOf(std::as_bytes(std::span(values))));
    }
  });
  return DigestOf(std::as_bytes(std::span(digests)));
}

// Of the files that evenly spread lines of each list name.
void LookAtFiles(std::initializer_list<const ImageList*> lists, DataFingerprint* found) {
  std::vector<uint64_t> digests;
  for (const ImageList* list : lists) {
    ForEachSpread(list->entries.size(), kRecords, [&](uint64_t entry) {
      if (!found->unreadable.empty()) return;
      try {
        const std::vector<uint8_t> bytes = ReadFileBytes(list->PathOf(entry));
        digests.push_back(DigestOf(std::as_bytes(std::span(bytes))));
      } catch (const EnvironmentError& error) {
        found->unreadable = error.what();
      }
    });
  }
  if (found->unreadable.empty()) found->files = DigestOf(std::as_bytes(std::span(digests)));
}

uint64_t FingerprintOf(const DenseImageList& list) {
  std::string text;
  for (const ImageList* of : {&list.images, &list.labels}) {
    for (const ImageList::Entry& entry : of->entries) text += entry.path + "\n";
  }
  return DigestOf(std::as_bytes(std::span(text)));
}

uint64_t FingerprintOf(const ImageList& list) {
  std::string text;
  for (const ImageList::Entry& entry : list.entries) text += entry.path + " " + std::to_string(entry.label) + "\n";
  if (list.label_count == 0) return DigestOf(std::as_bytes(std::span(text)));
  const uint64_t digests[] = {DigestOf(std::as_bytes(std::span(text))),
                              DigestOf(std::as_bytes(std::span(list.numbers)))};
  return DigestOf(std::as_bytes(std::span(digests)));
}

// Of videos the number of the line counts, too, and of their files the first frames are looked at.
void LookAtVideos(const VideoDataParameter& param, const std::string& path, const std::string& root,
                  DataFingerprint* found) {
  if (const auto mistake = VideoClip::FindMistake(param)) throw UserError("video_data_param: " + mistake->message);
  const VideoClip clip(param, TRAIN);
  const ImageList list = ReadVideoList(path, root, clip.list_form());
  std::vector<uint64_t> digests = {FingerprintOf(list)};
  ImageList frames;
  for (size_t entry = 0; entry < list.entries.size(); ++entry) {
    const int number = list.entries[entry].number;
    digests.push_back(static_cast<uint64_t>(number));
    frames.entries.emplace_back();
    clip.PathOf(list, entry, clip.RangeOf(number).first, 0, &frames.entries.back().path);
  }
  found->value = DigestOf(std::as_bytes(std::span(digests)));
  LookAtFiles({&frames}, found);
}

uint64_t FingerprintOfBytes(const std::string& path) {
  const std::vector<uint8_t> bytes = ReadFileBytes(path);
  return DigestOf(std::as_bytes(std::span(bytes)));
}

void Look(const LayerParameter& layer, const std::vector<std::string>& folders, DataFingerprint* found) {
  const std::string& path = found->path;
  const auto root = [&](const auto& param) {
    return param.root_folder().empty() ? "" : FindFile(param.root_folder(), folders);
  };
  if (layer.type() == "WindowData") {
    found->value = FingerprintOfBytes(path);
    const WindowFile windows = ReadWindowFile(path, root(layer.window_data_param()), 0.5f, 0.5f);
    LookAtFiles({&windows.images}, found);
  } else if (layer.type() == "DenseImageData" || layer.type() == "ImageLabelmapData") {
    const bool dense = layer.type() == "DenseImageData";
    const DenseImageList list =
        ReadDenseImageList(path, dense ? root(layer.dense_image_data_param()) : root(layer.image_data_param()));
    found->value = FingerprintOf(list);
    LookAtFiles({&list.images, &list.labels}, found);
  } else if (layer.type() == "ImageData") {
    const ImageDataParameter& param = layer.image_data_param();
    const ImageList list = ReadImageList(path, root(param), param.label_count());
    found->value = FingerprintOf(list);
    LookAtFiles({&list}, found);
  } else if (layer.type() == "ImageSegData") {
    const ImageDataParameter& param = layer.image_data_param();
    const DenseImageList list = ReadImageSegList(path, root(param), param.label_type(), 0);
    found->value = list.labels.entries.empty() ? FingerprintOf(list.images) : FingerprintOf(list);
    LookAtFiles({&list.images, &list.labels}, found);
  } else if (layer.type() == "VideoData") {
    LookAtVideos(layer.video_data_param(), path, root(layer.video_data_param()), found);
  } else if (layer.type() == "HDF5Data") {
    found->value = FingerprintOf(LookAtHdf5Files(path, {layer.top().begin(), layer.top().end()}));
  } else {
    found->value = FingerprintOf(*OpenRecordSource(path));
  }
}

std::string MeanFileOf(const NetParameter& net, const std::string& layer) {
  for (const LayerParameter& one : net.layer()) {
    if (one.name() == layer) return one.transform_param().mean_file();
  }
  return "";
}

bool ReadsImageDataParam(const LayerParameter& layer) {
  return layer.type() == "ImageData" || layer.type() == "ImageSegData" || layer.type() == "ImageLabelmapData";
}

}  // namespace

bool ReadsDatabase(const LayerParameter& layer) { return layer.type() == "Data" || layer.type() == "AnnotatedData"; }

std::string DataSourceOf(const LayerParameter& layer) {
  if (ReadsDatabase(layer)) return layer.data_param().source();
  if (ReadsImageDataParam(layer)) return layer.image_data_param().source();
  if (layer.type() == "DenseImageData") return layer.dense_image_data_param().source();
  if (layer.type() == "VideoData") return layer.video_data_param().source();
  if (layer.type() == "HDF5Data") return layer.hdf5_data_param().source();
  if (layer.type() == "WindowData") return layer.window_data_param().source();
  return {};
}

void ReadDataFrom(const std::string& path, NetParameter* net) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const auto read_images_from = [&](auto* param) {
    folder ? param->set_root_folder(path + "/") : param->set_source(path);
  };
  for (LayerParameter& layer : *net->mutable_layer()) {
    if (ReadsDatabase(layer)) {
      layer.mutable_data_param()->set_source(path);
    } else if (ReadsImageDataParam(layer)) {
      read_images_from(layer.mutable_image_data_param());
    } else if (layer.type() == "DenseImageData") {
      read_images_from(layer.mutable_dense_image_data_param());
    } else if (layer.type() == "VideoData") {
      read_images_from(layer.mutable_video_data_param());
    } else if (layer.type() == "WindowData") {
      read_images_from(layer.mutable_window_data_param());
    } else if (layer.type() == "HDF5Data") {
      HDF5DataParameter* param = layer.mutable_hdf5_data_param();
      const std::filesystem::path name = std::filesystem::path(param->source()).filename();
      param->set_source(folder ? (std::filesystem::path(path) / name).string() : path);
    }
  }
}

std::vector<DataFingerprint> FingerprintData(const NetParameter& net, const std::vector<std::string>& folders) {
  std::vector<DataFingerprint> all;
  for (const LayerParameter& layer : net.layer()) {
    const std::string source = DataSourceOf(layer);
    if (source.empty()) continue;
    DataFingerprint& found = all.emplace_back();
    found.layer = layer.name();
    found.path = FindFile(source, folders);
    Look(layer, folders, &found);
    const std::string& mean = layer.transform_param().mean_file();
    if (mean.empty()) continue;
    const uint64_t both[] = {found.value, FingerprintOfBytes(FindFile(mean, folders))};
    found.value = DigestOf(std::as_bytes(std::span(both)));
  }
  return all;
}

void RequireSameData(const NetParameter& net, const std::vector<std::string>& folders,
                     const std::vector<DataFingerprint>& known, const std::string& flag, const std::string& what) {
  // Else the net's shapes would be guessed, and the mistake found where nobody looks for it.
  for (const LayerParameter& layer : net.layer()) {
    const std::string source = DataSourceOf(layer);
    if (source.empty()) continue;
    std::error_code ignored;
    if (!std::filesystem::exists(FindFile(source, folders), ignored)) {
      throw UserError(what + "layer \"" + layer.name() + "\": there is no " +
                      (ReadsDatabase(layer) ? "database" : "list") + " \"" + source +
                      "\" on this machine; give its place here with " + flag + "=PATH");
    }
  }
  for (const DataFingerprint& here : FingerprintData(net, folders)) {
    for (const DataFingerprint& there : known) {
      if (there.layer != here.layer) continue;
      const std::string layer = what + "layer \"" + here.layer + "\": ";
      if (there.value != here.value) {
        const std::string mean = MeanFileOf(net, here.layer);
        throw UserError(layer + here.path + " has other records than the coordinator's, or has them in another order" +
                        (mean.empty() ? "" : ", or its mean_file \"" + mean + "\" is another one") +
                        "; copy what differs, or name the right data with " + flag + "=PATH");
      }
      if (!there.files || there.files == here.files) continue;
      if (!here.files) {
        throw UserError(layer + here.unreadable + ", and the coordinator has that file; copy all that " + here.path +
                        " names, or give the folder that they are in with " + flag + "=PATH");
      }
      throw UserError(layer + "files that " + here.path +
                      " names are not those of the coordinator; copy them, or give the folder that they are in with " +
                      flag + "=PATH");
    }
  }
}

}  // namespace crema
