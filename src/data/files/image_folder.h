// Images that lie in folders.
#ifndef CREMA_DATA_FILES_IMAGE_FOLDER_H_
#define CREMA_DATA_FILES_IMAGE_FOLDER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "data/files/image_list.h"

namespace crema {

// The paths, below `folder`, of all image files (HasImageName) in it and in the folders in it, in their order. What
// begins with "." is left out. Links are followed, but not to a folder that the link is in. `skipped`, unless null,
// counts files that are not named as images. Throws EnvironmentError where a folder cannot be read.
std::vector<std::string> ImagesBelow(const std::string& folder, size_t* skipped = nullptr);

// A data set of two parts, each a folder with one folder per class.
struct DividedFolder {
  std::string training, validation;
};

// What lies in `folder` under the usual names, in letters of any case: train or training, and val, valid, validate,
// validation or dev, or where there are none of these test or testing. Both are empty where one is not there.
DividedFolder FindParts(const std::string& folder);

// Files that belong to no class.
struct LeftOut {
  size_t others = 0;               // not named as images
  std::vector<std::string> loose;  // paths of images that lie beside the folders of the classes
};

// A folder with one folder per class: classes are numbered in the order of their names (of their bytes; numbers in that
// of their values), the images of each as ImagesBelow finds them. Throws UserError where there are no classes or
// images, or all classes are folders of such a divided data set, EnvironmentError where a folder cannot be read.
ImageList ListImageFolder(const std::string& folder, LeftOut* left_out);

}  // namespace crema

#endif  // CREMA_DATA_FILES_IMAGE_FOLDER_H_
