// The tensorised layers against the published code, on every tt_linear_* and ttm_embedding_* file there is.
#include "tests/layers/golden.h"

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
        LayerFactory factory(rig.params, *rig.stash, nullptr);
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
      LayerFactory factory(rig.params, *rig.stash, nullptr);
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

// Each kind that a test reads has files in the project's own folder; what no test reads yet is listed.
TEST(Golden, EveryKindHasItsFiles) {
  std::map<std::string, std::vector<std::string>> names;  // by kind
  for (const std::string& path : all_golden_files())
    names[golden_kind(SafetensorsFile(path))].push_back(std::filesystem::path(path).stem().string());
  for (const auto& [kind, of_kind] : names) {
    std::printf("  %s:", kind.empty() ? "no test reads" : kind.c_str());
    for (const std::string& name : of_kind) std::printf(" %s", name.c_str());
    std::printf(" (%zu)\n", of_kind.size());
  }
  if (given_golden_folder()) return;
  const std::pair<const char*, size_t> least[] = {{"tt_linear", 2}, {"ttm_embedding", 1}, {"encoder", 1},         {"galore", 5},
                                                  {"galore8", 2},   {"bnb8_adam", 2},     {"bnb8_maps", 1},       {"bnb8_quantise", 1},
                                                  {"mesa", 8},      {"adafactor", 9},     {"galore_adafactor", 2}};
  for (const auto& [kind, count] : least) EXPECT_GE(names[kind].size(), count) << kind;
}

}  // namespace
}  // namespace comera::layer_test
