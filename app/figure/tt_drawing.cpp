#include "app/figure/tt_drawing.h"

#include <algorithm>
#include <cmath>

#include "app/figure/colors.h"
#include "app/format.h"

namespace comera {
namespace {

constexpr float kLabel = 0.78f, kSmall = 0.72f, kName = 0.92f;

Point at(double x, double y) { return {static_cast<float>(x), static_cast<float>(y)}; }

void draw_core(Drawing& out, const TTCore& core, bool selected, bool hovered) {
  const Theme& t = theme();
  const Color side = core.in_mode > 0 && core.out_mode > 0 ? t.series[3] : core.in_mode > 0 ? t.series[0] : t.series[2];
  const Point from = at(core.x - core.width / 2, core.y - core.height / 2), to = at(core.x + core.width / 2, core.y + core.height / 2);
  const bool dead = core.rank_in == 0 || core.rank_out == 0;
  out.rect(from, to, mix(t.raised, side, hovered ? 0.3f : 0.14f), 0.3f);
  out.rect(from, to, selected ? t.accent : dead ? t.bad : with_alpha(side, 0.75f), 0.3f, selected ? 0.16f : 0.07f);
  out.text(at(core.x, core.y), kLabel, t.text, core_label(core), Anchor::middle);
}

void draw_bond(Drawing& out, const TTBond& bond, bool selected, bool hovered) {
  const Theme& t = theme();
  const double middle = (bond.x0 + bond.x1) / 2;
  const float share = bond.initial > 0 ? static_cast<float>(bond.live) / static_cast<float>(bond.initial) : 0;
  if (selected || hovered)
    out.rect(at(bond.x0, bond.y - 0.75), at(bond.x1, bond.y + 0.75), with_alpha(t.accent, selected ? 0.3f : 0.16f), 0.2f);
  out.rect(at(bond.x0, bond.y - bond.ghost / 2), at(bond.x1, bond.y + bond.ghost / 2), with_alpha(t.dim, 0.85f), 0, 0.05f);
  if (bond.live > 0)
    out.rect(at(bond.x0, bond.y - bond.thickness / 2), at(bond.x1, bond.y + bond.thickness / 2), heat(share));
  else
    out.line({at(bond.x0, bond.y), at(bond.x1, bond.y)}, t.bad, 0.12f, -1, 0.3f);
  out.text(at(middle, bond.y - bond.ghost / 2 - 0.62), kLabel, bond.live > 0 ? t.text : t.bad,
           std::to_string(bond.live) + "/" + std::to_string(bond.initial), Anchor::middle, true);
  if (bond.cap > 0)
    out.text(at(middle, bond.y + bond.ghost / 2 + 0.55), kSmall, t.warning, "cap " + std::to_string(bond.cap), Anchor::middle);
}

void draw_leg(Drawing& out, const TTLeg& leg) {
  out.line({at(leg.x, leg.from), at(leg.x, leg.to)}, theme().dim, 0.09f);
  out.text(at(leg.x, leg.to + (leg.input ? -0.45 : 0.45)), kSmall, theme().dim, std::to_string(leg.size), Anchor::middle);
}

void draw_collapsed(Drawing& out, const TTLayout& layout, const TTRow& row, bool hovered) {
  const Theme& t = theme();
  const double left = layout.names + 2, right = std::max(left + 10, layout.width - 1), low = row.y + 0.8, high = row.y - 0.8;
  out.rect(at(left, high), at(right, low), hovered ? t.hover : t.raised, 0.3f);
  const double share = row.first_entries > 0 ? static_cast<double>(row.entries) / static_cast<double>(row.first_entries) : 0;
  out.rect(at(left, low - 0.22), at(left + (right - left) * std::clamp(share, 0.0, 1.0), low), heat(static_cast<float>(share)), 0.1f);
  out.text(at(left + 0.7, row.y - 0.08), kLabel, t.text,
           std::to_string(row.layers) + " layers,  " + thousands(static_cast<double>(row.entries)) + " of " +
               thousands(static_cast<double>(row.first_entries)) + " parameters,  ranks at " +
               std::to_string(std::lround(row.live_share * 100)) + " %");
}

}  // namespace

std::string core_label(const TTCore& core) {
  std::string mode = std::to_string(core.in_mode > 0 ? core.in_mode : core.out_mode);
  if (core.in_mode > 0 && core.out_mode > 0) mode += "\xc2\xb7" + std::to_string(core.out_mode);
  return std::to_string(core.rank_in) + " \xc3\x97 " + mode + " \xc3\x97 " + std::to_string(core.rank_out);
}

Drawing tt_drawing(const TTLayout& layout, const TTLook& look) {
  const Theme& t = theme();
  Drawing out;
  out.size = at(layout.width, layout.height);
  out.unit = 16;
  out.title = "Tensor trains";
  const auto visible = [&](double y, double room) { return y + room >= look.top && y - room <= look.bottom; };
  const auto is = [&](TTHit::Kind kind, size_t index) { return look.hovered.kind == kind && look.hovered.index == index; };
  std::vector<bool> chosen;  // selected row
  for (size_t i = 0; i < layout.rows.size(); ++i) {
    const TTRow& row = layout.rows[i];
    const bool selected = !row.collapsed && row.name == look.layer;
    chosen.push_back(selected);
    if (!visible(row.y, row.height)) continue;
    const bool hovered = is(TTHit::row, i);
    if (selected)
      out.rect(at(0.3, row.y - row.height / 2), at(layout.width - 0.3, row.y + row.height / 2), with_alpha(t.accent, 0.1f), 0.3f);
    if (i > 0) out.line({at(1, row.y - row.height / 2), at(layout.width - 1, row.y - row.height / 2)}, with_alpha(t.border, 0.8f), 0.04f);
    out.text(at(1, row.y), kName, selected || hovered ? t.text : t.dim, row.name, Anchor::left, selected);
    if (row.collapsed) draw_collapsed(out, layout, row, hovered);
  }
  const auto selected = [&](size_t layer, size_t index, int64_t wanted) {
    if (wanted == 0 || static_cast<int64_t>(index) + 1 != wanted) return false;
    const TTRow* row = layout.row_of(layer);
    return row && chosen[static_cast<size_t>(row - layout.rows.data())];
  };
  for (size_t i = 0; i < layout.bonds.size(); ++i)
    if (const TTBond& bond = layout.bonds[i]; visible(bond.y, 3))
      draw_bond(out, bond, selected(bond.layer, bond.index, look.bond), is(TTHit::bond, i));
  for (const TTLeg& leg : layout.legs)
    if (visible(leg.from, 3)) draw_leg(out, leg);
  for (size_t i = 0; i < layout.cores.size(); ++i)
    if (const TTCore& core = layout.cores[i]; visible(core.y, 3))
      draw_core(out, core, selected(core.layer, core.index, look.core), is(TTHit::core, i));
  return out;
}

Drawing tt_picture(const Snapshot& snapshot, const TTLayout& layout) {
  Drawing out = tt_drawing(layout, {});
  out.background = theme().card;
  out.title = "Tensor trains of " + snapshot.name + ", step " + thousands(static_cast<double>(snapshot.step));
  out.move({0, 2});
  out.size.y += 2;
  out.text({1, 1.4f}, 1, theme().text,
           out.title + ":  " + thousands(snapshot.size.entries) + " parameters, " + smaller_than_dense(snapshot.size), Anchor::left, true);
  return out;
}

}  // namespace comera
