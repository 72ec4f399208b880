# shellcheck shell=bash disable=SC2154,SC2034 # setup.sh's variables
# Sourced by setup.sh: packages from PyPI, pinned by hash in a list, downloaded and unpacked into a folder.

# pin_of LIST: what stands for its content, in FOLDER/.stamp when all of it is there.
pin_of() {
  local sum
  sum=$(sha256sum <"$1")
  echo "${sum%% *}"
}

# unpack_line LINE FOLDER: one line of a list. Of imgui-bundle, a source package of 48 MB, only Dear ImGui and ImPlot are
# unpacked; cmake/sdist answers pip's questions about it. Of pyarrow the wheel for Python 3.11 is taken whatever Python is here: nothing of it
# is run by one.
unpack_line() {
  local folder=$2 cache=$2/.cache file wheels=()
  rm -rf "$cache"
  mkdir -p "$cache"
  printf '%s\n' "$1" >"$cache/requirement.txt"
  [[ $1 != pyarrow==* ]] || wheels=(--python-version 3.11 --abi cp311 --platform "manylinux_2_28_$(uname -m)")
  PYTHONPATH=$here/sdist PYTHONDONTWRITEBYTECODE=1 python3 -m pip --disable-pip-version-check download --quiet --no-deps \
    --require-hashes --only-binary :all: --no-binary imgui-bundle --no-build-isolation --retries 2 --timeout 60 "${wheels[@]}" \
    -r "$cache/requirement.txt" -d "$cache" >>"$build/pip.log" 2>&1 || return 1
  for file in "$cache"/*.whl; do
    [[ ! -f $file ]] || python3 -m zipfile -e "$file" "$folder" || return 1
  done
  for file in "$cache"/imgui_bundle-*.tar.gz; do
    [[ -f $file ]] || continue
    mkdir -p "$folder/imgui_bundle"
    tar -xzf "$file" -C "$folder/imgui_bundle" --strip-components=3 --no-same-owner --wildcards --no-wildcards-match-slash \
      '*/external/imgui/imgui/*.h' '*/external/imgui/imgui/*.cpp' '*/external/imgui/imgui/LICENSE.txt' \
      '*/external/imgui/imgui/backends/imgui_impl_glfw.*' '*/external/imgui/imgui/backends/imgui_impl_opengl3*' \
      '*/external/imgui/imgui/backends/imgui_impl_null.*' '*/external/imgui/imgui/misc/freetype/imgui_freetype.*' \
      '*/external/implot/implot/*.h' '*/external/implot/implot/*.cpp' '*/external/implot/implot/LICENSE' || return 1
  done
  rm -rf "$cache"
}

# unpack_list LIST FOLDER: everything a list names, into an empty folder. What could not be had is then in `failed`.
unpack_list() {
  local line
  failed=()
  rm -rf "$2"
  mkdir -p "$2"
  : >"$build/pip.log"
  say "downloading from PyPI: $(sed -n 's/^\([a-z0-9-]*==[0-9.]*\).*/\1/p' "$1" | paste -sd' ')"
  while read -r line; do
    unpack_line "$line" "$2" || failed+=("${line%% *}")
  done < <(sed -e '/^#/d' -e '/^[[:space:]]*$/d' "$1")
  rm -rf "$2/.cache"
}

# After a broken connection pip's own last word is that no version exists.
why_pip_failed() {
  if grep -q 'connection broken' "$build/pip.log"; then
    echo "PyPI cannot be reached"
  else
    sed -n 's/^ERROR: \([^.]*\).*/\1/p' "$build/pip.log" | head -n 1
  fi
}
