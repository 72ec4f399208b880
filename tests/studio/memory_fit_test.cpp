// Plans that do not fit into memory: what is said, and the settings that help.
#include "app/studio/form/memory_fit.h"

#include "app/studio/actions.h"
#include "app/studio/form/new_run.h"
#include "core/base/error.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

RunConfig preset(const std::string& name, const std::vector<std::string>& sets = {}) {
  setenv("COMERA_ASSETS", COMERA_SOURCE_DIR "/assets", 0);
  return load_config(name, sets);
}

TEST(MemoryFit, RemediesAreDryRunsOfTheirOwn) {
  const RunConfig config = preset("encoder2-nli");
  const MemoryByPurpose planned = make_forecast(config).memory;
  EXPECT_EQ(find_misfit(config, planned, planned.total()), nullptr) << "it fits exactly";
  const int64_t available = planned.total() * 2 / 3;
  const auto misfit = find_misfit(config, planned, available);
  ASSERT_NE(misfit, nullptr);
  EXPECT_EQ(misfit->planned.bytes, planned.bytes);
  EXPECT_EQ(misfit->available, available);
  ASSERT_EQ(misfit->remedies.size(), 2u);
  EXPECT_EQ(misfit->remedies[0].path, "train.batch");
  EXPECT_EQ(misfit->remedies[1].path, "model.length");
  for (const Remedy& remedy : misfit->remedies) {
    RunConfig changed = config;
    set_config(changed, {remedy.path + "=" + std::to_string(remedy.to)});
    EXPECT_EQ(make_forecast(changed).memory.total(), remedy.bytes) << remedy.path;
    EXPECT_TRUE(remedy.fits);
    EXPECT_LE(remedy.bytes, available);
    set_config(changed, {remedy.path + "=" + std::to_string(remedy.to * 2)});
    EXPECT_GT(make_forecast(changed).memory.total(), available) << "no more is taken away than must be";
  }
}

TEST(MemoryFit, WhatIsTooLargeByItselfHasNoRemedy) {
  const RunConfig config = preset("mlp-fashion", {"method.weights=dense", "model.mlp.hidden=[4096,4096]", "train.batch=2"});
  const auto misfit = find_misfit(config, make_forecast(config).memory, 1 << 20);
  ASSERT_NE(misfit, nullptr);
  EXPECT_TRUE(misfit->remedies.empty()) << misfit->remedies.front().path;
}

class OutOfMemory : public Clicked {
 protected:
  bool until_seen(const std::string& name) {
    return stage_.until([&] {
      items_.clear();
      frame();
      return find(name) != nullptr;
    });
  }
};

TEST_F(OutOfMemory, TheFormSaysWhyAndOffersWhatFits) {
  open_form(ui(), "encoder2-nli");
  ASSERT_TRUE(stage_.until([&] { return ui().form.ready && !ui().form.looking; }));
  EXPECT_EQ(ui().form.misfit, nullptr);
  set_field(ui(), "train.batch", "65536");  // hundreds of GiB
  ASSERT_TRUE(stage_.until([&] { return !ui().form.looking; }));
  ASSERT_NE(ui().form.misfit, nullptr);
  EXPECT_TRUE(sees("says:The run needs "));
  EXPECT_EQ(std::count_if(items_.begin(), items_.end(), [](const NamedItem& item) { return item.name.starts_with("remedy:"); }), 2);
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  start_form(ui());
  ASSERT_TRUE(stage_.until([&] { return ui().form.listing; })) << "when the disk was looked at";
  EXPECT_EQ(ui().live, nullptr) << "it is not started";
  EXPECT_TRUE(sees("says:The run needs "));
  EXPECT_FALSE(find("problem:train.batch") || find("listed:train.batch")) << "the card tells it";
  ui().form.config.train.lr = -1;
  form_changed(ui(), "train.lr");
  start_form(ui());
  ASSERT_TRUE(stage_.until([&] { return !ui().form.looking; }));
  EXPECT_TRUE(sees("listed:train.lr")) << "others are listed";
  stage_.press(ImGuiKey_Escape);
  reset_field(ui(), "train.lr");
  ASSERT_TRUE(stage_.until([&] { return !ui().form.looking; }));
  ASSERT_NE(ui().form.misfit, nullptr);
  const auto remedy = std::find_if(ui().form.misfit->remedies.begin(), ui().form.misfit->remedies.end(),
                                   [](const Remedy& one) { return one.path == "train.batch"; });
  ASSERT_NE(remedy, ui().form.misfit->remedies.end());
  const int64_t to = remedy->to;
  click("remedy:train.batch");
  EXPECT_EQ(ui().form.config.train.batch, to);
  EXPECT_TRUE(ui().form.is_changed("train.batch"));
  ASSERT_TRUE(stage_.until([&] { return !ui().form.looking; }));
  EXPECT_EQ(ui().form.misfit, nullptr);
  EXPECT_FALSE(sees("remedy:train.batch"));
}

