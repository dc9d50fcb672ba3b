// Rewrites nets and solvers in the syntaxes of older Caffe versions into today's.
//
// Order: V0 (flat `layer` inside `layers`) and V1 (`layers` with types in capitals) become `layer`; `input` fields
// become an Input layer; transformations inside the data blocks of `layers` move to transform_param; BatchNorm's three
// `param` are frozen; layers in Python that are built in here get their types; types of forks for volumes become those
// of images, which take them as well; fields that forks call otherwise get their names.
#ifndef CREMA_SCHEMA_UPGRADE_H_
#define CREMA_SCHEMA_UPGRADE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "crema/error.h"
#include "crema/net.pb.h"
#include "crema/solver.pb.h"

namespace crema {

// Where a layer of an upgraded net stood in the file.
struct LayerOrigin {
  enum class Syntax { kCurrent, kV1, kV0, kInput };
  Syntax syntax = Syntax::kCurrent;
  int index = 0;     // in `layer` (current) or `layers` (V0, V1)
  int padding = -1;  // V0: index of the padding layer that was folded in
};

// The place of a path from the top of the file, such as "layers[2].layer.pad".
using PlaceOf = std::function<Location(std::string_view path)>;

// Rewrites in place and returns the origin of each resulting layer. Mistakes and one warning per old syntax go to
// `diagnostics`; with errors the net is left half done.
std::vector<LayerOrigin> UpgradeNet(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics);

// solver_type -> type; test nets with test_iter: 0 are left out.
void UpgradeSolver(SolverParameter* solver, const PlaceOf& place, Diagnostics* diagnostics);

// Paths from the top of the file that a field of an upgraded layer may have come from, best first.
std::vector<std::string> OldPaths(const LayerOrigin& origin, const std::string& path);

// "Convolution" for CONVOLUTION; empty for NONE or a number that is no type.
std::string TypeName(V1LayerParameter::LayerType type);
// "SoftmaxWithLoss" for "SOFTMAX_LOSS" or "SoftmaxLoss", the V1 name in any spelling; empty for none.
std::string TypeOfOldName(const std::string& name);
// Whether some V1 name becomes this type.
bool HasOldName(const std::string& type);
// CONVOLUTION for V0's "conv"; NONE where there is none.
V1LayerParameter::LayerType TypeOfV0(const std::string& type);

// The steps of UpgradeNet.
void UpgradeV0(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics, std::vector<LayerOrigin>* origins);
void UpgradeV1(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics);
void UpgradeVolumes(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics,
                    const std::vector<LayerOrigin>& origins);
void UpgradeFields(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics,
                   const std::vector<LayerOrigin>& origins);
void UpgradePython(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics,
                   const std::vector<LayerOrigin>& origins);
void UpgradeInput(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics, std::vector<LayerOrigin>* origins);
void UpgradeDataTransform(LayerParameter* layer);
// Caffe moves the fields of old data blocks in `layers` only; in a `layer` they were always without effect.
void WarnAboutOldTransform(const NetParameter& net, const PlaceOf& place, Diagnostics* diagnostics);

}  // namespace crema

#endif  // CREMA_SCHEMA_UPGRADE_H_
