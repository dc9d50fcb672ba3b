#include "schema/weights_kind.h"

#include <algorithm>

#include "crema/error.h"
#include "crema/solver.pb.h"

namespace crema {

namespace {

bool StartsWith(const std::string& text, const std::string& start) { return text.compare(0, start.size(), start) == 0; }

// A NetParameter always has bytes that no text has: the tags and lengths of its fields.
bool IsText(const std::string& head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    const unsigned char byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && (byte < '\t' || byte > '\r')) || byte == 0x7f;
  });
}

// What the first two fields tell: NetParameter starts with a name or with layers, SolverState and BlobProto with
// numbers, but crema's SolverState with the type of the solver.
std::string OtherMessage(WireReader* reader) {
  static const std::string state =
      "is the state of a solver, not the weights of a net; give it with --snapshot, or give the .caffemodel that was "
      "written beside it";
  WireTag first, second;
  try {
    const uint64_t end = reader->size();
    if (!reader->NextTag(end, &first)) return {};
    if (first.field == SolverState::kSolverTypeFieldNumber) return state;
    if (first.field != 1 || first.type != WireType::kVarint) return {};
    reader->Skip(first, end);
    if (reader->NextTag(end, &second) && second.field == 2 && second.type == WireType::kVarint) {
      return "is a single blob, such as the mean that compute_image_mean writes, not the weights of a net";
    }
  } catch (const WireError&) {
    return {};
  }
  return state;
}

}  // namespace

void CheckWeightsKind(const std::string& path, WireReader* reader) {
  if (reader->size() == 0) throw UserError({path}, "is empty; was it copied or downloaded in full?");
  std::string head(std::min<uint64_t>(reader->size(), 4096), '\0');
  reader->Bytes(head.data(), head.size(), reader->size());
  reader->Seek(0);
  if (StartsWith(head, "version https://git-lfs")) {
    throw UserError({path}, "is a Git LFS pointer, not the file itself; run git lfs pull");
  }
  if (StartsWith(head, "PK\x03\x04")) {
    throw UserError({path}, "is a zip archive (PyTorch saves such files), not a .caffemodel");
  }
  if (IsText(head)) {
    throw UserError({path}, "is a text file, not a .caffemodel; nets (.prototxt) are given with --model or --solver");
  }
  const std::string other = OtherMessage(reader);
  reader->Seek(0);
  if (!other.empty()) throw UserError({path}, other);
}

}  // namespace crema
