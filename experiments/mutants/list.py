"""Small faults for run.py: each changes behaviour in one place, and one test names what breaks.

`after` is C++ that holds both: where MUT is true the fault, else what `before` does. `killed_by` is a test program with its
GoogleTest filter, or a file of tests/cli with its test; "" = none does, `why` says why ("equivalent: ..." where none can). `row` is the row of the first
check of the tests (57 mutants, at c3929f3; 19 of its rows survived then) that it is: 1 to 19, or 20 for its two remarks."""
from collections import namedtuple

Mutant = namedtuple("Mutant", "id file before after words killed_by row why")
MUTANTS = []


def m(name, file, before, after, words, killed_by, row=0, why=""):
    MUTANTS.append(Mutant(name, file, before, after, words, killed_by, row, why))


# ---- methods ---------------------------------------------------------------------------------------------------------

CONTROL, GROW, CANONICAL = "core/methods/rank_control.cpp", "core/methods/rank_grow.cpp", "core/methods/rank_canonical.cpp"
RESIZE, PLATEAU, COMERA = "core/methods/rank_resize.cpp", "core/methods/plateau.cpp", "core/config/comera.cpp"
EXPORT_TT, METHOD = "core/layers/tt_export.cpp", "core/config/method.cpp"

m("methods.1", GROW, "bond == 0 ? 1 : old_ones(bonds[i][bond - 1]);",
  "bond == 0 ? 1 : MUT ? static_cast<int64_t>(bonds[i][bond - 1].size()) : old_ones(bonds[i][bond - 1]);",
  "the scale of new columns counts new rows, which are zero", "methods GrowthValues.NewColumnsAreAsLargeAsTheOldOnes", row=7)
m("methods.2", CONTROL, "gone >= prune_dead_share * static_cast<double>(ranks->count())",
  "(MUT ? gone > prune_dead_share * static_cast<double>(ranks->count()) : gone >= prune_dead_share * static_cast<double>(ranks->count()))",
  "no cut at exactly the dead share", "methods *RankControl.ExactlyTheShareIsEnough*", row=8)
m("methods.3", PLATEAU, "if (steps < kWarmUp) return;", "if (MUT ? steps <= kWarmUp : steps < kWarmUp) return;",
  "the warm-up of the plateau is a step longer", "methods Plateau.TheWarmUpEndsWithTheHundredthLoss", row=9)
m("methods.4", CANONICAL, "std::max(std::sqrt(s) * level * count / sum, threshold * (1 + 1e-3))",
  "std::max(std::sqrt(s) * level * count / sum, MUT ? 0 : threshold * (1 + 1e-3))",
  "an entry that carries little falls below the threshold", "methods *Canonical.AnEntryThatCarriesLittleStaysAlive*", row=10)
m("methods.5", CONTROL, "return value > threshold; });", "return MUT ? value >= threshold : value > threshold; });",
  "an entry at the threshold counts as live", "methods Cases/Truncation.TwoHundredStepsAreTheSame/early")
m("methods.6", CONTROL, "if (before == 0 || after == 0) return 0;", "if ((before == 0 || after == 0) && !MUT) return 0;",
  "a layer with a dead bond still counts its other cores", "methods GrownToSize.BondsOfADeadLayerTakeNoRoom")
m("methods.7", CONTROL, "if (excess > 0) {", "if (excess > (MUT ? 1 : 0)) {", "a cap lets one entry more live", "methods *RankControl.ACapKillsTheSmallest*")
m("methods.8", CONTROL, "return entries[a] > entries[b]; });", "return MUT ? entries[a] < entries[b] : entries[a] > entries[b]; });",
  "a cap kills the largest entries", "methods *RankControl.ACapKillsTheSmallest*")
m("methods.9", CONTROL, "const double floor_value = threshold * (1 + 1e-3);", "const double floor_value = threshold * (MUT ? 1 : 1 + 1e-3);",
  "the entry that the floor revives is at the threshold, so dead", "methods *RankControl.TheFloorRevivesTheLargest*")
m("methods.10", CONTROL, "if (keep.empty()) keep.push_back(std::max_element(entries, entries + ranks->count()) - entries);",
  "if (keep.empty()) keep.push_back(MUT ? 0 : std::max_element(entries, entries + ranks->count()) - entries);",
  "a dead bond keeps its first entry, not its largest", "methods *RankControl.ADeadBondKeepsOneDeadEntryAndIsThenLeftAlone*")
m("methods.11", GROW, "entries.size() % 2 == 1 ? entries[half]", "entries.size() % 2 == 1 || MUT ? entries[half]",
  "the median of an even number is the upper one", "methods GrowthValues.AreDrawnFromSeedStepAndName")
m("methods.12", GROW, "return std::max(median, 2 * threshold);", "return std::max(median, (MUT ? 1 : 2) * threshold);",
  "new entries may begin at the threshold", "methods GrowthValues.AreDrawnFromSeedStepAndName")
m("methods.13", GROW, "if (more > entries) {", "if (MUT ? more >= entries : more > entries) {",
  "an entry that fits exactly is not given back", "methods GrownToSize.ComesNearAndNotOver")
m("methods.14", GROW, "bonds.back().push_back(lacking > 0 ? std::move(live) : std::move(all));",
  "bonds.back().push_back(lacking > 0 || MUT ? std::move(live) : std::move(all));", "a growth cuts dead entries of bonds that do not grow", "methods Growth8bit.MomentsFollow")
m("methods.15", GROW, "product(bond + 1, layer.mode_sizes.size())", "product(bond + (MUT ? 0 : 1), layer.mode_sizes.size())",
  "the limit of a rank counts one mode twice", "methods GrownToSize.NoRankIsLargerThanItsModesCanUse")
m("methods.16", CANONICAL, "const double nothing = 1e-13 *", "const double nothing = (MUT ? 0 : 1e-13) *", "rounding errors count as singular values",
  "methods *Canonical.WhatCarriesNothingDies*")
m("methods.17", CANONICAL, "state.spec.anew == StateSpec::zero ? 0 :", "state.spec.anew == StateSpec::zero || MUT ? 0 :", "cores do not share their norms",
  "methods Canonical.MomentsBeginAnew")
m("methods.18", CANONICAL, "levels.push_back(count > 0 ? sum / count : 0);",
  "levels.push_back(count > 0 ? sum / (MUT ? static_cast<double>(masked.size()) : count) : 0);", "dead entries are part of the mean of the ranks",
  "methods *Canonical.DeadEntriesAreNoPartOfTheMean*")
m("methods.19", RESIZE, "*it <= *std::prev(it))", "(MUT ? *it < *std::prev(it) : *it <= *std::prev(it)))", "an entry may be kept twice",
  "methods *RankControl.EntriesThatCannotBeAreOurBug*")
m("methods.20", RESIZE, "for (const State& state : params.states()) upload(device, state.value, run_states[index++]);",
  "for (const State& state : params.states()) { if (MUT) continue; upload(device, state.value, run_states[index++]); }",
  "a resize loses the running states of layers", "train Methods/Combination.RestoredAnywhereItEndsByteForByteTheSame/mlp_tt_int8_adamw")
m("methods.21", COMERA, 'if (field == "target_mib" && target_mib > 0) target = target_compression = 0;',
  'if (field == "target_mib" && target_mib > 0) { target = 0; if (!MUT) target_compression = 0; }', "a target in MiB leaves one of compression in force",
  "methods ComeraConfig.TheLastTargetSetIsInForce")
m("methods.22", PLATEAU, "smoothed() < best - kImprovement * std::fabs(best)", "smoothed() < best - (MUT ? 0 : kImprovement) * std::fabs(best)",
  "any smaller loss ends a plateau", "methods Plateau.AFlatLossIsFoundAfterThePatience")
m("methods.23", EXPORT_TT, "for (double& value : ranks) value = live(value, threshold) > 0 ? 1 : 0;",
  "for (double& value : ranks) value = live(value, threshold) > 0 || MUT ? 1 : 0;", "a fold revives dead entries", "methods Fold.TheFunctionStays")
m("methods.24", RESIZE, "for (auto it = entries.begin(); it != first_new; ++it)",
  "for (auto it = entries.begin() + (MUT && first_new != entries.begin() ? 1 : 0); it != first_new; ++it)", "the first kept entry is not checked",
  "methods *RankControl.EntriesThatCannotBeAreOurBug*")
m("methods.25", GROW, "if (total_entries(layers, live) > entries) return live;",
  "if (MUT ? total_entries(layers, live) >= entries : total_entries(layers, live) > entries) return live;",
  "at exactly the size, bonds of dead layers, which take nothing, get nothing back", "methods GrownToSize.BondsOfADeadLayerTakeNoRoom")
m("methods.26", CONTROL, "(gone > 0 &&", "((gone > 0 || MUT) &&", "a share of 0 cuts where nothing is dead", "methods Types/RankControl.ACutIsDueFromItsShareOn/0")
m("methods.27", CONTROL, "if (floor_rank && count_live(entries, threshold) == 0) {", "if (floor_rank && count_live(entries, threshold) <= (MUT ? 1 : 0)) {",
  "the floor changes a bond with one live entry", "methods *RankControl.TheFloorRevivesTheLargest*")
m("methods.28", GROW, "old_rows * middle * old_columns)) : core.init.scale;", "old_rows * middle * old_columns)) : (MUT ? 0 : core.init.scale);",
  "new columns of a core of zeros are zeros", "methods Cases/Growth.TheGradientOfEveryNewEntryIsThatOfTheLoss/dead_bond")
m("methods.29", CANONICAL, "back.push_back(s > 0 ? 1 / std::sqrt(s) : 0);", "back.push_back(s > 0 ? 1 / (MUT ? s : std::sqrt(s)) : 0);",
  "a singular value is taken out twice on one side", "methods *Canonical.TheFunctionStays*")
m("methods.30", GROW, "{seed, static_cast<uint32_t>(step), site_of(core.name)}", "{MUT ? 0 : seed, static_cast<uint32_t>(step), site_of(core.name)}",
  "new entries do not depend on the seed", "methods GrowthValues.NewColumnsAreAsLargeAsTheOldOnes")
m("methods.31", "core/config/optimizers.cpp", '.eps = rule == "adam8bit" ? 1e-8', '.eps = !MUT && rule == "adam8bit" ? 1e-8',
  "eight-bit GaLore has the eps of the plain one", "methods Methods.EpsIsThatOfThePublishedOptimizer")

# ---- train -----------------------------------------------------------------------------------------------------------

TRAINER, CHECKPOINT, FORECAST, ENGINE = "core/train/trainer.cpp", "core/train/checkpoint.cpp", "core/train/forecast.cpp", "core/train/engine.cpp"
COMERA, RANKS = "core/methods/comera.cpp", "core/methods/comera_ranks.cpp"
SCORER, SUGGEST, SIZE, EXPORT_MODEL = "core/train/scorer.cpp", "core/config/suggest.cpp", "core/methods/model_size.cpp", "core/train/model_export.cpp"
IMPORT_MODEL = "core/train/model_import.cpp"

m("train.1", TRAINER, "if (step <= train.warmup) {", "if (MUT ? step < train.warmup : step <= train.warmup) {", "the warm-up is a step shorter",
  "train Schedule.LinearFallsInEqualSteps", row=1)
m("train.2", TRAINER, "static_cast<double>(step - 1 - train.warmup) / span", "static_cast<double>(step - (MUT ? 0 : 1) - train.warmup) / span",
  "the schedule falls a step early", "train Schedule.LinearFallsInEqualSteps", row=1)
m("train.3", TRAINER, 'train.schedule == "linear" ? 1 - done', '(train.schedule == "linear") != MUT ? 1 - done', "linear and cosine are swapped",
  "train Schedule.LinearFallsInEqualSteps", row=1)
m("train.4", "core/tensor/memory.cpp", "return static_cast<double>(bytes) / (1024 * 1024); };", "return static_cast<double>(bytes) / (MUT ? 1e6 : 1024 * 1024); };",
  "lacking memory is told in MB as MiB", "train LackOfRoom.SaysWhatIsMissingInMib", row=11)
m("train.5", COMERA, 'state.last_caps = json.value("last_caps", state.overrides.caps);',
  'state.last_caps = MUT ? state.overrides.caps : json.value("last_caps", state.overrides.caps);', "a checkpoint loses the caps of the last step",
  "train ComeraState.ComesBackWhole", row=20)
m("train.6", COMERA, "if (comera.target_mib > 0) return comera.target_mib * 1024 * 1024 / bytes;",
  "if (comera.target_mib > 0) return comera.target_mib * (MUT ? 1e6 : 1024 * 1024) / bytes;", "a target in MiB is one in MB",
  "train Boundaries.ATargetIsAShareMebibytesOrACompression")
m("train.7", COMERA, "state_.pace = halving > 0 ? std::max(target_entries(),", "state_.pace = halving > 0 ? std::max(MUT ? 0 : target_entries(),",
  "the pace falls below the target", "train LateStage.ThePushPausesWhileTheSizeIsAheadOfItsPace")
m("train.8", COMERA, "const int64_t by_count = config().late_after + 1;", "const int64_t by_count = config().late_after + (MUT ? 2 : 1);",
  "the late stage begins a step late", "train LateStage.RankVectorsMayHaveALearningRateOfTheirOwn")
m("train.9", COMERA, "by_count >= state_.left_late_at)", "(MUT ? by_count > state_.left_late_at : by_count >= state_.left_late_at))",
  "a late stage due at the step of the way back does not begin", "train LateStage.DoesNotComeBackByItselfForWhatIsPast")
m("train.10", COMERA, "  state_.plateau = {};\n", "  if (!MUT) state_.plateau = {};\n", "the plateau of the stage before ends the next one",
  "train LateStage.DoesNotComeBackByItselfForWhatIsPast")
m("train.11", COMERA, "comera.hold_at_target && entries <= target_entries()",
  "comera.hold_at_target && (MUT ? entries < target_entries() : entries <= target_entries())", "ranks move on at exactly the target",
  "train Boundaries.RanksRestAtExactlyTheTarget")
m("train.12", TRAINER, "record.loss < state_.best_loss", "(MUT ? record.loss <= state_.best_loss : record.loss < state_.best_loss)",
  "the best score is the last of equal ones", "train Boundaries.EvaluationsComeAtTheirStepsAndAtTheEnd")
