#!/usr/bin/env bash
# Gets what the build needs, from Debian (apt-packages.txt) and PyPI (pypi-requirements.txt, pypi-cuda.txt, pinned by
# hash). With everything there it does nothing and needs no network. run.sh and test.sh call it.
#
#     cmake/setup.sh [--retry] [--tests]
#       --retry   try again what failed before
#       --tests   get what tests need as well (apt-packages-tests.txt); without it they skip themselves
#
# The CUDA toolkit (530 MB to download, 770 MB unpacked) is got where an NVIDIA driver is and no nvcc. COMERA_CUDA=off
# leaves CUDA out, COMERA_CUDA=pypi gets the toolkit and builds with it whatever else is there. NCCL (200 MB to download) is got where
# there are several GPUs and no libnccl.so.2, or with COMERA_NCCL=on; COMERA_NCCL=off leaves it out.
# Arrow, for Parquet files (55 MB to download), is got with COMERA_ARROW=on alone.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=$(dirname -- "$here")/build
pypi=${COMERA_PYPI_DIR:-$build/pypi}  # the default of COMERA_PYPI_DIR in dependencies.cmake
cuda=$pypi-cuda                       # where gpu/CMakeLists.txt looks for the toolkit
nccl=$pypi-nccl                       # and for NCCL
arrow=$pypi-arrow                     # where core/data/parquet/CMakeLists.txt looks for Arrow
retry=0 tests=0
for option in "$@"; do
  case $option in
    --retry) retry=1 ;;
    --tests) tests=1 ;;
  esac
done
mkdir -p "$build"
exec 9>"$build/.setup.lock"  # a second call waits for the first
flock 9

say() { echo "setup: $*" >&2; }
fail() {  # what, why, what to do
  printf 'error: %s\n  why: %s\n  try: %s\n' "$@" >&2
  exit 1
}
failed=()  # what unpack_list could not get
# shellcheck source=cmake/pypi.sh
source "$here/pypi.sh"
# build.sh configures again when this file is newer than its last configuration.
changed() { touch "$build/.setup-changed"; }

# ---- Debian packages ------------------------------------------------------------------------------------------
missing() {  # those of the named packages that are not installed
  local there
  there=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' || true)
  comm -23 <(printf '%s\n' "$@" | LC_ALL=C sort -u) <(LC_ALL=C sort -u <<<"$there")
}

install() {
  local as_root=() log=$build/apt.log
  local by_hand="sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
  if [[ $EUID -ne 0 ]]; then
    # With a terminal sudo may ask for the password; without one it must not hang.
    if sudo -n true 2>/dev/null || { [[ -t 0 && -t 2 ]] && command -v sudo >/dev/null; }; then
      as_root=(sudo)
    else
      fail "Debian packages are missing: $*" "this user may not install packages" "$by_hand"
    fi
  fi
  say "installing from Debian: $*"
  # A source of the machine's own that does not answer must not stop us, so only the installation decides.
  "${as_root[@]}" apt-get update >"$log" 2>&1 || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1 </dev/null || return 1
  changed
}

why_apt_failed() { sed -n '/Can not write log/d; s/^E: //p' "$build/apt.log" | head -n 1 | cut -c 1-200; }

