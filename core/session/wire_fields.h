// The fields of what a session is told and reports, one list a type, for JSON both ways (wire.h) and for the test that none is missing.
#pragma once
#include <nlohmann/json.hpp>

#include "core/session/session.h"

namespace comera {

template <class Visit>
void wire_fields(ScheduledChange& s, Visit&& visit) {
  visit("step", s.step), visit("path", s.path), visit("value", s.value);
}

template <class Visit>
void wire_fields(FolderStart& s, Visit&& visit) {  // without the weights: the other end reads them
  visit("path", s.path), visit("most_error", s.most_error), visit("compression", s.compression), visit("gradient_batches", s.gradient_batches);
}

template <class Visit>
void wire_fields(SessionStart& s, Visit&& visit) {  // without the config, which has its own JSON
  visit("folder", s.folder), visit("store", s.store), visit("checkpoint_folder", s.checkpoint_folder);
  visit("resume_run", s.resume_run), visit("fork_run", s.fork_run), visit("at_step", s.at_step), visit("sets", s.sets);
  visit("changes", s.changes), visit("extend", s.extend), visit("tags", s.tags), visit("max_seconds", s.max_seconds);
  visit("paused", s.paused), visit("watched", s.watched), visit("attended", s.attended), visit("most_waiting", s.most_waiting);
  visit("device", s.device);
}

template <class Visit>
void wire_fields(PauseCommand&, Visit&&) {}
template <class Visit>
void wire_fields(ResumeCommand&, Visit&&) {}
template <class Visit>
void wire_fields(StopCommand& s, Visit&& visit) {
  visit("checkpoint", s.checkpoint);
}
template <class Visit>
void wire_fields(CheckpointCommand&, Visit&&) {}
template <class Visit>
void wire_fields(StepCommand& s, Visit&& visit) {
  visit("steps", s.steps), visit("to_event", s.to_event);
}
template <class Visit>
void wire_fields(EditCommand& s, Visit&& visit) {
  visit("path", s.path), visit("value", s.value);
}
template <class Visit>
void wire_fields(ForeseeCommand& s, Visit&& visit) {
  visit("path", s.path), visit("value", s.value), visit("high", s.high);
}
template <class Visit>
void wire_fields(InspectCommand& s, Visit&& visit) {
  visit("layer", s.layer), visit("bond", s.bond), visit("core", s.core);
}
template <class Visit>
void wire_fields(ProfileCommand& s, Visit&& visit) {
  visit("steps", s.steps);
}
template <class Visit>
void wire_fields(AlertCommand& s, Visit&& visit) {
  visit("step", s.step), visit("kind", s.kind), visit("text", s.text);
}

template <class Visit>
void wire_fields(MemoryByPurpose& s, Visit&& visit) {
  visit("bytes", s.bytes);
}
template <class Visit>
void wire_fields(StepMemory::Phase& s, Visit&& visit) {
  visit("name", s.name), visit("bytes", s.bytes);
}
template <class Visit>
void wire_fields(StepMemory& s, Visit&& visit) {
  visit("phases", s.phases);
}
template <class Visit>
void wire_fields(StepResults& s, Visit&& visit) {
  visit("loss", s.loss), visit("ce", s.ce), visit("examples", s.examples), visit("correct", s.correct), visit("rho", s.rho);
  visit("entries", s.entries), visit("surrogate", s.surrogate), visit("core_norm2", s.core_norm2), visit("lambda", s.lambda);
  visit("ce_weight", s.ce_weight), visit("rho_weight", s.rho_weight), visit("part_loss", s.part_loss);
  visit("part_examples", s.part_examples), visit("part_correct", s.part_correct), visit("grad_norm2", s.grad_norm2);
}
template <class Visit>
void wire_fields(StepTimes& s, Visit&& visit) {
  visit("grad", s.grad), visit("refresh", s.refresh), visit("update", s.update), visit("forward", s.forward), visit("others", s.others);
}
template <class Visit>
void wire_fields(SharedStep& s, Visit&& visit) {
  visit("compute_ms", s.compute_ms), visit("sent_bytes", s.sent_bytes);
}
template <class Visit>
void wire_fields(StepRecord& s, Visit&& visit) {
  visit("step", s.step), visit("results", s.results), visit("accuracy", s.accuracy), visit("learning_rate", s.learning_rate);
  visit("step_ms", s.step_ms), visit("times", s.times), visit("shared", s.shared), visit("data_ms", s.data_ms);
  visit("tokens", s.tokens), visit("examples", s.examples), visit("epoch", s.epoch), visit("target_entries", s.target_entries);
}
template <class Visit>
void wire_fields(EvalRecord& s, Visit&& visit) {
  visit("loss", s.loss), visit("accuracy", s.accuracy), visit("examples", s.examples), visit("more", s.more);
  visit("step", s.step), visit("ms", s.ms);
}
template <class Visit>
void wire_fields(ModelSize& s, Visit&& visit) {
  visit("entries", s.entries), visit("bytes", s.bytes), visit("compression", s.compression), visit("model_entries", s.model_entries);
  visit("model_compression", s.model_compression), visit("held_entries", s.held_entries);
}
template <class Visit>
void wire_fields(LayerRanks& s, Visit&& visit) {
  visit("name", s.name), visit("live", s.live), visit("held", s.held), visit("initial", s.initial), visit("in_modes", s.in_modes);
  visit("out_modes", s.out_modes), visit("caps", s.caps), visit("weight", s.weight);
}
template <class Visit>
void wire_fields(RankedMatrix& s, Visit&& visit) {
  visit("name", s.name), visit("rows", s.rows), visit("columns", s.columns);
}
template <class Visit>
void wire_fields(InspectedBond& s, Visit&& visit) {
  visit("layer", s.layer), visit("bond", s.bond), visit("step", s.step), visit("values", s.values);
}
template <class Visit>
void wire_fields(InspectedCore& s, Visit&& visit) {
  visit("layer", s.layer), visit("core", s.core), visit("step", s.step), visit("shape", s.shape), visit("largest", s.largest);
  visit("bins", s.bins), visit("norm", s.norm), visit("gradient_norm", s.gradient_norm);
}
template <class Visit>
void wire_fields(Foreseen& s, Visit&& visit) {
  visit("path", s.path), visit("value", s.value), visit("planned", s.planned), visit("room", s.room), visit("largest", s.largest);
}
template <class Visit>
void wire_fields(Saving& s, Visit&& visit) {
  visit("step", s.step), visit("done", s.done), visit("total", s.total);
}
template <class Visit>
void wire_fields(Snapshot& s, Visit&& visit) {  // without step_memory, which is behind a pointer
  visit("run", s.run), visit("name", s.name), visit("phase", s.phase), visit("message", s.message), visit("error_code", s.error_code);
  visit("error_why", s.error_why), visit("error_hint", s.error_hint), visit("store_problem", s.store_problem), visit("step", s.step);
  visit("total_steps", s.total_steps), visit("epoch", s.epoch), visit("total_epochs", s.total_epochs), visit("late", s.late);
  visit("target_entries", s.target_entries), visit("last", s.last), visit("eval", s.eval), visit("best_loss", s.best_loss);
  visit("best_accuracy", s.best_accuracy), visit("best_step", s.best_step), visit("size", s.size), visit("ranks", s.ranks);
  visit("ranked", s.ranked), visit("inspected", s.inspected), visit("inspected_core", s.inspected_core);
  visit("memory_now", s.memory_now), visit("memory_peak", s.memory_peak), visit("memory_planned", s.memory_planned);
  visit("gemm_share", s.gemm_share), visit("steps_per_s", s.steps_per_s), visit("tokens_per_s", s.tokens_per_s);
  visit("step_ms_median", s.step_ms_median), visit("step_ms_p95", s.step_ms_p95), visit("elapsed_s", s.elapsed_s);
  visit("eta_s", s.eta_s), visit("last_ticket", s.last_ticket), visit("last_ticket_step", s.last_ticket_step);
  visit("last_refusal", s.last_refusal), visit("replaced", s.replaced), visit("last_checkpoint_step", s.last_checkpoint_step);
  visit("last_checkpoint_path", s.last_checkpoint_path), visit("last_checkpoint_at", s.last_checkpoint_at), visit("saved_at", s.saved_at);
  visit("pause_at", s.pause_at), visit("pause_at_event", s.pause_at_event), visit("foreseen", s.foreseen), visit("saving", s.saving);
  visit("device", s.device);
}
template <class Visit>
void wire_fields(Series& s, Visit&& visit) {
  visit("steps", s.steps), visit("values", s.values);
}
template <class Visit>
void wire_fields(RankRow& s, Visit&& visit) {
  visit("step", s.step), visit("layer", s.layer), visit("bond", s.bond), visit("rank", s.rank);
}
template <class Visit>
void wire_fields(MemoryRow& s, Visit&& visit) {
  visit("step", s.step), visit("purpose", s.purpose), visit("bytes", s.bytes);
}
template <class Visit>
void wire_fields(EventRow& s, Visit&& visit) {
  visit("seq", s.seq), visit("step", s.step), visit("kind", s.kind), visit("time", s.time), visit("body", s.body);
}
template <class Visit>
void wire_fields(Records::LeftOut& s, Visit&& visit) {
  visit("first", s.first), visit("last", s.last);
}
template <class Visit>
void wire_fields(Records& s, Visit&& visit) {
  visit("left_out", s.left_out), visit("metrics", s.metrics), visit("times", s.times), visit("ranks", s.ranks), visit("memory", s.memory);
  visit("events", s.events);
}

struct AnyVisit {
  template <class T>
  void operator()(const char*, T&) const {}
};
template <class T>
concept HasWireFields = requires(T& value) {
  wire_fields(value, AnyVisit());
};

}  // namespace comera

// For vectors, maps and members of these types.
template <comera::HasWireFields T>
struct nlohmann::adl_serializer<T, void> {
  template <class AnyJson>
  static void to_json(AnyJson& json, const T& value) {
    json = AnyJson::object();
    comera::wire_fields(const_cast<T&>(value), [&](const char* name, auto& field) { json[name] = field; });  // it only reads
  }
  template <class AnyJson>
  static void from_json(const AnyJson& json, T& value) {
    comera::wire_fields(value, [&](const char* name, auto& field) { json.at(name).get_to(field); });
  }
};