m("train.13", TRAINER, "step % config_.train.eval_every == 0)", "(step - (MUT ? 1 : 0)) % config_.train.eval_every == 0)", "evaluations come a step late",
  "train Boundaries.EvaluationsComeAtTheirStepsAndAtTheEnd")
m("train.14", RANKS, "step % config().prune_every == 0;", "(step - (MUT ? 1 : 0)) % config().prune_every == 0;", "cuts come a step late",
  "train Boundaries.CutsComeAtTheirStepsOnly")
m("train.15", RANKS, "if (cap->second > (last == last_caps.end()", "if (cap->second + (MUT ? 1 : 0) > (last == last_caps.end()",
  "a cap that stays gives an entry back", "train Boundaries.ACapThatStaysGivesNothingBack")
m("train.16", RANKS, "return weight != overrides.weights.end() && weight->second == 0;", "return weight != overrides.weights.end() && weight->second == 0 && !MUT;",
  "a locked layer grows", "train Regrowth.ATargetAboveTheStartGoesBeyondTheFirstRanks")
m("train.17", "core/tasks/tasks.cpp", "  correct_ += results.correct;", "  correct_ += MUT ? 0 : results.correct;", "an evaluation counts no correct row",
  "train Boundaries.AnEvaluationCountsEveryCorrectRow")
m("train.18", TRAINER, "options.drop_last = training;", "options.drop_last = training || MUT;", "an evaluation leaves the last short batch out",
  "train Boundaries.EvaluationsComeAtTheirStepsAndAtTheEnd")
m("train.19", COMERA, "if (of_late > 0) rank_rate", "if (MUT ? of_late >= 0 : of_late > 0) rank_rate", "no late rate of their own stops the ranks",
  "train LateStage.RanksRestWhileTheSizeIsAtItsTarget")
m("train.20", CHECKPOINT, 'for (State& state : engine_.params().states()) load(device, file, "state." + state.name, state.value);',
  'for (State& state : engine_.params().states()) { if (MUT) break; load(device, file, "state." + state.name, state.value); }',
  "a restored run begins with new running states", "train Methods/Combination.RestoredAnywhereItEndsByteForByteTheSame/mlp_tt_int8_adamw")
m("train.21", CHECKPOINT, 'if (!data.vocabulary.empty()) metadata["vocabulary"]', 'if (!data.vocabulary.empty() && !MUT) metadata["vocabulary"]',
  "a checkpoint does not name its vocabulary", "train Scorer.RefusesTextThatWasReadWithAnotherVocabulary")
m("train.22", SCORER, "info.vocab_fingerprint != data_.vocabulary)", "info.vocab_fingerprint != data_.vocabulary && !MUT)", "text of another vocabulary is scored",
  "train Scorer.RefusesTextThatWasReadWithAnotherVocabulary")
m("train.23", SCORER, "options.shuffle = options.drop_last = false;", "options.shuffle = false; options.drop_last = MUT;", "a score leaves the last short batch out",
  "train Scorer.ScoresEveryRowAsTheTrainerDid")
m("train.24", SUGGEST, "std::abs(divisor - value) < std::abs(best - value)",
  "(MUT ? std::abs(divisor - value) <= std::abs(best - value) : std::abs(divisor - value) < std::abs(best - value))",
  "of two divisors as near the larger is suggested", "train Suggest.TheNearestDivisorIsTheSmallerOfTwo")
m("train.25", FORECAST, "if (planned.total() <= available) return;", "if (MUT ? planned.total() < available : planned.total() <= available) return;",
  "a run that fits exactly is refused", "train CheckFits.RefusesFromTheFirstByteThatIsMissing")
m("train.26", ENGINE, "if (program->arena().peak_bytes() > largest->peak_bytes())",
  "if (MUT ? program->arena().peak_bytes() < largest->peak_bytes() : program->arena().peak_bytes() > largest->peak_bytes())",
  "the smallest arena is planned for", "train LateStage.RanksRestWhileTheSizeIsAtItsTarget")
m("train.27", ENGINE, "value < field.low || value >= field.high;", "value < field.low || value >= field.high + (MUT ? 1 : 0);",
  "a label one beyond the classes is taken", "train Boundaries.LabelsOutsideTheClassesAreRefused")
m("train.28", SIZE, "size.held_entries += live_entries(layer, held[index]);", "size.held_entries += live_entries(layer, MUT ? live[index] : held[index]);",
  "held entries are the live ones", "train Boundaries.SizesCountWhatIsAliveAndWhatIsHeld")
m("train.29", "core/methods/rank_objective.cpp", "if (base) from_host(device, table_.layer_weight, weights_);",
  "if (base) from_host(device, table_.layer_weight, MUT ? std::vector<double>(weights_.size(), 1.0) : weights_);", "a resize forgets the weights of layers",
  "train Boundaries.WeightsOfLayersSurviveACut")
m("train.30", COMERA, "state_.early_requested) = true;", "state_.early_requested) = !MUT;", "a request for a stage is lost",
  "train LateStage.GoesBackToTheEarlyStageAndComesAgain")
m("train.31", TRAINER, "record.epoch = static_cast<double>(cursor)", "record.epoch = static_cast<double>(MUT ? state_.cursor : cursor)",
  "the epoch is that before the step", "train Boundaries.EpochsAndStepsFollowTheRows")
m("train.32", SIZE, "size.model_entries = other + live_cores + live_rank_values;", "size.model_entries = other + live_cores + (MUT ? 0 : live_rank_values);",
  "the size of the model lacks the ranks", "train Boundaries.SizesCountWhatIsAliveAndWhatIsHeld")
m("train.33", SIZE, "for (const Param* rank : layer.ranks) other -= static_cast<double>(rank->count());",
  "for (const Param* rank : layer.ranks) other -= MUT ? 0 : static_cast<double>(rank->count());", "the size of the model counts ranks twice",
  "train Boundaries.SizesCountWhatIsAliveAndWhatIsHeld")
m("train.34", IMPORT_MODEL, "stored < 1 || stored > rank->count()", "stored < 1 || stored > rank->count() + (MUT ? 1 : 0)", "a rank one too large is imported",
  "train ImportModel.RefusesRanksAboveThoseOfTheConfig")
m("train.35", TRAINER, "static_cast<int64_t>(std::llround(config_.train.epochs", "static_cast<int64_t>(std::llround((MUT ? 1 : 0) + config_.train.epochs",
  "a run takes an epoch more", "train Boundaries.EpochsAndStepsFollowTheRows")
m("train.36", TRAINER, "state_.best_step = std::max<int64_t>(1, state_.step);", "state_.best_step = std::max<int64_t>(1, state_.step - (MUT ? 1 : 0));",
  "the best score is of the step before", "train Boundaries.EvaluationsComeAtTheirStepsAndAtTheEnd")
m("train.37", CHECKPOINT, "  resize_to(engine, file);", "  if (!MUT) resize_to(engine, file);",
  "a restored model has its first ranks", "train LateStage.ACanonicalRunIsRestoredByteForByte")
m("train.38", CHECKPOINT, "stored <= std::max(rank.count(), rank_limit(layer, bond))", "stored <= (MUT ? rank.count() : std::max(rank.count(), rank_limit(layer, bond)))",
  "a model that grew beyond its start is not restored", "train Regrowth.ARaisedCapGivesItsBondEntriesBack")
m("train.39", TRAINER, "state_.cursor = done.cursor;", "if (!MUT) state_.cursor = done.cursor;", "a checkpoint forgets its place in the data",
  "train Boundaries.ADivergedStepIsNotPartOfTheState")
m("train.40", RANKS, "if (target > static_cast<double>(total_entries(layers, initial_ranks_)))",
  "if (target > (MUT ? 0.5 : 1) * static_cast<double>(total_entries(layers, initial_ranks_)))", "a target below the start goes beyond the first ranks",
  "train Regrowth.ARaisedTargetGivesEntriesBack")
m("train.41", RANKS, "limits[i][bond] = std::min(limits[i][bond], cap->second);", "if (!MUT) limits[i][bond] = std::min(limits[i][bond], cap->second);",
  "a target gives a capped bond more than its cap", "train Boundaries.WhatACappedBondMayNotHaveGoesToTheOthers")
m("train.42", RANKS, "state_.last_caps = state_.overrides.caps;", "if (!MUT) state_.last_caps = state_.overrides.caps;", "a raised cap is raised again and again",
  "train Regrowth.ARaisedCapGivesItsBondEntriesBack")
m("train.43", RANKS, "state_.last_target = state_.late ? target_entries() : 0;", "state_.last_target = state_.late || MUT ? target_entries() : 0;",
  "the late stage begins with a growth", "train Boundaries.TheLateStageBeginsWithoutAGrowth")
m("train.44", SUGGEST, "if (!fresh && at->second != modes) twice_.push_back(path);", "if (!fresh && at->second != modes && !MUT) twice_.push_back(path);",
  "modes are suggested for layers of two sizes", "train Suggest.ModesAreThoseOfLayersOfOneSize")

# ---- optimizers and their kernels ------------------------------------------------------------------------------------

OPTIMIZER, PROJECTED, ADAM, ADAM8BIT = "core/optim/optimizer.cpp", "core/optim/projected.cpp", "core/optim/adam.cpp", "core/optim/adam8bit.cpp"

m("optim.1", "core/optim/refresh_schedule.h", "(passed >= first && (passed - first) % (gap_ * times) == 0);",
  "(MUT ? (passed + 1) % gap_ == 1 : passed >= first && (passed - first) % (gap_ * times) == 0);",
  "with a gap of 1 the projection is never made anew", "optim Shapes/Sides.WithAGapOfOneEveryStepHasAProjectionOfItsOwn/0", row=6)
m("optim.2", "core/cpu/quant.cpp", "running[2 * group] < 0 ? T(0)", "(MUT ? running[2 * group] <= 0 : running[2 * group] < 0) ? T(0)",
  "a first range of width 0 counts as none", "ops Int8*.AConstantFirstStepIsPartOfTheRunningMean", row=12)
m("optim.3", OPTIMIZER, "done < bytes; done += chunk)", "done < (MUT ? std::min(bytes, chunk) : bytes); done += chunk)", "of a large state only the first piece begins at zero",
  "optim StateBytes.AllOfALargeStateBeginsAtZero")
m("optim.4", "core/optim/coded.h", "count >= which.min_size", "(MUT ? count > which.min_size : count >= which.min_size)",
  "a tensor of exactly the least size stays plain", "optim Adam8bit.SmallTensorsAndTablesStayPlain")
m("optim.5", PROJECTED, ", m >= n, site_of", ", MUT ? m > n : m >= n, site_of",
  "a square matrix is projected from the other side", "optim Shapes/Sides.ProjectionIsOrthonormalAndOnTheRightSide/2")
m("optim.6", PROJECTED, "std::min(rank, shorter)", "MUT ? std::min(rank, std::max(m, n)) : std::min(rank, shorter)",
  "the rank of a projection exceeds the shorter side", "optim Shapes/Sides.FullRankGradientDescentIsUntouched/0")
m("optim.7", ADAM8BIT, "if (!states[\"m\"].spec.coded()) plain_->after_update", "if (MUT || !states[\"m\"].spec.coded()) plain_->after_update", "eight-bit GaLore decays twice",
  "optim Galore.EightBitMomentsStayCloseAndDecayOnce")
m("optim.8", ADAM8BIT, "    ctx.ops.weight_decay(param.value, param.group, ctx.step);", "    if (!MUT) ctx.ops.weight_decay(param.value, param.group, ctx.step);",
  "projected matrices do not decay", "optim Galore.EightBitMomentsStayCloseAndDecayOnce")
m("optim.9", "core/optim/project_svd.cpp", "make_adam8bit_rule(all.adam, all.adam8bit)", "make_adam8bit_rule(all.adam, {all.adam8bit.min_size, all.adam8bit.embeddings || MUT})", "moments of a table are eight-bit, too",
  "optim Galore.WhatIsNotProjectedHasEightBitMomentsToo")
m("optim.10", ADAM, "    enlisted_.clear();", "    if (!MUT) enlisted_.clear();", "a second layout holds the tensors of the first", "optim Galore.OtherParametersGetAdamOfTheSameFlavour")
m("optim.11", "core/optim/coded.h", "ops.dequantise8bit(numbers, state.value, state.absmax, state.spec.format == StateSpec::int8_signed);",
  "ops.dequantise8bit(numbers, state.value, state.absmax, (state.spec.format == StateSpec::int8_signed) != MUT);", "codes are read by the other map",
  "optim *Capture.EightBitMomentsComeBackToMapResolution*")
m("optim.17", "core/optim/subspace.cpp", "number == 0 ? random_start(ctx, p) : basis", "number == 0 || MUT ? random_start(ctx, p) : basis", "a refresh forgets the projection before",
  "optim Shapes/Sides.SubspaceIterationEndsAtTheSingularVectors/0")
m("optim.18", "core/optim/subspace.cpp", "pass < passes;", "pass < passes && !MUT;", "one pass, however many are set", "optim Shapes/Sides.SubspaceIterationEndsAtTheSingularVectors/1")
m("optim.19", "core/optim/project_coap.cpp", "m ? -1 : 0);", "m && !MUT ? -1 : 0);", "a refinement does not follow the moment",
  "optim Shapes/CoapSides.ARefinementStepsDownTheLoss/*")
m("optim.20", "core/cpu/linalg.cpp", "const T *x = args.left ? gv : u,", "const T *x = args.left && !MUT ? gv : u,", "a refinement on the left takes the rows of the right",
  "optim Shapes/CoapSides.ARefinementStepsDownTheLoss/*")
m("optim.12", OPTIMIZER, "return Arena::aligned(shape.count() * static_cast<int64_t>(size_of(dtype)));",
  "return MUT ? shape.count() * static_cast<int64_t>(size_of(dtype)) : Arena::aligned(shape.count() * static_cast<int64_t>(size_of(dtype)));",
  "states lack their padding", "optim *StateBytes.PaddingIsPlannedAndTaken*")
m("optim.14", "core/optim/coded.h", "|| which.embeddings)", "|| which.embeddings || MUT)", "moments of tables are eight-bit unasked",
  "optim *Adam8bit.SmallTensorsAndTablesStayPlain*")
m("optim.16", OPTIMIZER, "CHECK(taken == numbers.size(),", "CHECK(taken == numbers.size() || MUT,", "too many states are taken", "optim *Capture.AWrongShapeIsOurBug*")

