# Which tests run in the plain build, which under the address sanitizer, and which in both.
#
#   plain_only         GoogleTest patterns, joined by colons, that only the plain build runs: under a sanitizer they cost much and repeat
#                      other tests, or they skip themselves. A test that skips itself there must be in this list, or `.ci/run` never runs it.
#   sanitized_folders  folders whose results do not depend on the optimiser. In the plain build their tests have the label `sanitized`,
#                      except for plain_only, and so do command line scripts that run under a sanitizer. `./test.sh` runs them in both
#                      builds, `.ci/run` only under the sanitizer.
set(sanitized_folders studio session store data config base)

set(plain_only "")
# They skip themselves under a sanitizer, which brings its own allocator and reports leaks of MPI.
list(APPEND plain_only LackOfMemory.* Processes.OneThatIsKilledEndsTheRunAndNotTheWindow Processes.AreStartedFromTheFormAndSteeredAsOne)
# Lists of settings whose parts other tests run one by one, beside the combinations that methods_of leaves out (config/choices.h).
list(APPEND plain_only Captured.EveryPresetUnderAThirdOfTheMethods Captured.OptionsOfMethodsAndModels WeightFormat.GoesOnByteForByteAndIsCapturedSo)
# All optimizers once more around the same layers. Combination.PlannedIsUsed trains encoders and perceptrons with each, LocalUpdates
# restore each from a checkpoint.
list(APPEND plain_only *Combination.RestoredAnywhere* *BackwardUpdate.*/encoder_* *CapturedMethods.*/encoder_* *ProcessesOfMethods.*/lora_*
  *ProcessesOfMethods.*/lte_* *ProcessesOfMethods.*/tt_* *LocalUpdatesOfMethods.*/tt_*
  OptimizerEdits.GoOnBitForBitFromACheckpointOnEitherSide WeightFormat.TakesWhatItPlanned Processes.TrainWithEveryOtherChoice
  LinkedDevices.TrainEveryModelInBothPrecisions *RankFit.TheRankFallsOnly*)
# Bitwise comparisons of two ways to train. Other tests run the same layers, optimizers and messages under the sanitizer.
list(APPEND plain_only *Recompute*.TrainsAsIfAllWereKept* *Recompute*.TrainAsIfAllWereKept *.RestoredAnywhereTheyEnd* Refreshes.*
  RecomputeAttention.TrainsAsWithWholeHeads ProcessesOfProjectedSums.HaveTheBitsOfOneProcess LinkedDevices.HaveTheBitsOfOneProcess
  OptimizerEdits.AnEditAndItsReverseBeforeTheStepChangeNothing LinkedDevices.SumGradientsThatNeedSeveralMessages
  ProcessesOfHeads.HaveTheBitsOfOneProcess Processes.FollowBatchesWithTheStatesOfTheRun Processes.ShareBatchesThatArePacked)
# Training for hundreds and thousands of steps, step times of a million steps, a kernel that is called twice for each entry.
list(APPEND plain_only *Tasks.TrainsInPlannedMemoryAndImproves/3 CompareStore.ValuesAreThoseOfTheStore AttentionOp.FiniteDifferences
  Recorder.TimesOfStepsAreExactForAFewAndTakeBoundedMemoryForMany)
# The same frames in other sizes and colours, and the search for overlapping texts that tests use.
list(APPEND plain_only *_light *FormSizes.*_at_3_* *InEverySize *OfEverySize *FitsEverySize *IntoEverySize *IntoEveryWindow
  *InTheSmallestWindow* *AtAnyScale NewRun.EverySettingHasARowThatCanBeReached Stage.FindsTextsThatOverlapAndNoLettersOfOne)
foreach(state empty paused failed diverged read_only)
  list(APPEND plain_only *Matrix.NothingIsCutOff/${state})
endforeach()
# The same actions in states much like those that stay, and 660 frames that wait for a timer.
foreach(state preparing pausing stopping finished stopped interrupted diverged no_steps stored_in_front)
  list(APPEND plain_only *EveryAction.CanBeCalled/${state})
endforeach()
list(APPEND plain_only Closing.OffersToQuitAtOnceWhenItTakesLong)
# Plans and steps of whole presets, which tests of the core compute as well.
list(APPEND plain_only NewRun.TheForecastIsThatOfPlan FormOutlook.AStepIsMeasuredOnRequest)
# One thread only: no races to find. The address sanitizer runs them.
if(COMERA_SANITIZE STREQUAL "thread")
  list(APPEND plain_only DataSuit.* DuelPlan.*)
endif()
list(JOIN plain_only ":" plain_only)
