// Names of the published state_dict and back.
#include <set>

#include "tests/layers/golden.h"
#include "tests/models/net.h"

namespace comera::model_test {
namespace {

TEST(OfficialNames, KnownPairs) {
  for (const auto& [ours, theirs] : std::initializer_list<std::pair<const char*, const char*>>{
           {"enc0.attn.q.core.2", "encoder.encoder_blocks.0.slf_attn.w_qs.layer.tensor.factors.2"},
           {"enc11.attn.k.rank.1", "encoder.encoder_blocks.11.slf_attn.w_ks.layer.tensor.rank_parameters.1"},
           {"enc3.attn.v.bias", "encoder.encoder_blocks.3.slf_attn.w_vs.layer.bias"},
           {"enc0.attn.o.weight", "encoder.encoder_blocks.0.slf_attn.fc.layer.weight"},
           {"enc0.attn.norm.gamma", "encoder.encoder_blocks.0.slf_attn.layer_norm.weight"},
           {"enc5.ffn.in.core.0", "encoder.encoder_blocks.5.pos_ffn.fc_1.layer.tensor.factors.0"},
           {"enc5.ffn.out.bias", "encoder.encoder_blocks.5.pos_ffn.fc_2.layer.bias"},
           {"enc5.ffn.norm.beta", "encoder.encoder_blocks.5.pos_ffn.layer_norm.bias"},
           {"emb.token.core.3", "encoder.embedding.word_emb.tensor.factors.3"},
           {"emb.token.rank.0", "encoder.embedding.word_emb.tensor.rank_parameters.0"},
           {"emb.position", "encoder.embedding.position_emb.weight"},
           {"emb.segment", "encoder.embedding.token_type_emb.weight"},
           {"emb.norm.gamma", "encoder.embedding.layer_norm.weight"},
           {"classifier.fc.core.1", "classifier.fc1.layer.tensor.factors.1"},
           {"head.weight", "classifier.fc2.layer.weight"},
           {"head.bias", "classifier.fc2.layer.bias"}}) {
    EXPECT_EQ(official_name(ours), theirs);
    EXPECT_EQ(own_name(theirs), ours);
  }
}

TEST(OfficialNames, EveryParameterOfTheClassifierHasOneOfItsOwn) {
  for (const bool tensorise : {false, true}) {
    Net net(toy_encoder(), tensorise);
    std::set<std::string> seen;
    for (const Param& param : net.rig.params.params()) {
      const std::string name = official_name(param.name);
      EXPECT_FALSE(name.empty()) << param.name;
      EXPECT_TRUE(seen.insert(name).second) << name;
      EXPECT_EQ(own_name(name), param.name);
    }
  }
}

TEST(OfficialNames, OthersHaveNone) {
  for (const char* name : {"", "enc", "enc0", "enc0.", "encx.attn.q.bias", "enc0.attn.q", "enc0.attn.q.core.", "enc0.attn.q.core.x",
                           "enc0.attn.q.gamma", "enc0.attn.norm.weight", "enc0.attn.z.bias", "emb.position.weight", "fc0.core.1", "head",
                           "head.core", "emb.token.", "enc.attn.q.bias"})
    EXPECT_EQ(official_name(name), "") << name;
  for (const char* name :
       {"", "encoder", "encoder.encoder_blocks..slf_attn.fc.layer.bias", "encoder.encoder_blocks.0.slf_attn.fc.layer.gamma",
        "classifier.fc1.layer", "encoder.embedding.position_emb", "enc0.attn.q.bias"})
    EXPECT_EQ(own_name(name), "") << name;
}

TEST(OfficialNames, CoverTheGoldenFiles) {
  for (const std::string& path : golden_files("encoder")) {
    const SafetensorsFile file(path);
    for (const auto& [name, entry] : file.entries()) {
      if (name.rfind("before/", 0) != 0) continue;
      const std::string official = name.substr(7);
      EXPECT_NE(own_name(official), "") << official;
      EXPECT_EQ(official_name(own_name(official)), official);
    }
  }
}

}  // namespace
}  // namespace comera::model_test
