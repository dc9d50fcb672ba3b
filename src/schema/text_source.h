// Places of fields in a parsed text, also of layers that an upgrade rewrote.
#ifndef CREMA_SCHEMA_TEXT_SOURCE_H_
#define CREMA_SCHEMA_TEXT_SOURCE_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crema/files.h"
#include "schema/upgrade.h"

namespace crema {

class TextSource : public SourceMap {
 public:
  TextSource(std::string file, const std::string& text, const google::protobuf::Descriptor* root);

  Location Layer(int index, std::string_view field) const override;
  // Takes paths, too: "layers[2].layer.pad".
  Location Field(std::string_view field) const override;

  // A place as protobuf counts: line and column from 0, a tab moving the column to the next multiple of eight.
  Location Place(int line, int column) const;

  google::protobuf::TextFormat::ParseInfoTree* tree() { return &tree_; }
  // Says where each layer of the upgraded net came from. Without it, layer i is layer[i] of the file.
  void set_layers(std::vector<LayerOrigin> layers) { layers_ = std::move(layers); }

 private:
  struct Found {
    Location where;
    bool exact = false;
  };
  Found Find(std::string_view path) const;

  std::string file_;
  std::vector<std::string> lines_;
  const google::protobuf::Descriptor* root_;
  google::protobuf::TextFormat::ParseInfoTree tree_;
  std::optional<std::vector<LayerOrigin>> layers_;
};

// One place for everything: a net that was never text.
class FixedSource : public SourceMap {
 public:
  explicit FixedSource(Location where) : where_(std::move(where)) {}
  Location Layer(int, std::string_view) const override { return where_; }
  Location Field(std::string_view) const override { return where_; }

 private:
  Location where_;
};

}  // namespace crema

#endif  // CREMA_SCHEMA_TEXT_SOURCE_H_
