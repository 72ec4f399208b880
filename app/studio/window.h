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
  int width = 1600, height = 900;  // in points; pixels are points times the scale
  float scale = 0;                 // 0: scale of the monitor
  bool visible = true;             // false: for pictures only
  bool remember = true;            // load and save preferences
  bool in_its_place = true;        // restore position and size of the window from the preferences
};

// Times of one frame in ms: build the shapes, pass them to OpenGL, swap buffers.
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

  // Draws frames until ui.quit: soon after input, a few times a second (Settings) while a run trains, none while nothing changes or the
  // window is hidden. `each` is called after every iteration.
  void run(const std::function<void()>& each = {});
  // Draws one frame now.
  void draw();
  // The next frame as a picture, drawn into a frame buffer of its own. Throws Error(device).
  Picture capture();
  // Saves the preferences; the destructor does so too.
  void remember();
  // Called after every drawn frame.
  std::function<void(const FrameTime&)> on_frame;
  // Makes run() draw a frame. Callable from any thread.
  static void wake();

 private:
  bool wait();                    // waits for a reason to draw; false: draw nothing
  double shortest_frame() const;  // in seconds
  void read_scale();
  void go_to_its_place();
  void look_where_it_is();
  void switch_full_screen();
  void make();  // builds the shapes of a frame
  void write_screenshot();

  const WindowOptions options_;
  UiState& ui_;
  GLFWwindow* window_ = nullptr;
  bool software_ = false;                  // OpenGL renders on the processor
  bool focused_ = true;                    // at the last check
  double last_frame_ = 0, frame_end_ = 0;  // start of the last frame, end of the last frame
  int extra_frames_ = 3;
  int windowed_[4] = {};  // x, y, width and height before full screen
  double looked_ = 0;     // time of the last check of the window's position
};

}  // namespace comera::studio