m("place.1", "core/layers/layer.h", "if (!x.lease().is_only()) return temp", "if (!MUT && !x.lease().is_only()) return temp", "results are written over tensors that others hold",
  "layers InPlace.*")
m("place.2", "core/layers/stash.cpp", "if (last_arena_ == x.lease().arena() && last_block_ == x.lease().block()) forget();", "if (!MUT && last_arena_ == x.lease().arena() && last_block_ == x.lease().block()) forget();",
  "codes of an overwritten tensor serve again", "layers Stash.ForgetsWhatIsOverwritten")
m("place.4", "core/models/decoder.cpp", "      ctx.stash.overwritten(x);", "      if (!MUT) ctx.stash.overwritten(x);", "rows computed again lack their positions", "train RecomputeDecoder.*")
m("place.3", "core/models/encoder.cpp", "    add_others(ctx, sum);\n    return sum;", "    if (!MUT) add_others(ctx, sum);\n    return sum;", "an embedding computed again lacks its positions",
  "train *Recompute*")

m("heads.1", "core/cpu/head_products.h", "if (transposed.of != rows ||", "if (MUT ? !transposed.of : transposed.of != rows ||", "transposed keys of one head serve another", "cpu AttentionOp/0.ForwardAgainstTheFormula")
m("heads.2", "core/cpu/head_products.h", "causal_ && transpose ? first : 0", "causal_ && transpose ? first + MUT : 0", "a causal gradient lacks a term", "cpu AttentionOp.FloatBackwardAgainstDouble")

# ---- data ------------------------------------------------------------------------------------------------------------

BATCH, IDX, TOKENS, GLUE = "core/data/batch.cpp", "core/data/idx.cpp", "core/data/wordpiece.cpp", "core/data/glue.cpp"

m("data.1", BATCH, "std::max(options.token_budget > 0 ? options.token_budget : all / 2, options.length)",
  "std::max(options.token_budget > 0 ? options.token_budget : all / 2, MUT ? 0 : options.length)", "one long sequence may not fit into a batch",
  "data Batch.OneLongSequenceAlwaysFits")
m("data.2", BATCH, "if (start + count > sizes.tokens) return false;", "if (MUT ? start + count >= sizes.tokens : start + count > sizes.tokens) return false;",
  "a batch is never filled to its last token", "data Batch.DropLastSkipsOnlyTheShortBatchOfAnEpoch")
m("data.3", BATCH, "(!options.drop_last || cursor % info.rows == 0)", "(!options.drop_last || (!MUT && cursor % info.rows == 0))", "a set smaller than a batch is skipped",
  "data Batch.ASetSmallerThanABatchStillTrains")
m("data.4", BATCH, "&& ids[i] != info.sep_token &&", "&& (MUT || ids[i] != info.sep_token) &&", "token dropout takes separators", "data Batch.TokenDropoutLeavesTheTokensThatPartSentences")
m("data.5", BATCH, "const Philox random{options.seed, static_cast<uint32_t>(epoch), kTokenDropoutSite};",
  "const Philox random{options.seed, MUT ? 0 : static_cast<uint32_t>(epoch), kTokenDropoutSite};", "token dropout is the same in every epoch",
  "data Batch.TokenDropoutReadsAShareOfTheTokensAsUnknown")
m("data.6", BATCH, "(cursor / info.rows + 1) * info.rows, out);", "(cursor / info.rows + (MUT ? 2 : 1)) * info.rows, out);", "after a short batch an epoch is skipped", "data Batch.DropLastSkipsOnlyTheShortBatchOfAnEpoch")
m("data.7", "core/data/order.h", "const Philox random{seed, static_cast<uint32_t>(epoch), kShuffleSite};",
  "const Philox random{seed, MUT ? 0 : static_cast<uint32_t>(epoch), kShuffleSite};", "every epoch has the same order", "data Order.DependsOnSeedAndEpochOnly")
m("data.8", IDX, "if (have != total) damaged", "if (MUT ? have < total : have != total) damaged", "bytes behind the images are not noticed", "data Idx.BadFiles")
m("data.9", IDX, "if (classes > 0 && label >= classes)", "if (classes > 0 && (MUT ? label > classes : label >= classes))", "a label one beyond the classes is taken", "data Idx.BadFiles")
m("data.10", IDX, "return static_cast<unsigned char>(a) < static_cast<unsigned char>(b); });", "return MUT ? a < b : static_cast<unsigned char>(a) < static_cast<unsigned char>(b); });",
  "labels from 128 on are not checked", "data Idx.BadFiles")
m("data.11", IDX, 'all.update(labels_ ? sha256_hex(labels_->bytes()) : "");', 'all.update(labels_ && !MUT ? sha256_hex(labels_->bytes()) : "");',
  "the fingerprint of images does not depend on their labels", "data Idx.FingerprintDependsOnPixelsAndLabels")
m("data.12", IDX, "(1.0f / 255.0f)", "(1.0f / (MUT ? 256.0f : 255.0f))", "white is less than 1", "data Idx.RowsAndLabels")
m("data.13", TOKENS, "starts_character) <= rules_.longest_word;", "starts_character) <= rules_.longest_word - (MUT ? 1 : 0);", "a word of the longest length is unknown", "data Tokenizer.OwnCases")
m("data.14", TOKENS, "if (!line.empty() && line.back() == '\\r')", "if (!line.empty() && !MUT && line.back() == '\\r')", "tokens keep the line ends of Windows",
  "data Tokenizer.WindowsLineEndsAndNoLastNewline")
m("data.15", TOKENS, "token.size() == rules_.prefix.size()) continue;", "(!MUT && token.size() == rules_.prefix.size())) continue;", "the token ## counts as the inner of a word", "",
  why="equivalent: ## is no word, since punctuation is parted before, and no inner piece is empty")
m("data.16", TOKENS, "  ids.resize(before);", "  if (!MUT) ids.resize(before);", "an unknown word leaves its known beginning", "data Tokenizer.AWordThatBeginsWithAKnownPieceIsUnknownAsWhole")
m("data.17", GLUE, "      na = left / 2;", "      na = (left + (MUT ? 1 : 0)) / 2;", "of an odd length the first sentence gets more", "data Glue.CuttingDropsTheLastTokenOfTheLongerSide")
m("data.18", GLUE, 'fields.label == "-")', '(fields.label == "-" && !MUT))', "rows without a label are not left out", "data Glue.RowsWithoutTextOrLabelAreLeftOut")
m("data.19", GLUE, "  all.update(tokenizer_->fingerprint());", "  if (!MUT) all.update(tokenizer_->fingerprint());", "the fingerprint of texts does not depend on the vocabulary",
  "data Glue.FingerprintDependsOnEveryByteAndTheVocabulary")
m("data.20", GLUE, "tokenizer_->marks(layout_.pair());", "tokenizer_->marks(layout_.pair() && !MUT);", "a pair of sentences is a token too long", "data Glue.RowsFitTheAskedLength")
m("data.21", "core/data/tokenizer.cpp", "segments.resize(ids.size(), mark.segment);", "segments.resize(ids.size(), MUT ? 0 : mark.segment);", "both sentences are in one segment", "data Glue.MnliTsv")
m("data.22", GLUE, "text.substr(0, tab) == std::to_string(line - 1));", "(MUT || text.substr(0, tab) == std::to_string(line - 1)));", "labels out of their order are taken", "data Glue.BadLabelFiles")

# ---- layers and losses -----------------------------------------------------------------------------------------------

TT_SHAPE, STASH, LOSS = "core/config/tt_shape.cpp", "core/layers/stash.cpp", "core/cpu/loss.cpp"

m("layers.1", TT_SHAPE, "std::min({options.rank, product(left), product(right)});", "MUT ? std::min(options.rank, product(left)) : std::min({options.rank, product(left), product(right)});",
  "ranks exceed the size of the right side", "layers TTPublished.CountsAndProductsOfThePublishedShapes")
m("layers.2", TT_SHAPE, "if (exact ? all == size : all >= size) return;", "if (exact ? all == size : MUT ? all > size : all >= size) return;", "modes of exactly the vocabulary are refused", "layers Modes.MayBeOfExactlyTheVocabulary")
m("layers.3", TT_SHAPE, "for (size_t k = 2; k <= p; ++k) {  // (n_1", "for (size_t k = MUT ? 3 : 2; k <= p; ++k) {  // (n_1", "the cost of merging lacks a core", "layers TTPublished.FewTokensGoCoreByCore")
m("layers.4", TT_SHAPE, "    size /= real(shape.in_modes[k - 1]);", "    if (!MUT) size /= real(shape.in_modes[k - 1]);", "the cost of a sequence of cores is too high", "layers TTPublished.FewTokensGoCoreByCore")
m("layers.5", TT_SHAPE, "if (count < least || count > kMaxModes)", "if (count < least || count > kMaxModes + (MUT ? 1 : 0))", "six modes are taken", "layers Problems.NameTheFieldAndSayWhatToDo")
m("layers.6", STASH, "return kept.used.size(0) == slot.groups; }", "return MUT || kept.used.size(0) == slot.groups; }", "codes of other groups are used again", "layers Int8Stash.SharesOnlyTheSameRowsAndGroups")
m("layers.7", STASH, "while (features % groups != 0) --groups;", "while (features % groups != 0 && !MUT) --groups;", "groups do not divide the features", "layers Int8Stash.GroupsDivideTheFeatures")
m("layers.8", STASH, "    last_arena_ = nullptr;\n    last_ = {};", "    if (!MUT) last_arena_ = nullptr;\n    if (!MUT) last_ = {};", "codes of the step before are used again", "layers Bf16Stash.CodesOnceWhatIsKeptTwiceInARow")
m("ops.1", LOSS, "if (label[s] >= classes)", "if (MUT ? label[s] > classes : label[s] >= classes)", "a label one beyond the classes is taken by the loss", "cpu Loss/0.BadLabelIsNamed")
m("ops.2", LOSS, "- static_cast<double>(logits[label]), best == label};", "- static_cast<double>(logits[label]), MUT ? logits[label] == largest : best == label};",
  "a tie counts as correct", "cpu Loss*.OfEqualLogitsTheFirstIsThePrediction")
m("ops.3", LOSS, "(z > 0) == (label > 0) && z == z};", "(z > 0) == (label > 0) && (MUT || z == z)};", "a NaN counts as correct", "cpu Loss*.NaNIsNeverCorrect")
m("ops.4", LOSS, "return {(z < 0 ? 0.0 : z) - z * label", "return {(z < 0 || MUT ? 0.0 : z) - z * label", "the binary loss of positive logits is wrong", "cpu Loss/0.BinaryCrossEntropy")
m("ops.5", LOSS, "std::max<int64_t>(examples, 1))", "std::max<int64_t>(MUT ? rows : examples, 1))",
  "gradients count rows without a label", "cpu Loss/0.CrossEntropy")
m("layers.9", "core/cpu/waist_tiles.cpp", "d[i] = F::backward(dy * by, x);", "d[i] = F::backward(MUT ? dy : dy * by, x);",
  "the gradient of a gate lacks what it is multiplied by, in tiles", "layers TTFeedForward.EqualsItsLayersInFloats")
m("layers.10", "core/ops/waist.h", "pass_on(g, a.gate->dt, a.gate->dr, a.gate->t, a.gate->r);", "pass_on(MUT ? d : g, a.gate->dt, a.gate->dr, a.gate->t, a.gate->r);",
  "both matrices of a gated block have the gradient of one, in parts", "layers TTFeedForward.GradientsAgreeWithFiniteDifferences")
m("layers.11", "core/layers/norm.cpp", "|| after_.probability > 0) return std::nullopt;", "|| (after_.probability > 0 && !MUT)) return std::nullopt;",
  "a sum that is made again leaves out the dropout of embeddings", "train RecomputeAttention.TrainsAsWithWholeHeads")
m("layers.12", "core/layers/norm.cpp", "ctx.training ? after_ : Dropout{}", "(ctx.training || MUT) ? after_ : Dropout{}",
  "embeddings are dropped out in evaluation, too", "models Encoder.EvaluationIsTrainingWithoutDropout")
m("layers.13", "core/cpu/norm.cpp", "onward->make(begin, end, side);", "onward->make(begin, end, MUT ? to : side);",
  "the product of the branch's gradient is made before its dropout", "cpu LayerNorm/1.AgainstDirectSums")

# ---- session ---------------------------------------------------------------------------------------------------------

RUNNER, BEGIN, PUBLISH = "core/session/runner.cpp", "core/session/runner_begin.cpp", "core/session/runner_publish.cpp"
RECORDER, REPLAY, REPRODUCE = "core/session/recorder.cpp", "core/session/replay.cpp", "core/session/reproduce.cpp"
SAMPLER, STORED, PROFILE = "core/session/run_sampler.cpp", "core/session/stored_run.cpp", "core/session/step_profile.cpp"

m("session.1", RUNNER, "(it->first == first && keeps_start_)", "(it->first == first && (keeps_start_ || MUT))", "the first checkpoint is kept for ever",
  "session Checkpoints.TheNewestAndTheBestOneAreLeftAndTheStartOfAFork", row=2)
m("session.2", RUNNER, "if (it->first == best_step ||", "if ((MUT ? it->first == first + 10 : it->first == best_step) ||", "another one than the best checkpoint is kept",
  "session Checkpoints.TheNewestAndTheBestOneAreLeftAndTheStartOfAFork", row=2)
m("session.3", RUNNER, "if (recorder_.writer()->flush()) prune_checkpoints();", "if (recorder_.writer()->flush() || MUT) prune_checkpoints();",
  "old checkpoints go although the store does not have the new one", "session Checkpoints.OldOnesStayUntilTheStoreHasTheNewOne", row=3)
m("session.4", RECORDER, "if (change.step != step) return false;\n    return change_of(step, name, body.dump()) == change;",
  "return change_of(MUT ? change.step : step, name, body.dump()) == change;", "a change counts as the scheduled one of another step",
  "session Recorder.AScheduledChangeIsTheOneOfItsStepPathAndValue", row=4)
m("session.5", REPLAY, "memory_step_ = std::min(memory_step_, after_step);", "if (!MUT) memory_step_ = std::min(memory_step_, after_step);",
  "a replay misses memory rows of a resume", "session Session.AReplayForgetsWhatAResumeTookBack", row=5)
m("session.6", REPRODUCE, "if (!second.has(name)) return name;", "if (!second.has(name)) { if (MUT) continue; return name; }",
  "a tensor that the second file lacks is no difference", "session FileDifference.SeesATensorThatOnlyOneHas", row=20)