names_in() { sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$1"; }
if command -v dpkg-query >/dev/null; then
  mapfile -t wanted < <(names_in "$here/apt-packages.txt")
  mapfile -t lacking < <(missing "${wanted[@]}")
  if ((${#lacking[@]})); then
    install "${lacking[@]}" ||
      fail "Debian packages could not be installed: ${lacking[*]}" "$(why_apt_failed)" "check the network, then run this again (log: build/apt.log)"
  fi
  mapfile -t lacking < <(((tests)) && mapfile -t wanted < <(names_in "$here/apt-packages-tests.txt") && missing "${wanted[@]}")
  tried=$build/.test-packages-failed
  if ((${#lacking[@]})); then
    say "without these some tests are skipped: ${lacking[*]}"
    # In a shell of its own: a user who may not install them still has all other tests. Not tried again in each run.
    if ((retry)) || [[ ! -f $tried || $(<"$tried") != "${lacking[*]}" ]]; then
      if (install "${lacking[@]}"); then rm -f "$tried"; else echo "${lacking[*]}" >"$tried"; fi
    fi
  fi
else
  say "no dpkg here: the packages of cmake/apt-packages.txt are taken to be installed"
fi

# ---- PyPI packages --------------------------------------------------------------------------------------------
trap 'rm -rf "$pypi.new" "$cuda.new" "$nccl.new" "$arrow.new"' EXIT

libraries_from_pypi() {
  local list=$here/pypi-requirements.txt pin why
  pin=$(pin_of "$list")
  [[ -f $pypi/.stamp && $(<"$pypi/.stamp") == "$pin" ]] && return

  # A failed download is not tried again in each run: with Debian's OpenBLAS in its place all but the window is there.
  if ((!retry)) && [[ -f $build/.pypi-failed && $(<"$build/.pypi-failed") == "$pin" ]] &&
    [[ -d $pypi/scipy_openblas32 || -z $(missing libopenblas-dev) ]]; then
    [[ -d $pypi/scipy_openblas32 ]] || say "using Debian's OpenBLAS, slower on tensor trains (cmake/setup.sh --retry tries the pinned one again)"
    [[ -d $pypi/imgui_bundle ]] || say "the window is left out: its sources did not come from PyPI (cmake/setup.sh --retry tries again)"
    return
  fi

  # Beside the old folder and moved at the end: an interrupted run leaves nothing half done.
  unpack_list "$list" "$pypi.new"
  ((${#failed[@]})) || echo "$pin" >"$pypi.new/.stamp"
  rm -rf "$pypi"  # and what an older pin left there
  mv "$pypi.new" "$pypi"
  changed
  if ((${#failed[@]} == 0)); then
    rm -f "$build/.pypi-failed"
    return
  fi

  why=$(why_pip_failed)
  if [[ ! -d $pypi/scipy_openblas32 ]]; then
    if ! command -v dpkg-query >/dev/null || { [[ -n $(missing libopenblas-dev) ]] && ! install libopenblas-dev; }; then
      fail "OpenBLAS could be had neither from PyPI nor from Debian" "$why" "check the network, then run this again (logs: build/pip.log, build/apt.log)"
    fi
    say "OpenBLAS did not come from PyPI: $why"
    say "using Debian's instead: all works, products of tensor trains are up to 3x slower (cmake/setup.sh --retry tries again)"
  fi
  [[ -d $pypi/imgui_bundle ]] ||
    say "the window is left out: Dear ImGui did not come from PyPI: $why (the command line has everything; cmake/setup.sh --retry tries again)"
  echo "$pin" >"$build/.pypi-failed"
}
libraries_from_pypi

# ---- the CUDA toolkit -----------------------------------------------------------------------------------------
# 1000 * major + 10 * minor of the newest CUDA that the driver runs; nothing without a driver. No device is needed.
cuda_of_driver() {
  python3 -c 'import ctypes
version = ctypes.c_int()
ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
if version.value > 0: print(version.value)' 2>/dev/null || true
}

# Where gpu/CMakeLists.txt looks.
have_nvcc() { [[ -n ${CUDACXX:-} || -x ${CUDA_PATH:-/usr/local/cuda}/bin/nvcc ]] || command -v nvcc >/dev/null; }

cuda_from_pypi() {
  local list=$here/pypi-cuda.txt needed=13000 pin newest root
  pin=$(pin_of "$list")
  case ${COMERA_CUDA:-auto} in
    off) return ;;
    pypi) ;;
    auto | on)
      ! have_nvcc || return 0
      newest=$(cuda_of_driver)
      if [[ -z $newest ]]; then
        [[ ! -e /proc/driver/nvidia/version ]] || say "CUDA is left out: the NVIDIA driver's libcuda.so.1 cannot be loaded here"
        return 0
      fi
      if ((newest < needed)); then
        say "CUDA is left out: the NVIDIA driver runs CUDA $((newest / 1000)).$((newest % 1000 / 10)) at most, 13.0 is needed (driver 580 or newer)"
        return 0
      fi
      ;;
    *) fail "COMERA_CUDA=$COMERA_CUDA is not known" "it is auto, on, off or pypi" "unset COMERA_CUDA" ;;
  esac
  [[ ! -f $cuda/.stamp || $(<"$cuda/.stamp") != "$pin" ]] || return 0
  if ((!retry)) && [[ ${COMERA_CUDA:-} != pypi && -f $build/.cuda-failed && $(<"$build/.cuda-failed") == "$pin" ]]; then
    say "CUDA is left out: its toolkit did not come from PyPI (cmake/setup.sh --retry tries again)"
    return 0
  fi

  say "getting the CUDA toolkit, 530 MB, once (COMERA_CUDA=off builds without CUDA)"
  unpack_list "$list" "$cuda.new"
  if ((${#failed[@]})); then
    [[ ${COMERA_CUDA:-} != pypi ]] || fail "the CUDA toolkit did not come from PyPI: ${failed[*]}" "$(why_pip_failed)" "check the network, then run this again (log: build/pip.log)"
    say "CUDA is left out: its toolkit did not come from PyPI: $(why_pip_failed) (cmake/setup.sh --retry tries again)"
    echo "$pin" >"$build/.cuda-failed"
    return 0
  fi
  # The packages lack what an installation has: the right to be run, the folder lib64 and names without a version.
  root=$cuda.new/nvidia/cu13
  chmod +x "$root"/bin/* "$root"/nvvm/bin/* 2>/dev/null || true
  rm -f "$root"/lib/lib{cublas,nvblas,nvvm}.so.*  # 117 MB that nothing here asks for
  ln -s lib "$root/lib64"
  ln -s libcublasLt.so.13 "$root/lib/libcublasLt.so"
  ln -s libcudart.so.13 "$root/lib/libcudart.so"
  echo "$pin" >"$cuda.new/.stamp"
  rm -rf "$cuda" "$build/.cuda-failed"
  mv "$cuda.new" "$cuda"
  changed
}
cuda_from_pypi

# ---- NCCL -----------------------------------------------------------------------------------------------------
# Where gpu/nccl.cu looks besides.
have_nccl() { [[ -e ${CUDA_PATH:-/usr/local/cuda}/lib64/libnccl.so.2 ]] || { PATH=$PATH:/sbin ldconfig -p 2>/dev/null || true; } | grep -q 'libnccl\.so\.2'; }

nccl_from_pypi() {
  local list=$here/pypi-nccl.txt pin gpus
  pin=$(pin_of "$list")
  [[ ${COMERA_CUDA:-auto} != off ]] || return 0
  case ${COMERA_NCCL:-auto} in
    off) return 0 ;;
    on) ;;
    *)
      gpus=(/proc/driver/nvidia/gpus/*/)
      ((${#gpus[@]} > 1)) && { have_nvcc || [[ -d $cuda ]]; } && ! have_nccl || return 0
      ;;
  esac
  [[ ! -f $nccl/.stamp || $(<"$nccl/.stamp") != "$pin" ]] || return 0
  if ((!retry)) && [[ -f $build/.nccl-failed && $(<"$build/.nccl-failed") == "$pin" ]]; then
    say "NCCL is left out: it did not come from PyPI (cmake/setup.sh --retry tries again)"
    return 0
  fi
  say "getting NCCL, 200 MB, once (COMERA_NCCL=off leaves it out)"
  unpack_list "$list" "$nccl.new"
  if ((${#failed[@]})); then
    say "NCCL is left out, GPUs exchange gradients through the hosts: it did not come from PyPI: $(why_pip_failed) (cmake/setup.sh --retry tries again)"
    echo "$pin" >"$build/.nccl-failed"
    return 0
  fi
  echo "$pin" >"$nccl.new/.stamp"
  rm -rf "$nccl" "$build/.nccl-failed"
  mv "$nccl.new" "$nccl"
  changed
}
nccl_from_pypi

# ---- Arrow ----------------------------------------------------------------------------------------------------
arrow_from_pypi() {
  local list=$here/pypi-arrow.txt pin
  pin=$(pin_of "$list")
  [[ ${COMERA_ARROW:-off} == on ]] || return 0
  [[ ! -f $arrow/.stamp || $(<"$arrow/.stamp") != "$pin" ]] || return 0
  say "getting Arrow, 55 MB, once"
  unpack_list "$list" "$arrow.new"
  ((${#failed[@]} == 0)) || fail "Arrow did not come from PyPI" "$(why_pip_failed)" "check the network, then run this again (log: build/pip.log), or unset COMERA_ARROW"
  # The rest is for Python.
  find "$arrow.new/pyarrow" -mindepth 1 -maxdepth 1 ! -name include ! -name 'libarrow.so.*' ! -name 'libparquet.so.*' -exec rm -rf {} +
  echo "$pin" >"$arrow.new/.stamp"
  rm -rf "$arrow"
  mv "$arrow.new" "$arrow"
  changed
}
arrow_from_pypi
