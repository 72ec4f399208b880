#include "app/studio/form/field_titles.h"

#include <algorithm>
#include <cctype>
#include <span>

namespace comera::studio {
namespace {

struct Title {
  const char* path;  // with a leading '.': a suffix of the path
  const char* title;
};

constexpr Title kFields[] = {
    {"name", "Name"},
    {"model.kind", "Model kind"},
    {"model.length", "Sequence length (tokens)"},
    {"model.encoder.layers", "Encoder blocks"},
    {"model.encoder.d_model", "Model width (d_model)"},
    {"model.encoder.heads", "Attention heads"},
    {"model.encoder.d_ff", "Feed-forward width (d_ff)"},
    {"model.encoder.vocab", "Vocabulary size"},
    {"model.encoder.attention_dropout", "Attention dropout"},
    {"model.encoder.position_std", "Position-embedding std"},
    {"model.encoder.norm_eps", "Norm epsilon"},
    {"model.mlp.inputs", "Inputs (pixels)"},
    {"model.mlp.hidden", "Hidden width"},
    {".tensorise", "As a tensor train"},
    {".in_modes", "Input modes"},
    {".out_modes", "Output modes"},
    {".ranks", "Initial rank per bond"},
    {"method.galore.rank", "Projection rank"},
    {".rank", "Initial rank"},
    {".cores", "Modes per side"},
    {"data.set", "Data set"},
    {"data.vocab", "Vocabulary file"},
    {"data.pack", "Pack sequences"},
    {"data.token_budget", "Token budget"},
    {"data.train_rows", "Training rows"},
    {"data.validation_rows", "Validation rows"},
    {"method.name", "Method name"},
    {"method.stash", "Activation stash"},
    {"method.adam8bit.min_size", "Minimum size (entries)"},
    {"method.galore.gap", "Refresh every (steps)"},
    {"method.galore.eight_bit", "8-bit moments"},
    {".beta1", "Beta 1"},
    {".beta2", "Beta 2"},
    {".eps", "Epsilon"},
    {"method.comera.train_ranks", "Train ranks"},
    {"method.comera.threshold", "Rank threshold"},
    {"method.comera.rank_weight", "Rank penalty weight"},
    {"method.comera.late_loss_weight", "Loss weight"},
    {"method.comera.late_weight", "Late-stage weight"},
    {"method.comera.w1", "Loss weight w1"},
    {"method.comera.w2", "Size weight w2"},
    {"method.comera.hold_at_target", "Hold at the target"},
    {"method.comera.late_halving", "Steps per halving"},
    {"method.comera.late_canonical", "Canonical form first"},
    {"method.comera.late_after", "Late stage after (steps)"},
    {"method.comera.late_on_plateau", "Late on plateau (steps)"},
    {"method.comera.prune_dead_share", "Prune from (dead share)"},
    {"method.comera.prune_every", "Prune every (steps)"},
    {"method.comera.floor_rank", "Keep rank >= 1"},
    {"train.batch", "Batch size (rows)"},
    {"train.lr_core", "Learning rate, TT cores"},
    {"train.lr_rank", "Learning rate, ranks"},
    {"train.lr_rank_late", "Learning rate, late ranks"},
    {"train.lr", "Learning rate, other"},
    {"train.warmup", "Warm-up (steps)"},
    {"train.lr_final_fraction", "Final LR fraction"},
    {"train.eval_every", "Evaluate every (steps)"},
    {"train.checkpoint_every", "Checkpoint every (steps)"},
    {"train.checkpoint_minutes", "Checkpoint every (min)"},
    {"train.keep_checkpoints", "Checkpoints to keep"},
    {"train.max_steps_per_s", "Step limit (per second)"},
    {"train.precision", "Precision"},
    {"train.matmul", "Matmul precision"},
    {"train.threads", "CPU threads"},
    {"train.cuda_graph", "CUDA graph"},
};

constexpr Title kGroups[] = {
    {"model.encoder", "Text encoder"},
    {"model.mlp", "Image network (MLP)"},
    {"model.tt", "Tensor trains"},
    {".ffn_in", "Feed-forward, first matrix"},
    {".ffn_out", "Feed-forward, second matrix"},
    {"method.adam", "AdamW"},
    {"method.adam8bit", "8-bit Adam"},
    {"method.galore", "GaLore"},
    {"method.mesa", "int8 stash"},
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
