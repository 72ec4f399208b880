// The tensorised layers against the published code, on every tt_linear_* and ttm_embedding_* file there is.
#include "tests/layers/golden.h"

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "core/layers/tt_linear.h"
#include "core/layers/ttm_embedding.h"
#include "tests/layers/check_layer.h"
#include "tests/layers/dense_equivalent.h"

namespace comera::layer_test {
namespace {

double worst = 0;  // over all comparisons of a test, for its report

void expect_close(const Values& actual, const Values& golden, DType dtype, const std::string& what) {
  const double difference = relative_difference(actual, golden);
  worst = std::max(worst, difference);
  EXPECT_LE(difference, dtype == DType::f64 ? kGoldenDouble : kGoldenFloat) << what;
}

// Cores, ranks and their gradients. Dead rank entries count as dead whatever the file holds there: we leave the value,
// the published table mask overwrites it; our gradient for them is 0.
void load_train(Rig& rig, const SafetensorsFile& file) {
  const RankLayer& train = rig.params.rank_layers().front();
  for (size_t k = 0; k < train.cores.size(); ++k) rig.set(train.cores[k]->value, file.values("core." + std::to_string(k)));
  for (size_t k = 0; k < train.ranks.size(); ++k) rig.set(train.ranks[k]->value, file.values("rank." + std::to_string(k)));
}

void compare_train(Rig& rig, const SafetensorsFile& file) {
  const RankLayer& train = rig.params.rank_layers().front();
  for (size_t k = 0; k < train.cores.size(); ++k)
    expect_close(rig.get(train.cores[k]->grad), file.values("dcore." + std::to_string(k)), rig.dtype, "dcore." + std::to_string(k));
  for (size_t k = 0; k < train.ranks.size(); ++k) {
    const Values ranks = rig.get(train.ranks[k]->value), ours = rig.get(train.ranks[k]->grad);
    Values published = file.values("drank." + std::to_string(k));
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] > rig.scalars.threshold) continue;
      EXPECT_EQ(ours[i], 0) << "a dead entry of drank." << k;
      published[i] = 0;
    }
    expect_close(ours, published, rig.dtype, "drank." + std::to_string(k));
  }
}

TTShape shape_of(const SafetensorsFile& file, const char* in_modes, const char* out_modes) {
  TTShape shape;
  shape.in_modes = golden_setting<std::vector<int64_t>>(file, in_modes);
  shape.out_modes = golden_setting<std::vector<int64_t>>(file, out_modes);
  shape.ranks = golden_setting<std::vector<int64_t>>(file, "ranks");
  shape.in = shape.padded_in();
  shape.out = shape.padded_out();
  return shape;
}

TEST(Golden, TTLinear) {
  const std::vector<std::string> files = golden_files("tt_linear");
  if (files.empty()) GTEST_SKIP() << "no tt_linear_* in the folder";
  for (const DType dtype : {DType::f64, DType::f32}) {
    worst = 0;
    for (const std::string& path : files)
      for (const TTOrder order : {TTOrder::merged, TTOrder::sequential}) {
        SCOPED_TRACE(path + " " + name_of(dtype) + (order == TTOrder::merged ? " merged" : " sequential"));
        const SafetensorsFile file(path);
        Rig rig(dtype);
        rig.scalars.threshold = golden_setting<double>(file, "threshold");
        LayerFactory factory(rig.params, *rig.stash);
        const TTShape shape = shape_of(file, "in_modes", "out_modes");
        TTLinear layer("l", shape, LinearKind::attention, factory, order);
        rig.start();
        load_train(rig, file);
        rig.set(rig.params.find("l.bias")->value, file.values("bias"));
        const std::vector<int64_t> live = golden_setting<std::vector<int64_t>>(file, "live_ranks");
        for (size_t k = 0; k < live.size(); ++k) {
          const Values ranks = rig.get(rig.params.rank_layers().front().ranks[k]->value);
          EXPECT_EQ(std::count_if(ranks.begin(), ranks.end(), [&](double d) { return d > rig.scalars.threshold; }), live[k]);
        }
        expect_close(contract(rig, rig.params.rank_layers().front()), file.values("dense_equivalent"), dtype, "dense equivalent");

        const Values x = file.values("x");
        const Pass run = pass(rig, layer, rig.put(x, {static_cast<int64_t>(x.size()) / shape.in, shape.in}), file.values("dy"));
        expect_close(run.y, file.values("y"), dtype, "y");
        expect_close(run.dx, file.values("dx"), dtype, "dx");
        expect_close(run.grads(rig, "l.bias"), file.values("dbias"), dtype, "dbias");
        compare_train(rig, file);
      }
    std::printf("  %zu files, both orders, %s: largest relative difference %.1e\n", files.size(), name_of(dtype), worst);
  }
}

