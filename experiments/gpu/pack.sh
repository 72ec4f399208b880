#!/usr/bin/env bash
# Collects what check.sh needs on a machine with a GPU but without a network and Debian's packages: headers, static
# libraries and CMake files of the packages that training and its tests link, and OpenBLAS. Run it where the project
# builds; it writes build/gpu-kit (about 40 MB), which travels with the source tree.
#
#     experiments/gpu/pack.sh [--build CAPABILITY] [FOLDER]
#       --build     puts the programs that check.sh runs into the kit too, for a device of this compute capability (90) and a
#                   processor like this one; where they do not run, check.sh builds them
#       FOLDER      a checkout of the published program, to be measured beside
set -euo pipefail
capability=
if [[ ${1:-} == --build ]]; then
  capability=$2
  shift 2
fi
(($# == 0)) || published=$(cd -- "$1" && pwd)
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
kit=build/gpu-kit
packages=(nlohmann-json3-dev libcli11-dev libsqlite3-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libutf8proc-dev nettle-dev libgtest-dev)
[[ -d build/pypi/scipy_openblas32 ]] || cmake/setup.sh
rm -rf "$kit"
mkdir -p "$kit/pypi"
dpkg -L "${packages[@]}" | sort -u | while read -r file; do
  case $file in
    # No shared libraries: their links would point to what is not there.
    /usr/include/* | /usr/lib/*.a | /usr/lib/*.cmake | /usr/share/cmake/* | /usr/share/*.cmake)
      [[ -d $file ]] || install -D -m 644 "$file" "$kit$file"
      ;;
  esac
done
cp -a build/pypi/scipy_openblas32 "$kit/pypi/"
if (($# > 0)); then
  mkdir -p "$kit/published"
  (cd -- "$published" && find . -name '*.py' -not -path './.git/*') | while read -r file; do
    install -D -m 644 "$published/$file" "$kit/published/$file"
  done
fi
if [[ -n $capability ]]; then
  cmake -S . -B build/gpu-check -DCMAKE_BUILD_TYPE=Release -DCOMERA_CUDA=on "-DCMAKE_CUDA_ARCHITECTURES=$capability-real" \
    "-DCMAKE_PREFIX_PATH=$PWD/$kit/usr" "-DCOMERA_PYPI_DIR=$PWD/$kit/pypi" -DCMAKE_DISABLE_FIND_PACKAGE_Freetype=ON
  cmake --build build/gpu-check --parallel "$(nproc)" --target comera test_gpu
  install -D -s -t "$kit/bin" build/gpu-check/bin/comera build/gpu-check/bin/test_gpu
fi
du -sh "$kit"
