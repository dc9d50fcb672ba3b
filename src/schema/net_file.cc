#include "crema/files.h"
#include "schema/text_file.h"
#include "schema/text_parse.h"
#include "schema/text_source.h"
#include "schema/upgrade.h"

namespace crema {

namespace {

std::vector<LayerOrigin> Upgrade(NetParameter* net, const SourceMap& source, std::vector<Diagnostic>* warnings) {
  Diagnostics diagnostics;
  std::vector<LayerOrigin> origins = UpgradeNet(
      net, [&source](std::string_view path) { return source.Field(path); }, &diagnostics);
  for (int i = 0; i < net->layer_size(); ++i) {
    const LayerParameter& layer = net->layer(i);
    if (layer.blobs_size() == 0) continue;
    diagnostics.Warning(source.Layer(i),
                        "layer \"" + layer.name() +
                            "\" has blobs, which are not read from a net: its parameters begin as their "
                            "fillers say; give the values as weights, of a .caffemodel");
    break;
  }
  diagnostics.ThrowIfErrors();
  *warnings = diagnostics.list();
  return origins;
}

}  // namespace

NetFile ParseNet(const std::string& text, const std::string& name) {
  NetFile file;
  const std::string clean = CleanText(text, name, "net");
  const std::shared_ptr<TextSource> source = ParseText(clean, name, &file.net);
  source->set_layers(Upgrade(&file.net, *source, &file.warnings));
  file.source = source;
  return file;
}

NetFile ReadNetFile(const std::string& path) { return ParseNet(ReadTextFile(path), path); }

NetFile MakeNetFile(NetParameter net, Location where) {
  NetFile file;
  file.net = std::move(net);
  file.source = std::make_shared<FixedSource>(std::move(where));
  Upgrade(&file.net, *file.source, &file.warnings);
  return file;
}

}  // namespace crema
