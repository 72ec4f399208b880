#include "app/studio/window.h"

#define GL_GLEXT_PROTOTYPES
#define GLFW_INCLUDE_GLEXT
#include <GLFW/glfw3.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>
#include <imgui_internal.h>
#include <implot.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "app/studio/actions.h"
#include "app/studio/frame.h"
#include "app/studio/preferences.h"
#include "app/studio/waker.h"
#include "core/base/error.h"

namespace comera::studio {
namespace {

// Seconds between two checks of a run that trains.
double between_looks(const Settings& settings) { return 1.0 / std::max(1, settings.training_fps); }

constexpr int kFramesAfterInput = 3;       // Dear ImGui needs one or two to settle
constexpr double kPlayingWait = 1.0 / 30;  // seconds
constexpr double kUnfocusedWait = 0.5;
constexpr double kIdleWait = 0.5;  // nothing is drawn; signals and the store are checked
constexpr double kPlaceAge = 1;    // seconds between two checks of the window's position

Waker g_waker;          // static, because threads may outlive the window
std::string g_problem;  // last error text of GLFW

void on_problem(int, const char* text) { g_problem = text; }

// Paints the whole window over the background colour.
void paint(ImDrawData& data) {
  const ImVec4 back = vec(theme().app);
  const ImVec2 size = data.DisplaySize, scale = data.FramebufferScale;
  glViewport(0, 0, static_cast<int>(size.x * scale.x), static_cast<int>(size.y * scale.y));
  glClearColor(back.x, back.y, back.z, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(&data);
}

[[noreturn]] void no_window(const std::string& why) {
  throw Error(ErrorCode::device, "cannot open a window", why, "use the command line: comera --help");
}

}  // namespace

Window::Window(const WindowOptions& options, UiState& ui) : options_(options), ui_(ui) {
  glfwSetErrorCallback(on_problem);
  if (!glfwInit()) no_window(g_problem.empty() ? "there is no display" : g_problem);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_VISIBLE, GLFW_FALSE);
  glfwWindowHintString(GLFW_X11_CLASS_NAME, "comera-studio");  // must match the desktop entry
  glfwWindowHintString(GLFW_X11_INSTANCE_NAME, "comera-studio");
  float scale = options_.scale;
  GLFWmonitor* monitor = glfwGetPrimaryMonitor();
  if (scale <= 0 && monitor) glfwGetMonitorContentScale(monitor, &scale, nullptr);
  if (scale <= 0) scale = 1;
  int width = static_cast<int>(std::lround(static_cast<float>(options_.width) * scale));
  int height = static_cast<int>(std::lround(static_cast<float>(options_.height) * scale));
  if (int x = 0, y = 0, w = 0, h = 0; options_.visible && monitor) {
    glfwGetMonitorWorkarea(monitor, &x, &y, &w, &h);
    if (w > 0 && h > 0) {
      width = std::min(width, w);
      height = std::min(height, h);
    }
  }
  window_ = glfwCreateWindow(width, height, "CoMERA Studio", nullptr, nullptr);
  if (!window_) {
    glfwTerminate();
    no_window("OpenGL 3.3 is needed: " + g_problem);
  }
  glfwMakeContextCurrent(window_);
  const auto* renderer = reinterpret_cast<const char*>(glGetString(GL_RENDERER));
  software_ = renderer && (std::strstr(renderer, "llvmpipe") || std::strstr(renderer, "softpipe") || std::strstr(renderer, "SWR"));
  ui_.renderer = renderer ? renderer : "";
  glfwSwapInterval(software_ ? 0 : 1);
  glfwSetWindowUserPointer(window_, this);
  glfwSetDropCallback(window_, [](GLFWwindow* window, int count, const char** paths) {
    auto* self = static_cast<Window*>(glfwGetWindowUserPointer(window));
    for (int i = 0; i < count; ++i) self->ui_.dialogs.dropped.emplace_back(paths[i]);
    self->extra_frames_ = kFramesAfterInput;
  });