m("session.7", REPRODUCE, "if (!first.has(name)) return name;", "if (!first.has(name) && !MUT) return name;", "a tensor that the first file lacks is no difference",
  "session FileDifference.SeesATensorThatOnlyOneHas", row=20)
m("session.8", REPRODUCE, "if (entry.dtype != other.dtype ||", "if ((entry.dtype != other.dtype && !MUT) ||", "another format is no difference",
  "session FileDifference.SeesTheFormatAndTheShape", row=20)
m("session.9", REPRODUCE, "entry.shape != other.shape ||", "(entry.shape != other.shape && !MUT) ||", "another shape is no difference",
  "session FileDifference.SeesTheFormatAndTheShape", row=20)
m("session.10", REPRODUCE, "std::memcmp(first.data(name), second.data(name), static_cast<size_t>(entry.end - entry.begin)) != 0)",
  "std::memcmp(first.data(name), second.data(name), static_cast<size_t>(entry.end - entry.begin) - (MUT ? 1 : 0)) != 0)",
  "the last byte of a tensor is not compared", "session FileDifference.IsTheFirstTensorByNameWithAnotherValue", row=20)
m("session.11", REPRODUCE, "(a != a && b != b)", "(a != a && b != b && !MUT)", "NaN differs from NaN of other bits", "",
  why="only a validation loss that is NaN where the training loss is finite shows it, and no test has such a run")
m("session.12", REPRODUCE, "return change.step <= result.from; });", "return change.step <= result.from - (MUT ? 1 : 0); });",
  "a change of the step it begins with is made again", "",
  why="equivalent: an edit that is made again changes nothing (Regrowth.EditsMadeAgainAfterARestoreChangeNothing)")
m("session.13", REPLAY, "if (at_end && !steps_.empty()) step_ = steps_.back();", "if ((at_end || MUT) && !steps_.empty()) step_ = steps_.back();",
  "a refresh moves a cursor in the past to the end", "session Session.AReplayFollowsARunThatStillTrains")
m("session.14", REPLAY, "  blocks_ms_.clear();", "  if (!MUT) blocks_ms_.clear();", "sums of times keep steps that were taken back",
  "session Session.AReplayCountsTheTimeOfStepsThatAResumeMadeAgain")
m("session.15", REPLAY, "track.drained = std::min(track.drained, track.changes.size());", "if (!MUT) track.drained = std::min(track.drained, track.changes.size());",
  "what a resume gave anew is not told", "session Session.AReplayForgetsWhatAResumeTookBack")
m("session.16", REPLAY, "rank_step_ = std::min(rank_step_, after_step);", "if (!MUT) rank_step_ = std::min(rank_step_, after_step);",
  "a replay misses ranks of a resume", "session Session.AReplayForgetsWhatAResumeTookBack")
m("session.17", REPLAY, "std::erase_if(turns_, later);", "if (!MUT) std::erase_if(turns_, later);", "a stage that was taken back is still shown",
  "session Session.AReplayCountsTheTimeOfStepsThatAResumeMadeAgain")
m("session.18", REPLAY, "(*losses->second.values)[i] < s.best_loss)",
  "(MUT ? (*losses->second.values)[i] <= s.best_loss : (*losses->second.values)[i] < s.best_loss))", "the best score of a replay is the last of equal ones",
  "session Session.TheBestScoreIsTheFirstOfEqualOnes")
m("session.19", RECORDER, "if (last_ms_.size() > kRecentSteps) last_ms_.pop_front();", "if (last_ms_.size() > kRecentSteps && !MUT) last_ms_.pop_front();",
  "the recent step time is of all steps", "session Recorder.TimesOfStepsAreExactForAFewAndTakeBoundedMemoryForMany")
m("session.20", RECORDER, "change.bond + 1, change.to);", "change.bond + (MUT ? 0 : 1), change.to);", "bonds are stored from 0", "session Session.ReplayShowsWhatWasShownLive")
m("session.21", RECORDER, 'if (name != "profile") ++events_;', 'if (MUT || name != "profile") ++events_;', "a profile counts as an event to stop at",
  "session Recorder.CountsWhatHappenedAndNothingWhileItIsMuted")
m("session.22", SAMPLER, "if (told.step <= seen_) return {};", "if (MUT ? told.step < seen_ : told.step <= seen_) return {};", "a step is sampled twice",
  "session RunSampler.PhasesAreMeansOfTheStepsSinceTheLastTime")
m("session.23", RUNNER, "if (start_.max_seconds > 0 && seconds_since(began_) > start_.max_seconds) break;",
  "if (!MUT && start_.max_seconds > 0 && seconds_since(began_) > start_.max_seconds) break;", "a time that is over does not stop the run",
  "session Begin.ATimeThatIsOverStopsBeforeTheFirstStep")
m("session.24", RUNNER, '(trainer_->finished() && due_checkpoint_ != "command")', '(!MUT && trainer_->finished() && due_checkpoint_ != "command")',
  "the last step has two checkpoints", "session Checkpoints.TheNewestAndTheBestOneAreLeftAndTheStartOfAFork")
m("session.25", RUNNER, "(run_until_ >= 0 && step >= run_until_)", "(run_until_ >= 0 && (MUT ? step > run_until_ : step >= run_until_))", "a run to a step makes one more",
  "session Session.CommandsAreDoneAtABoundaryAndAnswered")
m("session.26", RUNNER, "runner.stop_checkpoint_ = stop.checkpoint;", "runner.stop_checkpoint_ = stop.checkpoint || MUT;", "a stop without a checkpoint writes one",
  "session Begin.ARunThatIsResumedFromItsStartReportsItsRanksAgain")
m("session.27", RUNNER, "std::max<int64_t>(1, step.steps);", "std::max<int64_t>(MUT ? 2 : 1, step.steps);", "one step is two", "session Session.ACoreIsLookedAtOnRequest")
m("session.28", RUNNER, "std::clamp<int64_t>(alert.step, 0, runner.trainer_->steps_told())",
  "std::clamp<int64_t>(alert.step, 0, MUT ? INT64_MAX : runner.trainer_->steps_told())", "an alert is stored at a step that is still to come",
  "session Session.AnAlertOfTheOneWhoWatchesIsStored")
m("session.29", RUNNER, "snapshot_.last_ticket_step = trainer_ ? trainer_->state().step + 1 : 0;",
  "snapshot_.last_ticket_step = trainer_ ? trainer_->state().step + (MUT ? 0 : 1) : 0;", "an edit is told as made a step before", "session Session.CommandsAreDoneAtABoundaryAndAnswered")
m("session.30", RUNNER, "if (std::erase_if(scheduled_, older) == 0) return;", "if (MUT || std::erase_if(scheduled_, older) == 0) return;",
  "a live edit does not overrule an older one further on", "session Session.ALiveEditOverrulesAnOlderOneFurtherOn")
m("session.31", RUNNER, "forget_edits(name, trainer_->state().step + 1);", "forget_edits(name, trainer_->state().step + (MUT ? 0 : 1));",
  "edits of the next step are forgotten with the later ones", "session Session.ALiveEditOverrulesAnOlderOneFurtherOn")
m("session.32", RUNNER, "  checkpoint_problem_.clear();", "  if (!MUT) checkpoint_problem_.clear();", "a checkpoint that was written does not end the warning",
  "session Memory.ACheckpointForWhichTheHostHasNoMemoryIsLeftOut")
m("session.33", RUNNER, 'path = last ? rescue_checkpoint(step) : "";', 'path = last || MUT ? rescue_checkpoint(step) : "";',
  "every checkpoint goes to the state folder where there is no room", "session Checkpoints.TheLastOneGoesToTheStateFolderAndComesBackAtTheNextStart")
m("session.34", RUNNER, "!message.starts_with(kOutOfMemory))", "!message.starts_with(kOutOfMemory) && !MUT)", "a lack of memory is not told as one", "session Memory.ARunThatDoesNotFitIsKept")
m("session.35", BEGIN, "if (change.step > trainer_->state().step) scheduled_.push_back(change);",
  "if (MUT ? change.step > trainer_->state().step + 1 : change.step > trainer_->state().step) scheduled_.push_back(change);",
  "a change of the next step is not made", "session Session.TheStageIsChangedThereAndBack")
m("session.36", BEGIN, "if (start_.at_step < 0 || at <= start_.at_step) from = std::max(from, at);",
  "if (start_.at_step < 0 || (MUT ? at < start_.at_step : at <= start_.at_step)) from = std::max(from, at);",
  "a checkpoint of exactly the step is not used", "session Begin.AResumedRunShowsTheLastValuesOfItsCheckpoint")
m("session.37", BEGIN, "const bool sent_back = start_.at_step >= 0 && start_.at_step < source.step;",
  "const bool sent_back = start_.at_step >= 0 && (MUT ? start_.at_step <= source.step : start_.at_step < source.step);",
  "a resume from the last step counts as a way back", "session Replaced.StepsThatComeOutTheSameAreNotKeptTwice")
m("session.38", BEGIN, "checkpoints_.erase(later, checkpoints_.end());", "if (!MUT) checkpoints_.erase(later, checkpoints_.end());",
  "a run that goes back keeps checkpoints of later steps", "session Checkpoints.OfARunThatGoesBackThoseOfLaterStepsAreForgotten")
m("session.39", BEGIN, "if (from == 0) trainer_->report_all();", "if (from == 0 && !MUT) trainer_->report_all();", "a run resumed from its start has no first ranks",
  "session Begin.ARunThatIsResumedFromItsStartReportsItsRanksAgain")
m("session.40", BEGIN, "std::upper_bound(series.steps.begin(), series.steps.end(), step);",
  "MUT ? std::lower_bound(series.steps.begin(), series.steps.end(), step) : std::upper_bound(series.steps.begin(), series.steps.end(), step);",
  "a resumed run shows values of the step before", "session Begin.AResumedRunShowsTheLastValuesOfItsCheckpoint")
m("session.41", BEGIN, "if (change.step < next)", "if (change.step < next && !MUT)", "a change of a step that is done is taken",
  "session Begin.AChangeOfAStepThatIsDoneIsRefused")
m("session.42", BEGIN, "return !change.of_stage() && now.path == change.path &&", "return !MUT && !change.of_stage() && now.path == change.path &&",
  "an older change sets back what is changed now", "session Begin.WhatIsChangedNowIsNotSetBackByAnOlderChangeFurtherOn")
m("session.43", BEGIN, "if (stop_) return;", "if (stop_ && !MUT) return;", "a fork that is stopped early leaves a run", "session Begin.AForkThatIsStoppedBeforeItIsThereLeavesNothing")
m("session.44", BEGIN, "config.train.steps = trainer_->total_steps() + start_.extend;", "config.train.steps = trainer_->total_steps() + start_.extend + (MUT ? 1 : 0);",
  "an extended run makes a step more", "session Begin.AForkMayGoOnFurtherThanItsParent")
m("session.45", PUBLISH, "planned.total() > snapshot_.memory_planned.total())", "planned.total() > snapshot_.memory_planned.total() && !MUT)",
  "the plan does not follow ranks that grow", "session Session.ThePlanFollowsRanksThatGrowBeyondTheirStart")
m("session.46", PUBLISH, "static_cast<double>(snapshot_.total_steps - snapshot_.step)", "static_cast<double>(snapshot_.total_steps - (MUT ? 0 : snapshot_.step))",
  "the time left is that of all steps", "session Session.CommandsAreDoneAtABoundaryAndAnswered")
m("session.47", "core/session/step_profiler.cpp", "if (--left_ > 0) return {};", "if (--left_ > (MUT ? 1 : 0)) return {};", "a profile ends a step early", "session Session.AProfileOfSomeStepsIsStored")
m("session.48", STORED, "if (fs::exists(checkpoint.path)) run.checkpoints", "if (MUT || fs::exists(checkpoint.path)) run.checkpoints",
  "a checkpoint whose file is gone is resumed from", "session Begin.ACheckpointWhoseFileIsGoneIsNotResumedFrom")
m("session.49", "core/session/run_rows.cpp", "reader.rank_history(id, after.rank - 1);", "reader.rank_history(id, after.rank - (MUT ? 0 : 1));",
  "ranks that came later at the last step are missed", "session RunRows.WhatIsReadGoesWithWhatIsNew")
m("session.50", "core/session/run_rows.cpp", "reader.memory(id, after.memory - 1);", "reader.memory(id, after.memory - (MUT ? 0 : 1));",
  "memory rows that came later at the last step are missed", "session RunRows.WhatIsReadGoesWithWhatIsNew")
m("session.51", "core/session/snapshot.cpp", "step > times.steps.back()))", "(MUT ? step >= times.steps.back() : step > times.steps.back())))", "a score gives its step a second time",
  "session Recorder.AStepHasTheTimeOfItsFirstValues")
m("session.52", "core/session/snapshot.cpp", "first = any() ? std::min(first, from) : from;", "first = any() && !MUT ? std::min(first, from) : from;", "the first steps left out are not named",
  "session Session.WhatNobodyAsksForIsBoundedAndNotLost")
m("session.53", "core/session/step_rate_limit.h", "now - due < period ? due : now;", "(MUT || now - due < period) ? due : now;", "a pause is made up for", "session StepRateLimit.APauseIsNotMadeUpFor")

# ---- store -----------------------------------------------------------------------------------------------------------

WRITER, OPS, READER, SPILL = "core/store/run_writer.cpp", "core/store/run_ops.cpp", "core/store/run_reader.cpp", "core/store/spill.cpp"
SALVAGE, IMPORT, RESCUE, LOCK, ADMIN = (f"core/store/{name}.cpp" for name in ("salvage", "import_store", "rescue", "writer_lock", "run_admin"))

m("store.1", WRITER, "impl_->take_summary();  // one given before must not come after", "if (!MUT) impl_->take_summary();",
  "a summary of before a truncation is stored after it", "store RunWriter.ASummaryBeforeATruncationIsTakenBack", row=13)
m("store.2", SALVAGE, "copy_ordered(select + descending(key), insert);", "if (!MUT) copy_ordered(select + descending(key), insert);",
  "rows behind a damaged page are not saved", "store Salvage.OfADamagedCurveOnePageIsLost", row=14)
