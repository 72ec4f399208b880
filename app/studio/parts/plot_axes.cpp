#include "app/studio/parts/plot_axes.h"

#include <implot.h>

#include <algorithm>
#include <cmath>

#include "app/figure/figure.h"
#include "app/format.h"
#include "core/base/rounding.h"

namespace comera::studio {
namespace {

void widen(const Curve& curve, const PlotView& view, const StepAxis& axis, double scale, double& low, double& high) {
  double a = 0, b = 0;
  if (!curve.extremes(axis.step(view.x_low), axis.step(view.x_high), a, b)) {
    a = b = curve.at(axis.step(view.x_high));  // no point in the visible range
    if (!std::isfinite(a)) return;
  }
  low = std::min(low, a * scale);
  high = std::max(high, b * scale);
}

// Widens the range by the 1st and 99th percentile of the visible raw values.
void widen_most(const Curve& curve, const PlotView& view, const StepAxis& axis, double scale, double& low, double& high) {
  const auto begin = std::lower_bound(curve.x().begin(), curve.x().end(), axis.step(view.x_low)) - curve.x().begin();
  const auto end = std::upper_bound(curve.x().begin(), curve.x().end(), axis.step(view.x_high)) - curve.x().begin();
  const auto stride = std::max<std::ptrdiff_t>(1, (end - begin) / 2000);  // a sample is accurate enough
  static std::vector<double> values;                                      // kept, so that frames do not allocate; drawing thread only
  values.clear();
  for (auto i = begin; i < end; i += stride)
    if (const double y = curve.y()[static_cast<size_t>(i)]; std::isfinite(y)) values.push_back(y);
  if (values.size() < 20) return widen(curve, view, axis, scale, low, high);
  const auto cut = static_cast<std::ptrdiff_t>(values.size() / 100);
  std::nth_element(values.begin(), values.begin() + cut, values.end());
  low = std::min(low, values[static_cast<size_t>(cut)] * scale);
  std::nth_element(values.begin(), values.end() - 1 - cut, values.end());
  high = std::max(high, values[values.size() - 1 - static_cast<size_t>(cut)] * scale);
}

}  // namespace

int step_label(double value, char* text, int size, void*) {
  if (std::abs(value - std::round(value)) > 1e-6) return std::snprintf(text, static_cast<size_t>(size), " ");
  return axis_label(value, text, size, nullptr);
}

int axis_label(double value, char* text, int size, void* unit) {
  const char* behind = unit ? static_cast<const char*>(unit) : "";
  if (*behind == '%') behind = "";  // ImPlot's default format, if no unit was given
  return std::snprintf(text, static_cast<size_t>(size), "%s%s", axis_number(value).c_str(), behind);
}

void setup_y_ticks(double low, double high, float height, bool log_scale) {
  const auto lines = static_cast<size_t>(std::clamp((height - 2.2f * ImGui::GetFontSize()) / (1.7f * ImGui::GetFontSize()), 1.0f, 8.0f));
  std::vector<double> at = ticks(low, high, static_cast<int>(lines), log_scale);
  // A step this coarse may have no multiple in the range; without ticks ImPlot would draw too many.
  for (size_t more = lines + 1; at.empty() && more <= lines + 3; ++more) {
    at = ticks(low, high, static_cast<int>(more), log_scale);
    at.resize(std::min(at.size(), lines));
  }
  if (at.size() > lines && log_scale) {  // log scale: only powers of ten, then every second or third power
    std::vector<double> powers;
    for (const double value : at)
      if (const double power = std::log10(value); std::abs(power - std::round(power)) < 1e-9) powers.push_back(value);
    if (powers.size() > 1) at = std::move(powers);
    const size_t stride = ceil_div(at.size(), lines);
    for (size_t i = 0; i * stride < at.size(); ++i) at[i] = at[i * stride];
    at.resize(ceil_div(at.size(), stride));
  }
  if (!at.empty()) ImPlot::SetupAxisTicks(ImAxis_Y1, at.data(), static_cast<int>(at.size()));
}

bool y_range_of(const PlotView& view, const PlotTile& tile, bool log_scale, double& low, double& high) {
  low = 1e300;
  high = -1e300;
  const bool outliers = outliers_of(view, tile);
  for (const PlotLine& line : tile.fitted ? *tile.fitted : tile.lines) {
    if (!line.curve || line.curve->empty() || !line.fits) continue;
    for (const Curve* curve : {line.curve, line.low, line.high}) {
      if (!curve) continue;
      if (!outliers)
        widen_most(*curve, view, line.axis, line.scale, low, high);
      else
        widen(*curve, view, line.axis, line.scale, low, high);
    }
  }
  if (low > high) return false;
  const double data_low = low, data_high = high;
  for (const PlotLine& line : tile.lines) {  // lines behind: limited, so that the others are not flattened
    if (line.fits || !line.curve || line.curve->empty()) continue;
    double least = 1e300, most = -1e300;
    widen(*line.curve, view, line.axis, line.scale, least, most);
    if (least > most) continue;
    low = std::min(low, std::max(least, data_low - (data_high - data_low) / 2));
    high = std::max(high, std::min(most, data_high + (data_high - data_low) / 2));
  }
  if (tile.target) widen(*tile.target, view, {}, tile.target_scale, low, high);
  if (tile.target_value > 0) {
    low = std::min(low, tile.target_value);
    high = std::max(high, tile.target_value);
  }
  // A target far away must not flatten the curve.
  low = std::max(low, data_low - 4 * (data_high - data_low + 1e-12));
  if (log_scale) {
    if (!(high > 0)) high = 1;
    if (!(low > 0)) low = high * 1e-4;  // a log scale cannot show 0
    high = std::max(high, low * 1.01);
    const double room = std::pow(high / low, 0.06);
    low /= room;
    high *= room;
    return true;
  }
  if (tile.from_zero) low = std::min(low, 0.0);
  double room = (high - low) * 0.07;
  if (!(room > 0)) room = std::max(std::abs(high) * 0.05, 1e-6);
  high += room;
  if (!(tile.from_zero && low == 0)) low -= room;
  return true;
}

double place(const PlotView& view, const PlotLine& line, double step) { return view.axis.at(line.axis.at(step)); }

void to_axis(const PlotView& view, const PlotLine& line, std::vector<double>& x, std::vector<double>& y) {
  for (double& at : x) at = place(view, line, at);
  for (double& value : y) value *= line.scale;
}

std::string place_text(const PlotView& view, double at) {
  std::string text = std::string(view.unit) + " " + (view.grain < 1 ? significant(at, 4) : thousands(at));
  if (view.axis.curve && !view.clock) text += ", " + significant(view.axis.along(at), 4) + " " + view.axis_unit;
  return text;
}

}  // namespace comera::studio