  ImGui::CreateContext();
  ImPlot::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // preferences.h stores the layout
  io.ConfigFlags |= ImGuiConfigFlags_DockingEnable | ImGuiConfigFlags_NavEnableKeyboard;
  io.ConfigWindowsMoveFromTitleBarOnly = true;
  io.ConfigErrorRecoveryEnableAssert = false;
  load_fonts();
  if (options_.remember) load_preferences(ui_, preferences_file());
  if (ui_.settings.theme_of_desktop) ui_.desktop_theme.ask();
  ui_.settings.monitor_scale = scale;
  apply_theme(ui_.settings.theme, ui_.settings.scale());
  ImGui_ImplGlfw_InitForOpenGL(window_, true);
  ImGui_ImplOpenGL3_Init("#version 330");
  ui_.exports.can_read_pixels = true;
  if (options_.visible) {
    glfwSetWindowSizeLimits(window_, std::min(width, static_cast<int>(960 * scale)), std::min(height, static_cast<int>(600 * scale)),
                            GLFW_DONT_CARE, GLFW_DONT_CARE);
    go_to_its_place();
    glfwShowWindow(window_);
  }
  g_waker.open([] { glfwPostEmptyEvent(); });
}

void Window::go_to_its_place() {
  if (!options_.remember || !options_.in_its_place) return;
  int count = 0;
  GLFWmonitor** monitors = glfwGetMonitors(&count);
  std::vector<ScreenArea> screens(static_cast<size_t>(std::max(0, count)));
  for (size_t i = 0; i < screens.size(); ++i)
    glfwGetMonitorWorkarea(monitors[i], &screens[i].x, &screens[i].y, &screens[i].width, &screens[i].height);
  const WindowPlace& place = ui_.place;
  if (!lies_on(place, screens)) return;
  glfwSetWindowSize(window_, place.width, place.height);
  glfwSetWindowPos(window_, place.x, place.y);
  if (place.maximised) glfwMaximizeWindow(window_);
}

// In full screen or while maximised, the last normal position is kept.
void Window::look_where_it_is() {
  looked_ = glfwGetTime();
  if (!options_.in_its_place || glfwGetWindowMonitor(window_) || glfwGetWindowAttrib(window_, GLFW_ICONIFIED)) return;
  WindowPlace& place = ui_.place;
  place.maximised = glfwGetWindowAttrib(window_, GLFW_MAXIMIZED) != 0;
  if (place.maximised) return;
  glfwGetWindowPos(window_, &place.x, &place.y);
  glfwGetWindowSize(window_, &place.width, &place.height);
}

void Window::remember() {
  if (!options_.remember) return;
  look_where_it_is();
  save_preferences(ui_, preferences_file());
}

Window::~Window() {
  g_waker.close();
  remember();
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplGlfw_Shutdown();
  ImPlot::DestroyContext();
  ImGui::DestroyContext();
  glfwDestroyWindow(window_);
  glfwTerminate();
}

void Window::wake() { g_waker.wake(); }

double Window::shortest_frame() const { return ui_.settings.shortest_frame(software_ && ui_.training(), ui_.frame_ms / 1000); }

// The window may have been moved to another monitor.
void Window::read_scale() {
  if (options_.scale > 0) return;
  float scale = 1;
  glfwGetWindowContentScale(window_, &scale, nullptr);
  if (scale <= 0 || scale == ui_.settings.monitor_scale) return;
  ui_.settings.monitor_scale = scale;
  apply_theme(ui_.settings.theme, ui_.settings.scale());
  extra_frames_ = kFramesAfterInput;
}

void Window::switch_full_screen() {
  GLFWmonitor* monitor = glfwGetPrimaryMonitor();
  const GLFWvidmode* mode = monitor ? glfwGetVideoMode(monitor) : nullptr;
  if (!mode) {
    ui_.full_screen = false;
  } else if (ui_.full_screen) {
    glfwGetWindowPos(window_, &windowed_[0], &windowed_[1]);
    glfwGetWindowSize(window_, &windowed_[2], &windowed_[3]);
    glfwSetWindowMonitor(window_, monitor, 0, 0, mode->width, mode->height, mode->refreshRate);
  } else {
    glfwSetWindowMonitor(window_, nullptr, windowed_[0], windowed_[1], windowed_[2], windowed_[3], GLFW_DONT_CARE);
  }
  extra_frames_ = kFramesAfterInput;
}

bool Window::wait() {
  const bool hidden = glfwGetWindowAttrib(window_, GLFW_ICONIFIED) != 0;
  const bool focused = glfwGetWindowAttrib(window_, GLFW_FOCUSED) != 0;
  if (focused && !std::exchange(focused_, focused) && ui_.settings.theme_of_desktop) ui_.desktop_theme.ask();
  focused_ = focused;
  const bool fading = std::any_of(ui_.toasts.begin(), ui_.toasts.end(), [](const Toast& toast) { return toast.until < kUntilDismissed; });
  const bool moving = ui_.busy() || fading || ui_.close_requested;
  const bool typing = ImGui::GetIO().WantTextInput;  // the text cursor blinks
  const double pace = !focused || hidden ? kUnfocusedWait : ui_.timeline.playing ? kPlayingWait : between_looks(ui_.settings);
  double timeout = kIdleWait;
  if (!hidden && extra_frames_ > 0)
    timeout = 0;
  else if (moving)
    timeout = std::max(shortest_frame(), pace);
  if (timeout > 0)
    glfwWaitEventsTimeout(timeout);
  else
    glfwPollEvents();
  if (glfwWindowShouldClose(window_)) {
    glfwSetWindowShouldClose(window_, GLFW_FALSE);
    ui_.closing.insisted = std::exchange(ui_.close_requested, true);
    extra_frames_ = kFramesAfterInput;
  }
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const bool resized = static_cast<float>(width) != size.x || static_cast<float>(height) != size.y;
  if (resized || ImGui::GetCurrentContext()->InputEventsQueue.Size > 0) extra_frames_ = kFramesAfterInput;
  if (ui_.full_screen != (glfwGetWindowMonitor(window_) != nullptr)) switch_full_screen();
  read_scale();
  if (glfwGetWindowAttrib(window_, GLFW_ICONIFIED) || width == 0 || height == 0) {
    tick(ui_);  // take updates of the run even while nothing is drawn
    return false;
  }
  const bool woken = g_waker.take();
  if (woken) extra_frames_ = kFramesAfterInput;  // the update may open a Dear ImGui window, which needs a frame for its size
  if (extra_frames_ == 0 && !woken && !moving && !typing) {
    // A paused run still reports changes, such as a store that works again; each adds a log line.
    const auto lines = [&] { return ui_.live ? ui_.live->view().log.size() : 0; };
    const auto before = ui_.runs;
    const size_t told = lines();
    tick(ui_);
    if (!ui_.busy() && ui_.runs == before && lines() == told) return false;
    extra_frames_ = kFramesAfterInput;  // as above
  }
  if (extra_frames_ > 0) --extra_frames_;
  // A mouse reports up to 1000 times a second; drawing more often than this shows nothing more.
  // With software rendering, frames take time from training, so mouse motion must not cause more of them.
  double next = last_frame_ + shortest_frame();
  if (software_ && ui_.training() && ui_.busy()) next = std::max(next, frame_end_ + between_looks(ui_.settings));
  const double rest = next - glfwGetTime();
  if (rest > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(rest));
    glfwPollEvents();
  }
  return true;
}