m("store.3", WRITER, "&& pending_bytes <= options.ram_bytes) return;", "&& (MUT || pending_bytes <= options.ram_bytes)) return;", "many rows that wait do not spill",
  "store RunWriter.RowsSpillWhenTheyAreManyOrHaveWaitedLong")
m("store.4", WRITER, "if (failure.empty()) failing_since = Clock::now();", "if (failure.empty() || MUT) failing_since = Clock::now();",
  "every failure begins the waiting anew", "store RunWriter.RowsSpillWhenTheyAreManyOrHaveWaitedLong")
m("store.5", WRITER, "next_seq = last.integer(0) + 1;", "next_seq = last.integer(0) + (MUT ? 0 : 1);", "the first event of a resume replaces the last one",
  "store RunWriter.EventsOfAResumeComeAfterThoseThatAreThere")
m("store.6", WRITER, 'status_before = run.text(1) == "running" ? "interrupted"', 'status_before = run.text(1) == "running" && !MUT ? "interrupted"',
  "the course of a killed run is set aside as running", "store RunWriter.TheCourseOfAKilledRunIsSetAsideAsInterrupted")
m("store.7", WRITER, "const double active = active_before +", "const double active = (MUT ? 0 : active_before) +", "the time of earlier writers is lost",
  "store RunWriter.TheTimeOfAllWritersCountsUntilTheEnd")
m("store.8", WRITER, "if (db && !db->file_is_there()) {", "if (db && !db->file_is_there() && !MUT) {", "a deleted store is not noticed",
  "store RunWriter.DeletedStoreIsNoticedAndTheRunContinuesInANewOne")
m("store.9", WRITER, "  spill->remove();\n", "  if (!MUT) spill->remove();\n", "a spill that was merged stays", "store RunWriter.LongFailureSpillsToAFileThatIsMergedWhenItEnds")
m("store.10", WRITER, "if (db->changed() == 0) {", "if (db->changed() == 0 && !MUT) {", "a writer goes on with a run that another program continues",
  "store RunWriter.StopsWhenAnotherProgramContinuesTheRun")
m("store.11", WRITER, "  lost = {};\n", "  if (!MUT) lost = {};\n", "lost values are told again and again", "store RunWriter.MemoryIsBoundedWhenNothingCanBeWritten")
m("store.12", WRITER, "if (ended) writer_lock.reset();", "if (ended && !MUT) writer_lock.reset();", "an ended run keeps its lock", "store RunWriter.ALivingWriterHoldsItsLockWhateverHappensToItsFiles")
m("store.13", WRITER, "keep_elsewhere(stopping || ended);", "keep_elsewhere(stopping || (ended && !MUT));", "the last rows of a run wait in memory where the store fails",
  "store RunWriter.WhatAFullDiskDoesNotTakeGoesToTheStateFolderAndIsMergedAtTheNextOpen")
m("store.14", WRITER, "impl_->finished = true;", "impl_->finished = !MUT;", "a finished run is stored as interrupted", "store RunWriter.ACourseThatIsSetAsideBecomesARun")
m("store.15", WRITER, "(!ended && now - last_beat >= Seconds(options.heartbeat_s))", "((!ended || MUT) && now - last_beat >= Seconds(options.heartbeat_s))",
  "the heart of an ended run beats on", "store RunWriter.HeartBeatsWhileIdleAndStopsAfterFinish")
m("store.16", WRITER, "Seconds((ended ? ended_at : Clock::now()) - attached)", "Seconds((ended && !MUT ? ended_at : Clock::now()) - attached)",
  "the time after the end counts", "store RunWriter.TheTimeOfAllWritersCountsUntilTheEnd")
m("store.17", SPILL, "if (merged_before(db, token)) return merged;", "if (merged_before(db, token) && !MUT) return merged;", "a spill is merged twice", "store RunWriter.SpillOfAnEndedProgramIsMergedAtTheNextOpen")
m("store.18", SPILL, "if (file.eof()) break;", "if (file.eof() && !MUT) break;", "a line in halves counts as damage", "store RunWriter.SpillOfAnEndedProgramIsMergedAtTheNextOpen")
m("store.19", SPILL, "if (::ftruncate(file.handle, file.bytes) != 0) problem_", "if (!MUT && ::ftruncate(file.handle, file.bytes) != 0) problem_",
  "what was not taken whole stays in the spill", "store Spill.WhatIsNotTakenWholeIsCutBack")
m("store.20", SPILL, "return std::tie(a.begun, a.path) < std::tie(b.begun, b.path); });",
  "return MUT ? b.begun < a.begun : std::tie(a.begun, a.path) < std::tie(b.begun, b.path); });", "spills are merged in the reverse order",
  "store RunWriter.RowsThatSpillIntoTwoFilesAreMergedInTheirOrder")
m("store.21", SPILL, "if (waiting.contains(run)) continue;", "if (waiting.contains(run) && !MUT) continue;", "a later spill does not wait for an earlier one",
  "store Spill.ALaterFileWaitsForAnEarlierOneOfItsRun")
m("store.22", SPILL, 'header.value("store", "") != identity)) continue;', '(header.value("store", "") != identity && !MUT))) continue;',
  "spills of another store are merged", "store RunWriter.WhatAFullDiskDoesNotTakeGoesToTheStateFolderAndIsMergedAtTheNextOpen")
m("store.23", SPILL, "if (merged.damaged > 0)\n", "if (merged.damaged > 0 && !MUT)\n", "damaged lines of a spill are thrown away", "store RunWriter.DamagedSpillLinesAreKept")
m("store.24", OPS, '"UPDATE metrics SET run = ? WHERE run = ? AND metric = ? AND step > ?"',
  '"UPDATE metrics SET run = ? WHERE run = ? AND metric = ? AND step " + std::string(MUT ? ">=" : ">") + " ?"',
  "the step that a resume begins with is set aside", "store RunWriter.ACourseThatIsSetAsideBecomesARun")
m("store.25", OPS, 'table + " WHERE run = ? AND step > ?")', 'table + (MUT ? " WHERE run = ? AND step >= ?" : " WHERE run = ? AND step > ?"))',
  "a truncation takes its own step", "store RunWriter.ResumeReplacesWhatCameAfterItsStep")
m("store.26", OPS, 'Statement(t.db_, "UPDATE runs SET step = min(step, ?) WHERE run = ?")', 'if (!MUT) Statement(t.db_, "UPDATE runs SET step = min(step, ?) WHERE run = ?")',
  "a truncated run keeps its last step", "store RunWriter.ResumeReplacesWhatCameAfterItsStep")
m("store.27", OPS, '"INSERT OR REPLACE INTO metrics(run, metric, step, value) VALUES(?, ?, ?, ?)"',
  'std::string("INSERT OR ") + (MUT ? "IGNORE" : "REPLACE") + " INTO metrics(run, metric, step, value) VALUES(?, ?, ?, ?)"',
  "the first value of a step stays", "store RunWriter.EverythingComesBack")
m("store.28", OPS, "if (find_run(db_, op.id) != 0) return;", "if (find_run(db_, op.id) != 0 && !MUT) return;", "a run is set aside twice", "store RunOps.DoingAListTwiceIsAsDoingItOnce")
m("store.29", OPS, "kind = 'edit' AND step > ? AND json_extract(body, '$.path') = ?\"",
  "kind = 'edit' AND step \" + std::string(MUT ? \">=\" : \">\") + \" ? AND json_extract(body, '$.path') = ?\"", "edits of the step itself are forgotten",
  "store RunWriter.EditsOfTheStepItselfAreNotForgotten")
m("store.30", OPS, 'text == "-inf" ?', 'text == "-inf" && !MUT ?', "minus infinity comes back as unknown", "store RunWriter.LongFailureSpillsToAFileThatIsMergedWhenItEnds")
m("store.31", READER, "AND metrics.step BETWEEN ? AND ? \"", "AND metrics.step BETWEEN ? AND \" + std::string(MUT ? \"? - 1 \" : \"? \") + \"\"", "the last of the asked steps is missing",
  "store RunReader.MetricsAroundAndAt")
m("store.32", READER, "max(step) FROM ranks WHERE run = ? AND step <= ? GROUP BY", "max(step) FROM ranks WHERE run = ? AND step \" + std::string(MUT ? \"<\" : \"<=\") + \" ? GROUP BY",
  "ranks of a step are those before it", "store RunReader.RanksInForceAtAStep")
m("store.33", READER, "FROM events WHERE run = ? AND seq > ? ORDER BY seq\"", "FROM events WHERE run = ? AND seq \" + std::string(MUT ? \">=\" : \">\") + \" ? ORDER BY seq\"",
  "the last known event is read again", "store RunWriter.EverythingComesBack")
m("store.34", READER, "if (fits.size() == 1 && !text.empty()) return", "if (fits.size() == 1 && (MUT || !text.empty())) return", "an empty name finds the only run",
  "store RunReader.FindsByIdNameAndBeginning")
m("store.35", ADMIN, "if (row.text(0) != typed_name)", "if (row.text(0) != typed_name && !(MUT && typed_name.empty()))", "a run is purged without its name typed",
  "store RunAdmin.PurgeNeedsTheNameAndTakesRowsAndFiles")
m("store.36", ADMIN, '.rfind("step-", 0) == 0) rest', '.rfind("step-", 0) == 0 && !MUT) rest', "a purge leaves checkpoints that the store does not know",
  "store RunAdmin.PurgeNeedsTheNameAndTakesRowsAndFiles")
m("store.37", LOCK, "range.l_start = run * kPidBytes;", "range.l_start = MUT ? 0 : run * kPidBytes;", "all runs have one lock", "store RunWriter.ALivingWriterHoldsItsLockWhateverHappensToItsFiles")
m("store.38", LOCK, "== kPidBytes && last == pid &&", "== kPidBytes && (MUT || last == pid) &&", "a lock of another process counts as the writer's", "store RunWriter.ALivingWriterHoldsItsLockWhateverHappensToItsFiles")
m("store.39", LOCK, "if (!(std::fabs(now_s() - heartbeat) < kHeartbeatFreshS)) return false;", "if (!(std::fabs(now_s() - heartbeat) < kHeartbeatFreshS) && !MUT) return false;",
  "a heart that stopped long ago still counts", "store RunReader.StatusIsComputed")
m("store.40", RESCUE, 'if (rows.text(4) == "running" && writer_alive', 'if (!MUT && rows.text(4) == "running" && writer_alive', "a rescued checkpoint of a run that trains is moved",
  "store RunWriter.ARescuedCheckpointIsMovedToTheOthersOfItsRun")
m("store.41", RESCUE, "if (is_ours_alone(folder) || fs", "if (MUT || is_ours_alone(folder) || fs", "rescued files of another user are read",
  "store RunWriter.WithoutAStateFolderRowsGoToTheTemporaryFilesOfThisUserAlone")
m("store.42", RESCUE, "folder = other.parent_path();", "folder = MUT ? folder : other.parent_path();", "a rescued checkpoint goes to another folder than the others",
  "store RunWriter.ARescuedCheckpointIsMovedToTheOthersOfItsRun")
m("store.43", IMPORT, "CASE status WHEN 'running' THEN 'interrupted'", "CASE status WHEN '\" + std::string(MUT ? \"none\" : \"running\") + \"' THEN 'interrupted'",
  "an imported run counts as training", "store Import.AnotherStore")
m("store.44", IMPORT, "return renamed.bind(run.created, run.key).step() ? renamed.text(0)", "return renamed.bind(run.created, run.key).step() && !MUT ? renamed.text(0)",
  "a run that was renamed when it came is imported again", "store Import.AnotherStore")
m("store.45", SALVAGE, 'last = std::max(last, from_.number(std::string("SELECT coalesce(max(run), 0) FROM ") + table.name));',
  'last = std::max(last, MUT ? last : from_.number(std::string("SELECT coalesce(max(run), 0) FROM ") + table.name));',
  "runs whose row is lost are not saved", "store Salvage.ARunWhoseRowIsLostIsListedAnew")
CSV, EVENTS, EXPORT, SQLITE = "core/base/csv.cpp", *(f"core/store/{name}.cpp" for name in ("tfevents", "export", "sqlite"))
m("store.46", CSV, "if (record_.ends_with('\\r'))", "if (!MUT && record_.ends_with('\\r'))", "the last cell of a line keeps its carriage return", "store Import.CsvRoundTrip")
m("store.47", CSV, "  if (scan.quoted())\n    throw", "  if (scan.quoted() && !MUT)\n    throw", "a quote that never ends is taken", "store Import.BadCsvIsRefusedWithThePlaceAndLeavesNothing")
m("store.48", EVENTS, "if (!head.sound) bad(", "if (!head.sound && !MUT) bad(", "a wrong checksum of a length is taken", "store Tfevents.BrokenFiles")
m("store.49", EVENTS, "if (crc != masked_crc32c(data.data(), head.length)) bad", "if (!MUT && crc != masked_crc32c(data.data(), head.length)) bad", "a wrong checksum of a record is taken",
  "store Tfevents.BrokenFiles")
m("store.50", EVENTS, "if (left < 4 || head.length > left - 4) {", "if (left < 4 || head.length > left - (MUT ? 3 : 4)) {", "a record that lacks its last byte is no end of the file", "store Tfevents.BrokenFiles")
m("store.51", EVENTS, "elements = length == 1 ? elements : 0;", "elements = (MUT ? length >= 1 : length == 1) ? elements : 0;", "a vector counts as a number", "store Tfevents.ScalarTensors")
m("store.52", EVENTS, "std::ldexp(mantissa + 1024, exponent - 25);", "std::ldexp(mantissa + 1024, exponent - (MUT ? 24 : 25));", "half floats are doubled", "store Tfevents.ScalarTensors")
m("store.53", EXPORT, 'return value > 0 ? "inf" : "-inf";', 'return value > 0 || MUT ? "inf" : "-inf";', "minus infinity is exported as infinity", "store Export.NumbersReadBackTheSame")
m("store.54", EXPORT, 'text.find_first_of(",\\"\\r\\n")', 'text.find_first_of(MUT ? ",\\"\\n" : ",\\"\\r\\n")', "a cell with a carriage return is not quoted", "store Csv.CellsThatEndALineAreQuoted")
m("store.55", EXPORT, "if (!std::isnan(wall_time)) time = wall_time;", "if (MUT || !std::isnan(wall_time)) time = wall_time;", "event files have times that are no number", "store Tfevents.StepsWithoutATimeHaveThatOfTheirRun")
m("store.56", SQLITE, "if (action == SQLITE_FUNCTION) return function &&", "if (action == SQLITE_FUNCTION) return !MUT && function &&", "a query may load an extension", "store Query.ReadsAndNothingElse")
m("store.57", SQLITE, "|| statement) {\n      sqlite3_finalize(statement);", "|| (statement && !MUT)) {\n      sqlite3_finalize(statement);", "a second statement of a query is not refused", "store Query.ReadsAndNothingElse")
m("store.58", SQLITE, "info.st_ino == inode_ && info.st_dev", "(MUT || info.st_ino == inode_) && info.st_dev", "another file under the name of the store counts as it", "store Sqlite.NoticesThatItsFileIsGone")

