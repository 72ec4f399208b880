#!/usr/bin/env bash
# One Slurm node on this machine, as root and without systemd, with all its files in one folder; for Debian 12.
#
#     experiments/slurm/node.sh start FOLDER     installs slurm-wlm and munge where they are missing; then: source FOLDER/environment
#     experiments/slurm/node.sh stop FOLDER
set -euo pipefail
verb=${1:-} folder=$(realpath -m "${2:?name a folder}")
conf=$folder/slurm.conf

stop() {
  for name in slurmd slurmctld munged; do
    [[ -f $folder/$name.pid ]] && kill "$(<"$folder/$name.pid")" 2>/dev/null || true
  done
}

start() {
  command -v slurmctld munged >/dev/null ||
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends slurm-wlm munge; }
  mkdir -p "$folder"/{state,spool}
  chmod 755 "$folder"
  if [[ ! -f $folder/munge.key ]]; then
    head -c 1024 /dev/urandom >"$folder/munge.key"
    chmod 400 "$folder/munge.key"
  fi
  munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
  local host cpus
  host=$(hostname -s) cpus=$(nproc)
  cat >"$conf" <<END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
  echo "export SLURM_CONF='$conf'" >"$folder/environment"
  export SLURM_CONF=$conf
  slurmctld -f "$conf"
  slurmd -f "$conf"
  for _ in $(seq 60); do
    [[ $(sinfo -h -o %t 2>/dev/null) == idle ]] && { sinfo && return; }
    sleep 1
  done
  echo "the node is not idle after a minute: see $folder/*.log" >&2
  return 1
}

case $verb in
  start) start ;;
  stop) stop ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