void Window::make() {
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  if (!options_.visible) {  // a window manager may have reduced the size
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {std::round(static_cast<float>(options_.width) * ui_.settings.monitor_scale),
                      std::round(static_cast<float>(options_.height) * ui_.settings.monitor_scale)};
    io.DisplayFramebufferScale = {1, 1};
    io.AddMousePosEvent(-1e6f, -1e6f);
  }
  ImGui::NewFrame();
  draw_frame(ui_);
  ImGui::Render();
}

void Window::draw() {
  const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  last_frame_ = glfwGetTime();
  FrameTime time{.begin = now()};
  make();
  const double made = now();
  paint(*ImGui::GetDrawData());
  const double drawn = now();
  time.make_ms = 1000 * (made - time.begin);
  time.draw_ms = 1000 * (drawn - made);
  ui_.frame_ms = 0.9 * ui_.frame_ms + 0.1 * (time.make_ms + time.draw_ms);
  ui_.profile.add_frame(time.make_ms + time.draw_ms, ImGui::GetTime());
  write_screenshot();
  const double written = now();
  glfwSwapBuffers(window_);
  time.show_ms = 1000 * (now() - written);
  frame_end_ = glfwGetTime();
  if (on_frame) on_frame(time);
  if (options_.remember && frame_end_ > looked_ + kPlaceAge) look_where_it_is();
  if (options_.remember && ImGui::GetIO().WantSaveIniSettings) {
    save_preferences(ui_, preferences_file());
    ImGui::GetIO().WantSaveIniSettings = false;
  }
}

