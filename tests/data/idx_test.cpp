#include "core/data/idx.h"

#include "tests/data/support.h"

namespace comera {
namespace {

using test::caught;
using test::expect_told;
using test::Folder;
using test::gzip;
using test::idx_images;
using test::idx_labels;

std::string pixels(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<char>(i * 37));
  return out;
}

TEST(Idx, RowsAndLabels) {
  const Folder folder;
  folder.write("train-labels-idx1-ubyte", idx_labels({0, 4, 2}));
  const IdxDataset set(folder.write("train-images-idx3-ubyte", idx_images(3, 2, 5, pixels(30))));
  EXPECT_EQ(set.info().rows, 3);
  EXPECT_EQ(set.info().height, 2);
  EXPECT_EQ(set.info().width, 5);
  EXPECT_EQ(set.info().classes, 5);
  EXPECT_TRUE(set.info().labelled);
  EXPECT_FALSE(set.info().fields.has_tokens());
  Columns row;
  set.read(2, 0, row);
  EXPECT_EQ(row.ints.at("labels").at(0), 2);
  ASSERT_EQ(row.reals.at("pixels").size(), 10u);
  for (int i = 0; i < 10; ++i)
    EXPECT_FLOAT_EQ(row.reals.at("pixels")[static_cast<size_t>(i)], static_cast<float>((20 + i) * 37 % 256) / 255.0f);
}

TEST(Idx, GzipAndPlainAreTheSameSet) {
  const Folder plain, packed, half;
  const std::string images = idx_images(4, 3, 3, pixels(36)), labels = idx_labels({1, 0, 1, 3});
  plain.write("t10k-labels-idx1-ubyte", labels);
  packed.write("t10k-labels-idx1-ubyte.gz", gzip(labels));
  half.write("t10k-labels-idx1-ubyte", labels);
  const IdxDataset a(plain.write("t10k-images-idx3-ubyte", images)), b(packed.write("t10k-images-idx3-ubyte.gz", gzip(images))),
      c(half.write("t10k-images-idx3-ubyte.gz", gzip(images)));
  for (const IdxDataset* other : {&b, &c}) {
    EXPECT_EQ(other->info().fingerprint, a.info().fingerprint);
    for (int64_t i = 0; i < 4; ++i) {
      Columns x, y;
      a.read(i, 0, x);
      other->read(i, 0, y);
      EXPECT_EQ(x.reals.at("pixels"), y.reals.at("pixels"));
      EXPECT_EQ(x.ints.at("labels").at(0), y.ints.at("labels").at(0));
    }
  }
}

TEST(Idx, DotNamesAndMissingLabels) {
  const Folder folder;
  const std::string path = folder.write("train-images.idx3-ubyte", idx_images(1, 1, 1, "x"));
  const IdxDataset bare(path, 10);
  EXPECT_FALSE(bare.info().labelled);
  EXPECT_EQ(bare.info().classes, 10);
  Columns row;
  bare.read(0, 0, row);
  EXPECT_EQ(row.ints.at("labels").at(0), -1);
  folder.write("train-labels.idx1-ubyte", idx_labels({7}));
  const IdxDataset set(path);
  EXPECT_EQ(set.info().classes, 8);
  EXPECT_NE(set.info().fingerprint, bare.info().fingerprint);
}

TEST(Idx, FingerprintDependsOnPixelsAndLabels) {
  const Folder folder;
  const auto print = [&](const std::string& data, const std::string& labels) {
    folder.write("a-labels-idx1-ubyte", idx_labels(labels));
    return IdxDataset(folder.write("a-images-idx3-ubyte", idx_images(2, 1, 1, data)), 3).info().fingerprint;
  };
  const std::string one = print("xy", {0, 1});
  EXPECT_EQ(one, print("xy", {0, 1}));
  EXPECT_NE(one, print("xz", {0, 1}));
  EXPECT_NE(one, print("xy", {1, 0}));
}

struct BadIdx {
  const char* about;
  std::string images, labels, what, why;
  int64_t classes = 0;
};

TEST(Idx, BadFiles) {
  const std::string good = idx_images(2, 2, 2, pixels(8)), labels = idx_labels({0, 1}), packed = gzip(good);
  const std::vector<BadIdx> bad = {
      {"empty", "", labels, "is empty", "0 bytes"},
      {"too short for a header", good.substr(0, 11), labels, "is damaged", "header is cut off"},
      {"truncated", good.substr(0, good.size() - 1), labels, "is damaged", "promises 8 bytes of data, there are 7"},
      {"too long", good + "x", labels, "is damaged", "there are 9"},
      {"wrong magic", std::string(1, 1).append(good, 1), labels, "is not an IDX file of images", "0 0 8 3"},
      {"labels given as images", labels, labels, "is not an IDX file of images", "0 0 8 3"},
      {"no rows", idx_images(0, 2, 2, ""), idx_labels(""), "is damaged", "impossible sizes"},
      {"sizes that overflow", idx_images(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, "x"), labels, "is damaged", "impossible sizes"},
      {"images given as labels", good, good, "is not an IDX file of labels", "0 0 8 1"},
      {"truncated labels", good, labels.substr(0, labels.size() - 1), "is damaged", "promises 2"},
      {"empty labels", good, "", "is empty", "0 bytes"},
      {"count mismatch", good, idx_labels({0, 1, 2}), "does not fit its images", "3 labels for 2 images"},
      {"label out of range", good, idx_labels({0, 5}), "bad label", "image 1 has label 5, outside 0..2", 3},
      {"label just out of range", good, idx_labels({3, 0}), "bad label", "image 0 has label 3, outside 0..2", 3},
      {"label above 127", good, idx_labels({1, '\xc8'}), "bad label", "image 1 has label 200, outside 0..2", 3},
      {"truncated gzip", packed.substr(0, packed.size() - 12), labels, "is damaged", "end too early"},
      {"gzip header only", packed.substr(0, 10), labels, "is damaged", "end too early"},
      {"damaged gzip", packed.substr(0, 12) + "\xff\xff\xff\xff" + packed.substr(16), labels, "is damaged", "gzip"},
      {"empty gzip", gzip(""), labels, "is empty", "unpacks to 0 bytes"},
  };
  for (const BadIdx& b : bad) {
    SCOPED_TRACE(b.about);
    const Folder folder;
    folder.write("x-labels-idx1-ubyte", b.labels);
    const std::string path = folder.write("x-images-idx3-ubyte", b.images);
    expect_told(caught([&] { IdxDataset set(path, b.classes); }), ErrorCode::config, b.what, b.why);
  }
}

TEST(Idx, FillsTheFieldsThatItDeclares) {
  const Folder folder;
  const IdxDataset set(folder.write("x-images-idx3-ubyte", idx_images(1, 2, 3, pixels(6))));
  Columns row;
  set.read(0, 0, row);
  ASSERT_EQ(set.info().fields.fields.size(), 2u);
  EXPECT_EQ(set.info().fields.find("pixels")->width, static_cast<int64_t>(row.reals.at("pixels").size()));
  EXPECT_EQ(row.ints.at("labels"), (std::vector<int32_t>{-1})) << "without a labels file";
}

TEST(Idx, TheDemoSet) {
  const std::string folder = test::kAssets + "/data/fashion-mnist-10k/";
  const IdxDataset train(folder + "train-images-idx3-ubyte.gz"), dev(folder + "dev-images-idx3-ubyte.gz", 10);
  EXPECT_EQ(train.info().rows, 10000);
  EXPECT_EQ(dev.info().rows, 2000);
  EXPECT_EQ(train.info().classes, 10);
  EXPECT_EQ(train.info().height * train.info().width, 784);
}

}  // namespace
}  // namespace comera
