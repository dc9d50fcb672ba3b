// Small databases for training in tests.
#ifndef CREMA_SOLVER_SMALL_DATA_H_
#define CREMA_SOLVER_SMALL_DATA_H_

#include <string>

namespace crema {

// Writes an LMDB of `records` images of 1x6x6 in three classes, which a small net learns to tell apart.
void WriteClasses(const std::string& database, int records);

// The same but for the label of record `bad`, which is 9.
void WriteClassesWithABadLabel(const std::string& database, int records, int bad);

// Writes an LMDB of 1x6x6 images of class 0: `records` black ones, then as many white ones.
void WriteDarkThenBright(const std::string& database, int records);

// The first `records` images of MNIST-like gzipped IDX files as an LMDB.
void WriteFirstImages(const std::string& images_gz, const std::string& labels_gz, int records,
                      const std::string& database);

}  // namespace crema

#endif  // CREMA_SOLVER_SMALL_DATA_H_