void Window::run(const std::function<void()>& each) {
  while (!ui_.quit) {
    if (wait()) draw();
    if (each) each();
  }
}

namespace {

// Pixels of `draw`, from a frame buffer of its own. Throws Error(device).
Picture pixels_of(int width, int height, const std::function<void()>& draw) {
  Picture picture;
  picture.width = width;
  picture.height = height;
  GLint largest = 0;
  glGetIntegerv(GL_MAX_RENDERBUFFER_SIZE, &largest);
  if (width > largest || height > largest)
    throw Error(
        ErrorCode::device, "cannot take a picture",
        "it would be " + std::to_string(width) + "x" + std::to_string(height) + " pixels, this OpenGL does " + std::to_string(largest),
        "choose a smaller size or scale");
  GLuint frame = 0, color = 0;
  glGenFramebuffers(1, &frame);
  glGenRenderbuffers(1, &color);
  glBindRenderbuffer(GL_RENDERBUFFER, color);
  glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, picture.width, picture.height);
  glBindFramebuffer(GL_FRAMEBUFFER, frame);
  glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, color);
  if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) {
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glDeleteFramebuffers(1, &frame);
    glDeleteRenderbuffers(1, &color);
    throw Error(ErrorCode::device, "cannot take a picture", "this OpenGL refuses an image of that size", "choose a smaller size or scale");
  }
  draw();
  std::vector<uint8_t> rows(static_cast<size_t>(picture.width) * static_cast<size_t>(picture.height) * 3);
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, picture.width, picture.height, GL_RGB, GL_UNSIGNED_BYTE, rows.data());
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
  glDeleteFramebuffers(1, &frame);
  glDeleteRenderbuffers(1, &color);
  picture.rgb.resize(rows.size());
  const size_t row = static_cast<size_t>(picture.width) * 3;
  for (size_t y = 0; y < static_cast<size_t>(picture.height); ++y)  // OpenGL stores rows from the bottom up
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>((static_cast<size_t>(picture.height) - 1 - y) * row), row,
                picture.rgb.begin() + static_cast<std::ptrdiff_t>(y * row));
  return picture;
}

}  // namespace

Picture Window::capture() {
  const float scale = ui_.settings.monitor_scale;
  return pixels_of(static_cast<int>(std::lround(static_cast<float>(options_.width) * scale)),
                   static_cast<int>(std::lround(static_cast<float>(options_.height) * scale)), [&] {
                     make();
                     paint(*ImGui::GetDrawData());
                   });
}

void Window::write_screenshot() {
  Exports& e = ui_.exports;
  if (e.screenshot_in == 0 || --e.screenshot_in > 0) return;
  try {
    ImDrawData* data = ImGui::GetDrawData();
    const auto width = static_cast<int>(data->DisplaySize.x * data->FramebufferScale.x),
               height = static_cast<int>(data->DisplaySize.y * data->FramebufferScale.y);
    Picture picture = pixels_of(width, height, [&] { paint(*data); });
    e.writer->write({exports_folder(e), {{"window", "png", [picture = std::move(picture)] { return png_file(picture); }}}});
  } catch (const Error& error) {
    toast(ui_, Level::error, std::string(error.what()) + ": " + error.why() + ". Try: " + error.hint());
  }
}

}  // namespace comera::studio