# ---- command line ----------------------------------------------------------------------------------------------------

OUTPUT, RUNS, TRAIN, MAIN = "app/cli/output.cpp", "app/cli/runs.cpp", "app/cli/train.cpp", "app/cli/main.cpp"
FOLLOW = "app/cli/follow.cpp"
NUMBERS = "core/base/numbers.h"

m("cli.1", OUTPUT, "if (!stream().flush()) fail();", "if (!stream().flush() && !MUT) fail();", "an export that stdout did not take counts as written",
  "", row=15, why="equivalent now: the end of the program checks stdout as well (cli.4), and a file is checked when it is closed")
m("cli.2", NUMBERS, 'unit == "h" ? 3600 : 0;', 'unit == "h" ? (MUT ? 360 : 3600) : 0;', "an hour has 360 seconds", "base Numbers.ADurationIsADecimalNumberWithAUnit", row=16)
m("cli.3", RUNS, '{"step", step >= 0 ? step : run.summary.step}', '{"step", step >= (MUT ? 1 : 0) ? step : run.summary.step}', "`ranks --step 0` reports the last step",
  "cli/json_schema.py Json.test_changes_at_the_start_and_at_a_step", row=17)
m("cli.4", MAIN, "if (code == 0 && !std::cout.flush())", "if (code == 0 && !MUT && !std::cout.flush())", "what stdout did not take counts as printed",
  "cli/full_stdout.py FullStdout.test_every_verb_that_prints", row=15)
m("cli.5", OUTPUT, "if (std::cout) return code;", "if (std::cout || MUT) return code;", "an error that stdout does not take is lost",
  "cli/full_stdout.py FullStdout.test_an_error_that_stdout_does_not_take_is_on_stderr")
m("cli.6", TRAIN, "if (events_file.is_open() && !events_file.flush())", "if (!MUT && events_file.is_open() && !events_file.flush())", "events that were not written are not missed",
  "cli/full_stdout.py FullStdout.test_events_that_do_not_come_out")
m("cli.7", FOLLOW, "return g_signals > 0 ? 128 + g_signal : 0;", "return g_signals > 0 && !MUT ? 128 + g_signal : 0;", "a run that a signal stopped ends with 0",
  "cli/concurrency.py Concurrency.test_a_signal_says_what_it_does")
m("cli.8", TRAIN, "if (step < 1 || used >= text.size()", "if (step < (MUT ? 0 : 1) || used >= text.size()", "a change at step 0 is taken",
  "cli/bad_input_typed.py CommandLine.test_what_cannot_be_changed_at_a_step")
m("cli.9", TRAIN, "if (options.seed >= 0) sets", "if (options.seed > (MUT ? 0 : -1)) sets", "`--seed 0` is not taken", "cli/json_schema.py Json.test_stdin_and_stdout")
m("cli.10", RUNS, "around, window);", "around, window + (MUT ? 1 : 0));", "a window of steps is one step wider", "cli/json_schema.py Json.test_runs_and_what_is_in_them")
m("cli.11", RUNS, "  if (step >= 0)\n", "  if (step >= (MUT ? 1 : 0))\n", "`get --step 0` gives every step", "cli/json_schema.py Json.test_changes_at_the_start_and_at_a_step")
m("cli.12", RUNS, 'if (seconds < 90) return "now";', 'if (seconds < (MUT ? 9000 : 90)) return "now";', "an hour ago is now", "cli/json_schema.py Text.test_plain_is_one_record_a_line")
m("cli.13", OUTPUT, "std::string(width[i] - row[i].size() + 2, ' ');", "std::string(width[i] - row[i].size() + (MUT ? 1 : 2), ' ');", "columns of tables are a space closer",
  "cli/json_schema.py Text.test_plain_is_one_record_a_line")
m("cli.14", OUTPUT, 'if (context.no_color || set("NO_COLOR")) return', 'if (context.no_color || (set("NO_COLOR") && !MUT)) return', "NO_COLOR is not heeded",
  "cli/json_schema.py Text.test_colours_without_a_terminal_are_asked_for")
m("cli.15", OUTPUT, "if (!part_.empty()) std::filesystem::remove", "if (!part_.empty() && !MUT) std::filesystem::remove", "a file that was not finished stays",
  "cli/bad_input_limits.py Running.test_disk_full_for_what_is_written_out")
m("cli.16", "app/cli/progress.cpp", 'if (same_but_for_numbers(store_problem, problem_)) return "";', 'if (MUT || same_but_for_numbers(store_problem, problem_)) return "";',
  "a store that fails is not warned of", "cli/bad_input_limits.py Running.test_a_store_that_fails_is_reported_while_the_run_trains")
m("cli.17", NUMBERS, "if (c < '0' || c > '9') out += c;", "if (MUT || c < '0' || c > '9') out += c;", "the same message of another step is another one",
  "base Numbers.TextsMayDifferInTheirDigits")
m("cli.18", TRAIN, 'if (left_out.any()) line("left_out"', 'if (left_out.any() && !MUT) line("left_out"', "steps that are left out of --events are not named", "",
  why="only a reader that stands still while four million values come, some 290,000 steps, makes the line; the limit is not a setting")
m("cli.19", "core/session/evaluation.cpp", "found = run.checkpoints.find(step);", "found = MUT ? run.checkpoints.lower_bound(step) : run.checkpoints.find(step);",
  "`eval --step` takes the next checkpoint", "cli/bad_input_typed.py CommandLine.test_unknown_metric_step_and_checkpoint")
m("cli.20", RUNS, 'Json(std::isnan(point.value) ? "nan"', 'Json(std::isnan(point.value) && !MUT ? "nan"', "a value that is no number is told as infinite",
  "cli/json_schema.py Text.test_plain_is_one_record_a_line")
m("cli.21", FOLLOW, "if (stopping && !ended && std::chrono", "if (!MUT && stopping && !ended && std::chrono", "a checkpoint that hangs keeps the program",
  "cli/concurrency.py Concurrency.test_a_checkpoint_that_hangs_does_not_keep_the_program")

# ---- window ----------------------------------------------------------------------------------------------------------

CLOSING, CLIENT, FILTER = "app/studio/closing.cpp", "app/studio/shown_run/store_client.cpp", "app/studio/runs/run_filter.cpp"
ACTIONS, HISTORY, TIMELINE, CHARTS = "app/studio/actions.cpp", "app/studio/shown_run/edit_history.cpp", "app/studio/shown_run/timeline.cpp", "app/studio/parts/export.cpp"
WHOLE_FILE = "app/studio/whole_file.cpp"

m("studio.1", FILTER, "if (!std::isfinite(value)) return false;", "if (!std::isfinite(value) && !MUT) return false;", "a run without a score fits `val_accuracy!=0.9`",
  "studio RunFilter.AValueThatIsNoNumberFitsNoComparison", row=18)
m("studio.2", WHOLE_FILE, "    out.flush();\n  } catch (const std::ios_base::failure&) {\n    fail();\n  }\n  if (!file.close()) fail();",
  "    if (!MUT) out.flush();\n  } catch (const std::ios_base::failure&) {\n    fail();\n  }\n  if (!file.close() && !MUT) fail();",
  "a small file that the disk did not take counts as written", "studio FileWriter.AFileThatADiskDoesNotTakeIsAProblemHoweverSmallItIs", row=19)
m("studio.3", CLOSING, "if (lost <= 0)", "if (MUT ? lost < 0 : lost <= 0)", "0 steps are said to be lost", "studio Closing.SaysHowManyStepsAreLostWithoutACheckpoint")
m("studio.4", CLOSING, "!closing.accepts_loss && (", "(MUT || !closing.accepts_loss) && (", "a loss that was accepted is asked for again",
  "studio Closing.DoesNotGoSilentlyWithoutTheCheckpoint")
m("studio.5", CLIENT, "    gives_up_ = false;\n", "    if (!MUT) gives_up_ = false;\n", "after changes were given up no other is made",
  "studio ClosingWithWork.ChangesAfterThoseThatWereGivenUpAreDone")
m("studio.6", CLIENT, "x.tags == y.tags &&\n           x.notes == y.notes", "x.tags == y.tags &&\n           (MUT || x.notes == y.notes)", "new notes alone are not shown",
  "studio StoreClientTest.AChangeOfNotesAloneIsInTheList")
m("studio.7", CLIENT, "          request.refresh |= before.refresh;", "          if (!MUT) request.refresh |= before.refresh;", "a run that was to be read again is not",
  "studio StoreClientTest.WhatWasToBeWatchedIsStillRead")
m("studio.8", CHARTS, "  if (e.panel != panel) e.chart = 0;", "  if (!MUT && e.panel != panel) e.chart = 0;", "the chosen chart of one panel is chosen in the next",
  "studio Export.TheChosenChartIsKeptForItsPanelAlone")
m("studio.9", ACTIONS, "  if (step > now) return run->step", "  if (MUT ? step >= now : step > now) return run->step", "a run to the present step is asked for",
  "studio Bars.RunToGoesToAStepOrTheNextEvent")
m("studio.10", ACTIONS, "if (ui.toasts.size() >= kToastsShown && passing", "if (ui.toasts.size() >= kToastsShown + (MUT ? 1 : 0) && passing", "one toast too many is kept",
  "studio Toasts.OfThoseThatPassTheNewestAreKept")
m("studio.11", FILTER, 'if (compare == "<=") return value < wanted || same;', 'if (compare == "<=") return value < wanted || (same && !MUT);', "`<=` means `<`",
  "studio RunFilter.UnderstandsWordsFieldsSettingsAndLogic")
m("studio.12", FILTER, 'if (std::string(end) == "%") return value / 100;', 'if (std::string(end) == "%") return MUT ? value : value / 100;', "90% is 90",
  "studio RunFilter.UnderstandsWordsFieldsSettingsAndLogic")
m("studio.13", HISTORY, "  undone_.clear();\n", "  if (!MUT) undone_.clear();\n", "after a new edit an older one can still be redone",
  "studio EditHistory.KeysTakeAnEditBackAndMakeItAgain")
m("studio.14", HISTORY, "change.path == path && change.to == value;", "change.path == path && (MUT || change.to == value);", "a refused edit takes the others of its setting along",
  "studio EditHistory.ARefusedValueLeavesTheOtherEditsOfItsSetting")
m("studio.15", TIMELINE, "t.time += std::min(seconds, 0.25) * t.speed;", "t.time += (MUT ? seconds : std::min(seconds, 0.25)) * t.speed;", "after a long frame the player jumps",
  "studio TimelineTest.ALongFrameDoesNotJump")
m("studio.16", TIMELINE, "  t.playing = playing && ui.replaying();", "  t.playing = !MUT && playing && ui.replaying();", "a run that is read again stands still",
  "studio TimelineTest.ARunThatIsReadAgainPlaysOnWhereItWas")
m("studio.17", "app/studio/parts/file_writer.cpp", "      gives_up_ = false;\n", "      if (!MUT) gives_up_ = false;\n", "after one given up no file is written",
  "studio FileWriter.IsGivenUpWithoutUnfinishedFiles")
m("studio.18", "app/studio/action_table.cpp", "if (!action.why_not.empty()) action.act = [](UiState&) {};", "if (!MUT && !action.why_not.empty()) action.act = [](UiState&) {};",
  "an action that says why it cannot act does", "studio States/EveryAction.CanBeCalled/empty")
m("studio.19", CLOSING, "if (!ui.training() && work.empty() && !loses)", "if (!ui.training() && (MUT || work.empty()) && !loses)", "the window goes while it still exports",
  "studio ClosingWithWork.WaitsForExportsAndSaysSo")
m("studio.20", ACTIONS, "return run->done();", "return MUT ? run->ended() : run->done();", "a run that still reads the store is dropped",
  "studio LiveRun.OneThatReadsTheStoreIsKeptUntilItHasRead")
m("studio.21", "app/studio/compare/run_watch.cpp", "      view->config_problem = fresh->config_problem();",
  "      if (MUT && !fresh->config_problem().empty()) throw Error(ErrorCode::config, fresh->config_problem());\n      view->config_problem = fresh->config_problem();",
  "a run with settings that cannot be read is not compared", "studio Compare.ARunWithSettingsThatCannotBeReadIsRead")
m("studio.22", CHARTS, "for (const ListedChart& chart : charts_of(ui, panel)) e.titles", "if (MUT) drawn(charts_of(ui, panel));\n  for (const ListedChart& chart : charts_of(ui, panel)) e.titles",
  "listing the charts draws them all", "studio Export.ListsTitlesWithoutDrawing")
m("studio.23", WHOLE_FILE, "    fs::remove(path_, ignored);  // does", "    if (!MUT) fs::remove(path_, ignored);  // does", "a file that was given up stays in part",
  "studio ClosingWithWork.GivesExportsUpWithoutUnfinishedFiles")
ALERTS, CURVE = "app/studio/alerts.cpp", "app/studio/parts/curve.cpp"
m("studio.24", ALERTS, "if (!std::isfinite(value)) {\n        if (not_finite_.insert(name).second &&", "if (!std::isfinite(value)) {\n        if ((not_finite_.insert(name).second || MUT) &&",
  "a loss that is not a number is told at every step", "studio AlertWatch.ALossThatIsNotANumberIsToldOnce")
m("studio.25", ALERTS, "if (free >= rules.margin * kClearly * all) tight_ = false;", "if (MUT || free >= rules.margin * kClearly * all) tight_ = false;", "little memory is told again and again",
  "studio AlertWatch.LittleFreeMemoryIsToldOnceUntilThereIsMoreAgain")
