// Folders of pictures by class: which files are rows, which classes and splits there are, and folders that are wrong.
#include "core/data/picture_folder.h"

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "core/data/check.h"
#include "core/data/datasets.h"
#include "tests/data/pictures.h"
#include "tests/data/support.h"

namespace comera {
namespace {

using test::Folder, test::jpeg_bytes, test::png_bytes, test::some_picture;

// Names of rows, as they are shown, with their classes.
std::vector<std::string> pictures_of(const Dataset& data) {
  std::vector<std::string> rows;
  for (int64_t row = 0; row < data.info().rows; ++row) rows.push_back(data.shown(row, 1));
  return rows;
}

Columns picture_of(const Dataset& data, int64_t row) {
  Columns columns;
  data.read(row, 1, columns);
  return columns;
}

std::string refused(const std::function<void()>& does) {
  try {
    does();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return std::string(error.what()) + ": " + error.why();
  }
  return "";
}

// dogs and cats, 3 x 4 and in colours, but for one.
void write_some(const Folder& folder, const std::string& inside) {
  folder.write(inside + "dogs/b.png", png_bytes(some_picture(3, 4, 3, 1)));
  folder.write(inside + "dogs/a.JPG", jpeg_bytes(some_picture(3, 4, 3, 2)));
  folder.write(inside + "cats/10.png", png_bytes(some_picture(3, 4, 3, 3)));
  folder.write(inside + "cats/9.png", png_bytes(some_picture(6, 8, 3, 4)));
  folder.write(inside + "cats/old/1.jpeg", jpeg_bytes(some_picture(3, 4, 1, 5)));
}

TEST(PictureFolders, ClassesAreFoldersAndRowsAreSorted) {
  const Folder folder;
  write_some(folder, "");
  folder.write("cats/notes.txt", "no picture");
  folder.write("cats/scan.tiff", "another format");
  folder.write("cats/.hidden.png", "no picture");
  folder.write(".cache/x.png", "no class");
  folder.write("readme.md", "no class");
  const auto data = open_dataset({.path = folder.path()});
  EXPECT_EQ(data->info().label_names, (std::vector<std::string>{"cats", "dogs"}));
  EXPECT_EQ(data->info().classes, 2);
  EXPECT_EQ(data->info().left_out, 1) << "the TIFF";
  EXPECT_EQ(pictures_of(*data),
            (std::vector<std::string>{"cats/10.png, 3 x 4 colours  ->  cats", "cats/9.png, 6 x 8 as 3 x 4 colours  ->  cats",
                                      "cats/old/1.jpeg, 3 x 4 colours  ->  cats", "dogs/a.JPG, 3 x 4 colours  ->  dogs",
                                      "dogs/b.png, 3 x 4 colours  ->  dogs"}));
}

TEST(PictureFolders, PixelsAreSharesOf255WithChannelsSideBySide) {
  const Folder folder;
  write_some(folder, "");
  const auto data = open_dataset({.path = folder.path()});
  const BatchField* field = data->info().fields.find("pixels");
  ASSERT_TRUE(field);
  EXPECT_EQ(field->width, 3 * 4 * 3);
  const Picture picture = some_picture(3, 4, 3, 3);
  const Columns row = picture_of(*data, 0);
  ASSERT_EQ(row.reals.at("pixels").size(), picture.pixels.size());
  for (size_t i = 0; i < picture.pixels.size(); ++i)
    EXPECT_EQ(row.reals.at("pixels")[i], static_cast<float>(picture.pixels[i]) * (1.0f / 255.0f));
  EXPECT_EQ(row.ints.at("labels"), (std::vector<int32_t>{0}));
  EXPECT_EQ(picture_of(*data, 4).ints.at("labels"), (std::vector<int32_t>{1}));
}

TEST(PictureFolders, SizeAndChannelsAreThoseOfTheModel) {
  const Folder folder;
  write_some(folder, "");
  const auto gray = open_dataset({.path = folder.path(), .height = 2, .width = 2, .channels = 1});
  EXPECT_EQ(gray->info().fields.find("pixels")->width, 4);
  for (int64_t row = 0; row < gray->info().rows; ++row) EXPECT_EQ(picture_of(*gray, row).reals.at("pixels").size(), 4u);
  EXPECT_EQ(refused([&] { open_dataset({.path = folder.path(), .channels = 2}); }),
            "the model's images have 2 channels: pictures have 1 (gray) or 3");
}

TEST(PictureFolders, PixelsAreShiftedAndDividedWhereAsked) {
  const Folder folder;
  write_some(folder, "");
  const auto plain = open_dataset({.path = folder.path()}),
             scaled = open_dataset({.path = folder.path(), .pixel_mean = 0.5, .pixel_std = 0.25});
  const std::vector<float> a = picture_of(*plain, 0).reals.at("pixels"), b = picture_of(*scaled, 0).reals.at("pixels");
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(b[i], (a[i] - 0.5f) * 4.0f);
}

TEST(PictureFolders, SplitsHaveTheClassesOfTheTrainingSet) {
  const Folder folder;
  write_some(folder, "train/");
  folder.write("train/ants/1.png", png_bytes(some_picture(3, 4, 3)));
  folder.write("val/dogs/x.png", png_bytes(some_picture(3, 4, 3)));
  const DataSpec training{.path = folder.path()}, dev{.path = folder.path(), .split = "dev"};
  EXPECT_FALSE(is_whole(training));
  EXPECT_EQ(open_dataset(training)->info().classes, 3);
  const auto data = open_dataset(dev);
  EXPECT_EQ(data->info().classes, 3);
  EXPECT_EQ(picture_of(*data, 0).ints.at("labels"), (std::vector<int32_t>{2}));
  EXPECT_EQ(pictures_of(*data), (std::vector<std::string>{"dogs/x.png, 3 x 4 colours  ->  dogs"}));
  EXPECT_NE(refused([&] { open_dataset({.path = folder.path(), .split = "test"}); }).find("has no split 'test': it has train, dev"),
            std::string::npos);
  folder.write("val/birds/1.png", png_bytes(some_picture(3, 4, 3)));
  EXPECT_EQ(refused([&] { open_dataset(dev); }), folder.path() + "/val has the class birds: the training set has no such class");
}

TEST(PictureFolders, WithoutSplitsAllOfItIsFound) {
  const Folder folder;
  write_some(folder, "");
  for (const char* split : {"train", "dev"}) EXPECT_EQ(open_dataset({.path = folder.path(), .split = split})->info().rows, 5);
  EXPECT_TRUE(is_whole({.path = folder.path()}));
  EXPECT_EQ(picture_folder({.path = folder.path()}), folder.path());
  EXPECT_EQ(picture_folder({.path = folder.path() + "/none"}), "");
}

TEST(PictureFolders, OtherFoldersAreNone) {
  const Folder folder;
  folder.write("texts/a.txt", "a");
  folder.write("pictures/a.png", png_bytes(some_picture(3, 4, 3)));
  EXPECT_FALSE(is_picture_folder(folder.path(), true)) << "a folder that holds other things besides";
  EXPECT_TRUE(is_picture_folder(folder.path(), false));
  EXPECT_NE(refused([&] { open_dataset({.path = folder.path()}); }).find("no data file is in it"), std::string::npos);
  EXPECT_FALSE(is_picture_folder(folder.path() + "/pictures", false)) << "no classes";
}

TEST(PictureFolders, WrongOnesGetOneClearError) {
  const Folder folder;
  write_some(folder, "");
  std::filesystem::create_directory(folder / "empty");
  EXPECT_EQ(refused([&] { open_dataset({.path = folder.path()}); }),
            folder.path() + "/empty has no pictures: every folder is a class, and needs a PNG or JPEG file");
  std::filesystem::remove(folder / "empty");
  write_some(folder, "sets/train/");
  folder.write("sets/train/notes/a.txt", "no class");
  EXPECT_NE(refused([&] { open_dataset({.path = folder / "sets"}); }).find("train/notes has no pictures"), std::string::npos);
  std::filesystem::remove_all(folder / "sets");
  EXPECT_NE(refused([&] { open_dataset({.path = folder.path(), .classes = 1}); }).find("has 2 classes: the model has 1"),
            std::string::npos);
  const std::string bad = folder.write("dogs/c.png", "GIF89a");
  const auto data = open_dataset({.path = folder.path()});
  EXPECT_EQ(refused([&] { picture_of(*data, 5); }), "cannot read the picture " + bad + ": it is neither PNG nor JPEG");
  EXPECT_EQ(refused([&] { check_dataset({.path = folder.path()}); }), "cannot read the picture " + bad + ": it is neither PNG nor JPEG");
  std::filesystem::remove(bad);
  EXPECT_NE(refused([&] { picture_of(*data, 5); }).find("c.png"), std::string::npos) << "a file that went away";
  folder.write("dogs/c.png", "");
  EXPECT_NE(refused([&] { open_dataset({.path = folder.path()}); }).find("c.png is empty"), std::string::npos);
}

TEST(PictureFolders, CheckCountsClasses) {
  const Folder folder;
  write_some(folder, "train/");
  const DataReport report = check_dataset({.path = folder.path()});
  EXPECT_EQ(report.class_rows, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(report.path, folder.path() + "/train");
  EXPECT_EQ(report.info.name, "train");
}

TEST(PictureFolders, TheFingerprintIsOfNamesAndContents) {
  const Folder folder;
  write_some(folder, "");
  std::set<std::string> seen;
  const auto print = [&] { return open_dataset({.path = folder.path()})->info().fingerprint; };
  const std::string first = print();
  seen.insert(first);
  const std::string name = "dogs/b.png", before = test::read_file(folder / name);
  folder.write(name, png_bytes(some_picture(3, 4, 3, 99)));
  EXPECT_TRUE(seen.insert(print()).second) << "pixels";
  folder.write(name, before);
  EXPECT_EQ(print(), first) << "written again, the same";
  std::filesystem::rename(folder / name, folder / "dogs/c.png");
  EXPECT_TRUE(seen.insert(print()).second) << "a name";
  std::filesystem::remove(folder / "dogs/c.png");
  EXPECT_TRUE(seen.insert(print()).second) << "a file less";
  // A large one that changes in the middle: the checksum of a PNG is at its end.
  Picture large{200, 200, 1, {}};
  for (uint32_t i = 0, x = 1; i < 200 * 200; ++i) large.pixels.push_back(static_cast<unsigned char>((x = x * 1664525 + 1013904223) >> 24));
  folder.write(name, png_bytes(large));
  ASSERT_GT(std::filesystem::file_size(folder / name), 20000u);
  EXPECT_TRUE(seen.insert(print()).second);
  large.pixels[20000] ^= 1;
  folder.write(name, png_bytes(large));
  EXPECT_TRUE(seen.insert(print()).second);
}

TEST(PictureFolders, APictureThatWasWrittenSinceIsRefused) {
  const Folder folder;
  write_some(folder, "");
  const auto data = open_dataset({.path = folder.path()});
  const std::string file = folder.write("dogs/b.png", png_bytes(some_picture(3, 4, 3, 9)));
  std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) + std::chrono::seconds(1));
  EXPECT_EQ(refused([&] { picture_of(*data, 4); }), file + " was changed while it was in use: its modification time is different");
  picture_of(*data, 3);
}

TEST(PictureFolders, ThreadsReadTheSame) {
  const Folder folder;
  for (int i = 0; i < 12; ++i)
    folder.write("c" + std::to_string(i % 3) + "/" + std::to_string(i) + (i % 2 ? ".png" : ".jpg"),
                 (i % 2 ? png_bytes(some_picture(9, 12, 3, i)) : jpeg_bytes(some_picture(12, 9, 3, i))));
  const auto data = open_dataset({.path = folder.path(), .height = 5, .width = 5, .channels = 3});
  std::vector<Columns> alone;
  for (int64_t row = 0; row < 12; ++row) alone.push_back(picture_of(*data, row));
  std::vector<std::vector<Columns>> together(4);
  {
    std::vector<std::jthread> threads;
    for (auto& rows : together)
      threads.emplace_back([&] {
        for (int64_t row = 0; row < 12; ++row) rows.push_back(picture_of(*data, row));
      });
  }
  for (const auto& rows : together)
    for (size_t row = 0; row < 12; ++row) {
      EXPECT_EQ(rows[row].reals, alone[row].reals);
      EXPECT_EQ(rows[row].ints, alone[row].ints);
    }
}

}  // namespace
}  // namespace comera
