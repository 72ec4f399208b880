// The system window: GLFW, OpenGL 3.3 and frame scheduling. Only this file and window.cpp use them.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "app/figure/png.h"
#include "app/studio/ui_state.h"

struct GLFWwindow;

namespace comera::studio {

struct WindowOptions {
  int width = 1600, height = 900;  // in points: pixels are these times the scale
  float scale = 0;                 // 0: that of the monitor
  bool visible = true;             // false: for pictures only
  bool remember = true;            // load and save preferences
  bool in_its_place = true;        // of those, where the window was and how large
};

// Times of one frame in ms: make shapes, hand them to OpenGL, swap.
struct FrameTime {
  double begin = 0;  // seconds of the steady clock
  double make_ms = 0, draw_ms = 0, show_ms = 0;
};

class Window {
 public:
  // Opens the window and sets up Dear ImGui. Throws Error(device) when there is no display or no OpenGL 3.3.
  Window(const WindowOptions& options, UiState& ui);
  ~Window();
  Window(const Window&) = delete;

  // Draws frames until ui.quit: soon after input, some times a second (Settings) while a run trains, not at all when nothing
  // happens or nobody can see it. `each` is called after every frame.
  void run(const std::function<void()>& each = {});
  // One frame now.
  void draw();
  // The next frame as a picture, from a frame buffer of its own. Throws Error(device).
  Picture capture();
  // Saves the preferences, as its end does.
  void remember();
  // Called after every frame that was drawn.
  std::function<void(const FrameTime&)> on_frame;
  // Makes run() draw a frame. From any thread.
  static void wake();

 private:
  bool wait();                    // for something to draw; false: draw nothing
  double shortest_frame() const;  // seconds
  void read_scale();
  void go_to_its_place();
  void look_where_it_is();
  void switch_full_screen();
  void make();  // the shapes of a frame
  void write_screenshot();

  const WindowOptions options_;
  UiState& ui_;
  GLFWwindow* window_ = nullptr;
  bool software_ = false;                  // the processor draws
  bool focused_ = true;                    // when it was looked at last
  double last_frame_ = 0, frame_end_ = 0;  // when it began and ended
  int extra_frames_ = 3;
  int windowed_[4] = {};  // x, y, width and height before it filled the screen
  double looked_ = 0;     // where it is
};

}  // namespace comera::studio
