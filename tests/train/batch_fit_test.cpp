// Which data sets a run can train on, and what it says of the others.
#include "core/train/batch_fit.h"

#include "core/base/error.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

std::string said(const RunConfig& config, const DatasetInfo& train, const DatasetInfo* validation = nullptr) {
  try {
    check_fit(config, train, validation);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.why() + " | " + error.hint();
  }
  return "";
}

TEST(BatchFit, ASetThatFillsTheFieldsFits) {
  EXPECT_EQ(said(text_config(), Sentences().info()), "");
  EXPECT_EQ(said(image_config(), Blobs().info()), "");
  RunConfig larger = text_config();
  larger.model.classes = 5;
  larger.model.encoder.vocab = 1000;
  EXPECT_EQ(said(larger, Sentences().info()), "");
}

TEST(BatchFit, AnotherKindOfDataNamesTheModelThatReadsIt) {
  DatasetInfo text = Sentences().info(), images = Blobs().info();
  text.name = "t", images.name = "i";
  EXPECT_EQ(said(image_config(), text), "model.kind 'mlp' does not fit the data set t | the set holds text | use --set model.kind=encoder");
  EXPECT_EQ(said(text_config(), images),
            "model.kind 'encoder' does not fit the data set i | the set holds images | use --set model.kind=mlp");
  EXPECT_EQ(said(text_config(), text, &images), "training and validation data are of different kinds |  | ");
}

TEST(BatchFit, AFieldThatIsTooLargeNamesItsSetting) {
  RunConfig config = text_config();
  config.model.encoder.vocab = 59;
  EXPECT_EQ(said(config, Sentences().info()),
            "model.encoder.vocab is 59, the vocabulary has 60 tokens | a token would be out of range | use --set model.encoder.vocab=60");
  config = image_config();
  config.model.mlp.inputs = 65;
  EXPECT_EQ(said(config, Blobs().info()), "model.mlp.inputs is 65, the images are 8 x 8 |  | use --set model.mlp.inputs=64");
  config.model.mlp.inputs = 64;
  config.model.classes = 3;
  DatasetInfo images = Blobs().info();
  images.name = "i";
  describe_images(images);
  EXPECT_EQ(said(config, images), "model.classes is 3, the data set i has 4 | a label would be out of range | use --set model.classes=4");
}

TEST(BatchFit, TargetsThatAreMissingAreTheTasksMatter) {
  DatasetInfo images = Blobs().info();
  images.name = "i";
  std::erase_if(images.fields.fields, [](const BatchField& field) { return field.name == "labels"; });
  EXPECT_EQ(said(image_config(), images), "model.task 'classification' does not fit the data set i | the set has no labels | ");
  images = Blobs().info();
  images.name = "i";
  images.labelled = false;
  EXPECT_EQ(said(image_config(), images), "the training file of i has no labels |  | give a file with labels");
}

TEST(BatchFit, InputsComeBeforeTargets) {
  std::vector<std::string> names;
  for (const BatchField& field : batch_layout(text_config().model).fields) names.push_back(field.name);
  EXPECT_EQ(names, (std::vector<std::string>{"ids", "segments", "positions", "starts", "lengths", "labels"}));
}

}  // namespace
}  // namespace comera::test
