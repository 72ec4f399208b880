// Pictures in a folder for each class, as torchvision's ImageFolder reads them: FOLDER/CLASS/*.png, *.jpg, *.jpeg, also in folders below.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/mapped_file.h"
#include "core/data/dataset.h"
#include "core/data/picture.h"

namespace comera {

struct PictureOptions {
  int64_t classes = 0;                        // 0 = folders
  std::vector<std::string> label_names = {};  // classes of the training set; empty = the folders' names, sorted
  int64_t height = 0, width = 0;              // of the model's images; 0 = of the first picture
  int64_t channels = 0;                       // 1 gray, 3 colours; 0 = as the first picture
  std::function<void(double)> progress = {};  // the share of files that the fingerprint has, 0..1
};

// Immutable after construction; any thread may read rows, each of which is decoded when it is read. Rows are sorted by class, then by
// folder and name. Pictures of another size are fitted (picture.h). Fingerprint: of names, sizes, and the first and last 4 KiB of every
// file, where PNG has the checksums of its pixels. Names that begin with a dot are left out.
class PictureFolder final : public Dataset {
 public:
  // Throws Error(config) for a folder without classes or a class without pictures, a class that is not in `label_names`, more folders than
  // `classes`, and where the size is taken from a first picture that cannot be read. read() throws as read_picture().
  explicit PictureFolder(const std::string& folder, const PictureOptions& options = {});

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override;
  std::string shown(int64_t row, int64_t max_length) const override;

 private:
  struct File {
    std::string name;  // in the folder
    int32_t label;
    FileState state = {};  // when it was read for the fingerprint
  };
  void list(const PictureOptions& options);
  std::string look_at_files(const std::function<void(double)>& progress);  // returns the fingerprint
  Picture picture(const File& file, int64_t channels) const;

  const std::string folder_;
  std::vector<File> files_;
  DatasetInfo info_;
};

// The names of the classes in a folder, sorted: those of its folders.
std::vector<std::string> picture_classes(const std::string& folder);
// Some folders in it have pictures; `nothing_else`: and all others are empty.
bool is_picture_folder(const std::string& folder, bool nothing_else);

}  // namespace comera
