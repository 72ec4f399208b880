#include "core/config/named_methods.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "core/base/error.h"
#include "core/base/json.h"

namespace comera {
namespace {

struct Part {
  std::string id, title, about;
  FieldValues values;  // by path inside method; the first axis that it names is the one that it takes
  const char* axis;
};

std::vector<Part> all_parts() {
  std::vector<Part> parts;
  const OptimizerSettings built_in;
  OptimizerSettings::each(built_in, [&](const auto& own) {
    const OptimizerInfo info = own.info();
    FieldValues values = {{"optimizer", std::string(info.choice.id)}, {"update", std::string(info.update)}};
    if (std::string_view(info.weight_format) != "full") values["weight_format"] = std::string(info.weight_format);
    parts.push_back({info.choice.id, info.choice.title, info.choice.about, values, "optimizer"});
    if (parts.back().id == "apollo") {
      values["apollo.rank"] = int64_t{1};
      values["apollo.scaling"] = std::string("tensor");
      values["apollo.alpha"] = 128.0;
      parts.push_back(
          {"apollo-mini", "APOLLO-Mini", "One scale per matrix, by Adam on a random projection of rank 1.", values, "optimizer"});
    }
  });
  const MethodConfig methods;
  MethodConfig::each_weights(methods, [&](const auto& own) {
    const WeightsInfo info = own.info();
    if (!info.name) return;
    const bool usual = methods.weights == info.choice.id;
    parts.insert(usual ? parts.begin() + 1 : parts.end(),
                 {info.name->id, info.name->title, info.name->about, {{"weights", std::string(info.choice.id)}}, "weights"});
  });
  parts.push_back({"mesa", "Mesa", "Activations are kept as 8-bit codes.", {{"stash", std::string("int8")}}, "stash"});
  parts.push_back({"wta-crs", "WTA-CRS", "Gradients of matrices from sampled rows of their inputs.", {{"wta.ratio", 0.3}}, "wta.ratio"});
  return parts;
}

const std::vector<Part>& parts() {
  static const std::vector<Part> kParts = all_parts();
  return kParts;
}

const Part* find_part(const std::string& id) {
  const auto at = std::find_if(parts().begin(), parts().end(), [&](const Part& part) { return part.id == id; });
  return at == parts().end() ? nullptr : &*at;
}

std::map<std::string, std::vector<Choice>> all_rules_inside() {
  MethodConfig config;
  const std::vector<FieldEntry> settings = fields_list(fields_of(config));
  std::map<std::string, std::vector<Choice>> rules;
  for (const Part& part : parts()) {
    std::vector<Choice>& of_part = rules[part.id];
    for (const FieldEntry& entry : settings)
      if (entry.path == part.id + ".rule") of_part = entry.info.choices;
  }
  return rules;
}

// The rules that a part can be around: choices of its setting `rule`, which optimizers of projected gradients have.
const std::vector<Choice>& rules_inside(const std::string& part) {
  static const std::map<std::string, std::vector<Choice>> kRules = all_rules_inside();  // each call would list all settings
  static const std::vector<Choice> kNone;
  const auto at = kRules.find(part);
  return at == kRules.end() ? kNone : at->second;
}

const Choice* find_choice(const std::vector<Choice>& choices, const std::string& id) {
  const auto at = std::find_if(choices.begin(), choices.end(), [&](const Choice& choice) { return choice.id == id; });
  return at == choices.end() ? nullptr : &*at;
}

// A name that was taken apart: parts of different axes, and the rule inside the optimizer.
struct Composition {
  std::vector<const Part*> parts;
  const Part* optimizer = nullptr;
  std::string rule, rule_title;
};

[[noreturn]] void refuse_unknown(const std::string& id) {
  std::vector<std::string> ids;
  std::string all;
  for (const NamedMethod& method : named_methods()) {
    ids.push_back(method.id);
    if (find_part(method.id)) all += (all.empty() ? "" : ", ") + method.id;
  }
  const std::string near = nearest_name(id, ids);
  throw Error(ErrorCode::not_found, "no method '" + id + "'", "the methods are " + all + ", and combinations joined by +",
              near.empty() ? "" : "did you mean '" + near + "'?");
}

void add_rule(Composition& made, const std::string& id) {
  const std::vector<Choice>& rules = rules_inside(made.optimizer ? made.optimizer->id : "");
  const Choice* rule = made.rule.empty() ? find_choice(rules, id) : nullptr;
  if (!rule && !find_part(id)) refuse_unknown(id);
  if (!rule)
    throw Error(ErrorCode::config, "method: '" + made.optimizer->id + "' and '" + id + "' do not combine", "both are optimizers",
                "choose one");
  made.rule = rule->id;
  made.rule_title = rule->title;
}

void add_part(Composition& made, const Part& part) {
  for (const Part* other : made.parts)
    if (std::string(other->axis) == part.axis)
      throw Error(ErrorCode::config, "method: '" + other->id + "' and '" + part.id + "' do not combine",
                  std::string("both set method.") + part.axis, "choose one");
  made.parts.push_back(&part);
}

Composition take_apart(const std::string& name) {
  std::vector<std::string> optimizers;  // in the order of the name; those that have a rule inside first
  Composition made;
  std::istringstream text(name);
  for (std::string id; std::getline(text, id, '+');) {
    const Part* part = find_part(id);
    if (!part || std::string(part->axis) == "optimizer")
      optimizers.push_back(id);
    else
      add_part(made, *part);
  }
  std::stable_partition(optimizers.begin(), optimizers.end(), [](const std::string& id) { return !rules_inside(id).empty(); });
  for (const std::string& id : optimizers) {
    const Part* part = find_part(id);
    if (made.optimizer || !part) {
      add_rule(made, id);
    } else {
      made.optimizer = part;
      made.parts.push_back(part);
    }
  }
  if (made.parts.empty() || name.ends_with('+')) refuse_unknown(name);
  constexpr std::string_view kOrder[] = {"weights", "optimizer", "stash", "wta.ratio"};
  const auto place = [&](const Part* part) { return std::find(std::begin(kOrder), std::end(kOrder), part->axis); };
  std::stable_sort(made.parts.begin(), made.parts.end(), [&](const Part* a, const Part* b) { return place(a) < place(b); });
  return made;
}

constexpr double kMomentInside = 0.9;  // of Adafactor inside a projection: COAP refines with a first moment

// Special settings of the parts that a config has now go back to the built-in ones.
void take_back(MethodConfig& config) {
  MethodConfig built_in;
  const std::string rule = config.inner_rule();
  const FieldValues now = field_values(fields_of(config)), before = field_values(fields_of(built_in));
  FieldValues back;
  for (const Part& part : parts()) {
    const bool is =
        std::all_of(part.values.begin(), part.values.end(), [&](const auto& value) { return now.at(value.first) == value.second; });
    for (const auto& [path, value] : part.values)
      if (is) back[path] = before.at(path);
  }
  set_field_values(fields_of(config), back);
  if (rule.starts_with("adafactor") && config.adafactor.beta1 == kMomentInside) config.adafactor.beta1 = built_in.adafactor.beta1;
}

void compose(MethodConfig& config, const Composition& made) {
  const double eps = config.chosen().eps;
  take_back(config);
  config.weights = "dense";
  config.stash = "exact";
  config.optimizer = "adamw";
  config.update = "after";
  config.wta.ratio = 1;
  FieldValues values;
  for (const Part& part : parts())
    if (!rules_inside(part.id).empty()) values[part.id + ".rule"] = std::string("adam");
  for (const Part* part : made.parts) values.insert(part->values.begin(), part->values.end());
  if (!made.rule.empty()) values[made.optimizer->id + ".rule"] = made.rule;
  set_field_values(fields_of(config), values);
  if (config.weights != "tt") config.waist = false;  // what it saves is small there, and takes time
  if (made.rule.starts_with("adafactor") && config.adafactor.beta1 == 0) config.adafactor.beta1 = kMomentInside;
  if (config.adam.eps == eps) config.adam.eps = config.chosen().eps;
  config.name.clear();
  for (const Part* part : made.parts) {
    config.name += (config.name.empty() ? "" : " + ") + part->title;
    if (part == made.optimizer && !made.rule.empty()) config.name += " + " + made.rule_title;
  }
}

NamedMethod named(const std::string& id) {
  NamedMethod method{id, "", "", {}};
  const Composition made = take_apart(id);
  compose(method.config, made);
  method.title = method.config.name;
  for (const Part* part : made.parts) method.summary += (method.summary.empty() ? "" : " ") + part->about;
  return method;
}

std::vector<NamedMethod> all_methods() {
  std::vector<NamedMethod> all;
  for (const Part& part : parts()) all.push_back(named(part.id));
  for (const Part& part : parts())
    for (const Choice& rule : rules_inside(part.id))
      if (std::string(rule.id) != "adam") all.push_back(named(part.id + "+" + rule.id));
  for (const char* id : {"comera+adam8bit", "comera+mesa"}) all.push_back(named(id));
  return all;
}

}  // namespace

const std::vector<NamedMethod>& named_methods() {
  static const std::vector<NamedMethod> kMethods = all_methods();
  return kMethods;
}

const NamedMethod& find_method(const std::string& id) {
  for (const NamedMethod& method : named_methods())
    if (method.id == id) return method;
  refuse_unknown(id);
}

void set_method(MethodConfig& config, const std::string& name) { compose(config, take_apart(name)); }

void set_method(RunConfig& config, const std::string& name) {
  const bool had_trains = config.method.weights == "tt";
  set_method(config.method, name);
  // In attention and feed-forward blocks it saves most of the memory for little or no time; elsewhere it saves little.
  const std::string& kind = config.model.kind;
  if (config.method.weights == "tt" && !had_trains) config.method.waist = kind == "encoder" || kind == "decoder" || kind == "vit";
}

std::string name_of_method(const MethodConfig& config) {
  const auto telling = [](MethodConfig method) {
    method.name.clear();
    method.adam.eps = 0;
    return field_values(fields_of(method));
  };
  std::string found;
  const FieldValues values = telling(config);
  for (const NamedMethod& method : named_methods()) {
    MethodConfig changed = config;
    set_method(changed, method.id);
    if (telling(changed) == values) found = method.id;
  }
  return found;
}

}  // namespace comera
