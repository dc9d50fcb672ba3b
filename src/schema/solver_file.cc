#include "crema/files.h"
#include "schema/text_file.h"
#include "schema/text_parse.h"
#include "schema/upgrade.h"

namespace crema {

SolverFile ParseSolver(const std::string& text, const std::string& name) {
  SolverFile file;
  const std::string clean = CleanText(text, name, "solver");
  const std::shared_ptr<TextSource> source = ParseText(clean, name, &file.solver);
  Diagnostics diagnostics;
  UpgradeSolver(
      &file.solver, [&source](std::string_view path) { return source->Field(path); }, &diagnostics);
  diagnostics.ThrowIfErrors();
  file.warnings = diagnostics.list();
  file.source = source;
  return file;
}

SolverFile ReadSolverFile(const std::string& path) { return ParseSolver(ReadTextFile(path), path); }

}  // namespace crema
