// assets/data/get_data.py without a network: apt-get and dpkg-deb are replaced by scripts that give a small
// Fashion-MNIST and count how often they were called.
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json.h"
#include "core/data/datasets.h"
#include "tests/data/support.h"

namespace comera {
namespace {

namespace fs = std::filesystem;
using test::Folder;

class GetData : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null") != 0)
      GTEST_SKIP() << "no python3 of 3.11 or later";
    std::string pixels, labels;
    for (int i = 0; i < 300; ++i) {
      for (int p = 0; p < 4; ++p) pixels.push_back(static_cast<char>(i >> p));
      labels.push_back(static_cast<char>(i % 10));
    }
    for (const char* part : {"train", "t10k"}) {
      folder_.write(std::string("tree/usr/share/datasets/") + part + "-images-idx3-ubyte.gz",
                    test::gzip(test::idx_images(300, 2, 2, pixels)));
      folder_.write(std::string("tree/usr/share/datasets/") + part + "-labels-idx1-ubyte.gz", test::gzip(test::idx_labels(labels)));
    }
    ASSERT_EQ(std::system(("tar -C " + quoted("tree") + " -cf " + quoted("package.tar") + " ./usr").c_str()), 0);
    script("apt-get", "echo call >> " + quoted("calls") + "\ncat " + quoted("package.tar") + " > dataset-fashion-mnist_1_all.deb");
    script("dpkg-deb", "cat \"$2\"");
  }

  // A path in the folder, for a shell.
  std::string quoted(const std::string& name) const { return "'" + folder_ / name + "'"; }

  void script(const std::string& name, const std::string& body) {
    const std::string path = folder_.write("bin/" + name, "#!/bin/sh\n" + body + "\n");
    fs::permissions(path, fs::perms::owner_all);
  }

  struct Result {
    int exit = -1;
    nlohmann::json json;
  };
  Result get(const std::string& arguments) {
    const std::string out = folder_ / "stdout";
    const int status =
        std::system(("PATH=" + quoted("bin") + ":$PATH python3 '" + test::kAssets + "/data/get_data.py' --json --out " + quoted("data") +
                     " --cache " + quoted("cache") + " " + arguments + " > '" + out + "' 2> " + quoted("stderr"))
                        .c_str());
    return {WEXITSTATUS(status), try_parse_json(test::read_file(out))};
  }
  int calls() const { return static_cast<int>(fs::exists(folder_ / "calls") ? test::read_file(folder_ / "calls").size() / 5 : 0); }

  const Folder folder_;
};

TEST_F(GetData, MakesASetThatOpensAndKeepsIt) {
  Result made = get("fashion-mnist --allow-changed");
  ASSERT_EQ(made.exit, 0) << test::read_file(folder_ / "stderr");
  EXPECT_EQ(made.json["sets"][0]["status"], "made");
  const auto train = open_dataset({.path = folder_ / "data/fashion-mnist"}),
             dev = open_dataset({.path = folder_ / "data/fashion-mnist", .split = "dev"});
  EXPECT_EQ(open_dataset({.path = folder_ / "data/fashion-mnist", .split = "test"})->info().rows, 300);
  EXPECT_GT(dev->info().rows, 0);
  EXPECT_GT(train->info().rows, 5 * dev->info().rows);
  EXPECT_LT(train->info().rows + dev->info().rows, 300);
  for (const nlohmann::json& file : made.json["sets"][0]["files"])  // nothing half-written stays
    EXPECT_TRUE(fs::exists(folder_ / "data/fashion-mnist/" + file["file"].get<std::string>()));
  for (const auto& entry : fs::directory_iterator(folder_ / "data/fashion-mnist")) EXPECT_NE(entry.path().extension(), ".part");
  made = get("fashion-mnist --allow-changed");
  EXPECT_EQ(made.json["sets"][0]["status"], "already there");
  EXPECT_EQ(calls(), 1);
}

TEST_F(GetData, CompletesAHalfWrittenSetWithoutFetchingAgain) {
  ASSERT_EQ(get("fashion-mnist --allow-changed").exit, 0);
  const std::string labels = folder_ / "data/fashion-mnist/dev-labels-idx1-ubyte", before = test::read_file(labels);
  for (const bool remove : {true, false}) {
    if (remove)
      fs::remove(labels);
    else
      std::ofstream(labels, std::ios::app) << "x";
    const Result again = get("fashion-mnist --allow-changed");
    EXPECT_EQ(again.json["sets"][0]["status"], "made");
    EXPECT_EQ(test::read_file(labels), before);
  }
  EXPECT_EQ(calls(), 1);
}

TEST_F(GetData, AnotherNumberOfRowsIsAnotherSet) {
  ASSERT_EQ(get("fashion-mnist --allow-changed").exit, 0);
  EXPECT_EQ(get("fashion-mnist --allow-changed --rows 20").json["sets"][0]["status"], "made");
  EXPECT_EQ(open_dataset({.path = folder_ / "data/fashion-mnist"})->info().rows, 20);
}

TEST_F(GetData, RefusesAChangedArchive) {
  for (int round = 1; round <= 2; ++round) {
    const Result result = get("fashion-mnist");
    EXPECT_EQ(result.exit, 3);
    EXPECT_EQ(result.json["error"]["code"], 3);
    EXPECT_NE(result.json["error"]["why"].get<std::string>().find("pinned"), std::string::npos);
    EXPECT_FALSE(fs::exists(folder_ / "data/fashion-mnist"));
    EXPECT_EQ(calls(), round);  // what was refused is not kept
  }
}

TEST_F(GetData, SaysWhatWentWrong) {
  EXPECT_EQ(get("no-such-set").exit, 2);
  EXPECT_EQ(get("fashion-mnist --rows -1").exit, 2);
  script("apt-get", "echo 'E: no network' >&2; exit 100");
  const Result offline = get("fashion-mnist");
  EXPECT_EQ(offline.exit, 8);
  EXPECT_EQ(offline.json["error"]["why"], "E: no network");
  script("apt-get", "echo garbage > dataset-fashion-mnist_1_all.deb");
  EXPECT_EQ(get("fashion-mnist --allow-changed").exit, 3);
  folder_.write("file", "x");
  EXPECT_EQ(get("fashion-mnist --out " + folder_ / "file").exit, 7);
}

TEST_F(GetData, ListsTheSetsItCanMake) {
  std::set<std::string> listed, known;
  for (const nlohmann::json& set : get("--list").json) listed.insert(set["name"]);
  for (const KnownSet& set : known_sets(test::kAssets)) known.insert(set.name);
  EXPECT_EQ(listed, known);
  const int status = std::system(("cd '" + std::string(test::kAssets) +
                                  "/data' && python3 -c 'import json, sys; sys.dont_write_bytecode = True; import get_data; "
                                  "sys.exit({s[\"name\"] for s in get_data.known_sets()} != set(get_data.MAKERS))'")
                                     .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 0) << "sets.json and MAKERS differ";
}

}  // namespace
}  // namespace comera
