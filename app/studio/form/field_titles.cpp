#include "app/studio/form/field_titles.h"

#include <algorithm>
#include <cctype>
#include <span>

namespace comera::studio {
namespace {

struct Title {
  const char* path;  // begins with '.': the end of it
  const char* title;
};

constexpr Title kFields[] = {
    {"name", "Name"},
    {"model.kind", "Kind of model"},
    {"model.length", "Length (tokens)"},
    {"model.encoder.layers", "Encoder blocks"},
    {"model.encoder.d_model", "Features of a token"},
    {"model.encoder.heads", "Attention heads"},
    {"model.encoder.d_ff", "Feed-forward features"},
    {"model.encoder.vocab", "Vocabulary (tokens)"},
    {"model.encoder.attention_dropout", "Dropout of attention"},
    {"model.encoder.position_std", "Spread of positions"},
    {"model.encoder.norm_eps", "Epsilon of norms"},
    {"model.mlp.inputs", "Inputs (pixels)"},
    {"model.mlp.hidden", "Hidden features"},
    {".tensorise", "As a tensor train"},
    {".in_modes", "Modes of the input"},
    {".out_modes", "Modes of the output"},
    {".ranks", "Ranks one by one"},
    {"method.galore.rank", "Directions"},
    {".rank", "First rank"},
    {".cores", "Modes a side"},
    {"data.set", "Data set"},
    {"data.vocab", "Vocabulary file"},
    {"data.pack", "Pack sequences"},
    {"data.token_budget", "Packed batch (tokens)"},
    {"data.train_rows", "Rows to train on"},
    {"data.validation_rows", "Rows to score"},
    {"method.name", "Name of the method"},
    {"method.stash", "Kept for backward"},
    {"method.adam8bit.min_size", "Smallest (entries)"},
    {"method.galore.gap", "Refresh every (steps)"},
    {"method.galore.eight_bit", "Moments in 8 bits"},
    {".beta1", "Beta 1"},
    {".beta2", "Beta 2"},
    {".eps", "Epsilon"},
    {"method.comera.train_ranks", "Train the ranks"},
    {"method.comera.threshold", "Rank threshold"},
    {"method.comera.rank_weight", "Rank penalty weight"},
    {"method.comera.late_loss_weight", "Loss beside the push"},
    {"method.comera.late_weight", "Push"},
    {"method.comera.w1", "Loss in the maximum"},
    {"method.comera.w2", "Size in the maximum"},
    {"method.comera.hold_at_target", "Hold at the target"},
    {"method.comera.late_halving", "Pace (steps)"},
    {"method.comera.late_canonical", "Sort bonds first"},
    {"method.comera.late_after", "Late stage after (steps)"},
    {"method.comera.late_on_plateau", "... no progress (steps)"},
    {"method.comera.prune_dead_share", "Cut from (share)"},
    {"method.comera.prune_every", "Look every (steps)"},
    {"method.comera.floor_rank", "No rank under 1"},
    {"train.batch", "Batch (rows)"},
    {"train.lr_core", "Learning rate, cores"},
    {"train.lr_rank", "Learning rate, ranks"},
    {"train.lr_rank_late", "Learning rate, ranks late"},
    {"train.lr", "Learning rate, rest"},
    {"train.warmup", "Warm-up (steps)"},
    {"train.lr_final_fraction", "Rate at the end (share)"},
    {"train.eval_every", "Evaluate every (steps)"},
    {"train.checkpoint_every", "Checkpoint every (steps)"},
    {"train.checkpoint_minutes", "... and every (min)"},
    {"train.keep_checkpoints", "Checkpoints kept"},
    {"train.max_steps_per_s", "Step limit (per second)"},
    {"train.precision", "Number format"},
    {"train.matmul", "Matrix products"},
    {"train.threads", "CPU threads"},
    {"train.cuda_graph", "CUDA graph"},
};

constexpr Title kGroups[] = {
    {"model.encoder", "Text encoder"},
    {"model.mlp", "Image network"},
    {"model.tt", "Tensor trains"},
    {".ffn_in", "Feed-forward, first matrix"},
    {".ffn_out", "Feed-forward, second matrix"},
    {"method.adam", "AdamW"},
    {"method.adam8bit", "8-bit Adam"},
    {"method.galore", "GaLore"},
    {"method.mesa", "8-bit stash"},
    {"method.comera", "Ranks and size (CoMERA)"},
};

std::string title_in(std::span<const Title> table, const std::string& path) {
  for (const Title& one : table)
    if (*one.path == '.' ? path.ends_with(one.path) : path == one.path) return one.title;
  std::string title = path.substr(path.rfind('.') + 1);  // npos + 1 is 0
  std::replace(title.begin(), title.end(), '_', ' ');
  if (!title.empty()) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

}  // namespace

std::string title_of_field(const std::string& path) { return title_in(kFields, path); }
std::string title_of_group(const std::string& path) { return title_in(kGroups, path); }

}  // namespace comera::studio