TEST(Golden, TTMEmbedding) {
  const std::vector<std::string> files = golden_files("ttm_embedding");
  if (files.empty()) GTEST_SKIP() << "no ttm_embedding_* in the folder";
  for (const DType dtype : {DType::f64, DType::f32}) {
    worst = 0;
    for (const std::string& path : files) {
      SCOPED_TRACE(path + " " + name_of(dtype));
      const SafetensorsFile file(path);
      Rig rig(dtype);
      rig.scalars.threshold = golden_setting<double>(file, "threshold");
      LayerFactory factory(rig.params, *rig.stash);
      TTMEmbedding layer("e", shape_of(file, "row_modes", "col_modes"), factory);
      rig.start();
      load_train(rig, file);
      const Values wide = file.values("ids");
      const Pass run = pass(rig, layer, rig.put_ids(std::vector<int32_t>(wide.begin(), wide.end())), file.values("dy"));
      expect_close(run.y, file.values("y"), dtype, "y");
      compare_train(rig, file);
    }
    std::printf("  %zu files, %s: largest relative difference %.1e\n", files.size(), name_of(dtype), worst);
  }
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// Whether a file of tests/FOLDER has the test SUITE.NAME and asks for files of this kind.
bool reads(const std::string& folder, const std::string& test, const std::string& kind) {
  const size_t dot = test.find('.');
  const std::string head = "TEST(" + test.substr(0, dot) + ", " + test.substr(dot + 1) + ")";
  for (const auto& entry : std::filesystem::directory_iterator(COMERA_SOURCE_DIR "/tests/" + folder)) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = text_of(entry.path());
    const size_t at = text.find(head), end = text.find("\n}\n", at);
    if (at != std::string::npos && text.find('"' + kind + '"', at) < end) return true;
  }
  return false;
}

// tests/golden/files.txt names the test that reads each file, and "-" where none does.
TEST(Golden, FilesAndTheirTests) {
  std::map<std::string, std::string> tests;  // "optim Golden.Coap" by the name of a file
  std::istringstream list(text_of(COMERA_SOURCE_DIR "/tests/golden/files.txt"));
  for (std::string line; std::getline(list, line);)
    if (const size_t space = line.find(' '); line[0] != '#') {
      EXPECT_TRUE(tests.emplace(line.substr(0, space), line.substr(space + 1)).second) << line;
    }
  std::map<std::string, std::string> kinds;
  for (const std::string& path : all_golden_files()) {
    const std::string name = std::filesystem::path(path).stem().string(), kind = golden_kind(SafetensorsFile(path));
    ASSERT_TRUE(tests.contains(name)) << name << " is not in tests/golden/files.txt";
    if (kind.empty()) std::printf("  no test reads %s\n", name.c_str());
    kinds[name] = kind;
  }
  for (const auto& [name, test] : tests) {
    if (!kinds.contains(name)) {  // kept in the whole set alone
      EXPECT_TRUE(test == "-" || given_golden_folder()) << name << " is not in tests/golden";
      continue;
    }
    if (test == "-") {
      EXPECT_TRUE(kinds[name].empty() || given_golden_folder()) << "a test reads " << name << " as " << kinds[name];
      continue;
    }
    const size_t space = test.find(' ');
    EXPECT_TRUE(reads(test.substr(0, space), test.substr(space + 1), kinds[name])) << name << ": " << test << " of kind " << kinds[name];
  }
}

}  // namespace
}  // namespace comera::layer_test
