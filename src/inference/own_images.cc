#include "inference/own_images.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "base/paths.h"
#include "data/databases/record_source.h"

namespace crema {

namespace {

// Where there is no root, beside the net what is not in the working directory.
void FindRoot(const std::string& folder, ImageList* list) {
  if (!list->root.empty() || list->entries.empty()) return;
  const std::string& first = list->entries[0].path;
  const std::string found = FindFile(first, {folder});
  list->root = found.substr(0, found.size() - first.size());
}

}  // namespace

ImageList ReadOwnList(const ScoringNet& scoring) {
  ImageList list = ReadImageList(scoring.list, scoring.list_root, scoring.list_label_count);
  FindRoot(scoring.folder, &list);
  return list;
}

void ReadInOrder(NetParameter* net) {
  using google::protobuf::FieldDescriptor;
  for (LayerParameter& layer : *net->mutable_layer()) {
    std::vector<const FieldDescriptor*> settings;
    layer.GetReflection()->ListFields(layer, &settings);
    for (const FieldDescriptor* const field : settings) {
      if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      google::protobuf::Message* const param = layer.GetReflection()->MutableMessage(&layer, field);
      for (const char* order : {"shuffle", "shuffle_buffer", "balance_classes", "rand_skip"}) {
        const FieldDescriptor* const setting = param->GetDescriptor()->FindFieldByName(order);
        if (setting) param->GetReflection()->ClearField(param, setting);
      }
    }
  }
}

std::vector<std::string> FilesOfList(const LayerParameter& layer, const std::string& folder) {
  DenseImageList lists;
  const auto at = [&](const std::string& path) { return FindFile(path, {folder}); };
  if (layer.type() == "DenseImageData") {
    const DenseImageDataParameter& param = layer.dense_image_data_param();
    lists = ReadDenseImageList(at(param.source()), at(param.root_folder()));
  } else {
    const ImageDataParameter& param = layer.image_data_param();
    if (layer.type() == "ImageLabelmapData") {
      lists = ReadDenseImageList(at(param.source()), at(param.root_folder()));
    } else if (layer.type() == "ImageSegData") {
      lists = ReadImageSegList(at(param.source()), at(param.root_folder()), param.label_type(), param.ignore_label());
    } else if (layer.type() == "ImageData") {
      lists.images = ReadImageList(at(param.source()), at(param.root_folder()), param.label_count());
    }
  }
  std::vector<std::string> files;
  for (ImageList* list : {&lists.images, &lists.labels}) {
    FindRoot(folder, list);
    for (size_t i = 0; i < list->entries.size(); ++i) files.push_back(list->PathOf(i));
  }
  return files;
}

std::shared_ptr<const ImageItems> OwnImages(const ScoringNet& scoring) {
  if (!scoring.database.empty() && RecordSourceExists(scoring.database)) {
    return std::make_shared<const DatabaseImages>(OpenRecordSource(scoring.database));
  }
  if (scoring.list.empty() || !Exists(scoring.list)) return nullptr;
  return std::make_shared<const ImageFiles>(ReadOwnList(scoring), true, true);
}

}  // namespace crema
