#include "import/imported_net.h"

#include "compiler/compiler.h"
#include "crema/files.h"
#include "device/device.h"

namespace crema {

NetOptions OptionsForUse() {
  NetOptions options;
  options.phase = TEST;
  options.backward = false;
  options.context.device = &CpuDevice();
  return options;
}

void CheckThatItRuns(const std::string& path, ImportedNet* imported) {
  const std::vector<Diagnostic> warnings = Compile(MakeNetFile(imported->net, {path, 0, 0}), OptionsForUse())->warnings;
  imported->notes.insert(imported->notes.end(), warnings.begin(), warnings.end());
}

void AddNote(Location where, const std::string& message, ImportedNet* imported) {
  Diagnostic note;
  note.severity = Diagnostic::Severity::kNote;
  note.where = std::move(where);
  note.message = message;
  imported->notes.push_back(std::move(note));
}

}  // namespace crema
