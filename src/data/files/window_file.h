// Window files: rectangles of images with a class each, which detectors are trained on (Girshick et al., "Rich feature
// hierarchies for accurate object detection and semantic segmentation", 2014).
#ifndef CREMA_DATA_FILES_WINDOW_FILE_H_
#define CREMA_DATA_FILES_WINDOW_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "data/files/image_list.h"

namespace crema {

struct WindowFile {
  struct Window {
    int32_t image = 0;  // of `images`
    int32_t label = 0;  // the class; background is 0
    int32_t line = 0;   // of the file
    // Pixels of two corners, both within the window.
    int32_t left = 0, top = 0, right = 0, bottom = 0;
  };

  std::string path;
  ImageList images;                          // without labels
  std::vector<Window> objects, backgrounds;  // in the order of the file
};

// Numbers and words between blanks, as R-CNN writes them:
//   # 0                          images count from 0
//   photos/1.jpg                 its path, without blanks; `root` is put before it
//   3 500 353                    channels, height, width, which say nothing that the image does not
//   2                            the number of its windows
//   15 0.83 10 20 109 219        class, overlap with an object, x1 y1 x2 y2, in pixels from 0
//   7 0.12 0 5 80 90
// A window that overlaps an object by at least `object_overlap` is an object, one below `background_overlap`
// background; any other one is left out. Throws UserError at the line of the first mistake, EnvironmentError where the
// file cannot be read.
WindowFile ReadWindowFile(const std::string& path, const std::string& root, float object_overlap,
                          float background_overlap);

}  // namespace crema

#endif  // CREMA_DATA_FILES_WINDOW_FILE_H_
