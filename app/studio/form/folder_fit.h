// The form of a run that begins with the weights of a folder of the transformers library: how its matrices become tensor trains, and the
// size and error of each, computed on a thread before the run starts.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/studio/background.h"
#include "core/config/config.h"
#include "core/session/folder_start.h"
#include "core/train/model_import.h"

namespace comera::studio {

struct NewRun;
struct UiState;

enum class RanksFrom { settings, error, compression };

struct FitQuestion {
  FolderStart from;
  RunConfig config;
  std::shared_ptr<std::atomic<bool>> stopped;
};
struct FitAnswer {
  std::shared_ptr<const FolderWeights> weights;  // null: `problem` says why
  RunConfig config;                              // with the ranks that were found
  std::string problem, hint;
};

struct FolderFit {
  RanksFrom ranks_from = RanksFrom::settings;
  double most_error = 0.1;    // relative, of each matrix
  double compression = 4;     // of all matrices together
  bool by_gradients = false;  // they weight the errors; not with most_error
  int64_t batches = 64;       // of gradients

  std::shared_ptr<const FitAnswer> answer;                                                  // the newest; null: none
  std::string of;                                                                           // what the answer depends on, see is_fitted()
  std::string asked;                                                                        // the same of the question being answered
  uint64_t number = 0;                                                                      // of that question; 0 = none
  std::shared_ptr<std::atomic<bool>> stopped = std::make_shared<std::atomic<bool>>(false);  // set: that question needs no answer
  std::unique_ptr<Background<FitQuestion, FitAnswer>> worker;

  ~FolderFit() { *stopped = true; }  // else the end of the thread would wait for the answer
};

// The folder whose weights the run of the form begins with.
std::optional<std::string> folder_of(const NewRun& form);
// How the run begins, with the weights where is_fitted(); no path: they are drawn.
FolderStart folder_start(const NewRun& form);
bool has_trains(const NewRun& form);
// Whether gradients of training batches weight the errors.
bool weighs_by_gradients(const FolderFit& fit);
// Whether the sizes and errors are those of the current settings.
bool is_fitted(const NewRun& form);
// Why they cannot be computed; null: they can.
const char* no_fit(const NewRun& form);
// Computes them; stop_fit() ends that.
void fit_folder(UiState& ui);
void stop_fit(FolderFit& fit);
// Takes the answer; ranks that follow from errors become settings. Called once a frame; never waits.
void tick_folder_fit(UiState& ui);

// The card of the form.
void draw_folder_card(UiState& ui);

}  // namespace comera::studio
