// Matrices and tables as tensor trains: nothing is lost at full ranks, and the error that is said is the one there is.
#include "core/layers/tt_export.h"
#include "core/layers/tt_linear.h"
#include "tests/layers/check_layer.h"

namespace comera::layer_test {
namespace {

struct Train {
  Train(bool table, int64_t in, int64_t out, int64_t rank, int64_t cores) {
    TTKinds kinds;
    for (TTOptions* options : {&kinds.ffn_in, &kinds.embedding}) {
      options->rank = rank;
      options->cores = cores;
    }
    LayerFactory factory(rig.params, *rig.stash, {make_tt_form(kinds)});
    made = table ? factory.embedding("t", in, out) : factory.linear("t", in, out, LinearKind::ffn_in);
    rig.start();
  }
  const RankLayer& layer() { return rig.params.rank_layers().front(); }
  Values put(const Values& matrix) {
    const TrainOfMatrix train = tt_svd(layer(), matrix);
    error = train.error;
    for (size_t k = 0; k < layer().cores.size(); ++k) rig.set(layer().cores[k]->value, train.cores[k]);
    return dense_weight(layer(), *rig.device, 1e-2).values;
  }

  Rig rig;
  std::unique_ptr<Layer> made;
  double error = 0;
};

double difference(const Values& a, const Values& b) {
  Values left(a.size());
  for (size_t i = 0; i < a.size(); ++i) left[i] = a[i] - b[i];
  return std::sqrt(dot(left, left) / dot(b, b));
}

double length_of(Train& train, size_t core) {
  const Values values = train.rig.get(train.layer().cores[core]->value);
  return std::sqrt(dot(values, values));
}

struct Sizes {
  bool table;
  int64_t in, out, cores;
};
const Sizes kSizes[] = {{false, 12, 8, 2}, {false, 10, 14, 1}, {false, 30, 24, 3},
                        {false, 13, 7, 2}, {true, 24, 12, 3},  {true, 29, 10, 2}};  // primes are padded

TEST(TtSvd, AtFullRanksNothingIsLost) {
  for (const Sizes& s : kSizes) {
    Train train(s.table, s.in, s.out, 1000, s.cores);
    const Values matrix = noise_values(train.layer().dense_entries(), 3);
    EXPECT_LE(difference(train.put(matrix), matrix), 1e-13);
    EXPECT_LE(train.error, 1e-7);
  }
}

TEST(TtSvd, SaysTheErrorThatThereIs) {
  for (const Sizes& s : kSizes) {
    double before = 2;
    for (const int64_t rank : {1, 2, 4, 6}) {
      Train train(s.table, s.in, s.out, rank, s.cores);
      const Values matrix = noise_values(train.layer().dense_entries(), 3), near = train.put(matrix);
      const double there_is = difference(near, matrix);
      const bool padded = near.size() != static_cast<size_t>(TrainPlaces(train.layer()).count());
      if (padded)
        EXPECT_LE(there_is, train.error + 1e-12) << "what comes into the padding is an error, too";
      else
        EXPECT_NEAR(there_is, train.error, 1e-9);
      EXPECT_LT(train.error, before) << "rank " << rank;
      before = train.error;
      const double first = length_of(train, 0);
      for (size_t k = 1; k < train.layer().cores.size(); ++k) EXPECT_NEAR(length_of(train, k), first, 1e-12 * first);
    }
  }
}

// Ranks that follow from an error: it is kept, and a rank less in the last bond would break it.
TEST(TtSvd, TakesTheSmallestRanksForAnError) {
  for (const Sizes& s : kSizes) {
    Train train(s.table, s.in, s.out, 1000, s.cores);
    const Values matrix = noise_values(train.layer().dense_entries(), 3);
    int64_t before = 1 << 30;
    for (const double most : {0.0, 0.1, 0.4, 0.8, 100.0}) {
      const TrainOfMatrix found = tt_svd(train.layer(), matrix, most);
      EXPECT_LE(found.error, most + 1e-7);
      ASSERT_EQ(found.ranks.size() + 1, train.layer().cores.size());
      int64_t entries = 0;
      for (const Values& core : found.cores) entries += static_cast<int64_t>(core.size());
      EXPECT_LE(entries, before);
      before = entries;
      EXPECT_TRUE(most < 1 || found.ranks == std::vector<int64_t>(found.ranks.size(), 1));
    }
  }
  // One bond: its singular values are those of the matrix with a row mode first.
  Train two(true, 24, 12, 1000, 2);
  const Values matrix = noise_values(two.layer().dense_entries(), 5);
  for (int64_t rank = 1; rank < 6; ++rank) {
    Train fixed(true, 24, 12, rank, 2), more(true, 24, 12, rank + 1, 2);
    const double error = tt_svd(fixed.layer(), matrix).error;
    EXPECT_EQ(tt_svd(two.layer(), matrix, error * (1 + 1e-9)).ranks, std::vector<int64_t>{rank});
    EXPECT_EQ(tt_svd(two.layer(), matrix, error * (1 - 1e-9)).ranks, std::vector<int64_t>{rank + 1});
  }
}

// Of one bond it is the matrix nearest by gradients; of more bonds others are cut as without them. Both errors are those that there are.
TEST(TtSvd, ByGradients) {
  for (const Sizes& s : kSizes) {
    Train train(s.table, s.in, s.out, 4, s.cores);
    EXPECT_EQ(is_matrix(train.layer()), !s.table);
    if (s.table) continue;
    const int64_t side = std::min(s.in, s.out), other = std::max(s.in, s.out);
    const Values spread = noise_values(side * side, 8), diagonal = noise_values(other, 7),
                 matrix = noise_values(train.layer().dense_entries(), 3);
    GradientMoments moments{std::vector<float>(static_cast<size_t>(side * side)), {}};
    for (int64_t i = 0; i < side; ++i)
      for (int64_t j = 0; j < side; ++j)
        for (int64_t k = 0; k < side; ++k)
          moments.shorter[static_cast<size_t>(i * side + j)] +=
              static_cast<float>(spread[static_cast<size_t>(i * side + k)] * spread[static_cast<size_t>(j * side + k)]);
    for (const double value : diagonal) moments.longer.push_back(static_cast<float>(value * value));
    const TrainByGradients found = tt_svd(train.layer(), matrix, moments);
    for (size_t k = 0; k < train.layer().cores.size(); ++k) train.rig.set(train.layer().cores[k]->value, found.train.cores[k]);
    const Values near = dense_weight(train.layer(), *train.rig.device, 1e-2).values;
    EXPECT_NEAR(difference(near, matrix), found.train.error, 1e-9);
    const NearestOfRank nearest = nearest_of_rank(matrix, s.out, s.in, 4, moments);
    EXPECT_EQ(found.weighted_error, nearest.error);
    EXPECT_TRUE(s.cores > 1 || difference(near, nearest.matrix) <= 1e-12);
    EXPECT_GT(found.train.error, tt_svd(train.layer(), matrix).error);
  }
}

// A matrix that is a train of these ranks comes back.
TEST(TtSvd, ATrainIsFoundAgain) {
  Train from(false, 30, 24, 3, 3), to(false, 30, 24, 3, 3);
  const Values matrix = dense_weight(from.layer(), *from.rig.device, 1e-2).values;
  EXPECT_LE(difference(to.put(matrix), matrix), 1e-13);
  EXPECT_EQ(to.put(Values(matrix.size(), 0.0)), Values(matrix.size(), 0.0));
  EXPECT_EQ(to.error, 0);
}

}  // namespace
}  // namespace comera::layer_test
