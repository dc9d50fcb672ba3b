#include "data/files/hdf5_files.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/hdf5.h"
#include "base/paths.h"
#include "base/trimmed.h"
#include "crema/error.h"
#include "data/files/text_file.h"

namespace crema {

namespace {

Shape RowShape(const std::vector<int64_t>& extents) {
  return Shape(std::vector<int64_t>(extents.begin() + 1, extents.end()));
}

std::string Named(const std::string& dataset) { return "dataset \"" + dataset + "\""; }

// Adds one file to what the others say.
void LookAt(const std::string& path, Hdf5Files* files) {
  const std::unique_ptr<Hdf5File> file = OpenHdf5(path);
  const bool first = files->paths.empty();
  int64_t rows = 0;
  for (size_t i = 0; i < files->datasets.size(); ++i) {
    const std::string& name = files->datasets[i];
    const std::vector<int64_t> extents = file->Extents(name);
    if (extents.empty()) {
      throw UserError({path}, Named(name) + " is a single value; expected rows along the first axis");
    }
    if (i == 0) rows = extents[0];
    if (extents[0] != rows) {
      throw UserError({path}, Named(name) + " has " + std::to_string(extents[0]) + " rows, but " +
                                  Named(files->datasets[0]) + " has " + std::to_string(rows) +
                                  "; all of them must have the same number: the first axis counts records");
    }
    const Shape row = RowShape(extents);
    if (row.count() == 0) throw UserError({path}, Named(name) + " is " + Shape(extents).ToString() + ": it is empty");
    if (first) {
      files->row_shapes.push_back(row);
    } else if (row != files->row_shapes[i]) {
      throw UserError({path}, Named(name) + " has rows of " + row.ToString() + ", but those of " + files->paths[0] +
                                  " are " + files->row_shapes[i].ToString() +
                                  "; all files of a list must agree in all but the number of rows");
    }
  }
  files->paths.push_back(path);
  files->rows.push_back(static_cast<uint64_t>(rows));
}

}  // namespace

uint64_t Hdf5Files::row_count() const { return std::accumulate(rows.begin(), rows.end(), uint64_t{0}); }

std::vector<std::string> ReadHdf5List(const std::string& list) {
  if (BeginsAsHdf5(list)) {
    throw UserError({list},
                    "is an HDF5 file; expected a text file that names one such file per line: write its path into one");
  }
  TextFile text(list, "a text file that names one HDF5 file per line");
  std::vector<std::string> paths;
  Diagnostics diagnostics;
  std::string line;
  while (!diagnostics.enough() && text.ReadLine(&line)) {
    line = std::string(Trimmed(line));
    if (line.empty()) continue;
    std::string path = FindFile(line, {DirectoryOf(list)});
    if (!Exists(path)) {
      diagnostics.Error({list, text.line(), 0}, "there is no file \"" + line +
                                                    "\", neither in the working directory nor " +
                                                    "beside the list; name one HDF5 file per line");
    }
    paths.push_back(std::move(path));
  }
  diagnostics.ThrowIfErrors();
  if (paths.empty()) throw UserError({list}, "names no file; write the path of one HDF5 file per line");
  return paths;
}

Hdf5Files LookAtHdf5Files(const std::string& list, const std::vector<std::string>& datasets) {
  Hdf5Files files;
  files.datasets = datasets;
  for (const std::string& path : ReadHdf5List(list)) LookAt(path, &files);
  if (files.row_count() == 0) throw UserError({list}, "names only files without rows");
  return files;
}

}  // namespace crema