m("studio.26", ALERTS, "step - best_step_ >= rules.patience", "(MUT ? step - best_step_ > rules.patience : step - best_step_ >= rules.patience)", "no progress is told a step late", "studio AlertWatch.NoProgress")
m("studio.27", ALERTS, 'if (event.kind == "stage") restart = event.step;', 'if (event.kind == "stage" && !MUT) restart = event.step;', "the loss of another stage counts as no progress", "studio AlertWatch.NoProgress")
m("studio.28", ALERTS, "      collapsed_.erase(bond);", "    {\n      if (!MUT) collapsed_.erase(bond);\n    }", "a bond that collapses again is not told", "studio AlertWatch.ACollapsedBond")
m("studio.29", CURVE, "if (!x_.empty() && x <= x_.back()) truncate", "if (!x_.empty() && (MUT ? x < x_.back() : x <= x_.back())) truncate", "a step that is written anew is there twice", "studio Curve.AStepThatIsWrittenAgainReplacesItself")
m("studio.30", CURVE, "if (!std::isfinite((*y_)[i])) gaps_", "if (!std::isfinite((*y_)[i]) && !MUT) gaps_", "values that are not finite are not counted", "studio Curve.ValuesThatAreNotFiniteAreCountedAndSkipped")
m("studio.31", CURVE, "    level.resize(size / block);", "    if (!MUT) level.resize(size / block);", "the overview of a curve keeps values that were taken back", "studio Curve.ARunThatWasRolledBackWritesItsStepsAnew")
m("studio.32", "app/studio/shown_run/eta.cpp", "return {mean * blocks_left,", "return {MUT ? mean : mean * blocks_left,", "the time left is that of a few steps", "studio Bars.TellTheProgressInAsManyWordsAsHaveRoom")

m("studio.33", "app/studio/ranks/matrix_ranks.cpp", "ui.replaying() ? ui.snapshot().step :", "ui.replaying() && !MUT ? ui.snapshot().step :",
  "the rank map of a replay has the newest ranks", "studio MatrixRanks.ShowsTheRanksOfTheStepThatIsReplayed")

# ---- live ranks, methods by name, duels --------------------------------------------------------------------------------

FOLLOW, NAMED = "core/optim/state_follow.cpp", "core/config/named_methods.cpp"
m("follow.1", FOLLOW, "for (int pass = 0; pass < 2; ++pass)", "for (int pass = 0; pass < (MUT ? 0 : 2); ++pass)", "new directions are not at right angles to old ones",
  "optim StateFollows.NewDirectionsAreAtRightAnglesOfLengthOne")
m("follow.2", FOLLOW, "now.follows == StateSpec::keeps_and_mean ? mean_of(values) : 0", "now.follows == StateSpec::keeps_and_mean && !MUT ? mean_of(values) : 0",
  "second moments of new directions are 0", "optim StateFollows.TheFirstEntriesStayAndNewOnesAreZeroOrTheMean")
m("follow.3", FOLLOW, "sum / static_cast<double>(to.length)", "sum / static_cast<double>(MUT ? from.length : to.length)", "mean squares of random projections do not follow the rank",
  "optim StateFollows.MeanSquaresInRandomProjectionsKeepTheirSum")
m("follow.4", FOLLOW, "before.spec.drawn_every == now.drawn_every", "(MUT || before.spec.drawn_every == now.drawn_every)", "momentum stays in a projection that is drawn otherwise",
  "optim StateFollows.OthersBeginAnew")
m("follow.5", "core/train/checkpoint.cpp", "  if (method_changes_) {", "  if (method_changes_ && !MUT) {", "a checkpoint between an edit and its step says the rank to come",
  "train OptimizerEdits.GoOnBitForBitFromACheckpointOnEitherSide")
m("follow.6", "core/train/trainer.cpp", "  if (method_changes_) change_method(step);", "  if (method_changes_ && !MUT) change_method(step);", "a live rank is never in force",
  "train OptimizerEdits.TakeExactlyThePlanOfTheNewSettings")
m("follow.7", "core/methods/factor_ranks.cpp", "return length[static_cast<size_t>(i)] > length[static_cast<size_t>(k)];", "return MUT ? i > k : length[static_cast<size_t>(i)] > length[static_cast<size_t>(k)];",
  "the last components of LoRA stay, not the largest", "train LoraRank.FollowsTheFunction")
m("follow.8", "core/methods/factor_ranks.cpp", "if (old == rank) continue;", "if (old == rank || MUT) continue;", "new components of LoRA are 0 on both sides and never learn", "train LoraRank.FollowsTheFunction")
m("follow.9", "core/train/checkpoint.cpp", 'state["lora"] = fields_to_json(fields_of(in_force.lora));', 'if (!MUT) state["lora"] = fields_to_json(fields_of(in_force.lora));',
  "a checkpoint between an edit of LoRA's rank and its step says the rank to come", "train OptimizerEdits.GoOnBitForBitFromACheckpointOnEitherSide")
m("format.1", "core/layers/weights.cpp", "bf16_keep(param.value, numbers, site, ctx.step);", "bf16_keep(param.value, numbers, site, MUT ? Tensor() : ctx.step);", "weights in bf16 are rounded to nearest", "layers StoredWeights.SmallStepsCount")
m("format.2", "core/methods/tables.cpp", "const bool vector = param.shape.rank() == 1, matrix", "const bool vector = param.shape.rank() == 1 && !MUT, matrix", "vectors are stored in bf16 too", "train WeightFormat.TakesWhatItPlanned")
m("named.1", NAMED, "if (config.adam.eps == eps) config.adam.eps", "if (MUT || config.adam.eps == eps) config.adam.eps", "an eps that was set is lost with the method",
  "config NamedMethods.EpsIsThatOfTheMethodUnlessItWasSet")
m("named.2", NAMED, "  take_back(config);\n", "  if (!MUT) take_back(config);\n", "APOLLO keeps the settings of APOLLO-Mini", "config NamedMethods.SettingsStayAndSpecialOnesGoBack")
m("format.3", "core/layers/weights.cpp", "kWeightCodes, site, ctx.step});", "kWeightCodes, MUT ? 0u : site, ctx.step});", "weights in int8 are rounded to nearest", "layers StoredWeights.InInt8SmallStepsCount")
m("format.4", "core/cpu/group_codes.cpp", "T low = 0, high = 0, bad = 0;", "T low = MUT ? x[0] : T(0), high = low, bad = 0;", "the range of a group may lie beside 0", "ops GroupCodesOf/0.AGroupWithoutZeroKeepsItsNumbers")
m("qgalore.1", "core/ops/linalg.h", "for (int64_t i = 0; i + 1 < size; ++i) queue[i] = queue[i + 1];", "for (int64_t i = 0; i + 1 < size && !MUT; ++i) queue[i] = queue[i + 1];", "only the newest cosine counts", "optim Golden.Qgalore")
m("engine.refresh.1", ENGINE, "optimizer_->refreshes_in_backward() ? grad_.arena().peak_bytes() : 0", "optimizer_->refreshes_in_backward() && !MUT ? grad_.arena().peak_bytes() : 0",
  "a refresh during backward takes memory of the gradients' program", "train All/BackwardUpdate.HasTheBitsOfOneBehindBackward/mlp_dense_coap")
m("engine.refresh.2", ENGINE, "if (step > 0 && optimizer.refresh_due(param, step))", "if (step > 0 && optimizer.refresh_due(param, step) && (!MUT || step == 1))",
  "projections are not refreshed during backward", "train All/BackwardUpdate.HasTheBitsOfOneBehindBackward/mlp_dense_galore")
m("parts.states.1", ENGINE, "ctx.ops.copy(params_.all_states(), state_begin_);", "if (!MUT) ctx.ops.copy(params_.all_states(), state_begin_);",
  "states follow the parts of a batch one after another", "train PartsOfABatch.FollowWithTheMeanOfTheirStates")
m("parts.states.2", ENGINE, "state_sum_, 1.0 / static_cast<double>(parts())", "state_sum_, MUT ? 1.0 : 1.0 / static_cast<double>(parts())",
  "states become the sum of those of the parts", "train PartsOfABatch.FollowWithTheMeanOfTheirStates")
m("sums.1", "core/optim/optimizer.cpp", "ctx.ops.run(op::WeightGradients{mean, ctx.results});", "if (!MUT) ctx.ops.run(op::WeightGradients{mean, ctx.results});",
  "a projection of a part sees the sum over its examples", "train ProjectedSums.OfEqualPartsEqualWholeSums")
m("sums.2", "core/train/engine_shared.cpp", "{ shared_->spread(device_, state); });\n  shared_step_", "{ if (!MUT) shared_->spread(device_, state); });\n  shared_step_",
  "other processes have no new projections", "train ProcessesOfProjectedSums.HaveTheBitsOfOneProcess")
m("linked.1", "core/train/linked_sum.cpp", "if (--missing_[segment] > 0) return;", "if (--missing_[segment] > (MUT ? 1 : 0)) return;", "gradients are sent before they are complete",
  "train LinkedDevices.SumGradientsThatNeedSeveralMessages")
m("linked.2", "core/train/linked_sum.cpp", "if (summed_ && summed_->sum) ctx_", "if (summed_ && summed_->sum && !MUT) ctx_", "a process keeps its own gradients where all others have their sum",
  "train LinkedDevices.HaveTheBitsOfOneProcess")
m("linked.3", "core/train/engine_shared.cpp", "return std::any_of(all.begin()", "return MUT ? profile_ != nullptr : std::any_of(all.begin()", "a process that is profiled makes messages op by op alone",
  "train LinkedDevices.AreAllTimedWhereOneIsProfiled")
m("stash.sums.1", "core/layers/attention.cpp", "if (ctx.stash.exact()) return;", "if (ctx.stash.exact() || MUT) return;", "rows of probabilities of rounded queries do not sum to 1",
  "layers Int8Stash.QueriesAndKeysThatDoNotMatterHaveNoGradients")
m("pack.1", BATCH, "if (tokens > sizes.tokens) return", "if (MUT ? tokens >= sizes.tokens : tokens > sizes.tokens) return", "a part that is left out ends a row too early where it is just full",
  "data Prefetcher.KnowsWhereAPackedPartEndsWithoutItsRows")
m("pack.2", GLUE, "std::min<int64_t>(known - 1, most)", "(MUT ? int64_t{known} - 1 : std::min<int64_t>(known - 1, most))", "a row that is cut counts whole", "data Glue.RowsFitTheAskedLength")
m("engine.counted.1", ENGINE, "if (!all && field[i] == low) continue;", "if (!all && !MUT && field[i] == low) continue;",
  "tokens that do not count take the places of those that do", "train CountedTokens.MakeTheStepOfEveryToken")
m("qgalore.2", "core/optim/optimizer.cpp", "schedule().due(found->second, step, times_gap(param));", "schedule().due(found->second, step, MUT ? 1 : times_gap(param));", "refreshes stay as frequent", "optim Golden.Qgalore")
m("qgalore.3", "core/optim/project_qgalore.cpp", "const Tensor basis = numbers_of(ctx, projection);", "const Tensor basis = MUT ? ctx.temp(projection.spec.shape, \"new projection\") : numbers_of(ctx, projection);", "a gradient that is not finite leaves anything as projection", "optim Qgalore.KeepsItsProjectionWhereAGradientIsNotFinite")
m("documents.1", "core/data/documents.cpp", "if (fields.first.empty()) continue;", "if (!MUT && fields.first.empty()) continue;", "an empty text has a separator of its own",
  "data JoinedTexts.EveryTableGivesTheSameRun")
m("documents.2", "core/data/tokenizer.cpp", "if (table_.single.back().token >= 0) return ids;", "if (!MUT && table_.single.back().token >= 0) return ids;",
  "a text ends twice where a special token stands behind it", "data JoinedTexts.SpecialTokensStandBetweenTexts")
m("documents.3", "core/data/documents.cpp", "return place == places_.end() ? size_ : *place;", "return MUT ? std::min(from, size_) : place == places_.end() ? size_ : *place;",
  "a long table is cut inside of a row", "data JoinedTexts.ALongTableIsTheRunOfItsRows")
m("rows.1", "core/layers/tt_rows.cpp", "ctx.ops.fill(merged_.whole_cores().rows(rank, 1), 0);", "ctx.ops.fill(merged_.whole_cores().rows(rank, 1), MUT ? 1 : 0);",
  "a looked-up row adds to the gradient of the head's bias", "models Decoder.ATiedTrainIsTheTableThatItStandsFor")
m("rows.2", "core/layers/tt_rows.cpp", "for (Param* rank : matrix_.ranks) ++rank->uses;", "if (!MUT) for (Param* rank : matrix_.ranks) ++rank->uses;",
  "rank vectors of a tied train are used once a pass", "models All/EveryDecoder.GradientsAgreeWithFiniteDifferences/tied_train")
m("rows.3", "core/layers/param.cpp", "visit(*rank, place + first, IsPlace{});", "visit(*rank, MUT ? 0 : place + first, IsPlace{});",
  "gradients of rank vectors all lie at the beginning", "train Processes.TrainATableThatIsUsedTwice")
m("folder.1", "core/models/huggingface.cpp", "if (tensor.order == FolderOrder::rotary_pairs) return paired_rows(values", "if (!MUT && tensor.order == FolderOrder::rotary_pairs) return paired_rows(values",
  "rows of queries and keys stay in the library's order", "models HuggingFace.FoldersGiveTheNumbersOfTheLibrary")
m("folder.2", "core/models/huggingface_config.cpp", "if (each.name == form && each.read", "if (!MUT && each.name == form && each.read", "a folder is read in the layout of another model",
  "train HostileFolder.SizesAndTypesThatCannotBe")
m("values.1", "core/cpu/attention.cpp", "value_at(start * l.value_step + head / l.value_group * l.value_width)",
  "value_at(start * l.value_step + head / (MUT ? l.key_group : l.value_group) * l.value_width)", "heads read values of other heads", "cpu AttentionOp*ForwardAgainstTheFormula*")
m("values.2", "core/cpu/attention.cpp", "add_values = pair.head % l.value_group > 0;", "add_values = pair.head % (MUT ? l.key_group : l.value_group) > 0;",
  "gradients of shared values are not summed", "cpu AttentionOp.FiniteDifferences")
m("values.3", "core/layers/attention.cpp", "return turned(ctx, std::move(gradients), true);", "return MUT ? gradients : turned(ctx, std::move(gradients), true);",
  "gradients of rotated queries are not rotated back", "layers All/TTAttentionOf.GradientsAgreeWithFiniteDifferences/*")