// The real core: the run ends before anything is taken.
TEST_F(OutOfMemory, ARunThatDoesNotFitLeadsBackToTheForm) {
  ui().open_session = start_session;
  const std::vector<std::string> sets = {"train.batch=2000", "train.threads=1", "model.tt.ffn_in.in_modes=[]",
                                         "model.tt.ffn_in.out_modes=[]",
                                         "model.mlp.hidden=[1048576,1048576,1048576,1048576,1048576,1048576,1048576,1048576]"};
  ASSERT_TRUE(start_config(ui(), preset("demo", sets)));
  ASSERT_TRUE(stage_.until([&] { return ui().live->view().ended(); }));
  const Snapshot& s = *ui().live->view().snapshot;
  ASSERT_EQ(s.phase, Phase::failed);
  EXPECT_EQ(s.error_code, static_cast<int>(ErrorCode::memory));
  EXPECT_GT(s.memory_planned.total(), available_memory()) << "what it would have taken is told";
  EXPECT_EQ(s.memory_peak.total(), 0) << "and nothing was";
  ASSERT_TRUE(until_seen("remedy:train.batch"));
  EXPECT_TRUE(find("says:The run needs ")) << s.message;
  EXPECT_TRUE(find("says:Activations take ")) << s.error_why;
  EXPECT_TRUE(find("retry-half"));
  EXPECT_FALSE(find("retry-cpu")) << "it is on the processor already";
  click("remedy:train.batch");
  EXPECT_EQ(ui().layout, "new");
  ASSERT_TRUE(stage_.until([&] { return ui().form.ready; }));
  EXPECT_LT(ui().form.config.train.batch, 2000);
  EXPECT_EQ(ui().form.config.model.mlp.hidden.size(), 8u) << "all other settings are those of the run";
}

// A run that a GPU has no room for goes on with one press: with half its batch, or on the processor.
TEST_F(OutOfMemory, OnePressTriesAgain) {
  RunConfig config = preset("demo", {"train.batch=48"});
  config.train.device = "cuda:0";
  ASSERT_TRUE(start_config(ui(), config));
  say([](Snapshot& s) {  // and so will every session that is started here
    s.phase = Phase::failed;
    s.message = "the run needs 310 MiB and 190 MiB are free";
    s.error_code = static_cast<int>(ErrorCode::memory);
  });
  click("retry-half");
  EXPECT_EQ(stage_.started.config.train.batch, 24);
  EXPECT_EQ(stage_.started.config.train.device, "cuda:0");
  click("retry-cpu");
  EXPECT_EQ(stage_.started.config.train.device, "cpu");
  EXPECT_EQ(stage_.started.config.train.batch, 24) << "the rest as it was";
  EXPECT_FALSE(sees("retry-cpu"));
  // A fork gets it as a setting of its own; a run that is resumed keeps its batch.
  ui().last_start.fork_run = "r-parent";
  click("retry-half");
  EXPECT_EQ(stage_.started.fork_run, "r-parent");
  EXPECT_EQ(stage_.started.sets, std::vector<std::string>{"train.batch=12"});
  ui().last_start.resume_run = "r-parent";
  EXPECT_FALSE(sees("retry-half"));
  EXPECT_TRUE(find("change-settings"));
}

}  // namespace
}  // namespace comera::studio
