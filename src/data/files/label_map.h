// The classes of annotations: SSD's label map files.
#ifndef CREMA_DATA_FILES_LABEL_MAP_H_
#define CREMA_DATA_FILES_LABEL_MAP_H_

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace crema {

struct LabelMapFile {
  std::string path;
  std::map<std::string, int> label_of;  // by name
  std::vector<std::string> names;       // in the order of the file
};

// A text file with a LabelMap (proto/crema/annotation.proto). Throws UserError where it is absent, malformed, names no
// class, or gives one name two numbers; with `check_duplicates` also where a name or a number stands twice: two names
// may else be one class. With `may_be_list` it may have one name a line instead, as Darknet's .names files do, whose
// labels count from 1.
LabelMapFile ReadLabelMap(const std::string& path, bool check_duplicates, bool may_be_list = false);

// The names of classes by number, for people, from a text file: one a line, or a LabelMap, whose numbers that it leaves
// out are named by themselves, and of two names of a number the first one counts. Of a list with one name less than
// `with_background` the first name is that of class 1, as Darknet's .names files have it, and "background" is put
// before; with kWithBackground before every list that does not begin with it. The file is read once, so that it may be
// a pipe. Throws UserError where it is absent, or is neither.
constexpr size_t kWithBackground = std::numeric_limits<size_t>::max();
std::vector<std::string> ReadClassNames(const std::string& path, size_t with_background = 0);

// Whether this is what label 0 of boxes is called: "background", "__background__" or SSD's
// "none_of_the_above", in any case.
bool IsBackground(const std::string& name);

}  // namespace crema

#endif  // CREMA_DATA_FILES_LABEL_MAP_H_