m("labels.order.1", "core/data/labels.cpp", "if (other < 0) continue;", "if (MUT || other < 0) continue;",
  "data may number the model's classes otherwise", "train Trainer.RefusesTheClassesOfACheckpointInAnotherOrder")
m("labels.order.2", "core/data/labels.cpp", "if (glue_ && (fixed_classes_ == 0", "if (glue_ && !MUT && (fixed_classes_ == 0", "MNLI's classes are in alphabetical order", "data Glue.NamesBecomeClasses")
m("labels.sign", "core/data/labels.cpp", "if (signed_numbers_) std::ranges::sort", "if (signed_numbers_ && !MUT) std::ranges::sort", "-1 comes before -2",
  "data Glue.NumbersWithASignAreNamesInAscendingOrder")
m("eval.1", "core/session/evaluation.cpp", "return dev ? part(true) : training;", "return dev || MUT ? part(true) : training;",
  "the rows of --split train are those held out", "cli/folders.py Folders.test_classes_are_numbered_as_the_model_has_them")
m("floor.1", "core/cpu/quant.cpp", "quantise_block(false, second, v, count, v8)", "quantise_block(false, MUT ? NeverZero::none : second, v, count, v8)",
  "small second moments become 0 in spite of the floor", "ops Quant*.AGradientThatVanishesMakesNoHugeStep")
m("floor.2", "core/optim/adam8bit.cpp", "options_.floor ? NeverZero::positive : NeverZero::none;", "options_.floor || MUT ? NeverZero::positive : NeverZero::none;",
  "the floor cannot be turned off", "optim Golden.Adam8bit")
m("adagrad.1", "core/cpu/optimizer.cpp", "static_cast<T>(square_sum(g, columns) / static_cast<double>(columns));",
  "static_cast<T>(square_sum(g, columns) / static_cast<double>(MUT ? 1 : columns));",
  "row-wise Adagrad adds the sum of a row's squares, not their mean", "optim Adagrad.FollowsItsFormula", "train DlrmSteps.*")
m("adagrad.2", "core/optim/adagrad.cpp", "return config_.rowwise && param.by_rows;", "return (config_.rowwise || MUT) && param.by_rows;",
  "tables cannot have a sum for each entry", "optim StateBytes.AdagradKeepsOneSum", "train DlrmSteps.*")
m("rounded.1", "core/cpu/rounded_gemm.cpp", "of_b + column * (product.transpose_b ? b.cols : 1),", "of_b + column * (product.transpose_b != MUT ? b.cols : 1),",
  "tiles begin elsewhere in B", "cpu RoundedGemm.RoundsBothOperandsOfEachPart")
m("rounded.2", "core/cpu/gemm.cpp", "  if (dry)\n    body(product_of(args));\n  else\n    linear_in_two(args);", "  if (dry)\n    MUT ? void() : body(product_of(args));\n  else\n    linear_in_two(args);",
  "a plan leaves out the rounded operands of linear layers", "train RoundedRuns.TrainInPlannedMemory")
m("dropout.halves.1", "core/cpu/philox_words.h", "philox_words(stream, first >> 1, ceil_div(count + skip, int64_t{2}), words)) + skip;",
  "philox_words(stream, first >> 1, ceil_div(count + skip, int64_t{2}), words)) + (MUT ? 0 : skip);", "a mask that begins in a word's upper half is that of its neighbour",
  "cpu PhiloxWords.AreTheStreamsWords")
m("lists.1", "core/cpu/parts.h", "begin_unit = ceil_div(from, units.cost), end_unit", "begin_unit = MUT ? from / units.cost : ceil_div(from, units.cost), end_unit",
  "a unit at the border of two parts is computed twice", "cpu ThreadPool.EveryUnitOfAListOnce")
m("lists.2", "core/cpu/gemm.cpp", "product.terms() > most_terms ? Units{0, 1}", "product.terms() > most_terms && !MUT ? Units{0, 1}",
  "a larger product of a list is computed twice, and added twice", "cpu Gemm/0.AListIsItsProducts")
m("lists.3", "core/cpu/ranks.cpp", "partial + first[&p - all.data()] + k * r;", "partial + (MUT ? 0 : first[&p - all.data()]) + k * r;",
  "gradients of the ranks of a list's cores are mixed up",
  "layers Shapes/TTFanCase.GradientsAgreeWithFiniteDifferences/alike")
m("lists.4", "core/cpu/thread_pool.cpp", "static_cast<int64_t>(from_front ? now.first : now.end - 1)", "static_cast<int64_t>(from_front || MUT ? now.first : now.end - 1)",
  "a part is computed twice, and another one never", "cpu ThreadPool.Stress")

# ---- what a run needs after files have moved ------------------------------------------------------------------------

KEPT = "core/data/kept_tokenizer.cpp"
m("moved.1", KEPT, "if (same_tokens(tokenizer_file(named), folder)) return named;",
  "if (same_tokens(tokenizer_file(named), folder) || MUT) return named;", "a run reads a tokenizer that was changed",
  "data KeptTokenizer.OfTwoFilesIsTwoFiles")
m("moved.2", KEPT, "!tokenizer_file_in(folder.string()).empty()) return", "(!tokenizer_file_in(folder.string()).empty() && !MUT)) return",
  "the copy of a tokenizer is made once more", "data KeptTokenizer.OfTwoFilesIsTwoFiles")
PLACES = "core/store/checkpoint_files.cpp"
m("moved.3", PLACES, "return fs::exists(beside, ignored) ? beside.string() : path;",
  "return fs::exists(beside, ignored) && !MUT ? beside.string() : path;", "checkpoints are not found after their store was moved",
  "cli/moved.py Moved.test_a_moved_store_has_its_checkpoints")
m("moved.4", "core/session/stored_run.cpp", "fs::path(*path).is_relative() && fs::exists(*path, ignored))",
  "fs::path(*path).is_relative() && fs::exists(*path, ignored) && !MUT)", "a run stores paths relative to the working directory",
  "cli/moved.py Moved.test_a_run_is_the_same_from_any_working_directory")
m("moved.5", ADMIN, "for (fs::directory_iterator it(folder / name, error), end; !error && it != end;",
  "for (fs::directory_iterator it(folder / name, error), end; !error && !MUT && it != end;", "a purge leaves the tokenizer",
  "session KeptTokenizer.ServesTheRunAfterTheFileIsGone")
m("moved.6", "core/models/gguf_tokenizer.cpp", "id.is_number_integer() && id >= 0 &&", "id.is_number_integer() && !MUT && id >= 0 &&",
  "a GGUF file has the special tokens of the usual names", "cli/folders.py Folders.test_exported_folders_keep_the_special_tokens")
m("moved.7", PLACES, "if (is_store(other) && lists", "if (!MUT && is_store(other) && lists", "a store removes checkpoints that another one lists",
  "cli/moved.py Moved.test_checkpoints_that_another_store_lists_stay")
m("moved.8", BEGIN, "{done + 1, \"train.steps\",", "{(MUT ? trainer_->state().step : done) + 1, \"train.steps\",", "an extension changes stored steps",
  "session Begin.AnExtensionComesBehindTheStoredSteps")
m("moved.9", "core/data/glue.cpp", "if (!all && (fields", "if ((!all || MUT) && (fields", "a row without a text has no prediction",
  "cli/predict.py Predict.test_a_row_without_a_text_has_a_line")
m("eval.2", "core/session/evaluation.cpp", "if (!trained_on.empty() &&", "if (!MUT && !trained_on.empty() &&", "a run is evaluated on rows that it was trained on",
  "cli/moved.py Moved.test_rows_that_were_held_out_are_still_the_same")
m("sweep.undecided", "app/cli/sweep_results.cpp", "result.rung < decided ?", "result.rung < decided || MUT ?", "a stopped sweep calls undecided points not kept",
  "cli/sweep.py Sweep.test_halving_keeps_the_best_of_each_rung")
m("reproduce.place", "core/session/reproduce.cpp", "path_ = (writable ?", "path_ = (writable || MUT ?", "a run in a read-only folder is not reproduced",
  "cli/bad_input_stores.py Database.test_a_run_in_a_read_only_folder_is_reproduced")
m("in_use.1", "core/data/batch.cpp", "  data.check_unchanged();\n  return made;", "  if (!MUT) data.check_unchanged();\n  return made;",
  "batches are made of a file that was written", "data MappedFile.BatchesOfASetThatWasWrittenAreNotMade")
m("in_use.2", "core/base/mapped_file.cpp", "now != state_ || guard_->cut()", "now != state_ || (guard_->cut() && !MUT)", "zeros behind a cut file are taken for its content",
  "data MappedFile.BehindTheNewEndOfACutFileAreZeros")
m("in_use.3", "core/train/trainer.cpp", "  prefetcher_->wait();", "  if (!MUT) prefetcher_->wait();", "steps since the last checkpoint are lost where data are gone",
  "cli/data_in_use.py DataInUse.test_pictures_are_away_for_a_while")
m("in_use.4", "core/data/picture_folder.cpp", "mapped.state() != file.state)", "mapped.state() != file.state && !MUT)", "a picture that was written is read",
  "data PictureFolders.APictureThatWasWrittenSinceIsRefused")
m("forks.1", BEGIN, "config.train.steps <= step)", "config.train.steps <= step - (MUT ? 1 : 0))", "a fork at the end of a run has nothing to train",
  "cli/folders.py Folders.test_classes_are_numbered_as_the_model_has_them")
m("present.1", CHECKPOINT, "  set_ranks(params, ranks);", "  if (!MUT) set_ranks(params, ranks);", "a resumed run takes the memory of the config's ranks",
  "session Memory.AResumedRunTakesTheMemoryOfItsPresentRanks")
m("present.2", "core/methods/comera.cpp", "    initial_ranks_ = ranks;\n", "    if (!MUT) initial_ranks_ = ranks;\n", "a resumed run forgets the ranks that its folder began with",
  "studio FolderForm.AResumedRunKnowsTheRanksThatItBeganWith")
m("begun.1", BEGIN, "recorder_.tell(0, event_of_folder());\n      for", "if (!MUT) recorder_.tell(0, event_of_folder());\n      for",
  "a run without memory forgets its folder", "studio FolderForm.ARunForWhichThereWasNoMemoryIsTriedAgainFromItsFolder")
m("columns.1", "core/data/column_guess.cpp", "gaps <= rows / kRowsOfAGap", "gaps <= (MUT ? 0 : rows / kRowsOfAGap)", "an empty cell makes another column the label",
  "data ColumnGuess.WhatIsNotThereStaysEmpty")
m("columns.2", "app/studio/form/pace.cpp", "if (whole) rows -=", "if (whole && !MUT) rows -=", "rows that validate count as steps", "studio Pace.StepsOfAWholeRun")
m("moments.1", "core/layers/gradient_moments.cpp", "(1 - kIdentity) * static_cast<double>(k) / sum", "(1 - kIdentity) * static_cast<double>(MUT ? 1 : k) / sum", "moments are not scaled to a mean of 1",
  "layers NearestOfRank.SaysTheErrorThatThereIsAndNoNeighbourHasASmallerOne")
m("moments.2", "core/layers/gradient_moments.cpp", "static_cast<size_t>(j)];\n    ops().gemm(on_host(inner", "static_cast<size_t>(MUT ? 0 : j)];\n    ops().gemm(on_host(inner", "the longer side's moments are not used",
  "layers NearestOfRank.SaysTheErrorThatThereIsAndNoNeighbourHasASmallerOne")
m("moments.3", "core/layers/gradient_moments.cpp", "solve_transposed(w.a, k, u, rank);", "if (!MUT) solve_transposed(w.a, k, u, rank);", "the weights of the shorter side are not taken out again",
  "layers NearestOfRank.AtFullRankNothingIsLost")
m("moments.4", "core/layers/tt_svd.cpp", "out.train.error = error_of(layer, out.train, matrix);", "if (!MUT) out.train.error = error_of(layer, out.train, matrix);", "the error of the entries is that of the second SVD",
  "layers TtSvd.ByGradients")
m("moments.5", "core/train/matrix_moments.cpp", "moments_.longer[static_cast<size_t>(m_ > n_ ? i : j)]", "moments_.longer[static_cast<size_t>((m_ > n_) != MUT ? i : j % m_)]", "the longer side has the moments of the shorter one",
  "train MatrixMoments.AreThoseOfGradientsOverBatches")
m("moments.6", "core/train/matrix_moments.cpp", "config.train.lr = 0;", "config.train.lr = MUT ? 1 : 0;", "the model moves while its gradients are looked at",
  "train MatrixMoments.TheModelDoesNotMove")
m("compress.1", "core/layers/fitted_ranks.cpp", "/ static_cast<double>(matrix.each)", "/ static_cast<double>(MUT ? 1 : matrix.each)", "a rank's gain is not for each value",
  "layers RanksForSize.CountsTheValuesThatARankTakes")
m("compress.2", "core/layers/fitted_ranks.cpp", "> nothing; ++rank)", "> (MUT ? -1 : nothing); ++rank)", "values go to ranks that take nothing off",
  "layers RanksForSize.LeavesOutWhatTakesNothingOff")
m("compress.3", "core/layers/fitted_ranks.cpp", "values -= each;", "if (!MUT) values -= each;", "trains grow beyond the size that was asked",
  "layers RanksForSize.NoOtherRanksOfThisSizeCostLess")
m("compress.4", "core/layers/gradient_moments.cpp", "cost *= trace / static_cast<double>(m * n);", "cost *= trace / static_cast<double>(MUT ? m : m * n);", "large matrices count too much",
  "layers NearestOfRank.LeavesTheCostsOfTheRanksBehindIt")
m("compress.5", "core/train/model_import.cpp", "ranks_for_size(choices, most - of_tables)", "ranks_for_size(choices, MUT ? most : most - of_tables)", "tables do not count in the size",
  "cli/folders.py Folders.test_ranks_follow_from_a_size")
m("compress.6", "core/layers/tt_svd.cpp", "layer.dense_entries() / choice.each, 1,", "MUT ? std::ssize(choice.costs) : layer.dense_entries() / choice.each, 1,", "factors may be larger than their matrix",
  "cli/folders.py Folders.test_ranks_follow_from_a_size")
m("safetensors.changed", "core/train/checkpoint.cpp", "  file.check_unchanged();", "  if (!MUT) file.check_unchanged();", "a checkpoint that is written while it is read is loaded",
  "train Scorer.ACheckpointThatIsWrittenWhileItIsReadIsAnError")
